"""Record array operations as array nodes while a function is called on numbers.

An operation on an array is one node of the graph (`symad.graph.array_nodes`), which NumPy evaluates.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from codegen.heads import Alias
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Head
from codegen.loops.loop import Nodes
from codegen.records import dataclass
from symad.graph.array_operands import ArrayNode, Element, OperandAccess, TruthElement, result_of
from symad.graph.array_values import compute, read
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope
from symad.tracing.control.array_loops import ArrayLoops
from symad.tracing.values.array_blocks import (
    CONSTANTS,
    Kind,
    SlotGraph,
    are_constants,
    chain_head,
    kinds_of,
    shared_template_of,
)
from symad.tracing.values.node_builders import Build

Operand: TypeAlias = NDArray[Any]  # nodes, or numbers in floats

LEAST = 16  # elements; smaller operations get a node for each element
PRODUCTS = 64  # multiplications in a product of matrices; smaller ones get a node for each element

_KINDS: dict[Head, Kind] = {sp.Float: "constant", TruthElement: "truth"}
_NUMBERS = frozenset({"constant", "number"})
_EXTREMA = frozenset({sp.Max, sp.Min, sp.And, sp.Or})


@dataclass
class ArrayGraph(ArrayLoops):
    """Add operations on arrays to a graph as array nodes. A method returns None for operations that it does not add."""

    least: int = LEAST
    at_once: bool = False
    on_numbers: ClassVar[bool] = True
    templates: dict[tuple[Any, ...], tuple[SlotGraph, list[int], int]] = field(default_factory=dict)

    def within(self, inner: Scope) -> ArrayGraph:
        """Return the one recorder of all scopes of the graph."""
        return self

    def constants(self, values: NDArray[np.float64]) -> Nodes | None:
        """Return the nodes of an array of numbers, without a look at its elements."""
        if values.size < self.least:
            return None
        return self.scope.graph.arrays.add("given", values.shape, numbers=values.flatten())

    def aliases(self, nodes: Nodes) -> Nodes | None:
        """Return aliases of nodes: the parameters of a level."""
        if nodes.size < self.least or self.kind(nodes) == "truth":
            return None
        return self.scope.graph.arrays.add("each", nodes.shape, [nodes], head=Alias)

    def mapped(self, build: Build, operands: Sequence[Operand], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of every element."""
        graph = self.scope.graph
        readings = list(map(self._reading, operands))
        kinds = [self._kind(reading) for reading in readings]
        for k in [k for k, kind in enumerate(kinds) if kind is None]:
            if (known := self.known_truths(operands[k])) is not None:
                readings[k], kinds[k] = graph.arrays.reading(known), "truth"
        if set(kinds) == {"constant"}:
            return self.folded(build, readings, shape)
        if None in kinds or ("number" not in kinds and "truth" not in kinds):
            return None
        template, slots, result = self._template(build, readings, kinds)
        if result in slots:
            return np.broadcast_to(readings[slots.index(result)].ids, shape).copy()
        rows = dict(zip(slots, readings, strict=True))
        enter(graph, template, rows, range(len(template)))
        last = rows[result]
        if last.kept == shape and last.view is not None and last.view.whole:
            return graph.arrays.handed_out(last.view.node)
        return np.broadcast_to(last.ids, shape).copy()

    def folded(self, build: Build, readings: Sequence[OperandAccess], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of constants, computed now; None where its value may be exact."""
        graph = self.scope.graph
        if all(reading.size == 1 for reading in readings):
            node = build(graph, *[int(reading.ids.flat[0]) for reading in readings])
            return np.full(shape, node)
        if not any(reading.view is not None for reading in readings):
            return None
        template, slots, result = shared_template_of(build, ("constant",) * len(readings))
        rows = dict(zip(slots, readings, strict=True))
        enter(graph, template, rows, range(len(template)))
        compute(graph, [rows[result]], self.scope.values)
        values = np.broadcast_to(read(graph, rows[result], self.scope.values), shape)
        return graph.arrays.add("given", shape, numbers=values.flatten(), truths=values.dtype == bool)

    def _template(
        self, build: Build, readings: Sequence[OperandAccess], kinds: Sequence[Kind | None]
    ) -> tuple[SlotGraph, list[int], int]:
        """Return the nodes that a builder makes for operands of these kinds. Constants are part of the key."""
        key = (
            build,
            *[
                int(reading.ids.flat[0]) if reading.size == 1 and kind == "constant" else kind
                for reading, kind in zip(readings, kinds, strict=True)
            ],
        )
        if key not in self.templates:
            atoms = self.scope.graph.atoms
            forms = tuple([atoms[part] if isinstance(part, int) else part or "number" for part in key[1:]])
            self.templates[key] = shared_template_of(build, forms)
        return self.templates[key]

    def _reading(self, values: Operand) -> OperandAccess:
        """Return access to an operand: to nodes, or to numbers, which need no nodes."""
        arrays = self.scope.graph.arrays
        if values.dtype != np.float64:
            return arrays.reading(values)
        return result_of(arrays.made(ArrayNode("given", values.shape, sp.Float, numbers=values.flatten())))

    def chosen(self, conditions: Nodes, first: Nodes, second: Nodes) -> Nodes | None:
        """Return the choice by truth values that are known."""
        if conditions.size < self.least:
            return super().chosen(conditions, first, second)
        if (known := self.known_truths(conditions)) is None:
            return None
        shape = np.broadcast_shapes(conditions.shape, first.shape, second.shape)
        return self.mapped(op.select, (known, first, second), shape)

    def known_truths(self, nodes: Operand) -> Nodes | None:
        """Return known truth values as an array node of numbers; None where one is not known."""
        true, false = map(self.scope.graph.number, (True, False))
        holds = nodes == true
        if nodes.dtype == np.float64 or not (holds | (nodes == false)).all():
            return None
        return self.scope.graph.arrays.add("given", holds.shape, numbers=holds.flatten(), truths=True)

    def kind(self, nodes: Nodes) -> Kind | None:
        """Return the kind of nodes: "constant" if all of them are constants."""
        return self._kind(self.scope.graph.arrays.reading(nodes))

    def _kind(self, reading: OperandAccess) -> Kind | None:
        """Return the kind of the nodes of an operand; None for truth values that are known."""
        if reading.view is not None:
            return _KINDS.get(reading.view.node.element, "number")
        if reading.only is not None and issubclass(self.scope.graph.heads[reading.only], CONSTANTS):
            return "constant"
        kinds: set[Kind | None] = {_KINDS.get(node.element, "number") for node in reading.array_nodes}
        if reading.singles is not None:
            singles = np.array(reading.singles.nodes)
            (kind,) = kinds_of(self.scope.graph, [singles])
            kinds.add("number" if kind == "constant" and not are_constants(self.scope.graph, singles) else kind)
        if len(kinds) == 1:
            return kinds.pop()
        return "number" if kinds == {"constant", "number"} else None

    def numbers_of(self, nodes: Nodes) -> Nodes | None:
        """Return truth values unchanged."""
        return nodes

    def reduction(self, build: Build, rows: Nodes) -> Nodes | None:
        """Return build(...build(first, second)...) of an array along its first axis."""
        if rows.size < self.least or len(rows) < 2:
            return None
        graph = self.scope.graph
        reading = graph.arrays.reading(rows)
        head = chain_head(graph, build, self._kind(reading))
        if head is sp.Add:
            return graph.arrays.add("sum", rows.shape[1:], [reading])
        if head not in _EXTREMA:
            return None
        return graph.arrays.add("extremum", rows.shape[1:], [reading], head=head, truths=head in (sp.And, sp.Or))

    def running(self, build: Build, rows: Nodes) -> Nodes | None:
        """Return the sums of an array along its first axis, after each of its terms."""
        if rows.size < self.least or len(rows) < 2:
            return None
        graph = self.scope.graph
        reading = graph.arrays.reading(rows)
        if chain_head(graph, build, self._kind(reading)) is not sp.Add:
            return None
        return graph.arrays.add("running", rows.shape, [reading])

    def matmul(self, left: Operand, right: Operand) -> Nodes | None:
        """Return the products of matrices, or of stacks of them."""
        stack = _common([left.shape[:-2], right.shape[:-2]])
        shape = *stack, left.shape[-2], right.shape[-1]
        if math.prod(shape) * left.shape[-1] < min(PRODUCTS, 4 * self.least) or not left.shape[-1]:
            return None
        sides = list(map(self._reading, (left, right)))
        kinds = set(map(self._kind, sides))
        return self.scope.graph.arrays.add("product", shape, sides) if "number" in kinds <= _NUMBERS else None

    def cholesky(self, matrix: Nodes) -> Nodes:
        """Return the lower factor of a matrix. The zeros above its diagonal depend on nothing."""
        return self.carried_out(MatrixOperation("cholesky", (len(matrix),)), matrix)[0].reshape(matrix.shape)

    def carried_out(self, operation: MatrixOperation, *operands: Nodes) -> list[Nodes]:
        """Return the results of an operation on whole matrices, computed now: NumPy's errors get the user's line."""
        graph = self.scope.graph
        results = graph.arrays.matrices(operation, operands)
        compute(graph, map(graph.arrays.reading, results), self.scope.values)
        return results


def array_graph(scope: Scope) -> ArrayGraph:
    """Return the recorder of array operations in a scope: one for all scopes of a graph."""
    around = None if scope.parent is None else scope.parent.arrays
    return around if isinstance(around, ArrayGraph) else ArrayGraph(scope, LEAST)


def enter(graph: Graph, template: SlotGraph, entered: dict[int, OperandAccess], rows: Iterable[int]) -> None:
    """Enter rows of a template into a graph, each as an array node. `entered` has the nodes of its slots, and gets all.

    A row that is the same for all elements is an ordinary node.
    """
    arrays = graph.arrays
    for row in rows:
        if row in entered:
            continue
        places = template.operands[row]
        if not places:
            entered[row] = arrays.reading_of(graph.leaf(template.atoms[row]))
            continue
        head, parts = template.heads[row], [entered[part] for part in places]
        shape = _common([part.kept for part in parts])
        if max([part.size for part in parts]) == 1:
            node = graph.canonical(head, tuple([int(part.ids.flat[0]) for part in parts]))
            entered[row] = arrays.reading(np.full(shape, node)) if shape else arrays.reading_of(node)
        else:
            element = TruthElement if template.is_boolean(row) else Element
            entered[row] = result_of(arrays.made(ArrayNode("each", shape, element, tuple(parts), head)))


def _common(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast."""
    shape = shapes[0]
    for other in shapes:
        if other != shape and other:
            if shape:
                return np.broadcast_shapes(*shapes)
            shape = other
    return shape
