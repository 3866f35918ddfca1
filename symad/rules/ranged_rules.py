"""Partial derivatives of special functions in several forms, each for the range where it is accurate.

Differences of nearly equal functions are written as series, asymptotic expansions or quadratures there. All forms are
differentiable again, at every order. `docs/special_ranges.md` holds what the sweep finds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.graph.builder import Builder

Partial = Callable[..., int | None]


def zero(build: Builder, p: int, *operands: int) -> None:
    """No derivative: the operand is piecewise constant, or an exponent that is known."""


def refused(build: Builder, p: int, *operands: int) -> None:
    """Mark an operand (order, degree, shape, branch) whose derivative has no row; never called: an error is raised."""


def _less(build: Builder, left: int, right: int | float | Fraction) -> int:
    return build.call(sp.StrictLessThan, left, build.number(right))


def _all(build: Builder, *conditions: int) -> int:
    joined = conditions[0]
    for condition in conditions[1:]:
        joined = build.graph.pair(sp.And, joined, condition)
    return joined


def _polynomial(build: Builder, coefficients: Sequence[float | Fraction], u: int) -> int:
    """Return the sum of c[k] u**k."""
    total = build.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = build.add(build.mul(total, u), build.number(coefficient))
    return total


# ---- Bessel functions. The scaled ones fall as 1/sqrt(u): the expansion for large u (DLMF 10.40) is differentiated
# term by term, where v f_v and u f_v' cancel.

_TERMS = 17
_LARGE = 32.0


def _expansion(v: float) -> list[float]:
    """Return the coefficients of the expansion of sqrt(2 u / pi) exp(u) K_v(u) in 1/u."""
    coefficients = [1.0]
    for k in range(1, _TERMS):
        coefficients.append(coefficients[-1] * (4 * v * v - (2 * k - 1) ** 2) / (8 * k))
    return coefficients


def scaled_bessel(head: Head, direct: Partial, *, first: bool) -> Partial:
    """Return the derivative of ive (`first`) or kve in u, for a constant order by its expansion where u is large."""

    def partial(build: Builder, p: int, order: int, u: int) -> int:
        near, v = direct(build, p, order, u), build.constant(order)
        assert near is not None
        if v is None:
            return near
        sign, factor = (-1, 1 / math.sqrt(2 * math.pi)) if first else (1, math.sqrt(math.pi / 2))
        slopes = [-factor * sign**k * (k + 0.5) * coefficient for k, coefficient in enumerate(_expansion(float(v)))]
        size = build.call(sp.Abs, u) if first else u
        tail = _polynomial(build, slopes, build.reciprocal(size))
        far = build.mul(build.power(size, build.number(Fraction(-3, 2))), tail)
        is_large = build.call(sp.StrictGreaterThan, size, build.number(max(_LARGE, 2 * float(v) ** 2)))
        if first and v != int(v):
            is_large = _all(build, is_large, build.call(sp.StrictGreaterThan, u, build.zero))
        elif first and int(v) % 2 == 0:
            far = build.mul(build.call(sp.sign, u), far)
        return build.select(is_large, far, near)

    return partial


def bessel_k(build: Builder, p: int, order: int, u: int) -> int:
    """-K_(v-1) - v/u K_v for v >= 0, else v/u K_v - K_(v+1): sums of equal signs, of orders that stay small."""
    v = build.constant(order)
    if v is None:
        mean = build.add(*(build.call(sp.besselk, build.add(order, step), u) for step in (build.minus_one, build.one)))
        return build.mul(build.number(Fraction(-1, 2)), mean)
    toward = build.sub(order, build.one) if v >= 0 else build.add(order, build.one)
    neighbour = build.one if abs(build.constant(toward) or 0) == 1 else toward  # K_v is even in v
    slope = build.neg(build.call(sp.besselk, neighbour, u))
    if v == 0:
        return slope
    return build.sub(slope, build.mul(build.div(build.number(v if v > 0 else -v), u), p))


# ---- dilogarithm, box-cox


def spence(build: Builder, p: int, u: int) -> int:
    """log(u)/(1 - u) = -F(1, 1; 2; 1 - u); the second form around u = 1, where the first one is 0/0."""
    rest = build.sub(build.one, u)
    near = build.neg(build.call(s.hyp2f1, build.one, build.one, build.two, rest))
    far = build.div(build.call(sp.log, u), rest)
    return build.select(_less(build, build.call(sp.Abs, rest), Fraction(1, 2)), near, far)


def exponential_remainder(build: Builder, z: int) -> int:
    """(exp(z) (z - 1) + 1)/z**2 = M(2, 3, z)/2, the derivative of (exp(z) - 1)/z; the second form around 0."""
    near = build.mul(build.half, build.call(s.hyp1f1, build.two, build.number(3), z))
    grown = build.mul(build.call(sp.exp, z), build.sub(z, build.one))
    far = build.div(build.add(grown, build.one), build.power(z, build.two))
    return build.select(_less(build, build.call(sp.Abs, z), 1), near, far)


def logarithm_remainder(build: Builder, u: int, p: int) -> int:
    """The derivative of log1p(p u)/p in p: -u**2/2 F(2, 2; 3; -p u) around p u = 0, and its closed form elsewhere."""
    z = build.mul(p, u)
    slope = build.call(s.hyp2f1, build.two, build.two, build.number(3), build.neg(z))
    near = build.mul(build.number(Fraction(-1, 2)), build.power(u, build.two), slope)
    change = build.sub(build.div(z, build.add(build.one, z)), build.call(h.log1p, z))
    far = build.div(change, build.power(p, build.two))
    return build.select(_less(build, build.call(sp.Abs, z), Fraction(1, 2)), near, far)


# ---- binomial coefficients and rising factorials, which are 0 where a gamma function in the denominator has a pole


def reciprocal_gamma_slope(build: Builder, u: int) -> int:
    """The derivative of 1/gamma(u), which has no poles; by reflection for u < 1/2."""
    p = build.call(s.rgamma, u)
    pi, mirrored = build.graph.leaf(sp.pi), build.sub(build.one, u)
    angle = build.mul(pi, u)
    sine = build.mul(build.call(sp.digamma, mirrored), build.div(build.call(sp.sin, angle), pi))
    left = build.mul(build.call(sp.gamma, mirrored), build.sub(build.call(sp.cos, angle), sine))
    right = build.neg(build.mul(p, build.call(sp.digamma, u)))
    return build.select(_less(build, u, Fraction(1, 2)), left, right)


def at_zero(build: Builder, p: int, value: int, otherwise: int) -> int:
    """A value where the function is 0, which may be at a pole of a factor of the other one."""
    return build.select(build.call(sp.Equality, p, build.zero), value, otherwise)


def binomial_slope(build: Builder, n: int, k: int, *, in_n: bool) -> int:
    """The derivative of gamma(n + 1) / (gamma(k + 1) gamma(n - k + 1)) where it is 0."""
    top, below = build.call(sp.gamma, build.add(n, build.one)), build.add(k, build.one)
    others = build.add(build.sub(n, k), build.one)
    first = build.mul(build.call(s.rgamma, below), reciprocal_gamma_slope(build, others))
    if in_n:
        return build.mul(top, first)
    second = build.mul(reciprocal_gamma_slope(build, below), build.call(s.rgamma, others))
    return build.mul(top, build.sub(second, first))


# ---- elliptic integrals

# of log(16 q / p) in powers of p, where q is the nome of p: computed by mpmath from a contour integral
_NOME = (
    0.0, 0.5, 0.203125, 0.11979166666666667, 0.082427978515625, 0.06173095703125, 0.048774083455403646,
    0.03998592921665737, 0.033677730010822416, 0.02895437232736084, 0.02530015714582987, 0.022398424755506725,
    0.020044687049657265, 0.018101384861429674,
)  # fmt: skip
_SMALL = Fraction(1, 16)


def _moment(build: Builder, a: int, b: int, m: int) -> int:
    return build.call(h.elliptic_moment, build.number(a), build.number(b), m)


def _complement_slope(build: Builder, p: int) -> int:
    """The derivative of K(1 - p) = -K(p) log(q)/pi, for a small p (DLMF 19.2.17, 20.9.4)."""
    logarithm = build.add(build.call(sp.log, build.mul(p, build.number(_SMALL))), _polynomial(build, _NOME, p))
    slopes: list[float] = [k * coefficient for k, coefficient in enumerate(_NOME)][1:]
    slope = build.add(build.reciprocal(p), _polynomial(build, slopes, p))
    grown = build.mul(build.half, _moment(build, 1, 1, p), logarithm)
    total = build.add(grown, build.mul(build.call(sp.elliptic_k, p), slope))
    return build.div(total, build.neg(build.graph.leaf(sp.pi)))


def ellipkm1(build: Builder, p: int, u: int) -> int:
    """The derivative of K(1 - u): by the nome for small u; for large u that of K(1 - 1/u)/sqrt(u)."""
    middle = build.mul(build.number(Fraction(-1, 2)), _moment(build, 1, 1, build.sub(build.one, u)))
    turned = build.reciprocal(u)
    inner = build.mul(_complement_slope(build, turned), build.power(u, build.number(Fraction(-5, 2))))
    far = build.neg(build.add(inner, build.mul(build.half, build.div(p, u))))
    otherwise = build.select(build.call(sp.StrictGreaterThan, u, build.number(1 / _SMALL)), far, middle)
    return build.select(_less(build, u, _SMALL), _complement_slope(build, u), otherwise)


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_FLAT = Fraction(1, 8)  # the modulus up to which the quadrature has 15 digits


def _incomplete_moment(build: Builder, z: int, m: int, power: Fraction) -> int:
    """The integral of sin(t)**2 (1 - m sin(t)**2)**power from 0 to z, by 24 nodes of Gauss and Legendre."""
    total = build.zero
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        square = build.power(build.call(sp.sin, build.mul(build.number((node + 1) / 2), z)), build.two)
        rest = build.power(build.sub(build.one, build.mul(m, square)), build.number(power))
        term = build.mul(build.number(weight / 2), build.mul(square, rest))
        total = term if total == build.zero else build.add(total, term)
    return build.mul(z, total)


def incomplete(build: Builder, z: int, m: int, power: Fraction, direct: int) -> int:
    """The derivative of an incomplete elliptic integral in m: as an integral for small m, where formulas are 0/0.

    Whole half turns of the angle z are complete integrals.
    """
    slopes = power < Fraction(-1, 2)
    pi = build.graph.leaf(sp.pi)
    turns = build.call(h.rint, build.div(z, pi))
    complete = build.mul(build.two, turns, _moment(build, 1, int(slopes), m))
    rest = _incomplete_moment(build, build.sub(z, build.mul(turns, pi)), m, power)
    near = build.mul(build.number(Fraction(1 if slopes else -1, 2)), build.add(complete, rest))
    return build.select(_less(build, build.call(sp.Abs, m), _FLAT), near, direct)


def elliptic_f_in_m(build: Builder, p: int, z: int, m: int) -> int:
    """E/(2 m (1 - m)) - F/(2 m) - sin(2 z)/(4 (1 - m) sqrt(1 - m sin(z)**2)) (DLMF 19.4.5)."""
    others, twice = build.sub(build.one, m), build.mul(build.two, m)
    second = build.div(build.call(sp.elliptic_e, z, m), build.mul(twice, others))
    root = build.sqrt(build.sub(build.one, build.mul(m, build.power(build.call(sp.sin, z), build.two))))
    third = build.div(build.call(sp.sin, build.mul(build.two, z)), build.mul(build.number(4), others, root))
    direct = build.sub(build.sub(second, build.div(p, twice)), third)
    return incomplete(build, z, m, Fraction(-3, 2), direct)


def elliptic_e_in_m(build: Builder, p: int, z: int, m: int) -> int:
    """(E - F)/(2 m)."""
    direct = build.div(build.sub(p, build.call(sp.elliptic_f, z, m)), build.mul(build.two, m))
    return incomplete(build, z, m, Fraction(-1, 2), direct)


def elliptic_f_in_z(build: Builder, p: int, z: int, m: int) -> int:
    """1/sqrt(1 - m sin(z)**2)."""
    square = build.power(build.call(sp.sin, z), build.two)
    return build.power(build.sub(build.one, build.mul(m, square)), build.number(Fraction(-1, 2)))
