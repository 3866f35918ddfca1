"""Rows of linear maps of factorizations: solutions, determinants and Cholesky factors of whole matrices.

Source: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic differentiation" (2008);
Murray, "Differentiation of the Cholesky decomposition" (2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from symad.derivatives.array_arithmetic import Carriers
from symad.derivatives.array_carried import Carried
from symad.derivatives.array_rows import ArrayRow
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
