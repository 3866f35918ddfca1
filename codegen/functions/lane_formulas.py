"""Lane formulas of exp, log, sine and related functions, in double or single precision, at most 1 ULP off.

Each is a reduction to a short interval, a polynomial (minimax, by Remez' algorithm), and the way back; where a rounding
before the last one would be felt, it is carried along as a second number. There are no branches: special arguments are
selected, or are left to a longer formula. A lane knows nothing of the others, so the bits of a result depend on its
argument alone. Angles that are huge and powers that are special have formulas for one number
(`codegen.functions.lane_table`).

Source of the reductions: J.-M. Muller, Elementary Functions, 3rd ed. (Birkhaeuser 2016), chapters 4 to 11; the form of
log(1 + f) with s = f/(2 + f) is that of P. T. P. Tang, ACM Trans. Math. Softw. 16 (1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from codegen.functions.formula_values import where
from codegen.functions.lane_values import LaneValue, estrin, fma, nearest, power_of_two, quick_two_sum, two_sum


def exp(x: LaneValue) -> LaneValue:
    """2**n (1 + r + r**2 q(r)), for normal results."""
    n, r, tail = _reduced(x)
    return _exponential(r, tail) * power_of_two(n)


def exp_of_any(x: LaneValue) -> LaneValue:
    return _scaled_exponential(*_reduced(x.clamp(*x.format.exp_range)))


def exp2(x: LaneValue) -> LaneValue:
    """The same with r = (x - n) log(2), for normal results."""
    n, r, tail = _reduced_to_base_two(x)
    return _exponential(r, tail) * power_of_two(n)


def exp2_of_any(x: LaneValue) -> LaneValue:
    return _scaled_exponential(*_reduced_to_base_two(x.clamp(*x.format.exp2_range)))


def _reduced_to_base_two(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    n, (ln2, rest) = nearest(x, 1.0), x.format.ln2
    fraction = x - n
    r = fraction * ln2
    return n, r, fma(fraction, rest, fma(fraction, ln2, -r))


def expm1(x: LaneValue) -> LaneValue:
    """2 (2**(n-1) expm1(r) + (2**(n-1) - 1/2)): n may be 1024."""
    n, r, tail = _reduced(x.clamp(x.format.least_expm1, x.format.exp_range[1]))
    total, rest = _shifted(*_minus_one(r, tail), power_of_two(n - 1.0), 0.5)
    return where(abs(x) < x.format.tiny, x, (total + rest) * 2.0)


Logarithm = Callable[[LaneValue, LaneValue], LaneValue]  # of 2**k (1 + f)


def _of_normal(logarithm: Logarithm) -> Callable[[LaneValue], LaneValue]:
    """Return a logarithm of normal positive x, with 1 + f between sqrt(1/2) and sqrt(2)."""

    def formula(x: LaneValue) -> LaneValue:
        k, m = exponent(x)
        return logarithm(k, m - 1.0)

    return formula


def _of_any(logarithm: Logarithm) -> Callable[[LaneValue], LaneValue]:
    return lambda x: _at_ends(logarithm(*exponent_of_any(x)), x, x)


def log1p(x: LaneValue) -> LaneValue:
    """log(u) + (1 + x - u)/u with u = 1 + x rounded; near zero f is x itself."""
    u, lost = two_sum(x, x.constant(1.0))
    value = logarithm_of_sum(u, lost, x, x.constant(0.0))
    return where(abs(x) < x.format.tiny, x, _at_ends(value, u, x))


def logarithm_of_sum(u: LaneValue, lost: LaneValue, x: LaneValue, x_rest: LaneValue) -> LaneValue:
    """log(1 + x + x_rest), where u + lost is 1 + x."""
    k, m = exponent(u)
    near = k.equals(0.0)
    correction = (where(near, 0.0, lost) + x_rest) / u
    return logarithm(k, where(near, x, m - 1.0), correction)


def sin(x: LaneValue) -> LaneValue:
    return sine_and_cosine(x)[0]


def cos(x: LaneValue) -> LaneValue:
    return sine_and_cosine(x)[1]


def sine_and_cosine(x: LaneValue) -> tuple[LaneValue, LaneValue]:
    sine, cosine = sine_and_cosine_of(*_angle(x))
    return where(abs(x) < x.format.tiny, x, sine), cosine


def sine_and_cosine_of(quadrant: LaneValue, r: LaneValue, tail: LaneValue) -> tuple[LaneValue, LaneValue]:
    """x = n pi/2 + r, and of sin(r) and cos(r) the one that n asks for, with its sign."""
    odd, odd_rest, even, even_rest = _sides(r, tail)
    odd, even = odd + odd_rest, even + even_rest
    turned = quadrant.put_word("and", 1).put_word("equal", 1)
    sine, cosine = where(turned, even, odd), where(turned, odd, even)
    return _turned(sine, quadrant), _turned(cosine, quadrant.put_word("iadd", 1))


def tan(x: LaneValue) -> LaneValue:
    return where(abs(x) < x.format.tiny, x, tangent_of(*_angle(x)))


def tangent_of(quadrant: LaneValue, r: LaneValue, tail: LaneValue) -> LaneValue:
    """sin(r)/cos(r), or -cos(r)/sin(r) for odd n; the quotient is corrected once."""
    parts = _sides(r, tail)
    odd, odd_rest = quick_two_sum(*parts[:2])
    even, even_rest = quick_two_sum(*parts[2:])
    turned = quadrant.put_word("and", 1).put_word("equal", 1)
    above, above_rest = where(turned, even, odd), where(turned, even_rest, odd_rest)
    below, below_rest = where(turned, -odd, even), where(turned, -odd_rest, even_rest)
    quotient, rest = quotient_of(above, above_rest, below, below_rest)
    return quotient + rest


def sinh(x: LaneValue) -> LaneValue:
    """(exp(|x|) - exp(-|x|))/2; near zero x + x**3 p(x**2)."""
    z = x * x
    total, rest = _halves(abs(x), -1.0)
    far = ((total + rest) * 4.0).signed_as(x)
    return where(abs(x) < 0.34, fma(x * z, estrin(x.format.hyperbolic_sine, z), x), far)


def cosh(x: LaneValue) -> LaneValue:
    """(exp(|x|) + exp(-|x|))/2."""
    total, rest = _halves(abs(x), 1.0)
    return (total + rest) * 4.0


def tanh(x: LaneValue) -> LaneValue:
    """e/(e + 2) with e = expm1(2 |x|) and its rounding error; the quotient is corrected once."""
    size = abs(x)
    n, r, tail = _reduced(size.at_most(x.format.one_tanh) * 2.0)
    e, e_rest = quick_two_sum(*_shifted(*_minus_one(r, tail), power_of_two(n), 1.0))
    below, below_rest = two_sum(e, e.constant(2.0))
    quotient, rest = quotient_of(e, e_rest, below, below_rest + e_rest)
    return where(size < x.format.tiny, x, (quotient + rest).signed_as(x))


def pow(x: LaneValue, y: LaneValue) -> LaneValue:
    """exp(y log(x)), the logarithm in two parts, for normal positive x."""
    e, e_rest = exponent_of_power(x, y)
    largest = x.format.largest_power
    n, value = exponential_in_parts(e.clamp(-largest, largest), e_rest)
    return value * power_of_two(n)


def exponential_in_parts(e: LaneValue, e_rest: LaneValue) -> tuple[LaneValue, LaneValue]:
    """n and exp(e + e_rest)/2**n, which is about 1."""
    n, r, tail = _reduced(e)
    p, p_rest = _minus_one(*two_sum(r, tail + e_rest))
    total, rest = quick_two_sum(e.constant(1.0), p)
    return n, total + (rest + p_rest)


def exponent_of_power(x: LaneValue, y: LaneValue) -> tuple[LaneValue, LaneValue]:
    """y log(x) in two parts."""
    k, m = exponent(x)
    return product_of(*long_logarithm(k, m - 1.0), y, x.constant(0.0))


def long_logarithm(k: LaneValue, f: LaneValue) -> tuple[LaneValue, LaneValue]:
    """k log(2) + log(1 + f) in two parts, with some 64 bits: 2 s + s (2/3 z + 2/5 z**2 + ...), z = s**2."""
    s, s_rest = quick_two_sum(*quotient_of(f, f.constant(0.0), *quick_two_sum(f.constant(2.0), f)))
    z = s * s
    z_rest = fma(s * 2.0, s_rest, fma(s, s, -z))
    c, c_rest = quick_two_sum(f.constant(f.format.two_thirds[0]), z * estrin(f.format.long_logarithm, z))
    v, v_rest = product_of(z, z_rest, c, c_rest + f.format.two_thirds[1])
    g, g_rest = product_of(s, s_rest, v, v_rest)
    h, h_rest = quick_two_sum(s * 2.0, g)
    high, low = f.format.ln2_high
    total, rest = quick_two_sum(k * high, h)
    return quick_two_sum(total, rest + fma(k, low, h_rest + fma(s_rest, 2.0, g_rest)))


def product_of(a: LaneValue, a_rest: LaneValue, b: LaneValue, b_rest: LaneValue) -> tuple[LaneValue, LaneValue]:
    """A product of numbers in two parts, in two parts."""
    product = a * b
    return product, fma(a, b, -product) + fma(a, b_rest, a_rest * b)


def quotient_of(
    above: LaneValue, above_rest: LaneValue, below: LaneValue, below_rest: LaneValue
) -> tuple[LaneValue, LaneValue]:
    """A quotient of numbers in two parts, in two parts."""
    inverse = below.constant(1.0) / below
    quotient = above * inverse
    return quotient, (fma(-quotient, below, above) + (above_rest - quotient * below_rest)) * inverse


def _exponential(r: LaneValue, tail: LaneValue) -> LaneValue:
    return r + fma(r * r, estrin(r.format.exponential, r), tail) + 1.0


def _scaled_exponential(n: LaneValue, r: LaneValue, tail: LaneValue) -> LaneValue:
    """2**n exp(r + tail) with 2**n in two factors: it may be too large or too small."""
    half = nearest(n, 0.5)
    return _exponential(r, tail) * power_of_two(half) * power_of_two(n - half)


def _halves(size: LaneValue, sign: float) -> tuple[LaneValue, LaneValue]:
    """(exp(size) + sign exp(-size))/8, in two parts: exp(size) alone may be too large."""
    n, r, tail = _reduced(size.at_most(size.format.largest_sinh))
    p, p_rest = quick_two_sum(*_minus_one(r, tail))
    e, e_rest = quick_two_sum(size.constant(1.0), p)
    scale = power_of_two(n - 3.0)
    large, large_rest = e * scale, (e_rest + p_rest) * scale
    small = large.constant(sign / 64) / large
    small_rest = (fma(-small, large, sign / 64) - small * large_rest) * (small * (sign * 64))
    total, lost = quick_two_sum(large, small)
    return total, lost + (large_rest + small_rest)


def _reduced(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """n, r and the rounding error of r, with x = n log(2) + r."""
    high, low = x.format.ln2_high
    n = nearest(x, 1 / math.log(2.0))
    start = fma(n, -high, x)
    r = fma(n, -low, start)
    return n, r, fma(n, -low, start - r)


def _minus_one(r: LaneValue, tail: LaneValue) -> tuple[LaneValue, LaneValue]:
    """exp(r + tail) - 1 in two parts: r + r**2/2, and the rest."""
    square = r * r
    lost = fma(fma(r, r, -square), 0.5, fma(tail, r, tail))
    total, rest = quick_two_sum(r, square * 0.5)
    return total, rest + fma(r * square, estrin(r.format.exponential[1:], r), lost)


def _shifted(p: LaneValue, rest: LaneValue, scale: LaneValue, one: float) -> tuple[LaneValue, LaneValue]:
    """scale (p + rest) + (scale - one), in two parts."""
    above = scale - one
    total, lost = two_sum(above, scale * p)
    return total, fma(scale, rest, lost + ((scale - above) - one))


def exponent_of_any(x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """k and f with x = 2**k (1 + f), for subnormal x too."""
    small, shift = x < x.format.subnormal, float(x.format.fraction + 2)
    k, m = exponent(where(small, x * 2.0**shift, x))
    return where(small, k - shift, k), m - 1.0


def exponent(x: LaneValue) -> tuple[LaneValue, LaneValue]:
    """k and m with x = 2**k m and sqrt(1/2) <= m < sqrt(2), for normal positive x."""
    form, one = x.format, 2.0**x.format.fraction
    least = form.bits_of(math.sqrt(0.5))
    moved = x.bits().put_word("iadd", form.bits_of(1.0) - least)
    k = moved.put_word("lshr", form.fraction).put_word("or", form.bits_of(one)).of_bits() - (one + form.bias)
    return k, moved.put_word("and", 2**form.fraction - 1).put_word("iadd", least).of_bits()


def logarithm(k: LaneValue, f: LaneValue, correction: LaneValue | None = None) -> LaneValue:
    """k log(2) + log(1 + f) + correction."""
    high, low = f.format.ln2_high
    total, rest = quick_two_sum(k * high, f)
    return total + _series(f, fma(k, low, rest if correction is None else rest + correction))


def _series(f: LaneValue, rest: LaneValue) -> LaneValue:
    """log(1 + f) - f + rest."""
    s = f / (f + 2.0)
    z = s * s
    square = f * f * 0.5
    return fma(s, fma(z, estrin(f.format.logarithm, z), square), rest) - square


def _logarithm_to_base(f: LaneValue, factor: tuple[float, float]) -> tuple[LaneValue, LaneValue]:
    """factor * log(1 + f), in two parts."""
    log, rest = quick_two_sum(f, _series(f, f.constant(0.0)))
    product = log * factor[0]
    return product, fma(log, factor[0], -product) + fma(log, factor[1], rest * factor[0])


def _binary_logarithm(k: LaneValue, f: LaneValue) -> LaneValue:
    """k + log(1 + f)/log(2)."""
    product, rest = _logarithm_to_base(f, f.format.log2_e)
    total, lost = quick_two_sum(k, product)
    return total + (lost + rest)


def _decimal_logarithm(k: LaneValue, f: LaneValue) -> LaneValue:
    """k log10(2) + log(1 + f)/log(10)."""
    product, rest = _logarithm_to_base(f, f.format.log10_e)
    high, low = f.format.log10_2
    total, lost = quick_two_sum(k * high, product)
    return total + (lost + fma(k, low, rest))


def _at_ends(value: LaneValue, u: LaneValue, x: LaneValue) -> LaneValue:
    """A logarithm of u, where it is a number: -inf for 0, nan below; infinity and nan are x."""
    value = where(u < math.inf, value, x)
    value = where(u.equals(0.0), -math.inf, value)
    return where(u < 0.0, math.nan, value)


def _angle(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """The bits of n, and r with its rounding error, where x = n pi/2 + r.

    x - n first is exact: both are multiples of the same power of two, and close to each other.
    """
    first, second, third = x.format.half_pi
    shifted = fma(x, 2 / math.pi, x.format.shift)
    n = shifted - x.format.shift
    start = fma(n, -first, x)
    product = n * -second
    lost = fma(n, -second, -product)
    total, rest = two_sum(start, product)
    return shifted.bits(), total, fma(n, -third, rest + lost)


def _sides(r: LaneValue, tail: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue, LaneValue]:
    """sin(r + tail) and cos(r + tail), each in two parts."""
    z = r * r
    odd_rest = fma(r * z, estrin(r.format.sine, z), tail * fma(z, -0.5, 1.0))
    half = z * 0.5
    even = -half + 1.0
    lost = fma(r, tail, fma(r, r, -z) * 0.5)
    return r, odd_rest, even, ((-even + 1.0) - half) + (z * z * estrin(r.format.cosine, z) - lost)


def _turned(value: LaneValue, quadrant: LaneValue) -> LaneValue:
    """The negative in the third and fourth quadrant."""
    sign = quadrant.put_word("and", 2).put_word("shl", value.format.bits - 2)
    return value.bits().put("xor", sign).of_bits()


log, log_of_any = _of_normal(logarithm), _of_any(logarithm)
log2, log2_of_any = _of_normal(_binary_logarithm), _of_any(_binary_logarithm)
log10, log10_of_any = _of_normal(_decimal_logarithm), _of_any(_decimal_logarithm)
