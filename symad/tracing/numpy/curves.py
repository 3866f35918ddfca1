"""Sampled curves and polynomials: differences, quadrature, interpolation, grids, NumPy's poly*.

Coefficients of polynomials stand highest power first.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.numpy.registry import implements, stands_in_for
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_operands import holds_traced


@implements(np.ediff1d)
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """Differences of neighbours of the flattened array, with optional ends."""
    flat = np.ravel(ary)
    parts = [to_begin, flat[1:] - flat[:-1], to_end]
    return np.concatenate([np.ravel(part) for part in parts if part is not None])


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


@stands_in_for("scipy.integrate.fixed_quad", held=())
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral by Gauss's rule of order n, between traced bounds; the integrand takes a vector."""
    places, weights = np.polynomial.legendre.leggauss(n)
    half = (b - a) / 2.0
    return half * np.sum(weights * func(half * (places + 1.0) + a, *args), axis=-1), None


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
    rows = [first + k * step for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = last
    points = np.moveaxis(np.stack(rows) if rows else first[None][:0], 0, axis)
    return (points, step if count else np.nan) if retstep else points


@implements(np.geomspace)
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers in geometric progression between two traced ends."""
    ratio, count = np.divide(stop, start), num - 1 if endpoint else num
    rows = [start * ratio ** (k / count) if k else start + 0 * ratio for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = stop + 0 * ratio
    return np.moveaxis(np.stack(rows), 0, axis)


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
    return np.stack(products[kept_of_convolution(n, m, mode)])


def kept_of_convolution(n: int, m: int, mode: str) -> slice:
    """Return what a mode keeps of a whole convolution of n and m elements."""
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    return slice(start, start + count)


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors; with a longer second one NumPy reverses that of (v, a)."""
    check_real("np.correlate", "use np.convolve, which takes no conjugates")
    if np.size(v) > np.size(a):
        return np.flip(convolve(v, np.flip(a), mode))
    return convolve(a, np.flip(v), mode)


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
