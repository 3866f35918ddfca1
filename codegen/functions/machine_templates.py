"""Native lowerings that are more than one instruction, as functions over the machine table's constructors.

A template takes the machine table and operand references and returns a reference. Formulas are chosen for accuracy in
the tails and against overflow; each says what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from codegen.errors import LoweringError
from codegen.ir.machine_rows import Machine, Reference

Native = Callable[..., Reference]


def call(symbol: str) -> Native:
    """Return the lowering to one call of a C function of doubles."""
    return lambda machine, *operands: machine.call(symbol, operands)


def scipy(name: str, output: int = 0) -> Native:
    """Return the lowering to the inner loop of a SciPy ufunc (its `output`-th result)."""
    return lambda machine, *operands: machine.call(f"scipy.{name}.{len(operands)}.{output}", operands)


def fold(operation: str) -> Native:
    """Return the lowering of an n-ary head to a left-associated chain of a binary machine operation."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        pairwise = getattr(machine, operation)
        return reduce(pairwise, operands)

    return lower


def connective(operation: str, *, negate: bool = False) -> Native:
    """Return the lowering of a logical connective."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        result = reduce(lambda left, right: machine.logic(operation, left, right), map(machine.truth, operands))
        return machine.invert(result) if negate else result

    return lower


def compare(condition: str) -> Native:
    """Return the lowering of a relational; comparisons with nan are false, except `une`."""
    return lambda machine, left, right: machine.compare(condition, left, right)


def alias(machine: Machine, operand: Reference) -> Reference:
    """The same value."""
    return operand


def unary(operation: str) -> Native:
    """Return the lowering to one unary constructor of the machine table."""
    return lambda machine, operand: getattr(machine, operation)(operand)


def multiply_add(machine: Machine, a: Reference, b: Reference, c: Reference) -> Reference:
    """a*b + c; fused where the kernel is built with `fma`."""
    return machine.add(machine.mul(a, b), c)


def invert(machine: Machine, operand: Reference) -> Reference:
    """Not."""
    return machine.invert(machine.truth(operand))


def implies(machine: Machine, left: Reference, right: Reference) -> Reference:
    """Not left, or right."""
    return machine.logic("or", invert(machine, left), machine.truth(right))


def choose(machine: Machine, test: Reference, first: Reference, second: Reference) -> Reference:
    """ITE."""
    return machine.select(machine.truth(test), first, second)


def piecewise(machine: Machine, *flat: Reference) -> Reference:
    """First value whose condition holds, else nan: nested selects, all branches evaluated."""
    result = machine.const(math.nan)
    for k in range(len(flat) - 2, -1, -2):
        result = machine.select(machine.truth(flat[k + 1]), flat[k], result)
    return result


def reciprocal_of(native: Native) -> Native:
    """Return the lowering of u -> 1/f(u)."""
    return lambda machine, operand: machine.reciprocal(native(machine, operand))


def of_reciprocal(native: Native) -> Native:
    """Return the lowering of u -> f(1/u)."""
    return lambda machine, operand: native(machine, machine.reciprocal(operand))


def sign(machine: Machine, u: Reference) -> Reference:
    """-1, 0, 1; u - u gives +0 for zeros and keeps nan."""
    zero = machine.const(0.0)
    below = machine.select(machine.compare("olt", u, zero), machine.const(-1.0), machine.sub(u, u))
    return machine.select(machine.compare("ogt", u, zero), machine.const(1.0), below)


def heaviside(machine: Machine, u: Reference, at_zero: Reference | None = None) -> Reference:
    """0, `at_zero`, 1; nan stays."""
    zero = machine.const(0.0)
    middle = machine.const(0.5) if at_zero is None else at_zero
    above = machine.select(machine.compare("ogt", u, zero), machine.const(1.0), u)
    rest = machine.select(machine.compare("oeq", u, zero), middle, above)
    return machine.select(machine.compare("olt", u, zero), zero, rest)


def modulo(machine: Machine, u: Reference, v: Reference) -> Reference:
    """Python's %: fmod, plus the divisor where the signs differ; a zero result takes the divisor's sign."""
    zero = machine.const(0.0)
    remainder = machine.call("fmod", (u, v))
    differ = machine.logic("xor", machine.compare("olt", remainder, zero), machine.compare("olt", v, zero))
    moved = machine.select(differ, machine.add(remainder, v), remainder)
    signed_zero = machine.call("llvm.copysign.f64", (zero, v))
    return machine.select(machine.compare("oeq", remainder, zero), signed_zero, moved)


def frac(machine: Machine, u: Reference) -> Reference:
    """u - floor(u)."""
    return machine.sub(u, machine.call("llvm.floor.f64", (u,)))


def one_minus_square(machine: Machine, u: Reference) -> Reference:
    """(1 - u)(1 + u)."""
    one = machine.const(1.0)
    return machine.mul(machine.sub(one, u), machine.add(one, u))


def direction_cosine(machine: Machine, u: Reference, v: Reference) -> Reference:
    """u / hypot(u, v)."""
    return machine.div(u, machine.call("hypot", (u, v)))


def sinc(machine: Machine, u: Reference) -> Reference:
    """sin(u)/u, 1 at zero."""
    quotient = machine.div(machine.call("llvm.sin.f64", (u,)), u)
    return machine.select(machine.compare("oeq", u, machine.const(0.0)), machine.const(1.0), quotient)


def _decay(machine: Machine, u: Reference) -> Reference:
    return machine.call("exp", (machine.negate(machine.abs(u)),))


def sech(machine: Machine, u: Reference) -> Reference:
    """2 e/(1 + e*e) with e = exp(-|u|): accurate in the tails, no overflow."""
    e = _decay(machine, u)
    one = machine.const(1.0)
    return machine.div(machine.mul(machine.const(2.0), e), machine.add(one, machine.mul(e, e)))


def _tanh_fraction(levels: int) -> tuple[list[float], list[float]]:
    """Coefficients of N and D in the truncated continued fraction N(z)/D(z) = 3 + z/(5 + z/(7 + ...)) (DLMF 4.39.1)."""
    top, bottom = [2 * levels + 1], [1]
    for odd in range(2 * levels - 1, 1, -2):  # odd + z/(top/bottom) = (odd top + z bottom)/top
        shifted = [0, *bottom]
        width = max(len(top), len(shifted))
        padded = top + [0] * (width - len(top)), shifted + [0] * (width - len(shifted))
        top, bottom = [odd * a + b for a, b in zip(*padded, strict=True)], top
    scale = float(top[0])
    return [a / scale for a in top], [b / scale for b in bottom]


_NEAR = 0.625  # below it 1 - exp(-2|u|) cancels, above it the fraction needs more terms
_NUMERATOR, _DENOMINATOR = _tanh_fraction(8)  # relative error below 1e-18 for |u| < _NEAR


def tanh(machine: Machine, u: Reference) -> Reference:
    """(1 - e*e)/(1 + e*e) with e = exp(-|u|), shared with sech(u); u (1 - z D/(N + z D)), z = u*u, near zero.

    One call of exp in place of one of tanh, which is several times slower; within 2 ULP.
    """
    one, z = machine.const(1.0), machine.mul(u, u)
    shifted = machine.mul(z, _horner(machine, _DENOMINATOR, z))
    quotient = machine.div(shifted, machine.add(_horner(machine, _NUMERATOR, z), shifted))
    near = machine.mul(u, machine.sub(one, quotient))
    e = _decay(machine, u)
    squared = machine.mul(e, e)
    far = machine.div(machine.sub(one, squared), machine.add(one, squared))
    signed = machine.call("llvm.copysign.f64", (far, u))
    return machine.select(machine.compare("olt", machine.abs(u), machine.const(_NEAR)), near, signed)


def _horner(machine: Machine, coefficients: list[float], z: Reference) -> Reference:
    total = machine.const(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = machine.add(machine.const(coefficient), machine.mul(total, z))
    return total


def csch(machine: Machine, u: Reference) -> Reference:
    """1/sinh(u); 2 exp(-|u|) with the sign of u where sinh overflows."""
    tail = machine.call("llvm.copysign.f64", (machine.mul(machine.const(2.0), _decay(machine, u)), u))
    middle = machine.reciprocal(machine.call("sinh", (u,)))
    return machine.select(machine.compare("ogt", machine.abs(u), machine.const(300.0)), tail, middle)


def expit(machine: Machine, u: Reference) -> Reference:
    """1/(1 + e) or e/(1 + e) with e = exp(-|u|), shared by expit(u) and expit(-u); nan stays nan through e."""
    e = _decay(machine, u)
    one = machine.const(1.0)
    top = machine.select(machine.compare("oge", u, machine.const(0.0)), one, e)
    return machine.div(top, machine.add(one, e))


def softplus(machine: Machine, u: Reference) -> Reference:
    """max(u, 0) + log1p(exp(-|u|))."""
    return machine.add(machine.maximum(u, machine.const(0.0)), machine.call("log1p", (_decay(machine, u),)))


def log_expit(machine: Machine, u: Reference) -> Reference:
    """-softplus(-u)."""
    return machine.negate(softplus(machine, machine.negate(u)))


def logaddexp(machine: Machine, u: Reference, v: Reference) -> Reference:
    """max(u, v) + log1p(exp(-|u - v|)); u + log(2) where equal, which covers equal infinities."""
    tail = machine.call("log1p", (_decay(machine, machine.sub(u, v)),))
    different = machine.add(machine.maximum(u, v), tail)
    same = machine.add(u, machine.const(math.log(2.0)))
    return machine.select(machine.compare("oeq", u, v), same, different)


def xlogy(machine: Machine, u: Reference, v: Reference) -> Reference:
    """u*log(v), 0 where u = 0 and v is a number."""
    zero = machine.const(0.0)
    vanishes = machine.logic("and", machine.compare("oeq", u, zero), machine.compare("ord", v, v))
    return machine.select(vanishes, zero, machine.mul(u, machine.call("log", (v,))))


def gamma(machine: Machine, u: Reference) -> Reference:
    """tgamma, with inf of the right sign at zero (as in C) and nan at the negative integers."""
    return machine.call("tgamma", (u,))


def loggamma(machine: Machine, u: Reference) -> Reference:
    """lgamma for u >= 0, nan below."""
    value = machine.call("lgamma", (u,))
    return machine.select(machine.compare("olt", u, machine.const(0.0)), machine.const(math.nan), value)


def factorial(machine: Machine, u: Reference) -> Reference:
    """gamma(u + 1)."""
    return machine.call("tgamma", (machine.add(u, machine.const(1.0)),))


def bessel(general: str, zero: str, one: str) -> Native:
    """Return the lowering of a Bessel function: libm for the constant orders 0, 1, -1, SciPy for the others."""

    def lower(machine: Machine, order: Reference, u: Reference) -> Reference:
        fixed = machine.constant(order)
        if fixed == -1.0:
            return machine.negate(machine.call(one, (u,)))
        symbol = None if fixed is None else {0.0: zero, 1.0: one}.get(fixed)
        return machine.call(symbol, (u,)) if symbol else scipy(general)(machine, order, u)

    return lower


def polygamma(machine: Machine, order: Reference, u: Reference) -> Reference:
    """digamma for order 0, else (-1)**(n + 1) n! zeta(n + 1, u); the order must be a constant."""
    n = machine.constant(order)
    if n is None or n < 0 or n != int(n) or n > 170:
        raise LoweringError("polygamma of a variable order", why="the order selects the formula", do="fix the order")
    if n == 0:
        return scipy("psi")(machine, u)
    factor = math.factorial(int(n)) * (1.0 if n % 2 else -1.0)
    return machine.mul(machine.const(factor), scipy("_zeta")(machine, machine.const(n + 1.0), u))


def zeta(machine: Machine, s: Reference, a: Reference | None = None) -> Reference:
    """Riemann zeta, or Hurwitz zeta with two arguments."""
    return scipy("_riemann_zeta")(machine, s) if a is None else scipy("_zeta")(machine, s, a)


def elliptic_e(machine: Machine, first: Reference, second: Reference | None = None) -> Reference:
    """Complete E(m), or incomplete E(phi | m)."""
    return scipy("ellipe")(machine, first) if second is None else scipy("ellipeinc")(machine, first, second)


def moment_factor(a: float) -> float:
    """pi/2 (1/2)_a / a!, the moment of order a at m = 0."""
    return math.pi / 2 * math.prod((k + 0.5) / (k + 1) for k in range(int(a)))


def elliptic_moment(machine: Machine, a: Reference, b: Reference, m: Reference) -> Reference:
    """pi/2 (1/2)_a / a! times 2F1(a + 1/2, b + 1/2; a + 1; m), for constant a and b (DLMF 15.6.1)."""
    order, power = machine.constant(a), machine.constant(b)
    if order is None or power is None:
        raise LoweringError("elliptic_moment of unknown order", why="its orders are constants", do="pass numbers")
    parameters = [machine.const(value) for value in (order + 0.5, power + 0.5, order + 1.0)]
    value = scipy("hyp2f1")(machine, *parameters, m)
    return machine.mul(machine.const(moment_factor(order)), value)


def refuse(why: str) -> Native:
    """Return a lowering that always refuses, with the reason."""

    def lower(machine: Machine, *operands: Reference) -> Reference:
        raise LoweringError("a complex value", why=why, do="keep the program real")

    return lower
