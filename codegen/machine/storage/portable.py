"""Programs and tables as plain data.

A graph is pickled as columns, without a SymPy DAG. A program with its options becomes the bytes of a sealed file. Heads
are names in the table of intrinsics, atoms are numbers and names, rows and tables of places are arrays. So a stranger's
file can be loaded: nothing in it is looked up, imported or run, and anything that no program can have is refused.

Rolled programs are bodies as straight-line programs, and tables of places as arrays of whole numbers. The steps are a
list: the number of a region, or `[count, steps]` for a nest. Shared bodies and tables are written once. Data goes
through the constructor of `RolledProgram`, which refuses tables that leave their buffers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.errors import ArgumentError, InvariantError
from codegen.ir.check import check_program, check_rolled
from codegen.ir.matrix_operation import MATRIX_KINDS, MatrixOperation
from codegen.ir.program import Head, Input, Output, Program, Rows
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Indexed, Table
from codegen.machine.storage.portable_program import (
    LARGEST,
    Arrays,
    columns_of,
    heads_of,
    numbers_of,
    pattern_arrays,
    pattern_header,
    pattern_of,
    program_data,
    program_of,
    require,
    rows_of,
    shape_of,
    small,
    text_of,
    whole,
)  # fmt: skip
from codegen.options import Options
from codegen.records import dataclass
from codegen.sealed import refused, seal, unseal

KINDS = ("store", "add", "last")
BUFFERS = ("input", "constant", "workspace", "output")
FARTHEST = 2**53  # places, steps and shifts
DEEPEST = 32  # nests in nests


def rolled_data(program: RolledProgram) -> tuple[dict[str, Any], Arrays]:
    """Return a rolled program as a header and arrays; ArgumentError or LoweringError names an unwritable part."""
    return _HeaderWriter().program(program)


def rolled_of(header: dict[str, Any], arrays: Arrays) -> RolledProgram:
    """Return the program of a header and of arrays, which are taken from the end of a list.

    ValueError, or another of `codegen.machine.storage.portable.MALFORMED`, for data that `rolled_data` cannot write.
    """
    return _Reader(header, arrays).program()


class _HeaderWriter:
    """Arrays and descriptions under construction; shared objects have numbers."""

    def __init__(self) -> None:
        self.arrays: Arrays = []
        self.bodies: dict[int, int] = {}
        self.tables: dict[int, int] = {}
        self.body_headers: list[Any] = []
        self.table_headers: list[Any] = []
        self.table_arrays: Arrays = []
        self.regions: list[Any] = []

    def program(self, program: RolledProgram) -> tuple[dict[str, Any], Arrays]:
        steps = self.steps(program.steps)
        constants = [buffer.values for buffer in program.buffers if buffer.values is not None]
        patterns = [array for output in program.outputs for array in pattern_arrays(output.pattern)]
        header = {
            "name": program.name,
            "inputs": [[array.name, list(array.shape)] for array in program.inputs],
            "outputs": [[list(array.shape), pattern_header(array.pattern)] for array in program.outputs],
            "buffers": [[buffer.kind, buffer.size] for buffer in program.buffers],
            "bodies": self.body_headers,
            "tables": self.table_headers,
            "regions": self.regions,
            "steps": steps,
        }
        return header, [*self.arrays, *self.table_arrays, *constants, *patterns]

    def steps(self, steps: Sequence[Step]) -> list[Any]:
        return [self.region(s) if isinstance(s, Region) else [s.count, self.steps(s.steps)] for s in steps]

    def region(self, region: Region) -> int:
        described = {
            "body": self.body(region.body),
            "count": region.count,
            "gathers": [self.gather(use) for use in region.gathers],
            "results": [[use.output, use.buffer, self.table(use.table), use.kind] for use in region.results],
            "carries": [[carry.output, [self.gather(use) for use in carry.initial]] for carry in region.carries],
            "stop": region.stop,
            "origin": region.origin,
        }
        if (matrix := region.matrix) is not None:
            described["matrix"] = [matrix.kind, list(matrix.sizes), list(map(int, matrix.transposed))]
        self.regions.append(described)
        return len(self.regions) - 1

    def gather(self, use: Gather) -> list[int]:
        return [use.buffer, self.table(use.table)]

    def body(self, body: Program) -> int:
        if id(body) not in self.bodies:
            header, arrays = program_data(body)
            self.bodies[id(body)] = len(self.body_headers)
            self.body_headers.append(header)
            self.arrays += arrays
        return self.bodies[id(body)]

    def table(self, table: Table) -> int:
        if id(table) not in self.tables:
            self.tables[id(table)] = len(self.table_headers)
            place = [] if isinstance(table, Indexed) else [table.start, table.step, table.count]
            self.table_headers.append([place, list(table.shifts)])
            self.table_arrays += [small(table.index)] if isinstance(table, Indexed) else []
        return self.tables[id(table)]


class _Reader:
    """What a header describes."""

    def __init__(self, header: dict[str, Any], arrays: Arrays) -> None:
        self.header, self.arrays = header, arrays
        self.bodies = [program_of(body, arrays) for body in header["bodies"]]
        self.tables = [self.table(*described) for described in header["tables"]]
        self.regions = [self.region(**described) for described in header["regions"]]

    def program(self) -> RolledProgram:
        header = self.header
        inputs = tuple(Input(text_of(name), shape_of(shape)) for name, shape in header["inputs"])
        buffers = tuple(self.buffer(*described) for described in header["buffers"])
        outputs = tuple(self.output(*described) for described in header["outputs"])
        return RolledProgram(inputs, outputs, buffers, self.steps(header["steps"]), text_of(header["name"]))

    def buffer(self, kind: Any, size: Any) -> Buffer:
        require(kind in BUFFERS, f"a buffer of kind {kind!r}")
        return Buffer(kind, _whole(size, LARGEST), numbers_of(self.arrays) if kind == "constant" else None)

    def output(self, shape: Any, pattern: Any) -> Output:
        sizes = shape_of(shape)
        return Output(sizes, (), None, pattern_of(pattern, self.arrays, sizes))

    def table(self, place: Any, shifts: Any) -> Table:
        moves = tuple(_whole(shift, FARTHEST, -FARTHEST) for shift in shifts)
        if not place:
            return Indexed(whole(self.arrays).astype(np.int64), moves)
        start, step, count = (_whole(number, FARTHEST, -FARTHEST) for number in place)
        return Affine(start, step, count, moves)

    def region(
        self,
        body: Any,
        count: Any,
        gathers: Any,
        results: Any,
        carries: Any,
        stop: Any,
        origin: Any,
        matrix: Any = None,
    ) -> Region:
        return Region(
            self.bodies[_whole(body)],
            _whole(count, LARGEST),
            tuple(self.gather(*use) for use in gathers),
            tuple(self.result(*use) for use in results),
            tuple(Carry(_whole(output), tuple(self.gather(*use) for use in initial)) for output, initial in carries),
            None if stop is None else _whole(stop),
            text_of(origin),
            None if matrix is None else self.matrix(*matrix),
        )

    def matrix(self, kind: Any, sizes: Any, transposed: Any) -> MatrixOperation:
        require(kind in MATRIX_KINDS, f"a matrix operation {kind!r}")
        first, second = (bool(_whole(flag, 1)) for flag in transposed)
        return MatrixOperation(kind, tuple(_whole(size, LARGEST) for size in sizes), (first, second))

    def gather(self, buffer: Any, table: Any) -> Gather:
        return Gather(_whole(buffer), self.tables[_whole(table)])

    def result(self, output: Any, buffer: Any, table: Any, kind: Any) -> Result:
        require(kind in KINDS, f"a result of kind {kind!r}")
        return Result(_whole(output), _whole(buffer), self.tables[_whole(table)], kind)

    def steps(self, steps: Any, depth: int = 0) -> tuple[Step, ...]:
        require(type(steps) is list, "steps that are none")
        require(depth <= DEEPEST, f"nests {depth} deep")
        return tuple(self.step(step, depth) for step in steps)

    def step(self, step: Any, depth: int) -> Step:
        if type(step) is list:
            count, steps = step
            return Nest(_whole(count, LARGEST), self.steps(steps, depth + 1))
        return self.regions[_whole(step)]


def _whole(value: Any, largest: int = FARTHEST, smallest: int = 0) -> int:
    require(type(value) is int and smallest <= value <= largest, f"{value!r} instead of a whole number")
    return value  # type: ignore[no-any-return]


KIND = b"program"
STRAIGHT, VERSION = 1, 2  # of files with programs without loops, which older versions read, and of all
MALFORMED = (
    ArgumentError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError,
)  # fmt: skip

Columns = tuple[list[Head], list[tuple[int, ...]], dict[int, sp.Basic]]


@dataclass(frozen=True)
class Portable:
    """The content of a file: the program, its options, and its containers (for the upper storey)."""

    program: Program | RolledProgram
    options: Options
    containers: Any = None


def encode(program: Program | RolledProgram, options: Options, containers: Any = None) -> bytes:
    """Return a program as the bytes of a file; ArgumentError or LoweringError names a part that cannot be written.

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
    """Return the program of bytes that `encode` wrote; ArgumentError for any other bytes."""
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


def _options(options: dict[str, Any]) -> Options:
    known = {field.name: field for field in fields(Options)}
    for name, value in options.items():  # an option that an older version lacks has its default
        field = known[name]
        number = field.default is None and type(value) is int and value > 0
        require(number or type(value) is type(field.default), f"option {name}={value!r}")
    return Options(**options)


def _encode_head(head: Head) -> Any:
    if isinstance(head, UndefinedFunction) and issubclass(head, AppliedUndef):
        return head.__name__, dict(head._kwargs)
    return head


def _decode_head(head: Any) -> Head:
    if isinstance(head, tuple):
        name, assumptions = head
        return sp.Function(name, **assumptions)  # type: ignore[no-any-return]
    return head  # type: ignore[no-any-return]
