"""The table of lane functions: a formula of ours for symbols of the C library."""

from __future__ import annotations

import math
from collections.abc import Callable

from codegen.functions import hard_arguments as hard, lane_formulas as lane, lane_inverses as inverse
from codegen.functions.formula_values import where
from codegen.functions.lane_values import LaneValue
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


def _far_exponent(x: LaneValue) -> LaneValue:
    return abs(x).compare("uge", x.format.normal_exp)


def _far_power_of_two(x: LaneValue) -> LaneValue:
    return abs(x).compare("uge", x.format.bias - 1.0)


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


# By the symbol of the scalar function.
FORMULAS: dict[str, LaneFunction] = {
    "exp": LaneFunction(lane.exp, 0.85, Hard(_far_exponent, lane.exp_of_any)),
    "exp2": LaneFunction(lane.exp2, 0.85, Hard(_far_power_of_two, lane.exp2_of_any)),
    "expm1": LaneFunction(lane.expm1, 0.75),
    "log": LaneFunction(lane.log, 0.85, Hard(_not_normal, lane.log_of_any)),
    "log2": LaneFunction(lane.log2, 0.85, Hard(_not_normal, lane.log2_of_any)),
    "log10": LaneFunction(lane.log10, 0.85, Hard(_not_normal, lane.log10_of_any)),
    "log1p": LaneFunction(lane.log1p, 0.85),
    "llvm.sin.f64": LaneFunction(lane.sin, 0.75, Hard(_huge_angle, hard.sin, alone=True)),
    "llvm.cos.f64": LaneFunction(lane.cos, 0.85, Hard(_huge_angle, hard.cos, alone=True)),
    "tan": LaneFunction(lane.tan, 0.85, Hard(_huge_angle, hard.tan, alone=True)),
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
    "pow": LaneFunction(lane.pow, 0.85, Hard(_hard_power, hard.pow, alone=True), 2),
}
