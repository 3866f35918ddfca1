"""`np.fft` on traced arrays: discrete Fourier transforms of any length. Complex results are `ComplexArray`s.

A transform is a few passes of small matrices and factors of modulus 1, each of which is an operation on whole arrays:
so it has derivatives, kernels and straight lines as they have. One of a length with a large prime factor is a
convolution with a chirp. Errors grow with the logarithm of the length.

Source: Van Loan, Computational Frameworks for the Fast Fourier Transform (1992): Stockham's autosort, in 1.7 for any
factors; Bluestein's chirp, in 4.3.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index
from numpy.typing import NDArray

from symad.tracing.numpy.complex_arrays import ComplexArray, in_its_order, made, parts, transforms
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.node_arrays import loops_on
from symad.tracing.values.traced import Traced

LARGEST = 16  # size of a pass; of a prime factor PRIME
PRIME = 31

Pair = tuple[Any, Any]  # real and imaginary parts


def transform(pair: Pair, *, back: bool = False) -> Pair:
    """Return the sums of a complex array along its first axis with exp(-2 pi i j k / n), or with exp(2 pi i j k / n).

    An imaginary part of None is zero.
    """
    real, imaginary = pair
    n = len(real)
    if n < 2:
        return real, np.zeros_like(real) if imaginary is None else imaginary
    sizes = radices(n)
    if sizes and is_written_out(real, 2 * max(sizes) * int(np.size(real))):
        sizes = radices(n, 2)
    return _passes(real, imaginary, sizes, back) if sizes else _by_chirp(real, imaginary, back)


def is_written_out(values: Any, operations: int) -> bool:
    """Return whether so many operations on an array are single nodes: the fewer, the better."""
    writer = loops_on(values.scope.graph) if isinstance(values, Traced) else None
    if writer is None:
        return isinstance(values, Traced)
    return not writer.on_numbers and operations < writer.least


def radices(n: int, largest: int = LARGEST) -> list[int]:
    """Return the sizes of passes whose product is n, larger than wanted only where they are prime factors.

    None where a prime factor is too large.

    >>> radices(1000), radices(97), radices(1), radices(20, 2)
    ([10, 10, 10], [], [], [5, 2, 2])
    """
    primes, rest = list[int](), n
    for prime in range(2, PRIME + 1):
        while rest % prime == 0:
            primes.append(prime)
            rest //= prime
    if rest > 1:
        return []
    sizes = list[int]()
    for prime in sorted(primes, reverse=True):
        smallest = min(range(len(sizes)), key=sizes.__getitem__, default=-1)
        if smallest >= 0 and sizes[smallest] * prime <= largest:
            sizes[smallest] *= prime
        else:
            sizes.append(prime)
    return sizes


def _roots(places: NDArray[np.int64], n: int, back: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return cosines and sines of the angles -2 pi k / n, or of 2 pi k / n."""
    turns = places % n
    turns = np.where(2 * turns > n, turns - n, turns)
    angles = 2 * np.pi * turns / n
    cosines = np.where(4 * np.abs(turns) == n, 0.0, np.cos(angles))
    sines = np.where(2 * np.abs(turns) == n, 0.0, np.sin(angles))
    return cosines, (sines if back else -sines) + 0.0  # without -0.0, which is kept apart


@lru_cache(maxsize=64)
def _factors(size: int, left: int, n: int, back: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the roots with a number of 0, 1, ... times one of 0, 1, ..."""
    return _roots(np.multiply.outer(np.arange(size), np.arange(left if left > 1 else size)), n, back)


def _passes(real: Any, imaginary: Any, sizes: list[int], back: bool) -> Pair:
    """Carry out the passes: each goes over the first of three axes, which it puts between the others."""
    shape, n = np.shape(real), len(real)
    inner, left = math.prod(shape[1:]), n
    x = np.reshape(real, (n, inner)) if imaginary is None else np.stack([real, imaginary])
    for number, size in enumerate(sizes):
        left //= size
        cosines, sines = _factors(size, 1, size, back)
        matrix = np.block([[cosines, 0.0 - sines], [sines, cosines]])
        matrix = matrix[:, :size] if imaginary is None and number == 0 else matrix
        turned = np.reshape(matrix @ np.reshape(x, (matrix.shape[1], -1)), (2, size, left, inner))
        if left > 1:
            cosines, sines = _factors(size, left, size * left, back)
            c, s = cosines[:, :, None], sines[:, :, None]
            turned = np.stack([turned[0] * c - turned[1] * s, turned[0] * s + turned[1] * c])
        x = np.reshape(np.transpose(turned, (0, 2, 1, 3)), (2, -1))
        inner *= size
    return np.reshape(x[0], shape), np.reshape(x[1], shape)


def _by_chirp(real: Any, imaginary: Any, back: bool) -> Pair:
    n = len(real)
    size = next(m for m in range(2 * n - 1, 4 * n) if radices(m))
    behind = (1,) * (np.ndim(real) - 1)
    squares = np.arange(n) ** 2 % (2 * n)
    c, s = (np.reshape(part, (n, *behind)) for part in _roots(squares, 2 * n, back))
    given = (real * c, real * s) if imaginary is None else (real * c - imaginary * s, real * s + imaginary * c)
    wide = [np.concatenate([part, np.zeros((size - n, *np.shape(real)[1:]))]) for part in given]
    chirp = np.zeros(size, dtype=complex)
    chirp[:n] = np.ravel(c) - 1j * np.ravel(s)
    chirp[size - n + 1 :] = chirp[1:n][::-1]
    factors = np.reshape(np.fft.fft(chirp), (size, *behind)) / size
    u, v = transform((wide[0], wide[1]))
    u, v = transform((u * factors.real - v * factors.imag, u * factors.imag + v * factors.real), back=True)
    u, v = u[:n], v[:n]
    return u * c - v * s, u * s + v * c


# ---- np.fft


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


transforms(np.fft.fft)(lambda a, n=None, axis=-1, norm=None, out=None: along(a, n, axis, norm, back=False))
transforms(np.fft.ifft)(lambda a, n=None, axis=-1, norm=None, out=None: along(a, n, axis, norm, back=True))


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
    given: list[Any] = [None if part is None else np.moveaxis(part, axis, 0) for part in parts(a)]
    real, imaginary = given
    n = _length(2 * (len(real) - 1) if n is None else n)
    half = resized(real, n // 2 + 1)
    whole = np.concatenate([half, half[1 : (n + 1) // 2][::-1]])
    other = None
    if imaginary is not None:
        inner = resized(imaginary, n // 2 + 1)[1 : (n + 1) // 2]
        zero = np.zeros((1, *np.shape(real)[1:]))
        other = np.concatenate([zero, inner, *[zero] * (n % 2 == 0), -inner[::-1]])[:n]
    real_part, _ = transform((whole, other), back=True)
    return in_its_order(np.moveaxis(real_part * _factor(norm, n, back=True), 0, axis), parts(a)[0])
