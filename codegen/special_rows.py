"""The special functions among the intrinsics: rows over the C library and SciPy's inner loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import sympy as sp
from mpmath import mp

import codegen.float_functions as number
import codegen.heads as heads
import codegen.reference_functions as reference
import codegen.templates as native
from codegen.float_machine import FLOATS
from codegen.lambert import lambert
from codegen.program import Head
from codegen.recurrences import hermite, spherical_bessel
from codegen.rows import Intrinsic, libm, scipy
from codegen.scipy_ufuncs import scipy_number, scipy_ufunc


def _mp_polygamma(order: Any, u: Any) -> Any:
    return mp.polygamma(int(order), u)


def _mp_spherical_bessel(order: Any, u: Any) -> Any:
    if u == 0:
        return mp.mpf(1 if order == 0 else 0)
    return mp.sqrt(mp.pi / (2 * abs(u))) * mp.besselj(order + mp.mpf("0.5"), abs(u)) * (mp.sign(u) if order % 2 else 1)


def _number_zeta(s: float, a: float = 1.0) -> float:
    name, arguments = ("_riemann_zeta", (s,)) if a == 1.0 else ("_zeta", (s, a))
    return float(scipy_ufunc(name)(*arguments))


def _number_polygamma(order: float, u: float) -> float:
    if order == 0:
        return float(scipy_ufunc("psi")(u))
    return math.factorial(int(order)) * (1.0 if order % 2 else -1.0) * float(scipy_ufunc("_zeta")(order + 1.0, u))


def _number_elliptic_e(first: float, second: float | None = None) -> float:
    return float(scipy_ufunc("ellipe")(first) if second is None else scipy_ufunc("ellipeinc")(first, second))


def _number_elliptic_moment(a: float, b: float, m: float) -> float:
    return native.moment_factor(a) * float(scipy_ufunc("hyp2f1")(a + 0.5, b + 0.5, a + 1.0, m))


def _mp_elliptic_moment(a: Any, b: Any, m: Any) -> Any:
    half = mp.mpf("0.5")
    return mp.pi / 2 * mp.rf(half, a) / mp.factorial(a) * mp.hyp2f1(a + half, b + half, a + 1, m)


def _number_bessel(name: str) -> Callable[..., float]:
    return lambda order, u: float(scipy_ufunc(name)(order, u))


def _bessel(head: Head, name: str, symbols: tuple[str, str], exact: Callable[..., Any], ulp: float) -> Intrinsic:
    return Intrinsic(head, native.bessel(name, *symbols), _number_bessel(name), reference.real(exact), ulp)


SPECIAL = [
    libm(sp.erf, "erf", math.erf, mp.erf, 1.5, "odd"),
    libm(sp.erfc, "erfc", math.erfc, mp.erfc, 4.0),
    scipy(sp.erfi, "erfi", mp.erfi, 16.0),
    scipy(sp.erfinv, "erfinv", mp.erfinv, 8.0),
    scipy(sp.erfcinv, "erfcinv", lambda u: mp.erfinv(1 - u), 8.0),
    Intrinsic(sp.gamma, native.gamma, number.gamma, reference.real(mp.gamma), 12.0),
    Intrinsic(sp.loggamma, native.loggamma, number.loggamma, reference.real(mp.loggamma), 8.0),
    scipy(sp.digamma, "psi", mp.digamma, 16.0),
    Intrinsic(sp.polygamma, native.polygamma, _number_polygamma, reference.real(_mp_polygamma), 16.0),
    scipy(sp.beta, "beta", mp.beta, 32.0),
    _bessel(sp.besselj, "jv", ("j0", "j1"), mp.besselj, 64.0),
    _bessel(sp.bessely, "yv", ("y0", "y1"), mp.bessely, 64.0),
    scipy(sp.besseli, "iv", mp.besseli, 64.0),
    scipy(sp.besselk, "kv", mp.besselk, 64.0),
    scipy(sp.airyai, "airy", mp.airyai, 64.0, 0),
    scipy(sp.airyaiprime, "airy", lambda u: mp.airyai(u, derivative=1), 64.0, 1),
    scipy(sp.airybi, "airy", mp.airybi, 64.0, 2),
    scipy(sp.airybiprime, "airy", lambda u: mp.airybi(u, derivative=1), 64.0, 3),
    scipy(sp.elliptic_k, "ellipk", mp.ellipk, 8.0),
    scipy(sp.elliptic_f, "ellipkinc", mp.ellipf, 32.0),
    Intrinsic(sp.elliptic_e, native.elliptic_e, _number_elliptic_e, reference.real(mp.ellipe), 32.0),
    Intrinsic(
        heads.elliptic_moment,
        native.elliptic_moment,
        _number_elliptic_moment,
        reference.real(_mp_elliptic_moment),
        64.0,
    ),
    Intrinsic(sp.LambertW, lambert, scipy_number("lambertw"), reference.real(reference.lambert), 16.0),
    Intrinsic(sp.zeta, native.zeta, _number_zeta, reference.real(mp.zeta), 32.0),
    scipy(sp.Ei, "expi", mp.ei, 32.0),
    scipy(sp.expint, "expn", mp.expint, 32.0),
    scipy(sp.Si, "sici", mp.si, 32.0, 0),
    scipy(sp.Ci, "sici", mp.ci, 32.0, 1),
    scipy(sp.Shi, "shichi", mp.shi, 32.0, 0),
    scipy(sp.Chi, "shichi", mp.chi, 32.0, 1),
    scipy(sp.fresnels, "fresnel", mp.fresnels, 64.0, 0),
    scipy(sp.fresnelc, "fresnel", mp.fresnelc, 64.0, 1),
    scipy(sp.binomial, "binom", mp.binomial, 64.0),
    Intrinsic(
        sp.factorial, native.factorial, lambda u: number.gamma(u + 1.0), reference.real(lambda u: mp.gamma(u + 1)), 12.0
    ),
    scipy(sp.legendre, "eval_legendre", mp.legendre, 64.0),
    scipy(sp.chebyshevt, "eval_chebyt", mp.chebyt, 64.0),
    scipy(sp.chebyshevu, "eval_chebyu", mp.chebyu, 64.0),
    scipy(sp.laguerre, "eval_laguerre", lambda n, u: mp.laguerre(n, 0, u), 64.0),
    scipy(sp.assoc_laguerre, "eval_genlaguerre", mp.laguerre, 64.0),
    Intrinsic(sp.hermite, hermite, partial(hermite, FLOATS), reference.real(mp.hermite), 64.0),
    Intrinsic(sp.jn, spherical_bessel, partial(spherical_bessel, FLOATS), reference.real(_mp_spherical_bessel), 64.0),
    scipy(sp.gegenbauer, "eval_gegenbauer", mp.gegenbauer, 128.0),
    scipy(sp.jacobi, "eval_jacobi", mp.jacobi, 128.0),
]
