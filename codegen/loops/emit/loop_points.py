"""Write the loops of a rolled program for several points side by side, one point in each lane.

A number of a buffer is a register with one lane for each point; constants are read into all lanes. Repetitions follow
each other, and every point gets the same bits as alone: where a single point has W repetitions side by side, each with
its own sum, there are W sums here too (`codegen.loops.emit.loop_vector`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from codegen.ir.region import Region
from codegen.ir.tables import Places, same_in_all
from codegen.loops.emit.loop_columns import Column, LoopColumns
from codegen.loops.emit.loop_text import Function, Job, Written


def has_points(region: Region, columns: LoopColumns | None, stored: frozenset[int], width: int) -> bool:
    """Whether a region can be run for points side by side with the bits of single ones.

    It cannot if it calls a routine, if points stop at different repetitions, or if a single point adds numbers up
    before they are added to memory, or adds to one place of memory in another order. It has at most 256 sums of lanes.
    """
    if region.matrix is not None or region.stop is not None:
        return False
    if columns is None:
        return True
    adds = frozenset(c for c, use in enumerate(region.results) if use.kind == "add") - stored
    sums = [c for c in adds if columns.results[c].fixed]
    return not columns.overlaps and len(sums) * width <= 256 and _one_by_one(region, columns, adds, width)


def _one_by_one(region: Region, columns: LoopColumns, adds: frozenset[int], width: int) -> bool:
    """Whether no two results of repetitions that run side by side go to one place, nor a sum where others go."""
    lengths = columns.runs.lengths
    begins = np.cumsum(lengths) - lengths
    vector = np.concatenate([np.arange(length) // width + begin for begin, length in zip(begins, lengths, strict=True)])
    sums: dict[int, list[Places]] = {}
    others: dict[int, list[Places]] = {}
    shifts = {(use.buffer, use.table.shifts) for use in region.results}
    if len(shifts) > len({buffer for buffer, _ in shifts}) or any(use.kind == "last" for use in region.results):
        return False
    for c, use in enumerate(region.results):
        places = use.table.places()
        if c in adds and columns.results[c].fixed:
            sums.setdefault(use.buffer, []).append(places)
            continue
        different = np.unique(np.stack([places, vector]), axis=1)
        if different.shape[1] < len(places) and c not in adds:
            return False
        others.setdefault(use.buffer, []).append(different)
    for buffer, parts in others.items():
        together = np.concatenate(parts, axis=1)
        if np.unique(together, axis=1).shape[1] < together.shape[1]:
            return False
        if buffer in sums and np.isin(np.concatenate(sums[buffer]), together[0]).any():
            return False
    return True


class PointsLoop(Function):
    """The function of a region, under construction: run by run, as a single point runs it in `width` lanes."""

    def __init__(self, job: Job, columns: LoopColumns, width: int) -> None:
        super().__init__(job, job.scalar)
        self.columns, self.width, self.several = columns, width, len(columns.runs) > 1
        self.sums = [c for c, column in enumerate(columns.results) if column.fixed and job.adds(c)]
        self.kept = [c for c in self.sums if not self.several or same_in_all(columns.results[c].starts)]
        self.begins: dict[int, str] = {}  # by column: where a run begins
        self.places: dict[int, str] = {}  # by the first column of a family: where the repetition is
        self.lane_sums: dict[int, str] = {}

    def emit(self) -> Written:
        columns = (*self.columns.reads, *self.columns.results)
        for column in columns:
            self.view(column.use)
        for c in self.sums:
            self.lane_sums[c] = self.new(f"alloca [{self.width} x {self.scalar.type}],align 64")
            self.clear(c)
        before, length = "entry", self.columns.runs.lengths
        if self.several:
            self.write("br label %run", "run:", "%r=phi i64 [0,%entry],[%r.next,%endrun]")
            before = "run"
        count = self.of_run(length)
        self.first_of = _families(columns)
        for column in columns:
            self.begins[column.number] = self.begin(column)
        fixed = {
            c: self.read_from(column.use, self.begins[c]) for c, column in enumerate(self.columns.reads) if column.fixed
        }
        self.write("br label %loop", "loop:", f"%k=phi i64 [0,%{before}],[%k.next,%loop]")
        self.body([fixed.get(c) or self.read(column) for c, column in enumerate(self.columns.reads)], self.leave)
        self.write("%k.next=add i64 %k,1")
        self.write(f"br i1 {self.new(f'icmp ult i64 %k.next,{count}')},label %loop,label %endrun", "endrun:")
        for c in self.sums:
            if c not in self.kept:
                self.add_to(self.begins[self.columns.results[c].number], self.sum_of_lanes(c))
                self.clear(c)
        if self.several:
            self.write("%r.next=add i64 %r,1")
            more = self.new(f"icmp ult i64 %r.next,{len(length)}")
            self.write(f"br i1 {more},label %run,label %exit", "exit:")
        for c in self.kept:
            self.leave_total(c, self.sum_of_lanes(c))
        self.write("ret void")
        return self.written()

    def begin(self, column: Column) -> str:
        """Return a pointer to where a run begins; reuse another column's pointer when their distance is constant."""
        first, far = self.first_of[column.number]
        pointer, number = self.begins.get(first.number), self.number_of(column.use)
        if pointer is not None:
            return self.offset(pointer, far, number)
        return self.offset(self.view(column.use), self.of_run(column.starts), number)

    def place(self, column: Column) -> str:
        """Return a pointer to the place of the repetition."""
        number = self.number_of(column.use)
        if column.index is not None:
            at, kind = self.entry(column.index, "%k")
            return self.new(self.element(self.begins[column.number], at, kind, number))
        first, far = self.first_of[column.number]
        if first.number not in self.places:
            moved = self.new(f"mul i64 %k,{column.step}")
            self.places[first.number] = self.offset(self.begins[first.number], moved, number)
        return self.offset(self.places[first.number], far, number)

    def read(self, column: Column) -> str:
        return self.read_from(column.use, self.place(column))

    def leave(self, output: int, value: str) -> None:
        for c in self.uses.get(output, ()):
            if c in self.lane_sums:
                lane = self.new(f"and i64 %k,{self.width - 1}")
                self.add_to(self.new(self.element(self.lane_sums[c], lane)), value)
            elif self.job.adds(c):
                self.add_to(self.place(self.columns.results[c]), value)
            else:
                self.store_one(value, self.place(self.columns.results[c]))

    def clear(self, c: int) -> None:
        """Begin a sum, in each lane of a single point."""
        for lane in range(self.width):
            self.store_one("zeroinitializer", self.offset(self.lane_sums[c], lane))

    def sum_of_lanes(self, c: int) -> str:
        sums = [self.load(self.offset(self.lane_sums[c], lane)) for lane in range(self.width)]
        while len(sums) > 1:
            half = len(sums) // 2
            pairs = zip(sums[:half], sums[half:], strict=True)
            sums = [self.new(f"fadd {self.scalar.type} {low},{high}") for low, high in pairs]
        return sums[0]


def _families(columns: Sequence[Column]) -> dict[int, tuple[Column, int]]:
    """Return for each column, by number, the first one at a constant distance, and the distance."""
    firsts: dict[Hashable, Column] = {}
    families = {}
    for column in columns:
        table = column.use.table
        index = None if column.index is None else column.number
        apart = (column.starts - column.starts[0]).tobytes()
        first = firsts.setdefault((column.use.buffer, table.shifts, column.step, index, apart), column)
        families[column.number] = first, int(column.starts[0] - first.starts[0])
    return families
