"""Columns longer than a block: the same bits as block by block, whatever the operands' shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sympy as sp
from mpmath import mp
from numpy.typing import NDArray

import codegen.heads as h
from codegen.evaluation.column_functions import BLOCK, FUNCTIONS, WRITTEN
from codegen.functions.intrinsics import intrinsic

SHAPES = {"flat": (3 * BLOCK + 17,), "matrix": (5, BLOCK)}


def column(shape: tuple[int, ...], seed: int) -> NDArray[Any]:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 4, shape)
    found.flat[:: 1001 + seed], found.flat[3::1003] = np.nan, np.inf
    return found


def small_steps(function: Any, columns: list[Any]) -> NDArray[Any]:
    shape = np.broadcast_shapes(*map(np.shape, columns))
    flat = [np.broadcast_to(each, shape).ravel() for each in columns]
    parts = [slice(start, start + 1000) for start in range(0, flat[0].size, 1000)]
    with np.errstate(all="ignore"):
        return np.concatenate([function(*[each[part] for each in flat]) for part in parts]).reshape(shape)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("head", [h.expit, *WRITTEN])
def test_formulas(head: Any, shape: tuple[int, ...]) -> None:
    function = FUNCTIONS[head]
    first, second = column(shape, 1), column(shape, 2)
    given = [[first]] if 1 in head.nargs else [[first, second], [first, 0.5]]
    for columns in given:
        with np.errstate(all="ignore"):
            found = function(*columns)
        np.testing.assert_array_equal(found, small_steps(function, columns))
        assert found.dtype == np.float64
        assert found.shape == shape


def test_operands_that_lie_backwards_are_taken_whole() -> None:
    first, second = column(SHAPES["matrix"], 1), column(SHAPES["matrix"], 2)
    function = FUNCTIONS[h.logaddexp]
    with np.errstate(all="ignore"):
        found = function(first, second[:, ::-1])
    want = small_steps(function, [first, second[:, ::-1]])
    np.testing.assert_allclose(found, want, rtol=1e-15)  # NumPy has another logarithm for them


@pytest.mark.parametrize("least", [-600.0, -800.0])
def test_expit(least: float) -> None:
    points = np.concatenate([np.random.default_rng(3).uniform(least, 40.0, 500), [0.0, -0.0, 800.0, 1e-320]])
    found = FUNCTIONS[h.expit](points)
    for number, point in zip(found, points, strict=True):
        with mp.workdps(50):
            want = intrinsic(h.expit).reference(mp.mpf(point))
        assert abs(mp.mpf(number) - want) <= 2.0 * np.spacing(float(want))


def test_expit_of_infinities_and_nothing() -> None:
    function = FUNCTIONS[h.expit]
    np.testing.assert_array_equal(function(np.array([np.inf, -np.inf, np.nan])), [1.0, 0.0, np.nan])
    assert function(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("head", [h.softplus, h.log_expit, h.logaddexp])
def test_logarithms_of_formulas(head: Any) -> None:
    rng = np.random.default_rng(4)
    first = np.concatenate([rng.normal(size=300) * 10.0, rng.uniform(-800.0, 800.0, 200), [0.0, -0.0, 1e-300, -40.0]])
    columns = [first, rng.normal(size=first.size)][: max(head.nargs)]
    found = FUNCTIONS[head](*columns)
    exact = intrinsic(head).reference
    for number, *numbers in zip(found, *columns, strict=True):
        with mp.workdps(50):
            want = exact(*map(mp.mpf, numbers))
        largest = max(abs(float(want)), *map(abs, numbers[1:]), 0.0)  # what is added to it may cancel
        assert abs(mp.mpf(number) - want) <= 2.0 * np.spacing(largest)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_choices(shape: tuple[int, ...]) -> None:
    function = FUNCTIONS[sp.Piecewise]
    one, two, other = (column(shape, seed) for seed in (1, 2, 3))
    for columns in (
        [one, two > 0.0, other, True],
        [1.0, one > 0.0, two, other > 0.0],
        [one, two > 0.0, np.ones(shape[-1]), True],
    ):
        found = function(*columns)
        np.testing.assert_array_equal(found, small_steps(function, columns))
        assert found.shape == shape
