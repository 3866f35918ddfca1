"""Discrete Fourier transforms of any length, over one axis or several.

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
from numpy.typing import NDArray

from symad.tracing.values.node_arrays import loops_on
from symad.tracing.values.traced import Traced

LARGEST = 16  # size of a pass; of a prime factor PRIME
PRIME = 31

Pair = tuple[Any, Any]  # real and imaginary parts


def transform(parts: Pair, *, back: bool = False) -> Pair:
    """Return the sums of a complex array along its first axis with exp(-2 pi i j k / n), or with exp(2 pi i j k / n).

    An imaginary part of None is zero.
    """
    real, imaginary = parts
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
