"""Scalar functions at mpmath's current precision. Results are real or nan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import mpmath
from mpmath import mp

Real = Any  # mpmath.mpf: mpmath ships no types
Function = Callable[..., Real]

FAILURES = (
    ZeroDivisionError, ValueError, OverflowError, NotImplementedError, mpmath.libmp.NoConvergence,
    TypeError, RecursionError,  # at infinite arguments
)  # fmt: skip
_LOCK = RLock()  # mpmath keeps its precision in one global place


@contextmanager
def precision(digits: int) -> Iterator[None]:
    """Work at `digits` decimal digits; one thread at a time, since mpmath's precision is global.

    >>> with precision(30):
    ...     mp.nstr(mp.pi, 25)
    '3.141592653589793238462643'
    """
    with _LOCK, mp.workdps(digits):
        yield


def real(function: Function) -> Function:
    """Return `function` with nan for complex results, poles and missing convergence.

    >>> real(mp.log)(mp.mpf(-1))
    mpf('nan')
    """

    def guarded(*arguments: Real) -> Real:
        try:
            value = function(*arguments)
        except FAILURES:
            return mp.nan
        if isinstance(value, mpmath.mpc):
            return value.real if value.imag == 0 else mp.nan
        return mp.mpf(value)

    return guarded


def divide(numerator: Real, denominator: Real) -> Real:
    """Quotient; inf or nan for a zero denominator."""
    if denominator != 0:
        return numerator / denominator
    return mp.nan if numerator == 0 or mp.isnan(numerator) else mp.inf * mp.sign(numerator)


def power(base: Real, exponent: Real) -> Real:
    """Real power; nan for a fractional power of a negative base, inf for a negative power of zero."""
    if base == 0 and exponent < 0:
        return mp.inf
    if exponent == int(exponent) if mp.isfinite(exponent) else False:
        return base ** int(exponent)
    return real(mp.power)(base, exponent)


def logarithm(u: Real) -> Real:
    """log(u), -inf at zero."""
    return mp.log(u) if u else -mp.inf


def maximum(*values: Real) -> Real:
    """Largest value; nan if any is nan."""
    return mp.nan if any(mp.isnan(value) for value in values) else max(values)


def minimum(*values: Real) -> Real:
    """Smallest value; nan if any is nan."""
    return mp.nan if any(mp.isnan(value) for value in values) else min(values)


def rounded(function: Function) -> Function:
    """Return a rounding function that leaves inf and nan alone."""
    return lambda u: function(u) if mp.isfinite(u) else u


def modulo(u: Real, v: Real) -> Real:
    """Remainder with the sign of the divisor."""
    return mp.nan if v == 0 or not mp.isfinite(u) else u % v


def fmod(u: Real, v: Real) -> Real:
    """Remainder with the sign of the dividend."""
    if v == 0 or not mp.isfinite(u):
        return mp.nan
    return (-1 if u < 0 else 1) * (abs(u) % abs(v))


def heaviside(u: Real, at_zero: Real | None = None) -> Real:
    """0, `at_zero` (1/2) or 1; nan stays."""
    if u == 0:
        return mp.mpf("0.5") if at_zero is None else at_zero
    return mp.mpf(0) if u < 0 else mp.mpf(1) if u > 0 else u


def tie_share(u: Real, v: Real) -> Real:
    """1/2 where u = v, NaN where one is, else 1."""
    return mp.mpf("0.5") if u == v else mp.nan if mp.isnan(u) or mp.isnan(v) else mp.mpf(1)


def sinc(u: Real) -> Real:
    """sin(u)/u, 1 at zero."""
    return mp.mpf(1) if u == 0 else real(mp.sin)(u) / u


def softplus(u: Real) -> Real:
    """log(1 + exp(u))."""
    return mp.log1p(mp.exp(u)) if u < 0 else u + mp.log1p(mp.exp(-u))


def logaddexp(u: Real, v: Real) -> Real:
    """log(exp(u) + exp(v))."""
    return maximum(u, v) + mp.log1p(mp.exp(-abs(u - v))) if u != v else u + mp.log(2)


def lambert(u: Real, branch: Real = 0) -> Real:
    """Lambert W on its real branches 0 and -1."""
    return real(mp.lambertw)(u, int(branch))


def piecewise(*flat: Any) -> Real:
    """The first value whose condition holds, nan if none does."""
    for k in range(0, len(flat), 2):
        if flat[k + 1]:
            return flat[k]
    return mp.nan


def polygamma(order: Any, u: Any) -> Any:
    """Polygamma function of a natural order; nan of others, which no kernel has."""
    return mp.polygamma(int(order), u) if mp.isint(order) and order >= 0 else mp.nan


def polygamma_difference(order: Any, a: Any, b: Any) -> Any:
    """polygamma(n, a + b) - polygamma(n, a), with as many digits more as it loses."""
    with mp.extraprec(120):
        return mp.polygamma(int(order), a + b) - mp.polygamma(int(order), a)


def elliptic_moment(a: Any, b: Any, m: Any) -> Any:
    """pi/2 (1/2)_a / a! times 2F1(a + 1/2, b + 1/2; a + 1; m)."""
    half = mp.mpf("0.5")
    return mp.pi / 2 * mp.rf(half, a) / mp.factorial(a) * mp.hyp2f1(a + half, b + half, a + 1, m)


def erfc_ratio(order: Any, u: Any) -> Any:
    """The upward recurrence, with as many digits more as it loses."""
    with mp.extraprec(40 + int(order) * (16 + 4 * int(abs(u)).bit_length())):
        ratio = mp.sqrt(mp.pi) / 2 * mp.exp(u * u) * mp.erfc(u)
        for k in range(1, int(order) + 1):
            ratio = (1 / (2 * ratio) - u) / k
        return ratio


def faddeeva(order: Any, u: Any, v: Any) -> Any:
    """The n-th derivative of exp(-z**2) erfc(-iz) by its recurrence, with as many digits more as it loses."""
    size = 8 + int(min(abs(u) + abs(v), 2**1000)).bit_length()
    with mp.extraprec(80 + 4 * size * (2 + int(order))):
        z = mp.mpc(u, v)
        before = mp.exp(-z * z) * mp.erfc(mp.mpc(v, -u))
        if not order:
            return before
        now = -2 * z * before + mp.mpc(0, 2) / mp.sqrt(mp.pi)
        for k in range(1, int(order)):
            before, now = now, -2 * z * now - 2 * k * before
        return now


def log_ndtr(u: Any) -> Any:
    """Logarithm of the normal distribution."""
    tail = mp.erfc(abs(u) / mp.sqrt(2)) / 2
    return mp.log1p(-tail) if u > 0 else mp.log(tail)


def lower_gamma(a: Any, u: Any) -> Any:
    """gammainc, nan outside a > 0 and u >= 0; its limit for a = 0."""
    if a == 0 and u > 0:
        return mp.mpf(1)
    return mp.gammainc(a, 0, u, regularized=True) if a > 0 and u >= 0 else mp.nan


def upper_gamma(a: Any, u: Any) -> Any:
    """gammaincc, nan outside a > 0 and u >= 0; its limit for a = 0."""
    if a == 0 and u > 0:
        return mp.mpf(0)
    return mp.gammainc(a, u, regularized=True) if a > 0 and u >= 0 else mp.nan


def modified_bessel(order: Any, u: Any) -> Any:
    """besseli, real left of 0 too where the order is whole; of a whole order and its negative it is the same."""
    whole = mp.isint(order)
    if mp.isinf(u):
        return mp.mpf("nan") if u < 0 and not whole else (-1 if u < 0 and order % 2 else 1) * mp.inf
    return mp.besseli(abs(order), u) if whole else mp.besseli(order, u)


def orthogonal(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a polynomial of mpmath that may vanish: numbers below all floats times its terms are 0."""
    return lambda *operands: function(*operands, zeroprec=mp.prec + 2400, maxprec=20 * mp.prec + 20000)


def incomplete_beta(a: Any, b: Any, u: Any) -> Any:
    """betainc, nan outside [0, 1] and for a or b that is not positive."""
    return mp.betainc(a, b, 0, u, regularized=True) if 0 <= u <= 1 and a > 0 and b > 0 else mp.nan


def spherical(function: Callable[..., Any]) -> Callable[..., Any]:
    """sqrt(pi/(2u)) times a Bessel function of order n + 1/2, with the parity of order n."""

    def value(order: Any, u: Any) -> Any:
        value_there = mp.sqrt(mp.pi / (2 * abs(u))) * function(order + mp.mpf("0.5"), abs(u))
        return -value_there if u < 0 and order % 2 else value_there

    return value


def regular(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, of either sign of u, for a function without a pole: j_n(u) or i_n(u)."""
    return lambda order, u: mp.mpf(order == 0) if u == 0 else spherical(function)(order, u)


spherical_bessel, spherical_in = regular(mp.besselj), regular(mp.besseli)


def spherical_yn(order: Any, u: Any) -> Any:
    """y_n(u), of either sign of u; -inf at 0."""
    return -mp.inf if u == 0 else (-1 if u < 0 else 1) * spherical(mp.bessely)(order, u)


def entropy(u: Any, v: Any, rest: Any) -> Any:
    """u log(u/v) + rest inside, rest at u = 0, inf outside."""
    if u > 0 and v > 0:
        return u * mp.log(u / v) + rest
    return rest if u == 0 and v >= 0 else mp.inf


def box_cox(logarithm: Any, power: Any) -> Any:
    """expm1(p l)/p, l at p = 0."""
    return mp.expm1(power * logarithm) / power if power else logarithm


def inverse_box_cox(u: Any, power: Any) -> Any:
    """(1 + p u)**(1/p), exp(u) at p = 0."""
    return mp.exp(mp.log1p(power * u) / power if power else u)


def inverse_box_cox_1p(u: Any, power: Any) -> Any:
    """inverse_box_cox - 1."""
    return mp.expm1(mp.log1p(power * u) / power if power else u)


def stdtr(freedom: Any, t: Any) -> Any:
    """The distribution function, by the incomplete beta function of the complement."""
    if not freedom > 0:
        return mp.nan
    half = mp.mpf("0.5")
    tail = mp.betainc(freedom / 2, half, 0, freedom / (freedom + t * t), regularized=True) / 2
    return tail if t < 0 else 1 - tail


def owens_t(h: Any, a: Any) -> Any:
    """Owen's T, by its integral."""
    integrand = lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t)  # noqa: E731
    return mp.quad(integrand, [0, a]) / (2 * mp.pi)


def of_degrees(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a trigonometric function as a function of degrees."""
    return lambda u: function(mp.pi * u / 180)


def spherical_kn(order: Any, u: Any) -> Any:
    """k_n by its finite sum (DLMF 10.49.12), which holds for u < 0 too."""
    n = int(order)
    terms = [mp.factorial(n + k) / (mp.factorial(k) * mp.factorial(n - k) * (2 * u) ** k) for k in range(n + 1)]
    return mp.pi * mp.exp(-u) / (2 * u) * mp.fsum(terms)
