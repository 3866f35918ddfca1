"""Writers: of every place of a rolled program, which repetition of which region wrote it, and whether it is active."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from codegen.program import Program
from codegen.regions.region import Gather, Region, Result, RolledProgram
from codegen.regions.table import Places
from symad.regions.patterns import distinct

MOST_ROWS = 300  # of a body that is written into another one
MOST_SLOTS = 24
MOST_DEPTH = 12
MOST_UNIFORM_ROWS = 16  # of a body that is run once, and would be computed again in every repetition

Activity = bool | NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Written:
    """One result of a region that runs: `wholly` says whether its body may be written into those that read it."""

    region: Region
    result: Result
    wholly: bool


@dataclass(frozen=True, eq=False)
class BufferWriters:
    """Of each place: how many repetitions write it, the number of the last such result and its repetition."""

    counts: Places
    results: Places
    repetitions: Places
    active: NDArray[np.bool_]


class Writers:
    """What wrote the places of workspaces and outputs; `active` ones depend on the input `wrt`."""

    def __init__(self, program: RolledProgram, regions: Sequence[Region], wrt: int) -> None:
        self.program, self.wrt = program, wrt
        self.written: list[Written] = []
        self.of: dict[int, BufferWriters] = {}
        self._sizes: list[tuple[int, int, int]] = []  # rows, slots and depth of a result with all that is behind it
        for number, buffer in enumerate(program.buffers):
            if buffer.kind in ("workspace", "output"):
                counts, results, repetitions = np.zeros((3, buffer.size), dtype=np.int64)
                self.of[number] = BufferWriters(counts, results, repetitions, np.zeros(buffer.size, dtype=bool))
        for region in regions:
            self._run(region)

    def _run(self, region: Region) -> None:
        activity = self._activity(region)
        for result in region.results:
            size = self._size(region, result)
            allowed = region.count > 1 or size[0] <= MOST_UNIFORM_ROWS
            wholly = allowed and size[0] <= MOST_ROWS and size[1] <= MOST_SLOTS and size[2] <= MOST_DEPTH
            places, into = result.table.places(), self.of[result.buffer]
            into.counts[:] += np.bincount(places, minlength=len(into.counts))
            into.results[places] = len(self.written)
            into.repetitions[places] = np.arange(region.count)
            into.active[places] |= activity[region.body.outputs[result.output].rows[0]]
            self.written.append(Written(region, result, wholly))
            self._sizes.append(size)

    def _activity(self, region: Region) -> list[Activity]:
        """Return of each row of the body whether it is active: True, False, or one for each repetition."""
        found: list[Activity] = [self._slot_activity(gather) for gather in region.gathers]
        for operands in region.body.operands[len(found) :]:
            parts = [found[operand] for operand in operands]
            if any(part is True for part in parts):
                found.append(True)
                continue
            arrays = [part for part in parts if not isinstance(part, bool)]
            found.append(np.logical_or.reduce(arrays) if arrays else False)
        return found

    def _slot_activity(self, gather: Gather) -> Activity:
        if gather.buffer not in self.of:
            return gather.buffer == self.wrt
        active = self.of[gather.buffer].active[gather.table.places()]
        return bool(active[0]) if (active == active[0]).all() else active

    def _size(self, region: Region, result: Result) -> tuple[int, int, int]:
        rows, slots = _cone(region.body, region.body.outputs[result.output].rows[0])
        behind = [self._behind(region.gathers[slot]) for slot in slots]
        columns = list(zip(*behind, strict=True)) or [(), (), ()]
        return rows + sum(columns[0]), sum(columns[1]), 1 + max(columns[2], default=0)

    def _behind(self, gather: Gather) -> tuple[int, int, int]:
        """The size of what would be written in the place of a slot."""
        if gather.buffer not in self.of:
            return 0, 1, 0
        into, places = self.of[gather.buffer], gather.table.places()
        chosen = into.active[places] & (into.counts[places] == 1)
        sizes = [self._sizes[k] for k in distinct(into.results[places[chosen]]) if self.written[k].wholly]
        return (
            (0, 1, 0) if not sizes else (max(s[0] for s in sizes), max(s[1] for s in sizes), max(s[2] for s in sizes))
        )

    def kinds(self, buffer: int, places: Places) -> Places:
        """Return how each place is read: ZERO, FIXED, INNER, or the number of the result that is written in its place.

        A place that nothing wrote is 0; one that is not active is a fixed number.
        """
        into = self.of[buffer]
        counts, results = into.counts[places], into.results[places]
        wholly = np.array([written.wholly for written in self.written], dtype=bool)
        alone = (counts == 1) & wholly[results] if len(wholly) else np.zeros(len(places), dtype=bool)
        active = np.where(alone, results, INNER)
        return np.where(into.active[places], active, np.where(counts == 0, ZERO, FIXED))


ZERO, FIXED, INNER = -1, -2, -3


def _cone(body: Program, row: int) -> tuple[int, list[int]]:
    """Return how many operations a row needs, and the slots among what it needs."""
    seen, stack = {row}, [row]
    while stack:
        for operand in body.operands[stack.pop()]:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    slots = sorted(found for found in seen if found < len(body.inputs))
    return sum(1 for found in seen if body.operands[found]), slots
