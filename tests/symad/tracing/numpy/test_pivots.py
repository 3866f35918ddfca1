"""Linear systems whose diagonal is no pivot: kernels choose their pivots as NumPy does."""

from __future__ import annotations

import numpy as np
import pytest

import symad as sa

MATRICES = {
    "tiny": [[1e-20, 1.0], [1.0, 1.0]],
    "zero": [[0.0, 1.0], [1.0, 1.0]],
    "cyclic": [[0.0, 1.0, 0.0], [0.0, 0.0, 2.0], [3.0, 0.0, 0.0]],
    "zero in front": [[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [4.0, 5.0, 6.0]],
    "late": [[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 1.0, 1.0], [1.0, 0.0, 5.0, 2.0], [3.0, 1.0, 1e-3, 0.0]],
    "odd": [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, 0.0], [1.0, 0.0, 0.0, 5.0]],
}


@pytest.mark.parametrize("matrix", MATRICES.values(), ids=MATRICES)
@pytest.mark.parametrize(
    "function", [lambda m: np.linalg.solve(m, np.arange(1.0, len(m) + 1)), np.linalg.inv, np.linalg.det],
    ids=["solve", "inv", "det"],
)  # fmt: skip
@pytest.mark.thinned
def test_kernels_choose_pivots(function, matrix):
    matrix = np.array(matrix)
    right = function(matrix)
    assert sa.compile(function, np.eye(len(matrix)))(matrix) == pytest.approx(right, rel=1e-12, abs=1e-13)
    for transform in (sa.jacfwd, sa.jacrev):
        found = sa.compile(transform(function), np.eye(len(matrix)))(matrix)
        assert found == pytest.approx(transform(function)(matrix), rel=1e-11, abs=1e-12)


def test_the_derivative_of_an_inverse_by_algebra():
    """d(M^-1) = -M^-1 dM M^-1, with a matrix that needs a row swap."""
    matrix, direction = np.array(MATRICES["zero in front"]), np.arange(9.0).reshape(3, 3)
    inverse = np.linalg.inv(matrix)
    kernel = sa.compile(lambda m, d: sa.jvp(np.linalg.inv, (m,), (d,))[1], np.eye(3), np.eye(3))
    assert kernel(matrix, direction) == pytest.approx(-inverse @ direction @ inverse, rel=1e-12, abs=1e-13)


SINGULAR = {"1 to 9": np.arange(1.0, 10.0).reshape(3, 3), "0 to 15": np.arange(16.0).reshape(4, 4)}


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("function", [lambda m: np.sum(np.linalg.solve(m, np.ones(len(m)))), np.linalg.inv])
def test_a_singular_matrix_is_nan_in_kernels(function, matrix):
    """Rounding left a pivot of 1e-16 where LAPACK's is exactly 0: the kernel gave ordinary numbers."""
    with pytest.raises(np.linalg.LinAlgError):
        function(matrix)
    value, slopes = sa.compile(lambda m: (function(m), sa.jacobian(function)(m)), np.eye(len(matrix)))(matrix)
    assert np.all(np.isnan(value))
    assert np.all(np.isnan(slopes))


@pytest.mark.parametrize("matrix", SINGULAR.values(), ids=SINGULAR)
def test_a_constant_singular_matrix_is_refused_as_numpy_refuses_it(matrix):
    def f(b):
        return np.sum(np.linalg.solve(matrix, b))

    for call in (sa.grad(f), lambda b: sa.compile(f, b)(b)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            call(np.ones(len(matrix)))
