"""The entry of a kernel in plain C convention, as IR: a function of array pointers that calls the kernel.

A kernel itself takes two tables of pointers; `int entry(const double *, ..., double *, ...)` makes the tables.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from codegen.ir.program import Program
from codegen.ir.region import RolledProgram

DEFINED = re.compile(r"^(?:define .*?|)@([\w.$-]+) ?[(=]", re.MULTILINE)


def entry(program: Program | RolledProgram, name: str, kernel: str = "kernel") -> str:
    """Return the IR of a function with one pointer for each array, inputs first, which calls `kernel`.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> entry(program_from_sympy([x], [x + 1]), "f").splitlines()[0]
    'define i32 @f(ptr %i0,ptr %o0) nounwind {'
    """
    inputs = [f"%i{k}" for k in range(len(program.arguments))]
    outputs = [f"%o{k}" for k in range(len(program.outputs))]
    parameters = ",".join(f"ptr {name}" for name in (*inputs, *outputs))
    lines = [f"define i32 @{name}({parameters}) nounwind {{", *call(inputs, outputs, kernel), "ret i32 %status", "}"]
    return "\n".join(lines) + "\n"


def call(inputs: Sequence[str], outputs: Sequence[str], kernel: str = "kernel") -> list[str]:
    """Return the IR lines that call a kernel with pointers to its arrays; its result is `%status`."""
    lines = []
    for table, pointers in (("in", inputs), ("out", outputs)):
        lines.append(f"%{table}=alloca [{max(len(pointers), 1)} x ptr],align 8")
        for k, pointer in enumerate(pointers):
            lines.append(f"%{table}{k}=getelementptr ptr,ptr %{table},i64 {k}")
            lines.append(f"store ptr {pointer},ptr %{table}{k},align 8")
    return [*lines, f"%status=call i32 @{kernel}(ptr %in,ptr %out)"]


def exported(text: str, program: Program | RolledProgram, name: str) -> str:
    """Return the IR text of a kernel whose only visible symbol is the function `name` in plain convention."""
    hidden = re.sub(r"^define (?!internal )", "define internal ", text, flags=re.MULTILINE)
    defined = set(DEFINED.findall(hidden))
    kernel = "kernel"
    if name in defined:
        hidden = re.sub(r"@([\w.$-]+)", lambda found: _renamed(found[1], defined), hidden)
        kernel = "kernel.hidden"
    return hidden + entry(program, name, kernel)


def _renamed(name: str, defined: set[str]) -> str:
    return f"@{name}.hidden" if name in defined else f"@{name}"
