"""The table of heads. One row says how a head is lowered and how it is evaluated in floats and at high precision.

To support a new head, add one row. `native` is a lowering over the machine table (a template, a C function, a SciPy
ufunc), `number` a function of Python floats with NumPy's conventions for nan and inf, `reference` the same on mpmath
numbers, and `ulp` the error bound of the native value against the reference that the tests hold.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.codegen import cfunctions

import codegen.distribution_heads as d
import codegen.functions.elementary_formulas as elementary
import codegen.functions.function_rows as native
import codegen.functions.recurrences as recurrences
import codegen.functions.reference_functions as reference
import codegen.functions.special_formulas as special
import codegen.functions.tail_moments as tail_moments
import codegen.heads as heads
import codegen.ir.float_functions as number
import codegen.special_heads as s
from codegen.errors import LoweringError
from codegen.functions.faddeeva import faddeeva
from codegen.functions.formula_values import (
    exp,
    expm1,
    floor,
    gamma,
    hypot,
    lgamma,
    log,
    log1p,
    lowering,
    scipy as ufunc,
    sin,
    where,
)  # fmt: skip
from codegen.functions.function_rows import Intrinsic, inverse, libm, reciprocal, scipy, written
from codegen.functions.powers import lower_power
from codegen.ir.operations import HOLDS
from codegen.ir.program import Head


def supports(head: Head) -> bool:
    """Whether a head has a row in the table.

    >>> supports(sp.tanh), supports(sp.Function("f"))
    (True, False)
    """
    return head in INTRINSICS


def intrinsic(head: Head) -> Intrinsic:
    """Return the row of a head; LoweringError names a head that has none.

    >>> intrinsic(sp.exp).number(0.0)
    1.0
    """
    row = INTRINSICS.get(head)
    if row is None:
        raise LoweringError(
            f"head {head.__name__}",
            why="it has no row in the table of intrinsics",
            do="rewrite it in supported functions, or add a row to codegen.functions.intrinsics",
        )
    return row


def _relational(head: Head, condition: str) -> Intrinsic:
    return Intrinsic(head, native.compare(condition), HOLDS[condition], HOLDS[condition], 0.0)


def _truth(head: Head, lowering: Callable[..., int], function: Callable[..., Any]) -> Intrinsic:
    return Intrinsic(head, lowering, function, function, 0.0, truth=True)


def _identity(value: Any, *others: Any) -> Any:
    return value  # the others are what a custom derivative refers to


def _complex(*values: Any) -> Any:
    raise LoweringError("a complex value", why="kernels are real float64", do="keep the program real")


def _bessel(head: Head, name: str, symbols: tuple[str, str], precise: Callable[..., Any], ulp: float) -> Intrinsic:
    return replace(scipy(head, name, precise, ulp), native=lowering(special.bessel(name, *symbols, parity=-1)))


def _of_even_order(
    head: Head, name: str, symbols: tuple[str, str], precise: Callable[..., Any], ulp: float
) -> Intrinsic:
    zero, one = (f"scipy.{symbol}.1.0" for symbol in symbols)
    return written(head, special.bessel(name, zero, one), precise, ulp)


def _ellipj(kind: str, output: int) -> Intrinsic:
    head = getattr(s, f"jacobi_{kind}")
    return scipy(head, "ellipj", lambda u, m: s.jacobi_value(kind, u, m), 32.0, output)


ERROR_FUNCTIONS = [
    scipy(s.erfcx, "erfcx", lambda u: mp.exp(u * u) * mp.erfc(u), 8.0),
    scipy(s.dawsn, "dawsn", lambda u: mp.sqrt(mp.pi) / 2 * mp.exp(-u * u) * mp.erfi(u), 64.0),
    written(s.erfc_ratio, special.erfc_ratio, reference.erfc_ratio, 1024.0),
    written(s.faddeeva_real, faddeeva(0), lambda n, u, v: mp.re(reference.faddeeva(n, u, v)), 2048.0),
    written(s.faddeeva_imag, faddeeva(1), lambda n, u, v: mp.im(reference.faddeeva(n, u, v)), 2048.0),
    scipy(s.log_ndtr, "log_ndtr", reference.log_ndtr, 16.0),
    written(s.normal_hazard, special.normal_hazard, lambda u: mp.npdf(u) / mp.ncdf(u), 16.0),
    scipy(s.owens_t, "owens_t", reference.owens_t, 16.0),
    scipy(s.stdtr, "stdtr", reference.stdtr, 64.0),
]

GAMMA_FUNCTIONS = [
    written(s.gammaln, lgamma, lambda u: mp.re(mp.loggamma(u)), 8.0),
    written(s.rgamma, lambda u: where(u.equals(floor(u)) & (u <= 0.0), 0.0, 1.0 / gamma(u)), mp.rgamma, 16.0),
    scipy(s.gammasgn, "gammasgn", lambda u: mp.sign(mp.gamma(u)) if u else mp.mpf(1), 0.0),
    written(s.polygamma_difference, special.polygamma_difference, reference.polygamma_difference, 64.0),
    scipy(s.betaln, "betaln", lambda a, b: mp.log(abs(mp.beta(a, b))), 512.0),
    scipy(sp.RisingFactorial, "poch", mp.rf, 64.0),
    scipy(s.gammainc, "gammainc", reference.lower_gamma, 64.0),
    scipy(s.gammaincc, "gammaincc", reference.upper_gamma, 1024.0),
    written(sp.lowergamma, lambda a, u: gamma(a) * ufunc("gammainc", a, u), lambda a, u: mp.gammainc(a, 0, u), 64.0),
    written(sp.uppergamma, lambda a, u: gamma(a) * ufunc("gammaincc", a, u), mp.gammainc, 64.0),
    written(s.gamma_kernel, special.gamma_kernel, lambda a, c, u: mp.power(u, a) * mp.exp(-u - c), 32.0),
    scipy(s.betainc, "betainc", reference.incomplete_beta, 64.0),
    scipy(s.betaincc, "betaincc", lambda a, b, u: reference.incomplete_beta(b, a, 1 - u), 64.0),
    written(
        s.beta_kernel, special.beta_kernel, lambda a, b, c, u: mp.power(u, a) * mp.power(1 - u, b) * mp.exp(-c), 32.0
    ),
]

DISTRIBUTION_FUNCTIONS = [
    written(d.gamma_moment, tail_moments.gamma_moment, d.gamma_moment_value, 4096.0),
    written(d.beta_moment, tail_moments.beta_moment, d.beta_moment_value, 65536.0),
    scipy(d.gammaincinv, "gammaincinv", d.gammaincinv_value, 1024.0),
    scipy(d.gammainccinv, "gammainccinv", d.gammainccinv_value, 1024.0),
    scipy(d.betaincinv, "betaincinv", d.betaincinv_value, 1024.0),
    scipy(d.betainccinv, "betainccinv", d.betainccinv_value, 1024.0),
    scipy(d.stdtrit, "stdtrit", d.stdtrit_value, 1024.0),
    scipy(d.ndtri_exp, "ndtri_exp", d.ndtri_exp_value, 1024.0),
]

BESSEL_FUNCTIONS = [
    _of_even_order(s.ive, "ive", ("i0e", "i1e"), lambda v, u: reference.modified_bessel(v, u) * mp.exp(-abs(u)), 256.0),
    _of_even_order(s.kve, "kve", ("k0e", "k1e"), lambda v, u: mp.besselk(v, u) * mp.exp(u), 512.0),
    written(sp.yn, recurrences.spherical_neumann, reference.spherical_yn, 64.0),
    written(s.spherical_jn, recurrences.spherical_bessel, reference.spherical_bessel, 64.0),
    written(s.spherical_yn, recurrences.spherical_neumann, reference.spherical_yn, 64.0),
    written(s.spherical_in, recurrences.spherical_modified, reference.spherical_in, 64.0),
    written(s.spherical_kn, recurrences.spherical_decaying, reference.spherical_kn, 16.0),
]


ENTROPIES_AND_POWERS = [
    written(s.logit, special.logit, lambda u: mp.log(u) - mp.log1p(-u), 8.0),
    written(s.xlog1py, special.xlog1py, lambda u, v: u * mp.log1p(v) if u else mp.mpf(0), 4.0),
    written(s.log_ratio, special.log_ratio, lambda u, v: mp.log(u / v), 8.0),
    written(s.entr, special.entr, lambda u: -u * mp.log(u) if u > 0 else mp.mpf(0) if u == 0 else -mp.inf, 4.0),
    written(s.rel_entr, special.rel_entr, lambda u, v: reference.entropy(u, v, mp.mpf(0)), 8.0),
    written(s.kl_div, special.kl_div, lambda u, v: reference.entropy(u, v, v - u), 64.0),
    written(s.hypot_excess, special.hypot_excess, lambda d, u: mp.hypot(d, u) - d, 4.0),
    written(s.pseudo_huber, special.pseudo_huber, lambda d, u: d * (mp.hypot(d, u) - d) if d >= 0 else mp.inf, 4.0),
    written(s.exprel, special.exprel, lambda u: mp.expm1(u) / u if u else mp.mpf(1), 4.0),
    scipy(s.powm1, "powm1", lambda u, v: mp.powm1(u, v), 16.0),
    written(s.boxcox, special.box_cox(log), lambda u, p: reference.box_cox(reference.logarithm(u), p), 16.0),
    written(s.boxcox1p, special.box_cox(log1p), lambda u, p: reference.box_cox(reference.logarithm(1 + u), p), 16.0),
    written(s.inv_boxcox, special.inverse_box_cox(exp), reference.inverse_box_cox, 64.0),
    written(s.inv_boxcox1p, special.inverse_box_cox(expm1), reference.inverse_box_cox_1p, 64.0),
    scipy(s.sindg, "sindg", reference.of_degrees(mp.sin), 4.0),
    scipy(s.cosdg, "cosdg", reference.of_degrees(mp.cos), 4.0),
    scipy(s.tandg, "tandg", reference.of_degrees(mp.tan), 8.0),
    scipy(s.cotdg, "cotdg", reference.of_degrees(mp.cot), 2048.0),
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
    written(sp.loggamma, lambda u: where(u < 0.0, math.nan, lgamma(u)), mp.loggamma, 8.0),  # below it is complex
    scipy(sp.digamma, "psi", mp.digamma, 16.0),
    written(sp.polygamma, special.polygamma, reference.polygamma, 16.0),
    scipy(sp.beta, "beta", mp.beta, 32.0),
    _bessel(sp.besselj, "jv", ("j0", "j1"), mp.besselj, 256.0),
    _bessel(sp.bessely, "yv", ("y0", "y1"), mp.bessely, 64.0),
    _of_even_order(sp.besseli, "iv", ("i0", "i1"), reference.modified_bessel, 64.0),
    written(sp.besselk, special.bessel_k, mp.besselk, 512.0),
    scipy(sp.airyai, "airy", mp.airyai, 64.0, 0),
    scipy(sp.airyaiprime, "airy", lambda u: mp.airyai(u, derivative=1), 64.0, 1),
    scipy(sp.airybi, "airy", mp.airybi, 64.0, 2),
    scipy(sp.airybiprime, "airy", lambda u: mp.airybi(u, derivative=1), 64.0, 3),
    scipy(sp.elliptic_k, "ellipk", mp.ellipk, 8.0),
    scipy(sp.elliptic_f, "ellipkinc", mp.ellipf, 32.0),
    written(sp.elliptic_e, lambda *u: ufunc("ellipe" if len(u) == 1 else "ellipeinc", *u), mp.ellipe, 32.0),
    written(heads.elliptic_moment, special.elliptic_moment, reference.elliptic_moment, 64.0),
    replace(scipy(sp.LambertW, "lambertw", reference.lambert, 16.0), native=lowering(special.lambert)),
    written(sp.zeta, lambda s, *a: ufunc("_zeta", s, *a) if a else ufunc("_riemann_zeta", s), mp.zeta, 32.0),
    scipy(sp.Ei, "expi", mp.ei, 32.0),
    written(sp.expint, special.exponential_integral, mp.expint, 32.0),
    scipy(sp.Si, "sici", mp.si, 32.0, 0),
    scipy(sp.Ci, "sici", lambda u: mp.ci(abs(u)), 32.0, 1),  # of -u: the real part
    scipy(sp.Shi, "shichi", mp.shi, 32.0, 0),
    scipy(sp.Chi, "shichi", lambda u: mp.chi(abs(u)), 32.0, 1),
    scipy(sp.fresnels, "fresnel", mp.fresnels, 64.0, 0),
    scipy(sp.fresnelc, "fresnel", mp.fresnelc, 64.0, 1),
    scipy(sp.binomial, "binom", mp.binomial, 64.0),
    written(sp.factorial, lambda u: gamma(u + 1.0), lambda u: mp.gamma(u + 1), 12.0),
    written(sp.legendre, recurrences.legendre, reference.orthogonal(mp.legendre), 64.0),
    written(sp.chebyshevt, recurrences.chebyshev_first, reference.orthogonal(mp.chebyt), 64.0),
    written(sp.chebyshevu, recurrences.chebyshev_second, reference.orthogonal(mp.chebyu), 64.0),
    written(sp.laguerre, recurrences.laguerre, lambda n, u: reference.orthogonal(mp.laguerre)(n, 0, u), 64.0),
    written(sp.assoc_laguerre, recurrences.assoc_laguerre, reference.orthogonal(mp.laguerre), 64.0),
    written(sp.hermite, recurrences.hermite, mp.hermite, 64.0),
    written(sp.jn, recurrences.spherical_bessel, reference.spherical_bessel, 64.0),
    written(sp.gegenbauer, recurrences.gegenbauer, reference.orthogonal(mp.gegenbauer), 128.0),
    scipy(sp.jacobi, "eval_jacobi", reference.orthogonal(mp.jacobi), 128.0),
]

SPECIAL = [
    *SYMPY_FUNCTIONS, *ERROR_FUNCTIONS, *GAMMA_FUNCTIONS, *DISTRIBUTION_FUNCTIONS, *BESSEL_FUNCTIONS,
    *ENTROPIES_AND_POWERS,
    *HYPERGEOMETRIC_FUNCTIONS,
]  # fmt: skip

_SIGN = lowering(lambda u: where(u > 0.0, 1.0, where(u < 0.0, -1.0, u - u)))  # u - u is +0 for zeros, and keeps nan

ARITHMETIC = [
    Intrinsic(sp.Add, native.fold("add"), number.add, number.add, 0.5),
    Intrinsic(sp.Mul, native.fold("mul"), number.multiply, number.multiply, 0.5),
    Intrinsic(sp.Pow, lower_power, number.power, reference.power, 2.0),
    Intrinsic(heads.Alias, native.alias, _identity, _identity, 0.0, truth=True),
    Intrinsic(sp.Abs, native.unary("abs"), abs, abs, 0.0, "even"),
    Intrinsic(sp.sign, _SIGN, number.sign, mp.sign, 0.0, "odd"),
    Intrinsic(sp.Max, native.fold("maximum"), number.maximum, reference.maximum, 0.0),
    Intrinsic(sp.Min, native.fold("minimum"), number.minimum, reference.minimum, 0.0),
    libm(sp.floor, "llvm.floor.f64", reference.rounded(mp.floor), 0.0),
    libm(sp.ceiling, "llvm.ceil.f64", reference.rounded(mp.ceil), 0.0),
    libm(heads.trunc, "llvm.trunc.f64", reference.rounded(lambda u: mp.floor(u) if u >= 0 else mp.ceil(u)), 0.0, "odd"),
    libm(heads.rint, "llvm.rint.f64", reference.rounded(mp.nint), 0.0, "odd"),
    written(sp.frac, lambda u: u - floor(u), lambda u: u - mp.floor(u), 0.5),
    libm(heads.fmod, "fmod", reference.fmod, 0.0),
    libm(heads.copysign, "llvm.copysign.f64", lambda u, v: -abs(u) if v < 0 else abs(u), 0.0),  # mpmath has no -0
    Intrinsic(sp.Mod, lowering(elementary.modulo), number.modulo, reference.modulo, 0.5),
    written(sp.Heaviside, elementary.heaviside, reference.heaviside, 0.0),
    Intrinsic(cfunctions.Sqrt, native.unary("sqrt"), number.sqrt, reference.real(mp.sqrt), 0.5),
    written(cfunctions.fma, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, 1.0),  # fused with the option `fma`
    libm(heads.cbrt, "cbrt", lambda u: mp.sign(u) * mp.cbrt(abs(u)), 4.0, "odd"),
    libm(heads.hypot, "hypot", mp.hypot),
    written(heads.log_argument, lambda u: where(u >= 0.0, u, math.nan), lambda u: u if u >= 0 else mp.nan, 0.0),
    written(heads.tie_share, elementary.tie_share, reference.tie_share, 0.0),
    written(heads.one_minus_square, lambda u: (1.0 - u) * (1.0 + u), lambda u: (1 - u) * (1 + u), 1.5, "even"),
    written(
        heads.direction_cosine, lambda u, v: u / hypot(u, v), lambda u, v: reference.divide(u, mp.hypot(u, v)), 2.0
    ),
]

ELEMENTARY = [
    libm(sp.exp, "exp", mp.exp),
    libm(heads.exp2, "exp2", lambda u: mp.power(2, u)),
    libm(heads.expm1, "expm1", mp.expm1, 1.5),
    libm(sp.log, "log", mp.log),
    libm(heads.log2, "log2", lambda u: mp.log(u, 2)),
    libm(heads.log10, "log10", lambda u: mp.log(u, 10), 2.0),
    libm(heads.log1p, "log1p", mp.log1p, 1.5),
    libm(sp.sin, "llvm.sin.f64", mp.sin, 1.0, "odd"),
    libm(sp.cos, "llvm.cos.f64", mp.cos, 1.0, "even"),
    libm(sp.tan, "tan", mp.tan, 1.0, "odd"),
    reciprocal(sp.cot, "tan", mp.cot, 2.0, "odd"),
    reciprocal(sp.sec, "llvm.cos.f64", mp.sec, 2.0, "even"),
    reciprocal(sp.csc, "llvm.sin.f64", mp.csc, 2.0, "odd"),
    libm(sp.sinh, "sinh", mp.sinh, 2.5, "odd"),
    libm(sp.cosh, "cosh", mp.cosh, 2.0, "even"),
    Intrinsic(sp.tanh, lowering(elementary.tanh), math.tanh, reference.real(mp.tanh), 2.5, "odd"),
    reciprocal(sp.coth, "tanh", mp.coth, 3.5, "odd"),
    written(sp.sech, elementary.sech, mp.sech, 4.0, "even"),
    written(sp.csch, elementary.csch, mp.csch, 4.0, "odd"),
    libm(sp.asin, "asin", mp.asin, 1.0, "odd"),
    libm(sp.acos, "acos", mp.acos),
    libm(sp.atan, "atan", mp.atan, 1.0, "odd"),
    inverse(sp.acot, "atan", mp.acot, 2.0, "odd"),
    inverse(sp.asec, "acos", mp.asec, 8.0),
    inverse(sp.acsc, "asin", mp.acsc, 8.0, "odd"),
    libm(sp.asinh, "asinh", mp.asinh, 2.0, "odd"),
    libm(sp.acosh, "acosh", mp.acosh, 2.5),
    libm(sp.atanh, "atanh", mp.atanh, 2.5, "odd"),
    inverse(sp.acoth, "atanh", mp.acoth, 8.0, "odd"),
    inverse(sp.asech, "acosh", mp.asech, 16.0),
    inverse(sp.acsch, "asinh", mp.acsch, 3.0, "odd"),
    libm(sp.atan2, "atan2", mp.atan2),
    written(sp.sinc, lambda u: where(u.equals(0.0), 1.0, sin(u) / u), reference.sinc, 2.0, "even"),
    written(heads.expit, elementary.expit, lambda u: 1 / (1 + mp.exp(-u)), 2.5),
    written(heads.softplus, elementary.softplus, reference.softplus, 2.5),
    written(heads.log_expit, lambda u: -elementary.softplus(-u), lambda u: -reference.softplus(-u), 2.5),
    written(heads.logaddexp, elementary.logaddexp, reference.logaddexp, 3.0),
    written(heads.xlogy, elementary.xlogy, lambda u, v: u * reference.real(mp.log)(v) if u else mp.mpf(0), 1.5),
]

LOGIC = [
    _relational(sp.Lt, "olt"),
    _relational(sp.Le, "ole"),
    _relational(sp.Gt, "ogt"),
    _relational(sp.Ge, "oge"),
    _relational(sp.Eq, "oeq"),
    _relational(sp.Ne, "une"),
    _truth(sp.And, native.connective("and"), lambda *tests: all(tests)),
    _truth(sp.Or, native.connective("or"), lambda *tests: any(tests)),
    _truth(sp.Xor, native.connective("xor"), lambda *tests: sum(map(bool, tests)) % 2 == 1),
    _truth(sp.Nand, native.connective("and", negate=True), lambda *tests: not all(tests)),
    _truth(sp.Nor, native.connective("or", negate=True), lambda *tests: not any(tests)),
    _truth(sp.Not, native.invert, operator.not_),
    _truth(sp.Implies, native.implies, lambda left, right: not left or bool(right)),
    _truth(sp.ITE, native.choose, lambda test, first, second: first if test else second),
    Intrinsic(sp.Piecewise, native.piecewise, number.piecewise, reference.piecewise, 0.0, truth=True),
    Intrinsic(sp.re, native.alias, _identity, _identity, 0.0),
    Intrinsic(sp.conjugate, native.alias, _identity, _identity, 0.0),
    Intrinsic(sp.im, native.refuse("im() asks for a complex number"), _complex, _complex, 0.0),
]

INTRINSICS: dict[Head, Intrinsic] = {row.head: row for row in (*ARITHMETIC, *ELEMENTARY, *SPECIAL, *LOGIC)}
