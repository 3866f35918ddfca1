"""Sparse results: values in coordinate form with a fixed, exact pattern."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import optree
from numpy.typing import NDArray

from symad.errors import ArgumentError
from symad.tracing.container_types import NAMESPACE
from symad.tracing.paths import UNIONS
from symad.tracing.traced import Traced

Triangle = Literal["lower", "upper", "full"]
Entries = dict[tuple[int, int], int]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix in coordinate form, ordered by row, then column.

    `data[k]` stands at `(rows[k], columns[k])`; everything else is a structural zero. `data` is float64, or traced,
    or an object array of SymPy expressions.

    >>> SparseMatrix(np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 0]), (2, 2)).toarray()
    array([[1., 0.],
           [2., 0.]])
    """

    data: Any
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return len(self.rows)

    def toarray(self) -> Any:
        """Return the dense matrix."""
        data = self.data if isinstance(self.data, Traced) else np.asarray(self.data)
        dense = np.zeros_like(data, shape=self.shape)
        dense[self.rows, self.columns] = data
        return dense

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse.coo_array` (needs SciPy: `pip install symad[special]`)."""
        try:
            from scipy.sparse import coo_array  # noqa: PLC0415 (optional extra)
        except ImportError as error:
            raise ArgumentError("to_scipy() without SciPy", do="pip install 'symad[special]'") from error
        if np.asarray(self.data).dtype == object:
            raise ArgumentError(
                "to_scipy() of traced or symbolic values", why="SciPy holds numbers", do="use toarray()"
            )
        return coo_array((self.data, (self.rows, self.columns)), shape=self.shape)

    def __repr__(self) -> str:
        return f"<SparseMatrix {self.shape[0]}x{self.shape[1]}, {self.nnz} non-zeros>"


def _children(matrix: SparseMatrix) -> tuple[tuple[Any], Any]:
    pattern = (tuple(matrix.rows.tolist()), tuple(matrix.columns.tolist()), matrix.shape)
    return (matrix.data,), pattern


def _rebuilt(pattern: Any, children: Any) -> SparseMatrix:
    rows, columns, shape = pattern
    return SparseMatrix(children[0], np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp), shape)


optree.register_pytree_node(
    SparseMatrix,  # type: ignore[arg-type]  # its stubs know only Collections
    _children,  # type: ignore[arg-type]
    _rebuilt,  # type: ignore[arg-type]
    namespace=NAMESPACE,
)


def _unions(matrices: Sequence[SparseMatrix]) -> list[SparseMatrix]:
    """Return matrices with the union of their patterns."""
    places = sorted({place for matrix in matrices for place in zip(matrix.rows, matrix.columns, strict=True)})
    position = {place: k for k, place in enumerate(places)}
    rows, columns = np.array(places, dtype=np.intp).reshape(len(places), 2).T
    made = []
    for matrix in matrices:
        data = np.zeros_like(matrix.data, shape=len(places))
        data[[position[place] for place in zip(matrix.rows, matrix.columns, strict=True)]] = matrix.data
        made.append(SparseMatrix(data, rows, columns, matrix.shape))
    return made


UNIONS[SparseMatrix] = _unions


def triangle_of(lower: Entries, triangle: bool | Triangle) -> Entries:
    """Return the wanted part of a symmetric matrix from the entries of its lower triangle."""
    if triangle == "lower":
        return lower
    upper = {(column, row): node for (row, column), node in lower.items()}
    return upper if triangle == "upper" else lower | upper
