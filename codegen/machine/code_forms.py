"""Plan: from prepared operations to what is written: straight-line code, a sweep over columns, or loops."""

from __future__ import annotations

from typing import TypeAlias

from codegen.emission.emit import Emitted, Form
from codegen.emission.straight import StraightPlan, SweepPlan
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.passes import Prepared, prepare
from codegen.options import Options
from codegen.stages import allowed

Plan: TypeAlias = StraightPlan | SweepPlan | RolledPlan


def plan(prepared: Prepared) -> StraightPlan | SweepPlan:
    """Return the operations in order, ready to be written.

    >>> import sympy as sp
    >>> from codegen.options import Options
    >>> from codegen.lowering.passes import prepare
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> plan(prepare(program_from_sympy([x], [x + 1]), Options())).strategy
    'straight'
    """
    made = SweepPlan if prepared.program.seeded else StraightPlan
    fast = prepared.options.accuracy == "fast" and allowed("vector-library")
    return made.of(prepared.program, prepared.fused, prepared.options.chunk, vector_libm=fast)


def planned(program: Program | RolledProgram, options: Options) -> Plan:
    """Return what is to be written of any program.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> planned(program_from_sympy([x], [x + 1]), Options()).executed().total()
    1
    """
    if isinstance(program, RolledProgram):
        return RolledPlan.of(program, options)
    return plan(prepare(program, options))


def write(program: Program | RolledProgram, options: Options) -> Emitted:
    """Return the IR of a kernel for one point, in the numbers of its options.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> "fadd float" in write(program_from_sympy([x], [x + 1]), Options(dtype="float32")).text
    True
    """
    return planned(program, options).emit(Form(lanes=options.number.lanes()))
