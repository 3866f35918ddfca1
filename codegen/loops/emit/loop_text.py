"""The IR function of a region: the parts that all forms share.

The function is `void @name(in, out, work, round of each nest around, arrays in which its calls differ)`. It finds its
buffers (`view`), runs the body over the repetitions, and stores the results. `loop_scalar` does so one by one,
`loop_vector` several side by side, and a long body is in separate functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from codegen.emission.emit import LEAF_NAMES, WRITERS, ChunkWriter, Emitted, Form, Names, in_all_lanes
from codegen.emission.lane_functions import own_functions
from codegen.emission.schedule import aligned, schedule
from codegen.functions.symbols import Symbol
from codegen.ir.machine_rows import Row
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Region
from codegen.ir.tables import Places, same_in_all
from codegen.lanes import Lanes
from codegen.loops.emit.loop_columns import LoopColumns, Use
from codegen.loops.emit.thread_blocks import Blocks
from codegen.loops.emit.workspace import Memory, Tables
from codegen.lowering.lower import Lowered
from codegen.records import dataclass

# The parameters of a block: its units, places of its sums, its copies, memory of the thread.
PART = ",i64 %first,i64 %last,ptr %sums,ptr %copies,ptr %own"
STORES = ("store ", "call void @llvm.masked.store")
MOST_STORES = 200  # in a function, between two calls
PAUSE = Symbol("pause", "define internal preserve_allcc void @pause() noinline nounwind {\nret void\n}")


@dataclass(frozen=True, eq=False)
class Job:
    """A region to be written: its machine operations, where its buffers are, and which of its sums are stores."""

    name: str
    region: Region
    lowered: Lowered
    rounds: int  # nests around it
    memory: Memory
    tables: Tables
    stored: frozenset[int]  # numbers of results
    scratch: int  # where in %work a long body keeps its values
    fast: bool = False
    columns: LoopColumns | None = None  # where repetitions run side by side
    blocks: Blocks | None = None  # where they are cut into blocks
    given: tuple[str, ...] = ()  # arguments of each call: "%work0", a moved workspace, or "%array0"

    @property
    def scalar(self) -> Lanes:
        return self.memory.scalar

    @property
    def parameters(self) -> str:
        rounds = [f"i64 %r{k}" for k in range(self.rounds)]
        return ",".join(["ptr %in", "ptr %out", "ptr %work", *rounds, *(f"ptr {name}" for name in self.given)])

    def adds(self, c: int) -> bool:
        """Whether result c is added to its place."""
        return self.region.results[c].kind == "add" and c not in self.stored


@dataclass(frozen=True, eq=False)
class Written:
    """The IR of a region, and the numbers of memory that a long body needs beside the buffers."""

    emitted: Emitted
    scratch: int


class Slots(Names):
    """Names of the values in one repetition of the body, or in several side by side; inputs are slots."""

    def __init__(self, writer: ChunkWriter, lines: list[str], first: int, slots: Sequence[str]) -> None:
        super().__init__(writer, lines, first)
        self.slots = slots

    def input(self, row: Row) -> str:
        return self.slots[row[1]]


class Frame:
    """A function on the buffers of a region, under construction."""

    lines: list[str]
    next: int
    job: Job
    region: Region
    scalar: Lanes

    def __init__(self, job: Job, head: str) -> None:
        self.job, self.region, self.scalar = job, job.region, job.scalar
        self.lines = [f"define internal void {head} {{", "entry:"]
        self.next = self.first = 0  # of the names of values, here and in bodies
        self.views: dict[tuple[int, tuple[int, ...]], str] = {}
        self.symbols: dict[str, Symbol] = {}

    def write(self, *lines: str) -> None:
        self.lines += lines

    def new(self, instruction: str) -> str:
        """Write an instruction and return the name of its value."""
        name = f"%t{self.next}"
        self.next += 1
        self.lines.append(f"{name}={instruction}")
        return name

    def view(self, use: Use) -> str:
        """Return a pointer to place 0 of a table's buffer, in this round of the nests."""
        shifts = use.table.shifts[: self.job.rounds]
        while shifts and not shifts[-1]:
            shifts = shifts[:-1]
        key = (use.buffer, shifts)
        if key not in self.views:
            self.views[key] = self.pointer(self.job.memory.pointers[use.buffer])
            for k, shift in enumerate(shifts):
                if shift:
                    moved = self.new(f"mul i64 %r{k},{shift}")
                    self.views[key] = self.offset(self.views[key], moved, self.number_of(use))
        return self.views[key]

    def pointer(self, text: str) -> str:
        """Return a pointer to a buffer: a global, an argument, a place in a workspace, or an entry of a table."""
        table, _, number = text.partition(" ")
        if not number:
            return table
        if table.startswith("%work"):
            return self.offset(table, number)
        return self.new(f"load ptr,ptr {self.new(f'getelementptr ptr,ptr {table},i64 {number}')},align 8")

    def offset(self, pointer: str, places: int | str, number: Lanes | None = None) -> str:
        return pointer if str(places) == "0" else self.new(self.element(pointer, str(places), number=number))

    def element(self, pointer: str, place: str, kind: str = "i64", number: Lanes | None = None) -> str:
        """Return the instruction for the address of a place."""
        return f"getelementptr {(number or self.scalar).type},ptr {pointer},{kind} {place}"

    def number_of(self, use: Use) -> Lanes:
        """Return the type of the numbers in a table's buffer."""
        return self.job.memory.number_of(use.buffer)

    def read_from(self, use: Use, pointer: str) -> str:
        """Load a number of a table's buffer: into all lanes where there is one for all points."""
        number = self.number_of(use)
        value = self.new(f"load {number.type},ptr {pointer},align {number.size}")
        return value if number == self.scalar else in_all_lanes(self.new, self.scalar, value)

    def load(self, pointer: str) -> str:
        return self.new(f"load {self.scalar.type},ptr {pointer},align {self.scalar.size}")

    def store_one(self, value: str, pointer: str) -> None:
        self.write(f"store {self.scalar.type} {value},ptr {pointer},align {self.scalar.size}")

    def fixed(self, use: Use) -> str:
        """Return a pointer to the first place of a table, which is the same in all repetitions."""
        return self.offset(self.view(use), use.table.first, self.number_of(use))

    def of_run(self, values: Places) -> str:
        """Return the value for the run %r: a constant where it is the same in all runs."""
        if same_in_all(values):
            return str(values[0])
        value, kind = self.entry(values, "%r")
        return value if kind == "i64" else self.new(f"sext i32 {value} to i64")

    def entry(self, values: Places, k: str) -> tuple[str, str]:
        """Load number k of a table of whole numbers; return it with its type."""
        name, kind = self.job.tables.places(values)
        place = self.new(f"getelementptr {kind},ptr {name},i64 {k}")
        return self.new(f"load {kind},ptr {place},align {int(kind[1:]) // 8}"), kind

    def add_to(self, place: str, value: str) -> None:
        self.store_one(self.new(f"fadd {self.scalar.type} {self.load(place)},{value}"), place)

    def text(self) -> str:
        """Return the text so far; empty calls separate stores, which LLVM orders in quadratic time (1000: 2 s)."""
        stores = [k for k, line in enumerate(self.lines) if line.startswith(STORES)]
        lines = list(self.lines)
        for k in reversed(stores[MOST_STORES - 1 :: MOST_STORES]):
            self.symbols[PAUSE.name] = PAUSE
            lines.insert(k + 1, f"call preserve_allcc void @{PAUSE.name}()")
        return "\n".join([*lines, "}"])


class Function(Frame):
    """The function of one region, under construction."""

    scratch: int

    def __init__(self, job: Job, lanes: Lanes) -> None:
        name, block = (job.name, "") if job.blocks is None else (f"{job.name}.part", PART)
        self.lanes, self.plan = lanes, schedule(job.lowered)
        rows = [job.lowered.rows[row] for row in self.plan.chunks[0]] if len(self.plan.chunks) == 1 else []
        stack = aligned(lanes, rows, len(job.region.gathers) + len(job.region.results))
        super().__init__(job, f"@{name}({job.parameters}{block}) noinline nounwind{stack}{lanes.attributes}")
        self.stored: dict[int, int] = {array: row for array, _, row in job.lowered.stores}
        self.left = {row: k for k, row in enumerate(dict.fromkeys(self.stored.values()))}  # results of a long body
        stores = {row: [(0, place)] for row, place in self.left.items()}
        formulas = own_functions(job.lowered.rows, lanes, fast=job.fast)
        form = Form(job.name, lanes, vector_libm=job.fast, formulas=formulas)
        self.writer: ChunkWriter = ChunkWriter(in_arrays(job.region.body), job.lowered.rows, self.plan, stores, form)
        self.uses: dict[int, list[int]] = {}  # by output: its results
        for c, use in enumerate(job.region.results):
            self.uses.setdefault(use.output, []).append(c)
        self.chunks: list[str] = []
        self.scratch = 0
        for buffer, begin in (job.blocks.begins if job.blocks else {}).items():
            self.views[buffer, ()] = self.offset("%copies", begin)

    def written(self) -> Written:
        """The text so far as IR, with the symbols that it calls."""
        text = self.text()
        return Written(Emitted(self.chunks, [text], self.writer.symbols | self.symbols), self.scratch)

    def leave_total(self, c: int, total: str) -> None:
        """Add a sum to its place, or keep that of a block."""
        if self.job.blocks is None:
            self.add_to(self.fixed(self.region.results[c]), total)
        else:
            self.store_one(total, self.offset("%sums", self.job.blocks.sums.index(c)))

    def body(self, slots: Sequence[str], leave: Callable[[int, str], None]) -> dict[int, str]:
        """Write the body once; call `leave(output, value)` as soon as a value is computed. Return all values."""
        if len(self.plan.chunks) > 1:
            return self.long_body(slots, leave)
        outputs: dict[int, list[int]] = {}
        for output, row in self.stored.items():
            outputs.setdefault(row, []).append(output)
        names = Slots(self.writer, self.lines, self.first, slots)
        for index in self.plan.chunks[0] if self.plan.chunks else ():
            operation = self.writer.rows[index]
            if operation[0] not in LEAF_NAMES:
                names[index] = WRITERS[operation[0]](self.writer, names, operation)
            for output in outputs.pop(index, ()):
                leave(output, names[index])
        for index, left in outputs.items():
            for output in left:
                leave(output, names[index])
        self.first = names.next
        return {output: names[row] for output, row in self.stored.items()}

    def long_body(self, slots: Sequence[str], leave: Callable[[int, str], None]) -> dict[int, str]:
        """Call the body, which is in chunk functions; its slots and values go through memory."""
        lanes, outputs = self.lanes, len(self.left)
        width, load, store = lanes.width // self.scalar.width, f"load {lanes.type},ptr", f"store {lanes.type}"
        self.chunks = [self.writer.chunk(number, chunk) for number, chunk in enumerate(self.plan.chunks)]
        self.scratch = width * (len(slots) + outputs + self.plan.workspace)
        base = "%own" if self.job.blocks is not None else self.offset("%work", self.job.scratch)
        values_at, work = self.offset(base, width * len(slots)), self.offset(base, width * (len(slots) + outputs))
        for k, value in enumerate(slots):
            self.write(f"{store} {value},ptr {self.offset(base, width * k)},align {lanes.size}")
        arguments = ",".join(f"ptr {pointer}" for pointer in (base, values_at, work))
        self.write(*(f"call void @{self.job.name}.{number}({arguments})" for number in range(len(self.chunks))))
        values: dict[int, str] = {}
        for output, row in self.stored.items():
            if row not in values:
                values[row] = self.new(f"{load} {self.offset(values_at, width * self.left[row])},align {lanes.size}")
            leave(output, values[row])
        return {output: values[row] for output, row in self.stored.items()}


def in_arrays(body: Program) -> Program:
    """Return the body with its slots and its values in one array each."""
    inputs, outputs = len(body.inputs), len(body.outputs)
    return replace(body, inputs=(Input("slots", (inputs,)),), outputs=(Output((outputs,), ()),))
