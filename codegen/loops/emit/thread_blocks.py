"""Split a long loop into blocks for threads. The results keep their bits.

A loop is cut into blocks of repetitions, or of whole runs where there are several, if its repetitions are independent
and no two blocks write to the same place. A sum over all repetitions is taken block by block; then the sums of the
blocks are added in their order. Where several blocks add to one place, as pairs of atoms do on the diagonal of a
Hessian, each adds to its own copy, and then the copies are added in their order. Blocks depend only on the program and
on the width of the registers: a kernel for one thread has the same blocks where there are sums or copies.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from itertools import accumulate

from codegen.ir.region import Region
from codegen.ir.tables import distinct, unique
from codegen.loops.emit.loop_columns import LoopColumns
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import NANOSECONDS, nanoseconds, registers
from codegen.records import dataclass

SPLIT = 56_000.0  # nanoseconds of a loop from which on it is cut: to wake a thread takes 20,000 to 50,000
BLOCK = 11_000.0  # nanoseconds of a block
MOST = 256  # blocks
SHARE, ADDED = 0.05, 0.6  # of the time of a loop that copies may take, and nanoseconds of a number of one
NUMBERS = 16  # that a line of the cache has, at most
WHOLE = 64  # repetitions of which blocks are multiples: whole vectors, and whole lines of the cache


@dataclass(frozen=True)
class Copy:
    """`size` numbers of a buffer, from place `first` on, to which several blocks add."""

    buffer: int
    first: int
    size: int

    @property
    def room(self) -> int:
        """Numbers in memory for the copy of one block: lines, with one behind it for the last vector."""
        return (-(-self.size // NUMBERS) + 1) * NUMBERS


@dataclass(frozen=True)
class Blocks:
    """`count` blocks of `size` of the `units` (repetitions or runs) each; the last one may have fewer.

    `sums` are the results that are added up over all repetitions; each block has the `copies`.
    """

    count: int
    size: int
    units: int
    sums: tuple[int, ...]
    copies: tuple[Copy, ...] = ()

    @property
    def partial(self) -> int:
        """Numbers in memory for the sums of all blocks."""
        return self.count * len(self.sums)

    @property
    def copied(self) -> int:
        """Numbers in memory for the copies of one block."""
        return sum(copy.room for copy in self.copies)

    @property
    def begins(self) -> dict[int, int]:
        """For each copied buffer, where in the memory of a block its place 0 would be."""
        before = accumulate((copy.room for copy in self.copies), initial=0)
        return {copy.buffer: begin - copy.first for copy, begin in zip(self.copies, before, strict=False)}


def blocks_of(
    region: Region, lowered: Lowered, lanes: int, columns: LoopColumns | None, stored: AbstractSet[int]
) -> Blocks | None:
    """Return the blocks of a region, or None; `stored` are the numbers of sums of one term."""
    work = work_of(region, lowered, lanes)
    if not region.parallel or work < SPLIT or asks_scipy(lowered):
        return None
    results = range(len(region.results))
    sums = tuple(c for c in results if _is_sum(region, c, columns, stored))
    meeting = [c for c in results if c not in sums and not _is_apart(region, c, columns, stored)]
    copies = _copies(region, meeting, columns, stored)
    if copies is None:
        return None
    runs = 1 if columns is None else len(columns.runs)
    units, whole = (region.count, WHOLE) if runs == 1 else (runs, 1)
    count = min(max(int(work / BLOCK), 2), MOST)
    if copies:  # of at most 8 blocks
        count = min(count, 8, int(SHARE * work / (ADDED * sum(copy.room for copy in copies))))
    size = -(-units // (max(count, 1) * whole)) * whole
    return Blocks(-(-units // size), size, units, sums, copies) if size < units else None


def _copies(
    region: Region, meeting: Sequence[int], columns: LoopColumns | None, stored: AbstractSet[int]
) -> tuple[Copy, ...] | None:
    """Return the copies of each block; None where a region does more than add to a copied buffer, or in nests."""
    if meeting and (columns is None or (len(columns.runs) == 1 and columns.overlaps)):
        return None
    copies = []
    for buffer in sorted({region.results[c].buffer for c in meeting}):
        uses = [(c, use) for c, use in enumerate(region.results) if use.buffer == buffer]
        adds = all(use.kind == "add" and c not in stored and not any(use.table.shifts) for c, use in uses)
        if not adds or any(use.buffer == buffer for use in region.gathers):
            return None
        lowest, highest = zip(*(use.table.bounds for _, use in uses), strict=True)
        copies.append(Copy(buffer, min(lowest), max(highest) - min(lowest) + 1))
    return tuple(copies)


def asks_scipy(lowered: Lowered) -> bool:
    """Whether functions of SciPy are called: they may ask for Python, so they stay on one thread."""
    return any(row[0] == "call" and str(row[1]).startswith("scipy.") for row in lowered.rows)


def work_of(region: Region, lowered: Lowered, lanes: int) -> float:
    """Return an estimate of the nanoseconds of a region."""
    moved = sum(not use.table.fixed for use in region.uses)
    repetition = nanoseconds(lowered.count()) * registers(lanes) / lanes + NANOSECONDS["cache"] * moved
    return region.count * repetition


def _is_sum(region: Region, c: int, columns: LoopColumns | None, stored: AbstractSet[int]) -> bool:
    """Whether a result is added to one place in all repetitions."""
    use = region.results[c]
    if use.kind != "add" or c in stored:
        return False
    if columns is None:
        return use.table.fixed
    column = columns.results[c]
    return column.fixed and bool((column.starts == column.starts[0]).all())


def _is_apart(region: Region, c: int, columns: LoopColumns | None, stored: AbstractSet[int]) -> bool:
    """Whether no two blocks write to the same place: that of one repetition, of one run, or of overlapping sums.

    A vector of overlapping sums is stored by one block; other sums in the same array may be anywhere.
    """
    use = region.results[c]
    if use.kind == "last":
        return False
    if use.kind == "store" or c in stored:
        return True
    beside = {d for d, other in enumerate(region.results) if other.buffer == use.buffer}
    if columns is None:
        return beside == {c} and unique(use.table)
    overlap = next((overlap for overlap in columns.overlaps if c in overlap.distances), None)
    if overlap is not None:
        return len(columns.runs) == 1 and beside == set(overlap.distances)
    if beside != {c}:
        return False
    column = columns.results[c]
    if column.fixed:
        return len(distinct(column.starts)) == len(column.starts)
    return len(columns.runs) == 1 and unique(use.table)  # the last vector of a run adds zeros behind it
