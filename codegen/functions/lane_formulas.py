"""Formulas of exp, log, sine and their relatives for all lanes of a vector, at most 1 ULP off.

Each is a reduction to a short interval, a polynomial (minimax, by Remez' algorithm), and the way back; where a rounding
before the last one would be felt, it is carried along as a second number. There are no branches: special arguments are
selected. A lane knows nothing of the others, so the bits of a result depend on its argument alone. Sine and cosine
of huge arguments are the C library's, which `codegen.emission.lane_functions` asks for those lanes.

Source of the reductions: J.-M. Muller, Elementary Functions, 3rd ed. (Birkhaeuser 2016), chapters 4 to 11; the form of
log(1 + f) with s = f/(2 + f) is that of P. T. P. Tang, ACM Trans. Math. Softw. 16 (1990).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from codegen.functions.lane_values import (
    Value,
    bits_of,
    estrin,
    fma,
    nearest,
    power_of_two,
    quick_two_sum,
    two_sum,
)

LN2 = 0.6931471805599453, 2.3190468138462996e-17  # rounded, and the rest
LOG2_E = 1.4426950408889634, 2.0355273740931033e-17
LOG10_E = 0.4342944819032518, 1.098319650216765e-17
LOG10_2 = 0.30102999566383914, 1.42050232272661e-13  # 42 bits and the rest, as in the next line
LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14  # 42 bits, so that n*LN2_HIGH is exact; and the rest
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)  # the sum has 161 bits
HUGE_ANGLE = 2.0**30  # from here on sine and cosine are those of the C library
TINY = 2.0**-54
SQRT_HALF = bits_of(math.sqrt(0.5))
MANTISSA = 2**52 - 1
SUBNORMAL = 2.0**-1022

# (exp(r) - 1 - r)/r**2 for |r| <= log(2)/2, relative error of exp(r) - 1 below 6e-19
EXPONENTIAL = (
    0.5, 0.16666666666666677, 0.0416666666666667, 0.008333333333321613, 0.0013888888888866722, 0.0001984126988616754,
    2.4801587360743605e-05, 2.7557244171805765e-06, 2.7557242622201404e-07, 2.5109048753558248e-08,
    2.092448096812919e-09,
)  # fmt: skip
# (2 atanh(s)/s - 2)/z with z = s**2, for s <= 3 - 2 sqrt(2), relative error of 2 atanh(s) below 2e-18
LOGARITHM = (
    0.6666666666666735, 0.3999999999941111, 0.285714287432593, 0.22222198476224617, 0.18183569732552068,
    0.1531390330949919, 0.14797508217516278,
)  # fmt: skip
# (sin(r)/r - 1)/z and (cos(r) - 1 + z/2)/z**2 with z = r**2, for |r| <= pi/4, relative errors below 7e-18 and 2e-18
SINE = (
    -0.16666666666666632, 0.00833333333332237, -0.00019841269829771148, 2.755731367863497e-06, -2.505075595431875e-08,
    1.5896666008223773e-10,
)  # fmt: skip
COSINE = (
    0.0416666666666666, -0.0013888888888874064, 2.480158728944356e-05, -2.7557314340675877e-07, 2.087572162503593e-09,
    -1.1359559353420913e-11,
)  # fmt: skip

# (atan(t)/t - 1)/z with z = t**2, for |t| <= tan(pi/8), relative error below 3e-18
ARCTANGENT = (
    -0.333333333333332, 0.1999999999995366, -0.14285714280203834, 0.11111110783807954, -0.09090897766945569,
    0.0769206036005106, -0.06663105441042826, 0.058478973123184744, -0.05039330557508313, 0.03806494970389946,
    -0.017907339485039225,
)  # fmt: skip
# (sinh(x)/x - 1)/z with z = x**2, for |x| <= 0.35, relative error below 2e-18
HYPERBOLIC_SINE = (
    0.16666666666666677, 0.008333333333320666, 0.00019841269888862435, 2.7557241197409536e-06, 2.5110166452160284e-08,
)  # fmt: skip


def exp(x: Value) -> Value:
    return _scaled_exponential(*_reduced(x.clamp(-746.0, 710.0)))


def exp2(x: Value) -> Value:
    """The same with r = (x - n) log(2)."""
    inside = x.clamp(-1080.0, 1030.0)
    n = nearest(inside, 1.0)
    fraction = inside - n
    r = fraction * LN2[0]
    return _scaled_exponential(n, r, fma(fraction, LN2[1], fma(fraction, LN2[0], -r)))


def expm1(x: Value) -> Value:
    """2 (2**(n-1) expm1(r) + (2**(n-1) - 1/2)): n may be 1024."""
    n, r, tail = _reduced(x.clamp(-45.0, 710.0))
    total, rest = _shifted(*_minus_one(r, tail), power_of_two(n - 1.0), 0.5)
    return x.where(abs(x) < TINY, (total + rest) * 2.0)


def log(x: Value) -> Value:
    """k log(2) + log(1 + f), with 1 + f between sqrt(1/2) and sqrt(2)."""
    k, f = _exponent_of_any(x)
    return _at_ends(_logarithm(k, f, x.constant(0.0)), x, x)


def log2(x: Value) -> Value:
    """k + log(1 + f)/log(2)."""
    k, product, rest = _logarithm_to_base(x, LOG2_E)
    total, lost = quick_two_sum(k, product)
    return _at_ends(total + (lost + rest), x, x)


def log10(x: Value) -> Value:
    """k log10(2) + log(1 + f)/log(10)."""
    k, product, rest = _logarithm_to_base(x, LOG10_E)
    total, lost = quick_two_sum(k * LOG10_2[0], product)
    return _at_ends(total + (lost + fma(k, LOG10_2[1], rest)), x, x)


def log1p(x: Value) -> Value:
    """log(u) + (1 + x - u)/u with u = 1 + x as it is rounded; near zero f is x itself."""
    u, lost = two_sum(x, x.constant(1.0))
    k, m = _exponent(u)
    near = k.equals(0.0)
    correction = x.constant(0.0).where(near, lost / u)
    value = _logarithm(k, x.where(near, m - 1.0), correction)
    return x.where(abs(x) < TINY, _at_ends(value, u, x))


def sin(x: Value) -> Value:
    return sine_and_cosine(x)[0]


def cos(x: Value) -> Value:
    return sine_and_cosine(x)[1]


def sine_and_cosine(x: Value) -> tuple[Value, Value]:
    """x = n pi/2 + r, and of sin(r) and cos(r) the one that n asks for, with its sign."""
    shifted, odd, odd_rest, even, even_rest = _sides(x)
    odd, even = odd + odd_rest, even + even_rest
    turned = shifted.put_word("and", 1).put_word("equal", 1)
    sine, cosine = even.where(turned, odd), odd.where(turned, even)
    return x.where(abs(x) < TINY, _turned(sine, shifted)), _turned(cosine, shifted.put_word("iadd", 1))


def tan(x: Value) -> Value:
    """sin(r)/cos(r), or -cos(r)/sin(r) for odd n; the quotient is corrected once."""
    shifted, *parts = _sides(x)
    odd, odd_rest = quick_two_sum(*parts[:2])
    even, even_rest = quick_two_sum(*parts[2:])
    turned = shifted.put_word("and", 1).put_word("equal", 1)
    above, above_rest = even.where(turned, odd), even_rest.where(turned, odd_rest)
    below, below_rest = (-odd).where(turned, even), (-odd_rest).where(turned, even_rest)
    quotient, rest = _quotient(above, above_rest, below, below_rest)
    return x.where(abs(x) < TINY, quotient + rest)


def atan(x: Value) -> Value:
    """atan(c) + atan(t) with t = (|x| - c)/(1 + c |x|) for c = 0, 1 and infinity, so that |t| < tan(pi/8)."""
    size = abs(x).at_most(2.0**70)
    zero, one = x.constant(0.0), x.constant(1.0)
    middle, far = size > math.tan(math.pi / 8), size > math.tan(3 * math.pi / 8)
    less, less_rest = two_sum(size, -one)
    more, more_rest = two_sum(size, one)
    above, below = (-one).where(far, less.where(middle, size)), size.where(far, more.where(middle, one))
    above_rest = zero.where(far, less_rest.where(middle, zero))
    below_rest = zero.where(far, more_rest.where(middle, zero))
    t, t_rest = _quotient(above, above_rest, below, below_rest)
    base = x.constant(HALF_PI[0]).where(far, x.constant(HALF_PI[0] / 2).where(middle, zero))
    base_rest = x.constant(HALF_PI[1]).where(far, x.constant(HALF_PI[1] / 2).where(middle, zero))
    z = t * t
    total, lost = quick_two_sum(base, t)
    return (total + (lost + fma(t * z, estrin(ARCTANGENT, z), base_rest + t_rest))).signed_as(x)


def sinh(x: Value) -> Value:
    """(exp(|x|) - exp(-|x|))/2; near zero x + x**3 p(x**2)."""
    z = x * x
    total, rest = _halves(abs(x), -1.0)
    far = ((total + rest) * 4.0).signed_as(x)
    return fma(x * z, estrin(HYPERBOLIC_SINE, z), x).where(abs(x) < 0.34, far)


def cosh(x: Value) -> Value:
    """(exp(|x|) + exp(-|x|))/2."""
    total, rest = _halves(abs(x), 1.0)
    return (total + rest) * 4.0


def tanh(x: Value) -> Value:
    """e/(e + 2) with e = expm1(2 |x|) and its rounding error; the quotient is corrected once."""
    size = abs(x)
    n, r, tail = _reduced(size.at_most(20.0) * 2.0)
    e, e_rest = quick_two_sum(*_shifted(*_minus_one(r, tail), power_of_two(n), 1.0))
    below, below_rest = two_sum(e, e.constant(2.0))
    quotient, rest = _quotient(e, e_rest, below, below_rest + e_rest)
    return x.where(size < TINY, (quotient + rest).signed_as(x))


def _quotient(above: Value, above_rest: Value, below: Value, below_rest: Value) -> tuple[Value, Value]:
    """A quotient of numbers in two parts, in two parts."""
    inverse = below.constant(1.0) / below
    quotient = above * inverse
    return quotient, (fma(-quotient, below, above) + (above_rest - quotient * below_rest)) * inverse


def _scaled_exponential(n: Value, r: Value, tail: Value) -> Value:
    """2**n (1 + r + r**2 q(r)); 2**n in two factors, so that subnormal results are rounded once."""
    half = nearest(n, 0.5)
    return (r + fma(r * r, estrin(EXPONENTIAL, r), tail) + 1.0) * power_of_two(half) * power_of_two(n - half)


def _halves(size: Value, sign: float) -> tuple[Value, Value]:
    """(exp(size) + sign exp(-size))/8, in two parts: exp(size) alone may be too large."""
    n, r, tail = _reduced(size.at_most(711.0))
    p, p_rest = quick_two_sum(*_minus_one(r, tail))
    e, e_rest = quick_two_sum(size.constant(1.0), p)
    scale = power_of_two(n - 3.0)
    large, large_rest = e * scale, (e_rest + p_rest) * scale
    small = large.constant(sign / 64) / large
    small_rest = (fma(-small, large, sign / 64) - small * large_rest) * (small * (sign * 64))
    total, lost = quick_two_sum(large, small)
    return total, lost + (large_rest + small_rest)


def _reduced(x: Value) -> tuple[Value, Value, Value]:
    """n, r and the rounding error of r, with x = n log(2) + r."""
    n = nearest(x, 1 / math.log(2.0))
    start = fma(n, -LN2_HIGH, x)
    r = fma(n, -LN2_LOW, start)
    return n, r, fma(n, -LN2_LOW, start - r)


def _minus_one(r: Value, tail: Value) -> tuple[Value, Value]:
    """exp(r + tail) - 1, in two parts: r + r**2/2, and what is left."""
    square = r * r
    lost = fma(fma(r, r, -square), 0.5, fma(tail, r, tail))
    total, rest = quick_two_sum(r, square * 0.5)
    return total, rest + fma(r * square, estrin(EXPONENTIAL[1:], r), lost)


def _shifted(p: Value, rest: Value, scale: Value, one: float) -> tuple[Value, Value]:
    """scale (p + rest) + (scale - one), in two parts."""
    above = scale - one
    total, lost = two_sum(above, scale * p)
    return total, fma(scale, rest, lost + ((scale - above) - one))


def _exponent_of_any(x: Value) -> tuple[Value, Value]:
    """k and f with x = 2**k (1 + f), for subnormal x too."""
    small = x < SUBNORMAL
    k, m = _exponent((x * 2.0**54).where(small, x))
    return (k - 54.0).where(small, k), m - 1.0


def _exponent(x: Value) -> tuple[Value, Value]:
    """k and m with x = 2**k m and sqrt(1/2) <= m < sqrt(2), for normal positive x."""
    moved = x.bits().put_word("iadd", bits_of(1.0) - SQRT_HALF)
    k = moved.put_word("lshr", 52).put_word("or", bits_of(2.0**52)).of_bits() - (2.0**52 + 1023.0)
    return k, moved.put_word("and", MANTISSA).put_word("iadd", SQRT_HALF).of_bits()


def _logarithm(k: Value, f: Value, correction: Value) -> Value:
    """k log(2) + log(1 + f) + correction."""
    total, rest = quick_two_sum(k * LN2_HIGH, f)
    return total + _series(f, fma(k, LN2_LOW, rest + correction))


def _series(f: Value, rest: Value) -> Value:
    """log(1 + f) - f + rest."""
    s = f / (f + 2.0)
    z = s * s
    square = f * f * 0.5
    return fma(s, fma(z, estrin(LOGARITHM, z), square), rest) - square


def _logarithm_to_base(x: Value, factor: tuple[float, float]) -> tuple[Value, Value, Value]:
    """k, and factor * log(1 + f) in two parts."""
    k, f = _exponent_of_any(x)
    log, rest = quick_two_sum(f, _series(f, x.constant(0.0)))
    product = log * factor[0]
    return k, product, fma(log, factor[0], -product) + fma(log, factor[1], rest * factor[0])


def _at_ends(value: Value, u: Value, x: Value) -> Value:
    """A logarithm of u, where it is a number: -inf for 0, nan below; infinity and nan are x."""
    value = value.where(u < math.inf, x)
    value = x.constant(-math.inf).where(u.equals(0.0), value)
    return x.constant(math.nan).where(u < 0.0, value)


def _angle(x: Value) -> tuple[Value, Value, Value]:
    """The bits of n, and r with its rounding error, where x = n pi/2 + r.

    x - n HALF_PI[0] is exact: both are multiples of the same power of two, and close to each other.
    """
    shifted = fma(x, 2 / math.pi, 1.5 * 2.0**52)
    n = shifted - 1.5 * 2.0**52
    start = fma(n, -HALF_PI[0], x)
    product = n * -HALF_PI[1]
    lost = fma(n, -HALF_PI[1], -product)
    total, rest = two_sum(start, product)
    return shifted.bits(), total, fma(n, -HALF_PI[2], rest + lost)


def _sides(x: Value) -> tuple[Value, Value, Value, Value, Value]:
    """The bits of n, then sin(r) and cos(r), each in two parts, where x = n pi/2 + r."""
    shifted, r, tail = _angle(x)
    z = r * r
    odd_rest = fma(r * z, estrin(SINE, z), tail * fma(z, -0.5, 1.0))
    half = z * 0.5
    even = -half + 1.0
    lost = fma(r, tail, fma(r, r, -z) * 0.5)
    return shifted, r, odd_rest, even, ((-even + 1.0) - half) + (z * z * estrin(COSINE, z) - lost)


def _turned(value: Value, quadrant: Value) -> Value:
    """The negative in the third and fourth quadrant."""
    sign = quadrant.put_word("and", 2).put_word("shl", 62)
    return value.bits().put("xor", sign).of_bits()


@dataclass(frozen=True, slots=True)
class LaneFunction:
    """A formula, its bound in ULP, measured at some 100,000 points, and from which size on the C library is asked."""

    formula: Callable[[Value], Value]
    ulp: float
    largest: float = math.inf


# By the symbol of the scalar function.
FORMULAS: dict[str, LaneFunction] = {
    "exp": LaneFunction(exp, 0.85),
    "exp2": LaneFunction(exp2, 0.85),
    "expm1": LaneFunction(expm1, 0.75),
    "log": LaneFunction(log, 0.85),
    "log2": LaneFunction(log2, 0.85),
    "log10": LaneFunction(log10, 0.85),
    "log1p": LaneFunction(log1p, 0.85),
    "llvm.sin.f64": LaneFunction(sin, 0.75, HUGE_ANGLE),
    "llvm.cos.f64": LaneFunction(cos, 0.85, HUGE_ANGLE),
    "tan": LaneFunction(tan, 0.85, HUGE_ANGLE),
    "atan": LaneFunction(atan, 0.85),
    "sinh": LaneFunction(sinh, 0.65),
    "cosh": LaneFunction(cosh, 0.65),
    "tanh": LaneFunction(tanh, 0.6),
}
