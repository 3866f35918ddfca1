"""IR of a region: a loop over its repetitions, several of them side by side where they know nothing of each other.

Repetitions come in runs (`codegen.regions.runs`): within one, place k of a table is `start + step * k`. A step of 0 is
a register (a number for all lanes, or an accumulator), a step of 1 a vector load or store, any other step a number for
each lane. What is left of a run after whole vectors is done one by one. Sums are added up in the order of k by one
lane; by several lanes each lane has its own sum, and these are added from the first to the last at the end of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codegen.emission.emit import LEAF_NAMES, OPERATIONS, Emitted, Form, _Names, _Writer
from codegen.emission.lanes import SCALAR, Lanes
from codegen.emission.schedule import schedule
from codegen.functions.symbols import Symbol, symbol
from codegen.lowering.lower import Lowered
from codegen.lowering.machine import Row
from codegen.regions.region import Gather, Region, Result
from codegen.regions.runs import Runs, runs
from codegen.regions.table import Affine, Places, Table


@dataclass(frozen=True, eq=False)
class Column:
    """A table in a loop: its pointer, and the places, `start + step * k` in a run or one by one (`index`)."""

    name: str
    buffer: int
    step: int
    starts: Places
    index: Places | None = None


def loop(name: str, region: Region, lowered: Lowered, pointers: Sequence[str], lanes: Lanes, *, fast: bool) -> Emitted:
    """Return the IR of the function `name(in, out, work)`; `pointers` are the instructions that find each buffer."""
    return _Loop(name, region, lowered, pointers, lanes if region.parallel else SCALAR, fast=fast).emit()


class _Slots(_Names):
    """Names of the values in one repetition of the body, or in several side by side; inputs are slots."""

    def __init__(self, writer: _Writer, lines: list[str], first: int, slots: Sequence[str]) -> None:
        super().__init__(writer, lines, first)
        self.slots = slots

    def input(self, row: Row) -> str:
        return self.slots[row[1]]


class _Loop:
    """The function of one region in the making."""

    def __init__(
        self, name: str, region: Region, lowered: Lowered, pointers: Sequence[str], lanes: Lanes, *, fast: bool
    ) -> None:
        self.name, self.region, self.lowered, self.pointers, self.lanes = name, region, lowered, pointers, lanes
        plan = schedule(lowered, len(lowered.rows) or 1)
        self.order = plan.chunks[0] if plan.chunks else []
        self.stored = {array: row for array, _, row in lowered.stores}
        self.writers = {
            kind: _Writer(region.body, lowered.rows, plan, {}, Form(name, kind, vector_libm=fast))
            for kind in {SCALAR, lanes}
        }
        self.globals: list[str] = []
        self.lines: list[str] = []
        self.next = 0
        uses: list[Gather | Result] = [*region.gathers, *region.results]
        columns = self.columns([(use.buffer, use.table) for use in uses], region.count)
        self.reads, self.writes = columns[: len(region.gathers)], columns[len(region.gathers) :]
        self.sums = [
            k for k, use in enumerate(region.results) if use.kind == "add" and self.writes[k].step == 0
            and self.writes[k].index is None
        ]  # fmt: skip

    def columns(self, tables: Sequence[tuple[int, Table]], count: int) -> list[Column]:
        found = runs([table for _, table in tables], count)
        if found is None:
            one = Runs(_numbers([count]), (), ())
            self.runs = one
            return [
                Column(f"%p{k}", buffer, table.step, _numbers([table.start]))
                if isinstance(table, Affine)
                else Column(f"%p{k}", buffer, 0, _numbers([0]), table.places())
                for k, (buffer, table) in enumerate(tables)
            ]
        self.runs = found
        parts = zip(tables, found.steps, found.starts, strict=True)
        return [Column(f"%p{k}", buffer, step, start) for k, ((buffer, _), step, start) in enumerate(parts)]

    def write(self, *lines: str) -> None:
        self.lines += lines

    def new(self, instruction: str) -> str:
        name = f"%{self.next}"
        self.next += 1
        self.lines.append(f"{name}={instruction}")
        return name

    def table(self, name: str, values: Places) -> str:
        """A constant array of integers; return its name."""
        text = ",".join(f"i64 {value}" for value in values.tolist())
        self.globals.append(f"@{self.name}.{name}=internal constant [{len(values)} x i64] [{text}]")
        return f"@{self.name}.{name}"

    def of_run(self, name: str, values: Places) -> str:
        """The number of this run: a constant where it is the same in all."""
        if (values == values[0]).all():
            return str(values[0])
        place = self.new(f"getelementptr i64,ptr {self.table(name, values)},i64 %r")
        return self.new(f"load i64,ptr {place},align 8")

    def emit(self) -> Emitted:
        """Return the function."""
        region, width = self.region, self.lanes.width
        self.write(f"define internal void @{self.name}(ptr %in,ptr %out,ptr %work) nounwind{self.lanes.attributes} {{")
        self.write("entry:")
        buffers = {column.buffer: "" for column in (*self.reads, *self.writes)}
        buffers |= {use.buffer: "" for carry in region.carries for use in carry.initial}
        self.buffers = {buffer: self.pointer(self.pointers[buffer]) for buffer in buffers}
        queues = [self.first(carry.initial) for carry in region.carries]
        self.write("br label %run", "run:")
        carried = [
            self.phi("double", value, "entry", f"%q{c}.{i}.end", "endrun")
            for c, queue in enumerate(queues)
            for i, value in enumerate(queue)
        ]
        self.write("%r=phi i64 [0,%entry],[%r.next,%endrun]")
        self.lines.insert(self.lines.index("run:") + 1, self.lines.pop())
        length = self.of_run("lengths", self.runs.lengths)
        for column in (*self.reads, *self.writes):
            start = self.of_run(f"start{column.name[2:]}", column.starts)
            self.write(f"{column.name}=getelementptr double,ptr {self.buffers[column.buffer]},i64 {start}")
        uniform = {
            k: self.new(f"load double,ptr {c.name},align 8") for k, c in enumerate(self.reads) if self.is_fixed(c)
        }
        if width > 1:
            self.vector_loop(length, uniform)
        else:
            self.write("br label %check")
        self.scalar_loop(length, uniform, carried, "run" if width == 1 else None)
        self.write("}")
        called: dict[tuple[str, str], int] = {}
        wrappers: dict[str, Symbol] = {}
        for writer in self.writers.values():
            called |= writer.called
            wrappers |= writer.wrappers
        symbols = {name: symbol(name, arity, kind) for (name, kind), arity in sorted(called.items())}
        return Emitted([], [*self.globals, "\n".join(self.lines)], symbols | wrappers)

    def is_fixed(self, column: Column) -> bool:
        return column.step == 0 and column.index is None

    def pointer(self, text: str) -> str:
        """Find a buffer: a global, or an entry of the tables of arrays."""
        if text.startswith("@"):
            return text
        table, number = text.split()
        if table == "%work":
            return self.new(f"getelementptr double,ptr %work,i64 {number}")
        place = self.new(f"getelementptr ptr,ptr {table},i64 {number}")
        return self.new(f"load ptr,ptr {place},align 8")

    def first(self, initial: Sequence[Gather]) -> list[str]:
        """Load the initial values of a carry."""
        found = []
        for use in initial:
            place = self.new(f"getelementptr double,ptr {self.buffers[use.buffer]},i64 {int(use.table.places()[0])}")
            found.append(self.new(f"load double,ptr {place},align 8"))
        return found

    def phi(self, kind: str, first: str, origin: str, again: str, block: str) -> str:
        return self.new(f"phi {kind} [{first},%{origin}],[{again},%{block}]")

    def vector_loop(self, length: str, uniform: dict[int, str]) -> None:
        """Whole vectors of a run, and the sums of their lanes."""
        lanes, width = self.lanes, self.lanes.width
        spread = {k: self.splat(value, lanes) for k, value in uniform.items()}
        self.write(f"%whole=and i64 {length},{-width}", "%some=icmp ugt i64 %whole,0")
        self.write("br i1 %some,label %vector,label %check", "vector:")
        self.write("%kv=phi i64 [0,%run],[%kv.next,%vector]")
        for k in self.sums:
            self.write(f"%v{k}=phi {lanes.type} [zeroinitializer,%run],[%v{k}.next,%vector]")
        self.repetition(lanes, "%kv", spread, [], "%v")
        self.write(f"%kv.next=add i64 %kv,{width}", "%kv.more=icmp ult i64 %kv.next,%whole")
        self.write("br i1 %kv.more,label %vector,label %lanes", "lanes:")
        for k in self.sums:
            total = self.new(f"extractelement {lanes.type} %v{k}.next,i32 0")
            for lane in range(1, width):
                other = self.new(f"extractelement {lanes.type} %v{k}.next,i32 {lane}")
                total = self.new(f"fadd double {total},{other}")
            self.write(f"%l{k}=fadd double {total},0x8000000000000000")
        self.write("br label %check")

    def scalar_loop(self, length: str, uniform: dict[int, str], carried: Sequence[str], before: str | None) -> None:
        """What is left of a run, one by one, and its end."""
        self.write("check:")
        lanes = self.lanes.width > 1
        self.write("%begin=phi i64 [0,%run],[%whole,%lanes]" if lanes else "%begin=phi i64 [0,%run]")
        for k in self.sums:
            self.write(f"%b{k}=phi double [0.0,%run]" + (f",[%l{k},%lanes]" if lanes else ""))
        self.write(f"%rest=icmp ult i64 %begin,{length}", "br i1 %rest,label %one,label %endrun", "one:")
        self.write("%k=phi i64 [%begin,%check],[%k.next,%one]")
        for k in self.sums:
            self.write(f"%s{k}=phi double [%b{k},%check],[%s{k}.next,%one]")
        queues, entering = [], iter(carried)
        for c, carry in enumerate(self.region.carries):
            queue = [f"%q{c}.{i}" for i in range(carry.lag)]
            queues.append(queue)
            for name in queue:
                self.write(f"{name}=phi double [{next(entering)},%check],[{name}.next,%one]")
        values = self.repetition(SCALAR, "%k", uniform, [queue[0] for queue in queues], "%s")
        for queue, carry in zip(queues, self.region.carries, strict=True):
            for name, following in zip(queue, [*queue[1:], values[carry.output]], strict=True):
                self.write(f"{name}.next=fadd double {following},0x8000000000000000")
        self.write("%k.next=add i64 %k,1", f"%k.more=icmp ult i64 %k.next,{length}")
        self.write("br i1 %k.more,label %one,label %endrun", "endrun:")
        entering = iter(carried)
        for name in (name for queue in queues for name in queue):
            self.write(f"{name}.end=phi double [{next(entering)},%check],[{name}.next,%one]")
        totals = {k: self.phi("double", f"%b{k}", "check", f"%s{k}.next", "one") for k in self.sums}
        for k, total in totals.items():
            self.add_to(self.writes[k].name, total)
        self.write("%r.next=add i64 %r,1", f"%r.more=icmp ult i64 %r.next,{len(self.runs)}")
        self.write("br i1 %r.more,label %run,label %exit", "exit:", "ret void")

    def repetition(
        self, lanes: Lanes, k: str, uniform: dict[int, str], queues: Sequence[str], sums: str
    ) -> dict[int, str]:
        """Write the body once, for one repetition or several; return the values of its outputs."""
        slots = [uniform[c] if c in uniform else self.read(column, lanes, k) for c, column in enumerate(self.reads)]
        names = _Slots(self.writers[lanes], self.lines, self.next, [*slots, *queues])
        for index in self.order:
            row = self.lowered.rows[index]
            if row[0] not in LEAF_NAMES:
                names[index] = OPERATIONS[row[0]](self.writers[lanes], names, row)
        values = {array: names[row] for array, row in self.stored.items()}
        self.next = names.next
        for c, (use, column) in enumerate(zip(self.region.results, self.writes, strict=True)):
            value = values[use.output]
            if c in self.sums:
                self.write(f"{sums}{c}.next=fadd {lanes.type} {sums}{c},{value}")
            else:
                self.leave(column, lanes, k, value, add=use.kind == "add")
        return values

    def place(self, column: Column, k: str, lane: int = 0) -> str:
        """Pointer to the place of a repetition."""
        at = k if lane == 0 else self.new(f"add i64 {k},{lane}")
        if column.index is not None:
            name = f"@{self.name}.index{column.name[2:]}"
            if not any(text.startswith(f"{name}=") for text in self.globals):
                self.table(f"index{column.name[2:]}", column.index)
            entry = self.new(f"getelementptr i64,ptr {name},i64 {at}")
            at = self.new(f"load i64,ptr {entry},align 8")
        elif column.step != 1:
            at = self.new(f"mul i64 {at},{column.step}")
        return self.new(f"getelementptr double,ptr {column.name},i64 {at}")

    def read(self, column: Column, lanes: Lanes, k: str) -> str:
        if lanes.width == 1 or (column.step == 1 and column.index is None):
            return self.new(f"load {lanes.type},ptr {self.place(column, k)},align 8")
        found = "poison"
        for lane in range(lanes.width):
            value = self.new(f"load double,ptr {self.place(column, k, lane)},align 8")
            found = self.new(f"insertelement {lanes.type} {found},double {value},i32 {lane}")
        return found

    def leave(self, column: Column, lanes: Lanes, k: str, value: str, *, add: bool) -> None:
        """Store values, or add them to what is there; one after the other where places may be the same."""
        if lanes.width == 1 or (column.step == 1 and column.index is None):
            place = self.place(column, k)
            if add:
                value = self.new(f"fadd {lanes.type} {self.new(f'load {lanes.type},ptr {place},align 8')},{value}")
            self.write(f"store {lanes.type} {value},ptr {place},align 8")
            return
        for lane in range(lanes.width):
            one = self.new(f"extractelement {lanes.type} {value},i32 {lane}")
            place = self.place(column, k, lane)
            if add:
                self.add_to(place, one)
            else:
                self.write(f"store double {one},ptr {place},align 8")

    def add_to(self, place: str, value: str) -> None:
        before = self.new(f"load double,ptr {place},align 8")
        self.write(f"store double {self.new(f'fadd double {before},{value}')},ptr {place},align 8")

    def splat(self, value: str, lanes: Lanes) -> str:
        one = self.new(f"insertelement {lanes.type} poison,double {value},i32 0")
        return self.new(f"shufflevector {lanes.type} {one},{lanes.type} poison,<{lanes.width} x i32> zeroinitializer")


def _numbers(values: Sequence[int]) -> Places:
    return np.array(values, dtype=np.int64)
