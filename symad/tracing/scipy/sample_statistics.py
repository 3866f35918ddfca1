"""Statistics of samples in scipy.stats: moments, correlation, regression, tests, ranks, limits, kernel densities."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from symad.tracing.numpy.distributions import normal_logpdf
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import scipy_form
from symad.tracing.scipy.objects import array, fails
from symad.tracing.values.traced import refuse_function, refuse_options


class Named(tuple[Any, ...]):
    """A tuple whose elements have names, and more attributes."""

    def __new__(cls, first: int = 2, /, **parts: Any) -> Named:
        named = super().__new__(cls, list(parts.values())[:first])
        vars(named).update(parts)
        return named


def sample(a: Any) -> Any:
    """Return a sample as an array. A number is a sample of one, as SciPy has it."""
    return np.atleast_1d(array(a))


def flat(a: Any, axis: Any) -> tuple[Any, Any]:
    return (np.ravel(array(a)), 0) if axis is None else (sample(a), axis)


def _moment(a: Any, order: Any, axis: Any) -> Any:
    return np.mean((a - np.mean(a, axis=axis, keepdims=True)) ** order, axis=axis)


@scipy_form("scipy.stats.zmap")
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """Deviations from the mean of other values, in their standard deviations."""
    compare, along = flat(compare, axis)
    mean = np.mean(compare, axis=along, keepdims=True)
    deviation = np.std(compare, axis=along, ddof=ddof, keepdims=True)
    return (array(scores) - mean) / deviation if axis is not None else (array(scores) - mean[0]) / deviation[0]


scipy_form("scipy.stats.zscore")(lambda a, axis=0, ddof=0: zmap(a, a, axis, ddof))


@scipy_form("scipy.stats.moment")
def moment(a: Any, order: Any = 1, axis: Any = 0, center: Any = None) -> Any:
    """A moment about the mean, or about a center."""
    refuse_options("scipy.stats", "moment", order=np.ndim(order) > 0)
    values, axis = flat(a, axis)
    return _moment(values, order, axis) if center is None else np.mean((values - center) ** order, axis=axis)


@scipy_form("scipy.stats.skew")
def skew(a: Any, axis: Any = 0, bias: bool = True) -> Any:
    """The third moment, in deviations."""
    values, axis = flat(a, axis)
    count, skewness = values.shape[axis], _moment(values, 3, axis) / _moment(values, 2, axis) ** 1.5
    return skewness if bias or count < 3 else skewness * math.sqrt(count * (count - 1)) / (count - 2)


@scipy_form("scipy.stats.kurtosis")
def kurtosis(a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True) -> Any:
    """The fourth moment, in deviations; less that of normal values."""
    values, axis = flat(a, axis)
    count, moment = values.shape[axis], _moment(values, 4, axis) / _moment(values, 2, axis) ** 2
    if not bias and count > 3:
        moment = ((count**2 - 1) * moment - 3 * (count - 1) ** 2) / ((count - 2) * (count - 3)) + 3
    return moment - 3 if fisher else moment


@scipy_form("scipy.stats.variation")
def variation(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """The standard deviation, relative to the mean."""
    values, axis = flat(a, axis)
    return np.std(values, axis=axis, ddof=ddof) / np.mean(values, axis=axis)


@scipy_form("scipy.stats.hmean")
def hmean(a: Any, axis: Any = 0) -> Any:
    """The harmonic mean, NaN where an element is negative."""
    values, axis = flat(a, axis)
    return 1 / np.mean(1 / np.where(values < 0, np.nan, values), axis=axis)


@scipy_form("scipy.stats.iqr")
def iqr(
    x: Any,
    axis: Any = None,
    rng: Any = (25, 75),
    scale: Any = 1.0,
    interpolation: Any = "linear",
    keepdims: Any = False,
) -> Any:
    """The distance of two percentiles."""
    refuse_options("scipy.stats", "iqr", scale=not isinstance(scale, int | float))
    low, high = np.percentile(array(x), list(rng), axis=axis, method=interpolation, keepdims=keepdims)
    return (high - low) / scale


@scipy_form("scipy.stats.entropy")
def entropy(pk: Any, qk: Any = None, base: Any = None, axis: int = 0) -> Any:
    """The entropy of a distribution, or its distance from another one."""
    special = sys.modules["scipy.special"]
    given = [sample(part) for part in (pk, qk) if part is not None]
    shares = [part / np.sum(part, axis=axis, keepdims=True) for part in given]
    total = np.sum(special.entr(*shares) if qk is None else special.rel_entr(*shares), axis=axis)
    return total if base is None else total / np.log(base)


# ---- correlation and regression


def correlation(x: Any, y: Any) -> Any:
    """Return the product of both samples, centred and scaled to length 1, in the order in which SciPy rounds."""
    return np.clip(np.dot(_standardised(x), _standardised(y)), -1.0, 1.0)


def _standardised(x: Any) -> Any:
    deviations = x - np.mean(x)
    largest = np.max(np.abs(deviations))
    return deviations / (largest * np.linalg.norm(deviations / largest))


def two_sided(statistic: Any, degrees: Any) -> Any:
    """Return how probable a statistic of Student's distribution is that is as far from 0."""
    return 2 * sys.modules["scipy.special"].stdtr(degrees, -np.abs(traced(statistic)))


@scipy_form("scipy.stats.pearsonr")
def pearsonr(x: Any, y: Any, axis: Any = 0) -> Any:
    """The correlation of two samples, and how probable it is without one."""
    refuse_options("scipy.stats", "pearsonr", axis=np.ndim(x) != 1)
    x, y = array(x), array(y)
    r, degrees = correlation(x, y), len(x) - 2
    p = two_sided(r * np.sqrt(degrees / (1 - r * r)), float(degrees)) if degrees > 0 else 1.0
    return Named(statistic=r, pvalue=p, correlation=r)


@scipy_form("scipy.stats.linregress")
def linregress(x: Any, y: Any) -> Any:
    """A straight line through points."""
    x, y = array(x), array(y)
    if len(x) > 1 and fails(lambda x: np.any(x != x[0]), x):
        raise ValueError("Cannot calculate a linear regression if all x values are identical")
    dx, dy, degrees = x - np.mean(x), y - np.mean(y), len(x) - 2
    squares, products, others = np.mean(dx**2), np.mean(dx * dy), np.mean(dy**2)
    slope, r = products / squares, np.clip(products / np.sqrt(squares * others), -1.0, 1.0)
    if degrees:
        p = two_sided(r * np.sqrt(degrees / ((1.0 - r + _TINY) * (1.0 + r + _TINY))), float(degrees))
        error = np.sqrt((1 - r**2) * others / squares / degrees)
    else:  # a line through two points
        p, error = np.where(y[0] == y[1], 1.0, 0.0), 0.0
    return Named(
        5,
        slope=slope, intercept=np.mean(y) - slope * np.mean(x), rvalue=r, pvalue=p, stderr=error,
        intercept_stderr=error * np.sqrt(squares + np.mean(x) ** 2),
    )  # fmt: skip


_TINY = 1e-20  # SciPy's: keeps the statistic of a perfect line finite


@scipy_form("scipy.stats.ttest_1samp")
def ttest_1samp(a: Any, popmean: Any, axis: int = 0) -> Any:
    """Whether the mean of a sample is a number."""
    values = sample(a)
    degrees = values.shape[axis] - 1
    error = np.std(values, axis=axis, ddof=1) / math.sqrt(values.shape[axis])
    t = (np.mean(values, axis=axis) - popmean) / error
    return Named(statistic=t, pvalue=two_sided(t, float(degrees)), df=degrees)


@scipy_form("scipy.stats.ttest_ind")
def ttest_ind(a: Any, b: Any, axis: int = 0) -> Any:
    """Whether two samples have the same mean."""
    first, second = sample(a), sample(b)
    counts = first.shape[axis], second.shape[axis]
    degrees = sum(counts) - 2
    pooled = sum(n * np.var(v, axis=axis) for n, v in zip(counts, (first, second), strict=True))
    error = np.sqrt(pooled / degrees * (1 / counts[0] + 1 / counts[1]))
    t = (np.mean(first, axis=axis) - np.mean(second, axis=axis)) / error
    return Named(statistic=t, pvalue=two_sided(t, float(degrees)), df=float(degrees))


# ---- order statistics: ranks, and whatever is made of them, are constant but where two elements are equal

NORMAL_QUARTILE = 0.6744897501960817


def _earlier(count: int) -> Any:
    """Return, for each element (rows) and each other one (columns), whether that one comes first."""
    return np.tri(count, k=-1, dtype=bool)


def _dense(less: Any, equal: Any) -> Any:
    is_first = ~np.any(equal & _earlier(equal.shape[-1]), axis=-1)
    return np.sum(less & is_first[..., None, :], axis=-1) + 1


_RANKS: dict[str, Callable[[Any, Any], Any]] = {
    "average": lambda less, equal: np.sum(less, axis=-1) + (np.sum(equal, axis=-1) + 1) / 2,
    "min": lambda less, equal: np.sum(less, axis=-1) + 1,
    "max": lambda less, equal: np.sum(less, axis=-1) + np.sum(equal, axis=-1),
    "dense": _dense,
    "ordinal": lambda less, equal: np.sum(less | (equal & _earlier(equal.shape[-1])), axis=-1) + 1,
}


@scipy_form("scipy.stats.rankdata")
def rankdata(a: Any, method: str = "average", axis: Any = None) -> Any:
    """The places of elements when they are sorted, from 1, by comparing each with each; NaN beside a NaN."""
    if method not in _RANKS:
        raise ValueError(f'unknown method "{method}"')
    values = np.moveaxis(flat(a, axis)[0], 0 if axis is None else axis, -1)
    less = values[..., None, :] < values[..., :, None]
    ranks = _RANKS[method](less, values[..., None, :] == values[..., :, None])
    ranks = np.where(np.any(np.isnan(values), axis=-1, keepdims=True), np.nan, ranks)
    return np.moveaxis(ranks, -1, 0 if axis is None else axis)


@scipy_form("scipy.stats.spearmanr")
def spearmanr(a: Any, b: Any = None, axis: Any = 0) -> Any:
    """The correlation of the ranks of two samples, and how probable it is without one."""
    if b is None or np.ndim(a) != 1 or np.ndim(b) != 1:
        refuse_function("scipy.stats.spearmanr of a matrix", "it has no traced form", "give two samples x and y")
    r, degrees = correlation(rankdata(a), rankdata(b)), len(a) - 2
    p = two_sided(r * np.sqrt(np.maximum(degrees / ((r + 1.0) * (1.0 - r)), 0.0)), float(degrees))
    return Named(statistic=r, pvalue=p, correlation=r)


@scipy_form("scipy.stats.trim_mean")
def trim_mean(a: Any, proportiontocut: float, axis: Any = 0) -> Any:
    """The mean of what is left when a share of the smallest and of the largest elements is left out."""
    values, axis = flat(a, axis)
    count = values.shape[axis]
    cut = int(proportiontocut * count)
    if cut > count - cut:
        raise ValueError("Proportion too big.")
    return np.mean(np.moveaxis(np.sort(values, axis=axis), axis, 0)[cut : count - cut], axis=0)


@scipy_form("scipy.stats.median_abs_deviation")
def median_abs_deviation(x: Any, axis: Any = 0, center: Any = None, scale: Any = 1.0) -> Any:
    """The median of the distances from the median."""
    refuse_options("scipy.stats", "median_abs_deviation", center=center not in (None, np.median))
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


@scipy_form("scipy.stats.tmean")
def tmean(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = None) -> Any:
    """The mean of what lies within limits; NaN where nothing does."""
    return _moments(a, limits, inclusive, axis)[1]


@scipy_form("scipy.stats.tvar")
def tvar(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1) -> Any:
    """The variance of what lies within limits."""
    count, _, squares = _moments(a, limits, inclusive, axis)
    return squares / (count - ddof)


@scipy_form("scipy.stats.tstd")
def tstd(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1) -> Any:
    """The standard deviation of what lies within limits."""
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof))


@scipy_form("scipy.stats.tsem")
def tsem(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1) -> Any:
    """The standard error of the mean of what lies within limits."""
    deviation = tstd(a, limits, inclusive, axis, ddof)
    return deviation / np.sqrt(_moments(a, limits, inclusive, axis)[0])


# ---- densities


_KDE = "scipy.stats._kde.gaussian_kde"


@stands_in_for(f"{_KDE}.__init__", held=())
def kde(self: Any, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
    """A density by kernels, of which the data are traced."""
    if weights is not None or not (bw_method is None or isinstance(bw_method, int | float | str)):
        refuse_function("scipy.stats.gaussian_kde", "weights= and callables have no traced form", "leave them out")
    self.dataset = np.atleast_2d(traced(dataset))
    self.d, self.n = self.dataset.shape
    self._weights, self._neff = np.ones(self.n) / self.n, float(self.n)
    scott = self.n ** (-1.0 / (self.d + 4))
    named = {None: scott, "scott": scott, "silverman": scott * (4.0 / (self.d + 2)) ** (1.0 / (self.d + 4))}
    self.factor = named[bw_method] if bw_method is None or isinstance(bw_method, str) else bw_method
    self._data_covariance = np.reshape(np.cov(self.dataset), (self.d, self.d))
    self.covariance = self._data_covariance * self.factor**2


@stands_in_for(f"{_KDE}.evaluate", f"{_KDE}.__call__", f"{_KDE}.pdf", held=("dataset",))
def kde_density(self: Any, points: Any) -> Any:
    """The density at points."""
    points = np.atleast_2d(array(points))
    if points.shape[0] != self.d:
        points = np.reshape(points, (self.d, -1))
    factor = np.linalg.cholesky(self.covariance)
    apart = np.reshape(points[:, :, None] - self.dataset[:, None, :], (self.d, -1))
    white = np.reshape(np.linalg.solve(factor, apart), (self.d, points.shape[1], self.n))
    height = np.prod(np.diag(factor)) * (2 * math.pi) ** (self.d / 2)
    return np.sum(self._weights * np.exp(-0.5 * np.sum(white**2, axis=0)), axis=-1) / height


stands_in_for(f"{_KDE}.logpdf", held=("dataset",))(lambda self, x: np.log(kde_density(self, x)))


class _Frozen:
    """A normal distribution of vectors whose mean or covariances are traced."""

    def __init__(self, general: Any, mean: Any, cov: Any, allow_singular: Any) -> None:
        self._general, self.mean, self.cov, self.allow_singular = general, mean, cov, allow_singular

    def logpdf(self, x: Any) -> Any:
        """Return the logarithm of the density."""
        return normal_logpdf(self._general, x, self.mean, self.cov, self.allow_singular)

    def pdf(self, x: Any) -> Any:
        """Return the density."""
        return np.exp(self.logpdf(x))

    def __getattr__(self, name: str) -> NoReturn:
        why = f"its {name} has no traced form where mean or covariances are traced"
        refuse_function("scipy.stats.multivariate_normal", why, "use pdf or logpdf")


@stands_in_for("scipy.stats._multivariate.multivariate_normal_gen.__call__", held=())
def frozen_normal(self: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False, seed: Any = None) -> Any:
    """A normal distribution of vectors with its mean and covariances."""
    return _Frozen(self, mean, cov, allow_singular)
