"""Activity analysis: which slots have tangents, and which outputs have cotangents that matter.

Forward: a place of a buffer is active if an active input influences it. Backward: a place has a cotangent if it is
active and influences a place that has one. Inactive places must not be multiplied by a derivative, which may be NaN.
Regions in a nest are visited until nothing changes, because one round reads what another wrote. Tangents and cotangents
that are structurally zero in some repetitions only have guards (see `body_derivatives`) in buffers of their own: where
bodies choose between branches, where a slot meets active and other places, and at the ends of carries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, KeysView, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MOVING
from codegen.ir.readdress import filled_before_use
from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Indexed, Places, Table
from symad.derivatives.loops.body_derivatives import (
    Replay,
    Replays,
    has_gates,
    outputs_depending,
    outputs_guarded,
    outputs_infinite,
    outputs_reached,
    slots_guarded,
    slots_reached,
)

Use: TypeAlias = Gather | Result


class Marks:
    """Marked places. Where the places of a table move on with the rounds of nests, it meets and marks whole buffers.

    >>> from codegen.ir.tables import Affine
    >>> marks = Marks([Buffer("input", 6)])
    >>> marks.add(Gather(0, Affine(1, 2, 2)))
    >>> [marks.meet(Gather(0, Affine(place, 0, 1))) for place in range(5)]
    [False, True, False, True, False]
    """

    changes: int

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self.of: dict[int, NDArray[np.bool_]] = {}
        self.changes = 0

    def add_all(self, buffer: int) -> None:
        """Mark all places of a buffer."""
        self.of[buffer] = np.ones(self.buffers[buffer].size, dtype=bool)

    def add(self, use: Use, within: Marks | None = None) -> None:
        """Mark the places that a table reads or writes, if they are marked in another collection too."""
        if within is not None and use.buffer not in within.of:
            return
        index = _index(use.table)
        mask = self.of.setdefault(use.buffer, np.zeros(self.buffers[use.buffer].size, dtype=bool))
        marked = mask[index] if within is None else mask[index] | ~within.of[use.buffer][index]
        if not marked.all():
            mask[index] = True if within is None else mask[index] | within.of[use.buffer][index]
            self.changes += 1

    def meet(self, use: Use) -> bool:
        """Whether some place that a table reads or writes is marked."""
        mask = self.of.get(use.buffer)
        return mask is not None and bool(mask[_index(use.table)].any())

    def meet_partly(self, use: Use) -> bool:
        """Whether some places that a table reads or writes are marked, and others are not."""
        return self.meet(use) and not self.of[use.buffer][_index(use.table)].all()


def _index(table: Table) -> slice | Places:
    """Return the places of a table as an index, all where they move on."""
    if any(table.shifts):
        return slice(None)
    if isinstance(table, Indexed):
        return table.index
    low, high = table.bounds
    return slice(low, high + 1, abs(table.step) or 1)


def forward(
    steps: Sequence[Step],
    buffers: Sequence[Buffer],
    active: Iterable[int],
    replays: Replays | None = None,
    infinite: Iterable[int] = (),
    guarded: Iterable[int] = (),
) -> Forward:
    """Return what depends on the `active` buffers.

    `infinite` buffers may hold infinite numbers before the steps. Tangents of `guarded` ones come with guards.
    """
    ahead = Forward(buffers, replays, infinite)
    for buffer in active:
        ahead.places.add_all(buffer)
    ahead.guarded.update(guarded)
    _run(steps, (ahead.infinities,), lambda: ahead.known)
    _run(steps, (ahead.visit, ahead.guards), lambda: ahead.known)
    return ahead


def infinite_buffers(program: RolledProgram) -> frozenset[int]:
    """Return the buffers of numbers that may be infinite or NaN although all inputs are finite."""
    ahead = Forward(program.buffers)
    _run(program.steps, (ahead.infinities,), lambda: len(ahead.infinite))
    return frozenset(ahead.infinite)


def dependent(steps: Sequence[Step], buffer: int) -> frozenset[int]:
    """Return a buffer and the buffers whose numbers depend on it, smoothly or not."""
    dependents, before = {buffer}, 0
    while len(dependents) > before:
        before = len(dependents)
        for region, _ in regions_of(steps):
            slots = _reading(region, dependents)
            _, outputs = _through_carries(region, slots, partial(outputs_depending, region.body))
            dependents.update(use.buffer for use in region.results if {use.output, region.stop} & outputs)
    return frozenset(dependents)


def backward(steps: Sequence[Step], ahead: Forward, seeded: Iterable[int], guarded: Iterable[int] = ()) -> Backward:
    """Return what the `seeded` buffers depend on, as far as it is active; `guarded` ones come with guards."""
    behind = Backward(ahead, {buffer for buffer in seeded if buffer in ahead.buffers}, set(guarded))
    behind.finished = filled_before_use(steps)
    _run(steps, (behind.visit, behind.guards), lambda: behind.places.changes + len(behind.guarded), turned=True)
    return behind


class Forward:
    """Active places and slots, and which buffers and slots have guards.

    `infinite` are buffers of numbers that may be infinite or NaN although all inputs are finite.
    """

    def __init__(self, buffers: Sequence[Buffer], replays: Replays | None = None, infinite: Iterable[int] = ()) -> None:
        self.places: Marks = Marks(buffers)
        self.replays: Replays = replays or Replays()
        self.infinite: set[int] = set(infinite)
        self.infinite_slots: dict[Region, frozenset[int]] = {}
        self.zero_slots: dict[Region, frozenset[int]] = {}
        self.guarded: set[int] = set()
        self.slots: dict[Region, tuple[int, ...]] = {}
        self.outputs: dict[Region, set[int]] = {}  # with tangents
        self.guarded_slots: dict[Region, tuple[int, ...]] = {}

    @property
    def buffers(self) -> KeysView[int]:
        """The active buffers."""
        return self.places.of.keys()

    @property
    def known(self) -> int:
        """The size of what is known; it only grows."""
        return self.places.changes + len(self.guarded) + len(self.infinite)

    def visit(self, region: Region) -> None:
        """Find the active slots of a region, and mark the places of their results.

        Constants that are 0 only matter where some slope may be infinite.
        """
        self.zero_slots[region] = self.reading_zeros(region) if self.infinite else frozenset()
        slots = {slot for slot, uses in enumerate(_reads(region)) if any(map(self.places.meet, uses))}
        slots, outputs = _through_carries(region, slots, lambda slots: set(outputs_reached(self.replay(region, slots))))
        self.slots[region], self.outputs[region] = tuple(sorted(slots)), outputs
        for use in region.results:
            if use.output in outputs:
                self.places.add(use)

    def replay(self, region: Region, slots: Iterable[int] | None = None) -> Replay:
        """Return the body of a region with active slots, by default those that were found."""
        slots = self.slots[region] if slots is None else slots
        return self.replays.of(region.body, slots, self.infinite_slots[region], self.zero_slots[region])

    def reading_zeros(self, region: Region) -> frozenset[int]:
        """Return the slots of a body that read constants of which some are 0."""
        constants = ((slot, use, self.places.buffers[use.buffer].values) for slot, use in enumerate(region.gathers))
        return frozenset(
            slot for slot, use, values in constants if values is not None and not values[_index(use.table)].all()
        )

    def infinities(self, region: Region) -> None:
        """Find the slots and buffers that may hold infinite numbers."""
        slots = _reading(region, self.infinite)
        slots, outputs = _through_carries(region, slots, lambda slots: outputs_infinite(region.body, slots))
        self.infinite.update(use.buffer for use in region.results if use.output in outputs)
        self.infinite_slots[region] = frozenset(slots)

    def guards(self, region: Region) -> None:
        """Find the slots and buffers with guards, once all active places are known.

        Matrix operations have no guards, except those that move numbers to or from computed places.
        """
        slots, outputs = set(self.slots[region]), self.outputs[region]
        if region.matrix is not None:
            self.guarded_slots[region] = ()
            if region.matrix.kind in MOVING and 0 in slots:
                self.guards_of_moved(region, partly=region.matrix.kind == "scatter")
            return
        reads, first = _reads(region), len(region.gathers)
        self.guarded.update(use.buffer for slot in slots for use in reads[slot] if self.places.meet_partly(use))
        guarded = _reading(region, self.guarded) & slots
        for slot, carry in enumerate(region.carries, first):
            if slot in slots and not (carry.output in outputs and all(map(self.places.meet, carry.initial))):
                guarded.add(slot)
        if guarded or has_gates(region.body):
            replay = self.replay(region, slots)
            guarded, ends = _through_carries(region, guarded, lambda slots: set(outputs_guarded(replay, sorted(slots))))
            self.guarded.update(use.buffer for use in region.results if use.output in ends)
        self.guarded_slots[region] = tuple(sorted(guarded))

    def guards_of_moved(self, region: Region, *, partly: bool) -> None:
        """Find the buffers with guards of numbers at computed places; to some of them nothing is added (`partly`)."""
        (read, _), (written,) = region.gathers, region.results
        if self.places.meet_partly(read):
            self.guarded.add(read.buffer)
        if partly or read.buffer in self.guarded:
            self.guarded.add(written.buffer)


def _run(
    steps: Sequence[Step], visits: Iterable[Callable[[Region], None]], known: Callable[[], int], turned: bool = False
) -> None:
    """Visit all regions, those of a nest until nothing more is known, and only then with the next visitor.

    Before that, a round seems to leave out places that another one fills, and would give them guards.
    """
    for step in reversed(steps) if turned else steps:
        regions = [region for region, _ in regions_of([step])]
        for visit in visits:
            before = -1
            while known() > before:
                before = known()
                for region in reversed(regions) if turned else regions:
                    visit(region)
                if isinstance(step, Region):
                    break


def _through_carries(
    region: Region, slots: set[int], outputs_of: Callable[[set[int]], set[int]]
) -> tuple[set[int], set[int]]:
    """Return slots with the carries that their outputs feed, and the outputs of all of them."""
    first = len(region.gathers)
    while True:
        outputs = outputs_of(slots)
        more = {first + number for number, carry in enumerate(region.carries) if carry.output in outputs} - slots
        if not more:
            return slots, outputs
        slots = slots | more


def _reading(region: Region, buffers: set[int]) -> set[int]:
    """Return the slots that read some buffers, at their beginning or always."""
    return {slot for slot, uses in enumerate(_reads(region)) if any(use.buffer in buffers for use in uses)}


def _reads(region: Region) -> list[Sequence[Gather]]:
    """Return the gathers of each slot, initial or permanent."""
    return [*((use,) for use in region.gathers), *(carry.initial for carry in region.carries)]


class Backward:
    """Places with cotangents and, by region, results, outputs and slots with cotangents; which of them have guards."""

    def __init__(self, ahead: Forward, buffers: set[int], guarded: set[int]) -> None:
        self.ahead, self.places = ahead, Marks(ahead.places.buffers)
        self.guarded: set[int] = guarded
        self.held = Marks(ahead.places.buffers)  # places to which something is added that has no guard
        self.finished: set[int] = set()  # buffers of which all readers have been visited when a writer is
        self.partly = set(guarded)  # buffers with places that have no cotangents, where others have
        for buffer in buffers:
            self.places.add_all(buffer)
        self.results: dict[Region, tuple[Result, ...]] = {}
        self.plain = buffers - guarded  # cotangents that are given, without guards
        self.outputs: dict[Region, tuple[int, ...]] = {}
        self.slots: dict[Region, tuple[int, ...]] = {}
        self.guarded_carries: dict[Region, frozenset[int]] = {}

    @property
    def buffers(self) -> KeysView[int]:
        """The buffers with cotangents."""
        return self.places.of.keys()

    def visit(self, region: Region) -> None:
        """Find the results, outputs and slots of a region with cotangents, and mark the places that it reads."""
        first, replay = len(region.gathers), self.ahead.replay(region)
        smooth = set(outputs_reached(replay))
        results = tuple(use for use in region.results if use.output in smooth and self.places.meet(use))
        outputs = {use.output for use in results}
        while True:
            slots = slots_reached(replay, outputs)
            more = {region.carries[slot - first].output for slot in slots if slot >= first} & smooth - outputs
            if not more:
                break
            outputs |= more
        self.outputs[region], self.slots[region] = tuple(sorted(outputs)), tuple(slots)
        self.results[region], reads = results, _reads(region)
        for slot in slots:
            for use in reads[slot]:
                self.places.add(use, within=self.ahead.places)

    def guards(self, region: Region) -> None:
        """Find the carries and buffers with guards."""
        self.guarded.difference_update([use.buffer for use in region.results if self.always_held(use.buffer)])
        if region.matrix is not None:
            self.guarded_carries[region] = frozenset()
            if region.matrix.kind in MOVING and self.slots[region]:
                self.guards_of_moved(region, partly=region.matrix.kind == "gather")
            elif all(use.buffer in self.guarded for use in self.results[region]):
                read = {region.gathers[slot].buffer for slot in self.slots[region]}
                self.guarded |= read & (self.places.of.keys() - self.plain)
            return
        first, slots, reads = len(region.gathers), self.slots[region], _reads(region)
        self.partly.update(use.buffer for use in self.results[region] if self.places.meet_partly(use))
        self.guarded.update(self.partly)
        bearers = bearers_of(region, self.results[region])
        carries = {slot for slot in slots if slot >= first and slot not in bearers.values()}  # they begin with nothing
        carries |= {slot for slot in bearers.values() if slot not in slots}  # they pass nothing on
        for use in self.results[region]:
            if use.kind == "last" and use.buffer in self.guarded:
                carries.add(bearers[use.output])
        guarded: set[int] = set()
        while carries or self.guarded or has_gates(region.body):
            guarded = self.slots_with_guards(region, carries)
            more = {slot for slot in guarded if slot >= first} - carries
            if not more:
                break
            carries |= more
        for slot in guarded:
            self.guarded.update(use.buffer for use in reads[slot] if use.buffer in self.places.of.keys() - self.plain)
        self.guarded_carries[region] = frozenset(carries)
        if region.stop is None and self.finished.issuperset(use.buffer for use in self.results[region]):
            for slot in set(range(first)).intersection(slots) - guarded:
                self.held.add(region.gathers[slot])

    def always_held(self, buffer: int) -> bool:
        """Whether every cotangent of a buffer receives a term without a guard: then none has a guard."""
        held = self.held.of.get(buffer)
        if held is None or buffer in self.partly or buffer not in self.finished:
            return False
        return bool(held[self.places.of[buffer]].all())

    def guards_of_moved(self, region: Region, *, partly: bool) -> None:
        """Find the buffers with guards of numbers at computed places; to some of them nothing is added (`partly`)."""
        (read, _), (written,) = region.gathers, region.results
        if self.places.meet_partly(written):
            self.partly.add(written.buffer)
            self.guarded.add(written.buffer)
        if (partly or written.buffer in self.guarded) and read.buffer in self.places.of.keys() - self.plain:
            self.guarded.add(read.buffer)

    def slots_with_guards(self, region: Region, carries: set[int]) -> set[int]:
        """Return the slots whose cotangents have guards; that of an output has one if all that is added up has."""
        first, outputs = len(region.gathers), dict.fromkeys(self.outputs[region], True)
        for use in self.results[region]:
            if use.kind != "last":
                outputs[use.output] &= use.buffer in self.guarded
        carried = {slot for slot in self.slots[region] if slot >= first}
        for slot in carried.union(bearers_of(region, self.results[region]).values()):
            if region.carries[slot - first].output in outputs:
                outputs[region.carries[slot - first].output] &= slot in carries
        return set(self.slots[region]) & slots_guarded(self.ahead.replay(region), outputs.items())


def bearers_of(region: Region, results: Iterable[Result]) -> dict[int, int]:
    """Return for each output whose last value counts the slot of the carry that has it."""
    slots: dict[int, int] = {}
    for slot, carry in enumerate(region.carries, len(region.gathers)):
        slots.setdefault(carry.output, slot)
    return {use.output: slots[use.output] for use in results if use.kind == "last"}
