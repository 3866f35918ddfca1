"""One-lane code for rare arguments that lane formulas leave out: huge angles, and powers of special numbers.

An angle is multiplied by those digits of 2/pi that decide its quadrant and what is left of it: the ones before them
give whole turns, and behind them are too small to be felt. Powers are those of Annex F of the C standard.

Source: M. H. Payne and R. N. Hanek, Radian Reduction for Trigonometric Functions, ACM SIGNUM Newsletter 18 (1983).
"""

from __future__ import annotations

import math
from itertools import pairwise

from codegen.functions.formula_values import where
from codegen.functions.lane_formulas import (
    exponent_of_any,
    exponential_in_parts,
    long_logarithm,
    product_of,
    sine_and_cosine_of,
    tangent_of,
)
from codegen.functions.lane_values import LaneValue, nearest, power_of_two, quick_two_sum

# 2/pi in words of 64 bits, behind a word of zeros
TWO_OVER_PI = (
    0x0, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041, 0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0,
    0x06492EEA09D1921C, 0xFE1DEB1CB129A73E, 0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4,
    0x9C845F8BBDF9283B, 0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
)  # fmt: skip
LEAST_ANGLE = 2.0**15  # below, an angle is none of these; vectors ask for all of their lanes


def sin(x: LaneValue) -> LaneValue:
    return _of_angle(x, sine_and_cosine_of(*_angle(x))[0].times_sign_of(x))


def cos(x: LaneValue) -> LaneValue:
    return _of_angle(x, sine_and_cosine_of(*_angle(x))[1])


def tan(x: LaneValue) -> LaneValue:
    return _of_angle(x, tangent_of(*_angle(x)).times_sign_of(x))


def pow(x: LaneValue, y: LaneValue) -> LaneValue:
    """Special numbers have logarithms like others: -inf, 0 and inf, and only their products with 0 are chosen."""
    size = abs(x)
    log, log_rest = long_logarithm(*exponent_of_any(size))
    log = where(size.equals(0.0), -math.inf, where(size < math.inf, log, math.inf))
    e, e_rest = product_of(log, log_rest, y, x.constant(0.0))
    n, value = exponential_in_parts(e.clamp(-800.0, 800.0), where(abs(e) < 800.0, e_rest, 0.0))
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
    first = turns.put_word("and", -(2**11)).put("number") * 2.0**-64
    joined = turns.put_word("and", 2**11 - 1).put_word("shl", 42).put("or", rest.put_word("lshr", 22))
    third = rest.put_word("and", 2**22 - 1).put("number") * 2.0**-128
    total, lost = quick_two_sum(first, joined.put("number") * 2.0**-106)
    total, lost = quick_two_sum(total, lost + third)
    half_pi, half_rest, _ = turns.format.half_pi
    return quick_two_sum(*product_of(total, lost, total.constant(half_pi), total.constant(half_rest)))
