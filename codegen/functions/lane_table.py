"""The table of lane functions: a formula of ours for symbols of the C library.

Rare arguments that lane formulas leave out have formulas for one lane: huge angles, and powers of special numbers. An
angle is multiplied by those digits of 2/pi that decide its quadrant and what is left of it: the ones before them give
whole turns, and behind them are too small to be felt. Powers are those of Annex F of the C standard.

Source: M. H. Payne and R. N. Hanek, Radian Reduction for Trigonometric Functions, ACM SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

from codegen.functions import lane_formulas as lane, lane_inverses as inverse
from codegen.functions.formula_values import where
from codegen.functions.lane_values import LaneValue, nearest, power_of_two, quick_two_sum
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Hard:
    """The arguments that a formula leaves out: a test for them, and their formula, for all lanes or one double."""

    test: Callable[..., LaneValue]
    formula: Callable[..., LaneValue]
    alone: bool = False


SINGLE_ULP = 0.95  # bound of all formulas in single precision, measured at every 97th float


@dataclass(frozen=True, slots=True)
class LaneFunction:
    """A formula, its error bound in ULP, and the arguments that another formula handles.

    The bound is that of double, measured at some 100,000 points; that of single is `SINGLE_ULP`.
    """

    formula: Callable[..., LaneValue]
    ulp: float
    hard: Hard | None = None
    operands: int = 1


def _not_normal(x: LaneValue) -> LaneValue:
    """Whether a number is none that is positive and normal: the bits of those follow one another."""
    least, end = x.format.bits_of(x.format.subnormal), x.format.bits_of(math.inf)
    return x.bits().put_word("iadd", -least).put_word("above", end - least - 1)


def _huge_angle(x: LaneValue) -> LaneValue:
    return abs(x) >= x.format.huge_angle


def _hard_power(x: LaneValue, y: LaneValue) -> LaneValue:
    """Powers of zero, of negative, subnormal, infinite numbers and nan, and those next to overflow and underflow."""
    size = where(x < math.inf, abs(lane.exponent_of_power(x, y)[0]), math.inf)
    return where(x >= x.format.subnormal, size, math.inf).compare("uge", x.format.largest_power)


# 2/pi in words of 64 bits, behind a word of zeros
TWO_OVER_PI = (
    0x0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
LEAST_ANGLE = 2.0**15  # below, an angle is none of these; vectors ask for all of their lanes


def hard_sin(x: LaneValue) -> LaneValue:
    return _of_angle(x, lane.sine_and_cosine_of(*_angle(x))[0].times_sign_of(x))


def hard_cos(x: LaneValue) -> LaneValue:
    return _of_angle(x, lane.sine_and_cosine_of(*_angle(x))[1])


def hard_tan(x: LaneValue) -> LaneValue:
    return _of_angle(x, lane.tangent_of(*_angle(x)).times_sign_of(x))


def hard_pow(x: LaneValue, y: LaneValue) -> LaneValue:
    """Special numbers have logarithms like others: -inf, 0 and inf, and only their products with 0 are chosen."""
    size = abs(x)
    log, log_rest = lane.long_logarithm(*lane.exponent_of_any(size))
    log = where(size.equals(0.0), -math.inf, where(size < math.inf, log, math.inf))
    e, e_rest = lane.product_of(log, log_rest, y, x.constant(0.0))
    n, value = lane.exponential_in_parts(e.clamp(-800.0, 800.0), where(abs(e) < 800.0, e_rest, 0.0))
    half = nearest(n, 0.5)
    value = where(size.equals(1.0), 1.0, value * power_of_two(half) * power_of_two(n - half))
    whole, odd = y.floor().equals(y), where((y * 0.5).floor().equals(y * 0.5), 1.0, x)
    value = where(whole, value.times_sign_of(odd), where(x < 0.0, where(size < math.inf, math.nan, value), value))
    value = where(x.equals(x), where(y.equals(y), value, y), x)
    return where(y.equals(0.0), 1.0, where(x.equals(1.0), 1.0, value))


def _of_angle(x: LaneValue, value: LaneValue) -> LaneValue:
    return where(abs(x) < math.inf, value, math.nan)


def _angle(x: LaneValue) -> tuple[LaneValue, LaneValue, LaneValue]:
    """n as a word, and r in two parts, where |x| = n pi/2 + r and n is taken modulo 4.

    With |x| = m 2**e and T the 192 bits of 2/pi from 2**-(e-1) on, |x| 2/pi is m T/2**190, but for multiples of 4. The
    number nearest to a multiple of pi/2 is 2**-61 away from it, where 67 bits are left.
    """
    size = abs(x)
    bits = where(size > LEAST_ANGLE, size, LEAST_ANGLE).bits()
    mantissa = bits.put_word("and", 2**52 - 1).put_word("or", 2**52)
    first = bits.put_word("lshr", 52).put_word("iadd", -1013)  # bit e - 1 behind the point, where e is 1075 less
    place, shift = first.put_word("lshr", 6), first.put_word("and", 63)
    words = [place.put_word("iadd", k).entry("symad.two_over_pi", TWO_OVER_PI) for k in range(4)]
    high, middle, low = (first.put("funnel", second, shift) for first, second in pairwise(words))
    wide = mantissa.put("widen")
    below = wide.put("mul_wide", low.put("widen"))
    total = wide.put("mul_wide", middle.put("widen")).put("add_wide", below.put("upper"))
    top = mantissa.put("imul", high).put("iadd", total.put("upper").put("narrow"))
    second, third = total.put("narrow"), below.put("narrow")
    turns, rest = _shifted_left(top, second), _shifted_left(second, third)
    quadrant = top.put_word("lshr", 62).put("iadd", turns.put_word("lshr", 63))
    return quadrant, *_part_of_quadrant(turns, rest)


def _shifted_left(word: LaneValue, following: LaneValue) -> LaneValue:
    """A word without its first two bits, and with those that follow."""
    return word.put_word("shl", 2).put("or", following.put_word("lshr", 62))


def _part_of_quadrant(turns: LaneValue, rest: LaneValue) -> tuple[LaneValue, LaneValue]:
    """pi/2 (turns/2**64 + rest/2**128) in two parts; turns is a number with a sign."""
    first = turns.put_word("and", -(2**11)).put("of_word") * 2.0**-64
    joined = turns.put_word("and", 2**11 - 1).put_word("shl", 42).put("or", rest.put_word("lshr", 22))
    third = rest.put_word("and", 2**22 - 1).put("of_word") * 2.0**-128
    total, lost = quick_two_sum(first, joined.put("of_word") * 2.0**-106)
    total, lost = quick_two_sum(total, lost + third)
    half_pi, half_rest, _ = turns.format.half_pi
    return quick_two_sum(*lane.product_of(total, lost, total.constant(half_pi), total.constant(half_rest)))


# By the symbol of the scalar function.
FORMULAS: dict[str, LaneFunction] = {
    "exp": LaneFunction(lane.exp, 0.85, Hard(lambda x: abs(x).compare("uge", x.format.normal_exp), lane.exp_of_any)),
    "exp2": LaneFunction(lane.exp2, 0.85, Hard(lambda x: abs(x).compare("uge", x.format.bias - 1.0), lane.exp2_of_any)),
    "expm1": LaneFunction(lane.expm1, 0.75),
    "log": LaneFunction(lane.log, 0.85, Hard(_not_normal, lane.log_of_any)),
    "log2": LaneFunction(lane.log2, 0.85, Hard(_not_normal, lane.log2_of_any)),
    "log10": LaneFunction(lane.log10, 0.85, Hard(_not_normal, lane.log10_of_any)),
    "log1p": LaneFunction(lane.log1p, 0.85),
    "llvm.sin.f64": LaneFunction(lane.sin, 0.75, Hard(_huge_angle, hard_sin, alone=True)),
    "llvm.cos.f64": LaneFunction(lane.cos, 0.85, Hard(_huge_angle, hard_cos, alone=True)),
    "tan": LaneFunction(lane.tan, 0.85, Hard(_huge_angle, hard_tan, alone=True)),
    "asin": LaneFunction(inverse.asin, 0.85),
    "acos": LaneFunction(inverse.acos, 0.85),
    "atan": LaneFunction(inverse.atan, 0.85),
    "atan2": LaneFunction(inverse.atan2, 0.85, operands=2),
    "sinh": LaneFunction(lane.sinh, 0.65),
    "cosh": LaneFunction(lane.cosh, 0.65),
    "tanh": LaneFunction(lane.tanh, 0.6),
    "asinh": LaneFunction(inverse.asinh, 0.85),
    "acosh": LaneFunction(inverse.acosh, 0.85),
    "atanh": LaneFunction(inverse.atanh, 0.85),
    "cbrt": LaneFunction(inverse.cbrt, 0.85),
    "hypot": LaneFunction(inverse.hypot, 0.85, operands=2),
    "pow": LaneFunction(lane.pow, 0.85, Hard(_hard_power, hard_pow, alone=True), 2),
}
