"""Entries of constants that are exactly 0 are structural zeros, in products, sparse matrices and loops alike."""

import numpy as np
import pytest
import scipy.sparse

import symad as sa

RANDOM = np.random.default_rng(3)


def with_zeros(rows, columns, density=0.05):
    return RANDOM.normal(size=(rows, columns)) * (RANDOM.random((rows, columns)) < density)  # some of them are -0.0


def in_loops(matrix, x):
    rows = []
    for i in range(len(matrix)):
        total = 0.0
        for j in range(matrix.shape[1]):
            total = total + matrix[i, j] * x[j]
        rows.append(total)
    return np.array(rows)


PRODUCTS = {
    "array": lambda matrix, x: matrix @ x,
    "from the right": lambda matrix, x: x @ matrix.T,
    "sparse": lambda matrix, x: scipy.sparse.csr_array(matrix) @ x,
    "loops": in_loops,
    "einsum": lambda matrix, x: np.einsum("ij,j->i", matrix, x),
}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize(("rows", "columns", "density"), [(3, 4, 0.5), (10, 30, 0.05), (40, 150, 0.05), (20, 24, 0.6)])
def test_patterns_of_products(product, rows, columns, density):
    matrix, x = with_zeros(rows, columns, density), np.full(columns, 0.1)

    def f(x):
        return 0.5 * np.sum((PRODUCTS[product](matrix, x) - 1.0) ** 2) + np.sum(x**2)

    hessian = matrix.T @ matrix + 2 * np.eye(columns)
    assert sa.sparsity(f, x, order=2).nnz == np.count_nonzero(hessian)
    assert sa.sparsity(lambda x: PRODUCTS[product](matrix, x), x).nnz == np.count_nonzero(matrix)
    kernel = sa.compile(sa.hessian(f, sparse="lower"), x)
    (pattern,) = (output.pattern for output in kernel.program.outputs)
    assert len(pattern.rows) == np.count_nonzero(np.tril(hessian))
    np.testing.assert_allclose(
        kernel(x).data if hasattr(kernel(x), "indptr") else kernel(x), hessian[pattern.rows, pattern.columns]
    )
    jacobian = sa.compile(sa.jacobian(lambda x: PRODUCTS[product](matrix, x) ** 2, sparse=True), x)
    (pattern,) = (output.pattern for output in jacobian.program.outputs)
    assert len(pattern.rows) == np.count_nonzero(matrix)


def test_columns_without_a_common_row():
    """A body has an entry for each two columns of the data; that of two which never meet is none."""
    data = RANDOM.normal(size=(2000, 20))
    data[::2, 3], data[1::2, 4] = 0.0, 0.0
    kernel = sa.compile(sa.hessian(lambda w: np.sum(np.log1p(np.exp(data @ w))), sparse="lower"), np.zeros(20))
    (pattern,) = (output.pattern for output in kernel.program.outputs)
    places = set(zip(pattern.rows.tolist(), pattern.columns.tolist(), strict=True))
    assert {(i, j) for i in range(20) for j in range(i + 1)} - places == {(4, 3)}
    assert kernel.stats.strategy == "rolled"


def test_other_products_with_zero():
    x = np.array([0.3, 0.5, 0.7])
    assert sa.sparsity(lambda x: 0.0 * x, x).nnz == 0
    assert sa.sparsity(lambda x: x[0] * 0.0 * x[1] + x[2] ** 2, x, order=2).nnz == 1
    assert sa.sparsity(lambda x: 0.0 * np.exp(np.sin(x) * x**2), x).nnz == 0
    for no_value in (lambda x: np.zeros(3) / x, lambda x: 0.0 * np.log(x)):  # at 0: there the derivative is NaN
        assert sa.sparsity(no_value, x).nnz == 3
    np.testing.assert_array_equal(sa.jacobian(lambda x: np.array([0.0, 1.0, -0.0]) * x)(x), np.diag([0.0, 1.0, 0.0]))


@pytest.mark.parametrize("size", [3, 100])
def test_a_zero_beside_what_has_no_value_has_no_derivative(size):
    x = np.linspace(0.1, 0.9, size)
    x[1] = -1.0
    with np.errstate(all="ignore"):
        for found in (
            sa.grad(lambda x: np.sum(0.0 * np.log(x)))(x),
            sa.compile(sa.grad(lambda x: np.sum(0.0 * np.log(x))), x)(x),
        ):
            assert np.isnan(found[1])
            assert not np.any(found[2:])
