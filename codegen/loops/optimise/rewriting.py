"""Rewriting: a rolled program whose steps are replaced, and that gets buffers and regions of its own in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import sympy as sp

from codegen.ir.program import Input, Output, Program, reachable
from codegen.ir.readdress import renumbered
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram, Step


@dataclass
class Draft:
    """The program in the making: outputs are numbered from behind until the end."""

    program: RolledProgram
    steps: list[Step] = field(init=False)
    added: list[Buffer] = field(default_factory=list)
    before: dict[int, list[Region]] = field(default_factory=dict)  # more regions, by the step that they stand before

    def __post_init__(self) -> None:
        self.steps = list(self.program.steps)

    def buffer(self, buffer: Buffer) -> int:
        """Add a buffer; its number counts from behind all others until the end."""
        self.added.append(buffer)
        return len(self.program.buffers) + len(self.added) - 1

    def insert(self, at: int, region: Region) -> None:
        """Run a region before a step, after others that stand there."""
        self.before.setdefault(at, []).append(region)

    def finished(self) -> RolledProgram:
        """Return the program with all regions in place, and the outputs behind the new buffers."""
        program, added = self.program, len(self.added)
        count, first = len(program.buffers), program.first_output
        order = [*range(first), *range(first + added, count + added), *range(first, first + added)]
        buffers = (*program.buffers[:first], *self.added, *program.buffers[first:])
        steps: list[Step] = []
        for at, step in enumerate(self.steps):
            steps += [*self.before.get(at, ()), step]
        steps += self.before.get(len(self.steps), ())
        return replace(program, buffers=buffers, steps=renumbered(steps, order.__getitem__))


def rebuilt(region: Region, outputs: Sequence[tuple[int, Result]], reads: Mapping[int, Gather]) -> Region:
    """Return a parallel region with other results, each with its row of the body; some rows are read, not computed.

    Slots and rows that nothing needs are left out.
    """
    body, slots = region.body, len(region.gathers)
    rows = list(dict.fromkeys(row for row, _ in outputs))
    operands = [() if row in reads else parts for row, parts in enumerate(body.operands)]
    needed = reachable(replace(body, operands=operands), rows)
    read = [row for row in needed if row in reads]
    kept = [row for row in needed if row < slots and row not in reads]
    order = [*kept, *read, *(row for row in needed if row >= slots and row not in reads)]
    new = {row: number for number, row in enumerate(order)}
    names = {row: f"slot{number}" for number, row in enumerate([*kept, *read])}
    made = Program(
        [sp.Symbol if row in names else body.heads[row] for row in order],
        [() if row in names else tuple(new[part] for part in operands[row]) for row in order],
        {new[row]: sp.Symbol(names[row]) if row in names else body.atoms[row]
         for row in order if row in names or row in body.atoms},
        tuple(Input(name, ()) for name in names.values()),
        tuple(Output((), (new[row],)) for row in rows),
        body.name,
    )  # fmt: skip
    gathers = (*(region.gathers[row] for row in kept), *(reads[row] for row in read))
    results = tuple(replace(use, output=rows.index(row)) for row, use in outputs)
    return replace(region, body=made, gathers=gathers, results=results)


def outputs_of(region: Region) -> list[tuple[int, Result]]:
    """Return the results of a region, each with its row of the body."""
    return [(region.body.outputs[use.output].rows[0], use) for use in region.results]
