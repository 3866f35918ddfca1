"""Write straight-line code in chunk functions and modules. A sweep repeats a part of it for every column.

Sweeps: a program whose last input is a seed is evaluated at every unit vector of that seed, in vector lanes. A dense
Jacobian or Hessian is a pushforward along every column. Operations that do not depend on the seed (values and partial
derivatives) are done once, in scalar code; the linear rest runs over blocks of columns, one column in each lane. So the
code has the size of one pushforward, where the straight-line matrix has an operation for every entry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from codegen.emission.emit import MEMORY, POINT, STACK_BYTES, Emitted, Form, emit
from codegen.emission.lane_functions import own_functions, own_symbol
from codegen.emission.schedule import CHUNK, Schedule, schedule
from codegen.functions.libraries import no_vector_symbol, vector_symbol, widths
from codegen.ir.program import Input, Output, Program
from codegen.lanes import SCALAR, LaneLayout, Lanes
from codegen.lowering.group import group_operations
from codegen.lowering.halves import Split, columns_at_once, executed_halves
from codegen.lowering.lower import Lowered
from codegen.records import dataclass
from codegen.stages import carried_out, observed, part


@dataclass(frozen=True)
class StraightPlan:
    """Operations and their order, ready to be written.

    For one point, equal operations go into groups (`codegen.lowering.group`); several points fill the lanes themselves.
    `vector_libm` allows the vector functions of the C library.
    """

    program: Program
    lowered: Lowered
    order: Schedule
    chunk: int | None = None
    vector_libm: bool = False
    strategy = "straight"

    @classmethod
    def of(
        cls, program: Program, lowered: Lowered, chunk: int | None = None, *, vector_libm: bool = False
    ) -> StraightPlan:
        """Schedule a program's operations, in chunks of a given size or of the default size."""
        return cls(program, lowered, schedule(lowered, chunk), chunk, vector_libm)

    def emit(self, form: Form = POINT) -> Emitted:
        own = form.formulas or own_functions(self.lowered.rows, form.lanes, fast=self.vector_libm)
        form = replace(form, vector_libm=self.vector_libm and not form.device, formulas=own)
        if form.lanes != SCALAR or form.device:
            observed(self.order, "schedule")
            return emit(self.program, self.lowered, self.order, form)
        grouped = side_by_side(self.lowered, vector_libm=self.vector_libm, own=own)
        order = observed(schedule(grouped, self.chunk), "schedule")
        return emit(self.program, grouped, order, form)

    def executed(self) -> Counter[str]:
        """Return the operations of one call, by kind."""
        return self.lowered.count()

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return len(self.order.chunks)

    @property
    def workspace(self) -> int:
        """Number of values in memory between chunks."""
        return self.order.workspace


def side_by_side(lowered: Lowered, *, own: bool, vector_libm: bool = False) -> Lowered:
    """Return operations with equal ones in groups; `own`: functions have formulas of ours."""
    find = vector_symbol if vector_libm else own_symbol if own else no_vector_symbol
    return carried_out("groups", lambda rows: group_operations(rows, widths(), find), lowered)


LONGEST = 1_000_000  # characters of IR in one module: under a second of LLVM's time


def modules(emitted: Emitted) -> list[str]:
    """Return the IR of a kernel as one module or, if it is long, as several with about a million characters each.

    Chunk functions of several modules find each other by name, which only this kernel's linker sees.
    """
    if sum(map(len, emitted.chunks)) <= LONGEST:
        return [emitted.text]
    shared = emitted.declarations
    parts: list[list[str]] = [[]]
    size = 0
    for chunk in emitted.chunks:
        if size > LONGEST:
            parts.append([])
            size = 0
        parts[-1].append(chunk.replace("define internal", "define", 1))
        size += len(chunk)
    last = [*emitted.functions, *(declaration(chunk) for chunk in emitted.chunks)]
    return ["\n".join([*part, shared]) + "\n" for part in [*parts, last]]


def declaration(text: str) -> str:
    """Return the declaration of a function, from the first line of its definition.

    >>> declaration("define internal void @kernel.0(ptr noalias) noinline nounwind {\\nret void\\n}")
    'declare void @kernel.0(ptr noalias) nounwind'
    """
    head, _, _ = text.partition(" {\n")
    return head.replace("define internal", "declare", 1).replace(" noinline", "")


def lanes_of(program: Program) -> Lanes:
    """Return the lanes of a sweep: the widest registers that the columns fill.

    >>> lanes_of(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True)).width
    2
    """
    return Lanes(columns_at_once(program))


@dataclass(frozen=True)
class SweepPlan:
    """The two halves of a sweep, ready to be written: `once` writes the residuals that `columns` reads."""

    program: Program
    once: StraightPlan
    columns: StraightPlan
    residuals: int
    strategy = "sweep"

    @classmethod
    def of(cls, program: Program, halves: Split, chunk: int | None = None, *, vector_libm: bool = False) -> SweepPlan:
        seed = program.inputs[-1]
        fixed = tuple(output for output in program.outputs if not output.swept)
        swept = tuple(replace(output, positions=None) for output in program.outputs if output.swept)
        kept = Output((halves.residuals,), ())
        first = replace(program, inputs=program.arguments, outputs=(*fixed, kept), seeded=False)
        second = replace(program, inputs=(Input("residuals", kept.shape), seed), outputs=swept, seeded=False)
        return cls(
            program,
            StraightPlan.of(first, halves.once, chunk, vector_libm=vector_libm),
            StraightPlan.of(second, halves.columns, chunk or CHUNK, vector_libm=vector_libm),
            halves.residuals,
        )

    @property
    def lanes(self) -> Lanes:
        return lanes_of(self.program)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR of both halves and the driver; with several points in lanes, columns follow one another."""
        columns, points = self.program.inputs[-1].size, form.lanes.width
        width = 1 if points > 1 or form.device else self.lanes.width
        with part("once"):
            emitted = self.once.emit(replace(form, name="once"))
        with part("columns"):
            emitted += self.columns.emit(self.beside(form, width))
        kernel = driver(self.program, self.residuals, width, form.lanes)
        unit = unit_vectors(columns, form.lanes.scalar)
        return emitted + Emitted([], [unit, kernel], {function.name: function for function in MEMORY})

    def beside(self, form: Form, width: int) -> Form:
        """Return the form of the columns: `width` of one point side by side, or one column of several points."""
        if width == 1:
            return replace(form, name="columns", inputs={1: LaneLayout(-1, uniform=True)})
        inputs = {0: LaneLayout(1, uniform=True), 1: LaneLayout(-1)}
        outputs = {k: LaneLayout(1) for k in range(len(self.columns.program.outputs))}
        lanes = Lanes(width, form.lanes.scalar)
        return replace(form, name="columns", lanes=lanes, inputs=inputs, outputs=outputs)

    def executed(self) -> Counter[str]:
        """Return the operations of one call, by kind; one on a vector register counts once."""
        return executed_halves(self.program, self.once.lowered, self.columns.lowered, self.lanes.width)

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return self.once.chunks + self.columns.chunks

    @property
    def workspace(self) -> int:
        """Number of values in memory between halves and chunks."""
        return self.residuals + self.once.workspace + self.columns.workspace * self.lanes.width


OPEN = """define i32 @kernel(ptr noalias %in,ptr noalias %out) nounwind {
%once=alloca [ARRAYS x ptr],align 8
%given=alloca [2 x ptr],align 8
%moving=alloca [ARRAYS x ptr],align 8
%c=RESIDUALS
%full=icmp eq ptr %c,null
br i1 %full,label %failed,label %start
start:"""

# `once` fills the residuals; `given` are the arrays that `columns` reads, `moving` those that it writes.
BLOCKS = """%status=call i32 @once(ptr %in,ptr %once)
%bad=icmp ne i32 %status,0
br i1 %bad,label %drop,label %prepare
prepare:
store ptr %c,ptr %given,align 8
%seed.at=getelementptr ptr,ptr %given,i64 1
%center=getelementptr SCALAR,ptr @unit,i64 CENTER
br label %block
block:
%column=phi i64 [0,%prepare],[%next,%again]
%seed=getelementptr SCALAR,ptr %center,i64 %column
store ptr %seed,ptr %seed.at,align 8
MOVE%code=call i32 @columns(ptr %given,ptr %moving)
%wrong=icmp ne i32 %code,0
br i1 %wrong,label %drop,label %more
more:
%done=icmp uge i64 %column,LAST
br i1 %done,label %drop,label %again
again:
%stepped=add i64 %column,WIDTH
%over=icmp ugt i64 %stepped,LAST
%next=select i1 %over,i64 LAST,i64 %stepped
br label %block
drop:
%result=phi i32 [1,%start],[1,%block],[0,%more]
FREEret i32 %result
failed:
ret i32 1
}"""


def unit_vectors(columns: int, scalar: str) -> str:
    """Return a 1 between zeros: every unit vector starts at some place of it.

    >>> unit_vectors(2, "double")
    '@unit=internal constant <{[1 x double],double,[1 x double]}> <{[1 x double] zeroinitializer,double 1.0,[1 x double] zeroinitializer}>,align 64'
    """  # noqa: E501
    kind = f"[{columns - 1} x {scalar}]"
    zeros = f"{kind} zeroinitializer"
    return f"@unit=internal constant <{{{kind},{scalar},{kind}}}> <{{{zeros},{scalar} 1.0,{zeros}}}>,align 64"


def driver(program: Program, residuals: int, width: int, points: Lanes) -> str:
    """Return the exported function, with `width` columns to a block; the last block overlaps the one before."""
    columns, outputs = program.inputs[-1].size, program.outputs
    value = points.size * points.width
    size = value * max(residuals, 1)
    large = size > STACK_BYTES
    text = "\n".join([OPEN, *_arrays(program, value), BLOCKS])
    for name, written in (
        ("ARRAYS", str(len(outputs) + 1)),
        ("RESIDUALS", f"call ptr @malloc(i64 {size})" if large else f"alloca [{size} x i8],align 64"),
        ("FREE", "call void @free(ptr %c)\n" if large else ""),
        ("MOVE", "".join(_move(k, f"[{points.width} x {points.scalar}]", program) for k in range(len(outputs)))),
        ("SCALAR", points.scalar),
        ("CENTER", str(columns - 1)),
        ("LAST", str(max(0, columns - width))),
        ("WIDTH", str(width)),
    ):
        text = text.replace(name, written)
    return text


def _arrays(program: Program, value: int) -> list[str]:
    """Return the IR of pointers to outputs, zeros where rows are missing, and the outputs of `once`."""
    lines, once = [], []
    for k, output in enumerate(program.outputs):
        lines += [f"%a{k}=getelementptr ptr,ptr %out,i64 {k}", f"%o{k}=load ptr,ptr %a{k},align 8"]
        if not output.swept:
            once.append(f"%o{k}")
        elif len(output.rows) * program.inputs[-1].size < output.size:
            lines.append(f"call void @llvm.memset.p0.i64(ptr %o{k},i8 0,i64 {value * output.size},i1 false)")
    for place, pointer in enumerate([*once, "%c"]):
        lines += [f"%p{place}=getelementptr ptr,ptr %once,i64 {place}", f"store ptr {pointer},ptr %p{place},align 8"]
    return lines


def _move(k: int, entry: str, program: Program) -> str:
    """Return the IR that points to the columns of this block in a swept output."""
    if not program.outputs[k].swept:
        return ""
    place = sum(output.swept for output in program.outputs[:k])
    return (
        f"%s{k}=getelementptr {entry},ptr %o{k},i64 %column\n"
        f"%m{k}=getelementptr ptr,ptr %moving,i64 {place}\n"
        f"store ptr %s{k},ptr %m{k},align 8\n"
    )
