"""The IR of a kernel for a GPU, with the operations of the kernel on a processor.

Straight lines and sweeps are written in windows (`windows`, `swept_windows`); longer ones and loops like one point on a
processor (`codegen.emission`, `codegen.loops.emit`). One entry finds the point of its thread and its numbers in every
array. All becomes one function with pointers to global memory and values in registers; long programs keep functions of
their own, which pass values through local memory. Nothing is contracted or reordered, so the bits are those of the same
text on a processor. A GPU has no C library: functions are those of `codegen.functions.lane_table`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from codegen.emission.emit import STACK_BYTES, Emitted, Form
from codegen.emission.straight import SweepPlan
from codegen.errors import LoweringError
from codegen.functions.symbols import Symbol
from codegen.gpu_architectures import architecture_of
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.lowering.passes import prepare
from codegen.machine.gpu.device_entry import KernelEntry
from codegen.machine.gpu.swept_windows import SweptWindows, window_entry, windowed
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
    clearing = CLEARING.replace("SCALAR", entry.scalar).replace("BYTES", str(entry.bytes))
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
