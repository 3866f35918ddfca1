"""Rows of linear maps of factorizations: solutions, determinants and factors of whole matrices.

Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
Murray, "Differentiation of the Cholesky decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation
from symad.derivatives.array_arithmetic import Arithmetic, Carriers
from symad.derivatives.array_carried import Carried
from symad.derivatives.array_rows import ArrayRow
from symad.derivatives.matrix_algebra import Algebra, Places, has_equal_values, pulled, pushed
from symad.errors import RuleError
from symad.graph.array_operands import ArrayNode, Reading


@dataclass(frozen=True)
class SolveRow(ArrayRow):
    """The solution x of a x = b: a dx = db - da x; `matrix` and `solution` are the values of a and x."""

    MULTIPLIERS = ("matrix", "solution")
    target: ArrayNode
    left: Reading
    right: Reading
    matrix: Carriers
    solution: Carriers
    moves: bool  # whether a does

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        left, right = tangents.at(self.left), tangents.at(self.right)
        if left is not None:
            left = np.broadcast_to(tangents.filled(left), self.left.shape)
            moved = tangents.by.times(tangents.by.number(-1), tangents.by.product(left, self.solution))
            right = moved if right is None else tangents.plus(np.broadcast_to(right, moved.shape), moved)
        if right is not None:
            right = np.broadcast_to(right, self.target.shape)
            columns = np.flatnonzero(tangents.by.there(right).any(axis=0))
            found = tangents.by.solution(self.matrix, tangents.filled(right[:, columns]))
            where = np.arange(self.target.size).reshape(self.target.shape)[:, columns]
            tangents.put(self.target, found.ravel(), where.ravel())

    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is not None:
            solved = cotangents.by.solution(self.matrix.T, cotangents.filled(found))
            cotangents.add(self.right, solved)
            if self.moves:
                moved = cotangents.by.times(cotangents.by.number(-1), cotangents.by.product(solved, self.solution.T))
                cotangents.add(self.left, moved)


@dataclass(frozen=True)
class DeterminantRow(ArrayRow):
    """The logarithm of |det a|, or det a, the `factor`: d log|det a| = tr(inv(a) da)."""

    MULTIPLIERS = ("matrix", "factor")
    target: ArrayNode
    operand: Reading
    matrix: Carriers
    factor: Carriers | None

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        terms = tangents.times(self._coefficient(tangents), tangents.at(self.operand), self.operand.shape)
        if terms is not None:
            terms = np.broadcast_to(terms, self.operand.shape)
            total = tangents.summed(terms.reshape(-1, 1))
            tangents.put(self.target, None if total is None else total.reshape(()))

    def pull(self, cotangents: Carried) -> None:
        """Give the operand what it has of the node's cotangent."""
        found = cotangents.of(self.target)
        if found is not None:
            terms = cotangents.times(self._coefficient(cotangents), found, self.operand.shape)
            cotangents.add(self.operand, terms)

    def _coefficient(self, carried: Carried) -> Carriers:
        identity = np.eye(len(self.matrix), dtype=bool)
        inverse = carried.by.solution(self.matrix.T, np.where(identity, carried.by.number(1), carried.by.number(0)))
        return inverse if self.factor is None else carried.by.times(self.factor.reshape(1, 1), inverse)


@dataclass(frozen=True)
class CholeskyRow(ArrayRow):
    """The lower factor L of a matrix of which the lower triangle is read: dL = L phi(inv(L) da inv(L).T).

    phi takes the lower triangle, of the diagonal one half; `factor` has the values of L.
    """

    MULTIPLIERS = ("factor",)
    target: ArrayNode
    operand: Reading
    factor: Carriers

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        found = tangents.at(self.operand)
        if found is not None:
            lower = np.broadcast_to(tangents.filled(found), self.operand.shape)
            symmetric = np.where(np.tri(len(lower), dtype=bool), lower, lower.T)
            factor = _lower(tangents, self.factor)
            half = tangents.by.solution(factor, symmetric)
            both = tangents.by.solution(factor, half.T)
            inside = np.tri(len(lower), dtype=bool)
            made = tangents.by.product(factor, self._phi(tangents, both))
            tangents.put(self.target, made[inside], np.flatnonzero(inside))

    def pull(self, cotangents: Carried) -> None:
        """Give the operand what it has of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is None:
            return
        factor = _lower(cotangents, self.factor)
        given = _lower(cotangents, cotangents.filled(found))
        inner = self._phi(cotangents, cotangents.by.product(factor.T, given))
        half = cotangents.by.solution(factor.T, inner)
        both = cotangents.by.solution(factor.T, half.T)
        doubled = cotangents.by.plus(both, both.T)
        below = np.tri(len(both), k=-1, dtype=bool)
        cotangents.add(
            self.operand, np.where(below, doubled, np.where(np.eye(len(both), dtype=bool), both, cotangents.by.absent))
        )

    def _phi(self, carried: Carried, matrix: Carriers) -> Carriers:
        """Return the lower triangle, with half of the diagonal."""
        found = _lower(carried, matrix)
        places = np.diag_indices(len(found))
        found[places] = carried.by.times(carried.by.number(0.5), found[places])
        return found


def _lower(carried: Carried, matrix: Carriers) -> Carriers:
    return np.where(np.tri(len(matrix), dtype=bool), matrix, carried.by.number(0))


@dataclass(frozen=True)
class FactorRow(ArrayRow):
    """One result of a factorization; `results` has the values that its rule reads."""

    target: ArrayNode
    operand: Reading
    results: tuple[Carriers, ...]

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        found, operation = tangents.at(self.operand), self.target.matrix
        if found is not None and operation is not None:
            given = np.broadcast_to(tangents.filled(found), self.operand.shape).ravel()
            number = self.target.number
            made = pushed(_Entries(tangents.by), operation, self.results, given, [number])
            tangents.put(self.target, made[number])

    def pull(self, cotangents: Carried) -> None:
        """Give the operand what it has of the node's cotangents."""
        found, operation = cotangents.of(self.target), self.target.matrix
        if found is not None and operation is not None:
            given = {self.target.number: cotangents.filled(found)}
            made, places = pulled(_Entries(cotangents.by), operation, self.results, given)
            whole = np.full(self.operand.size, cotangents.by.absent)
            whole[places] = made
            cotangents.add(self.operand, whole.reshape(self.operand.shape))

    def coefficients(self) -> list[Carriers]:
        """Return what the row multiplies by."""
        return list(self.results)

    def with_coefficients(self, found: Iterator[Carriers]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, results=tuple([next(found) for _ in self.results]))


def check_values(operation: MatrixOperation, values: NDArray[np.float64]) -> None:
    """Raise RuleError where vectors of equal eigenvalues or singular values are to be differentiated."""
    if has_equal_values(operation, values):
        eigen = operation.kind == "eigen"
        name, what = ("eigenvectors", "eigenvalues") if eigen else ("singular vectors", "singular values")
        raise RuleError(
            f"the derivative of the {name} of a matrix",
            why=f"some of its {what} are equal{'' if eigen else ', or 0'}, to the last digits: these vectors have none",
            do=f"take first derivatives of the {what} only, or write the function without them: by traces, "
            "determinants, powers of the matrix",
        )


class _Entries(Algebra[Carriers]):
    """Operations on flat arrays of nodes, or of numbers."""

    def __init__(self, by: Arithmetic) -> None:
        self.by = by

    def multiplied(self, sizes: tuple[int, int, int], left: Carriers, right: Carriers,
                   turned: tuple[bool, bool] = (False, False)) -> Carriers:  # fmt: skip
        """Return a product of matrices."""
        rows, inner, columns = sizes
        first = left.reshape(inner, rows).T if turned[0] else left.reshape(rows, inner)
        second = right.reshape(columns, inner).T if turned[1] else right.reshape(inner, columns)
        return self.by.product(first, second).ravel()

    def each(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        """Return a function of each entry."""
        return self.by.each(function, *values)

    def picked(self, value: Carriers, places: Places) -> Carriers:
        """Return entries at places."""
        return value[places]

    def known(self, numbers: NDArray[Any]) -> Carriers:
        """Return constants."""
        return self.by.known(numbers)

    def substituted(self, n: int, lower: Carriers, right: Carriers, turned: bool) -> Carriers:
        """Return the solutions of triangular systems, for right-hand sides as rows."""
        below = np.where(np.tri(n, dtype=bool), lower.reshape(n, n), self.by.number(0))
        return self.by.solution(below.T if turned else below, right.reshape(-1, n).T).T.ravel()

    def joined(self, values: Sequence[Carriers]) -> Carriers:
        """Return arrays one behind the other."""
        return np.concatenate(values)

    def exponential(self, n: int, matrix: Carriers) -> Carriers:
        """Return the exponential of a matrix."""
        return self.by.exponential(n, matrix)

    def size(self, value: Carriers) -> int:
        """Return how many entries an array has."""
        return value.size
