"""Array operations on node ids: elementwise, reduce, accumulate, matrix product, joining.

Sums and products are chains from left to right, as a Python loop would write them (NumPy adds long arrays pairwise,
which differs in the last digits); a dot product is a chain of products added from the left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sp

import symad.tracing.values.node_builders as op
from symad.errors import TraceError
from symad.graph.graph import Graph
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.array_blocks import BLOCK, are_constants, block_of, chain_head, heads_of, kinds_of
from symad.tracing.values.constant_nodes import MAYBE_BOOLEAN, as_number, as_truth, constant, is_boolean
from symad.tracing.values.layouts import axes_as_made, axes_in_memory, in_order, in_order_of, moved, moved_back
from symad.tracing.values.node_builders import Build
from symad.tracing.values.whole_numbers import note_integers

Nodes = npt.NDArray[np.int64]
Axis = int | tuple[int, ...] | None

_NEUTRAL = {UFUNCS[f"{kind}_{name}"]: name == "and" for kind in ("logical", "bitwise") for name in ("and", "or")}


def elementwise(graph: Graph, build: Build, *operands: Nodes) -> Nodes:
    """Return build(...) of every element, with NumPy's broadcasting and order in memory.

    Operands are nodes, or (if operations on arrays are array nodes) numbers in floats.
    """
    standing = axes_in_memory(*operands)
    if standing is None:
        return _elementwise(graph, build, *operands)
    axes = axes_as_made(standing, *operands)
    result = moved_back(_elementwise(graph, build, *[moved(nodes, axes) for nodes in operands]), axes)
    return result if axes == standing else in_order(result, standing)


def _elementwise(graph: Graph, build: Build, *operands: Nodes, recorded: bool = True) -> Nodes:
    shape = operands[0].shape
    if any(nodes.shape != shape for nodes in operands):  # broadcasting costs more than tracing a few elements
        shape = np.broadcast_shapes(*[nodes.shape for nodes in operands])
    if build in _NEUTRAL and (decided := _known_connective(graph, _NEUTRAL[build], operands)) is not None:
        return np.broadcast_to(decided, shape).copy()
    loops = loops_on(graph) if recorded else None
    if loops is not None and (written := loops.elementwise(build, operands, shape)) is not None:
        return written  # type: ignore[no-any-return]
    operands = tuple([as_nodes(graph, nodes) for nodes in operands])
    if math.prod(shape) >= BLOCK and (block := block_of(graph, build, operands, shape)) is not None:
        return block
    columns = [nodes if nodes.shape == shape else np.broadcast_to(nodes, shape) for nodes in operands]
    listed = [nodes.ravel().tolist() for nodes in columns]
    if math.prod(shape) >= BLOCK and all(are_constants(graph, nodes) for nodes in operands):
        different = dict.fromkeys(zip(*listed, strict=True))  # many are equal
        built = {parts: build(graph, *parts) for parts in different}
        return np.array([built[parts] for parts in zip(*listed, strict=True)], dtype=np.int64).reshape(shape)
    return np.array(list(map(build, repeat(graph), *listed)), dtype=np.int64).reshape(shape)


def _known_connective(graph: Graph, neutral: bool, operands: Sequence[Nodes]) -> Nodes | None:
    """Return "and" (with neutral element True) or "or" of arrays, if one of them is known and constant."""
    if max(nodes.size for nodes in operands) < BLOCK:
        return None
    for known, other in (operands, operands[::-1]):
        if not known.size or not known.dtype == other.dtype == np.int64 or kinds_of(graph, [other]) != ["truth"]:
            continue
        truth = graph.atoms.get(int(known.flat[0])) in (sp.true, sp.false)
        if truth and (known == known.flat[0]).all():
            return other if bool(graph.atoms[int(known.flat[0])]) is neutral else known
    return None


def reduce(
    graph: Graph,
    build: Build,
    nodes: Nodes,
    axis: Axis,
    *,
    keepdims: bool = False,
    initial: int | None = None,
    where: Nodes | None = None,
) -> Nodes:
    """Return build(...build(build(first, second), third)...) along one axis, several, or all of them (None).

    `where` has truth values in the shape of `nodes`: only elements where they hold take part.
    """
    axes = normalized_axes(axis, nodes.ndim)
    kept = [k for k in range(nodes.ndim) if k not in axes]
    shape = [nodes.shape[k] for k in kept]

    def rows_of(array: Nodes) -> Nodes:
        return array.transpose([*axes, *kept]).reshape(math.prod(nodes.shape[k] for k in axes), math.prod(shape))

    rows = rows_of(nodes)
    if initial is not None:
        rows = np.concatenate([np.full((1, rows.shape[1]), initial), rows])
    if not len(rows):
        raise ValueError("zero-size array to a reduction operation which has no identity")  # as NumPy
    loops = loops_on(graph) if where is None else None
    if loops is not None and (written := loops.reduction(build, rows)) is not None:
        total = written
    elif where is None:
        total = _totals(graph, build, rows)[-1]
    else:
        masks = rows_of(where)[1 if initial is None else 0 :]
        total = rows[0]
        for row, mask in zip(rows[1:], masks, strict=True):
            total = elementwise(graph, _masked_step(build), total, row, mask)
    if keepdims:
        shape = [1 if k in axes else size for k, size in enumerate(nodes.shape)]
    result: Nodes = total.reshape(shape)
    if result.ndim < 2 or nodes.flags.c_contiguous:
        return result
    model: Any = np.sum(nodes, axis, keepdims=keepdims)
    return in_order_of(result, model)


def _totals(graph: Graph, build: Build, rows: Nodes) -> Nodes:
    """Return the partial results of a reduction of rows: rows[0], build(rows[0], rows[1])..."""
    if rows.size < BLOCK:
        few: list[list[int]] = rows.tolist()
        for k in range(1, len(few)):
            few[k] = list(map(build, repeat(graph), few[k - 1], few[k]))
        return np.array(few, dtype=np.int64)
    head = chain_head(graph, build, kinds_of(graph, [rows])[0])
    totals: list[Any] = [rows[0].tolist()]
    for k in range(1, len(rows)):
        block = None if head is None or k == 1 else graph.chain(head, np.array(totals[-1]), rows[k:])
        if block is not None:
            return np.concatenate([np.array(totals), block])
        if rows.shape[1] < BLOCK:
            totals.append(list(map(build, repeat(graph), totals[-1], rows[k].tolist())))
        else:
            totals.append(elementwise(graph, build, np.array(totals[-1]), rows[k]))
    return np.array(totals, dtype=np.int64)


def _masked_step(build: Build) -> Build:
    def step(graph: Graph, total: int, element: int, condition: int) -> int:
        if constant(graph, condition) is False:
            return total
        return op.select(graph, condition, build(graph, total, element), total)

    return step


def accumulate(graph: Graph, build: Build, nodes: Nodes, axis: int) -> Nodes:
    """Return the running reduction along one axis."""
    rows_first = np.moveaxis(nodes, axis, 0)
    if not nodes.size:
        return nodes.copy()
    rows, loops = rows_first.reshape(len(rows_first), -1), loops_on(graph)
    totals = None if loops is None else loops.running(build, rows)
    totals = _totals(graph, build, rows) if totals is None else totals
    return in_order_of(np.moveaxis(totals.reshape(rows_first.shape), 0, axis), nodes)


def matmul(graph: Graph, left: Nodes, right: Nodes) -> Nodes:
    """Return the matrix product as NumPy's `@` defines it (1-D operands, stacks of matrices).

    Operands are nodes, or (where operations on arrays are array nodes) numbers in floats.
    """
    if left.ndim == 0 or right.ndim == 0:
        raise TraceError("@ with a scalar", where=user_place(), why="a matrix product needs arrays", do="use *")
    a = left[None, :] if left.ndim == 1 else left
    b = right[:, None] if right.ndim == 1 else right
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {left.shape} and {right.shape} do not match")
    if (loops := loops_on(graph)) is not None and (written := loops.matmul(a, b)) is not None:
        return _without_axes(np.asarray(written, order="C"), left, right)
    a, b = as_nodes(graph, a), as_nodes(graph, b)
    factors = a[..., :, None, :], np.swapaxes(b, -1, -2)[..., None, :, :]
    products = _elementwise(graph, op.multiply, *factors, recorded=False)  # in few rows that a search finds
    start = None if products.shape[-1] else graph.number(0)
    sums = reduce(graph, op.add, products, products.ndim - 1, initial=start)
    return _without_axes(np.asarray(sums, order="C"), left, right)


def _without_axes(product: Nodes, left: Nodes, right: Nodes) -> Nodes:
    """Return a product of matrices without the axes that were added to one-dimensional operands."""
    total = product[..., 0] if right.ndim == 1 else product
    return (total[..., 0, :] if right.ndim > 1 else total[..., 0]) if left.ndim == 1 else total


def loops_on(graph: Graph) -> Any:
    """Return the recorder of operations on large arrays, if the innermost scope has one."""
    scope = innermost_scope()
    recorder = None if scope is None or scope.graph is not graph else scope.arrays
    return None if recorder is not None and recorder.on_numbers and graph.arrays.closed else recorder


def normalized_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes as non-negative numbers, in ascending order (None means all)."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(axes, ndim)))


def numbers(graph: Graph, nodes: Nodes) -> Nodes:
    """Return the nodes with truth values turned into the numbers 0 and 1."""
    return elementwise(graph, as_number, nodes) if has_truths(graph, nodes) else nodes


def converted(graph: Graph, nodes: Nodes, dtype: Any) -> Nodes:
    """Return the nodes as `astype(dtype)` has them: float as 0 and 1 or unchanged, bool as u != 0, int truncated."""
    kind = "f" if np.dtype(dtype) == object else np.dtype(dtype).kind
    conversions: dict[str, Build] = {"f": as_number, "b": as_truth, "i": _integer, "u": _integer}
    if kind not in conversions:
        raise TraceError(
            f"astype({np.dtype(dtype)}) of a traced value", where=user_place(), why="traced values are real numbers"
        )
    result = elementwise(graph, conversions[kind], nodes)
    return note_integers(graph, result) if kind in "biu" else result


def _integer(graph: Graph, node: int) -> int:
    """A number without its fraction, never -0.0; the 0 or 1 of a truth value."""
    if is_boolean(graph, node):
        return as_number(graph, node)
    return op.add(graph, UFUNCS["trunc"](graph, node), graph.number(0))


def like(graph: Graph, target: Nodes, nodes: Nodes) -> Nodes:
    """Return nodes converted to the target's kind: truth values, or numbers."""
    return elementwise(graph, as_truth, nodes) if all_truths(graph, target) else numbers(graph, nodes)


def has_truths(graph: Graph, nodes: Nodes) -> bool:
    """Whether any node is a truth value."""
    return nodes.size > 0 and not heads_of(graph, nodes).isdisjoint(MAYBE_BOOLEAN)


def all_truths(graph: Graph, nodes: Nodes) -> bool:
    """Whether the array is one of truth values, judged by its first element: arrays are kept homogeneous."""
    return nodes.size > 0 and is_boolean(graph, int(nodes.flat[0]))


def homogeneous(graph: Graph, parts: Sequence[Nodes]) -> list[Nodes]:
    """Return the arrays unchanged when all hold numbers or all truth values, else all as numbers."""
    truths = {all_truths(graph, part) for part in parts if part.size}
    return [numbers(graph, part) for part in parts] if len(truths) > 1 else list(parts)


def constants(graph: Graph, values: Any) -> Nodes:
    """Return the constant leaves of an ordinary array of bools, ints or floats."""
    array = np.asarray(values)
    loops = loops_on(graph) if array.dtype == np.float64 else None
    if loops is not None and (written := loops.constants(array)) is not None:
        return written  # type: ignore[no-any-return]
    if array.dtype == bool:
        return np.where(array, graph.number(True), graph.number(False))
    return np.array([graph.number(value) for value in array.ravel().tolist()], dtype=np.int64).reshape(array.shape)


def as_nodes(graph: Graph, values: npt.NDArray[Any]) -> Nodes:
    """Return nodes unchanged, and numbers in floats as constant nodes."""
    return constants(graph, values) if values.dtype == np.float64 else values


def require_float(name: str, dtype: Any) -> None:
    """Raise TraceError for `dtype=` of another kind than float: traced values are float64."""
    if dtype is not None and dtype is not np._NoValue and np.dtype(dtype).kind not in "fO":
        raise TraceError(
            f"{name} with dtype={np.dtype(dtype)} of a traced value",
            where=user_place(),
            why="traced values are float64",
            do="leave dtype out; x.astype(int) truncates and x.astype(bool) is x != 0",
        )
