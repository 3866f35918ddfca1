"""Encode the columns of a sweep: one column in each lane of wide registers, in a loop over blocks of columns.

Values that do not depend on the seed are in the workspace. Unit vectors are read from a row of zeros with a 1 in the
middle, each from another place on. The last block overlaps the one before, so that every block is whole.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.emission.schedule import depth_first
from codegen.encoding.encoder import CONDITIONS, Encoder
from codegen.encoding.registers import Registers
from codegen.encoding.written_values import ONE, RESIDUALS, SEEDS, CodeBody, spread_form, stored_places
from codegen.encoding.x86_instructions import (
    LONG_REGISTERS,
    MASKS,
    NEXT,
    R14,
    RBX,
    in_registers,
    pointer_before_displacement,
)
from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row, operands_of
from codegen.ir.program import Program
from codegen.lowering.halves import Split, columns_at_once
from codegen.lowering.lower import Lowered
from codegen.processor import features

FEWEST = 4  # columns that fill a register
NUMBERS = 64 // 8  # of the widest register
COUNTER = bytes.fromhex("4531e4")  # r12 counts bytes of columns: 0
LAST = b"\xb8"  # eax is the first column of the last block, in bytes
NOT_BEYOND = bytes.fromhex("4939c4 4c0f47e0")  # r12 is at most rax
MOVED = bytes.fromhex("4d01e6")  # r14, which points to the 1 among zeros, is moved by r12
ADVANCE = bytes.fromhex("4939c4 4d8d6424")  # compare r12 with rax, then add a block to r12
LOOP = bytes.fromhex("0f82")  # jump back if r12 was below rax
BESIDE = {0: bytes.fromhex("4c01e0"), 1: bytes.fromhex("4c01e1")}  # rax or rcx is moved by r12


def lanes_of_columns(program: Program) -> int:
    """Return how many columns of a sweep run side by side in encoded code: fewer than 4 for none."""
    return min(columns_at_once(program), NUMBERS if "avx512dq" in features() else FEWEST)


def in_lanes(columns: Lowered, residuals: int, size: int, width: int) -> Lowered:
    """Return the operations of every column of a seed with `size` entries, for `width` columns side by side.

    The inputs are the residuals, then 2 `size` - 1 numbers: zeros with a one in the middle.

    >>> rows = [("input", 0), ("input", 1), ("mul", 0, 1)]
    >>> in_lanes(Lowered(rows, [(0, 0, 2)], 0, 0, 0), 1, 2, 2).rows
    [('input', 0), ('spread', (2,), 0), ('beside', (2, 2)), ('wide', (2, 'mul'), 1, 2)]
    """
    rows: list[Row] = []
    place: dict[int, int] = {}
    long = width == NUMBERS

    def put(*row: object) -> int:
        rows.append(row)
        return len(rows) - 1

    def leaf(row: Row) -> int:
        if row[0] == "const":
            return put("constants", (row[1],) * width)
        if row[0] != "input":
            return put(*row) if long else put("constants", ((b"\xff" if row[0] == "true" else b"\0") * 8,) * width)
        if row[1] < residuals:
            return put("uniform", (width, row[1])) if long else put("spread", (width,), put("input", row[1]))
        entry = row[1] - residuals
        return put("beside", (width, residuals + size - 1 - entry))  # which is 1 where this is the first column

    live = columns.live()
    for index in sorted(live, key=lambda index: columns.rows[index][0] not in LEAVES):  # constants may stand behind
        row = columns.rows[index]
        if row[0] in LEAVES:
            place[index] = leaf(row)
        else:
            shape = row[: FIRST_OPERAND.get(row[0], 1)]
            place[index] = put("wide", (width, *shape), *[place[operand] for operand in operands_of(row)])
    stores = [(array, position, place[row]) for array, position, row in columns.stores]
    return replace(columns, rows=rows, stores=stores)


class ColumnEncoder(Encoder):
    """Writes the operations of a block of columns behind the existing code."""

    def __init__(self, body: CodeBody, lowered: Lowered, program: Program, residuals: int) -> None:
        size = program.inputs[-1].size
        swept = [k for k, output in enumerate(program.outputs) if output.swept]
        inputs = [(RESIDUALS, k) for k in range(residuals)]
        inputs += [(SEEDS, k) for k in range(1 - size, size)]
        super().__init__(lowered.rows, depth_first(lowered), inputs, stored_places(lowered.stores, swept), {}, {})
        self.body = body

    def point(self, register: int, array: int) -> None:
        """Let a pointer point to the first column of the block in a result."""
        super().point(register, array)
        self.body.code += BESIDE[register]


class LongColumns(ColumnEncoder):
    """Writes columns in the 32 registers of 512 bits; truth values are in mask registers."""

    def __init__(self, body: CodeBody, lowered: Lowered, program: Program, residuals: int) -> None:
        super().__init__(body, lowered, program, residuals)
        rows, uses, workspace = self.rows, self.registers.uses, self.workspace
        self.registers = Registers(rows, uses, workspace, self.read, self.save, LONG_REGISTERS)
        self.masks = Registers(rows, uses, workspace, self.read_mask, self.save_mask, MASKS)

    def read_mask(self, mask: int, row: int) -> None:
        kind, number = self.rows[row][0], mask + 1
        if kind in LEAVES:
            self.body.code += in_registers("equal_mask" if kind == "true" else "xor_mask", number, number, number)
        else:
            self.memory("load_mask", number, 0, RBX, 8 * self.workspace.places[row])

    def save_mask(self, mask: int, row: int) -> None:
        self.memory("store_mask", mask + 1, 0, RBX, 8 * self.workspace.places[row])

    def finished(self) -> None:
        super().finished()
        for operand in self.dead:
            self.masks.release(operand)

    def run(self) -> CodeBody:
        body = super().run()
        del self.masks  # they refer to this encoder, like its registers
        return body

    def define_mask(self, number: int, index: int) -> None:
        """Note truth values that have been computed, in the mask register of a number."""
        self.masks.hold(number - 1, index)
        self.workspace.forget_all(self.dead)

    def free_mask(self) -> int:
        return self.masks.take() + 1

    def of_masks(self, code: str, index: int, row: Row) -> None:
        """Write an operation on one or two truth values."""
        numbers: list[int] = []
        for operand in self.operands(row):
            numbers.append(self.masks.wanted(operand, [number - 1 for number in numbers]) + 1)
        self.finished()
        result = self.free_mask()
        first, second = [0, *numbers][-2:]
        self.body.code += in_registers(code, result, first, second)
        self.define_mask(result, index)

    def compare(self, index: int, row: Row, lanes: str) -> None:
        self.define_mask(self.of_two("compare8", row, self.free_mask, bytes([CONDITIONS[row[1]]])), index)

    def logic(self, index: int, row: Row, lanes: str) -> None:
        self.of_masks(f"{row[1]}_mask", index, row)

    def negation(self, index: int, row: Row, lanes: str) -> None:
        self.of_masks("not_mask", index, row)

    def number(self, index: int, row: Row, lanes: str) -> None:
        """Convert truth values to 1 and 0."""
        (operand,) = self.operands(row)
        source = self.masks.wanted(operand)
        self.finished()
        result = self.registers.take()
        self.body.code += in_registers("from_mask8", result, 0, source + 1)
        self.relative(spread_form("and8"), result, result, ONE)
        self.define(result, index)

    def select(self, index: int, row: Row, lanes: str) -> None:
        test, *choices = self.operands(row)
        first, second = self.all_wanted(choices)
        mask = self.masks.wanted(test)
        self.finished()
        result = self.registers.take()
        self.body.code += in_registers("blend8", result, second, first, mask + 1)
        self.define(result, index)


def write_columns(body: CodeBody, program: Program, halves: Split) -> None:
    """Write the loop over blocks of columns."""
    size, width = program.inputs[-1].size, lanes_of_columns(program)
    lowered = in_lanes(halves.columns, halves.residuals, size, width)
    workspace, code = body.workspace, body.code
    code += COUNTER
    begin = len(code)
    last = LAST + (8 * (size - width)).to_bytes(4, "little")
    code += last + NOT_BEYOND + pointer_before_displacement(R14, NEXT, 4, address=True)
    seeds = len(code)  # the displacement of the unit vectors, which is known in the end
    code += bytes(4) + MOVED
    block = (LongColumns if width == NUMBERS else ColumnEncoder)(body, lowered, program, halves.residuals)
    block.workspace.size = halves.residuals
    block.run()
    code += last + ADVANCE + (8 * width).to_bytes(1, "little") + LOOP
    code += (begin - len(code) - 4).to_bytes(4, "little", signed=True)
    code[seeds : seeds + 4] = (body.unit_vectors(size) - seeds - 4).to_bytes(4, "little", signed=True)
    body.workspace = max(workspace, body.workspace)
