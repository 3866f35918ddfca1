"""NumPy's functions of a selection by a mask without values, as choices between whole arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import keeps_axes
from symad.tracing.values.mask_selection import FORMS, Selection


def _form(*functions: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(form: Callable[..., Any]) -> Callable[..., Any]:
        FORMS.update(dict.fromkeys(functions, form))
        return form

    return add


def _axes(selection: Selection, axis: Any) -> tuple[int, ...] | None:
    """Return the axes of the whole array to sum over, None where those that are picked from are not among them."""
    if axis is None:
        return tuple(range(selection.full.ndim))
    wanted = {k % selection.ndim for k in (axis if isinstance(axis, tuple) else (axis,))}
    if 0 not in wanted:
        return None
    picked = selection.mask.ndim
    return (*range(picked), *[picked + k - 1 for k in sorted(wanted) if k])


def _plain(keepdims: Any, *others: Any) -> bool:
    """Whether options are left as they are."""
    return not keeps_axes(keepdims) and all(other is None or other is np._NoValue for other in others)


def _reduction(function: Callable[..., Any], neutral: Any, *, of_some: bool = False) -> Callable[..., Any]:
    """Return the form of a reduction to which a value is neutral; it needs an element, where it is `of_some`."""

    def form(a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, **more: Any) -> Any:
        axes = _axes(a, axis) if isinstance(a, Selection) and not more and _plain(keepdims, dtype, out) else None
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
    axes = _axes(a, axis) if isinstance(a, Selection) and not more and _plain(keepdims, dtype, out) else None
    return NotImplemented if axes is None else np.sum(a.where(0.0), axis=axes) / _counted(a, axes)


@_form(np.var)
def var(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False, **more: Any
) -> Any:
    """Their variance, NaN where there are none."""
    axes = _axes(a, axis) if isinstance(a, Selection) and not more and _plain(keepdims, dtype, out) else None
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


@_form(np.copy)
def copy(a: Any, *_: Any, **__: Any) -> Any:
    """The same elements, to be stored into."""
    return a.copy()


def _like(value: float) -> Callable[..., Any]:
    def form(a: Any, *args: Any, **keywords: Any) -> Any:
        return NotImplemented if args or keywords else Selection(np.full_like(a.full, value), a.mask)

    return form


_form(np.zeros_like)(_like(0.0))
_form(np.ones_like)(_like(1.0))


@_form(np.ravel)
def ravel(a: Any, order: Any = "C") -> Any:
    """Itself, where it has one axis."""
    return NotImplemented if a.rest else a


@_form(np.size)
def size(a: Any, axis: Any = None) -> Any:
    """The number of elements, which is traced."""
    return a.size if axis is None else a.shape[axis]


@_form(np.shape)
def shape(a: Any) -> Any:
    """The shape, of which the first number is traced."""
    return a.shape


@_form(np.ndim)
def ndim(a: Any) -> int:
    """The number of axes."""
    return int(a.ndim)


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
