"""Linearize and transpose a graph in which array operations are single nodes.

The counterpart of `symad.derivatives.linear` with a row for a whole array (`array_rows`). Functions with array nodes
are called on numbers, so guards are known: an edge exists only where its guard holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.heads import Alias
from codegen.ir.matrix_operation import MatrixOperation
from codegen.records import dataclass
from symad.derivatives.array_arithmetic import ArrayArithmetic, Carriers, GuardedArithmetic
from symad.derivatives.array_carried import Activity, Carried
from symad.derivatives.array_edges import LogDivisors, array_edges
from symad.derivatives.array_rows import (
    ArrayEdge,
    ArrayRow,
    EachRow,
    ExtremumRow,
    MatrixRow,
    ProductRow,
    RunningRow,
    ScatterRow,
    SingleRow,
    SumRow,
    check_values,
)
from symad.derivatives.matrix_factors import values_read
from symad.errors import RuleError
from symad.graph.absent_numbers import ties
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess, Question, result_of, spread
from symad.graph.array_values import Values, compute, read, values_of_array, values_of_nodes
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.partials import edges
from symad.tracing.calling.user_place import located
from symad.tracing.values.node_arrays import constants


@dataclass(frozen=True)
class ArrayLinear:
    """A linear map of whole arrays between nodes of one graph; sources come before the rows that use them."""

    inputs: OperandAccess
    outputs: OperandAccess
    rows: tuple[ArrayRow, ...] = field(repr=False)
    active: Activity = field(repr=False)
    transposed: bool = False
    of_numbers: bool = False  # whether its coefficients are numbers, and no nodes

    def transpose(self) -> ArrayLinear:
        """Return the transposed map."""
        return replace(self, inputs=self.outputs, outputs=self.inputs, transposed=not self.transposed)

    def with_numbers(self, graph: Graph, values: Values) -> ArrayLinear:
        """Return the map with the numbers of its coefficients, to be applied to numbers."""
        if self.of_numbers:
            return self
        coefficients = [graph.arrays.reading(nodes) for row in self.rows for nodes in row.coefficients()]
        compute(graph, coefficients, values)
        arrays = iter([np.broadcast_to(read(graph, part, values), part.shape) for part in coefficients])
        return replace(self, rows=tuple(row.with_coefficients(arrays) for row in self.rows), of_numbers=True)

    def with_constants(self, graph: Graph) -> ArrayLinear:
        """Return a map that has numbers with constants of a graph in their place."""
        coefficients = [numbers for row in self.rows for numbers in row.coefficients()]
        arrays = iter([constants(graph, numbers) for numbers in coefficients])
        return replace(self, rows=tuple(row.with_coefficients(arrays) for row in self.rows), of_numbers=False)

    def apply(self, by: ArrayArithmetic, seeds: Carriers) -> Carriers:
        """Return the image of seeds, one for each input, or of columns of seeds; structural zeros are absent."""
        carried = Carried(by, self.active)
        with np.errstate(all="ignore"):
            carried.add(self.inputs, seeds)
            for row in reversed(self.rows) if self.transposed else self.rows:
                if self.transposed:
                    row.pull(carried)
                else:
                    row.push(carried)
            tangents = carried.at(self.outputs)
            shape = self.outputs.shape
        return carried.absent(*shape) if tangents is None else carried.spread(tangents, shape)

    def image(self, by: ArrayArithmetic, seeds: Carriers) -> Carriers:
        """Return the same with the number 0 for structural zeros."""
        images = self.apply(by, seeds)
        return by.settled(np.where(by.there(images), images, by.number(0)))


def _needed(graph: Graph, outputs: Nodes, first: int) -> list[int]:
    """Return the nodes from a first one on that outputs need, in their order; an array node by its first one."""
    needed_nodes, stack = set[int](), graph.arrays.roots(outputs)
    while stack:
        node = stack.pop()
        if node >= first and node not in needed_nodes:
            needed_nodes.add(node)
            stack += graph.arrays.operands_of(node)
    return sorted(needed_nodes)


class Linearization:
    """The derivative of outputs with respect to parameters, made row by row; here its coefficients are nodes."""

    build: Builder
    graph: Graph
    values: Values
    inputs: OperandAccess
    outputs: OperandAccess

    number_of: Callable[[OperandAccess], Carriers] | None = None

    def __init__(self, build: Builder, outputs: Nodes, parameters: Nodes, values: Values) -> None:
        self.build, self.graph, self.values = build, build.graph, values
        self.inputs, self.outputs = (self.graph.arrays.reading(nodes) for nodes in (parameters, outputs))
        firsts = [node.first for node in self.inputs.array_nodes]
        self.active: Activity = Activity(dict.fromkeys(firsts), set(self.inputs.single_nodes))  # so far: the parameters
        self.logarithms: LogDivisors = LogDivisors(build)
        self._given = {*firsts, *self.inputs.single_nodes}

    def linear(self) -> ArrayLinear:
        """Return the linear map; RuleError when an active operand has no derivative."""
        between = _needed(self.graph, self.outputs.ids, min(self._given))
        items = [(item, self.graph.arrays.at(item)) for item in between if item not in self._given]
        rows: list[ArrayRow] = []
        for item, array in items:
            for row in (self._logarithm(item if array is None else array), self.row(item, array)):
                if row is not None:
                    rows.append(row)
        of_numbers = self.number_of is not None
        return ArrayLinear(self.inputs, self.outputs, self.finished(tuple(rows)), self.active, of_numbers=of_numbers)

    def _logarithm(self, node: int | ArrayNode) -> ArrayRow | None:
        """Return the row of the logarithm of the divisor of a quotient, before the first one that is divided by it."""
        parts = self.logarithms.new(node)
        if parts is None or not self.active.any_of(parts[2]):
            return None
        logarithm, reciprocal, divisor = parts
        if isinstance(logarithm, int):
            self.active.singles.add(logarithm)
            source = divisor if divisor.only is None else divisor.only
            return SingleRow(logarithm, ((reciprocal.ids, source),))
        self.active.note(logarithm, self.active.of(divisor))
        return EachRow(logarithm, (ArrayEdge(self.carriers(reciprocal), divisor),))

    def row(self, item: int, array: ArrayNode | None) -> ArrayRow | None:
        """Return the row of an array node or another node; None where it does not depend on the parameters."""
        try:
            return self._single(item) if array is None else self._array(array)
        except RuleError as error:
            raise located(error, self.graph, item) from error

    def finished(self, rows: tuple[ArrayRow, ...]) -> tuple[ArrayRow, ...]:
        """Return all rows as the map has them."""
        return rows

    def carriers(self, reading: OperandAccess) -> Carriers:
        """Return the coefficients of a row, in the full shape of an operand."""
        return spread(reading.ids, reading.shape)

    def _single(self, node: int) -> ArrayRow | None:
        """Return the row of a node that is no element."""
        if not any(map(self._moves, self.graph.operands[node])):
            return None
        found_edges = edges(self.build, node, self._moves)
        kept = [edge for edge in found_edges if edge[2] is None or self._holds(edge[2])]
        if not kept:
            return None
        self.active.singles.add(node)
        kept.sort(key=itemgetter(1))
        return SingleRow(node, tuple([(self._multiplier(c, guard), self._source(s)) for c, s, guard in kept]))

    def _multiplier(self, coefficient: int | None, guard: int | None) -> Carriers | None:
        """Return the coefficient of an edge of a node that is no element; its guard holds."""
        return None if coefficient is None else np.array(coefficient)

    def _moves(self, node: int) -> bool:
        array = self.graph.arrays.at(node)
        if array is None or array.first not in self.active.arrays:
            return node in self.active.singles
        its = self.active.arrays[array.first]
        return its is None or bool(its[node - array.first])

    def _source(self, node: int) -> int | OperandAccess:
        array = self.graph.arrays.at(node)
        return node if array is None else self.graph.arrays.reading_of(node)

    def _holds(self, guard: int) -> bool:
        return bool(values_of_nodes(self.graph, [guard], self.values)[0])

    def _array(self, array: ArrayNode) -> ArrayRow | None:
        """Return the row of an array node, and note which of its elements are active."""
        if not any(map(self.active.any_of, array.operands)):
            return None
        name = _ROWS.get(array.kind)
        return None if name is None else getattr(self, name)(array, *array.operands)

    def _moving(self, reading: OperandAccess) -> NDArray[np.bool_]:
        """Return which elements of an operand are active, in its full shape."""
        return spread(self.active.of(reading), reading.shape)

    def each(self, array: ArrayNode, *operands: OperandAccess) -> ArrayRow | None:
        """Return the row of an operation on each element."""
        if array.head is Alias:
            self.active.note(array, self.active.of(operands[0]))
            return EachRow(array, (ArrayEdge(None, operands[0]),))
        kept_edges = []
        edges_of_array = array_edges(self.build, array, self.active.any_of, self.number_of, self.logarithms.of)
        for coefficient, source, guard in edges_of_array:
            if guard is None:
                kept_edges.append(ArrayEdge(coefficient, source))
                self.active.note(array, self.active.of(source))
                continue
            edge = self._where(array, coefficient, source, guard)
            if edge is not None:
                kept_edges.append(edge)
                self.active.note(array, self.active.of(source))
        return EachRow(array, tuple(kept_edges)) if kept_edges else None

    def _where(
        self, array: ArrayNode, coefficient: Carriers | None, source: OperandAccess, guard: Carriers
    ) -> ArrayEdge | None:
        """Return an edge for the elements at which its guard holds."""
        return where_holds(coefficient, source, values_of_array(self.graph, guard, self.values))

    def sum(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow:
        """Return the row of sums."""
        moves: Any = self.active.of(terms)
        moves = np.broadcast_to(moves, terms.shape).any(axis=0) if moves.ndim else moves
        self.active.note(array, np.asarray(moves))
        return SumRow(array, terms)

    def extremum(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow | None:
        """Return the row of the largest or smallest elements: their tangents, those of equal ones by halves in turn."""
        if array.head not in (sp.Max, sp.Min):
            return None
        self.active.note(array, np.asarray(self._moving(terms).any(axis=0)))
        return self.shared(array, terms)

    def shared(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow:
        """Return the row of the largest or smallest elements, with the shares of all."""
        reduction = np.maximum if array.head is sp.Max else np.minimum
        equal, shares = ties(spread(self.numbers(terms), terms.shape), self.numbers(result_of(array)), reduction)
        return ExtremumRow(array, terms, None if shares is None else self.constants(shares), equal)

    def numbers(self, reading: OperandAccess) -> NDArray[Any]:
        """Return the numbers of an operand."""
        return values_of_array(self.graph, reading.ids, self.values)

    def ask(self, reading: OperandAccess, question: Question) -> None:
        """Ask something of the numbers of an operand that may raise an error."""

        def asked(numbers: NDArray[np.float64]) -> bool:
            question(numbers)
            return True

        values_of_array(self.graph, reading.ids, self.values, asked)

    def constants(self, numbers: NDArray[np.float64]) -> Carriers:
        """Return numbers as coefficients of a row."""
        return constants(self.graph, numbers)

    def running(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow:
        """Return the row of running sums."""
        self.active.note(array, np.logical_or.accumulate(self._moving(terms)))
        return RunningRow(array, terms)

    def product(self, array: ArrayNode, left: OperandAccess, right: OperandAccess) -> ArrayRow:
        """Return the row of products of matrices."""
        moves = self.active.any_of(left), self.active.any_of(right)
        active: Any = [self.active.of(its) for its in (left, right)]
        if any(its.ndim == 0 and its for its in active):
            self.active.note(array, np.ones((), dtype=bool))
        else:
            rows = self._moving(left).any(axis=-1, keepdims=True)
            columns = self._moving(right).any(axis=-2, keepdims=True)
            self.active.note(array, np.broadcast_to(np.logical_or(rows, columns), array.shape))
        sides = [self.carriers(its) if moves[1 - k] else None for k, its in enumerate((left, right))]
        return ProductRow(array, (left, right), sides[0], sides[1])

    def scatter(self, array: ArrayNode, terms: OperandAccess) -> ArrayRow:
        """Return the row of sums at places."""
        assert array.places is not None
        moves = np.zeros(array.shape, dtype=bool)
        moves[array.places[self._moving(terms)]] = True
        self.active.note(array, moves)
        return ScatterRow(array, terms, array.places)

    def matrix(self, array: ArrayNode, *parts: OperandAccess) -> ArrayRow | None:
        """Return the row of one result of an operation on whole matrices."""
        assert array.matrix is not None
        operands, operation = parts[: len(array.matrix.operands)], array.matrix
        if not array.results or (operation.kind == "log_determinant" and array.number == 1):
            return None  # all results side by side; the sign
        nodes = [self.graph.arrays.at(first) for first in array.results]
        results = [result_of(node) for node in nodes if node is not None]
        vectors = {"eigen": (0, (1,)), "singular": (1, (0, 2))}.get(operation.kind)
        if vectors is not None and array.number in vectors[1]:
            self.ask(results[vectors[0]], partial(check_values, operation))
        self.active.note(array, self._moving_results(operation, operands))
        read = [self.carriers(reading).ravel() for reading in values_read(operation, operands, results)]
        return MatrixRow(array, operands, tuple(map(self.active.any_of, operands)), tuple(read))

    def _moving_results(self, operation: MatrixOperation, operands: Sequence[OperandAccess]) -> NDArray[np.bool_]:
        n = operation.sizes[0]
        if operation.kind == "cholesky":
            return np.tri(n, dtype=bool).ravel()
        if len(operands) == 2 and not self.active.any_of(operands[0]):  # each right-hand side has its solution
            return np.repeat(self._moving(operands[1]).reshape(-1, n).any(axis=1), n)
        return np.ones((), dtype=bool)


def where_holds(coefficient: Carriers | None, source: OperandAccess, holds: NDArray[np.bool_]) -> ArrayEdge | None:
    """Return an edge under a guard that is known; None where it holds nowhere."""
    if holds.all():
        return ArrayEdge(coefficient, source)
    return ArrayEdge(coefficient, source, holds) if holds.any() else None


_ROWS = {
    "each": "each", "sum": "sum", "extremum": "extremum", "running": "running", "product": "product",
    "scatter": "scatter", "matrix": "matrix", "result": "matrix",
}  # fmt: skip


class InNumbers(Linearization):
    """Makes rows whose coefficients are numbers: those of array nodes at once, of other nodes in the end."""

    def linear(self) -> ArrayLinear:
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
        return spread(self.number_of(reading), reading.shape)

    def _where(
        self, array: ArrayNode, coefficient: Carriers | None, source: OperandAccess, guard: Carriers
    ) -> ArrayEdge | None:
        return where_holds(coefficient, source, guard)

    def numbers(self, reading: OperandAccess) -> NDArray[Any]:
        return self.number_of(reading)

    def constants(self, numbers: NDArray[np.float64]) -> Carriers:
        return numbers

    def ask(self, reading: OperandAccess, question: Question) -> None:
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
        return ExtremumRow(array, terms, self.by.shares(terms, array))
