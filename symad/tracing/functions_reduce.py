"""NumPy's reductions and running reductions on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.node_arrays as node_arrays
from symad.tracing.array import wrap
from symad.tracing.operands import nodes_of, scope_of
from symad.tracing.registry import available, implements
from symad.tracing.traced import Traced


def traced(value: Any) -> Any:
    """Return a list, number or object array as a traced value; traced values unchanged."""
    if isinstance(value, Traced):
        return value
    scope = scope_of(value)
    return wrap(nodes_of(value, scope), scope)


def _reduction(ufunc: np.ufunc) -> Callable[..., Any]:
    def handler(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any
    ) -> Any:
        given = {name: value for name, value in more.items() if value is not np._NoValue}
        if out is not None:
            given["out"] = out
        return ufunc.reduce(traced(a), axis=axis, keepdims=keepdims is True, **given)

    return handler


def _extremum(ufunc: np.ufunc) -> Callable[..., Any]:
    reduction = _reduction(ufunc)

    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        return reduction(a, axis=axis, out=out, keepdims=keepdims, **more)

    return handler


implements(np.sum)(_reduction(np.add))
implements(np.prod)(_reduction(np.multiply))
implements(np.max, np.amax)(_extremum(np.maximum))
implements(np.min, np.amin)(_extremum(np.minimum))
implements(np.any)(_extremum(np.logical_or))
implements(np.all)(_extremum(np.logical_and))
implements(np.nanmax)(_extremum(np.maximum))
implements(np.nanmin)(_extremum(np.minimum))


def _without_nan(reduction: Callable[..., Any], neutral: float) -> Callable[..., Any]:
    def handler(a: Any, *args: Any, **keywords: Any) -> Any:
        return reduction(np.where(np.isnan(a), neutral, a), *args, **keywords)

    return handler


implements(np.nansum)(_without_nan(np.sum, 0.0))
implements(np.nanprod)(_without_nan(np.prod, 1.0))
implements(np.nancumsum)(_without_nan(np.cumsum, 0.0))
implements(np.nancumprod)(_without_nan(np.cumprod, 1.0))


@implements(np.nanmean)
def nanmean(a: Any, axis: Any = None, **keywords: Any) -> Any:
    """The mean of the elements that are not NaN."""
    return np.nansum(a, axis=axis, **keywords) / np.sum(~np.isnan(a), axis=axis, **keywords)


@implements(np.cov)
def cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None) -> Any:
    """The covariance matrix of the rows (or columns) of m."""
    rows = np.atleast_2d(traced(m)) if y is None else np.concatenate([np.atleast_2d(m), np.atleast_2d(y)])
    rows = rows.T if not rowvar and np.ndim(m) > 1 else rows
    deviation = rows - np.mean(rows, axis=1, keepdims=True)
    made = (deviation @ deviation.T) / (rows.shape[1] - (int(not bias) if ddof is None else ddof))
    return np.squeeze(made)


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    """The matrix of correlation coefficients."""
    made = np.atleast_2d(cov(x, y, rowvar))
    scale = np.sqrt(np.diagonal(made))
    return np.squeeze(made / scale[:, None] / scale[None, :])


def _count(shape: tuple[int, ...], axis: Any) -> int:
    count = 1
    for k in node_arrays.normalized_axes(axis, len(shape)):
        count *= shape[k]
    return count


@implements(np.mean)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
    """The sum divided by the number of elements (those under `where=`)."""
    a = traced(a)
    mask = more.get("where", np._NoValue)
    total = np.sum(a, axis=axis, keepdims=keepdims, where=mask)
    if mask is np._NoValue:
        count: Any = _count(a.shape, axis)
    else:
        count = np.sum(np.broadcast_to(mask, a.shape), axis=axis, keepdims=keepdims is True)
    return np.divide(total, count, out=out) if out is not None else total / count


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The weighted mean: sum(a * weights) / sum(weights)."""
    a = np.asarray(a) if not isinstance(a, Traced) else a
    if weights is None:
        weights = np.ones(a.shape)
    elif np.shape(weights) != a.shape:
        weights = np.expand_dims(weights, [k for k in range(a.ndim) if k != axis % a.ndim])
        weights = np.broadcast_to(weights, a.shape)
    total = np.sum(weights, axis=axis, keepdims=keepdims is True)
    result = np.sum(a * weights, axis=axis, keepdims=keepdims is True) / total
    return (result, total + result * 0) if returned else result


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any
) -> Any:
    """sum((a - mean)**2) / (n - ddof)."""
    a = traced(a)
    ddof = more.get("correction", ddof) if more.get("correction", np._NoValue) is not np._NoValue else ddof
    deviation = a - np.mean(a, axis=axis, keepdims=True)
    total = np.sum(np.square(deviation), axis=axis, keepdims=keepdims)
    return np.divide(total, _count(a.shape, axis) - ddof, **({} if out is None else {"out": out}))


@implements(np.std)
def std(a: Any, *args: Any, **keywords: Any) -> Any:
    """The square root of the variance."""
    return np.sqrt(np.var(traced(a), *args, **keywords))


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    """Largest minus smallest."""
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _running(ufunc: np.ufunc) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        a = traced(a)
        a = np.ravel(a) if axis is None else a
        return ufunc.accumulate(a, axis=0 if axis is None else axis, **({} if out is None else {"out": out}))

    return handler


implements(np.cumsum)(_running(np.add))
implements(np.cumprod)(_running(np.multiply))


def _cumulative(ufunc: np.ufunc, start: float) -> Callable[..., Any]:
    def handler(
        x: Any, /, *, axis: Any = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Any:
        x = traced(x)
        axis = 0 if axis is None else axis
        made = ufunc.accumulate(x, axis=axis)
        return np.concatenate([np.full_like(np.take(x, [0], axis), start), made], axis) if include_initial else made

    return handler


implements(*available("cumulative_sum"))(_cumulative(np.add, 0.0))
implements(*available("cumulative_prod"))(_cumulative(np.multiply, 1.0))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements differ from zero, as a traced number (piecewise constant)."""
    return np.sum(traced(a) != 0, axis=axis, keepdims=keepdims)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum along the diagonal."""
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1)


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Differences of neighbours, n times."""
    ends = [np._NoValue if end is np._NoValue else _as_edge(end, a, axis) for end in (prepend, append)]
    parts = [part for part in (ends[0], a, ends[1]) if part is not np._NoValue]
    a = np.concatenate(parts, axis=axis) if len(parts) > 1 else traced(a)
    for _ in range(n):
        rows = np.moveaxis(a, axis, -1)
        a = np.moveaxis(rows[..., 1:] - rows[..., :-1], -1, axis)
    return a


def _as_edge(end: Any, a: Any, axis: int) -> Any:
    if np.ndim(end):
        return end
    shape = list(np.shape(a))
    shape[axis] = 1
    return np.broadcast_to(traced(end) if isinstance(end, Traced) else np.asarray(end), shape)


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral by the trapezoidal rule."""
    rows = np.moveaxis(traced(y) if isinstance(y, Traced | list | tuple) else y, axis, -1)
    widths = dx
    if x is not None:
        widths = np.diff(x) if np.ndim(x) == 1 else np.diff(np.moveaxis(x, axis, -1))
    return np.sum(widths * (rows[..., 1:] + rows[..., :-1]) / 2.0, axis=-1)


@implements(np.gradient)
def gradient(f: Any, *spacing: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences, one-sided at the edges (uniform spacing, first-order edges)."""
    f = traced(f)
    axes = node_arrays.normalized_axes(axis, f.ndim)
    steps = list(spacing) or [1.0]
    steps = steps * len(axes) if len(steps) == 1 else steps
    if edge_order != 1 or any(np.ndim(step) for step in steps):
        raise NotImplementedError("np.gradient of a traced array takes uniform spacing and edge_order=1")
    made = [_central(f, step, k) for step, k in zip(steps, axes, strict=True)]
    return made[0] if len(made) == 1 else tuple(made)


def _central(f: Any, step: Any, axis: int) -> Any:
    rows = np.moveaxis(f, axis, 0)
    inner = (rows[2:] - rows[:-2]) / (2.0 * step)
    first, last = (rows[1:2] - rows[:1]) / step, (rows[-1:] - rows[-2:-1]) / step
    return np.moveaxis(np.concatenate([first, inner, last]), 0, axis)
