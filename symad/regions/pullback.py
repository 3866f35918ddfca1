"""Pullback and gradient: a rolled program run forward, then its regions backward, last to first.

The buffers that matter have buffers of cotangents: those of outputs are given, those of inputs are the results, all
others begin at zero and are added up by the regions that read them, before the region that wrote them is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from codegen.program import Input, Output
from codegen.regions.region import Gather, Nest, Region, RolledProgram, Step, regions_of
from codegen.regions.table import Affine
from symad.errors import ArgumentError
from symad.regions.activity import Backward, backward, forward
from symad.regions.draft import Draft, each_region, fresh_name
from symad.regions.reverse import Place, Reverse, added, single_lags

Checkpoints: TypeAlias = Literal["all", "sqrt", "none"]


def pullback(program: RolledProgram, active: Sequence[int], *, checkpoints: Checkpoints = "all") -> RolledProgram:
    """Return the program of values and cotangents: inputs are all inputs, then the cotangents of all outputs.

    Outputs are all outputs, then the cotangents of the active inputs. ArgumentError for a loop without a bound.
    """
    draft, seeds = Draft(program), {}
    inputs = _inputs(program)
    for number, array in enumerate(program.outputs, program.first_output):
        name = "cotangent" if len(program.outputs) == 1 else f"cotangent_{number - program.first_output}"
        seeds[number] = Place(draft.like(number))
        fresh = fresh_name(name, [found for found, _ in inputs])
        inputs.append((Input(fresh, array.shape), seeds[number].buffer))
    outputs = list(zip(program.outputs, range(program.first_output, len(program.buffers)), strict=True))
    return draft.finish(inputs, [*outputs, *_run_back(draft, active, seeds)])


def gradient(
    program: RolledProgram, active: Sequence[int], value: bool = False, *, checkpoints: Checkpoints = "all"
) -> RolledProgram:
    """Return the program of the gradient of the first output, a scalar, in the active inputs.

    Inputs are all inputs; outputs are the gradients, before them the scalar itself if `value`. ArgumentError for an
    output that is no scalar, and for a loop without a bound.
    """
    array, first = program.outputs[0], program.first_output
    if array.size != 1:
        raise ArgumentError(f"the gradient of an output of shape {array.shape}", do="use pullback or jacobian")
    draft = Draft(program)
    gradients = _run_back(draft, active, {first: Place(first, one=True)})
    return draft.finish(_inputs(program), [(array, first), *gradients] if value else gradients)


def _inputs(program: RolledProgram) -> list[tuple[Input, int]]:
    return [(array, number) for number, array in enumerate(program.inputs)]


def _run_back(draft: Draft, active: Sequence[int], seeds: dict[int, Place]) -> list[tuple[Output, int]]:
    """Write the steps forward and backward; return the buffers of the cotangents of the active inputs."""
    steps = tuple(each_region(step, single_lags) for step in draft.program.steps)
    ahead = forward(steps, active)
    behind = backward(steps, ahead, seeds)
    cotangents = _cotangents(draft, steps, behind, seeds)
    reverse = Reverse(draft, ahead, behind, cotangents)
    there, back = _both_ways(reverse, steps, ())
    draft.steps = [*there, *_copies(draft, cotangents, seeds), *back]
    found = []
    for number in active:
        place = cotangents.get(number) or Place(draft.like(number))
        found.append((Output(draft.program.inputs[number].shape, ()), place.buffer))
    return found


def _cotangents(draft: Draft, steps: Sequence[Step], behind: Backward, seeds: dict[int, Place]) -> dict[int, Place]:
    """Return where the cotangents of buffers are; those of an output that is read again are added up elsewhere."""
    read: set[int] = set()
    for region, _ in regions_of(steps):
        first = len(region.gathers)
        for slot in behind.slots[region]:
            uses = (region.gathers[slot],) if slot < first else region.carries[slot - first].initial
            read.update(use.buffer for use in uses)
    return {
        buffer: seeds[buffer] if buffer in seeds and buffer not in read else Place(draft.like(buffer))
        for buffer in sorted(behind.buffers)
    }


def _copies(draft: Draft, cotangents: dict[int, Place], seeds: dict[int, Place]) -> list[Step]:
    """Add the given cotangents of outputs that are read again to what is added up for them."""
    made: list[Step] = []
    for buffer, seed in seeds.items():
        place = cotangents.get(buffer, seed)
        if place != seed:
            size = draft.buffers[buffer].size
            source = draft.number(1.0, size) if seed.one else Gather(seed.buffer, Affine(0, 1, size))
            made.append(added(source, Gather(place.buffer, Affine(0, 1, size))))
    return made


def _both_ways(reverse: Reverse, steps: Sequence[Step], counts: tuple[int, ...]) -> tuple[list[Step], list[Step]]:
    """Return steps as they run forward, and those that run them backward."""
    there: list[Step] = []
    back: list[list[Step]] = []
    for step in steps:
        if isinstance(step, Region):
            forth, found = reverse.steps(step, counts)
            there.append(forth)
            back.append(found)
        else:
            inner, found = _both_ways(reverse, step.steps, (*counts, step.count))
            there.append(replace(step, steps=tuple(inner)))
            back.append([Nest(step.count, tuple(found))] if found else [])
    return there, [step for found in reversed(back) for step in found]
