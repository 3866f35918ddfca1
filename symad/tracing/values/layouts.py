"""The memory order of elements. It decides which results of reshape and ravel are views, as in NumPy.

Results of NumPy's functions keep the order of their operands (order="K"): those of transposed arrays are transposed.
A kernel has its own order of elements: that in which their nodes were made.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]
Nodes = npt.NDArray[np.int64]


IN_C_ORDER = frozenset({  # functions whose results do not keep the order of their operands
    np.linalg.eigh, np.linalg.svd, np.select, np.interp, np.take_along_axis, np.dot, np.inner, np.tensordot,
    np.linalg.tensordot, np.linalg.cholesky, np.linalg.pinv, np.argsort, np.take, np.correlate, np.linalg.solve,
    np.linalg.inv, np.linalg.tensorinv, np.linalg.norm, np.linalg.matrix_norm,
})  # fmt: skip
AS_NUMPY = frozenset({  # functions whose results have an order of their own
    np.gradient, np.pad, np.cross, np.linalg.cross, np.linalg.qr, np.linalg.matrix_power, np.percentile, np.quantile,
    np.nanpercentile, np.nanquantile, np.einsum,
})  # fmt: skip


def axes_in_memory(*operands: Numbers) -> tuple[int, ...] | None:
    """Return the axes of the result of a ufunc from the longest stride to the shortest; None for C order."""
    if all(array.ndim < 2 or array.flags.c_contiguous for array in operands):
        return None
    kept = [np.broadcast_to(np.zeros((), dtype=bool), array.shape) if array.ndim < 2 else array for array in operands]
    if len(kept) == 1:
        strides = np.array(kept[0], copy=True, order="K").strides
    else:  # those of NumPy's own result
        strides = (np.equal(*kept) if len(kept) == 2 else np.where(*kept[:3])).strides
    axes = tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))
    return None if axes == tuple(range(len(axes))) else axes


def axes_as_made(axes: tuple[int, ...], *operands: Numbers) -> tuple[int, ...]:
    """Return the axes of the result of a ufunc in the order in which its nodes are made; else these axes.

    A kernel then reads neighbours in memory, whatever their layout.
    """
    steps = np.zeros(len(axes), dtype=np.int64)
    for array in operands:
        if array.dtype == np.int64 and array.size > 1:
            steps[len(axes) - array.ndim :] += [usual_step(array, axis) for axis in range(array.ndim)]
    return tuple(np.argsort(-steps, kind="stable").tolist()) if steps.any() else axes


def usual_step(nodes: Nodes, axis: int) -> int:
    """Return the distance of nodes along an axis: the commonest near the middle, as some may be constants.

    >>> usual_step(np.arange(20).reshape(4, 5), 0), usual_step(np.full((4, 5), 7), 0)
    (5, 0)
    """
    axis, middle = axis % nodes.ndim, [size // 2 for size in nodes.shape]
    if nodes.shape[axis] < 2:
        return 0
    near = [slice(max(place - 4, 0), place + 4) for place in middle]
    line = nodes[(*middle[:axis], near[axis], *middle[axis + 1 :])].tolist()
    steps = [abs(after - before) for before, after in itertools.pairwise(line) if after != before]
    if not steps:  # constants
        steps = [step for step in np.abs(np.diff(nodes[tuple(near)], axis=axis)).ravel().tolist() if step]
    return max(steps, key=steps.count) if steps else 0


def in_even_steps(nodes: Nodes) -> bool:
    """Return whether nodes are apart by the same number along each axis.

    >>> in_even_steps(np.arange(20).reshape(4, 5)[1:, ::2].T), in_even_steps(np.array([[1, 2], [3, 5]]))
    (True, False)
    """
    first, units = nodes.item(0), np.eye(nodes.ndim, dtype=int).tolist()
    sides = zip(units, nodes.shape, strict=True)
    steps = [(nodes[tuple(unit)] - first) * np.arange(size) if size > 1 else np.zeros(1, int) for unit, size in sides]
    return np.array_equal(nodes, first + sum(np.ix_(*steps)))


def moved(array: Numbers, axes: tuple[int, ...]) -> Numbers:
    """Return an array with its axes in this order, missing ones first."""
    return array.reshape((1,) * (len(axes) - array.ndim) + array.shape).transpose(axes) if array.ndim else array


def moved_back(array: Nodes, axes: tuple[int, ...]) -> Nodes:
    """Undo `moved`."""
    return array.transpose(np.argsort(axes))


def in_order_of(nodes: Nodes, model: Numbers) -> Nodes:
    """Return nodes in the memory order of an array of their shape."""
    if nodes.ndim < 2 or (nodes.flags.c_contiguous and model.flags.c_contiguous):
        return nodes
    axes = axes_in_memory(model)
    return np.ascontiguousarray(nodes) if axes is None else in_order(nodes, axes)


def in_order(nodes: Nodes, axes: tuple[int, ...]) -> Nodes:
    """Return nodes in the memory order of these axes, from the longest stride to the shortest."""
    return moved_back(np.ascontiguousarray(nodes.transpose(axes)), axes)


def set_c_order(result: Any) -> None:
    """Set a traced array, or those of a tuple, to C order."""
    for part in result if isinstance(result, tuple) else (result,):
        nodes = getattr(part, "nodes", None)
        if isinstance(nodes, np.ndarray) and not nodes.flags.c_contiguous:
            part.nodes = np.ascontiguousarray(nodes)


def set_numpys_order(
    result: Any, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> None:
    """Set a traced array, or those of a tuple or list, to the order of NumPy's result for such arguments.

    A view of an argument stays a view: it has NumPy's order already.
    """
    few = function is np.einsum and not keywords.get("optimize")  # only the order of axes counts, not their length
    named = {name: _numbers_like(part, few) for name, part in keywords.items() if name != "out"}
    with np.errstate(all="ignore"):
        expected = function(*[_numbers_like(part, few) for part in args], **named)
    several = isinstance(expected, tuple | list)
    for part, model in zip(result, expected, strict=True) if several else ((result, expected),):
        nodes = getattr(part, "nodes", None)
        if not isinstance(nodes, np.ndarray):
            continue
        if axes_in_memory(nodes) != axes_in_memory(model) or (_is_dense(model) and not _is_dense(nodes)):
            part.nodes = in_order_of(nodes, model)


def _is_dense(array: Numbers) -> bool:
    return array.transpose(np.argsort([-abs(stride) for stride in array.strides])).flags.c_contiguous


def _numbers_like(value: Any, few: bool) -> Any:
    """Return ordinary numbers in place of a traced value, those of an array in its order; other values unchanged."""
    if type(value) in (tuple, list):
        return type(value)([_numbers_like(part, few) for part in value])
    nodes = getattr(value, "nodes", None)
    array = value if nodes is None else nodes
    if few and isinstance(array, np.ndarray):
        array = array[(slice(2),) * array.ndim]
    if nodes is None:
        return 0.75 if hasattr(value, "node") else array
    numbers = np.zeros_like(array, dtype=np.float64)
    if not few:
        numbers[...] = np.random.default_rng(0).uniform(0.5, 1.0, array.shape)
    return numbers
