"""QR factors of traced matrices of full rank; lstsq and pinv by them.

Small matrices are written out, by Householder reflections; LAPACK factorizes larger ones, as it does on numbers.
"""

from __future__ import annotations

import math
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from codegen.ir.matrix_operation import MatrixOperation
from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.solve import (
    back_substituted,
    check_size,
    known_values,
    matrix_writer,
    per_matrix,
    scaled,
    substituted,
)
from symad.tracing.values.array import wrap
from symad.tracing.values.traced import refuse_function

REFLECTED = 8  # rows from which on reflections are not written out in a function that is compiled
EPS = float(np.finfo(np.float64).eps)
_QR_RESULT = type(np.linalg.qr(np.eye(1)))  # NumPy's named tuple has no public name


def _reflected(a: Any, right: Any) -> Any:
    """Return [R, transpose(Q) right] for a = Q R, with the signs that LAPACK gives."""
    rows = np.concatenate([a, right], axis=1)
    for k in range(min(len(a) - 1, a.shape[1])):
        first, below = rows[k, k], rows[k + 1 :, k].copy()
        squares = np.sum(below * below)
        beta = -np.copysign(np.sqrt(first * first + squares), first)
        axis = np.concatenate([[1.0], below / (first - beta)])
        rest = rows[k:, k + 1 :].copy()
        rows[k:, k + 1 :] = rest - np.multiply.outer((beta - first) / beta * axis, axis @ rest)
        rows[k, k], rows[k + 1 :, k] = beta, 0.0
        reduced = np.all(below == 0)  # such a column LAPACK leaves as it is; squares may be 0 where numbers are not
        rows[k, k:] = np.where(reduced, -rows[k, k:], rows[k, k:])
    return rows


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """The factors of a matrix of full rank: Q with orthonormal columns, and R upper triangular."""
    if mode not in ("reduced", "complete", "r"):
        refuse_function(f"np.linalg.qr with mode={mode!r}", "it gives LAPACK's packed factors", "use mode='reduced'")
    a = traced(a)
    if a.ndim < 2:
        raise np.linalg.LinAlgError(f"a matrix or a stack of them is needed, not an array of shape {a.shape}")
    a, scale = scaled(a) if a.size else (a, 1)
    m, n = a.shape[-2:]
    by_lapack = (m == n or mode != "complete") and m and n and _whole(a[(0,) * (a.ndim - 2)]) is not None

    def one(matrix: Any) -> Any:
        if not by_lapack:
            return _checked("qr", matrix, np.eye(m))
        q, r = _factors("qr", matrix)
        return np.concatenate([r, q.T], axis=1)

    both, size = per_matrix(one, a), m if mode == "complete" else min(m, n)
    both = both + _no_slope(a, both[..., :size, :n])[..., None, None]
    upper = np.triu(both[..., :size, :n]) * scale
    return upper if mode == "r" else _QR_RESULT(np.matrix_transpose(both[..., :size, n:]), upper)


def _no_slope(a: Any, upper: Any) -> Any:
    """Return 0 for each matrix, which has a derivative of NaN where the factor R says that columns are dependent.

    Q and R have values there, and no derivative. Where numbers are known, such a matrix was refused.
    """
    if known_values(a, np.size) is not None:
        return np.zeros(a.shape[:-2])
    size = min(upper.shape[-2:])
    square = upper[..., :size, :size]
    marked = np.isnan(np.sum(_independent(np.reshape(square, (-1, size, size)), a.shape[-2]), axis=(1, 2)))
    kink = np.sqrt(0.0 * np.sum(a, axis=(-2, -1)) ** 2)
    return np.where(np.reshape(marked, a.shape[:-2]), kink, 0.0)


def _whole(a: Any) -> Any:
    """Return what has LAPACK factorize a matrix; None for a small one."""
    return matrix_writer(a, least=REFLECTED)


def _factors(name: str, a: Any) -> tuple[Any, Any]:
    """Return Q and R of a matrix as LAPACK has them; of one with more columns than rows these of its first columns."""
    m, n = a.shape
    size = min(m, n)
    first = a[:, :size]
    _check_rank(name, first)
    q, r = _whole(a).carried_out(MatrixOperation("qr", (m, size)), first.nodes.T)
    q, r = np.reshape(wrap(q, a.scope), (size, m)).T, np.triu(np.reshape(wrap(r, a.scope), (size, size)).T)
    return q, r if n == size else np.concatenate([r, q.T @ a[:, size:]], axis=1)


def _solved(name: str, a: Any, right: Any) -> tuple[Any, Any]:
    """Return the least-squares solution for a matrix with no fewer rows than columns, and what of the right is left."""
    if _whole(a) is None:
        return _solved_by_reflections(name, a, right)
    q, r = _factors(name, a)
    inner = q.T @ right
    return substituted(_independent(r, len(a)).T, inner, turned=True, least=1), right - q @ inner


def _independent(r: Any, m: int) -> Any:
    """Return R with NaN on its diagonal for a column that depends on those before it, to the last digits."""
    bound = np.where(np.eye(r.shape[-1], dtype=bool), (m * EPS) ** 2, -1.0)
    return np.where(r * r <= bound * np.sum(r * r, axis=-2, keepdims=True), np.nan * r, r)


def _solved_by_reflections(name: str, a: Any, right: Any) -> tuple[Any, Any]:
    """The same of a small matrix; where numbers are known, dependent columns were refused."""
    n, rows = a.shape[1], _checked(name, a, right)
    if known_values(rows[:n, :n], np.size) is None:
        rows[:n, :n] = _independent(rows[:n, :n], len(a))
    return back_substituted(rows[:n]), rows[n:, n:]


def _checked(name: str, a: Any, right: Any) -> Any:
    check_size(name, a)
    _check_rank(name, a)
    return _reflected(a, right)


def _check_rank(name: str, a: Any) -> None:
    rank = known_values(a, lambda m: np.linalg.matrix_rank(m) if np.isfinite(m).all() else min(m.shape))
    if rank is not None and rank < min(a.shape):
        refuse_function(
            f"np.linalg.{name} of a matrix without full rank", "the result has no derivative there", "remove columns"
        )


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution (of least norm), the squared residuals and the rank, for a matrix of full rank."""
    a, b = together(a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or len(a) != len(b):
        raise np.linalg.LinAlgError(f"np.linalg.lstsq: shapes {a.shape} and {b.shape} do not match")
    m, n = a.shape
    right = np.reshape(b, (m, math.prod(b.shape[1:])))
    if not n:
        solution, residuals = np.zeros((0, right.shape[1])), np.sum(np.square(right), axis=0)
    elif m >= n:
        a, scale = scaled(a)
        solution, rest = _solved("lstsq", a, right)
        solution = solution / scale
        residuals = np.sum(np.square(rest), axis=0)
    else:
        solution, residuals = pinv(a) @ right, []
    if m <= n:
        residuals = np.zeros(0)
    return np.reshape(solution, (n, *b.shape[1:])), residuals, min(m, n), _SingularValues()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    matrix = traced(a)
    if hermitian:  # NumPy reads the lower triangle
        matrix = np.tril(matrix) + np.matrix_transpose(np.tril(matrix, -1))
    return per_matrix(_pinv_one, matrix)


def _pinv_one(a: Any) -> Any:
    m, n = a.shape
    if m < n:
        return _pinv_one(a.T).T
    if not n:
        return a.T
    a, scale = scaled(a)
    return _solved("pinv", a, np.eye(m))[0] / scale


class _SingularValues(NDArrayOperatorsMixin):
    """Stands where NumPy returns singular values, which nobody may need; every use of it is refused."""

    def _refuse(self, *args: Any, **keywords: Any) -> NoReturn:
        refuse_function(
            "the singular values of np.linalg.lstsq", "they are not computed here", "use np.linalg.svdvals(a)"
        )

    __array_ufunc__ = __array_function__ = __array__ = __getitem__ = __iter__ = __len__ = __float__ = _refuse
    __getattr__ = _refuse
