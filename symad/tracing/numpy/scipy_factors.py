"""Factorizations of scipy.linalg with SciPy's signatures, by those of NumPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import symad.tracing.numpy.least_squares as least_squares
import symad.tracing.numpy.spectra as spectra
from codegen.ir.matrix_operation import MatrixOperation
from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_matrices import finite
from symad.tracing.numpy.solve import per_matrix, scaled
from symad.tracing.values.traced import refuse_options

_unless = partial(refuse_options, "scipy.linalg")


@stands_in_for("scipy.linalg.eigh")
def eigh(
    a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False, overwrite_a: bool = False,
    overwrite_b: bool = False, type: int = 1, check_finite: bool = True, subset_by_index: Any = None,
    subset_by_value: Any = None, driver: Any = None,
) -> Any:  # fmt: skip
    """The eigenvalues in ascending order, and the eigenvectors, of a symmetric matrix; some of them by their index."""
    _unless("eigh", b=b is not None, subset_by_value=subset_by_value is not None)
    finite(check_finite, a)
    chosen = slice(None)
    if subset_by_index is not None:
        first, last = subset_by_index
        chosen = slice(int(first), int(last) + 1)
    triangle = "L" if lower else "U"
    if eigvals_only:
        return spectra.eigvalsh(traced(a), triangle)[..., chosen]
    values, vectors = spectra.eigh(traced(a), triangle)
    return values[..., chosen], vectors[..., chosen]


@stands_in_for("scipy.linalg.eigvalsh")
def eigvalsh(a: Any, b: Any = None, **keywords: Any) -> Any:
    """The eigenvalues of a symmetric matrix in ascending order."""
    return eigh(a, b, eigvals_only=True, **keywords)


@stands_in_for("scipy.linalg.svd")
def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:  # fmt: skip
    """The singular values in descending order, and their vectors."""
    finite(check_finite, a)
    factors = spectra.svd(traced(a), full_matrices, compute_uv)
    return tuple(factors) if compute_uv else factors


@stands_in_for("scipy.linalg.svdvals")
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The singular values in descending order."""
    finite(check_finite, a)
    return np.linalg.svdvals(traced(a))


@stands_in_for("scipy.linalg.qr")
def qr(
    a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", pivoting: bool = False,
    check_finite: bool = True,
) -> Any:  # fmt: skip
    """The factors of a matrix of full rank, without pivoting."""
    _unless("qr", pivoting=pivoting, mode=mode == "raw")
    finite(check_finite, a)
    a = traced(a)
    if mode == "r":
        return (least_squares.qr(a, "complete")[1] if a.shape[-2] > a.shape[-1] else least_squares.qr(a, "r"),)
    return tuple(least_squares.qr(a, {"full": "complete", "economic": "reduced"}.get(mode, mode)))


@stands_in_for("scipy.linalg.lstsq")
def lstsq(
    a: Any, b: Any, cond: Any = None, overwrite_a: bool = False, overwrite_b: bool = False, check_finite: bool = True,
    lapack_driver: Any = None,
) -> Any:  # fmt: skip
    """The least-squares solution, the squared residuals and the rank, for a matrix of full rank."""
    finite(check_finite, a, b)
    left, right = together(a, b)
    return np.linalg.lstsq(left, right, rcond=cond)


@stands_in_for("scipy.linalg.pinv")
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    _unless("pinv", atol=atol is not None, rtol=rtol is not None)
    finite(check_finite, a)
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


@stands_in_for("scipy.linalg.norm")
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """A norm of a vector or matrix. The Euclidean one of a vector is BLAS's: its squares do not leave the range."""
    finite(check_finite, a)
    a, scale = traced(a), 1
    if a.ndim == 1 and a.size and ord in (None, 2) and axis is None and not keepdims:
        a, scale = scaled(a)
    return np.linalg.norm(a, ord, axis, keepdims) * scale
