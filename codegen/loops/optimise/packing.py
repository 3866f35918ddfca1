"""Packing: gather strided places of a buffer into a contiguous workspace.

A loop over pairs of atoms reads coordinate d of atom j at place 3 j + d: a vector of them is gathered from several
lines of memory, for every pair. Copied once, all first coordinates before all second ones, they are plain loads. Sums
are added up in such a workspace, and copied to their places at the end. Constants are reordered.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from codegen.ir.body_parts import identities
from codegen.ir.readdress import buffers_read, buffers_written
from codegen.ir.region import Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Places, runs, table
from codegen.loops.optimise.draft import Draft
from codegen.records import dataclass

COPY = "packing"  # origin of the regions that copy
WORTH = 3.0  # uses of each number from which on copying pays off


@dataclass(frozen=True)
class _Area:
    """Places `first` to `first + step * count - 1` of a buffer: `count` records of `step` numbers each."""

    buffer: int
    first: int
    step: int
    count: int

    @property
    def size(self) -> int:
        return self.step * self.count

    def has(self, places: Places) -> NDArray[np.bool_]:
        return (places >= self.first) & (places < self.first + self.size)

    def packed(self, places: Places) -> Places:
        record, number = np.divmod(places - self.first, self.step)
        return number * self.count + record


@dataclass
class _VectorUse:
    """A gather or result (by position) of a step that runs in vectors, and its step within a run."""

    at: int
    kind: str
    number: int
    step: int
    places: Places


def pack(program: RolledProgram, vectors: AbstractSet[int]) -> RolledProgram:
    """Return the program with workspaces for the strided places that steps in vectors (by their positions) use."""
    all_uses = [use for at, step in enumerate(program.steps) if at in vectors for use in _uses(at, step)]
    packer = Draft(program)
    for kind, rewrite in (("read", _pack_reads), ("add", _pack_sums)):
        families: dict[tuple[int, int], list[_VectorUse]] = {}
        for use in all_uses:
            if use.kind == kind and 2 <= use.step <= 64:
                families.setdefault((_table_of(packer, use).buffer, use.step), []).append(use)
        for (buffer, step), uses in families.items():
            left = [use for use in uses if _table_of(packer, use).buffer == buffer]  # others have moved already
            area = _area(buffer, program.buffers[buffer].size, step, left) if left else None
            if area is not None:
                rewrite(packer, area, left)
    return packer.finished() if packer.added else program


def _uses(at: int, step: Step) -> list[_VectorUse]:
    if not isinstance(step, Region):
        return []
    table_runs = runs([use.table for use in step.uses], step.count)
    if table_runs is None:
        return []
    count, uses = len(step.gathers), []
    for number, rate in enumerate(table_runs.steps):
        if number < count:
            uses.append(_VectorUse(at, "read", number, rate, step.gathers[number].table.places()))
        elif step.results[number - count].kind == "add":
            uses.append(_VectorUse(at, "add", number - count, rate, step.results[number - count].table.places()))
    return uses


def _table_of(packer: Draft, use: _VectorUse) -> Gather | Result:
    region = packer.steps[use.at]
    assert isinstance(region, Region)
    return region.gathers[use.number] if use.kind == "read" else region.results[use.number]


def _area(buffer: int, size: int, step: int, uses: Sequence[_VectorUse]) -> _Area | None:
    """Return the area of some uses, in whole steps; None where the buffer has no room for it."""
    first = min(int(use.places.min()) for use in uses)
    count = -(-(max(int(use.places.max()) for use in uses) + 1 - first) // step)
    first = min(first, size - step * count)
    return _Area(buffer, first, step, count) if first >= 0 else None


def _pack_reads(packer: Draft, area: _Area, uses: Sequence[_VectorUse]) -> None:
    buffer = packer.program.buffers[area.buffer]
    begin = min(use.at for use in uses)
    written = buffers_written(packer.program.steps[begin:])
    if area.buffer in written or (buffer.values is None and sum(len(use.places) for use in uses) < WORTH * area.size):
        return
    if buffer.values is not None:
        values = buffer.values[area.first : area.first + area.size].reshape(area.count, area.step).T.ravel()
        number = packer.constants(values)
    else:
        number = packer.workspace(area.size)
        packer.insert(begin, _copy(area, number, into=True))
    for use in uses:
        _replace(packer, use, number, area)


def _pack_sums(packer: Draft, area: _Area, uses: Sequence[_VectorUse]) -> None:
    """Add to a workspace, if regions outside of nests only add in the area, and nothing reads it."""
    area = _widened(packer, area)
    size = packer.program.buffers[area.buffer].size
    if area.first < 0 or area.first + area.size > size or sum(len(use.places) for use in uses) < WORTH * area.size:
        return
    if area.buffer in buffers_read([*packer.steps, *chain.from_iterable(packer.before.values())]):
        return
    moved: list[_VectorUse] = []
    for at, step in enumerate(packer.steps):
        if isinstance(step, Nest):
            if area.buffer in buffers_written([step]):
                return
            continue
        for number, result in enumerate(step.results):
            places = result.table.places()
            inside = area.has(places) if result.buffer == area.buffer else np.zeros(1, dtype=bool)
            if inside.any() and (result.kind != "add" or not inside.all()):
                return
            if inside.any():
                moved.append(_VectorUse(at, "add", number, area.step, places))
    number = packer.workspace(area.size)
    for use in moved:
        _replace(packer, use, number, area)
    end = max(use.at for use in moved) + 1
    packer.insert(end, _copy(area, number, into=False))


def _widened(packer: Draft, area: _Area) -> _Area:
    """Return the area with all places of the sums that reach into it, in whole steps."""
    results = [use for step in packer.steps if isinstance(step, Region) for use in step.results]
    sums = [use.table.places() for use in results if use.buffer == area.buffer and use.kind == "add"]
    while True:
        inside = [places for places in sums if area.has(places).any()]
        lowest = min([area.first, *(int(places.min()) for places in inside)])
        highest = max([area.first + area.size, *(int(places.max()) + 1 for places in inside)])
        before, after = -(-(area.first - lowest) // area.step), -(-(highest - area.first - area.size) // area.step)
        if not before and not after:
            return area
        area = replace(area, first=area.first - before * area.step, count=area.count + before + after)


def _replace(packer: Draft, use: _VectorUse, number: int, area: _Area) -> None:
    """Let a gather or result use the workspace."""
    region = packer.steps[use.at]
    assert isinstance(region, Region)
    moved = table(area.packed(use.places))
    if use.kind == "read":
        gathers = list(region.gathers)
        gathers[use.number] = Gather(number, moved)
        packer.steps[use.at] = replace(region, gathers=tuple(gathers))
    else:
        results = list(region.results)
        results[use.number] = replace(results[use.number], buffer=number, table=moved)
        packer.steps[use.at] = replace(region, results=tuple(results))


def _copy(area: _Area, number: int, *, into: bool) -> Region:
    """Return the region that copies an area into its workspace, or back."""
    steps = [Affine(area.first + k, area.step, area.count) for k in range(area.step)]
    rows = [Affine(area.count * k, 1, area.count) for k in range(area.step)]
    sources, targets = (steps, rows) if into else (rows, steps)
    source, target = (area.buffer, number) if into else (number, area.buffer)
    gathers = tuple(Gather(source, places) for places in sources)
    results = tuple(Result(k, target, places, "store") for k, places in enumerate(targets))
    return Region(identities(area.step), area.count, gathers, results, origin=COPY)
