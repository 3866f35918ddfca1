"""Linearize a function called on numbers: with its numbers, or with nodes for any numbers.

On numbers a guard is known: an edge exists only where it holds. On nodes, for a kept trace, the guard is part of the
coefficient, which is absent where it fails (`symad.graph.absent_numbers`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from symad.derivatives.array_arithmetic import Carriers, GuardedArithmetic
from symad.derivatives.array_linear import ArrayLinear, Linearization, where_holds
from symad.derivatives.array_rows import ArrayEdge, ArrayRow, ExtremumRow, SingleRow
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess, Question, spread
from symad.graph.array_values import Values, compute, read, values_of_nodes


class InNumbers(Linearization):
    """Makes rows whose coefficients are numbers: those of array nodes at once, of other nodes in the end."""

    def linear(self) -> ArrayLinear:
        """Return the linear map; RuleError when an active operand has no derivative."""
        compute(self.graph, [self.outputs], self.values)
        return super().linear()

    def number_of(self, reading: OperandAccess) -> Carriers:
        """Return the numbers of an operand, as they are kept."""
        if any(node.first not in self.graph.arrays.values for node in reading.array_nodes) or any(
            node not in self.values for node in reading.single_nodes
        ):
            compute(self.graph, [reading], self.values)
        return np.asarray(read(self.graph, reading, self.values))

    def finished(self, rows: tuple[ArrayRow, ...]) -> tuple[ArrayRow, ...]:
        """Return all rows with numbers."""
        nodes = [node for row in rows if isinstance(row, SingleRow) for node in row.coefficients()]
        numbers = iter(map(np.array, values_of_nodes(self.graph, [int(node) for node in nodes], self.values)))
        return tuple([row.with_coefficients(numbers) if isinstance(row, SingleRow) else row for row in rows])

    def carriers(self, reading: OperandAccess) -> Carriers:
        """Return what a row multiplies by, in the whole shape of an operand."""
        return spread(self.number_of(reading), reading.shape)

    def _where(
        self, array: ArrayNode, coefficient: Carriers | None, source: OperandAccess, guard: Carriers
    ) -> ArrayEdge | None:
        return where_holds(coefficient, source, guard)

    def numbers(self, reading: OperandAccess) -> NDArray[Any]:
        """Return the numbers of an operand."""
        return self.number_of(reading)

    def constants(self, numbers: NDArray[np.float64]) -> Carriers:
        """Return numbers as what a row multiplies by."""
        return numbers

    def ask(self, reading: OperandAccess, question: Question) -> None:
        """Ask something of the numbers of an operand, which may raise an error."""
        question(np.asarray(self.number_of(reading)))


class ForAnyNumbers(Linearization):
    """Makes rows whose coefficients are nodes, with their guards in them."""

    def __init__(self, outputs: Nodes, parameters: Nodes, values: Values, by: GuardedArithmetic) -> None:
        super().__init__(by.build, outputs, parameters, values)
        self.by = by

    def _holds(self, guard: int) -> bool:
        return True

    def _multiplier(self, coefficient: int | None, guard: int | None) -> Carriers | None:
        multiplier = super()._multiplier(coefficient, guard)
        return multiplier if guard is None else self._guarded(multiplier, np.array(guard))

    def _where(
        self, array: ArrayNode, coefficient: Carriers | None, source: OperandAccess, guard: Carriers
    ) -> ArrayEdge | None:
        return ArrayEdge(self._guarded(coefficient, guard), source)

    def _guarded(self, coefficient: Carriers | None, guard: Carriers) -> Carriers:
        return self.by.present(guard, self.by.number(1) if coefficient is None else coefficient)

    def shared(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow:
        """Return the row of the largest or smallest elements, with the shares of all."""
        return ExtremumRow(array, terms, self.by.shares(terms, array))
