"""CasADi's storage of arrays: column by column, sparse ones in compressed columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Input, Output
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.calls.kernel import Kernel
from codegen.machine.exports.c_interface import parameter_names
from codegen.machine.exports.casadi_functions import (
    CasadiFunction,
    InputPlace,
    Slot,
    Writing,
    casadi_header,
    casadi_source,
)
from codegen.machine.exports.export import Binding, Material
from codegen.records import dataclass
from symad.errors import ArgumentError

RESERVED = ("null", "jac", "hess")  # which CasADi takes for no name


@dataclass(frozen=True, eq=False)
class Stored:
    """CasADi's storage of an array: a matrix, column by column.

    >>> Stored("x", (2, 3)).places.tolist()
    [0, 2, 4, 1, 3, 5]
    """

    name: str
    extent: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.extent) > 2:
            why = f"it has shape {self.extent}; CasADi has numbers, vectors and matrices"
            raise ArgumentError(f"{self.name} for CasADi", why=why, do="reshape it inside of the function")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        height, width = (*self.extent, 1, 1)[:2]
        return height, width

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.shape[0] * self.shape[1]

    @property
    def places(self) -> NDArray[np.intp]:
        """Where each number is stored, in the order of NumPy."""
        return np.arange(self.size).reshape(self.shape[::-1]).T.ravel()

    @property
    def straight(self) -> bool:
        """Whether the two orders are one."""
        return 1 in self.shape or not self.size

    def reading(self, slot: int, offset: int = 0) -> InputPlace:
        """Return it as input of a kernel."""
        return InputPlace(slot, self.size, offset, None if self.straight else self.places)

    def writing(self, slot: int | None) -> Writing:
        """Return it as output of a kernel."""
        return Writing(slot, self.size, None if self.straight else np.argsort(self.places))

    def slot(self, prefix: str = "") -> Slot:
        """Return it as argument or result."""
        return Slot(prefix + self.name, self.shape)

    def absent(self, prefix: str) -> Slot:
        """Return it as an argument that is never read."""
        return Slot(prefix + self.name, self.shape, no_entries(*self.shape))


def stored(arrays: Sequence[Input | Output], names: Sequence[str]) -> list[Stored]:
    """Return arrays as CasADi stores them, under names that it accepts."""
    plain = [f"{name}_value" if name in RESERVED else name for name in parameter_names(names)]
    return [Stored(name, tuple(array.shape)) for name, array in zip(plain, arrays, strict=True)]


def block(name: str, kernel: Kernel, rows: Stored, columns: Stored) -> tuple[Slot, Writing]:
    """Return the packed matrix of a kernel as a result that stands first among the results."""
    pattern: SparsityPattern = kernel.sparsity
    return arranged(name, pattern.nnz, rows.places[pattern.rows], columns.places[pattern.columns],
                    (rows.size, columns.size))  # fmt: skip


def arranged(name: str, nnz: int, rows: Any, columns: Any, shape: tuple[int, int]) -> tuple[Slot, Writing]:
    """Return entries at these places, each once, in compressed columns: the result, and the order to write it in."""
    order = np.lexsort((rows, columns))
    pattern = SparsityPattern(rows[order], columns[order], shape, "csc")
    straight = bool(np.array_equal(order, np.arange(nnz)))
    return Slot(name, shape, pattern), Writing(0, nnz, None if straight else order)


def binding(name: str, functions: Sequence[CasadiFunction], members: Mapping[str, Material]) -> Binding:
    """Return functions as a library for CasADi."""
    source = casadi_source(f"{name}.h", functions, members)
    return Binding(name, "casadi", members, source, casadi_header(name, functions))


def no_entries(rows: int, columns: int) -> SparsityPattern:
    empty = np.empty(0, dtype=np.intp)
    return SparsityPattern(empty, empty, (rows, columns), "csc")
