"""Programs and tables as plain data.

A graph is pickled as columns, without a SymPy DAG. A program with its options becomes the bytes of a sealed file, in
which everything is data: heads are names in the table of intrinsics, atoms are numbers and names, rows are arrays. So a
stranger's file can be loaded: nothing in it is looked up, imported or run, and whatever no program can have is refused.
"""

from __future__ import annotations

import inspect
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.errors import ArgumentError
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.options import Options
from codegen.program import Head, Input, Output, Program, Rows
from codegen.regions.region import RolledProgram
from codegen.sparsity import SparsityPattern
from codegen.storage.portable_atoms import decode_atoms, encode_atoms
from codegen.storage.sealed import refused, seal, unseal

KIND, VERSION = b"program", 1
LARGEST = 2**34  # scalars of one output, 128 GiB
MALFORMED = (
    ArgumentError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip
DIMENSIONS = 64  # of a NumPy array

Columns = tuple[list[Head], list[tuple[int, ...]], dict[int, sp.Basic]]


@dataclass(frozen=True)
class Portable:
    """What a file holds: the program, its options, and which containers it takes and returns (for the upper storey)."""

    program: Program
    options: Options
    containers: Any = None


def encode(program: Program | RolledProgram, options: Options, containers: Any = None) -> bytes:
    """Return a program as the bytes of a file; ArgumentError or LoweringError names what cannot be written.

    The leaves of the inputs keep their names only.

    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x", real=True)
    >>> program = program_from_sympy([x], [sp.sin(x) / 3])
    >>> decode(encode(program, Options())).program == program
    True
    """
    if isinstance(program, RolledProgram):
        raise ArgumentError(f"{program.name} in a file", why="it is written in loops")
    first = program.input_count
    heads, *columns = _columns(program, first)
    leaves = [row for row in range(first, len(program)) if not program.operands[row]]
    if not program.atoms.keys() >= {*range(first), *leaves}:
        raise ArgumentError("a program with a leaf that has no atom")
    atoms, floats, numbers = encode_atoms([program.atoms[row] for row in leaves])
    arrays = [*map(_small, [*columns, numbers]), floats]
    for output in program.outputs:
        arrays += _output_arrays(output)
    header = {
        "name": program.name,
        "options": asdict(options),
        "heads": [_head_name(head) for head in heads],
        "atoms": atoms,
        "inputs": [[array.name, list(array.shape)] for array in program.inputs],
        "leaves": [_leaf_name(program.atoms[row]) for row in range(first)],
        "outputs": [_output_header(output) for output in program.outputs],
        "containers": containers,
        **_flags(program),
    }
    return seal(KIND, VERSION, header, arrays)


def decode(data: bytes, where: str = "the program") -> Portable:
    """Return what `encode` has written; ArgumentError for anything else, whoever made it."""
    header, arrays = unseal(data, KIND, VERSION, where)
    try:
        return _decode(header, arrays)
    except MALFORMED as error:
        raise refused(where, f"its checksum is right and its content is not ({error})") from error


def encode_rows(rows: Rows) -> dict[str, Any]:
    """Return the columns of a table as arrays, heads and atoms, ready to pickle.

    Heads are classes, which pickle by their qualified name; an undefined function is kept by its name and assumptions.
    """
    heads, counts, kinds, operands = _columns(rows, 0)
    return {
        "heads": [_encode_head(head) for head in heads],
        "counts": _small(counts),
        "kinds": _small(kinds),
        "operands": _small(operands),
        "atoms": rows.atoms,
    }


def decode_rows(state: dict[str, Any]) -> Columns:
    """Return the columns that `encode_rows` took apart."""
    heads, atoms = [_decode_head(head) for head in state["heads"]], dict(state["atoms"])
    rows = _rows(0, state["counts"], state["operands"])
    return _row_heads(heads, state["kinds"], rows, atoms), rows, atoms


def _columns(rows: Rows, first: int) -> tuple[list[Head], list[int], list[int], list[int]]:
    """Return the distinct heads, and of the rows from `first` on: operand counts, head numbers, operands."""
    operands = rows.operands[first:]
    heads = [head for head, parts in zip(rows.heads[first:], operands, strict=True) if parts]
    number = {head: k for k, head in enumerate(dict.fromkeys(heads))}
    return list(number), [*map(len, operands)], [*map(number.__getitem__, heads)], [*chain.from_iterable(operands)]


def _rows(first: int, counts: NDArray[Any], operands: NDArray[Any]) -> list[tuple[int, ...]]:
    """Return the operands of all rows, each an earlier one; the first ones have none."""
    _require(_all_below(counts, len(operands) + 1), "operands without rows")
    ends = np.cumsum(counts, dtype=np.int64)
    _require(int(ends[-1]) == len(operands) if len(ends) else len(operands) == 0, "operands without rows")
    of_row = np.repeat(np.arange(first, first + len(counts)), counts.astype(np.int64))
    _require(bool(np.all(operands < of_row)), "a row with an operand that does not stand before it")
    flat, start = operands.tolist(), 0
    rows: list[tuple[int, ...]] = [()] * first
    for end in ends.tolist():
        rows.append(tuple(flat[start:end]))
        start = end
    return rows


def _row_heads(
    heads: list[Head], kinds: NDArray[Any], rows: list[tuple[int, ...]], atoms: dict[int, sp.Basic]
) -> list[Head]:
    kind = iter(kinds.tolist())
    return [heads[next(kind)] if parts else type(atoms[row]) for row, parts in enumerate(rows)]


def _leaf_name(atom: sp.Basic) -> str:
    return atom.name if isinstance(atom, sp.Symbol) else str(atom)


def _encode_head(head: Head) -> Any:
    if isinstance(head, UndefinedFunction) and issubclass(head, AppliedUndef):
        return head.__name__, dict(head._kwargs)
    return head


def _decode_head(head: Any) -> Head:
    if isinstance(head, tuple):
        name, assumptions = head
        return sp.Function(name, **assumptions)  # type: ignore[no-any-return]
    return head  # type: ignore[no-any-return]


def _decode(header: dict[str, Any], arrays: list[NDArray[Any]]) -> Portable:
    inputs = tuple(Input(_text(name), _shape(shape)) for name, shape in header["inputs"])
    names = [_text(name) for name in header["leaves"]]
    first = len(names)
    _require(sum(array.size for array in inputs) == first, f"{first} leaves for inputs of another size")
    floats = arrays.pop(4)
    _require(floats.dtype.kind == "f" and all(array.dtype.kind == "u" for array in arrays), "arrays of other numbers")
    counts, kinds, operands, numbers, *rest = arrays
    heads = [_HEADS[name] for name in header["heads"]]
    _check_kinds(heads, kinds, counts)
    rows = _rows(first, counts, operands)
    values = decode_atoms(header["atoms"], floats)
    leaves = np.flatnonzero(counts == 0) + first
    _require(len(numbers) == len(leaves) and _all_below(numbers, len(values)), "leaves without atoms")
    atoms: dict[int, sp.Basic] = {row: sp.Symbol(name, real=True) for row, name in enumerate(names)}
    atoms |= zip(leaves.tolist(), [values[number] for number in numbers.tolist()], strict=True)
    rest.reverse()
    outputs = tuple(_output(described, rest, len(rows)) for described in header["outputs"])
    _require(not rest, "arrays that nothing needs")
    columns = _row_heads(heads, kinds, rows, atoms), rows, atoms
    program = Program(*columns, inputs, outputs, _text(header["name"]), **_flags_of(Program, header))
    _check_sweep(program)
    return Portable(program, _options(header["options"]), header["containers"])


def _check_sweep(program: Program) -> None:
    """A swept output has one place for each column of the seed, and no other output depends on the seed."""
    _require(bool(program.inputs) or not program.seeded, "a seed that is no input")
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
            _require(columns > 0 and inside and apart, "a sweep")
        else:
            _require(not columns or not any(map(moving.__getitem__, output.rows)), "an output that depends on the seed")


def _check_kinds(heads: list[Head], kinds: NDArray[Any], counts: NDArray[Any]) -> None:
    """Every row that is no leaf has a head, and as many operands as the head takes."""
    taken = counts[counts > 0]
    _require(len(kinds) == len(taken) and _all_below(kinds, len(heads)), "rows without heads")
    for kind, count in set(zip(kinds.tolist(), taken.tolist(), strict=True)):
        _require(takes(heads[kind], count), f"{heads[kind].__name__} of {count} operands")


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


def _options(given: dict[str, Any]) -> Options:
    known = {field.name: field for field in fields(Options)}
    for name, value in given.items():  # an option that an older version had not is what it is by default
        field = known[name]
        number = field.default is None and type(value) is int and value > 0
        _require(number or type(value) is type(field.default), f"option {name}={value!r}")
    return Options(**given)


def _flags(value: Any) -> dict[str, bool]:
    """Return the fields of a dataclass that say yes or no."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.type == "bool"}


def _flags_of(kind: type, header: dict[str, Any]) -> dict[str, Any]:
    names = [field.name for field in fields(kind) if field.type == "bool"]
    for name in names:
        _require(isinstance(header[name], bool), f"{name}={header[name]!r}")
    return {name: header[name] for name in names}


def _output_arrays(output: Output) -> list[NDArray[Any]]:
    arrays = [output.rows] if output.positions is None else [output.rows, output.positions]
    return [_small(array) for array in (*arrays, *(output.pattern or ()))]


def _output_header(output: Output) -> dict[str, Any]:
    pattern = output.pattern
    sparse = None if pattern is None else [list(pattern.shape), pattern.format]
    dense = output.positions is None
    return {"shape": list(output.shape), "dense": dense, "pattern": sparse, **_flags(output)}


def _output(header: dict[str, Any], arrays: list[NDArray[Any]], rows: int) -> Output:
    shape = _shape(header["shape"])
    stored = arrays.pop()
    _require(_all_below(stored, rows), "an output of rows that there are not")
    positions = None if header["dense"] else arrays.pop()
    size = prod(shape)
    if positions is None:
        _require(len(stored) == size, f"{len(stored)} rows for {size} places")
    else:
        distinct = len(np.unique(positions)) == len(positions) == len(stored)
        _require(distinct and _all_below(positions, size), "positions outside of the output, or twice")
    pattern = None
    if header["pattern"] is not None:
        (height, width), format = _shape(header["pattern"][0]), header["pattern"][1]
        pattern = SparsityPattern(arrays.pop(), arrays.pop(), (height, width), format)
        _require(shape == (pattern.nnz,), f"a pattern of {pattern.nnz} places for an array of shape {shape}")
    places = None if positions is None else tuple(positions.tolist())
    return Output(shape, tuple(stored.tolist()), places, pattern, **_flags_of(Output, header))


def _text(value: Any) -> str:
    _require(isinstance(value, str), f"{type(value).__name__} instead of a name")
    return value  # type: ignore[no-any-return]


def _shape(value: Any) -> tuple[int, ...]:
    _require(all(type(extent) is int and 0 <= extent <= LARGEST for extent in value), f"the shape {value}")
    _require(len(value) <= DIMENSIONS and prod(value) <= LARGEST, f"the shape {value}")
    return tuple(value)


def _small(values: Any) -> NDArray[Any]:
    """Return whole numbers that are not negative in the smallest type that holds them."""
    array = np.asarray(values, dtype=np.uint64)
    return array.astype(np.min_scalar_type(int(array.max(initial=0))))


def _all_below(numbers: NDArray[Any], end: int) -> bool:
    return bool(np.all(numbers < end))


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)
