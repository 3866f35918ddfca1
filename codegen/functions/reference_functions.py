"""The same scalar functions at arbitrary precision: mpmath at its current precision, real results or nan."""

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


def add(*terms: Real) -> Real:
    """Sum from the left."""
    result = terms[0]
    for term in terms[1:]:
        result = result + term
    return result


def multiply(*factors: Real) -> Real:
    """Product from the left."""
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
    return result


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


def trunc(u: Real) -> Real:
    """Round towards zero."""
    return mp.floor(u) if u >= 0 else mp.ceil(u)


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


def sinc(u: Real) -> Real:
    """sin(u)/u, 1 at zero."""
    return mp.mpf(1) if u == 0 else real(mp.sin)(u) / u


def cbrt(u: Real) -> Real:
    """Real cube root, also of negative numbers."""
    return mp.sign(u) * mp.cbrt(abs(u))


def softplus(u: Real) -> Real:
    """log(1 + exp(u))."""
    return mp.log1p(mp.exp(u)) if u < 0 else u + mp.log1p(mp.exp(-u))


def logaddexp(u: Real, v: Real) -> Real:
    """log(exp(u) + exp(v))."""
    return maximum(u, v) + mp.log1p(mp.exp(-abs(u - v))) if u != v else u + mp.log(2)


def xlogy(u: Real, v: Real) -> Real:
    """u*log(v), 0 where u is 0."""
    return mp.mpf(0) if u == 0 else u * real(mp.log)(v)


def copysign(u: Real, v: Real) -> Real:
    """|u| with the sign of v (mpmath has no -0)."""
    return -abs(u) if v < 0 else abs(u)


def lambert(u: Real, branch: Real = 0) -> Real:
    """Lambert W on its real branches 0 and -1."""
    return real(mp.lambertw)(u, int(branch))


def piecewise(*flat: Any) -> Real:
    """First value whose condition holds, nan if none."""
    for k in range(0, len(flat), 2):
        if flat[k + 1]:
            return flat[k]
    return mp.nan
