"""`scipy.ndimage` on traced arrays: filters over neighbours, and interpolation."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np

from symad.tracing.numpy.curves import kept_of_convolution
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import arguments_of, scipy_form
from symad.tracing.scipy.linear_maps import along
from symad.tracing.scipy.objects import array, is_plain, package, weighed
from symad.tracing.values.traced import refuse_function, refuse_options

_PADS: dict[str, Any] = {
    "reflect": "symmetric", "grid-mirror": "symmetric", "nearest": "edge", "mirror": "reflect", "constant": "constant",
    "grid-constant": "constant", "wrap": "wrap", "grid-wrap": "wrap",
}  # fmt: skip


def _each(value: Any, rank: int) -> list[Any]:
    """Return a value for each axis."""
    return [value] * rank if isinstance(value, str) or np.ndim(value) == 0 else list(value)


def shifts(values: Any, sizes: Any, mode: Any, cval: float, origins: Any) -> list[Any]:
    """Return the array moved to each place of a window, in the order of the window's elements."""
    modes = _each(mode, values.ndim)
    padded = values
    for axis, (size, origin) in enumerate(zip(sizes, origins, strict=True)):
        before = size // 2 + origin
        widths = [(0, 0)] * values.ndim
        widths[axis] = (before, size - 1 - before)
        more = {"constant_values": cval} if _PADS[modes[axis]] == "constant" else {}
        padded = np.pad(padded, widths, mode=_PADS[modes[axis]], **more)
    starts = itertools.product(*[range(size) for size in sizes])
    lengths = values.shape
    return [padded[tuple(slice(s, s + n) for s, n in zip(start, lengths, strict=True))] for start in starts]


@scipy_form("scipy.ndimage.correlate", held=())
def correlate(input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Any:
    """The sums of each element's neighbours, weighed."""
    values, weights = array(input), array(weights)
    if weights.ndim != values.ndim:
        raise RuntimeError(f"weights.ndim ({weights.ndim}) must match len(axes) ({values.ndim})")
    parts = shifts(values, weights.shape, mode, cval, _each(origin, values.ndim))
    flat = np.ravel(weights)
    chosen = [k for k in range(len(parts)) if not is_plain(flat) or flat[k] != 0]
    sums: Any = 0.0 * values
    for k in chosen:
        sums = sums + flat[k] * parts[k]
    return sums


@scipy_form("scipy.ndimage.convolve", held=())
def convolve(input: Any, weights: Any, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Any:
    """The same, of the weights turned round."""
    weights = array(weights)
    origins = [-o - (size % 2 == 0) for o, size in zip(_each(origin, weights.ndim), weights.shape, strict=True)]
    return correlate(input, np.flip(weights), mode, cval, origins)


@scipy_form("scipy.ndimage.correlate1d", held=())
def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The sums of neighbours along an axis, weighed."""
    values, weights = array(input), array(weights)
    shape = [1] * values.ndim
    shape[axis] = len(weights)
    origins = [0] * values.ndim
    origins[axis] = origin
    return correlate(values, np.reshape(weights, shape), mode, cval, origins)


@scipy_form("scipy.ndimage.convolve1d", held=())
def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: float = 0.0, origin: int = 0
) -> Any:
    """The same, of the weights turned round."""
    weights = array(weights)
    return correlate1d(input, weights[::-1], axis, mode, cval, -origin - (len(weights) % 2 == 0))


@scipy_form("scipy.ndimage.gaussian_filter", held=())
def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0,
    radius: Any = None,
) -> Any:  # fmt: skip
    """The array smoothed by normal weights along each axis, of plain widths."""
    values = array(input)
    if not is_plain(sigma):
        do = "give it numbers, or write the weights and use scipy.ndimage.correlate1d"
        refuse_function("scipy.ndimage.gaussian_filter with a traced sigma", "how many neighbours count follows it", do)
    rows = zip(*[_each(part, values.ndim) for part in (sigma, order, mode, radius)], strict=True)
    own = package("ndimage").gaussian_filter1d
    for axis, (width, degree, way, reach) in enumerate(rows):
        if width > 1e-15:
            more = {"order": degree, "mode": way, "cval": cval, "truncate": truncate, "radius": reach}
            values = along("scipy.ndimage.gaussian_filter", values, axis, partial(own, sigma=width, axis=0, **more))
    return values


@scipy_form("scipy.ndimage.uniform_filter", held=())
def uniform_filter(input: Any, size: Any = 3, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0) -> Any:
    """The means of windows."""
    values = array(input)
    own = package("ndimage").uniform_filter1d
    rows = zip(*[_each(part, values.ndim) for part in (size, mode, origin)], strict=True)
    for axis, (width, way, start) in enumerate(rows):
        along_axis = partial(own, size=width, axis=0, mode=way, cval=cval, origin=start)
        values = along("scipy.ndimage.uniform_filter", values, axis, along_axis)
    return values


def _edges(name: str, across: list[float]) -> None:
    @scipy_form(f"scipy.ndimage.{name}", held=())
    def handler(input: Any, axis: int = -1, mode: Any = "reflect", cval: float = 0.0) -> Any:
        values = array(input)
        modes, axis = _each(mode, values.ndim), axis % values.ndim
        edges = correlate1d(values, [-1.0, 0.0, 1.0], axis, modes[axis], cval)
        for other in range(values.ndim):
            edges = edges if other == axis else correlate1d(edges, across, other, modes[other], cval)
        return edges


_edges("sobel", [1.0, 2.0, 1.0])
_edges("prewitt", [1.0, 1.0, 1.0])


@scipy_form("scipy.ndimage.laplace", held=())
def laplace(input: Any, mode: Any = "reflect", cval: float = 0.0) -> Any:
    """The sum of second differences."""
    values = array(input)
    modes = _each(mode, values.ndim)
    return _sum(correlate1d(values, [1.0, -2.0, 1.0], k, modes[k], cval) for k in range(values.ndim))


def _sum(parts: Iterable[Any]) -> Any:
    return functools.reduce(operator.add, parts)


def _derivatives(input: Any, sigma: Any, order: int, *options: Any) -> list[Any]:
    values = array(input)
    degrees = [[order * (k == axis) for k in range(values.ndim)] for axis in range(values.ndim)]
    return [gaussian_filter(values, sigma, degree, *options) for degree in degrees]


@scipy_form("scipy.ndimage.gaussian_laplace", held=())
def gaussian_laplace(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0, radius: Any = None
) -> Any:
    """The sum of second derivatives of the smoothed array."""
    return _sum(_derivatives(input, sigma, 2, mode, cval, truncate, radius))


@scipy_form("scipy.ndimage.gaussian_gradient_magnitude", held=())
def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: Any = "reflect", cval: float = 0.0, truncate: float = 4.0, radius: Any = None
) -> Any:
    """The length of the gradient of the smoothed array."""
    return np.sqrt(_sum(part**2 for part in _derivatives(input, sigma, 1, mode, cval, truncate, radius)))


def _ordered(name: str, choose: Any) -> None:
    @scipy_form(f"scipy.ndimage.{name}", held=())
    def handler(
        input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: float = 0.0, origin: Any = 0
    ) -> Any:
        values = array(input)
        window = np.ones(_each(size, values.ndim), dtype=bool) if footprint is None else np.asarray(footprint, bool)
        parts = shifts(values, window.shape, mode, cval, _each(origin, values.ndim))
        kept = [part for part, counts in zip(parts, window.ravel().tolist(), strict=True) if counts]
        return choose(np.stack(kept))


_ordered("maximum_filter", lambda parts: np.max(parts, axis=0))
_ordered("minimum_filter", lambda parts: np.min(parts, axis=0))
_ordered("median_filter", lambda parts: np.sort(parts, axis=0)[len(parts) // 2])


# ---- interpolation


@scipy_form("scipy.ndimage.map_coordinates", held=())
def map_coordinates(
    input: Any, coordinates: Any, order: int = 3, mode: str = "constant", cval: float = 0.0, prefilter: bool = True
) -> Any:
    """The values between elements: nearest ones, linear or cubic, of an array that is held or ends at its edges."""
    if order not in (0, 1, 3) or mode not in ("constant", "nearest"):
        why = "traced are orders 0, 1 and 3, with mode='constant' or 'nearest'"
        refuse_function(f"scipy.ndimage.map_coordinates with order={order}, mode={mode!r}", why, "use one of these")
    values, places = array(input), array(coordinates)
    flat = [np.ravel(places[k]) for k in range(len(places))]
    if order == 3 and prefilter:
        values = _coefficients(values, mode)
    outside: Any = False
    for k, length in enumerate(values.shape):
        outside = np.logical_or(outside, np.logical_or(flat[k] < 0, flat[k] > length - 1))
        flat[k] = np.clip(flat[k], 0, length - 1)
    result = _between(values, flat, order)
    result = np.where(outside, cval, result) if mode == "constant" else result
    return np.reshape(result, np.shape(places)[1:])


def _coefficients(values: Any, mode: str) -> Any:
    own = package("ndimage").spline_filter1d
    for axis in range(values.ndim):
        if values.shape[axis] > 1:
            values = along("scipy.ndimage.map_coordinates", values, axis, partial(own, order=3, axis=0, mode=mode))
    return values


def _between(values: Any, places: list[Any], order: int) -> Any:
    axes = list[list[tuple[Any, Any]]]()
    for place, length in zip(places, values.shape, strict=True):
        if order == 0:
            axes.append([(np.floor(place + 0.5), 1.0)])
            continue
        low = np.clip(np.floor(place), 0, max(length - 2, 0))
        t = place - low
        if order == 1:
            axes.append([(low, 1.0 - t), (np.minimum(low + 1, length - 1), t)])
            continue
        weights = [(1 - t) ** 3 / 6, (4 - 6 * t**2 + 3 * t**3) / 6, (1 + 3 * t + 3 * t**2 - 3 * t**3) / 6, t**3 / 6]
        axes.append([(_mirrored(low + step - 1, length), weight) for step, weight in enumerate(weights)])
    return weighed(values, [[(_whole(place), weight) for place, weight in pairs] for pairs in axes])


def _mirrored(place: Any, length: int) -> Any:
    inside = np.abs(place)
    return np.where(inside > length - 1, 2 * (length - 1) - inside, inside)


def _whole(place: Any) -> Any:
    return np.asarray(place, dtype=int) if is_plain(place) else place.astype(int)


def _moved(name: str, still: float) -> None:
    full = f"scipy.ndimage.{name}"

    def handler(*args: Any, **keywords: Any) -> Any:
        given = arguments_of(full, args, keywords)
        values, amount = array(given.pop("input")), given.pop(name)
        refuse_options("scipy.ndimage", name, output=given.pop("output", None))
        if not is_plain(amount):
            do = "use scipy.ndimage.map_coordinates, whose coordinates are traced"
            refuse_function(f"{full} by a traced amount", "it is an ordinary number", do)
        own = getattr(package("ndimage"), name)
        for axis, by in enumerate(_each(amount, values.ndim)):
            values = along(full, values, axis, partial(own, **given, **{name: (by, still)}))
        return values

    stands_in_for(full, held=())(handler)


_moved("shift", 0.0)
_moved("zoom", 1.0)


# ---- convolutions of scipy.signal in two dimensions

_BOUNDARIES = {"fill": "constant", "wrap": "wrap", "symm": "reflect"}


@stands_in_for("scipy.signal.convolve2d", held=())
def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The convolution of two matrices."""
    left, right = array(in1), array(in2)
    if mode == "valid" and any(n < m for n, m in zip(left.shape, right.shape, strict=True)):
        left, right = right, left
    turned = np.flip(right)
    pads = [(m - 1, m - 1) for m in right.shape]
    more = {"constant_values": fillvalue} if boundary == "fill" else {}
    wide = np.pad(left, pads, mode=_PADS[_BOUNDARIES[boundary]], **more)
    lengths = [n + m - 1 for n, m in zip(left.shape, right.shape, strict=True)]
    sums: Any = 0.0
    for i, k in np.ndindex(*right.shape):
        sums = sums + turned[i, k] * wide[i : i + lengths[0], k : k + lengths[1]]
    sizes = zip(left.shape, right.shape, strict=True)
    return sums[tuple(kept_of_convolution(n, m, mode) for n, m in sizes)]


@stands_in_for("scipy.signal.correlate2d", held=())
def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: float = 0) -> Any:
    """The correlation of two matrices."""
    second = array(in2)
    if mode == "same" and not all(size % 2 for size in second.shape):
        refuse_function("scipy.signal.correlate2d of even sizes with mode='same'", "", "use mode='full' and slices")
    return convolve2d(in1, np.flip(second), mode, boundary, fillvalue)


@stands_in_for("scipy.signal.medfilt", held=())
def medfilt(volume: Any, kernel_size: Any = None) -> Any:
    """The medians of windows, with zeros outside."""
    values = array(volume)
    sizes = [3] * values.ndim if kernel_size is None else _each(kernel_size, values.ndim)
    parts = shifts(values, sizes, "constant", 0.0, [0] * values.ndim)
    return np.sort(np.stack(parts), axis=0)[math.prod(sizes) // 2]
