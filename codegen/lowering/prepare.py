"""Preparation: what happens to a program before any code is written, the same for every form of code.

A kernel for one point, one for many points and exported sources start from the same machine operations; so they
compute the same bits.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from codegen.dtypes import FLOAT64
from codegen.engine import has_fma
from codegen.ir.program import Program
from codegen.ir.unroll import unroll
from codegen.lowering.algebra import Effect, simplify
from codegen.lowering.complex_rows import complex_head, in_parts, split
from codegen.lowering.fuse import fuse
from codegen.lowering.halves import executed
from codegen.lowering.lower import Lowered, lower
from codegen.options import Options
from codegen.stages import carried_out, observed


@dataclass(frozen=True)
class Prepared:
    """A program's machine operations, before and after fusion into multiply-adds; its arrays are of machine numbers.

    `effects` says what each pass of `codegen.lowering.algebra` did, for accuracy "fast".
    """

    program: Program
    options: Options
    plain: Lowered
    fused: Lowered
    effects: tuple[Effect, ...] = ()


def prepare(program: Program, options: Options) -> Prepared:
    """Return the machine operations of a program.

    LoweringError for a head without a native lowering.

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> prepare(program_from_sympy([x, y], [x * y - 1]), Options(fma=False)).fused.count().total()
    2
    """
    program, lowered = _lowered(program, options)
    observed(lowered, "lower")
    real = options.number.parts == 1  # a zero and its sign decide on a branch cut: they stay as written
    fused, accuracy = real and options.fma and has_fma(), options.accuracy if real else "strict"
    plain, effects = simplify(lowered, accuracy, lambda rows: _executed(program, rows, fused))
    return Prepared(program, options, plain, carried_out("multiply-add", fuse, plain) if fused else plain, effects)


def _lowered(program: Program, options: Options) -> tuple[Program, Lowered]:
    if options.number is FLOAT64:
        return program, lower(program)
    program = observed(unroll(program), "unroll")  # columns side by side are written for float64
    if options.number.parts == 1:
        return program, lower(program)
    return in_parts(program), split(lower(program, complex_head))


def _executed(program: Program, lowered: Lowered, fused: bool) -> Counter[str]:
    """Operations that one call carries out, by kind; in a sweep, those of every block of columns."""
    lowered = fuse(lowered) if fused else lowered
    return executed(program, lowered) if program.seeded else lowered.count()
