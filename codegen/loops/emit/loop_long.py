"""Write a region that runs once and has a long body as straight-line code in chunk functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.emission.emit import DIRECT_POINTERS, ChunkWriter, Form
from codegen.emission.lane_functions import own_symbol
from codegen.emission.schedule import CHUNK, MOST, Place, schedule, split_stores
from codegen.functions.libraries import no_vector_symbol, vector_symbol, widths
from codegen.ir.program import Input, Output, Program
from codegen.lanes import SCALAR, LaneLayout
from codegen.loops.emit.loop_text import Function, Job, Written
from codegen.lowering.group import group_operations
from codegen.lowering.lower import Lowered
from codegen.stages import carried_out

CONSTANT = LaneLayout(1, uniform=True)  # one number for all points
LONG = 200  # rows of a body from which on it is read and stored in place, and equal operations share registers


def straight(job: Job) -> Written:
    return _Straight(job, job.scalar).emit()


class _Straight(Function):
    """The function under construction."""

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
