"""The table of lane functions: for each symbol of the C library that has a formula of ours, what stands for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from codegen.functions import hard_arguments as hard, lane_formulas as lane
from codegen.functions.formula_values import where
from codegen.functions.lane_values import Value


@dataclass(frozen=True, slots=True)
class Hard:
    """What a formula leaves out: whether an argument is hard, and the formula for it, on one lane of double."""

    test: Callable[..., Value]
    formula: Callable[..., Value]


SINGLE_ULP = 0.95  # bound of all formulas in single precision, measured at every 97th float


@dataclass(frozen=True, slots=True)
class LaneFunction:
    """A formula, its bound in ULP, and which arguments are left to another one.

    The bound is that of double, measured at some 100,000 points; that of single is `SINGLE_ULP`.
    """

    formula: Callable[..., Value]
    ulp: float
    hard: Hard | None = None
    operands: int = 1


def _huge_angle(x: Value) -> Value:
    return abs(x) >= x.format.huge_angle


def _hard_power(x: Value, y: Value) -> Value:
    """Powers of zero, of negative, subnormal, infinite numbers and nan, and those next to overflow and underflow."""
    size = where(x < math.inf, abs(lane.exponent_of_power(x, y)[0]), math.inf)
    return where(x >= x.format.subnormal, size, math.inf).compare("uge", x.format.largest_power)


# By the symbol of the scalar function.
FORMULAS: dict[str, LaneFunction] = {
    "exp": LaneFunction(lane.exp, 0.85),
    "exp2": LaneFunction(lane.exp2, 0.85),
    "expm1": LaneFunction(lane.expm1, 0.75),
    "log": LaneFunction(lane.log, 0.85),
    "log2": LaneFunction(lane.log2, 0.85),
    "log10": LaneFunction(lane.log10, 0.85),
    "log1p": LaneFunction(lane.log1p, 0.85),
    "llvm.sin.f64": LaneFunction(lane.sin, 0.75, Hard(_huge_angle, hard.sin)),
    "llvm.cos.f64": LaneFunction(lane.cos, 0.85, Hard(_huge_angle, hard.cos)),
    "tan": LaneFunction(lane.tan, 0.85, Hard(_huge_angle, hard.tan)),
    "atan": LaneFunction(lane.atan, 0.85),
    "sinh": LaneFunction(lane.sinh, 0.65),
    "cosh": LaneFunction(lane.cosh, 0.65),
    "tanh": LaneFunction(lane.tanh, 0.6),
    "pow": LaneFunction(lane.pow, 0.85, Hard(_hard_power, hard.pow), 2),
}
