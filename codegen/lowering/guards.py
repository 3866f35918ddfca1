"""Guards: a column that a value does not depend on gets exactly 0 from it, also where a coefficient is infinite.

Straight-line code leaves out products with a structural zero. In a sweep all columns share one product, and 0 * inf is
NaN: so a product of a coefficient that may be infinite, with a tangent that not every column reaches, is selected.
"""

from __future__ import annotations

import math
import struct
from dataclasses import replace

from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row, operands_of
from codegen.lowering.lower import Lowered

KEPT = {"fma": (3, False), "fnma": (3, False), "fms": (3, True), "fnms": (3, True)}  # summand, and whether negated


def guard(lowered: Lowered, start: int, columns: int) -> Lowered:
    """Return a seeded program with its products guarded; the seed is at the input positions from `start` on."""
    writer = _Writer(lowered, start, columns)
    live = lowered.live()
    for index in live:  # leaves first: constants may stand behind their users
        if lowered.rows[index][0] in LEAVES:
            writer.leaf(index)
    for index in live:
        if lowered.rows[index][0] not in LEAVES:
            writer.row(index)
    stores = [(array, position, writer.place[row]) for array, position, row in lowered.stores]
    return replace(lowered, rows=writer.rows, stores=stores)


class _Writer:
    """Writes the rows anew; `reached[row]` has a bit for every column that the row's value may depend on."""

    def __init__(self, lowered: Lowered, start: int, columns: int) -> None:
        self.old, self.start, self.full = lowered.rows, start, (1 << columns) - 1
        self.rows: list[Row] = []
        self.reached: list[int] = []
        self.place: dict[int, int] = {}
        self.seeds: dict[int, int] = {}
        self.sums: dict[int, int] = {}
        self.tests: dict[int, int] = {}

    def put(self, row: Row, reached: int) -> int:
        self.rows.append(row)
        self.reached.append(reached)
        return len(self.rows) - 1

    def leaf(self, index: int) -> None:
        row = self.old[index]
        column = row[1] - self.start if row[0] == "input" else -1
        self.place[index] = self.put(row, 1 << column if column >= 0 else 0)
        if column >= 0:
            self.seeds[column] = self.place[index]

    def row(self, index: int) -> None:
        old = self.old[index]
        first = FIRST_OPERAND.get(old[0], 1)
        row = (*old[:first], *(self.place[operand] for operand in old[first:]))
        reached = 0
        for operand in operands_of(row):
            reached |= self.reached[operand]
        self.place[index] = place = self.put(row, reached)
        mask = self._mask(row)
        if mask is not None:
            self.place[index] = self.put(("select", self._test(mask), place, self._otherwise(row)), reached)

    def _mask(self, row: Row) -> int | None:
        """Columns that a product is for, or None where no guard is needed."""
        if row[0] not in ("mul", "div", *KEPT):
            return None
        first, second = row[1:3]
        mask = self.reached[first] | self.reached[second]
        if mask in (0, self.full):
            return None
        coefficient = second if self.reached[first] else first
        return None if self._is_finite(coefficient, row[0] == "div") else mask

    def _is_finite(self, index: int, divisor: bool) -> bool:
        """Whether a coefficient is a constant that leaves a 0 as it is."""
        if self.rows[index][0] != "const":
            return False
        value: float = struct.unpack(">d", self.rows[index][1])[0]
        return value != 0 and not math.isnan(value) if divisor else math.isfinite(value)

    def _otherwise(self, row: Row) -> int:
        """What stands in the other columns: nothing, or the summand of a fused product."""
        if row[0] not in KEPT:
            return self.put(("const", bytes(8)), 0)
        part, negated = KEPT[row[0]]
        return self.put(("neg", row[part]), self.reached[row[part]]) if negated else row[part]

    def _test(self, mask: int) -> int:
        """A truth value that holds in the columns of a mask, where the sum of their unit vectors is not 0."""
        if mask not in self.tests:
            zero = self.put(("const", bytes(8)), 0)
            self.tests[mask] = self.put(("compare", "une", self._sum(mask), zero), mask)
        return self.tests[mask]

    def _sum(self, mask: int) -> int:
        """Sum of the unit vectors of a mask; masks that begin alike share the beginning of their sums."""
        done, total = 0, -1
        rest = mask
        while rest:
            bit = rest & -rest
            rest ^= bit
            done |= bit
            if total < 0:
                total = self.seeds[bit.bit_length() - 1]
            elif done in self.sums:
                total = self.sums[done]
            else:
                total = self.sums[done] = self.put(("add", total, self.seeds[bit.bit_length() - 1]), done)
        return total
