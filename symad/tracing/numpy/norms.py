"""Norms of traced vectors and matrices, and what can be written with them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import implements
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.traced import refuse_function

_SINGULAR = "it needs singular values, which have no traced form"
_ANALYTIC = "use np.sqrt(np.sum(x * x)), which is analytic"


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """A vector norm (2, 1, inf, -inf, 0, p), the Frobenius norm, or a matrix norm by row or column sums."""
    check_real("np.linalg.norm", _ANALYTIC)
    x = traced(x)
    if axis is None and ord is None:
        made = _vector_norm(np.ravel(x), 2, 0, False)
        return np.reshape(made, (1,) * x.ndim) if keepdims else made
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes[0], keepdims)
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """A vector norm over the given axes, or over all elements."""
    check_real("np.linalg.vector_norm", _ANALYTIC)
    x = traced(x)
    axes = normalize_axis_tuple(range(x.ndim) if axis is None else axis, x.ndim)
    kept = [k for k in range(x.ndim) if k not in axes]
    rows = np.reshape(np.transpose(x, [*kept, *axes]), [*(x.shape[k] for k in kept), -1])
    made = _vector_norm(rows, ord, -1, False)
    return np.reshape(made, [1 if k in axes else x.shape[k] for k in range(x.ndim)]) if keepdims else made


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes."""
    return norm(x, ord, (-2, -1), keepdims)


def _vector_norm(x: Any, ord: Any, axis: int, keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order {ord!r} for vectors")
    if ord == 2:
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if ord == np.inf:
        return np.max(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    return np.sum(np.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


def _matrix_norm(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if ord in ("fro", "f"):
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=keepdims))
    if ord not in (1, -1, np.inf, -np.inf):
        refuse_function(f"np.linalg.norm of a matrix with ord={ord!r}", _SINGULAR, "use the Frobenius norm")
    across, along = (0, 1) if abs(ord) == 1 else (1, 0)
    sums = np.sum(np.abs(x), axis=axes[across], keepdims=True)
    pick = np.max if ord > 0 else np.min
    made = pick(sums, axis=axes[along], keepdims=True)
    return made if keepdims else np.squeeze(made, axis=axes)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """The condition number in a norm that needs no singular values: norm(x) norm(inv(x))."""
    if p in (None, 2, -2):
        refuse_function("np.linalg.cond in the 2-norm", _SINGULAR, "use p='fro', 1 or np.inf")
    return norm(x, p, (-2, -1)) * norm(np.linalg.inv(x), p, (-2, -1))
