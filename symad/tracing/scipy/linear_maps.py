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
from symad.tracing.numpy.scipy_forms import arguments_of, scipy_form, signature_of
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


def _filter(package_name: str, name: str, values_name: str) -> None:
    """Register a filter along an axis, which has its values as the parameter of a name."""
    full = f"scipy.{package_name}.{name}"

    def handler(*args: Any, **keywords: Any) -> Any:
        given = arguments_of(full, args, keywords)
        values, axis = given.pop(values_name), given.pop("axis", signature_of(full).parameters["axis"].default)
        if given.pop("output", None) is not None or given.get("zi") is not None:
            refuse_function(f"{full} with output= or zi=", "it has no traced form", "leave it out")
        traced = ", ".join(key for key, value in given.items() if not is_plain(value))
        if traced:
            refuse_function(f"{full} with traced {traced}", "they are ordinary numbers", "trace the values only")
        own = getattr(package(package_name), name)
        return along(full, values, axis, lambda m: own(**{values_name: m}, **given, axis=0))

    stands_in_for(full, held=())(handler)


for _name in ("filtfilt", "sosfilt", "sosfiltfilt", "savgol_filter", "decimate", "resample_poly", "upfirdn"):
    _filter("signal", _name, "x")
_filter("signal", "detrend", "data")
for _name in ("gaussian_filter1d", "uniform_filter1d", "spline_filter1d"):
    _filter("ndimage", _name, "input")


@scipy_form("scipy.signal.resample", held=())
def resample(x: Any, num: int, axis: int = 0, window: Any = None) -> Any:
    """The values at other places, by Fourier's series."""
    own = package("signal").resample
    return along("scipy.signal.resample", x, axis, lambda m: own(m, num, axis=0, window=window))


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
