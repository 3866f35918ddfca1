"""Evaluate matrix operations with NumPy. Tests check kernels and loops against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.functions.matrix_routines import BOUND, ERROR, PADE
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation

Numbers = NDArray[np.float64]


def matrix_numbers(operation: MatrixOperation, operands: Sequence[Numbers]) -> list[Numbers]:
    """Return the results of an operation, flat; NaN where there are none.

    >>> matrix_numbers(MatrixOperation("solve", (2, 1)), [np.array([2.0, 1.0, 0.0, 4.0]), np.array([4.0, 8.0])])
    [array([1., 2.])]
    """
    try:
        return existing_numbers(operation, operands)
    except np.linalg.LinAlgError:
        results = [np.full(size, np.nan) for size in operation.results]
        return [np.tril(results[0].reshape(operation.sizes * 2)).ravel()] if operation.kind == "cholesky" else results


def existing_numbers(operation: MatrixOperation, operands: Sequence[Numbers]) -> list[Numbers]:
    """Return the results of an operation, flat; LinAlgError where there are none."""
    with np.errstate(all="ignore"):
        return [np.ravel(result) for result in _NUMBERS[operation.kind](operation, *operands)]


def _product(operation: MatrixOperation, left: Numbers, right: Numbers) -> list[Numbers]:
    number, rows, inner, columns = operation.sizes
    by_columns = operation.transposed
    first = left.reshape(number, inner, rows).swapaxes(1, 2) if by_columns[0] else left.reshape(number, rows, inner)
    second = right.reshape(number, columns, inner).swapaxes(1, 2) if by_columns[1] else right.reshape(number, inner, -1)
    return [first @ second]


def _cholesky(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    n = operation.sizes[0]
    return [np.asarray(np.linalg.cholesky(matrix.reshape(n, n)), dtype=np.float64)]  # reads the lower triangle


def _solve(operation: MatrixOperation, matrix: Numbers, right: Numbers) -> list[Numbers]:
    n, sides = operation.sizes
    square = matrix.reshape(n, n)
    if operation.kind == "triangular":
        square = np.tril(square)
    solved = np.linalg.solve(square.T if operation.transposed[0] else square, right.reshape(sides, n).T)
    return [np.asarray(solved.T, dtype=np.float64)]


def _log_determinant(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    sign, logarithm = np.linalg.slogdet(matrix.reshape(operation.sizes * 2))
    return [logarithm, sign]


def _eigen(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    n = operation.sizes[0]
    return _of_finite(np.linalg.eigh, operation, np.tril(matrix.reshape(n, n).T))


def _singular(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    m, n = operation.sizes
    return _of_finite(partial(np.linalg.svd, full_matrices=False), operation, matrix.reshape(n, m).T)


def _of_finite(
    factors: Callable[[Numbers], Iterable[Numbers]], operation: MatrixOperation, matrix: Numbers
) -> list[Numbers]:
    """Return factors by columns; NaN for a matrix that is not finite."""
    if np.isfinite(matrix).all():
        return [part.T for part in factors(matrix)]
    return [np.full(size, np.nan) for size in operation.results]


def _exponential(operation: MatrixOperation, matrix: Numbers) -> list[Numbers]:
    """Return exp A by scaling, a Padé approximant of degree 13, and squaring, as kernels do.

    Norms of powers of A decide how much it is scaled: they may be far smaller than powers of its norm.
    """
    square = matrix.reshape(operation.sizes * 2)
    norm = _largest_row(square)
    if not norm < 1e300:
        return [np.full(square.size, np.nan)]
    squarings = max(0, math.frexp(norm)[1])
    square = square * 0.5**squarings
    powers = [np.eye(len(square)), square @ square]
    for _ in range(2):
        powers.append(powers[-1] @ powers[1])
    four, six, more = _largest_row(powers[2]), _largest_row(powers[3]), _power(np.abs(square)) * ERROR
    scale = 1.0
    while squarings and (
        four * (2 * scale) ** 4 <= BOUND**4
        and six * (2 * scale) ** 6 <= BOUND**6
        and more * (2 * scale) ** 26 <= _largest_row(square)
    ):
        squarings, scale = squarings - 1, 2 * scale
    exponential = _approximant(square * scale, [power * scale ** (2 * k) for k, power in enumerate(powers)])
    for _ in range(squarings):
        exponential = exponential @ exponential
    return [exponential]


def _largest_row(matrix: Numbers) -> float:
    return float(np.abs(matrix).sum(axis=1).max())


def _power(matrix: Numbers) -> float:
    """Return the largest row sum of the 27th power of a matrix."""
    row_sums = np.ones(len(matrix))
    for _ in range(27):
        row_sums = matrix @ row_sums
    return float(row_sums.max())


def _approximant(matrix: Numbers, powers: Sequence[Numbers]) -> Any:
    """Return the approximant of exp A, from its powers 0, 2, 4, 6."""
    odd, even = (
        powers[3] @ sum(PADE[k + start] * power for k, power in zip((8, 10, 12), powers[1:], strict=True))
        + sum(PADE[k + start] * power for k, power in zip((0, 2, 4, 6), powers, strict=True))
        for start in (1, 0)
    )
    return np.linalg.solve(even - matrix @ odd, even + matrix @ odd)


def _order(operation: MatrixOperation, keys: Numbers) -> list[Numbers]:
    return [np.argsort(keys.reshape(operation.sizes), axis=1, kind="stable").astype(np.float64)]


def _insertion(operation: MatrixOperation, keys: Numbers, others: Numbers) -> list[Numbers]:
    side: Any = "left" if operation.kind == "insertion" else "right"
    return [np.searchsorted(keys, others, side=side).astype(np.float64)]


def _gather(operation: MatrixOperation, numbers: Numbers, places: Numbers) -> list[Numbers]:
    where, inside = _places(operation, places)
    return [np.where(inside, numbers[where], np.nan)]


def _scatter(operation: MatrixOperation, numbers: Numbers, places: Numbers) -> list[Numbers]:
    where, inside = _places(operation, places)
    return [np.bincount(where[inside], numbers[inside], operation.results[0]).astype(np.float64)]


def _places(operation: MatrixOperation, places: Numbers) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where the places of all rows are in their numbers, and which of them exist."""
    rows, n, m = operation.sizes
    turned = np.where(places < 0, places + n, places)
    inside = (turned >= 0) & (turned < n)
    return np.where(inside, turned, 0).astype(np.int64) + np.repeat(np.arange(rows) * n, m), inside


_NUMBERS: dict[MatrixKind, Callable[..., list[Numbers]]] = {
    "product": _product,
    "cholesky": _cholesky,
    "triangular": _solve,
    "solve": _solve,
    "determinant": lambda operation, matrix: [np.linalg.det(matrix.reshape(operation.sizes * 2))],
    "log_determinant": _log_determinant,
    "qr": lambda operation, matrix: [part.T for part in np.linalg.qr(matrix.reshape(operation.sizes[::-1]).T)],
    "eigen": _eigen,
    "singular": _singular,
    "exponential": _exponential,
    "order": _order,
    "insertion": _insertion,
    "insertion_right": _insertion,
    "gather": _gather,
    "scatter": _scatter,
}
