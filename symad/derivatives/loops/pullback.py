"""Pullback and gradient: run a rolled program forward, then its regions backward, last to first.

Active buffers have buffers of cotangents: those of outputs are given, those of inputs are the results. The others begin
at zero, and the regions that read a buffer add to them before the region that wrote it is reached.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from codegen.ir.matrix_operation import MOVING, MatrixOperation
from codegen.ir.program import Input, Output
from codegen.ir.readdress import all_readdressed, buffers_read, each_region, readdressed
from codegen.ir.region import Gather, Nest, Region, RolledProgram, Step
from codegen.ir.tables import Affine
from codegen.loops.optimise.contraction import expanded, single_lags, zeros
from codegen.loops.optimise.draft import Draft, fresh_name
from codegen.stages import allowed, observed
from symad.derivatives.loops.activity import Backward, Forward, backward, forward
from symad.derivatives.loops.checkpoints import Checkpoints, check_checkpoints, cut_nests, segmented, segments_of
from symad.derivatives.loops.matrix_rules import MatrixRule
from symad.derivatives.loops.reverse_region import FIXED, BackwardRegion, Place, added, backward_table
from symad.errors import ArgumentError

Both = tuple[list[Step], list[Step]]


class EndlessLoopError(ArgumentError):
    """Reverse mode was asked of a loop whose number of repetitions has no bound."""


class Reverse:
    """Steps, their active buffers, and the places of the cotangents."""

    draft: Draft
    steps: Sequence[Step]
    cuts: Mapping[Nest, frozenset[int]] | dict[Nest, frozenset[int]]

    def __init__(
        self,
        draft: Draft,
        steps: Sequence[Step],
        active: Collection[int],
        cotangents: dict[int, Place],
        checkpoints: Checkpoints,
        ahead: Forward | None = None,
        cuts: Mapping[Nest, frozenset[int]] | None = None,
    ) -> None:
        """Take the buffers that are active before the steps, and the cotangents of those after them.

        `ahead` is the analysis of steps that these are part of. `cuts` are nests of segments, which are run again.
        """
        self.draft, self.steps, self.checkpoints, self.cuts = draft, steps, checkpoints, cuts or {}
        infinite = draft.infinite if ahead is None else ahead.infinite
        self.ahead: Forward = forward(steps, draft.buffers, active, None if ahead is None else ahead.replays, infinite)
        guarded = [buffer for buffer, place in cotangents.items() if place.guard is not None]
        self.behind: Backward = backward(steps, self.ahead, cotangents, guarded)
        self.cotangents: dict[int, Place] = {
            buffer: cotangents[buffer] if buffer in cotangents else self.new_place(buffer)
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
                forth, steps_back = self.region(step, counts)
                there.append(forth)
            elif step in self.cuts:
                there.append(step)
                steps_back = [Nest(step.count, tuple(self.nest_again(step, (*counts, step.count))))]
            else:
                inner, steps_back = self.both_ways(step.steps, (*counts, step.count))
                there.append(replace(step, steps=tuple(inner)))
                steps_back = [Nest(step.count, tuple(steps_back))] if steps_back else []
            back.append(steps_back)
        return there, [step for steps_back in reversed(back) for step in steps_back]

    def region(self, region: Region, counts: tuple[int, ...]) -> tuple[Region, list[Step]]:
        """Return a region that stores the needed values of its carries, and the steps that run it backward."""
        if not self.behind.slots[region]:
            return region, []
        if region.matrix is not None:
            return region, self.of_matrices(region, region.matrix, counts)
        if region.stop is not None:
            raise EndlessLoopError(
                "the reverse mode of a loop that ends when a condition holds",
                where=region.origin,
                why="the number of its repetitions is not known, so there is no bound for what has to be kept of them",
                do="give it a bound: fori_loop, or while_loop(..., max_steps=...); or use forward mode",
            )
        if self.checkpoints != "all" and not region.parallel and any(count != FIXED for count in counts):
            return region, self.chain_again(region, counts)
        backward_region = BackwardRegion(self.draft, region, counts, self.behind, self.cotangents)
        return backward_region.forward, backward_region.steps

    def of_matrices(self, region: Region, matrix: MatrixOperation, counts: tuple[int, ...]) -> list[Step]:
        """Return the steps that run a matrix operation backward, as the rounds of the nests around it are."""
        turned = readdressed(region, lambda buffer, table: (buffer, backward_table(table, counts, turned=False)))
        rule = MatrixRule(self.draft, turned, matrix, nested=bool(counts))
        cotangents: dict[int, Gather] = {}
        known: list[Gather | None] = []
        for number in map(region.results.index, self.behind.results[region]):
            use = turned.results[number]
            place = self.cotangents[use.buffer]
            known.append(None if place.one or place.guard is None else Gather(place.guard, use.table))
            unit = self.draft.number(1.0, use.table.count) if place.one else None
            cotangents[number] = unit or Gather(place.buffer, use.table)
        targets: dict[int, Gather] = {}
        guards: list[Gather] = []
        for slot in self.behind.slots[region]:
            read = turned.gathers[slot]
            if (target := self.cotangents.get(read.buffer)) is not None:
                targets[slot] = Gather(target.buffer, read.table)
                guards += [] if target.guard is None else [Gather(target.guard, read.table)]
        if matrix.kind not in MOVING and None not in known:
            rule.hold_where([guard for guard in known if guard is not None])
        steps = list(rule.backward(cotangents, targets))
        return [*steps, *(step for guard in guards for step in rule.guards(known[-1], guard, ahead=False))]

    def chain_again(self, region: Region, counts: tuple[int, ...]) -> list[Step]:
        """Return the steps that run a chain in a nest again, and then backward, in each round."""
        first, depth = len(self.draft.buffers), len(counts)
        turned = readdressed(region, lambda buffer, table: (buffer, backward_table(table, counts, turned=False)))
        steps = segmented(self.draft, turned, segments_of(self.checkpoints, region, depth), depth)
        inner = Reverse(self.draft, steps, self.ahead.buffers, self.cotangents, self.checkpoints, self.ahead)
        there, back = inner.both_ways(steps, (FIXED,) * depth)
        return [*_only_into(there, first), *back]

    def nest_again(self, nest: Nest, counts: tuple[int, ...]) -> list[Step]:
        """Return the steps of a nest of segments that run a segment again, and then backward, in each round.

        They have buffers of their own, whose cotangents begin at zero in each round of the innermost nest of segments
        that they belong to, and only there.
        """
        first, depth, scratch = len(self.draft.buffers), len(counts), self.cuts[nest]
        own = {buffer: self.draft.like(buffer) for buffer in sorted(scratch)}
        turned = all_readdressed(
            nest.steps, lambda buffer, table: (own.get(buffer, buffer), backward_table(table, counts, turned=False))
        )
        steps, cuts = cut_nests(self.draft, turned, self.checkpoints, depth, first)
        active = self.ahead.buffers | {own[buffer] for buffer in scratch & self.ahead.buffers}
        cotangents = self.cotangents | {own[b]: self.cotangents[b] for b in sorted(scratch & self.cotangents.keys())}
        inner = Reverse(self.draft, steps, active, cotangents, self.checkpoints, self.ahead, cuts)
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


def pullback(
    program: RolledProgram, active: Sequence[int], *, checkpoints: Checkpoints = "all", units: bool = False
) -> RolledProgram:
    """Return the program of values and cotangents: inputs are all inputs, then the cotangents of all outputs.

    Outputs are all outputs, then the cotangents of the active inputs. EndlessLoopError for a loop without a bound.
    Where the cotangents of outputs will be `units` they are their own guards, as in `pushforward`.
    """
    draft, seeds = Draft(program), {}
    inputs, outputs = draft.arrays
    for number, array in enumerate(program.outputs, program.first_output):
        name = "cotangent" if len(program.outputs) == 1 else f"cotangent_{number - program.first_output}"
        buffer = draft.like(number)
        seeds[number] = Place(buffer, guard=buffer if units else None)
        fresh = fresh_name(name, [input_name for input_name, _ in inputs])
        inputs.append((Input(fresh, array.shape), seeds[number].buffer))
    return draft.finish(inputs, [*outputs, *_run_back(draft, active, seeds, checkpoints)], "pullback")


def gradient(
    program: RolledProgram, active: Sequence[int], value: bool = False, *, checkpoints: Checkpoints = "all"
) -> RolledProgram:
    """Return the program of the gradient of the first output, a scalar, in the active inputs.

    Inputs are all inputs; outputs are the gradients, before them the scalar itself if `value`. ArgumentError for an
    output that is no scalar, EndlessLoopError for a loop without a bound.
    """
    array, first = program.outputs[0], program.first_output
    if array.size != 1:
        raise ArgumentError(f"the gradient of an output of shape {array.shape}", do="use pullback or jacobian")
    draft = Draft(program)
    gradients = _run_back(draft, active, {first: Place(first, one=True)}, checkpoints)
    return draft.finish(draft.arrays[0], [(array, first), *gradients] if value else gradients, "gradient")


def _run_back(
    draft: Draft, active: Sequence[int], seeds: dict[int, Place], checkpoints: Checkpoints
) -> list[tuple[Output, int]]:
    """Write the steps forward and backward; return the buffers of the cotangents of the active inputs."""
    check_checkpoints(checkpoints)
    if checkpoints != "all" and not allowed("checkpoints"):
        checkpoints = "all"
    single = each_region(draft.program.steps, single_lags)
    places, copies = _cotangents_of_outputs(draft, seeds)
    draft.check(single, "writing carries of longer lags as several", draft.program.steps)
    own = expanded(single, draft.buffers)
    draft.check(own, "expanding what rounds use again", single)
    nests, cuts = cut_nests(draft, own, checkpoints, 0)
    draft.check(nests, "cutting nests into segments", own)
    steps = _cut(draft, nests, checkpoints)
    draft.check(steps, "cutting chains into segments", nests)
    observed(steps, "checkpoints", whole=lambda cut: draft.program_of(cut, *draft.arrays))
    reverse = Reverse(draft, steps, active, places, checkpoints, cuts=cuts)
    there, back = reverse.both_ways(steps, ())
    draft.steps = [*there, *copies, *back]
    gradients = []
    for number in active:
        place = reverse.cotangents.get(number) or Place(draft.like(number))
        gradients.append((Output(draft.program.inputs[number].shape, ()), place.buffer))
    return gradients


def _cut(draft: Draft, steps: Sequence[Step], checkpoints: Checkpoints) -> list[Step]:
    """Return steps with long chains in segments."""
    cut: list[Step] = []
    for step in steps:
        if isinstance(step, Region):
            cut += segmented(draft, step, segments_of(checkpoints, step, 0), 0)
        else:
            cut.append(step)
    return cut


def _cotangents_of_outputs(draft: Draft, seeds: dict[int, Place]) -> tuple[dict[int, Place], list[Step]]:
    """Return the places of the cotangents of outputs; an output that is read again gets a buffer of sums."""
    places, copies = dict(seeds), list[Step]()
    for buffer in sorted(buffers_read(draft.program.steps) & seeds.keys()):
        size = draft.buffers[buffer].size
        source = draft.number(1.0, size) if seeds[buffer].one else Gather(seeds[buffer].buffer, Affine(0, 1, size))
        places[buffer] = Place(draft.like(buffer))
        copies.append(added(source, Gather(places[buffer].buffer, Affine(0, 1, size))))
    return places, copies
