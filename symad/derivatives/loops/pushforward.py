"""Pushforward: a rolled program with the tangents of its outputs, in the same loops.

Every active buffer has a buffer of tangents of the same size. A region gets the pushforward of its body, with gathers,
carries and results doubled where they are active.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from codegen.ir.body_parts import Wiring
from codegen.ir.matrix_operation import CONSTANT, MOVING, MatrixOperation
from codegen.ir.program import Input, Output
from codegen.ir.region import Gather, Nest, Region, Result, RolledProgram, Step
from codegen.loops.optimise.draft import Draft, fresh_name
from symad.derivatives.loops.activity import Forward, forward
from symad.derivatives.loops.body_derivatives import body_pushforward
from symad.derivatives.loops.matrix_rules import MatrixRule


def pushforward(program: RolledProgram, active: Sequence[int], *, units: bool = False) -> RolledProgram:
    """Return the program of values and tangents: inputs are all inputs, then the tangents of the active ones.

    Outputs are all outputs, then their tangents, each in its array's shape and with its pattern. Tangents that will be
    `units` are their own guards: nothing depends on the places of their zeros.
    """
    draft = Draft(program)
    ahead = forward(program.steps, program.buffers, active, infinite=draft.infinite, guarded=active if units else ())
    tangents = {buffer: draft.like(buffer) for buffer in sorted(ahead.buffers)}
    first = program.first_output
    for buffer in range(first, len(program.buffers)):
        tangents.setdefault(buffer, draft.like(buffer))
    own = set(active) if units else set[int]()
    guards = {buffer: tangents[buffer] if buffer in own else draft.like(buffer) for buffer in sorted(ahead.guarded)}
    pushed = _Pushed(draft, ahead, tangents, guards)
    draft.steps = [pushed_step for step in program.steps for pushed_step in pushed.steps(step)]
    inputs, outputs = draft.arrays
    for number in active:
        array = program.inputs[number]
        name = fresh_name(f"{array.name}_tangent", [input_name for input_name, _ in inputs])
        inputs.append((Input(name, array.shape), tangents.get(number) or draft.like(number)))
    outputs += [(Output(array.shape, (), None, array.pattern), tangents[buffer]) for array, buffer in outputs]
    return draft.finish(inputs, outputs, "pushforward")


class _Pushed:
    """The regions of a pushforward."""

    def __init__(self, draft: Draft, ahead: Forward, tangents: dict[int, int], guards: dict[int, int]) -> None:
        self.draft, self.ahead, self.tangents, self.guards = draft, ahead, tangents, guards

    def steps(self, step: Step, nested: bool = False) -> Sequence[Step]:
        """Return the steps of values and tangents."""
        if isinstance(step, Region) and step.matrix is not None:
            return [step, *self.of_matrices(step, step.matrix, nested)]
        if isinstance(step, Nest):
            inner = (pushed_step for inner in step.steps for pushed_step in self.steps(inner, nested=True))
            return [replace(step, steps=tuple(inner))]
        return [self.region(step)]

    def of_matrices(self, region: Region, matrix: MatrixOperation, nested: bool) -> list[Step]:
        """Return the steps of the tangents of a matrix operation."""
        active = self.ahead.slots[region]
        if not active or matrix.kind in CONSTANT or (matrix.kind in MOVING and 0 not in active):
            return []
        uses = [region.gathers[slot] for slot in active]
        tangents = {slot: Gather(self.tangents[use.buffer], use.table) for slot, use in zip(active, uses, strict=True)}
        targets = {
            k: Gather(self.tangents[use.buffer], use.table)
            for k, use in enumerate(region.results)
            if use.buffer in self.tangents
        }
        rule = MatrixRule(self.draft, region, matrix, nested)
        steps = list(rule.forward(tangents, targets))
        moving = region.results[:1] if matrix.kind == "log_determinant" else region.results  # a sign does not move
        buffer, places = uses[0].buffer, uses[0].table
        known = Gather(self.guards[buffer], places) if buffer in self.guards else None
        guards = [Gather(self.guards[use.buffer], use.table) for use in moving if use.buffer in self.guards]
        return [*steps, *(step for guard in guards for step in rule.guards(known, guard, ahead=True))]

    def region(self, region: Region) -> Region:
        """Return the region of values and tangents."""
        active, first = self.ahead.slots[region], len(region.gathers)
        if not active:
            return self.zeros(region)
        ends = {use.output for use in region.results if use.kind == "last" and use.buffer in self.guards}
        held = {slot for slot, carry in enumerate(region.carries, first) if carry.output in ends and slot in active}
        guarded = sorted(held.union(self.ahead.guarded_slots[region]))  # a last value is one that is carried
        asked = {use.output for use in region.results if use.buffer in self.guards}
        asked |= {region.carries[slot - first].output for slot in guarded if slot >= first}
        body, tangents = body_pushforward(self.ahead.replay(region), guarded, sorted(asked))
        slots = len(region.body.inputs)
        tangent_slot, guard_slot = _numbered(active, slots), _numbered(guarded, slots + len(active))
        tangent_output = _numbered(tangents, len(region.body.outputs))
        guard_output = _numbered(sorted(asked), len(region.body.outputs) + len(tangents))
        gathers = dict(enumerate(region.gathers))
        for slot, use in enumerate(region.gathers):
            if slot in tangent_slot:
                gathers[tangent_slot[slot]] = Gather(self.tangents[use.buffer], use.table)
            if slot in guard_slot:
                gathers[guard_slot[slot]] = Gather(self.guards[use.buffer], use.table)
        carries: dict[int, tuple[int | None, tuple[Gather, ...]]] = {
            slot: (carry.output, carry.initial) for slot, carry in enumerate(region.carries, first)
        }
        for slot, carry in enumerate(region.carries, first):
            if slot in tangent_slot:
                carries[tangent_slot[slot]] = tangent_output.get(carry.output), tuple(map(self.initial, carry.initial))
            if slot in guard_slot:
                carries[guard_slot[slot]] = guard_output[carry.output], tuple(map(self.initial_guard, carry.initial))
        results: list[tuple[int | None, Result]] = [(use.output, use) for use in region.results]
        for result in region.results:
            if result.output in tangent_output:
                moved = replace(result, buffer=self.tangents[result.buffer])
                results.append((tangent_output[result.output], moved))
                if result.buffer in self.guards:
                    moved = replace(result, buffer=self.guards[result.buffer])
                    results.append((guard_output[result.output], moved))
        return Wiring(body, gathers, carries, results).region(region.count, region.origin, region.stop)

    def zeros(self, region: Region) -> Region:
        """Return a region without active slots; where it sets sums to zero that begin anew, so do their tangents."""
        if region.gathers or region.carries:
            return region
        stores = [use for use in region.results if use.kind == "store"]
        further = [
            replace(use, buffer=places[use.buffer])
            for places in (self.tangents, {b: g for b, g in self.guards.items() if g != self.tangents.get(b)})
            for use in stores
            if use.buffer in places
        ]
        if not further:
            return region
        results = [(use.output, use) for use in region.results] + [(None, use) for use in further]
        return Wiring(region.body, {}, {}, results).region(region.count, region.origin, region.stop)

    def initial(self, use: Gather) -> Gather:
        """Return the tangent of an initial value: the number 0 if it is not active."""
        return (
            Gather(self.tangents[use.buffer], use.table) if use.buffer in self.ahead.buffers else self.draft.number(0.0)
        )

    def initial_guard(self, use: Gather) -> Gather:
        """Return the guard of that tangent."""
        if use.buffer in self.guards:
            return Gather(self.guards[use.buffer], use.table)
        return self.draft.number(1.0 if self.ahead.places.meet(use) else 0.0)


def _numbered(items: Sequence[int], first: int) -> dict[int, int]:
    return {item: number for number, item in enumerate(items, first)}
