"""Sparse results: packed values with a fixed, exact pattern, in coordinate or compressed form."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import optree
from numpy.typing import NDArray

from codegen.ir.sparsity import Format, SparsityPattern
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.tracing.control.merging import UNIONS
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.traced import Traced

Triangle = Literal["lower", "upper", "full"]
Place = tuple[int, int]
Entries = dict[Place, int]


@dataclass(frozen=True, eq=False)
class SparseMatrix:
    """A sparse matrix: `data[k]` is the entry at `(rows[k], columns[k])` of the pattern; all others are zero.

    `data` is float64, or traced, or an object array of SymPy expressions, in the order of the pattern's format.

    >>> SparseMatrix(np.array([1.0, 2.0]), SparsityPattern([0, 1], [0, 0], (2, 2))).toarray()
    array([[1., 0.],
           [2., 0.]])
    """

    data: Any
    pattern: SparsityPattern

    @property
    def rows(self) -> NDArray[np.intp]:
        """Row of each entry."""
        return self.pattern.rows

    @property
    def columns(self) -> NDArray[np.intp]:
        """Column of each entry."""
        return self.pattern.columns

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width."""
        return self.pattern.shape

    @property
    def nnz(self) -> int:
        """Number of stored entries."""
        return self.pattern.nnz

    def toarray(self) -> Any:
        """Return the dense matrix."""
        data = self.data if isinstance(self.data, Traced) else np.asarray(self.data)
        dense = np.zeros_like(data, shape=self.shape)
        dense[self.rows, self.columns] = data
        return dense

    def to_scipy(self) -> Any:
        """Return a `scipy.sparse` array in the pattern's format (needs SciPy: `pip install symad[special]`).

        It shares the data with this matrix.
        """
        if np.asarray(self.data).dtype == object:
            what = "to_scipy() of traced or symbolic values"
            raise ArgumentError(what, why="SciPy holds numbers", do="use toarray()")
        return self.pattern.scipy(self.data)

    def __repr__(self) -> str:
        return f"<SparseMatrix {self.shape[0]}x{self.shape[1]}, {self.nnz} non-zeros, {self.pattern.format}>"


optree.register_pytree_node(
    SparseMatrix,  # type: ignore[arg-type]  # its stubs know only Collections
    lambda matrix: ((matrix.data,), matrix.pattern),  # type: ignore[attr-defined]
    lambda pattern, children: SparseMatrix(next(iter(children)), pattern),  # type: ignore[arg-type,return-value]
    namespace=NAMESPACE,
)


def pattern_of(places: Sequence[Place], shape: tuple[int, int], format: Format) -> SparsityPattern:
    """Return the pattern of places that are in the order of the format."""
    rows, columns = np.array(places, dtype=np.intp).reshape(len(places), 2).T
    return SparsityPattern(rows, columns, shape, format)


def in_order(places: Iterable[Place], format: Format) -> list[Place]:
    """Return places in the storage order of a format.

    >>> in_order([(1, 0), (0, 1)], "csr"), in_order([(1, 0), (0, 1)], "csc")
    ([(0, 1), (1, 0)], [(1, 0), (0, 1)])
    """
    return sorted(places, key=(lambda place: place[::-1]) if format == "csc" else None)


def _unions(matrices: Sequence[SparseMatrix]) -> list[SparseMatrix]:
    """Return matrices with the union of their patterns, in the format of the first one."""
    format = matrices[0].pattern.format
    places = in_order({place for matrix in matrices for place in _places(matrix)}, format)
    position = {place: k for k, place in enumerate(places)}
    pattern = pattern_of(places, matrices[0].shape, format)
    unions = []
    for matrix in matrices:
        data = np.zeros_like(matrix.data, shape=len(places))
        data[[position[place] for place in _places(matrix)]] = matrix.data
        unions.append(SparseMatrix(data, pattern))
    return unions


def _places(matrix: SparseMatrix) -> list[Place]:
    return list(zip(matrix.rows.tolist(), matrix.columns.tolist(), strict=True))


UNIONS[SparseMatrix] = _unions


def triangle_of(lower: Entries, triangle: bool | Triangle) -> Entries:
    """Return a part of a symmetric matrix from the entries of its lower triangle."""
    if triangle == "lower":
        return lower
    upper = {(column, row): node for (row, column), node in lower.items()}
    return upper if triangle == "upper" else lower | upper
