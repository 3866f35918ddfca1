"""`np.fft` on traced arrays. Complex results are `ComplexArray`s."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from symad.tracing.numpy.complex_arrays import ComplexArray, in_its_order, made, parts, transforms
from symad.tracing.numpy.fourier import transform
from symad.tracing.values.complex_points import check_real


def along(value: Any, n: Any, axis: Any, norm: Any, *, back: bool) -> ComplexArray:
    """Return the transform along an axis, of the first n elements or of all with zeros behind them."""
    check_real("np.fft")
    real, imaginary = parts(value)
    axis = normalize_axis_index(axis, np.ndim(real))
    n = _length(np.shape(real)[axis] if n is None else n)
    given = [None if part is None else resized(np.moveaxis(part, axis, 0), n) for part in (real, imaginary)]
    transformed = transform((given[0], given[1]), back=back)
    factor = _factor(norm, n, back=back)
    first, second = (np.moveaxis(part if factor == 1 else part * factor, 0, axis) for part in transformed)
    return made(first, second, real)


def resized(values: Any, n: int) -> Any:
    """Return the first n elements of an array, with zeros behind what is there."""
    if len(values) >= n:
        return values[:n]
    return np.concatenate([values, np.zeros((n - len(values), *np.shape(values)[1:]))])


def _length(n: Any) -> int:
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    return int(n)


def _factor(norm: Any, n: int, *, back: bool) -> float:
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    scaled = "forward" if back else "backward"
    return n**-0.5 if norm == "ortho" else 1.0 if (norm or "backward") == scaled else 1 / n


@transforms(np.fft.fft)
def fft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> ComplexArray:
    """The transform of an axis."""
    return along(a, n, axis, norm, back=False)


@transforms(np.fft.ifft)
def ifft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> ComplexArray:
    """The inverse transform of an axis."""
    return along(a, n, axis, norm, back=True)


@transforms(np.fft.rfft)
def rfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> ComplexArray:
    """The first half of the transform of a real axis."""
    transformed = along(a.real, n, axis, norm, back=False)
    half = transformed.shape[axis] // 2 + 1
    first, second = (np.moveaxis(np.moveaxis(part, axis, 0)[:half], 0, axis) for part in parts(transformed))
    return made(first, second, a)


@transforms(np.fft.irfft)
def irfft(a: Any, n: Any = None, axis: Any = -1, norm: Any = None, out: Any = None) -> Any:
    """The real inverse transform of the first half of an axis; imaginary parts of what is real there are left out."""
    first, second = parts(a)
    real, imaginary = np.moveaxis(first, axis, 0), None if second is None else np.moveaxis(second, axis, 0)
    n = _length(2 * (len(real) - 1) if n is None else n)
    half = resized(real, n // 2 + 1)
    whole = np.concatenate([half, half[1 : (n + 1) // 2][::-1]])
    if imaginary is None:
        other = None
    else:
        inner = resized(imaginary, n // 2 + 1)[1 : (n + 1) // 2]
        zero = np.zeros((1, *np.shape(real)[1:]))
        middle = [zero] if n % 2 == 0 else []
        other = np.concatenate([zero, inner, *middle, -inner[::-1]])[:n]
    real_part, _ = transform((whole, other), back=True)
    return in_its_order(np.moveaxis(real_part * _factor(norm, n, back=True), 0, axis), first)
