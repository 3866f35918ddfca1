"""SciPy's integrals of samples, and by a fixed rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.scipy.objects import array, is_plain


@stands_in_for("scipy.integrate.simpson", held=())
def simpson(y: Any, x: Any = None, *, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral by Simpson's rule; of an even number of samples with Cartwright's correction at the end."""
    rows = np.moveaxis(array(y), axis, -1)
    count = rows.shape[-1]
    if x is None:
        widths = np.ones(count - 1)
    else:
        places = array(x)
        widths = np.diff(np.moveaxis(places, axis, -1) if places.ndim > 1 else places)
    if count == 1:
        return 0.0 * rows[..., 0]
    if count == 2:
        integral = 0.5 * widths[..., 0] * (rows[..., 0] + rows[..., 1])
    elif count % 2:
        integral = _parabolas(rows, widths)
    else:
        integral = _parabolas(rows[..., :-1], widths[..., :-1]) + _last(rows[..., -3:], widths[..., -2:])
    return integral if x is not None else integral * (dx if is_plain(dx) else array(dx))


def _parabolas(rows: Any, widths: Any) -> Any:
    """Return the integral of parabolas through three samples each."""
    h0, h1 = widths[..., ::2], widths[..., 1::2]
    both = h0 + h1
    first = rows[..., :-2:2] * (2.0 - h1 / h0)
    middle, last = rows[..., 1::2] * (both * both / (h0 * h1)), rows[..., 2::2] * (2.0 - h0 / h1)
    return np.sum(both / 6.0 * (first + middle + last), axis=-1)


def _last(rows: Any, widths: Any) -> Any:
    """Return the integral over the last interval of the parabola through the last three samples."""
    h0, h1 = widths[..., 0], widths[..., 1]
    alpha = (2 * h1**2 + 3 * h0 * h1) / (6 * (h1 + h0))
    beta = (h1**2 + 3 * h0 * h1) / (6 * h0)
    eta = h1**3 / (6 * h0 * (h0 + h1))
    return alpha * rows[..., 2] + beta * rows[..., 1] - eta * rows[..., 0]


@stands_in_for("scipy.integrate.fixed_quad", held=())
def fixed_quad(func: Callable[..., Any], a: Any, b: Any, args: Any = (), n: int = 5) -> Any:
    """The integral by Gauss's rule of order n, between traced bounds; the integrand takes a vector."""
    places, weights = np.polynomial.legendre.leggauss(n)
    low, high = array(a), array(b)
    half = (high - low) / 2.0
    return half * np.sum(weights * func(half * (places + 1.0) + low, *args), axis=-1), None
