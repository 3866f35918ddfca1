"""Rows of linear maps of whole arrays: what an array node does to tangents, and its transpose to cotangents.

Both are carried out by array nodes. What is carried for an array node is an array of nodes, of which an element that is
a structural zero is `ABSENT`; for an array node that has only structural zeros there is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from symad.graph.array_nodes import ArrayNode, Nodes, Reading
from symad.graph.builder import Builder
from symad.tracing.control.array_graph import LEAST
from symad.tracing.values.node_arrays import elementwise, reduce

ABSENT = -1


@dataclass
class Activity:
    """Which nodes depend on the parameters: all or some of the elements of array nodes, and other nodes."""

    arrays: dict[int, NDArray[np.bool_] | None] = field(default_factory=dict)  # by first node; None: all elements
    singles: set[int] = field(default_factory=set)

    def of(self, reading: Reading) -> NDArray[np.bool_]:
        """Return which elements of an operand are active; an array that broadcasts to its shape."""
        if reading.view is not None:
            if reading.view.node.first not in self.arrays:
                return np.False_  # type: ignore[return-value]
            its = self.arrays[reading.view.node.first]
            return np.True_ if its is None else reading.view.of(its, reading.ids.shape)  # type: ignore[return-value]
        found = np.zeros(reading.ids.size, dtype=bool)
        for part in reading.parts:
            if part.node.first in self.arrays:
                its = self.arrays[part.node.first]
                found[part.where] = True if its is None else its[part.places]
        if reading.singles is not None:
            moves = np.array([node in self.singles for node in reading.singles.nodes])
            found[reading.singles.where] = moves[reading.singles.numbers]
        return found.reshape(reading.ids.shape)

    def note(self, node: ArrayNode, moves: NDArray[np.bool_], where: Nodes | None = None) -> None:
        """Note which elements of an array node are active, or which of those `where`."""
        if where is None and moves.all():
            self.arrays[node.first] = None
            return
        its = self.arrays.get(node.first, np.zeros(node.size, dtype=bool))
        if its is not None:
            at = slice(None) if where is None else where
            its[at] |= np.broadcast_to(moves, node.shape if where is None else where.shape).ravel()
            self.arrays[node.first] = its


@dataclass
class Carried:
    """The tangents or cotangents of nodes: those of array nodes by their first node, and those of other nodes."""

    build: Builder
    active: Activity
    arrays: dict[int, Nodes] = field(default_factory=dict)  # flat; not to be changed in place
    singles: dict[int, int] = field(default_factory=dict)

    def at(self, reading: Reading) -> Nodes | None:
        """Return what the nodes of an operand have; None where all are structural zeros."""
        if reading.view is not None:
            its = self.arrays.get(reading.view.node.first)
            found = None if its is None else reading.view.of(its, reading.ids.shape)
        else:
            found = np.full(reading.ids.size, ABSENT)
            for part in reading.parts:
                if part.node.first in self.arrays:
                    found[part.where] = self.arrays[part.node.first][part.places]
            if reading.singles is not None:
                nodes = np.array([self.singles.get(node, ABSENT) for node in reading.singles.nodes])
                found[reading.singles.where] = nodes[reading.singles.numbers]
            found = found.reshape(reading.ids.shape)
        return found if found is not None and (found >= 0).any() else None

    def of(self, node: ArrayNode, where: Nodes | None = None) -> Nodes | None:
        """Return what an array node has, or what its elements `where` have."""
        its = self.arrays.get(node.first)
        if its is None:
            return None
        found = its.reshape(node.shape) if where is None else its[where]
        return found if (found >= 0).any() else None

    def put(self, node: ArrayNode, values: Nodes | None, where: Nodes | None = None) -> None:
        """Add values to those of an array node, or of its elements `where`."""
        if values is not None:
            values = np.broadcast_to(values, node.shape if where is None else where.shape).ravel()
            self._put(node, values, slice(None) if where is None else where)

    def add(self, reading: Reading, values: Nodes | None) -> None:
        """Add values to those of the nodes of an operand that are active, among which some may be the same."""
        values = None if values is None else self.summed_to(values, reading.ids.shape)
        if values is None:
            return
        if reading.view is not None:
            node = reading.view.node
            if node.first in self.active.arrays:
                places = slice(None) if reading.view.whole else (reading.ids - node.first).ravel()
                self._put(node, values.ravel(), places)
            return
        flat = values.ravel()
        for part in reading.parts:
            if part.node.first in self.active.arrays:
                self._put(part.node, flat[part.where], part.places)
        if reading.singles is not None:
            singles = reading.singles
            moves = np.array([node in self.active.singles for node in singles.nodes])[singles.numbers]
            for k, number in zip(singles.where[moves].tolist(), singles.numbers[moves].tolist(), strict=True):
                self.put_single(singles.nodes[number], int(flat[k]))

    def put_single(self, node: int, value: int) -> None:
        """Add a value to that of a node that is active and no element."""
        if value >= 0 and node in self.active.singles:
            before = self.singles.get(node)
            self.singles[node] = value if before is None else self.build.add(before, value)

    def _put(self, node: ArrayNode, values: Nodes, places: Nodes | slice) -> None:
        moves, its = self.active.arrays[node.first], self.arrays.get(node.first)
        if moves is not None:
            values = np.where(moves[places], values, ABSENT)
        if isinstance(places, slice):
            self.arrays[node.first] = values if its is None else self.plus(its, values)
            return
        kept = values >= 0
        if not kept.all():
            places, values = places[kept], values[kept]
        if len(places) > 1 and not (places[1:] > places[:-1]).all():
            different, numbers = np.unique(places, return_inverse=True)
            if len(different) < len(places):
                places, values = different, self.scattered(values, numbers, len(different))
        its = np.full(node.size, ABSENT) if its is None else its.copy()
        its[places] = self.plus(its[places], values)
        self.arrays[node.first] = its

    def plus(self, left: Nodes, right: Nodes) -> Nodes:
        """Return sums of two arrays of one shape."""
        both = (left >= 0) & (right >= 0)
        if both.size and both.all():
            return elementwise(self.build.graph, op.add, left, right)
        found = np.maximum(left, right)
        if both.any():
            found[both] = elementwise(self.build.graph, op.add, left[both], right[both])
        return found

    def times(self, coefficient: Nodes | None, values: Nodes | None, shape: tuple[int, ...]) -> Nodes | None:
        """Return products, of a shape to which both broadcast."""
        if values is None or coefficient is None:
            return values
        there = values >= 0
        if there.all():
            if coefficient.size == 1 and int(coefficient.flat[0]) == self.build.one:
                return values
            return elementwise(self.build.graph, op.multiply, coefficient, values)
        there = np.broadcast_to(there, shape)
        found = np.full(shape, ABSENT)
        factors, terms = np.broadcast_to(coefficient, shape)[there], np.broadcast_to(values, shape)[there]
        found[there] = elementwise(self.build.graph, op.multiply, factors, terms)
        return found

    def summed(self, terms: Nodes | None) -> Nodes | None:
        """Return the sums along the first axis."""
        if terms is None or not len(terms):
            return None
        there = terms >= 0
        if there.all():
            return terms[0] if len(terms) == 1 else reduce(self.build.graph, op.add, terms, 0)
        if not there.any():
            return None
        flat = there.reshape(len(terms), -1)
        _, columns = np.nonzero(flat)
        different, numbers = np.unique(columns, return_inverse=True)
        found = np.full(flat.shape[1], ABSENT)
        found[different] = self.scattered(terms.reshape(flat.shape)[flat], numbers, len(different))
        return found.reshape(terms.shape[1:])

    def summed_to(self, values: Nodes, shape: tuple[int, ...]) -> Nodes | None:
        """Return the sums over the axes along which an array of a shape is broadcast."""
        lacking = values.ndim - len(shape)
        axes = [k for k in range(values.ndim) if k < lacking or (shape[k - lacking] == 1 and values.shape[k] > 1)]
        if not axes:
            return values
        kept = [k for k in range(values.ndim) if k not in axes]
        terms = values.transpose([*axes, *kept]).reshape(-1, *[values.shape[k] for k in kept])
        found = self.summed(terms)
        return None if found is None else found.reshape(shape)

    def scattered(self, values: Nodes, places: Nodes, count: int) -> Nodes:
        """Return as many sums, to which each value is added at its place; every place has one."""
        if len(values) >= LEAST:
            return self.build.graph.arrays.add("scatter", (count,), [values], places=places)
        found: list[int | None] = [None] * count
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            before = found[place]
            found[place] = value if before is None else self.build.add(before, value)
        return np.array(found, dtype=np.int64)

    def filled(self, values: Nodes) -> Nodes:
        """Return an array with the number 0 for its structural zeros."""
        there = values >= 0
        return values if there.all() else np.where(there, values, self.build.zero)


class ArrayRow(ABC):
    """What an array node, or another node, does to tangents, and its transpose to cotangents."""

    @abstractmethod
    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""

    @abstractmethod
    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangents."""

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return []

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return self


@dataclass(frozen=True)
class ArrayEdge:
    """Edges of all elements of an array node, or (flat) of those `where`: `coefficient` (None: 1) times `source`."""

    coefficient: Nodes | None
    source: Reading
    where: Nodes | None = None


@dataclass(frozen=True)
class EachRow(ArrayRow):
    """The edges of an operation on each element."""

    target: ArrayNode
    edges: tuple[ArrayEdge, ...]

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        for edge in self.edges:
            shape = self.target.shape if edge.where is None else edge.where.shape
            terms = tangents.times(edge.coefficient, tangents.at(edge.source), shape)
            tangents.put(self.target, terms, edge.where)

    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangents."""
        for edge in self.edges:
            shape = self.target.shape if edge.where is None else edge.where.shape
            terms = cotangents.times(edge.coefficient, cotangents.of(self.target, edge.where), shape)
            cotangents.add(edge.source, terms)

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return [edge.coefficient for edge in self.edges if edge.coefficient is not None]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        edges = (edge if edge.coefficient is None else replace(edge, coefficient=next(found)) for edge in self.edges)
        return replace(self, edges=tuple(edges))


@dataclass(frozen=True)
class SingleRow(ArrayRow):
    """A node that is no element, with its edges; an operand may be an element."""

    target: int
    edges: tuple[tuple[int | None, int | Reading], ...]  # coefficient, source

    def push(self, tangents: Carried) -> None:
        """Give the node its tangent."""
        for coefficient, source in self.edges:
            value = tangents.singles.get(source) if isinstance(source, int) else tangents.at(source)
            if value is not None:
                tangents.put_single(self.target, self._scaled(tangents, coefficient, int(value)))

    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangent."""
        value = cotangents.singles.get(self.target)
        if value is not None:
            for coefficient, source in self.edges:
                scaled = self._scaled(cotangents, coefficient, value)
                if isinstance(source, int):
                    cotangents.put_single(source, scaled)
                else:
                    cotangents.add(source, np.array(scaled))

    def _scaled(self, carried: Carried, coefficient: int | None, value: int) -> int:
        return value if coefficient is None else carried.build.mul(coefficient, value)

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return [np.array(coefficient) for coefficient, _ in self.edges if coefficient is not None]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, edges=tuple((None if c is None else int(next(found)), s) for c, s in self.edges))


@dataclass(frozen=True)
class SumRow(ArrayRow):
    """Sums along the first axis."""

    target: ArrayNode
    terms: Reading

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        found = tangents.at(self.terms)
        if found is not None:
            tangents.put(self.target, tangents.summed(np.broadcast_to(found, self.terms.shape)))

    def pull(self, cotangents: Carried) -> None:
        """Give the terms what they have of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is not None:
            cotangents.add(self.terms, np.broadcast_to(found, self.terms.shape))


@dataclass(frozen=True)
class RunningRow(ArrayRow):
    """Running sums along the first axis; those of cotangents run back."""

    target: ArrayNode
    terms: Reading

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        tangents.put(self.target, self._running(tangents, tangents.at(self.terms), 1))

    def pull(self, cotangents: Carried) -> None:
        """Give the terms what they have of the node's cotangents."""
        cotangents.add(self.terms, self._running(cotangents, cotangents.of(self.target), -1))

    def _running(self, carried: Carried, values: Nodes | None, step: int) -> Nodes | None:
        if values is None:
            return None
        terms = np.broadcast_to(carried.filled(values), self.target.shape)[::step]
        return carried.build.graph.arrays.add("running", terms.shape, [terms])[::step]


@dataclass(frozen=True)
class ScatterRow(ArrayRow):
    """Sums to which each term is added at its place."""

    target: ArrayNode
    terms: Reading
    places: Nodes

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        found = tangents.at(self.terms)
        if found is not None:
            found = np.broadcast_to(found, self.places.shape)
            there = found >= 0
            different, numbers = np.unique(self.places[there], return_inverse=True)
            tangents.put(self.target, tangents.scattered(found[there], numbers, len(different)), different)

    def pull(self, cotangents: Carried) -> None:
        """Give the terms what they have of the node's cotangents."""
        found = cotangents.of(self.target)
        cotangents.add(self.terms, None if found is None else found[self.places])


@dataclass(frozen=True)
class ProductRow(ArrayRow):
    """Products of matrices: the tangents of one side with the `values` of the other, where that side `moves`."""

    target: ArrayNode
    sides: tuple[Reading, Reading]
    values: tuple[Nodes, Nodes]  # the nodes of both sides; numbers of them where the map is on another graph
    moves: tuple[bool, bool]

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        left, right = map(tangents.at, self.sides)
        if left is not None:
            left = np.broadcast_to(left, self.sides[0].shape)
            inner = self._inner(left, -1)
            values = self.values[1][..., inner, :]
            tangents.put(self.target, product(tangents, tangents.filled(left[..., inner]), values))
        if right is not None:
            right = np.broadcast_to(right, self.sides[1].shape)
            inner = self._inner(right, -2)
            values = self.values[0][..., inner]
            tangents.put(self.target, product(tangents, values, tangents.filled(right[..., inner, :])))

    def _inner(self, moving: Nodes, axis: int) -> Nodes | slice:
        """Return the terms in which any tangent is not a structural zero."""
        there = moving >= 0
        if there.all():
            return slice(None)
        return np.flatnonzero(there.any(axis=tuple(k for k in range(moving.ndim) if k != moving.ndim + axis)))

    def pull(self, cotangents: Carried) -> None:
        """Give the sides what they have of the node's cotangents."""
        found = cotangents.of(self.target)
        if found is None:
            return
        found = cotangents.filled(found)
        left, right = (np.swapaxes(values, -1, -2) for values in self.values)
        if self.moves[0]:
            cotangents.add(self.sides[0], product(cotangents, found, right))
        if self.moves[1]:
            cotangents.add(self.sides[1], product(cotangents, left, found))

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return list(self.values)

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, values=(next(found), next(found)))


def product(carried: Carried, left: Nodes, right: Nodes) -> Nodes:
    """Return products of matrices."""
    shape = *np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]
    return carried.build.graph.arrays.add("product", shape, [left, right])
