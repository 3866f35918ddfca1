"""Orders and computed places of nodes whose values are not known: loops where they are written down, else choices.

Where an order is written out every element is compared with every other, and where a place is computed every element
is chosen from: so few elements only are. Places are whole numbers from the beginning; negative ones count from the end.
"""

from __future__ import annotations

import math
import re
from functools import partial
from typing import Any, NoReturn

import numpy as np

import symad.tracing.values.node_builders as op
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.constant_nodes import as_truth
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.node_arrays import Nodes, all_truths, elementwise, loops_on, numbers, reduce
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.traced import Traced, refuse_function
from symad.tracing.values.whole_numbers import are_whole

_LETTERS = {"t": Traced, "s": slice, "n": int, "e": type(Ellipsis)}  # of the parts of an index
_KEY = re.compile("s*n*tn*s*")
PAIRS = 2048  # of elements that are compared, or chosen from


def ordered(graph: Graph, rows: Nodes, name: str) -> Nodes:
    """Return for each row of numbers the places of its elements in ascending order, equal ones as they stand."""
    count, n = rows.shape
    if n < 2 or not count:
        return np.full(rows.shape, graph.number(0))
    rows = numbers(graph, rows)
    if (writer := _writer(graph)) is not None:
        (found,) = writer.carried_out(MatrixOperation("order", (count, n)), rows)
        return _noted(graph, found.reshape(count, n))
    _check_few(name, rows.size * n)
    each = partial(elementwise, graph)
    zero, one = (np.array(graph.number(k)) for k in (0, 1))
    first, second = rows[:, :, None], rows[:, None, :]
    earlier = np.where(np.tri(n, k=-1, dtype=bool), one, zero)[None]  # whether the second stands before the first
    before = each(op.select, each(UFUNCS["isnan"], second), zero, one)
    equal = each(op.select, each(UFUNCS["equal"], second, first), earlier, zero)
    smaller = each(op.select, each(UFUNCS["less"], second, first), one, equal)
    nan = each(op.select, each(UFUNCS["isnan"], second), earlier, before)
    ranks = reduce(graph, op.add, each(op.select, each(UFUNCS["isnan"], first), nan, smaller), 2)
    here = each(UFUNCS["equal"], ranks[:, None, :], _whole(graph, np.arange(n))[None, :, None])
    return reduce(graph, op.add, each(op.select, here, _whole(graph, np.arange(n))[None, None, :], zero), 2)


def inserted(graph: Graph, keys: Nodes, others: Nodes, right: bool, name: str) -> Nodes:
    """Return where others are inserted among sorted keys: before equal ones, or behind them."""
    if not keys.size or not others.size:
        return np.full(others.shape, graph.number(0))
    keys, others = numbers(graph, keys), numbers(graph, others)
    if (writer := _writer(graph)) is not None:
        kind: MatrixKind = "insertion_right" if right else "insertion"
        return _noted(graph, writer.carried_out(MatrixOperation(kind, (keys.size, others.size)), keys, others)[0])
    _check_few(name, keys.size * others.size)
    each = partial(elementwise, graph)
    zero, one = (np.array(graph.number(k)) for k in (0, 1))
    first, second = keys[None, :], others[:, None]
    nan = [each(UFUNCS["isnan"], part) for part in (first, second)]
    held = each(op.select, each(UFUNCS["less_equal" if right else "less"], first, second), one, zero)
    among = one if right else each(op.select, nan[0], zero, one)
    return reduce(graph, op.add, each(op.select, nan[1], among, held), 1)


def gathered(graph: Graph, rows: Nodes, places: Nodes, name: str) -> Nodes:
    """Return the elements of rows at places of each of them."""
    if all_truths(graph, rows):
        return elementwise(graph, as_truth, gathered(graph, numbers(graph, rows), places, name))
    (count, n), m = rows.shape, places.shape[1]
    if not places.size:
        return places.copy()
    if not n:
        raise IndexError(f"index is out of bounds for axis 0 with size {n}")
    if (writer := _writer(graph)) is not None:
        found: Nodes = writer.carried_out(MatrixOperation("gather", (count, n, m)), rows, places)[0]
        return _noted(graph, found.reshape(count, m)) if are_whole(graph, rows) else found.reshape(count, m)
    _check_few(name, count * n * m)
    each = partial(elementwise, graph)
    negative = each(UFUNCS["less"], places, np.array(graph.number(0)))
    turned = each(op.select, negative, each(op.add, places, np.array(graph.number(n))), places)
    found = np.full(places.shape, graph.number(math.nan))
    for k in range(n):
        here = each(UFUNCS["equal"], turned, np.array(graph.number(k)))
        found = each(op.select, here, np.broadcast_to(rows[:, k : k + 1], places.shape), found)
    if are_whole(graph, rows):  # but for the NaN beyond, which is no place either
        graph.whole += [range(node, node + 1) for node in set(found.ravel().tolist())]
    return found


def picked(scope: Scope, nodes: Nodes, key: Any) -> Nodes | None:
    """Return `nodes[key]` where one part of the key is an array of whole numbers, or one, whose values are not known.

    The other parts are slices, and numbers that no slice parts from it (NumPy has the axes of such first); None for any
    other key, and where the places are no whole numbers.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    kinds = ["".join(letter for letter, kind in _LETTERS.items() if isinstance(part, kind)) for part in parts]
    if kinds.count("e") == 1:
        whole = kinds.index("e")
        missing = nodes.ndim - len(parts) + 1
        parts[whole : whole + 1], kinds[whole : whole + 1] = [slice(None)] * missing, ["s"] * missing
    if _KEY.fullmatch("".join(kinds)) is None or len("".join(kinds)) != len(parts):
        return None
    k = kinds.index("t")
    places = nodes_of(parts[k], scope)
    if all_truths(scope.graph, places) or not are_whole(scope.graph, places):
        return None
    rest = nodes[tuple([slice(None) if kind == "t" else part for part, kind in zip(parts, kinds, strict=True)])]
    return along(scope.graph, rest, places, sum(kind != "n" for kind in kinds[:k]))


def along(graph: Graph, nodes: Nodes, places: Nodes, axis: int, name: str = "an index") -> Nodes:
    """Return the parts of an array at places of an axis, as `np.take` has them."""
    moved = np.moveaxis(nodes, axis, 0)
    behind, flat = moved.shape[1:], places.ravel()
    size = math.prod(behind)
    if size == 1 or _writer(graph) is not None:
        found = gathered(graph, moved.reshape(1, -1), _of_parts(graph, flat, size)[None, :], name)
    else:
        rows = np.broadcast_to(flat, (size, flat.size))
        found = gathered(graph, moved.reshape(len(moved), size).T, rows, name).T
    made = found.reshape(places.shape + behind)
    made = np.moveaxis(made, range(places.ndim), range(axis, axis + places.ndim))
    first = np.zeros(places.shape, dtype=int)
    return in_order_of(made, nodes[(slice(None),) * axis + (first,)]) if places.ndim else made


def _of_parts(graph: Graph, places: Nodes, size: int) -> Nodes:
    """Return the places of all elements of parts of an array, each of so many, which stand one behind the other."""
    if size == 1:
        return places
    firsts = elementwise(graph, op.multiply, places, np.array(graph.number(size)))
    return elementwise(graph, op.add, firsts[:, None], _whole(graph, np.arange(size))[None, :]).ravel()


def _noted(graph: Graph, nodes: Nodes) -> Nodes:
    """Return nodes, which the graph notes as whole numbers."""
    graph.whole.append(range(int(nodes.min()), int(nodes.max()) + 1))
    return nodes


def _whole(graph: Graph, values: Any) -> Nodes:
    return np.array([graph.number(value) for value in values.tolist()], dtype=np.int64)


def _writer(graph: Graph) -> Any:
    """Return what writes loops down, where that is done: what is called on numbers has orders that are known."""
    found = loops_on(graph)
    return None if found is None or found.on_numbers else found


def _check_few(name: str, pairs: int) -> None:
    if pairs > PAIRS:
        _refuse(name, pairs)


def _refuse(name: str, pairs: int) -> NoReturn:
    refuse_function(
        name,
        f"its values are not known, and written out it brings {pairs} pairs of elements together, more than {PAIRS}",
        'call the function on numbers, or compile it without roll="never", strategy= and sparse=',
    )
