"""QR factors of traced matrices of full rank by Householder reflections, and what rests on them: lstsq and pinv."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import implements
from symad.tracing.numpy.solve import back_substituted, check_size, known_values, per_matrix
from symad.tracing.values.traced import refuse_function

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
    m, n = a.shape[-2:]
    size = m if mode == "complete" else min(m, n)
    both = per_matrix(lambda one: _checked("qr", one, np.eye(m)), a)
    upper = both[..., :size, :n]
    return upper if mode == "r" else _QR_RESULT(np.matrix_transpose(both[..., :size, n:]), upper)


def _checked(name: str, a: Any, right: Any) -> Any:
    check_size(name, a)
    known = known_values(a)
    if known is not None and np.isfinite(known).all() and np.linalg.matrix_rank(known) < min(a.shape):
        refuse_function(
            f"np.linalg.{name} of a matrix without full rank", "the result has no derivative there", "remove columns"
        )
    return _reflected(a, right)


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """The least-squares solution (of least norm), the squared residuals and the rank, for a matrix of full rank."""
    a, b = together(a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or len(a) != len(b):
        raise np.linalg.LinAlgError(f"np.linalg.lstsq: shapes {a.shape} and {b.shape} do not match")
    m, n = a.shape
    right = np.reshape(b, (m, -1))
    if m >= n:
        rows = _checked("lstsq", a, right)
        solution, residuals = back_substituted(rows[:n]), np.sum(np.square(rows[n:, n:]), axis=0)
    else:
        solution, residuals = pinv(a) @ right, []
    if m <= n:
        residuals = np.zeros(0)
    return np.reshape(solution, (n, *b.shape[1:])), residuals, min(m, n), _SingularValues()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """The pseudo-inverse of a matrix of full rank."""
    if hermitian:
        refuse_function("np.linalg.pinv with hermitian=True", "it needs eigenvalues", "leave hermitian out")
    return per_matrix(_pinv_one, traced(a))


def _pinv_one(a: Any) -> Any:
    m, n = a.shape
    return back_substituted(_checked("pinv", a, np.eye(m))[:n]) if m >= n else _pinv_one(a.T).T


class _SingularValues(NDArrayOperatorsMixin):
    """Stands where NumPy returns singular values, which have no traced form; every use of it is refused."""

    def _refuse(self, *args: Any, **keywords: Any) -> NoReturn:
        refuse_function("the singular values of np.linalg.lstsq", "they have no traced form", "leave them out")

    __array_ufunc__ = __array_function__ = __array__ = __getitem__ = __iter__ = __len__ = __float__ = _refuse
    __getattr__ = _refuse
