"""Sampled curves on traced values: differences, quadrature, interpolation, grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.numpy.registry import implements


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Differences of neighbours, n times."""
    if n < 0 or np.ndim(a) == 0:
        raise ValueError("np.diff takes an array with an axis, and n >= 0")
    ends = [np._NoValue if end is np._NoValue else _as_edge(end, a, axis) for end in (prepend, append)]
    parts = [part for part in (ends[0], a, ends[1]) if part is not np._NoValue]
    a = np.concatenate(parts, axis=axis) if len(parts) > 1 else traced(a)
    for _ in range(n):
        rows = np.moveaxis(a, axis, -1)
        subtract = np.not_equal if a.dtype == bool else np.subtract
        a = np.moveaxis(subtract(rows[..., 1:], rows[..., :-1]), -1, axis)
    return a


def _as_edge(end: Any, a: Any, axis: int) -> Any:
    if np.ndim(end):
        return end
    shape = list(np.shape(a))
    shape[axis] = 1
    return np.broadcast_to(traced(end) if is_traced(end) else np.asarray(end), shape)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with optional ends."""
    flat = np.ravel(ary)
    parts = [to_begin, flat[1:] - flat[:-1], to_end]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral by the trapezoidal rule."""
    rows = np.moveaxis(together(y, 0.0 if x is None else x)[0], axis, -1)
    widths = dx
    if x is not None:
        widths = np.diff(x) if np.ndim(x) == 1 else np.diff(np.moveaxis(x, axis, -1))
    return np.sum(widths * (rows[..., 1:] + rows[..., :-1]) / 2.0, axis=-1)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences of second order, one-sided at the edges; a spacing or coordinates for each axis."""
    f = traced(f)
    axes = range(f.ndim) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = list(varargs) or [1.0]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    made = []
    for spacing, k in zip(spacings, axes, strict=True):
        rows = np.moveaxis(f, k, 0)
        if len(rows) < edge_order + 1:
            raise ValueError("np.gradient needs at least edge_order + 1 elements along each axis")
        slopes = _slopes(rows, *_neighbour_distances(spacing, len(rows), f.ndim), edge_order)
        made.append(np.moveaxis(slopes, 0, k))
    return made[0] if len(made) == 1 else tuple(made)


def _neighbour_distances(spacing: Any, count: int, rank: int) -> tuple[Any, bool]:
    """Return the distances of neighbours along the first axis of an array, and whether all are equal."""
    if np.ndim(spacing) == 0:
        return np.broadcast_to(traced(spacing) if is_traced(spacing) else spacing, count - 1), True
    distances = np.diff(spacing)
    if len(distances) != count - 1:
        raise ValueError("the coordinates and the axis differ in length")
    uniform = not is_traced(distances) and bool((distances == distances[0]).all())
    return np.reshape(distances, (-1,) + (1,) * (rank - 1)), uniform


def _slopes(f: Any, h: Any, uniform: bool, edge_order: int) -> Any:
    """Return the derivative along the first axis, by the formulas that np.gradient documents."""
    left, right = h[:-1], h[1:]
    if uniform:
        inner = (f[2:] - f[:-2]) / (2.0 * h[0])
    else:
        inner = -right / (left * (left + right)) * f[:-2]
        inner = inner + (right - left) / (left * right) * f[1:-1] + left / (right * (left + right)) * f[2:]
    if edge_order == 1:
        first, last = (f[1:2] - f[:1]) / h[0], (f[-1:] - f[-2:-1]) / h[-1]
    elif uniform:
        first = (-1.5 * f[:1] + 2.0 * f[1:2] - 0.5 * f[2:3]) / h[0]
        last = (0.5 * f[-3:-2] - 2.0 * f[-2:-1] + 1.5 * f[-1:]) / h[0]
    else:
        first, last = _edge(f[:3], h[0], h[1]), _edge(f[:-4:-1], -h[-1], -h[-2])
    return np.concatenate([first, inner, last])


def _edge(f: Any, near: Any, far: Any) -> Any:
    """Return the derivative at the first of three points, from the parabola through them."""
    both = near + far
    return -(near + both) / (near * both) * f[:1] + both / (near * far) * f[1:2] - near / (far * both) * f[2:]


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """The array with jumps of more than half a period taken out."""
    rows = np.moveaxis(traced(p), axis, -1)
    steps, half = np.diff(rows), period / 2
    reduced = np.mod(steps + half, period) - half
    reduced = np.where((reduced == -half) & (steps > 0), half, reduced)
    correction = np.where(np.abs(steps) < (half if discont is None else discont), 0, reduced - steps)
    made = np.concatenate([rows[..., :1], rows[..., 1:] + np.cumsum(correction, axis=-1)], axis=-1)
    return np.moveaxis(made, -1, axis)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation, as selects: all of x, xp (ascending, not checked) and fp may be traced."""
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    x, points, values = together(x, xp, fp)
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise ValueError("np.interp takes vectors xp and fp of one length, not 0")
    made = values[0] + 0 * x  # NaN stays NaN
    for k in range(len(points) - 1):
        slope = (values[k + 1] - values[k]) / (points[k + 1] - points[k])
        piece = slope * (x - points[k]) + values[k]
        made = np.where(x >= points[k], piece, made) if k else piece
    made = np.where(x >= points[-1], values[-1], made)
    made = np.where(x < points[0], values[0] if left is None else left, made)
    return made if right is None else np.where(x > points[-1], right, made)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of np.interp with the points moved into one period, sorted by value, and extended."""
    x, xp = np.mod(x, period), np.mod(xp, period)
    order = np.argsort(xp)
    xp, fp = xp[order], np.take(fp, order)
    points = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, points, np.concatenate([fp[-1:], fp, fp[:1]])


@implements(np.linspace)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, **_: Any,
) -> Any:  # fmt: skip
    """Evenly spaced numbers between two traced ends."""
    first, last = np.broadcast_arrays(*together(start, stop))
    count = num - 1 if endpoint else num
    step = (last - first) / count if count else last - first
    rows = [first + k * step if k else first for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = last
    made = np.moveaxis(np.stack(rows) if rows else first[None][:0], 0, axis)
    return (made, step if count else np.nan) if retstep else made


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers spaced evenly on a logarithmic scale: powers of a base."""
    if np.ndim(base):
        rank = len(np.broadcast_shapes(*map(np.shape, (start, stop, base))))
        start, stop, base = (np.reshape(v, (1,) * (rank - np.ndim(v)) + np.shape(v)) for v in (start, stop, base))
        base = np.expand_dims(base, axis)
    return np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers in geometric progression between two traced ends."""
    ratio, count = np.divide(stop, start), num - 1 if endpoint else num
    rows = [start * ratio ** (k / count) if k else start + 0 * ratio for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = stop + 0 * ratio
    return np.moveaxis(np.stack(rows), 0, axis)
