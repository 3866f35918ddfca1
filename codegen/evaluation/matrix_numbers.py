"""Matrix operations with NumPy: what kernels and loops of them are checked against."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixKind, MatrixOperation

Numbers = NDArray[np.float64]


def matrix_numbers(operation: MatrixOperation, operands: Sequence[Numbers]) -> list[Numbers]:
    """Return the results of an operation, flat; NaN where there are none.

    >>> matrix_numbers(MatrixOperation("solve", (2, 1)), [np.array([2.0, 1.0, 0.0, 4.0]), np.array([4.0, 8.0])])
    [array([1., 2.])]
    """
    with np.errstate(all="ignore"):
        return [np.ravel(found) for found in _NUMBERS[operation.kind](operation, *operands)]


def _product(operation: MatrixOperation, left: Numbers, right: Numbers) -> list[Numbers]:
    number, rows, inner, columns = operation.sizes
    by_columns = operation.transposed
    first = left.reshape(number, inner, rows).swapaxes(1, 2) if by_columns[0] else left.reshape(number, rows, inner)
    second = right.reshape(number, columns, inner).swapaxes(1, 2) if by_columns[1] else right.reshape(number, inner, -1)
    return [first @ second]


def _cholesky(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    n = operation.sizes[0]
    lower = np.tril(matrix.reshape(n, n))
    try:
        return [np.asarray(np.linalg.cholesky(lower + np.tril(lower, -1).T), dtype=np.float64)]
    except np.linalg.LinAlgError:
        return [np.tril(np.full((n, n), np.nan))]


def _solve(operation: MatrixOperation, matrix: Numbers, right: Numbers) -> list[Numbers]:
    n, sides = operation.sizes
    square = matrix.reshape(n, n)
    if operation.kind == "triangular":
        square = np.tril(square)
    try:
        solved = np.linalg.solve(square.T if operation.transposed[0] else square, right.reshape(sides, n).T)
        return [np.asarray(solved.T, dtype=np.float64)]
    except np.linalg.LinAlgError:
        return [np.full((sides, n), np.nan)]


def _determinant(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    return [np.linalg.det(matrix.reshape(operation.sizes * 2))]


def _log_determinant(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    sign, logarithm = np.linalg.slogdet(matrix.reshape(operation.sizes * 2))
    return [logarithm, sign]


def _qr(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    m, n = operation.sizes
    return [part.T for part in np.linalg.qr(matrix.reshape(n, m).T)]


def _eigen(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    n = operation.sizes[0]
    return _of_finite(np.linalg.eigh, operation, np.tril(matrix.reshape(n, n).T))


def _singular(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    m, n = operation.sizes
    return _of_finite(partial(np.linalg.svd, full_matrices=False), operation, matrix.reshape(n, m).T)


def _of_finite(
    factors: Callable[[Numbers], Iterable[Numbers]], operation: MatrixOperation, matrix: Numbers
) -> list[Numbers]:
    """Return factors by columns; NaN for a matrix that is not finite, and where LAPACK's iteration has no end."""
    if np.isfinite(matrix).all():
        with suppress(np.linalg.LinAlgError):
            return [part.T for part in factors(matrix)]
    return [np.full(size, np.nan) for size in operation.results]


_NUMBERS: dict[MatrixKind, Callable[..., list[Numbers]]] = {
    "product": _product,
    "cholesky": _cholesky,
    "triangular": _solve,
    "solve": _solve,
    "determinant": _determinant,
    "log_determinant": _log_determinant,
    "qr": _qr,
    "eigen": _eigen,
    "singular": _singular,
}
