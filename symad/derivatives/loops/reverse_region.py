"""One region in reverse: gathers become adds, results become gathers, carries stay carries.

A carried region runs from its last repetition to its first; the values of its carries were stored going forward. Only
carries of lag 1 are known here: `single_lags` has replaced longer ones. The cotangents of carries begin with the number
0 where nothing is read after the last repetition, and continue with it where a repetition passes nothing on. Straight
lines have no product there; here guards keep such a 0 from an infinite partial derivative.

`counts` are the rounds of the nests around, which run backward too; FIXED for one whose rounds run forward and share a
workspace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from codegen.ir.body_parts import Wiring, copy, slots_behind
from codegen.ir.program import Program
from codegen.ir.readdress import backward, moved
from codegen.ir.region import Gather, Region, Result, Step
from codegen.ir.tables import Affine, Table, table
from codegen.loops.optimise.draft import Draft
from codegen.records import dataclass
from symad.derivatives.loops.activity import Backward, bearers_of
from symad.derivatives.loops.body_derivatives import Replay, body_program, body_pullback

FIXED = 0


@dataclass(frozen=True)
class Place:
    """Where the cotangents of a buffer are: in another one, or the number 1 everywhere (`one`).

    Their guards, if any, are in a third one.
    """

    buffer: int
    one: bool = False
    guard: int | None = None


class BackwardRegion:
    """One region under construction: `forward` stores the needed values of its carries, `steps` run it backward.

    `behind` says which of its slots and results have cotangents, and `cotangents` where those of buffers are.
    """

    def __init__(
        self, draft: Draft, region: Region, counts: Sequence[int], behind: Backward, cotangents: dict[int, Place]
    ) -> None:
        self.draft, self.region, self.counts, self.cotangents = draft, region, tuple(counts), cotangents
        self.replay: Replay = behind.ahead.replay(region)
        self.slots: Sequence[int] = behind.slots[region]
        self.first: int = len(region.gathers)
        self.uses: Sequence[Result] = behind.results[region]
        self.bearers: dict[int, int] = bearers_of(region, self.uses)
        self.carried: list[int] = sorted({slot for slot in self.slots if slot >= self.first} | {*self.bearers.values()})
        self.guarded: set[int] = {slot for slot in self.carried if slot in behind.guarded_carries[region]}
        self.guarded |= {slot for slot in self.carried if slot in self.slots and self.guard_of(slot) is not None}
        self.before: list[Step] = []
        # final cotangents of carries, and their targets, by buffer; guards have none
        self.leaving: dict[tuple[int, tuple[int, ...]], list[tuple[Gather, Gather]]] = {}
        self.forward: Region = region
        self.steps: list[Step] = self.backward_steps()

    def backward_steps(self) -> list[Step]:
        """Return the steps backward."""
        region = self.region
        spread = [use for use in self.uses if use.kind != "last"]
        read = [use for use in spread if not self.cotangents[use.buffer].one]
        ones = [use.output for use in spread if self.cotangents[use.buffer].one]
        joined = [use.output for use in read] + [region.carries[slot - self.first].output for slot in self.carried]
        guarded = [k for k, use in enumerate(read) if self.cotangents[use.buffer].guard is not None]
        guarded += [k for k, slot in enumerate(self.carried, len(read)) if slot in self.guarded]
        asked = [slot for slot in self.slots if slot in self.guarded or self.guard_of(slot) is not None]
        body, slots = body_pullback(self.replay, joined, ones, guarded, asked)
        inputs, outputs = len(region.body.inputs), len(region.body.outputs)
        output = {slot: k for k, slot in enumerate(slots, outputs)}
        guard_slot = {k: number for number, k in enumerate(guarded, inputs + len(joined))}
        guard_output = {slot: k for k, slot in enumerate(asked, outputs + len(slots))}
        sources_needed = [slot for slot in self.slots if slot in output]
        sources = [self.source(slot) for slot in sources_needed if slot >= self.first]
        self.widths: Counter[tuple[int, tuple[int, ...]]] = Counter(
            (source.buffer, source.table.shifts) for source in sources
        )
        gathers = self.primal(body, [*(output[slot] for slot in sources_needed), *guard_output.values()])
        for k, use in enumerate(read):
            gathers[inputs + k] = self.cotangent(use)
            if k in guard_slot:
                gathers[guard_slot[k]] = self.guard(use)
        carries: dict[int, tuple[int | None, tuple[Gather, ...]]] = {}
        for k, slot in enumerate(self.carried, len(read)):
            carries[inputs + k] = output.get(slot), (self.last(slot),)
            if k in guard_slot:
                carries[guard_slot[k]] = guard_output.get(slot), (self.last_guard(slot),)
        results: list[tuple[int | None, Result]] = []
        for slot in sources_needed:
            results += self.results(slot, output[slot], guard_output.get(slot))
        backward = Wiring(body, gathers, carries, results).region(region.count, region.origin)
        return [*self.before, backward, *self.after()]

    def primal(self, body: Program, outputs: Sequence[int]) -> dict[int, Gather]:
        """Return where slots are read; carries that some outputs need are stored by the region forward."""
        region = self.region
        gathers = {slot: Gather(use.buffer, self.back(use.table)) for slot, use in enumerate(region.gathers)}
        results: list[tuple[int | None, Result]] = [(use.output, use) for use in region.results]
        for slot in slots_behind(body, outputs):
            if self.first <= slot < len(region.body.inputs):
                history = self.draft.workspace(region.count * _rounds(self.counts))
                table = Affine(0, 1, region.count, strides(region.count, self.counts))
                results.append((~slot, Result(0, history, table, "store")))
                gathers[slot] = Gather(history, self.back(table))
        if len(results) > len(region.results):
            carries = {slot: (carry.output, carry.initial) for slot, carry in enumerate(region.carries, self.first)}
            wiring = Wiring(region.body, dict(enumerate(region.gathers)), carries, results)
            self.forward = wiring.region(region.count, region.origin)
        return gathers

    def back(self, table: Table) -> Table:
        """Return a table as it is met going backward."""
        return backward_table(table, self.counts, turned=not self.region.parallel)

    def cotangent(self, use: Gather | Result) -> Gather:
        """Return where the cotangents of places are."""
        place = self.cotangents[use.buffer]
        return self.draft.number(1.0) if place.one else Gather(place.buffer, self.back(use.table))

    def guard(self, use: Gather | Result) -> Gather:
        """Return where the guards of the cotangents of places are; the number 1 if they have none."""
        guard = self.cotangents[use.buffer].guard
        return self.draft.number(1.0) if guard is None else Gather(guard, self.back(use.table))

    def cell(self) -> Gather:
        """Return a place for one number of each round of the nests around."""
        return Gather(self.draft.workspace(_rounds(self.counts)), Affine(0, 0, 1, strides(1, self.counts)))

    def ends(self, slot: int) -> list[Result]:
        """Return the "last" results that the cotangent of a carry begins with."""
        output = self.region.carries[slot - self.first].output
        uses = [use for use in self.uses if use.kind == "last" and use.output == output]
        return uses if uses and self.bearers[output] == slot else []

    def last(self, slot: int) -> Gather:
        """Return where the cotangent of the last value of a carry comes from."""
        uses = self.ends(slot)
        if not uses:
            return self.draft.number(0.0)
        if len(uses) == 1:
            return self.cotangent(uses[0])
        cell = self.cell()
        total = body_program(lambda *ends: (sum(ends[1:], ends[0]),), len(uses))
        ends = dict(enumerate(map(self.cotangent, uses)))
        self.before.append(Wiring(total, ends, {}, [(0, Result(0, cell.buffer, cell.table, "store"))]).region(1, ""))
        return cell

    def last_guard(self, slot: int) -> Gather:
        """Return the guard of that cotangent."""
        uses = self.ends(slot)
        return self.guard(uses[0]) if len(uses) == 1 else self.draft.number(float(len(uses) > 1))

    def source(self, slot: int) -> Gather:
        """Return the gather of a slot; of a carry, its initial value."""
        return self.region.gathers[slot] if slot < self.first else self.region.carries[slot - self.first].initial[0]

    def guard_of(self, slot: int) -> int | None:
        """Return the buffer of the guards of the places that a slot reads."""
        place = self.cotangents.get(self.source(slot).buffer)
        return None if place is None else place.guard

    def results(self, slot: int, output: int, guard: int | None) -> list[tuple[int | None, Result]]:
        """Return where the cotangent of a slot goes: to the places that it reads, or that its initial value reads."""
        source = self.source(slot)
        if source.buffer not in self.cotangents:
            return []
        parts = [(output, self.cotangent(source))]
        if guard is not None and self.guard_of(slot) is not None:
            parts.append((guard, self.guard(source)))
        return [(part, self.left(slot, source, target)) for part, target in parts]

    def left(self, slot: int, source: Gather, target: Gather) -> Result:
        """Return the result that leaves a cotangent, or its guard, at its target."""
        once = source.buffer in self.draft.read_once
        if slot < self.first:
            return Result(0, target.buffer, target.table, "store" if once else "add")
        if once:
            return Result(0, target.buffer, target.table, "last")
        its = self.leaving.setdefault((target.buffer, target.table.shifts), [])
        width = self.widths[source.buffer, source.table.shifts]
        buffer = its[0][0].buffer if its else self.draft.workspace(width * _rounds(self.counts))
        end = Gather(buffer, Affine(len(its), 0, 1, strides(width, self.counts)))
        its.append((end, target))
        return Result(0, buffer, end.table, "last")

    def after(self) -> list[Step]:
        """Return the regions that add the final cotangents of carries, one for all places of a buffer."""
        return [added(*map(_together, zip(*pairs, strict=True))) for pairs in self.leaving.values()]


def backward_table(table: Table, counts: Sequence[int], *, turned: bool) -> Table:
    """Return a table with the rounds of the nests around backward, and its places too if it is turned.

    Rounds of inner nests run forward.

    >>> backward_table(Affine(1, 2, 4, (8,)), [3], turned=True)
    Affine(start=23, step=-2, count=4, shifts=(-8,))
    >>> backward_table(Affine(1, 2, 4, (8,)), [FIXED], turned=True)
    Affine(start=7, step=-2, count=4, shifts=(8,))
    """
    pairs = list(zip(table.shifts, counts, strict=False))
    by = sum(shift * (count - 1) for shift, count in pairs if count != FIXED)
    shifts = (*(shift if count == FIXED else -shift for shift, count in pairs), *table.shifts[len(counts) :])
    return moved(backward(table) if turned else table, by, shifts=shifts)


def strides(size: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Return how far apart the rounds of nests are in a buffer with `size` places for each round.

    >>> strides(5, (3, FIXED, 2))
    (10, 0, 5)
    """
    return tuple(0 if count == FIXED else size * _rounds(counts[k + 1 :]) for k, count in enumerate(counts))


def _together(uses: Sequence[Gather]) -> Gather:
    """Return several uses of one place each, in one buffer, as a single use; they move alike."""
    places = table(np.array([use.table.first for use in uses]))
    return Gather(uses[0].buffer, replace(places, shifts=uses[0].table.shifts))


def added(source: Gather, target: Gather) -> Region:
    """Return the region that adds the places of a table to those of another."""
    return copy(source, target.buffer, target.table, "add", "")


def _rounds(counts: Sequence[int]) -> int:
    return prod(count for count in counts if count != FIXED)
