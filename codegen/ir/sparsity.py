"""Sparsity patterns: the places that may be non-zero, their storage order, pictures, files and groups."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen.errors import ArgumentError
from codegen.later import Deferred
from codegen.records import dataclass
from codegen.sealed import write_atomically

if TYPE_CHECKING:
    import shutil
else:  # for pictures
    shutil = Deferred("shutil")

Format = Literal["coo", "csr", "csc", "regions"]
Indices = NDArray[np.intp]

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])  # of braille characters, behind U+2800
_HEADER = "%%MatrixMarket matrix coordinate pattern general"
_SMALL = np.iinfo(np.int32).max


@dataclass(frozen=True, eq=False)
class SparsityPattern:
    """The places of a matrix that may hold a non-zero, in the order of their storage; everything else is zero.

    Entry k stands at `(rows[k], columns[k])`. In the formats "coo" and "csr" the entries are ordered by row, then
    column, in "csc" by column, then row, in "regions" as loops write them fastest (ArgumentError otherwise). The arrays
    are read-only, since all matrices of a pattern share them. Two patterns are equal when the shape, the format and all
    places are.

    >>> pattern = SparsityPattern(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2), "csr")
    >>> pattern
    <SparsityPattern 2x2, 3 non-zeros, density 0.75, csr>
    >>> pattern.indptr
    array([0, 1, 3], dtype=int32)
    >>> rows, columns = pattern
    >>> print(pattern)
    ⠓
    """

    rows: Indices
    columns: Indices
    shape: tuple[int, int]
    format: Format = "coo"

    def __post_init__(self) -> None:
        for name in ("rows", "columns"):
            object.__setattr__(self, name, _read_only(_whole(getattr(self, name), name).astype(np.intp)))
        _check_places(self)

    @property
    def nnz(self) -> int:
        """Number of places."""
        return len(self.rows)

    @property
    def density(self) -> float:
        """Part of the matrix that may hold a non-zero."""
        size = self.shape[0] * self.shape[1]
        return self.nnz / size if size else 0.0

    @cached_property
    def indices(self) -> NDArray[Any]:
        """The row of each entry in format "csc", else its column; int32 where it fits."""
        self._require_order("indices")
        return _read_only((self.rows if self.format == "csc" else self.columns).astype(self._index_type))

    @cached_property
    def indptr(self) -> NDArray[Any]:
        """Where each column ("csc") or row begins among the entries, and behind the last one their number."""
        self._require_order("indptr")
        by_column = self.format == "csc"
        counts = np.bincount(self.columns if by_column else self.rows, minlength=self.shape[by_column])
        return _read_only(np.concatenate([[0], np.cumsum(counts)]).astype(self._index_type))

    def _require_order(self, name: str) -> None:
        if self.format == "regions":
            raise ArgumentError(
                f'{name} of a pattern in format "regions"', why="its entries are in no order of rows or columns",
                do='use rows and columns, or format "csr" or "csc"',
            )  # fmt: skip

    @property
    def _index_type(self) -> type[np.signedinteger[Any]]:
        return np.int32 if max(*self.shape, self.nnz) <= _SMALL else np.int64

    def toarray(self) -> NDArray[np.bool_]:
        """Return the matrix of truth values."""
        dense = np.zeros(self.shape, dtype=bool)
        dense[self.rows, self.columns] = True
        return dense

    def scipy(self, data: ArrayLike) -> Any:
        """Return packed values as `scipy.sparse.coo_array` (of "regions" too), `csr_array` or `csc_array`, not copied.

        The index arrays are the matrix's own, so that it can be pruned. ArgumentError for other values than `nnz`
        numbers, and without SciPy (`pip install symad[special]`).

        >>> SparsityPattern([0, 1], [1, 1], (2, 2), "csc").scipy([2.0, 3.0]).toarray()
        array([[0., 2.],
               [0., 3.]])
        """
        values = np.asarray(data)
        if values.shape != (self.nnz,) or values.dtype.kind not in "biufc":
            raise ArgumentError(
                f"values of shape {values.shape} and dtype {values.dtype}",
                why=f"the pattern has {self.nnz} places, and SciPy holds numbers",
            )
        matrix = copy.copy(self._template)
        matrix.data = values
        if matrix.format == "coo":
            matrix.coords = tuple([places.copy() for places in matrix.coords])
        else:
            matrix.indices, matrix.indptr = matrix.indices.copy(), matrix.indptr.copy()
        return matrix

    def data_of(self, matrix: Any, where: str = "matrix") -> Any:
        """Return the packed values of a `scipy.sparse` matrix of this pattern; ArgumentError for any other matrix."""
        name = getattr(matrix, "format", None)
        if name not in ("coo", "csr", "csc"):
            raise ArgumentError(
                f"{type(matrix).__name__}", where=where, why=f"values go into an array, or a matrix in {self.format}"
            )
        stored = "coo" if self.format == "regions" else self.format
        if name != stored or matrix.shape != self.shape:
            raise ArgumentError(
                f"a {'x'.join(map(str, matrix.shape))} matrix in {name}",
                where=where,
                why=f"the values are those of a {'x'.join(map(str, self.shape))} matrix in {stored}",
            )
        own = _index_arrays(self._template)
        if not all(a is b or np.array_equal(a, b) for a, b in zip(_index_arrays(matrix), own, strict=True)):
            raise ArgumentError(
                f"a matrix of another pattern, with {matrix.nnz} entries",
                where=where,
                why=f"the values are those of {self.nnz} entries at fixed places",
                do="give a matrix that .scipy() made",
            )
        return matrix.data

    @cached_property
    def _template(self) -> Any:
        """The SciPy array that all others are shallow copies of."""
        try:
            import scipy.sparse as sparse  # noqa: PLC0415 (optional extra)
        except ImportError as error:
            raise ArgumentError("a scipy.sparse array without SciPy", do="pip install 'symad[special]'") from error
        values = np.zeros(self.nnz)
        if self.format in ("coo", "regions"):
            rows, columns = (_read_only(places.astype(self._index_type)) for places in self)
            template = sparse.coo_array((values, (rows, columns)), shape=self.shape)
        else:
            template = getattr(sparse, f"{self.format}_array")((values, self.indices, self.indptr), shape=self.shape)
        template.has_canonical_format = self.format != "regions"  # ordered, no place twice: SciPy need not look
        return template

    def groups(self, columns: ArrayLike | None = None) -> list[Indices]:
        """Return columns (all, or those given) in groups of which no two share a row, filled greedily in their order.

        One forward pass gives all columns of a group: Curtis, Powell and Reid (1974).

        >>> band = SparsityPattern(np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 1, 2]), (3, 3))
        >>> [group.tolist() for group in band.groups()]
        [[0, 2], [1]]
        """
        rows_of: list[list[int]] = [[] for _ in range(self.shape[1])]
        for row, column in zip(self.rows.tolist(), self.columns.tolist(), strict=True):
            rows_of[column].append(row)
        taken: list[set[int]] = [set() for _ in range(self.shape[0])]  # by row: the groups with entries in it
        groups: list[list[int]] = []
        for column in range(self.shape[1]) if columns is None else np.asarray(columns).tolist():
            met = set().union(*[taken[row] for row in rows_of[column]])
            number = next(k for k in range(len(met) + 1) if k not in met)
            if number == len(groups):
                groups.append([])
            groups[number].append(column)
            for row in rows_of[column]:
                taken[row].add(number)
        return [np.array(group, dtype=np.intp) for group in groups]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the places as a Matrix Market file; a file that is there is replaced as a whole, or not at all."""
        lines = [_HEADER, f"{self.shape[0]} {self.shape[1]} {self.nnz}"]
        lines += [f"{row + 1} {column + 1}" for row, column in zip(self.rows, self.columns, strict=True)]
        write_atomically(Path(path), ("\n".join(lines) + "\n").encode("ascii"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SparsityPattern:
        """Read the places that `save` wrote, as a pattern in format "coo"; ArgumentError for any other file."""
        try:
            header, *lines = Path(path).read_text(encoding="ascii").splitlines()
            numbers = [[int(word) for word in line.split()] for line in lines if not line.startswith("%")]
            (height, width, count), places = numbers[0], np.array(numbers[1:], dtype=np.intp).reshape(-1, 2) - 1
        except (ValueError, IndexError) as error:
            raise _no_pattern(path, f"it reads otherwise ({error})") from error
        if header != _HEADER or len(places) != count:
            raise _no_pattern(path, "its first line is another, or its entries are not as many as its second line says")
        rows, columns = places[np.lexsort((places[:, 1], places[:, 0]))].T
        try:
            return cls(rows, columns, (height, width))
        except ArgumentError as error:
            raise _no_pattern(path, str(error)) from error

    def __iter__(self) -> Iterator[Indices]:
        return iter((self.rows, self.columns))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, SparsityPattern):
            return NotImplemented
        return (self.shape, self.format) == (other.shape, other.format) and all(map(np.array_equal, self, other))

    def __hash__(self) -> int:
        return hash((self.shape, self.format, self.nnz))

    def __reduce__(self) -> tuple[Any, ...]:
        return SparsityPattern, (self.rows, self.columns, self.shape, self.format)

    def __repr__(self) -> str:
        height, width = self.shape
        return f"<SparsityPattern {height}x{width}, {self.nnz} non-zeros, density {self.density:.3g}, {self.format}>"

    def __str__(self) -> str:
        return spy(self.rows, self.columns, self.shape, width=shutil.get_terminal_size().columns)


def spy(rows: ArrayLike, columns: ArrayLike, shape: tuple[int, int], *, width: int = 72) -> str:
    """Return a picture of a sparsity pattern in braille, at most `width` characters wide.

    One dot is one entry while the pattern fits; beyond that one dot stands for a square block with any entry in it.

    >>> print(spy([0, 1, 2, 3], [0, 1, 2, 3], (4, 4)))
    ⠑⢄
    """
    scale = max(1, -(-shape[1] // (2 * width)))
    dots = np.zeros((-(-shape[0] // scale), -(-shape[1] // scale)), dtype=bool)
    dots[np.asarray(rows, dtype=int) // scale, np.asarray(columns, dtype=int) // scale] = True
    height, breadth = -(-dots.shape[0] // 4), -(-dots.shape[1] // 2)
    padded = np.zeros((4 * height, 2 * breadth), dtype=bool)
    padded[: dots.shape[0], : dots.shape[1]] = dots
    cells = (padded.reshape(height, 4, breadth, 2) * _DOTS[None, :, None, :]).sum(axis=(1, 3))
    return "\n".join("".join(chr(0x2800 + int(cell)) for cell in line) for line in cells)


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array


def _whole(values: ArrayLike, name: str) -> NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(f"{name} of shape {array.shape} and dtype {array.dtype}", why="they are a list of integers")
    return array


def _check_places(pattern: SparsityPattern) -> None:
    """Raise ArgumentError unless the places are inside of the shape, each once, and in the order of the format."""
    rows, columns, (height, width) = pattern.rows, pattern.columns, pattern.shape
    if pattern.format not in get_args(Format):
        raise ArgumentError(f"format={pattern.format!r}", do=f"use one of {', '.join(get_args(Format))}")
    if len(rows) != len(columns):
        raise ArgumentError(f"{len(rows)} rows and {len(columns)} columns of entries")
    if np.any((rows < 0) | (rows >= height) | (columns < 0) | (columns >= width)):
        raise ArgumentError(f"entries outside of a matrix of shape {pattern.shape}", why="indices count from 0")
    if pattern.format == "regions":
        if not np.all(np.diff(np.sort(rows * width + columns, kind="stable"))):
            raise ArgumentError("entries at the same place", why="each place is stored once")
        return
    major, minor = (columns, rows) if pattern.format == "csc" else (rows, columns)
    step = np.diff(major)
    if not np.all((step > 0) | ((step == 0) & (np.diff(minor) > 0))):
        order = "column, then row" if pattern.format == "csc" else "row, then column"
        raise ArgumentError(
            f"entries out of order for format {pattern.format!r}",
            why=f"they are stored by {order}, each place once",
            do="sort them with np.lexsort",
        )


def _index_arrays(matrix: Any) -> tuple[Any, Any]:
    return (matrix.row, matrix.col) if matrix.format == "coo" else (matrix.indptr, matrix.indices)


def _no_pattern(path: str | os.PathLike[str], why: str) -> ArgumentError:
    return ArgumentError(f"{os.fspath(path)} is no file of a sparsity pattern", why=why, do="write it with .save(path)")
