"""Pushforward: a rolled program with the tangents of its outputs, in the same loops.

Every active buffer has a buffer of tangents of the same size; a region becomes the region of its body's pushforward,
with gathers, carries and results doubled where they are active.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.program import Input, Output
from codegen.regions.region import Gather, Region, Result, RolledProgram
from symad.regions.activity import forward
from symad.regions.bodies import body_pushforward
from symad.regions.draft import Draft, Wiring, each_region, fresh_name


def pushforward(program: RolledProgram, active: Sequence[int]) -> RolledProgram:
    """Return the program of values and tangents: inputs are all inputs, then the tangents of the active ones.

    Outputs are all outputs, then their tangents, each in its array's shape and with its pattern.
    """
    draft = Draft(program)
    ahead = forward(program.steps, active)
    tangents = {buffer: draft.like(buffer) for buffer in sorted(ahead.buffers)}
    first = program.first_output
    for buffer in range(first, len(program.buffers)):
        tangents.setdefault(buffer, draft.like(buffer))
    pushed = _Pushed(draft, tangents, ahead.slots)
    draft.steps = [each_region(step, pushed.region) for step in program.steps]
    inputs = [(array, number) for number, array in enumerate(program.inputs)]
    for number in active:
        array = program.inputs[number]
        name = fresh_name(f"{array.name}_tangent", [found for found, _ in inputs])
        inputs.append((Input(name, array.shape), tangents.get(number) or draft.like(number)))
    outputs = [(array, first + number) for number, array in enumerate(program.outputs)]
    outputs += [(Output(array.shape, (), None, array.pattern), tangents[buffer]) for array, buffer in outputs]
    return draft.finish(inputs, outputs)


class _Pushed:
    """The regions of a pushforward."""

    def __init__(self, draft: Draft, tangents: dict[int, int], slots: dict[Region, tuple[int, ...]]) -> None:
        self.draft, self.tangents, self.slots = draft, tangents, slots

    def region(self, region: Region) -> Region:
        """Return the region of values and tangents."""
        active = self.slots[region]
        if not active:
            return region
        body, tangents = body_pushforward(region.body, active)
        tangent_slot = {slot: len(region.body.inputs) + k for k, slot in enumerate(active)}
        tangent_output = {output: len(region.body.outputs) + k for k, output in enumerate(tangents)}
        first = len(region.gathers)
        gathers = dict(enumerate(region.gathers))
        carries: dict[int, tuple[int | None, tuple[Gather, ...]]] = {}
        for slot, use in enumerate(region.gathers):
            if slot in tangent_slot:
                gathers[tangent_slot[slot]] = Gather(self.tangents[use.buffer], use.table)
        for slot, carry in enumerate(region.carries, first):
            carries[slot] = carry.output, carry.initial
        for slot, carry in enumerate(region.carries, first):
            if slot in tangent_slot:
                initial = tuple(map(self.initial, carry.initial))
                carries[tangent_slot[slot]] = tangent_output.get(carry.output), initial
        results: list[tuple[int | None, Result]] = [(use.output, use) for use in region.results]
        for result in region.results:
            if result.output in tangent_output:
                buffer = self.tangents[result.buffer]
                results.append((tangent_output[result.output], replace(result, buffer=buffer)))
        return Wiring(body, gathers, carries, results).region(region.count, region.origin, region.stop)

    def initial(self, use: Gather) -> Gather:
        """Return where the tangent of an initial value is: the number 0 if it is not active."""
        if use.buffer in self.tangents:
            return Gather(self.tangents[use.buffer], use.table)
        return self.draft.number(0.0)
