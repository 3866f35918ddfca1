"""Statistics of samples in scipy.stats: moments, correlation, regression, tests, kernel densities."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, NoReturn

import numpy as np

from symad.tracing.numpy.distributions import normal_logpdf
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import array, fails
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import refuse_function, refuse_options

only = partial(refuse_options, "scipy.stats")


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


@stands_in_for("scipy.stats.zscore")
def zscore(a: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """Deviations from the mean, in standard deviations."""
    return zmap(a, a, axis, ddof, nan_policy)


@stands_in_for("scipy.stats.zmap")
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate") -> Any:
    """The same, of the mean and the deviation of other values."""
    only("zscore", nan_policy=nan_policy != "propagate")
    compare, along = flat(compare, axis)
    mean = np.mean(compare, axis=along, keepdims=True)
    deviation = np.std(compare, axis=along, ddof=ddof, keepdims=True)
    return (array(scores) - mean) / deviation if axis is not None else (array(scores) - mean[0]) / deviation[0]


@stands_in_for("scipy.stats.moment")
def moment(
    a: Any, order: Any = 1, axis: Any = 0, nan_policy: str = "propagate", *, center: Any = None, keepdims: bool = False
) -> Any:
    """A moment about the mean, or about a center."""
    only("moment", nan_policy=nan_policy != "propagate", keepdims=keepdims, order=np.ndim(order) > 0)
    values, axis = flat(a, axis)
    return _moment(values, order, axis) if center is None else np.mean((values - center) ** order, axis=axis)


@stands_in_for("scipy.stats.skew")
def skew(a: Any, axis: Any = 0, bias: bool = True, nan_policy: str = "propagate", *, keepdims: bool = False) -> Any:
    """The third moment, in deviations."""
    only("skew", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    values, axis = flat(a, axis)
    count, skewness = values.shape[axis], _moment(values, 3, axis) / _moment(values, 2, axis) ** 1.5
    return skewness if bias or count < 3 else skewness * math.sqrt(count * (count - 1)) / (count - 2)


@stands_in_for("scipy.stats.kurtosis")
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, nan_policy: str = "propagate", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """The fourth moment, in deviations; less that of normal values."""
    only("kurtosis", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    values, axis = flat(a, axis)
    count, moment = values.shape[axis], _moment(values, 4, axis) / _moment(values, 2, axis) ** 2
    if not bias and count > 3:
        moment = ((count**2 - 1) * moment - 3 * (count - 1) ** 2) / ((count - 2) * (count - 3)) + 3
    return moment - 3 if fisher else moment


@stands_in_for("scipy.stats.variation")
def variation(a: Any, axis: Any = 0, nan_policy: str = "propagate", ddof: int = 0, *, keepdims: bool = False) -> Any:
    """The standard deviation, relative to the mean."""
    only("variation", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    values, axis = flat(a, axis)
    return np.std(values, axis=axis, ddof=ddof) / np.mean(values, axis=axis)


@stands_in_for("scipy.stats.hmean")
def hmean(a: Any, axis: Any = 0, dtype: Any = None, *, weights: Any = None, nan_policy: str = "propagate",
          keepdims: bool = False) -> Any:  # fmt: skip
    """The harmonic mean, NaN where an element is negative."""
    only("hmean", weights=weights is not None, nan_policy=nan_policy != "propagate", keepdims=keepdims)
    values, axis = flat(a, axis)
    return 1 / np.mean(1 / np.where(values < 0, np.nan, values), axis=axis)


@stands_in_for("scipy.stats.iqr")
def iqr(
    x: Any, axis: Any = None, rng: Any = (25, 75), scale: Any = 1.0, nan_policy: str = "propagate",
    interpolation: Any = "linear", keepdims: bool = False,
) -> Any:  # fmt: skip
    """The distance of two percentiles."""
    only("iqr", nan_policy=nan_policy != "propagate", scale=not isinstance(scale, int | float))
    low, high = np.percentile(array(x), list(rng), axis=axis, method=interpolation, keepdims=keepdims)
    return (high - low) / scale


@stands_in_for("scipy.stats.entropy")
def entropy(
    pk: Any, qk: Any = None, base: Any = None, axis: int = 0, *, nan_policy: str = "propagate", keepdims: bool = False
) -> Any:
    """The entropy of a distribution, or its distance from another one."""
    only("entropy", nan_policy=nan_policy != "propagate", keepdims=keepdims)
    special = sys.modules["scipy.special"]
    pk = sample(pk)
    shares = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        terms = _ufunc(special.entr, shares)
    else:
        terms = _ufunc(special.rel_entr, shares, sample(qk) / np.sum(sample(qk), axis=axis, keepdims=True))
    total = np.sum(terms, axis=axis)
    return total if base is None else total / np.log(base)


def _ufunc(function: Any, *values: Any) -> Any:
    return function(*[traced(value) if holds_traced(values) else value for value in values])


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
    return 2 * _ufunc(sys.modules["scipy.special"].stdtr, degrees, -np.abs(traced(statistic)))


@stands_in_for("scipy.stats.pearsonr")
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", method: Any = None, axis: Any = 0) -> Any:
    """The correlation of two samples, and how probable it is without one."""
    only("pearsonr", alternative=alternative != "two-sided", method=method is not None, axis=np.ndim(x) != 1)
    x, y = array(x), array(y)
    r, degrees = correlation(x, y), len(x) - 2
    p = two_sided(r * np.sqrt(degrees / (1 - r * r)), float(degrees)) if degrees > 0 else 1.0
    return Named(statistic=r, pvalue=p, correlation=r)


@stands_in_for("scipy.stats.linregress")
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """A straight line through points."""
    only("linregress", alternative=alternative != "two-sided")
    x, y = array(x), array(y)
    if len(x) > 1 and fails(_varies, x):
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


def _varies(x: Any) -> Any:
    return np.any(x != x[0])


@stands_in_for("scipy.stats.ttest_1samp")
def ttest_1samp(
    a: Any, popmean: Any, axis: int = 0, nan_policy: str = "propagate", alternative: str = "two-sided", *,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Whether the mean of a sample is a number."""
    only("ttest_1samp", alternative=alternative != "two-sided", nan_policy=nan_policy != "propagate")
    values = sample(a)
    degrees = values.shape[axis] - 1
    error = np.std(values, axis=axis, ddof=1) / math.sqrt(values.shape[axis])
    t = (np.mean(values, axis=axis) - popmean) / error
    return Named(statistic=t, pvalue=two_sided(t, float(degrees)), df=degrees)


@stands_in_for("scipy.stats.ttest_ind")
def ttest_ind(a: Any, b: Any, *, axis: int = 0, equal_var: bool = True, **keywords: Any) -> Any:
    """Whether two samples have the same mean."""
    only("ttest_ind", equal_var=not equal_var, **dict.fromkeys(keywords, True))
    first, second = sample(a), sample(b)
    counts = first.shape[axis], second.shape[axis]
    degrees = sum(counts) - 2
    pooled = sum(n * np.var(v, axis=axis) for n, v in zip(counts, (first, second), strict=True))
    error = np.sqrt(pooled / degrees * (1 / counts[0] + 1 / counts[1]))
    t = (np.mean(first, axis=axis) - np.mean(second, axis=axis)) / error
    return Named(statistic=t, pvalue=two_sided(t, float(degrees)), df=float(degrees))


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
    white = np.reshape(np.linalg.solve(*_both(factor, apart)), (self.d, points.shape[1], self.n))
    height = np.prod(np.diag(factor)) * (2 * math.pi) ** (self.d / 2)
    return np.sum(self._weights * np.exp(-0.5 * np.sum(white**2, axis=0)), axis=-1) / height


def _both(left: Any, right: Any) -> tuple[Any, Any]:
    return (traced(left), traced(right)) if holds_traced((left, right)) else (left, right)


@stands_in_for(f"{_KDE}.logpdf", held=("dataset",))
def kde_log_density(self: Any, x: Any) -> Any:
    """The logarithm of the density at points."""
    return np.log(kde_density(self, x))


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
