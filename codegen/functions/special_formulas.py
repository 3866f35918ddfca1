"""Formulas of special functions on machine numbers.

They are chosen against cancellation and overflow; each says what it computes.

Lambert W on the two real branches: a starting value and four Halley steps, without a loop. Source: R. M. Corless et
al., On the Lambert W function, Adv. Comput. Math. 5 (1996); the starting value for u > 0 is that of Iacono and Boyd,
Adv. Comput. Math. 43 (2017). Near the branch point -1/e the series in p = sqrt(2 (e u + 1)) is used, with e in two
parts, since e u + 1 cancels there.
"""

from __future__ import annotations

import math
from functools import reduce

from codegen.errors import LoweringError
from codegen.functions.formula_values import (
    Formula,
    MachineNumber as Number,
    atanh,
    exp,
    expm1,
    fma,
    horner,
    hypot,
    log,
    log1p,
    pow,
    scipy,
    sqrt,
    where,
)
from codegen.functions.recurrences import constant_order

FRACTION_BORDER = 1.5  # below it the recurrence for erfc_ratio runs upward, above it the continued fraction is used
FRACTION_LEVELS = 80
ASYMPTOTIC_BORDER = 12  # arguments above it (plus the order) take the asymptotic series of polygamma
BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
CLOSE = 0.1  # |u/v - 1| below which kl_div is a power series
CLOSE_TERMS = 17


def erfc_ratio(order: Number, u: Number) -> Number:
    """R_n = (1/(2 R_(n-1)) - u)/n from R_0 = sqrt(pi)/2 erfcx(u); backward for large u (DLMF 7.18.7)."""
    n = constant_order(order, "erfc_ratio")
    upward = start = math.sqrt(math.pi) / 2 * scipy("erfcx", u)
    for k in range(1, n + 1):
        upward = (0.5 / upward - u) / float(k)
    if not n:
        return start
    last = float(n + FRACTION_LEVELS)
    ratio = 1.0 / (u + sqrt(u * u + 2 * last))
    for k in range(n + FRACTION_LEVELS, n, -1):
        ratio = 1.0 / (2.0 * u + 2.0 * k * ratio)
    return where(u > FRACTION_BORDER, ratio, upward)


def normal_hazard(u: Number) -> Number:
    """sqrt(2/pi) / erfcx(-u/sqrt(2))."""
    return math.sqrt(2 / math.pi) / scipy("erfcx", -math.sqrt(0.5) * u)


def polygamma(order: Number, u: Number) -> Number:
    """digamma for order 0, else (-1)**(n + 1) n! zeta(n + 1, u); the order must be a constant."""
    n = order.known
    if n is None or n < 0 or n != int(n) or n > 170:
        raise LoweringError("polygamma of a variable order", why="the order selects the formula", do="fix the order")
    if n == 0:
        return scipy("psi", u)
    factor = math.factorial(int(n)) * (1.0 if n % 2 else -1.0)
    return factor * scipy("_zeta", u.constant(n + 1.0), u)


def polygamma_difference(order: Number, a: Number, b: Number) -> Number:
    """Term by term in the asymptotic series (DLMF 5.11.2) at a, or at a + steps by the recurrence; below 0 plain."""
    n = constant_order(order, "polygamma_difference")
    end = a + b
    plain = polygamma(order, end) - polygamma(order, a)
    border = float(ASYMPTOTIC_BORDER + n)
    large = (a > border) & (end > border)
    steps = ASYMPTOTIC_BORDER + n + 1
    total = _asymptotic_difference(n, where(large, a, a + float(steps)), b)
    climbed = total + _recurrence_difference(n, steps, a, b)
    positive = (a > 0.0) & (end > 0.0)
    return where(large, total, where(positive, climbed, plain))


def _asymptotic_difference(n: int, a: Number, b: Number) -> Number:
    logarithm, reciprocal, total = log1p(b / a), 1.0 / a, a.constant(0.0)
    for power, coefficient in reversed(_asymptotic_terms(n)):
        factor = pow(reciprocal, float(power))
        total = total + coefficient * (factor * expm1(-float(power) * logarithm))
    return total if n else total + logarithm


def _recurrence_difference(n: int, steps: int, a: Number, b: Number) -> Number:
    """The sum of p**-m - q**-m over the steps from a to a + steps, as b times a sum of equal signs."""
    total = a.constant(0.0)
    for k in range(steps):
        place = a + float(k)
        near, far = 1.0 / place, 1.0 / (place + b)
        power, inner = far, a.constant(0.0)  # Horner: sum of near**i * far**j with i + j = n + 2
        for _ in range(n + 1):
            inner = inner * near + power * near
            power = power * far
        total = total + inner
    return math.factorial(n) * (-1.0 if n % 2 else 1.0) * b * total


def _asymptotic_terms(n: int) -> list[tuple[int, float]]:
    """Powers p and coefficients c of polygamma(n, a) = [log(a) for n = 0] + sum of c a**-p."""
    sign = 1.0 if n % 2 else -1.0
    terms = [(n, sign * math.factorial(n - 1))] if n else []
    terms.append((n + 1, sign * math.factorial(n) / 2))
    for k, bernoulli in enumerate(BERNOULLI, 1):
        terms.append((2 * k + n, sign * bernoulli * math.factorial(2 * k + n - 1) / math.factorial(2 * k)))
    return terms


def gamma_kernel(power: Number, scale: Number, u: Number) -> Number:
    """exp(a log(u) - u - c), with 0 log(0) = 0; NaN where there is no density."""
    return where(u >= 0.0, exp(_times(power, log(u)) - u - scale), math.nan)


def beta_kernel(left: Number, right: Number, scale: Number, u: Number) -> Number:
    """exp(a log(u) + b log1p(-u) - c), with 0 log(0) = 0; NaN where there is no density."""
    return where((u >= 0.0) & (u <= 1.0), exp(_times(left, log(u)) + _times(right, log1p(-u)) - scale), math.nan)


def xlog1py(u: Number, v: Number) -> Number:
    """u*log1p(v), 0 where u = 0 and v is a number."""
    return where(v.equals(v), _times(u, log1p(v)), v)


def _times(u: Number, logarithm: Number) -> Number:
    """u times a logarithm, 0 for u = 0."""
    return where(u.equals(0.0), 0.0, u * logarithm)


def logit(u: Number) -> Number:
    """2 atanh(2u - 1) around 1/2, where the difference log(u) - log1p(-u) cancels."""
    centred = 2.0 * u - 1.0
    return where(abs(centred) < 0.5, 2.0 * atanh(centred), log(u) - log1p(-u))


def log_ratio(u: Number, v: Number) -> Number:
    """log1p((u - v)/v) where u/v is near 1, log(u) - log(v) where u/v is no ordinary number, else log(u/v)."""
    quotient, excess = log(u / v), (u - v) / v
    far = where(abs(quotient) < 690.0, quotient, log(u) - log(v))
    return where(abs(excess) < 0.5, log1p(excess), far)


def entr(u: Number) -> Number:
    """-u log(u), 0 at 0, -inf below, nan at nan."""
    return where(u >= 0.0, -_times(u, log(u)), where(u < 0.0, -math.inf, u))


def rel_entr(u: Number, v: Number) -> Number:
    """u log(u/v) inside, 0 at u = 0 <= v, inf outside."""
    return _entropy(u, v, u * log_ratio(u, v), u.constant(0.0))


def kl_div(u: Number, v: Number) -> Number:
    """u log(u/v) - u + v; near u = v the series v (d**2/(1*2) - d**3/(2*3) + ...) in d = u/v - 1."""
    d = (u - v) / v
    near = v * (d * d) * horner([(-1.0) ** k / (k * (k - 1)) for k in range(2, CLOSE_TERMS + 1)], d)
    far = u * log_ratio(u, v) - u + v
    return _entropy(u, v, where(abs(d) < CLOSE, near, far), v)


def _entropy(u: Number, v: Number, inside: Number, edge: Number) -> Number:
    on_edge = u.equals(0.0) & (v >= 0.0)
    interior = (u > 0.0) & (v > 0.0)
    unknown = u + v
    outside = where(unknown.equals(unknown), math.inf, unknown)
    return where(interior, inside, where(on_edge, edge, outside))


def hypot_excess(d: Number, u: Number) -> Number:
    """u (u / (hypot(d, u) + d)), 0 at u = 0 and inf at infinite u."""
    size = abs(u)
    edge = u.equals(0.0) | size.equals(math.inf)
    return where(edge, size, u * (u / (hypot(d, u) + d)))


def pseudo_huber(d: Number, u: Number) -> Number:
    """d times hypot_excess, inf for d < 0."""
    return where(d < 0.0, math.inf, d * hypot_excess(d, u))


def exprel(u: Number) -> Number:
    """expm1(u)/u, 1 at zero."""
    quotient = where(u.equals(math.inf), u, expm1(u) / u)
    return where(u.equals(0.0), 1.0, quotient)


def box_cox(logarithm: Formula) -> Formula:
    """Return the formula of expm1(p l)/p with l = log(u) or log1p(u); l where p = 0."""

    def formula(u: Number, power: Number) -> Number:
        taken = logarithm(u)
        return where(power.equals(0.0), taken, expm1(power * taken) / power)

    return formula


def inverse_box_cox(exponential: Formula) -> Formula:
    """Return the formula of exp or expm1 of log1p(p u)/p; of u where p = 0."""
    return lambda u, power: exponential(where(power.equals(0.0), u, log1p(power * u) / power))


def bessel(general: str, zero: str, one: str, parity: int = 1) -> Formula:
    """Return the formula of a Bessel function: by symbol for the constant orders 0, 1, -1, SciPy's for the others.

    `parity` is that of the function of order -1 to the one of order 1.
    """

    def formula(order: Number, u: Number) -> Number:
        fixed = order.known
        symbol = None if fixed is None else {0.0: zero, 1.0: one}.get(abs(fixed))
        value = u.call(symbol) if symbol else scipy(general, order, u)
        return -value if fixed == -1.0 and parity < 0 else value

    return formula


def bessel_k(order: Number, u: Number) -> Number:
    """K_v(u): SciPy's kv is 0 from u = 698, above 600 its scaled form is taken."""
    value = bessel("kv", "scipy.k0.1.0", "scipy.k1.1.0")(order, u)
    if order.known in (-1.0, 0.0, 1.0):
        return value
    return where(u > 600.0, scipy("kve", order, u) * exp(-u), value)


def elliptic_moment(a: Number, b: Number, m: Number) -> Number:
    """pi/2 (1/2)_a / a! times 2F1(a + 1/2, b + 1/2; a + 1; m), for constant a and b (DLMF 15.6.1)."""
    order, power = a.known, b.known
    if order is None or power is None:
        raise LoweringError("elliptic_moment of unknown order", why="its orders are constants", do="pass numbers")
    parameters = [m.constant(value) for value in (order + 0.5, power + 0.5, order + 1.0)]
    start = math.pi / 2 * math.prod((k + 0.5) / (k + 1) for k in range(int(order)))  # the moment at m = 0
    return where(m <= 1.0, start * scipy("hyp2f1", *parameters, m), math.nan)


def exponential_integral(order: Number, u: Number) -> Number:
    """E_n(u): SciPy's expn for n >= 1; E_0 = exp(-u)/u and E_(n-1) = (exp(-u) + (1 - n) E_n)/u below (DLMF 8.19.12)."""
    n = order.known
    if n is not None and n != math.floor(n):
        raise LoweringError(f"expint of order {n}", why="the order has to be an integer", do="use an integer order")
    if n is None or n > 0:
        return scipy("expn", order, u)
    decay = exp(-u)
    return reduce(lambda value, k: (decay + float(k) * value) / u, range(1, int(-n) + 1), decay / u)


E_LOW = 1.4456468917292502e-16  # e - float(e)
BRANCH_SERIES = (
    -1.0, 1.0, -1 / 3, 11 / 72, -43 / 540, 769 / 17280, -221 / 8505, 680863 / 43545600, -1963 / 204120,
    226287557 / 37623398400,
)  # fmt: skip
HALLEY_STEPS = 4


def lambert(u: Number, branch: Number | None = None) -> Number:
    """The real Lambert W of branch 0 or -1 (a constant); LoweringError for other branches."""
    k = 0.0 if branch is None else branch.known
    if k not in (0.0, -1.0):
        raise LoweringError(f"LambertW on branch {k}", why="only 0 and -1 are real", do="use branch 0 or -1")
    turned = fma(u.constant(math.e), u, 1.0) + E_LOW * u
    p = sqrt(2.0 * turned)
    series = horner(BRANCH_SERIES, -p if k else p)
    start = _lower_start(u) if k else _principal_start(u)
    refined = where(u < -0.25, series, start)
    for _ in range(HALLEY_STEPS):
        refined = _halley(u, refined)
    return where(turned < 1e-3, series, _edges(u, refined, k or 0.0))


def _edges(u: Number, w: Number, k: float) -> Number:
    """W0(inf) = inf, W-1(-0) = -inf; W-1 has no real value above zero."""
    if not k:
        return where(u.equals(math.inf) | u.equals(0.0), u, w)
    return where(u > 0.0, math.nan, where(u.equals(0.0), -math.inf, w))


def _principal_start(u: Number) -> Number:
    """log1p(u) (1 - log1p(log1p(u)) / (2 + log1p(u)))."""
    first = log1p(u)
    return first * (1.0 - log1p(first) / (2.0 + first))


def _lower_start(u: Number) -> Number:
    """L1 - L2 + L2/L1 with L1 = log(-u), L2 = log(-L1)."""
    first = log(-u)
    second = log(-first)
    return first - second + second / first


def _halley(u: Number, w: Number) -> Number:
    """w - f / (e^w (w + 1) - (w + 2) f / (2 w + 2)) with f = w e^w - u."""
    power = exp(w)
    error, above = w * power - u, w + 1.0
    return w - error / (power * above - (w + 2.0) * error / (2.0 * above))
