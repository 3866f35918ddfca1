"""The frame of a kernel's function: the pointers to its arrays, and its workspace."""

from __future__ import annotations

from codegen.ir.program import Program


def pointers(program: Program) -> list[str]:
    """Load the pointers to inputs (%i0, %i1...) and outputs (%o0...) from the tables %in and %out."""
    lines = []
    for letter, table, count in (("i", "%in", len(program.inputs)), ("o", "%out", len(program.outputs))):
        for k in range(count):
            lines.append(f"%p{letter}{k}=getelementptr ptr,ptr {table},i64 {k}")
            lines.append(f"%{letter}{k}=load ptr,ptr %p{letter}{k},align 8")
    return lines


def workspace(size: int, large: bool) -> list[str]:
    """Make the workspace %w of some bytes: on the stack, or if it is large on the heap, or return 1."""
    if not large:
        return [f"%w=alloca [{size} x i8],align 64"]
    return [
        f"%w=call ptr @malloc(i64 {size})",
        "%none=icmp eq ptr %w,null",
        "br i1 %none,label %full,label %run",
        "full:",
        "ret i32 1",
        "run:",
    ]
