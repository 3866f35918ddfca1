"""Sorting and places that depend on values: loops where loops are recorded, else choices.

An unrolled sort compares every element with every other, and an unrolled computed place chooses from every element. So
both are limited to few elements. Places are whole numbers from the beginning; negative ones count from the end.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any

import numpy as np

import symad.tracing.values.node_builders as op
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation
from symad.graph.graph import Graph
from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.scope import Scope
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.bounds import Bounds, bounds_of
from symad.tracing.values.constant_nodes import as_truth, constant
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.node_arrays import Nodes, all_truths, constants, elementwise, loops_on, numbers, reduce
from symad.tracing.values.node_operands import holds_traced, nodes_of
from symad.tracing.values.traced import Traced, refuse_function
from symad.tracing.values.whole_numbers import are_whole
from symad.tracing.values.whole_values import OutsideError, no_value_at

_LETTERS: dict[str, Any] = {"t": Traced, "s": slice, "n": (int, np.integer, np.ndarray), "e": type(...)}
_KEY = re.compile("s*([nt]+)s*")  # an index, by the letters of its parts
PAIRS = 2048  # of elements that are compared, or chosen from


def ordered(graph: Graph, rows: Nodes, name: str) -> Nodes:
    """Return for each row of numbers the places of its elements in ascending order; equal ones keep their order."""
    count, n = rows.shape
    if n < 2 or not count:
        return np.full(rows.shape, graph.number(0))
    rows = numbers(graph, rows)
    if (writer := _writer(graph)) is not None:
        (places,) = writer.carried_out(MatrixOperation("order", (count, n)), rows)
        return _noted(graph, places.reshape(count, n), Bounds(0, n - 1, False))
    _check_few(name, rows.size * n)
    apply = partial(elementwise, graph)
    zero, unit = (np.array(graph.number(k)) for k in (0, 1))
    first, second = rows[:, :, None], rows[:, None, :]
    earlier = np.where(np.tri(n, k=-1, dtype=bool), unit, zero)[None]  # whether the second stands before the first
    before = apply(op.select, apply(UFUNCS["isnan"], second), zero, unit)
    equal = apply(op.select, apply(UFUNCS["equal"], second, first), earlier, zero)
    smaller = apply(op.select, apply(UFUNCS["less"], second, first), unit, equal)
    nan = apply(op.select, apply(UFUNCS["isnan"], second), earlier, before)
    ranks = reduce(graph, op.add, apply(op.select, apply(UFUNCS["isnan"], first), nan, smaller), 2)
    here = apply(UFUNCS["equal"], ranks[:, None, :], constants(graph, np.arange(n))[None, :, None])
    places = reduce(graph, op.add, apply(op.select, here, constants(graph, np.arange(n))[None, None, :], zero), 2)
    return _each_noted(graph, places, Bounds(0, n - 1, False))


def inserted(graph: Graph, keys: Nodes, others: Nodes, right: bool, name: str) -> Nodes:
    """Return the places of insertion among sorted keys: before equal ones, or behind them."""
    if not keys.size or not others.size:
        return np.full(others.shape, graph.number(0))
    keys, others = numbers(graph, keys), numbers(graph, others)
    if (writer := _writer(graph)) is not None:
        kind: MatrixKind = "insertion_right" if right else "insertion"
        positions = writer.carried_out(MatrixOperation(kind, (keys.size, others.size)), keys, others)[0]
        return _noted(graph, positions, Bounds(0, keys.size, False))
    _check_few(name, keys.size * others.size)
    apply = partial(elementwise, graph)
    zero, unit = (np.array(graph.number(k)) for k in (0, 1))
    first, second = keys[None, :], others[:, None]
    nan = [apply(UFUNCS["isnan"], part) for part in (first, second)]
    held = apply(op.select, apply(UFUNCS["less_equal" if right else "less"], first, second), unit, zero)
    among = unit if right else apply(op.select, nan[0], zero, unit)
    places = reduce(graph, op.add, apply(op.select, nan[1], among, held), 1)
    return _each_noted(graph, places, Bounds(0, keys.size, False))


def gathered(graph: Graph, rows: Nodes, places: Nodes, name: str) -> Nodes:
    """Return the elements of rows at places in each of them."""
    if all_truths(graph, rows):
        return elementwise(graph, as_truth, gathered(graph, numbers(graph, rows), places, name))
    (count, n), m = rows.shape, places.shape[1]
    if not places.size:
        return places.copy()
    if not n:
        raise IndexError(f"index is out of bounds for axis 0 with size {n}")
    if (writer := _writer(graph)) is not None:
        (flat,) = writer.carried_out(MatrixOperation("gather", (count, n, m)), rows, places)
        elements: Nodes = flat.reshape(count, m)
        return _noted(graph, elements, _hull(graph, rows)) if are_whole(graph, rows) else elements
    _check_few(name, count * n * m)
    apply = partial(elementwise, graph)
    turned = _from_start(graph, places, n)
    elements = np.full(places.shape, graph.number(math.nan))
    for k in range(n):
        here = apply(UFUNCS["equal"], turned, np.array(graph.number(k)))
        elements = apply(op.select, here, np.broadcast_to(rows[:, k : k + 1], places.shape), elements)
    if are_whole(graph, rows):  # except the NaN out of bounds, which is no place either
        _each_noted(graph, elements, _hull(graph, rows))
    return elements


def picked(scope: Scope, nodes: Nodes, key: Any) -> Nodes | None:
    """Return `nodes[key]` for a key with unknown whole numbers, or arrays or lists of them.

    Such parts stand side by side, with known ones among them; the others are slices. None for any other key, and for
    places that are no whole numbers.
    """
    computed = _computed(scope, nodes, key)
    if computed is None:
        return None
    index, first, places = computed
    rest = nodes[index]
    last = first + len(places)
    sizes = rest.shape[first:last]
    if is_caught():
        decide_outside(scope, places, sizes)
    joined = rest.reshape((*rest.shape[:first], math.prod(sizes), *rest.shape[last:]))
    return along(scope.graph, joined, _of_axes(scope.graph, places, sizes), first)


def stored(scope: Scope, nodes: Nodes, key: Any, new: Nodes) -> Nodes | None:
    """Return an array after a store at unknown places; None for other keys (see `picked`)."""
    computed = _computed(scope, nodes, key)
    if computed is None:
        return None
    index, first, places = computed
    changed = nodes.copy()
    view = changed[index]
    count, shape = len(places), np.broadcast_shapes(*[at.shape for at in places])
    behind = (*view.shape[:first], *view.shape[first + count :])
    new = np.broadcast_to(new, (*view.shape[:first], *shape, *view.shape[first + count :]))
    _check_few("a store at computed places", math.prod(shape) * view.size)
    target = np.moveaxis(view, range(first, first + count), range(count))
    values = np.moveaxis(new, range(first, first + len(shape)), range(len(shape))).reshape(-1, *behind)
    points = zip(*[np.broadcast_to(at, shape).ravel().tolist() for at in places], strict=True)
    for point, value in zip(points, values, strict=True):
        here = _is_at(scope.graph, point, target.shape[:count])
        _no_value_outside(scope, here)
        target[...] = elementwise(scope.graph, op.select, here.reshape(*here.shape, *[1] * len(behind)), value, target)
    return changed


def _computed(scope: Scope, nodes: Nodes, key: Any) -> tuple[tuple[Any, ...], int, list[Nodes]] | None:
    """Return an index of the view with computed places, its first axis with a computed place, and the places."""
    parts = list(key) if isinstance(key, tuple) else [key]
    kinds = [_letter(part) for part in parts]
    if kinds.count("e") == 1:
        whole = kinds.index("e")
        missing = nodes.ndim - len(parts) + 1
        parts[whole : whole + 1], kinds[whole : whole + 1] = [slice(None)] * missing, ["s"] * missing
    computed = _KEY.fullmatch("".join(kinds))
    if computed is None or len(parts) > nodes.ndim or "t" not in kinds:
        return None
    first, last = computed.span(1)
    among = [k for k in range(first, last) if not isinstance(parts[k], int | np.integer)]  # the others are known
    places = [nodes_of(parts[k], scope) for k in among]
    if any(all_truths(scope.graph, at) or not are_whole(scope.graph, at) for at in places):
        return None
    return tuple([slice(None) if k in among else part for k, part in enumerate(parts)]), first, places


def _letter(part: Any) -> str:
    if isinstance(part, list):
        return "t" if holds_traced(part) else "n"
    if isinstance(part, bool | np.bool_):
        return "?"
    return next((letter for letter, kind in _LETTERS.items() if isinstance(part, kind)), "?")


def _is_at(graph: Graph, point: tuple[int, ...], sizes: tuple[int, ...]) -> Nodes:
    """Return for each place of an array whether it is the computed one."""
    apply, is_there = partial(elementwise, graph), np.array(graph.number(True))
    for axis, (node, size) in enumerate(zip(point, sizes, strict=True)):
        own = constants(graph, np.arange(size)).reshape([size if k == axis else 1 for k in range(len(sizes))])
        here = apply(UFUNCS["equal"], _from_start(graph, np.array(node), size), own)
        is_there = here if not axis else apply(UFUNCS["logical_and"], is_there, here)
    return is_there


def _from_start(graph: Graph, at: Nodes, size: int) -> Nodes:
    apply, zero = partial(elementwise, graph), np.array(graph.number(0))
    return apply(op.select, apply(UFUNCS["less"], at, zero), apply(op.add, at, np.array(graph.number(size))), at)


def _no_value_outside(scope: Scope, here: Nodes) -> None:
    """Note that there is no value if a place is out of bounds."""
    (somewhere,) = reduce(scope.graph, UFUNCS["logical_or"], here.reshape(-1, 1), 0).tolist()
    outside = OutsideError(f"index is out of bounds for axis 0 with size {len(here)}")
    no_value_at(scope, UFUNCS["logical_not"](scope.graph, somewhere), outside)


def decide_outside(scope: Scope, places: list[Nodes], sizes: tuple[int, ...]) -> None:
    """Note that there is no value if places are out of bounds. If the code catches that error, it is a path."""
    graph, apply = scope.graph, partial(elementwise, scope.graph)
    for at, size in zip(places, sizes, strict=True):
        bounds = _hull(graph, at)
        if -size <= bounds.low and bounds.high < size and not bounds.nan:
            continue
        low, high = (np.array(graph.number(k)) for k in (-size, size))
        inside = apply(UFUNCS["logical_and"], apply(UFUNCS["less_equal"], low, at), apply(UFUNCS["less"], at, high))
        (everywhere,) = reduce(graph, UFUNCS["logical_and"], inside.reshape(-1, 1), 0).tolist()
        outside = OutsideError(f"index is out of bounds for an axis with size {size}")
        no_value_at(scope, UFUNCS["logical_not"](graph, everywhere), outside)


def _of_axes(graph: Graph, places: list[Nodes], sizes: tuple[int, ...]) -> Nodes:
    """Return the places in the flattened array from places along axes; beyond its end if one is out of bounds."""
    if len(places) == 1:
        return places[0]
    apply = partial(elementwise, graph)
    zero, beyond = np.array(graph.number(0)), np.array(graph.number(math.prod(sizes)))
    total, outside = zero, np.array(graph.number(False))
    for at, size in zip(places, sizes, strict=True):
        turned, length = _from_start(graph, at, size), np.array(graph.number(size))
        for missing in (apply(UFUNCS["less"], turned, zero), apply(UFUNCS["greater_equal"], turned, length)):
            outside = apply(UFUNCS["logical_or"], outside, missing)
        total = apply(op.add, apply(op.multiply, total, length), turned)
    return apply(op.select, outside, beyond, total)


def along(graph: Graph, nodes: Nodes, places: Nodes, axis: int, name: str = "an index") -> Nodes:
    """Return the parts of an array at places of an axis, like `np.take`."""
    moved = np.moveaxis(nodes, axis, 0)
    behind, flat = moved.shape[1:], places.ravel()
    size = math.prod(behind)
    if size == 1 or _writer(graph) is not None:
        elements = gathered(graph, moved.reshape(1, -1), _of_parts(graph, flat, size)[None, :], name)
    else:
        rows = np.broadcast_to(flat, (size, flat.size))
        elements = gathered(graph, moved.reshape(len(moved), size).T, rows, name).T
    parts = elements.reshape(places.shape + behind)
    parts = np.moveaxis(parts, range(places.ndim), range(axis, axis + places.ndim))
    first = np.zeros(places.shape, dtype=int)
    return in_order_of(parts, nodes[(slice(None),) * axis + (first,)]) if places.ndim else parts


def _of_parts(graph: Graph, places: Nodes, size: int) -> Nodes:
    """Return the places of all elements of consecutive parts of `size` elements."""
    if size == 1:
        return places
    firsts = elementwise(graph, op.multiply, places, np.array(graph.number(size)))
    return elementwise(graph, op.add, firsts[:, None], constants(graph, np.arange(size))[None, :]).ravel()


def _hull(graph: Graph, nodes: Nodes) -> Bounds:
    """Return bounds of all elements of nodes; with NaN for places out of bounds."""
    all_bounds = [bounds_of(graph, node) for node in set(nodes.ravel().tolist())]
    return Bounds(min(bounds.low for bounds in all_bounds), max(bounds.high for bounds in all_bounds))


def _noted(graph: Graph, nodes: Nodes, bounds: Bounds) -> Nodes:
    """Return the leaves of one operation, noted in the graph as whole numbers."""
    graph.whole[range(int(nodes.min()), int(nodes.max()) + 1)] = bounds
    return nodes


def _each_noted(graph: Graph, nodes: Nodes, bounds: Bounds) -> Nodes:
    """Return nodes, each noted in the graph as a whole number."""
    for node in set(nodes.ravel().tolist()):
        if constant(graph, node) is None:
            graph.whole[range(node, node + 1)] = bounds
    return nodes


def _writer(graph: Graph) -> Any:
    """Return the recorder of loops, if there is one; on numbers the order is known."""
    recorder = loops_on(graph)
    return None if recorder is None or recorder.on_numbers else recorder


def _check_few(name: str, pairs: int) -> None:
    if pairs > PAIRS:
        refuse_function(
            name,
            f"its values are not known, and written out it brings {pairs} pairs of elements together, "
            f"more than {PAIRS}",
            'call the function on numbers, or compile it without roll="never", strategy= and sparse=',
        )
