"""Add many rows of one head to a table at once, as columns of operands.

Entering a block into the table's memo row by row would take most of the time. The bounds of a block exclude most rows;
a block whose bounds do not exclude a row is entered after all. So equal rows are one row, as they are one by one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import count, repeat
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Head
from codegen.records import dataclass

Column: TypeAlias = NDArray[np.int64] | int  # one operand of each row; a number: the same for all rows

Row = TypeVar("Row")

LOOKED_AT = 32  # blocks of a head that are compared with new rows


@dataclass(frozen=True, slots=True)
class _RowBlock:
    """Rows from `start` to `stop`, all of one head: operand k is between `lows[k]` and `highs[k]`."""

    start: int
    stop: int
    lows: tuple[int, ...]
    highs: tuple[int, ...]

    def may_have(self, lows: Sequence[int], highs: Sequence[int]) -> bool:
        """Whether rows with operands between these bounds may be among its own."""
        if len(lows) != len(self.lows):
            return False
        return all(low <= b and a <= high for low, high, a, b in zip(lows, highs, self.lows, self.highs, strict=True))


@dataclass(slots=True)
class RowBlocks:
    """The blocks of a table, and which of them its memo does not have."""

    starts: list[int] = field(default_factory=list)  # of all blocks, ascending
    stops: list[int] = field(default_factory=list)
    leaves: list[range] = field(default_factory=list)  # the blocks of leaves, of one head each
    waiting: dict[Head, list[_RowBlock]] = field(default_factory=dict)  # not in the memo
    looks: dict[Head, int] = field(default_factory=dict)  # comparisons with waiting blocks, one for each single row
    latest: dict[Head, int] = field(default_factory=dict)  # the last row of a head that the memo may have
    scanned: int = 0  # rows that `latest` covers
    elements: int = 0  # rows that stand for elements of arrays, which are no operations

    def around(self, low: int, high: int) -> bool:
        """Whether one block has all rows from `low` to `high`."""
        at = bisect_right(self.starts, low) - 1
        return at >= 0 and high < self.stops[at]

    def heads_of(self, heads: Sequence[Head], rows: NDArray[np.int64]) -> tuple[set[Head], NDArray[np.int64]]:
        """Return the heads of those rows that are in blocks, and the other rows."""
        if not self.starts:
            return set(), rows
        at = np.searchsorted(np.array(self.starts), rows, side="right") - 1
        outside = (at < 0) | (rows >= np.array(self.stops)[at])
        return {heads[self.starts[k]] for k in np.unique(at[~outside]).tolist()}, rows[outside]

    def add(self, head: Head, start: int, stop: int, columns: Sequence[Column]) -> None:
        """Note a block of new operations."""
        self.add_range(start, stop)
        lows, highs = bounds(columns)
        self.waiting.setdefault(head, []).append(_RowBlock(start, stop, lows, highs))

    def add_range(self, start: int, stop: int) -> None:
        """Note rows of one head, which the memo need not have."""
        self.starts.append(start)
        self.stops.append(stop)

    def scan(self, heads: Sequence[Head]) -> None:
        """Note the heads of the rows that were added one by one."""
        self.latest.update(zip(rows_between(heads, self.scanned, len(heads)), count(self.scanned), strict=False))
        self.scanned = len(heads)

    def one_more(self, head: Head, newest: int, operands: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Return `overlapping` for one row; or all blocks, when comparisons took as long as entering 8 rows each."""
        waiting = self.waiting[head]
        looks = self.looks[head] = self.looks.get(head, 0) + 1
        if 8 * looks < sum([block.stop - block.start for block in waiting]):
            return self.overlapping(head, newest, operands, operands)
        self.looks[head] = 0
        return self._taken(head, waiting)

    def overlapping(
        self, head: Head, newest: int, lows: Sequence[int], highs: Sequence[int]
    ) -> Iterator[tuple[int, int]]:
        """Remove, and yield as ranges, the blocks that may have rows with operands up to `newest` at least.

        A row is newer than its operands, so older blocks are skipped.
        """
        waiting = self.waiting.get(head)
        if not waiting:
            return
        blocks = []
        for number, block in enumerate(reversed(waiting)):
            if block.stop <= newest:
                break
            if number == LOOKED_AT:  # too many to compare each time
                blocks = waiting.copy()
                break
            if block.may_have(lows, highs):
                blocks.append(block)
        yield from self._taken(head, blocks)

    def _taken(self, head: Head, blocks: Sequence[_RowBlock]) -> Iterator[tuple[int, int]]:
        """Remove blocks, and yield them as ranges."""
        if blocks:
            taken = {block.start for block in blocks}
            left = [block for block in self.waiting[head] if block.start not in taken]
            if left:
                self.waiting[head] = left
            else:
                del self.waiting[head]
        for block in blocks:
            self.latest[head] = max(self.latest.get(head, -1), block.stop - 1)
            yield block.start, block.stop


def rows_between(column: Sequence[Row], start: int, stop: int) -> Sequence[Row]:
    """Return the entries of rows from `start` to `stop`, of a column that may have no slices."""
    return column[start:stop] if isinstance(column, list) else [column[row] for row in range(start, stop)]


def bounds(columns: Sequence[Column]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the smallest and the largest operand of each column.

    >>> bounds([np.array([3, 1]), 2])
    ((1, 2), (3, 2))
    """
    lows = tuple(column if isinstance(column, int) else int(column.min()) for column in columns)
    highs = tuple(column if isinstance(column, int) else int(column.max()) for column in columns)
    return lows, highs


def rows_of(columns: Sequence[Column]) -> Iterator[tuple[int, ...]]:
    """Return the operands row by row.

    >>> list(rows_of([np.array([3, 1]), 2]))
    [(3, 2), (1, 2)]
    """
    parts = [repeat(column) if isinstance(column, int) else column.tolist() for column in columns]
    return zip(*parts, strict=False)


def sorted_pair(left: Column, right: Column) -> list[Column]:
    """Return two columns with the smaller operand of each row first; a column that is one number stays one.

    >>> sorted_pair(np.array([3, 1]), 2), sorted_pair(np.array([3, 4]), 2)
    ([array([2, 1]), array([3, 2])], [2, array([3, 4])])
    """
    if (isinstance(left, int) or isinstance(right, int)) and not (np.less(right, left)).any():
        return [left, right]
    if (isinstance(left, int) or isinstance(right, int)) and np.less(right, left).all():
        return [right, left]
    return [np.minimum(left, right), np.maximum(left, right)]


def first_of_each(columns: Sequence[Column]) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """Return the first place of each different row, and for each row its number among these; None for all different.

    >>> first_of_each([np.array([5, 7, 5]), 2])
    (array([0, 1]), array([0, 1, 0]))
    >>> first_of_each([np.array([5, 7, 8]), 2]) is None
    True
    """
    varied = [column for column in columns if not isinstance(column, int)]
    if any((column[1:] > column[:-1]).all() for column in varied):
        return None
    key = varied[0]
    for column in varied[1:]:
        key = np.unique(key, return_inverse=True)[1] * (int(column.max()) + 1) + column
    _, firsts, numbers = np.unique(key, return_index=True, return_inverse=True)
    if len(firsts) == len(key):
        return None
    order = np.argsort(firsts)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return firsts[order], rank[numbers]
