"""Matrices by columns through products: those of all columns are one, nothing is computed again."""

import numpy as np
import pytest

import symad as sa
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Gather, RolledProgram, regions_of
from codegen.ir.tables import Affine
from codegen.machine.build import compile_program
from codegen.matrices.product_loops import lower_products

RANDOM = np.random.default_rng(0)
X, A, B = (RANDOM.normal(size=shape) for shape in ((1000, 40), (220, 150), (220, 150)))
LONG = RANDOM.normal(size=(4999, 20))
Y, W, V = (RANDOM.normal(size=size) * 0.3 for size in (1000, 40, 150))

HESSIANS = {
    "logistic": (lambda w: np.sum(np.log1p(np.exp(-Y * (X @ w)))), W),
    "vector times matrix": (lambda w: np.sum(np.tanh(w @ X.T) ** 2), W),
    "penalty": (lambda w: np.sum((X @ w - Y) ** 4) + np.sum(w**4) + w[0] * w[1], W),
    "two matrices": (lambda x: np.tanh(A @ x) @ np.sin(B @ x), V),
    "two layers": (lambda x: np.sum(np.exp(B.T @ np.tanh(A @ x) / 150)), V),
    "multinomial": (lambda w: np.sum(np.log(np.sum(np.exp(X[:, :20] @ w.reshape(20, 4)), axis=1))), V[:80]),
    "matrix of parameters": (lambda w: np.sum(np.tanh(w.reshape(4, 40) @ X.T) ** 2), np.tile(W, 4)),
    "many rows": (lambda w: np.sum(np.log1p(np.exp(LONG @ w))), W[:20]),
    "rows used twice": (lambda w: np.sum(np.tanh(LONG @ w) ** 2) + np.sum(np.cumsum(LONG @ w) ** 2) / 1e5, W[:20]),
    "quadratic": (lambda x: x @ (A.T @ (B @ x)) + np.sum(np.sin(x)), V),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_through_products(name):
    f, x = HESSIANS[name]
    kernel = sa.compile(sa.hessian(f), x)
    found = kernel(x)
    np.testing.assert_allclose(found, sa.hessian(f)(x), rtol=1e-9, atol=1e-9)
    assert np.array_equal(found, found.T)


def test_products_with_a_part_of_the_array():
    """The vector of a product is no whole unit vector there."""

    def f(w):
        first, second, last = w[:51].reshape(3, 17), w[51:340].reshape(17, 17), w[340:]
        return np.sum((np.tanh(np.tanh(X[:30, :3] @ first) @ second) @ last - Y[:30]) ** 2)

    w = np.sin(np.arange(357.0))
    np.testing.assert_allclose(sa.compile(sa.hessian(f), w)(w), sa.hessian(f)(w), rtol=1e-9, atol=1e-9)


def test_a_matrix_that_is_an_argument():
    def f(w, x):
        return np.sum(np.cosh(x @ w))

    point = W, X
    np.testing.assert_allclose(sa.compile(sa.hessian(f), *point)(*point), sa.hessian(f)(*point), rtol=1e-9)
    jacobian = sa.jacobian(lambda w, x: np.tanh(x @ w))
    np.testing.assert_allclose(sa.compile(jacobian, *point)(*point), jacobian(*point), rtol=1e-9)


@pytest.mark.parametrize("f", [lambda w: np.tanh(X @ w), lambda w: np.sin(w @ X.T) * Y, lambda w: X.T @ np.tanh(X @ w)])
def test_jacobians_through_products(f):
    np.testing.assert_allclose(sa.compile(sa.jacobian(f), W)(W), sa.jacobian(f)(W), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("rows", "inner"), [(1, 1), (4, 3), (5, 7), (12, 1), (23, 4500)])
def test_lower_triangles_of_products(rows, inner):
    size, whole = rows * inner, Affine(0, 1, rows * inner)
    buffers = Buffer("input", size), Buffer("input", size), Buffer("output", rows * rows)
    steps = tuple(lower_products(Gather(0, whole), Gather(1, whole), rows, inner, 2))
    inputs = Input("left", (rows, inner)), Input("right", (rows, inner))
    program = RolledProgram(inputs, (Output((rows, rows), ()),), buffers, steps)
    left, right = RANDOM.normal(size=(2, rows, inner))
    found = compile_program(program)(left, right)
    np.testing.assert_allclose(np.tril(found), np.tril(left @ right.T), rtol=1e-10, atol=1e-10)


def of_columns(count):
    data = RANDOM.normal(size=(3000, count))
    return sa.plan(sa.hessian(lambda w: np.sum(np.log1p(np.exp(data @ w)))), np.zeros(count)).candidate


@pytest.mark.parametrize("columns", [16, 32])
def test_one_column_more_is_hardly_more_work(columns):
    """From 17 columns on a product is an operation on whole matrices, and no body with a sum of so many terms."""
    few, more, many = map(of_columns, (columns, columns + 1, 10 * columns))
    assert few.executed < more.executed < 1.35 * few.executed
    assert many.executed < 110 * more.executed


def test_many_rows_are_kept_for_a_chunk_only():
    data = RANDOM.normal(size=(10_007, 20))
    program = sa.plan(sa.hessian(lambda w: np.sum(np.log1p(np.exp(data @ w)))), W[:20]).candidate.rolled.program
    assert max(buffer.size for buffer in program.buffers if buffer.kind == "workspace") <= 20 * 2048


def test_functions_are_not_computed_again_for_each_column():
    program = of_columns(50).rolled.program
    dear = [
        counts for region, counts in regions_of(program.steps) if any("exp" in h.__name__ for h in region.body.heads)
    ]
    assert dear == [()]
