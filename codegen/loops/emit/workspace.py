"""Lay out the buffers of a rolled program, zero those that need it, and write its constant tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.execution_order import all_places
from codegen.ir.readdress import buffers_read
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.ir.tables import Places
from codegen.lanes import SCALAR, Lanes
from codegen.loops.emit.loop_columns import LoopColumns
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
