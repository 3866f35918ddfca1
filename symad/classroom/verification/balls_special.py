"""Special functions in ball arithmetic: Arb's functions in the form and domain of codegen's heads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp

import codegen.heads as heads
import codegen.special_heads as s
from codegen.ir.program import Head
from symad.classroom.verification.balls_functions import (
    Ball,
    at_zero,
    ball,
    choose,
    flint,
    half,
    less,
    methods,
    pi,
    power,
    root_of_squares,
    whole,
    with_sign,
)


def _real(function: Callable[..., Any]) -> Callable[..., Ball]:
    """Return a complex function as a function of real balls; nan if its value is not real."""

    def value(*operands: Ball) -> Ball:
        result = function(*map(flint().acb, operands))
        return result.real if result.imag.contains(0) else flint().arb.nan()

    return value


def _inside(test: Callable[..., Any], function: Callable[..., Ball]) -> Callable[..., Ball]:
    """Return a function that is nan unless a condition certainly holds."""
    return lambda *operands: function(*operands) if test(*operands) else flint().arb.nan()


def _erfc_ratio(order: Ball, u: Ball) -> Ball:
    ratio = pi().sqrt() / 2 * (u * u).exp() * u.erfc()
    for k in range(1, whole(order) + 1):
        ratio = (1 / (2 * ratio) - u) / k
    return ratio


def _faddeeva(order: Ball, u: Ball, v: Ball) -> Any:
    acb = flint().acb
    z = acb(u, v)
    before = (-z * z).exp() * acb(v, -u).erfc()
    if not whole(order):
        return before
    now = -2 * z * before + acb(0, 2 / pi().sqrt())
    for k in range(1, whole(order)):
        before, now = now, -2 * z * now - 2 * k * before
    return now


def _normal(u: Ball) -> Ball:
    return (-u / ball(2).sqrt()).erfc() / 2


def _owens_t(h: Ball, a: Ball) -> Ball:
    """A rigorous integral. The integrand is at most 1, which bounds the effect of a's radius."""
    acb = flint().acb
    integral = acb.integral(lambda t, _: (-h * h * (1 + t * t) / 2).exp() / (1 + t * t), acb(0), acb(a.mid())).real
    return (integral + flint().arb(0, a.rad())) / (2 * pi())


def _student(freedom: Ball, t: Ball) -> Ball:
    if not freedom > 0:
        return flint().arb.nan()
    tail = (freedom / (freedom + t * t)).beta_lower(freedom / 2, half(), regularized=1) / 2
    return choose(less(t, ball(0)), tail, 1 - tail)


def _log_gamma(u: Ball) -> Ball:
    return u.lgamma() if u > 0 else abs(u.gamma()).log()


def _gamma_domain(a: Ball, u: Ball) -> bool:
    return bool((a > 0 and u >= 0) or (a.is_zero() and u > 0))


def _incomplete_beta(a: Ball, b: Ball, u: Ball) -> Ball:
    return u.beta_lower(a, b, regularized=1) if a > 0 and b > 0 and u >= 0 and u <= 1 else flint().arb.nan()


def _spherical(function: Callable[[Ball, Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    """sqrt(pi/(2|u|)) times a Bessel function of order n + 1/2 at |u|, with the parity of n."""

    def value(order: Ball, u: Ball) -> Ball:
        size = abs(u)
        result = (pi() / (2 * size)).sqrt() * function(order + half(), size)
        return with_sign(u, result) if whole(order) % 2 else result

    return value


def _spherical_second(order: Ball, u: Ball) -> Ball:
    """y_n, whose parity is that of n + 1."""
    return _spherical(lambda v, size: size.bessel_y(v))(order, u) * with_sign(u, ball(1))


def _spherical_at_zero(function: Callable[[Ball, Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    inside = _spherical(function)
    return lambda order, u: ball(whole(order) == 0) if u.is_zero() else inside(order, u)


def _spherical_decaying(order: Ball, u: Ball) -> Ball:
    """k_n by its finite sum (DLMF 10.49.12), which holds for u < 0 too."""
    n, arb = whole(order), flint().arb
    terms = [arb.fac_ui(n + k) / (arb.fac_ui(k) * arb.fac_ui(n - k) * (2 * u) ** k) for k in range(n + 1)]
    return pi() * (-u).exp() / (2 * u) * sum(terms, ball(0))


def _elliptic_moment(a: Ball, b: Ball, m: Ball) -> Ball:
    factor = pi() / 2 * half().rising(a) / (a + 1).gamma()
    return factor * m.hypgeom_2f1(a + half(), b + half(), a + 1)


@_real
def _elliptic_e(first: Any, *second: Any) -> Any:
    return flint().acb.elliptic_e_inc(first, *second) if second else first.elliptic_e()


def _entropy(rest: Callable[[Ball, Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    """u log(u/v) + rest inside the domain, rest on its edge, inf outside."""

    def value(u: Ball, v: Ball) -> Ball:
        if u > 0 and v > 0:
            return u * (u / v).log() + rest(u, v)
        if u.is_zero() and v >= 0:
            return rest(u, v)
        return flint().arb.pos_inf() if u < 0 or v < 0 or (u > 0 and v.is_zero()) else flint().arb.nan()

    return value


def _pseudo_huber(d: Ball, u: Ball) -> Ball:
    return flint().arb.pos_inf() if d < 0 else d * (root_of_squares(d, u) - d) if d >= 0 else flint().arb.nan()


def _box_cox(logarithm: Callable[[Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    def value(u: Ball, p: Ball) -> Ball:
        if p.is_zero():
            return logarithm(u)
        known = -1 / p if logarithm(u) == flint().arb.neg_inf() and p > 0 else None  # (0**p - 1)/p
        return (p * logarithm(u)).expm1() / p if known is None else known

    return value


def _logarithm(u: Ball) -> Ball:
    return flint().arb.neg_inf() if u.is_zero() else u.log()


def _inverse_box_cox(last: Callable[[Ball], Ball]) -> Callable[[Ball, Ball], Ball]:
    return lambda u, p: last(u if p.is_zero() else (p * u).log1p() / p)


def _jacobi(u: Ball, m: Ball) -> tuple[Ball, Ball, Ball]:
    """sn, cn and dn by theta functions, for 0 < m < 1; their limits at 0 and 1."""
    if m.is_zero():
        return u.sin(), u.cos(), ball(1)
    if m == 1:
        return u.tanh(), u.sech(), u.sech()
    if not (m > 0 and m < 1):
        return (flint().arb.nan(),) * 3
    acb = flint().acb
    quarter, other = acb(m).elliptic_k().real, acb(1 - m).elliptic_k().real
    tau = acb(0, other / quarter)
    first, second, third, fourth = (value.real for value in acb(u / (2 * quarter)).modular_theta(tau))
    _, at_two, at_three, at_four = (value.real for value in acb(0).modular_theta(tau))
    return (at_three / at_two * first / fourth, at_four / at_two * second / fourth, at_four / at_three * third / fourth)


def _amplitude(u: Ball, m: Ball) -> Ball:
    """The angle of (cn, sn), continued through the periods of u."""
    if m.is_zero():
        return u
    sine, cosine, _ = _jacobi(u, m)
    if sine.is_nan():
        return sine
    angle = flint().arb.atan2(sine, cosine)
    if m == 1:
        return angle
    turns = (u / (4 * flint().acb(m).elliptic_k().real) - angle / (2 * pi()) + half()).floor()
    return angle + 2 * pi() * turns


ERROR_FUNCTIONS: dict[Head, Callable[..., Any]] = {
    **methods(sp.erf, sp.erfc, sp.erfi, sp.erfinv, sp.erfcinv, fresnel_s=sp.fresnels, fresnel_c=sp.fresnelc),
    s.erfcx: lambda u: (u * u).exp() * u.erfc(),
    s.dawsn: lambda u: pi().sqrt() / 2 * (-u * u).exp() * u.erfi(),
    s.erfc_ratio: _erfc_ratio,
    s.faddeeva_real: lambda n, u, v: _faddeeva(n, u, v).real,
    s.faddeeva_imag: lambda n, u, v: _faddeeva(n, u, v).imag,
    s.log_ndtr: lambda u: _normal(u).log(),
    s.normal_hazard: lambda u: (-u * u / 2).exp() / (2 * pi()).sqrt() / _normal(u),
    s.owens_t: _owens_t,
    s.stdtr: _student,
}

GAMMA_FUNCTIONS: dict[Head, Callable[..., Any]] = {
    **methods(sp.gamma, sp.digamma, s.rgamma, lgamma=sp.loggamma, gamma_lower=sp.lowergamma, gamma_upper=sp.uppergamma),
    sp.polygamma: _real(lambda n, u: u.polygamma(n)),
    sp.beta: lambda a, b: a.gamma() * b.gamma() * (a + b).rgamma(),
    sp.factorial: lambda u: (u + 1).gamma(),
    sp.binomial: lambda n, k: (n + 1).gamma() * (k + 1).rgamma() * (n - k + 1).rgamma(),
    s.gammaln: _log_gamma,
    s.gammasgn: at_zero(lambda: ball(1), lambda u: with_sign(u.rgamma(), 1 + 0 * u.gamma())),
    s.polygamma_difference: lambda n, a, b: _real(lambda u, v, k: v.polygamma(k) - u.polygamma(k))(a, a + b, n),
    s.betaln: lambda a, b: _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b),
    sp.RisingFactorial: lambda u, n: u.rising(n),
    s.gammainc: _inside(_gamma_domain, lambda a, u: u.gamma_lower(a, regularized=1)),
    s.gammaincc: _inside(_gamma_domain, lambda a, u: u.gamma_upper(a, regularized=1)),
    s.gamma_kernel: lambda a, c, u: power(u, a) * (-u - c).exp(),
    s.betainc: _incomplete_beta,
    s.betaincc: lambda a, b, u: _incomplete_beta(b, a, 1 - u),
    s.beta_kernel: lambda a, b, c, u: power(u, a) * power(1 - u, b) * (-c).exp(),
    sp.zeta: lambda u, *shift: u.zeta(*shift),
}

BESSEL_FUNCTIONS: dict[Head, Callable[..., Any]] = {
    **methods(bessel_j=sp.besselj, bessel_y=sp.bessely, bessel_i=sp.besseli, bessel_k=sp.besselk),
    **methods(airy_ai=sp.airyai, airy_bi=sp.airybi),
    s.ive: lambda v, u: u.bessel_i(v) * (-abs(u)).exp(),
    s.kve: lambda v, u: u.bessel_k(v) * u.exp(),
    sp.jn: _spherical_at_zero(lambda v, size: size.bessel_j(v)),
    sp.yn: _spherical_second,
    s.spherical_jn: _spherical_at_zero(lambda v, size: size.bessel_j(v)),
    s.spherical_yn: _spherical_second,
    s.spherical_in: _spherical_at_zero(lambda v, size: size.bessel_i(v)),
    s.spherical_kn: _spherical_decaying,
    sp.airyaiprime: lambda u: u.airy_ai(derivative=1),
    sp.airybiprime: lambda u: u.airy_bi(derivative=1),
}

ENTROPIES_AND_POWERS: dict[Head, Callable[..., Any]] = {
    s.logit: lambda u: (u / (1 - u)).log(),
    s.xlog1py: lambda u, v: u if u.is_zero() else u * v.log1p(),
    s.log_ratio: lambda u, v: (u / v).log(),
    s.entr: at_zero(lambda: ball(0), lambda u: flint().arb.neg_inf() if u < 0 else -u * u.log()),
    s.rel_entr: _entropy(lambda u, v: ball(0)),
    s.kl_div: _entropy(lambda u, v: v - u),
    s.hypot_excess: lambda d, u: root_of_squares(d, u) - d,
    s.pseudo_huber: _pseudo_huber,
    s.exprel: lambda u: u.hypgeom_1f1(1, 2),
    s.powm1: lambda u, v: power(u, v) - 1,
    s.boxcox: _box_cox(_logarithm),
    s.boxcox1p: _box_cox(lambda u: _logarithm(1 + u)),
    s.inv_boxcox: _inverse_box_cox(lambda u: u.exp()),
    s.inv_boxcox1p: _inverse_box_cox(lambda u: u.expm1()),
    s.sindg: lambda u: (u / 180).sin_pi(),
    s.cosdg: lambda u: (u / 180).cos_pi(),
    s.tandg: lambda u: (u / 180).tan_pi(),
    s.cotdg: lambda u: (u / 180).cot_pi(),
}

POLYNOMIALS: dict[Head, Callable[..., Any]] = {
    **methods(legendre_p=sp.legendre, chebyshev_t=sp.chebyshevt, chebyshev_u=sp.chebyshevu, hermite_h=sp.hermite),
    **methods(laguerre_l=sp.laguerre, gegenbauer_c=sp.gegenbauer, jacobi_p=sp.jacobi),
    **methods(laguerre_l=sp.assoc_laguerre),
    s.hermitenorm: lambda n, u: power(ball(2), -n / 2) * (u / ball(2).sqrt()).hermite_h(n),
}

HYPERGEOMETRIC_FUNCTIONS: dict[Head, Callable[..., Any]] = {
    **methods(hypgeom_0f1=s.hyp0f1, hypgeom_1f1=s.hyp1f1, hypgeom_2f1=s.hyp2f1, hypgeom_u=s.hyperu),
    **methods(sp.expint, ei=sp.Ei, si=sp.Si, shi=sp.Shi),
    sp.elliptic_k: _inside(lambda m: m <= 1, _real(lambda m: m.elliptic_k())),
    sp.elliptic_f: _real(lambda phi, m: flint().acb.elliptic_f(phi, m)),
    sp.elliptic_e: _inside(lambda first, *second: second or first <= 1, _elliptic_e),
    heads.elliptic_moment: _elliptic_moment,
    s.ellipkm1: lambda p: pi() / (2 * p.sqrt().agm()),
    s.jacobi_sn: lambda u, m: _jacobi(u, m)[0],
    s.jacobi_cn: lambda u, m: _jacobi(u, m)[1],
    s.jacobi_dn: lambda u, m: _jacobi(u, m)[2],
    s.jacobi_am: _amplitude,
    sp.LambertW: lambda u, *branch: u.lambertw(*map(whole, branch)),
    s.wrightomega: lambda u: u.exp().lambertw(),
    s.spence: _inside(lambda u: u >= 0, _real(lambda u: (1 - u).polylog(2))),
    sp.Ci: lambda u: abs(u).ci(),  # of -u: the real part
    sp.Chi: lambda u: abs(u).chi(),
}

SPECIAL: dict[Head, Callable[..., Any]] = {
    **ERROR_FUNCTIONS, **GAMMA_FUNCTIONS, **BESSEL_FUNCTIONS, **ENTROPIES_AND_POWERS, **POLYNOMIALS,
    **HYPERGEOMETRIC_FUNCTIONS,
}  # fmt: skip
