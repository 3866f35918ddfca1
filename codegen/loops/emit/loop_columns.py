"""Describe the columns of a region's tables within runs, and find scatters that overlap.

In the Hessian of a chain of squares, repetition k adds to places k and k + 1 of the diagonal. Vectors that are added to
memory one place apart would wait for each other; instead, the lanes of the later sum move up, the first ones come from
the vector before, and all go to memory at once (`Overlap`). The same holds for a diagonal among other entries that are
stored in the same steps: with those, it fills whole vectors. Where runs do not fill a register, fewer lanes cost less.
"""

from __future__ import annotations

from collections.abc import Sequence, Set as AbstractSet
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from codegen.ir.region import Gather, Region, Result
from codegen.ir.tables import Affine, Places, Runs, runs
from codegen.lowering.lower import Lowered
from codegen.pricing.price_table import NANOSECONDS
from codegen.records import dataclass

Use: TypeAlias = Gather | Result
LONGEST_ROW = 8  # numbers that are stored side by side


@dataclass(frozen=True, eq=False)
class Column:
    """A table in a loop, numbered with gathers first: places in a run are `start + step * k` or `start + index[k]`."""

    number: int
    use: Use
    step: int
    starts: Places
    index: Places | None = None

    @property
    def fixed(self) -> bool:
        return self.step == 0 and self.index is None

    @property
    def side_by_side(self) -> bool:
        """Whether the places of a run follow each other."""
        return self.step == 1 and self.index is None


@dataclass(frozen=True, eq=False)
class Overlap:
    """Sums at places that follow each other, perhaps in steps: the number of steps from the first one, by result."""

    distances: dict[int, int]

    @property
    def first(self) -> int:
        return min(self.distances, key=self.distances.__getitem__)

    @property
    def longest(self) -> int:
        return max(self.distances.values())


@dataclass(frozen=True, eq=False)
class LoopColumns:
    """Runs of a region, the columns of its gathers and of its results, and the sums that overlap."""

    runs: Runs
    reads: tuple[Column, ...]
    results: tuple[Column, ...]
    overlaps: tuple[Overlap, ...] = ()

    def known(self, stored: AbstractSet[int]) -> LoopColumns:
        """Return the same where some results are stores: sums in steps overlap only as stores."""
        kept = (o for o in self.overlaps if self.results[o.first].step == 1 or o.distances.keys() <= stored)
        return replace(self, overlaps=tuple(kept))

    def places(self, overlap: Overlap) -> Places:
        """Return the places of all sums of an overlap, each as often as vectors are added there."""
        column = self.results[overlap.first]
        parts = zip(column.starts.tolist() * (len(self.runs) // len(column.starts)), self.runs.lengths, strict=True)
        reach = [(first, column.step * int(length + overlap.longest)) for first, length in parts]
        return np.concatenate([np.arange(first, first + far, column.step) for first, far in reach])


def columns_of(region: Region, width: int) -> LoopColumns:
    """Return the columns of a region that runs `width` repetitions side by side."""
    uses = region.uses
    table_runs = runs([use.table for use in uses], region.count)
    if table_runs is None:
        table_runs, columns = Runs(np.array([region.count]), (), ()), [_whole(*use) for use in enumerate(uses)]
    else:
        columns = [
            Column(*parts) for parts in zip(range(len(uses)), uses, table_runs.steps, table_runs.starts, strict=True)
        ]
    results = columns[len(region.gathers) :]
    overlaps = _overlaps(region.results, results, width)
    return LoopColumns(table_runs, tuple(columns[: len(region.gathers)]), tuple(results), tuple(overlaps))


def rows_of(columns: Sequence[Column]) -> list[list[int]]:
    """Return the columns in groups of at most 8 that stand side by side in every repetition, first to last."""
    order = sorted(
        range(len(columns)),
        key=lambda k: (columns[k].use.buffer, columns[k].use.table.shifts, columns[k].step, int(columns[k].starts[0])),
    )
    groups: list[list[int]] = []
    for k in order:
        if groups and len(groups[-1]) < LONGEST_ROW and _follows(columns[k], columns[groups[-1][-1]]):
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def _follows(column: Column, before: Column) -> bool:
    use, other = column.use, before.use
    same = (use.buffer, use.table.shifts, column.step) == (other.buffer, other.table.shifts, before.step)
    return same and np.array_equal(column.starts, before.starts + 1)


def _whole(number: int, use: Use) -> Column:
    """Return the column of one run, with an index where the table is not affine."""
    if isinstance(use.table, Affine):
        return Column(number, use, use.table.step, np.array([use.table.start]))
    first = int(use.table.index[0])
    return Column(number, use, 0, np.array([first]), use.table.index - first)


def _overlaps(results: Sequence[Result], columns: Sequence[Column], width: int) -> list[Overlap]:
    """Return the sums, without gaps if in steps, whose first places are less than a vector apart in all runs alike."""
    families: dict[tuple[int, tuple[int, ...], int], list[int]] = {}
    for c, (use, column) in enumerate(zip(results, columns, strict=True)):
        if use.kind != "last" and column.index is None and 1 <= column.step <= LONGEST_ROW:
            families.setdefault((use.buffer, use.table.shifts, column.step), []).append(c)
    overlaps = []
    for (_, _, step), family in families.items():
        if len({int(columns[c].starts[0]) % step for c in family}) < step:
            continue  # there are gaps
        left = sorted((c for c in family if results[c].kind == "add"), key=lambda c: int(columns[c].starts[0]))
        while left:
            apart = [columns[c].starts - columns[left[0]].starts for c in left]
            near = [(part == part[0]).all() and part[0] % step == 0 and part[0] < width * step for part in apart]
            group = {c: int(part[0]) // step for c, part, close in zip(left, apart, near, strict=True) if close}
            overlaps += [Overlap(group)] if len(group) > 1 else []
            left = [c for c in left if c not in group]
    return overlaps


def lanes_of_runs(region: Region, lowered: Lowered, widest: int, at_once: int) -> int:
    """Return how many repetitions cost least side by side: lanes without a repetition cost as much as the others.

    At most the `widest`; `at_once` of them are as fast as one. Runs that fill two registers or more have the widest.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.region import Gather, Result
    >>> from codegen.ir.tables import Affine, Indexed
    >>> from codegen.lowering.lower import lower
    >>> import numpy as np, sympy as sp
    >>> a, b = sp.symbols("a b")
    >>> body = program_from_sympy([a, b], [a * b])
    >>> def lanes(n, step):
    ...     i, j = np.triu_indices(n, 1)
    ...     gathers = Gather(0, Indexed(i)), Gather(0, Indexed(j * step))
    ...     results = (Result(0, 1, Affine(0, step, len(i)), "store"),)
    ...     return lanes_of_runs(Region(body, len(i), gathers, results), lower(body), 8, 8)
    >>> lanes(10, 3), lanes(100, 3)
    (2, 8)
    """
    tables = [use.table for use in region.uses]
    table_runs = runs(tables, region.count)
    if table_runs is None or region.count >= 2 * widest * len(table_runs):
        return widest
    kinds = ["table"] * len(region.gathers) + ["table store"] * len(region.results)
    moved = sum(NANOSECONDS[kind] for kind, step in zip(kinds, table_runs.steps, strict=True) if step not in (0, 1))
    plain = NANOSECONDS["lanes operation"]
    arithmetic = sum(NANOSECONDS.get(f"lanes {kind}", plain) * count for kind, count in lowered.count().items())

    def nanoseconds(width: int) -> float:
        vectors = int((-(-table_runs.lengths // width)).sum())
        return vectors * (arithmetic * max(1.0, width / at_once) + moved * width)

    widths = [widest]
    while widths[-1] > 2:
        widths.append(widths[-1] // 2)
    return min(widths, key=nanoseconds)
