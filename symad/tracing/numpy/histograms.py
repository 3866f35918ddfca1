"""Histograms: counts and sums of weights in bins. Counts are piecewise constant."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.traced import refuse_function


def _edges(a: Any, bins: Any, bounds: Any) -> Any:
    """Return the edges of bins: those given, or so many of one width between the extremes."""
    if isinstance(bins, str):
        refuse_function(f"np.histogram with bins={bins!r}", "the number of bins depends on the values", "give a number")
    if np.ndim(bins):
        return bins
    if bounds is None:
        bounds = (np.min(a), np.max(a)) if np.size(a) else (0.0, 1.0)
    low, high = bounds
    low, high = np.where(low == high, low - 0.5, low), np.where(low == high, high + 0.5, high)
    return np.linspace(low, high, int(bins) + 1)


def _members(a: Any, edges: Any) -> Any:
    """Return for each bin and element whether it is in it; the last bin has its upper edge."""
    lower, upper = edges[:-1, None], edges[1:, None]
    inside = (a >= lower) & (a < upper)
    is_last = (np.arange(len(edges) - 1) == len(edges) - 2)[:, None]
    return inside | (is_last & (a == upper))


def _densities(counts: Any, edges: list[Any]) -> Any:
    """Return counts as a density: divided by their sum, and by the volumes of the bins."""
    density = counts / np.sum(counts)
    for k, its in enumerate(edges):
        widths = its[1:] - its[:-1]
        density = density / np.reshape(widths, [-1 if axis == k else 1 for axis in range(len(edges))])
    return density


@implements(np.histogram_bin_edges)
def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of a histogram."""
    return _edges(np.ravel(traced(a)), bins, range)


@implements(np.histogram)
def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """How many elements, or which sums of weights, are in bins; and their edges."""
    flat = np.ravel(traced(a))
    edges = np.asarray(bins) if isinstance(bins, list | tuple) else _edges(flat, bins, range)
    counts = np.sum(np.where(_members(flat, edges), 1.0 if weights is None else np.ravel(weights), 0.0), axis=1)
    return (_densities(counts, [edges]) if density else counts), edges


@implements(np.histogramdd)
def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The same in several dimensions; the sample has its points along the first axis."""
    points = np.transpose(traced(sample)) if np.ndim(sample) == 2 else traced(sample)
    count = len(points)
    bins_of_axes = list(bins) if np.ndim(bins) or isinstance(bins, list | tuple) else [bins] * count
    bounds = [None] * count if range is None else range
    edges = [
        np.asarray(its) if isinstance(its, list | tuple) else _edges(points[k], its, bounds[k])
        for k, its in enumerate(bins_of_axes)
    ]
    inside = [_members(points[k], edges[k]) for k in np.arange(count)]
    spread = [
        np.reshape(its, [*[len(its) if axis == k else 1 for axis in np.arange(count)], its.shape[-1]])
        for k, its in enumerate(inside)
    ]
    counts = np.sum(np.where(reduce(np.logical_and, spread), 1.0 if weights is None else weights, 0.0), axis=-1)
    counts = np.pad(counts, 1)[(slice(1, -1),) * count]  # NumPy counts what lies outside too, and shows the rest
    return (_densities(counts, edges) if density else counts), edges


@implements(np.histogram2d)
def histogram2d(x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """The same of points in a plane."""
    alike = np.ndim(bins) == 1 and len(bins) != 2
    sample = np.stack([traced(x), traced(y)], axis=-1)
    counts, (first, second) = histogramdd(sample, [bins, bins] if alike else bins, range, density, weights)
    return counts, first, second


@implements(np.packbits)
def packbits(a: Any, /, axis: Any = None, bitorder: str = "big") -> Any:
    """Eight truth values at a time as a whole number."""
    bits = np.ravel(a) if axis is None else np.moveaxis(traced(a), axis, -1)
    missing = -bits.shape[-1] % 8
    padded = np.concatenate([bits != 0, np.zeros((*bits.shape[:-1], missing), dtype=bool)], axis=-1)
    groups = np.reshape(padded, (*bits.shape[:-1], -1, 8))
    powers = 2 ** np.arange(8)
    packed = np.sum(np.where(groups, powers[::-1] if bitorder == "big" else powers, 0), axis=-1)
    return packed if axis is None else np.moveaxis(packed, -1, axis)
