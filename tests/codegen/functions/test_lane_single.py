"""Functions of all lanes at once in single precision: against those of double, over all floats in steps."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from codegen.emission.lane_functions import lane_function, sine_and_cosine_of_lanes
from codegen.functions.lane_formats import SINGLE
from codegen.functions.lane_table import FORMULAS, SINGLE_ULP
from codegen.lanes import Lanes
from tests.support.lane_arrays import on_array

F = np.float32
STEP = 49_999  # from one float to the next one that is tried: 85,900 in all
EXACT: dict[str, Any] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "llvm.sin.f64": np.sin, "llvm.cos.f64": np.cos, "tan": np.tan, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "pow": np.power, "asin": np.arcsin, "acos": np.arccos,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "cbrt": np.cbrt, "hypot": np.hypot,
    "atan2": np.arctan2,
}  # fmt: skip


def some_floats() -> NDArray[np.float32]:
    """Floats of all exponents and both signs, infinities and NaN, and those next to where reductions change over."""
    steps = np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32).view(F)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(F).max, -np.finfo(F).max, 1e-45, -1e-45, SINGLE.huge_angle]
    turns = np.array([k * np.log(2) / 2 for k in range(-300, 258)] + [k * np.pi / 4 for k in range(-3000, 3000)], F)
    around = [np.nextafter(turns, F(np.inf)), turns, np.nextafter(turns, F(-np.inf))]
    return np.concatenate([steps, np.array(ends, F), *around, np.random.default_rng(0).uniform(-2, 2, 20000).astype(F)])


def within(found: NDArray[np.float32], wanted: NDArray[np.float64], ulp: float) -> None:
    """Numbers are so many units from numbers; zeros have their sign, what is no number is none."""
    with np.errstate(over="ignore"):
        infinite = np.isinf(wanted.astype(F))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))
    finite = ~np.isnan(wanted) & ~infinite & (wanted != 0)
    found, wanted, infinite_found = found[finite], wanted[finite], found[infinite]
    assert np.isinf(infinite_found).all()
    _, exponents = np.frexp(wanted)
    units = np.ldexp(np.ones(len(wanted)), np.maximum(exponents - 24, -149))
    assert (abs(found.astype(float) - wanted) / units).max() <= ulp


@pytest.mark.parametrize("function", [name for name, found in FORMULAS.items() if found.operands == 1])
def test_accuracy(function: str) -> None:
    x = some_floats()
    with np.errstate(all="ignore"):
        within(on_array(function, 16, x), EXACT[function](x.astype(float)), SINGLE_ULP)


@pytest.mark.parametrize("function", ["hypot", "atan2"])
def test_lengths_and_angles(function: str) -> None:
    random = np.random.default_rng(0)
    ends = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 3e38, -3e38, 2.0, 1e-20], F)
    signs, sizes = random.choice([-1, 1], (2, 40000)), random.uniform(-149, 128, (2, 40000))
    sizes[:, :20000] /= 40
    x, y = (signs * np.exp2(sizes)).astype(F)
    x, y = np.concatenate([x, np.repeat(ends, 13)]), np.concatenate([y, np.tile(ends, 13)])
    with np.errstate(all="ignore"):
        within(on_array(function, 16, x, y), EXACT[function](x.astype(float), y.astype(float)), SINGLE_ULP)


def test_powers() -> None:
    random = np.random.default_rng(0)
    ends = np.array([0.0, -0.0, 1.0, -1.0, 0.3, 7.0, np.inf, -np.inf, np.nan, 1e-40, 3e38, 2.0, -3.0], F)
    x = np.concatenate([random.uniform(0.5, 2, 20000), np.exp2(random.uniform(-149, 128, 20000)), np.repeat(ends, 13)])
    y = np.concatenate([random.uniform(-150, 150, 20000), random.uniform(-1, 1, 20000), np.tile(ends, 13)])
    x, y = x.astype(F), y.astype(F)
    with np.errstate(all="ignore"):
        within(on_array("pow", 16, x, y), np.power(x.astype(float), y.astype(float)), SINGLE_ULP)


@pytest.mark.parametrize("function", FORMULAS)
def test_a_lane_depends_on_its_argument_alone(function: str) -> None:
    points = [some_floats()[k::7][:20000] for k in range(FORMULAS[function].operands)]
    first = on_array(function, 2, *points)
    for width in (1, 4, 8, 16):
        order = np.random.default_rng(width).permutation(len(first))
        np.testing.assert_array_equal(on_array(function, width, *(x[order] for x in points)), first[order])


def test_whole_registers_of_floats() -> None:
    lanes = Lanes(16, "float")
    assert lane_function("exp", lanes)[0].name == "symad.exp.v16f32"
    for found in (lane_function("tanh", lanes)[0], sine_and_cosine_of_lanes(lanes)[0]):
        assert "double" not in found.text
    assert ctypes.sizeof(ctypes.c_float) == lanes.size
