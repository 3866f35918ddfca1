"""NumPy functions that only move elements: NumPy itself runs them on the array of node ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.array import Array, plain_index, wrap
from symad.tracing.node_arrays import Nodes, homogeneous, numbers
from symad.tracing.operands import nodes_of, scope_of
from symad.tracing.registry import available, implements
from symad.tracing.scope import Scope
from symad.tracing.traced import Traced, refuse_function, store_error

# The first argument is the array; the result is an array of its elements, or a list or tuple of such.
MOVING: tuple[Callable[..., Any], ...] = (
    np.reshape, np.ravel, np.transpose, np.permute_dims, np.matrix_transpose, np.swapaxes, np.moveaxis, np.rollaxis,
    np.squeeze, np.expand_dims, np.split, np.array_split, np.hsplit, np.vsplit, np.dsplit, np.tile,
    np.repeat, np.roll, np.flip, np.fliplr, np.flipud, np.rot90, np.broadcast_to, np.take, np.take_along_axis,
    np.diagonal, np.delete, np.copy, np.resize, *available("unstack"), np.lib.stride_tricks.sliding_window_view,
)  # fmt: skip

# All positional arguments (or the arrays of the one sequence) are arrays, numbers among them.
JOINING: tuple[Callable[..., Any], ...] = (
    np.concatenate, np.stack, np.vstack, np.hstack, np.dstack, np.column_stack, np.block,
)  # fmt: skip

# Every positional argument is an array and stays one of its own.
SEPARATE: tuple[Callable[..., Any], ...] = (
    np.atleast_1d,
    np.atleast_2d,
    np.atleast_3d,
    np.broadcast_arrays,
    np.meshgrid,
)

# Zeros are filled in around the elements.
FILLING: tuple[Callable[..., Any], ...] = (np.tril, np.triu, np.diag, np.diagflat, np.trim_zeros)


def _wrap_all(result: Any, scope: Scope) -> Any:
    if isinstance(result, list | tuple):
        return type(result)([_wrap_all(part, scope) for part in result])
    return wrap(result, scope)


def _moving(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*args: Any, **keywords: Any) -> Any:
        array, *others = args or (keywords.pop(next(iter(keywords))),)
        scope = scope_of(array, *others)
        return _wrap_all(function(nodes_of(array, scope), *map(plain_index, others), **keywords), scope)

    return handler


def _joining(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(arrays: Any, *others: Any, **keywords: Any) -> Any:
        keywords.pop("dtype", None)
        keywords.pop("casting", None)
        out = keywords.pop("out", None)
        scope = scope_of(arrays)
        if function is np.block:
            return wrap(np.block(_nested(arrays, scope)), scope)
        parts = homogeneous(scope.graph, [nodes_of(part, scope) for part in arrays])
        made = wrap(function(parts, *others, **keywords), scope)
        if out is None:
            return made
        out[...] = made
        return out

    return handler


def _nested(arrays: Any, scope: Scope) -> Any:
    return [_nested(part, scope) for part in arrays] if isinstance(arrays, list) else nodes_of(arrays, scope)


def _separate(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(*arrays: Any, **keywords: Any) -> Any:
        scope = scope_of(arrays)
        return _wrap_all(function(*[nodes_of(part, scope) for part in arrays], **keywords), scope)

    return handler


def filled(scope: Scope, function: Callable[..., Any], nodes: Nodes, *others: Any, **keywords: Any) -> Nodes:
    """Return function(nodes, ...) with the zeros that it fills in replaced by the number 0."""
    moved = function(nodes + 1, *others, **keywords)
    return np.where(moved == 0, scope.graph.number(0.0), moved - 1)


def _filling(function: Callable[..., Any]) -> Callable[..., Any]:
    def handler(array: Any, *others: Any, **keywords: Any) -> Any:
        scope = scope_of(array)
        return wrap(filled(scope, function, nodes_of(array, scope), *others, **keywords), scope)

    return handler


for _function in MOVING:
    implements(_function)(_moving(_function))
for _function in JOINING:
    implements(_function)(_joining(_function))
for _function in SEPARATE:
    implements(_function)(_separate(_function))
for _function in FILLING:
    implements(_function)(_filling(_function))


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices for which the condition (by its values) holds."""
    scope = scope_of(condition, a)
    return wrap(np.compress(plain_index(condition), nodes_of(a, scope), axis), scope)


@implements(np.apply_along_axis)
def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **keywords: Any) -> Any:
    """The function applied to each 1-D slice; the axes of its result take the place of the axis."""
    axis %= arr.ndim
    rows = np.moveaxis(arr, axis, -1)
    outer = rows.shape[:-1]
    made = np.stack([func1d(rows[index], *args, **keywords) for index in np.ndindex(*outer)])
    made = np.reshape(made, outer + made.shape[1:])
    inner = made.ndim - len(outer)
    return np.moveaxis(made, range(len(outer), made.ndim), range(axis, axis + inner))


@implements(np.triu_indices_from)
def triu_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the upper triangle: a matter of the shape."""
    return np.triu_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.tril_indices_from)
def tril_indices_from(arr: Any, k: int = 0) -> Any:
    """The indices of the lower triangle: a matter of the shape."""
    return np.tril_indices(arr.shape[-2], k, arr.shape[-1])


@implements(np.append)
def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """The array with values joined at the end (both flattened when axis is None)."""
    return np.concatenate([np.ravel(arr), np.ravel(values)] if axis is None else [arr, values], axis or 0)


@implements(np.insert)
def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """The array with values inserted before the given indices."""
    scope = scope_of(arr, values)
    return wrap(np.insert(nodes_of(arr, scope), obj, nodes_of(values, scope), axis), scope)


_PAD_MOVES = frozenset({"edge", "reflect", "symmetric", "wrap"})


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """The array with a border: constant, or made of its own elements (edge, reflect, symmetric, wrap)."""
    border = keywords.pop("constant_values", 0)
    scope = scope_of(array, border)
    nodes = nodes_of(array, scope)
    if mode in _PAD_MOVES:
        return wrap(np.pad(nodes, pad_width, mode=mode, **keywords), scope)
    if mode != "constant":
        refuse_function(f"np.pad with mode={mode!r}", "it computes new values for the border")
    return wrap(np.pad(nodes, pad_width, constant_values=nodes_of(border, scope)), scope)


@implements(np.shape)
def shape(a: Any) -> tuple[int, ...]:
    """The shape."""
    return nodes_of(a, scope_of(a)).shape


@implements(np.ndim)
def ndim(a: Any) -> int:
    """The number of axes."""
    return nodes_of(a, scope_of(a)).ndim


@implements(np.size)
def size(a: Any, axis: int | None = None) -> int:
    """The number of elements, or the length of an axis."""
    return int(np.size(nodes_of(a, scope_of(a)), axis))


def _like(value: float) -> Callable[..., Any]:
    def handler(
        prototype: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **_: Any
    ) -> Any:
        return full_like(prototype, value, dtype=dtype, shape=shape)

    return handler


implements(np.zeros_like, np.empty_like)(_like(0.0))
implements(np.ones_like)(_like(1.0))


@implements(np.full_like)
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None, **_: Any
) -> Any:
    """A traced array full of one value; it can receive traced values. `dtype` bool or int gives plain constants."""
    scope = scope_of(a, fill_value)
    fill = nodes_of(fill_value if dtype is None else _cast(fill_value, dtype), scope)
    wanted = nodes_of(a, scope).shape if shape is None else shape
    return Array(np.array(np.broadcast_to(fill, wanted)), scope)


def _cast(value: Any, dtype: Any) -> Any:
    return np.asarray(value).astype(dtype) if isinstance(value, int | float | np.generic) else value


@implements(np.copyto)
def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write src into the traced array dst, where the mask holds."""
    dst[...] = src if where is True else np.where(where, src, dst)


@implements(np.fill_diagonal)
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write val on the diagonal of a traced array, in place."""
    scope = _target_scope(a, val)
    np.fill_diagonal(a.nodes, numbers(scope.graph, nodes_of(val, scope)), wrap)
    a.scope = scope


@implements(np.put)
def put(a: Any, ind: Any, v: Any, mode: Any = "raise") -> None:
    """Write v at flat positions, in place."""
    scope = _target_scope(a, v)
    np.put(a.nodes, plain_index(ind), numbers(scope.graph, nodes_of(v, scope)), mode)
    a.scope = scope


def _target_scope(target: Any, value: Any) -> Scope:
    if not isinstance(target, Traced):
        raise store_error()
    return scope_of(target, value)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with optional ends."""
    flat = np.ravel(ary)
    parts = [to_begin, flat[1:] - flat[:-1], to_end]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])
