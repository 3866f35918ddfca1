"""Operations on arrays as array nodes: where a function is called on numbers, and its derivatives are numbers.

What NumPy does to an array is one node of the graph (`symad.graph.array_nodes`), and is carried out by NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.heads import Alias
from codegen.ir.program import Head
from codegen.loops.loop import Nodes
from symad.graph.array_nodes import Reading, TruthElement
from symad.graph.array_values import values_of_array
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope
from symad.tracing.control.array_loops import ArrayLoops
from symad.tracing.values.array_blocks import Kind, chain_head, kinds_of, shared_template_of
from symad.tracing.values.node_builders import Build

LEAST = 64  # elements; fewer are written out

_KINDS: dict[Head, Kind] = {sp.Float: "constant", TruthElement: "truth"}
_NUMBERS = frozenset({"constant", "number"})
_EXTREMA = frozenset({sp.Max, sp.Min, sp.And, sp.Or})


@dataclass
class ArrayGraph(ArrayLoops):
    """What adds operations on arrays to a graph as array nodes; each answers None where they are written out."""

    least: int = LEAST
    on_numbers: ClassVar[bool] = True

    def within(self, inner: Scope) -> ArrayGraph:
        """Return what does the same in a scope inside."""
        return self

    def constants(self, values: NDArray[np.float64]) -> Nodes | None:
        """Return the nodes of an array of numbers, which are not looked at one by one."""
        if values.size < self.least:
            return None
        return self.scope.graph.arrays.add("given", values.shape, numbers=values.flatten())

    def aliases(self, nodes: Nodes) -> Nodes | None:
        """Return nodes of their own with the values of others: the parameters of a level."""
        if nodes.size < self.least or self.kind(nodes) == "truth":
            return None
        return self.scope.graph.arrays.add("each", nodes.shape, [nodes], head=Alias)

    def mapped(self, build: Build, operands: Sequence[Nodes], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of every element."""
        graph = self.scope.graph
        readings = list(map(graph.arrays.reading, operands))
        kinds = [self._kind(reading) for reading in readings]
        if None in kinds or set(kinds) == {"constant"}:
            return None
        given = tuple(
            graph.atoms[int(reading.ids.flat[0])] if kind == "constant" and reading.size == 1 else kind or "number"
            for reading, kind in zip(readings, kinds, strict=True)
        )
        template, slots, result = shared_template_of(build, given)
        found: dict[int, Nodes | Reading] = dict(zip(slots, readings, strict=True))
        if result in slots:
            return np.broadcast_to(operands[slots.index(result)], shape).copy()
        enter(graph, template, found, range(len(template)))
        made = found[result]
        assert not isinstance(made, Reading)
        return made if made.shape == shape else np.broadcast_to(made, shape).copy()

    def kind(self, nodes: Nodes) -> Kind | None:
        """Return what nodes are: "constant" where all of them are constants."""
        return self._kind(self.scope.graph.arrays.reading(nodes))

    def _kind(self, reading: Reading) -> Kind | None:
        """Return what the nodes of an operand are; None for truth values that are known."""
        if reading.view is not None:
            return _KINDS.get(reading.view.node.element, "number")
        kinds: set[Kind | None] = {_KINDS.get(node.element, "number") for node in reading.array_nodes}
        if reading.singles is not None:
            kinds |= set(kinds_of(self.scope.graph, [np.array(reading.singles.nodes)]))
        if len(kinds) == 1:
            return kinds.pop()
        return "number" if kinds == {"constant", "number"} else None

    def numbers_of(self, nodes: Nodes) -> Nodes | None:
        """Return truth values as they are."""
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

    def matmul(self, left: Nodes, right: Nodes) -> Nodes | None:
        """Return the products of matrices, or of stacks of them."""
        stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        shape = *stack, left.shape[-2], right.shape[-1]
        if math.prod(shape) * left.shape[-1] < self.least or not left.shape[-1]:
            return None
        sides = list(map(self.scope.graph.arrays.reading, (left, right)))
        kinds = set(map(self._kind, sides))
        return self.scope.graph.arrays.add("product", shape, sides) if "number" in kinds <= _NUMBERS else None

    def solution(self, matrix: Nodes, right: Nodes) -> Nodes:
        """Return the solution of linear systems."""
        return self._computed(self.scope.graph.arrays.add("solve", right.shape, [matrix, right]))

    def determinant(self, matrix: Nodes) -> Nodes:
        """Return a determinant."""
        return self._computed(self.scope.graph.arrays.add("determinant", (), [matrix]))

    def log_determinant(self, matrix: Nodes) -> Nodes:
        """Return the logarithm of the absolute value of a determinant."""
        return self._computed(self.scope.graph.arrays.add("log_determinant", (), [matrix]))

    def cholesky(self, matrix: Nodes) -> Nodes:
        """Return the lower factor of a matrix, with the number 0 above its diagonal."""
        made = self._computed(self.scope.graph.arrays.add("cholesky", matrix.shape, [matrix]))
        return np.where(np.tri(len(matrix), dtype=bool), made, self.scope.graph.number(0))

    def _computed(self, nodes: Nodes) -> Nodes:
        """Return nodes that are computed now, so that what NumPy raises has the user's line."""
        values_of_array(self.scope.graph, nodes, self.scope.values)
        return nodes


def array_graph(scope: Scope) -> ArrayGraph:
    """Return what adds operations on arrays in a scope: one for all scopes of a graph."""
    around = None if scope.parent is None else scope.parent.arrays
    return around if isinstance(around, ArrayGraph) else ArrayGraph(scope, LEAST)


def enter(graph: Graph, template: Graph, found: dict[int, Nodes | Reading], rows: Iterable[int]) -> None:
    """Enter rows of a template into a graph, each as an array node; `found` has the nodes of its slots, and gets all.

    What is the same for all elements is a node as any other.
    """
    for row in rows:
        if row in found:
            continue
        head, parts = template.heads[row], [found[part] for part in template.operands[row]]
        if not parts:
            found[row] = np.array(graph.leaf(template.atoms[row]))
        elif all(part.size == 1 for part in parts):
            arrays = [part.ids if isinstance(part, Reading) else part for part in parts]
            node = graph.canonical(head, tuple(int(part.flat[0]) for part in arrays))
            found[row] = np.full(np.broadcast_shapes(*[part.shape for part in arrays]), node)
        else:
            shape = np.broadcast_shapes(*[part.kept if isinstance(part, Reading) else part.shape for part in parts])
            found[row] = graph.arrays.add("each", shape, parts, head=head, truths=template.is_boolean(row))
