"""Banded and patterned systems, matrix equations and matrix roots of scipy.linalg.

The matrix is written down and solved as any other. Square roots and logarithms are iterations with a fixed number of
steps: a square root is checked; a logarithm is the sum of Gauss and Legendre for the integral of
(A - 1) (1 + t (A - 1))^-1 between 0 and 1, after as many square roots as bring A near to 1.

Source: Higham, "Functions of Matrices" (2008), chapters 6 and 11.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import scipy_form
from symad.tracing.numpy.scipy_matrices import circulant, toeplitz
from symad.tracing.numpy.solve import known_values
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


@scipy_form("scipy.linalg.solve_banded")
def solve_banded(l_and_u: Any, ab: Any, b: Any) -> Any:
    """The solution of a system whose matrix is given by its diagonals."""
    below, above = l_and_u
    ab, b = together(ab, b)
    if below + above + 1 != ab.shape[0] or ab.shape[-1] != b.shape[0]:
        raise ValueError("shapes of ab and b are not compatible.")
    return np.linalg.solve(_of_diagonals(ab, int(below), int(above)), b)


@scipy_form("scipy.linalg.solveh_banded")
def solveh_banded(ab: Any, b: Any, lower: bool = False) -> Any:
    """The solution of a system whose symmetric, positive definite matrix is given by its diagonals."""
    ab, b = together(ab, b)
    return np.linalg.solve(_symmetric_of_diagonals(ab, lower), b)


@scipy_form("scipy.linalg.cholesky_banded")
def cholesky_banded(ab: Any, lower: bool = False) -> Any:
    """The diagonals of the triangular factor of a positive definite matrix; what is in none of them stays as it is."""
    bands = traced(ab)
    factor = np.linalg.cholesky(_symmetric_of_diagonals(bands, lower), upper=not lower)
    reach, count = bands.shape[0] - 1, bands.shape[1]
    k, column = np.indices((reach + 1, count))
    row = column + k if lower else column + k - reach
    return np.where((row >= 0) & (row < count), factor[np.clip(row, 0, count - 1), column], bands)


def _toeplitz(c_or_cr: Any) -> Any:
    return toeplitz(*c_or_cr) if isinstance(c_or_cr, tuple) else toeplitz(c_or_cr)


scipy_form("scipy.linalg.solve_toeplitz")(lambda c_or_cr, b: np.linalg.solve(*together(_toeplitz(c_or_cr), b)))
scipy_form("scipy.linalg.matmul_toeplitz")(lambda c_or_cr, x: np.matmul(*together(_toeplitz(c_or_cr), x)))
scipy_form("scipy.linalg.solve_circulant")(lambda c, b: np.linalg.solve(*together(circulant(c), b)))


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


# ---- matrix roots

STEPS = 16  # of the iteration for a square root: eigenvalues may differ by a factor of a million
CLOSE = 1e-9  # how far the square of a square root may be from the matrix, relative to it
ROOTS = 6  # square roots before a logarithm in a kernel
NEAR = 0.3  # how far from 1 they have to lead, in the norm of Frobenius
NODES = 12  # of the formula of Gauss and Legendre, exact to the last digit there


@stands_in_for("scipy.linalg.sqrtm")
def sqrtm(A: Any, disp: bool = True, blocksize: int = 64) -> Any:  # noqa: N803 (SciPy's name)
    """The principal square root of a square matrix."""
    matrix = traced(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError("Non-matrix input to matrix function.")
    return _root("sqrtm", matrix)


def _root(name: str, matrix: Any) -> Any:
    """Return the principal square root, by the product form of the iteration of Denman and Beavers.

    Where it does not end there is none that is real: it is refused where the numbers are known, and NaN in a kernel.
    """
    identity, scale = np.eye(matrix.shape[0]), np.sqrt(np.sum(matrix**2))
    product = root = matrix / scale
    for _ in range(STEPS):
        inverse = np.linalg.inv(product)
        root = 0.5 * (root + root @ inverse)
        product = 0.5 * (identity + 0.5 * (product + inverse))
    root = np.sqrt(scale) * root
    off = np.sum((root @ root - matrix) ** 2) - CLOSE**2 * np.sum(matrix**2)
    known = known_values(np.reshape(off, (1,)), lambda numbers: ~(numbers <= 0))
    if known is not None and known:
        why = "no real one is found: eigenvalues are negative, zero, or a millionth of others"
        refuse_function(f"scipy.linalg.{name}", why, "only real ones are traced")
    return root if known is not None else np.where(off <= 0, root, np.nan)


@stands_in_for("scipy.linalg.logm")
def logm(A: Any, disp: bool = True) -> Any:  # noqa: N803 (SciPy's name)
    """The principal logarithm of a square matrix."""
    matrix = traced(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError("expected a square matrix")
    identity, count = np.eye(matrix.shape[0]), 0
    far = known_values(matrix - identity, np.linalg.norm)
    while (far is None and count < ROOTS) or (far is not None and far > NEAR):
        matrix, count = _root("logm", matrix), count + 1
        far = None if far is None else known_values(matrix - identity, np.linalg.norm)
    off = matrix - identity
    places, weights = np.polynomial.legendre.leggauss(NODES)
    logarithm = 2.0**count * sum(
        weight / 2 * np.linalg.solve(identity + (1 + place) / 2 * off, off)
        for place, weight in zip(places.tolist(), weights.tolist(), strict=True)
    )
    return logarithm if far is not None else np.where(np.sum(off**2) <= NEAR**2, logarithm, np.nan)
