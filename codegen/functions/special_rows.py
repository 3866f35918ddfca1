"""The special functions among the intrinsics: rows over the C library and SciPy's inner loops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy as sp
from mpmath import mp

import codegen.functions.elementary_formulas as elementary
import codegen.functions.recurrences as recurrences
import codegen.functions.reference_functions as exact
import codegen.functions.special_formulas as formulas
import codegen.heads as heads
import codegen.special_heads as s
from codegen.functions.formula_values import exp, expm1, lgamma, log, log1p, lowering
from codegen.functions.function_rows import Intrinsic, libm, scipy, written
from codegen.functions.libraries import scipy_number
from codegen.ir.program import Head


def _bessel(head: Head, name: str, symbols: tuple[str, str], precise: Callable[..., Any], ulp: float) -> Intrinsic:
    return replace(scipy(head, name, precise, ulp), native=lowering(formulas.bessel(name, *symbols, parity=-1)))


def _of_even_order(
    head: Head, name: str, symbols: tuple[str, str], precise: Callable[..., Any], ulp: float
) -> Intrinsic:
    zero, one = (f"scipy.{symbol}.1.0" for symbol in symbols)
    return written(head, formulas.bessel(name, zero, one), precise, ulp)


def _ellipj(kind: str, output: int) -> Intrinsic:
    head = getattr(s, f"jacobi_{kind}")
    return scipy(head, "ellipj", lambda u, m: s.jacobi_value(kind, u, m), 32.0, output)


ERROR_FUNCTIONS = [
    scipy(s.erfcx, "erfcx", lambda u: mp.exp(u * u) * mp.erfc(u), 8.0),
    scipy(s.dawsn, "dawsn", lambda u: mp.sqrt(mp.pi) / 2 * mp.exp(-u * u) * mp.erfi(u), 64.0),
    written(s.erfc_ratio, formulas.erfc_ratio, exact.erfc_ratio, 1024.0),
    scipy(s.log_ndtr, "log_ndtr", exact.log_ndtr, 16.0),
    written(s.normal_hazard, formulas.normal_hazard, lambda u: mp.npdf(u) / mp.ncdf(u), 16.0),
    scipy(s.owens_t, "owens_t", exact.owens_t, 16.0),
    scipy(s.stdtr, "stdtr", exact.stdtr, 64.0),
]

GAMMA_FUNCTIONS = [
    written(s.gammaln, lgamma, lambda u: mp.re(mp.loggamma(u)), 8.0),
    written(s.rgamma, formulas.rgamma, mp.rgamma, 16.0),
    scipy(s.gammasgn, "gammasgn", lambda u: mp.sign(mp.gamma(u)) if u else mp.mpf(1), 0.0),
    written(s.polygamma_difference, formulas.polygamma_difference, exact.polygamma_difference, 64.0),
    scipy(s.betaln, "betaln", lambda a, b: mp.log(abs(mp.beta(a, b))), 512.0),
    scipy(sp.RisingFactorial, "poch", mp.rf, 64.0),
    scipy(s.gammainc, "gammainc", exact.lower_gamma, 64.0),
    scipy(s.gammaincc, "gammaincc", exact.upper_gamma, 1024.0),
    written(sp.lowergamma, formulas.incomplete_gamma("gammainc"), lambda a, u: mp.gammainc(a, 0, u), 64.0),
    written(sp.uppergamma, formulas.incomplete_gamma("gammaincc"), mp.gammainc, 64.0),
    written(s.gamma_kernel, formulas.gamma_kernel, lambda a, c, u: mp.power(u, a) * mp.exp(-u - c), 32.0),
    scipy(s.betainc, "betainc", exact.incomplete_beta, 64.0),
    scipy(s.betaincc, "betaincc", lambda a, b, u: exact.incomplete_beta(b, a, 1 - u), 64.0),
    written(
        s.beta_kernel, formulas.beta_kernel, lambda a, b, c, u: mp.power(u, a) * mp.power(1 - u, b) * mp.exp(-c), 32.0
    ),
]

BESSEL_FUNCTIONS = [
    _of_even_order(s.ive, "ive", ("i0e", "i1e"), lambda v, u: exact.modified_bessel(v, u) * mp.exp(-abs(u)), 256.0),
    _of_even_order(s.kve, "kve", ("k0e", "k1e"), lambda v, u: mp.besselk(v, u) * mp.exp(u), 512.0),
    written(sp.yn, recurrences.spherical_neumann, exact.spherical_yn, 64.0),
    written(s.spherical_jn, recurrences.spherical_bessel, exact.spherical_bessel, 64.0),
    written(s.spherical_yn, recurrences.spherical_neumann, exact.spherical_yn, 64.0),
    written(s.spherical_in, recurrences.spherical_modified, exact.spherical_in, 64.0),
    written(s.spherical_kn, recurrences.spherical_decaying, exact.spherical_kn, 16.0),
]


ENTROPIES_AND_POWERS = [
    written(s.logit, formulas.logit, lambda u: mp.log(u) - mp.log1p(-u), 8.0),
    written(s.xlog1py, formulas.xlog1py, lambda u, v: u * mp.log1p(v) if u else mp.mpf(0), 4.0),
    written(s.log_ratio, formulas.log_ratio, lambda u, v: mp.log(u / v), 8.0),
    written(s.entr, formulas.entr, exact.entr, 4.0),
    written(s.rel_entr, formulas.rel_entr, lambda u, v: exact.entropy(u, v, mp.mpf(0)), 8.0),
    written(s.kl_div, formulas.kl_div, lambda u, v: exact.entropy(u, v, v - u), 64.0),
    written(s.hypot_excess, formulas.hypot_excess, lambda d, u: mp.hypot(d, u) - d, 4.0),
    written(s.pseudo_huber, formulas.pseudo_huber, exact.pseudo_huber, 4.0),
    written(s.exprel, formulas.exprel, lambda u: mp.expm1(u) / u if u else mp.mpf(1), 4.0),
    scipy(s.powm1, "powm1", lambda u, v: mp.powm1(u, v), 16.0),
    written(s.boxcox, formulas.box_cox(log), lambda u, p: exact.box_cox(exact.logarithm(u), p), 16.0),
    written(s.boxcox1p, formulas.box_cox(log1p), lambda u, p: exact.box_cox(exact.logarithm(1 + u), p), 16.0),
    written(s.inv_boxcox, formulas.inverse_box_cox(exp), exact.inverse_box_cox, 64.0),
    written(s.inv_boxcox1p, formulas.inverse_box_cox(expm1), exact.inverse_box_cox_1p, 64.0),
    scipy(s.sindg, "sindg", exact.of_degrees(mp.sin), 4.0),
    scipy(s.cosdg, "cosdg", exact.of_degrees(mp.cos), 4.0),
    scipy(s.tandg, "tandg", exact.of_degrees(mp.tan), 8.0),
    scipy(s.cotdg, "cotdg", exact.of_degrees(mp.cot), 2048.0),
]

HYPERGEOMETRIC_FUNCTIONS = [
    scipy(s.hyp0f1, "hyp0f1", mp.hyp0f1, 64.0),
    scipy(s.hyp1f1, "hyp1f1", mp.hyp1f1, 64.0),
    scipy(s.hyp2f1, "hyp2f1", mp.hyp2f1, 512.0),
    scipy(s.hyperu, "hyperu", mp.hyperu, 4096.0),
    written(
        s.hermitenorm, recurrences.normal_hermite, lambda n, u: 2 ** (-n / 2) * mp.hermite(n, u / mp.sqrt(2)), 64.0
    ),
    scipy(s.ellipkm1, "ellipkm1", lambda p: mp.pi / (2 * mp.agm(1, mp.sqrt(p))), 8.0),
    _ellipj("sn", 0),
    _ellipj("cn", 1),
    _ellipj("dn", 2),
    _ellipj("am", 3),
    scipy(s.wrightomega, "wrightomega", lambda u: mp.lambertw(mp.exp(u)), 8.0),
    scipy(s.spence, "spence", lambda u: mp.polylog(2, 1 - u), 16.0),
]

SYMPY_FUNCTIONS = [
    libm(sp.erf, "erf", mp.erf, 1.5, "odd"),
    libm(sp.erfc, "erfc", mp.erfc, 4.0),
    scipy(sp.erfi, "erfi", mp.erfi, 16.0),
    scipy(sp.erfinv, "erfinv", mp.erfinv, 8.0),
    scipy(sp.erfcinv, "erfcinv", lambda u: mp.erfinv(1 - u), 8.0),
    libm(sp.gamma, "tgamma", mp.gamma, 12.0),
    written(sp.loggamma, elementary.loggamma, mp.loggamma, 8.0),
    scipy(sp.digamma, "psi", mp.digamma, 16.0),
    written(sp.polygamma, formulas.polygamma, exact.polygamma, 16.0),
    scipy(sp.beta, "beta", mp.beta, 32.0),
    _bessel(sp.besselj, "jv", ("j0", "j1"), mp.besselj, 256.0),
    _bessel(sp.bessely, "yv", ("y0", "y1"), mp.bessely, 64.0),
    _of_even_order(sp.besseli, "iv", ("i0", "i1"), exact.modified_bessel, 64.0),
    _of_even_order(sp.besselk, "kv", ("k0", "k1"), mp.besselk, 512.0),
    scipy(sp.airyai, "airy", mp.airyai, 64.0, 0),
    scipy(sp.airyaiprime, "airy", lambda u: mp.airyai(u, derivative=1), 64.0, 1),
    scipy(sp.airybi, "airy", mp.airybi, 64.0, 2),
    scipy(sp.airybiprime, "airy", lambda u: mp.airybi(u, derivative=1), 64.0, 3),
    scipy(sp.elliptic_k, "ellipk", mp.ellipk, 8.0),
    scipy(sp.elliptic_f, "ellipkinc", mp.ellipf, 32.0),
    written(sp.elliptic_e, formulas.elliptic_e, mp.ellipe, 32.0),
    written(heads.elliptic_moment, formulas.elliptic_moment, exact.elliptic_moment, 64.0),
    Intrinsic(sp.LambertW, lowering(formulas.lambert), scipy_number("lambertw"), exact.real(exact.lambert), 16.0),
    written(sp.zeta, formulas.zeta, mp.zeta, 32.0),
    scipy(sp.Ei, "expi", mp.ei, 32.0),
    written(sp.expint, formulas.exponential_integral, mp.expint, 32.0),
    scipy(sp.Si, "sici", mp.si, 32.0, 0),
    scipy(sp.Ci, "sici", lambda u: mp.ci(abs(u)), 32.0, 1),  # of -u: the real part
    scipy(sp.Shi, "shichi", mp.shi, 32.0, 0),
    scipy(sp.Chi, "shichi", lambda u: mp.chi(abs(u)), 32.0, 1),
    scipy(sp.fresnels, "fresnel", mp.fresnels, 64.0, 0),
    scipy(sp.fresnelc, "fresnel", mp.fresnelc, 64.0, 1),
    scipy(sp.binomial, "binom", mp.binomial, 64.0),
    written(sp.factorial, elementary.factorial, lambda u: mp.gamma(u + 1), 12.0),
    written(sp.legendre, recurrences.legendre, exact.orthogonal(mp.legendre), 64.0),
    written(sp.chebyshevt, recurrences.chebyshev_first, exact.orthogonal(mp.chebyt), 64.0),
    written(sp.chebyshevu, recurrences.chebyshev_second, exact.orthogonal(mp.chebyu), 64.0),
    written(sp.laguerre, recurrences.laguerre, lambda n, u: exact.orthogonal(mp.laguerre)(n, 0, u), 64.0),
    written(sp.assoc_laguerre, recurrences.assoc_laguerre, exact.orthogonal(mp.laguerre), 64.0),
    written(sp.hermite, recurrences.hermite, mp.hermite, 64.0),
    written(sp.jn, recurrences.spherical_bessel, exact.spherical_bessel, 64.0),
    written(sp.gegenbauer, recurrences.gegenbauer, exact.orthogonal(mp.gegenbauer), 128.0),
    scipy(sp.jacobi, "eval_jacobi", exact.orthogonal(mp.jacobi), 128.0),
]

SPECIAL = [
    *SYMPY_FUNCTIONS, *ERROR_FUNCTIONS, *GAMMA_FUNCTIONS, *BESSEL_FUNCTIONS, *ENTROPIES_AND_POWERS,
    *HYPERGEOMETRIC_FUNCTIONS,
]  # fmt: skip
