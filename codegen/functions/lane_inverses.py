"""Lane formulas of asin, acos, atan, the inverse hyperbolic functions, cbrt and hypot.

Written like `codegen.functions.lane_formulas`: reductions, polynomials, and the way back, without branches.

Sources: J.-M. Muller, Elementary Functions, 3rd ed. (Birkhaeuser 2016), chapters 4 and 10, for arcs; T. J. Dekker,
Numer. Math. 18 (1971), for square roots in two parts. The cube root is a step of Halley's iteration for a**(-1/3), and
one of Newton's for its result.
"""

from __future__ import annotations

import math

from codegen.functions.formula_values import where
from codegen.functions.lane_formulas import (
    exponent,
    exponent_of_any,
    logarithm,
    logarithm_of_sum,
    product_of,
    quotient_of,
)
from codegen.functions.lane_values import LaneValue, estrin, fma, nearest, power_of_two, quick_two_sum, two_sum

NEAR_POWER = (1.7307065725326538, -1.285719633102417, 0.7133276462554932, -0.15853546559810638)
"""Of m**(-1/3) for sqrt(1/2) <= m < sqrt(2), with a relative error below 3e-4."""


def asin(x: LaneValue) -> LaneValue:
    """pi/2 - 2 asin(sqrt((1 - |x|)/2)) from 1/2 on."""
    size = abs(x)
    s, s_rest, p, far = _arc(size)
    half_pi, half_rest, _ = x.format.half_pi
    base, base_rest, factor = where(far, half_pi, 0.0), where(far, half_rest, 0.0), where(far, -2.0, 1.0)
    total, lost = quick_two_sum(base, factor * s)
    return (total + (lost + fma(factor, p + s_rest, base_rest))).signed_as(x)


def acos(x: LaneValue) -> LaneValue:
    """2 asin(sqrt((1 - x)/2)) from 1/2 on, pi less that of -x up to -1/2, and pi/2 - asin(x) between them."""
    s, s_rest, p, far = _arc(x)
    half_pi, half_rest, _ = x.format.half_pi
    left = x < 0.0
    base = where(far, where(left, 2.0, 0.0), 1.0)
    factor = where(far, where(left, -2.0, 2.0), -1.0)
    total, lost = quick_two_sum(base * half_pi, factor * s)
    return total + (lost + fma(factor, p + s_rest, base * half_rest))


def _arc(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue, LaneValue]:
    """s and its rounding error, asin(s) - s, and whether |x| > 1/2: then s is sqrt((1 - |x|)/2), else x."""
    size = abs(x)
    far = size > 0.5
    z = where(far, (1.0 - size) * 0.5, x * x)
    root, root_rest = _root(z, x.constant(0.0))
    s = where(far, root, x)
    return s, where(far, root_rest, 0.0), s * z * estrin(x.format.arcsine, z), far


def atan(x: LaneValue) -> LaneValue:
    """atan(c) + atan(t) with t = (|x| - c)/(1 + c |x|) for c = 0, 1 and infinity, so that |t| < tan(pi/8)."""
    size = abs(x).at_most(x.format.flat_atan)
    zero, one = x.constant(0.0), x.constant(1.0)
    middle, far = size > math.tan(math.pi / 8), size > math.tan(3 * math.pi / 8)
    less, less_rest = two_sum(size, -one)
    more, more_rest = two_sum(size, one)
    above, below = where(far, -one, where(middle, less, size)), where(far, size, where(middle, more, one))
    above_rest = where(far, zero, where(middle, less_rest, zero))
    below_rest = where(far, zero, where(middle, more_rest, zero))
    t, t_rest = quotient_of(above, above_rest, below, below_rest)
    half_pi, half_rest, _ = x.format.half_pi
    base = where(far, half_pi, where(middle, half_pi / 2, zero))
    base_rest = where(far, half_rest, where(middle, half_rest / 2, zero))
    return _arc_tangent(base, base_rest, t, t_rest).signed_as(x)


def _arc_tangent(base: LaneValue, base_rest: LaneValue, t: LaneValue, t_rest: LaneValue) -> LaneValue:
    """base + atan(t), each in two parts."""
    z = t * t
    total, lost = quick_two_sum(base, t)
    return total + (lost + fma(t * z, estrin(t.format.arctangent, z), base_rest + t_rest))


def atan2(y: LaneValue, x: LaneValue) -> LaneValue:
    """k pi/4 + atan(t) or k pi/4 - atan(t), with t a quotient of the smaller number or of (smaller - larger)."""
    width, height = abs(x), abs(y)
    steep = height > width
    smaller, larger = where(steep, width, height), where(steep, height, width)
    flat = larger.equals(math.inf)
    smaller = where(flat, where(smaller < math.inf, 0.0, where(smaller.equals(math.inf), 1.0, smaller)), smaller)
    zero = larger.equals(0.0)
    larger = where(flat, 1.0, where(zero, 1.0, larger))
    scale, _ = _scales(larger)
    a, b = smaller * scale, larger * scale
    middle = a > b * math.tan(math.pi / 8)
    less, less_rest = two_sum(a, -b)
    more, more_rest = two_sum(a, b)
    t, t_rest = quotient_of(
        where(middle, less, a), where(middle, less_rest, 0.0), where(middle, more, b), where(middle, more_rest, 0.0)
    )
    turned = x.constant(1.0).signed_as(x) < 0.0
    k = where(middle, 1.0, 0.0)
    k = where(steep, 2.0 - k, k)
    k = where(turned, 4.0 - k, k)
    sign = where(steep, -1.0, 1.0)
    sign = where(turned, -sign, sign)
    half_pi, half_rest, _ = x.format.half_pi
    base = k * (half_pi / 2)
    base_rest = fma(k, half_rest / 2, fma(k, half_pi / 2, -base))
    value = _arc_tangent(base, base_rest, sign * t, sign * t_rest).signed_as(y)
    small = where(k.equals(0.0), t, 1.0) < x.format.tiny  # here the quotient itself, which may be subnormal
    return where(small, y / where(zero, 1.0, x), value)


def asinh(x: LaneValue) -> LaneValue:
    """log(1 + w) with w = |x| + x**2/(1 + sqrt(1 + x**2)); log(2 |x|) where x is large."""
    size = abs(x)
    far = size > x.format.large_root
    c = where(far, 1.0, size)
    z = c * c
    z_rest = fma(c, c, -z)
    total, lost = two_sum(z, z.constant(1.0))
    root, root_rest = _root(total, lost + z_rest)
    below, below_rest = quick_two_sum(root, root.constant(1.0))
    q, q_rest = quotient_of(z, z_rest, below, below_rest + root_rest)
    w, w_rest = quick_two_sum(c, q)
    value = _logarithm_or_far(w, w_rest + q_rest, far, size)
    return where(size < x.format.tiny, x, where(size < math.inf, value, size).signed_as(x))


def acosh(x: LaneValue) -> LaneValue:
    """log(1 + w) with w = t + sqrt(t (2 + t)) and t = x - 1; log(2 x) where x is large."""
    far = x > x.format.large_root
    t, t_rest = two_sum(where(far, 1.0, x), x.constant(-1.0))
    more, more_rest = two_sum(t, t.constant(2.0))
    root, root_rest = _root(*product_of(t, t_rest, more, more_rest + t_rest))
    w, w_rest = two_sum(t, root)
    value = _logarithm_or_far(w, w_rest + (root_rest + t_rest), far, x)
    return where(x < 1.0, math.nan, where(x < math.inf, value, x))


def atanh(x: LaneValue) -> LaneValue:
    """log(1 + w)/2 with w = 2 |x|/(1 - |x|)."""
    size = abs(x)
    below, below_rest = two_sum(x.constant(1.0), -size)
    w, w_rest = quotient_of(size * 2.0, x.constant(0.0), below, below_rest)
    value = logarithm_of_sum(*two_sum(w, w.constant(1.0)), w, w_rest) * 0.5
    value = where(size < 1.0, value, where(size.equals(1.0), math.inf, math.nan))
    return where(size < x.format.tiny, x, value.signed_as(x))


def _logarithm_or_far(w: LaneValue, w_rest: LaneValue, far: LaneValue, size: LaneValue) -> LaneValue:
    """log(1 + w + w_rest), or log(2 size) where it is far."""
    near = logarithm_of_sum(*two_sum(w, w.constant(1.0)), w, w_rest)
    k, m = exponent(size)
    return where(far, logarithm(k + 1.0, m - 1.0), near)


def hypot(x: LaneValue, y: LaneValue) -> LaneValue:
    """The root of x**2 + y**2 in two parts, both divided by a power of two before."""
    width, height = abs(x), abs(y)
    steep = height > width
    smaller, larger = where(steep, width, height), where(steep, height, width)
    scale, inverse = _scales(larger)
    a, b = larger * scale, smaller * scale
    first, second = a * a, b * b
    total, lost = quick_two_sum(first, second)
    root, rest = _root(total, lost + (fma(a, a, -first) + fma(b, b, -second)))
    value = (root + rest) * inverse
    return where(width.equals(math.inf), math.inf, where(height.equals(math.inf), math.inf, value))


def cbrt(x: LaneValue) -> LaneValue:
    """2**q y with |x| = 2**(3 q) a, and y = a r**2 with r = a**(-1/3)."""
    size = abs(x)
    k, f = exponent_of_any(size)
    q = nearest(k, 1 / 3)
    j = fma(q, -3.0, k)
    m = f + 1.0
    a = m * power_of_two(j)
    r = estrin(NEAR_POWER, m) * where(j > 0.0, 2 ** (-1 / 3), where(j < 0.0, 2 ** (1 / 3), 1.0))
    e = fma(a * r, -(r * r), 1.0)
    r = fma(r * e, fma(e, 2 / 9, 1 / 3), r)
    y = a * (r * r)
    square = y * y
    cube = square * y
    lost = fma(square, y, -cube) + fma(y, y, -square) * y
    value = fma((a - cube) - lost, r * r * (1 / 3), y) * power_of_two(q)
    return where(size.equals(0.0), x, where(size < math.inf, value.signed_as(x), x))


def _root(a: LaneValue, a_rest: LaneValue) -> tuple[LaneValue, LaneValue]:
    """A square root in two parts, of a number in two parts."""
    root = a.sqrt()
    return root, (fma(-root, root, a) + a_rest) / where(root > 0.0, root + root, 1.0)


def _scales(x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """2**-k and 2**k, with which x is about 1 but for the ends of the range; both are normal."""
    form = x.format
    inside = x.clamp(form.subnormal, 2.0 ** (form.bias - 2))
    power = inside.bits().put_word("and", (2 * form.bias + 1) << form.fraction)
    inverse = power.put_word("xor", (2 * form.bias + 1) << form.fraction).put_word("iadd", -(1 << form.fraction))
    return inverse.of_bits(), power.of_bits()
