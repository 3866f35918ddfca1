"""Functions of all lanes at once: error bounds, special arguments, the same bits in any lane."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import sympy as sp
from mpmath import mp
from numpy.typing import NDArray

from codegen import Input, Output, compile_program
from codegen.engine import compile_text
from codegen.expressions.sympy_in import program_from_sympy
from codegen.functions.lane_formats import DOUBLE
from codegen.functions.lane_table import FORMULAS
from codegen.functions.symbols import symbol
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from tests.support.kernel_points import ulp_error
from tests.support.lane_arrays import on_array

Numbers = NDArray[np.float64]
WIDTHS = (1, 2, 4, 8)
POINTS = 400
A, B = sp.symbols("a b")


def near(middle: float, random: np.random.Generator) -> Numbers:
    """Numbers on both sides of a point, as close as they come."""
    return middle + random.choice([-1.0, 1.0], POINTS) * np.exp(random.uniform(-37, -1, POINTS))


def sizes(low: float, high: float, random: np.random.Generator) -> Numbers:
    """Numbers of all sizes and both signs."""
    return random.choice([-1.0, 1.0], POINTS) * np.exp2(random.uniform(math.log2(low), math.log2(high), POINTS))


def angles(random: np.random.Generator) -> list[Numbers]:
    """Angles, and the numbers next to multiples of pi/2, where sine or cosine is smallest."""
    multiples = np.append(np.arange(1, POINTS), random.integers(1, int(DOUBLE.huge_angle / 2), POINTS))
    close = np.array([float(int(k) * mp.pi / 2) for k in multiples])
    return [random.uniform(-7, 7, POINTS), random.uniform(-DOUBLE.huge_angle, DOUBLE.huge_angle, POINTS), close, -close]


TINY = 5e-324
RANGES: dict[str, Callable[[np.random.Generator], list[Numbers]]] = {
    "exp": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-708, 709.78, POINTS), sizes(TINY, 1, r),
                      r.uniform(-745.13, -708, POINTS), r.uniform(0.3, 0.5, POINTS)],
    "expm1": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-40, 709.78, POINTS), sizes(TINY, 1, r),
                        r.uniform(20, 60, POINTS), r.uniform(0.3, 0.5, POINTS)],
    "log": lambda r: [r.uniform(0.5, 2, POINTS), abs(sizes(TINY, 1.7e308, r)), near(1, r), r.uniform(1.2, 1.5, POINTS)],
    "log1p": lambda r: [r.uniform(-0.5, 1, POINTS), abs(sizes(TINY, 1.7e308, r)), sizes(TINY, 0.9, r),
                        abs(near(0, r)) - 1, r.uniform(-0.3, 0.45, POINTS)],
    "llvm.sin.f64": angles,
    "llvm.cos.f64": angles,
    "exp2": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-1074, 1024, POINTS), sizes(TINY, 1, r)],
    "log2": lambda r: [r.uniform(0.5, 2, POINTS), abs(sizes(TINY, 1.7e308, r)), near(1, r)],
    "log10": lambda r: [r.uniform(0.5, 2, POINTS), abs(sizes(TINY, 1.7e308, r)), near(1, r)],
    "tan": angles,
    "asin": lambda r: [r.uniform(-1, 1, POINTS), sizes(TINY, 1, r), near(0.5, r), 1 - abs(near(0, r))],
    "acos": lambda r: [r.uniform(-1, 1, POINTS), sizes(TINY, 1, r), near(-0.5, r), 1 - abs(near(0, r)),
                       abs(near(0, r)) - 1],
    "asinh": lambda r: [r.uniform(-3, 3, POINTS), sizes(TINY, 1.7e308, r), sizes(1e-9, 1e9, r)],
    "acosh": lambda r: [r.uniform(1, 4, POINTS), abs(sizes(1, 1.7e308, r)), 1 + abs(near(0, r))],
    "atanh": lambda r: [r.uniform(-1, 1, POINTS), sizes(TINY, 1, r), 1 - abs(near(0, r)), r.uniform(-0.3, 0.3, POINTS)],
    "cbrt": lambda r: [r.uniform(-3, 3, POINTS), sizes(TINY, 1.7e308, r), sizes(TINY, 1e-307, r)],
    "atan": lambda r: [r.uniform(-3, 3, POINTS), sizes(TINY, 1.7e308, r), sizes(0.1, 10, r)],
    "sinh": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-711, 711, POINTS), sizes(TINY, 20, r)],
    "cosh": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-711, 711, POINTS), sizes(TINY, 20, r)],
    "tanh": lambda r: [r.uniform(-1, 1, POINTS), r.uniform(-22, 22, POINTS), sizes(TINY, 1, r)],
}  # fmt: skip
Pairs = list[Callable[[np.random.Generator], tuple[Numbers, Numbers]]]
LENGTHS: Pairs = [
    lambda r: (r.uniform(-4, 4, POINTS), r.uniform(-4, 4, POINTS)),
    lambda r: (sizes(1e-4, 1e4, r), sizes(1e-4, 1e4, r)),
    lambda r: (sizes(TINY, 1.7e308, r), sizes(TINY, 1.7e308, r)),
    lambda r: (sizes(TINY, 1e-300, r), sizes(TINY, 1e-300, r)),
    lambda r: (sizes(1e300, 1.7e308, r), sizes(1e300, 1.7e308, r)),
    lambda r: (sizes(TINY, 1e-300, r), sizes(1e-10, 1e10, r)),
]
PAIRS: dict[str, Pairs] = {
    "pow": [  # bases and exponents: near 1, of all sizes, and with powers next to overflow and underflow
        lambda r: (r.uniform(0.5, 2, POINTS), r.uniform(-5, 5, POINTS)),
        lambda r: (1 + abs(sizes(1e-15, 0.1, r)), sizes(1, 1e15, r)),
        lambda r: (abs(sizes(1e-300, 1e300, r)), r.uniform(-1, 1, POINTS)),
        lambda r: (r.uniform(1.3, 1.42, POINTS), r.uniform(-2200, 2200, POINTS)),
        lambda r: (r.uniform(0, 12, POINTS), r.integers(-300, 300, POINTS).astype(float)),
    ],
    "hypot": LENGTHS,
    "atan2": LENGTHS,
}
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": mp.exp, "expm1": mp.expm1, "log": mp.log, "log1p": mp.log1p, "llvm.sin.f64": mp.sin, "llvm.cos.f64": mp.cos,
    "exp2": lambda x: mp.power(2, x), "log2": lambda x: mp.log(x, 2), "log10": lambda x: mp.log(x, 10), "tan": mp.tan,
    "atan": mp.atan, "sinh": mp.sinh, "cosh": mp.cosh, "tanh": mp.tanh,
    "asin": mp.asin, "acos": mp.acos, "asinh": mp.asinh, "acosh": mp.acosh, "atanh": mp.atanh,
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "pow": mp.power, "hypot": mp.hypot, "atan2": mp.atan2,
}  # fmt: skip
# Where the reductions change over: multiples of log(2)/2 and pi/4, sqrt(1/2), powers of two.
HARD = [
    *(factor * step for factor in (1.0, math.nextafter(1.0, 2.0)) for k in (1, 2, 3, 5, 1023) for step in (
        k * math.log(2.0) / 2, k * math.pi / 4, math.sqrt(0.5) * 2.0 ** (k % 3), 2.0**-k)),
    math.nextafter(1.0, 0.0), 2.0**-27, 2.0**-54, 2.0**-1022, math.nextafter(DOUBLE.huge_angle, 0.0),
]  # fmt: skip
HARD += [-x for x in HARD]
SPECIAL = [
    0.0,
    -0.0,
    math.inf,
    -math.inf,
    math.nan,
    TINY,
    -TINY,
    1.0,
    -1.0,
    1e308,
    -1e308,
    746.0,
    -746.0,
    709.78,
    710.0,
]


DOMAINS = {  # open intervals
    **dict.fromkeys(("log", "log2", "log10"), (0.0, math.inf)), "log1p": (-1.0, math.inf), "acosh": (1.0, math.inf),
    **dict.fromkeys(("asin", "acos", "atanh"), (-1.0, 1.0)),
}  # fmt: skip


def exact(function: str, arguments: tuple[float, ...]) -> Any:
    with mp.workprec(240):
        return EXACT[function](*map(mp.mpf, arguments))


def arguments(function: str) -> tuple[Numbers, ...]:
    random = np.random.default_rng(0)
    if function in PAIRS:
        first, second = zip(*(made(random) for made in PAIRS[function]), strict=True)
        return np.concatenate(first), np.concatenate(second)
    x = np.concatenate([*RANGES[function](random), HARD])
    low, high = DOMAINS.get(function, (-math.inf, math.inf))
    return (x[(x > low) & (x < high)],)


def special(function: str) -> tuple[Numbers, ...]:
    """Special arguments, for a function of two all pairs of them."""
    if FORMULAS[function].operands == 1:
        return (np.array(SPECIAL),)
    first, second = np.meshgrid([*SPECIAL, 0.3, 7.0], [*SPECIAL, 0.5, 3.0])
    return first.ravel(), second.ravel()


def test_every_formula_is_tested() -> None:
    assert RANGES.keys() | PAIRS.keys() == EXACT.keys() == FORMULAS.keys()
    assert all(symbol(function, found.operands).name == function for function, found in FORMULAS.items())


@pytest.mark.parametrize("function", FORMULAS)
@pytest.mark.thinned
def test_accuracy(function: str) -> None:
    """Against 70 digits; where the value is subnormal, in units of the smallest number."""
    points = arguments(function)
    values = on_array(function, 4, *points).tolist()
    for argument, value in zip(zip(*(x.tolist() for x in points), strict=True), values, strict=True):
        wanted = exact(function, argument)
        if abs(wanted) > sys.float_info.max:
            assert value == math.copysign(math.inf, wanted), argument
        elif abs(wanted) < sys.float_info.min:
            assert abs(value - wanted) <= FORMULAS[function].ulp * TINY, argument
        else:
            assert ulp_error(value, wanted) <= FORMULAS[function].ulp, argument


@pytest.mark.parametrize("function", FORMULAS)
def test_a_lane_depends_on_its_argument_alone(function: str) -> None:
    """Any number of lanes, any neighbours: the same bits, also beside nan and huge angles."""
    points = [np.concatenate(both) for both in zip(arguments(function), special(function), strict=True)]
    points = [np.append(x, [1e22, -1e300]) for x in points]
    first = on_array(function, 2, *points)
    for width in WIDTHS:
        for seed in range(3):
            order = np.random.default_rng(seed).permutation(len(first))
            np.testing.assert_array_equal(on_array(function, width, *(x[order] for x in points)), first[order])


@pytest.mark.parametrize("function", FORMULAS)
def test_special_arguments(function: str) -> None:
    """Zeros with their sign, infinities, nan, overflow and underflow: as the scalar function has them."""
    arity = FORMULAS[function].operands
    parameters = ",".join(f"double %x{k}" for k in range(arity))
    scalar = compile_text(
        f"{symbol(function, arity).text}\n"
        f"define double @one({parameters}) {{\n%y=call double @{function}({parameters})\nret double %y\n}}",
        ("one",), symbol(function, arity).addresses,
    )  # fmt: skip
    one = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * arity)(scalar.addresses["one"])
    points = special(function)
    wanted = np.array([one(*point) for point in zip(*points, strict=True)])
    found = on_array(function, 8, *points)
    np.testing.assert_array_max_ulp(found[~np.isnan(wanted)], wanted[~np.isnan(wanted)], 2)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_equal(np.signbit(found[wanted == 0]), np.signbit(wanted[wanted == 0]))


def test_without_fused_operations_kernels_call_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codegen.emission.lane_functions.has_fma", lambda: False)
    kernel = compile_program(summed(sp.exp(A) + sp.sin(B) * sp.cos(B), 40))
    assert "symad." not in kernel.llvm
    assert kernel(np.full(40, 0.3), np.full(40, 0.2)).tolist() == [math.exp(0.3) + math.sin(0.2) * math.cos(0.2)] * 40


def test_powers_have_exact_logarithms() -> None:
    exponents = np.arange(-1074.0, 1024.0)
    np.testing.assert_array_equal(on_array("log2", 4, np.exp2(exponents)), exponents)
    np.testing.assert_array_equal(on_array("exp2", 4, exponents), np.exp2(exponents))
    np.testing.assert_array_equal(on_array("log10", 4, 10.0 ** np.arange(23)), np.arange(23.0))


def summed(expression: Any, count: int) -> RolledProgram:
    """The sum of a function of two vectors."""
    body = program_from_sympy([A, B], [expression])
    gathers = (Gather(0, Affine(0, 1, count)), Gather(1, Affine(0, 1, count)))
    region = Region(body, count, gathers, (Result(0, 2, Affine(0, 1, count), "store"),))
    buffers = (Buffer("input", count), Buffer("input", count), Buffer("output", count))
    inputs = (Input("x", (count,)), Input("y", (count,)))
    return RolledProgram(inputs, (Output((count,), ()),), buffers, (region,), "summed")


@pytest.mark.parametrize("count", [2, 7, 100, 2001])
def test_loops_call_them(count: int) -> None:
    """Every repetition, those of the tail too, has the bits that the function has alone."""
    kernel = compile_program(summed(sp.exp(A) + sp.sin(B), count))
    assert "symad.exp.v" in kernel.llvm
    random = np.random.default_rng(0)
    x, y = random.uniform(-2, 2, (2, count))
    found = on_array("exp", 2, x) + on_array("llvm.sin.f64", 2, y)
    np.testing.assert_array_equal(kernel(x, y), found)
    points = kernel.batch(np.stack([x, y]), np.stack([y, x]))
    np.testing.assert_array_equal(points, [kernel(x, y), kernel(y, x)])


def test_sine_and_cosine_at_once() -> None:
    """They have the bits of each alone."""
    random = np.random.default_rng(0)
    x = np.concatenate([random.uniform(-1e3, 1e3, 90), [DOUBLE.huge_angle, 1e22, -0.0]])
    kernel = compile_program(summed(sp.sin(A) * sp.cos(A) + B, len(x)))
    assert "symad.sincos.v" in kernel.llvm
    assert "symad.sin.v" not in kernel.llvm
    found = kernel(x, np.zeros(len(x)))
    np.testing.assert_array_equal(found, on_array("llvm.sin.f64", 4, x) * on_array("llvm.cos.f64", 2, x))


def test_straight_lines_call_them_in_groups() -> None:
    """One by one, side by side, and at many points: the same bits; with accuracy "fast" one number is the library's."""
    alike = program_from_sympy([A, B], [sp.exp(A + k) for k in range(6)] + [sp.atan2(A, B), sp.sin(B), sp.cos(B)])
    kernel = compile_program(alike)
    assert "@symad.exp.v4f64" in kernel.llvm
    assert "@symad.sincos.f64" in kernel.llvm
    assert "declare double @exp" not in kernel.llvm
    x, y = np.random.default_rng(0).uniform(-2, 2, (2, 50))
    wanted = [on_array("exp", 1, x + k) for k in range(6)] + [
        on_array("atan2", 1, x, y), on_array("llvm.sin.f64", 1, y), on_array("llvm.cos.f64", 1, y)]  # fmt: skip
    np.testing.assert_array_equal(np.transpose([kernel(*point) for point in zip(x, y, strict=True)]), wanted)
    np.testing.assert_array_equal(kernel.batch(x, y), wanted)
    for lanes in (1, 2, 8):
        np.testing.assert_array_equal(compile_program(alike, lanes=lanes).batch(x, y), wanted)
    fast = compile_program(program_from_sympy([A], [sp.exp(A)]), accuracy="fast")
    assert fast(0.25) == math.exp(0.25)
    assert "symad." not in fast.llvm
