"""Activity: which slots of which regions have tangents, and which outputs have cotangents that matter.

Forward: a buffer is active if something that depends on an active input is written to it. Backward: a buffer has a
cotangent if it is active and something that it goes into has one. Regions in a nest are looked at until nothing
changes, since one round reads what another wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from codegen.regions.region import Nest, Region, Step
from symad.regions.bodies import outputs_reached, slots_reached


@dataclass(frozen=True)
class Forward:
    """The active buffers, and for each region its active slots."""

    buffers: frozenset[int]
    slots: dict[Region, tuple[int, ...]]


@dataclass(frozen=True)
class Backward:
    """The buffers with cotangents; for each region the outputs with cotangents, and the slots to which these lead."""

    buffers: frozenset[int]
    outputs: dict[Region, tuple[int, ...]]
    slots: dict[Region, tuple[int, ...]]


def forward(steps: Sequence[Step], active: Iterable[int]) -> Forward:
    """Return what depends on some buffers."""
    found = _Forward(set(active))
    found.run(steps)
    return Forward(frozenset(found.buffers), found.slots)


def backward(steps: Sequence[Step], ahead: Forward, seeded: Iterable[int]) -> Backward:
    """Return what some buffers depend on, as far as it is active."""
    found = _Backward(ahead, {buffer for buffer in seeded if buffer in ahead.buffers})
    found.run(steps)
    return Backward(frozenset(found.buffers), found.outputs, found.slots)


class _Forward:
    def __init__(self, buffers: set[int]) -> None:
        self.buffers = buffers
        self.slots: dict[Region, tuple[int, ...]] = {}

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Region):
                self.visit(step)
            else:
                before = -1
                while len(self.buffers) > before:
                    before = len(self.buffers)
                    self.run(step.steps)

    def visit(self, region: Region) -> None:
        first = len(region.gathers)
        slots = {slot for slot, use in enumerate(region.gathers) if use.buffer in self.buffers}
        for number, carry in enumerate(region.carries):
            if any(use.buffer in self.buffers for use in carry.initial):
                slots.add(first + number)
        while True:
            outputs = set(outputs_reached(region.body, sorted(slots)))
            more = {first + number for number, carry in enumerate(region.carries) if carry.output in outputs} - slots
            if not more:
                break
            slots |= more
        self.slots[region] = tuple(sorted(slots))
        self.buffers.update(use.buffer for use in region.results if use.output in outputs)


class _Backward:
    def __init__(self, ahead: Forward, buffers: set[int]) -> None:
        self.ahead, self.buffers = ahead, buffers
        self.outputs: dict[Region, tuple[int, ...]] = {}
        self.slots: dict[Region, tuple[int, ...]] = {}

    def run(self, steps: Sequence[Step]) -> None:
        for step in reversed(steps):
            if isinstance(step, Nest):
                before = -1
                while len(self.buffers) > before:
                    before = len(self.buffers)
                    self.run(step.steps)
            else:
                self.visit(step)

    def visit(self, region: Region) -> None:
        first, active = len(region.gathers), self.ahead.slots[region]
        smooth = set(outputs_reached(region.body, active))
        outputs = {use.output for use in region.results if use.buffer in self.buffers} & smooth
        while True:
            slots = slots_reached(region.body, active, sorted(outputs))
            more = {region.carries[slot - first].output for slot in slots if slot >= first} & smooth - outputs
            if not more:
                break
            outputs |= more
        self.outputs[region], self.slots[region] = tuple(sorted(outputs)), tuple(slots)
        for slot in slots:
            reads = [region.gathers[slot]] if slot < first else region.carries[slot - first].initial
            self.buffers.update(use.buffer for use in reads if use.buffer in self.ahead.buffers)
