"""Lay out the buffers of a rolled program, zero those that need it, and write its constant tables.

Loops that differ only in their arrays become one function with the arrays as parameters. Python code that repeats
operations on arrays, as the time steps of a recurrent network, makes separate regions of each repetition: the same
bodies over the same tables, between other buffers. Two regions are equal if their bodies, counts, carries, results,
lanes and blocks are, and if their tables differ by one distance for each buffer. Workspaces at equal distances are
reached from one moved %work, so that the addresses in the function stay the same; any other array that differs between
regions is a pointer parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.readdress import all_places, buffers_read
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.ir.tables import Places, distances
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_columns import LoopColumns, Use
from codegen.records import dataclass

COUNTED = 1 << 24  # places for which writes are counted; larger buffers are cleared
LINE = 64  # bytes of a line of the cache, where arrays begin


@dataclass
class Tables:
    """Constant arrays of a module: bytes as text, which LLVM reads ten times faster than numbers; equal ones once."""

    prefix: str
    globals: list[str] = field(default_factory=list)
    known: dict[bytes, str] = field(default_factory=dict)

    def array(self, values: NDArray[Any]) -> str:
        data = values.tobytes()
        name = self.known.get(data)
        if name is None:
            name = self.known[data] = f"@{self.prefix}.table{len(self.known)}"
            text = "\\" + data.hex("\\") if data else ""
            self.globals.append(f'{name}=internal constant [{len(data)} x i8] c"{text}",align {LINE}')
        return name

    def numbers(self, values: NDArray[Any], scalar: Lanes) -> str:
        """Return the name of an array of numbers, rounded once: to infinity where they are too large."""
        with np.errstate(over="ignore"):
            return self.array(np.ascontiguousarray(values, dtype=f"f{scalar.size}"))

    def places(self, values: Places) -> tuple[str, str]:
        """Return the name of an array of whole numbers, and the type of its elements."""
        small = not len(values) or bool(np.abs(values).max() < 2**31)
        return self.array(values.astype(np.int32 if small else np.int64)), "i32" if small else "i64"


@dataclass(frozen=True)
class Memory:
    """How a function finds each buffer: an entry of the tables %in and %out, a place in %work, a constant array.

    Where equal regions share a function, also a place in a workspace, or an array, that is an argument.
    """

    pointers: tuple[str, ...]
    workspace: int  # numbers
    scalar: Lanes = SCALAR  # one number of each of the points side by side

    def has_room(self, number: int) -> bool:
        """Whether there is room for a vector behind a buffer."""
        return self.pointers[number].startswith("%work")

    def number_of(self, number: int) -> Lanes:
        """Return the type of one number of a buffer: constants have one for all points."""
        return Lanes(1, self.scalar.scalar) if self.pointers[number].startswith("@") else self.scalar

    @classmethod
    def of(cls, program: RolledProgram, tables: Tables, scalar: Lanes = SCALAR) -> Memory:
        """Give every buffer its place: each workspace has a line behind it, which is room for a vector."""
        pointers, size, outputs, used = [], 0, 0, buffers_read(program.steps)
        room = LINE // scalar.size
        for number, buffer in enumerate(program.buffers):
            if buffer.values is not None:
                values = buffer.values if number in used else np.empty(0)
                pointers.append(tables.numbers(values, scalar))
            elif buffer.kind == "workspace":
                pointers.append(f"%work {size}")
                size += (-(-buffer.size // room) + 1) * room
            elif buffer.kind == "input":
                pointers.append(f"%in {number}")
            else:
                pointers.append(f"%out {outputs}")
                outputs += 1
        return cls(tuple(pointers), size, scalar)


@dataclass(frozen=True)
class Writes:
    """Facts of all writes: buffers with places that are read but not stored (0 there), adds that are stores."""

    cleared: frozenset[int]
    stored: tuple[frozenset[int], ...]  # for each region, the numbers of its results whose places are written once


def writes(program: RolledProgram, columns: Sequence[LoopColumns | None]) -> Writes:
    """Find the buffers that have to be cleared, and the sums that have a single term.

    A place is stored once or added to; so an add to a place that is written once is a store, and needs no zero before.
    """
    writers: dict[int, list[_ResultWriter]] = {}
    for number, ((region, counts), tables) in enumerate(zip(regions_of(program.steps), columns, strict=True)):
        for writer in _writers(number, region, counts, tables):
            writers.setdefault(region.results[writer.results[0]].buffer, []).append(writer)
    cleared, stored = set(), [set[int]() for _ in columns]
    for number, buffer in enumerate(program.buffers):
        if buffer.kind in ("input", "constant"):
            continue
        known = writers.get(number, [])
        if buffer.size + sum(writer.work for writer in known) > COUNTED:
            cleared.add(number)
            continue
        places = [writer.places() for writer in known]
        times = np.bincount(np.concatenate([*places, np.empty(0, dtype=np.int64)]), minlength=buffer.size)
        pairs = zip(known, places, strict=True)
        once = [not writer.stops and bool((times[where] == 1).all()) for writer, where in pairs]
        for writer, single in zip(known, once, strict=True):
            stored[writer.region].update(writer.results if single else ())
        open_to_reads = times == 0
        if buffer.kind == "workspace" and all(once) and open_to_reads.any():
            open_to_reads &= _read(program, number)
        if not all(once) or open_to_reads.any():
            cleared.add(number)
    return Writes(frozenset(cleared), tuple(map(frozenset, stored)))


def _read(program: RolledProgram, number: int) -> NDArray[np.bool_]:
    is_read = np.zeros(program.buffers[number].size, dtype=bool)
    for region, counts in regions_of(program.steps):
        for use in region.reads:
            if use.buffer == number:
                is_read[all_places(use.table, counts)] = True
    return is_read


@dataclass(frozen=True)
class _ResultWriter:
    """Results of a region, by number, that go to memory together; `work` is the number of their places."""

    region: int
    results: tuple[int, ...]
    work: int
    places: Callable[[], Places]
    stops: bool = False  # may stop before it has written all


def _writers(
    number: int, region: Region, counts: tuple[int, ...], columns: LoopColumns | None
) -> Iterator[_ResultWriter]:
    rounds = int(np.prod(counts))
    together: set[int] = set()
    for overlap in columns.overlaps if columns is not None and not any(counts) else ():
        assert columns is not None
        work = region.count + len(columns.runs) * overlap.longest
        yield _ResultWriter(number, tuple(overlap.distances), work, partial(columns.places, overlap))
        together |= set(overlap.distances)
    for c, use in enumerate(region.results):
        if c not in together:
            stops = region.stop is not None and use.kind != "last"
            yield _ResultWriter(number, (c,), rounds * use.table.count, partial(all_places, use.table, counts), stops)


Origins = list[tuple[int, int]]  # the buffers of a region in the order of their use, each with the first place used


@dataclass(frozen=True)
class Shared:
    """The function of region `number` runs a region; `names` are its parameters for arrays.

    `given` are the arguments: arrays as in `Memory.pointers` ("%work 0" for the workspace), and how many numbers they
    are moved. `memory` is where that function finds its buffers.
    """

    number: int
    names: tuple[str, ...]
    given: tuple[tuple[str, int], ...]
    memory: Memory


def apart(regions: Sequence[Region], memory: Memory) -> list[Shared]:
    """Return a function for each region."""
    return [Shared(number, (), (), memory) for number in range(len(regions))]


def shared(regions: Sequence[Region], facts: Sequence[Hashable], memory: Memory) -> list[Shared]:
    """Return the functions of regions; equal regions have the function of the first of them.

    `facts` have to be equal too: the number of nests around, lanes, blocks, the sums that are stores. Bodies are
    equal if they are one object (`codegen.ir.readdress`).
    """
    known: dict[int, Hashable] = {}
    laid_out = [_laid_out(region, memory, known) for region in regions]
    groups: dict[Hashable, list[int]] = {}
    for number, ((key, _), fact) in enumerate(zip(laid_out, facts, strict=True)):
        groups.setdefault((key, fact), []).append(number)
    functions = apart(regions, memory)
    for members in groups.values():
        if len(members) > 1:
            places = [laid_out[number][1] for number in members]
            for number, function in zip(members, _together(members, places, memory), strict=True):
                functions[number] = function
    return functions


def _laid_out(region: Region, memory: Memory, known: dict[int, Hashable]) -> tuple[Hashable, Origins]:
    """Return a key of equal regions, and the places where the buffers of a region are first used."""
    origins: dict[int, tuple[int, int]] = {}
    uses: list[Use] = [*region.reads, *region.results]
    tables = []
    for use in uses:
        number, first = origins.setdefault(use.buffer, (len(origins), use.table.first))
        tables.append((number, use.table.first - first, distances(use.table, known)))
    carries = tuple((carry.output, carry.lag) for carry in region.carries)
    results = tuple((use.output, use.kind) for use in region.results)
    rooms = tuple(map(memory.has_room, origins))
    key = id(region.body), region.count, tuple(tables), carries, results, region.stop, region.matrix, rooms
    return key, [(buffer, first) for buffer, (_, first) in origins.items()]


def _together(members: Sequence[int], places: Sequence[Origins], memory: Memory) -> list[Shared]:
    """Return the arguments with which equal regions call the function of the first one."""
    pointers, names = list(memory.pointers), dict[tuple[tuple[str, int], ...], str]()
    for used in zip(*places, strict=True):
        buffer, moves = used[0][0], [first - used[0][1] for _, first in used]
        texts = [memory.pointers[number] for number, _ in used]
        start, kind = "", "array"
        if memory.has_room(buffer):  # the distance from the first region's in place of two addresses
            starts = [int(text.split()[1]) for text in texts]
            moves = [move + other - starts[0] for move, other in zip(moves, starts, strict=True)]
            texts, start, kind = ["%work 0"] * len(used), f" {starts[0]}", "work"
        arguments = tuple(zip(texts, moves, strict=True))
        if len(set(arguments)) > 1:
            pointers[buffer] = names.setdefault(arguments, f"%{kind}{len(names)}") + start
    moved = replace(memory, pointers=tuple(pointers))
    given_to = zip(*names, strict=True) if names else [()] * len(members)
    return [Shared(members[0], tuple(names.values()), tuple(arguments), moved) for arguments in given_to]
