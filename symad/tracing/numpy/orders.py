"""Sorting and its relatives: argsort, searchsorted, quantiles, elements at computed places.

Where values are known, as inside a derivative at a point, an order is what they say, and moves elements only: that of
argsort is NumPy's own, which may not be stable. Where they are not known it is computed with them
(`symad.tracing.values.computed_places`), and the elements are gathered. It is stable then, whatever `kind` is: equal
elements, 0.0 and -0.0 among them, stay as they stand, NaN comes last. An order is piecewise constant, so a derivative
passes through the elements that it moves, and not through the order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

import symad.tracing.values.computed_places as places
from symad.tracing.calling.handlers import is_caught
from symad.tracing.numpy.reduce import delivered, is_traced, keeps_axes, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import known, values
from symad.tracing.numpy.shape import moving
from symad.tracing.values.array import wrap
from symad.tracing.values.layouts import in_order_of
from symad.tracing.values.node_operands import as_integers, nodes_of
from symad.tracing.values.traced import refuse_function
from symad.tracing.values.whole_numbers import are_whole

MEDIAN = "median"  # the method of medians, which are means of the two elements in the middle


@implements(np.argsort)
def argsort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The places of the elements in the order of their values; in a kernel equal ones as they stand."""
    plain = known(a)
    if plain is not None:
        return np.argsort(plain, axis=axis, kind=kind, order=order, stable=stable)
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    a, axis = _along(traced(a), axis)
    rows = np.moveaxis(a.nodes, axis, -1)
    order_of = places.ordered(a.scope.graph, rows.reshape(-1, rows.shape[-1]), "np.argsort").reshape(rows.shape)
    return as_integers(wrap(np.moveaxis(order_of, -1, axis), a.scope))


def _place(function: Callable[..., Any]) -> None:
    """Register the place of the first of the largest or smallest elements; NaN is beyond any."""

    def handler(a: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Any:
        plain = known(a)
        if plain is not None:
            return function(plain, axis=axis, out=out, keepdims=keeps_axes(keepdims))
        return as_integers(_extreme(a, axis, out, keepdims, smallest=function is np.argmin))

    implements(function)(handler)


_place(np.argmax)
_place(np.argmin)


def _along(a: Any, axis: int | None) -> tuple[Any, int]:
    """Return an array with the axis that it is gone along; all of it without one, as of an element of no axis."""
    if axis is None:
        return np.ravel(a), 0
    a = a if a.ndim else np.ravel(a)
    return a, normalize_axis_index(axis, a.ndim)


def _extreme(a: Any, axis: Any, out: Any, keepdims: Any, *, smallest: bool) -> Any:
    """Return places of extrema: the first in order, or the one behind all that are less than the last."""
    a = traced(a)
    shape = tuple(1 if axis is None or k == normalize_axis_index(axis, a.ndim) else n for k, n in enumerate(a.shape))
    a, axis = _along(a, axis)
    if not a.shape[axis]:
        raise ValueError(f"attempt to get arg{'min' if smallest else 'max'} of an empty sequence")
    a = np.moveaxis(a, axis, -1)
    order = argsort(a, kind="stable")
    ranked = np.take_along_axis(a, order, -1)
    last = ranked[..., -1:]
    before = np.where(np.isnan(last), ~np.isnan(ranked), ranked < last)
    place = np.floor(np.sum(np.where(before, 1.0, 0.0), axis=-1, keepdims=True))
    if smallest:
        place = np.floor(np.where(np.isnan(last), place, 0.0))
    extremes = np.take_along_axis(order, place, -1)
    return delivered(np.reshape(extremes, shape) if keeps_axes(keepdims) else extremes[..., 0][()], out)


@implements(np.sort)
def sort(a: Any, axis: int | None = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """The elements in the order of their values."""
    a = traced(a)
    a = np.ravel(a) if axis is None else a
    axis = -1 if axis is None else axis
    ordered: Any = np.take_along_axis(a, argsort(a, axis=axis, kind="stable", order=order), axis)
    return wrap(in_order_of(ordered.nodes, a.nodes), ordered.scope) if is_traced(ordered) else ordered


# with the kth in its sorted place; here all of them are
implements(np.argpartition)(lambda a, kth, axis=-1, kind=None, order=None: argsort(a, axis, "stable", order))
implements(np.partition)(lambda a, kth, axis=-1, kind=None, order=None: sort(a, axis))


@implements(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Any:
    """The places of elements in the order of several keys, the last one first."""
    plain = known(keys)
    if plain is not None:
        return np.lexsort(plain, axis=axis)
    listed = [traced(key) for key in keys]
    if not listed:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if not listed[0].ndim:
        return np.zeros((), dtype=int)
    order = argsort(listed[0], axis, kind="stable")
    for key in listed[1:]:
        order = np.take_along_axis(order, argsort(np.take_along_axis(key, order, axis), axis, kind="stable"), axis)
    return order


@implements(np.searchsorted)
def searchsorted(a: Any, v: Any, side: Any = "left", sorter: Any = None) -> Any:
    """Where elements are inserted into a sorted array: before equal ones, or behind them (side="right")."""
    plain = known([a, v, sorter])
    if plain is not None:
        return np.searchsorted(plain[0], plain[1], side=side, sorter=plain[2])
    if side not in ("left", "right"):
        raise ValueError(f"side must be 'left' or 'right' (got {side!r})")
    a, v = together(a, v)
    if a.ndim != 1:
        raise ValueError(f"object {'too deep' if a.ndim else 'of too small depth'} for desired array")
    a = a if sorter is None else np.take(a, sorter)
    others = nodes_of(v, a.scope)
    insertions = places.inserted(a.scope.graph, a.nodes, others.ravel(), side == "right", "np.searchsorted")
    return as_integers(wrap(insertions.reshape(others.shape), a.scope))


@implements(np.digitize)
def digitize(x: Any, bins: Any, right: Any = False) -> Any:
    """The numbers of the bins that elements are in; bins are known, and ascend or descend."""
    edges = values(bins)
    plain = known(x)
    if plain is not None:
        return np.digitize(plain, edges, right=right)
    np.digitize(0.0, edges)  # which says what is wrong with them
    side = "left" if right else "right"
    if np.size(edges) and edges[0] > edges[-1]:
        return len(edges) - searchsorted(edges[::-1], x, side)
    return searchsorted(edges, x, side)


_TAKE, _TAKE_ALONG_AXIS = moving(np.take), moving(np.take_along_axis)  # where the places are known


@implements(np.take)
def take(a: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
    """The elements at places; of an axis, or of the flattened array."""
    if known(indices) is not None:
        return _TAKE(a, indices, axis=axis, out=out, mode=mode)
    a, indices = together(a, indices)
    a, axis = _along(a, axis)
    size = a.shape[axis]
    if mode != "raise":
        indices = np.mod(indices, size) if mode == "wrap" else np.clip(indices, 0, size - 1)
    nodes = _whole("np.take", indices)
    if mode == "raise" and is_caught():
        places.decide_outside(a.scope, [nodes], (size,))
    return delivered(wrap(places.along(a.scope.graph, a.nodes, nodes, axis, "np.take"), a.scope), out)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    """The elements at places of their own in each row along an axis."""
    if known(indices) is not None:
        return _TAKE_ALONG_AXIS(arr, indices, axis)
    arr, indices = together(arr, indices)
    arr, axis = (np.ravel(arr), 0) if axis is None else (arr, normalize_axis_index(axis, arr.ndim))
    if arr.ndim != indices.ndim:
        raise ValueError("`indices` and `arr` must have the same number of dimensions")
    nodes, at = (np.moveaxis(part, axis, -1) for part in (arr.nodes, _whole("np.take_along_axis", indices)))
    shape = np.broadcast_shapes(nodes.shape[:-1], at.shape[:-1])
    rows, at = (np.broadcast_to(part, (*shape, part.shape[-1])) for part in (nodes, at))
    elements = places.gathered(
        arr.scope.graph, rows.reshape(-1, rows.shape[-1]), at.reshape(-1, at.shape[-1]), "np.take_along_axis"
    )
    return wrap(np.moveaxis(elements.reshape(at.shape), -1, axis), arr.scope)


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: Any = "C") -> Any:
    """The places along axes of a place in the flattened array."""
    plain = known(indices)
    if plain is not None:
        places: Any = np.asarray(plain).astype(int)
        return np.unravel_index(places, shape, order=order)
    lengths = list(shape) if np.ndim(shape) else [shape]
    rest, places_of = indices, []
    for length in lengths[::-1] if order == "C" else lengths:
        places_of.append(np.mod(rest, length))
        rest = np.floor(rest / length)
    return tuple(places_of[::-1] if order == "C" else places_of)


def _whole(name: str, indices: Any) -> Any:
    """Return the nodes of places."""
    if not is_traced(indices) or not are_whole(indices.scope.graph, nodes_of(indices, indices.scope)):
        refuse_function(name, "its indices are not whole numbers by how they were made", "round them, by np.floor(...)")
    return nodes_of(indices, indices.scope)


def merged_axes(a: Any, axis: Any) -> tuple[Any, list[int]]:
    """Return an array with the given axes merged into a last one, and its shape with those axes of length 1."""
    a = traced(a)
    axes = normalize_axis_tuple(range(a.ndim) if axis is None else axis, a.ndim)
    kept = [k for k in range(a.ndim) if k not in axes]
    sizes = [*(a.shape[k] for k in kept), math.prod(a.shape[k] for k in axes)]
    rows = np.reshape(np.transpose(a, [*kept, *axes]), sizes)
    return rows, [1 if k in axes else a.shape[k] for k in range(a.ndim)]


def _quantiles(rows: Any, q: Any, method: Any) -> Any:
    """Return the quantiles of the last axis, in the shape of q and the rest; NaN for rows that hold NaN."""
    ordered = sort(rows)
    places_by: Any = "linear" if method == MEDIAN else method
    where = np.quantile(np.arange(rows.shape[-1], dtype=float), q, method=places_by)  # between which two, and how far
    low = np.floor(where).astype(int)
    high = np.minimum(low + 1, rows.shape[-1] - 1)
    part = np.reshape(where - low, np.shape(q) + (1,) * (rows.ndim - 1))
    below, above = (np.moveaxis(ordered[..., k], range(rows.ndim - 1), range(-rows.ndim + 1, 0)) for k in (low, high))
    quantile, last = _between(below, above, part, method), ordered[..., -1]
    none = np.isnan(last)
    decided = known(none)
    return np.where(none if decided is None else decided, last, quantile)


def _between(below: Any, above: Any, part: Any, method: Any) -> Any:
    """Return what is so far between two numbers, as NumPy has it: from the nearer end; the mean for a median."""
    exact = below + 0.0  # 0.0 for -0.0
    if method == MEDIAN:
        return np.where(part == 0, exact, (below + above) / 2)
    step = above - below
    return np.where(part == 0, exact, np.where(part >= 0.5, above - step * (1 - part), below + step * part))


def _quantiles_of_numbers(rows: Any, q: Any, method: Any) -> Any:
    """Return the same with NaN left out of each row that holds a number."""
    flat = np.reshape(rows, (-1, rows.shape[-1]))
    plain = known(np.isnan(flat))
    if plain is None:
        quantiles = _quantiles_of_some(flat, q, method)
    else:
        kept = [row[mask] if mask.any() else row for row, mask in zip(flat, ~plain, strict=True)]
        quantiles = np.stack([_quantiles(row, q, method) for row in kept], axis=-1)
    return np.reshape(quantiles, np.shape(q) + rows.shape[:-1])


def _quantiles_of_some(rows: Any, q: Any, method: Any) -> Any:
    """Return the same where it is not known which are NaN: these stand last, and the others are counted."""
    if method not in ("linear", MEDIAN):
        refuse_function(
            f"np.nanquantile with method={method!r}", "which elements are NaN is not known", "call it on numbers"
        )
    ordered = sort(rows)
    last = np.maximum(np.sum(np.where(np.isnan(rows), 0.0, 1.0), axis=-1) - 1, 0)
    quantiles = []
    for level in np.ravel(q).tolist():
        where = level * last
        low = np.floor(where)
        ends = np.stack([low, np.floor(np.minimum(low + 1, last))], axis=-1)
        neighbours = np.take_along_axis(ordered, ends, -1)
        quantiles.append(_between(neighbours[..., 0], neighbours[..., 1], where - low, method))
    return np.stack(quantiles)


def _quantile(quantiles: Callable[[Any, Any, Any], Any], scale: float) -> Callable[..., Any]:
    def handler(
        a: Any, q: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, method: Any = "linear",
        keepdims: Any = False, *, weights: Any = None,
    ) -> Any:  # fmt: skip
        if weights is not None:
            refuse_function("np.quantile with weights", "only unweighted quantiles are traced")
        q = np.asarray(q, dtype=float) / scale
        rows, shape = merged_axes(a, axis)
        if not rows.shape[-1] and (method == MEDIAN or quantiles is _quantiles_of_numbers):  # NaN; NumPy warns
            value = np.broadcast_to(np.sum(rows, axis=-1) * np.nan, (*q.shape, *rows.shape[:-1]))
        else:
            value = quantiles(rows, q, method)
        return delivered(np.reshape(value, (*q.shape, *shape)) if keeps_axes(keepdims) else value, out)

    return handler


def _median(quantiles: Callable[[Any, Any, Any], Any]) -> Callable[..., Any]:
    handler = _quantile(quantiles, 1.0)

    def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Any:
        return handler(a, 0.5, axis, out, method=MEDIAN, keepdims=keepdims)

    return median


implements(np.quantile)(_quantile(_quantiles, 1.0))
implements(np.percentile)(_quantile(_quantiles, 100.0))
implements(np.nanquantile)(_quantile(_quantiles_of_numbers, 1.0))
implements(np.nanpercentile)(_quantile(_quantiles_of_numbers, 100.0))
implements(np.median)(_median(_quantiles))
implements(np.nanmedian)(_median(_quantiles_of_numbers))
