"""SciPy's B-splines (BSpline, splev, univariate, bivariate) with traced knots and points.

At a point k + 1 basis functions of degree k are not 0. They are computed for all points at once, by the recurrence that
divides by no difference of 0 (de Boor, "A Practical Guide to Splines", chapter X), and weigh the coefficients there.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import scipy_form
from symad.tracing.scipy.objects import array, check_ascent, column, fails, held, is_plain, package, put, taken, weighed
from symad.tracing.scipy.piecewise_polynomials import outside, values
from symad.tracing.values.traced import refuse_function

_SPLINE = "scipy.interpolate.BSpline"
_HELD = ("_c", "_t", "c", "t")
_MODES = {0: 0, 1: 1, 2: 2, 3: 3, "extrapolate": 0, "zeros": 1, "raise": 2, "const": 3}
_Tck = tuple[Any, Any, int]


def basis(t: Any, k: int, points: Any) -> tuple[Any, list[Any]]:
    """Return the place of the first basis function that is not 0 at points, and the values of the k + 1 there."""
    place = np.searchsorted(t[k + 1 : len(t) - k - 1], points, side="right")
    left = [points - taken(t, place + (k + 1 - r)) for r in range(1, k + 1)]
    right = [taken(t, place + (k + r)) - points for r in range(1, k + 1)]
    values: list[Any] = [1.0 + 0 * points]
    for r in range(1, k + 1):
        saved: Any = 0.0
        for i in range(r):
            share = values[i] / (right[i] + left[r - i - 1])
            values[i] = saved + right[i] * share
            saved = left[r - i - 1] * share
        values.append(saved)
    return place, values


def spline(tck: _Tck, points: Any, nu: int, extrapolate: Any) -> Any:
    """Return the nu-th derivative of a spline at a vector of points."""
    t, c, k = tck
    n = len(t) - k - 1
    if extrapolate == "periodic":
        points = t[k] + np.mod(points - t[k], t[n] - t[k])
        extrapolate = False
    behind = np.ndim(c) - 1
    if is_plain(t, c) and k > 0:
        breaks = np.unique(t[k : n + 1])
        whole = package("interpolate").BSpline(t, c, k)
        rows = np.stack([whole(breaks[:-1], order) / math.factorial(order) for order in range(k, -1, -1)])
        return values(rows, breaks, points, nu, extrapolate)
    for _ in range(min(nu, k)):
        t, c, k = _slope(t, c, k)
    place, weights = basis(t, k, points)
    value = sum(column(weight, behind) * taken(c, place + i) for i, weight in enumerate(weights))
    value = value if nu <= tck[2] else 0 * value
    if extrapolate:
        return value
    return np.where(column(outside(points, t[k], t[len(t) - k - 1]), behind), math.nan, value)


def _slope(t: Any, c: Any, k: int) -> _Tck:
    """Return the derivative of a spline, with the knots at the ends that it needs."""
    n = len(t) - k - 1
    gaps = column(t[k + 1 : n + k] - t[1:n], np.ndim(c) - 1)
    empty = gaps == 0
    coefficients = np.where(empty, 0.0, k * (c[1:n] - c[: n - 1]) / np.where(empty, 1.0, gaps))
    return t[1:-1], coefficients, k - 1


def _integral(t: Any, c: Any, k: int) -> _Tck:
    """Return the antiderivative of a spline, 0 at its beginning."""
    n = len(t) - k - 1
    gaps = column(t[k + 1 : n + k + 1] - t[:n], np.ndim(c) - 1)
    sums = np.cumsum(c[:n] * gaps, axis=0) / (k + 1)
    knots = np.concatenate([t[:1], t, t[-1:]])
    return knots, np.concatenate([0.0 * sums[:1], sums]), k + 1


def _area(tck: _Tck, ends: Any) -> Any:
    low, high = spline(_integral(*tck), ends, 0, True)
    return high - low


# ---- BSpline


def _tck(self: Any) -> _Tck:
    t, c, k = held(self, "t", "c", "k")
    return t, c, k


def _made(kind: Any, tck: _Tck, extrapolate: Any, axis: int) -> Any:
    t, c, k = tck
    return put(object.__new__(kind), t=t, c=c, k=k, extrapolate=extrapolate, axis=axis)


@stands_in_for(f"{_SPLINE}.__init__", held=())
def b_spline(self: Any, t: Any, c: Any, k: Any, extrapolate: Any = True, axis: int = 0) -> None:
    """A spline with traced knots or coefficients."""
    t, c, k = array(t), array(c), int(k)
    axis = axis % c.ndim
    c = np.moveaxis(c, axis, 0)
    if t.ndim != 1 or len(t) < 2 * k + 2 or len(c) < len(t) - k - 1 or fails(lambda t: np.all(np.diff(t) >= 0), t):
        raise ValueError("Knots, coefficients and degree are inconsistent, or knots not in a non-decreasing order.")
    put(self, t=t, c=c, k=k, extrapolate="periodic" if extrapolate == "periodic" else bool(extrapolate), axis=axis)


@stands_in_for(f"{_SPLINE}.__call__", held=_HELD)
def evaluated(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """The values of a spline, or of its derivative, at points."""
    t, c, k = _tck(self)
    points = array(x)
    values = spline((t, c, k), np.ravel(points), nu, self.extrapolate if extrapolate is None else extrapolate)
    values = np.reshape(values, np.shape(points) + np.shape(c)[1:])
    return np.moveaxis(values, range(points.ndim), range(self.axis, self.axis + points.ndim)) if self.axis else values


@stands_in_for(f"{_SPLINE}.derivative", held=_HELD)
def derivative(self: Any, nu: int = 1) -> Any:
    """The spline that is the nu-th derivative."""
    tck = _tck(self)
    if not 0 <= nu <= tck[2]:
        raise ValueError(f"Order of derivative (n = {nu}) must be <= order of spline (k = {tck[2]})")
    for _ in range(nu):
        tck = _slope(*tck)
    return _made(type(self), tck, self.extrapolate, self.axis)


@stands_in_for(f"{_SPLINE}.antiderivative", held=_HELD)
def antiderivative(self: Any, nu: int = 1) -> Any:
    """The spline that is the nu-th antiderivative."""
    tck = _tck(self)
    for _ in range(nu):
        tck = _integral(*tck)
    return _made(type(self), tck, False if self.extrapolate == "periodic" else self.extrapolate, self.axis)


@stands_in_for(f"{_SPLINE}.integrate", held=_HELD)
def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """The integral between two traced bounds."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if extrapolate == "periodic":
        refuse_function("BSpline.integrate of a periodic function", "its periods are counted", "integrate over one")
    t, c, k = _tck(self)
    ends = np.stack([array(a), array(b)])
    if not extrapolate:
        ends = np.clip(ends, t[k], t[len(t) - k - 1])
    return _area((t, c, k), ends)


# ---- interpolating splines


@stands_in_for("scipy.interpolate.make_interp_spline", held=())
def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> Any:
    """The spline of degree k through points; of plain abscissae it is linear in the ordinates."""
    x, y = array(x), array(y)
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    if len(x) != len(y):
        raise ValueError(f"Shapes of x {np.shape(x)} and y {np.shape(y)} are incompatible")
    if bc_type == "periodic" or not (bc_type is None or isinstance(bc_type, str) or is_plain(bc_type)):
        refuse_function("make_interp_spline with this bc_type", "traced are others, of plain values", "use CubicSpline")
    kind = package("interpolate")
    if is_plain(x, t):
        tck = _linear_in_ordinates(x, y, k, t, bc_type)
    elif bc_type not in (None, "not-a-knot") or t is not None:
        refuse_function("make_interp_spline of traced abscissae", "traced is bc_type=None, without t=", "leave it out")
    else:
        check_ascent(x)
        knots = _knots(x, k)
        coefficients = np.linalg.solve(spline((knots, np.eye(len(x)), k), x, 0, True), np.reshape(y, (len(x), -1)))
        tck = knots, np.reshape(coefficients, np.shape(y)), k
    return _made(kind.BSpline, tck, True, axis)


def _linear_in_ordinates(x: Any, y: Any, k: int, t: Any, bc_type: Any) -> _Tck:
    """Return the spline for plain abscissae: SciPy's of unit vectors, times the ordinates."""
    make, n = package("interpolate").make_interp_spline, len(x)
    has_values = not (bc_type is None or isinstance(bc_type, str))
    free = tuple(_without_values(end, n) for end in bc_type) if has_values else bc_type
    knots, units, _ = _tck(make(x, np.eye(n), k, t, free))
    c = np.reshape(units @ np.reshape(y, (n, -1)), (len(units), *np.shape(y)[1:]))
    return knots, c + _tck(make(x, np.zeros(np.shape(y)), k, t, bc_type))[1] if has_values else c, k


def _without_values(end: Any, n: int) -> Any:
    return end if end is None or isinstance(end, str) else [(order, np.zeros(n)) for order, _ in end]


def _knots(x: Any, k: int) -> Any:
    """Return knots for traced abscissae: all but those near the ends, or the points between them for an even degree."""
    first, last = np.stack([x[0]] * (k + 1)), np.stack([x[-1]] * (k + 1))
    if k == 0:
        return np.concatenate([x, last])
    inner = x if k % 2 else (x[1:] + x[:-1]) / 2
    drop = (k + 1) // 2 if k % 2 else k // 2
    return np.concatenate([first, inner[drop:-drop], last])


@scipy_form("scipy.interpolate.splrep", held=())
def splrep(x: Any, y: Any, w: Any = None, k: int = 3, s: Any = None) -> Any:
    """The knots, coefficients and degree of the spline through points: without smoothing, periods and given knots."""
    if s != 0 and (s is not None or w is not None):
        why, do = "how smooth it is follows the residuals", "give it s=0, without w=, t=, xb=, xe=, per= and task="
        refuse_function("scipy.interpolate.splrep of traced points", why, do)
    knots, c, k = _tck(make_interp_spline(x, y, k))
    return knots, np.concatenate([c, np.zeros(k + 1)]), k


@stands_in_for("scipy.interpolate.splev", held=())
def splev(x: Any, tck: Any, der: int = 0, ext: Any = 0) -> Any:
    """The values of a spline that is given by knots, coefficients and degree, or of its derivative."""
    if isinstance(tck, package("interpolate").BSpline):
        return evaluated(tck, x, der, True)
    t, c, k = tck
    if isinstance(c, list | tuple) and np.ndim(c[0]):
        return [splev(x, (t, part, k), der, ext) for part in c]
    points, t, c = array(x), array(t), array(c)
    if not 0 <= der <= k:
        raise ValueError(f"0<=der={der}<=k={k} must hold")
    first, last = t[k], t[len(t) - k - 1]
    return _with_ends((t, c[: len(t) - k - 1], k), points, der, _MODES[ext], first, last)


def _with_ends(tck: _Tck, points: Any, der: int, mode: int, first: Any, last: Any) -> Any:
    """Return values at points, and beyond the ends what the mode says: what goes on, zeros, an error, or the ends'."""
    if mode == 3:
        points = np.clip(points, first, last)
    is_outside = outside(points, first, last)
    if mode == 2 and fails(lambda truths: not np.any(truths), is_outside):
        raise ValueError("Error code returned by splev: 1")
    inside = np.reshape(spline(tck, np.ravel(points), der, True), np.shape(points))
    return np.where(is_outside, 0.0 if mode == 1 else math.nan, inside) if mode in (1, 2) else inside


@stands_in_for("scipy.interpolate.splint", held=())
def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """The integral of a spline that is given by knots, coefficients and degree; 0 beyond its ends."""
    if full_output or isinstance(tck, package("interpolate").BSpline):
        refuse_function("scipy.interpolate.splint with full_output=, or of a BSpline", "", "use BSpline.integrate")
    t, c, k = tck
    t, c = array(t), array(c)
    ends = np.clip(np.stack([array(a), array(b)]), t[k], t[len(t) - k - 1])
    return _area((t, c[: len(t) - k - 1], k), ends)


# ---- univariate splines of FITPACK

_UNIVARIATE = "scipy.interpolate.UnivariateSpline"


@scipy_form("scipy.interpolate.InterpolatedUnivariateSpline.__init__", held=())
def interpolated_univariate(self: Any, x: Any, y: Any, w: Any = None, k: int = 3, ext: Any = 0) -> None:
    """The spline through points."""
    t, c, _ = _tck(make_interp_spline(x, y, k))
    self.ext = _MODES[ext]
    self._eval_args = t, c, k


@scipy_form(f"{_UNIVARIATE}.__init__", held=())
def univariate(self: Any, x: Any, y: Any, w: Any = None, k: int = 3, s: Any = None, ext: Any = 0) -> None:
    """The spline through points, without smoothing."""
    if s != 0:
        refuse_function("UnivariateSpline of traced points", "how smooth it is follows the residuals", "give it s=0")
    interpolated_univariate(self, x, y, w, k, ext)


@stands_in_for(f"{_UNIVARIATE}.__call__", held=("_eval_args",))
def univariate_evaluated(self: Any, x: Any, nu: int = 0, ext: Any = None) -> Any:
    """The values of a spline, or of its derivative, at points."""
    return splev(x, self._eval_args, nu, self.ext if ext is None else ext)


stands_in_for(f"{_UNIVARIATE}.integral", held=("_eval_args",))(lambda self, a, b: splint(a, b, self._eval_args))


# ---- bivariate splines


def tensor_product(knots: Any, degrees: Any, c: Any, points: Any) -> Any:
    """Return the values of a spline in several variables at points, whose coordinates are vectors."""
    bases = [basis(t, k, coordinate) for t, k, coordinate in zip(knots, degrees, points, strict=True)]
    return weighed(c, [[(first + step, weight) for step, weight in enumerate(weights)] for first, weights in bases])


@scipy_form("scipy.interpolate.RectBivariateSpline.__init__", held=())
def rectangular(self: Any, x: Any, y: Any, z: Any, kx: int = 3, ky: int = 3, s: Any = 0) -> None:
    """The spline through the points of a rectangular mesh."""
    if s != 0:
        refuse_function("RectBivariateSpline of traced points", "how smooth it is follows the residuals", "give it s=0")
    tx, rows, _ = _tck(make_interp_spline(x, z, kx))
    ty, columns, _ = _tck(make_interp_spline(y, np.transpose(rows), ky))
    self.tck, self.degrees, self.fp = (tx, ty, np.ravel(np.transpose(columns))), (kx, ky), 0.0


@stands_in_for("scipy.interpolate._fitpack2._BivariateSplineBase.__call__", held=("tck",))
def bivariate_evaluated(self: Any, x: Any, y: Any, dx: int = 0, dy: int = 0, grid: bool = True) -> Any:
    """The values of a spline in two variables, or of its derivative, at points; all pairs of them with `grid`."""
    tx, ty, c = (array(part) for part in self.tck[:3])
    kx, ky = self.degrees
    first, second = array(x), array(y)
    if grid:
        first, second = np.reshape(first, (-1, 1)), np.reshape(second, (1, -1))
    c = np.reshape(c, (len(tx) - kx - 1, len(ty) - ky - 1))
    first = np.clip(first, tx[kx], tx[len(tx) - kx - 1])  # FITPACK has the values of the ends outside
    second = np.clip(second, ty[ky], ty[len(ty) - ky - 1])
    for _ in range(dx):
        tx, c, kx = _slope(tx, c, kx)
    for _ in range(dy):
        ty, turned, ky = _slope(ty, np.transpose(c), ky)
        c = np.transpose(turned)
    first, second = np.broadcast_arrays(first, second)
    values = tensor_product((tx, ty), (kx, ky), c, (np.ravel(first), np.ravel(second)))
    return np.reshape(values, np.shape(first))


@stands_in_for("scipy.interpolate.bisplev", held=())
def bisplev(x: Any, y: Any, tck: Any, dx: int = 0, dy: int = 0) -> Any:
    """The values of a spline in two variables, or of its derivative, at all pairs of points."""
    tx, ty, c, kx, ky = tck
    if not (0 <= dx < kx and 0 <= dy < ky):
        raise ValueError(f"0 <= dx = {dx} < kx = {kx} and 0 <= dy = {dy} < ky = {ky} must hold")
    first, second = np.atleast_1d(array(x)), np.atleast_1d(array(y))
    if first.ndim != 1 or second.ndim != 1:
        raise ValueError("First two entries should be rank-1 arrays.")
    values = bivariate_evaluated(SimpleNamespace(tck=(tx, ty, c), degrees=(kx, ky)), first, second, dx, dy)
    return values if len(first) > 1 else values[0] if len(second) > 1 else values[0][0]
