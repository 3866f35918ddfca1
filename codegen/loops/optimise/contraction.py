"""Array contraction: of a buffer with places for every round, keep a window of the last rounds.

Values carried from round to round have their own places in each round, because derivatives read all of them. In a
program that is only run, a round reads the results of the few rounds before it: a window of places, which moves on with
the rounds. Here the window stays, and the numbers in it move at the end of each round. New places in it are set to zero
first, unless the round stores to all of them. The numbers computed are the same to the last bit.

Array expansion is the inverse: each round of a nest gets its own places in a workspace. Such a workspace comes from
checkpoints: the reverse pass through its nest needs values of a round that later rounds have overwritten. Likewise a
carry of a long lag, whose slot holds one value after another, becomes several carries with a slot each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import prod

import numpy as np
import sympy as sp

from codegen.ir.body_parts import body_part, copy, row_of
from codegen.ir.program import Output, Program
from codegen.ir.readdress import all_places, all_readdressed, moved, readdressed, shift_at
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram, Step, bounds_in
from codegen.ir.strictness import checked
from codegen.ir.tables import Affine, Places, Table, distinct
from codegen.records import dataclass

FEWEST_ROUNDS = 3
SAVED = 2**15  # numbers: below, moving the window costs more than it saves, as the buffer stays in the caches
LARGEST = 2**22  # places that are looked at one by one to find out whether a round stores to them all
ZERO = Program([type(sp.S.Zero)], [()], {0: sp.S.Zero}, (), (Output((), (0,)),), "zero")


def contracted(program: RolledProgram, saved: int = SAVED) -> RolledProgram:
    """Return a program with the same outputs and less memory; windows save at least `saved` numbers each.

    >>> from codegen.ir.program import Input
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> def copied(source, first, target):
    ...     return copy(Gather(source, Affine(first, 1, 4)), target, Affine(0, 1, 4))
    >>> square = Result(0, 1, Affine(4, 1, 4, (4,)), "store")
    >>> step = Region(program_from_sympy([x], [x**2]), 4, (Gather(1, Affine(0, 1, 4, (4,))),), (square,))
    >>> steps = (copied(0, 0, 1), Nest(10, (step,)), copied(1, 40, 2))
    >>> buffers = (Buffer("input", 4), Buffer("workspace", 44), Buffer("output", 4))
    >>> contracted(RolledProgram((Input("x", (4,)),), (Output((4,), ()),), buffers, steps), 1).buffers[1].size
    8
    """
    steps, buffers = program.steps, list(program.buffers)
    uses = _large(uses_of(steps), buffers, saved)
    for number in range(sum(isinstance(visit.step, Nest) for visit in visits(steps))):  # outer ones before inner ones
        windows: dict[int, Window] = {}
        for buffer, buffer_uses in uses.items():
            window = window_of(buffer_uses, number)
            if window is not None and buffers[buffer].size - window.size >= saved:
                windows[buffer] = window
                buffers[buffer] = Buffer("workspace", window.size)
        if windows:
            begins = [zeros(buffer, len(w.old), w.old.start) for buffer, w in windows.items() if w.begin]
            steps = (*begins, *_Mover(number, windows).steps(steps))
            uses = _large(uses_of(steps), buffers, saved)
    smaller = program if steps is program.steps else replace(program, steps=steps, buffers=tuple(buffers))
    return checked(smaller, "keeping windows of buffers", program)


def _large(uses: dict[int, list[VisitedUse]], buffers: Sequence[Buffer], saved: int) -> dict[int, list[VisitedUse]]:
    """Return the uses of the workspaces of more than `saved` numbers."""
    large = {k for k, buffer in enumerate(buffers) if buffer.kind == "workspace" and buffer.size > saved}
    return {k: buffer_uses for k, buffer_uses in uses.items() if k in large}


@dataclass(frozen=True)
class Visit:
    """A step, with the nests around it: their numbers in the order in which they begin, and their counts."""

    step: Step
    nests: tuple[int, ...]
    counts: tuple[int, ...]
    number: int = -1  # of a nest


def visits(steps: Sequence[Step]) -> Iterator[Visit]:
    """Return every step in order, a nest before the steps in it."""
    stack = [Visit(step, (), ()) for step in reversed(steps)]
    nests = 0
    while stack:
        visit = stack.pop()
        step = visit.step
        if isinstance(step, Nest):
            visit, nests = replace(visit, number=nests), nests + 1
            around, counts = (*visit.nests, visit.number), (*visit.counts, step.count)
            stack += [Visit(inner, around, counts) for inner in reversed(step.steps)]
        yield visit


@dataclass(frozen=True)
class VisitedUse:
    """A use of a buffer by the region of a visit, the `at`-th; a store is sure if it is carried out in any case."""

    visit: Visit
    at: int
    kind: str
    table: Table
    sure: bool = True

    def places(self, level: int) -> Places:
        return all_places(self.table, self.counts(level))

    def counts(self, level: int) -> tuple[int, ...]:
        """Return the counts of the nests around it, 1 for those down to a level; so are places and bounds."""
        return tuple(1 if k <= level else count for k, count in enumerate(self.visit.counts))

    def bounds(self, level: int) -> tuple[int, int]:
        return bounds_in(self.table, self.counts(level))

    def shift(self, level: int) -> int:
        return shift_at(self.table, level)


def uses_of(steps: Sequence[Step]) -> dict[int, list[VisitedUse]]:
    uses: dict[int, list[VisitedUse]] = {}
    for at, visit in enumerate(visits(steps)):
        region = visit.step
        if isinstance(region, Region):
            for use in region.reads:
                uses.setdefault(use.buffer, []).append(VisitedUse(visit, at, "read", use.table))
            zero = is_zeros(region)
            for result in region.results:
                sure, kind = region.stop is None or result.kind == "last", "zero" if zero else result.kind
                uses.setdefault(result.buffer, []).append(VisitedUse(visit, at, kind, result.table, sure))
    return uses


@dataclass(frozen=True)
class Window:
    """The places `lowest` to `lowest + size - 1` of a buffer in the first round of a nest; they move on by `step`."""

    lowest: int
    size: int
    step: int
    rounds: int
    clear: bool = True
    begin: bool = False  # whether the first round reads places that nothing has written
    unread: bool = False  # whether some sums are read by nobody

    @property
    def left(self) -> int:
        """Number of places that the windows of a round and of the next one share."""
        return max(self.size - abs(self.step), 0)

    @property
    def old(self) -> range:
        """The places that are in the window of the round before too."""
        return range(self.left) if self.step > 0 else range(self.size - self.left, self.size)

    @property
    def new(self) -> range:
        return range(self.left, self.size) if self.step > 0 else range(self.size - self.left)

    @property
    def end(self) -> tuple[int, range]:
        """The first place of the window after the nest, and the numbers that are still there."""
        moves = self.rounds if self.left else self.rounds - 1
        return self.lowest + self.step * moves, self.old if self.left else range(self.size)

    def clears(self, buffer: int) -> list[Region]:
        """Return the regions before a round."""
        return [zeros(buffer, len(self.new), self.new.start)] if self.clear else []

    def copies(self, buffer: int) -> list[Region]:
        """Return the regions after a round: numbers move to their places in the next window, not over each other.

        Zeros go over sums that nobody reads: copies alone would seem to overwrite sums that are still to be read.
        """
        width, regions = abs(self.step), list[Region]()
        for first in range(0, self.left, width):
            count = min(width, self.left - first)
            start = first if self.step > 0 else self.size - first - count
            regions += [zeros(buffer, count, start)] if self.unread else []
            regions.append(copy(Gather(buffer, Affine(start + self.step, 1, count)), buffer, Affine(start, 1, count)))
        return regions


def zeros(buffer: int, count: int, first: int = 0) -> Region:
    return Region(ZERO, count, (), (Result(0, buffer, Affine(first, 1, count), "store"),), origin="zeros")


def is_zeros(region: Region) -> bool:
    """Return whether a region only sets places to zero."""
    body = region.body
    zero = (use.kind == "store" and body.atoms.get(row_of(body, use.output)) is sp.S.Zero for use in region.results)
    return region.parallel and all(zero)


def wide_zeros(
    region: Region, windows: Mapping[int, Window], counts: tuple[int, ...] = ()
) -> tuple[list[Region], list[int]]:
    """Return a region of zeros before a nest without the zeros beyond the first windows; the buffers of the latter."""
    wide = []
    for use in region.results:
        if use.buffer in windows:
            window = windows[use.buffer]
            low, high = bounds_in(use.table, counts)
            if low - window.lowest < window.old.start or window.old.stop <= high - window.lowest:
                wide.append(use)
    rest = tuple(use for use in region.results if use not in wide)
    return [replace(region, results=rest)] if rest else [], [use.buffer for use in wide]


def window_of(uses: Sequence[VisitedUse], number: int) -> Window | None:
    """Return a window for all uses of a buffer in a nest, or None."""
    inside = [use for use in uses if number in use.visit.nests]
    if not inside:
        return None
    level, first = inside[0].visit.nests.index(number), inside[0].at
    around, rounds, step = inside[0].visit.nests[:level], inside[0].visit.counts[level], inside[0].shift(level)
    same = all(use.shift(level) == step for use in inside) and all(use.visit.nests[:level] == around for use in uses)
    if not same or not step or rounds < FEWEST_ROUNDS or any(use.shift(k) for use in uses for k in range(level)):
        return None
    bounds = [use.bounds(level) for use in inside]
    lowest, highest = min(low for low, _ in bounds), max(high for _, high in bounds)
    window = Window(lowest, -(-(highest + 1 - lowest) // abs(step)) * abs(step), step, rounds)
    outside = [use for use in uses if number not in use.visit.nests]
    before, after = ([use for use in outside if (use.at < first) == early] for early in (True, False))
    last, still = window.end
    ahead = [use for use in before if use.kind != "zero" or not _covers(use, inside, level)]
    if not (_lie(ahead, level, lowest, window.old) and _lie(after, level, last, still)):
        return None
    if level and not _stored(before, level, lowest, window.old):  # a round of an outer nest reads an earlier round's
        return None
    old = window.old
    read = [use.bounds(level) for use in inside if use.kind == "read"]
    early = any(low - lowest < old.stop and old.start <= high - lowest for low, high in read)
    begin = early and not _stored(before, level, lowest, old)
    clear, unread = not _stored(inside, level, lowest, window.new), _has_unread_sums(inside, level, step)
    return replace(window, clear=clear, begin=begin, unread=unread)


def _has_unread_sums(inside: Sequence[VisitedUse], level: int, step: int) -> bool:
    """Return whether something is added to places that are not read in this round or later."""
    added, read = ([use for use in inside if use.kind == kind] for kind in ("add", "read"))
    if not added or sum(prod(use.counts(level)) * use.table.count for use in (*added, *read)) > LARGEST:
        return bool(added)
    if not read:
        return True
    sums, seen = (np.concatenate([use.places(level) for use in uses]) % abs(step) for uses in (added, read))
    return not bool(np.isin(sums, seen).all())


def _covers(use: VisitedUse, others: Sequence[VisitedUse], level: int) -> bool:
    """Return whether a use covers all places that others use in all rounds of a nest."""
    low, high = use.bounds(level - 1)
    return all(low <= first and last <= high for first, last in (other.bounds(level - 1) for other in others))


def _lie(uses: Sequence[VisitedUse], level: int, first: int, places: range) -> bool:
    """Return whether uses are within some places, counted from `first`."""
    bounds = [use.bounds(level - 1) for use in uses]
    return all(places.start <= low - first and high - first < places.stop for low, high in bounds)


def _stored(uses: Sequence[VisitedUse], level: int, first: int, places: range) -> bool:
    """Return whether a round stores to all of some places, counted from `first`."""
    if not places:
        return True
    stores = [use for use in uses if use.kind in ("store", "last", "zero") and use.sure]
    if not stores or sum(prod(use.counts(level)) * use.table.count for use in stores) > LARGEST:
        return False
    stored = distinct(np.concatenate([use.places(level) for use in stores])) - first
    return int(((places.start <= stored) & (stored < places.stop)).sum()) == len(places)


class _Mover:
    """Rewrites steps in order, so that they use windows: before the nest, in it, and after it."""

    def __init__(self, number: int, windows: dict[int, Window]) -> None:
        self.number, self.windows = number, windows
        self.begun, self.level, self.after = 0, -1, False  # nests met, the level of the nest while in it

    def steps(self, steps: Sequence[Step], counts: tuple[int, ...] = ()) -> tuple[Step, ...]:
        """Return steps within nests of `counts` rounds."""
        moved_steps: list[Step] = []
        for step in steps:
            if isinstance(step, Region):
                moved_steps += self.outside(step, counts) if self.level < 0 else [readdressed(step, self.use)]
                continue
            is_nest = self.begun == self.number
            self.begun += 1
            self.level = len(counts) if is_nest else self.level
            inner = self.steps(step.steps, (*counts, step.count))
            if is_nest:
                windows = self.windows.items()
                clears = [region for buffer, window in windows for region in window.clears(buffer)]
                copies = [region for buffer, window in windows for region in window.copies(buffer)]
                inner = (*clears, *inner, *copies)
                self.level, self.after = -1, True
            moved_steps.append(replace(step, steps=inner))
        return tuple(moved_steps)

    def outside(self, region: Region, counts: tuple[int, ...]) -> list[Region]:
        """Return a region outside of the nest; zeros of all places, before it, are those of the first window."""
        if self.after or not is_zeros(region):
            return [readdressed(region, self.use)]
        rest, wide = wide_zeros(region, self.windows, counts)
        return [
            *(readdressed(part, self.use) for part in rest),
            *(zeros(buffer, self.windows[buffer].size) for buffer in wide),
        ]

    def use(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return a table of a buffer within its window, if it has one."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, table
        first = window.end[0] if self.after else window.lowest
        shifts = tuple(0 if k == self.level else shift for k, shift in enumerate(table.shifts))
        return buffer, moved(table, -first, shifts=shifts)


def expanded(steps: Sequence[Step], buffers: list[Buffer]) -> tuple[Step, ...]:
    """Return steps in which no place is stored twice; buffers grow for that, in their list.

    >>> from codegen.loops.optimise.contraction import zeros
    >>> from codegen.ir.region import Nest
    >>> buffers = [Buffer("workspace", 4)]
    >>> (nest,) = expanded([Nest(10, (zeros(0, 4),))], buffers)
    >>> nest.steps[0].results[0].table, buffers[0].size
    (Affine(start=0, step=1, count=4, shifts=(4,)), 40)
    """
    further: dict[int, tuple[int, ...]] = {}
    for buffer, uses in sorted(uses_of(steps).items()):
        size, shifts = _rounds_apart(buffers[buffer].size, uses)
        if any(shifts):
            further[buffer], buffers[buffer] = shifts, Buffer("workspace", size)
    if not further:
        return tuple(steps)

    def change(buffer: int, table: Table) -> tuple[int, Table]:
        pairs = zip_longest(table.shifts, further.get(buffer, ()), fillvalue=0)
        return buffer, moved(table, shifts=tuple(shift + more for shift, more in pairs))

    return all_readdressed(steps, change)


def _rounds_apart(size: int, uses: Sequence[VisitedUse]) -> tuple[int, tuple[int, ...]]:
    """Return the size of a buffer with places for every round, and the distances of rounds.

    The rounds are those of the nests around all uses of the buffer in which the same places are stored again.
    """
    first = uses[0].visit
    depth = max(k for k in range(len(first.nests) + 1) if all(use.visit.nests[:k] == first.nests[:k] for use in uses))
    stores = [use.table for use in uses if use.kind in ("store", "last", "zero")]
    shifts = [0] * depth
    for level in reversed(range(depth)):
        if first.counts[level] > 1 and any(shift_at(table, level) == 0 for table in stores):
            shifts[level] = size
            size *= first.counts[level]
    return size, tuple(shifts)


def single_lags(region: Region) -> Region:
    """Return a region with carries of lag 1: one of lag 3 becomes three, which pass their slots on to each other."""
    if all(carry.lag == 1 for carry in region.carries):
        return region
    first, inputs = len(region.gathers), len(region.body.inputs)
    outputs: list[int | None] = list(range(len(region.body.outputs)))
    carries: list[Carry] = []
    passing: list[Carry] = []
    for carry in region.carries:
        output = carry.output
        for initial in reversed(carry.initial[1:]):
            outputs.append(~(inputs + len(passing)))
            passing.append(Carry(output, (initial,)))
            output = len(outputs) - 1
        carries.append(Carry(output, carry.initial[:1]))
    slots = range(first + len(carries))
    body = body_part(region.body, slots, outputs, further=len(passing))
    return replace(region, body=body, carries=(*carries, *passing))
