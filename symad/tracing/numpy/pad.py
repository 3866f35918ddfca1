"""np.pad: NumPy moves the elements, and borders of new values are made axis by axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.node_arrays import like
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.traced import refuse_function

_MOVES = frozenset({"edge", "reflect", "symmetric", "wrap"})
_STATISTICS: dict[str, Callable[..., Any]] = {
    "maximum": np.max,
    "minimum": np.min,
    "mean": np.mean,
    "median": np.median,
}


@implements(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **keywords: Any) -> Any:
    """The array with a border: constant, of its own elements, of their statistics, or a ramp to a value."""
    array = traced(array)
    if mode == "constant":
        border = keywords.get("constant_values", 0)
        scope = scope_of(array, border)
        nodes = nodes_of(array, scope)
        border = like(scope.graph, nodes, nodes_of(border, scope))
        return wrap(np.pad(nodes, pad_width, constant_values=border), scope)
    if mode in _MOVES:
        if keywords.pop("reflect_type", "even") == "odd":
            return _odd(array, pad_width, mode)
        return Array(np.pad(array.nodes, pad_width, mode=mode, **keywords), array.scope)
    if mode != "linear_ramp" and mode not in _STATISTICS:
        refuse_function(f"np.pad with mode={mode!r}", "its border has no traced form", "use one of NumPy's other modes")
    widths = _pairs(pad_width, array.ndim)
    if mode == "linear_ramp":
        ends = _pairs(keywords.get("end_values", 0), array.ndim)
        return _bordered(array, widths, lambda part, axis, side, width: _ramp(part, axis, side, width, ends))
    lengths = _pairs(keywords.get("stat_length"), array.ndim)
    return _bordered(array, widths, lambda *border: _statistic(_STATISTICS[mode], lengths, *border))


def _pairs(value: Any, rank: int) -> list[Any]:
    """Return (before, after) for each axis: of one value, of one pair, or of a pair for each axis."""
    if isinstance(value, dict):
        of_axes: list[Any] = [value.get(k, value.get(k - rank, 0)) for k in range(rank)]
        return [np.broadcast_to(pair, 2).tolist() for pair in of_axes]
    widths = np.empty((rank, 2), dtype=object)
    widths[...] = np.array(value, dtype=object) if np.ndim(value) else value
    pairs: list[Any] = widths.tolist()
    return pairs


def _bordered(array: Any, widths: list[Any], border: Callable[[Any, int, int, int], Any]) -> Any:
    """Join border(array, axis, side, width) to both sides of every axis in turn."""
    for axis, pair in enumerate(widths):
        parts = [border(array, axis, side, width) for side, width in enumerate(pair) if width]
        parts.insert(1 if pair[0] else 0, array)
        array = np.concatenate(parts, axis)
    return array


def _slice(array: Any, axis: int, part: slice) -> Any:
    return array[(slice(None),) * axis + (part,)]


def _ramp(array: Any, axis: int, side: int, width: int, ends: list[Any]) -> Any:
    """Return the line from the end value to the edge, without the edge."""
    edge = np.take(array, -1 if side else 0, axis)
    ramp = np.linspace(ends[axis][side] + 0 * edge, edge, width, endpoint=False, axis=axis)
    return np.flip(ramp, axis) if side else ramp


def _statistic(function: Callable[..., Any], lengths: list[Any], array: Any, axis: int, side: int, width: int) -> Any:
    """Return a statistic of the elements next to the border, repeated."""
    size = array.shape[axis]
    length = size if lengths[axis][side] is None else min(lengths[axis][side], size)
    chunk = _slice(array, axis, slice(size - length, size) if side else slice(0, length))
    return np.repeat(function(chunk, axis=axis, keepdims=True), width, axis)


def _odd(array: Any, pad_width: Any, mode: str) -> Any:
    """Return the reflection through the edge: twice the edge less the even reflection."""
    if mode not in ("reflect", "symmetric"):
        refuse_function(f"np.pad with mode={mode!r} and reflect_type", "that mode has no reflection")

    def border(part: Any, axis: int, side: int, width: int) -> Any:
        if width > part.shape[axis] - (mode == "reflect"):
            refuse_function("np.pad with an odd reflection wider than the array", "it is reflected more than once")
        shape = [(0, 0)] * part.ndim
        shape[axis] = (0, width) if side else (width, 0)
        mirrored = _slice(pad(part, shape, mode), axis, slice(-width, None) if side else slice(0, width))
        return 2 * _slice(part, axis, slice(-1, None) if side else slice(0, 1)) - mirrored

    return _bordered(array, _pairs(pad_width, array.ndim), border)
