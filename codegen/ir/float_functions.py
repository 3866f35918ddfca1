"""Scalar functions on Python floats with NumPy's conventions: nan and inf where the math module raises."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce
from math import copysign, inf, isfinite, nan

Number = float | bool
Function = Callable[..., float]


def total(function: Function, *, overflow: Function | None = None, pole: Function | None = None) -> Function:
    """Return `function` without exceptions: `overflow(*args)` (default inf) on overflow, `pole(*args)` (default nan).

    >>> total(math.exp)(1000.0), total(math.sin)(inf)
    (inf, nan)
    """

    def guarded(*arguments: float) -> float:
        try:
            return function(*arguments)
        except OverflowError:
            return inf if overflow is None else overflow(*arguments)
        except ValueError:
            return nan if pole is None else pole(*arguments)

    return guarded


def logarithm(function: Function, edge: float = 0.0) -> Function:
    """Return a logarithm that is -inf at `edge` and nan below it."""
    return total(function, pole=lambda u: -inf if u == edge else nan)


def divide(numerator: float, denominator: float) -> float:
    """IEEE division.

    >>> divide(1.0, 0.0), divide(1.0, -0.0)
    (inf, -inf)
    """
    try:
        return numerator / denominator
    except ZeroDivisionError:
        if numerator == 0 or numerator != numerator:
            return nan
        return copysign(inf, numerator) * copysign(1.0, denominator)


def power(base: float, exponent: float) -> float:
    """`base ** exponent` as a kernel computes it: sqrt at 1/2, a quotient at -1, C's pow otherwise.

    >>> power(2.0, 0.5) == math.sqrt(2.0), power(-8.0, 1 / 3), power(0.0, -1.0)
    (True, nan, inf)
    """
    if exponent == 2:
        return base * base
    if exponent == -1:
        return divide(1.0, base)
    if base < 0 and exponent % 1 == 0.5:
        return nan  # the kernel takes a root; C's pow has (-inf)**0.5 = inf and (-inf)**-0.5 = 0
    if exponent == 0.5:
        return math.sqrt(base)
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -inf if base < 0 and exponent % 2 == 1 else inf
    except ValueError:
        if base == 0:
            return copysign(inf, base) if exponent % 2 == 1 else inf
        return nan


def add(*terms: float) -> float:
    """Sum from the left."""
    return reduce(operator.add, terms)


def multiply(*factors: float) -> float:
    """Product from the left."""
    return reduce(operator.mul, factors)


def maximum(*values: float) -> float:
    """Largest value; nan if any is nan; +0 is larger than -0.

    >>> maximum(1.0, nan), maximum(-0.0, 0.0)
    (nan, 0.0)
    """
    result = values[0]
    for value in values[1:]:
        if result != result:
            return result
        if not value <= result or (value == result == 0 and copysign(1.0, value) > 0):
            result = value
    return result


def minimum(*values: float) -> float:
    """Smallest value; nan if any is nan; -0 is smaller than +0."""
    return -maximum(*[-value for value in values])


def sign(u: float) -> float:
    """-1, 0 or 1; nan stays."""
    return 1.0 if u > 0 else -1.0 if u < 0 else 0.0 if u == 0 else u


def rounding(function: Callable[[float], int]) -> Function:
    """Return a function to integer values; inf, nan and -0.0 stay."""
    return lambda u: copysign(float(function(u)), u) if isfinite(u) else u


def modulo(u: float, v: float) -> float:
    """Remainder with the sign of the divisor (Python's %); nan for a zero divisor.

    >>> modulo(-1.0, 3.0), modulo(1.0, 0.0)
    (2.0, nan)
    """
    try:
        return u % v
    except (ZeroDivisionError, ValueError):
        return nan


def piecewise(*flat: Number) -> float:
    """First value whose condition holds, nan if none: value, condition, value, condition...

    >>> piecewise(1.0, False, 2.0, True), piecewise(1.0, False)
    (2.0, nan)
    """
    for k in range(0, len(flat), 2):
        if flat[k + 1]:
            return float(flat[k])
    return nan


exp: Function = total(math.exp)
expm1: Function = total(math.expm1)
exp2: Function = total(math.exp2)
log: Function = logarithm(math.log)
log2: Function = logarithm(math.log2)
log10: Function = logarithm(math.log10)
log1p: Function = logarithm(math.log1p, -1.0)
sin: Function = total(math.sin)
cos: Function = total(math.cos)
tan: Function = total(math.tan)
sinh: Function = total(math.sinh, overflow=lambda u: copysign(inf, u))
cosh: Function = total(math.cosh)
asin: Function = total(math.asin)
acos: Function = total(math.acos)
acosh: Function = total(math.acosh)
atanh: Function = total(math.atanh, pole=lambda u: copysign(inf, u) if abs(u) == 1 else nan)
hypot: Function = total(math.hypot)
floor: Function = rounding(math.floor)
ceiling: Function = rounding(math.ceil)
trunc: Function = rounding(math.trunc)
rint: Function = rounding(round)  # halves to the even value
fmod: Function = total(math.fmod)  # with the sign of the dividend
gamma: Function = total(math.gamma, pole=lambda u: copysign(inf, u) if u == 0 else nan)
lgamma: Function = total(math.lgamma, pole=lambda u: inf)
sqrt: Function = total(math.sqrt)
