"""Functions of scipy.linalg on traced values, against SciPy's numbers, differences, and NumPy's own words for them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import sympy as sp
from scipy import linalg

import symad as sa

RNG = np.random.default_rng(3)
X, V = np.array([0.9, 1.2]), np.array([0.3, -0.7])


class Matrices:
    """Matrices of one size, functions of two numbers."""

    def __init__(self, n):
        self.n, self.a, self.sides = n, RNG.normal(size=(n, n)), RNG.normal(size=(n, 2))
        self.positive = self.a @ self.a.T + n * np.eye(n)
        self.factors = linalg.lu_factor(self.a)

    def general(self, x):
        return x[0] * self.a + 3 * x[1] * np.eye(self.n)

    def symmetric(self, x):
        return x[0] * self.positive + x[1] * np.eye(self.n)

    def steep(self, x):
        return self.symmetric(x) / self.n + np.eye(self.n) * self.n


MADE = {n: Matrices(n) for n in (1, 2, 5, 30)}
FUNCTIONS = {
    "solve": lambda m, x: scipy.linalg.solve(m.general(x), m.sides * x[0]),
    "solve sym": lambda m, x: linalg.solve(m.symmetric(x), m.sides * x[0], assume_a="sym"),
    "solve pos": lambda m, x: linalg.solve(m.symmetric(x), m.sides[:, 0], assume_a="pos", lower=True),
    "solve turned": lambda m, x: linalg.solve(m.general(x), m.sides[:, 0], transposed=True),
    "solve triangular": lambda m, x: linalg.solve(m.steep(x), m.sides[:, 0], assume_a="lower triangular"),
    "inv": lambda m, x: linalg.inv(m.general(x)),
    "det": lambda m, x: np.log(np.abs(linalg.det(m.general(x)))),
    "cholesky": lambda m, x: linalg.cholesky(m.symmetric(x)),
    "cholesky lower": lambda m, x: linalg.cholesky(m.symmetric(x), lower=True),
    "cho_solve": lambda m, x: linalg.cho_solve(linalg.cho_factor(m.symmetric(x)), m.sides),
    "cho_solve lower": lambda m, x: linalg.cho_solve(linalg.cho_factor(m.symmetric(x), True), m.sides[:, 0] * x[0]),
    "cho_factor": lambda m, x: np.triu(linalg.cho_factor(m.symmetric(x))[0]),
    "solve_triangular": lambda m, x: linalg.solve_triangular(m.steep(x), m.sides),
    "solve_triangular turned": lambda m, x: linalg.solve_triangular(m.steep(x), m.sides, trans="T", lower=True),
    "unit diagonal": lambda m, x: linalg.solve_triangular(m.steep(x) / m.n**2, m.sides, lower=True, unit_diagonal=True),
    "lu_solve": lambda m, x: linalg.lu_solve(linalg.lu_factor(m.general(x)), m.sides),
    "lu_solve turned": lambda m, x: linalg.lu_solve(linalg.lu_factor(m.general(x)), m.sides * x[0], trans=1),
    "lu_solve of numbers": lambda m, x: linalg.lu_solve(m.factors, m.sides * x[0]),
    "lu_solve of numbers, turned": lambda m, x: linalg.lu_solve(m.factors, m.sides * x[0], trans=1),
    "block_diag": lambda m, x: linalg.block_diag(x, m.sides * x[0], x[1]),
    "patterns": lambda m, x: linalg.toeplitz(x * 2, x) @ linalg.hankel(x, x**2) * linalg.circulant(x),
    "toeplitz": lambda m, x: linalg.toeplitz(np.append(x, 3.0)) @ linalg.hankel(np.append(x, x)[:3]),
}
CASES = [(name, n) for name in FUNCTIONS for n in MADE]


@pytest.mark.parametrize(("name", "n"), CASES)
@pytest.mark.thinned
def test_values_and_derivatives(name, n):
    def f(x):
        return np.sum(np.sin(FUNCTIONS[name](MADE[n], x)))

    value, gradient = sa.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-12)
    wanted = [(f(X + 1e-5 * unit) - f(X - 1e-5 * unit)) / 2e-5 for unit in np.eye(2)]
    np.testing.assert_allclose(gradient, wanted, rtol=2e-6, atol=1e-8)
    second, slope = sa.hvp(f, (X,), (V,)), sa.grad(f)
    np.testing.assert_allclose(second, (slope(X + 1e-5 * V) - slope(X - 1e-5 * V)) / 2e-5, rtol=2e-6, atol=1e-8)
    np.testing.assert_allclose(sa.compile(slope, X, tier="fast")(X), gradient, rtol=1e-9, atol=1e-12)
    found = sa.compile(lambda x: sa.hvp(f, (x,), (V,)), X, tier="fast")(X)
    np.testing.assert_allclose(found, second, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [2, 5, 30])
def test_only_one_triangle_is_read_and_has_derivatives(n):
    a, b = MADE[n].positive, MADE[n].sides[:, 0]
    for lower in (False, True):
        kept = np.tri(n, dtype=bool) if lower else np.tri(n, dtype=bool).T
        spoiled = np.where(kept, a, 7.5)
        for f in (
            lambda a, lower=lower: np.sum(linalg.solve(a, b, lower=lower, assume_a="sym")),
            lambda a, lower=lower: np.sum(linalg.cho_solve(linalg.cho_factor(a, lower=lower), b)),
            lambda a, lower=lower: np.sum(linalg.inv(a, assume_a="pos", lower=lower) @ b),
        ):
            for run in (sa.value_and_grad(f), sa.compile(sa.value_and_grad(f), a)):
                value, gradient = run(spoiled)
                assert value == pytest.approx(np.sum(np.linalg.solve(a, b)), rel=1e-10)
                y = np.linalg.solve(a, np.ones(n))
                whole = -np.outer(y, np.linalg.solve(a, b))
                wanted = np.where(np.eye(n, dtype=bool), whole, np.where(kept, whole + whole.T, 0))
                np.testing.assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-12)


def test_scipys_own_errors():
    singular = np.zeros((3, 3))
    with pytest.raises(np.linalg.LinAlgError, match="singular matrix: resolution failed at diagonal 0"):
        sa.grad(lambda x: np.sum(linalg.solve_triangular(singular * x[0], np.ones(3))))(X)
    with pytest.raises(np.linalg.LinAlgError):
        sa.grad(lambda x: np.sum(linalg.solve(-np.eye(4) * x[0], np.ones(4), assume_a="pos")))(X)
    with pytest.raises(ValueError, match="array must not contain infs or NaNs"):
        sa.grad(lambda x: np.sum(linalg.inv(np.eye(3) * np.nan * x[0])))(X)
    with pytest.raises(ValueError, match="hollow is not a recognized"):
        sa.grad(lambda x: np.sum(linalg.solve(np.eye(3) * x[0], np.ones(3), assume_a="hollow")))(X)
    gradient = sa.grad(lambda x: np.sum(linalg.inv(np.eye(3) * np.nan * x[0], check_finite=False)))(X)
    assert np.isnan(gradient[0])


REFUSED = {
    "lu_factor": lambda a: linalg.lu_factor(a)[0] * 2,
    "polar": lambda a: linalg.polar(a)[0],
    "eig": lambda a: linalg.eig(a)[0],
    "hessenberg": lambda a: linalg.hessenberg(a),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_traced_form_is_refused_by_name(name):
    for run in (sa.grad, lambda f: sa.compile(sa.grad(f), np.eye(3))):
        with pytest.raises(sa.errors.TraceError, match=rf"scipy.linalg.{name} was called with a traced value.*; \w+"):
            run(lambda a: np.sum(REFUSED[name](a)))(np.eye(3))


def test_numbers_are_scipys():
    """A stand-in is the original function for ordinary arguments."""
    a = MADE[5].a

    def f(x):
        factor, order = linalg.lu_factor(a)
        return np.sum(factor) + np.sum(order) + np.sum(linalg.logm(np.eye(2))) + x[0]

    assert sa.value_and_grad(f)(X)[0] == pytest.approx(f(X))


def test_a_number_is_a_matrix_of_one_row_where_scipy_takes_it_for_one():
    scipy_linalg = pytest.importorskip("scipy.linalg")
    for f in (
        lambda x: scipy_linalg.cholesky(x[0])[0, 0],
        lambda x: scipy_linalg.cho_factor(x[0], lower=True)[0][0, 0],
        lambda x: scipy_linalg.cho_solve(scipy_linalg.cho_factor(x[0]), x[1:])[0],
    ):
        value, slope = sa.value_and_grad(f)(np.array([2.0, 3.0]))
        assert value == pytest.approx(f(np.array([2.0, 3.0])), rel=1e-15)
        assert slope == pytest.approx(sa.compile(sa.jacfwd(f), np.ones(2))(np.array([2.0, 3.0])), rel=1e-14)


@pytest.mark.parametrize("size", [1e-170, 1e-150, 1.0, 1e150, 1e160])
def test_the_norm_of_a_vector_does_not_leave_the_range(size):
    """SciPy's is that of BLAS: kernels gave 0 at 1e-170 and inf at 1e160, and slopes of inf and 0."""
    x = np.array([1.0, 2.0, -2.0]) * size
    kernel = sa.compile(lambda x: (*sa.value_and_grad(linalg.norm)(x), sa.hessian(linalg.norm)(x) * size), np.ones(3))
    unit = np.array([1.0, 2.0, -2.0]) / 3
    for value, slope, second in (kernel(x), (*sa.value_and_grad(linalg.norm)(x), sa.hessian(linalg.norm)(x) * size)):
        assert value == pytest.approx(linalg.norm(x), rel=1e-14)
        assert slope == pytest.approx(unit, rel=1e-14)
        assert second == pytest.approx((np.eye(3) - np.outer(unit, unit)) / 3, rel=1e-13, abs=1e-15)


def test_factors_of_sympy_matrices_are_not_scaled():
    """The gradient of slogdet was a formula with floor(log2(Max(...)))."""
    x, y, z = sp.symbols("x y z", real=True)
    slopes = sa.grad(lambda v: np.linalg.slogdet(np.array([[v[0], v[1]], [v[1], v[2]]]))[1])([x, y, z])
    determinant = x * z - y**2
    right = [entry * sp.sign(determinant) / sp.Abs(determinant) for entry in (z, -2 * y, x)]
    assert [sp.simplify(slope - entry) for slope, entry in zip(slopes, right, strict=True)] == [0, 0, 0]
    assert not any(slope.has(sp.floor, sp.Max) for slope in slopes)
