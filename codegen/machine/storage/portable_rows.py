"""Row tables as plain data: heads, and whole numbers in arrays, with the checks of both."""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.program import Head, Rows

LARGEST = 2**34  # scalars of one array, 128 GiB
DIMENSIONS = 64  # of a NumPy array

Arrays = list[NDArray[Any]]


def columns_of(rows: Rows, first: int) -> tuple[list[Head], list[int], list[int], list[int]]:
    """Return the distinct heads, and of the rows from `first` on: operand counts, head numbers, operands."""
    operands = rows.operands[first:]
    heads = [head for head, parts in zip(rows.heads[first:], operands, strict=True) if parts]
    number = {head: k for k, head in enumerate(dict.fromkeys(heads))}
    return list(number), [*map(len, operands)], [*map(number.__getitem__, heads)], [*chain.from_iterable(operands)]


def rows_of(first: int, counts: NDArray[Any], operands: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the operands of all rows, each an earlier one; the first ones have none."""
    require(all_below(counts, len(operands) + 1), "operands without rows")
    ends = np.cumsum(counts, dtype=np.int64)
    require(int(ends[-1]) == len(operands) if len(ends) else len(operands) == 0, "operands without rows")
    of_row = np.repeat(np.arange(first, first + len(counts)), counts.astype(np.int64))
    require(bool(np.all(operands < of_row)), "a row with an operand that does not stand before it")
    flat, start = operands.tolist(), 0
    rows: list[tuple[int, ...]] = [()] * first
    for end in ends.tolist():
        rows.append(tuple(flat[start:end]))
        start = end
    return rows


def heads_of(
    heads: list[Head], kinds: NDArray[Any], rows: list[tuple[int, ...]], atoms: dict[int, sp.Basic]
) -> list[Head]:
    """Return the heads of all rows, leaves included."""
    kind = iter(kinds.tolist())
    return [heads[next(kind)] if parts else type(atoms[row]) for row, parts in enumerate(rows)]


def text_of(value: Any) -> str:
    """Return a name."""
    require(isinstance(value, str), f"{type(value).__name__} instead of a name")
    return value  # type: ignore[no-any-return]


def shape_of(value: Any) -> tuple[int, ...]:
    """Return a shape."""
    require(all(type(extent) is int and 0 <= extent <= LARGEST for extent in value), f"the shape {value}")
    require(len(value) <= DIMENSIONS and prod(value) <= LARGEST, f"the shape {value}")
    return tuple(value)


def small(values: Any) -> NDArray[Any]:
    """Return whole numbers that are not negative in the smallest type that holds them."""
    array = np.asarray(values, dtype=np.uint64)
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def all_below(numbers: NDArray[Any], end: int) -> bool:
    """Return whether all numbers are smaller."""
    return bool(np.all(numbers < end))


def require(holds: bool, otherwise: str) -> None:
    """Raise ValueError unless something holds."""
    if not holds:
        raise ValueError(otherwise)


def whole(arrays: Arrays) -> NDArray[Any]:
    """Take an array of whole numbers from the end of a list."""
    require(arrays[-1].dtype.kind == "u", "numbers that are not whole")
    return arrays.pop()


def numbers_of(arrays: Arrays) -> NDArray[np.float64]:
    """Take an array of float64 from the end of a list."""
    require(arrays[-1].dtype.kind == "f", "whole numbers for floats")
    return arrays.pop()
