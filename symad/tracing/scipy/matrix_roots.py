"""Square roots and logarithms of matrices, by iterations with a fixed number of steps.

A square root is checked; a logarithm is the sum of Gauss and Legendre for the integral of
(A - 1) (1 + t (A - 1))^-1 between 0 and 1, after as many square roots as bring A near to 1.

Source: Higham, "Functions of Matrices" (2008), chapters 6 and 11.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.solve import known_values
from symad.tracing.values.traced import refuse_function

STEPS = 16  # of the iteration for a square root: eigenvalues may differ by a factor of a million
CLOSE = 1e-9  # how far the square of a square root may be from the matrix, relative to it
ROOTS = 6  # square roots before a logarithm in a kernel
NEAR = 0.3  # how far from 1 they have to lead, in the norm of Frobenius
NODES = 12  # of the formula of Gauss and Legendre, exact to the last digit there


@stands_in_for("scipy.linalg.sqrtm")
def sqrtm(A: Any, disp: bool = True, blocksize: int = 64) -> Any:  # noqa: N803 (SciPy's name)
    """The principal square root of a square matrix."""
    matrix = traced(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError("Non-matrix input to matrix function.")
    return _root("sqrtm", matrix)


def _root(name: str, matrix: Any) -> Any:
    """Return the principal square root, by the product form of the iteration of Denman and Beavers.

    Where it does not end there is none that is real: it is refused where the numbers are known, and NaN in a kernel.
    """
    identity, scale = np.eye(matrix.shape[0]), np.sqrt(np.sum(matrix**2))
    product = root = matrix / scale
    for _ in range(STEPS):
        inverse = np.linalg.inv(product)
        root = 0.5 * (root + root @ inverse)
        product = 0.5 * (identity + 0.5 * (product + inverse))
    root = np.sqrt(scale) * root
    off = np.sum((root @ root - matrix) ** 2) - CLOSE**2 * np.sum(matrix**2)
    known = known_values(np.reshape(off, (1,)), _is_off)
    if known is not None and known:
        why = "no real one is found: eigenvalues are negative, zero, or a millionth of others"
        refuse_function(f"scipy.linalg.{name}", why, "only real ones are traced")
    return root if known is not None else np.where(off <= 0, root, np.nan)


def _is_off(numbers: Any) -> Any:
    return np.logical_not(numbers <= 0).astype(float)


@stands_in_for("scipy.linalg.logm")
def logm(A: Any, disp: bool = True) -> Any:  # noqa: N803 (SciPy's name)
    """The principal logarithm of a square matrix."""
    matrix = traced(A)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError("expected a square matrix")
    identity, count = np.eye(matrix.shape[0]), 0
    far = known_values(matrix - identity, _size)
    while (far is None and count < ROOTS) or (far is not None and far > NEAR):
        matrix, count = _root("logm", matrix), count + 1
        far = None if far is None else known_values(matrix - identity, _size)
    off = matrix - identity
    places, weights = np.polynomial.legendre.leggauss(NODES)
    logarithm = 2.0**count * sum(
        weight / 2 * np.linalg.solve(identity + (1 + place) / 2 * off, off)
        for place, weight in zip(places.tolist(), weights.tolist(), strict=True)
    )
    return logarithm if far is not None else np.where(np.sum(off**2) <= NEAR**2, logarithm, np.nan)


def _size(numbers: Any) -> Any:
    return np.sqrt(np.sum(numbers**2))
