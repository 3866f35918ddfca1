"""Plan: from prepared operations to what is written, straight-line code or a sweep over columns."""

from __future__ import annotations

from codegen.emission.emit import Emitted, Form
from codegen.emission.straight import StraightPlan
from codegen.emission.sweep import SweepPlan
from codegen.lowering.prepare import Prepared


def plan(prepared: Prepared) -> StraightPlan | SweepPlan:
    """Return the operations in order, ready to be written.

    >>> import sympy as sp
    >>> from codegen.options import Options
    >>> from codegen.lowering.prepare import prepare
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> plan(prepare(program_from_sympy([x], [x + 1]), Options())).strategy
    'straight'
    """
    made = SweepPlan if prepared.program.seeded else StraightPlan
    fast = prepared.options.accuracy == "fast"
    return made.of(prepared.program, prepared.fused, prepared.options.chunk, vector_libm=fast)


def write(prepared: Prepared) -> Emitted:
    """Return the IR of a kernel for one point, in the numbers of its options.

    >>> import sympy as sp
    >>> from codegen.options import Options
    >>> from codegen.lowering.prepare import prepare
    >>> from codegen.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> "fadd float" in write(prepare(program_from_sympy([x], [x + 1]), Options(dtype="float32"))).text
    True
    """
    return plan(prepared).emit(Form(lanes=prepared.options.number.lanes()))
