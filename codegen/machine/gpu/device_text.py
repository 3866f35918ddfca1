"""The IR of a kernel for a GPU, with the operations of the kernel on a processor.

Straight lines and sweeps are written in windows: a few columns are computed, written to the tile, and copied by the
warp. Values that do not depend on the column are computed once, and stay in registers. A window has its columns of
every row, which are neighbours. Longer ones and loops like one point on a
processor (`codegen.emission`, `codegen.loops.emit`). One entry finds the point of its thread and its numbers in every
array. All becomes one function with pointers to global memory and values in registers; long programs keep functions of
their own, which pass values through local memory. Nothing is contracted or reordered, so the bits are those of the same
text on a processor. A GPU has no C library: functions are those of `codegen.functions.lane_table`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.emission.emit import LEAF_NAMES, STACK_BYTES, WRITERS, ChunkWriter, Emitted, Form, Names
from codegen.emission.schedule import Schedule, depth_first
from codegen.emission.straight import StraightPlan, SweepPlan, unit_vectors
from codegen.errors import LoweringError
from codegen.functions.symbols import Symbol
from codegen.gpu_architectures import architecture_of
from codegen.ir.program import Output, Program
from codegen.ir.region import RolledProgram
from codegen.limits import EVERY, check
from codegen.lowering.lower import Lowered
from codegen.lowering.passes import prepare
from codegen.machine.gpu.device_entry import KernelEntry, filled
from codegen.machine.gpu.driver import WARP
from codegen.machine.kernel_text import planned
from codegen.matrices.matrix_loops import without_library
from codegen.options import Options
from codegen.records import dataclass

WHOLE = 8000  # operations in one function: the assembler's time grows with their square
LONGEST = 800_000  # characters of its text
WARPS = 2  # of a multiprocessor, at least, that their tiles leave room for
PART = 2000  # operations to a function of a longer program
# In the place of memset, which would write byte after byte.
CLEARING = """define internal void @clear(ptr %p,i64 %count) alwaysinline {
begin:
%some=icmp ne i64 %count,0
br i1 %some,label %next,label %end
next:
%k=phi i64 [0,%begin],[%then,%next]
%at=getelementptr SCALAR,ptr %p,i64 %k
store SCALAR 0.0,ptr %at,align BYTES
%then=add i64 %k,1
%more=icmp ult i64 %then,%count
br i1 %more,label %next,label %end
end:
ret void
}"""
MEMSET = re.compile(r"@llvm\.memset\.p0\.i64\((ptr [^,]+),i8 0,i64 (\d+),i1 false\)")
CALLS = 40  # of functions that are written where they are called; more of them share one function


@dataclass(frozen=True)
class DeviceText:
    """IR of a kernel for a GPU, and the bytes of shared memory that each warp of its threads needs."""

    text: str
    shared: int


def device_text(program: Program | RolledProgram, options: Options, architecture: str) -> DeviceText:
    """Return the IR of a kernel for a GPU, with the entry of `codegen.machine.gpu.device_entry`.

    LoweringError for functions that a GPU has not, and for a point that needs more memory than a thread has.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> "fadd double" in device_text(program_from_sympy([x], [x + 1]), Options(), "sm_80").text
    True
    """
    form = Form(lanes=options.number.lanes(), formulas=True, device=True)
    options = replace(options, threads=1, chunk=options.chunk or PART)
    prepared = None if isinstance(program, RolledProgram) else prepare(program, options)
    if prepared is None or prepared.program.seeded or len(prepared.fused.live()) > WHOLE:
        return _called(program, options, form, architecture_of(architecture).shared)
    entry = window_entry(prepared.program, form)
    body, symbols = windowed(prepared.program, prepared.fused, form, entry)
    _refuse(program.name, symbols, body)
    arguments = ",".join(f"{kind} {name}" for kind, name in entry.body_parameters)
    call = f"call void @body(ptr %in,ptr %out,ptr null,{arguments})"
    return DeviceText("\n".join([body, *_declared(symbols, body), entry.text([call], body)]), entry.shared)


def _called(program: Program | RolledProgram, options: Options, form: Form, shared: int) -> DeviceText:
    """A kernel as it is written for one point, whose results go into rows of the tile where those of a warp fit in."""
    plan = planned(without_library(program) if isinstance(program, RolledProgram) else program, options)
    windows = SweptWindows.of(plan, form) if isinstance(plan, SweepPlan) else None
    if windows is not None:
        return DeviceText(
            called_text(program.name, windows.emitted(form), windows.entry, windows.body), windows.entry.shared
        )
    emitted = plan.emit(form)
    sizes = [output.size * options.number.parts for output in program.outputs]
    entry = KernelEntry(len(program.arguments), len(sizes), form.lanes.type, form.lanes.size, tuple(sizes))
    if max(sizes, default=0) <= 1 or entry.shared > shared // WARPS:
        entry = replace(entry, rows=())
    body = ["%status=call i32 @kernel(ptr %in,ptr %out)"]
    for k, size in enumerate(entry.rows):
        body += entry.flush(k, k, 0, size)
    return DeviceText(called_text(program.name, emitted, entry, body), entry.shared)


def called_text(name: str, emitted: Emitted, entry: KernelEntry, body: Sequence[str]) -> str:
    """Return IR in which an entry calls functions that are written for one point."""
    bodies = "\n".join([*emitted.chunks, *emitted.functions])
    _refuse(name, emitted.symbols, bodies)
    clearing = filled(CLEARING, SCALAR=entry.scalar, BYTES=entry.bytes)
    text = "\n".join([*_inlined(emitted), *_declared(emitted.symbols, bodies), clearing, entry.text(body, "")])
    return MEMSET.sub(lambda match: f"@clear({match[1]},i64 {int(match[2]) // entry.bytes})", text)


def _refuse(name: str, symbols: Mapping[str, Symbol], text: str) -> None:
    """Raise LoweringError for functions that a GPU does not have."""
    if "call ptr @malloc" in text:
        raise LoweringError(
            f"{name} on a GPU", why=f"a point of it needs more than {STACK_BYTES} bytes of workspace",
            do="use kernel.batch, or a function of fewer numbers",
        )  # fmt: skip
    missing = sorted(_plain(symbol_name) for symbol_name, symbol in symbols.items() if symbol.addresses)
    if missing:
        raise LoweringError(f"{', '.join(missing)} on a GPU", why="there is no formula for it", do="use kernel.batch")


def _inlined(emitted: Emitted) -> list[str]:
    """The functions of the kernel, inlined unless they are too long."""
    whole = sum(map(len, emitted.chunks)) <= LONGEST
    chunks = [_where_called(chunk) if whole else chunk for chunk in emitted.chunks]
    return [*chunks, *(_where_called(text) for text in emitted.functions)]


def _where_called(text: str) -> str:
    """An internal function that is always inlined: it has no stack of its own."""
    kept = text.replace("define i32 @kernel(", "define internal i32 @kernel(", 1)
    kept = re.sub(r"(?m)^(define internal .*) alignstack\(\d+\)(.*\{)$", r"\1\2", kept)
    return re.sub(r"(?m)^(define internal .*\))( noinline)?(.*\{)$", r"\1 alwaysinline\3", kept)


def _declared(symbols: Mapping[str, Symbol], text: str) -> list[str]:
    """Declarations, and the functions that have formulas."""
    return [
        _where_called(symbol.text) if text.count(f"@{symbol.name}(") <= CALLS else symbol.text
        for symbol in symbols.values()
        if symbol.name not in ("malloc", "free")
    ]


def _plain(name: str) -> str:
    return name.removeprefix("llvm.").removesuffix(".f64").removeprefix("scipy.").partition(".")[0]


WIDE = WARP  # positions of a window: a warp copies the numbers of one point at a time, side by side
ROW = "%row0"


def window_entry(program: Program, form: Form) -> KernelEntry:
    """Return the entry: a thread has a row as long as a window, or none where all outputs are single numbers."""
    longest = max((output.size for output in program.outputs), default=0)
    rows = (min(longest, WIDE),) if longest > 1 else ()
    return KernelEntry(len(program.inputs), len(program.outputs), form.lanes.type, form.lanes.size, rows)


def windowed(program: Program, lowered: Lowered, form: Form, entry: KernelEntry) -> tuple[str, dict[str, Symbol]]:
    """Return the function `body` of the tables of arrays and `KernelEntry.body_parameters`, and its symbols."""
    order = sorted(lowered.stores)
    rows = depth_first(replace(lowered, stores=order))
    at = {row: number for number, row in enumerate(rows)}
    writer = ChunkWriter(program, lowered.rows, Schedule([rows], {}, 0), {}, form)
    parameters = ",".join(["ptr %0", "ptr %1", "ptr %2", *(" ".join(pair) for pair in entry.body_parameters)])
    names = Names(writer, [f"define internal void @body({parameters}) alwaysinline {{"], 4)
    places = {(array, position): row for array, position, row in order}
    done = 0
    for array, output in enumerate(program.outputs):
        for begin in range(0, output.size, WIDE):
            window = range(begin, min(begin + WIDE, output.size))
            stored = {place: places[array, place] for place in window if (array, place) in places}
            until = max((at[row] + 1 for row in stored.values() if row in at), default=0)
            _compute(writer, names, rows[done:until])
            done = max(done, until)
            for place in window:
                value = names[stored[place]] if place in stored else "0.0"
                if entry.rows:
                    names.store(value, ROW, place - begin)
                else:
                    names.store(value, names.array("out", array), place)
            if entry.rows:
                names.lines += entry.flush(0, array, begin, len(window))
    return "\n".join([*names.lines, "ret void", "}"]), writer.symbols


def _compute(writer: ChunkWriter, names: Names, rows: list[int]) -> None:
    for number, index in enumerate(rows):
        row = writer.rows[index]
        if row[0] not in LEAF_NAMES:
            names[index] = WRITERS[row[0]](writer, names, row)
        if not number % EVERY:
            check("writing code")


BESIDE = (4, 2, 1)  # columns of a window, the first that fits
LITTLE = 90  # numbers of a point: the results of all running points stay in the cache until its lines are full
LONGEST_WINDOW = 100  # numbers of a window, of all outputs
BUSY = 400  # operations of columns that are computed side by side: with more, values do not stay in registers

# `once` fills the residuals; `columns` reads the input arrays, and writes those of %out, rows of the tile.
BLOCKS = """%residuals=alloca [COUNT x SCALAR],align 16
%made=alloca [1 x ptr],align 8
%given=alloca [2 x ptr],align 8
store ptr %residuals,ptr %made,align 8
store ptr %residuals,ptr %given,align 8
%status=call i32 @once(ptr %in,ptr %made)
%seed.at=getelementptr ptr,ptr %given,i64 1
%center=getelementptr SCALAR,ptr @unit,i64 CENTER
ZEROS
br label %prepare
prepare:
br label %block.next
block.next:
%column=phi i64 [0,%prepare],[%following,%again]
%seed=getelementptr SCALAR,ptr %center,i64 %column
store ptr %seed,ptr %seed.at,align 8
%code=call i32 @columns(ptr %given,ptr %out)
FLUSH
%done=icmp uge i64 %column,LAST
br i1 %done,label %finished,label %again
again:
%stepped=add i64 %column,WIDTH
%over=icmp ugt i64 %stepped,LAST
%following=select i1 %over,i64 LAST,i64 %stepped
br label %block.next
finished:"""


@dataclass(frozen=True)
class SweptWindows:
    """A sweep with swept results only, in windows of `width` columns, and its entry."""

    plan: SweepPlan
    width: int
    entry: KernelEntry

    @classmethod
    def of(cls, plan: SweepPlan, form: Form) -> SweptWindows | None:
        """Return the windows, None where there are other results, or where a window would be too long."""
        program = plan.program
        columns, busy = program.inputs[-1].size, plan.columns.executed().total()
        inputs, size = len(program.arguments), sum(output.size for output in program.outputs)
        for width in BESIDE:
            if (width * busy > BUSY and width > 1) if size <= LITTLE else width < max(BESIDE):
                continue
            rows = tuple(width * (output.size // columns) for output in program.outputs)
            if all(map(_is_whole, program.outputs)) and width <= columns and sum(rows) <= LONGEST_WINDOW:
                return cls(plan, width, KernelEntry(inputs, len(rows), form.lanes.type, form.lanes.size, rows))
        return None

    def emitted(self, form: Form) -> Emitted:
        """Return the functions `once` and `columns`; the latter stores a window of each row."""
        columns, plan = self.plan.program.inputs[-1].size, self.plan.columns
        stores = [(array, position // columns * self.width, row) for array, position, row in plan.lowered.stores]
        outputs = tuple(
            Output((length,), output.rows) for length, output in zip(self.entry.rows, self._outputs, strict=True)
        )
        second: StraightPlan = replace(
            plan, program=replace(plan.program, outputs=outputs), lowered=replace(plan.lowered, stores=stores)
        )
        unit = Emitted([], [unit_vectors(columns, form.lanes.scalar)], {})
        return self.plan.once.emit(replace(form, name="once")) + second.emit(self.plan.beside(form, self.width)) + unit

    @property
    def body(self) -> list[str]:
        """What the entry does."""
        columns, zeros, flushes = self.plan.program.inputs[-1].size, [], []
        for k, output in enumerate(self._outputs):
            present = {position // columns for array, position, _ in self.plan.columns.lowered.stores if array == k}
            for row in set(range(output.size // columns)) - present:
                for at in range(row * self.width, (row + 1) * self.width):
                    zeros += [f"%zero{k}.{at}=getelementptr {self.entry.scalar},ptr %row{k},i64 {at}",
                              f"store {self.entry.scalar} 0.0,ptr %zero{k}.{at},align {self.entry.bytes}"]  # fmt: skip
            flushes += self.entry.flush_columns(k, "%column", self.width, columns)
        numbers = {"COUNT": max(self.plan.residuals, 1), "CENTER": columns - 1, "LAST": columns - self.width}
        lines = {"ZEROS": "\n".join(zeros), "FLUSH": "\n".join(flushes), "WIDTH": self.width}
        return list(filter(None, filled(BLOCKS, SCALAR=self.entry.scalar, **numbers, **lines).splitlines()))

    @property
    def _outputs(self) -> tuple[Output, ...]:
        return self.plan.program.outputs


def _is_whole(output: Output) -> bool:
    """Whether an output is a matrix with a column for each of the seed's."""
    return output.swept and output.pattern is None
