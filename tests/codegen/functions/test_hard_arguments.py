"""What the formulas of lanes leave out - huge angles, powers of any numbers - and functions without a C library."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from mpmath import mp

from codegen.emission.lane_functions import lane_function, sine_and_cosine_of_lanes
from codegen.functions.lane_table import FORMULAS, TWO_OVER_PI
from codegen.functions.symbols import Symbol
from codegen.lanes import Lanes
from tests.support.kernel_points import ulp_error
from tests.support.lane_arrays import on_array

ANGLES: dict[str, Callable[[Any], Any]] = {"llvm.sin.f64": mp.sin, "llvm.cos.f64": mp.cos, "tan": mp.tan}
# The double that is nearest to a multiple of pi/2, and others that are close to one (Muller, section 11.3)
CLOSEST = [6381956970095103 * 2.0**797, 5261692873635770 * 2.0**499, 2.0**30, 2.0**1023, sys.float_info.max, 1e22]


def test_words_of_two_over_pi() -> None:
    with mp.workprec(1400):
        bits = int(mp.floor(mp.ldexp(2 / mp.pi, 64 * (len(TWO_OVER_PI) - 1))))
    assert sum(word << (64 * k) for k, word in enumerate(reversed(TWO_OVER_PI))) == bits


@pytest.mark.parametrize("function", ANGLES)
@pytest.mark.parametrize("width", [1, 4])
def test_huge_angles(function: str, width: int) -> None:
    """Of all exponents, and those closest to a multiple of pi/2."""
    random = np.random.default_rng(0)
    x = np.append(random.choice([-1, 1], 1000) * np.exp2(random.uniform(30, 1024, 1000)), CLOSEST)
    with mp.workprec(1400):
        for angle, value in zip(x.tolist(), on_array(function, width, x).tolist(), strict=True):
            assert ulp_error(value, ANGLES[function](mp.mpf(angle))) <= FORMULAS[function].ulp, angle
    assert np.isnan(on_array(function, width, np.array([math.inf, -math.inf, math.nan]))).all()


@pytest.mark.parametrize("width", [1, 8])
def test_powers_next_to_overflow_and_underflow(width: int) -> None:
    """Bases of all sizes, subnormal ones too, and whole exponents of negative ones."""
    random = np.random.default_rng(0)
    x = np.exp2(random.uniform(-1074, 1024, 2000))
    y = random.uniform(-1080, 1030, 2000) / np.log2(x)
    whole = random.integers(-40, 40, 2000).astype(float)
    x, y = np.concatenate([x, -np.exp2(random.uniform(-30, 30, 2000))]), np.concatenate([y, whole])
    for base, exponent, value in zip(x.tolist(), y.tolist(), on_array("pow", width, x, y).tolist(), strict=True):
        with mp.workprec(240):
            wanted = mp.power(mp.mpf(base), mp.mpf(exponent))
        if abs(wanted) > sys.float_info.max:
            assert abs(value) >= sys.float_info.max, (base, exponent)
        elif abs(wanted) < sys.float_info.min:
            assert abs(value - wanted) <= FORMULAS["pow"].ulp * 5e-324, (base, exponent)
        else:
            assert ulp_error(value, wanted) <= FORMULAS["pow"].ulp, (base, exponent)


POWERS = [  # C standard, F.10.4.4
    (0.0, -3.0, math.inf), (-0.0, -3.0, -math.inf), (-0.0, -2.5, math.inf), (-0.0, -4.0, math.inf),
    (0.0, -math.inf, math.inf), (-0.0, -math.inf, math.inf), (-0.0, 3.0, -0.0), (0.0, 3.0, 0.0), (-0.0, 0.5, 0.0),
    (-1.0, math.inf, 1.0), (-1.0, -math.inf, 1.0), (1.0, math.nan, 1.0), (math.nan, 0.0, 1.0), (math.nan, -0.0, 1.0),
    (-2.0, 0.5, math.nan), (-1.0, 0.5, math.nan), (0.5, -math.inf, math.inf), (-2.0, -math.inf, 0.0),
    (0.5, math.inf, 0.0), (-2.0, math.inf, math.inf), (-math.inf, -3.0, -0.0), (-math.inf, -2.0, 0.0),
    (-math.inf, -0.5, 0.0), (-math.inf, 3.0, -math.inf), (-math.inf, 2.5, math.inf), (math.inf, -1.0, 0.0),
    (math.inf, 1.0, math.inf), (math.nan, 1.0, math.nan), (2.0, math.nan, math.nan), (-1.0, math.nan, math.nan),
    (-1.0, 2.0**53 - 1, -1.0), (-1.0, 2.0**53, 1.0), (-1.0, 1e300, 1.0), (-1.0, 2.0**52 + 1, -1.0),
    (-1.0, 2.0**51 + 0.5, math.nan), (5e-324, 1.0, 5e-324), (5e-324, -1.0, math.inf), (2.0, -1074.0, 5e-324),
    (2.0, 1023.0, 2.0**1023), (-3.0, 33.0, -(3.0**33)), (1e300, 1e300, math.inf), (1e300, -1e300, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("base", "exponent", "wanted"), POWERS)
def test_special_powers(base: float, exponent: float, wanted: float) -> None:
    for width in (1, 2):
        (found,) = on_array("pow", width, np.array([base]), np.array([exponent])).tolist()
        np.testing.assert_equal(found, wanted)
        assert math.copysign(1.0, found) == math.copysign(1.0, wanted) or wanted != 0.0


def assembled(symbols: tuple[Symbol, ...]) -> str:
    """PTX of functions."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "nvptx64-nvidia-cuda"
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu="sm_90", opt=2)
    text = "\n".join([f'target triple = "{triple}"', *(found.text for found in symbols)])
    module = llvm.parse_assembly(text, llvm.create_context())
    return str(machine.emit_assembly(module))


@pytest.mark.parametrize("function", [*FORMULAS, ""])
@pytest.mark.parametrize("lanes", [Lanes(), Lanes(1, "float")], ids=["double", "float"])
def test_one_lane_is_text_for_a_gpu(function: str, lanes: Lanes) -> None:
    """It calls nothing outside, and what rounds is not contracted; "" is sine and cosine at once."""
    symbols = lane_function(function, lanes) if function else sine_and_cosine_of_lanes(lanes)
    assert not any(found.addresses for found in symbols)
    assert "<" not in "".join(found.text for found in symbols)
    code = assembled(symbols)
    assert ".extern" not in code
    assert {"add.f64", "mul.f64", "sub.f64", "add.f32", "mul.f32", "sub.f32", "approx"}.isdisjoint(code.split("\t"))
    assert "approx" not in code
    assert ".ftz" not in code


@pytest.mark.parametrize("function", FORMULAS)
def test_vectors_call_no_library(function: str) -> None:
    for lanes in (Lanes(4), Lanes(16, "float")):
        assert not any(found.addresses for found in lane_function(function, lanes))
