"""Rounds with places of their own: a workspace that each round of a nest uses again becomes one for all rounds.

Such a workspace comes from checkpoints. Going back through its nest, what it held in a round is asked for after later
rounds have overwritten it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, Step
from codegen.ir.tables import Affine, Indexed, Table
from symad.derivatives.loops.draft import Draft, each_region


def with_own_rounds(draft: Draft, steps: Sequence[Step]) -> list[Step]:
    """Return steps in which no place is stored twice; the buffers of the draft grow."""
    uses = _uses(steps)
    further: dict[int, tuple[int, ...]] = {}
    for buffer, found in sorted(uses.items()):
        shifts = found.further(draft.buffers[buffer].size)
        if any(shifts):
            further[buffer] = shifts
            size = draft.buffers[buffer].size
            for level in found.again():
                size *= found.counts[level]
            draft.buffers[buffer] = Buffer("workspace", size)
    return [each_region(step, lambda region: _moved(region, further)) for step in steps] if further else list(steps)


@dataclass
class _Uses:
    """The nests that all uses of a buffer are in, by identity, their counts; the tables of its stores."""

    nests: tuple[Nest, ...]
    stores: list[Table] = field(default_factory=list)

    @property
    def counts(self) -> list[int]:
        return [nest.count for nest in self.nests]

    def again(self) -> list[int]:
        """Return the nests in each of whose rounds the same places are stored, the innermost first."""
        return [
            level
            for level in reversed(range(len(self.nests)))
            if self.counts[level] > 1 and any(_shift(table, level) == 0 for table in self.stores)
        ]

    def further(self, size: int) -> tuple[int, ...]:
        """Return by how much the places of each round have to move further on."""
        shifts = [0] * len(self.nests)
        for level in self.again():
            shifts[level] = size
            size *= self.counts[level]
        return tuple(shifts)


def _shift(table: Table, level: int) -> int:
    return table.shifts[level] if level < len(table.shifts) else 0


def _uses(steps: Sequence[Step]) -> dict[int, _Uses]:
    found: dict[int, _Uses] = {}
    stack: list[tuple[Step, tuple[Nest, ...]]] = [(step, ()) for step in steps]
    while stack:
        step, nests = stack.pop()
        if isinstance(step, Nest):
            stack += [(inner, (*nests, step)) for inner in step.steps]
            continue
        initial = [use for carry in step.carries for use in carry.initial]
        tables = [(use.buffer, use.table, "") for use in (*step.gathers, *initial)]
        tables += [(use.buffer, use.table, str(use.kind)) for use in step.results]
        for buffer, table, kind in tables:
            uses = found.setdefault(buffer, _Uses(nests))
            uses.nests = tuple(a for a, b in zip(uses.nests, nests, strict=False) if a is b)
            if kind in ("store", "last"):
                uses.stores.append(table)
    return found


def _moved(region: Region, further: dict[int, tuple[int, ...]]) -> Region:
    def gather(use: Gather) -> Gather:
        return Gather(use.buffer, _further(use.table, further.get(use.buffer, ())))

    def result(use: Result) -> Result:
        return replace(use, table=_further(use.table, further.get(use.buffer, ())))

    return replace(
        region,
        gathers=tuple(map(gather, region.gathers)),
        carries=tuple(Carry(carry.output, tuple(map(gather, carry.initial))) for carry in region.carries),
        results=tuple(map(result, region.results)),
    )


def _further(table: Table, more: tuple[int, ...]) -> Table:
    depth = max(len(table.shifts), len(more))
    shifts = tuple(_shift(table, level) + (more[level] if level < len(more) else 0) for level in range(depth))
    if isinstance(table, Indexed):
        return Indexed(table.index, shifts)
    return Affine(table.start, table.step, table.count, shifts)
