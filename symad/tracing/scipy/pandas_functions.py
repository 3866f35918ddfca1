"""pandas functions that are compiled: reductions without NaN, elements by places, differences."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.calling.running import callee, value
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.traced import refuse_function

_NANOPS = "pandas.core.nanops."


def _of_numbers(name: str) -> Callable[..., Any]:
    """Register and return a reduction of what is no NaN; of samples, with the `ddof` that pandas gives."""

    def reduction(values: Any, *, axis: Any = None, skipna: bool = True, mask: Any = None, **ddof: int) -> Any:
        return getattr(np, f"nan{name}" if skipna else name)(traced(values), axis=axis, **ddof)

    return stands_in_for(f"{_NANOPS}nan{name}")(reduction)


_of_numbers("mean"), _of_numbers("median"), _of_numbers("var")
nanstd = _of_numbers("std")


@stands_in_for(_NANOPS + "nansem")
def nansem(values: Any, *, axis: Any = None, skipna: bool = True, ddof: int = 1, mask: Any = None) -> Any:
    """The standard error of the mean."""
    numbers = traced(values)
    count = np.sum(~np.isnan(numbers), axis=axis) if skipna else np.shape(numbers)[axis or 0]
    return nanstd(numbers, axis=axis, skipna=skipna, ddof=ddof) / np.sqrt(count)


def _place(name: str, find: Callable[..., Any]) -> None:
    """Register what gives the place, or the label, of the largest or smallest element: a number, also in a kernel."""

    def place(self: Any, axis: Any = None, skipna: bool = True, *args: Any, **keywords: Any) -> int:
        values = traced(self._values)
        if skipna:
            values = np.where(np.isnan(values), -np.inf if find is np.argmax else np.inf, values)
        return operator.index(find(values))

    def label(self: Any, *args: Any, **keywords: Any) -> Any:
        return self.index[place(self, *args, **keywords)]

    stands_in_for(f"pandas.core.base.IndexOpsMixin.arg{name}", held=("_values",))(place)
    stands_in_for(f"pandas.core.series.Series.arg{name}", held=("_values",))(place)
    stands_in_for(f"pandas.core.series.Series.idx{name}", held=("_values",))(label)


_place("max", np.argmax)
_place("min", np.argmin)


@stands_in_for("pandas.core.algorithms.take_nd", "pandas.core.array_algos.take.take_nd")
def take_nd(arr: Any, indexer: Any, axis: int = 0, fill_value: Any = np.nan, allow_fill: bool = True) -> Any:
    """Elements at places, `fill_value` where a place is -1: what alignment asks for."""
    places = np.asarray(indexer)
    elements = np.take(traced(arr), np.maximum(places, 0) if allow_fill else places, axis=axis)
    if not allow_fill or (places >= 0).all():
        return elements
    missing = np.expand_dims(places < 0, tuple(k for k in range(np.ndim(elements)) if k != axis % np.ndim(elements)))
    return np.where(missing, np.nan if fill_value is None else fill_value, elements)


@stands_in_for(_NANOPS + "na_accum_func")
def na_accum_func(values: Any, accum_func: Any, *, skipna: bool) -> Any:
    """Running sums, products and extremes, which pass over NaN."""
    numbers = traced(values)
    if not skipna:
        return accum_func(numbers)
    kind = getattr(getattr(accum_func, "__self__", accum_func), "__name__", "")
    missing, nothing = np.isnan(numbers), {"cumprod": 1.0, "maximum": -np.inf, "minimum": np.inf}.get(kind, 0.0)
    return np.where(missing, np.nan, accum_func(np.where(missing, nothing, numbers)))


_OPERATORS: dict[np.ufunc, Callable[..., Any]] = {
    np.add: operator.add, np.subtract: operator.sub, np.multiply: operator.mul, np.true_divide: operator.truediv,
    np.floor_divide: operator.floordiv, np.remainder: operator.mod, np.power: operator.pow, np.matmul: operator.matmul,
    np.less: operator.lt, np.less_equal: operator.le, np.greater: operator.gt, np.greater_equal: operator.ge,
    np.equal: operator.eq, np.not_equal: operator.ne, np.bitwise_and: operator.and_, np.bitwise_or: operator.or_,
    np.bitwise_xor: operator.xor, np.negative: operator.neg, np.positive: operator.pos, np.absolute: abs,
}  # fmt: skip


@stands_in_for("pandas._libs.ops_dispatch.maybe_dispatch_ufunc_to_dunder_op")
def as_operator(self: Any, ufunc: np.ufunc, method: str, *inputs: Any, **keywords: Any) -> Any:
    """The operator of a ufunc that has one."""
    answers = ufunc in _OPERATORS and method == "__call__" and not keywords
    return _OPERATORS[ufunc](*map(value, inputs)) if answers else NotImplemented


@stands_in_for("pandas.core.dtypes.cast.np_can_hold_element")
def np_can_hold_element(dtype: Any, element: Any) -> Any:
    """The number or array that is stored or filled in: what holds traced values takes any number."""
    return element


@stands_in_for("pandas.core.algorithms.map_array")
def map_array(arr: Any, mapper: Any, na_action: Any = None) -> Any:
    """A function of each element."""
    if not callable(mapper) or na_action is not None:
        refuse_function("pandas' map", "it looks values up, or for NaN", "give it a function")
    return np.stack([mapper(element) for element in traced(arr)])


@stands_in_for("pandas.core.algorithms.diff")
def diff(arr: Any, n: int, axis: int = 0) -> Any:
    """Differences at a distance, NaN where there is no partner."""
    values = np.moveaxis(traced(arr), axis, 0)
    size = min(abs(n), len(values))
    apart = values[size:] - values[: len(values) - size]
    gap = np.full((size, *np.shape(values)[1:]), np.nan)
    differences = np.concatenate([gap, apart] if n >= 0 else [-apart, gap])
    return np.moveaxis(differences, 0, axis)


_SPREADS = frozenset({"var", "std"})
_REDUCED = _SPREADS | {"sum", "prod", "mean", "min", "max", "median"}


def _reduced(name: str, numbers: Any, least: int, ddof: int = 1) -> Any:
    """Return a reduction along the last axis; NaN where fewer numbers are beside NaN than `least`, or than it takes."""
    count = np.sum(~np.isnan(numbers), axis=-1)
    needed = {"sum": 0, "prod": 0}.get(name, ddof + 1 if name in _SPREADS else 1)
    enough = np.expand_dims(count >= max(least, needed), -1)
    options = {"ddof": ddof} if name in _SPREADS else {}
    values = getattr(np, f"nan{name}")(np.where(enough, numbers, 1.0), axis=-1, **options)
    return np.where(enough[..., 0], values, np.nan)


def _rolling(name: str) -> None:
    """Register a reduction of the numbers in windows [start, end)."""

    def roll(values: Any, start: Any, end: Any, minp: int, ddof: int = 1) -> Any:
        places = np.asarray(start)[:, None] + np.arange(max(1, int(np.max(end - start, initial=1))))
        inside = places < np.asarray(end)[:, None]
        numbers = np.where(inside, traced(values)[np.where(inside, places, 0)], np.nan)
        return _reduced(name, numbers, minp, ddof)

    stands_in_for(f"pandas._libs.window.aggregations.roll_{'median_c' if name == 'median' else name}")(roll)


for _name in ("sum", "mean", "min", "max", "var", "median"):
    _rolling(_name)


@stands_in_for("pandas.core.groupby.ops.WrappedCythonOp._call_cython_op")
def of_groups(
    self: Any, values: Any, *, min_count: int, ngroups: int, comp_ids: Any, ddof: int = 1, skipna: bool = True,
    **keywords: Any,
) -> Any:  # fmt: skip
    """A reduction of each group, along the last axis."""
    if self.kind != "aggregate" or self.how not in _REDUCED or not skipna:
        refuse_function(f"pandas' {self.how} of groups", "its code is compiled", "use sum, mean, min, max, var or std")
    groups = [traced(values)[..., np.flatnonzero(comp_ids == group)] for group in range(ngroups)]
    return np.stack([_reduced(self.how, numbers, min_count, ddof) for numbers in groups], axis=-1)


@stands_in_for("pandas._libs.algos.ensure_float64", "pandas._libs.lib.maybe_convert_objects")
def unchanged(values: Any, **keywords: Any) -> Any:
    """The numbers themselves."""
    return traced(values)


@stands_in_for("pandas.core.apply.FrameApply.apply_series_generator", held=("obj",))
def apply_series_generator(self: Any) -> Any:
    """A function of each row or column."""
    parts = [self.obj.iloc[k] if self.axis == 1 else self.obj.iloc[:, k] for k in range(self.obj.shape[1 - self.axis])]
    return {k: callee(self.func)(part, *self.args, **self.kwargs) for k, part in enumerate(parts)}, self.result_index
