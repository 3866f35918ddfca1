"""Rows of linear maps of whole arrays: what an array node does to tangents, and its transpose to cotangents.

Both are carried out by array nodes. A structural zero is an element of `ABSENT` in an array of nodes: where some of the
elements have one, only the others take part.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from symad.graph.array_nodes import Nodes, once
from symad.graph.builder import Builder
from symad.tracing.control.array_graph import LEAST
from symad.tracing.values.node_arrays import elementwise, reduce

ABSENT = -1


class Carried:
    """What the nodes of a range have of an image: nodes, `ABSENT` for structural zeros."""

    def __init__(self, build: Builder, first: int, count: int) -> None:
        self.build, self.graph, self.first = build, build.graph, first
        self.nodes = np.full(count, ABSENT)

    def at(self, ids: Nodes) -> Nodes | None:
        """Return what nodes have; None where all are structural zeros."""
        view = self.graph.arrays.untouched_view(ids)
        if view is not None and view.node.first >= self.first:
            found = view.of(self.nodes[view.node.first - self.first :], ids.shape)
            there = found >= 0
            return found.copy() if there.any() else None
        inside = ids - self.first
        if inside.size and int(inside.min()) < 0:
            found = np.where(inside < 0, ABSENT, self.nodes[np.maximum(inside, 0)])
        else:
            found = self.nodes[inside]
        return found if (found >= 0).any() else None

    def put(self, ids: Nodes, values: Nodes | None) -> None:
        """Add values to those of nodes, among which some may be the same."""
        if values is not None:
            self._put(ids.ravel() - self.first, values.ravel())

    def add(self, ids: Nodes, values: Nodes | None, active: NDArray[np.bool_]) -> None:
        """Add values to those of nodes that are active, among which some may be the same."""
        if values is None:
            return
        ids = once(ids)
        values = self.summed_to(values, ids.shape)
        if values is None:
            return
        flat, given = ids.ravel() - self.first, values.ravel()
        kept = (given >= 0) & (flat >= 0)
        kept &= active[np.maximum(flat, 0)]
        self._put(flat[kept], given[kept])

    def _put(self, flat: Nodes, given: Nodes) -> None:
        if len(flat) > 1 and not (flat[1:] > flat[:-1]).all():
            different, numbers = np.unique(flat, return_inverse=True)
            if len(different) < len(flat):
                flat, given = different, self.scattered(given, numbers, len(different))
        self.nodes[flat] = self.plus(self.nodes[flat], given)

    def plus(self, left: Nodes, right: Nodes) -> Nodes:
        """Return sums of two arrays of one shape."""
        both = (left >= 0) & (right >= 0)
        if both.all() and both.size:
            return elementwise(self.graph, op.add, left, right)
        found = np.maximum(left, right)
        if both.any():
            found[both] = elementwise(self.graph, op.add, left[both], right[both])
        return found

    def times(self, coefficient: Nodes | None, values: Nodes | None, shape: tuple[int, ...]) -> Nodes | None:
        """Return products, in a shape to which both broadcast."""
        if values is None:
            return None
        if coefficient is None:
            return np.broadcast_to(values, shape)
        there = values >= 0
        if there.all():
            if coefficient.size == 1 and int(coefficient.flat[0]) == self.build.one:
                return np.broadcast_to(values, shape)
            return np.broadcast_to(elementwise(self.graph, op.multiply, coefficient, values), shape)
        there = np.broadcast_to(there, shape)
        found = np.full(shape, ABSENT)
        factors, terms = np.broadcast_to(coefficient, shape)[there], np.broadcast_to(values, shape)[there]
        found[there] = elementwise(self.graph, op.multiply, factors, terms)
        return found

    def summed(self, terms: Nodes | None) -> Nodes | None:
        """Return the sums along the first axis."""
        if terms is None or not len(terms):
            return None
        there = terms >= 0
        if not there.any():
            return None
        if there.all():
            return terms[0] if len(terms) == 1 else reduce(self.graph, op.add, terms, 0)
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
            return self.graph.arrays.add("scatter", (count,), [values], places=places)
        found: list[int | None] = [None] * count
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            before = found[place]
            found[place] = value if before is None else self.build.add(before, value)
        return np.array(found, dtype=np.int64)

    def filled(self, values: Nodes) -> Nodes:
        """Return an array with the number 0 for its structural zeros."""
        return np.where(values < 0, self.build.zero, values)


class ArrayRow(ABC):
    """What an array node does to tangents, and its transpose to cotangents."""

    @abstractmethod
    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""

    @abstractmethod
    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        """Give the operands what they have of the node's cotangents."""

    def coefficients(self) -> list[Nodes]:
        """Return the nodes that the row multiplies by."""
        return []

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        """Return the row with others."""
        return self


@dataclass(frozen=True)
class EachRow(ArrayRow):
    """Edges of each element; those that are only `where` a guard holds have flat arrays for these elements."""

    target: Nodes
    edges: tuple[tuple[Nodes | None, Nodes, Nodes | None], ...]  # coefficient, source, where

    def push(self, tangents: Carried) -> None:
        for coefficient, source, where in self.edges:
            target = self.target if where is None else self.target.ravel()[where]
            terms = tangents.times(coefficient, tangents.at(source), target.shape)
            tangents.put(target, terms)

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        for coefficient, source, where in self.edges:
            target = self.target if where is None else self.target.ravel()[where]
            terms = cotangents.times(coefficient, cotangents.at(target), target.shape)
            cotangents.add(source, terms, active)

    def coefficients(self) -> list[Nodes]:
        return [coefficient for coefficient, _, _ in self.edges if coefficient is not None]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        return replace(self, edges=tuple((None if c is None else next(found), s, w) for c, s, w in self.edges))


@dataclass(frozen=True)
class SingleRow(ArrayRow):
    """A node that is no element, with its edges."""

    target: int
    edges: tuple[tuple[int | None, int], ...]  # coefficient, source

    def push(self, tangents: Carried) -> None:
        for coefficient, source in self.edges:
            self._carry(tangents, coefficient, source, self.target)

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        for coefficient, source in self.edges:
            self._carry(cotangents, coefficient, self.target, source)

    def _carry(self, carried: Carried, coefficient: int | None, source: int, target: int) -> None:
        nodes, build, first = carried.nodes, carried.build, carried.first
        value = int(nodes[source - first])
        if value >= 0:
            value = value if coefficient is None else build.mul(coefficient, value)
            before = int(nodes[target - first])
            nodes[target - first] = value if before < 0 else build.add(before, value)

    def coefficients(self) -> list[Nodes]:
        return [np.array(coefficient) for coefficient, _ in self.edges if coefficient is not None]

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        return replace(self, edges=tuple((None if c is None else int(next(found)), s) for c, s in self.edges))


@dataclass(frozen=True)
class SumRow(ArrayRow):
    """Sums along the first axis."""

    target: Nodes
    terms: Nodes

    def push(self, tangents: Carried) -> None:
        found = tangents.at(self.terms)
        if found is not None:
            shape = (len(self.terms), *self.target.shape)
            tangents.put(self.target, tangents.summed(np.broadcast_to(found, shape)))

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        found = cotangents.at(self.target)
        if found is not None:
            cotangents.add(self.terms, np.broadcast_to(found, (len(self.terms), *found.shape)), active)


@dataclass(frozen=True)
class RunningRow(ArrayRow):
    """Running sums along the first axis; those of cotangents run back."""

    target: Nodes
    terms: Nodes

    def push(self, tangents: Carried) -> None:
        tangents.put(self.target, self._running(tangents, tangents.at(self.terms), 1))

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        cotangents.add(self.terms, self._running(cotangents, cotangents.at(self.target), -1), active)

    def _running(self, carried: Carried, values: Nodes | None, step: int) -> Nodes | None:
        if values is None:
            return None
        terms = np.broadcast_to(carried.filled(values), self.target.shape)[::step]
        return carried.graph.arrays.add("running", terms.shape, [terms])[::step]


@dataclass(frozen=True)
class ScatterRow(ArrayRow):
    """Sums to which each term is added at its place."""

    target: Nodes
    terms: Nodes
    places: Nodes

    def push(self, tangents: Carried) -> None:
        found = tangents.at(self.terms)
        if found is not None:
            there = found >= 0
            different, numbers = np.unique(self.places[there], return_inverse=True)
            tangents.put(self.target[different], tangents.scattered(found[there], numbers, len(different)))

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        found = cotangents.at(self.target)
        cotangents.add(self.terms, None if found is None else found[self.places], active)


@dataclass(frozen=True)
class ProductRow(ArrayRow):
    """Products of matrices: the tangents of one side with the `values` of the other, where that side `moves`."""

    target: Nodes
    sides: tuple[Nodes, Nodes]
    values: tuple[Nodes, Nodes]  # the nodes of both sides; numbers of them where the map is on another graph
    moves: tuple[bool, bool]

    def push(self, tangents: Carried) -> None:
        left, right = map(tangents.at, self.sides)
        for a, b in ((left, self.values[1]), (self.values[0], right)):
            if a is not None and b is not None:
                inner = self._inner(left if a is left else right, -1 if a is left else -2)
                a, b = a[..., inner], b[..., inner, :]
                tangents.put(self.target, product(tangents, tangents.filled(a), tangents.filled(b)))

    def _inner(self, moving: Nodes | None, axis: int) -> Nodes:
        """Return the terms in which any tangent is not a structural zero."""
        assert moving is not None
        others = tuple(k for k in range(moving.ndim) if k != moving.ndim + axis)
        return np.flatnonzero((moving >= 0).any(axis=others))

    def pull(self, cotangents: Carried, active: NDArray[np.bool_]) -> None:
        found = cotangents.at(self.target)
        if found is None:
            return
        found = cotangents.filled(found)
        left, right = (np.swapaxes(values, -1, -2) for values in self.values)
        if self.moves[0]:
            cotangents.add(self.sides[0], product(cotangents, found, right), active)
        if self.moves[1]:
            cotangents.add(self.sides[1], product(cotangents, left, found), active)

    def coefficients(self) -> list[Nodes]:
        return list(self.values)

    def with_coefficients(self, found: Iterator[Nodes]) -> ArrayRow:
        left, right = next(found), next(found)
        return replace(self, values=(left, right))


def product(carried: Carried, left: Nodes, right: Nodes) -> Nodes:
    """Return products of matrices."""
    shape = *np.broadcast_shapes(left.shape[:-2], right.shape[:-2]), left.shape[-2], right.shape[-1]
    return carried.graph.arrays.add("product", shape, [left, right])
