"""SciPy's sparse matrices with traced values: products, systems, traced entries at constant places.

A product gathers the factors of all entries, multiplies them at once, and adds them up by rows: rows of about as many
entries together, so that no more than as many zeros are added as there are entries.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from symad.tracing.numpy.reduce import traced
from symad.tracing.numpy.registry import stands_in_for
from symad.tracing.numpy.scipy_forms import scipy_form
from symad.tracing.numpy.scipy_matrices import solve_triangular
from symad.tracing.scipy.objects import array, is_plain, package
from symad.tracing.values.traced import SPARSE, refuse_function

Places = NDArray[np.intp]

_BASE = "scipy.sparse._base._spbase"
_HELD = ("data",)


def summed(rows: Places, columns: Places, entries: Any, height: int, other: Any) -> Any:
    """Return the product of a matrix, given by its entries and their places, and a vector or matrix."""
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=height)
    starts = np.cumsum(counts) - counts
    rest = np.shape(other)[1:]
    zero = np.zeros((1, *rest))
    factors, weights = np.concatenate([other, zero]), np.concatenate([entries, np.zeros(1)])
    groups = np.ceil(np.log2(np.maximum(counts, 1))).astype(int)
    parts, members = [], []
    for group in np.unique(groups).tolist():
        chosen = np.flatnonzero(groups == group)
        steps = np.arange(2**group)
        there = steps[None, :] < counts[chosen, None]
        entry = order[np.where(there, starts[chosen, None] + steps[None, :], 0)] if len(order) else 0 * there
        place = np.where(there, columns[entry] if len(order) else 0, len(other))
        weight = weights[np.where(there, entry, len(order))]
        terms = np.reshape(weight, (*weight.shape, *[1] * len(rest))) * factors[place]
        parts.append(np.sum(terms, axis=1))
        members.append(chosen)
    sums = np.concatenate(parts) if parts else np.zeros((0, *rest))
    return sums[np.argsort(np.concatenate(members))] if len(members) > 1 else sums


def entries_of(matrix: Any) -> tuple[Places, Places, Any]:
    """Return the rows and columns of a sparse matrix's entries, and these."""
    if is_plain(matrix.data):
        plain = matrix.tocoo()
        return np.asarray(plain.row), np.asarray(plain.col), plain.data
    if not hasattr(matrix, "indptr"):
        return np.asarray(matrix.row), np.asarray(matrix.col), matrix.data
    outer = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
    inner = np.asarray(matrix.indices)
    return (inner, outer, matrix.data) if matrix.format == "csc" else (outer, inner, matrix.data)


@stands_in_for(f"{_BASE}._matmul_dispatch", f"{_BASE}.dot", f"{_BASE}.__matmul__", held=_HELD)
def product(matrix: Any, other: Any) -> Any:
    """The product of a sparse matrix and a vector or a matrix."""
    if package("sparse").issparse(other):
        _refuse("the product of two of these", "multiply vectors by one after the other")
    if np.ndim(other) == 0:
        return scaled(matrix, other)
    values = array(other)
    if matrix.ndim != 2 or values.ndim > 2 or len(values) != matrix.shape[1]:
        raise ValueError(f"matmul: dimension mismatch: {matrix.shape} and {values.shape}")
    rows, columns, entries = entries_of(matrix)
    return summed(rows, columns, entries, matrix.shape[0], values)


@stands_in_for(f"{_BASE}._rmatmul_dispatch", f"{_BASE}.__rmatmul__", held=_HELD)
def product_from_right(matrix: Any, other: Any) -> Any:
    """The product of a vector or a matrix and a sparse matrix."""
    if np.ndim(other) == 0:
        return scaled(matrix, other)
    values = np.transpose(array(other))
    rows, columns, entries = entries_of(matrix)
    return np.transpose(summed(columns, rows, entries, matrix.shape[1], values))


def by_ufunc(ufunc: np.ufunc, inputs: Any) -> Any:
    """Return what a ufunc makes of traced values and a sparse matrix."""
    left, right = inputs[0], inputs[-1]
    if ufunc is np.matmul and is_plain_matrix(right):
        return product_from_right(right, left)
    if ufunc is np.matmul and is_plain_matrix(left):
        return product(left, right)
    if ufunc is np.multiply:
        return scaled(left, right) if is_plain_matrix(left) else scaled(right, left)
    _refuse(f"the ufunc {ufunc.__name__}", "give it A.toarray()")


def is_plain_matrix(value: Any) -> bool:
    """Whether a value is one of SciPy's sparse matrices."""
    return hasattr(type(value), "_rmatmul_dispatch")


SPARSE.append(by_ufunc)


def _refuse(what: str, do: str) -> NoReturn:
    refuse_function(f"scipy.sparse: {what}", "it would be a sparse matrix of entries that are not told apart", do)


@stands_in_for(f"{_BASE}.multiply", f"{_BASE}.__mul__", f"{_BASE}.__rmul__", f"{_BASE}._mul_scalar", held=_HELD)
def scaled(matrix: Any, other: Any) -> Any:
    """A sparse matrix whose entries are multiplied by a factor, or by those of an array."""
    if package("sparse").issparse(other):
        _refuse("a product of elements of two of these", "multiply one of them by an array")
    structure = matrix if matrix.format in ("csr", "csc", "coo") else matrix.tocsr()
    rows, columns, entries = entries_of(structure)
    factor = array(other)
    if factor.ndim:
        factor = np.broadcast_to(factor, matrix.shape)[rows, columns]
    product = object.__new__(type(structure))
    vars(product).update(vars(structure))
    product.data = array(entries) * factor
    return product


stands_in_for(f"{_BASE}.__truediv__", held=_HELD)(lambda matrix, other: scaled(matrix, 1.0 / array(other)))
# what * of matrices means: the products of numbers are those of entries
stands_in_for("scipy.sparse._matrix.spmatrix.__mul__", held=_HELD)(lambda matrix, other: product(matrix, other))
stands_in_for("scipy.sparse._matrix.spmatrix.__rmul__", held=_HELD)(lambda m, other: product_from_right(m, other))


# ---- traced entries at constant places


@stands_in_for("scipy.sparse._compressed._cs_matrix.__init__", "scipy.sparse._coo._coo_base.__init__", held=())
def made(self: Any, arg1: Any, shape: Any = None, dtype: Any = None, copy: bool = False, **keywords: Any) -> None:
    """A sparse matrix of traced entries, given with their places."""
    kind = type(self)
    if not (isinstance(arg1, tuple) and len(arg1) in (2, 3) and is_plain(arg1[1:])):
        _refuse(
            f"{kind.__name__} of a traced array",
            "use the array itself, or give entries with their places: (data, (i, j))",
        )
    entries = array(arg1[0])
    numbered = np.arange(1.0, len(entries) + 1)
    if len(arg1) == 3 or not issubclass(kind, package("sparse")._compressed._cs_matrix):
        plain = kind((numbered, *arg1[1:]), shape=shape)
        vars(self).update(vars(plain))
        self.data = entries
        return
    rows, columns = (np.asarray(part) for part in arg1[1])
    plain = kind((np.ones(len(entries)), (rows, columns)), shape=shape)
    plain.sort_indices()
    vars(self).update(vars(plain))
    outer = np.repeat(np.arange(len(plain.indptr) - 1), np.diff(plain.indptr))
    major, minor, width = (columns, rows, plain.shape[0]) if plain.format == "csc" else (rows, columns, plain.shape[1])
    place = np.searchsorted(outer * width + plain.indices, major * width + minor)
    self.data = summed(place, np.arange(len(entries)), np.ones(len(entries)), len(plain.indices), entries)


@stands_in_for(
    f"{_BASE}.toarray", "scipy.sparse._compressed._cs_matrix.toarray", "scipy.sparse._coo._coo_base.toarray", held=_HELD
)
def dense(matrix: Any, order: Any = None, out: Any = None) -> Any:
    """The matrix as an array."""
    rows, columns, entries = entries_of(matrix)
    places = rows * matrix.shape[1] + columns
    size = matrix.shape[0] * matrix.shape[1]
    return np.reshape(summed(places, np.arange(len(rows)), np.ones(len(rows)), size, array(entries)), matrix.shape)


# ---- systems

_LINALG = "scipy.sparse.linalg"


def _square(name: str, matrix: Any) -> Any:
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name}: matrix must be square, and its shape is {matrix.shape}")
    return matrix.toarray() if is_plain(matrix.data) else dense(matrix)


@stands_in_for(f"{_LINALG}.spsolve", held=_HELD)
def spsolve(A: Any, b: Any, permc_spec: Any = None, use_umfpack: bool = True) -> Any:  # noqa: N803 (SciPy's name)
    """The solution of a system of a sparse matrix, which is factorized as a dense one."""
    right = array(b)
    solution = np.linalg.solve(_square("spsolve", A), traced(right))
    return np.ravel(solution) if right.ndim == 2 and right.shape[1] == 1 else solution


@scipy_form(f"{_LINALG}.spsolve_triangular", held=_HELD)
def spsolve_triangular(A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False) -> Any:  # noqa: N803
    """The solution of a triangular system."""
    return solve_triangular(_square("spsolve_triangular", A), b, 0, lower, unit_diagonal)


class _Factored:
    """Stands for what `splu` gives: its solutions, of ordinary values by SciPy's own factors."""

    def __init__(self, matrix: Any) -> None:
        self.matrix, self.shape = matrix, matrix.shape

    def solve(self, rhs: Any, trans: str = "N") -> Any:
        """Return the solution of a system of the matrix, or of its transpose."""
        if is_plain(rhs) and is_plain(self.matrix.data):
            return package("sparse.linalg").splu(package("sparse").csc_array(self.matrix)).solve(rhs, trans)
        matrix = traced(_square("splu", self.matrix))
        return np.linalg.solve(matrix if trans == "N" else matrix.T, traced(rhs))

    def __getattr__(self, name: str) -> NoReturn:
        refuse_function("scipy.sparse.linalg.splu", "its factors have no traced form", "use solve of what it returns")


stands_in_for(f"{_LINALG}.splu", always=True)(lambda A, *others, **keywords: _Factored(A))  # noqa: N803 (SciPy's name)
stands_in_for(f"{_LINALG}.factorized", always=True)(lambda A: _Factored(A).solve)  # noqa: N803
