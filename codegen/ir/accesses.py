"""Check every read and write of a buffer in execution order.

The value of a place begins with zero at the call, and again with each store; adds continue it. No numbers are computed
here: the places and times of accesses follow from the tables and from the order of the steps.

The accesses of a buffer are sorted by place, time and kind. A place is stored once or added to, and read only after
that (`check_accesses`): cotangents that continue those of another round break this. A place that begins again in the
rounds of a nest is read in the round in which it began (`check_rounds`): a reverse pass that reads values of an earlier
round, which a later one has overwritten, breaks this.

Of a buffer with many accesses only some places are checked, each in all its accesses: no correct program is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NoReturn

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import InvariantError
from codegen.ir.readdress import shift_at
from codegen.ir.region import Region, Result, RolledProgram, Step, buffer_names
from codegen.ir.tables import Affine, Places, Table, distinct, unique
from codegen.records import dataclass

Fail = Callable[[str, str, str], NoReturn]

MOVE, READ, ADD, ZERO, STORE, COPY, PERHAPS, AGAIN, COPY_AGAIN = range(9)  # MOVE is read by a copy, AGAIN is in a nest;
KINDS = 16  # those from ZERO on begin a place again
ONCE = "a place is stored once"
EITHER = "a place is stored or added to"
BEFORE = "a place is read only after it is written"
STORES = (STORE, COPY, PERHAPS)  # outside of nests, or of a loop that may stop before
FORBIDDEN = {  # pairs of accesses that may not follow each other at one place, and why
    **{(read, ADD): (BEFORE, "{second} adds to what {first} has read") for read in (MOVE, READ)},
    **{
        (read, store): (BEFORE, "{second} stores to what {first} has read") for read in (MOVE, READ) for store in STORES
    },
    **{(ADD, store): (EITHER, "{first} adds to it, {second} stores to it") for store in (*STORES, AGAIN, COPY_AGAIN)},
    **{(store, ADD): (EITHER, "{first} stores to it, {second} adds to it") for store in (STORE, PERHAPS, AGAIN)},
    **{
        (first, store): (ONCE, "{first} and {second} store to it")
        for first in (*STORES, AGAIN, COPY_AGAIN)
        for store in STORES
    },
}
WRONG = np.zeros((KINDS, KINDS), dtype=bool)
WRONG[tuple(zip(*FORBIDDEN, strict=True))] = True
SORTED = 1 << 20  # accesses of a buffer that are all checked; of more, those of some places are
MOST, LONGEST = 1 << 26, 1 << 22  # accesses, and rounds, beyond which a buffer is not checked
GOLDEN = (5**0.5 - 1) / 2
BLOCK = 1 << 20  # accesses that are searched at once


def check_accesses(program: RolledProgram, fail: Fail) -> None:
    """Fail where a place is not stored once or added to, or is read before that."""
    for timeline in _timelines(program, lambda uses: not _is_plain(uses)):
        before, behind = timeline.kind[:-1], timeline.kind[1:]
        same_place = timeline.place[1:] == timeline.place[:-1]
        same_time = same_place & (timeline.time[1:] == timeline.time[:-1])
        at_once = (behind > READ) & ~((before == ADD) & (behind == ADD))
        wrong = same_place & (WRONG[before, behind] | (same_time & at_once))
        if wrong.any():
            _explain(timeline, int(np.argmax(wrong)), fail)
        begins = np.nonzero(np.concatenate([[True], ~same_place]))[0]
        at, never = np.arange(len(timeline.kind)), len(timeline.kind)
        read = np.minimum.reduceat(np.where(timeline.kind == READ, at, never), begins)
        written = np.minimum.reduceat(np.where(timeline.kind > READ, at, never), begins)
        early = (read < written) & (written < never)
        if early.any():
            place = int(timeline.place[begins][np.argmax(early)])
            fail(BEFORE, f"buffer {timeline.buffer}, place {place}", "it is read first and written later")


def _explain(timeline: _Timeline, at: int, fail: Fail) -> None:
    """Fail with the regions of two accesses, one after the other."""
    kinds = timeline.kind[at : at + 2].tolist()
    first, second = (f"region {timeline.uses[number].number}" for number in timeline.use[at : at + 2])
    where = f"buffer {timeline.buffer}, place {timeline.place[at]}"
    if timeline.time[at] != timeline.time[at + 1]:
        invariant, why = FORBIDDEN[kinds[0], kinds[1]]
        fail(invariant, where, why.format(first=first, second=second))
    if kinds[0] <= READ:
        fail(BEFORE, where, f"{first} reads it and writes to it")
    if ADD in kinds:
        fail(EITHER, where, f"{first} stores and adds to it")
    fail(ONCE, where, f"{first} stores to it twice")


def _is_plain(uses: Sequence[_BufferUse]) -> bool:
    """Whether uses are clearly right: outside of nests, all sums or one store, and reads behind them."""
    writes = [use for use in uses if use.kind > READ]
    if any(use.nests for use in uses):
        return False
    last = max((use.first for use in writes), default=-1)
    if any(use.kind <= READ and use.first <= last for use in uses):
        return False
    return all(use.kind == ADD for use in writes) or (len(writes) == 1 and unique(writes[0].table))


def check_rounds(program: RolledProgram) -> None:
    """Raise InvariantError where a place that begins again in the rounds of a nest is read in another round.

    It begins once in a round, or with zeros and then numbers. Rounds that pass on windows
    (`codegen.loops.optimise.contraction`) do not have this form.
    """
    for timeline in _timelines(program, _begins_anew):
        begins = np.flatnonzero(timeline.kind >= ZERO)
        same_place = timeline.place[begins[1:]] == timeline.place[begins[:-1]]
        first, second = begins[:-1][same_place], begins[1:][same_place]
        level = timeline.level(first, second)
        cleared = (timeline.kind[first] == ZERO) & (timeline.kind[second] > ZERO) & timeline.together(first, second)
        timeline.refuse_pairs(first, second, (level < 0) & ~cleared, "begins anew in a round in which it began in {}")
        rank = np.cumsum(np.diff(timeline.place, prepend=timeline.place[:1]) != 0)  # of a place among those in use
        home = np.full(rank[-1] + 1, -1)  # the innermost nest in whose rounds a place begins again
        np.maximum.at(home, rank[first], level)
        reads = np.flatnonzero((timeline.kind <= READ) & (home[rank] >= 0))
        begun = np.maximum.accumulate(np.where(timeline.kind >= ZERO, np.arange(len(timeline.kind)), 0))[reads]
        early = (timeline.place[begun] != timeline.place[reads]) | (begun > reads)
        timeline.refuse_pairs(reads, reads, early, "is read in a round before it begins in one")
        row = 2 * home[rank[reads]] + 1
        apart = timeline.rounds[row, reads] != timeline.rounds[row, begun]
        timeline.refuse_pairs(begun, reads, apart, "is read in another round than {} began it in")


def _begins_anew(uses: Sequence[_BufferUse]) -> bool:
    """Return whether places that are read may begin more than once."""
    stores = [use for use in uses if use.kind >= ZERO]
    return len(stores) < len(uses) and (len(stores) > 1 or any(use.nests for use in stores))


@dataclass(frozen=True)
class _NestRounds:
    """A nest around a region: its rounds, how many regions run in one of them, and when the first round begins.

    Times are numbers of regions that have run, in the first rounds of the nests further out.
    """

    count: int
    length: int
    begin: int


@dataclass(frozen=True)
class _BufferUse:
    """A use of a buffer by a region: the region's number, origin, first time, and the nests around it."""

    number: int
    origin: str
    first: int
    nests: tuple[_NestRounds, ...]
    kind: int
    table: Table

    @property
    def rounds(self) -> int:
        """Number of rounds of all nests."""
        return prod(nest.count for nest in self.nests)

    @property
    def single(self) -> bool:
        """Whether all repetitions read one place, or add to one."""
        return self.kind < ZERO and self.table.fixed

    @property
    def places(self) -> Places:
        """The places in the first rounds; places that are stored to may occur several times."""
        if self.kind >= ZERO or isinstance(self.table, Affine):
            return self.table.places()[:1] if self.single else self.table.places()
        return distinct(self.table.index)

    def events(self, chosen: Places | None) -> tuple[Places, Places, list[Places]]:
        """Return its places (all, or the chosen ones) in all rounds; the times; when nests and their rounds began."""
        moved, time, began = np.zeros(1, dtype=np.int64), np.full(1, self.first), list[Places]()
        for depth, nest in enumerate(self.nests):
            rounds = np.arange(nest.count)
            shift = shift_at(self.table, depth)
            began = [*began, time - self.first + nest.begin]
            moved = (moved[:, None] + shift * rounds).ravel()
            time = (time[:, None] + nest.length * rounds).ravel()
            began = [*(np.repeat(times, nest.count) for times in began), time - self.first + nest.begin]
        places = self.places
        if chosen is None:
            time, *began = (np.repeat(times, len(places)) for times in (time, *began))
            return (moved[:, None] + places).ravel(), time, began
        rows, parts, width = list[Places](), list[Places](), max(BLOCK // len(places), 1)
        for start in range(0, len(moved), width):
            block = moved[start : start + width, None] + places
            row, column = np.nonzero(np.isin(block, chosen))
            rows.append(row + start)
            parts.append(block[row, column])
        every = np.concatenate(rows)
        return np.concatenate(parts), time[every], [times[every] for times in began]


def _uses(program: RolledProgram) -> dict[int, list[_BufferUse]]:
    """Return the uses of all buffers that are written."""
    uses: dict[int, list[_BufferUse]] = {}
    for number, (region, first, nests) in enumerate(_in_time(program.steps, 0, ())):
        slots, rows = len(region.body.inputs), [region.body.outputs[use.output].rows[0] for use in region.results]
        copies = all(row < slots and use.kind != "add" for row, use in zip(rows, region.results, strict=True))
        pairs = [(use.buffer, MOVE if copies else READ, use.table) for use in region.reads]
        pairs += [(use.buffer, _kind(region, use, bool(nests)), use.table) for use in region.results]
        for buffer, kind, table in pairs:
            if program.buffers[buffer].kind in ("workspace", "output"):
                uses.setdefault(buffer, []).append(_BufferUse(number, region.origin, first, nests, kind, table))
    return uses


def _kind(region: Region, use: Result, inside: bool) -> int:
    if use.kind == "add":
        return ADD
    row, sure = region.body.outputs[use.output].rows[0], region.stop is None or use.kind == "last"
    if sure and region.body.atoms.get(row) is sp.S.Zero:
        return ZERO
    if not sure:
        return PERHAPS
    if row < len(region.body.inputs):
        return COPY_AGAIN if inside else COPY
    return AGAIN if inside else STORE


def _in_time(
    steps: Sequence[Step], first: int, nests: tuple[_NestRounds, ...]
) -> Iterator[tuple[Region, int, tuple[_NestRounds, ...]]]:
    """Return every region, when it runs first, and the nests around it."""
    for step in steps:
        if isinstance(step, Region):
            yield step, first, nests
        else:
            yield from _in_time(step.steps, first, (*nests, _NestRounds(step.count, _length(step.steps), first)))
        first += _length([step])


def _length(steps: Sequence[Step]) -> int:
    return sum(1 if isinstance(step, Region) else step.count * _length(step.steps) for step in steps)


def _timelines(program: RolledProgram, is_checked: Callable[[Sequence[_BufferUse]], bool]) -> Iterator[_Timeline]:
    """Return all uses in order of the buffers to be checked that are small enough."""
    names = buffer_names(program)
    for buffer, uses in _uses(program).items():
        work = sum(use.rounds * (1 if use.single else use.table.count) for use in uses)
        if is_checked(uses) and work <= MOST and max(use.rounds for use in uses) <= LONGEST:
            size, chosen = program.buffers[buffer].size, None
            if work > SORTED:  # the first and last places, and 512 between, at no distance that tables have
                between = (np.arange(512) * GOLDEN % 1.0 * size).astype(np.int64)
                chosen = distinct(np.concatenate([between, np.arange(min(8, size)), np.arange(max(0, size - 8), size)]))
            timeline = _Timeline(program.name, buffer, names[buffer], uses, chosen)
            if len(timeline.place):
                yield timeline


class _Timeline:
    """The uses of the places of a buffer: in the order of the places, and of time; reads of a region before its writes.

    Row 2 d of `rounds` has the time when the nest at depth d began, and row 2 d + 1 the time of its round; -1 for none.
    So two uses are in the same round where the numbers are the same.
    """

    def __init__(self, program: str, buffer: int, name: str, uses: Sequence[_BufferUse], chosen: Places | None) -> None:
        self.program, self.buffer, self.name, self.uses = program, buffer, name, uses
        events = [use.events(chosen) for use in uses]
        depth, sizes = 2 * max(len(use.nests) for use in uses), [len(places) for places, _, _ in events]
        place, time = np.concatenate([part[0] for part in events]), np.concatenate([part[1] for part in events])
        rounds = np.full((depth, len(place)), -1)
        ends = np.cumsum([0, *sizes])
        for (_, _, began), start, end in zip(events, ends[:-1], ends[1:], strict=True):
            for row, times in enumerate(began):
                rounds[row, start:end] = times
        kind = np.repeat([use.kind for use in uses], sizes)
        order = np.argsort((place * (time.max(initial=0) + 1) + time) * KINDS + kind, kind="stable")
        self.place, self.time, self.kind, self.rounds = place[order], time[order], kind[order], rounds[:, order]
        self.use = np.repeat(np.arange(len(uses)), sizes)[order]

    def level(self, first: Places, second: Places) -> Places:
        """Return for pairs of uses the innermost nest of which they are in different rounds; -1 for none."""
        level = np.full(len(first), -1)
        for depth in range(len(self.rounds) // 2):
            nest, own = self.rounds[2 * depth], self.rounds[2 * depth + 1]
            level[(nest[first] == nest[second]) & (own[first] != own[second])] = depth
        return level

    def together(self, first: Places, second: Places) -> NDArray[np.bool_]:
        """Return for pairs of uses whether they are in the same rounds of the same nests."""
        same: NDArray[np.bool_] = (self.rounds[:, first] == self.rounds[:, second]).all(axis=0)
        return same

    def refuse_pairs(self, first: Places, second: Places, wrong: NDArray[np.bool_], text: str) -> None:
        """Raise for the first wrong pair of uses, in time."""
        if wrong.any():
            pair = np.flatnonzero(wrong)[np.argmin(self.time[second[wrong]])]
            before, after = (self.uses[self.use[places[pair]]] for places in (first, second))
            raise InvariantError(
                f"place {self.place[second[pair]]} of {self.name} {text.format(f'region {before.number}')}",
                where=f"region {after.number} of {self.program}" + (f" ({after.origin})" if after.origin else ""),
                why="what a round leaves is its own",
                do="this is an error of the compiler: trust no number of the program, and report it with the function",
            )
