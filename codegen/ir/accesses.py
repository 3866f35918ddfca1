"""Accesses: every read and write of a buffer in the order of time, and what may follow on what at one place.

Each buffer is looked at for itself: its accesses become whole numbers, place before time before kind, which are sorted;
then those of one place stand side by side. That is exact, and linear but for the sorting. Of a buffer with more than
`MOST` accesses those are looked at that come first, in whole rounds of the outermost nests: nothing right is refused,
and something wrong may pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NoReturn

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.region import Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Table, unique

Numbers = NDArray[np.int64]
Fail = Callable[[str, str, str], NoReturn]

MOST = 1 << 20  # accesses of one buffer that are looked at
MOVE, READ, ADD, ZERO, STORE, COPY, PERHAPS, AGAIN, COPY_AGAIN = range(9)  # MOVE is read by a copy, AGAIN is in a nest
KINDS = 16
ONCE = "a place is stored once"
EITHER = "a place is stored or added to"
BEFORE = "a place is read only after it is written"
STORES = (STORE, COPY, PERHAPS)  # outside of nests, or of a loop that may stop before
FORBIDDEN = {  # what may not follow on what at one place, and why
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


@dataclass(frozen=True, eq=False)
class Access:
    """All accesses of a table: at `time` in the first round of the nests around, a stride later in each further one."""

    region: int
    table: Table
    kind: int
    time: int
    counts: tuple[int, ...]
    strides: list[list[int]]  # of each nest around a list of one number, which is known at the end of the nest

    @property
    def places(self) -> Numbers:
        """The places in the first round; of one place for all repetitions two stand for all."""
        if isinstance(self.table, Affine) and not self.table.step:
            return np.full(min(self.table.count, 2), self.table.start, dtype=np.int64)
        return self.table.places()

    @property
    def size(self) -> int:
        """How many accesses these are."""
        fixed = isinstance(self.table, Affine) and not self.table.step
        return (min(self.table.count, 2) if fixed else self.table.count) * prod(self.counts)


@dataclass(eq=False)
class _Clock:
    """The accesses of steps by buffer, and the time that has passed."""

    now: int = 0
    regions: int = 0
    found: dict[int, list[Access]] = field(default_factory=dict)

    def region(self, region: Region, counts: tuple[int, ...], strides: list[list[int]]) -> None:
        reads = [*region.gathers, *(use for carry in region.carries for use in carry.initial)]
        slots = len(region.body.inputs)
        copies = all(region.body.outputs[use.output].rows[0] < slots and use.kind != "add" for use in region.results)
        pairs = [(use.buffer, use.table, MOVE if copies else READ) for use in reads]
        pairs += [(use.buffer, use.table, _kind(region, use, bool(counts))) for use in region.results]
        for buffer, table, kind in pairs:
            found = Access(self.regions, table, kind, self.now, counts, strides)
            self.found.setdefault(buffer, []).append(found)
        self.regions += 1
        self.now += 1


def accesses(steps: Sequence[Step]) -> dict[int, list[Access]]:
    """Return the accesses of every buffer, in the order of the regions."""
    clock = _Clock()
    stack: list[Step | tuple[Nest, int, list[int]]] = list(reversed(steps))
    around: list[tuple[int, list[int]]] = []
    while stack:
        step = stack.pop()
        if isinstance(step, Region):
            clock.region(step, tuple(count for count, _ in around), [stride for _, stride in around])
        elif isinstance(step, Nest):
            around.append((step.count, []))
            stack += [(step, clock.now, around[-1][1]), *reversed(step.steps)]
        else:
            nest, begin, stride = step
            stride.append(clock.now - begin)
            clock.now = begin + stride[0] * nest.count
            around.pop()
    return clock.found


def check_accesses(program: RolledProgram, fail: Fail) -> None:
    """Fail where a place is not stored once or added to, or is read before that."""
    for buffer, found in accesses(program.steps).items():
        if program.buffers[buffer].kind not in ("input", "constant") and not _is_plain(found):
            _check(buffer, found, fail)


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


def _is_plain(found: Sequence[Access]) -> bool:
    """Whether it is seen at once that all is right: outside of nests, all sums or one store, and reads behind them."""
    writes = [access for access in found if access.kind > READ]
    if any(access.counts for access in found):
        return False
    last = max((access.time for access in writes), default=-1)
    if any(access.kind <= READ and access.time <= last for access in found):
        return False
    return all(access.kind == ADD for access in writes) or (len(writes) == 1 and unique(writes[0].table))


def _check(buffer: int, found: Sequence[Access], fail: Fail) -> None:
    keys, times = _sorted(found)
    if not len(keys):
        return
    kinds, moments = keys % KINDS, keys // KINDS
    places, moments = moments // times, moments % times
    same_place = places[1:] == places[:-1]
    same_time = same_place & (moments[1:] == moments[:-1])
    before, behind = kinds[:-1], kinds[1:]
    table = np.zeros((KINDS, KINDS), dtype=bool)
    for pair in FORBIDDEN:
        table[pair] = True
    at_once = (behind > READ) & ~((before == ADD) & (behind == ADD))
    wrong = same_place & (table[before, behind] | (same_time & at_once))
    if wrong.any():
        k = int(np.argmax(wrong))
        _explain(buffer, found, keys[k : k + 2], times, fail)
    begins = np.nonzero(np.concatenate([[True], ~same_place]))[0]
    at, never = np.arange(len(kinds)), len(kinds)
    read = np.minimum.reduceat(np.where(kinds == READ, at, never), begins)
    written = np.minimum.reduceat(np.where(kinds > READ, at, never), begins)
    early = (read < written) & (written < never)
    if early.any():
        place = int(places[begins][np.argmax(early)])
        fail(BEFORE, f"buffer {buffer}, place {place}", "it is read first and written later")


def _explain(buffer: int, found: Sequence[Access], keys: Numbers, times: int, fail: Fail) -> None:
    """Fail with the regions of two accesses."""
    kinds, rest = (keys % KINDS).tolist(), keys // KINDS
    place, moments = int(rest[0]) // times, (rest % times).tolist()
    first, second = (f"region {_region_at(found, kind, moment)}" for kind, moment in zip(kinds, moments, strict=True))
    where = f"buffer {buffer}, place {place}"
    if moments[0] != moments[1]:
        invariant, why = FORBIDDEN[kinds[0], kinds[1]]
        fail(invariant, where, why.format(first=first, second=second))
    if kinds[0] <= READ:
        fail(BEFORE, where, f"{first} reads it and writes to it")
    if ADD in kinds:
        fail(EITHER, where, f"{first} stores and adds to it")
    fail(ONCE, where, f"{first} stores to it twice")


def _region_at(found: Sequence[Access], kind: int, moment: int) -> int:
    """Return the number of the region that has an access of a kind at some time."""
    for access in found:
        left = moment - access.time
        for count, (stride,) in zip(access.counts, access.strides, strict=True):
            left -= min(left // stride, count - 1) * stride if left > 0 else 0
        if access.kind == kind and left == 0:
            return access.region
    return -1


def _sorted(found: Sequence[Access]) -> tuple[Numbers, int]:
    """Return the accesses of a buffer as sorted numbers, and how many times there are."""
    parts = list(_first_ones(found))
    times = max((access.time + sum(_later(access)) for access in found), default=0) + 1
    keys = [_keys(access, rounds, times) for access, rounds in parts]
    return np.sort(np.concatenate([np.empty(0, dtype=np.int64), *keys])), times


def _later(access: Access) -> Iterator[int]:
    """How much later the last round of each nest around is."""
    return ((count - 1) * stride for count, (stride,) in zip(access.counts, access.strides, strict=True))


def _first_ones(found: Sequence[Access]) -> Iterator[tuple[Access, tuple[int, ...]]]:
    """Yield the accesses that come first, as many as may be looked at, with the counts of rounds around them.

    What stands in one outermost nest is cut after the same round.
    """
    left = MOST
    nests: dict[int, list[Access]] = {}
    for number, access in enumerate(found):
        nests.setdefault(id(access.strides[0]) if access.counts else -1 - number, []).append(access)
    for together in nests.values():
        size = sum(access.size for access in together)
        counts = together[0].counts
        rounds = counts[0] if counts else 1
        if size > left:
            rounds = left * rounds // size
        for access in together:
            if rounds:
                yield access, (rounds, *access.counts[1:]) if counts else ()
        left -= size
        if left <= 0:
            return


def _keys(access: Access, counts: Sequence[int], times: int) -> Numbers:
    """Return accesses as numbers: place before time before kind."""
    table = access.table
    keys = (access.places * times + access.time) * KINDS + access.kind
    for depth in reversed(range(len(counts))):
        shift = table.shifts[depth] if depth < len(table.shifts) else 0
        rounds = (shift * times + access.strides[depth][0]) * KINDS * np.arange(counts[depth], dtype=np.int64)
        keys = (rounds[:, None] + keys[None, :]).ravel()
    return keys
