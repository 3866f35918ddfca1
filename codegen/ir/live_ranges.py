"""Live ranges: what a place of a buffer holds, from where it begins until it begins anew.

A place begins at zero with the call, and anew with all that is stored to it; what is added goes on with what it holds.
No numbers are computed here: which places are used when follows from the tables and from the order of the steps.

The rules are those of `codegen.ir.region`, for nests too. A sum is read when it is whole (`check_live_ranges`):
cotangents of a round that go on with those of another break this. A place that begins anew in the rounds of a nest is
read in the round in which it began (`check_rounds`): a way back that asks for what an earlier round had there, when
the last one has left something else, breaks this.

Of a buffer with many uses some places are looked at, each in all its uses: nothing that is right is ever refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from codegen.errors import InvariantError
from codegen.ir.region import Region, Result, RolledProgram, Step, buffer_names
from codegen.ir.tables import Affine, Places, Table, distinct, unique

READ, ADD, ZERO, MOVED, STORE = range(5)  # the last three begin a place anew; what was moved there may be added to
SORTED = 1 << 16  # uses of places that are put in order; of more, those of some places are
SOME = 512  # places, spread over the buffer by the golden ratio: at no distance that tables have
MOST, LONGEST = 1 << 26, 1 << 22  # uses of places, and rounds, beyond which a buffer is left alone
GOLDEN = (5**0.5 - 1) / 2
BLOCK = 1 << 20  # uses of places that are looked through at once
RULE = "a sum is read when it is whole, and what a round leaves is its own"
REPORT = "this is an error of the compiler: trust no number of the program, and report it with the function"


def check_live_ranges(program: RolledProgram) -> None:
    """Raise InvariantError where something is added to a place that was read, or that a number was stored to.

    A sum that was copied to a place goes on there. A region stores to a place once each time it runs.

    >>> import sympy as sp
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Nest
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, place = sp.Symbol("x"), Affine(0, 0, 1)
    >>> double = program_from_sympy([x], [2 * x])
    >>> steps = [Region(double, 1, (Gather(k, place),), (Result(0, k + 1, place, "add"),)) for k in (0, 1)]
    >>> buffers = (Buffer("input", 1), Buffer("workspace", 1), Buffer("output", 1))
    >>> check_live_ranges(RolledProgram((Input("x", ()),), (Output((), ()),), buffers, tuple(steps)))
    >>> check_live_ranges(RolledProgram((Input("x", ()),), (Output((), ()),), buffers, (Nest(3, tuple(steps)),)))
    Traceback (most recent call last):
    codegen.errors.InvariantError: region 0 of kernel: place 0 of w0 is added to after region 1 has read it: a sum ...
    """
    for found in _timelines(program, _may_go_on):
        before, after = found.kind[:-1], found.kind[1:]
        found.refuse((before == READ) & (after == ADD), "is added to after {} has read it")
        found.refuse((before == STORE) & (after == ADD), "is added to after {} has stored to it")
        at_once = found.time[:-1] == found.time[1:]
        found.refuse((before > READ) & (after >= ZERO) & at_once, "is written to twice in a run of {}")


def check_rounds(program: RolledProgram) -> None:
    """Raise InvariantError where a place that begins anew in the rounds of a nest is read in another round.

    It begins once in a round, or with zeros and then numbers. Rounds that hand on windows
    (`codegen.loops.optimise.contraction`) are not written so.
    """
    for found in _timelines(program, _begins_anew):
        begins = np.flatnonzero(found.kind >= ZERO)
        again = found.place[begins[1:]] == found.place[begins[:-1]]
        first, second = begins[:-1][again], begins[1:][again]
        level = found.level(first, second)
        cleared = (found.kind[first] == ZERO) & (found.kind[second] > ZERO) & found.together(first, second)
        found.refuse_pairs(first, second, (level < 0) & ~cleared, "begins anew in a round in which it began in {}")
        rank = np.cumsum(np.diff(found.place, prepend=found.place[:1]) != 0)  # of a place among those in use
        home = np.full(rank[-1] + 1, -1)  # the innermost nest in whose rounds a place begins anew
        np.maximum.at(home, rank[first], level)
        reads = np.flatnonzero((found.kind == READ) & (home[rank] >= 0))
        begun = np.maximum.accumulate(np.where(found.kind >= ZERO, np.arange(len(found.kind)), 0))[reads]
        early = (found.place[begun] != found.place[reads]) | (begun > reads)
        found.refuse_pairs(reads, reads, early, "is read in a round before it begins in one")
        row = 2 * home[rank[reads]] + 1
        apart = found.rounds[row, reads] != found.rounds[row, begun]
        found.refuse_pairs(begun, reads, apart, "is read in another round than {} began it in")


def _may_go_on(uses: Sequence[_Use]) -> bool:
    """Return whether something is added to what is used otherwise, or a region may store to one place twice."""
    kinds = {use.kind for use in uses}
    stores = [use.number for use in uses if use.kind >= ZERO]
    twice = len(set(stores)) < len(stores) or not all(unique(use.table) for use in uses if use.kind >= ZERO)
    return twice or (ADD in kinds and len(kinds) > 1)


def _begins_anew(uses: Sequence[_Use]) -> bool:
    """Return whether places that are read may begin more than once."""
    stores = [use for use in uses if use.kind >= ZERO]
    return len(stores) < len(uses) and (len(stores) > 1 or any(use.nests for use in stores))


@dataclass(frozen=True)
class _Rounds:
    """A nest around a region: its rounds, how many regions run in one of them, and when the first one begins.

    Times are numbers of regions that have run; these are in the first rounds of the nests further out.
    """

    count: int
    length: int
    begin: int


@dataclass(frozen=True)
class _Use:
    """A use of a buffer by a region: its number, where it was written, when it runs first, the nests around it."""

    number: int
    origin: str
    first: int
    nests: tuple[_Rounds, ...]
    kind: int
    table: Table

    @property
    def rounds(self) -> int:
        """In how many rounds it is."""
        return prod(nest.count for nest in self.nests)

    @property
    def single(self) -> bool:
        """Whether all is read at one place, or added to one."""
        return self.kind < ZERO and isinstance(self.table, Affine) and self.table.step == 0

    @property
    def places(self) -> Places:
        """The places in the first rounds; those that are stored to as often as they are."""
        if self.kind >= ZERO or isinstance(self.table, Affine):
            return self.table.places()[:1] if self.single else self.table.places()
        return distinct(self.table.index)

    def events(self, chosen: Places | None) -> tuple[Places, Places, list[Places]]:
        """Return its places in all rounds, all or the chosen ones; when that is; when nests and their rounds began."""
        moved, time, began = np.zeros(1, dtype=np.int64), np.full(1, self.first), list[Places]()
        for depth, nest in enumerate(self.nests):
            rounds = np.arange(nest.count)
            shift = self.table.shifts[depth] if depth < len(self.table.shifts) else 0
            began = [*began, time - self.first + nest.begin]
            moved, time = ((a[:, None] + step * rounds).ravel() for a, step in ((moved, shift), (time, nest.length)))
            began = [*(np.repeat(times, nest.count) for times in began), time - self.first + nest.begin]
        places = self.places
        if chosen is None:
            every = np.repeat(np.arange(len(moved)), len(places))
            return (moved[:, None] + places).ravel(), time[every], [times[every] for times in began]
        rows, found, width = list[Places](), list[Places](), max(BLOCK // len(places), 1)
        for start in range(0, len(moved), width):
            block = moved[start : start + width, None] + places
            row, column = np.nonzero(np.isin(block, chosen))
            rows.append(row + start)
            found.append(block[row, column])
        every = np.concatenate(rows)
        return np.concatenate(found), time[every], [times[every] for times in began]


def _uses(program: RolledProgram) -> dict[int, list[_Use]]:
    """Return the uses of all buffers that are written."""
    found: dict[int, list[_Use]] = {}
    for number, (region, first, nests) in enumerate(_in_time(program.steps, 0, ())):
        reads = (*region.gathers, *(use for carry in region.carries for use in carry.initial))
        for buffer, kind, table in (
            *((use.buffer, READ, use.table) for use in reads),
            *((use.buffer, _kind(region, use), use.table) for use in region.results),
        ):
            if program.buffers[buffer].kind in ("workspace", "output"):
                found.setdefault(buffer, []).append(_Use(number, region.origin, first, nests, kind, table))
    return found


def _kind(region: Region, use: Result) -> int:
    """Return what a result does to a place."""
    if use.kind == "add":
        return ADD
    row = region.body.outputs[use.output].rows[0]
    if row < len(region.body.inputs):
        return MOVED
    atom = region.body.atoms.get(row)
    return ZERO if atom is not None and atom.is_zero else STORE


def _in_time(
    steps: Sequence[Step], first: int, nests: tuple[_Rounds, ...]
) -> Iterator[tuple[Region, int, tuple[_Rounds, ...]]]:
    """Return every region, when it runs first, and the nests around it."""
    for step in steps:
        if isinstance(step, Region):
            yield step, first, nests
        else:
            yield from _in_time(step.steps, first, (*nests, _Rounds(step.count, _length(step.steps), first)))
        first += _length([step])


def _length(steps: Sequence[Step]) -> int:
    """Return how many regions run in steps."""
    return sum(1 if isinstance(step, Region) else step.count * _length(step.steps) for step in steps)


def _timelines(program: RolledProgram, wanted: Callable[[Sequence[_Use]], bool]) -> Iterator[_Timeline]:
    """Return all uses in order of the buffers for which something is to be found out."""
    names = buffer_names(program)
    for buffer, uses in _uses(program).items():
        work = sum(use.rounds * (1 if use.single else use.table.count) for use in uses)
        if wanted(uses) and work <= MOST and max(use.rounds for use in uses) <= LONGEST:
            found = _Timeline(program.name, names[buffer], uses, _chosen(program.buffers[buffer].size, work))
            if len(found.place):
                yield found


def _chosen(size: int, work: int) -> Places | None:
    """Return which places of a buffer are looked at, None for all: the first and last ones, and some between."""
    if work <= SORTED:
        return None
    between = (np.arange(SOME) * GOLDEN % 1.0 * size).astype(np.int64)
    return distinct(np.concatenate([between, np.arange(min(8, size)), np.arange(max(0, size - 8), size)]))


class _Timeline:
    """The uses of the places of a buffer: in the order of the places, and of time; reads of a region before its writes.

    Row 2 d of `rounds` says when the nest around it, d nests further in, began, and row 2 d + 1 when the round of it
    did; -1 where there is none. So two uses are in the same round where the numbers are the same.
    """

    def __init__(self, program: str, name: str, uses: Sequence[_Use], chosen: Places | None) -> None:
        self.program, self.name, self.uses = program, name, uses
        found = [use.events(chosen) for use in uses]
        depth, sizes = 2 * max(len(use.nests) for use in uses), [len(places) for places, _, _ in found]
        place, time = np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
        rounds = np.full((depth, len(place)), -1)
        ends = np.cumsum([0, *sizes])
        for (_, _, began), start, end in zip(found, ends[:-1], ends[1:], strict=True):
            for row, times in enumerate(began):
                rounds[row, start:end] = times
        kind = np.repeat([use.kind for use in uses], sizes)
        order = np.lexsort((kind, time, place))
        self.place, self.time, self.kind, self.rounds = place[order], time[order], kind[order], rounds[:, order]
        self.use = np.repeat(np.arange(len(uses)), sizes)[order]

    def level(self, first: Places, second: Places) -> Places:
        """Return for pairs of uses the nest of which they are in different rounds; -1 for none."""
        found = np.full(len(first), -1)
        for depth in range(len(self.rounds) // 2):
            nest, own = self.rounds[2 * depth], self.rounds[2 * depth + 1]
            found[(nest[first] == nest[second]) & (own[first] != own[second])] = depth
        return found

    def together(self, first: Places, second: Places) -> NDArray[np.bool_]:
        """Return for pairs of uses whether they are in the same rounds of the same nests."""
        found: NDArray[np.bool_] = (self.rounds[:, first] == self.rounds[:, second]).all(axis=0)
        return found

    def refuse(self, wrong: NDArray[np.bool_], text: str) -> None:
        """Raise where it is wrong how a use follows the one before it, of the same place."""
        number = np.arange(len(wrong))
        self.refuse_pairs(number, number + 1, wrong & (self.place[1:] == self.place[:-1]), text)

    def refuse_pairs(self, first: Places, second: Places, wrong: NDArray[np.bool_], text: str) -> None:
        """Raise for the first pair of uses, in time, of which something is wrong."""
        if wrong.any():
            pair = np.flatnonzero(wrong)[np.argmin(self.time[second[wrong]])]
            one, other = (self.uses[self.use[found[pair]]] for found in (first, second))
            raise InvariantError(
                f"place {self.place[second[pair]]} of {self.name} {text.format(f'region {one.number}')}",
                where=f"region {other.number} of {self.program}" + (f" ({other.origin})" if other.origin else ""),
                why=RULE,
                do=REPORT,
            )
