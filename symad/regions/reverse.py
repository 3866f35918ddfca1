"""Reverse: one region run backward: gathers become adds, results become gathers, carries become carries.

A carried region runs from its last repetition to its first; what it needs of its carries was stored going forward, one
number for each repetition. Only carries of lag 1 are known here: `single_lags` writes longer ones as several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from codegen.program import Program
from codegen.regions.region import Carry, Gather, Region, Result, Step
from codegen.regions.table import Affine, Indexed, Table
from symad.errors import ArgumentError
from symad.regions.activity import Backward, Forward
from symad.regions.bodies import body_part, body_pullback, slots_behind
from symad.regions.draft import Draft, Wiring
from symad.structure.place import IDENTITY


def single_lags(region: Region) -> Region:
    """Return a region with carries of lag 1: one of lag 3 is three, of which each passes its slot on to the next."""
    if all(carry.lag == 1 for carry in region.carries):
        return region
    first, inputs = len(region.gathers), len(region.body.inputs)
    outputs: list[int | None] = list(range(len(region.body.outputs)))
    slots, carries = [], []
    passing: list[Carry] = []
    further = inputs
    for slot, carry in enumerate(region.carries, first):
        output = carry.output
        for initial in reversed(carry.initial[1:]):
            passing.append(Carry(output, (initial,)))
            output = len(outputs)
            outputs.append(~further)
            further += 1
        slots.append(slot)
        carries.append(Carry(output, carry.initial[:1]))
    body = body_part(region.body, [*range(first), *slots], outputs, further=further - inputs)
    return replace(region, body=body, carries=(*carries, *passing))


@dataclass(frozen=True)
class Place:
    """Where a cotangent is: in a buffer, or the number 1 wherever it is asked for."""

    buffer: int
    one: bool = False


class Reverse:
    """The way back through regions: cotangents of buffers, and what is kept of carries."""

    def __init__(self, draft: Draft, ahead: Forward, behind: Backward, cotangents: dict[int, Place]) -> None:
        self.draft, self.ahead, self.behind, self.cotangents = draft, ahead, behind, cotangents

    def steps(self, region: Region, counts: Sequence[int]) -> tuple[Region, list[Step]]:
        """Return a region that stores what is needed of its carries, and the steps that run it backward."""
        outputs, slots = self.behind.outputs[region], self.behind.slots[region]
        if not slots:
            return region, []
        if region.stop is not None:
            raise _endless(region)
        return _Backward(self, region, tuple(counts), outputs, slots).steps()

    def one(self, buffer: int) -> bool:
        """Whether the cotangents of a buffer are the number 1."""
        return self.cotangents[buffer].one


class _Backward:
    """One region in the making."""

    def __init__(
        self, reverse: Reverse, region: Region, counts: tuple[int, ...], outputs: Sequence[int], slots: Sequence[int]
    ) -> None:
        self.reverse, self.region, self.counts, self.outputs = reverse, region, counts, outputs
        self.draft, self.first = reverse.draft, len(region.gathers)
        self.uses = [use for use in region.results if use.output in outputs and use.buffer in reverse.cotangents]
        self.bearers = {use.output: self.bearer(use.output) for use in self.uses if use.kind == "last"}
        carried = {slot for slot in slots if slot >= self.first} | set(self.bearers.values())
        self.carried = sorted(carried)
        self.gathered = [slot for slot in slots if slot < self.first]
        self.before: list[Step] = []
        self.after: list[Step] = []

    def bearer(self, output: int) -> int:
        """Return the slot of the carry that has an output whose last value counts."""
        return next(slot for slot, carry in enumerate(self.region.carries, self.first) if carry.output == output)

    def steps(self) -> tuple[Region, list[Step]]:
        """Return the region as it runs forward, and the steps backward."""
        region = self.region
        spread = [use for use in self.uses if use.kind != "last"]
        read = [use for use in spread if not self.reverse.one(use.buffer)]
        ones = [use.output for use in spread if self.reverse.one(use.buffer)]
        joined = [use.output for use in read] + [region.carries[slot - self.first].output for slot in self.carried]
        body, found = body_pullback(region.body, self.reverse.ahead.slots[region], joined, ones)
        inputs, outputs = len(region.body.inputs), len(region.body.outputs)
        cotangent = {slot: outputs + k for k, slot in enumerate(found)}
        forward, gathers = self.primal(
            body, [cotangent[slot] for slot in found if slot in (*self.gathered, *self.carried)]
        )
        for k, use in enumerate(read, inputs):
            gathers[k] = Gather(self.reverse.cotangents[use.buffer].buffer, self.back(use.table))
        carries: dict[int, tuple[int | None, tuple[Gather, ...]]] = {}
        results: list[tuple[int | None, Result]] = []
        for k, slot in enumerate(self.carried, inputs + len(read)):
            carries[k] = cotangent.get(slot), (self.last(slot),)
            if slot in cotangent:
                results += self.initial(slot, cotangent[slot])
        for slot in self.gathered:
            if slot in cotangent:
                source = region.gathers[slot]
                target = self.reverse.cotangents[source.buffer].buffer
                results.append((cotangent[slot], Result(0, target, self.back(source.table), "add")))
        backward = Wiring(body, gathers, carries, results).region(region.count, region.origin)
        return forward, [*self.before, backward, *self.after]

    def primal(self, body: Program, outputs: Sequence[int]) -> tuple[Region, dict[int, Gather]]:
        """Return the region that stores those carries which some outputs need, and where all slots are read."""
        region = self.region
        gathers = {slot: Gather(use.buffer, self.back(use.table)) for slot, use in enumerate(region.gathers)}
        kept = [slot for slot in slots_behind(body, outputs) if self.first <= slot < len(region.body.inputs)]
        results: list[tuple[int | None, Result]] = [(use.output, use) for use in region.results]
        for slot in kept:
            history = self.draft.workspace(region.count * prod(self.counts))
            table = Affine(0, 1, region.count, _strides(region.count, self.counts))
            results.append((~slot, Result(0, history, table, "store")))
            gathers[slot] = Gather(history, self.back(table))
        if not kept:
            return region, gathers
        primal = dict(enumerate(region.gathers))
        carries: dict[int, tuple[int | None, tuple[Gather, ...]]] = {
            slot: (carry.output, carry.initial) for slot, carry in enumerate(region.carries, self.first)
        }
        return Wiring(region.body, primal, carries, results).region(region.count, region.origin), gathers

    def back(self, table: Table) -> Table:
        """Return a table as it is met going backward."""
        return backward_table(table, self.counts, turned=not self.region.parallel)

    def cell(self) -> Gather:
        """Return a place of its own for one number of each round of the nests around."""
        return Gather(self.draft.workspace(prod(self.counts)), Affine(0, 0, 1, _strides(1, self.counts)))

    def last(self, slot: int) -> Gather:
        """Return where the cotangent of the last value of a carry comes from."""
        output = self.region.carries[slot - self.first].output
        uses = [use for use in self.uses if use.kind == "last" and use.output == output]
        if not uses or self.bearers[output] != slot:
            return self.draft.number(0.0)
        ends = [self.end(use) for use in uses]
        if len(ends) == 1:
            return ends[0]
        cell = self.cell()
        self.before += [added(end, cell) for end in ends]
        return cell

    def end(self, use: Result) -> Gather:
        if self.reverse.one(use.buffer):
            return self.draft.number(1.0)
        return Gather(self.reverse.cotangents[use.buffer].buffer, self.back(use.table))

    def initial(self, slot: int, output: int) -> list[tuple[int | None, Result]]:
        """Add the cotangent of an initial value to where it came from, after the loop."""
        (use,) = self.region.carries[slot - self.first].initial
        if use.buffer not in self.reverse.cotangents or use.buffer not in self.reverse.ahead.buffers:
            return []
        cell = self.cell()
        target = Gather(self.reverse.cotangents[use.buffer].buffer, self.back(use.table))
        self.after.append(added(cell, target))
        return [(output, Result(0, cell.buffer, cell.table, "last"))]


def backward_table(table: Table, counts: Sequence[int], *, turned: bool) -> Table:
    """Return a table with the rounds of the nests around backward, and its places too if it is turned.

    >>> backward_table(Affine(1, 2, 4, (8,)), [3], turned=True)
    Affine(start=23, step=-2, count=4, shifts=(-8,))
    """
    moved = sum(shift * (count - 1) for shift, count in zip(table.shifts, counts, strict=False))
    shifts = tuple(-shift for shift in table.shifts)
    if isinstance(table, Indexed):
        index = table.index[::-1] if turned else table.index
        return Indexed(index + moved, shifts)
    start = table.start + moved
    if not turned:
        return Affine(start, table.step, table.count, shifts)
    return Affine(start + table.step * (table.count - 1), -table.step, table.count, shifts)


def _strides(size: int, counts: Sequence[int]) -> tuple[int, ...]:
    """Return how far apart the rounds of nests are in a buffer with `size` places for each."""
    return tuple(size * prod(counts[k + 1 :]) for k in range(len(counts)))


def added(source: Gather, target: Gather) -> Region:
    """Return the region that adds the places of a table to those of another."""
    return Wiring(IDENTITY, {0: source}, {}, [(0, Result(0, target.buffer, target.table, "add"))]).region(
        source.table.count, ""
    )


def _endless(region: Region) -> ArgumentError:
    return ArgumentError(
        "the reverse mode of a loop that ends when a condition holds",
        where=region.origin,
        why="the number of its repetitions is not known, so there is no bound for what has to be kept of them",
        do="give it a bound: fori_loop, or while_loop(..., max_steps=...); or use forward mode",
    )
