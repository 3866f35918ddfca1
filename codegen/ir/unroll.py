"""Unroll a rolled program into straight lines, for code that only handles straight lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy as sp

from codegen.errors import InvariantError, LimitError
from codegen.heads import Alias, negative_zero
from codegen.ir.copy_rows import copy_rows
from codegen.ir.program import Head, Output, Program, reachable
from codegen.ir.readdress import place_in, places_in, regions_in_time
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.ir.row_table import RowTable
from codegen.ir.strictness import checked
from codegen.limits import EVERY, check


def straight_lines(rolled: RolledProgram) -> Program:
    """Return the straight-line program with the same inputs and outputs, of any length (see `unroll`)."""
    writer = _RowWriter(rolled)
    for region, rounds in regions_in_time(rolled.steps):
        writer.run(region, rounds)
    return writer.program()


class _RowLines(RowTable):
    """Rows that may be equal: merging them, which lowering does in any case, would take most of the time."""

    def canonical(self, head: Head, operands: tuple[int, ...]) -> int:
        if not len(self.heads) % EVERY:
            check("writing loops as straight lines", self.heads)
        self.heads.append(head)
        self.operands.append(operands)
        return len(self.heads) - 1

    def input(self, name: str) -> int:
        self.atoms[len(self.heads)] = sp.Symbol(name)
        return self.canonical(sp.Symbol, ())


class _RowWriter:
    """Rows under construction, and the row at each place of each buffer (None: not written yet)."""

    def __init__(self, rolled: RolledProgram) -> None:
        self.rolled = rolled
        self.table = _RowLines()
        self.bodies: dict[int, list[int]] = {}
        self.places: list[list[int | None]] = [[None] * buffer.size for buffer in rolled.buffers]
        for places, array in zip(self.places, rolled.inputs, strict=False):
            for k in range(array.size):
                places[k] = self.table.input(f"{array.name}[{k}]" if array.shape else array.name)

    def read(self, buffer: int, place: int) -> int:
        """Return the row at a place; a constant is made when it is first read, and a place without a write is 0."""
        row = self.places[buffer][place]
        if row is None:
            values = self.rolled.buffers[buffer].values
            if values is None:
                return self.table.leaf(sp.S.Zero)
            value = float(values[place])
            number = negative_zero if str(value) == "-0.0" else sp.Float(value)  # or oo, -oo, nan
            row = self.places[buffer][place] = self.table.leaf(number)
        return row

    def run(self, region: Region, rounds: Sequence[int]) -> None:
        """Write the rows of all repetitions, and enter their results into the buffers."""
        if region.matrix is not None:
            raise InvariantError(f"a {region.matrix.kind} of matrices is no row", do="write it as loops before")
        every = slice(0, region.count)
        gathers = [(use.buffer, places_in(use.table, rounds, every).tolist()) for use in region.gathers]
        results = [
            (use, [place_in(use.table, rounds)] * region.count if use.kind == "last"
             else places_in(use.table, rounds, every).tolist())
            for use in region.results
        ]  # fmt: skip
        history = [
            [self.read(use.buffer, place_in(use.table, rounds)) for use in carry.initial] for carry in region.carries
        ]
        going: int | None = None  # the condition for repetition k to run; None: it always runs
        for k in range(region.count):
            slots = [self.read(buffer, places[k]) for buffer, places in gathers] + [values[k] for values in history]
            values = self.body(region.body, slots)
            for carry, queue in zip(region.carries, history, strict=True):
                queue.append(values[carry.output])
            for use, places in results:
                self.leave(use.buffer, places[k], values[use.output], use.kind, going)
            if region.stop is not None:
                further = self.table.canonical(sp.Not, (values[region.stop],))
                going = further if going is None else self.table.canonical(sp.And, (going, further))

    def leave(self, buffer: int, place: int, row: int, kind: str, going: int | None) -> None:
        """Store or add to a place, in a repetition that may not be run."""
        values = self.places[buffer]
        if going is not None:
            otherwise = self.read(buffer, place) if kind == "last" else self.table.leaf(sp.S.Zero)
            row = self.table.canonical(sp.Piecewise, (row, going, otherwise, self.table.leaf(sp.true)))
        before = values[place]
        values[place] = self.table.canonical(sp.Add, (before, row)) if kind == "add" and before is not None else row

    def body(self, body: Program, slots: Sequence[int]) -> list[int]:
        """Write the rows of one repetition; return those of its outputs."""
        rows = dict(enumerate(slots))
        outputs = [output.rows[0] for output in body.outputs]
        order = self.bodies.get(id(body))
        if order is None:
            order = self.bodies[id(body)] = [row for row in reachable(body, outputs) if row >= len(slots)]
        copy_rows(body, order, self.table, rows)
        return [rows[row] for row in outputs]

    def program(self) -> Program:
        rolled = self.rolled
        outputs = [
            Output(
                output.shape, tuple(self.read(number, k) for k in range(output.size)), None, output.pattern
            )
            for number, output in enumerate(rolled.outputs, rolled.first_output)
        ]  # fmt: skip
        table = self.table
        return Program(table.heads, table.operands, table.atoms, rolled.inputs, tuple(outputs), rolled.name)


def columns_apart(program: Program) -> Program:
    """Return the straight-line program of a sweep.

    A seed of 0 makes products structurally zero and drops out of sums; all other dependent rows are written for every
    column.

    >>> from codegen.ir.program import Input
    >>> x, v = sp.symbols("x v")
    >>> heads, operands = [sp.Symbol, sp.Symbol, sp.Mul], [(), (), (0, 1)]
    >>> outputs = (Output((1, 1), (2,), (0,), swept=True),)
    >>> inputs = (Input("x", ()), Input("v", ()))
    >>> columns_apart(Program(heads, operands, {0: x, 1: v}, inputs, outputs, seeded=True)).outputs
    (Output(shape=(1, 1), rows=(0,), positions=None, pattern=None, swept=False),)
    """
    table, seed = RowTable(), program.inputs[-1]
    start, columns = program.input_count - seed.size, seed.size
    depends = bytearray(len(program))
    kept: dict[int, int] = {}
    for row, operands in enumerate(program.operands):
        depends[row] = start <= row < start + columns or any(depends[operand] for operand in operands)
    copy_rows(program, [row for row in range(len(program)) if not depends[row]], table, kept)
    linear = [row for row in range(start + columns, len(program)) if depends[row]]
    columns_of = [_column(program, table, kept, linear, start, column) for column in range(columns)]
    outputs = []
    for output in program.outputs:
        if not output.swept:
            outputs.append(replace(output, rows=tuple(kept[row] for row in output.rows)))
            continue
        assert output.positions is not None
        entries = {
            position + column: value
            for row, position in zip(output.rows, output.positions, strict=True)
            for column in range(columns)
            if (value := columns_of[column].get(row, kept.get(row))) is not None
        }
        full = len(entries) == output.size
        rows, places = tuple(entries[k] for k in sorted(entries)), tuple(sorted(entries))
        outputs.append(Output(output.shape, rows, None if full else places, output.pattern))
    return Program(table.heads, table.operands, table.atoms, program.arguments, tuple(outputs), program.name)


def _column(
    program: Program, table: RowTable, kept: dict[int, int], linear: list[int], start: int, column: int
) -> dict[int, int | None]:
    """Return the rows of one column; None is a structural zero."""
    unit, zero = table.leaf(sp.S.One), table.leaf(sp.S.Zero)
    row_of: dict[int, int | None] = {start + k: None for k in range(program.inputs[-1].size)}
    row_of[start + column] = unit
    for row in linear:
        head = program.heads[row]
        parts = [row_of[u] if u in row_of else kept[u] for u in program.operands[row]]
        present = [part for part in parts if part is not None]
        if head is sp.Mul:
            factors = [part for part in present if part != unit]
            row_of[row] = None if len(present) < len(parts) else _joined(table, head, factors, unit)
        elif head is sp.Add:
            row_of[row] = _joined(table, head, present, None)
        elif head in (Alias, sp.Piecewise) and all(p is None or table.atoms.get(p, 1) == 0 for p in parts[::2]):
            row_of[row] = None  # all values are 0; conditions are at odd places
        else:
            row_of[row] = table.row(head, tuple(zero if part is None else part for part in parts))
    return row_of


def _joined(table: RowTable, head: type[sp.Basic], parts: list[int], empty: int | None) -> int | None:
    if len(parts) < 2:
        return parts[0] if parts else empty
    return table.canonical(head, tuple(parts))


LARGEST = 5_000_000  # operations and numbers of buffers
LONGEST = 5_000  # repetitions of a loop that may stop: every one is written, and chosen if none before was the last


def unroll(program: Program | RolledProgram) -> Program:
    """Return the straight-line program with the same inputs and outputs; linear in the operations that it runs.

    A program of straight lines is returned unchanged. LimitError for more than five million operations, and for loops
    with a stop of more than 5,000 repetitions.

    >>> import numpy as np
    >>> import sympy as sp
    >>> from codegen.evaluation.interpret import evaluate
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Region, Result
    >>> from codegen.ir.tables import Affine
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> square = program_from_sympy([x], [x**2])
    >>> total = Result(0, 1, Affine(0, 0, 3), "add")
    >>> region = Region(square, 3, (Gather(0, Affine(0, 1, 3)),), (total,))
    >>> buffers = (Buffer("input", 3), Buffer("output", 1))
    >>> flat = unroll(RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (region,)))
    >>> evaluate(flat, list(flat.outputs[0].rows), {0: 1.0, 1: 2.0, 2: 3.0})
    [14.0]
    """
    if isinstance(program, RolledProgram):
        _check(program)
        return checked(straight_lines(program), "writing loops as straight lines")
    return checked(columns_apart(program), "writing columns as straight lines") if program.seeded else program


def _check(program: RolledProgram) -> None:
    size = program.executed + sum(buffer.size for buffer in program.buffers)
    if size > LARGEST:
        raise LimitError(
            f"{program.name} without loops",
            why=f"it would have {size:,} operations and numbers, and at most {LARGEST:,} are written",
            do="make the problem smaller, or use what works on loops",
        )
    longest = max((region.count for region, _ in regions_of(program.steps) if region.stop is not None), default=0)
    if longest > LONGEST:
        raise LimitError(
            f"{program.name} without loops",
            why=f"a loop that may stop has up to {longest:,} repetitions, and at most {LONGEST:,} are written",
            do="give the loop a smaller bound, or use what works on loops",
        )
