"""The IR of a kernel for a GPU: one thread computes one point, by the operations of the kernel on a processor.

The kernel's own function is written as always (`codegen.emission`, `codegen.loops.emit`), for one point; around it is
one entry, which finds the point of its thread and that point's numbers in every array. All of it becomes one function,
in which pointers are known to be of global memory and values live in registers; long programs keep functions of their
own, which pass values on through local memory. Nothing is contracted and nothing reordered, so that the bits are those
of the same text on a processor.

Functions are those of `codegen.functions.lane_formulas`: a GPU has no C library.
"""

from __future__ import annotations

import re
from dataclasses import replace

from codegen.emission.emit import STACK_BYTES, Emitted, Form
from codegen.errors import LoweringError
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lowering.passes import prepare
from codegen.machine.calls.compiled import planned
from codegen.matrices.matrix_loops import without_library
from codegen.options import Options

ENTRY = "batch"  # name of the function that the driver starts
WHOLE = 8000  # operations in one function: what assembles them takes time that grows with their square
LONGEST = 800_000  # characters of its text
PART = 2000  # operations to a function of a longer program
CALLS = 40  # of functions that are written where they are called; more of them share one function
REGISTERS = ("ctaid", "ntid", "tid")

OPEN = """define ptx_kernel void @batch(PARAMETERS) {
%in=alloca [INPUTS x ptr],align 8
%out=alloca [OUTPUTS x ptr],align 8
%block=call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
%size=call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
%thread=call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
%blocks=zext i32 %block to i64
%threads=zext i32 %size to i64
%first=mul i64 %blocks,%threads
%own=zext i32 %thread to i64
%point=add i64 %first,%own
%inside=icmp ult i64 %point,%count
br i1 %inside,label %run,label %end
run:"""

CLOSE = """%status=call i32 @kernel(ptr %in,ptr %out)
br label %end
end:
ret void
}"""


def device_text(program: Program | RolledProgram, options: Options) -> str:
    """Return the IR of a kernel for a GPU, with an entry `batch(count, pointer, step, pointer, step...)`.

    There is a pointer for each array of inputs and then of outputs, and the step from a point to the next in machine
    numbers (0 for an argument that all points share); the numbers of a point lie side by side.
    LoweringError for functions that a GPU has not, and for a point that needs more memory than a thread has.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> "fadd double" in device_text(program_from_sympy([x], [x + 1]), Options())
    True
    """
    emitted = _emitted(program, replace(options, threads=1))
    missing = [name for name, found in emitted.symbols.items() if found.addresses and f"@{name}(" in _bodies(emitted)]
    if "call ptr @malloc" in _bodies(emitted):
        raise LoweringError(
            f"{program.name} on a GPU", why=f"a point of it needs more than {STACK_BYTES} bytes of workspace",
            do="use kernel.batch, or a function of fewer numbers",
        )  # fmt: skip
    if missing:
        names = ", ".join(sorted(_plain(name) for name in missing))
        raise LoweringError(f"{names} on a GPU", why="there is no formula for it", do="use kernel.batch")
    scalar = options.number.lanes().type
    lines = [_opening(program), *_places(program, scalar), CLOSE]
    return "\n".join([*_inlined(emitted), *_declared(emitted), *map(_declaration, REGISTERS), *lines]) + "\n"


def _emitted(program: Program | RolledProgram, options: Options) -> Emitted:
    """The kernel for one point, as a GPU is to have it."""
    form = Form(lanes=options.number.lanes(), formulas=True, device=True)
    if isinstance(program, RolledProgram):
        return planned(without_library(program), options).emit(form)
    size = len(prepare(program, options).fused.live())
    chunk = options.chunk or (WHOLE if size <= WHOLE else PART)
    return planned(program, replace(options, chunk=chunk)).emit(form)


def _opening(program: Program | RolledProgram) -> str:
    """The beginning of the entry, up to the tables of pointers."""
    inputs, outputs = len(program.arguments), len(program.outputs)
    kinds = [("i", " readonly", inputs), ("o", "", outputs)]
    parameters = ["i64 %count"]
    for letter, attribute, count in kinds:
        for k in range(count):
            parameters += [f"ptr noalias{attribute} align 8 %{letter}{k}", f"i64 %{letter}{k}.step"]
    text = OPEN.replace("PARAMETERS", ",".join(parameters))
    return text.replace("INPUTS", str(max(inputs, 1))).replace("OUTPUTS", str(max(outputs, 1)))


def _places(program: Program | RolledProgram, scalar: str) -> list[str]:
    """Find the point's numbers in every array."""
    lines = []
    for letter, table, count in (("i", "%in", len(program.arguments)), ("o", "%out", len(program.outputs))):
        for k in range(count):
            lines += [
                f"%{letter}{k}.at=mul i64 %point,%{letter}{k}.step",
                f"%{letter}{k}.own=getelementptr {scalar},ptr %{letter}{k},i64 %{letter}{k}.at",
                f"%{letter}{k}.entry=getelementptr ptr,ptr {table},i64 {k}",
                f"store ptr %{letter}{k}.own,ptr %{letter}{k}.entry,align 8",
            ]
    return lines


def _inlined(emitted: Emitted) -> list[str]:
    """The functions of the kernel, to be written where they are called unless there are many."""
    whole = sum(map(len, emitted.chunks)) <= LONGEST
    chunks = [_where_called(chunk) if whole else chunk for chunk in emitted.chunks]
    return [*chunks, *(_where_called(text) for text in emitted.functions)]


def _where_called(text: str) -> str:
    """A function without linkage to others, written where it is called."""
    kept = text.replace("define i32 @kernel(", "define internal i32 @kernel(", 1)
    return re.sub(r"(?m)^(define internal [^{]*?\)) *(noinline )?", r"\1 alwaysinline ", kept)


def _declared(emitted: Emitted) -> list[str]:
    """Declarations, and the functions that have formulas."""
    bodies = _bodies(emitted)
    return [
        _where_called(found.text) if bodies.count(f"@{found.name}(") <= CALLS else found.text
        for found in emitted.symbols.values()
        if found.name not in ("malloc", "free")
    ]


def _bodies(emitted: Emitted) -> str:
    return "\n".join([*emitted.chunks, *emitted.functions])


def _declaration(register: str) -> str:
    return f"declare i32 @llvm.nvvm.read.ptx.sreg.{register}.x()"


def _plain(name: str) -> str:
    """A function's name as people know it."""
    return name.removeprefix("llvm.").removesuffix(".f64").removeprefix("scipy.").partition(".")[0]
