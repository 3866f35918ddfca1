"""NumPy functions that only move elements. NumPy runs them on the array of node ids."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from codegen.limits import check_bytes, machine_memory
from symad.errors import ArgumentError
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.reduce import delivered, is_traced, traced
from symad.tracing.numpy.registry import available, implements
from symad.tracing.numpy.select import known
from symad.tracing.values.array import Array, plain_index, wrap
from symad.tracing.values.constant_nodes import is_boolean
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.node_arrays import (
    Nodes,
    all_truths,
    converted,
    has_truths,
    homogeneous,
    like,
    numbers,
    require_float,
)
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.traced import store_error

# The first argument is the array; the result is an array of its elements, or a list or tuple of such.
MOVING: tuple[Callable[..., Any], ...] = (
    np.reshape, np.ravel, np.transpose, np.permute_dims, np.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis,
    np.squeeze, np.expand_dims, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.tile,
    np.repeat, np.roll, np.flip, np.fliplr, np.flipud, np.rot90, np.broadcast_to,
    np.diagonal, np.copy, np.resize, *available("unstack"), np.lib.stride_tricks.sliding_window_view,
    np.linalg.matrix_transpose, np.linalg.diagonal, np.fft.fftshift, np.fft.ifftshift,
)  # fmt: skip

# All positional arguments (or the arrays of the one sequence) are arrays, numbers among them.
JOINING: tuple[Callable[..., Any], ...] = (
    np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block,
)  # fmt: skip

# Every positional argument is an array and stays one of its own.
SEPARATE: tuple[Callable[..., Any], ...] = (
    np.atleast_1d, np.atleast_2d, np.atleast_3d, np.broadcast_arrays, np.meshgrid,
)  # fmt: skip

# Zeros are filled in around the elements.
FILLING: tuple[Callable[..., Any], ...] = (np.tril, np.triu, np.diagflat)


def _wrap_all(result: Any, scope: Scope) -> Any:
    if isinstance(result, list | tuple):
        return type(result)([_wrap_all(part, scope) for part in result])
    return wrap(result, scope)


def _check_size(name: str, shape: Any, subok: bool = False) -> None:
    """Raise MemoryLimitError before an array of a shape is made, which takes what all its elements take."""
    size = math.prod(map(int, np.atleast_1d(shape)))
    check_bytes(f"{name}, an array of {size:,} numbers", 8.0 * size, at_most=machine_memory())


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the handler of a function that moves elements to places which are known."""

    def handler(*args: Any, **keywords: Any) -> Any:
        array, *others = args or (keywords.pop(next(iter(keywords))),)
        out = keywords.pop("out", None)
        scope = scope_of(array, out) if out is not None else scope_of(array, *others)
        others, keywords = list(map(plain_index, others)), {name: plain_index(v) for name, v in keywords.items()}
        if function is np.broadcast_to:
            _check_size("np.broadcast_to", *others, **keywords)
        return delivered(_wrap_all(function(nodes_of(array, scope), *others, **keywords), scope), out)

    return handler


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(arrays: Any, *others: Any, **keywords: Any) -> Any:
        require_float(f"np.{function.__name__}", keywords.pop("dtype", None))
        keywords.pop("casting", None)
        out = keywords.pop("out", None)
        scope = scope_of(arrays, out)
        if function is np.block:
            joined = np.block(_nested(arrays, scope))
            mixed = has_truths(scope.graph, joined) and any(not is_boolean(scope.graph, node) for node in joined.flat)
            return wrap(numbers(scope.graph, joined) if mixed else joined, scope)
        parts = homogeneous(scope.graph, [nodes_of(part, scope) for part in arrays])
        axis = None if others or keywords else _plain_axis(function, parts)
        if axis is not None:
            return delivered(wrap(np.concatenate(parts, axis), scope), out)
        return delivered(wrap(function(parts, *others, **keywords), scope), out)

    return handler


def _plain_axis(function: Callable[..., Any], parts: list[Nodes]) -> int | None:
    """Return the axis along which a function joins matrices without another word; None for others."""
    axes: dict[Callable[..., Any], int] = {np.concatenate: 0, np.vstack: 0, np.hstack: 1, np.column_stack: 1}
    rank = parts[0].ndim
    if any(part.ndim != rank for part in parts) or rank < 2 or (function is np.column_stack and rank > 2):
        return None
    return axes.get(function)


def _nested(arrays: Any, scope: Scope) -> Any:
    return [_nested(part, scope) for part in arrays] if isinstance(arrays, list) else nodes_of(arrays, scope)


def _separate(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*arrays: Any, **keywords: Any) -> Any:
        scope = scope_of(arrays)
        parts = [nodes_of(part, scope) for part in arrays]
        if function is np.meshgrid and not keywords.get("sparse"):
            _check_size("np.meshgrid", [len(parts), *(part.size for part in parts)])
        return _wrap_all(function(*parts, **keywords), scope)

    return handler


def filled(scope: Scope, function: Callable[..., Any], nodes: Nodes, *others: Any, **keywords: Any) -> Nodes:
    """Return function(nodes, ...) with the zeros that it fills in replaced by the number 0, or by False."""
    moved = function(nodes + 1, *others, **keywords)
    zero = scope.graph.number(False if all_truths(scope.graph, nodes) else 0.0)
    return np.where(moved == 0, zero, moved - 1)


def _filling(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(array: Any, *others: Any, **keywords: Any) -> Any:
        scope = scope_of(array)
        return wrap(filled(scope, function, nodes_of(array, scope), *others, **keywords), scope)

    return handler


for _functions, _handler_of in ((MOVING, moving), (JOINING, _joining), (SEPARATE, _separate), (FILLING, _filling)):
    for _function in _functions:
        implements(_function)(_handler_of(_function))


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements, moved along axes; those beyond the end come in at the beginning."""
    if type(a) is not Array or type(shift) is not int or type(axis) is not int or not -a.ndim <= axis < a.ndim:
        return moving(np.roll)(a, shift, axis)
    axis, count = axis % a.ndim, a.shape[axis]
    if not count or not shift % count:
        return Array(a.nodes.copy(), a.scope)
    a.scope.check_open()
    before, start = (slice(None),) * axis, -(shift % count)
    parts = [a.nodes[(*before, piece)] for piece in (slice(start, None), slice(start))]
    return Array(np.concatenate(parts, axis), a.scope)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """A matrix with this diagonal; of a matrix its diagonal, which (as in NumPy) shows later changes of the matrix."""
    scope = scope_of(v)
    nodes = nodes_of(v, scope)
    return wrap(np.diag(nodes, k) if nodes.ndim == 2 else filled(scope, np.diag, nodes, k), scope)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """The array without the zeros at its ends, by value."""
    filt = traced(filt)
    if filt.ndim == 1 and known(filt) is None:
        own = np.where(filt != 0, 1, 0)
        ahead = np.cumsum(own) > 0 if "f" in trim.lower() else np.ones(filt.shape, dtype=bool)
        behind = np.cumsum(own[::-1])[::-1] > 0 if "b" in trim.lower() else np.ones(filt.shape, dtype=bool)
        return filt[ahead & behind]
    indices = np.argwhere(filt != 0)
    lengths = filt.shape
    axes = range(filt.ndim) if axis is None else np.lib.array_utils.normalize_axis_tuple(axis, filt.ndim)
    key = [slice(None)] * filt.ndim
    for k in axes:
        first, last = (indices[:, k].min(), indices[:, k].max() + 1) if len(indices) else (lengths[k], lengths[k])
        key[k] = slice(first if "f" in trim.lower() else 0, last if "b" in trim.lower() else lengths[k])
    return filt[tuple(key)]


@implements(np.shares_memory, np.may_share_memory)
def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Whether writing into one of two traced arrays changes the other."""
    return isinstance(a, Array) and isinstance(b, Array) and np.shares_memory(a.nodes, b.nodes)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with values inserted before the given indices."""
    scope = scope_of(arr, values)
    nodes = nodes_of(arr, scope)
    return wrap(np.insert(nodes, plain_index(obj), like(scope.graph, nodes, nodes_of(values, scope)), axis), scope)


implements(np.shape)(lambda a: nodes_of(a, scope_of(a)).shape)
implements(np.ndim)(lambda a: nodes_of(a, scope_of(a)).ndim)
implements(np.size)(lambda a, axis=None: int(np.size(nodes_of(a, scope_of(a)), axis)))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **_: Any
) -> Any:
    """A traced array full of one value; it can receive traced values. `dtype` bool or int gives plain constants."""
    scope = scope_of(a, fill_value)
    like_nodes = nodes_of(a, scope)
    if dtype is None and all_truths(scope.graph, like_nodes):
        dtype = bool
    if isinstance(fill_value, int | float | np.generic) and dtype is not None:
        fill_value = np.asarray(fill_value).astype(dtype)  # an int stays one: it may be an index
    fill = nodes_of(fill_value, scope)
    fill = fill if dtype is None else converted(scope.graph, fill, dtype)
    nodes = np.array(np.broadcast_to(fill, like_nodes.shape if shape is None else shape), order="C")
    if order == "F" and nodes.ndim > 1:
        return Array(np.asfortranarray(nodes), scope)
    return Array(nodes if shape is not None or order not in "KA" else in_order_of(nodes, like_nodes), scope)


implements(np.zeros_like, np.empty_like)(lambda a, *args, **keywords: full_like(a, 0.0, *args, **keywords))
implements(np.ones_like)(lambda a, *args, **keywords: full_like(a, 1.0, *args, **keywords))

IN_PLACE = frozenset({np.copyto, np.fill_diagonal, np.put, np.put_along_axis, np.place, np.putmask})


def write(target: Any, values: Any, writing: Callable[[Nodes, Nodes], None]) -> None:
    """Call writing(nodes of the target, nodes of the values); TraceError for an ordinary target, and for a number."""
    if not is_traced(target):
        raise store_error()
    if not isinstance(target, Array):
        target[...] = values  # which is refused by name
    scope = scope_of(target, values)
    with scope.graph.arrays.storing(target.nodes):
        writing(target.nodes, like(scope.graph, target.nodes, nodes_of(values, scope)))
    target.scope = scope


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write src into the traced array dst, where the mask holds."""
    if not is_traced(dst):
        raise store_error()
    dst[...] = src if where is True else np.where(where, src, dst)


implements(np.put)(
    lambda a, ind, v, mode="raise": write(a, v, lambda nodes, new: np.put(nodes, plain_index(ind), new, mode))
)
implements(np.fill_diagonal)(
    lambda a, val, wrap=False: write(a, val, lambda nodes, new: np.fill_diagonal(nodes, new, wrap))
)


@implements(np.put_along_axis)
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at positions along an axis."""
    write(arr, values, lambda nodes, new: np.put_along_axis(nodes, plain_index(indices), new, axis))


@implements(np.lib.stride_tricks.as_strided)
def as_strided(
    x: Any, shape: Sequence[int] | None = None, strides: Sequence[int] | None = None, subok: bool = False, **_: Any
) -> Any:
    """A view with another shape and other strides; refused where it would read what is no element of the array."""
    scope = scope_of(x)
    nodes = x.nodes if isinstance(x, Array) else np.array(nodes_of(x, scope))
    shape = nodes.shape if shape is None else tuple(shape)
    steps = nodes.strides if strides is None else tuple(strides)
    if all_truths(scope.graph, nodes) or not _is_inside(nodes, shape, steps):
        raise ArgumentError(
            f"as_strided with shape {shape} and strides {steps}",
            where=user_place(),
            why=f"it reads what is no element of the array, of shape {nodes.shape} and strides {nodes.strides}",
            do="give multiples of x.strides, of an array that is no view with gaps (np.ascontiguousarray(x))",
        )
    return wrap(np.lib.stride_tricks.as_strided(nodes, shape, steps), scope)


def _is_inside(nodes: Nodes, shape: Sequence[int], steps: Sequence[int]) -> bool:
    """Whether all places of a view are those of elements, which stand without gaps."""
    if 0 in shape:
        return True
    own = [(abs(step), count, step) for step, count in zip(nodes.strides, nodes.shape, strict=True) if count > 1]
    width = nodes.itemsize
    for size, count, _ in sorted(own):
        if size not in (0, width):
            return False
        width = size * count if size else width
    low, high = (sum(pick(0, (count - 1) * step) for _, count, step in own) for pick in (min, max))
    reads = [(count - 1) * step for count, step in zip(shape, steps, strict=True)]
    first, last = (sum(pick(0, read) for read in reads) for pick in (min, max))
    return nodes.size > 0 and low <= first and last <= high and not any(step % nodes.itemsize for step in steps)
