"""The table of passes on machine operations, exact and inexact, and their order.

The table says what each pass does, whether it keeps every bit, and its effect on rounding. `accuracy="strict"` runs the
exact passes, `"fast"` all of them. A pass that would make a program more expensive is skipped; only collecting terms
may cost something that the next pass saves, or else it is undone. No pass moves an operation into or out of a branch:
both sides of a select are always computed.

Kernels for one point, for many points and exported sources start from the same machine operations; so they compute the
same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

from codegen.ir.program import Program
from codegen.ir.unroll import unroll
from codegen.lanes import FLOAT64
from codegen.lowering.algebra_pairs import share_sums
from codegen.lowering.algebra_products import share_products
from codegen.lowering.algebra_sums import collect_terms, factor_sums
from codegen.lowering.complex_rows import complex_head, in_parts, split
from codegen.lowering.fuse import fuse, merge_scales, place_signs, sink_signs
from codegen.lowering.halves import Split, executed, split as split_sweep
from codegen.lowering.lower import Lowered, lower
from codegen.options import Options
from codegen.pricing.price_table import nanoseconds
from codegen.processor import has_fma
from codegen.records import dataclass
from codegen.stages import Effect, allowed, carried_out, observed

Count: TypeAlias = Callable[[Lowered], Counter[str]]


@dataclass(frozen=True)
class Pass:
    """A pass: its name, description and function, whether results keep every bit, and its effect on rounding."""

    name: str
    does: str
    function: Callable[[Lowered], Lowered]
    exact: bool
    rounding: str


_TERMS = Pass(
    "terms",
    "like terms of a sum are collected, `(x + 1) + 2` and `3*x + x`; a factor that is a short sum is written out where "
    "its terms merge with others; constant factors of a sum go into its coefficients",
    collect_terms,
    False,
    "the error stays below the number of operations times the rounding unit times the sum of the absolute terms; a "
    "small difference of large terms may keep fewer digits; `x - x` is 0 even for inf and NaN, inf may be NaN, 0 be -0",
)
PASSES: tuple[Pass, ...] = (
    Pass(
        "scales",
        "`(c*x) * (2**k*y)` becomes `(c*2**k*x) * y`",
        merge_scales,
        True,
        "none: a power of two only moves the exponent",
    ),
    Pass("sink_signs", "`-(c*x)` becomes `(-c)*x`", sink_signs, True, "none: a sign is exact"),
    _TERMS,
    Pass(
        "products",
        "powers and constants of a product are collected, `x*x**2/x**4` is `1/x`; factors that several products share "
        "are multiplied once; quotients with one denominator share its reciprocal; `x/3` becomes `x*(1/3)`",
        share_products,
        False,
        "a product keeps a relative error of one rounding unit for each operation; `x/x` is 1 even for x = 0, infinite "
        "x and NaN, so is `x**2.5 * x**-2.5` for x < 0; what overflowed or underflowed may be finite, or the reverse",
    ),
    _TERMS,
    Pass(
        "sums",
        "`a + b` in `(a + c) + b` and `d - (b + a)` is added once",
        share_sums,
        False,
        "as for terms: sums are added in another order",
    ),
    Pass(
        "factors",
        "`a*b*c + a*d*e` becomes `a*(b*c + d*e)`",
        factor_sums,
        False,
        "as for terms: the sum in the brackets is rounded before it is multiplied, and may overflow",
    ),
    Pass(
        "signs",
        "`-(a - b)` is computed as `b - a`, and the sign of a product moves to the factor where it costs least",
        place_signs,
        False,
        "none, but for the sign of a zero difference",
    ),
)


def simplify(lowered: Lowered, accuracy: str, count: Count) -> tuple[Lowered, tuple[Effect, ...]]:
    """Return the program after the passes of an accuracy, and the effect of each of them.

    `count` returns the operations of a call by kind; it is called after each pass of "fast".

    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = lower(program_from_sympy([x], [sp.Add(x, sp.Mul(2, x, evaluate=False), evaluate=False)]))
    >>> simplify(program, "fast", lambda rows: fuse(rows).count())[1][2]
    Effect(name='terms', before=1, after=1)
    """
    if accuracy == "strict":
        for step in PASSES:
            lowered = carried_out(step.name, step.function, lowered) if step.exact else lowered
        return lowered, ()
    best = current = (lowered, count(lowered))
    effects = []
    for step in PASSES:
        before = current[1].total()
        if not allowed(step.name):
            effects.append(Effect(step.name, before, before))
            continue
        for rows, _ in (current, best) if current is not best else (best,):
            changed = step.function(rows)
            chosen = changed, count(changed)
            if step is _TERMS or nanoseconds(chosen[1]) <= nanoseconds(best[1]):
                break
        else:
            chosen = best
        current = (observed(chosen[0], step.name), chosen[1])
        best = current if nanoseconds(current[1]) <= nanoseconds(best[1]) else best
        effects.append(Effect(step.name, before, current[1].total()))
    return best[0], tuple(effects)


@dataclass(frozen=True)
class Prepared:
    """Machine operations of a program before and after fusion into multiply-adds; `effects` of the fast passes."""

    program: Program
    options: Options
    plain: Lowered
    fused: Lowered
    effects: tuple[Effect, ...] = ()

    @cached_property
    def halves(self) -> Split:
        halves = split_sweep(self.program, self.fused)
        observed(halves.once, "sweep split, what is done once")
        observed(halves.columns, "sweep split, what is done for every column")
        return halves


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
    real = options.number.parts == 1  # no passes on complex numbers: zeros and their signs decide on branch cuts
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
    """Return the operations of one call, by kind; in a sweep, those of every block of columns."""
    lowered = fuse(lowered) if fused else lowered
    return executed(program, lowered) if program.seeded else lowered.count()
