"""Cost of loops: an estimate of time, against that of straight lines; results never depend on it.

The constants fit 80 kernels (values, gradients, Jacobians and Hessians of sums, maps, chains and networks of 100 to
100,000 operations) on a machine with registers of four doubles; only ratios matter. Functions are what loops save most
of: those that have a formula for lanes take four numbers in the time of one; others call the C library either way.
"""

from __future__ import annotations

from math import ceil, prod

import sympy as sp

from codegen import heads
from codegen.ir.affine_runs import runs
from codegen.ir.cost import LANES_AT_ONCE
from codegen.ir.program import Head, Program
from codegen.ir.region import Region, RolledProgram, regions_of
from codegen.ir.tables import Affine

CALL = 100.0  # nanoseconds of a call from Python, whatever it computes
OPERATION = 0.08  # in straight lines
FAR = 0.15  # the same in code that is too long for the caches next to the processor
LONG = 30_000  # operations of such code
CHAIN = 0.28  # where repetitions wait for each other, in loops and in straight lines
ON_LANES = 0.11  # in a loop, on a register
FUNCTION = 8.0  # a function of the C library; or one on a register, besides
STORE = 0.16  # to store an entry of a sparse result, in straight lines
TABLE = 0.4  # to read a place, and what is there, or to add to it
STRIDE = 0.13  # the same at places in steps
RESULT = 1.8  # nanoseconds to begin and to end a stretch of repetitions, for each result
ROUND = 20.0  # and for each round of a nest
FORMULAS: frozenset[Head] = frozenset(
    {sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.atan, sp.sinh, sp.cosh, sp.tanh, sp.sech, heads.expm1, heads.log1p,
     heads.expit, heads.softplus, heads.log_expit, heads.logaddexp}
)  # fmt: skip
CHEAP = frozenset({sp.Abs, sp.Piecewise, sp.sign, sp.floor, sp.ceiling})  # functions that are operations


def straight_nanoseconds(program: RolledProgram, operations: int = 0) -> float:
    """Return an estimate for the straight lines of a rolled program; `operations` is how many, where that is known.

    They are those before any is shared or fused.
    """
    operations = operations or program.executed
    steps = list(regions_of(program.steps))
    chained = sum(prod(counts) * region.count * _operations(region) for region, counts in steps if _is_chain(region))
    functions = sum(prod(counts) * region.count * len(functions_of(region.body)) for region, counts in steps)
    results = sum(output.size for output in program.outputs if output.pattern is not None)
    lines = (FAR if operations > LONG else OPERATION) * operations + (CHAIN - OPERATION) * chained
    return lines + FUNCTION * functions + STORE * results


def rolled_nanoseconds(program: RolledProgram) -> float:
    """Return an estimate for the loops of a rolled program.

    >>> from codegen.ir.region import Buffer, Gather, Result
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> def maps(n, f):
    ...     all_of_them = Affine(0, 1, n)
    ...     body, result = program_from_sympy([x], [f]), Result(0, 1, all_of_them, "store")
    ...     region = Region(body, n, (Gather(0, all_of_them),), (result,))
    ...     buffers = (Buffer("input", n), Buffer("output", n))
    ...     return RolledProgram((Input("x", (n,)),), (Output((n,), ()),), buffers, (region,))
    >>> programs = [maps(n, f) for n, f in ((10, x**2 + x), (1000, x**2 + x), (10, sp.sin(x)))]
    >>> [rolled_nanoseconds(program) < straight_nanoseconds(program) for program in programs]
    [False, True, True]
    """
    steps = regions_of(program.steps)
    return sum(prod(counts) * (_nanoseconds(region) + ROUND * bool(counts)) for region, counts in steps)


def functions_of(body: Program) -> list[Head]:
    """Return the operations of a body that are functions of the C library, roughly."""
    found = [head for head, operands in zip(body.heads, body.operands, strict=True) if operands]
    return [head for head in found if issubclass(head, sp.Function) and head not in CHEAP]


def _operations(region: Region) -> int:
    return sum(map(bool, region.body.operands))


def _is_chain(region: Region) -> bool:
    return region.count > 1 and not region.parallel


def _nanoseconds(region: Region) -> float:
    operations, functions = _operations(region), functions_of(region.body)
    if not region.parallel or region.count == 1:
        return ((CHAIN if _is_chain(region) else OPERATION) * operations + FUNCTION * len(functions)) * region.count
    tables = [use.table for use in region.gathers] + [use.table for use in region.results]
    found = runs(tables, region.count)
    lengths = [region.count] if found is None else found.lengths.tolist()
    vectors = sum(ceil(length / LANES_AT_ONCE) for length in lengths)
    steps = [table.step if isinstance(table, Affine) else None for table in tables] if found is None else found.steps
    places = sum(TABLE if step is None else STRIDE for step in steps if step not in (0, 1))
    begin = RESULT * len(region.results) * len(lengths)
    calls = sum(1 if head in FORMULAS else LANES_AT_ONCE for head in functions)
    return (ON_LANES * operations + FUNCTION * calls) * vectors + places * region.count + begin
