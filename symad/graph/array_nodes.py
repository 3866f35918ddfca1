"""Array nodes: operations on whole arrays, whose elements are leaves of the graph.

An array node owns a range of the graph's nodes, one for each element of its result. So slices, transposed and reshaped
forms of a result are NumPy's own, of an array of node ids, and a single element is a node like any other. Only the
array node knows its operation: `symad.graph.array_values` computes it, `symad.derivatives.array_linear` differentiates
it. Elements have numbers, but are not stored: the columns of a graph have no entries for them (`SparseColumn`).
"""

from __future__ import annotations

import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from threading import Lock
from typing import Any, TypeAlias, TypeVar
from weakref import ReferenceType, ref

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import InvariantError
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Head
from codegen.ir.strictness import strict
from codegen.records import dataclass
from symad.graph.array_operands import (
    ArrayNode,
    Asked,
    Element,
    Kind,
    Nodes,
    OperandAccess,
    OperandPart,
    Singles,
    TruthElement,
    View,
    result_of,
)

_FIRST = np.zeros(1, dtype=np.int64)
_FIRST.flags.writeable = False


# Weakly the node ids that a view shows, their shape, the arrays that it is a view of, and a function that picks them
ShownView: TypeAlias = tuple[ReferenceType[Nodes], tuple[int, ...], Sequence[Nodes], Callable[[], Nodes | None]]


@dataclass
class ArrayNodes:
    """The array nodes of a graph in their order, and the values of those that were computed.

    `closed` forbids new ones: symbols have entered the graph, so its nodes have no numbers. `untouched` are the arrays
    of node ids that were handed out and not stored into since: the memory of a part of one says where it is in its
    array node. `views` are those at computed places.
    """

    of_graph: ReferenceType[Any]  # weak, so that a graph and its numbers go with its last user
    nodes: list[ArrayNode] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    values: dict[int, NDArray[Any]] = field(default_factory=dict)  # by first node
    views: list[ShownView] = field(default_factory=list)
    closed: bool = False
    asked: list[Asked] | None = None  # questions about numbers, if they are recorded
    derivative_from: int = sys.maxsize  # nodes from this one on are a derivative of those before
    untouched: dict[int, tuple[ReferenceType[Nodes], ArrayNode]] = field(default_factory=dict)  # by identity
    _checks: bool = field(default_factory=strict)
    _lock: Lock = field(default_factory=Lock)
    _ranges: Nodes = field(default_factory=lambda: np.zeros((2, 0), dtype=np.int64))  # firsts and stops, with room
    _known: int = 0  # columns of `_ranges` in use

    @property
    def graph(self) -> Any:
        """The graph."""
        graph = self.of_graph()
        assert graph is not None
        return graph

    def add(
        self,
        kind: Kind,
        shape: tuple[int, ...],
        operands: Sequence[Nodes | OperandAccess] = (),
        *,
        head: Head | None = None,
        places: Nodes | None = None,
        numbers: NDArray[np.float64 | np.bool_] | None = None,
        truths: bool = False,
    ) -> Nodes:
        """Add an array node and return the nodes of its result, an array that is the caller's own."""
        readings = tuple([part if isinstance(part, OperandAccess) else self.reading(part) for part in operands])
        element = TruthElement if truths else sp.Float if kind == "given" else Element
        return self.handed_out(self.made(ArrayNode(kind, shape, element, readings, head, places, numbers)))

    def matrices(self, operation: MatrixOperation, operands: Sequence[Nodes]) -> list[Nodes]:
        """Add the array nodes of an operation on whole matrices; return the nodes of its results, which are flat."""
        read = tuple(map(self.reading, operands))
        whole = self.made(ArrayNode("matrix", (sum(operation.results),), Element, read, matrix=operation))
        parts = (*read, result_of(whole))
        nodes = (
            [
                self.made(ArrayNode("result", (size,), Element, parts, matrix=operation, number=k))
                for k, size in enumerate(operation.results)
            ]
            if len(operation.results) > 1
            else [whole]
        )
        for node in nodes:
            node.results = tuple([result.first for result in nodes])
        return list(map(self.handed_out, nodes))

    def made(self, node: ArrayNode) -> ArrayNode:
        """Add an array node, and let it have nodes of the graph."""
        with self._lock:  # threads may add to one graph; the first nodes ascend
            node.first = self.graph.elements(node.size, node.numbers if node.element is sp.Float else None)
            self.firsts.append(node.first)
            self.nodes.append(node)
        return node

    def handed_out(self, node: ArrayNode) -> Nodes:
        """Return the nodes of an array node's result, an array that is the caller's own."""
        owner = np.arange(node.first, node.first + node.size)
        self.untouched[id(owner)] = ref(owner), node
        return owner.reshape(node.shape)

    def copied(self, ids: Nodes, order: Any = "K") -> Nodes:
        """Return an array of the same nodes, which is the caller's own."""
        view = self.untouched_view(ids) if self.nodes else None
        if view is not None and view.whole and (order != "F" or ids.ndim < 2):
            return self.handed_out(view.node).reshape(ids.shape)
        return np.array(ids, dtype=np.int64, order=order)

    def head_of(self, node: int) -> Head:
        """Return the head of a node that is an element."""
        array = self.at(node)
        if array is None:
            raise IndexError(node)
        if array.element is sp.Float and array.numbers is not None:
            value = array.numbers[node - array.first]
            if not (math.isfinite(value) and (value or math.copysign(1.0, value) > 0)):
                return type(self.graph.atoms[node])  # -0.0 and infinite numbers and NaN are no Floats
        return array.element

    def operations(self, start: int) -> int:
        """Return how many operations on single elements those from number `start` on are."""
        return sum(
            node.size * (2 * node.operands[0].shape[-1] if node.kind == "product" else 1) for node in self.nodes[start:]
        )

    @contextmanager
    def storing(self, ids: Nodes) -> Iterator[None]:
        """Store into an array of node ids in this block, and then update its views at computed places."""
        changed = [ids]
        self._touched(ids)
        yield
        for owner, shape, bases, pick in self.views:
            shown = owner()
            if shown is None or not any(np.may_share_memory(base, array) for base in bases for array in changed):
                continue
            now = pick()
            if now is not None:
                self._touched(shown)
                shown.reshape(shape)[...] = now
                changed.append(shown)

    def shown(self, ids: Nodes, bases: Sequence[Nodes], pick: Callable[[], Nodes | None]) -> Nodes:
        """Return the node ids that a view of arrays at computed places shows.

        `pick` returns them after a store, or None if they stay; it must not hold them, so that unused views are
        forgotten.
        """
        owner = _owner(ids)
        if owner.size != ids.size or not (owner.flags.c_contiguous and ids.flags.c_contiguous):
            ids = owner = ids.copy()
        self.views = [view for view in self.views if view[0]() is not None]
        self.views.append((ref(owner), ids.shape, bases, pick))
        view = ids.view()
        view.flags.writeable = False
        return view

    def _touched(self, ids: Nodes) -> None:
        self.untouched.pop(id(_owner(ids)), None)

    def at(self, node: int) -> ArrayNode | None:
        """Return the array node that a node is an element of."""
        k = bisect_right(self.firsts, node) - 1
        if k < 0:
            return None
        array = self.nodes[k]
        return array if node < array.first + array.size else None

    def roots(self, ids: Nodes) -> list[int]:
        """Return nodes, the first one of its array node in place of an element; each once."""
        if not self.nodes:
            return list(dict.fromkeys(ids.ravel().tolist()))
        reading = self.reading(ids)
        return [node.first for node in reading.array_nodes] + reading.single_nodes

    def operands_of(self, node: int) -> list[int]:
        """Return the operands of a node, or of the array node whose first element it is, by their roots."""
        array = self.at(node)
        if array is None:
            return list(map(self._root, self.graph.operands[node])) if self.nodes else list(self.graph.operands[node])
        roots = dict.fromkeys(node.first for reading in array.operands for node in reading.array_nodes)
        return [*roots, *(node for reading in array.operands for node in reading.single_nodes)]

    def _root(self, node: int) -> int:
        array = self.at(node)
        return node if array is None else array.first

    def reading(self, ids: Nodes) -> OperandAccess:
        """Return an operand, without broadcast axes."""
        whole = ids.shape
        if not whole:
            return self.reading_of(int(ids))
        if (view := self.untouched_view(ids)) is not None:
            if view.whole or 0 not in view.steps:
                return OperandAccess(whole, whole, view)
            return OperandAccess(
                whole, tuple([n if step else 1 for step, n in zip(view.steps, whole, strict=True)]), view
            )
        ids = once(ids)
        if ids.size <= 1:
            ids = ids.copy()
            node = self.at(int(ids.flat[0])) if ids.size else None
            if node is None:
                singles = Singles(ids.ravel().tolist(), *[np.arange(ids.size)] * 2)
                return OperandAccess(whole, ids.shape, singles=singles, ids=ids)
            return OperandAccess(whole, ids.shape, View(node, int(ids.flat[0]) - node.first, (0,) * ids.ndim), ids=ids)
        if (view := self._view(ids)) is not None:
            return OperandAccess(whole, ids.shape, view)
        ids = ids.copy("K")  # arrays are stored into; sums have the bits of their order in memory
        low, high = int(ids.min()), int(ids.max())
        if low == high:  # a copy of a broadcast array
            return self.reading(np.broadcast_to(low, whole))
        node = self.at(low)
        if node is not None and high < node.first + node.size:
            return OperandAccess(whole, ids.shape, View(node, 0, (), ids - node.first), ids=ids)
        return self._of_several(ids, whole)

    def reading_of(self, node: int) -> OperandAccess:
        """Return an operand of one node, of shape ()."""
        array = self.at(node)
        if array is None:
            return OperandAccess((), (), singles=Singles([node], _FIRST, _FIRST), ids=np.array(node))
        return OperandAccess((), (), View(array, node - array.first, ()))

    def untouched_view(self, ids: Nodes) -> View | None:
        """Return where ids are that are a part of an array that was handed out and not stored into; O(1)."""
        owner = ids if ids.base is None else _owner(ids)
        entry = self.untouched.get(id(owner))
        if entry is None or entry[0]() is not owner or not ids.size:
            return None
        if ids.size == owner.size and ids.flags.c_contiguous:
            view = View(entry[1], 0, (), None, True)
        else:
            size = ids.itemsize
            view = View(entry[1], ids.item(0) - entry[1].first, tuple([step // size for step in ids.strides]))
        if self._checks and not np.array_equal(view.of(entry[1].ids.ravel(), ids.shape), ids):
            raise InvariantError("an array of node ids was stored into without a word", why="", do="report it")
        return view

    def _view(self, ids: Nodes) -> View | None:
        """Return where nodes are that are evenly spaced in one array node."""
        node = self.at(int(ids.flat[0]))
        if node is None:
            return None
        start, axes = int(ids.flat[0]), range(ids.ndim)
        steps = tuple(
            int(ids[tuple(int(j == k) for j in axes)]) - start if n > 1 else 0 for k, n in enumerate(ids.shape)
        )
        spans = [step * (n - 1) for step, n in zip(steps, ids.shape, strict=True)]
        lowest, highest = start + sum(span for span in spans if span < 0), start + sum(s for s in spans if s > 0)
        if lowest < node.first or highest >= node.first + node.size or int(ids.flat[-1]) != start + sum(spans):
            return None
        expected = np.array(start)
        for step, n in zip(steps, ids.shape, strict=True):
            expected = expected[..., None] + step * np.arange(n)
        if not np.array_equal(ids, expected):
            return None
        return View(node, start - node.first, steps)

    def _numbers_of(self, nodes: Nodes) -> Nodes:
        """Return the numbers of the array nodes that nodes are elements of, -1 for those of none."""
        firsts, stops = self._all_ranges()
        at: Nodes = np.searchsorted(firsts, nodes, side="right") - 1
        if len(stops):
            at[(at >= 0) & (nodes >= stops[at])] = -1
        return at

    def _all_ranges(self) -> Nodes:
        """Return the first nodes of all array nodes, and where they stop; the same array, with room, as more come."""
        with self._lock:
            known, count = self._known, len(self.nodes)
            if count > self._ranges.shape[1]:
                self._ranges = np.concatenate([self._ranges, np.zeros((2, 16 + count), dtype=np.int64)], axis=1)
            if known < count:
                new = self.nodes[known:count]
                self._ranges[:, known:count] = [node.first for node in new], [node.first + node.size for node in new]
                self._known = count
            return self._ranges[:, :count]

    def _of_several(self, ids: Nodes, whole: tuple[int, ...]) -> OperandAccess:
        flat = ids.ravel()
        at = self._numbers_of(flat)
        parts = []
        for k in (np.flatnonzero(np.bincount(at + 1)[1:])).tolist():
            where = np.flatnonzero(at == k)
            places = flat[where] - self.firsts[k]
            parts.append(OperandPart(self.nodes[k], where, places, _spans(where, places)))
        where = np.flatnonzero(at < 0)
        if not len(where):
            return OperandAccess(whole, ids.shape, None, tuple(parts), ids=ids)
        single, numbers = np.unique(flat[where], return_inverse=True)
        return OperandAccess(whole, ids.shape, None, tuple(parts), Singles(single.tolist(), where, numbers), ids)


def _owner(ids: Nodes) -> Nodes:
    """Return the array that owns the memory of node ids; NumPy's views by strides have another object between."""
    base: Any = ids
    while base is not None:
        ids, base = base if isinstance(base, np.ndarray) else ids, getattr(base, "base", None)
    return ids


def _spans(where: Nodes, places: Nodes) -> tuple[slice, slice] | None:
    """Return consecutive places as slices, None for others."""
    n = len(where)
    if where[-1] - where[0] != n - 1 or places[-1] - places[0] != n - 1 or (places[1:] <= places[:-1]).any():
        return None
    return slice(int(where[0]), int(where[-1]) + 1), slice(int(places[0]), int(places[-1]) + 1)


def once(ids: Nodes) -> Nodes:
    """Return an array of length 1 along its broadcast axes."""
    if 0 not in ids.strides:
        return ids
    kept = [slice(0, 1) if step == 0 and n > 1 else slice(None) for step, n in zip(ids.strides, ids.shape, strict=True)]
    return ids[tuple(kept)]


Entry = TypeVar("Entry")


class SparseColumn(dict[int, Entry]):
    """A list-like column without entries for some ranges of rows; `of_element` answers for these.

    A dict, which is as fast as a list for stored entries; iteration gives the entries of all rows.

    >>> column = SparseColumn(["a", "b"], lambda row: "element")
    >>> column.leave_out(10**9)
    >>> column.append("c")
    >>> column[1], column[7], column[10**9 + 2], len(column)
    ('b', 'element', 'c', 1000000003)
    """

    count: int

    __slots__ = ("count", "of_element")

    of_element: Callable[[int], Entry]

    def __init__(self, entries: Iterable[Entry], of_element: Callable[[int], Entry]) -> None:
        super().__init__(enumerate(entries))
        self.count, self.of_element = super().__len__(), of_element

    def __missing__(self, row: int) -> Entry:
        if not 0 <= row < self.count:
            raise IndexError(row)
        return self.of_element(row)

    def __len__(self) -> int:
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __iter__(self) -> Iterator[Entry]:  # type: ignore[override]
        return (self[row] for row in range(self.count))

    def append(self, entry: Entry) -> None:
        """Add a row."""
        self[self.count] = entry
        self.count += 1

    def __iadd__(self, entries: Iterable[Entry]) -> SparseColumn[Entry]:
        for entry in entries:
            self.append(entry)
        return self

    def leave_out(self, rows: int) -> None:
        """Let the next rows be elements."""
        self.count += rows
