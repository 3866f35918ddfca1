"""SciPy's piecewise polynomials (PPoly, cubic splines, PCHIP, Akima) with traced data and points.

The interval of a point is a place among the breakpoints, which has no derivative; its coefficients are gathered there,
and Horner's rule is done for all points at once. Of plain abscissae a cubic spline is linear in its ordinates.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import array, check_ascent, column, fails, held, is_plain, package, put, taken
from symad.tracing.values.traced import refuse_function

_POLYNOMIAL = "scipy.interpolate.PPoly"
_HELD = ("_c", "_x", "c", "x")


def _like(self: Any, c: Any, x: Any, extrapolate: Any) -> Any:
    """Return a piecewise polynomial of the same class."""
    return put(object.__new__(type(self)), c=c, x=x, extrapolate=extrapolate, axis=self.axis)


def interval(edges: Any, points: Any) -> Any:
    """Return the places of the intervals that points are in; those outside belong to the first and the last one."""
    return np.searchsorted(edges[1:-1], points, side="right")


def outside(points: Any, first: Any, last: Any) -> Any:
    """Whether points are outside of a range."""
    return np.logical_or(points < first, points > last)


@stands_in_for("scipy.interpolate._interpolate._PPolyBase.__call__", held=_HELD)
def evaluated(self: Any, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
    """The values of a piecewise polynomial, or of its derivative, at points."""
    c, breaks = held(self, "c", "x")
    if not isinstance(self, package("interpolate").PPoly):
        refuse_function(f"scipy.interpolate.{type(self).__name__}", "it has no traced form", "use PPoly")
    points = array(x)
    result = values(c, breaks, np.ravel(points), nu, self.extrapolate if extrapolate is None else extrapolate)
    rest = np.shape(c)[2:]
    result = np.reshape(result, np.shape(points) + rest)
    if self.axis:
        moved, behind = points.ndim, range(points.ndim, result.ndim)
        order = [*behind[: self.axis], *range(moved), *behind[self.axis :]]
        result = np.transpose(result, order)
    return result


def values(c: Any, x: Any, points: Any, nu: int, extrapolate: Any) -> Any:
    """Return the nu-th derivative of a piecewise polynomial at points, by Horner's rule."""
    if fails(lambda x: x[-1] >= x[0], x):
        refuse_function("a piecewise polynomial of descending breakpoints", "they are searched in", "turn them round")
    if extrapolate == "periodic":
        points = x[0] + np.mod(points - x[0], x[-1] - x[0])
        extrapolate = False
    place = interval(x, points)
    degree, rest = np.shape(c)[0] - 1, np.shape(c)[2:]
    columns = taken(c, place, axis=1)
    inner = column(points - taken(x, place), len(rest))
    result: Any = np.zeros(np.shape(columns)[1:]) + 0 * inner
    for k in range(degree + 1 - nu):
        result = result * inner + columns[k] * float(math.perm(degree - k, nu))
    if extrapolate:
        return result
    return np.where(column(outside(points, x[0], x[-1]), len(rest)), math.nan, result)


@stands_in_for(f"{_POLYNOMIAL}.derivative", held=_HELD)
def derivative(self: Any, nu: int = 1) -> Any:
    """The piecewise polynomial that is the nu-th derivative."""
    if nu < 0:
        return antiderivative(self, -nu)
    c, x = held(self, "c", "x")
    degree = len(c) - 1
    rows = [c[k] * float(math.perm(degree - k, nu)) for k in range(degree + 1 - nu)]
    return _like(self, np.stack(rows) if rows else 0.0 * c[:1], x, self.extrapolate)


@stands_in_for(f"{_POLYNOMIAL}.antiderivative", held=_HELD)
def antiderivative(self: Any, nu: int = 1) -> Any:
    """The piecewise polynomial that is the nu-th antiderivative, 0 at the first breakpoint."""
    if nu <= 0:
        return derivative(self, -nu)
    c, x = held(self, "c", "x")
    widths = column(np.diff(x), np.ndim(c) - 2)
    for _ in range(nu):
        rows = [c[k] / (len(c) - k) for k in range(len(c))]
        ends: Any = 0.0
        for row in rows:
            ends = (ends + row) * widths
        starts = np.concatenate([np.zeros((1, *np.shape(ends)[1:])), np.cumsum(ends[:-1], axis=0)])
        c = np.stack([*rows, starts])
    return _like(self, c, x, False if self.extrapolate == "periodic" else self.extrapolate)


@stands_in_for(f"{_POLYNOMIAL}.integrate", held=_HELD)
def integrate(self: Any, a: Any, b: Any, extrapolate: Any = None) -> Any:
    """The integral between two traced bounds."""
    extrapolate = self.extrapolate if extrapolate is None else extrapolate
    if extrapolate == "periodic":
        refuse_function("PPoly.integrate of a periodic function", "its periods are counted", "integrate over one")
    whole = antiderivative(self)
    c, x = held(whole, "c", "x")
    ends = values(c, x, np.stack([array(a), array(b)]), 0, extrapolate)
    return ends[1] - ends[0]


# ---- interpolants


@stands_in_for(f"{_POLYNOMIAL}.__init__", "scipy.interpolate._interpolate._PPolyBase.__init__", held=())
def polynomial(self: Any, c: Any, x: Any, extrapolate: Any = None, axis: int = 0) -> None:
    """A piecewise polynomial with traced coefficients or breakpoints."""
    c, x = array(c), array(x)
    if c.ndim < 2 or x.ndim != 1 or x.size < 2:
        raise ValueError("Coefficients array must be at least 2-dimensional, and breakpoints a vector of at least 2.")
    if axis:
        c = np.moveaxis(np.moveaxis(c, axis + 1, 0), axis + 1, 0)
    if not len(c) or c.shape[1] != x.size - 1:
        raise ValueError("number of coefficients != len(x)-1")
    chosen = True if extrapolate is None else extrapolate if extrapolate == "periodic" else bool(extrapolate)
    put(self, c=c, x=x, extrapolate=chosen, axis=axis)


def _prepared(x: Any, y: Any, axis: int) -> tuple[Any, Any, int]:
    """Return abscissae and ordinates along the first axis."""
    x, y = array(x), array(y)
    axis = axis % y.ndim
    if x.ndim != 1 or x.size < 2:
        raise ValueError("`x` must be 1-dimensional, and contain at least 2 elements.")
    if x.size != y.shape[axis]:
        raise ValueError(f"The length of `y` along `axis`={axis} doesn't match the length of `x`")
    check_ascent(x)
    return x, np.moveaxis(y, axis, 0), axis


def _hermite(self: Any, x: Any, y: Any, slopes: Any, axis: int, extrapolate: Any) -> None:
    """Make an object the piecewise cubic of values and slopes at the breakpoints."""
    width = column(np.diff(x), np.ndim(y) - 1)
    rise = np.diff(y, axis=0) / width
    bend = (slopes[:-1] + slopes[1:] - 2 * rise) / width
    c = np.stack([bend / width, (rise - slopes[:-1]) / width - bend, slopes[:-1] + 0 * rise, y[:-1] + 0 * rise])
    put(self, c=c, x=x, extrapolate=extrapolate, axis=axis)


@stands_in_for("scipy.interpolate.CubicHermiteSpline.__init__", held=())
def hermite_spline(self: Any, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """The piecewise cubic of traced values and slopes."""
    slopes = np.moveaxis(array(dydx), axis, 0)
    x, y, axis = _prepared(x, y, axis)
    _hermite(self, x, y, slopes, axis, True if extrapolate is None else extrapolate)


@stands_in_for("scipy.interpolate.PchipInterpolator.__init__", held=())
def pchip(self: Any, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
    """The piecewise cubic whose slopes are weighted harmonic means, and keep what is monotone monotone."""
    x, y, axis = _prepared(x, y, axis)
    width = column(np.diff(x), np.ndim(y) - 1)
    rise = np.diff(y, axis=0) / width
    if len(rise) == 1:
        slopes = np.concatenate([rise, rise])
    else:
        w1, w2 = 2 * width[1:] + width[:-1], width[1:] + 2 * width[:-1]
        turns = np.sign(rise[1:]) * np.sign(rise[:-1]) <= 0
        left, right = np.where(turns, 1.0, rise[:-1]), np.where(turns, 1.0, rise[1:])
        inner = np.where(turns, 0.0, (w1 + w2) / (w1 / left + w2 / right))
        ends = [_end_slope(width[i], width[j], rise[i], rise[j]) for i, j in ((0, 1), (-1, -2))]
        slopes = np.concatenate([ends[0][None], inner, ends[1][None]])
    _hermite(self, x, y, slopes, axis, True if extrapolate is None else extrapolate)


def _end_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """Return the slope of a parabola at its end, or one that keeps the shape."""
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    steep = np.logical_and(np.sign(m0) != np.sign(m1), np.abs(slope) > 3 * np.abs(m0))
    return np.where(np.sign(slope) != np.sign(m0), 0.0, np.where(steep, 3 * m0, slope))


@stands_in_for("scipy.interpolate.Akima1DInterpolator.__init__", held=())
def akima(self: Any, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: bool | None = None) -> None:
    """The piecewise cubic whose slopes weigh those of neighbours by how little they change."""
    if method not in ("akima", "makima"):
        raise NotImplementedError(f"`method`={method} is unsupported.")
    x, y, axis = _prepared(x, y, axis)
    rise = np.diff(y, axis=0) / column(np.diff(x), np.ndim(y) - 1)
    if len(rise) == 1:
        return _hermite(self, x, y, np.concatenate([rise, rise]), axis, bool(extrapolate))
    before = [2 * rise[0] - rise[1], 3 * rise[0] - 2 * rise[1]]
    after = [2 * rise[-1] - rise[-2], 3 * rise[-1] - 2 * rise[-2]]
    m = np.concatenate([np.stack(before[::-1]), rise, np.stack(after)])
    change = np.abs(np.diff(m, axis=0))
    if method == "makima":
        change = change + 0.5 * np.abs(m[1:] + m[:-1])
    right, left = change[2:], change[:-2]
    total = right + left
    is_defined = total > 1e-9 * np.max(total)
    share = left / np.where(is_defined, total, 1.0)
    slopes = np.where(is_defined, m[1:-2] + share * (m[2:-1] - m[1:-2]), 0.5 * (m[3:] + m[:-3]))
    _hermite(self, x, y, slopes, axis, bool(extrapolate))
    return None


# ---- cubic splines

_NAMED = {"clamped": (1, 0.0), "natural": (2, 0.0)}  # conditions: the order of a derivative, and its value


@stands_in_for("scipy.interpolate.CubicSpline.__init__", held=())
def cubic_spline(
    self: Any, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None
) -> None:
    """The piecewise cubic with two derivatives everywhere, of traced abscissae, ordinates and end conditions."""
    x, y, axis = _prepared(x, y, axis)
    is_periodic = isinstance(bc_type, str) and bc_type == "periodic"
    chosen = ("periodic" if is_periodic else True) if extrapolate is None else extrapolate
    if is_plain(x, bc_type):
        put(self, c=_linear_in_ordinates(x, y, bc_type), x=x, extrapolate=chosen, axis=axis)
        return
    if is_periodic:
        refuse_function("CubicSpline of traced abscissae with bc_type='periodic'", "it has no traced form", "")
    if len(x) < 4:
        refuse_function("CubicSpline of fewer than 4 traced abscissae", "it has no traced form", "give it 4 or more")
    _hermite(self, x, y, _slopes(x, y, bc_type), axis, chosen)


def _linear_in_ordinates(x: Any, y: Any, bc_type: Any) -> Any:
    """Return the coefficients for plain abscissae: SciPy's of unit vectors, times the ordinates."""
    kind, n = package("interpolate").CubicSpline, len(x)
    rest = y.shape[1:]
    if isinstance(bc_type, str) and bc_type == "periodic":
        if fails(lambda y: np.allclose(y[0], y[-1], rtol=1e-15, atol=1e-15), y):
            raise ValueError("The first and last `y` point along axis must be identical when bc_type='periodic'.")
        units, y = np.eye(n)[:, :-1].copy(), y[:-1]
        units[-1, 0] = 1.0
        basis, offset = held(kind(x, units, bc_type=bc_type), "c")[0], 0.0
    else:
        is_named = isinstance(bc_type, str)
        free = bc_type if is_named else tuple(end if isinstance(end, str) else (end[0], np.zeros(n)) for end in bc_type)
        basis = held(kind(x, np.eye(n), bc_type=free), "c")[0]
        offset = 0.0 if is_named else held(kind(x, np.zeros((n, *rest)), bc_type=bc_type), "c")[0]
    rows = np.reshape(basis, (-1, basis.shape[-1])) @ np.reshape(y, (len(y), -1))
    return np.reshape(rows, basis.shape[:2] + rest) + offset


def _slopes(x: Any, y: Any, bc_type: Any) -> Any:
    """Return the slopes at the abscissae, which solve a tridiagonal system."""
    n = len(x)
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else bc_type
    width = np.diff(x)
    rise = np.diff(y, axis=0) / column(width, np.ndim(y) - 1)
    below, middle, above = (np.eye(n - 2, n, k) for k in range(3))
    left, right = width[:-1, None], width[1:, None]
    inner = right * below + 2 * (left + right) * middle + left * above
    wide = column(width, np.ndim(y) - 1)
    known = 3 * (wide[1:] * rise[:-1] + wide[:-1] * rise[1:])
    first = _end(ends[0], width[:2], wide[:2], rise[:2], 1.0)
    last = _end(ends[1], width[:-3:-1], wide[:-3:-1], rise[:-3:-1], -1.0)
    zeros = np.zeros(n - 2)
    rows = [np.concatenate([np.stack(first[0]), zeros]), np.concatenate([zeros, np.stack(last[0][::-1])])]
    matrix = np.concatenate([rows[0][None], inner, rows[1][None]])
    return np.linalg.solve(matrix, np.concatenate([np.stack([first[1]]), known, np.stack([last[1]])]))


def _end(condition: Any, width: Any, wide: Any, rise: Any, sign: float) -> tuple[tuple[Any, Any], Any]:
    """Return the coefficients of the slopes at an end and beside it, and the right-hand side of their equation."""
    if condition == "not-a-knot":
        both = width[0] + width[1]
        total = wide[0] + wide[1]
        known = ((wide[0] + 2 * total) * wide[1] * rise[0] + wide[0] ** 2 * rise[1]) / total
        return (width[1], both), known
    order, value = _NAMED.get(condition, (0, 0.0)) if isinstance(condition, str) else condition
    if order not in (1, 2):
        raise ValueError(f"bc_type={condition} is not allowed.")
    value = array(value) + 0 * rise[0]
    if order == 1:
        return (1.0 + 0 * width[0], 0 * width[0]), value
    return (2 * width[0], width[0]), 3 * wide[0] * rise[0] - 0.5 * sign * value * wide[0] ** 2
