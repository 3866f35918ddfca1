"""NumPy's functions that pick by a mask, or write where it holds; and those of what a mask without values picks.

A selection by such a mask is a choice between whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import delivered, keeps_axes, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.select import known
from symad.tracing.numpy.shape import moving, write
from symad.tracing.values.array import Array, plain_index, wrap
from symad.tracing.values.mask_selection import FORMS, Selection
from symad.tracing.values.node_operands import nodes_of, scope_of


def _form(*functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(form: Callable[..., Any]) -> Callable[..., Any]:
        FORMS.update(dict.fromkeys(functions, form))
        return form

    return add


def _axes(selection: Any, axis: Any, keepdims: Any = False, *others: Any, **more: Any) -> tuple[int, ...] | None:
    """Return the axes of the whole array to sum over, None where those that are picked from are not among them.

    None too where an option is not left as it is, and for other arrays.
    """
    is_plain = not more and all(other is None or other is np._NoValue for other in others)
    if not isinstance(selection, Selection) or not is_plain or keeps_axes(keepdims):
        return None
    if axis is None:
        return tuple(range(selection.full.ndim))
    wanted = {k % selection.ndim for k in (axis if isinstance(axis, tuple) else (axis,))}
    if 0 not in wanted:
        return None
    picked = selection.mask.ndim
    return (*range(picked), *[picked + k - 1 for k in sorted(wanted) if k])


def _reduction(function: Callable[..., Any], neutral: Any, *, of_some: bool = False) -> Callable[..., Any]:
    """Return the form of a reduction to which a value is neutral; it needs an element, where it is `of_some`."""

    def form(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        axes = _axes(a, axis, keepdims, dtype, out, **more)
        if axes is None:
            return NotImplemented
        if of_some:
            a.check_some()
        return function(a.where(neutral), axis=axes)

    return form


_REDUCTIONS: tuple[tuple[np.ufunc, Callable[..., Any], Any], ...] = (
    (np.add, np.sum, 0.0), (np.multiply, np.prod, 1.0), (np.logical_or, np.any, False), (np.logical_and, np.all, True),
    (np.maximum, np.max, -math.inf), (np.minimum, np.min, math.inf),
)  # fmt: skip
for _ufunc, _function, _neutral in _REDUCTIONS:
    _form(_function, _ufunc.reduce)(_reduction(_function, _neutral, of_some=_function in (np.max, np.min)))


def _counted(selection: Selection, axes: tuple[int, ...]) -> Any:
    """Return how many elements one sum over axes has."""
    return selection.count * math.prod(selection.full.shape[k] for k in axes if k >= selection.mask.ndim)


@_form(np.mean, np.average)
def mean(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
    """Their mean, NaN where there are none."""
    axes = _axes(a, axis, keepdims, dtype, out, **more)
    return NotImplemented if axes is None else np.sum(a.where(0.0), axis=axes) / _counted(a, axes)


@_form(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any
) -> Any:
    """Their variance, NaN where there are none."""
    axes = _axes(a, axis, keepdims, dtype, out, **more)
    if axes is None:
        return NotImplemented
    middle = np.sum(a.where(0.0), axis=axes, keepdims=True) / _counted(a, axes)
    squares = np.where(a.wide_mask, (a.full - middle) ** 2, 0.0)
    return np.sum(squares, axis=axes) / np.maximum(_counted(a, axes) - ddof, 0)


@_form(np.std)
def std(a: Any, axis: Any = None, *args: Any, **keywords: Any) -> Any:
    """Their standard deviation, NaN where there are none. That of one element is 0 everywhere, and so is its slope."""
    variance = var(a, axis, *args, **keywords)
    if variance is NotImplemented:
        return variance
    return np.where(_counted(a, _axes(a, axis) or ()) == 1, variance, np.sqrt(variance))


@_form(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """The root of the sum of their squares."""
    if not isinstance(x, Selection) or ord not in (None, 2) or axis is not None or keepdims or x.rest:
        return NotImplemented
    return np.linalg.norm(x.where(0.0).ravel())


@_form(np.dot, np.inner, np.vdot)
def dot(a: Any, b: Any, *more: Any) -> Any:
    """The sum of the products of what one mask picks of two arrays."""
    alike = isinstance(a, Selection) and isinstance(b, Selection) and a.has_mask(b.mask)
    return NotImplemented if more or not alike or a.rest or b.rest else np.sum(a * b)


def _like(value: float) -> Callable[..., Any]:
    def form(a: Any, *args: Any, **keywords: Any) -> Any:
        return NotImplemented if args or keywords else Selection(np.full_like(a.full, value), a.mask)

    return form


_form(np.zeros_like)(_like(0.0))
_form(np.ones_like)(_like(1.0))
_form(np.copy)(lambda a, *_, **__: a.copy())
_form(np.ravel)(lambda a, order="C": NotImplemented if a.rest else a)
_form(np.size)(lambda a, axis=None: a.size if axis is None else a.shape[axis])  # traced, as is the first of the shape
_form(np.shape)(lambda a: a.shape)
_form(np.ndim)(lambda a: int(a.ndim))


def _first(selection: Selection, count: Any, full: Any) -> Selection:
    """Return the first elements, so many, of an array."""
    return Selection(full, np.less(np.arange(len(full)), count))


@_form(np.sort)
def sort(a: Any, axis: Any = -1, *args: Any, **keywords: Any) -> Any:
    """The elements in the order of their values."""
    if args or keywords or a.rest:
        return NotImplemented
    return _first(a, a.count, np.sort(np.ravel(a.where(math.nan))))


@_form(np.cumsum)
def cumsum(a: Any, axis: Any = None, *args: Any, **keywords: Any) -> Any:
    """The running sums of the elements."""
    if args or keywords or a.rest or axis not in (None, 0, -1):
        return NotImplemented
    return Selection(np.reshape(np.cumsum(np.ravel(a.where(0.0))), a.mask.shape), a.mask)


@_form(np.diff)
def diff(a: Any, *args: Any, **keywords: Any) -> Any:
    """The differences of neighbours."""
    if args or keywords or a.rest or a.most < 2:
        return NotImplemented
    packed = a.packed()
    return _first(a, a.count - 1, packed[1:] - packed[:-1])


def _quantile(function: Callable[..., Any], of_numbers: Callable[..., Any]) -> None:
    def form(a: Any, *args: Any, **keywords: Any) -> Any:
        if not isinstance(a, Selection) or a.rest or keywords or len(args) > (function is not np.median):
            return NotImplemented
        if function is not np.median:  # which is NaN of nothing
            a.check_some()
        has_nan = np.any(np.where(a.mask, np.isnan(a.full), False))
        return np.where(has_nan, math.nan, of_numbers(np.ravel(a.where(math.nan)), *args))

    _form(function)(form)


_quantile(np.median, np.nanmedian)
_quantile(np.quantile, np.nanquantile)
_quantile(np.percentile, np.nanpercentile)


# ---- picking by a mask

_DELETE = moving(np.delete)  # where the places are known


@implements(np.compress)
def compress(condition: Any, a: Any, axis: int | None = None, out: Any = None) -> Any:
    """The slices for which the condition holds."""
    if known(condition) is None:
        whole = np.ravel(traced(a)) if axis is None else traced(a)
        mask = traced(condition).astype(bool)
        before = (slice(None),) * (0 if axis is None else axis % whole.ndim)
        return delivered(whole[(*before, mask)] if before else whole[mask], out)
    scope = scope_of(condition, a, out)
    return delivered(wrap(np.compress(plain_index(condition), nodes_of(a, scope), axis), scope), out)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    """The array without what stands at some places, or where a mask holds."""
    parts = obj if isinstance(obj, tuple) and len(obj) == 1 else (obj,)
    obj = parts[0]
    if not isinstance(obj, Selection) and known(obj) is not None:
        return _DELETE(arr, obj, axis)
    whole = np.ravel(traced(arr)) if axis is None else np.moveaxis(traced(arr), axis, 0)
    kept = ~obj if not isinstance(obj, Selection) and obj.dtype == bool else _without(obj, len(whole))
    rest = whole[kept]
    return rest if axis is None else np.moveaxis(rest.settled(), 0, axis)


def _without(places: Any, length: int) -> Any:
    """Return the mask of all places but some."""
    own = np.arange(length)
    if isinstance(places, Selection):
        here = np.equal(own[:, None], np.ravel(places.full)) & np.ravel(places.mask)
    else:
        flat = np.ravel(places)
        here = np.equal(own[:, None], np.where(flat < 0, flat + length, flat))
    return ~np.any(here, axis=1)


def _write_where(function: Callable[..., Any], target: Any, mask: Any, values: Any) -> None:
    """Write values where a mask holds: a choice where its values are not known, or where there is one value."""
    if isinstance(target, Array) and isinstance(mask, Array) and np.size(values) == 1:
        target[mask] = np.ravel(traced(values))[0]
    elif known(mask) is not None:
        write(target, values, lambda nodes, new: function(nodes, plain_index(mask), new.ravel()))
    elif function is np.putmask:
        target[...] = np.where(mask, np.resize(traced(values), np.shape(target)), target)
    else:
        places = np.floor(np.mod(np.cumsum(np.where(np.ravel(mask), 1, 0)) - 1, np.size(values)))
        target[...] = np.where(mask, np.reshape(np.take(traced(values), places), np.shape(target)), target)


implements(np.place)(lambda arr, mask, vals: _write_where(np.place, arr, mask, vals))
implements(np.putmask)(lambda a, mask, values: _write_where(np.putmask, a, mask, values))
