"""Order statistics of samples: ranks, trimming, limits.

Ranks, and whatever is made of them, are constant but where two elements are equal: their derivatives are 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import fails
from symad.tracing.scipy.sample_statistics import Named, correlation, flat, only, two_sided
from symad.tracing.values.traced import refuse_function

NORMAL_QUARTILE = 0.6744897501960817


def _earlier(count: int) -> Any:
    """Return, for each element (rows) and each other one (columns), whether that one comes first."""
    return np.tri(count, k=-1, dtype=bool)


def _average(less: Any, equal: Any) -> Any:
    return np.sum(less, axis=-1) + (np.sum(equal, axis=-1) + 1) / 2


def _dense(less: Any, equal: Any) -> Any:
    is_first = ~np.any(equal & _earlier(equal.shape[-1]), axis=-1)
    return np.sum(less & is_first[..., None, :], axis=-1) + 1


_RANKS: dict[str, Callable[[Any, Any], Any]] = {
    "average": _average,
    "min": lambda less, equal: np.sum(less, axis=-1) + 1,
    "max": lambda less, equal: np.sum(less, axis=-1) + np.sum(equal, axis=-1),
    "dense": _dense,
    "ordinal": lambda less, equal: np.sum(less | (equal & _earlier(equal.shape[-1])), axis=-1) + 1,
}


@stands_in_for("scipy.stats.rankdata")
def rankdata(a: Any, method: str = "average", *, axis: Any = None, nan_policy: str = "propagate") -> Any:
    """The places of elements when they are sorted, from 1, by comparing each with each; NaN beside a NaN."""
    only("rankdata", nan_policy=nan_policy != "propagate")
    if method not in _RANKS:
        raise ValueError(f'unknown method "{method}"')
    values = np.moveaxis(flat(a, axis)[0], 0 if axis is None else axis, -1)
    less = values[..., None, :] < values[..., :, None]
    ranks = _RANKS[method](less, values[..., None, :] == values[..., :, None])
    ranks = np.where(np.any(np.isnan(values), axis=-1, keepdims=True), np.nan, ranks)
    return np.moveaxis(ranks, -1, 0 if axis is None else axis)


@stands_in_for("scipy.stats.spearmanr")
def spearmanr(
    a: Any, b: Any = None, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> Any:
    """The correlation of the ranks of two samples, and how probable it is without one."""
    only("spearmanr", alternative=alternative != "two-sided", nan_policy=nan_policy != "propagate")
    if b is None or np.ndim(a) != 1 or np.ndim(b) != 1:
        refuse_function("scipy.stats.spearmanr of a matrix", "it has no traced form", "give two samples x and y")
    r, degrees = correlation(rankdata(a), rankdata(b)), len(a) - 2
    p = two_sided(r * np.sqrt(np.maximum(degrees / ((r + 1.0) * (1.0 - r)), 0.0)), float(degrees))
    return Named(statistic=r, pvalue=p, correlation=r)


@stands_in_for("scipy.stats.trim_mean")
def trim_mean(
    a: Any, proportiontocut: float, axis: Any = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The mean of what is left when a share of the smallest and of the largest elements is left out."""
    only("trim_mean", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    values, axis = flat(a, axis)
    count = values.shape[axis]
    cut = int(proportiontocut * count)
    if cut > count - cut:
        raise ValueError("Proportion too big.")
    return np.mean(np.moveaxis(np.sort(values, axis=axis), axis, 0)[cut : count - cut], axis=0)


@stands_in_for("scipy.stats.median_abs_deviation")
def median_abs_deviation(
    x: Any, axis: Any = 0, center: Any = None, scale: Any = 1.0, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The median of the distances from the median."""
    only("median_abs_deviation", nan_policy=nan_policy != "propagate", keepdims=keepdims,
         center=center not in (None, np.median))  # fmt: skip
    values, axis = flat(x, axis)
    deviation = np.median(np.abs(values - np.median(values, axis=axis, keepdims=True)), axis=axis)
    return deviation / (NORMAL_QUARTILE if isinstance(scale, str) and scale.lower() == "normal" else scale)


# ---- what lies within limits


def _within(a: Any, limits: Any, inclusive: Any) -> Any:
    """Return which elements lie within limits, of which one may be None; a NaN does, as in SciPy."""
    low, high = (None, None) if limits is None else limits
    outside = np.zeros(np.shape(a), dtype=bool)
    if low is not None:
        outside = outside | ((a < low) if inclusive[0] else (a <= low))
    if high is not None:
        outside = outside | ((a > high) if inclusive[1] else (a >= high))
    if fails(np.any, ~outside):
        raise ValueError("No array values within given limits")
    return ~outside


def _moments(a: Any, limits: Any, inclusive: Any, axis: Any) -> tuple[Any, Any, Any]:
    """Return how many elements lie within limits, their mean, and the sum of their squared distances from it."""
    values, axis = flat(a, axis)
    inside = _within(values, limits, inclusive)
    count = np.sum(inside, axis=axis, keepdims=True)
    mean = np.sum(np.where(inside, values, 0.0), axis=axis, keepdims=True) / count
    squares = np.sum(np.where(inside, values - mean, 0.0) ** 2, axis=axis)
    return np.squeeze(count, axis), np.squeeze(mean, axis), squares


@stands_in_for("scipy.stats.tmean")
def tmean(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = None, *, nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The mean of what lies within limits; NaN where nothing does."""
    only("tmean", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    return _moments(a, limits, inclusive, axis)[1]


@stands_in_for("scipy.stats.tvar")
def tvar(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1, *,
    nan_policy: str = "propagate", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The variance of what lies within limits."""
    only("tvar", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    count, _, squares = _moments(a, limits, inclusive, axis)
    return squares / (count - ddof)


@stands_in_for("scipy.stats.tstd")
def tstd(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1, **keywords: Any
) -> Any:
    """The standard deviation of what lies within limits."""
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof, **keywords))


@stands_in_for("scipy.stats.tsem")
def tsem(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1, **keywords: Any
) -> Any:
    """The standard error of the mean of what lies within limits."""
    deviation = tstd(a, limits, inclusive, axis, ddof, **keywords)
    return deviation / np.sqrt(_moments(a, limits, inclusive, axis)[0])
