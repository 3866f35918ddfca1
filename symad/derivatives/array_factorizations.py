"""Rows of linear maps of factorizations: solutions, determinants and Cholesky factors of whole matrices.

Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
Murray, "Differentiation of the Cholesky decomposition" (2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

import symad.tracing.values.node_builders as op
from symad.derivatives.array_rows import ABSENT, ArrayRow, Carried, product
from symad.graph.array_nodes import ArrayNode, Nodes, Reading
from symad.tracing.values.node_arrays import elementwise


@dataclass(frozen=True)
class SolveRow(ArrayRow):
    """The solution x of a x = b: a dx = db - da x; `matrix` and `solution` are the values of a and x."""

    target: ArrayNode
    left: Reading
    right: Reading
    matrix: Nodes
    solution: Nodes
    moves: bool  # whether a does

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        left, right = tangents.at(self.left), tangents.at(self.right)
        if left is not None:
            left = np.broadcast_to(tangents.filled(left), self.left.shape)
            moved = _negative(tangents, product(tangents, left, self.solution))
            right = moved if right is None else tangents.plus(np.broadcast_to(right, moved.shape), moved)
        if right is not None:
            right = np.broadcast_to(right, self.target.shape)
            columns = np.flatnonzero((right >= 0).any(axis=0))
            found = _solution(tangents, self.matrix, tangents.filled(right[:, columns]))
            where = np.arange(self.target.size).reshape(self.target.shape)[:, columns]
            tangents.put(self.target, found.ravel(), where.ravel())

    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is not None:
            solved = _solution(cotangents, self.matrix.T, cotangents.filled(found))
            cotangents.add(self.right, solved)
            if self.moves:
                moved = _negative(cotangents, product(cotangents, solved, self.solution.T))
                cotangents.add(self.left, moved)

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return [self.matrix, self.solution]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, matrix=next(found), solution=next(found))


@dataclass(frozen=True)
class DeterminantRow(ArrayRow):
    """The logarithm of |det a|, or det a, the `factor`: d log|det a| = tr(inv(a) da)."""

    target: ArrayNode
    operand: Reading
    matrix: Nodes
    factor: Nodes | None

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

    def _coefficient(self, carried: Carried) -> Nodes:
        numbers = [carried.build.zero, carried.build.one]
        inverse = _solution(
            carried, self.matrix.T, np.where(np.eye(len(self.matrix), dtype=bool), numbers[1], numbers[0])
        )
        if self.factor is None:
            return inverse
        return elementwise(carried.build.graph, op.multiply, self.factor.reshape(1, 1), inverse)

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return [self.matrix] if self.factor is None else [self.matrix, self.factor]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, matrix=next(found), factor=None if self.factor is None else next(found))


@dataclass(frozen=True)
class CholeskyRow(ArrayRow):
    """The lower factor L of a matrix of which the lower triangle is read: dL = L phi(inv(L) da inv(L).T).

    phi takes the lower triangle, of the diagonal one half; `factor` has the values of L.
    """

    target: ArrayNode
    operand: Reading
    factor: Nodes

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        found = tangents.at(self.operand)
        if found is not None:
            lower = np.broadcast_to(tangents.filled(found), self.operand.shape)
            symmetric = np.where(np.tri(len(lower), dtype=bool), lower, lower.T)
            factor = _lower(tangents, self.factor)
            half = _solution(tangents, factor, symmetric)
            both = _solution(tangents, factor, half.T)
            inside = np.tri(len(lower), dtype=bool)
            made = product(tangents, factor, self._phi(tangents, both))
            tangents.put(self.target, made[inside], np.flatnonzero(inside))

    def pull(self, cotangents: Carried) -> None:
        """Give the operand what it has of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is None:
            return
        factor = _lower(cotangents, self.factor)
        given = _lower(cotangents, cotangents.filled(found))
        inner = self._phi(cotangents, product(cotangents, factor.T, given))
        half = _solution(cotangents, factor.T, inner)
        both = _solution(cotangents, factor.T, half.T)
        doubled = elementwise(cotangents.build.graph, op.add, both, both.T)
        below = np.tri(len(both), k=-1, dtype=bool)
        cotangents.add(self.operand, np.where(below, doubled, np.where(np.eye(len(both), dtype=bool), both, ABSENT)))

    def _phi(self, carried: Carried, matrix: Nodes) -> Nodes:
        """Return the lower triangle, with half of the diagonal."""
        found = _lower(carried, matrix)
        places = np.diag_indices(len(found))
        found[places] = elementwise(carried.build.graph, op.multiply, found[places], np.array(carried.build.half))
        return found

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return [self.factor]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, factor=next(found))


def _solution(carried: Carried, matrix: Nodes, right: Nodes) -> Nodes:
    return carried.build.graph.arrays.add("solve", right.shape, [matrix, right])


def _lower(carried: Carried, matrix: Nodes) -> Nodes:
    return np.where(np.tri(len(matrix), dtype=bool), matrix, carried.build.zero)


def _negative(carried: Carried, nodes: Nodes) -> Nodes:
    return elementwise(carried.build.graph, op.negative, nodes)
