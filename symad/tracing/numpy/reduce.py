"""NumPy's reductions and running reductions on traced values."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import symad.tracing.values.node_arrays as node_arrays
from symad.tracing.numpy.registry import implements
from symad.tracing.values.array import wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_operands import as_integers, nodes_of, scope_of
from symad.tracing.values.traced import Traced, store_error


def traced(value: Any) -> Any:
    """Return a list, number or object array as a traced value; traced values unchanged."""
    if isinstance(value, Traced):
        return value
    scope = scope_of(value)
    return wrap(nodes_of(value, scope), scope)


def is_traced(value: Any) -> bool:
    """Whether a value is a traced scalar or array (no type guard: NumPy's functions take both)."""
    return isinstance(value, Traced)


def together(*values: Any) -> list[Any]:
    """Return several values as traced values of one scope."""
    scope = scope_of(*values)
    return [wrap(nodes_of(value, scope), scope) for value in values]


def delivered(result: Any, out: Any) -> Any:
    """Return the result, or write it into the traced array `out` and return that."""
    if out is None:
        return result
    if not is_traced(out):
        raise store_error()
    if np.shape(out) != np.shape(result):
        raise ValueError(f"out= has the shape {np.shape(out)}, and the result {np.shape(result)}")
    out[...] = result
    return out


def keeps_axes(keepdims: Any) -> bool:
    """Whether reduced axes stay: `keepdims` is true, and not NumPy's mark for a missing one."""
    return keepdims is not np._NoValue and bool(keepdims)


def given(**keywords: Any) -> dict[str, Any]:
    """Return the keywords that a caller gave: not None, and not NumPy's mark for a missing one."""
    return {name: value for name, value in keywords.items() if value is not None and value is not np._NoValue}


def _reduction(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def handler(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any
    ) -> Any:
        if dtype is not None and dtype is not np._NoValue and np.dtype(dtype).kind in "iub":
            a, dtype = traced(a).astype(dtype), None  # as NumPy, which converts first
        node_arrays.require_float(name, dtype)
        return ufunc.reduce(traced(a), axis=axis, keepdims=keeps_axes(keepdims), **given(out=out, **more))

    return handler


def _extremum(ufunc: np.ufunc) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        return ufunc.reduce(traced(a), axis=axis, keepdims=keeps_axes(keepdims), **given(out=out, **more))

    return handler


implements(np.sum)(_reduction("np.sum", np.add))
implements(np.prod)(_reduction("np.prod", np.multiply))
implements(np.max, np.amax)(_extremum(np.maximum))
implements(np.min, np.amin)(_extremum(np.minimum))
implements(np.any)(_extremum(np.logical_or))
implements(np.all)(_extremum(np.logical_and))
implements(np.nanmax)(_extremum(np.fmax))
implements(np.nanmin)(_extremum(np.fmin))


def _count(shape: tuple[int, ...], axis: Any, keepdims: Any, where: Any) -> Any:
    """Return how many elements are reduced; with a mask, how many of them for each result."""
    if where is not np._NoValue:
        return np.sum(np.broadcast_to(where, shape), axis=axis, keepdims=keeps_axes(keepdims))
    return math.prod(shape[k] for k in node_arrays.normalized_axes(axis, len(shape)))


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = np._NoValue
) -> Any:
    """The sum divided by the number of elements (those under `where=`)."""
    node_arrays.require_float("np.mean", dtype)
    a = traced(a)
    total = np.add.reduce(a, axis=axis, keepdims=keeps_axes(keepdims), **given(where=where))
    return delivered(total / _count(a.shape, axis, keepdims, where), out)


@implements(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, *,
    where: Any = np._NoValue, mean: Any = np._NoValue, correction: Any = np._NoValue,
) -> Any:  # fmt: skip
    """sum((a - mean)**2) / max(n - ddof, 0), over the elements under `where=`."""
    node_arrays.require_float("np.var", dtype)
    check_real("np.var", "use np.mean((x - np.mean(x)) ** 2), which is analytic")
    a = traced(a)
    ddof = ddof if correction is np._NoValue else correction
    centre = np.mean(a, axis=axis, keepdims=True, where=where) if mean is np._NoValue else mean
    total = np.add.reduce(np.square(a - centre), axis=axis, keepdims=keeps_axes(keepdims), **given(where=where))
    return delivered(total / np.maximum(_count(a.shape, axis, keepdims, where) - ddof, 0), out)


@implements(np.std)
def std(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, *args: Any, **keywords: Any) -> Any:
    """The square root of the variance, which of one number is 0 (or NaN) wherever it is: so is the root of it."""
    a = traced(a)
    variance = var(a, axis, dtype, None, *args, **keywords)
    is_whole = keywords.keys().isdisjoint(("where", "mean"))
    is_single = is_whole and _count(a.shape, axis, False, np._NoValue) == 1
    return delivered(variance if is_single else np.sqrt(variance), out)


@implements(np.average)
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """The weighted mean: sum(a * weights) / sum(weights)."""
    shape = np.shape(a)
    node_arrays.normalized_axes(axis, len(shape))
    if weights is None:
        weights = np.ones(shape)
    elif np.shape(weights) != shape:
        if axis is None:
            raise TypeError("axis must be given when the shapes of a and weights differ")
        axes = np.lib.array_utils.normalize_axis_tuple(axis, len(shape))
        weights = np.transpose(weights, np.argsort(axes))
        weights = np.expand_dims(weights, [k for k in range(len(shape)) if k not in axes])
    weights = np.broadcast_to(weights, shape)
    total = np.sum(weights, axis=axis, keepdims=keeps_axes(keepdims))
    result = np.sum(np.multiply(a, weights), axis=axis, keepdims=keeps_axes(keepdims)) / total
    return (result, np.broadcast_to(total, np.shape(result))) if returned else result


def _running(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def handler(a: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
        node_arrays.require_float(name, dtype)
        a = np.ravel(traced(a)) if axis is None else np.atleast_1d(traced(a))
        return ufunc.accumulate(a, axis=0 if axis is None else operator.index(axis), **given(out=out))

    return handler


implements(np.cumsum)(_running("np.cumsum", np.add))
implements(np.cumprod)(_running("np.cumprod", np.multiply))


def _over_numbers(moment: Callable[..., Any]) -> Callable[..., Any]:
    """A mean or variance over the elements that are not NaN."""

    def handler(a: Any, *args: Any, where: Any = np._NoValue, **keywords: Any) -> Any:
        numbers = ~np.isnan(traced(a))
        return moment(a, *args, where=numbers if where is np._NoValue else numbers & where, **keywords)

    return handler


implements(np.nanmean)(_over_numbers(mean))
implements(np.nanvar)(_over_numbers(var))
implements(np.nanstd)(_over_numbers(std))


@implements(np.corrcoef)
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    """The matrix of correlation coefficients, clipped where a variance underflowed; else only rounding exceeds 1."""
    covariance = np.atleast_2d(np.cov(x, y, rowvar, dtype=dtype))
    scale = np.sqrt(np.diagonal(covariance))
    correlation = covariance / scale[:, None] / scale[None, :]
    return np.squeeze(np.where(np.abs(correlation) > 1 + 1e-9, np.sign(correlation), correlation))


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """How many elements differ from zero, as a traced number (piecewise constant)."""
    return as_integers(np.sum(traced(a) != 0, axis=axis, keepdims=keepdims))


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Any:
    """The sum along the diagonal."""
    node_arrays.require_float("np.trace", dtype)
    return np.sum(np.diagonal(a, offset, axis1, axis2), axis=-1, out=out)
