"""Systems, factors and patterned matrices of scipy.linalg, with SciPy's signatures.

Of a matrix whose one triangle is read, that triangle has derivatives, and the other one has none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from symad.tracing.numpy.reduce import together, traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import require_finite, scipy_form
from symad.tracing.numpy.solve import known_values, substituted
from symad.tracing.values.traced import Traced, refuse_function

_SYMMETRIC = ("sym", "symmetric", "her", "hermitian", "pos", "positive definite")
_FORMS: dict[str, Callable[[Any], Any]] = {  # what is read of a matrix
    "gen": lambda a: a,
    "general": lambda a: a,
    "upper triangular": np.triu,
    "lower triangular": np.tril,
    "diagonal": lambda a: np.where(np.eye(a.shape[-1], dtype=bool), a, 0.0),
    "tridiagonal": lambda a: np.triu(np.tril(a, 1), -1),
    "banded": lambda a: a,
}


def symmetric(a: Any, lower: bool) -> Any:
    """Return the symmetric matrix of which one triangle is given."""
    below = np.tri(a.shape[-1], dtype=bool)
    return np.where(below if lower else below.T, a, np.matrix_transpose(a))


@scipy_form("scipy.linalg.solve")
def solve(a: Any, b: Any, lower: bool = False, assume_a: str | None = None, transposed: bool = False) -> Any:
    """The solution of a x = b; of a matrix that is assumed to be symmetric or triangular, what that form reads."""
    a, b = together(a, b)
    return np.linalg.solve(_assumed(a, assume_a, lower, transposed), b)


def _assumed(a: Any, form: str | None, lower: bool, transposed: bool) -> Any:
    if form in _SYMMETRIC:
        a = symmetric(a, lower)
        if form in ("pos", "positive definite"):
            known_values(a, lambda matrix: np.linalg.cholesky(matrix)[:0])  # which raises SciPy's error
    elif form is not None and form not in _FORMS:
        raise ValueError(f"{form} is not a recognized matrix structure")
    elif form is not None:
        a = _FORMS[form](a)
    return np.matrix_transpose(a) if transposed else a


@scipy_form("scipy.linalg.inv")
def inv(a: Any, assume_a: str | None = None, lower: bool = False) -> Any:
    """The inverse of a matrix."""
    return np.linalg.inv(_assumed(traced(a), assume_a, lower, False))


scipy_form("scipy.linalg.det")(lambda a: np.linalg.det(traced(a)))


@scipy_form("scipy.linalg.cholesky")
def cholesky(a: Any, lower: bool = False) -> Any:
    """The triangular factor of a positive definite matrix, of which that triangle is read."""
    return np.linalg.cholesky(np.atleast_2d(traced(a)), upper=not lower)


# the other triangle, which SciPy leaves open, is zero
scipy_form("scipy.linalg.cho_factor")(lambda a, lower=False: (cholesky(a, lower), lower))


@scipy_form("scipy.linalg.cho_solve")
def cho_solve(c_and_lower: Any, b: Any, check_finite: bool = True) -> Any:
    """The solution of a x = b for a factor of a."""
    factor, lower = c_and_lower
    if check_finite:
        require_finite(factor)
    first = solve_triangular(factor, b, 0 if lower else 1, lower)
    return solve_triangular(factor, first, 1 if lower else 0, lower)


@scipy_form("scipy.linalg.solve_triangular")
def solve_triangular(a: Any, b: Any, trans: Any = 0, lower: bool = False, unit_diagonal: bool = False) -> Any:
    """The solution of a triangular system, of whose matrix one triangle is read."""
    a, b = together(a, b)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ValueError("expected square matrix")
    if b.ndim not in (1, 2) or len(b) != len(a):
        raise ValueError(f"shapes of a {a.shape} and b {b.shape} are incompatible")
    if unit_diagonal:
        a = np.where(np.eye(len(a), dtype=bool), 1.0, a)
    if _is_turned(trans):
        a, lower = a.T, not lower
    right = np.reshape(b, (len(b), -1))
    return np.reshape(substituted(a if lower else a.T, right, turned=not lower), b.shape)


def _is_turned(trans: Any) -> bool:
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"trans={trans!r}: 0, 1, 2, 'N', 'T' or 'C' is needed")
    return trans in (1, 2, "T", "C")


class _Factored(Traced, NDArrayOperatorsMixin):
    """Stands for what `lu_factor` gives: it remembers the matrix, and `lu_solve` takes it; nothing else does."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.scope = matrix, matrix.scope

    def _refuse(self, *args: Any, **keywords: Any) -> NoReturn:
        why, do = "its factors have no traced form", "give them to lu_solve only, or write solve(a, b)"
        refuse_function("scipy.linalg.lu_factor", why, do)

    __array_ufunc__ = __array_function__ = __array__ = __getitem__ = __iter__ = __len__ = __float__ = _refuse
    nodes = property(_refuse)
    __getattr__ = _refuse


@scipy_form("scipy.linalg.lu_factor")
def lu_factor(a: Any) -> tuple[Any, Any]:
    """Factors of a matrix for `lu_solve`."""
    factored = _Factored(traced(a))
    return factored, factored


@scipy_form("scipy.linalg.lu_solve")
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0) -> Any:
    """The solution of a x = b for what `lu_factor` gave of a."""
    factors, order = lu_and_piv
    turned = _is_turned(trans)
    if isinstance(factors, _Factored):
        matrix = factors.matrix
        return np.linalg.solve(np.matrix_transpose(matrix) if turned else matrix, b)
    rows = np.arange(len(factors))
    for k, other in enumerate(np.asarray(order).tolist()):
        rows[[k, other]] = rows[[other, k]]
    if not turned:
        first = solve_triangular(factors, traced(b)[rows], lower=True, unit_diagonal=True)
        return solve_triangular(factors, first)
    first = solve_triangular(factors, b, 1)
    first = solve_triangular(factors, first, 1, lower=True, unit_diagonal=True)
    return first[np.argsort(rows)]


# ---- matrices of a pattern


@stands_in_for("scipy.linalg.block_diag")
def block_diag(*arrs: Any) -> Any:
    """The matrix with blocks along its diagonal."""
    blocks = [np.atleast_2d(traced(block)) for block in arrs]
    if any(block.ndim > 2 for block in blocks):
        why, do = "stacks of blocks have no traced form", "make one matrix after the other"
        refuse_function("scipy.linalg.block_diag", why, do)
    widths = [block.shape[1] for block in blocks]
    before = np.cumsum([0, *widths])
    rows = [
        np.concatenate([np.zeros((len(block), start)), block, np.zeros((len(block), before[-1] - start - width))], 1)
        for block, start, width in zip(blocks, before.tolist(), widths, strict=False)
    ]
    return np.concatenate(rows)


@stands_in_for("scipy.linalg.toeplitz")
def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals, of its first column and first row."""
    column, row = _vectors("toeplitz", c, c if r is None else r)
    values = np.concatenate([column[::-1], row[1:]])
    i, j = np.indices((len(column), len(row)))
    return values[len(column) - 1 - i + j]


@stands_in_for("scipy.linalg.hankel")
def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with constant anti-diagonals, of its first column and last row."""
    (column,) = _vectors("hankel", c)
    row = np.zeros(len(column)) if r is None else _vectors("hankel", r)[0]
    i, j = np.indices((len(column), len(row)))
    return np.concatenate([column, row[1:]])[i + j]


@stands_in_for("scipy.linalg.circulant")
def circulant(c: Any) -> Any:
    """The matrix whose columns are a vector, turned round by one place after the other."""
    (column,) = _vectors("circulant", c)
    i, j = np.indices((len(column),) * 2)
    return column[(i - j) % len(column)]


def _vectors(name: str, *values: Any) -> list[Any]:
    vectors = together(*values)
    if any(value.ndim != 1 for value in vectors):
        refuse_function(f"scipy.linalg.{name}", "stacks of vectors have no traced form", "give it one vector")
    return vectors
