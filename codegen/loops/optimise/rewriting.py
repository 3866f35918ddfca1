"""Rewriting: a rolled program whose steps are replaced, and that gets buffers and regions of its own in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from codegen.ir.copy_rows import program_over
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
    rows = list(dict.fromkeys(row for row, _ in outputs))
    given = dict(enumerate(region.gathers)) | dict(reads)
    slots = [*sorted(given.keys() - reads.keys()), *sorted(reads)]
    body, used = program_over(region.body, slots, rows, region.body.name)
    gathers = tuple(given[slots[number]] for number in used)
    results = tuple(replace(use, output=rows.index(row)) for row, use in outputs)
    return replace(region, body=body, gathers=gathers, results=results)


def outputs_of(region: Region) -> list[tuple[int, Result]]:
    """Return the results of a region, each with its row of the body."""
    return [(region.body.outputs[use.output].rows[0], use) for use in region.results]
