"""Straight lines: every repetition of every region written down, which is what a rolled program means."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from codegen.heads import negative_zero
from codegen.ir.copy_rows import copy_rows
from codegen.ir.execution_order import place_in, places_in, regions_in_time
from codegen.ir.program import Head, Output, Program, reachable
from codegen.ir.region import Region, RolledProgram
from codegen.ir.row_table import Table
from codegen.limits import EVERY, check


def straight_lines(rolled: RolledProgram) -> Program:
    """Return the straight-line program with the same inputs and outputs, of any length (see `unroll`)."""
    writer = _Writer(rolled)
    for region, rounds in regions_in_time(rolled.steps):
        writer.run(region, rounds)
    return writer.program()


class _Lines(Table):
    """Rows as they come: to look for equal ones, which lowering does in any case, would take most of the time."""

    def canonical(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return a new row."""
        if not len(self.heads) % EVERY:
            check("writing loops as straight lines", self.heads)
        self.heads.append(head)
        self.operands.append(operands)
        return len(self.heads) - 1

    def input(self, name: str) -> int:
        """Return a new leaf."""
        self.atoms[len(self.heads)] = sp.Symbol(name)
        return self.canonical(sp.Symbol, ())


class _Writer:
    """Rows in the making, and the row that each place of each buffer holds (None: nothing was written yet)."""

    def __init__(self, rolled: RolledProgram) -> None:
        self.rolled = rolled
        self.table = _Lines()
        self.bodies: dict[int, list[int]] = {}
        self.places: list[list[int | None]] = [[None] * buffer.size for buffer in rolled.buffers]
        for places, array in zip(self.places, rolled.inputs, strict=False):
            for k in range(array.size):
                places[k] = self.table.input(f"{array.name}[{k}]" if array.shape else array.name)

    def read(self, buffer: int, place: int) -> int:
        """The row at a place: a constant is made when it is first read, and what was never written is 0."""
        row = self.places[buffer][place]
        if row is None:
            values = self.rolled.buffers[buffer].values
            row = self.table.leaf(sp.S.Zero if values is None else _number(float(values[place])))
            if values is not None:
                self.places[buffer][place] = row
        return row

    def run(self, region: Region, rounds: Sequence[int]) -> None:
        """Write the rows of all repetitions, and what they leave in the buffers."""
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
        going: int | None = None  # the row that says whether repetition k is run, None: it is
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
        """Set or add to a place, in a repetition that may not be run."""
        values = self.places[buffer]
        if going is not None:
            otherwise = self.read(buffer, place) if kind == "last" else self.table.leaf(sp.S.Zero)
            row = self.table.canonical(sp.Piecewise, (row, going, otherwise, self.table.leaf(sp.true)))
        before = values[place]
        values[place] = self.table.canonical(sp.Add, (before, row)) if kind == "add" and before is not None else row

    def body(self, body: Program, slots: Sequence[int]) -> list[int]:
        """Write the rows of one repetition; return those of its outputs."""
        rows = dict(enumerate(slots))
        wanted = [output.rows[0] for output in body.outputs]
        order = self.bodies.get(id(body))
        if order is None:
            order = self.bodies[id(body)] = [row for row in reachable(body, wanted) if row >= len(slots)]
        copy_rows(body, order, self.table, rows)
        return [rows[row] for row in wanted]

    def program(self) -> Program:
        """The rows as a program."""
        rolled = self.rolled
        outputs = [
            Output(
                output.shape, tuple(self.read(number, k) for k in range(output.size)), None, output.pattern
            )
            for number, output in enumerate(rolled.outputs, rolled.first_output)
        ]  # fmt: skip
        table = self.table
        return Program(table.heads, table.operands, table.atoms, rolled.inputs, tuple(outputs), rolled.name)


def _number(value: float) -> sp.Basic:
    """A machine number as an atom."""
    if value == 0 and str(value) == "-0.0":
        return negative_zero
    return sp.Float(value) if value - value == 0 else sp.nan if value != value else sp.oo if value > 0 else -sp.oo
