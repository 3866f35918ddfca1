"""What linear maps of whole arrays carry: the tangents or cotangents of nodes, and which nodes have any.

For an array node that is an array of nodes or of numbers (`array_arithmetic`), of which an element that is a structural
zero is absent; for an array node that has only structural zeros there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from symad.derivatives.array_arithmetic import Arithmetic, Carriers
from symad.graph.array_nodes import ArrayNode, Nodes, Reading


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
            return np.True_ if its is None else reading.view.of(its, reading.kept)  # type: ignore[return-value]
        found = np.zeros(reading.size, dtype=bool)
        for part in reading.parts:
            if part.node.first in self.arrays:
                its = self.arrays[part.node.first]
                found[part.where] = True if its is None else its[part.places]
        if reading.singles is not None:
            moves = np.array([node in self.singles for node in reading.singles.nodes])
            found[reading.singles.where] = moves[reading.singles.numbers]
        return found.reshape(reading.kept)

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

    by: Arithmetic
    active: Activity
    arrays: dict[int, Carriers] = field(default_factory=dict)  # flat; not to be changed in place
    singles: dict[int, Carriers] = field(default_factory=dict)  # of shape ()

    def at(self, reading: Reading) -> Carriers | None:
        """Return what the nodes of an operand have; None where all are structural zeros."""
        if reading.view is not None:
            its = self.arrays.get(reading.view.node.first)
            return self._unless_absent(None if its is None else reading.view.of(its, reading.kept))
        if reading.only is not None:
            one = self.singles.get(reading.only)
            return None if one is None else one.reshape(reading.kept)
        found = np.full(reading.size, self.by.absent)
        for part in reading.parts:
            if part.node.first in self.arrays:
                found[part.where] = self.arrays[part.node.first][part.places]
        if reading.singles is not None:
            its = np.array([self.singles.get(node, self.by.absent) for node in reading.singles.nodes])
            found[reading.singles.where] = its[reading.singles.numbers]
        return self._unless_absent(found.reshape(reading.kept))

    def of(self, node: ArrayNode, where: Nodes | None = None) -> Carriers | None:
        """Return what an array node has, or what its elements `where` have."""
        its = self.arrays.get(node.first)
        if its is None:
            return None
        return self._unless_absent(its.reshape(node.shape) if where is None else its[where])

    def _unless_absent(self, found: Carriers | None) -> Carriers | None:
        return found if found is not None and self.by.there(found).any() else None

    def put(self, node: ArrayNode, values: Carriers | None, where: Nodes | None = None) -> None:
        """Add values to those of an array node, or of its elements `where`."""
        if values is not None:
            values = np.broadcast_to(values, node.shape if where is None else where.shape).ravel()
            self._put(node, values, slice(None) if where is None else where)

    def add(self, reading: Reading, values: Carriers | None) -> None:
        """Add values to those of the nodes of an operand that are active, among which some may be the same."""
        values = None if values is None else self.summed_to(values, reading.kept)
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
            moves &= self.by.there(flat[singles.where])
            for k, number in zip(singles.where[moves].tolist(), singles.numbers[moves].tolist(), strict=True):
                self.put_single(singles.nodes[number], flat[k : k + 1].reshape(()))

    def put_single(self, node: int, value: Carriers) -> None:
        """Add a value to that of a node that is active and no element."""
        if node in self.active.singles:
            before = self.singles.get(node)
            self.singles[node] = value if before is None else self.by.plus(before, value)

    def _put(self, node: ArrayNode, values: Carriers, places: Nodes | slice) -> None:
        moves, its = self.active.arrays[node.first], self.arrays.get(node.first)
        if moves is not None:
            values = np.where(moves[places], values, self.by.absent)
        if isinstance(places, slice):
            self.arrays[node.first] = values if its is None else self.plus(its, values)
            return
        kept = self.by.there(values)
        if not kept.all():
            places, values = places[kept], values[kept]
        if len(places) > 1 and not (places[1:] > places[:-1]).all():
            different, numbers = np.unique(places, return_inverse=True)
            if len(different) < len(places):
                places, values = different, self.by.scattered(values, numbers, len(different))
        its = np.full(node.size, self.by.absent) if its is None else its.copy()
        its[places] = self.plus(its[places], values)
        self.arrays[node.first] = its

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums of two arrays of one shape."""
        first, second = self.by.there(left), self.by.there(right)
        both = first & second
        if both.size and both.all():
            return self.by.plus(left, right)
        found = np.where(first, left, right)
        if both.any():
            found[both] = self.by.plus(left[both], right[both])
        return found

    def times(self, coefficient: Carriers | None, values: Carriers | None, shape: tuple[int, ...]) -> Carriers | None:
        """Return products, of a shape to which both broadcast."""
        if values is None or coefficient is None:
            return values
        there = self.by.there(values)
        if there.all():
            return self.by.times(coefficient, values)
        there = np.broadcast_to(there, shape)
        found = np.full(shape, self.by.absent)
        factors, terms = np.broadcast_to(coefficient, shape)[there], np.broadcast_to(values, shape)[there]
        found[there] = self.by.times(factors, terms)
        return found

    def summed(self, terms: Carriers | None) -> Carriers | None:
        """Return the sums along the first axis."""
        if terms is None or not len(terms):
            return None
        there = self.by.there(terms)
        if there.all():
            return self.by.total(terms)
        if not there.any():
            return None
        flat = there.reshape(len(terms), -1)
        _, columns = np.nonzero(flat)
        different, numbers = np.unique(columns, return_inverse=True)
        found = np.full(flat.shape[1], self.by.absent)
        found[different] = self.by.scattered(terms.reshape(flat.shape)[flat], numbers, len(different))
        return found.reshape(terms.shape[1:])

    def summed_to(self, values: Carriers, shape: tuple[int, ...]) -> Carriers | None:
        """Return the sums over the axes along which an array of a shape is broadcast."""
        lacking = values.ndim - len(shape)
        axes = [k for k in range(values.ndim) if k < lacking or (shape[k - lacking] == 1 and values.shape[k] > 1)]
        if not axes:
            return values
        kept = [k for k in range(values.ndim) if k not in axes]
        terms = values.transpose([*axes, *kept]).reshape(-1, *[values.shape[k] for k in kept])
        found = self.summed(terms)
        return None if found is None else found.reshape(shape)

    def filled(self, values: Carriers) -> Carriers:
        """Return an array with the number 0 for its structural zeros."""
        there = self.by.there(values)
        return values if there.all() else np.where(there, values, self.by.number(0))
