"""The algebra behind matrix rules, and the rules of systems, determinants, Cholesky factors and exponentials.

Rules are written once: for nodes, for numbers, and for the steps of loops. An `Algebra` has flat arrays of entries and
operations on whole matrices (`codegen.ir.matrix_operation`). Right-hand sides are rows: X = R A^-T solves A x = r for
each row. An operand of which only the lower triangle is read has tangents and cotangents only there.

Source: Giles, An extended collection of matrix derivative results for forward and reverse mode AD (2008); for the
Cholesky factor Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import mul, neg, sub, truediv
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixKind, MatrixOperation

Value = TypeVar("Value")
Places = NDArray[np.int64]


class Algebra(ABC, Generic[Value]):
    """Operations on flat arrays of the entries of matrices."""

    @abstractmethod
    def run(self, operation: MatrixOperation, operands: Sequence[Value]) -> Value:
        """Return the only result of an operation on whole matrices."""

    @abstractmethod
    def map(self, function: Callable[..., Any], *values: Value) -> Value:
        """Return a function of each entry of arrays of one size."""

    @abstractmethod
    def picked(self, value: Value, places: Places) -> Value:
        """Return entries at places."""

    @abstractmethod
    def known(self, numbers: NDArray[Any]) -> Value:
        """Return constants."""

    @abstractmethod
    def joined(self, values: Sequence[Value]) -> Value:
        """Return arrays one behind the other."""

    @abstractmethod
    def size(self, value: Value) -> int:
        """Return how many entries an array has."""

    def multiplied(self, sizes: tuple[int, int, int], left: Value, right: Value,
                   turned: tuple[bool, bool] = (False, False)) -> Value:  # fmt: skip
        """Return a product of matrices of sizes rows, inner, columns, each of which may be given by columns."""
        return self.run(MatrixOperation("product", (1, *sizes), turned), [left, right])

    def solved(self, kind: MatrixKind, n: int, matrix: Value, right: Value, turned: bool) -> Value:
        """Return the solutions of systems of n rows, or of transposed ones; sides are rows."""
        return self.run(MatrixOperation(kind, (n, self.size(right) // n), (turned, False)), [matrix, right])

    def transposed(self, value: Value, rows: int) -> Value:
        """Return the transposed matrix of one with `rows` rows."""
        return self.picked(value, np.arange(self.size(value)).reshape(rows, -1).T.ravel())


def axes_of(n: int) -> tuple[Places, Places]:
    """Return row and column of each entry of a square matrix."""
    row, column = np.indices((n, n))
    return row.ravel(), column.ravel()


def of_both(x: Any, y: Any, factor: Any) -> Any:
    """Return a multiple of a sum."""
    return (x + y) * factor


# ---- systems


def solution_forward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], tangents: Mapping[int, Value]
) -> Value:
    """Return the tangents of solutions, from those of the matrix and of right-hand sides; matrix and solutions read."""
    (n, sides), (turned, _), right = operation.sizes, operation.transposed, tangents.get(1)
    if 0 in tangents:
        moved = _as_read(by, operation, tangents[0])
        less = by.multiplied((sides, n, n), read[1], moved, (False, not turned))
        right = by.map(neg, less) if right is None else by.map(sub, right, less)
    assert right is not None
    return by.solved(operation.kind, n, read[0], right, turned)


def solution_backward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], cotangent: Value, targets: Collection[int]
) -> dict[int, tuple[Value, Places]]:
    """Return the cotangents of matrix and right-hand sides, and where they are."""
    (n, sides), (turned, _) = operation.sizes, operation.transposed
    solved = by.solved(operation.kind, n, read[0], cotangent, not turned)
    cotangents = {1: (solved, np.arange(sides * n))} if 1 in targets else {}
    if 0 in targets:
        pair = (read[1], solved) if turned else (solved, read[1])
        outer = by.multiplied((n, sides, n), *pair, (True, False))
        places = np.flatnonzero(np.tri(n)) if operation.kind == "triangular" else np.arange(n * n)
        cotangents[0] = by.map(neg, by.picked(outer, places)), places
    return cotangents


def _as_read(by: Algebra[Value], operation: MatrixOperation, matrix: Value) -> Value:
    """Return the triangle of a matrix that is read, 0 elsewhere."""
    return (
        by.map(mul, matrix, by.known(np.tri(operation.sizes[0]).ravel())) if operation.kind == "triangular" else matrix
    )


# ---- determinants


def determinant_forward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    """Return the tangent of a determinant, or of its logarithm; the matrix is read, and the determinant."""
    trace = by.multiplied((1, operation.sizes[0] ** 2, 1), _inverse(by, operation, read), tangent)
    return {0: by.map(mul, trace, read[1]) if operation.kind == "determinant" else trace}


def determinant_backward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    """Return the cotangent of the matrix."""
    size = operation.sizes[0] ** 2
    factor = by.map(mul, cotangents[0], read[1]) if operation.kind == "determinant" else cotangents[0]
    product = by.map(mul, _inverse(by, operation, read), by.picked(factor, np.zeros(size, dtype=np.int64)))
    return product, np.arange(size)


def _inverse(by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value]) -> Value:
    n = operation.sizes[0]
    return by.solved("solve", n, read[0], by.known(np.eye(n).ravel()), False)


# ---- Cholesky factors: dL = L phi(inv(L) dA inv(L).T), where phi takes the lower triangle, of the diagonal one half


def cholesky_forward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    """Return the tangent of the factor, which is read."""
    (n,), (row, column) = operation.sizes, axes_of(operation.sizes[0])
    symmetric = by.picked(tangent, np.maximum(row, column) * n + np.minimum(row, column))
    half = by.solved("triangular", n, read[0], symmetric, False)
    both = by.solved("triangular", n, read[0], by.transposed(half, n), False)
    return {0: by.multiplied((n, n, n), read[0], by.map(mul, both, by.known(_halved(n))))}


def cholesky_backward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    """Return the cotangent of the lower triangle of the matrix."""
    (n,), lower = operation.sizes, np.flatnonzero(np.tri(operation.sizes[0]))
    weighted = by.map(mul, cotangents[0], by.known(np.tri(n).ravel()))
    turned = by.multiplied((n, n, n), weighted, read[0], (True, False))  # as the next solutions take it, by columns
    inner = by.map(mul, turned, by.known(_halved(n).reshape(n, n).T.ravel()))
    half = by.solved("triangular", n, read[0], inner, True)
    both = by.solved("triangular", n, read[0], by.transposed(half, n), True)
    kept = by.known(_halved(n)[lower])
    return by.map(of_both, by.picked(both, lower), by.picked(by.transposed(both, n), lower), kept), lower


def _halved(n: int) -> NDArray[np.float64]:
    """Return a mask of the lower triangle with half of the diagonal."""
    return (np.tri(n) - 0.5 * np.eye(n)).ravel()


# ---- exponentials: that of [[A, E], [0, A]] has the derivative of exp A along E above its diagonal


def _scale(squares: Any) -> Any:
    """Return the power of two near the length of a tangent, as a constant."""
    return np.where(squares > 0, 2.0 ** np.floor(np.log2(np.where(squares > 0, squares, 1.0)) / 2), 1.0)


def _derivative_along(by: Algebra[Value], n: int, matrix: Value, tangent: Value) -> Value:
    """Return the derivative of an exponential along a matrix, which is scaled, so that it is not scaled with it."""
    row, column = axes_of(2 * n)
    everywhere = np.zeros(n * n, dtype=np.int64)
    length = by.map(_scale, by.multiplied((1, n * n, 1), tangent, tangent))
    scales = by.picked(length, everywhere)
    parts = by.joined([matrix, by.map(truediv, tangent, scales), by.known(np.zeros(1))])
    inner = row % n * n + column % n
    places = np.where((row < n) == (column < n), inner, np.where(row < n, n * n + inner, 2 * n * n))
    block = by.run(MatrixOperation("exponential", (2 * n,)), [by.picked(parts, places)])
    above = np.flatnonzero((row < n) & (column >= n))
    return by.map(mul, by.picked(block, above), scales)


def exponential_forward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], tangent: Value, targets: Collection[int]
) -> dict[int, Value]:
    """Return the tangent of an exponential; the matrix is read."""
    return {0: _derivative_along(by, operation.sizes[0], read[0], tangent)}


def exponential_backward(
    by: Algebra[Value], operation: MatrixOperation, read: Sequence[Value], cotangents: Mapping[int, Value]
) -> tuple[Value, Places]:
    """Return the cotangent of the matrix."""
    n = operation.sizes[0]
    return _derivative_along(by, n, by.transposed(read[0], n), cotangents[0]), np.arange(n * n)
