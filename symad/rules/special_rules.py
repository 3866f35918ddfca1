"""Partial derivatives of special functions, as rows that `symad.rules.overrides` joins.

Each keeps its digits where the textbook formula loses them, and each family is closed: the derivative of a row is
written in heads that have rows here too.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import sympy as sp

import codegen.heads as h
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.graph.builder import Builder
from symad.rules import ranged_rules as ranged
from symad.rules.ranged_rules import refused, zero

Partial = Callable[..., int | None]


def _half_root(build: Builder) -> int:
    return build.sqrt(build.half)


def _density(build: Builder, u: int) -> int:
    """exp(-u**2/2) / sqrt(2 pi)."""
    power = build.call(sp.exp, build.mul(build.number(Fraction(-1, 2)), build.power(u, build.two)))
    return build.div(power, build.sqrt(build.mul(build.two, build.graph.leaf(sp.pi))))


# ---- error functions and the normal distribution


def _erfcx(build: Builder, p: int, u: int) -> int:
    """-2 p R_1(u): 2 u p - 2/sqrt(pi) cancels for large u (DLMF 7.18.4)."""
    return build.mul(build.number(-2), p, build.call(s.erfc_ratio, build.one, u))


def _erfc_ratio(build: Builder, p: int, n: int, u: int) -> int:
    """2 R_n (n R_n - (n + 1) R_(n+1)), from d/du (e^(u*u) i^n erfc u) = -2 (n + 1) e^(u*u) i^(n+1) erfc u."""
    above = build.add(n, build.one)
    change = build.sub(build.mul(n, p), build.mul(above, build.call(s.erfc_ratio, above, u)))
    return build.mul(build.two, p, change)


def _normal_hazard(build: Builder, p: int, u: int) -> int:
    """-p (u + p), where u + p = sqrt(2) R_1(-u/sqrt(2)) does not cancel for u << 0."""
    scaled = build.neg(build.mul(_half_root(build), u))
    return build.neg(build.mul(p, build.sqrt(build.two), build.call(s.erfc_ratio, build.one, scaled)))


def _dawsn(build: Builder, p: int, u: int) -> int:
    """M(1, 1/2, -u**2), which is 1 - 2 u p without its cancellation."""
    return build.call(s.hyp1f1, build.one, build.half, build.neg(build.power(u, build.two)))


def _faddeeva_next(head: Head, sign: int) -> Partial:
    """A part of w at order n + 1: the derivative of the real part in v is - that of the imaginary part in u."""

    def partial(build: Builder, p: int, n: int, u: int, v: int) -> int:
        value = build.call(head, build.add(n, build.one), u, v)
        return value if sign > 0 else build.neg(value)

    return partial


def _owens_t_height(build: Builder, p: int, u: int, a: int) -> int:
    error = build.call(sp.erf, build.mul(a, u, _half_root(build)))
    return build.mul(build.number(Fraction(-1, 2)), _density(build, u), error)


def _owens_t_slope(build: Builder, p: int, u: int, a: int) -> int:
    grown = build.add(build.one, build.power(a, build.two))
    power = build.call(sp.exp, build.mul(build.number(Fraction(-1, 2)), build.power(u, build.two), grown))
    return build.div(power, build.mul(build.two, build.graph.leaf(sp.pi), grown))


# ---- gamma and beta functions


def _rise(build: Builder, first: int, step: int) -> int:
    """digamma(first + step) - digamma(first)."""
    return build.call(s.polygamma_difference, build.zero, first, step)


def _binomial_top(build: Builder, p: int, n: int, k: int) -> int:
    slope = build.mul(p, _rise(build, build.add(build.sub(n, k), build.one), k))
    return ranged.at_zero(build, p, ranged.binomial_slope(build, n, k, in_n=True), slope)


def _binomial_bottom(build: Builder, p: int, n: int, k: int) -> int:
    others = build.call(sp.digamma, build.add(build.sub(n, k), build.one))
    slope = build.mul(p, build.sub(others, build.call(sp.digamma, build.add(k, build.one))))
    return ranged.at_zero(build, p, ranged.binomial_slope(build, n, k, in_n=False), slope)


def _rising_start(build: Builder, p: int, a: int, m: int) -> int:
    slope = build.mul(build.call(sp.gamma, build.add(a, m)), ranged.reciprocal_gamma_slope(build, a))
    return ranged.at_zero(build, p, slope, build.mul(p, _rise(build, a, m)))


def _lowered(build: Builder, power: int, kernel: Callable[[int], int], at_pole: int) -> int | None:
    """power * kernel(power - 1), and nothing for power = 0 at the pole, where the kernel is infinite."""
    value = build.constant(power)
    if value == 0:
        return None
    product = build.mul(power, kernel(build.sub(power, build.one)))
    if value is not None:
        return product
    neither = build.graph.pair(sp.And, build.call(sp.Equality, power, build.zero), at_pole)
    return build.select(neither, build.zero, product)


def _gamma_kernel(build: Builder, p: int, a: int, c: int, u: int) -> int:
    at_pole = build.call(sp.Equality, u, build.zero)
    first = _lowered(build, a, lambda lower: build.call(s.gamma_kernel, lower, c, u), at_pole)
    return build.neg(p) if first is None else build.sub(first, p)


def _beta_kernel(build: Builder, p: int, a: int, b: int, c: int, u: int) -> int | None:
    at_0, at_1 = (build.call(sp.Equality, u, end) for end in (build.zero, build.one))
    first = _lowered(build, a, lambda lower: build.call(s.beta_kernel, lower, b, c, u), at_0)
    second = _lowered(build, b, lambda lower: build.call(s.beta_kernel, a, lower, c, u), at_1)
    if second is None:
        return first
    return build.neg(second) if first is None else build.sub(first, second)


# ---- Bessel functions


def _neighbours(head: Head, sign: int) -> Callable[[Builder, int, int], int]:
    """(f_(v-1) + sign f_(v+1)) / 2."""

    def mean(build: Builder, v: int, u: int) -> int:
        below, above = build.call(head, build.sub(v, build.one), u), build.call(head, build.add(v, build.one), u)
        return build.mul(build.half, build.add(below, build.mul(build.number(sign), above)))

    return mean


def _spherical(head: Head, below_sign: int, above_sign: int) -> Partial:
    """(below_sign n f_(n-1) + above_sign (n+1) f_(n+1)) / (2n+1): no 0/0 at u = 0 (DLMF 10.51)."""

    def slope(build: Builder, p: int, n: int, u: int) -> int:
        next_up = build.add(n, build.one)
        above = build.mul(build.number(above_sign), next_up, build.call(head, next_up, u))
        if build.constant(n) == 0:
            return above
        below = build.mul(build.number(below_sign), n, build.call(head, build.sub(n, build.one), u))
        return build.div(build.add(below, above), build.add(build.mul(build.two, n), build.one))

    return slope


# ---- entropies, logarithms and powers


def _pseudo_huber_width(build: Builder, p: int, d: int, u: int) -> int:
    """(hypot(d, u) - d)**2 / hypot(d, u)."""
    excess = build.call(s.hypot_excess, d, u)
    return build.mul(excess, build.div(excess, build.call(h.hypot, d, u)))


def _box_cox_power(build: Builder, logarithm: int, p: int) -> int:
    """d/dp of (exp(p l) - 1)/p: l**2 times the derivative of (exp(z) - 1)/z at z = p l."""
    return build.mul(build.power(logarithm, build.two), ranged.exponential_remainder(build, build.mul(p, logarithm)))


def _inverse_box_cox_power(build: Builder, raised: int, u: int, p: int) -> int:
    """The power times the derivative of its logarithm, log1p(p u)/p."""
    return build.mul(raised, ranged.logarithm_remainder(build, u, p))


def _grown(build: Builder, u: int, p: int) -> int:
    return build.add(build.one, build.mul(p, u))


def _degree(build: Builder, factor: int) -> int:
    """pi/180 times the factor."""
    return build.mul(build.div(build.graph.leaf(sp.pi), build.number(180)), factor)


# ---- polynomials of a constant degree


def _of_lower_degree(slope: Callable[..., int]) -> Partial:
    """A derivative in polynomials of degree n - 1; none for n = 0."""
    return lambda build, p, n, *rest: None if build.constant(n) == 0 else slope(build, n, *rest)


def _gegenbauer(build: Builder, n: int, parameter: int | Fraction, u: int) -> int:
    return build.call(sp.gegenbauer, build.sub(n, build.one), build.number(parameter), u)


def _jacobi(build: Builder, n: int, a: int, b: int, u: int) -> int:
    factor = build.mul(build.half, build.add(n, a, b, build.one))
    lower = build.call(sp.jacobi, build.sub(n, build.one), build.add(a, build.one), build.add(b, build.one), u)
    return build.mul(factor, lower)


def _laguerre(build: Builder, n: int, a: int, u: int) -> int:
    return build.neg(build.call(sp.assoc_laguerre, build.sub(n, build.one), build.add(a, build.one), u))


def _hermite(head: Head, factor: int) -> Partial:
    return _of_lower_degree(lambda b, n, u: b.mul(b.mul(b.number(factor), n), b.call(head, b.sub(n, b.one), u)))


# ---- hypergeometric functions and elliptic functions


def _hyp2f1(build: Builder, p: int, a: int, b: int, c: int, u: int) -> int:
    raised = [build.add(parameter, build.one) for parameter in (a, b, c)]
    return build.mul(build.div(build.mul(a, b), c), build.call(s.hyp2f1, *raised, u))


def _hyp1f1(build: Builder, p: int, a: int, b: int, u: int) -> int:
    return build.mul(build.div(a, b), build.call(s.hyp1f1, build.add(a, build.one), build.add(b, build.one), u))


SPECIAL: dict[Head, tuple[Partial, ...]] = {
    s.erfcx: (_erfcx,),
    s.erfc_ratio: (refused, _erfc_ratio),
    s.dawsn: (_dawsn,),
    s.log_ndtr: (lambda b, p, u: b.call(s.normal_hazard, u),),
    s.normal_hazard: (_normal_hazard,),
    s.faddeeva_real: (refused, _faddeeva_next(s.faddeeva_real, 1), _faddeeva_next(s.faddeeva_imag, -1)),
    s.faddeeva_imag: (refused, _faddeeva_next(s.faddeeva_imag, 1), _faddeeva_next(s.faddeeva_real, 1)),
    s.owens_t: (_owens_t_height, _owens_t_slope),
    s.gammaln: (lambda b, p, u: b.call(sp.digamma, u),),
    s.rgamma: (lambda b, p, u: ranged.reciprocal_gamma_slope(b, u),),
    s.gammasgn: (zero,),
    # psi(a) - psi(a + b) cancels for a >> b
    s.polygamma_difference: (
        refused,
        lambda b, p, n, u, v: b.call(s.polygamma_difference, b.add(n, b.one), u, v),
        lambda b, p, n, u, v: b.call(sp.polygamma, b.add(n, b.one), b.add(u, v)),
    ),
    s.betaln: (lambda b, p, u, v: b.neg(_rise(b, u, v)), lambda b, p, u, v: b.neg(_rise(b, v, u))),
    sp.beta: (lambda b, p, u, v: b.neg(b.mul(p, _rise(b, u, v))), lambda b, p, u, v: b.neg(b.mul(p, _rise(b, v, u)))),
    sp.binomial: (_binomial_top, _binomial_bottom),
    s.gamma_kernel: (lambda b, p, a, c, u: b.call(h.xlogy, p, u), lambda b, p, a, c, u: b.neg(p), _gamma_kernel),
    s.beta_kernel: (
        lambda b, p, x, y, c, u: b.call(h.xlogy, p, u),
        lambda b, p, x, y, c, u: b.call(s.xlog1py, p, b.neg(u)),
        lambda b, p, *operands: b.neg(p),
        _beta_kernel,
    ),
    sp.RisingFactorial: (
        _rising_start,
        lambda b, p, a, m: b.mul(p, b.call(sp.digamma, b.add(a, m))),
    ),
    s.ive: (
        refused,
        ranged.scaled_bessel(
            s.ive, lambda b, p, v, u: b.sub(_neighbours(s.ive, 1)(b, v, u), b.mul(b.call(sp.sign, u), p)), first=True
        ),
    ),
    s.kve: (
        refused,
        ranged.scaled_bessel(s.kve, lambda b, p, v, u: b.sub(p, _neighbours(s.kve, 1)(b, v, u)), first=False),
    ),
    sp.besselk: (refused, ranged.bessel_k),
    sp.jn: (refused, _spherical(sp.jn, 1, -1)),
    sp.yn: (refused, _spherical(sp.yn, 1, -1)),
    s.spherical_jn: (refused, _spherical(s.spherical_jn, 1, -1)),
    s.spherical_yn: (refused, _spherical(s.spherical_yn, 1, -1)),
    s.spherical_in: (refused, _spherical(s.spherical_in, 1, 1)),
    s.spherical_kn: (refused, _spherical(s.spherical_kn, -1, -1)),
    s.logit: (lambda b, p, u: b.reciprocal(b.call(h.log_argument, b.mul(u, b.sub(b.one, u)))),),
    s.log_ratio: (lambda b, p, u, v: b.reciprocal(u), lambda b, p, u, v: b.neg(b.reciprocal(v))),
    s.entr: (lambda b, p, u: b.sub(b.minus_one, b.call(sp.log, u)),),
    s.rel_entr: (
        lambda b, p, u, v: b.add(b.call(s.log_ratio, u, v), b.one),
        lambda b, p, u, v: b.neg(b.div(u, v)),
    ),
    s.kl_div: (  # 1 - u/v cancels where u and v are close
        lambda b, p, u, v: b.call(s.log_ratio, u, v),
        lambda b, p, u, v: b.div(b.sub(v, u), v),
    ),
    s.hypot_excess: (
        lambda b, p, d, u: b.neg(b.div(p, b.call(h.hypot, d, u))),
        lambda b, p, d, u: b.call(h.direction_cosine, u, d),
    ),
    s.pseudo_huber: (_pseudo_huber_width, lambda b, p, d, u: b.mul(d, b.call(h.direction_cosine, u, d))),
    s.exprel: (lambda b, p, u: ranged.exponential_remainder(b, u),),
    s.powm1: (
        lambda b, p, u, v: b.mul(v, b.power(u, b.sub(v, b.one))),
        lambda b, p, u, v: b.mul(b.power(u, v), b.call(sp.log, u)),
    ),
    s.boxcox: (
        lambda b, f, u, p: b.power(b.call(h.log_argument, u), b.sub(p, b.one)),
        lambda b, f, u, p: _box_cox_power(b, b.call(sp.log, u), p),
    ),
    s.boxcox1p: (
        lambda b, f, u, p: b.power(b.call(h.log_argument, b.add(b.one, u)), b.sub(p, b.one)),
        lambda b, f, u, p: _box_cox_power(b, b.call(h.log1p, u), p),
    ),
    s.inv_boxcox: (
        lambda b, f, u, p: b.div(f, _grown(b, u, p)),
        lambda b, f, u, p: _inverse_box_cox_power(b, f, u, p),
    ),
    s.inv_boxcox1p: (
        lambda b, f, u, p: b.div(b.call(s.inv_boxcox, u, p), _grown(b, u, p)),
        lambda b, f, u, p: _inverse_box_cox_power(b, b.call(s.inv_boxcox, u, p), u, p),
    ),
    s.sindg: (lambda b, p, u: _degree(b, b.call(s.cosdg, u)),),
    s.cosdg: (lambda b, p, u: _degree(b, b.neg(b.call(s.sindg, u))),),
    s.tandg: (lambda b, p, u: _degree(b, b.add(b.one, b.power(p, b.two))),),
    s.cotdg: (lambda b, p, u: _degree(b, b.sub(b.minus_one, b.power(p, b.two))),),
    # SymPy divides by u**2 - 1 in the derivatives of legendre and chebyshevu: 0/0 at the ends of the interval
    sp.legendre: (refused, _of_lower_degree(lambda b, n, u: _gegenbauer(b, n, Fraction(3, 2), u))),
    sp.chebyshevt: (refused, _of_lower_degree(lambda b, n, u: b.mul(n, b.call(sp.chebyshevu, b.sub(n, b.one), u)))),
    sp.chebyshevu: (refused, _of_lower_degree(lambda b, n, u: b.mul(b.two, _gegenbauer(b, n, 2, u)))),
    sp.gegenbauer: (
        refused, refused,
        _of_lower_degree(
            lambda b, n, a, u: b.mul(b.two, a, b.call(sp.gegenbauer, b.sub(n, b.one), b.add(a, b.one), u))
        ),
    ),
    sp.jacobi: (refused, refused, refused, _of_lower_degree(_jacobi)),
    sp.laguerre: (refused, _of_lower_degree(lambda b, n, u: _laguerre(b, n, b.zero, u))),
    sp.assoc_laguerre: (refused, refused, _of_lower_degree(_laguerre)),
    sp.hermite: (refused, _hermite(sp.hermite, 2)),
    s.hermitenorm: (refused, _hermite(s.hermitenorm, 1)),
    s.hyp0f1: (refused, lambda b, p, c, u: b.div(b.call(s.hyp0f1, b.add(c, b.one), u), c)),
    s.hyp1f1: (refused, refused, _hyp1f1),
    s.hyp2f1: (refused, refused, refused, _hyp2f1),
    s.hyperu: (
        refused, refused,
        lambda b, p, a, c, u: b.neg(b.mul(a, b.call(s.hyperu, b.add(a, b.one), b.add(c, b.one), u))),
    ),
    s.ellipkm1: (ranged.ellipkm1,),
    s.jacobi_sn: (lambda b, p, u, m: b.mul(b.call(s.jacobi_cn, u, m), b.call(s.jacobi_dn, u, m)), refused),
    s.jacobi_cn: (lambda b, p, u, m: b.neg(b.mul(b.call(s.jacobi_sn, u, m), b.call(s.jacobi_dn, u, m))), refused),
    s.jacobi_dn: (lambda b, p, u, m: b.neg(b.mul(m, b.call(s.jacobi_sn, u, m), b.call(s.jacobi_cn, u, m))), refused),
    s.jacobi_am: (lambda b, p, u, m: b.call(s.jacobi_dn, u, m), refused),
    s.wrightomega: (lambda b, p, u: b.div(p, b.add(b.one, p)),),
    s.spence: (ranged.spence,),
    sp.Si: (lambda b, p, u: b.call(sp.sinc, u),),  # SymPy's sin(u)/u and sinh(u)/u are 0/0 at 0
    sp.Shi: (lambda b, p, u: b.call(s.spherical_in, b.zero, u),),
}  # fmt: skip
