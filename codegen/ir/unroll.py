"""Unroll: any program as straight lines, for everything that knows only those."""

from __future__ import annotations

from codegen.errors import LimitError
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram, regions_of
from codegen.ir.strictness import checked
from codegen.ir.sweep_columns import columns_apart
from codegen.ir.unroll_rows import straight_lines

LARGEST = 5_000_000  # operations and numbers of buffers
LONGEST = 5_000  # repetitions of a loop that may stop: every one is written, and chosen if none before was the last


def unroll(program: Program | RolledProgram) -> Program:
    """Return the straight-line program with the same inputs and outputs; linear in the operations that it runs.

    A program of straight lines is returned as it is. LimitError for more than five million operations, and for loops
    that may stop of more than 5,000 repetitions.

    >>> import numpy as np
    >>> import sympy as sp
    >>> from codegen.evaluation.interpret import evaluate
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Region, Result
    >>> from codegen.ir.tables import Affine
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> square = program_from_sympy([x], [x**2])
    >>> total = Result(0, 1, Affine(0, 0, 3), "add")
    >>> region = Region(square, 3, (Gather(0, Affine(0, 1, 3)),), (total,))
    >>> buffers = (Buffer("input", 3), Buffer("output", 1))
    >>> flat = unroll(RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (region,)))
    >>> evaluate(flat, list(flat.outputs[0].rows), {0: 1.0, 1: 2.0, 2: 3.0})
    [14.0]
    """
    if isinstance(program, RolledProgram):
        _check(program)
        return checked(straight_lines(program), "writing loops as straight lines")
    return checked(columns_apart(program), "writing columns as straight lines") if program.seeded else program


def _check(program: RolledProgram) -> None:
    size = program.executed + sum(buffer.size for buffer in program.buffers)
    if size > LARGEST:
        raise LimitError(
            f"{program.name} without loops",
            why=f"it would have {size:,} operations and numbers, and at most {LARGEST:,} are written",
            do="make the problem smaller, or use what works on loops",
        )
    longest = max((region.count for region, _ in regions_of(program.steps) if region.stop is not None), default=0)
    if longest > LONGEST:
        raise LimitError(
            f"{program.name} without loops",
            why=f"a loop that may stop has up to {longest:,} repetitions, and at most {LONGEST:,} are written",
            do="give the loop a smaller bound, or use what works on loops",
        )
