"""Sampled curves and polynomials: differences, quadrature, interpolation, grids, NumPy's poly*.

Coefficients of polynomials stand highest power first.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.traced import refuse_function


@implements(np.diff)
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = np._NoValue, append: Any = np._NoValue) -> Any:
    """Differences of neighbours, n times."""
    if n < 0 or np.ndim(a) == 0:
        raise ValueError("np.diff takes an array with an axis, and n >= 0")
    ends = [np._NoValue if end is np._NoValue else _as_edge(end, a, axis) for end in (prepend, append)]
    parts = [part for part in (ends[0], a, ends[1]) if part is not np._NoValue]
    a = np.concatenate(parts, axis=axis) if len(parts) > 1 else traced(a)
    for _ in range(n):
        rows = np.moveaxis(a, axis, -1)
        subtract = np.not_equal if a.dtype == bool else np.subtract
        a = np.moveaxis(subtract(rows[..., 1:], rows[..., :-1]), -1, axis)
    return a


def _as_edge(end: Any, a: Any, axis: int) -> Any:
    if np.ndim(end):
        return end
    shape = list(np.shape(a))
    shape[axis] = 1
    return np.broadcast_to(traced(end) if is_traced(end) else np.asarray(end), shape)


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with optional ends."""
    flat = np.ravel(ary)
    parts = [to_begin, flat[1:] - flat[:-1], to_end]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


@implements(np.trapezoid)
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """Integral by the trapezoidal rule."""
    rows = np.moveaxis(together(y, 0.0 if x is None else x)[0], axis, -1)
    widths = dx
    if x is not None:
        widths = np.diff(x) if np.ndim(x) == 1 else np.diff(np.moveaxis(x, axis, -1))
    return np.sum(widths * (rows[..., 1:] + rows[..., :-1]) / 2.0, axis=-1)


@implements(np.gradient)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Central differences of second order, one-sided at the edges; a spacing or coordinates for each axis."""
    f = traced(f)
    axes = range(f.ndim) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = list(varargs) or [1.0]
    spacings = spacings * len(axes) if len(spacings) == 1 else spacings
    if edge_order not in (1, 2):
        raise ValueError("'edge_order' greater than 2 not supported")
    slopes_of_axes = []
    for spacing, k in zip(spacings, axes, strict=True):
        rows = np.moveaxis(f, k, 0)
        if len(rows) < edge_order + 1:
            raise ValueError("np.gradient needs at least edge_order + 1 elements along each axis")
        slopes = _slopes(rows, *_neighbour_distances(spacing, len(rows), f.ndim), edge_order)
        slopes_of_axes.append(np.moveaxis(slopes, 0, k))
    return slopes_of_axes[0] if len(slopes_of_axes) == 1 else tuple(slopes_of_axes)


def _neighbour_distances(spacing: Any, count: int, rank: int) -> tuple[Any, bool]:
    """Return the distances of neighbours along the first axis of an array, and whether all are equal."""
    if np.ndim(spacing) == 0:
        return np.broadcast_to(traced(spacing) if is_traced(spacing) else spacing, count - 1), True
    distances = np.diff(spacing)
    if len(distances) != count - 1:
        raise ValueError("the coordinates and the axis differ in length")
    uniform = not is_traced(distances) and bool((distances == distances[0]).all())
    return np.reshape(distances, (-1,) + (1,) * (rank - 1)), uniform


def _slopes(f: Any, h: Any, uniform: bool, edge_order: int) -> Any:
    """Return the derivative along the first axis, by the formulas that np.gradient documents."""
    left, right = h[:-1], h[1:]
    if uniform:
        inner = (f[2:] - f[:-2]) / (2.0 * h[0])
    else:
        inner = -right / (left * (left + right)) * f[:-2]
        inner = inner + (right - left) / (left * right) * f[1:-1] + left / (right * (left + right)) * f[2:]
    if edge_order == 1:
        first, last = (f[1:2] - f[:1]) / h[0], (f[-1:] - f[-2:-1]) / h[-1]
    elif uniform:
        first = (-1.5 * f[:1] + 2.0 * f[1:2] - 0.5 * f[2:3]) / h[0]
        last = (0.5 * f[-3:-2] - 2.0 * f[-2:-1] + 1.5 * f[-1:]) / h[0]
    else:
        first, last = _edge(f[:3], h[0], h[1]), _edge(f[:-4:-1], -h[-1], -h[-2])
    return np.concatenate([first, inner, last])


def _edge(f: Any, near: Any, far: Any) -> Any:
    """Return the derivative at the first of three points, from the parabola through them."""
    both = near + far
    return -(near + both) / (near * both) * f[:1] + both / (near * far) * f[1:2] - near / (far * both) * f[2:]


@implements(np.unwrap)
def unwrap(p: Any, discont: Any = None, axis: int = -1, *, period: Any = 2 * np.pi) -> Any:
    """The array with jumps of more than half a period taken out."""
    rows = np.moveaxis(traced(p), axis, -1)
    steps, half = np.diff(rows), period / 2
    reduced = np.mod(steps + half, period) - half
    reduced = np.where((reduced == -half) & (steps > 0), half, reduced)
    correction = np.where(np.abs(steps) < (half if discont is None else discont), 0, reduced - steps)
    unwrapped = np.concatenate([rows[..., :1], rows[..., 1:] + np.cumsum(correction, axis=-1)], axis=-1)
    return np.moveaxis(unwrapped, -1, axis)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation: all of x, xp (ascending, not checked) and fp may be traced.

    Pieces are chosen by selects, or found now where x and xp are known.
    """
    if period is not None:
        x, xp, fp = _periodic(x, xp, fp, abs(period))
        left = right = None
    known = not holds_traced((x, xp))
    places = np.searchsorted(xp, x, side="right") - 1 if known else None
    x, points, values = together(x, xp, fp)
    if points.ndim != 1 or points.shape != values.shape or not points.size:
        raise ValueError("np.interp takes vectors xp and fp of one length, not 0")
    count = len(points) - 1
    value = values[0]  # of a single point, for NaN too
    if places is not None and count:
        piece_of, slopes = np.clip(places, 0, count - 1), np.diff(values) / np.diff(points)
        value = slopes[piece_of] * (x - points[piece_of]) + values[piece_of]
    for k in range(0 if known else count):
        slope = (values[k + 1] - values[k]) / (points[k + 1] - points[k])
        piece = slope * (x - points[k]) + values[k]
        value = np.where(x >= points[k], piece, value) if k else piece
    value = np.where(x >= points[-1], values[-1], value)
    value = np.where(x < points[0], values[0] if left is None else left, value)
    return value if right is None else np.where(x > points[-1], right, value)


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of np.interp with the points moved into one period, sorted by value, and extended."""
    x, xp = np.mod(x, period), np.mod(xp, period)
    order = np.argsort(xp, kind="stable")
    xp, fp = xp[order], np.take(fp, order)
    points = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    return x, points, np.concatenate([fp[-1:], fp, fp[:1]])


@implements(np.linspace)
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, **_: Any,
) -> Any:  # fmt: skip
    """Evenly spaced numbers between two traced ends."""
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    first, last = np.broadcast_arrays(*together(start, stop))
    count = num - 1 if endpoint else num
    step = (last - first) / count if count else last - first
    rows = [first + k * step if k else first for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = last
    points = np.moveaxis(np.stack(rows) if rows else first[None][:0], 0, axis)
    return (points, step if count else np.nan) if retstep else points


@implements(np.logspace)
def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """Numbers spaced evenly on a logarithmic scale: powers of a base."""
    if np.ndim(base):
        rank = len(np.broadcast_shapes(*map(np.shape, (start, stop, base))))
        start, stop, base = (np.reshape(v, (1,) * (rank - np.ndim(v)) + np.shape(v)) for v in (start, stop, base))
        base = np.expand_dims(base, axis)
    return np.power(base, np.linspace(start, stop, num, endpoint, axis=axis))


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers in geometric progression between two traced ends."""
    ratio, count = np.divide(stop, start), num - 1 if endpoint else num
    rows = [start * ratio ** (k / count) if k else start + 0 * ratio for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = stop + 0 * ratio
    return np.moveaxis(np.stack(rows), 0, axis)


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p (highest first) at x, by Horner's rule."""
    value: Any = 0
    for coefficient in p:
        value = value * x + coefficient
    return value


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803 (NumPy's name)
    """The Vandermonde matrix."""
    x = traced(x)
    if x.ndim != 1:
        raise ValueError("np.vander takes a vector")
    columns = [x**k if k else np.ones_like(x) for k in range(len(x) if N is None else N)]
    if not columns:
        return np.empty((len(x), 0))
    return np.stack(columns if increasing else columns[::-1], axis=1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The discrete convolution of two vectors."""
    left, right = map(np.atleast_1d, together(a, v))
    if left.ndim > 1 or right.ndim > 1 or not left.size or not right.size or mode not in ("full", "same", "valid"):
        raise ValueError("np.convolve takes two vectors that are not empty, and mode 'full', 'same' or 'valid'")
    if len(right) > len(left):
        left, right = right, left
    n, m = len(left), len(right)
    products = [
        np.dot(left[max(0, k - m + 1) : k + 1], right[max(0, k - n + 1) : k + 1][::-1]) for k in range(n + m - 1)
    ]
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    return np.stack(products[start : start + count])


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors; with a longer second one NumPy reverses that of (v, a)."""
    check_real("np.correlate", "use np.convolve, which takes no conjugates")
    if np.size(v) > np.size(a):
        return np.flip(convolve(v, np.flip(a), mode))
    return convolve(a, np.flip(v), mode)


@implements(np.polyadd)
def polyadd(a1: Any, a2: Any) -> Any:
    """The sum of two polynomials."""
    left, right = _same_length(a1, a2)
    return np.add(left, right)


@implements(np.polysub)
def polysub(a1: Any, a2: Any) -> Any:
    """The difference of two polynomials."""
    left, right = _same_length(a1, a2)
    return np.subtract(left, right)


def _same_length(*polynomials: Any) -> list[Any]:
    polynomials = tuple(map(np.atleast_1d, polynomials))
    longest = max(map(len, polynomials))
    return [np.concatenate([np.zeros(longest - len(p)), p]) for p in polynomials]


@implements(np.polymul)
def polymul(a1: Any, a2: Any) -> Any:
    """The product of two polynomials; zeros in front of ordinary coefficients are dropped, as NumPy does."""
    left, right = (p if is_traced(p) else np.trim_zeros(np.atleast_1d(p), "f") for p in (a1, a2))
    return np.convolve(left, right)


@implements(np.polydiv)
def polydiv(u: Any, v: Any) -> Any:
    """Quotient and remainder of two polynomials; the remainder has the length of v less one."""
    rest, divisor = map(np.atleast_1d, together(u, v))
    steps = len(rest) - len(divisor) + 1
    quotient = np.full_like(rest, 0.0, shape=max(steps, 1))
    rest = rest.copy()
    for k in range(steps):
        quotient[k] = rest[k] / divisor[0]
        rest[k : k + len(divisor)] -= quotient[k] * divisor
    return quotient, rest[min(max(steps, 0), len(rest) - 1) :]


@implements(np.polyder)
def polyder(p: Any, m: int = 1) -> Any:
    """The m-th derivative of a polynomial."""
    for _ in range(m):
        p = p[:-1] * np.arange(len(p) - 1, 0, -1)
    return p


@implements(np.polyint)
def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    """The m-th antiderivative of a polynomial, with the constants of integration k."""
    constants = np.zeros(m) if k is None else np.broadcast_to(np.atleast_1d(traced(k)), (m,))
    for step in range(m):
        p = np.concatenate([p / np.arange(len(p), 0, -1), constants[step : step + 1]])
    return p


@implements(np.poly)
def poly(seq_of_zeros: Any) -> Any:
    """The polynomial with given roots; of a matrix its characteristic polynomial (Faddeev and LeVerrier)."""
    if np.ndim(seq_of_zeros) == 2:
        return _characteristic(traced(seq_of_zeros))
    coefficients: Any = np.ones(1)
    for root in seq_of_zeros:
        coefficients = np.convolve(coefficients, np.stack([1.0, -root]))
    return coefficients


def _characteristic(matrix: Any) -> Any:
    coefficients: list[Any] = [1.0]
    product = np.zeros_like(matrix)
    for k in range(1, len(matrix) + 1):
        product = matrix @ product + coefficients[-1] * np.eye(len(matrix)) if k > 1 else np.eye(len(matrix))
        coefficients.append(-np.trace(matrix @ product) / k)
    return np.stack(coefficients)


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The polynomial of degree deg that fits best, by least squares (more points than coefficients)."""
    if full or cov not in (False, True, "unscaled"):
        refuse_function("np.polyfit with full=", "only the coefficients and their covariance are traced")
    points, values, weights = together(x, y, np.ones(len(x)) if w is None else w)
    if not len(points):
        raise TypeError("expected non-empty vector for x")
    matrix = vander(points, deg + 1)
    if w is not None:
        matrix, values = matrix * weights[:, None], (values.T * weights).T
    coefficients = np.linalg.lstsq(matrix, values)[0]
    return (coefficients, _covariance(matrix, values, coefficients, scaled=cov != "unscaled")) if cov else coefficients


def _covariance(matrix: Any, values: Any, coefficients: Any, *, scaled: bool) -> Any:
    """Return the covariance of coefficients that fit best, by the scatter of the values where that is wanted."""
    inverse = np.linalg.inv(matrix.T @ matrix)
    if not scaled:
        return inverse
    count, size = matrix.shape
    if count <= size:
        raise ValueError("the number of data points must exceed order to scale the covariance matrix")
    scale = np.sum((values - matrix @ coefficients) ** 2, axis=0) / (count - size)
    return inverse * scale if np.ndim(scale) == 0 else inverse[:, :, None] * scale
