"""Write several independent repetitions side by side in lanes.

Repetitions come in runs (`codegen.ir.tables`): within one, place k of a table is `start + step * k`. A step of 0
is a register (a number for all lanes, or an accumulator), a step of 1 a vector load or store, any other step a number
for each lane: gathers and scatters of the processor are no faster, and on some much slower. The body is written twice:
for whole vectors, and for the repetitions at the end of a run, where some lanes have none. These read the places of the
last repetition, or a number; their results are not stored, or overwritten by the last repetition.

Order of sums: each lane has its own sum in a register, of every W-th repetition; at the end of a run the upper half of
the lanes is added to the lower half until one is left. Sums in memory are added vector by vector, result by result;
sums that overlap (`codegen.loops.emit.loop_columns`) are added to each other first. So a result depends only on the
program and on the width of the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np

from codegen.ir.machine_rows import LEAVES, operands_of
from codegen.ir.region import Region
from codegen.ir.tables import Places, runs, same_in_all
from codegen.lanes import Lanes
from codegen.loops.emit.loop_columns import LoopColumns, Overlap, rows_of
from codegen.loops.emit.loop_lanes import LaneFunction
from codegen.loops.emit.loop_text import Job, Written
from codegen.lowering.lower import Lowered

Left: TypeAlias = dict[int, str]
REGISTERS = 4  # of repetitions that run at once in long sums


def registers(region: Region, lowered: Lowered) -> int:
    """Return how many registers of repetitions a region runs at once: 4 where its body is a long sum, in a single run.

    Each addition of such a sum waits for the one before, and the next repetition is too far away to fill the gaps. A
    sum is long from 12 dependent operations on, if these are a third of all; with more than 2 results registers spill.
    """
    live = [row for row in lowered.live() if lowered.rows[row][0] not in LEAVES]
    longest: dict[int, int] = {}
    for row in live:
        longest[row] = 1 + max((longest.get(operand, 0) for operand in operands_of(lowered.rows[row])), default=0)
    if len(region.results) > 2 or max(longest.values(), default=0) < max(12, len(live) // 3):
        return 1
    table_runs = runs([use.table for use in region.uses], region.count)
    return REGISTERS if table_runs is not None and len(table_runs) == 1 else 1


class VectorLoop(LaneFunction):
    """The function of a region that runs several repetitions side by side, under construction."""

    def __init__(self, job: Job, lanes: Lanes, columns: LoopColumns) -> None:
        super().__init__(job, lanes)
        self.columns, self.runs = columns, columns.runs
        self.reads, self.results, self.overlaps = columns.reads, columns.results, columns.overlaps
        self.overlapping = {c: overlap for overlap in self.overlaps for c in overlap.distances}
        self.sums = [c for c, column in enumerate(self.results) if column.fixed and job.adds(c)]
        self.kept = [c for c in self.sums if len(self.runs) > 1 and same_in_all(self.results[c].starts)]
        firsts = {c: self.overlapping[c].first if c in self.overlapping else c for c in range(len(self.results))}
        steps = [c for c, column in enumerate(self.results) if column.index is None and column.step not in (0, 1)]
        self.strided = [c for c in steps if not job.adds(c) and firsts[c] == c]
        self.waiting: dict[int, str] = {}  # by result: values that are stored in steps, at the end of the repetition
        self.moved: dict[int, str] = {}  # by result: the values of the lanes where they overlap with others
        self.passed: Left = {}  # by result: values from the vector before, a sum or the lanes that move up

    @property
    def in_parts(self) -> bool:
        """Whether a run is cut into blocks; blocks of several runs consist of whole runs."""
        return self.job.blocks is not None and len(self.runs) == 1

    @property
    def begin(self) -> str:
        return "%first" if self.in_parts else "0"

    @property
    def lengths(self) -> Places:
        blocks = self.job.blocks
        if blocks is None or not self.in_parts:
            return self.runs.lengths
        return np.minimum(blocks.size, blocks.units - blocks.size * np.arange(blocks.count))

    def emit(self) -> Written:
        for column in (*self.reads, *self.results):
            self.view(column.use)
        several, lines, vector = len(self.runs) > 1, self.lines, self.lanes.type
        if several:
            first = "0" if self.job.blocks is None else "%first"
            self.write("br label %run", "run:", f"%r=phi i64 [{first},%entry],[%r.next,%endrun]")
            lines += [f"%a{c}=phi {vector} [zeroinitializer,%entry],[%v{c},%endrun]" for c in self.kept]
        self.length = "%last" if self.in_parts else self.of_run(self.runs.lengths)
        for column in (*self.reads, *self.results):
            start = self.of_run(column.starts)
            self.write(f"{self.name(column)}={self.element(self.view(column.use), start)}")
        self.run("run" if several else "entry")
        for c in self.sums:
            if not several:
                self.leave_total(c, self.sum_of_lanes(f"%v{c}"))
            elif c not in self.kept:
                self.add_to(self.name(self.results[c]), self.sum_of_lanes(f"%v{c}"))
        if several:
            self.write("%r.next=add i64 %r,1")
            last = len(self.runs) if self.job.blocks is None else "%last"
            self.write(f"br i1 {self.new(f'icmp ult i64 %r.next,{last}')},label %run,label %exit", "exit:")
        for c in self.kept:
            self.leave_total(c, self.sum_of_lanes(f"%v{c}"))
        self.write("ret void")
        return self.written()

    def run(self, before: str) -> None:
        """Write a run: whole vectors, then the last repetitions, then the sums that have moved beyond them."""
        width, lengths = self.lanes.width, self.lengths
        whole, rest = lengths >= width, lengths % width > 0  # the runs in which there are some
        self.uniform = [self.splat(self.load(self.name(column))) if column.fixed else "" for column in self.reads]
        left = {c: f"%a{c}" if c in self.kept else "zeroinitializer" for c in self.sums}
        overlaps = chain.from_iterable(overlap.distances.items() for overlap in self.overlaps)
        left |= {c: "zeroinitializer" for c, distance in overlaps if distance}
        if self.in_parts and self.overlaps:
            before, left = self.warmed(before, left)
        end = self.rounded(self.length)
        to_rest, to_end = [(before, left)], []
        if whole.any():
            self.branch("" if whole.all() else self.new(f"icmp ne i64 {end},{self.begin}"), "vector", "rest")
            ended = ("whole", self.whole_vectors(before, left, end))
            to_rest, to_end = [*([] if whole.all() else to_rest), ended], [] if rest.all() else [ended]
            following = "rest" if rest.all() else "endrun"
            if rest.any() and not rest.all():
                self.branch(self.new(f"icmp ult i64 {end},{self.length}"), "rest", following)
            else:
                self.branch("", following)
        else:
            self.branch("", "rest")
        if rest.any():
            self.write("rest:", *self.phis("v%d.rest", to_rest))
            self.vector(end, {c: f"%v{c}.rest" for c in left}, self.lanes_on(self.length, end))
            to_end.append(("rest", self.passed))
            self.branch("", "endrun")
        self.write("endrun:", *self.phis("v%d", to_end))
        self.leave_moved({c: f"%v{c}" for c in left})

    def whole_vectors(self, before: str, left: Left, end: str) -> Left:
        """Write the loop over vectors whose lanes all have a repetition."""
        self.write("vector:", f"%k=phi i64 [{self.begin},%{before}],[%k.next,%vector]")
        start = len(self.lines)
        self.vector("%k", {c: f"%v{c}.vector" for c in left})
        self.lines[start:start] = self.phis("v%d.vector", [(before, left), ("vector", self.passed)])
        self.write(f"%k.next=add i64 %k,{self.lanes.width}")
        self.branch(self.new(f"icmp ult i64 %k.next,{end}"), "vector", "whole")
        self.write("whole:")
        return self.passed

    def vector(self, k: str, left: Left, mask: str = "") -> None:
        """Write the repetitions of one vector, from repetition k on; results in steps are stored as rows."""
        self.compute(k, left, self.leave, mask)
        strided = [c for c in self.strided if c in self.waiting]
        for group in rows_of([self.results[c] for c in strided]):
            self.store_rows(self.results[strided[group[0]]], [self.waiting[strided[k]] for k in group])

    def compute(self, k: str, left: Left, leave: Callable[[int, str], None], mask: str = "") -> None:
        self.k, self.passed, self.mask = k, dict(left), mask
        self.numbers, self.moved, self.waiting = [], {}, {}
        self.body([self.uniform[c] or self.read(column) for c, column in enumerate(self.reads)], leave)

    def warmed(self, before: str, left: Left) -> tuple[str, Left]:
        """Recompute the last vector of the block before, for the lanes that move up into this block."""
        self.branch(self.new("icmp eq i64 %first,0"), "begin", "warm")
        self.write("warm:")
        self.compute(self.plus("%first", -self.lanes.width), left, self.pass_on)
        self.branch("", "begin")
        self.write("begin:", *self.phis("v%d.begin", [(before, left), ("warm", self.passed)]))
        return "begin", {c: f"%v{c}.begin" for c in left}

    def pass_on(self, output: int, value: str) -> None:
        """Keep a value whose lanes move up, and store nothing."""
        for c in self.uses.get(output, ()):
            if c in self.passed and c not in self.sums:
                self.passed[c] = value

    def phis(self, name: str, sources: Sequence[tuple[str, Left]]) -> list[str]:
        return [
            f"%{name % c}=phi {self.lanes.type} " + ",".join(f"[{left[c]},%{block}]" for block, left in sources)
            for c in sources[0][1]
        ]

    def branch(self, condition: str, label: str, other: str = "") -> None:
        """Branch to a label, or to the other one if a condition does not hold."""
        self.write(f"br i1 {condition},label %{label},label %{other}" if condition else f"br label %{label}")

    def rounded(self, number: str, more: int = 0) -> str:
        """Return how many of some repetitions are in whole vectors."""
        number, width = self.plus(number, more), self.lanes.width
        return str(int(number) // width * width) if number.isdigit() else self.new(f"and i64 {number},{-width}")

    def leave(self, output: int, value: str) -> None:
        for c in self.uses.get(output, ()):
            self.leave_one(c, value)

    def leave_one(self, c: int, value: str) -> None:
        column = self.results[c]
        adds = self.job.adds(c)
        if c in self.sums:
            self.passed[c] = self.new(f"fadd {self.lanes.type} {self.passed[c]},{self.switched(value)}")
        elif c in self.overlapping:
            overlap, value = self.overlapping[c], self.switched(value, "zeroinitializer")
            self.moved[c] = value
            if c in self.passed:
                self.moved[c], self.passed[c] = self.moved_up(overlap.distances[c], self.passed[c], value), value
            if self.moved.keys() >= overlap.distances.keys():
                on = self.mask and self.lanes_on(self.plus(self.length, overlap.longest), self.k)
                self.leave_overlap(overlap, [self.moved[part] for part in overlap.distances], self.k, on)
        elif c in self.strided:
            self.waiting[c] = value
        elif column.side_by_side:
            self.store(column, value, adds=adds)
        else:
            self.leave_lanes(column, value, adds=adds)

    def leave_moved(self, left: Left) -> None:
        """Store the lanes that have moved up beyond the last vector of a run."""
        if not self.overlaps:
            return
        end = self.rounded(self.length, self.lanes.width - 1)
        for overlap in self.overlaps:
            on = self.lanes_on(self.end_of(overlap), end)
            terms = [self.moved_up(far, left[c], "zeroinitializer") for c, far in overlap.distances.items() if far]
            if terms:
                self.leave_overlap(overlap, terms, end, on)

    def end_of(self, overlap: Overlap) -> str:
        """Return where overlapping sums end; sums beyond the end of a block are stored by the next one."""
        end = self.plus(self.length, overlap.longest)
        if not self.in_parts:
            return end
        last = self.new(f"icmp eq i64 {self.length},{self.region.count}")
        return self.new(f"select i1 {last},i64 {end},i64 {self.length}")

    def leave_overlap(self, overlap: Overlap, terms: Sequence[str], k: str, mask: str) -> None:
        """Add overlapping sums to each other, then store them from the place of repetition k on."""
        total, *others = terms
        for term in others:
            total = self.new(f"fadd {self.lanes.type} {total},{term}")
        adds = any(map(self.job.adds, overlap.distances))
        if overlap.first in self.strided and not mask:
            self.waiting[overlap.first] = total
        else:
            self.store_some(self.results[overlap.first], total, mask, k, adds=adds)

    def moved_up(self, distance: int, before: str, value: str) -> str:
        """Move the lanes up; the first ones come from the vector before."""
        width = self.lanes.width
        lanes = ",".join(f"i32 {lane}" for lane in range(width - distance, 2 * width - distance))
        return self.new(f"shufflevector {self.lanes.type} {before},{self.lanes.type} {value},<{width} x i32> <{lanes}>")
