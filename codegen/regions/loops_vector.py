"""Repetitions several side by side, for a region whose repetitions know nothing of each other.

Repetitions come in runs (`codegen.regions.runs`): within one, place k of a table is `start + step * k`. A step of 0 is
a register (a number for all lanes, or an accumulator), a step of 1 a vector load or store, any other step a number for
each lane. The last vector of a run has lanes that are switched off.

Order of sums: each lane has its own sum in a register, of every W-th repetition; at the end of a run the upper half of
the lanes is added to the lower half until one is left. Sums in memory are added vector by vector, result by result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codegen.emission.emit import Emitted
from codegen.emission.lanes import Lanes
from codegen.functions.symbols import Symbol
from codegen.regions.loops import Function, Job, Use
from codegen.regions.runs import Runs, runs
from codegen.regions.table import Affine, Places

UNUSED = 0.5  # what a lane that is switched off computes with: harmless to most functions


@dataclass(frozen=True, eq=False)
class Column:
    """A table in a loop: its pointer in a run; the places there are `step * k`, or read from a table (`index`)."""

    use: Use
    name: str
    step: int
    starts: Places
    index: Places | None = None

    @property
    def fixed(self) -> bool:
        """Whether all repetitions of a run have one place."""
        return self.step == 0 and self.index is None

    @property
    def side_by_side(self) -> bool:
        """Whether the places of a run follow each other."""
        return self.step == 1 and self.index is None


def vector_loop(job: Job, lanes: Lanes) -> Emitted:
    """Return the function of a region that runs several repetitions side by side."""
    return _Vector(job, lanes).emit()


class _Vector(Function):
    """The function in the making."""

    def __init__(self, job: Job, lanes: Lanes) -> None:
        super().__init__(job, lanes)
        region = self.region
        uses: list[Use] = [*region.gathers, *region.results]
        found = runs([use.table for use in uses], region.count)
        if found is None:
            found, columns = self.by_index(uses)
        else:
            parts = zip(uses, found.steps, found.starts, strict=True)
            columns = [Column(use, f"%p{c}", step, starts) for c, (use, step, starts) in enumerate(parts)]
        self.runs, self.columns = found, columns
        self.reads, self.writes = columns[: len(region.gathers)], columns[len(region.gathers) :]
        self.masked = bool((self.runs.lengths % lanes.width).any())
        self.sums = [c for c, column in enumerate(self.writes) if column.fixed and job.adds(region.results[c])]
        self.kept = [c for c in self.sums if (self.writes[c].starts == self.writes[c].starts[0]).all()]

    def by_index(self, uses: list[Use]) -> tuple[Runs, list[Column]]:
        """One run, with places from tables where they are not affine."""
        columns = []
        for c, use in enumerate(uses):
            if isinstance(use.table, Affine):
                columns.append(Column(use, f"%p{c}", use.table.step, _numbers(use.table.start)))
            else:
                first = int(use.table.index[0])
                columns.append(Column(use, f"%p{c}", 0, _numbers(first), use.table.index - first))
        return Runs(_numbers(self.region.count), (), ()), columns

    def emit(self) -> Emitted:
        for column in self.columns:
            self.view(column.use)
        several = len(self.runs) > 1
        lines, vector = self.lines, self.lanes.type
        if several:
            self.write("br label %run", "run:", "%r=phi i64 [0,%entry],[%r.next,%endrun]")
            lines += [f"%a{c}=phi {vector} [zeroinitializer,%entry],[%v{c}.next,%endrun]" for c in self.kept]
        before = "run" if several else "entry"
        length = self.of_run(self.runs.lengths)
        for column in self.columns:
            start = self.of_run(column.starts)
            self.write(f"{column.name}=getelementptr double,ptr {self.view(column.use)},i64 {start}")
        fixed = {c: self.splat(self.load(column.name)) for c, column in enumerate(self.reads) if column.fixed}
        self.write("br label %vector", "vector:", f"%k=phi i64 [0,%{before}],[%k.next,%vector]")
        for c in self.sums:
            first = f"%a{c}" if several and c in self.kept else "zeroinitializer"
            self.write(f"%v{c}=phi {vector} [{first},%{before}],[%v{c}.next,%vector]")
        self.mask = self.lanes_on(length) if self.masked else self.lanes.splat("true", "i1")
        self.body([fixed.get(c) or self.read(column) for c, column in enumerate(self.reads)], self.leave)
        self.write(f"%k.next=add i64 %k,{self.lanes.width}")
        self.write(f"br i1 {self.new(f'icmp ult i64 %k.next,{length}')},label %vector,label %endrun", "endrun:")
        for c in self.sums:
            if not (several and c in self.kept):
                self.add_to(self.writes[c].name, self.sum_of_lanes(f"%v{c}.next"))
        if several:
            self.write("%r.next=add i64 %r,1")
            self.write(f"br i1 {self.new(f'icmp ult i64 %r.next,{len(self.runs)}')},label %run,label %exit", "exit:")
            for c in self.kept:
                self.add_to(self.writes[c].name, self.sum_of_lanes(f"%v{c}.next"))
        self.write("ret void")
        return self.emitted()

    def of_run(self, values: Places) -> str:
        """The number of this run: a constant where it is the same in all."""
        if (values == values[0]).all():
            return str(values[0])
        name, kind = self.job.tables.places(values)
        place = self.new(f"getelementptr {kind},ptr {name},i64 %r")
        found = self.new(f"load {kind},ptr {place},align {int(kind[1:]) // 8}")
        return found if kind == "i64" else self.new(f"sext i32 {found} to i64")

    def vector_of(self, kind: str, value: str) -> str:
        """One number in all lanes."""
        width = self.lanes.width
        one = self.new(f"insertelement <{width} x {kind}> poison,{kind} {value},i32 0")
        mask = f"<{width} x i32> zeroinitializer"
        return self.new(f"shufflevector <{width} x {kind}> {one},<{width} x {kind}> poison,{mask}")

    def splat(self, value: str) -> str:
        return self.vector_of("double", value)

    def lanes_on(self, length: str) -> str:
        """Which lanes have a repetition."""
        width = self.lanes.width
        lane = f"<{','.join(f'i64 {k}' for k in range(width))}>"
        number = self.new(f"add <{width} x i64> {self.vector_of('i64', '%k')},{lane}")
        end = f"splat (i64 {length})" if length.isdigit() else self.vector_of("i64", length)
        return self.new(f"icmp ult <{width} x i64> {number},{end}")

    def call(self, kind: str, operation: str, arguments: list[tuple[str, str]], scattered: bool) -> str:
        """A load or store of the lanes that are on."""
        name = f"llvm.masked.{operation}.{self.lanes.suffix}." + (f"v{self.lanes.width}p0" if scattered else "p0")
        parameters = ",".join(one for one, _ in arguments)
        self.symbols[name] = Symbol(name, f"declare {kind} @{name}({parameters})")
        return f"call {kind} @{name}({','.join(f'{one} {value}' for one, value in arguments)})"

    def places(self, column: Column) -> str:
        """Pointers to the places of the lanes."""
        width = self.lanes.width
        if column.index is None:
            first = self.new(f"getelementptr double,ptr {column.name},i64 {self.new(f'mul i64 %k,{column.step}')}")
            lanes = ",".join(f"i64 {column.step * lane}" for lane in range(width))
            return self.new(f"getelementptr double,ptr {first},<{width} x i64> <{lanes}>")
        padded = np.append(column.index, np.full(-len(column.index) % width, column.index[-1]))
        name, kind = self.job.tables.places(padded)
        entry = self.new(f"getelementptr {kind},ptr {name},i64 %k")
        numbers = self.new(f"load <{width} x {kind}>,ptr {entry},align {int(kind[1:]) // 8}")
        return self.new(f"getelementptr double,ptr {column.name},<{width} x {kind}> {numbers}")

    def read(self, column: Column) -> str:
        """Load a value for each lane."""
        vector, mask = self.lanes.type, (self.lanes.truth, self.mask)
        if column.side_by_side:
            place = self.new(f"getelementptr double,ptr {column.name},i64 %k")
            if not self.masked:
                return self.new(f"load {vector},ptr {place},align 8")
            where, operation, scattered = ("ptr", place), "load", False
        else:
            where, operation, scattered = (f"<{self.lanes.width} x ptr>", self.places(column)), "gather", True
        unused = (vector, self.lanes.splat(str(UNUSED)))
        return self.new(self.call(vector, operation, [where, ("i32", "8"), mask, unused], scattered))

    def leave(self, output: int, value: str) -> None:
        """Leave the values of the lanes where they go."""
        for c, use in enumerate(self.region.results):
            if use.output == output:
                self.leave_one(c, self.writes[c], value)

    def leave_one(self, c: int, column: Column, value: str) -> None:
        vector = self.lanes.type
        adds = self.job.adds(self.region.results[c])
        if c in self.sums:
            term = self.new(f"select {self.lanes.truth} {self.mask},{vector} {value},{vector} {self.zero}")
            self.write(f"%v{c}.next=fadd {vector} %v{c},{term if self.masked else value}")
        elif adds and not self.apart(column):
            self.add_one_by_one(column, value)
        else:
            self.store(column, value, adds=adds)

    @property
    def zero(self) -> str:
        return self.lanes.splat("-0.0")

    def store(self, column: Column, value: str, *, adds: bool) -> None:
        """Store values at places that are apart, or add them to what is there."""
        vector, mask = self.lanes.type, (self.lanes.truth, self.mask)
        if column.side_by_side:
            place = self.new(f"getelementptr double,ptr {column.name},i64 %k")
            where, operations, scattered = ("ptr", place), ("load", "store"), False
        else:
            where = (f"<{self.lanes.width} x ptr>", self.places(column))
            operations, scattered = ("gather", "scatter"), True
        if adds:
            unused = (vector, self.zero)
            before = self.new(self.call(vector, operations[0], [where, ("i32", "8"), mask, unused], scattered))
            value = self.new(f"fadd {vector} {before},{value}")
        if column.side_by_side and not self.masked:
            self.write(f"store {vector} {value},ptr {where[1]},align 8")
        else:
            self.write(self.call("void", operations[1], [(vector, value), where, ("i32", "8"), mask], scattered))

    def apart(self, column: Column) -> bool:
        """Whether the lanes of each vector have different places."""
        if column.index is None:
            return column.step != 0
        width = self.lanes.width
        padded = np.append(column.index, column.index.min() - 1 - np.arange(-len(column.index) % width))
        rows = np.sort(padded.reshape(-1, width), axis=1)
        return bool((np.diff(rows, axis=1) != 0).all())

    def add_one_by_one(self, column: Column, value: str) -> None:
        """Add the values of the lanes one after the other, for two may go to one place."""
        vector, pointers = f"<{self.lanes.width} x ptr>", self.places(column)
        if self.masked:
            kind = self.lanes.type
            value = self.new(f"select {self.lanes.truth} {self.mask},{kind} {value},{kind} {self.zero}")
        for lane in range(self.lanes.width):
            place = self.new(f"extractelement {vector} {pointers},i32 {lane}")
            self.add_to(place, self.new(f"extractelement {self.lanes.type} {value},i32 {lane}"))

    def sum_of_lanes(self, value: str) -> str:
        """The upper half of the lanes added to the lower half, until one is left."""
        width = self.lanes.width
        while width > 1:
            half = width // 2
            low = ",".join(f"i32 {k}" for k in range(half))
            high = ",".join(f"i32 {k + half}" for k in range(half))
            kind, part = f"<{width} x double>", f"<{half} x i32>"
            lower = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{low}>")
            upper = self.new(f"shufflevector {kind} {value},{kind} poison,{part} <{high}>")
            value, width = self.new(f"fadd <{half} x double> {lower},{upper}"), half
        return self.new(f"extractelement <1 x double> {value},i32 0")


def _numbers(value: int) -> Places:
    return np.array([value], dtype=np.int64)
