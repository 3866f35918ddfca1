"""Functions of a complex number as formulas in its real and imaginary part, on numbers of a machine.

Each takes the parts x, y of the operand, and returns the parts of the result. Branch cuts and signs of zero are those
of C and NumPy: an imaginary part of -0 is below the cut.
"""

from __future__ import annotations

import math

from codegen.functions.formula_values import (
    MachineNumber as Number,
    atan2,
    copysign,
    cos,
    cosh,
    exp,
    expm1,
    hypot,
    log,
    log1p,
    maximum,
    minimum,
    sin,
    sinh,
    sqrt,
    tan,
    where,
)

Parts = tuple[Number, Number]

LARGEST_EXPONENT = 709.0  # exp overflows soon above; the rest of the exponent is a factor of its own
HUGE, SHRINK = 1e300, 2.0**-10  # the distance of two larger numbers may overflow
TANH_IS_ONE = 22.0  # from here on 1 - tanh(x) is below half a unit in the last place


def multiply(a: Parts, b: Parts) -> Parts:
    """(a.x + i a.y)(b.x + i b.y)."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def divide(a: Parts, b: Parts) -> Parts:
    """Smith's quotient, scaled by the larger part of the divisor against overflow; a / 0 is infinite or nan."""
    real_is_larger = abs(b[0]) >= abs(b[1])
    large, small = where(real_is_larger, b[0], b[1]), where(real_is_larger, b[1], b[0])
    by_zero = large.equals(0.0)
    ratio = where(by_zero, 0.0, small / large)
    divisor = where(by_zero, abs(large), large + small * ratio)
    first, second = where(real_is_larger, a[0], a[1]), where(real_is_larger, a[1], a[0])
    real, imaginary = (first + second * ratio) / divisor, (second - first * ratio) / divisor
    return real, where(real_is_larger, imaginary, -imaginary)


def square_root(x: Number, y: Number) -> Parts:
    """sqrt: the larger part without cancellation or overflow, the other one from y = 2 re im."""
    large = 2.0 * sqrt(0.125 * abs(x) + hypot(0.125 * x, 0.125 * y))
    special = large.equals(0.0) | abs(y).equals(math.inf)
    small = where(special, y, 0.5 * y / large)
    left = x < 0.0
    return where(left, abs(small), large), where(left, copysign(large, y), small)


def exponential(x: Number, y: Number) -> Parts:
    """e**x (cos y + i sin y), where e**x may overflow and its products not; a real operand stays real."""
    over = x > LARGEST_EXPONENT
    shift = where(over, LARGEST_EXPONENT, 0.0)
    factor = where(over, math.exp(LARGEST_EXPONENT), 1.0)
    size = exp(x - shift)
    real, imaginary = size * cos(y) * factor, size * sin(y) * factor
    flat = y.equals(0.0)
    return where(flat, size * factor, real), where(flat, y, imaginary)


def logarithm(x: Number, y: Number) -> Parts:
    """log |z| + i arg z; near |z| = 1 by log1p of |z|**2 - 1."""
    a, b = abs(x), abs(y)
    high, low = maximum(a, b), minimum(a, b)
    near = 0.5 * log1p((high - 1.0) * (high + 1.0) + low * low)
    huge = high > HUGE
    scale = where(huge, SHRINK, 1.0)
    lost = where(huge, -math.log(SHRINK), 0.0)
    distance = hypot(scale * x, scale * y)
    close = (distance > 0.71) & (distance < 1.73)
    return where(close, near, log(distance) + lost), atan2(y, x)


def logarithm_of_one_plus(x: Number, y: Number) -> Parts:
    """log(1 + z), exact to the last digits for small z."""
    near = 0.5 * log1p(x * (x + 2.0) + y * y)
    far, angle = logarithm(x + 1.0, y)
    return where(maximum(abs(x), abs(y)) < 0.5, near, far), angle


def exponential_less_one(x: Number, y: Number) -> Parts:
    """exp(z) - 1: expm1(x) cos y + (cos y - 1), exact to the last digits for small z."""
    half = sin(0.5 * y)
    versine = 2.0 * (half * half)
    shrunk = expm1(x)
    _, imaginary = exponential(x, y)
    return where(y.equals(0.0), shrunk, shrunk * cos(y) - versine), imaginary


def sine(x: Number, y: Number) -> Parts:
    """sin x cosh y + i cos x sinh y."""
    return _product(sin(x), cosh(y)), cos(x) * sinh(y)


def cosine(x: Number, y: Number) -> Parts:
    """cos x cosh y - i sin x sinh y."""
    return cos(x) * cosh(y), -_product(sin(x), sinh(y))


def _product(u: Number, v: Number) -> Number:
    """u v, 0 for u = 0 even where v has overflowed."""
    return where(u.equals(0.0), u * copysign(minimum(abs(v), 1.0), v), u * v)


def hyperbolic_sine(x: Number, y: Number) -> Parts:
    """sinh x cos y + i cosh x sin y."""
    imaginary, real = sine(y, x)
    return real, imaginary


def hyperbolic_cosine(x: Number, y: Number) -> Parts:
    """cosh x cos y + i sinh x sin y."""
    real, imaginary = cosine(y, x)
    return real, -imaginary


def hyperbolic_tangent(x: Number, y: Number) -> Parts:
    """Kahan's formula: no cancellation near the zeros and poles; +-1 and a tail where sinh would overflow."""
    t, s = tan(y), sinh(x)
    beta = 1.0 + t * t
    rho = sqrt(1.0 + s * s)
    divisor = 1.0 + beta * (s * s)
    real, imaginary = beta * (rho * s) / divisor, t / divisor
    decay = exp(-abs(x))
    tail = 4.0 * (sin(y) * cos(y) * (decay * decay))
    far = abs(x) >= TANH_IS_ONE
    return where(far, copysign(x.constant(1.0), x), real), where(far, tail, imaginary)


def tangent(x: Number, y: Number) -> Parts:
    """tan z = -i tanh(i z)."""
    imaginary, real = hyperbolic_tangent(y, x)
    return real, imaginary


def power(base: Parts, exponent: Parts) -> Parts:
    """exp(w log z); z**0 is 1, and 0**w is 0 where the real part of w is positive."""
    real, imaginary = exponential(*multiply(exponent, logarithm(*base)))
    none = exponent[1].equals(0.0) & exponent[0].equals(0.0)
    nothing = base[0].equals(0.0) & base[1].equals(0.0)
    vanishes = nothing & (exponent[0] > 0.0)
    at_zero = where(vanishes, 0.0, real), where(vanishes, 0.0, imaginary)
    return where(none, 1.0, at_zero[0]), where(none, 0.0, at_zero[1])
