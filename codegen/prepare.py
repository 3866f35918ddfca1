"""Preparation: what happens to a program before any code is written, the same for every form of code.

A kernel for one point, one for many points and exported sources start from the same machine operations; so they
compute the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.complex_rows import complex_head, in_parts, split
from codegen.dtypes import FLOAT64
from codegen.engine import has_fma
from codegen.fuse import fuse, merge_scales, sink_signs
from codegen.lower import Lowered, lower
from codegen.options import Options
from codegen.program import Program
from codegen.sweep import unroll


@dataclass(frozen=True)
class Prepared:
    """A program's machine operations, before and after fusion into multiply-adds; its arrays are of machine numbers."""

    program: Program
    options: Options
    plain: Lowered
    fused: Lowered


def prepare(program: Program, options: Options) -> Prepared:
    """Return the machine operations of a program.

    LoweringError for a head without a native lowering.

    >>> import sympy as sp
    >>> from codegen.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> prepare(program_from_sympy([x, y], [x * y - 1]), Options(fma=False)).fused.count().total()
    2
    """
    program, lowered = _lowered(program, options)
    plain = sink_signs(merge_scales(lowered))
    fused = fuse(plain) if options.fma and has_fma() else plain
    return Prepared(program, options, plain, fused)


def _lowered(program: Program, options: Options) -> tuple[Program, Lowered]:
    if options.number is FLOAT64:
        return program, lower(program)
    program = unroll(program)  # columns side by side are written for float64
    if options.number.parts == 1:
        return program, lower(program)
    return in_parts(program), split(lower(program, complex_head))
