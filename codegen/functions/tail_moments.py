"""Moments of log u for u from a tail of a gamma or beta distribution (see `codegen.distribution_heads`).

Quotients of two integrals over the logarithm (gamma) or the logit (beta) of t, which have their maximum at or near u
and fall off on one side of it. A trapezoidal rule after the substitution y = exp(x - exp(-x)) takes all shapes of such
a slope alike: M. Mori, Discovery of the double exponential transformation and its developments, Publ. RIMS 41 (2005).
Its unit is where the integrand has fallen to about 1/e. Quotients keep the digits that a power of u over gamma(a)
loses.
"""

from __future__ import annotations

import math

from codegen.functions.formula_values import (
    MachineNumber as Number,
    exp,
    expm1,
    log1p,
    maximum,
    reciprocal,
    sqrt,
    where,
)
from codegen.functions.recurrences import constant_order

STEP = 1.0 / 16.0
_PLACES = [math.exp(k * STEP - math.exp(-k * STEP)) for k in range(-57, 69)]
NODES = [(y, y * (1.0 + math.exp(-k * STEP))) for k, y in zip(range(-57, 69), _PLACES, strict=True)]  # and weights


def gamma_moment(order: Number, a: Number, u: Number) -> Number:
    """The mean of ln(t/u)**n beside u for a constant n; the hazard u p(u)/T for n = 0.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(gamma_moment)(0, 1.0, 1.0), 12) == round(1 / (math.e - 1), 12)  # P(u) = 1 - exp(-u)
    True
    """
    n = constant_order(order, "gamma_moment")
    lower = (u <= a) | (u <= 1.0)
    gap, root = a - u, sqrt(u)
    rate = where(lower, where(u <= 1.0, a, maximum(gap, 0.0) + root), root - gap)
    scale = reciprocal(rate)
    sign = where(lower, u.constant(-1.0), 1.0)
    step = sign * scale
    whole = part = u.constant(0.0)
    for y, weight in NODES:
        w = y * step
        height = exp(a * w - u * expm1(w))
        whole = whole + weight * height
        part = part + weight * y**n * height
    result = _raised(step, n) * (part / whole) if n else -sign / (scale * STEP * whole)
    return where((a > 0.0) & (u >= 0.0), result, math.nan)


def beta_moment(first: Number, second: Number, a: Number, b: Number, u: Number) -> Number:
    """The mean of ln(t/u)**m ln((1-t)/(1-u))**n beside u for constant m and n; the hazard for m = n = 0.

    >>> from codegen.functions.function_rows import on_floats
    >>> round(on_floats(beta_moment)(1, 0, 1.0, 1.0, 0.25), 12)  # of what is uniform
    -1.0
    """
    m, n = constant_order(first, "beta_moment"), constant_order(second, "beta_moment")
    top = maximum(a, 1.0)
    lower = u * (top + maximum(b, 1.0)) <= top
    p, q = where(lower, a, b), where(lower, b, a)
    x, rest = where(lower, u, 1.0 - u), where(lower, 1.0 - u, u)
    curvature = (p + q) * x * rest
    bend = where(curvature > 1.0, sqrt(curvature), curvature)
    scale = reciprocal(where(p < 1.0, p, maximum(p * rest - q * x, 0.0) + bend))
    whole = part = u.constant(0.0)
    for y, weight in NODES:
        away = y * scale
        over = -log1p(x * expm1(-away))
        w = over - away
        height = weight * exp(p * w + q * over)
        whole = whole + height
        if m or n:
            left, right = where(lower, w, over), where(lower, over, w)
            factors = [_raised(value, power) for value, power in ((left, m), (right, n)) if power]
            part = part + height * (factors[0] if len(factors) == 1 else factors[0] * factors[1])
    result = part / whole if m or n else where(lower, u.constant(1.0), -1.0) / (scale * STEP * whole)
    return where((a > 0.0) & (b > 0.0) & (u >= 0.0) & (u <= 1.0), result, math.nan)


def _raised(value: Number, power: int) -> Number:
    result = value
    for _ in range(power - 1):
        result = result * value
    return result
