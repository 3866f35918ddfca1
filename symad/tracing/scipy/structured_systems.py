"""Banded and patterned systems, matrix equations and matrix roots of scipy.linalg.

The matrix is written down and solved as any other. Functions of a matrix without a formula are roots: what SciPy, or in
a kernel an iteration, finds is differentiated as an implicit function.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_matrices import circulant, finite, toeplitz
from symad.tracing.values.traced import refuse_function


def _of_diagonals(bands: Any, below: int, above: int) -> Any:
    """Return the matrix whose diagonals are the rows of an array, the uppermost one first, each at its columns."""
    bands = traced(bands)
    count = bands.shape[-1]
    i, j = np.indices((count, count))
    row = above + i - j
    inside = (row >= 0) & (row <= above + below)
    return np.where(inside, bands[np.clip(row, 0, above + below), j], 0.0)


def _symmetric_of_diagonals(bands: Any, lower: bool) -> Any:
    """Return the symmetric matrix of which the diagonals on one side are given, the main one among them."""
    bands = traced(bands)
    reach, count = bands.shape[0] - 1, bands.shape[1]
    i, j = np.indices((count, count))
    apart, column = np.abs(i - j), np.minimum(i, j) if lower else np.maximum(i, j)
    row = np.minimum(apart, reach)
    return np.where(apart <= reach, bands[row if lower else reach - row, column], 0.0)


@stands_in_for("scipy.linalg.solve_banded")
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """The solution of a system whose matrix is given by its diagonals."""
    finite(check_finite, ab, b)
    below, above = l_and_u
    ab, b = together(ab, b)
    if below + above + 1 != ab.shape[0] or ab.shape[-1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    return np.linalg.solve(_of_diagonals(ab, int(below), int(above)), b)


@stands_in_for("scipy.linalg.solveh_banded")
def solveh_banded(
    ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, lower: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """The solution of a system whose symmetric, positive definite matrix is given by its diagonals."""
    finite(check_finite, ab, b)
    ab, b = together(ab, b)
    return np.linalg.solve(_symmetric_of_diagonals(ab, lower), b)


@stands_in_for("scipy.linalg.cholesky_banded")
def cholesky_banded(ab: Any, overwrite_ab: bool = False, lower: bool = False, check_finite: bool = True) -> Any:
    """The diagonals of the triangular factor of a positive definite matrix; what is in none of them stays as it is."""
    finite(check_finite, ab)
    bands = traced(ab)
    factor = np.linalg.cholesky(_symmetric_of_diagonals(bands, lower), upper=not lower)
    reach, count = bands.shape[0] - 1, bands.shape[1]
    k, column = np.indices((reach + 1, count))
    row = column + k if lower else column + k - reach
    return np.where((row >= 0) & (row < count), factor[np.clip(row, 0, count - 1), column], bands)


def _columns(c_or_cr: Any) -> tuple[Any, Any]:
    return c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)


@stands_in_for("scipy.linalg.solve_toeplitz")
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """The solution of a system whose matrix has constant diagonals."""
    finite(check_finite, b)
    return np.linalg.solve(*together(toeplitz(*_columns(c_or_cr)), b))


@stands_in_for("scipy.linalg.matmul_toeplitz")
def matmul_toeplitz(c_or_cr: Any, x: Any, check_finite: bool = False, workers: Any = None) -> Any:
    """The product of a matrix with constant diagonals."""
    finite(check_finite, x)
    return np.matmul(*together(toeplitz(*_columns(c_or_cr)), x))


@stands_in_for("scipy.linalg.solve_circulant")
def solve_circulant(
    c: Any, b: Any, singular: str = "raise", tol: Any = None, caxis: int = -1, baxis: int = 0, outaxis: int = 0
) -> Any:
    """The solution of a system whose matrix has one vector, turned round, in its columns."""
    if singular != "raise" or np.ndim(c) != 1 or baxis != 0 or outaxis != 0:
        why, do = "singular=, stacks and other axes have no traced form", "leave them out"
        refuse_function("scipy.linalg.solve_circulant", why, do)
    return np.linalg.solve(*together(circulant(c), b))


@stands_in_for("scipy.linalg.companion")
def companion(a: Any) -> Any:
    """The companion matrix of a polynomial."""
    a = traced(a)
    first = -a[1:] / (1.0 * a[0])
    return np.concatenate([first[None, :], np.eye(a.shape[0] - 2, a.shape[0] - 1)])


# ---- equations of matrices


@stands_in_for("scipy.linalg.solve_sylvester")
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """The matrix x with a x + x b = q, by one linear system."""
    a, b, q = together(a, b, q)
    rows, columns = a.shape[0], b.shape[0]
    system = np.kron(a, np.eye(columns)) + np.kron(np.eye(rows), b.T)
    return np.reshape(np.linalg.solve(system, np.ravel(q)), (rows, columns))


@stands_in_for("scipy.linalg.solve_continuous_lyapunov", "scipy.linalg.solve_lyapunov")
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """The matrix x with a x + x a' = q."""
    return solve_sylvester(a, np.matrix_transpose(traced(a)), q)


@stands_in_for("scipy.linalg.solve_discrete_lyapunov")
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """The matrix x with a x a' - x + q = 0."""
    a, q = together(a, q)
    system = np.eye(a.size) - np.kron(a, a)
    return np.reshape(np.linalg.solve(system, np.ravel(q)), q.shape)
