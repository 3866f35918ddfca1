"""Rolled programs in single precision: the numbers of double within its rounding, in whole registers of floats."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import Input, Kernel, Output, compile_program
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine, Indexed
from codegen.ir.unroll import unroll
from codegen.machine.stored_kernels import load_kernel
from codegen.processor import vector_bits
from tests.support.rolled_programs import KNOWN, A, B, arrays_for, pairs, random_program

F = np.float32
X = sp.symbols("x0:16")


def single(program: RolledProgram, **options: Any) -> Kernel:
    return compile_program(program, dtype="float32", **options)


def results(kernel: Kernel, arrays: Any) -> list[Any]:
    found = kernel(*arrays)
    return list(found) if isinstance(found, tuple) else [found]


def rounded(program: RolledProgram, seed: int = 0) -> list[Any]:
    return [array.astype(F) for array in arrays_for(program, seed)]


def close(found: Any, wanted: Any, bound: float = 1e-5) -> None:
    """Numbers are as near as the largest of all results allows: they are sums and differences of such."""
    scale = max(float(np.max(np.abs(other), initial=1.0)) for other in wanted)
    for one, other in zip(found, wanted, strict=True):
        assert np.asarray(one).dtype == F or isinstance(one, float)
        np.testing.assert_allclose(one, other, rtol=bound, atol=bound * scale)


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "newton"])
def test_known_programs(name: str) -> None:
    program = KNOWN[name]
    for seed in range(3):
        arrays = rounded(program, seed)
        close(results(single(program), arrays), evaluate_rolled(program, [a.astype(float) for a in arrays]))


def test_an_iteration_stops_where_single_precision_lets_it() -> None:
    """A residual of 1e-12 is met in double after a few repetitions; in single it is met if it is 0, or never."""
    program = KNOWN["newton"]
    for square in (4.0, 9.0, 1.1369617):
        root, count, values = single(program)(square)
        assert root == pytest.approx(np.sqrt(square), rel=2e-7)
        assert (values[: int(count)] != 0).all()
        assert (values[int(count) :] == 0).all()


@pytest.mark.parametrize("seed", range(100, 130))
@pytest.mark.thinned
def test_random_programs(seed: int) -> None:
    """Loops against double, and against straight lines in single precision."""
    program = random_program(seed)
    arrays = rounded(program)
    found = results(single(program, tier="fast"), arrays)
    close(found, evaluate_rolled(program, [array.astype(float) for array in arrays]), 1e-4)
    close(found, results(compile_program(unroll(program), dtype="float32", tier="fast"), arrays), 1e-4)


def mapped(expression: Any, count: int, operands: int = 2) -> RolledProgram:
    """A function of every element of some vectors."""
    body = program_from_sympy([*X[:operands]], [expression])
    gathers = tuple(Gather(k, Affine(0, 1, count)) for k in range(operands))
    region = Region(body, count, gathers, (Result(0, operands, Affine(0, 1, count), "store"),))
    buffers = (*[Buffer("input", count)] * operands, Buffer("output", count))
    inputs = tuple(Input(f"x{k}", (count,)) for k in range(operands))
    return RolledProgram(inputs, (Output((count,), ()),), buffers, (region,), "mapped")


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 15, 16, 17, 100, 20_001])
def test_arithmetic_is_that_of_numpy_in_any_lane(count: int) -> None:
    x, y = np.random.default_rng(count).uniform(0.5, 2, (2, count)).astype(F)
    kernel = single(mapped(X[0] / X[1] + 3 * X[0], count), fma=False)
    np.testing.assert_array_equal(kernel(x, y), x / y + F(3) * x)
    points = kernel.batch(np.stack([x, y]), np.stack([y, x]))
    np.testing.assert_array_equal(points, [kernel(x, y), kernel(y, x)])


def test_registers_are_whole() -> None:
    """Twice as many floats as doubles, and nothing is computed in double."""
    text = single(mapped(sp.exp(X[0]) * sp.tanh(X[1]) + sp.sin(X[0]), 20_000)).llvm
    assert f"<{vector_bits() // 32} x float>" in text
    body = text[: text.index("define internal", 10)]
    assert "double" not in body
    assert "symad.exp.v" in text


def test_sums_have_one_order() -> None:
    """Whatever the number of threads; blocks keep the error of long sums small."""
    count = 300_000
    body = program_from_sympy([X[0], X[1]], [sp.sqrt(X[0]) * X[1] / (1 + X[0])])
    gathers = (Gather(0, Affine(0, 1, count)), Gather(1, Affine(0, 1, count)))
    region = Region(body, count, gathers, (Result(0, 2, Affine(0, 0, count), "add"),))
    buffers = (Buffer("input", count), Buffer("input", count), Buffer("output", 1))
    inputs = (Input("x", (count,)), Input("y", (count,)))
    program = RolledProgram(inputs, (Output((), ()),), buffers, (region,), "summed")
    x, y = np.random.default_rng(0).uniform(0, 1, (2, count)).astype(F)
    alone, together = single(program), single(program, threads=2)
    assert alone(x, y) == together(x, y)
    wide = x.astype(float)
    assert alone(x, y) == pytest.approx(float(np.sum(np.sqrt(wide) * y / (1 + wide))), rel=2e-6)


def test_carries_in_registers_and_rings() -> None:
    """A recurrence over the values two and nine repetitions ago."""
    count = 50
    body = program_from_sympy([X[0], X[1], X[2]], [X[0] / 2 + X[1] / 4 + X[2]])
    for lag in (2, 9):
        initial = tuple(Gather(0, Affine(k, 0, 1)) for k in range(lag))
        carries = (Carry(0, initial), Carry(0, (Gather(0, Affine(0, 0, 1)),)))
        region = Region(
            body, count, (Gather(0, Affine(0, 1, count)),), (Result(0, 1, Affine(0, 1, count), "store"),), carries
        )
        program = RolledProgram(
            (Input("x", (count,)),), (Output((count,), ()),), (Buffer("input", count), Buffer("output", count)),
            (region,), "ring",
        )  # fmt: skip
        arrays = rounded(program)
        close(results(single(program), arrays), evaluate_rolled(program, [arrays[0].astype(float)]))


def test_places_are_whole_numbers() -> None:
    """Beyond 2**24 floats have no odd numbers, and tables have."""
    size = 2**24 + 64
    index = Indexed(np.array([size - 1, 2**24 + 1, 2**24 + 3, 5, size - 2] * 5))
    region = Region(
        program_from_sympy([A], [2 * A]), 25, (Gather(0, index),), (Result(0, 1, Affine(0, 1, 25), "store"),)
    )
    buffers = (Buffer("input", size), Buffer("output", 25))
    program = RolledProgram((Input("x", (size,)),), (Output((25,), ()),), buffers, (region,), "far")
    x = np.zeros(size, F)
    x[[size - 1, 2**24 + 1, 2**24 + 3, 5, size - 2]] = [1, 2, 3, 4, 5]
    assert single(program)(x).tolist() == [2, 4, 6, 8, 10] * 5


def test_constants_are_rounded_once() -> None:
    values = np.array([0.1, 1e300, -1e300, 1e-300, np.nan, 1 + 2.0**-25])
    count = len(values)
    region = Region(
        program_from_sympy([A, B], [A * B]), count, (Gather(0, Affine(0, 0, count)), Gather(1, Affine(0, 1, count))),
        (Result(0, 2, Affine(0, 1, count), "store"),),
    )  # fmt: skip
    buffers = (Buffer("input", 1), Buffer("constant", count, values), Buffer("output", count))
    program = RolledProgram((Input("x", ()),), (Output((count,), ()),), buffers, (region,), "constants")
    np.testing.assert_array_equal(single(program)(1.0), np.array([0.1, np.inf, -np.inf, 0, np.nan, 1], F))


def test_saved_pickled_and_cached(tmp_path: Path) -> None:
    program = pairs(60)
    (x,) = rounded(program)
    kernel = single(program, cache=tmp_path)
    total, products = kernel(x)
    kernel.save(tmp_path / "pairs.symad")
    again = single(program, cache=tmp_path)
    assert again.stats.cached
    for other in (again, load_kernel(tmp_path / "pairs.symad"), pickle.loads(pickle.dumps(kernel))):
        assert other(x)[0] == total
        assert other(x)[1].tobytes() == products.tobytes()
    assert not compile_program(program, cache=tmp_path).stats.cached


def test_native_calls() -> None:
    """Arrays of float32 and floats go straight to the kernel; all else is converted or refused."""
    kernel = compile_program(program_from_sympy([[*X[:2]], X[2]], [X[0] * X[2] + X[1]]), dtype="float32")
    x = np.array([0.1, 0.2], F)
    wanted = float(x[0] * F(0.3) + x[1])
    for value in (0.3, np.float64(0.3), F(0.3), np.array(0.3, F), np.array(0.3)):
        assert kernel(x, value) == pytest.approx(wanted, rel=1e-7)
    assert kernel(x.astype(float), 0.3) == kernel(x, 0.3)
    with pytest.warns(RuntimeWarning, match="overflow"):
        assert kernel(x, 1e300) == np.inf
    assert kernel(x, np.inf) == np.inf
    assert np.isnan(kernel(x, np.nan))


def long_sum(count: int) -> RolledProgram:
    """Two loops over a long sum, which add to the same places of a workspace."""
    body = program_from_sympy([*X], [sum(x**2 for x in X)])
    gathers = tuple(Gather(0, Affine(0, 1, count)) for _ in X)
    adds = Region(body, count, gathers, (Result(0, 1, Affine(0, 1, count), "add"),))
    last = Region(
        program_from_sympy([A], [2 * A]), count, (Gather(1, Affine(0, 1, count)),),
        (Result(0, 2, Affine(0, 1, count), "store"),),
    )  # fmt: skip
    buffers = (Buffer("input", count), Buffer("workspace", count), Buffer("output", count))
    return RolledProgram((Input("x", (count,)),), (Output((count,), ()),), buffers, (adds, adds, last), "long")


@pytest.mark.parametrize(("dtype", "kind"), [("float64", "double"), ("float32", "float")])
def test_lanes_that_are_off_stay_within_the_workspace(dtype: Any, kind: str) -> None:
    """Behind a workspace there is room for a register, and four of them may be at work."""
    count = 1025
    kernel = compile_program(long_sum(count), dtype=dtype)
    width = 4 * vector_bits() // (64 if kind == "double" else 32)
    if f"<{width} x {kind}>" in kernel.llvm:
        assert f"llvm.masked.store.v{width}f" in kernel.llvm
        whole = kernel.llvm.count(f"store <{width} x {kind}>")
        assert whole == len([line for line in kernel.llvm.splitlines() if line.startswith("vector:")]) - 1
    x = np.linspace(0, 1, count).astype(dtype)
    np.testing.assert_allclose(kernel(x), 64 * x**2, rtol=1e-6)
