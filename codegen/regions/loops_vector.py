"""Repetitions several side by side, for a region whose repetitions know nothing of each other.

Repetitions come in runs (`codegen.regions.runs`): within one, place k of a table is `start + step * k`. A step of 0 is
a register (a number for all lanes, or an accumulator), a step of 1 a vector load or store, any other step a number for
each lane: gathers and scatters of the processor are no faster, and on some much slower. The last vector of a run has
lanes that are switched off: they read what the last repetition reads, and what they store is overwritten by it.

Order of sums: each lane has its own sum in a register, of every W-th repetition; at the end of a run the upper half of
the lanes is added to the lower half until one is left. Sums in memory are added vector by vector, result by result;
sums that overlap (`codegen.regions.loops_columns`) are added to each other first. So a result depends on the program
and on the width of the registers, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.emission.lanes import Lanes
from codegen.functions.symbols import Symbol
from codegen.regions.loops import Job, Written
from codegen.regions.loops_columns import Column, Columns, Overlap, rows_of
from codegen.regions.loops_lanes import LaneFunction
from codegen.regions.region import Result
from codegen.regions.table import Places

SMALLER = Symbol("llvm.umin.i64", "declare i64 @llvm.umin.i64(i64,i64)")


def vector_loop(job: Job, lanes: Lanes, columns: Columns) -> Written:
    """Return the function of a region that runs several repetitions side by side."""
    return _Vector(job, lanes, columns).emit()


class _Vector(LaneFunction):
    """The function in the making."""

    def __init__(self, job: Job, lanes: Lanes, columns: Columns) -> None:
        super().__init__(job, lanes)
        self.columns, self.runs = columns, columns.runs
        self.reads, self.results, self.overlaps = columns.reads, columns.results, columns.overlaps
        self.overlapping = {c: overlap for overlap in self.overlaps for c in overlap.distances}
        self.masked = bool(self.overlaps) or bool((self.runs.lengths % lanes.width).any())
        self.sums = [c for c, column in enumerate(self.results) if column.fixed and job.adds(self.region.results[c])]
        self.kept = [c for c in self.sums if len(self.runs) > 1 and _same(self.results[c].starts)]
        self.names = {id(column): f"%p{c}" for c, column in enumerate((*self.reads, *self.results))}
        self.strided = [c for c, use in enumerate(self.region.results) if self.is_strided(c, use)]
        self.waiting: dict[int, str] = {}  # by result: values that are stored in steps, at the end of the repetition
        self.moved: dict[int, str] = {}  # by result: the values of the lanes where they overlap with others

    def emit(self) -> Written:
        for column in (*self.reads, *self.results):
            self.view(column.use)
        several, lines, vector = len(self.runs) > 1, self.lines, self.lanes.type
        if several:
            self.write("br label %run", "run:", "%r=phi i64 [0,%entry],[%r.next,%endrun]")
            lines += [f"%a{c}=phi {vector} [zeroinitializer,%entry],[%v{c}.next,%endrun]" for c in self.kept]
        self.before = "run" if several else "entry"
        self.length = self.of_run(self.runs.lengths)
        for column in (*self.reads, *self.results):
            start = self.of_run(column.starts)
            self.write(f"{self.names[id(column)]}=getelementptr double,ptr {self.view(column.use)},i64 {start}")
        self.loop()
        for c in self.sums:
            if c not in self.kept:
                self.add_to(self.name(self.results[c]), self.sum_of_lanes(f"%v{c}.next"))
        if several:
            self.write("%r.next=add i64 %r,1")
            self.write(f"br i1 {self.new(f'icmp ult i64 %r.next,{len(self.runs)}')},label %run,label %exit", "exit:")
        for c in self.kept:
            self.add_to(self.name(self.results[c]), self.sum_of_lanes(f"%v{c}.next"))
        self.write("ret void")
        return self.written()

    def loop(self) -> None:
        """Write the loop over a run."""
        fixed = {
            c: self.splat(self.load(self.name(column))) for c, column in enumerate(self.reads) if column.fixed
        }  # fmt: skip
        self.write("br label %vector", "vector:", f"%k=phi i64 [0,%{self.before}],[%k.next,%vector]")
        for c in self.sums:
            first = f"%a{c}" if c in self.kept else "zeroinitializer"
            self.phi(f"%v{c}", first, f"%v{c}.next")
        for c, overlap in self.overlapping.items():
            if overlap.distances[c]:
                self.phi(f"%b{c}", "zeroinitializer", f"%b{c}.next")
        self.mask = self.lanes_on(self.length) if self.masked else self.lanes.splat("true", "i1")
        self.numbers = self.lane_numbers() if any(_in_steps(c) for c in (*self.reads, *self.results)) else []
        self.body([fixed.get(c) or self.read(column) for c, column in enumerate(self.reads)], self.leave)
        self.store_in_steps()
        self.write(f"%k.next=add i64 %k,{self.lanes.width}")
        self.write(f"br i1 {self.new(f'icmp ult i64 %k.next,{self.length}')},label %vector,label %endrun", "endrun:")
        for overlap in self.overlaps:  # what has moved beyond the last vector
            left = [self.moved_up(far, f"%b{c}.next", "zeroinitializer") for c, far in overlap.distances.items() if far]
            if left:
                self.leave_overlap(overlap, left, "%k.next")

    def phi(self, name: str, first: str, following: str) -> None:
        self.write(f"{name}=phi {self.lanes.type} [{first},%{self.before}],[{following},%vector]")

    def is_strided(self, c: int, use: Result) -> bool:
        return _in_steps(self.results[c]) and not self.job.adds(use)

    def store_in_steps(self) -> None:
        """Store what goes to places in steps: vectors turned into rows, a row for each lane."""
        for group in rows_of([self.results[c] for c in self.strided]):
            column = self.results[self.strided[group[0]]]
            self.store_rows(column, [self.waiting[self.strided[k]] for k in group])

    def lane_numbers(self) -> list[str]:
        """The repetition of each lane; for lanes that have none, the last one of the run."""
        found = ["%k", *(self.new(f"add i64 %k,{lane}") for lane in range(1, self.lanes.width))]
        if not self.masked:
            return found
        last = self.plus(self.length, -1)
        return [self.new(f"call i64 @{self.smaller}(i64 {number},i64 {last})") for number in found]

    @property
    def smaller(self) -> str:
        self.symbols[SMALLER.name] = SMALLER
        return SMALLER.name

    def plus(self, number: str, more: int) -> str:
        if not more:
            return number
        return str(int(number) + more) if number.isdigit() else self.new(f"add i64 {number},{more}")

    def of_run(self, values: Places) -> str:
        """The number of this run: a constant where it is the same in all."""
        if _same(values):
            return str(values[0])
        name, kind = self.job.tables.places(values)
        place = self.new(f"getelementptr {kind},ptr {name},i64 %r")
        found = self.new(f"load {kind},ptr {place},align {int(kind[1:]) // 8}")
        return found if kind == "i64" else self.new(f"sext i32 {found} to i64")

    def leave(self, output: int, value: str) -> None:
        """Leave the values of the lanes where they go."""
        for c in self.uses.get(output, ()):
            self.leave_one(c, value)

    def leave_one(self, c: int, value: str) -> None:
        column, vector = self.results[c], self.lanes.type
        adds = self.job.adds(self.region.results[c])
        if c in self.sums:
            self.write(f"%v{c}.next=fadd {vector} %v{c},{self.switched(value)}")
        elif c in self.overlapping:
            overlap = self.overlapping[c]
            self.write(f"%b{c}.next=bitcast {vector} {self.switched(value, 'zeroinitializer')} to {vector}")
            distance = overlap.distances[c]
            self.moved[c] = self.moved_up(distance, f"%b{c}", f"%b{c}.next") if distance else f"%b{c}.next"
            if self.moved.keys() >= overlap.distances.keys():
                self.leave_overlap(overlap, [self.moved[part] for part in overlap.distances], "%k")
        elif c in self.strided:
            self.waiting[c] = value
        elif column.side_by_side:
            self.store(column, value, self.mask, adds=adds)
        else:
            self.leave_lanes(column, value, adds=adds)

    def leave_overlap(self, overlap: Overlap, terms: Sequence[str], k: str) -> None:
        """Add overlapping sums to each other, then leave them from the place of repetition k on."""
        total, *others = terms
        for term in others:
            total = self.new(f"fadd {self.lanes.type} {total},{term}")
        adds = any(self.job.adds(self.region.results[c]) for c in overlap.distances)
        mask = self.lanes_on(self.plus(self.length, overlap.longest), k)
        self.store(self.results[overlap.first], total, mask, adds=adds, k=k)

    def moved_up(self, distance: int, before: str, value: str) -> str:
        """Move the lanes up; the first ones come from the vector before."""
        width = self.lanes.width
        lanes = ",".join(f"i32 {lane}" for lane in range(width - distance, 2 * width - distance))
        return self.new(f"shufflevector {self.lanes.type} {before},{self.lanes.type} {value},<{width} x i32> <{lanes}>")


def _in_steps(column: Column) -> bool:
    return column.index is None and column.step not in (0, 1)


def _same(values: Places) -> bool:
    return bool(np.all(values == values[0]))
