"""Kernels inside of numba's functions: the numbers of plain calls, what is refused, and the cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
import sympy as sp

import symad as sa
from codegen import compile_program, program_from_sympy
from codegen.machine.calls.kernel import Kernel

X = sp.symbols("x:3")
A = sp.Symbol("a")
NUMBER = compile_program(program_from_sympy([A], [sp.exp(-A) * A]))
SEVERAL = compile_program(program_from_sympy([X, A], [X[0] * A + X[2], [X[0] * X[1], X[1] + A]]))
BEND = sa.compile(sa.hessian(lambda x: np.sum(x**4) + x[0] * x[1]), np.ones(3))


@numba.njit
def applied(kernel: Any, *values: Any) -> Any:
    return kernel(*values)


@numba.njit
def total(kernel: Any, values: Any) -> float:
    found = 0.0
    for value in values:
        found += kernel(value)
    return found


def test_numbers_arrays_and_several_results() -> None:
    assert applied(NUMBER, 0.5) == NUMBER(0.5)
    assert applied(NUMBER, 2) == NUMBER(2.0)
    assert applied(NUMBER, np.float32(0.5)) == NUMBER(0.5)
    point = np.array([0.5, 2.0, -1.0])
    np.testing.assert_array_equal(applied(BEND, point), BEND(point))
    first, second = applied(SEVERAL, point, 3.0)
    assert first == SEVERAL(point, 3.0)[0]
    np.testing.assert_array_equal(second, SEVERAL(point, 3.0)[1])
    values = np.linspace(0.0, 1.0, 101)
    assert total(NUMBER, values) == sum(NUMBER(value) for value in values.tolist())


def test_results_are_arrays_of_their_own() -> None:
    @numba.njit
    def both(kernel: Any, x: Any) -> Any:
        first = kernel(x)
        x[0] = 7.0
        return first, kernel(x)

    first, second = both(BEND, np.ones(3))
    assert (first[0, 0], second[0, 0]) == (12.0, 12.0 * 49.0)


def test_a_kernel_as_a_global_and_in_threads() -> None:
    @numba.njit(parallel=True)
    def traces(points: Any) -> Any:
        found = np.empty(len(points))
        for k in numba.prange(len(points)):
            found[k] = np.trace(BEND(points[k]))
        return found

    points = np.random.default_rng(0).normal(size=(200, 3))
    np.testing.assert_array_equal(traces(points), [np.trace(BEND(point)) for point in points])


def test_another_kernel_of_the_same_shapes_needs_no_compilation() -> None:
    other = compile_program(program_from_sympy([A], [A + 1]))
    applied(NUMBER, 1.0)
    before = len(applied.signatures)
    assert applied(other, 1.0) == 2.0
    assert len(applied.signatures) == before


@pytest.mark.parametrize(
    ("kernel", "values", "message"),
    [
        (BEND, (1.0,), r"argument 0 of the kernel is a C-contiguous array of float64 of shape \(3,\), and not float64"),
        (BEND, (np.ones((3, 3)),), "argument 0 of the kernel is"),
        (BEND, (np.ones(3, np.float32),), r"array\(float32"),
        (BEND, (np.ones(6)[::2],), "C-contiguous"),
        (NUMBER, (np.ones(3),), "argument 0 of the kernel is a real number"),
        (NUMBER, (1j,), "argument 0 of the kernel is a real number, and not complex128"),
        (NUMBER, (1.0, 2.0), "the kernel takes 1 arguments by position"),
    ],
)
def test_what_does_not_fit_is_refused_when_it_is_compiled(kernel: Kernel, values: Any, message: str) -> None:
    with pytest.raises(numba.TypingError, match=message):
        applied(kernel, *values)


def test_a_wrong_shape_is_refused_when_it_comes() -> None:
    with pytest.raises(ValueError, match=r"argument 0 of the kernel has not the shape \(3,\)"):
        applied(BEND, np.ones(4))


def test_kernels_of_containers_and_other_numbers_are_refused() -> None:
    single = compile_program(program_from_sympy([A], [A + 1]), dtype="float32")
    with pytest.raises(numba.TypingError, match="a kernel with numbers of float32 in numba"):
        applied(single, 1.0)
    with pytest.raises(numba.TypingError, match="a kernel with containers in numba"):
        applied(sa.compile(lambda p: p["a"] * 2.0, {"a": 1.0}), 1.0)


CACHED = """
import os, numba, numpy as np, symad as sa

scale = float(os.environ["SCALE"])

@numba.njit(cache=True)
def total(kernel, values):
    found = 0.0
    for value in values:
        found += kernel(value)
    return found

kernel = sa.compile(lambda x: np.sin(x) * scale, 1.0)
print(total(kernel, np.ones(10)) / np.sin(1.0), sum(total.stats.cache_hits.values()))
"""


def test_a_function_that_takes_a_kernel_is_cached(tmp_path: Path) -> None:
    """Another process, another address, another kernel: the machine code of numba's function is the same."""
    found = []
    for scale in ("2.0", "3.0"):
        file = tmp_path / "cached.py"
        if not file.exists():
            file.write_text(CACHED)
        environment = os.environ | {"SCALE": scale, "PYTHONPATH": str(Path(__file__).parents[4])}
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True, env=environment)
        found.append([float(word) for word in done.stdout.split()])
    assert found[0] == pytest.approx([20.0, 0])
    assert found[1] == pytest.approx([30.0, 1])
