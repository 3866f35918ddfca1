"""Factorizations and products in compiled functions: their numbers, and derivatives of every kind through them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import symad as sa
from codegen.ir.region import regions_of
from codegen.loops.loop import RolledBlock
from symad.compiling.candidates import primal_of, traced_with_loops
from symad.tracing.numpy.solve import LOOPED, TRIANGULAR

RNG = np.random.default_rng(17)
N = 10
SQUARE = RNG.normal(size=(N, N))
POSITIVE = SQUARE @ SQUARE.T + N * np.eye(N)
SIDES = RNG.normal(size=(N, 3))
X = np.array([0.3, 1.2, 0.7])


@pytest.fixture(autouse=True)
def fewer_rows(monkeypatch):
    """Matrices of 8 rows are large: elimination on numbers, which these are compared with, takes long."""
    monkeypatch.setattr("symad.tracing.numpy.solve.LOOPED", 8)
    monkeypatch.setattr("symad.tracing.numpy.solve.TRIANGULAR", 8)


def kernel_matrix(x):
    return x[0] * POSITIVE + x[1] * np.eye(N) + np.outer(SIDES[:, 0], SIDES[:, 0]) * x[2] ** 2


def general_matrix(x):
    return x[0] * SQUARE + x[1] * SQUARE.T**2 + x[2] * np.roll(np.eye(N), 3, axis=0)


FUNCTIONS = {
    "cholesky": lambda x: np.sum(np.sin(np.linalg.cholesky(kernel_matrix(x)))),
    "solve": lambda x: np.sum(np.linalg.solve(general_matrix(x), SIDES * x[0]) ** 2),
    "solve a vector": lambda x: np.sum(np.linalg.solve(general_matrix(x), SIDES[:, 0]) ** 2),
    "inv": lambda x: np.sum(np.cos(np.linalg.inv(kernel_matrix(x)))),
    "det": lambda x: np.log(np.linalg.det(kernel_matrix(x) * 0.02)),
    "slogdet": lambda x: np.linalg.slogdet(general_matrix(x))[1],
    "sign": lambda x: np.linalg.slogdet(general_matrix(x))[0] * x[0],
    "likelihood": lambda x: (
        SIDES[:, 1] @ np.linalg.solve(kernel_matrix(x), SIDES[:, 1]) + np.linalg.slogdet(kernel_matrix(x))[1]
    ),
}


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=FUNCTIONS)
@pytest.mark.thinned
def test_values_and_derivatives(f):
    traced = traced_with_loops(f, (X,))
    assert traced.count_ops() < 4 * N * N  # the entries of the matrix, and no elimination
    value, gradient = sa.compile(sa.value_and_grad(f), X)(X)
    assert value == pytest.approx(f(X), rel=1e-11)
    wanted = [sa.derivative(lambda t, k=k: f(X + t * np.eye(3)[k]))(0.0) for k in range(3)]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10)


def solved_factor(x):
    factor = np.linalg.cholesky(kernel_matrix(x))
    return np.sum(np.linalg.solve(factor.T, np.linalg.solve(factor, SIDES * x[1])) ** 2)


def test_systems_of_a_cholesky_factor_are_triangular():
    """Nothing is factorized again, or copied to be read; the matrix of another place is a general one."""

    def done(f):
        regions = [region for region, _ in regions_of(primal_of(traced_with_loops(f, (X,)), "f", False).program.steps)]
        copied = [region.count for region in regions if region.origin == "copies"]
        return [region.matrix.kind for region in regions if region.matrix is not None], copied.count(N * (N + 1) // 2)

    assert done(solved_factor) == (["cholesky", "triangular", "triangular"], 0)
    twice = done(lambda x: np.sum(np.linalg.solve(2 * np.linalg.cholesky(kernel_matrix(x)), SIDES)))
    assert twice == (["cholesky", "solve"], 1)
    value, gradient = sa.compile(sa.value_and_grad(solved_factor), X)(X)
    assert value == pytest.approx(solved_factor(X), rel=1e-11)
    wanted = [sa.derivative(lambda t, k=k: solved_factor(X + t * np.eye(3)[k]))(0.0) for k in range(3)]
    np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10)
    assert np.isnan(sa.compile(solved_factor, X)(-X))


@pytest.mark.parametrize("name", ["solve a vector", "likelihood"])
def test_second_derivatives(name):
    f, v = FUNCTIONS[name], np.array([0.2, -0.4, 1.0])
    product = sa.compile(lambda x: sa.hvp(f, (x,), (v,)), X)(X)
    gradient = sa.compile(sa.grad(f), X)
    wanted = (gradient(X + 1e-5 * v) - gradient(X - 1e-5 * v)) / 2e-5
    np.testing.assert_allclose(product, wanted, rtol=1e-6, atol=1e-6 * np.abs(wanted).max())


def test_large_matrices_are_factorized_by_loops(monkeypatch):
    monkeypatch.undo()
    for function, least in ((np.linalg.cholesky, TRIANGULAR), (np.linalg.inv, LOOPED)):
        for n, by_loops in ((least - 1, False), (least, True)):
            traced = traced_with_loops(lambda a, function=function: function(a), (np.eye(n),))
            assert (traced.count_ops() < n) == by_loops == (len(traced.loops) == 1)


@pytest.mark.parametrize("n", [5, 23, 24, 60])
def test_an_ordinary_matrix_is_factorized_while_tracing(n, monkeypatch):
    monkeypatch.undo()
    a, b = np.random.default_rng(n).permutation(RNG.normal(size=(n, n)) + 2 * np.eye(n)), RNG.normal(size=(n, 2))

    def solved(b):
        return np.linalg.solve(a, np.sin(b))

    whole = [loop.program.name for loop in traced_with_loops(solved, (b,)).loops if isinstance(loop, RolledBlock)]
    assert len(whole) == (2 if n >= TRIANGULAR else 0)
    np.testing.assert_allclose(sa.compile(solved, b)(b), np.linalg.solve(a, np.sin(b)), rtol=1e-11, atol=1e-12)
    jacobian = sa.compile(sa.jacobian(lambda x: np.linalg.solve(a, x)), b[:, 0])(b[:, 0])
    np.testing.assert_allclose(jacobian, np.linalg.inv(a), rtol=1e-9, atol=1e-11)


def test_ordinary_matrices_with_few_entries_singular_or_of_integers(monkeypatch):
    monkeypatch.undo()
    x = RNG.normal(size=60)
    bands = 3 * np.eye(60, dtype=int) + np.eye(60, k=1, dtype=int)
    assert not traced_with_loops(lambda x: np.linalg.solve(bands, x), (x,)).loops  # written out: 120 operations
    dense = bands + np.arange(3600).reshape(60, 60) % 7
    for matrix in (bands, dense):
        kernel = sa.compile(lambda x, matrix=matrix: np.linalg.solve(matrix, x), x)
        np.testing.assert_allclose(kernel(x), np.linalg.solve(matrix, x), rtol=1e-10, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        sa.compile(lambda x: np.linalg.solve(np.ones((60, 60)), x), x)


def test_pivots_follow_the_numbers_of_the_call():
    permuted = np.eye(N)[RNG.permutation(N)]
    kernel = sa.compile(np.linalg.slogdet, np.eye(N))
    for matrix in (permuted, permuted[::-1], SQUARE, SQUARE[[1, 0, *range(2, N)]]):
        np.testing.assert_allclose(kernel(matrix), np.linalg.slogdet(matrix), rtol=1e-11)
    np.testing.assert_allclose(sa.compile(np.linalg.inv, np.eye(N))(permuted), permuted.T)


def test_what_has_no_factor_is_not_finite():
    assert np.isnan(sa.compile(np.linalg.cholesky, np.eye(N))(-np.eye(N))).any()
    assert not np.isfinite(sa.compile(np.linalg.inv, np.eye(N))(np.ones((N, N)))).any()
    inverse = sa.compile(np.linalg.inv, np.eye(N))
    for place in ((3, 4), (0, 0), (N - 1, N - 1), (N - 1, 0), (7, N - 1)):
        spoiled = SQUARE.copy()
        spoiled[place] = np.nan
        assert np.isnan(inverse(spoiled)).all()


def test_a_known_singular_matrix_is_refused_as_by_numpy():
    for n in (N, 30):
        singular = np.ones((n, n))
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            sa.compile(lambda x, a=singular: np.linalg.solve(a, x), np.ones(n))
    kernel = sa.compile(lambda x: np.linalg.solve(SQUARE, x), np.ones(N))
    np.testing.assert_allclose(kernel(SIDES[:, 0]), np.linalg.solve(SQUARE, SIDES[:, 0]), rtol=1e-9)


def test_stacks_of_matrices():
    kernel = sa.compile(np.linalg.solve, np.array([SQUARE, POSITIVE]), SIDES)
    matrices = np.array([POSITIVE, SQUARE])
    np.testing.assert_allclose(kernel(matrices, SIDES), np.linalg.solve(matrices, SIDES), rtol=1e-9, atol=1e-10)


def test_large_matrices_are_factorized_by_a_library(monkeypatch):
    a = RNG.normal(size=(400, 400))
    positive = a @ a.T + 400 * np.eye(400)
    kernel = sa.compile(lambda a: np.sum(np.log(np.diagonal(np.linalg.cholesky(a)))), positive)
    assert kernel(positive) == pytest.approx(np.linalg.slogdet(positive)[1] / 2, rel=1e-13)
    entry = sa.compile(lambda x: sa.grad(lambda y: np.linalg.slogdet(y * a)[1])(x)[0, 1], np.ones((400, 400)))
    assert entry(np.ones((400, 400))) == pytest.approx(np.linalg.inv(a).T[0, 1] * a[0, 1], rel=1e-9)


def likelihood(x):
    matrix = kernel_matrix(x)
    factor, scaled = np.linalg.cholesky(matrix), matrix * x[0]
    return (
        SIDES[:, 0] @ np.linalg.solve(matrix, SIDES[:, 0])
        + np.sum(np.log(np.diagonal(factor)))
        + np.sin(x[2]) * np.linalg.slogdet(scaled)[1]
    )


def differences(f, x, step=1e-5):
    return np.stack([(f(x + step * unit) - f(x - step * unit)) / (2 * step) for unit in np.eye(len(x))], axis=-1)


def test_matrices_of_derivatives():
    hessian = sa.compile(sa.hessian(likelihood), X)
    assert any(region.matrix is not None and counts for region, counts in regions_of(hessian.program.steps))
    np.testing.assert_allclose(hessian(X), differences(sa.compile(sa.grad(likelihood), X), X), rtol=1e-7)

    def solved(x):
        return np.linalg.solve(general_matrix(x), SIDES[:, 0] * x[2])

    wanted = differences(sa.compile(solved, X), X)
    np.testing.assert_allclose(sa.compile(sa.jacobian(solved), X)(X), wanted, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sa.compile(sa.jacobian(lambda x: solved(x)[:2]), X)(X), wanted[:2], rtol=1e-6, atol=1e-9)


def test_derivatives_of_a_hessian():
    """Its columns are rounds of a nest, in which matrix operations are differentiated as loops."""

    def total(x):
        return np.sum(sa.hessian(likelihood)(x))

    gradient = sa.compile(sa.grad(total), X)(X)
    np.testing.assert_allclose(gradient, differences(sa.compile(total, X), X), rtol=1e-6)


def test_products_of_data_and_of_what_is_active():
    """By rows and by columns; of one matrix with itself; where a part of a matrix only is active."""
    data = RNG.normal(size=(40, 30))

    def f(x):
        weights = np.reshape(x, (30, 40))
        mixed = np.concatenate([weights, np.reshape(data, (30, 40))], axis=1)
        return np.sum(np.tanh(data @ weights) * (weights.T @ data.T)) + np.sum(np.cos(mixed.T @ mixed))

    x = RNG.normal(size=1200) / 5
    value, gradient = sa.compile(sa.value_and_grad(f), x)(x)
    assert value == pytest.approx(f(x), rel=1e-12)
    np.testing.assert_allclose(gradient, sa.grad(f)(x), rtol=1e-10, atol=1e-12)
    product = sa.compile(lambda x, v: sa.hvp(f, (x,), (v,)), x, x)(x, x[::-1].copy())
    np.testing.assert_allclose(product, sa.hvp(f, (x,), (x[::-1].copy(),)), rtol=1e-9, atol=1e-10)


def test_matrices_in_a_chain():
    """Those that change with its rounds are written as loops there."""
    n = 8

    def f(x):
        def step(state, k):
            matrix = np.eye(n) * (3 + k) + np.outer(state, state)
            found = np.linalg.solve(matrix, state) + np.sin(state) / 2
            return found, np.sum(found)

        return np.sum(sa.scan(step, x, np.arange(4.0))[1])

    x = RNG.normal(size=n)
    np.testing.assert_allclose(sa.compile(f, x)(x), f(x), rtol=1e-11)
    np.testing.assert_allclose(sa.compile(sa.grad(f), x)(x), sa.grad(f)(x), rtol=1e-9, atol=1e-11)


def test_exported_code_has_loops(tmp_path):
    kernel = sa.compile(likelihood, X)
    written = kernel.export(tmp_path, "likelihood")
    assert "dpotrf" not in written.files["source"].read_text()


def test_a_kernel_is_checked_against_many_digits():
    kernel = sa.compile(lambda x: np.linalg.solve(kernel_matrix(x), SIDES[:, 0]), X)
    assert sa.verify(kernel, X).worst_ulp < 1000


def test_loops_of_a_large_matrix_are_refused(tmp_path):
    kernel = sa.compile(lambda x: np.linalg.solve(x[0] * np.eye(321) + 1, np.ones(321))[0], np.ones(2))
    assert kernel(np.ones(2)) == pytest.approx(1 / 322)
    with pytest.raises(
        sa.errors.LimitError, match=r"the solve of a matrix of 321 rows as loops.*exported code has loops"
    ):
        kernel.export(tmp_path, "large")
    assert not list(tmp_path.iterdir())


def test_a_plan_says_that_the_library_is_missing(monkeypatch):
    f = FUNCTIONS["likelihood"]
    assert sa.plan(sa.grad(f), X).carried_out == []
    monkeypatch.setattr("symad.compiling.planning.has_library", lambda: False)
    monkeypatch.setattr("codegen.loops.emit.rolled_code.has_library", lambda: False)
    (said,) = sa.plan(sa.grad(f), X).carried_out
    assert said.startswith("matrix operations are loops, as SciPy's BLAS and LAPACK are missing")
    kernel = sa.compile(sa.grad(f), X, cache=False, roll="always")
    assert kernel.stats.strategy == "rolled"
    np.testing.assert_allclose(kernel(X), sa.grad(f)(X), rtol=1e-9)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("scale", [1e-110, 1e-60, 1.0, 1e60, 1e110])
def test_derivatives_of_slogdet_do_not_overflow(size: int, scale: float) -> None:
    """The k-th derivative at s A is s**-k times the one at A."""
    a = np.random.default_rng(0).normal(size=(size, size)) + size * np.eye(size)

    def logarithm(matrix: Any) -> Any:
        return np.linalg.slogdet(matrix)[1]

    inverse = np.linalg.inv(a)
    curvature = -np.einsum("li,jk->ijkl", inverse, inverse)
    for gradient in (sa.grad(logarithm), sa.compile(sa.grad(logarithm), a)):
        np.testing.assert_allclose(gradient(a * scale) * scale, inverse.T, rtol=1e-12)
    hessian = sa.compile(sa.hessian(logarithm), a)
    np.testing.assert_allclose(hessian(a * scale) * scale * scale, curvature, rtol=1e-10, atol=1e-12)
    assert logarithm(a * scale) == pytest.approx(float(sa.compile(logarithm, a)(a * scale)), rel=1e-14)


def test_kernels_are_nan_where_numpy_raises_an_error() -> None:
    """An indefinite matrix has no Cholesky factor, a singular one no solution: values and slopes are NaN."""

    def factor(x: Any) -> Any:
        return np.sum(np.linalg.cholesky(np.stack([np.stack([x, 2.0]), np.stack([2.0, 1.0])])))

    def corner(x: Any) -> Any:
        return np.linalg.cholesky(np.stack([np.stack([x, 2.0]), np.stack([2.0, 1.0])]))[0, 0]

    def solution(x: Any) -> Any:
        return np.linalg.solve(np.stack([np.stack([x, 0.5]), np.stack([x, 0.5])]), np.array([1.0, 2.0]))[0]

    for f, places in ((factor, (0.5, 4.0, -1.0)), (corner, (0.5, 4.0, -1.0)), (solution, (0.5, 2.0))):
        both = sa.compile(sa.value_and_grad(f), 9.0)
        for place in places:
            with pytest.raises(np.linalg.LinAlgError):
                f(np.float64(place))
            assert np.isnan(both(place)).all(), (f, place)
    both = sa.compile(sa.value_and_grad(corner), 9.0)
    assert both(9.0) == (3.0, pytest.approx(1 / 6))


@pytest.mark.parametrize("shape", [(4, 3), (10, 3), (12, 5), (3, 3)])
@pytest.mark.parametrize("part", [0, 1])
def test_qr_of_dependent_columns_has_values_and_no_slopes(shape: tuple[int, int], part: int) -> None:
    generator = np.random.default_rng(0)
    a = generator.normal(size=shape)
    both = sa.compile(sa.value_and_grad(lambda m: np.sum(np.linalg.qr(m)[part])), a)
    value, slope = both(a)
    assert np.isfinite(slope).all()
    np.testing.assert_allclose(value, np.sum(np.linalg.qr(a)[part]), rtol=1e-12)
    for dependent in (np.ones(shape), np.column_stack([a[:, 0], 2 * a[:, 0], a[:, 2:]])):
        assert np.isnan(both(dependent)[1]).all()
