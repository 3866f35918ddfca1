"""Linearize and transpose with arrays: the linear map of a graph in which operations on arrays are single nodes.

As `symad.derivatives.linear`, whose rows are here those of whole arrays: a row is carried out by array nodes, forwards
on tangents and backwards on cotangents. A structural zero is an element of -1 in an array of nodes. A function that has
arrays here is called on numbers, so a guard is known: an edge is only where it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.heads import Alias
from symad.derivatives.array_edges import ArrayEdge, array_edges
from symad.derivatives.array_factorizations import CholeskyRow, DeterminantRow, SolveRow
from symad.derivatives.array_rows import (
    ABSENT,
    ArrayRow,
    Carried,
    EachRow,
    ProductRow,
    RunningRow,
    ScatterRow,
    SingleRow,
    SumRow,
)
from symad.errors import RuleError
from symad.graph.array_nodes import ArrayNode, Nodes
from symad.graph.array_values import Values, values_of_array, values_of_nodes
from symad.graph.builder import Builder
from symad.rules.partials import edges
from symad.tracing.calling.user_place import located
from symad.tracing.values.node_arrays import constants


@dataclass(frozen=True)
class ArrayLinear:
    """A linear map between nodes of one graph, of whole arrays; sources come before the rows that use them."""

    inputs: Nodes
    outputs: Nodes
    rows: tuple[ArrayRow, ...] = field(repr=False)
    first: int
    active: NDArray[np.bool_] = field(repr=False)  # of the nodes from `first` on
    transposed: bool = False

    def transpose(self) -> ArrayLinear:
        """Return the transposed map."""
        return replace(self, inputs=self.outputs, outputs=self.inputs, transposed=not self.transposed)

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the map multiplies by: the residuals."""
        return [coefficient for row in self.rows for coefficient in row.coefficients()]

    def with_coefficients(self, found: Sequence[Nodes]) -> ArrayLinear:
        """Return the map with others in their order."""
        others = iter(found)
        return replace(self, rows=tuple(row.with_coefficients(others) for row in self.rows))

    def apply(self, build: Builder, seeds: Nodes | Sequence[int]) -> Nodes:
        """Return the image of seeds, one node for each input; `ABSENT` for a structural zero."""
        carried = Carried(build, self.first, len(self.active))
        everywhere = np.ones(len(self.active), dtype=bool)
        carried.add(self.inputs, np.asarray(seeds, dtype=np.int64), self.active if self.transposed else everywhere)
        if self.transposed:
            for row in reversed(self.rows):
                row.pull(carried, self.active)
        else:
            for row in self.rows:
                row.push(carried)
        found = carried.at(self.outputs)
        return np.full(self.outputs.shape, ABSENT) if found is None else found


def array_linearize(build: Builder, outputs: Nodes, parameters: Nodes, values: Values) -> ArrayLinear:
    """Return the derivative of outputs with respect to parameters as a linear map.

    RuleError when an active operand has no derivative.
    """
    return _Linearization(build, outputs, parameters, values).made()


class _Linearization:
    def __init__(self, build: Builder, outputs: Nodes, parameters: Nodes, values: Values) -> None:
        self.build, self.graph, self.values = build, build.graph, values
        self.outputs, self.parameters = outputs, parameters
        self.first = int(min(parameters.min(), outputs.min()))
        self.count = len(self.graph) - self.first
        self.active = np.zeros(self.count, dtype=bool)
        self.arrays = [array for array in self.graph.arrays.nodes if array.first >= self.first]

    def made(self) -> ArrayLinear:
        """Return the map."""
        self.active[self.parameters.ravel() - self.first] = True
        given, rows = set(self.graph.arrays.roots(self.parameters)), list[ArrayRow]()
        for item in self._needed():
            if (item if isinstance(item, int) else item.first) not in given:
                rows += self._single(item) if isinstance(item, int) else self._array(item)
        return ArrayLinear(self.parameters, self.outputs, tuple(rows), self.first, self.active)

    def _needed(self) -> list[ArrayNode | int]:
        """Return the array nodes and the other nodes that outputs need, in their order."""
        first, operands = self.first, self.graph.operands
        marks = bytearray(self.count)
        needed: NDArray[np.bool_] = np.frombuffer(marks, dtype=bool)
        needed[self.outputs.ravel() - first] = True
        found, stop = list[ArrayNode | int](), self.count
        for array in [*sorted(self.arrays, key=attrgetter("first"), reverse=True), None]:
            after = 0 if array is None else array.first + array.size - first
            for inside in range(stop - 1, after - 1, -1):
                if marks[inside]:
                    found.append(inside + first)
                    for operand in operands[inside + first]:
                        if operand >= first:
                            marks[operand - first] = True
            if array is not None:
                stop = array.first - first
                if needed[stop:after].any():
                    found.append(array)
                    for reading in array.operands:
                        ids = reading.ids[reading.ids >= first] - first
                        needed[ids] = True
        return found[::-1]

    def _is_active(self, ids: Nodes) -> bool:
        inside = ids[ids >= self.first] - self.first
        return bool(self.active[inside].any())

    def _activity(self, ids: Nodes) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = self.active[np.maximum(ids - self.first, 0)] & (ids >= self.first)
        return found

    def _single(self, node: int) -> list[ArrayRow]:
        """Return the row of a node that is no element."""
        first, active = self.first, self.active
        if not any(operand >= first and active[operand - first] for operand in self.graph.operands[node]):
            return []
        try:
            found = edges(self.build, node, lambda operand: operand >= first and bool(active[operand - first]))
        except RuleError as error:
            raise located(error, self.graph, node) from error
        kept = [(c, source) for c, source, guard in found if guard is None or self._holds(guard)]
        if not kept:
            return []
        active[node - first] = True
        return [SingleRow(node, tuple(sorted(kept, key=itemgetter(1))))]

    def _holds(self, guard: int) -> bool:
        return bool(values_of_nodes(self.graph, [guard], self.values)[0])

    def _array(self, array: ArrayNode) -> list[ArrayRow]:
        """Return the rows of an array node, and note which of its elements are active."""
        operands = [reading.ids for reading in array.operands]
        if array.kind != "each":
            operands = [np.broadcast_to(reading.ids, reading.shape) for reading in array.operands]
        if not any(map(self._is_active, operands)):
            return []
        try:
            row = _ROWS[array.kind](self, array, *operands)
        except RuleError as error:
            raise located(error, self.graph, array.first) from error
        return [] if row is None else [row]

    def note(self, target: Nodes, moves: NDArray[np.bool_]) -> None:
        """Note which elements of an array node are active."""
        self.active[target.ravel() - self.first] |= np.broadcast_to(moves, target.shape).ravel()

    def each(self, array: ArrayNode, *operands: Nodes) -> ArrayRow | None:
        """Return the row of an operation on each element."""
        target, found = array.ids, list[tuple[Nodes | None, Nodes, Nodes | None]]()
        if array.head is Alias:
            given = [ArrayEdge(None, operands[0], None)]
        else:
            given = array_edges(self.graph, array, self._is_active)
        for edge in given:
            source, coefficient, where = edge.source, edge.coefficient, None
            if edge.guard is not None:
                holds = np.broadcast_to(self._values(edge.guard), target.shape).ravel()
                if not holds.all():
                    where = np.flatnonzero(holds)
                    source = np.broadcast_to(source, target.shape).ravel()[where]
                    if coefficient is not None:
                        coefficient = np.broadcast_to(coefficient, target.shape).ravel()[where]
            if source.size and self._is_active(source):
                found.append((coefficient, source, where))
                self.note(target if where is None else target.ravel()[where], self._activity(source))
        return EachRow(target, tuple(found)) if found else None

    def _values(self, ids: Nodes) -> NDArray[np.bool_]:
        return values_of_array(self.graph, ids, self.values)

    def sum(self, array: ArrayNode, terms: Nodes) -> ArrayRow:
        """Return the row of sums."""
        self.note(array.ids, np.asarray(self._activity(terms).any(axis=0)))
        return SumRow(array.ids, terms)

    def extremum(self, array: ArrayNode, terms: Nodes) -> ArrayRow | None:
        """Return the row of the largest or smallest elements: their tangents, those of equal ones by halves in turn."""
        if array.head not in (sp.Max, sp.Min):
            return None
        values, target = values_of_array(self.graph, terms, self.values), array.ids
        best = values_of_array(self.graph, target, self.values)
        ties = (values == best).reshape(len(values), -1)
        before = np.cumsum(ties, axis=0)
        shares = np.where(ties, 0.5 ** (before[-1] - np.maximum(before - 1, 1)), 0.0)
        rows, columns = np.nonzero(ties)
        if not len(rows):
            return None
        source = terms.reshape(ties.shape)[rows, columns]
        coefficient = None if (shares[ties] == 1.0).all() else constants(self.graph, shares[rows, columns])
        self.note(target.ravel()[columns], self._activity(source))
        return EachRow(target, ((coefficient, source, columns),))

    def running(self, array: ArrayNode, terms: Nodes) -> ArrayRow:
        """Return the row of running sums."""
        self.note(array.ids, np.logical_or.accumulate(self._activity(terms)))
        return RunningRow(array.ids, terms)

    def product(self, array: ArrayNode, left: Nodes, right: Nodes) -> ArrayRow:
        """Return the row of products of matrices."""
        moves = self._activity(left), self._activity(right)
        rows, columns = moves[0].any(axis=-1, keepdims=True), moves[1].any(axis=-2, keepdims=True)
        self.note(array.ids, np.logical_or(rows, columns))
        return ProductRow(array.ids, (left, right), (left, right), (bool(rows.any()), bool(columns.any())))

    def scatter(self, array: ArrayNode, terms: Nodes) -> ArrayRow:
        """Return the row of sums at places."""
        assert array.places is not None
        moves = np.zeros(array.shape, dtype=bool)
        moves[array.places[self._activity(terms)]] = True
        self.note(array.ids, moves)
        return ScatterRow(array.ids, terms, array.places)

    def solve(self, array: ArrayNode, matrix: Nodes, right: Nodes) -> ArrayRow:
        """Return the row of the solutions of a linear system."""
        active = self._is_active(matrix)
        columns = np.asarray(self._activity(right).any(axis=0))
        self.note(array.ids, np.broadcast_to(True if active else columns, array.shape))
        return SolveRow(array.ids, matrix, right, matrix, array.ids, active)

    def determinant(self, array: ArrayNode, matrix: Nodes) -> ArrayRow:
        """Return the row of a determinant, or of its logarithm."""
        self.note(array.ids, np.array(True))
        return DeterminantRow(array.ids, matrix, matrix, array.ids if array.kind == "determinant" else None)

    def cholesky(self, array: ArrayNode, matrix: Nodes) -> ArrayRow:
        """Return the row of a factor of a positive definite matrix."""
        self.note(array.ids, np.tri(len(matrix), dtype=bool))
        return CholeskyRow(array.ids, matrix, array.ids)


_ROWS: dict[str, Callable[..., ArrayRow | None]] = {
    "each": _Linearization.each,
    "sum": _Linearization.sum,
    "extremum": _Linearization.extremum,
    "running": _Linearization.running,
    "product": _Linearization.product,
    "scatter": _Linearization.scatter,
    "solve": _Linearization.solve,
    "determinant": _Linearization.determinant,
    "log_determinant": _Linearization.determinant,
    "cholesky": _Linearization.cholesky,
}
