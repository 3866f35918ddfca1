"""Straight-line programs as plain data: a header and arrays.

Heads are names in the table of intrinsics, rows are arrays, atoms are exact numbers and the few named constants.
Reading them looks up, imports and runs nothing, and refuses anything that no program can have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from itertools import chain
from math import prod
from typing import Any

import mpmath.libmp as libmp
import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import ArgumentError
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.heads import negative_zero
from codegen.ir.program import Head, Input, Output, Program, Rows, atom_key
from codegen.ir.sparsity import SparsityPattern

LARGEST = 2**34  # scalars of one array, 128 GiB
DIMENSIONS = 64  # of a NumPy array

Arrays = list[NDArray[Any]]

NAMED: dict[str, sp.Basic] = {
    "pi": sp.pi, "e": sp.E, "euler_gamma": sp.EulerGamma, "golden_ratio": sp.GoldenRatio, "catalan": sp.Catalan,
    "tribonacci": sp.TribonacciConstant, "inf": sp.oo, "-inf": -sp.oo, "nan": sp.nan, "-0.0": negative_zero,
    "true": sp.true, "false": sp.false,
}  # fmt: skip
_NAMES = {atom: name for name, atom in NAMED.items()}
DOUBLE = 53  # bits of a Float that is kept among the float64
LARGEST_DEGREE = 100  # of a polynomial whose root is a constant: finding it again takes seconds
LARGEST_EXPONENT = 2**31


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


def encode_atoms(leaves: Sequence[sp.Basic]) -> tuple[list[list[Any]], NDArray[np.float64], list[int]]:
    """Return the distinct atoms (data for JSON, and the float64 among them), and the number of each leaf's atom.

    The float64 are numbered after the others. ArgumentError for an atom that is no real number.

    >>> encode_atoms([sp.Rational(1, 3), sp.Float(0.5), sp.pi, sp.Float(0.5)])
    ([['rational', '1', '3'], ['constant', 'pi']], array([0.5]), [0, 2, 1, 2])
    """
    kept: dict[Any, int] = {}
    doubles: dict[float, int] = {}
    atoms: list[list[Any]] = []
    places: list[tuple[bool, int]] = []
    for leaf in leaves:
        value = _double(leaf)
        if value is not None:
            places.append((True, doubles.setdefault(value, len(doubles))))
            continue
        key = atom_key(leaf)
        if key not in kept:
            kept[key] = len(atoms)
            atoms.append(_encode(leaf))
        places.append((False, kept[key]))
    numbers = [place + len(atoms) if is_double else place for is_double, place in places]
    return atoms, np.array(list(doubles), dtype=np.float64), numbers


def decode_atoms(atoms: Sequence[Any], doubles: NDArray[np.float64]) -> list[sp.Basic]:
    """Return the atoms that `encode_atoms` has written, all of them; ValueError or TypeError for anything else.

    >>> decode_atoms([["integer", "-ff"]], np.array([0.5]))
    [-255, 0.500000000000000]
    """
    if not np.isfinite(doubles).all():
        raise ValueError("a float that is not finite")
    floats = [sp.Float._new(libmp.from_float(value), DOUBLE, zero=False) for value in doubles.tolist()]
    return [_DECODERS[kind](*parts) for kind, *parts in atoms] + floats


def _double(leaf: sp.Basic) -> float | None:
    """Return the float64 of a Float of 53 bits, None for any other atom."""
    if not isinstance(leaf, sp.Float) or leaf._prec != DOUBLE:
        return None
    value = float(leaf)
    return value if abs(value) < np.inf and libmp.from_float(value) == leaf._mpf_ else None


def _encode(atom: sp.Basic) -> list[Any]:
    if isinstance(atom, sp.Integer):
        return ["integer", f"{int(atom):x}"]
    if isinstance(atom, sp.Rational):
        return ["rational", f"{int(atom.p):x}", f"{int(atom.q):x}"]
    if isinstance(atom, sp.Float):
        sign, mantissa, exponent, _ = atom._mpf_
        return ["float", f"{-int(mantissa) if sign else int(mantissa):x}", int(exponent), int(atom._prec)]
    if isinstance(atom, sp.CRootOf) and atom.poly.degree() <= LARGEST_DEGREE:
        return ["root", [f"{int(number):x}" for number in atom.poly.all_coeffs()], int(atom.index)]
    if atom not in _NAMES:
        raise ArgumentError(f"{type(atom).__name__} {atom}", why="files keep real numbers only")
    return ["constant", _NAMES[atom]]


def _rational(p: str, q: str) -> sp.Basic:
    number = sp.Rational(_whole(p), _whole(q))
    if not isinstance(number, sp.Rational) or number.q == 1:
        raise ValueError("a rational number that is an integer, or none")
    return number


def _float(mantissa: str, exponent: int, precision: int) -> sp.Basic:
    if type(exponent) is not int or type(precision) is not int or precision < 1 or abs(exponent) > LARGEST_EXPONENT:
        raise ValueError(f"a float of exponent {exponent} and {precision} bits")
    whole = _whole(mantissa)
    if abs(whole).bit_length() > precision:
        raise ValueError(f"a float of more than {precision} bits")
    return sp.Float._new(libmp.from_man_exp(whole, exponent), precision, zero=False)


def _root(coefficients: list[str], index: int) -> sp.Basic:
    if not 2 <= len(coefficients) <= LARGEST_DEGREE + 1 or type(index) is not int:
        raise ValueError(f"a root of a polynomial with {len(coefficients)} coefficients")
    polynomial = sp.Poly([_whole(number) for number in coefficients], sp.Symbol("x"))
    try:
        root = sp.CRootOf(polynomial, index, radicals=False)
    except (sp.PolynomialError, NotImplementedError) as error:
        raise ValueError("a root of a polynomial that has none") from error
    if not isinstance(root, sp.CRootOf) or not root.is_real:
        raise ValueError("a root that is no real number of its own")
    return root


def _whole(text: str) -> int:
    """Return the integer of hexadecimal digits, of any length."""
    if not isinstance(text, str):
        raise TypeError(f"{type(text).__name__} instead of digits")
    return int(text, 16)


_DECODERS: dict[str, Callable[..., sp.Basic]] = {
    "integer": lambda digits: sp.Integer(_whole(digits)),
    "rational": _rational,
    "float": _float,
    "root": _root,
    "constant": lambda name: NAMED[name],
}


def program_data(program: Program) -> tuple[dict[str, Any], Arrays]:
    """Return a program as a header and arrays; ArgumentError or LoweringError names a part that cannot be written.

    The leaves of the inputs keep their names only.
    """
    first = program.input_count
    heads, *columns = columns_of(program, first)
    leaves = [row for row in range(first, len(program)) if not program.operands[row]]
    if not program.atoms.keys() >= {*range(first), *leaves}:
        raise ArgumentError("a program with a leaf that has no atom")
    named = [program.atoms[row] for row in range(first)]
    atoms, floats, numbers = encode_atoms([program.atoms[row] for row in leaves])
    arrays = [*map(small, [*columns, numbers]), floats]
    for output in program.outputs:
        arrays += map(small, [output.rows] if output.positions is None else [output.rows, output.positions])
        arrays += pattern_arrays(output.pattern)
    header = {
        "name": program.name,
        "heads": [intrinsic(head).head.__name__ for head in heads],
        "atoms": atoms,
        "inputs": [[array.name, list(array.shape)] for array in program.inputs],
        "leaves": [atom.name if isinstance(atom, sp.Symbol) else str(atom) for atom in named],
        "outputs": [
            {"shape": list(output.shape), "dense": output.positions is None, "pattern": pattern_header(output.pattern)}
            | _flags(output)
            for output in program.outputs
        ],
        **_flags(program),
    }
    return header, arrays


def program_of(header: dict[str, Any], arrays: Arrays) -> Program:
    """Return the program of a header and of arrays, which are taken from the end of a list.

    ValueError, or another of `codegen.machine.storage.portable.MALFORMED`, for data that `program_data` cannot write.
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
    """Check that every row that is no leaf has a head, and as many operands as the head takes."""
    taken = counts[counts > 0]
    require(len(kinds) == len(taken) and all_below(kinds, len(heads)), "rows without heads")
    for kind, count in set(zip(kinds.tolist(), taken.tolist(), strict=True)):
        require(takes(heads[kind], count), f"{heads[kind].__name__} of {count} operands")


@cache
def takes(head: Head, count: int) -> bool:
    """Whether a head can have `count` operands in a program.

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


def _flags(value: Any) -> dict[str, bool]:
    """Return the boolean fields of a dataclass."""
    return {field.name: getattr(value, field.name) for field in fields(value) if field.type == "bool"}


def _flags_of(kind: type, header: dict[str, Any]) -> dict[str, Any]:
    names = [field.name for field in fields(kind) if field.type == "bool"]
    for name in names:
        require(isinstance(header[name], bool), f"{name}={header[name]!r}")
    return {name: header[name] for name in names}


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
    """Return the header of a pattern."""
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
