"""NumPy's polynomial functions on traced coefficients (highest power first), and the convolution they rest on."""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.traced import refuse_function


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p (highest first) at x, by Horner's rule."""
    made: Any = 0
    for coefficient in p:
        made = made * x + coefficient
    return made


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803 (NumPy's name)
    """The Vandermonde matrix."""
    x = traced(x)
    if x.ndim != 1:
        raise ValueError("np.vander takes a vector")
    columns = [x**k if k else np.ones_like(x) for k in range(len(x) if N is None else N)]
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
    made = [np.dot(left[max(0, k - m + 1) : k + 1], right[max(0, k - n + 1) : k + 1][::-1]) for k in range(n + m - 1)]
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    return np.stack(made[start : start + count])


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
    """The polynomial with given roots."""
    if np.ndim(seq_of_zeros) != 1:
        refuse_function("np.poly of a matrix", "it needs the eigenvalues")
    made: Any = np.ones(1)
    for root in seq_of_zeros:
        made = np.convolve(made, np.stack([1.0, -root]))
    return made


@implements(np.polyfit)
def polyfit(x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """The polynomial of degree deg that fits best, by least squares (more points than coefficients)."""
    if full or cov:
        refuse_function("np.polyfit with full= or cov=", "only the coefficients are traced")
    points, values, weights = together(x, y, np.ones(len(x)) if w is None else w)
    matrix = vander(points, deg + 1)
    if w is not None:
        matrix, values = matrix * weights[:, None], (values.T * weights).T
    return np.linalg.lstsq(matrix, values)[0]
