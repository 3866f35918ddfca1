"""Tangents and cotangents of array nodes, and which nodes have any.

Each is an array of nodes or of numbers (`array_arithmetic`). An element that is a structural zero is absent; an array
node that has only structural zeros has no entry. With several columns, an element is a row of nodes or numbers.
"""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from symad.derivatives.array_arithmetic import ArrayArithmetic, Carriers
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess, View, spread


@dataclass
class Activity:
    """Which nodes depend on the parameters: all or some of the elements of array nodes, and other nodes."""

    arrays: dict[int, NDArray[np.bool_] | None] = field(default_factory=dict)  # by first node; None: all elements
    singles: set[int] = field(default_factory=set)

    def of(self, reading: OperandAccess) -> NDArray[np.bool_]:
        """Return which elements of an operand are active; an array that broadcasts to its shape."""
        if reading.view is not None:
            if reading.view.node.first not in self.arrays:
                return np.False_  # type: ignore[return-value]
            its = self.arrays[reading.view.node.first]
            return np.True_ if its is None else reading.view.of(its, reading.kept)  # type: ignore[return-value]
        active = np.zeros(reading.size, dtype=bool)
        for part in reading.parts:
            if part.node.first in self.arrays:
                its = self.arrays[part.node.first]
                active[part.where] = True if its is None else its[part.places]
        if reading.singles is not None:
            moves = np.array([node in self.singles for node in reading.singles.nodes])
            active[reading.singles.where] = moves[reading.singles.numbers]
        return active.reshape(reading.kept)

    def any_of(self, reading: OperandAccess) -> bool:
        """Whether an element of an operand is active."""
        if reading.view is not None:
            if reading.view.node.first not in self.arrays:
                return False
            its = self.arrays[reading.view.node.first]
            return its is None or bool(reading.view.of(its, reading.kept).any())
        if reading.only is not None:
            return reading.only in self.singles
        return bool(self.of(reading).any())

    def note(self, node: ArrayNode, moves: NDArray[np.bool_]) -> None:
        """Note which elements of an array node are active."""
        if node.first in self.arrays and self.arrays[node.first] is None:
            return
        if moves.all():
            self.arrays[node.first] = None
            return
        its = self.arrays.get(node.first, np.zeros(node.size, dtype=bool))
        if its is not None:
            its |= np.broadcast_to(moves, node.shape).ravel()
            self.arrays[node.first] = its


@dataclass
class Carried:
    """The tangents or cotangents of nodes: of array nodes by their first node, of other nodes by themselves.

    `complete` arguments promise that no element is absent, which skips the check.
    """

    by: ArrayArithmetic
    active: Activity
    arrays: dict[int, Carriers] = field(default_factory=dict)  # in the shape of the node, or one that is broadcast
    singles: dict[int, Carriers] = field(default_factory=dict)  # of shape (), or the columns
    partial: dict[int, float] = field(default_factory=dict)  # how many values of an array may be absent, if any may
    own: set[int] = field(default_factory=set)  # arrays without another reference, which may be changed in place

    def is_complete(self, reading: OperandAccess) -> bool:
        """Whether no element of an operand is absent, unless it has only structural zeros."""
        return reading.view is not None and reading.view.node.first not in self.partial

    def at(self, reading: OperandAccess) -> Carriers | None:
        """Return the carried values of an operand's nodes; None where all are structural zeros."""
        if reading.view is not None:
            its = self.arrays.get(reading.view.node.first)
            if its is None:
                return None
            carried = reading.view.of(its if reading.view.whole else self.flat(its), reading.kept, self.by.columns)
            return carried if self.is_complete(reading) else self._unless_absent(carried)
        if reading.only is not None:
            single = self.singles.get(reading.only)
            return None if single is None else single.reshape(reading.kept + self.by.columns)
        carried = self.absent(reading.size)
        for part in reading.parts:
            if part.node.first in self.arrays:
                carried[part.where] = self.flat(self.arrays[part.node.first])[part.places]
        if reading.singles is not None:
            none = self.absent()
            its = np.array([self.singles.get(node, none) for node in reading.singles.nodes])
            carried[reading.singles.where] = its[reading.singles.numbers]
        return self._unless_absent(carried.reshape(reading.kept + self.by.columns))

    def absent(self, *shape: int) -> Carriers:
        """Return elements of which none is present."""
        return np.full(shape + self.by.columns, self.by.absent)

    def flat(self, values: Carriers) -> Carriers:
        """Return values with one axis for all elements."""
        if not self.by.columns:
            return values.ravel()
        return np.ascontiguousarray(values).reshape(-1, *self.by.columns)

    def spread(self, values: Carriers, shape: tuple[int, ...]) -> Carriers:
        """Return values broadcast to elements of a shape."""
        return spread(values, shape + self.by.columns)

    def present(self, values: Carriers) -> NDArray[np.bool_]:
        """Return which elements are present in any column."""
        there = self.by.there(values)
        return np.asarray(there.any(axis=-1)) if self.by.columns else there

    def of(self, node: ArrayNode) -> Carriers | None:
        """Return the carried values of an array node."""
        its = self.arrays.get(node.first)
        return self._unless_absent(its) if node.first in self.partial else its

    def _unless_absent(self, carried: Carriers | None) -> Carriers | None:
        return carried if carried is not None and self.by.there(carried).any() else None

    def put(self, node: ArrayNode, values: Carriers | None, *, complete: bool = False) -> None:
        """Add values to those of an array node."""
        if values is not None:
            self._put_all(node, self.spread(values, node.shape), complete)

    def add(self, reading: OperandAccess, values: Carriers | None, *, complete: bool = False) -> None:
        """Add values to those of the nodes of an operand that are active, among which some may be the same."""
        values = None if values is None else self.summed_to(values, reading.kept, complete)
        if values is None:
            return
        if reading.view is not None:
            if reading.view.node.first in self.active.arrays:
                self._add_to_view(reading.kept, reading.view, values, complete)
            return
        flat = self.flat(values)
        for part in reading.parts:
            if part.node.first in self.active.arrays:
                self.put_some(part.node, flat[part.where], part.places)
        if reading.singles is not None:
            singles = reading.singles
            moves = np.array([node in self.active.singles for node in singles.nodes])[singles.numbers]
            moves &= self.present(flat[singles.where])
            its, numbers = flat[singles.where[moves]], singles.numbers[moves]
            different, places = np.unique(numbers, return_inverse=True)
            if len(different) < len(its):  # the same nodes many times: their values are added as arrays are
                its, numbers = self.scattered(its, places, len(different)), different
            for k, number in enumerate(numbers.tolist()):
                self.put_single(singles.nodes[number], its[k : k + 1].reshape(self.by.columns))

    def put_single(self, node: int, value: Carriers) -> None:
        """Add a value to that of a node that is active and no element."""
        if node in self.active.singles:
            before = self.singles.get(node)
            plus = self.plus if self.by.columns else self.by.plus
            self.singles[node] = value if before is None else plus(before, value)

    def scaled(self, coefficient: Carriers | None, value: Carriers) -> Carriers:
        """Return a product for a node that is no element."""
        if coefficient is None:
            return value
        if not self.by.columns:
            return self.by.times(coefficient, value)
        product = self.times(coefficient, value, ())
        assert product is not None
        return product

    def scattered(self, values: Carriers, places: Nodes, count: int) -> Carriers:
        """Return sums of values at places, each of which has one that is present in any column."""
        if not self.by.columns:
            return self.by.scattered(values, places, count)
        (width,), there = self.by.columns, self.by.there(values)
        different, numbers = np.unique((places[:, None] * width + np.arange(width))[there], return_inverse=True)
        sums = self.absent(count)
        sums.reshape(-1)[different] = self.by.scattered(values[there], numbers, len(different))
        return sums

    def _add_to_view(self, shape: tuple[int, ...], view: View, values: Carriers, complete: bool) -> None:
        node = view.node
        if view.whole:
            self._put_all(node, values.reshape(node.shape + self.by.columns), complete)
        elif (
            complete
            and self.by.of_numbers
            and view.places is None
            and self.active.arrays[node.first] is None
            and view.is_distinct(shape)
        ):
            self._add_in_place(node, view, shape, values)
        else:
            places = view.places if view.places is not None else view.ids(shape) - node.first
            self.put_some(node, self.flat(values), places.ravel())

    def _add_in_place(self, node: ArrayNode, view: View, shape: tuple[int, ...], values: Carriers) -> None:
        """Add values, of which none is absent, to different elements of an array node."""
        target = view.of(self._own_flat(node), shape, self.by.columns)
        if node.first in self.partial:
            there = self.by.there(target)
            target[...] = np.where(there, target + values, values)
            self._found(node, values.size - int(np.count_nonzero(there)))
        else:
            target += values

    def _own_flat(self, node: ArrayNode) -> Carriers:
        """Return the array of a node, flat, to be changed in place; one of absent elements, where it has none."""
        first, its = node.first, self.arrays.get(node.first)
        if its is None:
            self.arrays[first] = its = self.absent(*node.shape)
            self.partial[first] = its.size
            self.own.add(first)
        elif first not in self.own or not its.flags.c_contiguous:
            self.arrays[first] = its = np.array(its, order="C")
            self.own.add(first)
        return its.reshape(-1, *self.by.columns)

    def _found(self, node: ArrayNode, count: int) -> None:
        """Note that `count` more values are present."""
        self.partial[node.first] -= count
        if self.partial[node.first] <= 0:
            del self.partial[node.first]

    def _put_all(self, node: ArrayNode, values: Carriers, complete: bool) -> None:
        """Add values to all elements of an array node, in its shape."""
        first = node.first
        moves, its = self.active.arrays[first], self.arrays.get(first)
        if moves is not None:
            values, complete = np.where(self.by.over(moves.reshape(node.shape)), values, self.by.absent), False
        if its is None:
            self.arrays[first] = values
            if not complete:
                self.partial[first] = math.inf
            return
        both = complete and first not in self.partial
        if both and first in self.own:
            its += values
            return
        self.arrays[first] = self.by.plus(its, values) if both else self.plus(its, values)
        if complete:
            self.partial.pop(first, None)
        if self.by.of_numbers:
            self.own.add(first)

    def put_some(self, node: ArrayNode, values: Carriers, places: Nodes) -> None:
        """Add values to elements of an array node, among which some may be the same; some values may be absent."""
        moves = self.active.arrays[node.first]
        if moves is not None:
            values = np.where(self.by.over(moves[places]), values, self.by.absent)
        kept = self.present(values)
        if not kept.all():
            places, values = places[kept], values[kept]
        if not len(places):
            return
        different, numbers = _different(places, node.size)
        if different is not None:
            places, values = different, self.scattered(values, numbers, len(different))
        flat = self._own_flat(node)
        before = flat[places]
        there = self.by.there(before)
        flat[places] = after = values if not there.any() else self.plus(before, values)
        if node.first in self.partial:
            now = np.count_nonzero(self.by.there(after)) if self.by.columns else len(places)
            self._found(node, int(now - np.count_nonzero(there)))
        if not self.by.of_numbers:
            self.own.discard(node.first)

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums of two arrays of one shape."""
        first, second = self.by.there(left), self.by.there(right)
        both = first & second
        if both.size and both.all():
            return self.by.plus(left, right)
        merged = np.where(first, left, right)
        if self.by.of_numbers:
            return np.where(both, self.by.plus(left, right), merged)
        if both.any():
            merged[both] = self.by.plus(left[both], right[both])
        return merged

    def times(
        self, coefficient: Carriers | None, values: Carriers | None, shape: tuple[int, ...], *, complete: bool = False
    ) -> Carriers | None:
        """Return products, of a shape to which both broadcast."""
        if values is None or coefficient is None:
            return values
        coefficient = self.by.over(coefficient)
        if complete or (there := self.by.there(values)).all():
            return self.by.times(coefficient, values)
        if self.by.of_numbers:
            return np.where(there, self.by.times(coefficient, values), self.by.absent)
        there, products = self.spread(there, shape), self.absent(*shape)
        factors, terms = self.spread(coefficient, shape)[there], self.spread(values, shape)[there]
        products[there] = self.by.times(factors, terms)
        return products

    def where(self, holds: NDArray[np.bool_], values: Carriers | None) -> Carriers | None:
        """Return values where something holds, absent elsewhere."""
        return None if values is None else np.where(self.by.over(holds), values, self.by.absent)

    def summed(
        self, terms: Carriers | None, axes: tuple[int, ...] = (0,), *, complete: bool = False
    ) -> Carriers | None:
        """Return the sums along axes, the first one unless others are given."""
        if terms is None or not terms.size:
            return None
        if complete or (there := self.by.there(terms)).all():
            return self.by.total(terms, axes)
        if self.by.of_numbers:
            some, total = there.any(axis=axes), self.by.total(np.where(there, terms, 0.0), axes)
            return np.where(some, total, self.by.absent) if some.any() else None
        kept = [k for k in range(terms.ndim) if k not in axes]
        shape = tuple(terms.shape[k] for k in kept)
        terms = terms.transpose([*axes, *kept]).reshape(-1, *shape)
        there = self.by.there(terms)
        if not there.any():
            return None
        flat = there.reshape(len(terms), -1)
        _, columns = np.nonzero(flat)
        different, numbers = np.unique(columns, return_inverse=True)
        sums = np.full(flat.shape[1], self.by.absent)
        sums[different] = self.by.scattered(terms.reshape(flat.shape)[flat], numbers, len(different))
        return sums.reshape(shape)

    def summed_to(self, values: Carriers, shape: tuple[int, ...], complete: bool = False) -> Carriers | None:
        """Return the sums over the axes along which an array of a shape is broadcast."""
        columns = self.by.columns
        if values.shape == shape + columns:
            return values
        axes_of_values = values.ndim - len(columns)
        lacking = axes_of_values - len(shape)
        axes = tuple(
            [k for k in range(axes_of_values) if k < lacking or (shape[k - lacking] == 1 and values.shape[k] > 1)]
        )
        total = self.summed(values, axes, complete=complete) if axes else values
        return None if total is None else total.reshape(shape + columns)

    def filled(self, values: Carriers, *, complete: bool = False) -> Carriers:
        """Return an array with the number 0 for its structural zeros."""
        if not complete and not (there := self.by.there(values)).all():
            values = np.where(there, values, self.by.number(0))
        return self.by.settled(values)


def _different(places: Nodes, size: int) -> tuple[Nodes | None, Nodes]:
    """Return the different ones of places, and the number of each one's; None for those that all differ."""
    if 8 * len(places) < size:
        different, numbers = np.unique(places, return_inverse=True)
        return (different if len(different) < len(places) else None), numbers
    there = np.zeros(size, dtype=bool)
    there[places] = True
    if np.count_nonzero(there) == len(places):
        return None, places
    return np.flatnonzero(there), np.cumsum(there)[places] - 1
