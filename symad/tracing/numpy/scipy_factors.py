"""Factorizations of scipy.linalg with SciPy's signatures, by those of NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import symad.tracing.numpy.least_squares as least_squares
import symad.tracing.numpy.spectra as spectra
from codegen.ir.matrix_operation import MatrixOperation
from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import scipy_form
from symad.tracing.numpy.solve import per_matrix, scaled
from symad.tracing.values.traced import refuse_options


@scipy_form("scipy.linalg.eigh")
def eigh(a: Any, lower: bool = True, eigvals_only: bool = False, subset_by_index: Any = None) -> Any:
    """The eigenvalues in ascending order, and the eigenvectors, of a symmetric matrix; some of them by their index."""
    chosen = slice(None)
    if subset_by_index is not None:
        first, last = subset_by_index
        chosen = slice(int(first), int(last) + 1)
    triangle = "L" if lower else "U"
    if eigvals_only:
        return spectra.eigvalsh(traced(a), triangle)[..., chosen]
    values, vectors = spectra.eigh(traced(a), triangle)
    return values[..., chosen], vectors[..., chosen]


@scipy_form("scipy.linalg.eigvalsh")
def eigvalsh(a: Any, lower: bool = True, subset_by_index: Any = None) -> Any:
    """The eigenvalues of a symmetric matrix in ascending order."""
    return eigh(a, lower, True, subset_by_index)


@scipy_form("scipy.linalg.svd")
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """The singular values in descending order, and their vectors."""
    factors = spectra.svd(traced(a), full_matrices, compute_uv)
    return tuple(factors) if compute_uv else factors


scipy_form("scipy.linalg.svdvals")(lambda a: np.linalg.svdvals(traced(a)))


@scipy_form("scipy.linalg.qr")
def qr(a: Any, mode: str = "full") -> Any:
    """The factors of a matrix of full rank, without pivoting."""
    refuse_options("scipy.linalg", "qr", mode=mode == "raw")
    a = traced(a)
    if mode == "r":
        return (least_squares.qr(a, "complete")[1] if a.shape[-2] > a.shape[-1] else least_squares.qr(a, "r"),)
    return tuple(least_squares.qr(a, {"full": "complete", "economic": "reduced"}.get(mode, mode)))


@scipy_form("scipy.linalg.lstsq")
def lstsq(a: Any, b: Any, cond: Any = None) -> Any:
    """The least-squares solution, the squared residuals and the rank, for a matrix of full rank."""
    left, right = together(a, b)
    return np.linalg.lstsq(left, right, rcond=cond)


@scipy_form("scipy.linalg.pinv")
def pinv(a: Any, return_rank: bool = False) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    a = traced(a)
    return (np.linalg.pinv(a), min(a.shape[-2:])) if return_rank else np.linalg.pinv(a)


@stands_in_for("scipy.linalg.expm")
def expm(A: Any) -> Any:  # noqa: N803 (SciPy's name)
    """The exponential of a square matrix."""
    a = traced(A)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("Last 2 dimensions of the array must be square")
    if not a.size:
        return a
    operation = MatrixOperation("exponential", a.shape[-1:])

    def one(matrix: Any) -> Any:
        return np.reshape(spectra.factors_of("scipy.linalg.expm", operation, matrix)[0], matrix.shape).T

    return per_matrix(one, a)


@scipy_form("scipy.linalg.norm")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A norm of a vector or matrix. The Euclidean one of a vector is BLAS's: its squares do not leave the range."""
    a, scale = traced(a), 1
    if a.ndim == 1 and a.size and ord in (None, 2) and axis is None and not keepdims:
        a, scale = scaled(a)
    return np.linalg.norm(a, ord, axis, keepdims) * scale
