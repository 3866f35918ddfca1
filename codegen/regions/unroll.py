"""Unroll: a rolled program as straight lines, which is what it means."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from codegen.program import Head, Output, Program, reachable
from codegen.regions.region import Region, RolledProgram, regions_of


def unroll(rolled: RolledProgram) -> Program:
    """Return the straight-line program with the same inputs and outputs; linear in the operations it runs.

    >>> import numpy as np
    >>> from codegen.program import Input
    >>> from codegen.regions.region import Buffer, Gather, Result
    >>> from codegen.regions.table import Affine
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> square = program_from_sympy([x], [x**2])
    >>> total = Result(0, 1, Affine(0, 0, 3), "add")
    >>> region = Region(square, 3, (Gather(0, Affine(0, 1, 3)),), (total,))
    >>> buffers = (Buffer("input", 3), Buffer("output", 1))
    >>> rolled = RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (region,))
    >>> from codegen.interpret import evaluate
    >>> flat = unroll(rolled)
    >>> evaluate(flat, list(flat.outputs[0].rows), {0: 1.0, 1: 2.0, 2: 3.0})
    [14.0]
    """
    writer = _Writer(rolled)
    for region, _ in regions_of(rolled.steps):
        writer.run(region)
    return writer.program()


class _Writer:
    """Rows in the making, and the row that each place of each buffer holds (None: nothing was written yet)."""

    def __init__(self, rolled: RolledProgram) -> None:
        self.rolled = rolled
        self.heads: list[Head] = []
        self.operands: list[tuple[int, ...]] = []
        self.atoms: dict[int, sp.Basic] = {}
        self.places: list[list[int | None]] = [[None] * buffer.size for buffer in rolled.buffers]
        for number, array in enumerate(rolled.inputs):
            names = [sp.Symbol(f"{array.name}[{k}]" if array.shape else array.name) for k in range(array.size)]
            self.places[number] = [self.leaf(name) for name in names]
        for number, buffer in enumerate(rolled.buffers):
            if buffer.values is not None:
                self.places[number] = [self.leaf(sp.Float(value)) for value in buffer.values.tolist()]

    def leaf(self, atom: sp.Basic) -> int:
        self.atoms[len(self.heads)] = atom
        return self.row(type(atom), ())

    def row(self, head: Head, operands: tuple[int, ...]) -> int:
        self.heads.append(head)
        self.operands.append(operands)
        return len(self.heads) - 1

    def run(self, region: Region) -> None:
        """Write the rows of all repetitions, and what they leave in the buffers."""
        gathers = [(self.places[use.buffer], use.table.places().tolist()) for use in region.gathers]
        results = [(use, use.table.places().tolist()) for use in region.results]
        initial = [
            [self.places[use.buffer][int(use.table.places()[0])] for use in carry.initial] for carry in region.carries
        ]
        history: list[list[int]] = []
        for k in range(region.count):
            slots = [values[places[k]] for values, places in gathers]
            for carry, first in zip(region.carries, initial, strict=True):
                slots.append(first[k] if k < carry.lag else history[k - carry.lag][carry.output])
            history.append(self.body(region.body, slots))
            for use, places in results:
                self.leave(self.places[use.buffer], places[k], history[k][use.output], use.kind)

    def leave(self, values: list[int | None], place: int, row: int, kind: str) -> None:
        before = values[place]
        values[place] = row if kind == "store" or before is None else self.row(sp.Add, (before, row))

    def body(self, body: Program, slots: Sequence[int | None]) -> list[int]:
        """Write the rows of one repetition; return those of its outputs."""
        rows: dict[int, int | None] = dict(enumerate(slots))
        wanted = [output.rows[0] for output in body.outputs]
        for row in reachable(body, wanted):
            if row not in rows:
                operands = body.operands[row]
                if operands:
                    rows[row] = self.row(body.heads[row], tuple(rows[part] for part in operands))  # type: ignore[misc]
                else:
                    rows[row] = self.leaf(body.atoms[row])
        return [rows[row] for row in wanted]  # type: ignore[misc]

    def program(self) -> Program:
        """The rows as a program; a place of an output that nothing was written to is 0."""
        first = len(self.rolled.buffers) - len(self.rolled.outputs)
        zero = self.leaf(sp.Integer(0))
        outputs = []
        for output, places in zip(self.rolled.outputs, self.places[first:], strict=True):
            rows = tuple(zero if row is None else row for row in places)
            outputs.append(Output(output.shape, rows, None, output.pattern))
        rolled = self.rolled
        return Program(self.heads, self.operands, self.atoms, rolled.inputs, tuple(outputs), rolled.name)
