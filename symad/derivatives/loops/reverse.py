"""Reverse: the way back through steps, the last one first; the rounds of nests run backward."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from codegen.ir.readdress import all_readdressed, each_region, readdressed
from codegen.ir.region import Nest, Region, Step
from codegen.loops.optimise.contraction import zeros
from codegen.loops.optimise.draft import Draft
from symad.derivatives.loops.activity import Forward, backward, forward
from symad.derivatives.loops.checkpoints import Checkpoints, segmented, segments_of
from symad.derivatives.loops.checkpoints_nests import cut_nests
from symad.derivatives.loops.reverse_region import FIXED, BackwardRegion, Needs, Place, backward_table
from symad.errors import ArgumentError

Both = tuple[list[Step], list[Step]]


class EndlessLoopError(ArgumentError):
    """Reverse mode was asked of a loop whose number of repetitions has no bound."""


class Reverse:
    """Steps with what is active in them, and where the cotangents of their buffers are."""

    def __init__(
        self,
        draft: Draft,
        steps: Sequence[Step],
        active: Collection[int],
        given: dict[int, Place],
        checkpoints: Checkpoints,
        ahead: Forward | None = None,
        cuts: Mapping[Nest, frozenset[int]] | None = None,
    ) -> None:
        """Take the buffers that are active before the steps, and the cotangents of what is there after them.

        `ahead` is known of steps that these are part of. `cuts` are nests of segments, which are run again.
        """
        self.draft, self.steps, self.checkpoints, self.cuts = draft, steps, checkpoints, cuts or {}
        infinite = draft.infinite if ahead is None else ahead.infinite
        self.ahead = forward(steps, draft.buffers, active, None if ahead is None else ahead.replays, infinite)
        guarded = [buffer for buffer, place in given.items() if place.guard is not None]
        self.behind = backward(steps, self.ahead, given, guarded)
        self.cotangents = {
            buffer: given[buffer] if buffer in given else self.new_place(buffer)
            for buffer in sorted(self.behind.buffers)
        }

    def new_place(self, buffer: int) -> Place:
        """Return buffers for the cotangents of a buffer, and for their guards."""
        guard = self.draft.like(buffer) if buffer in self.behind.guarded else None
        return Place(self.draft.like(buffer), guard=guard)

    def both_ways(self, steps: Sequence[Step], counts: tuple[int, ...]) -> Both:
        """Return steps as they run forward, and those that run them backward."""
        there: list[Step] = []
        back: list[list[Step]] = []
        for step in steps:
            if isinstance(step, Region):
                forth, found = self.region(step, counts)
                there.append(forth)
            elif step in self.cuts:
                there.append(step)
                found = [Nest(step.count, tuple(self.nest_again(step, (*counts, step.count))))]
            else:
                inner, found = self.both_ways(step.steps, (*counts, step.count))
                there.append(replace(step, steps=tuple(inner)))
                found = [Nest(step.count, tuple(found))] if found else []
            back.append(found)
        return there, [step for found in reversed(back) for step in found]

    def region(self, region: Region, counts: tuple[int, ...]) -> tuple[Region, list[Step]]:
        """Return a region that stores what is needed of its carries, and the steps that run it backward."""
        if not self.behind.slots[region]:
            return region, []
        if region.stop is not None:
            raise EndlessLoopError(
                "the reverse mode of a loop that ends when a condition holds",
                where=region.origin,
                why="the number of its repetitions is not known, so there is no bound for what has to be kept of them",
                do="give it a bound: fori_loop, or while_loop(..., max_steps=...); or use forward mode",
            )
        if self.checkpoints != "all" and not region.parallel and any(count != FIXED for count in counts):
            return region, self.again(region, counts)
        needs = Needs(
            self.ahead.replay(region), self.behind.slots[region], self.behind.outputs[region],
            self.behind.results[region], self.cotangents,
            self.behind.guarded_carries[region], self.ahead.infinite_slots[region],
        )  # fmt: skip
        made = BackwardRegion(self.draft, region, counts, needs)
        return made.forward, made.steps

    def again(self, region: Region, counts: tuple[int, ...]) -> list[Step]:
        """Return the steps that run a chain in a nest again, and then backward, in each round."""
        first, depth = len(self.draft.buffers), len(counts)
        turned = readdressed(region, lambda buffer, table: (buffer, backward_table(table, counts, turned=False)))
        steps = segmented(self.draft, turned, segments_of(self.checkpoints, region, depth), depth)
        inner = Reverse(self.draft, steps, self.ahead.buffers, self.cotangents, self.checkpoints, self.ahead)
        there, back = inner.both_ways(steps, (FIXED,) * depth)
        return [*_only_into(there, first), *back]

    def nest_again(self, nest: Nest, counts: tuple[int, ...]) -> list[Step]:
        """Return the steps of a nest of segments that run a segment again, and then backward, in each round.

        They use buffers of their own, whose cotangents begin at zero in each round: in each round of the innermost nest
        of segments that they belong to, and there only, so that a place is begun in the rounds of one nest.
        """
        first, depth, scratch = len(self.draft.buffers), len(counts), self.cuts[nest]
        own = {buffer: self.draft.like(buffer) for buffer in sorted(scratch)}
        turned = all_readdressed(
            nest.steps, lambda buffer, table: (own.get(buffer, buffer), backward_table(table, counts, turned=False))
        )
        steps, cuts = cut_nests(self.draft, turned, self.checkpoints, depth, first)
        active = self.ahead.buffers | {own[buffer] for buffer in scratch & self.ahead.buffers}
        given = self.cotangents | {own[b]: self.cotangents[b] for b in sorted(scratch & self.cotangents.keys())}
        inner = Reverse(self.draft, steps, active, given, self.checkpoints, self.ahead, cuts)
        there, back = inner.both_ways(steps, (FIXED,) * depth)
        further = {buffer for used in cuts.values() for buffer in used}
        begun = [buffer for buffer in sorted(inner.cotangents) if buffer >= first and buffer not in further]
        places = [inner.cotangents[buffer] for buffer in begun]
        numbers = dict.fromkeys(
            buffer for place in places for buffer in (place.buffer, place.guard) if buffer is not None
        )
        clears = [zeros(buffer, self.draft.buffers[buffer].size) for buffer in numbers]
        return [*clears, *_only_into(there, first), *back]


def _only_into(steps: Sequence[Step], first: int) -> tuple[Step, ...]:
    """Return steps with those results only that go to buffers from a number on."""

    def kept(region: Region) -> Region | None:
        results = tuple(use for use in region.results if use.buffer >= first)
        return replace(region, results=results) if results else None

    return each_region(steps, kept)
