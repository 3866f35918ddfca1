"""Pullback and gradient: a rolled program run forward, then its regions backward, last to first.

The buffers that matter have buffers of cotangents: those of outputs are given, those of inputs are the results, all
others begin at zero and are added up by the regions that read them, before the region that wrote them is met.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.ir.program import Input, Output
from codegen.ir.readdress import buffers_read, each_region
from codegen.ir.region import Gather, Region, RolledProgram, Step
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft, fresh_name
from codegen.loops.optimise.expansion import expanded, single_lags
from codegen.stages import allowed, observed
from symad.derivatives.loops.checkpoints import Checkpoints, check_checkpoints, segmented, segments_of
from symad.derivatives.loops.checkpoints_nests import cut_nests
from symad.derivatives.loops.reverse import Reverse
from symad.derivatives.loops.reverse_region import Place, added
from symad.errors import ArgumentError


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
        fresh = fresh_name(name, [found for found, _ in inputs])
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
    found = []
    for number in active:
        place = reverse.cotangents.get(number) or Place(draft.like(number))
        found.append((Output(draft.program.inputs[number].shape, ()), place.buffer))
    return found


def _cut(draft: Draft, steps: Sequence[Step], checkpoints: Checkpoints) -> list[Step]:
    """Return steps with long chains in segments."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Region):
            found += segmented(draft, step, segments_of(checkpoints, step, 0), 0)
        else:
            found.append(step)
    return found


def _cotangents_of_outputs(draft: Draft, seeds: dict[int, Place]) -> tuple[dict[int, Place], list[Step]]:
    """Return where the cotangents of outputs are; those of one that is read again are added up, from what is given."""
    places, copies = dict(seeds), list[Step]()
    for buffer in sorted(buffers_read(draft.program.steps) & seeds.keys()):
        size = draft.buffers[buffer].size
        source = draft.number(1.0, size) if seeds[buffer].one else Gather(seeds[buffer].buffer, Affine(0, 1, size))
        places[buffer] = Place(draft.like(buffer))
        copies.append(added(source, Gather(places[buffer].buffer, Affine(0, 1, size))))
    return places, copies
