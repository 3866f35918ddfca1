"""The sweep over the columns of a dense matrix: whether it is worth writing down, and its price."""

from __future__ import annotations

import sys

from codegen.ir.program import Program
from codegen.lowering.halves import columns_at_once, side_by_side
from codegen.pricing.price import halves_of, rows_work, sweep_work
from codegen.pricing.price_table import Price
from symad.compiling.plan import Candidate, time_text

FEWEST_COLUMNS = 4  # a sweep over fewer columns saves nothing
FEWEST_PRODUCTS = 200  # columns times operations of the function: straight lines are called as fast, and soon written
SWEPT = 0.25  # nanoseconds of a block of columns for each operation of f, at least: of twelve Hessians 0.31 to 2.2
USUAL = 4  # times the least that a sweep takes: nine of the twelve take less
CLEARLY = 2.0  # times: one way is expected to be faster than another, whatever is wrong with the prediction
LARGEST_SWEEP = 5000  # operations that a function with loops carries out, whose matrix may be swept
LARGEST_CLEAR_SWEEP = 50_000  # the same where a sweep is expected to be clearly faster: it is written in some 2 s


def reason_against_sweep(
    columns: int | None,
    operations: int | None,
    executed: int | None,
    *,
    symmetric: bool,
    best: float,
    loops: float | None,
) -> str:
    """Return why a sweep is not even written down, "" if it is.

    `operations` are those of the function in straight lines, `executed` those of a call of its loops, each None if
    unknown; `best` is the price of the best other way, `loops` that of loops which may do without a large sweep.

    >>> reason_against_sweep(3, 100, None, symmetric=True, best=1.0, loops=1.0)
    '3 columns are too few'
    """
    if columns is not None and columns < FEWEST_COLUMNS:
        return f"{columns} columns are too few"
    if columns is not None and operations is not None and columns * operations < FEWEST_PRODUCTS:
        return f"{columns} columns of {operations} operations are too few"
    if executed is None:
        return ""
    most = columns or sys.maxsize
    least = SWEPT * -(-most // side_by_side(most)) * executed
    if columns and symmetric and Price(least, 0.0).total() > best:
        return f"{columns} columns take {time_text(least)} at least"
    if executed <= LARGEST_SWEEP or loops is None:
        return ""
    if executed <= LARGEST_CLEAR_SWEEP and Price(CLEARLY * USUAL * least, 0.0).total() < loops:
        return ""
    return f"its function has more than {LARGEST_SWEEP} operations"


def sweep_candidates(program: Program, *, symmetric: bool) -> tuple[Candidate, Candidate]:
    """Return a sweep, and straight lines that have every column of it written out."""
    columns, lanes, halves = program.inputs[-1].size, columns_at_once(program), halves_of(program)
    once, per_column = halves.once.total(), halves.columns.total()
    executed = once + -(-columns // lanes) * per_column  # one on the registers of several columns counts once
    rows = halves.written_out(symmetric=symmetric)
    price = rows_work(rows, len(program.outputs[0].rows) * columns).price
    sweep = Candidate("sweep", executed, once + per_column, sweep_work(program, lanes, halves).price, program)
    return sweep, Candidate("straight", rows.total(), rows.total(), price)
