"""pandas functions that are compiled: reductions without NaN, elements by places, differences."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from symad.tracing.calling.running import callee, value
from symad.tracing.calling.user_place import has_labels, is_passed_over, user_frame
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.values.array import numbers_of_constants
from symad.tracing.values.traced import refuse_function

_NANOPS = "pandas.core.nanops."


def _of_numbers(name: str) -> Callable[..., Any]:
    """Register and return a reduction of what is no NaN; of samples, with the `ddof` that pandas gives."""

    def reduction(values: Any, *, axis: Any = None, skipna: bool = True, mask: Any = None, **ddof: int) -> Any:
        return getattr(np, f"nan{name}" if skipna else name)(traced(values), axis=axis, **ddof)

    return stands_in_for(f"{_NANOPS}nan{name}")(reduction)


_of_numbers("mean"), _of_numbers("median"), _of_numbers("var"), _of_numbers("max"), _of_numbers("min")
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
        return accum_func(numbers, axis=0)
    kind = getattr(getattr(accum_func, "__self__", accum_func), "__name__", "")
    missing, nothing = np.isnan(numbers), {"cumprod": 1.0, "maximum": -np.inf, "minimum": np.inf}.get(kind, 0.0)
    return np.where(missing, np.nan, accum_func(np.where(missing, nothing, numbers), axis=0))


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


_SPREADS = frozenset({"var", "std", "sem"})
_REDUCED = _SPREADS | {"sum", "prod", "mean", "min", "max", "median", "sem", "first", "last"}


def _reduced(name: str, numbers: Any, least: int, ddof: int = 1) -> Any:
    """Return a reduction along the last axis; NaN where fewer numbers are beside NaN than `least`, or than it takes."""
    count = np.sum(~np.isnan(numbers), axis=-1)
    needed = {"sum": 0, "prod": 0}.get(name, ddof + 1 if name in _SPREADS else 1)
    enough = np.expand_dims(count >= max(least, needed), -1)
    known = np.where(enough, numbers, 1.0)
    if name in ("first", "last"):
        order = 1 if name == "last" else -1
        values = known[..., 0]
        for k in range(np.shape(known)[-1])[::order]:
            values = np.where(np.isnan(known[..., k]), values, known[..., k])
    elif name == "sem":
        values = nansem(known, axis=-1, ddof=ddof)
    else:
        options = {"ddof": ddof} if name in _SPREADS else {}
        values = getattr(np, f"nan{name}")(known, axis=-1, **options)
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


def _bounds(*ends: Any) -> Iterator[tuple[int, int]]:
    """Yield where windows begin and end; the places may be a traced array of constants."""
    places = [np.asarray(end if (numbers := numbers_of_constants(end)) is None else numbers, dtype=int) for end in ends]
    yield from zip(*[place.tolist() for place in places], strict=True)


@stands_in_for("pandas._libs.window.aggregations.roll_apply")
def roll_apply(
    obj: Any, start: Any, end: Any, minp: int, function: Any, raw: bool, args: Any, kwargs: Mapping[str, Any]
) -> Any:
    """A function of the numbers, or of the Series, in each window; NaN where too few are beside NaN."""
    whole = traced(obj) if raw else obj
    bounds = _bounds(start, end)
    parts = [whole[a:b] if raw else whole.iloc[a:b] for a, b in bounds]
    known = np.stack([np.sum(~np.isnan(traced(part))) >= max(minp, 1) for part in parts])
    return np.where(known, np.stack([callee(function)(part, *args, **kwargs) for part in parts]), np.nan)


def _falling(
    kind: str, left: Any, right: Any, at: slice, minp: int, com: float, adjust: bool, ignore_na: bool,
    deltas: Any = None,
) -> Iterator[Any]:  # fmt: skip
    """Yield means, sums or covariances of pairs, whose weights fall by a factor at each step; NaN where too few are."""
    factor, new = com / (1 + com), 1.0 if adjust else 1 / (1 + com)
    mean: Any = 0.0
    other = spread = weight = total = squares = count = mean
    apart = None if deltas is None else deltas[at]
    for k, (x, y) in enumerate(zip(left, right, strict=True)):
        seen = ~(np.isnan(x) | np.isnan(y))
        fall = factor ** (1.0 if apart is None or k == 0 else apart[k - 1])
        fall = np.where(seen, fall, 1.0) if ignore_na else fall
        x, y, share, count = np.where(seen, x, 0.0), np.where(seen, y, 0.0), np.where(seen, new, 0.0), count + seen
        weight, total, squares = fall * weight, fall * total + share, fall**2 * squares + share**2
        whole = np.where(weight + share > 0, weight + share, 1.0)
        old, older, before = mean, other, spread
        mean = fall * mean + x if kind == "sum" else (weight * mean + share * x) / whole
        other = (weight * other + share * y) / whole
        spread = weight * (before + (old - mean) * (older - other)) + share * (x - mean) * (y - other)
        spread, weight = np.where(seen, spread / whole, before), weight + share
        scale = np.where(seen & (not adjust), whole, 1.0)  # pandas divides by the sum of the weights at once
        weight, total, squares = weight / scale, total / scale, squares / scale**2
        free = total**2 - squares
        biased = 1.0 if kind == "biased" else np.where(free > 0, total**2 / np.where(free > 0, free, 1.0), np.nan)
        yield np.where(count >= max(minp, 1), mean if kind in ("mean", "sum") else spread * biased, np.nan)


def _all_falling(kind: str, x: Any, y: Any, start: Any, end: Any, *options: Any) -> Any:
    """Return the same of all windows."""
    first, second = traced(x), traced(y)
    windows = [slice(a, b) for a, b in _bounds(start, end)]
    return np.stack([part for at in windows for part in _falling(kind, first[at], second[at], at, *options)])


@stands_in_for("pandas._libs.window.aggregations.ewm")
def ewm(
    vals: Any, start: Any, end: Any, minp: int, com: float, adjust: bool, ignore_na: bool, deltas: Any = None,
    normalize: bool = True,
) -> Any:  # fmt: skip
    """Means, or sums, with weights that fall exponentially."""
    kind = "mean" if normalize else "sum"
    return _all_falling(kind, vals, vals, start, end, minp, com, adjust, ignore_na, deltas)


@stands_in_for("pandas._libs.window.aggregations.ewmcov")
def ewmcov(
    input_x: Any, start: Any, end: Any, minp: int, input_y: Any, com: float, adjust: bool, ignore_na: bool, bias: bool
) -> Any:
    """Variances and covariances with weights that fall exponentially."""
    kind = "biased" if bias else "free"
    return _all_falling(kind, input_x, input_y, start, end, minp, com, adjust, ignore_na)


def _ranked(values: Any, method: str, na_option: str, ascending: bool, pct: bool) -> Any:
    """Return the places of numbers along the last axis in their order; equal numbers share theirs."""
    numbers = values if ascending else -values
    missing = np.isnan(numbers)
    if na_option != "keep" or method not in ("average", "min", "max"):
        refuse_function(f"pandas' rank with {method} and {na_option}", "it has no traced form", "use the mean of ties")
    left, right = numbers[..., :, None], numbers[..., None, :]
    below, same = np.sum(right < left, axis=-1), np.sum(right == left, axis=-1)
    ranks = below + {"average": (same + 1) / 2, "min": 1.0, "max": same}[method]
    count = np.sum(~missing, axis=-1, keepdims=True) if pct else 1.0
    return np.where(missing, np.nan, ranks / count)


@stands_in_for("pandas.core.algorithms.rank")
def rank(
    values: Any, axis: int = 0, method: str = "average", na_option: str = "keep", ascending: bool = True,
    pct: bool = False, mask: Any = None,
) -> Any:  # fmt: skip
    """The places of numbers in their order."""
    return np.moveaxis(_ranked(np.moveaxis(traced(values), axis, -1), method, na_option, ascending, pct), -1, axis)


_RUNNING = {
    "cumsum": np.cumsum, "cumprod": np.cumprod, "cummax": np.maximum.accumulate, "cummin": np.minimum.accumulate,
}  # fmt: skip


@stands_in_for("pandas.core.groupby.ops.WrappedCythonOp._call_cython_op")
def of_groups(
    self: Any, values: Any, *, min_count: int, ngroups: int, comp_ids: Any, ddof: int = 1, skipna: bool = True,
    mask: Any = None, result_mask: Any = None, initial: Any = 0, **keywords: Any,
) -> Any:  # fmt: skip
    """A reduction of each group along the last axis, or what has a value for each of its elements."""
    places = [np.flatnonzero(comp_ids == group) for group in range(ngroups)]
    groups = [traced(values)[..., members] for members in places]
    if self.how in _RUNNING or self.how == "rank":
        parts = [
            _ranked(numbers, keywords["ties_method"], keywords["na_option"], keywords["ascending"], keywords["pct"])
            if self.how == "rank"
            else na_accum_func(numbers.T, _RUNNING[self.how], skipna=skipna).T
            for numbers in groups
        ]
        rest = np.flatnonzero(comp_ids < 0)
        parts.append(np.full((*np.shape(values)[:-1], len(rest)), np.nan))
        return np.concatenate(parts, axis=-1)[..., np.argsort(np.concatenate([*places, rest]))]
    if self.how not in _REDUCED or not skipna:
        refuse_function(f"pandas' {self.how} of groups", "its code is compiled", "use sum, mean, min, max, var or std")
    return np.stack([_reduced(self.how, numbers, min_count, ddof) for numbers in groups], axis=-1)


@stands_in_for("pandas.core.groupby.ops.BaseGrouper._get_splitter")
def groups_of(self: Any, data: Any) -> Any:
    """The data of each group."""
    return [callee(data.take)(np.flatnonzero(self.ids == group)) for group in range(self.ngroups)]


@stands_in_for("pandas.core.computation.scope.ensure_scope", always=True)
def ensure_scope(
    level: int, global_dict: Any = None, local_dict: Any = None, resolvers: Any = (), target: Any = None
) -> Any:
    """The names that a text of `eval` or `query` may use: those of the function that calls it."""
    frame = user_frame()
    while frame is not None and (has_labels(frame.f_code.co_filename) or is_passed_over(frame.f_code.co_filename)):
        frame = frame.f_back
    if frame is not None and local_dict is None:
        global_dict, local_dict = frame.f_globals if global_dict is None else global_dict, dict(frame.f_locals)
    kind = sys.modules["pandas.core.computation.scope"].Scope
    return kind(0, global_dict=global_dict, local_dict=local_dict, resolvers=resolvers, target=target)


stands_in_for("pandas._libs.algos.ensure_float64", "pandas._libs.lib.maybe_convert_objects")(
    lambda values, **keywords: traced(values)
)
# square roots, 0 where rounding has made a variance negative
stands_in_for("pandas.core.window.common.zsqrt")(lambda x: np.sqrt(np.maximum(x, 0.0)))
stands_in_for("pandas.core.dtypes.cast.construct_1d_arraylike_from_scalar")(
    lambda value, length, dtype: np.broadcast_to(traced(value), (length,)).copy()
)
# what is stored or filled in: an array that holds traced values takes any number
stands_in_for("pandas.core.dtypes.cast.np_can_hold_element")(lambda dtype, element: element)


@stands_in_for("pandas.core.apply.FrameApply.apply_series_generator", held=("obj",))
def apply_series_generator(self: Any) -> Any:
    """A function of each row or column."""
    parts = [self.obj.iloc[k] if self.axis == 1 else self.obj.iloc[:, k] for k in range(self.obj.shape[1 - self.axis])]
    return {k: callee(self.func)(part, *self.args, **self.kwargs) for k, part in enumerate(parts)}, self.result_index
