"""Blocks: parts of a long loop that several threads may run at once, without a change of a bit.

A loop is cut into blocks of repetitions, or of whole runs where there are several, if its repetitions know nothing of
each other and no two blocks write to the same place. A sum over all repetitions is taken block by block; then the sums
of the blocks are added in their order. Where a loop is cut depends on the program and on the width of the registers,
and on nothing else: a kernel for one thread has the same blocks where sums are taken.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from codegen.ir.region import Region
from codegen.ir.tables import distinct, unique
from codegen.loops.emit.loop_columns import Columns
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import NANOSECONDS, nanoseconds, registers

SPLIT = 56_000.0  # nanoseconds of a loop from which on it is cut: to wake a thread takes 20,000 to 50,000
BLOCK = 11_000.0  # nanoseconds of a block
MOST = 256  # blocks
WHOLE = 64  # repetitions of which blocks are multiples: whole vectors, and whole lines of the cache


@dataclass(frozen=True)
class Blocks:
    """So many blocks of `size` units each, the last one of what is left of `units`: repetitions, or runs.

    `sums` are the results that are added up over all repetitions.
    """

    count: int
    size: int
    units: int
    sums: tuple[int, ...]

    @property
    def partial(self) -> int:
        """Numbers in memory for the sums of all blocks."""
        return self.count * len(self.sums)


def blocks_of(
    region: Region, lowered: Lowered, lanes: int, columns: Columns | None, stored: AbstractSet[int]
) -> Blocks | None:
    """Return the blocks of a region, None where it is not cut: one of less than 56 us, or whose results may meet.

    `stored` are the numbers of sums of one term. Functions of SciPy may ask for Python, so they stay on one thread.
    """
    work = region.count * _nanoseconds(region, lowered, lanes)
    scipy = any(row[0] == "call" and str(row[1]).startswith("scipy.") for row in lowered.rows)
    if not region.parallel or work < SPLIT or scipy:
        return None
    results = range(len(region.results))
    sums = tuple(c for c in results if _is_sum(region, c, columns, stored))
    if not all(c in sums or _is_apart(region, c, columns, stored) for c in results):
        return None
    runs = 1 if columns is None else len(columns.runs)
    units, whole = (region.count, WHOLE) if runs == 1 else (runs, 1)
    wanted = min(max(int(work / BLOCK), 2), MOST)
    size = -(-units // (wanted * whole)) * whole
    return Blocks(-(-units // size), size, units, sums) if size < units else None


def _nanoseconds(region: Region, lowered: Lowered, lanes: int) -> float:
    """An estimate for one repetition."""
    moved = sum(not use.table.fixed for use in region.uses)
    return nanoseconds(lowered.count()) * registers(lanes) / lanes + NANOSECONDS["cache"] * moved


def _is_sum(region: Region, c: int, columns: Columns | None, stored: AbstractSet[int]) -> bool:
    """Whether a result is added to one place in all repetitions."""
    use = region.results[c]
    if use.kind != "add" or c in stored:
        return False
    if columns is None:
        return use.table.fixed
    column = columns.results[c]
    return column.fixed and bool((column.starts == column.starts[0]).all())


def _is_apart(region: Region, c: int, columns: Columns | None, stored: AbstractSet[int]) -> bool:
    """Whether no two blocks write to the same place: that of one repetition, of one run, or of sums that overlap.

    Vectors of sums that overlap are left by one block, whatever other sums go to the same array may be anywhere.
    """
    use = region.results[c]
    if use.kind == "last":
        return False
    if use.kind == "store" or c in stored:
        return True
    beside = {d for d, other in enumerate(region.results) if other.buffer == use.buffer}
    if columns is None:
        return beside == {c} and unique(use.table)
    overlap = next((found for found in columns.overlaps if c in found.distances), None)
    if overlap is not None:
        return len(columns.runs) == 1 and beside == set(overlap.distances)
    if beside != {c}:
        return False
    column = columns.results[c]
    if column.fixed:
        return len(distinct(column.starts)) == len(column.starts)
    return len(columns.runs) == 1 and unique(use.table)  # the last vector of a run adds zeros behind it
