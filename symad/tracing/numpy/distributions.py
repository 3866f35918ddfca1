"""SciPy's distributions by their own formulas. Selects choose the formula of each range.

A method such as `scipy.stats.norm.logpdf` checks its arguments and calls the formula (`_logpdf`) for those elements
that pass. It extracts and places them by their values, which traced arrays do not know when they are compiled; here
the formula is evaluated for all, and selected: its derivative is that of the side which is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.calling.running import callee
from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.select import applied
from symad.tracing.numpy.ufuncs import UFUNCS
from symad.tracing.values.array import numbers_of_constants
from symad.tracing.values.node_operands import holds_traced

Method = Callable[..., Any]

MODULES = tuple(f"scipy.stats.{name}" for name in ("_distn_infrastructure", "_continuous_distns", "_discrete_distns"))
EXTRAS = ("scipy._lib.array_api_extra", "scipy._external.array_api_extra")  # its place since SciPy 1.18
_CONTINUOUS, _DISCRETE = (f"{MODULES[0]}.rv_{kind}" for kind in ("continuous", "discrete"))
_NORMAL = "scipy.stats._multivariate.multivariate_normal"

# What a method answers below and above the support.
_OUTSIDE = {
    "pdf": (0.0, 0.0), "logpdf": (-math.inf, -math.inf), "pmf": (0.0, 0.0), "logpmf": (-math.inf, -math.inf),
    "cdf": (0.0, 1.0), "logcdf": (-math.inf, 0.0), "sf": (1.0, 0.0), "logsf": (0.0, -math.inf),
}  # fmt: skip


def _array(value: Any) -> Any:
    return traced(value) if holds_traced((value,)) else np.asarray(value)


def _arrays(args: Any, loc: Any, scale: Any) -> tuple[tuple[Any, ...], Any, Any]:
    return tuple(map(_array, args)), _array(loc), _array(scale)


def _formula(self: Any, name: str, *args: Any) -> Any:
    """Return a formula, which takes arrays of one axis and of one length, in the shape of its arguments."""
    arrays = np.broadcast_arrays(*args)
    shape = np.shape(arrays[0])
    rows = [np.ravel(array) for array in arrays]
    return np.reshape(np.broadcast_to(callee(getattr(self, name))(*rows), np.shape(rows[0])), shape)


def _selected(valid: Any, inside: Any, inner: Any, outside: Any) -> Any:
    """The formula inside, and NaN for arguments that are not valid: a factor, so that its slopes are NaN there too."""
    return np.where(np.logical_and(valid, np.logical_not(inside)), outside, inner * np.where(valid, 1.0, math.nan))


def _outside(name: str, is_above: Any) -> Any:
    below, above = _OUTSIDE[name]
    return below if below == above else np.where(is_above, above, below)


def _continuous(name: str) -> Method:
    def method(self: Any, x: Any, *args: Any, **keywords: Any) -> Any:
        args, loc, scale = _arrays(*self._parse_args(*args, **keywords))
        x = (_array(x) - loc) / scale
        valid = np.logical_and(np.logical_and(self._argcheck(*args), scale > 0), x == x)
        inside = _formula(self, "_support_mask" if name.endswith("pdf") else "_open_support_mask", x, *args)
        inner = _formula(self, f"_{name}", x, *args)
        inner = inner / scale if name == "pdf" else inner - np.log(scale) if name == "logpdf" else inner
        return _selected(valid, inside, inner, _outside(name, x >= self._get_support(*args)[1]))

    return method


def _discrete(name: str) -> Method:
    def method(self: Any, k: Any, *args: Any, **keywords: Any) -> Any:
        args, loc, _ = _arrays(*self._parse_args(*args, **keywords))
        k = _array(k) - loc
        first, last = self._get_support(*args)
        inside = np.logical_and(k >= first, k <= last if name.endswith("pmf") else k < last)
        if name.endswith("pmf") and not hasattr(self, "xk"):  # those of given values may have them anywhere
            inside = np.logical_and(inside, _formula(self, "_nonzero", k, *args))
        inner = _formula(self, f"_{name}", k, *args)
        inner = inner if name.startswith("log") else np.clip(inner, 0, 1)
        return _selected(np.logical_and(self._argcheck(*args), k == k), inside, inner, _outside(name, k >= last))

    return method


def _quantile(name: str) -> Method:
    def method(self: Any, q: Any, *args: Any, **keywords: Any) -> Any:
        args, loc, scale = _arrays(*self._parse_args(*args, **keywords))
        q = _array(q)
        valid = np.logical_and(np.logical_and(self._argcheck(*args), scale > 0), (loc == loc) & (q >= 0) & (q <= 1))
        ends = [end * scale + loc for end in self._get_support(*args)]
        at_0, at_1 = ends if name == "ppf" else ends[::-1]
        inner = _formula(self, f"_{name}", q, *args) * scale + loc
        return _selected(valid, (q > 0) & (q < 1), inner, np.where(q == 0, at_0, at_1))

    return method


for _name in ("pdf", "logpdf", "cdf", "logcdf", "sf", "logsf"):
    stands_in_for(f"{_CONTINUOUS}.{_name}")(_continuous(_name))
for _name in ("ppf", "isf"):
    stands_in_for(f"{_CONTINUOUS}.{_name}")(_quantile(_name))
for _name in ("pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"):
    stands_in_for(f"{_DISCRETE}.{_name}")(_discrete(_name))


def _log_tail(name: str, other: str) -> Method:
    """The default logarithm of `_cdf` or `_sf`, which has no cancellation; SciPy's asks for the median, by `_ppf`."""

    def method(self: Any, x: Any, *args: Any) -> Any:
        tail = callee(getattr(self, name))(x, *args)
        return np.where(tail < 0.5, np.log(tail), np.log1p(-callee(getattr(self, other))(x, *args)))

    return method


stands_in_for(f"{_CONTINUOUS}._logcdf")(_log_tail("_cdf", "_sf"))
stands_in_for(f"{_CONTINUOUS}._logsf")(_log_tail("_sf", "_cdf"))


@stands_in_for(*[f"{module}.apply_where" for module in EXTRAS])
def apply_where(
    cond: Any, args: Any, f1: Method, f2: Method | None = None, /, *, fill_value: Any = None, **_: Any
) -> Any:
    """f1 of the arguments where the condition holds, f2 of them or a number elsewhere: both are evaluated."""
    args = args if isinstance(args, tuple) else (args,)
    return np.where(cond, f1(*args), fill_value if f2 is None else f2(*args))


@stands_in_for("scipy._lib._util._lazywhere")
def lazywhere(cond: Any, arrays: Any, f: Method, fillvalue: Any = None, f2: Method | None = None) -> Any:
    """The same, by the name that it has in older versions of SciPy."""
    return apply_where(cond, tuple(arrays), f, f2, fill_value=fillvalue)


@stands_in_for("scipy._lib._util._lazyselect")
def lazyselect(condlist: Any, choicelist: Any, arrays: Any, default: Any = 0) -> Any:
    """The first of several functions of the arguments whose condition holds."""
    return np.select(condlist, [choice(*arrays) for choice in choicelist], default)


# Normal distributions of vectors

_Normal = tuple[int, Any, Callable[[Any], Any], Any, Any]  # dimensions, mean, whitening, log determinant, covariance


def _normal(self: Any, mean: Any, cov: Any, allow_singular: Any) -> _Normal:
    """Return what a density consists of: by SciPy's factors of plain covariances, by Cholesky's of traced ones."""
    mean = None if mean is None else _array(mean)
    cov = traced(cov) if holds_traced((cov,)) else cov
    numbers = numbers_of_constants(cov)  # of an array that the user's function makes
    cov = cov if numbers is None else numbers
    if not holds_traced((cov,)):
        plain = None if mean is None else np.zeros(np.shape(mean))
        dimensions, zeros, known = self._process_parameters(plain, cov, allow_singular)
        mean = zeros if mean is None else np.reshape(mean, np.shape(zeros))
        return dimensions, mean, known.whiten, known.log_pdet, known
    dimensions = mean.size if mean is not None else 1 if cov.ndim < 2 else len(cov)
    if cov.ndim < 2 and cov.size in (1, dimensions):
        cov = np.reshape(cov, (-1, 1)) * np.eye(dimensions)
    mean = np.zeros(dimensions) if mean is None else np.reshape(mean, -1)
    if cov.shape != (dimensions, dimensions):
        raise ValueError(f"the covariances have shape {cov.shape} for {dimensions} dimensions")
    factor = np.linalg.cholesky(cov)

    def whiten(deviations: Any) -> Any:
        return np.reshape(np.linalg.solve(factor, np.reshape(deviations, (-1, dimensions)).T).T, np.shape(deviations))

    return dimensions, mean, whiten, 2 * np.sum(np.log(np.diag(factor))), None


def _log_density(x: Any, normal: _Normal) -> Any:
    dimensions, mean, whiten, log_determinant, known = normal
    x = _array(x)
    x = np.reshape(x, (-1, 1) if dimensions == 1 else (1, -1)) if x.ndim < 2 else x
    deviations = x - mean
    rank = dimensions if known is None else known.rank
    density = -0.5 * (rank * math.log(2 * math.pi) + log_determinant + np.sum(np.square(whiten(deviations)), axis=-1))
    if known is not None and rank < dimensions:
        density = np.where(known._support_mask(deviations), density, -math.inf)
    density = np.squeeze(density)
    return density if density.ndim else density[()]


@stands_in_for(f"{_NORMAL}_gen.logpdf")
def normal_logpdf(self: Any, x: Any, mean: Any = None, cov: Any = 1, allow_singular: Any = False) -> Any:
    """The logarithm of the density of normally distributed vectors."""
    return _log_density(x, _normal(self, mean, cov, allow_singular))


@stands_in_for(f"{_NORMAL}_frozen.logpdf")
def frozen_normal_logpdf(self: Any, x: Any) -> Any:
    """The logarithm of the density of vectors whose mean and covariances are known."""
    return _log_density(x, (self.dim, self.mean, self.cov_object.whiten, self.cov_object.log_pdet, self.cov_object))


stands_in_for(f"{_NORMAL}_gen.pdf")(lambda *args, **keywords: np.exp(normal_logpdf(*args, **keywords)))
stands_in_for(f"{_NORMAL}_frozen.pdf")(lambda self, x: np.exp(frozen_normal_logpdf(self, x)))


@stands_in_for("scipy.stats._continuous_distns._log_diff")
def log_difference(log_p: Any, log_q: Any) -> Any:
    """log(p - q) of two logarithms; SciPy goes through complex numbers."""
    return log_p + np.log1p(-np.exp(log_q - log_p))


@stands_in_for("scipy.stats._continuous_distns._log_gauss_mass")
def log_gauss_mass(a: Any, b: Any) -> Any:
    """The logarithm of the normal probability between a and b: in tails by the left one, as SciPy takes it."""
    is_right = a > 0
    low, high = np.where(is_right, -b, a), np.where(is_right, -a, b)
    tail = log_difference(applied(UFUNCS["log_ndtr"], high), applied(UFUNCS["log_ndtr"], low))
    center = np.log1p(-applied(UFUNCS["ndtr"], a) - applied(UFUNCS["ndtr"], -b))
    return np.where((b <= 0) | is_right, tail, center)


def _log_share(inner: Any, outer: Any, whole: Any) -> Any:
    """The logarithm of a part of a probability, by the other part where it is nearly all."""
    share = inner - whole
    return np.where(share > -0.1, np.log1p(-np.exp(outer - whole)), share)


@stands_in_for("scipy.stats._continuous_distns.truncnorm_gen._logcdf")
def truncnorm_logcdf(self: Any, x: Any, a: Any, b: Any) -> Any:
    """SciPy's own calls itself for some elements."""
    return _log_share(log_gauss_mass(a, x), log_gauss_mass(x, b), log_gauss_mass(a, b))


@stands_in_for("scipy.stats._continuous_distns.truncnorm_gen._logsf")
def truncnorm_logsf(self: Any, x: Any, a: Any, b: Any) -> Any:
    """The same of what is above x."""
    return _log_share(log_gauss_mass(x, b), log_gauss_mass(a, x), log_gauss_mass(a, b))
