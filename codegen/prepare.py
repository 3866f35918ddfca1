"""Preparation: what happens to a program before any code is written, the same for every form of code.

A kernel for one point, one for many points and exported sources start from the same machine operations; so they
compute the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from codegen.dtypes import FLOAT64
from codegen.engine import has_fma
from codegen.fuse import fuse, merge_scales, sink_signs
from codegen.lower import Lowered, lower
from codegen.options import Options
from codegen.program import Program
from codegen.sweep import unroll


@dataclass(frozen=True)
class Prepared:
    """A program's machine operations, before and after fusion into multiply-adds."""

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
    if options.number is not FLOAT64:
        program = unroll(program)  # columns side by side are written for float64
    plain = sink_signs(merge_scales(lower(program)))
    fused = fuse(plain) if options.fma and has_fma() else plain
    return Prepared(program, options, plain, fused)
