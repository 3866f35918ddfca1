"""Cost of loops: an estimate of time, against that of straight lines; results never depend on it.

Measured on an AVX-512 machine with Hessians and gradients of sums, maps and chains of 100 to 10,000 operations; only
ratios matter. Functions that have a formula for lanes cost less there than the C library's in straight lines
(`saved_by_lanes`); others cost the same either way, and are not counted apart.
"""

from __future__ import annotations

from math import ceil, prod

import sympy as sp

from codegen import heads
from codegen.cost import LANES_AT_ONCE
from codegen.program import Head
from codegen.regions.region import Region, RolledProgram, regions_of
from codegen.regions.runs import runs

OPERATION = 0.13  # nanoseconds, in straight lines
CHAIN = 0.13  # in a loop whose repetitions wait for each other
FAR = 0.35  # the same in code that is too long for the caches next to the processor
LONG = 30_000  # operations of such code
TABLE = 0.5  # to read a place, and what is there
STORE = 0.2  # to store a number, one by one
RUN = 8.0  # nanoseconds to begin and to end a stretch of repetitions,
RESULT = 1.0  # and for each of its results
ROUND = 20.0  # and for each round of a nest
FUNCTION = 4.0  # what a function of the C library takes longer than its formula for lanes
ON_LANES: frozenset[Head] = frozenset(
    {sp.exp, sp.log, sp.sin, sp.cos, sp.tan, sp.atan, sp.sinh, sp.cosh, sp.tanh, heads.expm1, heads.log1p, heads.expit,
     heads.softplus, heads.log_expit, heads.logaddexp}
)  # fmt: skip


def straight_nanoseconds(operations: int, results: int = 0) -> float:
    """Return an estimate for straight lines of so many operations, as they are before any is shared or fused.

    `results` is how many numbers are stored.

    >>> straight_nanoseconds(100_000) > 20 * straight_nanoseconds(10_000)
    True
    """
    return (FAR if operations > LONG else OPERATION) * operations + STORE * results


def rolled_nanoseconds(program: RolledProgram) -> float:
    """Return an estimate for the loops of a rolled program.

    >>> from codegen.regions.region import Buffer, Gather, Result
    >>> from codegen.regions.table import Affine
    >>> from codegen.program import Input, Output
    >>> from codegen.sympy_in import program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> def squares(n):
    ...     region = Region(
    ...         program_from_sympy([x], [x**2 + x]), n, (Gather(0, Affine(0, 1, n)),),
    ...         (Result(0, 1, Affine(0, 1, n), "store"),),
    ...     )
    ...     buffers = (Buffer("input", n), Buffer("output", n))
    ...     return RolledProgram((Input("x", (n,)),), (Output((n,), ()),), buffers, (region,))
    >>> [rolled_nanoseconds(squares(n)) < straight_nanoseconds(2 * n) for n in (10, 1000)]
    [False, True]
    """
    steps = regions_of(program.steps)
    return sum(prod(counts) * (_nanoseconds(region) + ROUND * bool(counts)) for region, counts in steps)


def saved_by_lanes(program: RolledProgram) -> float:
    """Return what functions save in loops whose repetitions run side by side, against straight lines."""
    side_by_side = [(region, counts) for region, counts in regions_of(program.steps) if region.parallel]
    return FUNCTION * sum(
        prod(counts) * region.count * sum(head in ON_LANES for head in region.body.heads)
        for region, counts in side_by_side if region.count > 1
    )  # fmt: skip


def _nanoseconds(region: Region) -> float:
    operations, begin = sum(map(bool, region.body.operands)), RUN + RESULT * len(region.results)
    if region.count == 1:
        return OPERATION * operations
    if not region.parallel:
        return CHAIN * operations * region.count + begin
    tables = [use.table for use in region.gathers] + [use.table for use in region.results]
    found = runs(tables, region.count)
    if found is None:  # places are read from tables, one by one
        return (OPERATION * operations + TABLE * len(tables)) * region.count + begin
    vectors = int(sum(ceil(length / LANES_AT_ONCE) for length in found.lengths.tolist()))
    return OPERATION * operations * vectors + begin * len(found)
