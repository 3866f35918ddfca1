"""lambdify against sympy.lambdify."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import sympy as sp

from codegen import ArgumentError, lambdify

X, Y, Z = sp.symbols("x y z")


@pytest.mark.parametrize(
    ("args", "expression", "values"),
    [
        (X, sp.sin(X) + 1, (0.5,)),
        ([X, Y], X * Y**2, (0.5, 3)),
        ([X, Y], [X, X * Y, sp.exp(Y)], (0.5, 3.0)),
        ([X, Y], (X, [Y, X + Y]), (0.5, 3.0)),
        ([X, Y], sp.Matrix([[X, Y], [X * Y, 1]]), (0.5, 3.0)),
        ([(X, Y), Z], X * Y + Z, ([0.5, 3.0], 2.0)),
        ([X], X**2 + 1, (np.linspace(0, 1, 5),)),
        ([X, Y], X * Y + 1, (np.linspace(0, 1, 5), np.linspace(1, 2, 3)[:, None])),
        ([X, Y], X * Y + 1, (np.linspace(0, 1, 5), 2.0)),
        ([X, Y], [X * Y, X - Y], (np.linspace(0, 1, 6).reshape(2, 3), 2.0)),
        ([(X, Y)], X * Y, (np.arange(6.0).reshape(2, 3),)),
    ],
)
def test_same_as_sympy(args: Any, expression: Any, values: Any) -> None:
    mine = lambdify(args, expression)(*values)
    want = sp.lambdify(args, expression, "numpy")(*values)

    def compare(left: Any, right: Any) -> None:
        if isinstance(right, list | tuple):
            assert type(left) is type(right)
            assert len(left) == len(right)
            for a, b in zip(left, right, strict=True):
                compare(a, b)
        else:
            assert np.shape(left) == np.shape(right)
            np.testing.assert_allclose(left, right, rtol=1e-15)

    compare(mine, want)


def test_matrices_at_many_points() -> None:
    f = lambdify([X, Y], sp.Matrix([[X, Y], [X * Y, X]]))
    x, y = np.linspace(0, 1, 4), 2.0
    result = f(x, y)
    assert result.shape == (2, 2, 4)
    for k in range(4):
        np.testing.assert_array_equal(result[:, :, k], f(x[k], y))


def test_refusals() -> None:
    f = lambdify([X, Y], X + Y)
    with pytest.raises(ArgumentError, match="broadcast"):
        f(np.zeros(3), np.zeros(4))
    with pytest.raises(ArgumentError, match="1 arguments"):
        f(np.zeros(3))
    with pytest.raises(ArgumentError, match="dtype <U1"):
        f("a", 2.0)


def test_other_number_types() -> None:
    f = lambdify([X, Y], [X * Y, sp.Matrix([[X, Y]])], dtype="complex128")
    assert f(1j, 2.0)[0] == 2j
    products, matrices = f(np.array([1j, 2]), 1 + 1j)
    assert products.tolist() == [1j - 1, 2 + 2j]
    assert matrices.shape == (1, 2, 2)
    single = lambdify([X, Y], X / Y, dtype="float32")(np.ones(3), 3.0)
    assert single.dtype == np.float32
    assert single.tolist() == [float(np.float32(1) / np.float32(3))] * 3


@pytest.mark.parametrize(
    "expressions",
    [X * Y, sp.Matrix([[X, Y]]), [X, (Y, sp.Matrix([X * Y]))], []],
    ids=["scalar", "matrix", "nested", "none"],
)
def test_a_pickled_function_gives_the_same_results(expressions: Any) -> None:
    function = lambdify([X, Y], expressions)
    for again in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        for point in ((2.0, 3.0), (np.array([1.0, 2.0, 3.0]), 3.0)):
            assert repr(again(*point)) == repr(function(*point))


def test_what_repeats_becomes_loops():
    """The same numbers as straight lines and as SymPy's own lambdify, at many sizes; the code does not grow."""
    lines = {}
    for size in (60, 600):
        x = sp.symbols(f"x:{size}")
        energy = sp.Add(*[(a - b) ** 4 + sp.cos(a - b) for a, b in itertools.pairwise(x)], evaluate=False)
        slopes = [4 * (a - b) ** 3 - sp.sin(a - b) for a, b in itertools.pairwise(x)]
        given = [[list(x)], [energy, sp.Matrix(slopes), [sp.S.Zero, x[0]]]]
        looped, straight = (lambdify(*given, roll=roll) for roll in ("always", "never"))
        assert (looped.kernel.stats.strategy, straight.kernel.stats.strategy) == ("rolled", "straight")
        point = np.linspace(0.1, 2.0, size)
        for found, wanted, theirs in zip(looped(point), straight(point), sp.lambdify(*given)(point), strict=True):
            np.testing.assert_allclose(np.ravel(found), np.ravel(wanted), rtol=1e-13)
            np.testing.assert_allclose(np.ravel(found), np.ravel(np.array(theirs, dtype=float)), rtol=1e-11, atol=1e-12)
        lines[size] = looped.kernel.llvm.count("\n")
    assert lines[600] < 1.1 * lines[60]
    assert lambdify([list(x)], energy).kernel.stats.strategy == "rolled"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"roll": "always"}, 'roll="always": too few operations for loops'),
        (
            {"roll": "always", "dtype": "complex128"},
            "roll=\"always\" with dtype='complex128': loops are written for real numbers",
        ),
        ({"roll": "maybe"}, "roll='maybe'; use one of auto, never, always"),
    ],
)
def test_loops_that_there_are_not_are_refused_with_the_reason(options, message):
    x = sp.Symbol("x")
    with pytest.raises(ArgumentError, match=message):
        lambdify(x, sp.sin(x) + 1, **options)
