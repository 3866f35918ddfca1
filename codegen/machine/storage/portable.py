"""Programs and tables as plain data.

A graph is pickled as columns, without a SymPy DAG. A program with its options becomes the bytes of a sealed file.
Heads are names in the table of intrinsics, atoms are numbers and names, rows and tables of places are arrays. So a
stranger's file can be loaded: nothing in it is looked up, imported or run, and whatever no program can have is refused.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.errors import ArgumentError, InvariantError
from codegen.ir.check import check_program, check_rolled
from codegen.ir.program import Head, Program, Rows
from codegen.ir.region import RolledProgram
from codegen.machine.storage.portable_program import program_data, program_of
from codegen.machine.storage.portable_rolled import rolled_data, rolled_of
from codegen.machine.storage.portable_rows import columns_of, heads_of, require, rows_of, small
from codegen.options import Options
from codegen.sealed import refused, seal, unseal

KIND = b"program"
STRAIGHT, VERSION = 1, 2  # of files with programs without loops, which older versions read, and of all
MALFORMED = (
    ArgumentError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip

Columns = tuple[list[Head], list[tuple[int, ...]], dict[int, sp.Basic]]


@dataclass(frozen=True)
class Portable:
    """What a file holds: the program, its options, and which containers it takes and returns (for the upper storey)."""

    program: Program | RolledProgram
    options: Options
    containers: Any = None


def encode(program: Program | RolledProgram, options: Options, containers: Any = None) -> bytes:
    """Return a program as the bytes of a file; ArgumentError or LoweringError names what cannot be written.

    The leaves of the inputs keep their names only.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x", real=True)
    >>> program = program_from_sympy([x], [sp.sin(x) / 3])
    >>> decode(encode(program, Options())).program == program
    True
    """
    kept = {"options": asdict(options), "containers": containers}
    if isinstance(program, RolledProgram):
        header, arrays = rolled_data(program)
        return seal(KIND, VERSION, {"rolled": header, **kept}, arrays)
    header, arrays = program_data(program)
    return seal(KIND, STRAIGHT, {**header, **kept}, arrays)


def decode(data: bytes, where: str = "the program") -> Portable:
    """Return what `encode` has written; ArgumentError for anything else, whoever made it."""
    header, arrays = unseal(data, KIND, VERSION, where)
    try:
        arrays.reverse()
        program = rolled_of(header["rolled"], arrays) if "rolled" in header else program_of(header, arrays)
        require(not arrays, "arrays that nothing needs")
        check_rolled(program) if isinstance(program, RolledProgram) else check_program(program)
        return Portable(program, _options(header["options"]), header["containers"])
    except InvariantError as error:  # of a pass where we have made the program
        raise refused(where, f"its checksum is right and its content is not ({error.what}: {error.why})") from error
    except MALFORMED as error:
        raise refused(where, f"its checksum is right and its content is not ({error})") from error


def encode_rows(rows: Rows) -> dict[str, Any]:
    """Return the columns of a table as arrays, heads and atoms, ready to pickle.

    Heads are classes, which pickle by their qualified name; an undefined function is kept by its name and assumptions.
    """
    heads, counts, kinds, operands = columns_of(rows, 0)
    return {
        "heads": [_encode_head(head) for head in heads],
        "counts": small(counts),
        "kinds": small(kinds),
        "operands": small(operands),
        "atoms": rows.atoms,
    }


def decode_rows(state: dict[str, Any]) -> Columns:
    """Return the columns that `encode_rows` took apart."""
    heads, atoms = [_decode_head(head) for head in state["heads"]], dict(state["atoms"])
    rows = rows_of(0, state["counts"], state["operands"])
    return heads_of(heads, state["kinds"], rows, atoms), rows, atoms


def _options(given: dict[str, Any]) -> Options:
    known = {field.name: field for field in fields(Options)}
    for name, value in given.items():  # an option that an older version had not is what it is by default
        field = known[name]
        number = field.default is None and type(value) is int and value > 0
        require(number or type(value) is type(field.default), f"option {name}={value!r}")
    return Options(**given)


def _encode_head(head: Head) -> Any:
    if isinstance(head, UndefinedFunction) and issubclass(head, AppliedUndef):
        return head.__name__, dict(head._kwargs)
    return head


def _decode_head(head: Any) -> Head:
    if isinstance(head, tuple):
        name, assumptions = head
        return sp.Function(name, **assumptions)  # type: ignore[no-any-return]
    return head  # type: ignore[no-any-return]
