"""SciPy's linear filters along an axis: their matrix, made of unit vectors, times the values.

That covers every option of theirs. A filter that looks at few neighbours has few entries, of which a sparse product is
made. What they compute with (windows, orders, widths) are ordinary numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.errors import LimitError
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_fourier import fftconvolve
from symad.tracing.numpy.scipy_matrices import solve_triangular, toeplitz
from symad.tracing.scipy.objects import array, is_plain, package
from symad.tracing.scipy.sparse_products import summed
from symad.tracing.values.traced import refuse_function

LONGEST = 4096  # elements along the axis: SciPy's filter is applied to as many unit vectors
_SPARSE = 8  # a map with at most every eighth entry is kept by its entries


def along(name: str, x: Any, axis: int, apply: Callable[[Any], Any]) -> Any:
    """Return a map along an axis, which is linear up to a constant; `apply` filters the columns of plain matrices."""
    moved = np.moveaxis(array(x), axis, 0)
    count = len(moved)
    if count > LONGEST:
        raise LimitError(
            f"{name} of {count:,} traced elements along an axis",
            where=user_place(),
            why=f"it is carried out as a matrix, and the limit is {LONGEST:,}",
            do="filter it in pieces, or use scipy.signal.fftconvolve",
        )
    constant = np.asarray(apply(np.zeros((count, 1))), dtype=float)
    matrix = np.asarray(apply(np.eye(count)), dtype=float) - constant
    columns = np.reshape(moved, (count, -1))
    if np.count_nonzero(matrix) * _SPARSE <= matrix.size:
        rows, places = np.nonzero(matrix)
        image = summed(rows, places, matrix[rows, places], len(matrix), columns)
    else:
        image = matrix @ columns
    image = image + constant if constant.any() else image
    return np.moveaxis(np.reshape(image, (len(matrix), *np.shape(moved)[1:])), 0, axis)


def _check(name: str, given: dict[str, Any]) -> None:
    """Refuse traced numbers in what a filter is made of."""
    traced = [key for key, value in given.items() if not is_plain(value)]
    if traced:
        refuse_function(f"{name} with traced {', '.join(traced)}", "they are ordinary numbers", "trace the values only")


def _filter(package_name: str, name: str, parameters: tuple[str, ...], axis: int | None, place: int = 0) -> None:
    """Register a filter: the names of its parameters, the axis that it has by default, where the values stand."""
    full = f"scipy.{package_name}.{name}"

    def handler(*args: Any, **keywords: Any) -> Any:
        given = dict(zip(parameters, args, strict=False)) | keywords
        values = given.pop(parameters[place])
        along_axis = given.pop("axis", axis)
        if given.pop("output", None) is not None or given.get("zi") is not None:
            refuse_function(f"{full} with output= or zi=", "it has no traced form", "leave it out")
        _check(full, given)
        own = getattr(package(package_name), name)
        has_axis = axis is not None
        return along(full, values, along_axis if has_axis else -1,
                     lambda m: own(**{parameters[place]: m}, **given, **({"axis": 0} if has_axis else {})))  # fmt: skip

    stands_in_for(full, held=())(handler)


for _name, _parameters, _axis, _place in (
    ("filtfilt", ("b", "a", "x", "axis", "padtype", "padlen", "method", "irlen"), -1, 2),
    ("sosfilt", ("sos", "x", "axis", "zi"), -1, 1),
    ("sosfiltfilt", ("sos", "x", "axis", "padtype", "padlen"), -1, 1),
    ("savgol_filter", ("x", "window_length", "polyorder", "deriv", "delta", "axis", "mode", "cval"), -1, 0),
    ("detrend", ("data", "axis", "type", "bp", "overwrite_data"), -1, 0),
    ("decimate", ("x", "q", "n", "ftype", "axis", "zero_phase"), -1, 0),
    ("resample_poly", ("x", "up", "down", "axis", "window", "padtype", "cval"), 0, 0),
    ("upfirdn", ("h", "x", "up", "down", "axis", "mode", "cval"), -1, 1),
):
    _filter("signal", _name, _parameters, _axis, _place)
_OF_IMAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("gaussian_filter1d", ("input", "sigma", "axis", "order", "output", "mode", "cval", "truncate", "radius")),
    ("uniform_filter1d", ("input", "size", "axis", "output", "mode", "cval", "origin")),
    ("spline_filter1d", ("input", "order", "axis", "output", "mode")),
)
for _name, _names in _OF_IMAGES:
    _filter("ndimage", _name, _names, -1)


@stands_in_for("scipy.signal.resample", held=())
def resample(x: Any, num: int, t: Any = None, axis: int = 0, window: Any = None, domain: str = "time") -> Any:
    """The values at other places, by Fourier's series."""
    if t is not None or domain != "time":
        refuse_function("scipy.signal.resample with t= or domain=", "it has no traced form", "leave it out")
    own = package("signal").resample
    return along("scipy.signal.resample", x, axis, lambda m: own(m, num, axis=0, window=window))


@stands_in_for("scipy.signal.oaconvolve", held=())
def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution of two arrays, as `fftconvolve` has it."""
    return fftconvolve(in1, in2, mode, axes)


@stands_in_for("scipy.signal.lfilter", held=())
def lfilter(b: Any, a: Any, x: Any, axis: int = -1, zi: Any = None) -> Any:
    """The filter with traced coefficients or values; of traced ones in the recursion it solves a triangular system."""
    if zi is not None:
        if not is_plain(b, a, zi):
            refuse_function("scipy.signal.lfilter with zi= and traced coefficients", "", "put the state before x")
        return _with_state(b, a, x, axis, zi)
    own = package("signal").lfilter
    if is_plain(b, a):
        return along("scipy.signal.lfilter", x, axis, lambda m: own(b, a, m, axis=0))
    forward, backward = array(b), array(a)
    moved = np.moveaxis(array(x), axis, 0)
    count = len(moved)
    rows = np.reshape(moved, (count, -1))
    filtered: Any = 0.0
    for k in range(min(len(forward), count)):
        filtered = filtered + forward[k] * np.concatenate([np.zeros((k, *np.shape(rows)[1:])), rows[: count - k]])
    column = np.concatenate([backward[:count], np.zeros(max(count - len(backward), 0))])
    if count > 1 or len(backward) > 1:
        matrix = _lower(column) if is_plain(column) else toeplitz(column, np.zeros(count))
        filtered = solve_triangular(matrix, filtered, lower=True)
    else:
        filtered = filtered / backward[0]
    return np.moveaxis(np.reshape(filtered, np.shape(moved)), 0, axis)


def _lower(column: Any) -> Any:
    places = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(places >= 0, column[places], 0.0)


def _with_state(b: Any, a: Any, x: Any, axis: int, zi: Any) -> Any:
    """Return the filtered values and the last state, for a plain first state."""
    own = package("signal").lfilter
    values = array(x)
    if values.ndim != 1:
        refuse_function("scipy.signal.lfilter with zi= of an array", "it is traced for vectors", "filter the rows")

    def both(columns: Any) -> Any:
        return np.concatenate([np.concatenate(own(b, a, column, zi=zi))[:, None] for column in columns.T], axis=1)

    filtered = along("scipy.signal.lfilter", values, 0, both)
    return filtered[: len(values)], filtered[len(values) :]


@stands_in_for("scipy.signal.deconvolve", held=())
def deconvolve(signal: Any, divisor: Any) -> Any:
    """The quotient of two polynomials, or what was convolved, and the rest."""
    values, by = array(signal), array(divisor)
    count = len(values) - len(by) + 1
    if count < 1:
        return np.zeros(0), values
    quotient = lfilter(values, by, np.eye(1, count)[0])
    return quotient, values - np.convolve(by, quotient)
