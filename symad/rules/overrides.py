"""The table of partial derivatives that SymPy cannot give, or gives in a form that loses digits.

A row is `head: (partial for operand 0, partial for operand 1, ...)`. A partial is called as
`partial(build, p, *operands)`, where `p` is the node of the head itself, and returns the node of the partial
derivative, or None for a structural zero. Everything that is not here is asked of SymPy (see `symad.rules.partials`).
Reasons are given beside each row; conventions at kinks: sign(0) = 0, so |u|' = 0 at 0; at a tie Max and Min
give each of the two operands one half; 0**0 = 1; a gated branch that is not taken contributes nothing, not even NaN.

Where a value is NaN, its derivatives are: formulas that are finite outside of a domain have `log_argument` in them,
and Max and Min choose between their operands by `tie_share`. Slopes that are constants stay what they are at NaN too:
the 2 of 2*u, and the structural zero of piecewise constants (floor, sign...).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.graph.builder import Builder, Exact, simplest
from symad.rules import ranged_rules as ranged, special_rules as special
from symad.rules.distribution_rules import DISTRIBUTIONS
from symad.rules.ranged_rules import refused, zero

Partial = Callable[..., int | None]
Gate = tuple[int | None, int | None]  # coefficient (None is 1), guard (None is always)


def _one(build: Builder, p: int, *operands: int) -> int:
    return build.one


def _power_base(build: Builder, p: int, u: int, v: int) -> int | None:
    exponent = build.constant(v)
    if exponent is None:
        slope = build.mul(v, build.power(u, build.sub(v, build.one)))
        origin = build.graph.pair(sp.And, _is_zero(build, u), _is_zero(build, v))
        return build.select(origin, build.zero, slope)  # 0 * u**-1 at u = 0 would be NaN
    short = None if isinstance(exponent, float) else _SHORT_POWERS.get(exponent)
    if short is not None:
        return short(build, p, u)
    if exponent == 0:
        return None
    return build.mul(v, build.power(u, build.number(simplest(exponent - 1))))


_SHORT_POWERS: dict[Exact, Callable[[Builder, int, int], int]] = {
    1: lambda b, p, u: b.one,
    2: lambda b, p, u: b.mul(b.two, u),
    -1: lambda b, p, u: b.neg(b.mul(p, p)),
    Fraction(1, 2): lambda b, p, u: b.div(b.half, p),  # reuses the root
    Fraction(-1, 2): lambda b, p, u: b.mul(b.number(Fraction(-1, 2)), b.mul(b.mul(p, p), p)),
}


def _power_exponent(build: Builder, p: int, u: int, v: int) -> int | None:
    """u**v log(u), and 0 at u = 0 for v > 0 (where 0 * log(0) would be NaN).

    For v <= 1 that 0 is written -sqrt(u): its slope is infinite, as that of u**v log(u) is, and not 0.
    """
    slope = build.mul(p, build.call(sp.log, u))
    vanishes = build.graph.pair(sp.And, _is_zero(build, u), build.call(sp.StrictGreaterThan, v, build.zero))
    flat = build.call(sp.StrictGreaterThan, v, build.one)
    return build.select(vanishes, build.select(flat, build.zero, build.sub(build.zero, build.sqrt(u))), slope)


def _is_zero(build: Builder, u: int) -> int:
    return build.call(sp.Equality, u, build.zero)


def log_argument(build: Builder, u: int, factor: int | None = None) -> int:
    """Return u with NaN below 0, where it may be; u alone where the `factor` of a logarithm is 0."""
    if _is_nonnegative(build, u):
        return u
    inside = build.call(h.log_argument, u)
    if factor is None or build.constant(factor) not in (0, None):
        return inside
    return build.select(_is_zero(build, factor), u, inside)


def _is_nonnegative(build: Builder, node: int) -> bool:
    """Whether a number cannot be below 0 by how it is made."""
    graph, waiting = build.graph, [node]
    for _ in range(_LOOKED_AT):
        if not waiting:
            return True
        part = waiting.pop()
        head, operands, value = graph.heads[part], graph.operands[part], build.constant(part)
        if value is not None and value >= 0:
            continue
        if head in (sp.Add, sp.Mul, h.Alias) and part not in graph.rules:
            waiting += operands
        elif head is sp.Pow:
            even, root = build.even_integer(operands[1]), build.constant(operands[1]) == Fraction(1, 2)
            if even is None and not root:
                waiting.append(operands[0])
        elif head not in _NONNEGATIVE:
            return False
    return False


_LOOKED_AT = 128  # nodes
_NONNEGATIVE = frozenset(
    {sp.exp, sp.Abs, sp.cosh, sp.sech, h.exp2, h.hypot, h.expit, h.softplus, s.erfcx, sp.erfc, s.normal_hazard}
)


def _whole_quotient(build: Builder, p: int, u: int, v: int) -> int:
    """-(u - p)/v as a whole number, of a remainder p: u/v may be rounded up to the next one."""
    return build.neg(build.call(sp.floor, build.add(build.div(build.sub(u, p), v), build.half)))


def _exponential_integral(build: Builder, p: int, n: int, u: int) -> int:
    """-E_(n-1)(u), where E_1, which is real to the right of 0 only, has the slope -exp(-u)/u."""
    if build.constant(n) != 1:
        return build.neg(build.call(sp.expint, build.sub(n, build.one), u))
    return build.neg(build.div(build.call(sp.exp, build.neg(u)), log_argument(build, u)))


def _step_value(build: Builder, p: int, u: int, at_zero: int) -> int:
    """1 at u = 0, else 0: the slope of a step in its value there; NaN at NaN."""
    return build.sub(build.one, build.call(sp.Abs, build.call(sp.sign, u)))


def _elliptic_moment(build: Builder, p: int, a: int, b: int, m: int) -> int:
    """(b + 1/2) times the moment (a+1, b+1): differentiation under the integral."""
    higher = build.call(h.elliptic_moment, build.add(a, build.one), build.add(b, build.one), m)
    return build.mul(build.add(b, build.half), higher)


def _elliptic_e_first(build: Builder, p: int, *operands: int) -> int:
    """d/dm E(m) = -1/2 moment (1, 0); d/dz E(z|m) = sqrt(1 - m sin(z)**2)."""
    if len(operands) == 1:
        moment = build.call(h.elliptic_moment, build.one, build.zero, operands[0])
        return build.mul(build.number(Fraction(-1, 2)), moment)
    z, m = operands
    return build.sqrt(build.sub(build.one, build.mul(m, build.power(build.call(sp.sin, z), build.two))))


OVERRIDES: dict[Head, tuple[Partial, ...]] = {
    h.Alias: (_one,),
    sp.Pow: (_power_base, _power_exponent),
    # piecewise constant or piecewise linear: SymPy answers DiracDelta or Derivative
    sp.sign: (zero,),
    sp.floor: (zero,),
    sp.ceiling: (zero,),
    sp.Heaviside: (zero, _step_value),
    h.trunc: (zero,),
    h.rint: (zero,),
    sp.frac: (_one,),
    sp.Abs: (lambda b, p, u: b.call(sp.sign, u),),
    h.copysign: (lambda b, p, u, v: b.mul(b.call(sp.sign, u), b.call(h.copysign, b.one, v)), zero),
    sp.Mod: (_one, _whole_quotient),
    h.fmod: (_one, _whole_quotient),
    # over- and underflow of u**2 + v**2, cancellation of 1 - (u/h)**2 in the second derivative
    sp.atan2: (
        lambda b, p, u, v: b.div(b.call(h.direction_cosine, v, u), b.call(h.hypot, u, v)),
        lambda b, p, u, v: b.neg(b.div(b.call(h.direction_cosine, u, v), b.call(h.hypot, u, v))),
    ),
    h.hypot: (
        lambda b, p, u, v: b.call(h.direction_cosine, u, v),
        lambda b, p, u, v: b.call(h.direction_cosine, v, u),
    ),
    h.direction_cosine: (
        lambda b, p, u, v: b.div(b.power(b.call(h.direction_cosine, v, u), b.two), b.call(h.hypot, u, v)),
        lambda b, p, u, v: b.neg(b.div(b.mul(p, b.call(h.direction_cosine, v, u)), b.call(h.hypot, u, v))),
    ),
    # 1/u is finite below 0, where the logarithms have no value
    h.log_argument: (_one,),
    h.tie_share: (zero, zero),
    sp.log: (lambda b, p, u: b.reciprocal(log_argument(b, u)),),
    h.log1p: (lambda b, p, u: b.reciprocal(log_argument(b, b.add(b.one, u))),),
    h.log2: (lambda b, p, u: b.reciprocal(b.mul(log_argument(b, u), b.call(sp.log, b.two))),),
    h.log10: (lambda b, p, u: b.reciprocal(b.mul(log_argument(b, u), b.call(sp.log, b.number(10)))),),
    # cancellation near the branch points; and at them every mode gives infinity, where a product rule gives 0 * inf
    h.one_minus_square: (lambda b, p, u: b.mul(b.number(-2), u),),
    sp.asin: (lambda b, p, u: b.power(b.call(h.one_minus_square, u), b.number(Fraction(-1, 2))),),
    sp.acos: (lambda b, p, u: b.neg(b.power(b.call(h.one_minus_square, u), b.number(Fraction(-1, 2)))),),
    sp.atanh: (lambda b, p, u: b.reciprocal(log_argument(b, b.call(h.one_minus_square, u))),),
    sp.acoth: (lambda b, p, u: b.neg(b.reciprocal(log_argument(b, b.neg(b.call(h.one_minus_square, u))))),),
    sp.asech: (lambda b, p, u: b.neg(b.reciprocal(b.mul(log_argument(b, u), b.sqrt(b.call(h.one_minus_square, u))))),),
    sp.asinh: (lambda b, p, u: b.reciprocal(b.call(h.hypot, b.one, u)),),  # 1 + u**2 overflows
    # 1 - tanh**2 is 0 for |u| > 19, 1 - expit is 0 for u > 37
    sp.tanh: (lambda b, p, u: b.power(b.call(sp.sech, u), b.two),),
    h.expit: (lambda b, p, u: b.mul(p, b.call(h.expit, b.neg(u))),),
    h.log_expit: (lambda b, p, u: b.call(h.expit, b.neg(u)),),
    h.softplus: (lambda b, p, u: b.call(h.expit, u),),
    h.logaddexp: (
        lambda b, p, u, v: b.call(h.expit, b.sub(u, v)),
        lambda b, p, u, v: b.call(h.expit, b.sub(v, u)),
    ),
    h.xlogy: (lambda b, p, u, v: b.call(sp.log, v), lambda b, p, u, v: b.div(u, log_argument(b, v, u))),
    s.xlog1py: (
        lambda b, p, u, v: b.call(h.log1p, v),
        lambda b, p, u, v: b.div(u, log_argument(b, b.add(b.one, v), u)),
    ),
    sp.loggamma: (lambda b, p, u: b.call(sp.digamma, log_argument(b, u)),),
    h.cbrt: (lambda b, p, u: b.reciprocal(b.mul(b.number(3), b.mul(p, p))),),  # real for u < 0
    # removable singularities
    sp.LambertW: (lambda b, p, u, *k: b.div(b.call(sp.exp, b.neg(p)), b.add(b.one, p)), refused),
    sp.sinc: (lambda b, p, u: b.neg(b.call(s.spherical_jn, b.one, u)),),
    sp.expint: (refused, _exponential_integral),
    sp.elliptic_k: (lambda b, p, m: b.mul(b.half, b.call(h.elliptic_moment, b.one, b.one, m)),),
    sp.elliptic_e: (
        _elliptic_e_first,
        ranged.elliptic_e_in_m,
    ),
    sp.elliptic_f: (ranged.elliptic_f_in_z, ranged.elliptic_f_in_m),
    h.elliptic_moment: (refused, refused, _elliptic_moment),
    **special.SPECIAL,
    **DISTRIBUTIONS,
}


def _extremum(loses: Head) -> Callable[[Builder, tuple[int, ...]], list[Gate]]:
    def gates(build: Builder, operands: tuple[int, ...]) -> list[Gate]:
        u, v = operands
        share = build.call(h.tie_share, u, v)  # which holds NaN of either operand, as the guards let through
        return [(share, build.negate(build.call(loses, *pair))) for pair in ((u, v), (v, u))]

    return gates


def _piecewise(build: Builder, operands: tuple[int, ...]) -> list[Gate]:
    """Each value passes its tangent on where its condition holds and no earlier one does; one that is NaN spoils all.

    Where a constant NaN is chosen, the tangents of the values beside it are multiplied by NaN.
    """
    guards: list[int | None] = []
    earlier: int | None = None
    for condition in operands[1::2]:
        guards.append(earlier if condition == build.true else build.both(earlier, condition))
        earlier = build.both(earlier, build.negate(condition))
    spoilt: int | None = build.never
    for value, guard in zip(operands[::2], guards, strict=True):
        if build.graph.atoms.get(value) is sp.nan:
            spoilt = build.either(spoilt, guard)
    return [gate for guard in guards for gate in (_unless(build, spoilt, guard), (None, None))]


def _unless(build: Builder, spoilt: int | None, guard: int | None) -> Gate:
    if spoilt == build.never:
        return None, guard
    nan = build.graph.leaf(sp.nan)
    return (nan if spoilt is None else build.select(spoilt, nan, build.one)), build.either(guard, spoilt)


# Heads that choose: the tangent of an operand passes only under a guard, which stays outside every product.
GATES: dict[Head, Callable[[Builder, tuple[int, ...]], list[Gate]]] = {
    sp.Piecewise: _piecewise,
    sp.Max: _extremum(sp.StrictLessThan),
    sp.Min: _extremum(sp.StrictGreaterThan),
}
