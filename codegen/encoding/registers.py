"""Allocate registers while operations are written in order, and spill values.

Every value has a place in memory too: constants among the code, inputs in their arrays, and spilled results in a
workspace. The value whose next use is furthest away is spilled. A place of the workspace is free again after the last
use of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from codegen.encoding.x86_instructions import REGISTERS
from codegen.ir.machine_rows import FIRST_OPERAND, GROUPS, LEAVES, Row

NEVER = 1 << 60
WIDEST = 4  # numbers of a group that is in one register


def uses_in_order(rows: Sequence[Row], order: Sequence[int]) -> dict[int, list[int]]:
    """Return the uses of each row, as numbers of operations, the next one last.

    >>> uses_in_order([("input", 0), ("mul", 0, 0), ("add", 0, 1)], [1, 2])
    {1: [1], 0: [1, 0, 0]}
    """
    uses: dict[int, list[int]] = {}
    first = FIRST_OPERAND
    for time in range(len(order) - 1, -1, -1):
        row = rows[order[time]]
        if row[0] in LEAVES:
            continue
        for operand in row[: first.get(row[0], 1) - 1 : -1]:
            if operand in uses:
                uses[operand].append(time)
            else:
                uses[operand] = [time]
    return uses


def lanes_of_rows(rows: Sequence[Row]) -> dict[int, int]:
    """Return the lanes of each row that has several.

    >>> lanes_of_rows([("input", 0), ("spread", (4,), 0), ("half", 1), ("constants", (bytes(8), bytes(8)))])
    {1: 4, 2: 2, 3: 2}
    """
    lanes: dict[int, int] = {}
    for index, row in enumerate(rows):
        if row[0] in GROUPS or row[0] in ("uniform", "beside"):  # one input in all lanes, or inputs side by side
            lanes[index] = row[1][0]
        elif row[0] == "constants":
            lanes[index] = len(row[1])
        elif row[0] == "half":
            lanes[index] = WIDEST // 2
    return lanes


class Workspace:
    """The places of spilled values; `lanes` of a row are its numbers, if several."""

    def __init__(self, lanes: Mapping[int, int]) -> None:
        self.lanes = lanes
        self.places: dict[int, int] = {}  # of rows
        self.unused: dict[int, list[int]] = {1: [], 2: [], 4: [], 8: []}  # places, by lanes
        self.size = 0

    def add(self, row: int) -> None:
        lanes = self.lanes.get(row, 1)
        unused = self.unused[lanes]
        if not unused:
            gap = -self.size % lanes  # wide values are aligned to their width
            self.unused[1] += range(self.size, self.size + gap)
            unused.append(self.size + gap)
            self.size += gap + lanes
        self.places[row] = unused.pop()

    def forget_all(self, rows: Sequence[int]) -> None:
        """Free the places of rows that have been read for the last time."""
        for row in rows:
            place = self.places.pop(row, None)
            if place is not None:
                self.unused[self.lanes.get(row, 1)].append(place)


class Registers:
    """`count` registers of one kind; `read(register, row)` and `save(register, row)` write the moves."""

    def __init__(
        self, rows: Sequence[Row], uses: dict[int, list[int]], workspace: Workspace,
        read: Callable[[int, int], None], save: Callable[[int, int], None], count: int = REGISTERS,
    ) -> None:  # fmt: skip
        self.rows, self.uses, self.workspace, self.read, self.save = rows, uses, workspace, read, save
        self.of: dict[int, int] = {}  # register of a row
        self.count = count
        self.row_in = [-1] * count
        self.free = list(range(count - 1, -1, -1))

    def take(self, keep: Sequence[int] = ()) -> int:
        """Return a register for a new value, none of those to be kept."""
        if self.free:
            return self.free.pop()
        uses = self.uses.get
        needed = [left[-1] if (left := uses(row)) else NEVER for row in self.row_in]
        for register in keep:
            needed[register] = -1
        register = needed.index(max(needed))
        row = self.row_in[register]
        self.keep_in_memory(row)
        del self.of[row]
        return register

    def hold(self, register: int, row: int) -> None:
        self.of[row] = register
        self.row_in[register] = row

    def wanted(self, row: int, keep: Sequence[int] = ()) -> int:
        """Return the register of a row; load it if it is in none."""
        register = self.of.get(row)
        if register is None:
            register = self.take(keep)
            self.read(register, row)
            self.hold(register, row)
        return register

    def leave(self, row: int) -> int:
        """Return the register of a row that has been read for the last time; the caller owns it."""
        return self.of.pop(row)

    def release(self, row: int) -> None:
        """Free the register of a row that has been read for the last time."""
        register = self.of.pop(row, None)
        if register is not None:
            self.free.append(register)

    def keep_in_memory(self, row: int) -> None:
        """Save a value in the workspace, unless memory has it."""
        if row in self.workspace.places or self.rows[row][0] in LEAVES:
            return
        self.workspace.add(row)
        self.save(self.of[row], row)

    def empty(self) -> None:
        """Save values that will be read, and free all registers."""
        for row in self.of:
            if self.uses[row]:
                self.keep_in_memory(row)
        self.of.clear()
        self.free = list(range(self.count - 1, -1, -1))
