"""SciPy's special functions: one table, from which `python -m tests.support.special_table` makes `docs/special.md`.

A row has the function, its exact counterpart on mpmath numbers, points, the arguments in which there is no derivative
(`constants`: orders, degrees, shapes), and those in which asking for one is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp
from scipy import special

import codegen.distribution_heads as d
import codegen.functions.reference_functions as exact
import symad
from codegen.special_heads import jacobi_value

Point = tuple[float, ...]


@dataclass(frozen=True)
class Row:
    """One function of scipy.special (or one output of it)."""

    name: str  # with its arguments, as SciPy names them
    function: Callable[..., Any]
    exact: Callable[..., Any]
    points: tuple[Point, ...]
    constants: tuple[int, ...]
    digits: float  # relative error that value and derivatives are held to

    def active(self) -> list[int]:
        """Return the positions of the arguments that have a derivative."""
        return [k for k in range(len(self.points[0])) if k not in self.constants]


def row(
    name: str, exact_function: Callable[..., Any], *points: float | Point, constants: Sequence[int] = (),
    function: Callable[..., Any] | None = None, digits: float = 1e-11,
) -> Row:  # fmt: skip
    """Return a row; a point that is a number is one argument."""
    tuples = tuple(point if isinstance(point, tuple) else (point,) for point in points)
    return Row(name, function or called(name), exact_function, tuples, tuple(constants), digits)


def called(name: str) -> Callable[..., Any]:
    """Return the function of scipy.special, looked up at every call (plain functions have stand-ins while tracing)."""
    own = name.split("(")[0]
    return lambda *args: getattr(special, own)(*args)


def output(name: str, k: int, exact_function: Callable[..., Any], *points: Any, constants: Sequence[int] = ()) -> Row:
    """Return the row of the k-th output of a function that has several."""
    several = called(name)
    return row(f"{name}[{k}]", exact_function, *points, constants=constants, function=lambda *args: several(*args)[k])


def _real(value: Any) -> Any:
    return value.real if value.imag == 0 else mp.nan


def _huber(delta: Any, u: Any) -> Any:
    if delta < 0:
        return mp.inf
    return u * u / 2 if abs(u) <= delta else delta * (abs(u) - delta / 2)


def _voigt(x: Any, sigma: Any, gamma: Any) -> Any:
    scale = mp.sqrt(2) * sigma
    return mp.re(exact.faddeeva(0, x / scale, gamma / scale)) / (mp.sqrt(mp.pi) * scale)


def _variance_ratio(m: Any, n: Any, u: Any) -> Any:
    return mp.betainc(m / 2, n / 2, 0, m * u / (n + m * u), regularized=True)


def _variance_ratio_inverse(m: Any, n: Any, p: Any) -> Any:
    share = d.betaincinv_value(m / 2, n / 2, p)
    return n * share / (m * (1 - share))


def _kolmogorov(u: Any) -> Any:
    if u <= 0:
        return mp.mpf(1)
    if u < 1:  # the other series converges too slowly
        return 1 - mp.sqrt(2 * mp.pi) / u * mp.fsum(mp.exp(-(((2 * k - 1) * mp.pi / u) ** 2) / 8) for k in range(1, 30))
    return 2 * mp.nsum(lambda k: -((-1) ** int(k)) * mp.exp(-2 * (k * u) ** 2), [1, 60], method="direct")


def _log_sum(*values: Any) -> Any:
    return mp.log(mp.fsum([mp.exp(value) for value in values]))


def _box_cox(u: Any, p: Any) -> Any:
    return exact.box_cox(mp.log(u), p)


def _normal_hermite(order: Any, u: Any) -> Any:
    return 2 ** (-mp.mpf(order) / 2) * mp.hermite(order, u / mp.sqrt(2))


def _derivative(function: Callable[..., Any], times: int) -> Callable[..., Any]:
    return lambda v, u: mp.diff(lambda t: function(v, t), u, times)


def _stacked(name: str) -> Callable[..., Any]:
    """The first element, or the whole, of a function of one array, as a function of its three elements."""
    return lambda *values: np.atleast_1d(getattr(special, name)(np.stack(values)))[0]


NORMAL_POINTS = (-40.0, -3.0, 0.4, 5.0)
ORDERED = ((0, 0.7), (1, 4.5), (2.5, 3.0))
WHOLE = ((0, 0.7), (1, 4.5), (3, 1.2))
DEGREES = ((0, 0.7), (1, 0.7), (4, -0.4), (5, 1.0), (5, 1e-9))
PAIRS = ((0.7, 1.1), (3.0, 2.5))
WIDTHS = ((0.3, 0.5, 0.7), (-8.0, 0.4, 1e-3), (2.0, 1.5, 0.0), (0.3, 1e-9, 0.7))

ROWS = [
    row("erf(x)", mp.erf, 0.7, -3.0),
    row("erfc(x)", mp.erfc, 0.7, 3.0, 20.0),
    row("erfcx(x)", lambda u: mp.exp(u * u) * mp.erfc(u), 0.7, -3.0, 40.0, 1e6),
    row("erfi(x)", mp.erfi, 0.7, -1.5),
    row("erfinv(x)", mp.erfinv, 0.7, -0.2),
    row("erfcinv(x)", lambda u: mp.erfinv(1 - u), 0.7, 1e-9),
    row("dawsn(x)", lambda u: mp.sqrt(mp.pi) / 2 * mp.exp(-u * u) * mp.erfi(u), 0.7, -5.0, 40.0),
    row("ndtr(x)", mp.ncdf, -20.0, 0.4),
    row("log_ndtr(x)", exact.log_ndtr, *NORMAL_POINTS, -1e4),
    row("ndtri(p)", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), 0.3, 1e-9, 0.9),
    row("voigt_profile(x, sigma, gamma)", _voigt, *WIDTHS),
    row("owens_t(h, a)", exact.owens_t, (0.3, 0.4), (-1.2, 2.0)),
    row("stdtr(df, t)", exact.stdtr, (3.5, 0.7), (2.0, -1.2), (40.0, 3.0)),
    row("stdtrit(df, p)", d.stdtrit_value, (3.5, 0.7), (2.0, 1e-6)),
    row("ndtri_exp(y)", d.ndtri_exp_value, -0.7, -40.0),
    row("chdtr(v, x)", lambda v, u: mp.gammainc(v / 2, 0, u / 2, regularized=True), (3.0, 0.7), (2.0, 9.0)),
    row("chdtrc(v, x)", lambda v, u: mp.gammainc(v / 2, u / 2, regularized=True), (3.0, 0.7), (2.0, 9.0)),
    row("chdtri(v, p)", lambda v, p: 2 * d.gammainccinv_value(v / 2, p), (3.0, 0.7), (2.5, 1e-6)),
    row("fdtr(dfn, dfd, x)", _variance_ratio, (3.0, 4.5, 0.7), (12.0, 2.0, 2.5)),
    row("fdtrc(dfn, dfd, x)", lambda m, n, u: 1 - _variance_ratio(m, n, u), (3.0, 4.5, 0.7), (12.0, 2.0, 2.5)),
    row("fdtri(dfn, dfd, p)", _variance_ratio_inverse, (3.0, 4.5, 0.7), (12.0, 2.0, 0.1)),
    row("gdtr(a, b, x)", lambda a, b, u: mp.gammainc(b, 0, a * u, regularized=True), (3.0, 1.5, 0.7)),
    row("gdtrc(a, b, x)", lambda a, b, u: mp.gammainc(b, a * u, regularized=True), (3.0, 1.5, 0.7)),
    row("kolmogorov(y)", _kolmogorov, 0.3, 0.7, 1.5),
    row("gamma(x)", mp.gamma, 0.7, 4.5, -1.5),
    row("rgamma(x)", mp.rgamma, 0.7, 4.5, -1.5, 0.0, -2.0),
    row("gammaln(x)", lambda u: mp.re(mp.loggamma(u)), 0.7, 4.5, -1.5),
    row("loggamma(x)", mp.loggamma, 0.7, 4.5),
    row("gammasgn(x)", lambda u: mp.sign(mp.gamma(u)), 0.7, -1.5, -0.5),
    row("psi(x)", mp.digamma, 0.7, 4.5, -1.5),
    row("polygamma(n, x)", lambda n, u: mp.polygamma(int(n), u), (0, 0.7), (1, 4.5), (3, 1.2), constants=(0,)),
    row("multigammaln(a, d)", lambda a, d: mp.log(mp.pi) / 2 + mp.loggamma(a) + mp.loggamma(a - 0.5), (3.2, 2),
        constants=(1,)),
    row("beta(a, b)", mp.beta, *PAIRS),
    row("betaln(a, b)", lambda a, b: mp.log(mp.beta(a, b)), *PAIRS, (200.0, 0.5)),
    row("betainc(a, b, x)", exact.incomplete_beta, (1.5, 2.5, 0.7), (3.0, 1.0, 0.2), (1.0, 2.0, 0.2)),
    row("betaincc(a, b, x)", lambda a, b, u: exact.incomplete_beta(b, a, 1 - u), (1.5, 2.5, 0.7), (3.0, 10.0, 0.2)),
    row("betaincinv(a, b, y)", d.betaincinv_value, (1.5, 2.5, 0.7), (3.0, 1.0, 0.2)),
    row("betainccinv(a, b, y)", d.betainccinv_value, (1.5, 2.5, 0.7), (3.0, 1.0, 0.2)),
    row("gammainc(a, x)", exact.lower_gamma,
        (1.5, 0.7), (3.0, 4.5), (1.0, 2.0), (0.1, 1.0), (400.0, 390.0), digits=1e-10),
    row("gammaincc(a, x)", lambda a, u: mp.gammainc(a, u, regularized=True),
        (1.5, 0.7), (3.0, 9.5), (0.1, 1.0), (400.0, 390.0), digits=1e-10),
    row("gammaincinv(a, y)", d.gammaincinv_value, (1.5, 0.7), (0.4, 0.1), (40.0, 0.9)),
    row("gammainccinv(a, y)", d.gammainccinv_value, (1.5, 0.7), (0.4, 0.1), (40.0, 1e-6)),
    row("poch(a, m)", mp.rf, *PAIRS),
    row("binom(n, k)", mp.binomial, (5.5, 2.5), (4.0, 2.0), (1.0, 3.0), (0.0, 2.0)),
    row("comb(N, k)", mp.binomial, (5.5, 2.5), (4.0, 2.0)),
    row("perm(N, k)", lambda n, k: mp.rf(n - k + 1, k), (5.5, 2.5), (4.0, 2.0)),
    row("factorial(x)", lambda u: mp.factorial(u) if u >= 0 else mp.mpf(0), 0.7, 4.0),
    row("zeta(x, q)", mp.zeta, (2.5, 0.7), (4.0, 3.0), constants=(0,)),
    row("jv(v, z)", mp.besselj, *ORDERED, constants=(0,)),
    row("jve(v, z)", mp.besselj, *ORDERED, constants=(0,)),
    row("yv(v, z)", mp.bessely, *ORDERED, constants=(0,)),
    row("yve(v, z)", mp.bessely, *ORDERED, constants=(0,)),
    row("yn(n, z)", mp.bessely, *WHOLE, constants=(0,)),
    row("iv(v, z)", mp.besseli, *ORDERED, constants=(0,)),
    row("ive(v, z)", lambda v, u: mp.besseli(v, u) * mp.exp(-abs(u)), (0, 0.7), (2.5, 50.0), constants=(0,)),
    row("kv(v, z)", mp.besselk, *ORDERED, constants=(0,)),
    row("kn(n, z)", mp.besselk, *WHOLE, constants=(0,)),
    row("kve(v, z)", lambda v, u: mp.besselk(v, u) * mp.exp(u), (0, 0.7), (2.5, 50.0), constants=(0,)),
    row("j0(x)", mp.j0, 0.0, 4.5),
    row("j1(x)", mp.j1, 0.0, 4.5),
    row("y0(x)", lambda u: mp.bessely(0, u), 0.7, 4.5),
    row("y1(x)", lambda u: mp.bessely(1, u), 0.7, 4.5),
    row("i0(x)", lambda u: mp.besseli(0, u), 0.0, -4.5),
    row("i1(x)", lambda u: mp.besseli(1, u), 0.0, -4.5),
    row("i0e(x)", lambda u: mp.besseli(0, u) * mp.exp(-abs(u)), 0.7, -4.5, 1e8, -1e4),
    row("i1e(x)", lambda u: mp.besseli(1, u) * mp.exp(-abs(u)), 0.7, -4.5),
    row("k0(x)", lambda u: mp.besselk(0, u), 0.7, 4.5),
    row("k1(x)", lambda u: mp.besselk(1, u), 0.7, 4.5, 700.0),
    row("k0e(x)", lambda u: mp.besselk(0, u) * mp.exp(u), 0.7, 4.5, 1e8),
    row("k1e(x)", lambda u: mp.besselk(1, u) * mp.exp(u), 0.7, 4.5),
    row("jvp(v, z)", _derivative(mp.besselj, 1), *ORDERED, constants=(0,)),
    row("yvp(v, z)", _derivative(mp.bessely, 1), (0.5, 1.5), constants=(0,)),
    row("ivp(v, z)", _derivative(mp.besseli, 1), *ORDERED, constants=(0,)),
    row("kvp(v, z)", _derivative(mp.besselk, 1), (0.5, 1.5), constants=(0,)),
    row("spherical_jn(n, z)", exact.spherical_bessel, *WHOLE, (0, 0.0), (2, -1.5), constants=(0,)),
    row("spherical_yn(n, z)", exact.spherical_yn, *WHOLE, constants=(0,)),
    row("spherical_in(n, z)", exact.spherical_in, *WHOLE, (0, 0.0), (2, -1.5), constants=(0,)),
    row("spherical_kn(n, z)", exact.spherical_kn, *WHOLE, constants=(0,)),
    *[output("airy(x)", k, f, 0.7, -3.0) for k, f in enumerate((
        mp.airyai, lambda u: mp.airyai(u, derivative=1), mp.airybi, lambda u: mp.airybi(u, derivative=1)))],
    row("expit(x)", lambda u: 1 / (1 + mp.exp(-u)), -40.0, 0.7, 40.0),
    row("log_expit(x)", lambda u: -mp.log1p(mp.exp(-u)), -40.0, 0.7, 40.0),
    row("logit(x)", lambda u: mp.log(u / (1 - u)), 1e-9, 0.5, 0.7),
    row("softplus(x)", lambda u: mp.log1p(mp.exp(u)), -40.0, 0.7, 40.0),
    row("logsumexp(a)", _log_sum, (0.7, 1.1, -0.4), (1000.0, 1001.0, 999.5), function=_stacked("logsumexp")),
    row("softmax(a)", lambda *u: mp.exp(u[0] - _log_sum(*u)), (0.7, 1.1, -0.4), (1000.0, 1001.0, 999.5),
        function=_stacked("softmax")),
    row("log_softmax(a)", lambda *u: u[0] - _log_sum(*u), (0.7, 1.1, -0.4), (1000.0, 1001.0, 999.5),
        function=_stacked("log_softmax")),
    row("xlogy(x, y)", lambda u, v: u * mp.log(v), (0.7, 1.1), (0.0, 2.0)),
    row("xlog1py(x, y)", lambda u, v: u * mp.log1p(v), (0.7, 1.1), (0.0, 2.0), (2.0, 1e-9)),
    row("entr(x)", lambda u: -u * mp.log(u), 0.7, 13.0),
    row("rel_entr(x, y)", lambda u, v: u * mp.log(u / v), (0.7, 1.1), (0.7, 0.7)),
    row("kl_div(x, y)", lambda u, v: u * mp.log(u / v) - u + v, (0.7, 1.1), (0.7, 0.7), (0.7, 0.7000001)),
    row("huber(delta, r)", _huber, (1.0, 0.7), (1.0, -2.5)),
    row("pseudo_huber(delta, r)", lambda d, u: d * d * (mp.sqrt(1 + (u / d) ** 2) - 1) if d > 0 else mp.inf,
        (1.0, 0.7), (2.0, -2.5), (1.0, 1e-9)),
    row("boxcox(x, lmbda)", _box_cox, (1.3, 2.7), (0.4, -1.5), (1.3, 1e-9), (1e6, 1.0)),
    row("boxcox1p(x, lmbda)", lambda u, p: _box_cox(1 + u, p), (1.3, 2.7), (-0.4, -1.5), (1e-9, 0.5)),
    row("inv_boxcox(y, lmbda)", exact.inverse_box_cox, (1.3, 2.7), (0.4, -1.5), (1.3, 1e-9), (1e6, 1.0)),
    row("inv_boxcox1p(y, lmbda)", exact.inverse_box_cox_1p, (1.3, 2.7), (0.4, -1.5), (1e-9, 0.5)),
    row("exprel(x)", lambda u: mp.expm1(u) / u if u else mp.mpf(1), 0.7, -30.0, 1e-9),
    row("expm1(x)", mp.expm1, 0.7, 1e-9),
    row("log1p(x)", mp.log1p, 0.7, 1e-9),
    row("powm1(x, y)", mp.powm1, (1.3, 2.7), (0.4, -1.5)),
    row("exp2(x)", lambda u: mp.power(2, u), 0.7, -3.0),
    row("exp10(x)", lambda u: mp.power(10, u), 0.7, -3.0),
    row("cosm1(x)", lambda u: mp.cos(u) - 1, 0.7, 1e-5),
    row("cbrt(x)", lambda u: mp.sign(u) * mp.cbrt(abs(u)), 0.7, -3.0),
    row("round(x)", mp.nint, 0.7, -3.2),
    row("sinc(x)", lambda u: mp.sincpi(u), 0.7, -3.2, 0.0),
    row("diric(x, n)", lambda u, n: mp.sin(n * u / 2) / (n * mp.sin(u / 2)), (0.7, 3), (7.0, 4), constants=(1,)),
    row("sindg(x)", exact.of_degrees(mp.sin), 70.0, -200.0),
    row("cosdg(x)", exact.of_degrees(mp.cos), 70.0, -200.0),
    row("tandg(x)", exact.of_degrees(mp.tan), 70.0, -200.0),
    row("cotdg(x)", exact.of_degrees(mp.cot), 70.0, -200.0),
    row("radian(d, m, s)", lambda d, m, s: (d + m / 60 + s / 3600) * mp.pi / 180, (70.0, 12.0, 3.0)),
    row("exp1(x)", mp.e1, 0.7, 4.5),
    row("expn(n, x)", mp.expint, (0, 0.7), (1, 4.5), (3, 1.2), constants=(0,)),
    row("expi(x)", mp.ei, 0.7, -2.5),
    output("sici(x)", 0, mp.si, 0.7, -2.5, 0.0),
    output("sici(x)", 1, lambda u: mp.ci(abs(u)), 0.7, -2.5),
    output("shichi(x)", 0, mp.shi, 0.7, -2.5, 0.0),
    output("shichi(x)", 1, lambda u: mp.chi(abs(u)), 0.7, -2.5),
    output("fresnel(x)", 0, mp.fresnels, 0.7, -2.5),
    output("fresnel(x)", 1, mp.fresnelc, 0.7, -2.5),
    row("ellipk(m)", mp.ellipk, 0.5, -1.2, 0.0),
    row("ellipkm1(p)", lambda p: mp.ellipk(1 - p), 0.5, 1e-9, 1e-30, 1e6),
    row("ellipe(m)", mp.ellipe, 0.5, -1.2, 0.0),
    row("ellipkinc(phi, m)", mp.ellipf, (0.7, 0.5), (-0.3, 0.2), (0.7, 1e-9), (0.7, 0.0), (20.0, 1e-9), (-3.0, 0.0)),
    row("ellipeinc(phi, m)", mp.ellipe, (0.7, 0.5), (-0.3, 0.2), (0.7, 1e-9), (0.7, 0.0), (20.0, 1e-9), (-3.0, 0.0)),
    *[output("ellipj(u, m)", k, lambda u, m, kind=kind: jacobi_value(kind, u, m),
        (0.7, 0.5), (-3.0, 0.2), constants=(1,))
      for k, kind in enumerate(("sn", "cn", "dn", "am"))],
    row("spence(x)", lambda u: mp.polylog(2, 1 - u), 0.7, 1.0, 3.0, 1e-20, 1e15),
    row("eval_legendre(n, x)", mp.legendre, *DEGREES, constants=(0,)),
    row("eval_chebyt(n, x)", mp.chebyt, *DEGREES, constants=(0,)),
    row("eval_chebyu(n, x)", mp.chebyu, *DEGREES, constants=(0,)),
    row("eval_chebyc(n, x)", lambda n, u: 2 * mp.chebyt(n, u / 2), *DEGREES, constants=(0,)),
    row("eval_chebys(n, x)", lambda n, u: mp.chebyu(n, u / 2), *DEGREES[:3], (5, 0.9), (5, 1e-9), constants=(0,)),
    row("eval_sh_legendre(n, x)", lambda n, u: mp.legendre(n, 2 * u - 1), *DEGREES, constants=(0,)),
    row("eval_sh_chebyt(n, x)", lambda n, u: mp.chebyt(n, 2 * u - 1), *DEGREES, constants=(0,)),
    row("eval_sh_chebyu(n, x)", lambda n, u: mp.chebyu(n, 2 * u - 1), *DEGREES, constants=(0,)),
    row("eval_hermite(n, x)", mp.hermite, *DEGREES, constants=(0,)),
    row("eval_hermitenorm(n, x)", _normal_hermite, *DEGREES, constants=(0,)),
    row("eval_laguerre(n, x)", lambda n, u: mp.laguerre(n, 0, u), *DEGREES, constants=(0,)),
    row("eval_genlaguerre(n, alpha, x)", mp.laguerre, (2, 0.5, 0.7), (0, 0.5, 0.7), constants=(0, 1)),
    row("eval_gegenbauer(n, alpha, x)", mp.gegenbauer, (2, 0.5, 0.7), (0, 0.5, 0.7), (1, 0.5, 0.7), constants=(0, 1)),
    row("eval_jacobi(n, alpha, beta, x)", mp.jacobi, (2, 0.5, 1.5, 0.7), (0, 0.5, 1.5, 0.7), constants=(0, 1, 2)),
    row("assoc_laguerre(x, n)", lambda u, n: mp.laguerre(n, 0, u), (0.7, 2), constants=(1,)),
    row("hyp0f1(v, z)", mp.hyp0f1, (1.5, 0.7), (2.5, -3.0), constants=(0,)),
    row("hyp1f1(a, b, z)", mp.hyp1f1, (0.5, 1.5, 0.7), (2.0, 2.5, -3.0), constants=(0, 1)),
    row("hyp2f1(a, b, c, z)", mp.hyp2f1, (0.5, 1.5, 2.5, 0.7), (2.0, 1.0, 2.5, -3.0), constants=(0, 1, 2)),
    row("hyperu(a, b, z)", mp.hyperu, (0.5, 1.5, 0.7), (2.0, 2.5, 3.0), constants=(0, 1), digits=1e-9),
    row("lambertw(z)", lambda u: _real(mp.lambertw(u)), 0.7, -0.3, 0.0),
    row("lambertw(z, k)", lambda u, k: _real(mp.lambertw(u, -1)), (-0.3, -1), (-1e-5, -1), constants=(1,)),
    row("wrightomega(x)", lambda u: mp.lambertw(mp.exp(u)), 0.7, -30.0, 30.0),
]  # fmt: skip

# What scipy.special has and traced values do not: refused by name.
REFUSED = {
    "kolmogi": (), "bdtri": (2.0, 3.0), "ncfdtr": (2.0, 3.0, 0.5), "nctdtr": (2.0, 0.5), "chndtr": (2.0, 0.5),
    "agm": (1.0,), "airye": (), "bei": (), "ber": (), "elliprf": (1.0, 2.0),
    "factorial2": (), "hankel1": (1.0,), "itairy": (), "kei": (),
    "kelvin": (), "ker": (), "legendre_p": (2,), "lpmv": (0.0, 1.0), "mathieu_a": (1.0,),
    "modstruve": (1.0,), "pbdv": (1.0,), "smirnov": (1,), "struve": (1.0,),
    "tklmbda": (0.5,), "zetac": (),
}  # fmt: skip

DOCUMENT = Path(__file__).parents[2] / "docs" / "special.md"

_INTRODUCTION = """\
# SciPy's special functions in traced functions

Generated by `python -m tests.support.special_table`; do not edit. Each row is run by
`tests/symad/tracing/numpy/test_special.py`: the value against SciPy, value, first and second derivative against mpmath
in forward and reverse mode and every mix of two, interpreted and compiled.

Calls tried: {tried}; on symbols {rows}, on numbers only none, refused {refused}. (When the page was begun, on
2026-11-21: 172, 143, none, 29.)

Functions that SciPy has as ufuncs are traced through NumPy's protocol, plain Python functions (`logsumexp`, `softmax`,
`polygamma`, `comb`, `spherical_jn`...) by stand-ins of the same signature. Derivatives exist at every order in the
arguments of the third column; in the others a `RuleError` or `TraceError` names function and argument. Orders and
degrees are numbers: while compiling, those of `polygamma`, Hermite polynomials and spherical Bessel functions have to
be known. Kernels and the interpreter call the C library, code of their own, or the inner loops of SciPy that the last
column names (value; first derivative), for which SciPy has to be installed (`pip install symad[special]`).

All values are real. `lambertw` has its branches 0 and -1, and is nan where SciPy's value is complex; `expn(0, x)` has
a value for x < 0 too. `kl_div`, `rel_entr`, `pseudo_huber`, `boxcox` keep digits that SciPy's own formulas lose.
In which ranges values, first and second derivatives have ten digits: [the table of the sweep](special_ranges.md).

| function | constant arguments | derivative in | SciPy's loops |
|---|---|---|---|
"""


def _loops(function: Callable[[Any], Any]) -> str:
    names = re.findall(r"call double @scipy\.(\w+)\.", symad.compile(function, 0.0).llvm)
    return ", ".join(f"`{name}`" for name in sorted(set(names))) or "none"


def _line(found: Row) -> str:
    names = found.name.partition("(")[2].partition(")")[0].split(", ")
    names = [f"{names[0]}[{k}]" for k in range(len(found.points[0]))] if len(names) < len(found.points[0]) else names
    active, point = found.active(), found.points[-1]

    def along(t: Any) -> Any:
        return found.function(*[value + t if k in active else value for k, value in enumerate(point)])

    constants = ", ".join(f"`{names[k]}`" for k in found.constants) or "none"
    moving = "`a`" if names[0] == "a[0]" else ", ".join(f"`{names[k]}`" for k in active)
    return f"| `{found.name}` | {constants} | {moving} | {_loops(along)}; {_loops(symad.derivative(along))} |"


def document() -> str:
    """Return the documentation."""
    refused = ", ".join(f"`{name}`" for name in sorted(REFUSED))
    ending = f"\nRefused by name, among others: {refused}.\n"
    introduction = _INTRODUCTION.format(tried=len(ROWS) + len(REFUSED), rows=len(ROWS), refused=len(REFUSED))
    return introduction + "\n".join(map(_line, ROWS)) + "\n" + ending


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
