"""Templates of special functions, written once over a machine: `Machine` lowers them, `FLOATS` evaluates them.

Formulas are chosen against cancellation and overflow; each says what it computes.

Native Lambert W on the two real branches: a starting value and four Halley steps, without a loop. Source: R. M. Corless
et al., On the Lambert W function, Adv. Comput. Math. 5 (1996); the starting value for u > 0 is that of Iacono and Boyd,
Adv. Comput. Math. 43 (2017). Near the branch point -1/e the series in p = sqrt(2 (e u + 1)) is used, with e in two
parts, since e u + 1 cancels there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from typing import Any

import codegen.functions.machine_templates as native
from codegen.errors import LoweringError
from codegen.functions.recurrences import constant_order
from codegen.ir.machine_rows import Machine, Reference

FRACTION_BORDER = 1.5  # below it the recurrence for erfc_ratio runs upward, above it the continued fraction is used
FRACTION_LEVELS = 80
ASYMPTOTIC_BORDER = 12  # arguments above it (plus the order) take the asymptotic series of polygamma
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
CLOSE = 0.1  # |u/v - 1| below which kl_div is a power series
CLOSE_TERMS = 17


def erfc_ratio(machine: Any, order: Any, u: Any) -> Any:
    """R_n = (1/(2 R_(n-1)) - u)/n from R_0 = sqrt(pi)/2 erfcx(u); backward for large u (DLMF 7.18.7)."""
    n = constant_order(machine, order, "erfc_ratio")
    half = machine.const(0.5)
    start = machine.mul(machine.const(math.sqrt(math.pi) / 2), native.scipy("erfcx")(machine, u))
    upward = start
    for k in range(1, n + 1):
        upward = machine.div(machine.sub(machine.div(half, upward), u), machine.const(float(k)))
    if not n:
        return start
    last = float(n + FRACTION_LEVELS)
    root = machine.sqrt(machine.add(machine.mul(u, u), machine.const(2 * last)))
    ratio = machine.div(machine.const(1.0), machine.add(u, root))
    twice = machine.mul(machine.const(2.0), u)
    for k in range(n + FRACTION_LEVELS, n, -1):
        scaled = machine.mul(machine.const(2.0 * k), ratio)
        ratio = machine.div(machine.const(1.0), machine.add(twice, scaled))
    far = machine.compare("ogt", u, machine.const(FRACTION_BORDER))
    return machine.select(far, ratio, upward)


def normal_hazard(machine: Any, u: Any) -> Any:
    """sqrt(2/pi) / erfcx(-u/sqrt(2))."""
    scaled = machine.mul(machine.const(-math.sqrt(0.5)), u)
    return machine.div(machine.const(math.sqrt(2 / math.pi)), native.scipy("erfcx")(machine, scaled))


def gammaln(machine: Any, u: Any) -> Any:
    """log|gamma(u)|."""
    return machine.call("lgamma", (u,))


def rgamma(machine: Any, u: Any) -> Any:
    """1/gamma(u), 0 at 0, -1, -2..."""
    zero = machine.const(0.0)
    whole = machine.compare("oeq", u, machine.call("llvm.floor.f64", (u,)))
    pole = machine.logic("and", whole, machine.compare("ole", u, zero))
    return machine.select(pole, zero, machine.div(machine.const(1.0), machine.call("tgamma", (u,))))


def polygamma_difference(machine: Any, order: Any, a: Any, b: Any) -> Any:
    """Term by term in the asymptotic series (DLMF 5.11.2) at a, or at a + steps by the recurrence; below 0 plain."""
    n = constant_order(machine, order, "polygamma_difference")
    end, zero = machine.add(a, b), machine.const(0.0)
    plain = machine.sub(native.polygamma(machine, order, end), native.polygamma(machine, order, a))
    border = machine.const(ASYMPTOTIC_BORDER + n)
    large = machine.logic("and", machine.compare("ogt", a, border), machine.compare("ogt", end, border))
    steps = ASYMPTOTIC_BORDER + n + 1
    total = _asymptotic_difference(machine, n, machine.select(large, a, machine.add(a, machine.const(float(steps)))), b)
    climbed = machine.add(total, _recurrence_difference(machine, n, steps, a, b))
    positive = machine.logic("and", machine.compare("ogt", a, zero), machine.compare("ogt", end, zero))
    return machine.select(large, total, machine.select(positive, climbed, plain))


def _asymptotic_difference(machine: Any, n: int, a: Any, b: Any) -> Any:
    logarithm = machine.call("log1p", (machine.div(b, a),))
    reciprocal = machine.div(machine.const(1.0), a)
    total = machine.const(0.0)
    for power, coefficient in reversed(_asymptotic_terms(n)):
        factor = machine.call("pow", (reciprocal, machine.const(float(power))))
        change = machine.call("expm1", (machine.mul(machine.const(-float(power)), logarithm),))
        total = machine.add(total, machine.mul(machine.const(coefficient), machine.mul(factor, change)))
    return total if n else machine.add(total, logarithm)


def _recurrence_difference(machine: Any, n: int, steps: int, a: Any, b: Any) -> Any:
    """What the steps from a to a + steps add: p**-m - q**-m of neighbours, each as b times a sum of equal signs."""
    one, total = machine.const(1.0), machine.const(0.0)
    for k in range(steps):
        place = machine.add(a, machine.const(float(k)))
        near, far = machine.div(one, place), machine.div(one, machine.add(place, b))
        power, inner = far, machine.const(0.0)  # Horner: sum of near**i * far**j with i + j = n + 2
        for _ in range(n + 1):
            inner = machine.add(machine.mul(inner, near), machine.mul(power, near))
            power = machine.mul(power, far)
        total = machine.add(total, inner)
    factor = math.factorial(n) * (-1.0 if n % 2 else 1.0)
    return machine.mul(machine.mul(machine.const(factor), b), total)


def _asymptotic_terms(n: int) -> list[tuple[int, float]]:
    """Powers p and coefficients c of polygamma(n, a) = [log(a) for n = 0] + sum of c a**-p."""
    sign = 1.0 if n % 2 else -1.0
    terms = [(n, sign * math.factorial(n - 1))] if n else []
    terms.append((n + 1, sign * math.factorial(n) / 2))
    for k, bernoulli in enumerate(BERNOULLI, 1):
        terms.append((2 * k + n, sign * bernoulli * math.factorial(2 * k + n - 1) / math.factorial(2 * k)))
    return terms


def incomplete_gamma(name: str) -> Callable[..., Any]:
    """Return the template of gamma(a) times gammainc or gammaincc: SymPy's lowergamma, uppergamma."""

    def template(machine: Any, a: Any, u: Any) -> Any:
        return machine.mul(machine.call("tgamma", (a,)), native.scipy(name)(machine, a, u))

    return template


def gamma_kernel(machine: Any, power: Any, scale: Any, u: Any) -> Any:
    """exp(a log(u) - u - c), with 0 log(0) = 0."""
    exponent = machine.sub(machine.sub(_times_log(machine, power, u, "log"), u), scale)
    return machine.call("exp", (exponent,))


def beta_kernel(machine: Any, left: Any, right: Any, scale: Any, u: Any) -> Any:
    """exp(a log(u) + b log1p(-u) - c), with 0 log(0) = 0."""
    near, far = _times_log(machine, left, u, "log"), _times_log(machine, right, machine.negate(u), "log1p")
    return machine.call("exp", (machine.sub(machine.add(near, far), scale),))


def xlog1py(machine: Any, u: Any, v: Any) -> Any:
    """u*log1p(v), 0 where u = 0 and v is a number."""
    known = machine.compare("oeq", v, v)
    return machine.select(known, _times_log(machine, u, v, "log1p"), v)


def _times_log(machine: Any, u: Any, v: Any, symbol: str) -> Any:
    zero = machine.const(0.0)
    return machine.select(machine.compare("oeq", u, zero), zero, machine.mul(u, machine.call(symbol, (v,))))


def logit(machine: Any, u: Any) -> Any:
    """2 atanh(2u - 1) around 1/2, where the difference log(u) - log1p(-u) cancels."""
    centred = machine.sub(machine.mul(machine.const(2.0), u), machine.const(1.0))
    near = machine.mul(machine.const(2.0), machine.call("atanh", (centred,)))
    far = machine.sub(machine.call("log", (u,)), machine.call("log1p", (machine.negate(u),)))
    return machine.select(machine.compare("olt", machine.abs(centred), machine.const(0.5)), near, far)


def log_ratio(machine: Any, u: Any, v: Any) -> Any:
    """log1p((u - v)/v) where u/v is near 1, log(u) - log(v) where u/v is no ordinary number, else log(u/v)."""
    quotient = machine.div(u, v)
    excess = machine.div(machine.sub(u, v), v)
    apart = machine.sub(machine.call("log", (u,)), machine.call("log", (v,)))
    ordinary = machine.compare("olt", machine.abs(machine.call("log", (quotient,))), machine.const(690.0))
    far = machine.select(ordinary, machine.call("log", (quotient,)), apart)
    near = machine.compare("olt", machine.abs(excess), machine.const(0.5))
    return machine.select(near, machine.call("log1p", (excess,)), far)


def entr(machine: Any, u: Any) -> Any:
    """-u log(u), 0 at 0, -inf below, nan at nan."""
    zero = machine.const(0.0)
    below = machine.select(machine.compare("olt", u, zero), machine.const(-math.inf), u)
    inside = machine.negate(_times_log(machine, u, u, "log"))
    return machine.select(machine.compare("oge", u, zero), inside, below)


def rel_entr(machine: Any, u: Any, v: Any) -> Any:
    """u log(u/v) inside, 0 at u = 0 <= v, inf outside."""
    return _entropy(machine, u, v, machine.mul(u, log_ratio(machine, u, v)), machine.const(0.0))


def kl_div(machine: Any, u: Any, v: Any) -> Any:
    """u log(u/v) - u + v; near u = v the series v (d**2/(1*2) - d**3/(2*3) + ...) in d = u/v - 1."""
    d = machine.div(machine.sub(u, v), v)
    terms = [machine.const((-1.0) ** k / (k * (k - 1))) for k in range(CLOSE_TERMS, 1, -1)]
    total = reduce(lambda sum_, term: machine.add(machine.mul(sum_, d), term), terms)
    near = machine.mul(machine.mul(v, machine.mul(d, d)), total)
    far = machine.add(machine.sub(machine.mul(u, log_ratio(machine, u, v)), u), v)
    close = machine.compare("olt", machine.abs(d), machine.const(CLOSE))
    return _entropy(machine, u, v, machine.select(close, near, far), v)


def _entropy(machine: Any, u: Any, v: Any, inside: Any, edge: Any) -> Any:
    zero = machine.const(0.0)
    on_edge = machine.logic("and", machine.compare("oeq", u, zero), machine.compare("oge", v, zero))
    interior = machine.logic("and", machine.compare("ogt", u, zero), machine.compare("ogt", v, zero))
    unknown = machine.add(u, v)
    outside = machine.select(machine.compare("oeq", unknown, unknown), machine.const(math.inf), unknown)
    return machine.select(interior, inside, machine.select(on_edge, edge, outside))


def hypot_excess(machine: Any, d: Any, u: Any) -> Any:
    """u (u / (hypot(d, u) + d)), 0 at u = 0 and inf at infinite u."""
    size = machine.abs(u)
    quotient = machine.div(u, machine.add(machine.call("hypot", (d, u)), d))
    edge = machine.logic(
        "or", machine.compare("oeq", u, machine.const(0.0)), machine.compare("oeq", size, machine.const(math.inf))
    )
    return machine.select(edge, size, machine.mul(u, quotient))


def pseudo_huber(machine: Any, d: Any, u: Any) -> Any:
    """d times hypot_excess, inf for d < 0."""
    below = machine.compare("olt", d, machine.const(0.0))
    return machine.select(below, machine.const(math.inf), machine.mul(d, hypot_excess(machine, d, u)))


def exprel(machine: Any, u: Any) -> Any:
    """expm1(u)/u, 1 at zero."""
    one = machine.const(1.0)
    infinite = machine.compare("oeq", u, machine.const(math.inf))
    quotient = machine.select(infinite, u, machine.div(machine.call("expm1", (u,)), u))
    return machine.select(machine.compare("oeq", u, machine.const(0.0)), one, quotient)


def box_cox(symbol: str) -> Callable[..., Any]:
    """Return the template of expm1(p l)/p with l = log(u) or log1p(u); l where p = 0."""

    def template(machine: Any, u: Any, power: Any) -> Any:
        logarithm = machine.call(symbol, (u,))
        raised = machine.div(machine.call("expm1", (machine.mul(power, logarithm),)), power)
        return machine.select(machine.compare("oeq", power, machine.const(0.0)), logarithm, raised)

    return template


def inverse_box_cox(symbol: str) -> Callable[..., Any]:
    """Return the template of exp or expm1 of log1p(p u)/p; of u where p = 0."""

    def template(machine: Any, u: Any, power: Any) -> Any:
        logarithm = machine.div(machine.call("log1p", (machine.mul(power, u),)), power)
        exponent = machine.select(machine.compare("oeq", power, machine.const(0.0)), u, logarithm)
        return machine.call(symbol, (exponent,))

    return template


def bessel(general: str, zero: str, one: str) -> Callable[..., Any]:
    """Return the template of an even function of its order: SciPy's functions of the constant orders 0 and 1, or v."""

    def template(machine: Any, order: Any, u: Any) -> Any:
        fixed = machine.constant(order)
        own = None if fixed is None else {0.0: zero, 1.0: one}.get(abs(fixed))
        return native.scipy(own)(machine, u) if own else native.scipy(general)(machine, order, u)

    return template


def exponential_integral(machine: Any, order: Any, u: Any) -> Any:
    """E_n(u): SciPy's expn for n >= 1; E_0 = exp(-u)/u and E_(n-1) = (exp(-u) + (1 - n) E_n)/u below (DLMF 8.19.12)."""
    n = machine.constant(order)
    if n is not None and n != math.floor(n):
        raise LoweringError(f"expint of order {n}", why="the order has to be an integer", do="use an integer order")
    if n is None or n > 0:
        return native.scipy("expn")(machine, order, u)
    decay = machine.call("exp", (machine.negate(u),))
    value = machine.div(decay, u)
    for k in range(1, int(-n) + 1):
        value = machine.div(machine.add(decay, machine.mul(machine.const(float(k)), value)), u)
    return value


E_LOW = 1.4456468917292502e-16  # e - float(e)
BRANCH_SERIES = (
    -1.0, 1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505, 680863 / 43545600, -1963 / 204120,
    226287557 / 37623398400,
)  # fmt: skip
HALLEY_STEPS = 4


def lambert(machine: Machine, u: Reference, branch: Reference | None = None) -> Reference:
    """Lower the real Lambert W of branch 0 or -1 (a constant); LoweringError for other branches."""
    k = 0.0 if branch is None else machine.constant(branch)
    if k not in (0.0, -1.0):
        raise LoweringError(f"LambertW on branch {k}", why="only 0 and -1 are real", do="use branch 0 or -1")
    one = machine.const(1.0)
    turned = machine.call("llvm.fma.f64", (machine.const(math.e), u, one))
    turned = machine.add(turned, machine.mul(machine.const(E_LOW), u))
    p = machine.sqrt(machine.mul(machine.const(2.0), turned))
    p = ~p if k else p
    series = _horner(machine, p, BRANCH_SERIES)
    start = _lower_start(machine, u) if k else _principal_start(machine, u)
    start = machine.select(machine.compare("olt", u, machine.const(-0.25)), series, start)
    refined = start
    for _ in range(HALLEY_STEPS):
        refined = _halley(machine, u, refined)
    near = machine.compare("olt", turned, machine.const(1e-3))
    return machine.select(near, series, _edges(machine, u, refined, k or 0.0))


def _edges(machine: Machine, u: Reference, w: Reference, k: float) -> Reference:
    """W0(inf) = inf, W-1(-0) = -inf; W-1 has no real value above zero."""
    if not k:
        fixed = machine.logic(
            "or", machine.compare("oeq", u, machine.const(math.inf)), machine.compare("oeq", u, machine.const(0.0))
        )
        return machine.select(fixed, u, w)
    zero = machine.const(0.0)
    inside = machine.select(machine.compare("oeq", u, zero), machine.const(-math.inf), w)
    return machine.select(machine.compare("ogt", u, zero), machine.const(math.nan), inside)


def _principal_start(machine: Machine, u: Reference) -> Reference:
    """log1p(u) (1 - log1p(log1p(u)) / (2 + log1p(u)))."""
    first = machine.call("log1p", (u,))
    second = machine.call("log1p", (first,))
    quotient = machine.div(second, machine.add(machine.const(2.0), first))
    return machine.mul(first, machine.sub(machine.const(1.0), quotient))


def _lower_start(machine: Machine, u: Reference) -> Reference:
    """L1 - L2 + L2/L1 with L1 = log(-u), L2 = log(-L1)."""
    first = machine.call("log", (~u,))
    second = machine.call("log", (~first,))
    return machine.add(machine.sub(first, second), machine.div(second, first))


def _halley(machine: Machine, u: Reference, w: Reference) -> Reference:
    """w - f / (e^w (w + 1) - (w + 2) f / (2 w + 2)) with f = w e^w - u."""
    power = machine.call("exp", (w,))
    error = machine.sub(machine.mul(w, power), u)
    above = machine.add(w, machine.const(1.0))
    bend = machine.div(machine.mul(machine.add(w, machine.const(2.0)), error), machine.mul(machine.const(2.0), above))
    return machine.sub(w, machine.div(error, machine.sub(machine.mul(power, above), bend)))


def _horner(machine: Machine, p: Reference, coefficients: tuple[float, ...]) -> Reference:
    constants = [machine.const(value) for value in reversed(coefficients)]
    return reduce(lambda total, constant: machine.add(machine.mul(total, p), constant), constants)
