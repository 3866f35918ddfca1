"""Straight-line programs as plain data: a header and arrays.

Heads are names in the table of intrinsics, atoms are numbers and names, rows are arrays: nothing is looked up, imported
or run when they are read, and whatever no program can have is refused.
"""

from __future__ import annotations

import inspect
from dataclasses import fields
from functools import cache
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import ArgumentError
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.ir.program import Head, Input, Output, Program
from codegen.ir.sparsity import SparsityPattern
from codegen.machine.storage.portable_atoms import decode_atoms, encode_atoms
from codegen.machine.storage.portable_rows import (
    Arrays,
    all_below,
    columns_of,
    heads_of,
    numbers_of,
    require,
    rows_of,
    shape_of,
    small,
    text_of,
    whole,
)  # fmt: skip


def program_data(program: Program) -> tuple[dict[str, Any], Arrays]:
    """Return a program as a header and arrays; ArgumentError or LoweringError names what cannot be written.

    The leaves of the inputs keep their names only.
    """
    first = program.input_count
    heads, *columns = columns_of(program, first)
    leaves = [row for row in range(first, len(program)) if not program.operands[row]]
    if not program.atoms.keys() >= {*range(first), *leaves}:
        raise ArgumentError("a program with a leaf that has no atom")
    atoms, floats, numbers = encode_atoms([program.atoms[row] for row in leaves])
    arrays = [*map(small, [*columns, numbers]), floats]
    for output in program.outputs:
        arrays += _output_arrays(output)
    header = {
        "name": program.name,
        "heads": [_head_name(head) for head in heads],
        "atoms": atoms,
        "inputs": [[array.name, list(array.shape)] for array in program.inputs],
        "leaves": [_leaf_name(program.atoms[row]) for row in range(first)],
        "outputs": [_output_header(output) for output in program.outputs],
        **_flags(program),
    }
    return header, arrays


def program_of(header: dict[str, Any], arrays: Arrays) -> Program:
    """Return the program of a header and of arrays, which are taken from the end of a list.

    ValueError, or another of `codegen.machine.storage.portable.MALFORMED`, for what `program_data` has not written.
    """
    inputs = tuple(Input(text_of(name), shape_of(shape)) for name, shape in header["inputs"])
    names = [text_of(name) for name in header["leaves"]]
    first = len(names)
    require(sum(array.size for array in inputs) == first, f"{first} leaves for inputs of another size")
    counts, kinds, operands, numbers = (whole(arrays) for _ in range(4))
    floats = numbers_of(arrays)
    heads = [_HEADS[name] for name in header["heads"]]
    _check_kinds(heads, kinds, counts)
    rows = rows_of(first, counts, operands)
    values = decode_atoms(header["atoms"], floats)
    leaves = np.flatnonzero(counts == 0) + first
    require(len(numbers) == len(leaves) and all_below(numbers, len(values)), "leaves without atoms")
    atoms: dict[int, sp.Basic] = {row: sp.Symbol(name, real=True) for row, name in enumerate(names)}
    atoms |= zip(leaves.tolist(), [values[number] for number in numbers.tolist()], strict=True)
    outputs = tuple(_output(described, arrays, len(rows)) for described in header["outputs"])
    columns = heads_of(heads, kinds, rows, atoms), rows, atoms
    program = Program(*columns, inputs, outputs, text_of(header["name"]), **_flags_of(Program, header))
    _check_sweep(program)
    return program


def _leaf_name(atom: sp.Basic) -> str:
    return atom.name if isinstance(atom, sp.Symbol) else str(atom)


def _check_sweep(program: Program) -> None:
    """A swept output has one place for each column of the seed, and no other output depends on the seed."""
    require(bool(program.inputs) or not program.seeded, "a seed that is no input")
    columns, first = program.inputs[-1].size if program.seeded else 0, program.input_count
    moving = bytearray(first - columns) + bytearray([1]) * columns
    if program.seeded:
        for parts in program.operands[first:]:
            moving.append(max(map(moving.__getitem__, parts), default=0))
    for output in program.outputs:
        if output.swept:
            ends = [position + columns for position in output.positions or ()]
            starts = sorted(output.positions or ())[1:]
            apart = all(end <= start for end, start in zip(sorted(ends), starts, strict=False))
            inside = output.positions is not None and max(ends, default=0) <= output.size
            require(columns > 0 and inside and apart, "a sweep")
        else:
            require(not columns or not any(map(moving.__getitem__, output.rows)), "an output that depends on the seed")


def _check_kinds(heads: list[Head], kinds: NDArray[Any], counts: NDArray[Any]) -> None:
    """Every row that is no leaf has a head, and as many operands as the head takes."""
    taken = counts[counts > 0]
    require(len(kinds) == len(taken) and all_below(kinds, len(heads)), "rows without heads")
    for kind, count in set(zip(kinds.tolist(), taken.tolist(), strict=True)):
        require(takes(heads[kind], count), f"{heads[kind].__name__} of {count} operands")


@cache
def takes(head: Head, count: int) -> bool:
    """Whether a head can have so many operands in a program.

    >>> takes(sp.sin, 1), takes(sp.sin, 2), takes(sp.Piecewise, 3), takes(sp.Add, 100)
    (True, False, False, True)
    """
    known = getattr(head, "nargs", None)
    if isinstance(known, sp.FiniteSet) and count not in known:
        return False
    try:
        inspect.signature(INTRINSICS[head].native).bind(None, *[None] * count)
    except TypeError:
        return False
    return count > 0 and not (head is sp.Piecewise and count % 2) and not (head is sp.log and count > 1)


_HEADS = {head.__name__: head for head in INTRINSICS}


def _head_name(head: Head) -> str:
    return intrinsic(head).head.__name__


def _flags(value: Any) -> dict[str, bool]:
    """Return the fields of a dataclass that say yes or no."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.type == "bool"}


def _flags_of(kind: type, header: dict[str, Any]) -> dict[str, Any]:
    names = [field.name for field in fields(kind) if field.type == "bool"]
    for name in names:
        require(isinstance(header[name], bool), f"{name}={header[name]!r}")
    return {name: header[name] for name in names}


def _output_arrays(output: Output) -> Arrays:
    arrays = [output.rows] if output.positions is None else [output.rows, output.positions]
    return [*map(small, arrays), *pattern_arrays(output.pattern)]


def _output_header(output: Output) -> dict[str, Any]:
    dense, pattern = output.positions is None, pattern_header(output.pattern)
    return {"shape": list(output.shape), "dense": dense, "pattern": pattern, **_flags(output)}


def _output(header: dict[str, Any], arrays: Arrays, rows: int) -> Output:
    shape = shape_of(header["shape"])
    stored = whole(arrays)
    require(all_below(stored, rows), "an output of rows that there are not")
    positions = None if header["dense"] else whole(arrays)
    size = prod(shape)
    if positions is None:
        require(len(stored) == size, f"{len(stored)} rows for {size} places")
    else:
        distinct = len(np.unique(positions)) == len(positions) == len(stored)
        require(distinct and all_below(positions, size), "positions outside of the output, or twice")
    pattern = pattern_of(header["pattern"], arrays, shape)
    places = None if positions is None else tuple(positions.tolist())
    return Output(shape, tuple(stored.tolist()), places, pattern, **_flags_of(Output, header))


def pattern_header(pattern: SparsityPattern | None) -> list[Any] | None:
    """Return what a header says of a pattern."""
    return None if pattern is None else [list(pattern.shape), pattern.format]


def pattern_arrays(pattern: SparsityPattern | None) -> Arrays:
    """Return the places of a pattern."""
    return [small(array) for array in pattern or ()]


def pattern_of(header: Any, arrays: Arrays, shape: tuple[int, ...]) -> SparsityPattern | None:
    """Return the pattern of an array of packed data."""
    if header is None:
        return None
    (height, width), format = shape_of(header[0]), header[1]
    pattern = SparsityPattern(whole(arrays), whole(arrays), (height, width), format)
    require(shape == (pattern.nnz,), f"a pattern of {pattern.nnz} places for an array of shape {shape}")
    return pattern
