"""Formulas of elementary functions that need more than one machine instruction.

They are chosen for accuracy in the tails and against overflow; each says what it computes.
"""

from __future__ import annotations

import math

from codegen.functions.formula_values import (
    MachineNumber as Number,
    copysign,
    exp,
    fmod,
    horner,
    log,
    log1p,
    maximum,
    reciprocal,
    sinh,
    where,
)


def heaviside(u: Number, at_zero: Number | float = 0.5) -> Number:
    """0, `at_zero`, 1; nan stays."""
    return where(u < 0.0, 0.0, where(u.equals(0.0), at_zero, where(u > 0.0, 1.0, u)))


def modulo(u: Number, v: Number) -> Number:
    """Python's %: fmod, plus the divisor where the signs differ; a zero result takes the divisor's sign."""
    remainder = fmod(u, v)
    moved = where((remainder < 0.0) ^ (v < 0.0), remainder + v, remainder)
    return where(remainder.equals(0.0), copysign(v.constant(0.0), v), moved)


def tie_share(u: Number, v: Number) -> Number:
    """1/2 where u = v, NaN where one is, else 1."""
    return where(u.equals(v), 0.5, where(u.compare("ord", v), 1.0, math.nan))


def _decay(u: Number) -> Number:
    return exp(-abs(u))


def sech(u: Number) -> Number:
    """2 e/(1 + e*e) with e = exp(-|u|): accurate in the tails, no overflow."""
    e = _decay(u)
    return 2.0 * e / (1.0 + e * e)


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


def tanh(u: Number) -> Number:
    """(1 - e*e)/(1 + e*e) with e = exp(-|u|), shared with sech(u); u (1 - z D/(N + z D)), z = u*u, near zero.

    One call of exp in place of one of tanh, which is several times slower; within 2 ULP.
    """
    z = u * u
    shifted = z * horner(_DENOMINATOR, z)
    near = u * (1.0 - shifted / (horner(_NUMERATOR, z) + shifted))
    e = _decay(u)
    squared = e * e
    return where(abs(u) < _NEAR, near, copysign((1.0 - squared) / (1.0 + squared), u))


def csch(u: Number) -> Number:
    """1/sinh(u); 2 exp(-|u|) with the sign of u where sinh overflows."""
    tail = copysign(2.0 * _decay(u), u)
    return where(abs(u) > 300.0, tail, reciprocal(sinh(u)))


def expit(u: Number) -> Number:
    """1/(1 + e) or e/(1 + e) with e = exp(-|u|), shared by expit(u) and expit(-u); nan stays nan through e."""
    e = _decay(u)
    return where(u >= 0.0, 1.0, e) / (1.0 + e)


def softplus(u: Number) -> Number:
    """log(1 + exp(u)) = max(u, 0) + log1p(exp(-|u|))."""
    return maximum(u, 0.0) + log1p(_decay(u))


def logaddexp(u: Number, v: Number) -> Number:
    """max(u, v) + log1p(exp(-|u - v|)); u + log(2) where equal, which covers equal infinities."""
    tail = log1p(_decay(u - v))
    return where(u.equals(v), u + math.log(2.0), maximum(u, v) + tail)


def xlogy(u: Number, v: Number) -> Number:
    """u*log(v), 0 where u = 0 and v is a number."""
    return where(u.equals(0.0) & v.compare("ord", v), 0.0, u * log(v))
