"""The table of heads: one row per head says how it is lowered natively and evaluated in floats and at high precision.

To support a new head, add one row. `native` is a lowering over the machine table (a template, a C function, a SciPy
ufunc), `number` a function of Python floats with NumPy's conventions for nan and inf, `reference` the same on mpmath
numbers, and `ulp` the error bound of the native value against the reference that the tests hold.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.codegen import cfunctions

import codegen.float_functions as number
import codegen.heads as heads
import codegen.reference_functions as reference
import codegen.templates as native
from codegen.errors import LoweringError
from codegen.lambert import lambert
from codegen.powers import lower_power
from codegen.program import Head
from codegen.recurrences import FLOATS, hermite, spherical_bessel

EXTRA = "pip install symad[special]"


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One row: a head's native lowering, its float function, its high-precision function, and the bound in ULP."""

    head: Head
    native: Callable[..., int]
    number: Callable[..., Any]
    reference: Callable[..., Any]
    ulp: float = 1.0
    parity: str = ""  # "odd": f(-u) = -f(u), "even": f(-u) = f(u), bit for bit
    truth: bool = False  # takes truth values as they are (others take them as 0 and 1)


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
            do="rewrite it in supported functions, or add a row to codegen.intrinsics",
        )
    return row


@cache
def scipy_ufunc(name: str) -> Any:
    """Return a ufunc of scipy.special, public or not; LoweringError names the extra when SciPy is missing."""
    try:
        import scipy.special  # noqa: PLC0415  (optional extra)
    except ImportError as error:
        raise LoweringError(f"special function {name}", why="SciPy is not installed", do=EXTRA) from error
    found = getattr(scipy.special, name, None)
    return getattr(scipy.special._ufuncs, name) if found is None else found


def _scipy_number(name: str, output: int | None = None) -> Callable[..., float]:
    def evaluate(*arguments: float) -> float:
        value = scipy_ufunc(name)(*arguments)
        value = value if output is None else value[output]
        return (float(value.real) if value.imag == 0 else math.nan) if isinstance(value, complex) else float(value)

    return evaluate


def _scipy(head: Head, name: str, exact: Callable[..., Any], ulp: float = 8.0, output: int | None = None) -> Intrinsic:
    """One row whose native lowering and float function are the same SciPy ufunc."""
    lowering = native.scipy(name, output or 0)
    return Intrinsic(head, lowering, _scipy_number(name, output), reference.real(exact), ulp)


def _libm(head: Head, symbol: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 1.0,
          parity: str = "") -> Intrinsic:  # fmt: skip
    return Intrinsic(head, native.call(symbol), function, reference.real(exact), ulp, parity)


def _reciprocal(head: Head, of: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 2.0,
                parity: str = "") -> Intrinsic:  # fmt: skip
    lowering = native.reciprocal_of(native.call(of))
    return Intrinsic(head, lowering, number.reciprocal_of(function), reference.real(exact), ulp, parity)


def _inverse(head: Head, of: str, function: Callable[..., float], exact: Callable[..., Any], ulp: float = 2.0,
             parity: str = "") -> Intrinsic:  # fmt: skip
    lowering = native.of_reciprocal(native.call(of))
    return Intrinsic(head, lowering, number.of_reciprocal(function), reference.real(exact), ulp, parity)


def _relational(head: Head, condition: str, function: Callable[[Any, Any], bool]) -> Intrinsic:
    return Intrinsic(head, native.compare(condition), function, function, 0.0)


def _truth(head: Head, lowering: Callable[..., int], function: Callable[..., Any]) -> Intrinsic:
    return Intrinsic(head, lowering, function, function, 0.0, truth=True)


def _identity(value: Any) -> Any:
    return value


def _complex(*values: Any) -> Any:
    raise LoweringError("a complex value", why="kernels are real float64", do="keep the program real")


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


ARITHMETIC = [
    Intrinsic(sp.Add, native.fold("add"), number.add, reference.add, 0.5),
    Intrinsic(sp.Mul, native.fold("mul"), number.multiply, reference.multiply, 0.5),
    Intrinsic(sp.Pow, lower_power, number.power, reference.power, 2.0),
    Intrinsic(heads.Alias, native.alias, _identity, _identity, 0.0, truth=True),
    Intrinsic(sp.Abs, native.unary("abs"), abs, abs, 0.0, "even"),
    Intrinsic(sp.sign, native.sign, number.sign, mp.sign, 0.0, "odd"),
    Intrinsic(sp.Max, native.fold("maximum"), number.maximum, reference.maximum, 0.0),
    Intrinsic(sp.Min, native.fold("minimum"), number.minimum, reference.minimum, 0.0),
    _libm(sp.floor, "llvm.floor.f64", number.floor, reference.rounded(mp.floor), 0.0),
    _libm(sp.ceiling, "llvm.ceil.f64", number.ceiling, reference.rounded(mp.ceil), 0.0),
    _libm(heads.trunc, "llvm.trunc.f64", number.trunc, reference.rounded(reference.trunc), 0.0, "odd"),
    _libm(heads.rint, "llvm.rint.f64", number.rint, reference.rounded(mp.nint), 0.0, "odd"),
    Intrinsic(sp.frac, native.frac, lambda u: u - number.floor(u), lambda u: u - mp.floor(u), 0.5),
    _libm(heads.fmod, "fmod", number.fmod, reference.fmod, 0.0),
    _libm(heads.copysign, "llvm.copysign.f64", math.copysign, reference.copysign, 0.0),
    Intrinsic(sp.Mod, native.modulo, number.modulo, reference.modulo, 0.5),
    Intrinsic(sp.Heaviside, native.heaviside, number.heaviside, reference.heaviside, 0.0),
    Intrinsic(cfunctions.Sqrt, native.unary("sqrt"), number.sqrt, reference.real(mp.sqrt), 0.5),
    Intrinsic(cfunctions.fma, native.multiply_add, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, 1.0),
    _libm(heads.cbrt, "cbrt", math.cbrt, reference.cbrt, 1.5, "odd"),
    _libm(heads.hypot, "hypot", number.hypot, mp.hypot),
    Intrinsic(
        heads.one_minus_square,
        native.one_minus_square,
        lambda u: (1.0 - u) * (1.0 + u),
        lambda u: (1 - u) * (1 + u),
        1.5,
        "even",
    ),
    Intrinsic(
        heads.direction_cosine,
        native.direction_cosine,
        lambda u, v: number.divide(u, number.hypot(u, v)),
        lambda u, v: reference.divide(u, mp.hypot(u, v)),
        2.0,
    ),
]

ELEMENTARY = [
    _libm(sp.exp, "exp", number.exp, mp.exp),
    _libm(heads.exp2, "exp2", number.exp2, lambda u: mp.power(2, u)),
    _libm(heads.expm1, "expm1", number.expm1, mp.expm1, 1.5),
    _libm(sp.log, "log", number.log, mp.log),
    _libm(heads.log2, "log2", number.log2, lambda u: mp.log(u, 2)),
    _libm(heads.log10, "log10", number.log10, lambda u: mp.log(u, 10), 2.0),
    _libm(heads.log1p, "log1p", number.log1p, mp.log1p, 1.5),
    _libm(sp.sin, "llvm.sin.f64", number.sin, mp.sin, 1.0, "odd"),
    _libm(sp.cos, "llvm.cos.f64", number.cos, mp.cos, 1.0, "even"),
    _libm(sp.tan, "tan", number.tan, mp.tan, 1.0, "odd"),
    _reciprocal(sp.cot, "tan", number.tan, mp.cot, 2.0, "odd"),
    _reciprocal(sp.sec, "llvm.cos.f64", number.cos, mp.sec, 2.0, "even"),
    _reciprocal(sp.csc, "llvm.sin.f64", number.sin, mp.csc, 2.0, "odd"),
    _libm(sp.sinh, "sinh", number.sinh, mp.sinh, 2.5, "odd"),
    _libm(sp.cosh, "cosh", number.cosh, mp.cosh, 2.0, "even"),
    Intrinsic(sp.tanh, native.tanh, math.tanh, reference.real(mp.tanh), 2.5, "odd"),
    _reciprocal(sp.coth, "tanh", math.tanh, mp.coth, 3.5, "odd"),
    Intrinsic(sp.sech, native.sech, number.sech, reference.real(mp.sech), 4.0, "even"),
    Intrinsic(sp.csch, native.csch, number.csch, reference.real(mp.csch), 4.0, "odd"),
    _libm(sp.asin, "asin", number.asin, mp.asin, 1.0, "odd"),
    _libm(sp.acos, "acos", number.acos, mp.acos),
    _libm(sp.atan, "atan", math.atan, mp.atan, 1.0, "odd"),
    _inverse(sp.acot, "atan", math.atan, mp.acot, 2.0, "odd"),
    _inverse(sp.asec, "acos", number.acos, mp.asec, 8.0),
    _inverse(sp.acsc, "asin", number.asin, mp.acsc, 8.0, "odd"),
    _libm(sp.asinh, "asinh", math.asinh, mp.asinh, 2.0, "odd"),
    _libm(sp.acosh, "acosh", number.acosh, mp.acosh, 2.5),
    _libm(sp.atanh, "atanh", number.atanh, mp.atanh, 2.5, "odd"),
    _inverse(sp.acoth, "atanh", number.atanh, mp.acoth, 8.0, "odd"),
    _inverse(sp.asech, "acosh", number.acosh, mp.asech, 16.0),
    _inverse(sp.acsch, "asinh", math.asinh, mp.acsch, 3.0, "odd"),
    _libm(sp.atan2, "atan2", math.atan2, mp.atan2),
    Intrinsic(sp.sinc, native.sinc, number.sinc, reference.sinc, 2.0, "even"),
    Intrinsic(heads.expit, native.expit, number.expit, reference.real(lambda u: 1 / (1 + mp.exp(-u))), 2.5),
    Intrinsic(heads.softplus, native.softplus, number.softplus, reference.real(reference.softplus), 2.5),
    Intrinsic(
        heads.log_expit, native.log_expit, number.log_expit, reference.real(lambda u: -reference.softplus(-u)), 2.5
    ),
    Intrinsic(heads.logaddexp, native.logaddexp, number.logaddexp, reference.real(reference.logaddexp), 3.0),
    Intrinsic(heads.xlogy, native.xlogy, number.xlogy, reference.real(reference.xlogy), 1.5),
]

SPECIAL = [
    _libm(sp.erf, "erf", math.erf, mp.erf, 1.5, "odd"),
    _libm(sp.erfc, "erfc", math.erfc, mp.erfc, 4.0),
    _scipy(sp.erfi, "erfi", mp.erfi, 16.0),
    _scipy(sp.erfinv, "erfinv", mp.erfinv, 8.0),
    _scipy(sp.erfcinv, "erfcinv", lambda u: mp.erfinv(1 - u), 8.0),
    Intrinsic(sp.gamma, native.gamma, number.gamma, reference.real(mp.gamma), 12.0),
    Intrinsic(sp.loggamma, native.loggamma, number.loggamma, reference.real(mp.loggamma), 8.0),
    _scipy(sp.digamma, "psi", mp.digamma, 16.0),
    Intrinsic(sp.polygamma, native.polygamma, _number_polygamma, reference.real(_mp_polygamma), 16.0),
    _scipy(sp.beta, "beta", mp.beta, 32.0),
    _bessel(sp.besselj, "jv", ("j0", "j1"), mp.besselj, 64.0),
    _bessel(sp.bessely, "yv", ("y0", "y1"), mp.bessely, 64.0),
    _scipy(sp.besseli, "iv", mp.besseli, 64.0),
    _scipy(sp.besselk, "kv", mp.besselk, 64.0),
    _scipy(sp.airyai, "airy", mp.airyai, 64.0, 0),
    _scipy(sp.airyaiprime, "airy", lambda u: mp.airyai(u, derivative=1), 64.0, 1),
    _scipy(sp.airybi, "airy", mp.airybi, 64.0, 2),
    _scipy(sp.airybiprime, "airy", lambda u: mp.airybi(u, derivative=1), 64.0, 3),
    _scipy(sp.elliptic_k, "ellipk", mp.ellipk, 8.0),
    _scipy(sp.elliptic_f, "ellipkinc", mp.ellipf, 32.0),
    Intrinsic(sp.elliptic_e, native.elliptic_e, _number_elliptic_e, reference.real(mp.ellipe), 32.0),
    Intrinsic(
        heads.elliptic_moment,
        native.elliptic_moment,
        _number_elliptic_moment,
        reference.real(_mp_elliptic_moment),
        64.0,
    ),
    Intrinsic(sp.LambertW, lambert, _scipy_number("lambertw"), reference.real(reference.lambert), 16.0),
    Intrinsic(sp.zeta, native.zeta, _number_zeta, reference.real(mp.zeta), 32.0),
    _scipy(sp.Ei, "expi", mp.ei, 32.0),
    _scipy(sp.expint, "expn", mp.expint, 32.0),
    _scipy(sp.Si, "sici", mp.si, 32.0, 0),
    _scipy(sp.Ci, "sici", mp.ci, 32.0, 1),
    _scipy(sp.Shi, "shichi", mp.shi, 32.0, 0),
    _scipy(sp.Chi, "shichi", mp.chi, 32.0, 1),
    _scipy(sp.fresnels, "fresnel", mp.fresnels, 64.0, 0),
    _scipy(sp.fresnelc, "fresnel", mp.fresnelc, 64.0, 1),
    _scipy(sp.binomial, "binom", mp.binomial, 64.0),
    Intrinsic(
        sp.factorial, native.factorial, lambda u: number.gamma(u + 1.0), reference.real(lambda u: mp.gamma(u + 1)), 12.0
    ),
    _scipy(sp.legendre, "eval_legendre", mp.legendre, 64.0),
    _scipy(sp.chebyshevt, "eval_chebyt", mp.chebyt, 64.0),
    _scipy(sp.chebyshevu, "eval_chebyu", mp.chebyu, 64.0),
    _scipy(sp.laguerre, "eval_laguerre", lambda n, u: mp.laguerre(n, 0, u), 64.0),
    _scipy(sp.assoc_laguerre, "eval_genlaguerre", mp.laguerre, 64.0),
    Intrinsic(sp.hermite, hermite, partial(hermite, FLOATS), reference.real(mp.hermite), 64.0),
    Intrinsic(sp.jn, spherical_bessel, partial(spherical_bessel, FLOATS), reference.real(_mp_spherical_bessel), 64.0),
    _scipy(sp.gegenbauer, "eval_gegenbauer", mp.gegenbauer, 128.0),
    _scipy(sp.jacobi, "eval_jacobi", mp.jacobi, 128.0),
]

LOGIC = [
    _relational(sp.Lt, "olt", operator.lt),
    _relational(sp.Le, "ole", operator.le),
    _relational(sp.Gt, "ogt", operator.gt),
    _relational(sp.Ge, "oge", operator.ge),
    _relational(sp.Eq, "oeq", operator.eq),
    _relational(sp.Ne, "une", operator.ne),
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
