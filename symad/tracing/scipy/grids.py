"""SciPy's interpolation on sorted points and grids: interp1d, RegularGridInterpolator.

Places among the points have no derivative. Where SciPy raises an error for points outside, so does what is called on
numbers; a kernel has NaN there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import array, column, fails, held, is_plain, none, package, taken, weighed
from symad.tracing.scipy.piecewise_polynomials import interval, outside
from symad.tracing.scipy.splines import make_interp_spline, spline, tensor_product
from symad.tracing.values.traced import refuse_function

_ORDERS = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}


# ---- interp1d


@stands_in_for("scipy.interpolate.interp1d.__init__", held=())
def interpolant(
    self: Any, x: Any, y: Any, kind: Any = "linear", axis: int = -1, copy: bool = True, bounds_error: Any = None,
    fill_value: Any = math.nan, assume_sorted: bool = False,
) -> None:  # fmt: skip
    """An interpolant through traced points."""
    x, y = array(x), array(y)
    axis = axis % y.ndim
    if x.ndim != 1 or len(x) != y.shape[axis]:
        raise ValueError("x and y arrays must be equal in length along interpolation axis.")
    y = np.moveaxis(y, axis, 0)
    if not assume_sorted:
        order = np.argsort(x, kind="mergesort")
        x, y = taken(x, order), taken(y, order)
    self.x, self._y, self._y_axis, self.axis = x, y, axis, axis
    self._kind = _ORDERS.get(kind, kind)
    if isinstance(self._kind, int):
        self._spline = make_interp_spline(x, y, self._kind)
    goes_on = isinstance(fill_value, str) and fill_value == "extrapolate"
    if goes_on and bounds_error:
        raise ValueError("Cannot extrapolate and raise at the same time.")
    self._extrapolate = goes_on
    self.bounds_error = (not goes_on) if bounds_error is None else bounds_error
    pair = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    self._fill_value_below, self._fill_value_above = (math.nan, math.nan) if goes_on else pair


@stands_in_for("scipy.interpolate._polyint._Interpolator1D.__call__", held=("x", "y", "_y", "_fill_value_below",
               "_fill_value_above"))  # fmt: skip
def evaluated(self: Any, x: Any) -> Any:
    """The values of an interpolant at points."""
    if not isinstance(self, package("interpolate").interp1d):
        why, do = "it has no traced form", "use scipy.interpolate.CubicSpline or PPoly"
        refuse_function(f"scipy.interpolate.{type(self).__name__}", why, do)
    points = array(x)
    flat = np.ravel(points)
    knots, y, axis = self.x, _along_first(self), self._y_axis
    rest = np.shape(y)[1:]
    values = _between(self, knots, y, flat)
    if not self._extrapolate:
        below, above = flat < knots[0], flat > knots[-1]
        if self.bounds_error and fails(none, np.logical_or(below, above)):
            raise ValueError("A value in x_new is outside of the interpolation range.")
        ends = [column(end, len(rest)) for end in (below, above)]
        low, high = (math.nan, math.nan) if self.bounds_error else (self._fill_value_below, self._fill_value_above)
        values = np.where(ends[0], _filled(low, rest), np.where(ends[1], _filled(high, rest), values))
    values = np.reshape(values, np.shape(points) + rest)
    return np.moveaxis(values, range(points.ndim), range(axis, axis + points.ndim))


def _filled(value: Any, rest: tuple[int, ...]) -> Any:
    value = array(value)
    return np.reshape(value, rest) if value.size == math.prod(rest) and value.ndim else value


def _along_first(self: Any) -> Any:
    """Return the ordinates along the first axis; SciPy's objects have the other axes as one.

    Attributes may be set: `numpy.interp`, which SciPy calls for most linear ones, is given `y`, the others have copies.
    """
    if getattr(self, "_call", None) is getattr(type(self), "_call_linear_np", self):
        return self.y
    if not is_plain(self._y):
        return self._y
    y = np.asarray(self._y)
    extra = getattr(self, "_y_extra_shape", None)
    return y if extra is None else np.reshape(y, (len(y), *extra))


def _between(self: Any, knots: Any, y: Any, points: Any) -> Any:
    """Return what the kind of an interpolant has between its points, and beyond."""
    kind = self._kind
    if hasattr(self, "_spline"):
        t, c, k = held(self._spline, "t", "c", "k")
        return np.reshape(spline((t, c, k), points, 0, True), (-1, *np.shape(y)[1:]))
    behind = np.ndim(y) - 1
    if kind == "linear":
        place = interval(knots, points)
        low, high = taken(knots, place), taken(knots, place + 1)
        first, second = taken(y, place), taken(y, place + 1)
        share = column((points - low) / (high - low), behind)
        return first + share * (second - first)
    if kind in ("previous", "next") and hasattr(self, "_x_shift"):
        knots = np.nextafter(self._x_shift, math.inf if kind == "previous" else -math.inf)
    if kind in ("nearest", "nearest-up"):
        side: Any = "left" if kind == "nearest" else "right"
        bounds = self.x_bds if hasattr(self, "x_bds") else (knots[1:] + knots[:-1]) / 2.0
        place = np.searchsorted(bounds, points, side=side)
    elif kind == "previous":
        place = np.searchsorted(knots[1:], points, side="right")
    else:
        place = np.searchsorted(knots[:-1], points, side="left")
    value = taken(y, place) + column(0.0 * points, behind)
    if kind in ("previous", "next") and self._extrapolate:
        beyond = points < knots[0] if kind == "previous" else points > knots[-1]
        return np.where(column(beyond, behind), math.nan, value)
    return value


# ---- rectangular grids

_GRID = "scipy.interpolate.RegularGridInterpolator"


@stands_in_for(f"{_GRID}.__init__", held=())
def grid_interpolator(
    self: Any, points: Any, values: Any, method: str = "linear", bounds_error: bool = True,
    fill_value: Any = math.nan, *, solver: Any = None, solver_args: Any = None,
) -> None:  # fmt: skip
    """An interpolator of traced values at the points of a grid."""
    if method not in ("linear", "nearest") or not is_plain(points):
        why = "traced are methods 'linear' and 'nearest', at points of ordinary numbers"
        refuse_function(f"{_GRID} of traced values with method={method!r}", why, "use RectBivariateSpline or BSpline")
    values = array(values)
    plain = type(self)(points, np.zeros(values.shape), method, bounds_error, math.nan if fill_value is None else 0.0)
    vars(self).update(vars(plain))
    turned = getattr(plain, "_descending_dimensions", ())
    self._values = np.flip(values, turned) if turned else values
    self.fill_value = fill_value
    if not hasattr(plain, "_grid"):
        self.values = self._values


@stands_in_for(f"{_GRID}.__call__", held=("_values", "values", "fill_value"))
def grid_evaluated(self: Any, xi: Any, method: Any = None, *, nu: Any = None) -> Any:
    """The values of an interpolator at points, whose coordinates are in the last axis."""
    grid, values = held(self, "grid", "values")
    method = self.method if method is None else method
    points = _coordinates(xi, len(grid))
    flat = [np.ravel(points[..., k]) for k in range(len(grid))]
    beyond: Any = False
    for coordinate, edges in zip(flat, grid, strict=True):
        beyond = np.logical_or(beyond, outside(coordinate, edges[0], edges[-1]))
    if self.bounds_error and fails(none, beyond):
        raise ValueError("One of the requested xi is out of bounds")
    results = _on_grid(self, grid, values, flat, method, nu)
    if self.bounds_error or self.fill_value is not None:
        filling = math.nan if self.bounds_error else self.fill_value
        results = np.where(column(beyond, np.ndim(results) - 1), filling, results)
    return np.reshape(results, np.shape(points)[:-1] + np.shape(values)[len(grid) :])


def _coordinates(xi: Any, dimensions: int) -> Any:
    """Return points with their coordinates in the last axis, of a tuple of arrays too."""
    if isinstance(xi, tuple):
        return np.stack(np.broadcast_arrays(*[array(part) for part in xi]), axis=-1)
    points = array(xi)
    if points.ndim == 1:
        points = np.reshape(points, (-1, 1) if dimensions == 1 else (1, -1))
    if points.shape[-1] != dimensions:
        raise ValueError(f"The requested sample points xi have dimension {points.shape[-1]}, and not {dimensions}")
    return points


def _on_grid(self: Any, grid: Any, values: Any, points: list[Any], method: str, nu: Any) -> Any:
    if method not in ("linear", "nearest"):
        interpolant = getattr(self, "_spline", None)
        if interpolant is None or method != self.method or nu is not None or not is_plain(interpolant.c):
            do = "give it method='linear', or use RectBivariateSpline or BSpline"
            refuse_function(f"{_GRID} with method={method!r}", "it has no traced form", do)
        return tensor_product(interpolant.t, tuple(interpolant.k), np.asarray(interpolant.c), points)
    axes = list[list[tuple[Any, Any]]]()
    for edges, coordinate in zip(grid, points, strict=True):
        place = interval(edges, coordinate)
        low, high = taken(edges, place), taken(edges, place + 1)
        share = (coordinate - low) / (high - low)
        is_nearest = method == "nearest"
        axes.append([(np.where(share <= 0.5, place, place + 1), 1.0 + 0.0 * coordinate)] if is_nearest
                    else [(place, 1.0 - share), (place + 1, share)])  # fmt: skip
    return weighed(values, axes)


@stands_in_for("scipy.interpolate.interpn", held=())
def interpn(
    points: Any, values: Any, xi: Any, method: str = "linear", bounds_error: bool = True, fill_value: Any = math.nan
) -> Any:
    """The values at points inside of a rectangular grid."""
    kind = package("interpolate").RegularGridInterpolator
    interpolator = object.__new__(kind)
    if is_plain(points, values):
        interpolator.__init__(points, values, method, bounds_error, fill_value)
    else:
        grid_interpolator(interpolator, points, values, method, bounds_error, fill_value)
    return grid_evaluated(interpolator, xi)
