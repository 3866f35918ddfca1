"""Array operations on node ids: elementwise, reduce, accumulate, matrix product, joining. No traced classes here.

Sums and products are chains from left to right, as a Python loop would write them (NumPy adds long arrays pairwise,
which differs in the last digits); a dot product is a chain of products added from the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from symad.errors import TraceError
from symad.graph.table import Graph
from symad.tracing import operations as op
from symad.tracing.constants import as_number, is_boolean
from symad.tracing.operations import Build
from symad.tracing.place import user_place

Nodes = npt.NDArray[np.int64]
Axis = int | tuple[int, ...] | None


def elementwise(graph: Graph, build: Build, *operands: Nodes) -> Nodes:
    """Return build(...) of every element, with NumPy's broadcasting."""
    if len(operands) == 1:
        shape, columns = operands[0].shape, [operands[0].ravel().tolist()]
    else:
        shape = np.broadcast_shapes(*[nodes.shape for nodes in operands])
        columns = [np.broadcast_to(nodes, shape).ravel().tolist() for nodes in operands]
    made = [build(graph, *row) for row in zip(*columns, strict=True)]
    return np.array(made, dtype=np.int64).reshape(shape)


def reduce(
    graph: Graph, build: Build, nodes: Nodes, axis: Axis, *, keepdims: bool = False, initial: int | None = None
) -> Nodes:
    """Return build(...build(build(first, second), third)...) along one axis, several, or all of them (None)."""
    axes = normalized_axes(axis, nodes.ndim)
    kept = [k for k in range(nodes.ndim) if k not in axes]
    rows = nodes.transpose([*axes, *kept]).reshape(-1, *[nodes.shape[k] for k in kept])
    if initial is None and len(rows) == 0:
        raise TraceError("a reduction of an empty array", where=user_place(), why="it has no first element", do="")
    total = rows[0] if initial is None else np.full(rows.shape[1:], initial, dtype=np.int64)
    for row in rows[1 if initial is None else 0 :]:
        total = elementwise(graph, build, total, row)
    if keepdims:
        total = total.reshape([1 if k in axes else size for k, size in enumerate(nodes.shape)])
    return total.copy() if total.base is not None else total


def accumulate(graph: Graph, build: Build, nodes: Nodes, axis: int) -> Nodes:
    """Return the running reduction along one axis."""
    rows = np.moveaxis(nodes, axis, 0)
    made = np.array(rows)
    for k in range(1, len(rows)):
        made[k] = elementwise(graph, build, made[k - 1], rows[k])
    return np.moveaxis(made, 0, axis)


def matmul(graph: Graph, left: Nodes, right: Nodes) -> Nodes:
    """Return the matrix product as NumPy's `@` defines it (1-D operands, stacks of matrices)."""
    if left.ndim == 0 or right.ndim == 0:
        raise TraceError("@ with a scalar", where=user_place(), why="a matrix product needs arrays", do="use *")
    a = left[None, :] if left.ndim == 1 else left
    b = right[:, None] if right.ndim == 1 else right
    if a.shape[-1] != b.shape[-2]:
        raise ValueError(f"matmul: shapes {left.shape} and {right.shape} do not match")
    total = chain(graph, [(a[..., :, k, None], b[..., None, k, :]) for k in range(a.shape[-1])])
    if total is None:
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
        total = np.full(shape, graph.number(0), dtype=np.int64)
    total = total[..., 0] if right.ndim == 1 else total
    return (total[..., 0, :] if right.ndim > 1 else total[..., 0]) if left.ndim == 1 else total


def chain(graph: Graph, pairs: Sequence[tuple[Nodes, Nodes]]) -> Nodes | None:
    """Return the sum of the products of the pairs, from the left; None when there are none."""
    total: Nodes | None = None
    for left, right in pairs:
        product = elementwise(graph, op.multiply, left, right)
        total = product if total is None else elementwise(graph, op.add, total, product)
    return total


def normalized_axes(axis: Axis, ndim: int) -> tuple[int, ...]:
    """Return the axes as non-negative numbers, in ascending order (None means all)."""
    if axis is None:
        return tuple(range(ndim))
    wanted = axis if isinstance(axis, tuple) else (axis,)
    return tuple(sorted(np.lib.array_utils.normalize_axis_tuple(wanted, ndim)))


def numbers(graph: Graph, nodes: Nodes) -> Nodes:
    """Return the nodes with truth values turned into the numbers 0 and 1."""
    return elementwise(graph, as_number, nodes) if has_truths(graph, nodes) else nodes


def has_truths(graph: Graph, nodes: Nodes) -> bool:
    """Whether any node is a truth value."""
    return any(is_boolean(graph, node) for node in nodes.ravel().tolist())


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
    return np.array([graph.number(value) for value in array.ravel().tolist()], dtype=np.int64).reshape(array.shape)
