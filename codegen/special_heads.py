"""Special functions that SymPy lacks, as SymPy functions with SciPy's names and conventions.

Some exist only so that derivatives stay accurate: families that are closed under differentiation, where formulas in
the functions themselves cancel (`erfc_ratio`, `normal_hazard`, `polygamma_difference`, `gamma_kernel`...).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.heads import evaluated_head, real_head, zero_first

_HALF = sp.Rational(1, 2)


def _log_if_zero(power: sp.Expr, logarithm: sp.Expr, value: sp.Expr) -> sp.Expr:
    return sp.Piecewise((logarithm, sp.Eq(power, 0)), (value, True))


def _erfc_ratio(n: sp.Expr, u: sp.Expr) -> sp.Expr:
    ratio = sp.sqrt(sp.pi) / 2 * sp.exp(u**2) * sp.erfc(u)
    for k in range(1, int(n) + 1):
        ratio = (1 / (2 * ratio) - u) / k
    return ratio


def _faddeeva(n: sp.Expr, u: sp.Expr, v: sp.Expr) -> sp.Expr:
    z = sp.Symbol("z")
    return sp.diff(sp.exp(-(z**2)) * sp.erfc(-sp.I * z), z, int(n)).subs(z, u + sp.I * v)


def _relative_entropy(u: sp.Expr, v: sp.Expr, rest: sp.Expr) -> sp.Expr:
    inside, edge = sp.And(u > 0, v > 0), sp.And(sp.Eq(u, 0), v >= 0)
    return sp.Piecewise((u * sp.log(u / v) + rest, inside), (rest, edge), (sp.oo, True))


def _half_order(bessel: Callable[..., sp.Expr], n: sp.Expr, u: sp.Expr) -> sp.Expr:
    """sqrt(pi/(2|u|)) times a Bessel function of order n + 1/2 at |u|; left of 0 the sign needs care."""
    return sp.sqrt(sp.pi / (2 * sp.Abs(u))) * bessel(n + _HALF, sp.Abs(u))


def _regular(bessel: Callable[..., sp.Expr]) -> Callable[..., sp.Expr]:
    """A spherical Bessel function that is 1 or 0 at u = 0, and even or odd like its order."""

    def formula(n: sp.Expr, u: sp.Expr) -> sp.Expr:
        value, zero = _half_order(bessel, n, u), sp.Eq(u, 0)
        return sp.Piecewise((1, zero & sp.Eq(n, 0)), (0, zero), (value, u > 0), ((-1) ** n * value, True))

    return formula


def _spherical_yn(n: sp.Expr, u: sp.Expr) -> sp.Expr:
    value = _half_order(sp.bessely, n, u)
    return sp.Piecewise((value, u > 0), (-((-1) ** n) * value, True))


def _spherical_kn(n: sp.Expr, u: sp.Expr) -> sp.Expr:
    value, other = _half_order(sp.besselk, n, u), _half_order(sp.besseli, n, u)
    return sp.Piecewise((value, u > 0), (-((-1) ** n) * value - sp.pi * other, True))  # DLMF 10.34.2


# error functions and the normal distribution
erfcx: Any = real_head("erfcx", "exp(u**2) erfc(u).", lambda u: sp.exp(u**2) * sp.erfc(u))
dawsn: Any = real_head("dawsn", "Dawson's integral.", lambda u: sp.sqrt(sp.pi) / 2 * sp.exp(-(u**2)) * sp.erfi(u))
erfc_ratio: Any = real_head(
    "erfc_ratio", "i^n erfc(u) / i^(n-1) erfc(u), repeated integrals of erfc (DLMF 7.18).", _erfc_ratio
)
faddeeva_real: Any = real_head(
    "faddeeva_real", "Real part of the n-th derivative of w(z) = exp(-z**2) erfc(-iz) at u + iv.",
    lambda n, u, v: sp.re(_faddeeva(n, u, v)),
)  # fmt: skip
faddeeva_imag: Any = real_head(
    "faddeeva_imag", "Imaginary part of the n-th derivative of w(z) = exp(-z**2) erfc(-iz) at u + iv.",
    lambda n, u, v: sp.im(_faddeeva(n, u, v)),
)  # fmt: skip
log_ndtr: Any = real_head(
    "log_ndtr", "Logarithm of the normal distribution.", lambda u: sp.log(sp.erfc(-u / sp.sqrt(2)) / 2)
)
normal_hazard: Any = real_head(
    "normal_hazard", "Derivative of log_ndtr: normal density over normal distribution.",
    lambda u: sp.sqrt(2 / sp.pi) * sp.exp(-(u**2) / 2) / sp.erfc(-u / sp.sqrt(2)),
)  # fmt: skip
owens_t: Any = real_head(
    "owens_t", "Owen's T function.",
    lambda h, a: sp.Integral(
        sp.exp(-(h**2) * (1 + sp.Symbol("t") ** 2) / 2) / (1 + sp.Symbol("t") ** 2), (sp.Symbol("t"), 0, a)
    ) / (2 * sp.pi),
)  # fmt: skip
stdtr: Any = real_head(
    "stdtr", "Distribution function of Student's t.",
    lambda k, t: _HALF + t / sp.sqrt(k) / sp.beta(_HALF, k / 2)
    * sp.hyper((_HALF, (k + 1) / 2), (3 * _HALF,), -(t**2) / k),
)  # fmt: skip

# gamma and beta functions
gammaln: Any = real_head("gammaln", "log|gamma(u)|.", lambda u: sp.log(sp.Abs(sp.gamma(u))))
rgamma: Any = real_head("rgamma", "1/gamma(u), 0 at the poles.", lambda u: 1 / sp.gamma(u))
gammasgn: Any = real_head("gammasgn", "Sign of gamma(u).", lambda u: sp.sign(sp.gamma(u)))
polygamma_difference: Any = real_head(
    "polygamma_difference", "polygamma(n, a + b) - polygamma(n, a), accurate for b << a.",
    lambda n, a, b: sp.polygamma(n, a + b) - sp.polygamma(n, a),
)  # fmt: skip
betaln: Any = real_head("betaln", "log|beta(a, b)|.", lambda a, b: sp.log(sp.Abs(sp.beta(a, b))))
gammainc: Any = real_head(
    "gammainc", "Lower incomplete gamma function over gamma(a).", lambda a, u: sp.lowergamma(a, u) / sp.gamma(a)
)
gammaincc: Any = real_head(
    "gammaincc", "Upper incomplete gamma function over gamma(a).", lambda a, u: sp.uppergamma(a, u) / sp.gamma(a)
)
betainc: Any = real_head(
    "betainc", "Regularized incomplete beta function.", lambda a, b, u: sp.betainc_regularized(a, b, 0, u)
)
betaincc: Any = real_head("betaincc", "1 - betainc(a, b, u).", lambda a, b, u: sp.betainc_regularized(a, b, u, 1))
gamma_kernel: Any = real_head(
    "gamma_kernel", "u**a exp(-u - c), without overflow.", lambda a, c, u: u**a * sp.exp(-u - c)
)
beta_kernel: Any = real_head(
    "beta_kernel", "u**a (1 - u)**b exp(-c), without overflow.", lambda a, b, c, u: u**a * (1 - u) ** b * sp.exp(-c)
)

# Bessel functions
ive: Any = real_head("ive", "besseli(v, u) exp(-|u|).", lambda v, u: sp.besseli(v, u) * sp.exp(-sp.Abs(u)))
kve: Any = real_head("kve", "besselk(v, u) exp(u).", lambda v, u: sp.besselk(v, u) * sp.exp(u))
spherical_jn: Any = real_head("spherical_jn", "Spherical Bessel function of the first kind.", _regular(sp.besselj))
spherical_yn: Any = real_head("spherical_yn", "Spherical Bessel function of the second kind.", _spherical_yn)
spherical_in: Any = real_head(
    "spherical_in", "Modified spherical Bessel function of the first kind.", _regular(sp.besseli)
)
spherical_kn: Any = real_head("spherical_kn", "Modified spherical Bessel function of the second kind.", _spherical_kn)

# entropies, logarithms and powers
logit: Any = real_head("logit", "log(u/(1 - u)).", lambda u: sp.log(u / (1 - u)))
xlog1py: Any = real_head("xlog1py", "u log(1 + v), and 0 where u = 0.", lambda u, v: zero_first(u, u * sp.log(1 + v)))
log_ratio: Any = real_head("log_ratio", "log(u/v), accurate where u and v are close.", lambda u, v: sp.log(u / v))
entr: Any = real_head(
    "entr", "-u log(u); 0 at 0 and -inf below.",
    lambda u: sp.Piecewise((-u * sp.log(u), u > 0), (0, sp.Eq(u, 0)), (-sp.oo, True)),
)  # fmt: skip
rel_entr: Any = real_head(
    "rel_entr", "u log(u/v); inf outside the domain.", lambda u, v: _relative_entropy(u, v, sp.S.Zero)
)
kl_div: Any = real_head(
    "kl_div", "u log(u/v) - u + v; inf outside the domain.", lambda u, v: _relative_entropy(u, v, v - u)
)
hypot_excess: Any = real_head("hypot_excess", "hypot(d, u) - d, for d > 0.", lambda d, u: sp.sqrt(d**2 + u**2) - d)
pseudo_huber: Any = real_head(
    "pseudo_huber", "d (hypot(d, u) - d); 0 at d = 0 and inf below.",
    lambda d, u: sp.Piecewise((d * (sp.sqrt(d**2 + u**2) - d), d >= 0), (sp.oo, True)),
)  # fmt: skip
exprel: Any = real_head(
    "exprel", "(exp(u) - 1)/u.", lambda u: sp.Piecewise((1, sp.Eq(u, 0)), ((sp.exp(u) - 1) / u, True))
)
powm1: Any = real_head("powm1", "u**v - 1.", lambda u, v: u**v - 1)
boxcox: Any = real_head(
    "boxcox", "(u**p - 1)/p, log(u) at p = 0.", lambda u, p: _log_if_zero(p, sp.log(u), (u**p - 1) / p)
)
boxcox1p: Any = real_head(
    "boxcox1p", "((1 + u)**p - 1)/p.", lambda u, p: _log_if_zero(p, sp.log(1 + u), ((1 + u) ** p - 1) / p)
)
inv_boxcox: Any = real_head(
    "inv_boxcox", "(1 + p u)**(1/p), exp(u) at p = 0.", lambda u, p: _log_if_zero(p, sp.exp(u), (1 + p * u) ** (1 / p))
)
inv_boxcox1p: Any = real_head(
    "inv_boxcox1p", "(1 + p u)**(1/p) - 1.",
    lambda u, p: _log_if_zero(p, sp.exp(u), (1 + p * u) ** (1 / p)) - 1,
)  # fmt: skip

# degrees
sindg: Any = real_head("sindg", "Sine of degrees.", lambda u: sp.sin(sp.pi * u / 180))
cosdg: Any = real_head("cosdg", "Cosine of degrees.", lambda u: sp.cos(sp.pi * u / 180))
tandg: Any = real_head("tandg", "Tangent of degrees.", lambda u: sp.tan(sp.pi * u / 180))
cotdg: Any = real_head("cotdg", "Cotangent of degrees.", lambda u: sp.cot(sp.pi * u / 180))

# hypergeometric functions, polynomials and others
hyp0f1: Any = real_head("hyp0f1", "Confluent hypergeometric limit function.", lambda b, u: sp.hyper((), (b,), u))
hyp1f1: Any = real_head("hyp1f1", "Kummer's function M(a, b, u).", lambda a, b, u: sp.hyper((a,), (b,), u))
hyp2f1: Any = real_head("hyp2f1", "Gauss's hypergeometric function.", lambda a, b, c, u: sp.hyper((a, b), (c,), u))
hyperu: Any = real_head(
    "hyperu", "Tricomi's function U(a, b, u).",
    lambda a, b, u: sp.meijerg(((1 - a,), ()), ((0, 1 - b), ()), u) / sp.gamma(a) / sp.gamma(a - b + 1),
)  # fmt: skip
hermitenorm: Any = real_head(
    "hermitenorm", "Hermite polynomial He_n(u).", lambda n, u: 2 ** (-n / 2) * sp.hermite(n, u / sp.sqrt(2))
)
ellipkm1: Any = real_head("ellipkm1", "Complete elliptic integral K(1 - p).", lambda p: sp.elliptic_k(1 - p))
wrightomega: Any = real_head("wrightomega", "Wright's omega function W(exp(u)).", lambda u: sp.LambertW(sp.exp(u)))
spence: Any = real_head("spence", "Spence's function: the dilogarithm of 1 - u.", lambda u: sp.polylog(2, 1 - u))


def jacobi_value(kind: str, u: Any, m: Any) -> Any:
    """Return sn, cn, dn or am of mpmath numbers; the amplitude follows u through the periods."""
    if kind != "am":
        return mp.ellipfun(kind, u, m=m)
    angle = mp.atan2(*(mp.re(mp.ellipfun(name, u, m=m)) for name in ("sn", "cn")))  # far out they have an i0
    return angle + 2 * mp.pi * mp.nint((mp.pi * u / (2 * mp.ellipk(m)) - angle) / (2 * mp.pi))


jacobi_sn: Any = evaluated_head("jacobi_sn", "Jacobi's function sn(u | m).", lambda u, m: jacobi_value("sn", u, m))
jacobi_cn: Any = evaluated_head("jacobi_cn", "Jacobi's function cn(u | m).", lambda u, m: jacobi_value("cn", u, m))
jacobi_dn: Any = evaluated_head("jacobi_dn", "Jacobi's function dn(u | m).", lambda u, m: jacobi_value("dn", u, m))
jacobi_am: Any = evaluated_head(
    "jacobi_am", "The amplitude am(u | m): sn = sin am.", lambda u, m: jacobi_value("am", u, m)
)
