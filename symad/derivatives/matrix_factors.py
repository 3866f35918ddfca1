"""Rules of QR, eigenvalues and singular values in terms of `matrix_algebra`, and the table of all matrix operations.

Matrices are stored by columns, as LAPACK has them (`codegen.ir.matrix_operation`): read row by row they are transposed,
and so are the formulas here. Eigenvalues or singular values that differ by at most n eps of the largest count as equal:
the derivatives of their vectors are NaN, as are those of a factor Q of dependent columns.

Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
Townsend, "Differentiating the singular value decomposition" (2016); Walter and Lehmann, "Algorithmic differentiation of
linear algebra functions" (2010), for QR.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import add, mul, neg, sub
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import symad.derivatives.matrix_algebra as algebra
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation
from symad.derivatives.matrix_algebra import Algebra, Places, Value, axes_of, of_both

Part = TypeVar("Part")

EPS = float(np.finfo(np.float64).eps)


def has_equal_values(operation: MatrixOperation, values: NDArray[np.float64]) -> bool:
    """Whether vectors of some eigenvalues or singular values have no derivative."""
    values = np.sort(values)
    gaps = np.diff(values)
    bound = len(values) * EPS * np.abs(values).max(initial=0)
    tall = operation.kind == "singular" and operation.sizes[0] != operation.sizes[1]
    return bool((gaps <= bound).any() or (tall and values[0] <= bound))


def _weighted(x: Any, y: Any, first: Any, second: Any) -> Any:
    return x * first + y * second


def _total(by: Algebra[Value], terms: Sequence[Value]) -> Value:
    sum_of_terms = terms[0]
    for term in terms[1:]:
        sum_of_terms = by.map(add, sum_of_terms, term)
    return sum_of_terms


# ---- QR: B = L P for the stored B, P and L, of a matrix, Q and R


def _independent(entry: Any, squares: Any, bound: Any) -> Any:
    return np.where(entry * entry <= bound * squares, np.nan, entry)


def _factor(by: Algebra[Value], operation: MatrixOperation, lower: Value) -> Value:
    """Return L, with NaN on its diagonal for a column that depends on those before it."""
    m, n = operation.sizes
    row, column = axes_of(n)
    squares = by.multiplied((n, n, 1), by.map(mul, lower, lower), by.known(np.ones(n)))
    bound = np.where(row == column, (m * EPS) ** 2, -1.0)
    return by.map(_independent, lower, by.picked(squares, row), by.known(bound))


def _solved_columns(by: Algebra[Value], lower: Value, right: Value, n: int, m: int, turned: bool) -> Value:
    """Return the solutions of triangular systems for the columns of a matrix n x m."""
    return by.transposed(by.solved("triangular", n, lower, by.transposed(right, n), turned), m)


def qr_forward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    m, n = operation.sizes
    q, lower = results[0], _factor(by, operation, results[1])
    moved = _solved_columns(by, lower, tangent, n, m, False)
    inner = by.multiplied((n, m, n), moved, q, (False, True))
    row, column = axes_of(n)
    first, second = by.known(1.0 * (row >= column)), by.known(1.0 * (row > column))
    triangle = by.map(_weighted, inner, by.transposed(inner, n), first, second)
    tangents = dict[int, Value]()
    if 0 in targets:
        tangents[0] = by.map(sub, moved, by.multiplied((n, n, m), triangle, q))
    if 1 in targets:
        tangents[1] = by.multiplied((n, n, n), lower, triangle)
    return tangents


def qr_backward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    m, n = operation.sizes
    q, lower = results[0], _factor(by, operation, results[1])
    row, column = axes_of(n)
    terms = list[Value]()
    if 1 in cotangents:
        kept = by.map(mul, cotangents[1], by.known(1.0 * (row >= column)))
        terms.append(by.multiplied((n, n, n), lower, kept, (True, False)))
    if 0 in cotangents:
        terms.append(by.map(neg, by.multiplied((n, m, n), cotangents[0], q, (False, True))))
    inner = by.picked(_total(by, terms), np.maximum(row, column) * n + np.minimum(row, column))
    moved = by.multiplied((n, n, m), inner, q)
    if 0 in cotangents:
        moved = by.map(add, moved, cotangents[0])
    return _solved_columns(by, lower, moved, n, m, True), np.arange(m * n)


# ---- eigenvalues and eigenvectors: the stored matrix has rows that are eigenvectors


def _reciprocal_gap(x: Any, y: Any, lowest: Any, highest: Any, bound: Any) -> Any:
    apart = np.abs(x - y) > bound * np.maximum(np.abs(lowest), np.abs(highest))
    return np.where(bound > 0, np.where(apart, 1 / (x - y), np.nan), 0.0)


def _gaps(by: Algebra[Value], values: Value, n: int, function: Callable[..., Any]) -> Value:
    """Return a function of each pair of values, of the first and the last one, and of its bound."""
    row, column = axes_of(n)
    pairs = [by.picked(values, places) for places in (row, column, 0 * row, 0 * row + n - 1)]
    return by.map(function, *pairs, by.known(n * EPS * (row != column)))


def eigen_forward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    (n,), (values, vectors) = operation.sizes, results
    cube = n, n, n
    row, column = axes_of(n)
    symmetric = by.picked(tangent, np.minimum(row, column) * n + np.maximum(row, column))
    inner = by.multiplied(cube, by.multiplied(cube, vectors, symmetric), vectors, (False, True))
    tangents = dict[int, Value]()
    if 0 in targets:
        tangents[0] = by.picked(inner, np.arange(n) * (n + 1))
    if 1 in targets:
        turning = by.map(mul, _gaps(by, values, n, _reciprocal_gap), inner)
        tangents[1] = by.multiplied(cube, turning, vectors)
    return tangents


def eigen_backward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    (n,), (values, vectors) = operation.sizes, results
    cube = n, n, n
    row, column = axes_of(n)
    terms = list[Value]()
    if 0 in cotangents:
        terms.append(by.map(mul, by.picked(cotangents[0], row), by.known(1.0 * (row == column))))
    if 1 in cotangents:
        turning = by.multiplied(cube, cotangents[1], vectors, (False, True))
        terms.append(by.map(mul, _gaps(by, values, n, _reciprocal_gap), turning))
    whole = by.multiplied(cube, by.multiplied(cube, vectors, _total(by, terms), (True, False)), vectors)
    places = np.flatnonzero(row <= column)
    halved = by.known(np.where(row == column, 0.5, 1.0)[places])
    other = by.picked(whole, (column * n + row)[places])
    return by.map(of_both, by.picked(whole, places), other, halved), places


# ---- singular values and vectors: B = V diag(s) P for the stored B, P = transpose(U) and V


def _squares_gap(x: Any, y: Any, largest: Any, _: Any, bound: Any) -> Any:
    apart = np.abs(x - y) > bound * largest
    return np.where(bound > 0, np.where(apart, 1 / ((x - y) * (x + y)), np.nan), 0.0)


def _reciprocal(x: Any, largest: Any, bound: Any) -> Any:
    return np.where(x > bound * largest, 1 / x, np.nan)


def _reciprocals(by: Algebra[Value], values: Value, n: int, m: int) -> Value:
    row = np.repeat(np.arange(n), m)
    bound = by.known(np.full(n * m, n * EPS))
    return by.map(_reciprocal, by.picked(values, row), by.picked(values, 0 * row), bound)


def _exchanged(by: Algebra[Value], operation: MatrixOperation, results: Mapping[int, Value]) -> dict[int, Value]:
    """Return the results for the transposed matrix: its U is V, and its V is U."""
    size = min(operation.sizes)
    rows = {0: size, 2: operation.sizes[1]}
    return {k if k == 1 else 2 - k: x if k == 1 else by.transposed(x, rows[k]) for k, x in results.items()}


def singular_forward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    m, n = operation.sizes
    if m < n:
        turned = MatrixOperation("singular", (n, m))
        factors = _exchanged(by, operation, dict(enumerate(results)))
        moved = by.transposed(tangent, n)
        return _exchanged(
            by, turned, _tall_forward(by, turned, [factors[k] for k in range(3)], moved, [2 - k for k in targets])
        )
    return _tall_forward(by, operation, results, tangent, targets)


def singular_backward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    m, n = operation.sizes
    if m < n:
        turned = MatrixOperation("singular", (n, m))
        factors = _exchanged(by, operation, dict(enumerate(results)))
        cotangent, places = _tall_backward(
            by, turned, [factors[k] for k in range(3)], _exchanged(by, operation, cotangents)
        )
        return by.transposed(cotangent, m), places
    return _tall_backward(by, operation, results, cotangents)


def _tall_forward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    (m, n), (left, values, right) = operation.sizes, results
    row, column = axes_of(n)
    moved = by.multiplied((n, n, m), right, tangent, (True, False))
    inner = by.multiplied((n, m, n), moved, left, (False, True))
    tangents = dict[int, Value]()
    if 1 in targets:
        tangents[1] = by.picked(inner, np.arange(n) * (n + 1))
    if 0 not in targets and 2 not in targets:
        return tangents
    gaps, other = _gaps(by, values, n, _squares_gap), by.transposed(inner, n)
    rows, columns = by.picked(values, row), by.picked(values, column)
    if 0 in targets:
        turning = by.map(mul, gaps, by.map(_weighted, inner, other, rows, columns))
        tangents[0] = by.multiplied((n, n, m), turning, left)
        if m > n:
            rest = by.map(sub, moved, by.multiplied((n, n, m), inner, left))
            tangents[0] = by.map(add, tangents[0], by.map(mul, rest, _reciprocals(by, values, n, m)))
    if 2 in targets:
        turning = by.map(mul, gaps, by.map(_weighted, other, inner, rows, columns))
        tangents[2] = by.map(neg, by.multiplied((n, n, n), right, turning))
    return tangents


def _tall_backward(
    by: Algebra[Value], operation: MatrixOperation, results: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    (m, n), (left, values, right) = operation.sizes, results
    row, column = axes_of(n)
    rows, columns = by.picked(values, row), by.picked(values, column)
    terms, outside = list[Value](), None
    if 1 in cotangents:
        terms.append(by.map(mul, by.picked(cotangents[1], row), by.known(1.0 * (row == column))))
    gaps = _gaps(by, values, n, _squares_gap) if 0 in cotangents or 2 in cotangents else None
    if 0 in cotangents and gaps is not None:
        turning = by.map(mul, gaps, by.multiplied((n, m, n), cotangents[0], left, (False, True)))
        terms.append(by.map(of_both, turning, by.transposed(turning, n), rows))
        if m > n:
            outside = by.map(mul, cotangents[0], _reciprocals(by, values, n, m))
            terms.append(by.map(neg, by.multiplied((n, m, n), outside, left, (False, True))))
    if 2 in cotangents and gaps is not None:
        turning = by.map(mul, gaps, by.multiplied((n, n, n), right, cotangents[2], (True, False)))
        terms.append(by.map(neg, by.map(of_both, turning, by.transposed(turning, n), columns)))
    moved = by.multiplied((n, n, m), _total(by, terms), left)
    moved = moved if outside is None else by.map(add, moved, outside)
    return by.multiplied((n, n, m), right, moved), np.arange(m * n)


# ---- tangents and cotangents of all matrix operations but products

# Kinds whose rules read the first operand
_OF_OPERANDS: tuple[MatrixKind, ...] = ("solve", "triangular", "determinant", "log_determinant", "exponential")
_OF_RESULTS = frozenset({"log_determinant", "exponential"})  # whose rules read no result


def values_read(operation: MatrixOperation, operands: Sequence[Part], results: Sequence[Part]) -> list[Part]:
    """Return those of operands and results that the rule of an operation reads, in its order."""
    first = [operands[0]] if operation.kind in _OF_OPERANDS else []
    return [*first, *(() if operation.kind in _OF_RESULTS else results)]


def pushed(
    by: Algebra[Value],
    operation: MatrixOperation,
    read: Sequence[Value],
    tangents: Mapping[int, Value],
    targets: Collection[int],
) -> dict[int, Value]:
    """Return the tangents of some results, by their numbers, from those of operands."""
    if len(operation.operands) > 1:
        return {0: algebra.solution_forward(by, operation, read, tangents)}
    tangents_out: dict[int, Value] = _FORWARD[operation.kind](by, operation, read, tangents[0], targets)
    return tangents_out


def pulled(
    by: Algebra[Value],
    operation: MatrixOperation,
    read: Sequence[Value],
    cotangents: Mapping[int, Value],
    targets: Collection[int],
) -> dict[int, tuple[Value, Places]]:
    """Return the cotangents of some operands, by their numbers, and which of their entries have these."""
    if len(operation.operands) > 1:
        return algebra.solution_backward(by, operation, read, cotangents[0], targets)
    return {0: _BACKWARD[operation.kind](by, operation, read, cotangents)}


_FORWARD: dict[MatrixKind, Callable[..., Any]] = {
    "qr": qr_forward, "eigen": eigen_forward, "singular": singular_forward,
    "determinant": algebra.determinant_forward, "log_determinant": algebra.determinant_forward,
    "cholesky": algebra.cholesky_forward, "exponential": algebra.exponential_forward,
}  # fmt: skip
_BACKWARD: dict[MatrixKind, Callable[..., Any]] = {
    "qr": qr_backward, "eigen": eigen_backward, "singular": singular_backward,
    "determinant": algebra.determinant_backward, "log_determinant": algebra.determinant_backward,
    "cholesky": algebra.cholesky_backward, "exponential": algebra.exponential_backward,
}  # fmt: skip
