"""Sparsity patterns: where a Jacobian or Hessian may be non-zero. Printed, saved, coloured."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from symad.errors import ArgumentError

Indices = NDArray[np.intp]

_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
_BLANK = 0x2800
_HEADER = "%%MatrixMarket matrix coordinate pattern general"


@dataclass(frozen=True, eq=False)
class SparsityPattern:
    """The places of a matrix that may hold a non-zero, by row, then column; everything else is zero at every point.

    >>> pattern = SparsityPattern(np.array([0, 1, 1]), np.array([0, 0, 1]), (2, 2))
    >>> pattern
    <SparsityPattern 2x2, 3 non-zeros, density 0.75>
    >>> print(pattern)
    ⠓
    """

    rows: Indices
    columns: Indices
    shape: tuple[int, int]

    @property
    def nnz(self) -> int:
        """Number of places."""
        return len(self.rows)

    @property
    def density(self) -> float:
        """Part of the matrix that may hold a non-zero."""
        size = self.shape[0] * self.shape[1]
        return self.nnz / size if size else 0.0

    def toarray(self) -> NDArray[np.bool_]:
        """Return the matrix of truth values."""
        dense = np.zeros(self.shape, dtype=bool)
        dense[self.rows, self.columns] = True
        return dense

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
        taken: list[set[int]] = [set() for _ in range(self.shape[0])]  # the groups that meet a row
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
        """Write the pattern as a Matrix Market file; a file that is there is replaced as a whole, or not at all."""
        target = Path(path)
        lines = [_HEADER, f"{self.shape[0]} {self.shape[1]} {self.nnz}"]
        lines += [f"{row + 1} {column + 1}" for row, column in zip(self.rows, self.columns, strict=True)]
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=target.name)
        try:
            with os.fdopen(handle, "w", encoding="ascii") as file:
                file.write("\n".join(lines) + "\n")
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink()
            raise

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SparsityPattern:
        """Read a pattern that `save` wrote; ArgumentError for any other file."""
        try:
            header, *lines = Path(path).read_text(encoding="ascii").splitlines()
            numbers = [[int(word) for word in line.split()] for line in lines if not line.startswith("%")]
            (height, width, count), places = numbers[0], np.array(numbers[1:], dtype=np.intp).reshape(-1, 2) - 1
        except (ValueError, IndexError) as error:
            raise _no_pattern(path, f"it reads otherwise ({error})") from error
        inside = np.all((places >= 0) & (places < (height, width)))
        if header != _HEADER or len(places) != count or not inside:
            raise _no_pattern(path, "its first line is another, or its entries are not what its second line says")
        return cls(places[:, 0].copy(), places[:, 1].copy(), (height, width))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SparsityPattern):
            return NotImplemented
        mine, others = (set(zip(p.rows.tolist(), p.columns.tolist(), strict=True)) for p in (self, other))
        return self.shape == other.shape and mine == others

    def __hash__(self) -> int:
        return hash((self.shape, self.nnz))

    def __repr__(self) -> str:
        return f"<SparsityPattern {self.shape[0]}x{self.shape[1]}, {self.nnz} non-zeros, density {self.density:.3g}>"

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
    return "\n".join("".join(chr(_BLANK + int(cell)) for cell in line) for line in cells)


def _no_pattern(path: str | os.PathLike[str], why: str) -> ArgumentError:
    return ArgumentError(f"{os.fspath(path)} is no file of a sparsity pattern", why=why, do="write it with .save(path)")
