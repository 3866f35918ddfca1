"""Write repetitions one after the other, for regions with carries or a stop condition.

Sums are added up in the order of the repetitions. A carry of a long lag is kept in a ring of memory. A region that runs
once and has a long body is straight-line code in chunk functions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from codegen.emission.emit import DIRECT_POINTERS, ChunkWriter, Form
from codegen.emission.lane_functions import own_symbol
from codegen.emission.schedule import CHUNK, MOST, Place, schedule, split_stores
from codegen.functions.libraries import no_vector_symbol, vector_symbol, widths
from codegen.ir.program import Input, Output, Program
from codegen.ir.tables import Affine
from codegen.lanes import SCALAR, LaneLayout
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_text import Function, Written
from codegen.lowering.group import group_operations
from codegen.lowering.lower import Lowered
from codegen.stages import carried_out


class ScalarLoop(Function):
    """The function of a region that runs its repetitions one by one, under construction."""

    @cached_property
    def k(self) -> str:
        return "%k" if self.region.count > 1 else "0"

    def is_fixed(self, use: Use) -> bool:
        return self.region.count == 1 or use.table.fixed

    def emit(self) -> Written:
        region, lines = self.region, self.lines
        for use in region.uses:
            self.view(use)
        fixed = {c: self.read_from(use, self.fixed(use)) for c, use in enumerate(region.gathers) if self.is_fixed(use)}
        self.sums = [c for c, use in enumerate(region.results) if self.job.adds(c) and self.is_fixed(use)]
        initial = [[self.read_from(use, self.fixed(use)) for use in carry.initial] for carry in region.carries]
        rings = {c: self.ring(values) for c, values in enumerate(initial) if len(values) > 4}  # else in registers
        self.write("br label %loop", "loop:")
        start = len(lines)
        slots = [fixed.get(c) or self.read_from(use, self.place(use)) for c, use in enumerate(region.gathers)]
        slots += [self.entering(c, values, rings) for c, values in enumerate(initial)]
        totals: dict[int, str] = {}
        values = self.body(slots, lambda output, value: self.leave(output, value, totals))
        for c, place in rings.items():
            self.store_one(values[region.carries[c].output], f"{place}.now")
        lines[start:start] = self.phis(initial, values, rings, totals) if region.count > 1 else []
        self.end(values)
        for c in self.sums:
            self.leave_total(c, totals[c])
        for use in region.results:
            if use.kind == "last":
                self.store_one(values[use.output], self.fixed(use))
        self.write("ret void")
        return self.written()

    def place(self, use: Use) -> str:
        """Return a pointer to the place of this repetition."""
        table, view, number = use.table, self.view(use), self.number_of(use)
        if isinstance(table, Affine):
            at = self.k if table.step == 1 else self.new(f"mul i64 {self.k},{table.step}")
            return self.offset(self.offset(view, at, number), table.start, number)
        first = int(table.index[0])
        at, kind = self.entry(table.index - first, self.k)
        return self.offset(self.new(self.element(view, at, kind, number)), first, number)

    def leave(self, output: int, value: str, totals: dict[int, str]) -> None:
        """Store a value, or add it to its sum."""
        for c in self.uses.get(output, ()):
            use = self.region.results[c]
            if use.kind == "last":
                continue
            if c in self.sums:
                totals[c] = self.new(f"fadd {self.scalar.type} %s{c},{value}") if self.region.count > 1 else value
            else:
                place = self.fixed(use) if self.region.count == 1 else self.place(use)
                if self.job.adds(c):
                    self.add_to(place, value)
                else:
                    self.store_one(value, place)

    def entering(self, c: int, initial: list[str], rings: dict[int, str]) -> str:
        if c not in rings:
            return f"%q{c}.0" if self.region.count > 1 else initial[0]
        place = rings[c]
        self.write(f"{place}.now={self.element(place, f'%m{c}' if self.region.count > 1 else '0')}")
        return self.load(f"{place}.now")

    def ring(self, initial: list[str]) -> str:
        """Return memory for the last values of a carry; place `k % lag` holds the value of repetition `k - lag`."""
        ring = self.new(f"alloca [{len(initial)} x {self.scalar.type}],align 64")
        for k, value in enumerate(initial):
            self.store_one(value, self.offset(ring, k))
        return ring

    def phis(
        self, initial: list[list[str]], values: dict[int, str], rings: dict[int, str], totals: dict[int, str]
    ) -> list[str]:
        """Return the loop-carried values: the number of the repetition, sums, carries, and the places in rings."""
        kind = self.scalar.type
        lines = [f"%k=phi i64 [{'0' if self.job.blocks is None else '%first'},%entry],[%k.next,%loop]"]
        lines += [f"%s{c}=phi {kind} [{self.scalar.splat('0.0')},%entry],[{totals[c]},%loop]" for c in self.sums]
        for c, (queue, carry) in enumerate(zip(initial, self.region.carries, strict=True)):
            if c in rings:
                lines.append(f"%m{c}=phi i64 [0,%entry],[%m{c}.next,%loop]")
                after = self.new(f"add i64 %m{c},1")
                end = self.new(f"icmp eq i64 {after},{carry.lag}")
                self.write(f"%m{c}.next=select i1 {end},i64 0,i64 {after}")
                continue
            following = [f"%q{c}.{i}" for i in range(1, carry.lag)] + [values[carry.output]]
            lines += [
                f"%q{c}.{i}=phi {kind} [{first},%entry],[{after},%loop]"
                for i, (first, after) in enumerate(zip(queue, following, strict=True))
            ]
        return lines

    def end(self, values: dict[int, str]) -> None:
        """Write the branch to the next repetition or to the end of the loop."""
        region = self.region
        if region.count == 1:
            self.write("br label %exit", "exit:")
            return
        self.write("%k.next=add i64 %k,1")
        more = self.new(f"icmp ult i64 %k.next,{region.count if self.job.blocks is None else '%last'}")
        if region.stop is not None:
            more = self.new(f"and i1 {more},{self.new(f'fcmp oeq {self.scalar.type} {values[region.stop]},0.0')}")
        self.write(f"br i1 {more},label %loop,label %exit", "exit:")


CONSTANT = LaneLayout(1, uniform=True)  # one number for all points
LONG = 200  # rows of a body from which on it is read and stored in place, and equal operations share registers


class StraightRegion(Function):
    """The function of a region that runs once and has a long body, under construction."""

    def emit(self) -> Written:
        region, job, own = self.region, self.job, self.writer.form.formulas
        reads = [*region.gathers, *(carry.initial[0] for carry in region.carries)]
        inputs = {view: k for k, view in enumerate(dict.fromkeys(map(self.view, reads)))}
        outputs = {view: k for k, view in enumerate(dict.fromkeys(map(self.view, region.results)))}
        places = [(inputs[self.view(use)], use.table.first) for use in reads]
        once = {inputs[self.view(use)]: CONSTANT for use in reads if self.number_of(use) != job.scalar}
        lowered = self.in_place(outputs, places, len(inputs))
        if job.scalar == SCALAR:  # groups are of doubles
            find = vector_symbol if job.fast else own_symbol if own else no_vector_symbol
            lowered = carried_out("groups", lambda rows: group_operations(rows, widths(), find), lowered)
        plan = schedule(lowered, CHUNK if len(lowered.stores) > MOST else None)
        kept, copies = split_stores(plan.chunks, lowered.stores)
        count = len(inputs) + len(outputs)  # sums are read in place
        arrays = Program([], [], {}, (Input("", ()),) * count, (Output((), ()),) * len(outputs))
        form = Form(job.name, job.scalar, vector_libm=job.fast, formulas=own, inputs=once)
        self.writer = ChunkWriter(arrays, lowered.rows, plan, kept, form)
        self.writer.places = places
        self.chunks = [self.writer.chunk(number, chunk) for number, chunk in enumerate(plan.chunks)]
        self.chunks += [self.writer.copies(number, part) for number, part in enumerate(copies, len(self.chunks))]
        self.scratch = plan.workspace
        arguments = self.arguments([*inputs, *outputs], list(outputs))
        self.write(*(f"call void @{job.name}.{number}({arguments})" for number in range(len(self.chunks))))
        self.write("ret void")
        return self.written()

    def in_place(self, outputs: Mapping[str, int], places: list[Place], first: int) -> Lowered:
        """Return the operations with the places of their results; reads of sums are added to `places`."""
        rows = list(self.job.lowered.rows)
        stores: list[tuple[int, int, int]] = []
        sums: dict[Place, int] = {}
        for c, use in enumerate(self.region.results):
            place = (outputs[self.view(use)], use.table.first)
            row = self.stored[use.output]
            if self.job.adds(c):
                if place not in sums:
                    rows.append(("input", len(places)))
                    places.append((first + place[0], place[1]))
                    sums[place] = len(rows) - 1
                rows.append(("add", sums[place], row))
                sums[place] = len(rows) - 1
            else:
                stores.append((*place, row))
        return replace(self.job.lowered, rows=rows, stores=[*stores, *((*place, row) for place, row in sums.items())])

    def arguments(self, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        """Return the arguments of the chunk functions: the pointers, or tables of them, and the workspace."""
        work = self.offset("%work", self.job.scratch)
        pointers = [*inputs, *outputs]
        if len(pointers) > DIRECT_POINTERS:
            pointers = [self.table_of(inputs), self.table_of(outputs)]
        return ",".join(f"ptr {pointer}" for pointer in (*pointers, work))

    def table_of(self, pointers: Sequence[str]) -> str:
        table = self.new(f"alloca [{max(len(pointers), 1)} x ptr],align 16")
        for k, pointer in enumerate(pointers):
            self.write(f"store ptr {pointer},ptr {self.new(f'getelementptr ptr,ptr {table},i64 {k}')},align 8")
        return table
