"""Marks: places of buffers that something is known of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.region import Buffer, Gather, Result
from codegen.ir.tables import Indexed, Places, Table

Use: TypeAlias = Gather | Result


class Marks:
    """Marked places. Where the places of a table move on with the rounds of nests, it meets and marks whole buffers.

    >>> from codegen.ir.tables import Affine
    >>> marks = Marks([Buffer("input", 6)])
    >>> marks.add(Gather(0, Affine(1, 2, 2)))
    >>> [marks.meet(Gather(0, Affine(place, 0, 1))) for place in range(5)]
    [False, True, False, True, False]
    """

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        self.buffers = buffers
        self.of: dict[int, NDArray[np.bool_]] = {}
        self.changes = 0

    def add_all(self, buffer: int) -> None:
        """Mark all places of a buffer."""
        self.of[buffer] = np.ones(self.buffers[buffer].size, dtype=bool)

    def add(self, use: Use, within: Marks | None = None) -> None:
        """Mark what a table reads or writes, as far as it is marked in another collection."""
        if within is not None and use.buffer not in within.of:
            return
        index = _index(use.table)
        mask = self.of.setdefault(use.buffer, np.zeros(self.buffers[use.buffer].size, dtype=bool))
        found = mask[index] if within is None else mask[index] | ~within.of[use.buffer][index]
        if not found.all():
            mask[index] = True if within is None else mask[index] | within.of[use.buffer][index]
            self.changes += 1

    def meet(self, use: Use) -> bool:
        """Whether some place that a table reads or writes is marked."""
        mask = self.of.get(use.buffer)
        return mask is not None and bool(mask[_index(use.table)].any())


def _index(table: Table) -> slice | Places:
    """Return the places of a table as an index, all where they move on."""
    if any(table.shifts):
        return slice(None)
    if isinstance(table, Indexed):
        return table.index
    low, high = table.bounds
    return slice(low, high + 1, abs(table.step) or 1)
