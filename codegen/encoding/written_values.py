"""Track where each value is (register or frame) while machine code grows.

Constants stand before the code, inputs and results in their arrays, spilled values in the workspace.

The time of long code is proportional to its length, because it comes from a farther cache. A displacement of one byte
instead of four halves an instruction; so pointers move along with reads and stores, and one stays among the constants.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import field

from codegen.encoding.registers import WIDEST, Registers, Workspace, lanes_of_rows, uses_in_order
from codegen.encoding.x86_instructions import (
    CALL,
    NEXT,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBX,
    RCX,
    RDX,
    SPREAD,
    ZERO_UPPER,
    before_displacement,
    displaced,
    pointer_before_displacement,
    width_of,
)
from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row
from codegen.records import dataclass

SIGN, MAGNITUDE, ONES, ONE = -16, -32, -48, -64  # places of masks of 16 bytes before the code
MASKS = {SIGN: b"\0" * 7 + b"\x80" + b"\0" * 8, MAGNITUDE: b"\xff" * 7 + b"\x7f" + b"\xff" * 8, ONES: b"\xff" * 16,
         ONE: struct.pack("<d", 1.0) + b"\0" * 8}  # fmt: skip
ALIGNED = 8  # entries of 8 bytes: the code begins at a line of the processor's cache
SUFFIXES = {1: "", 2: "2", 4: "4", 8: "8"}  # of instructions, by lanes
MIDDLE = -128  # place of the pointer among the constants: one byte reaches equally far in both directions
NEAR = 256  # bytes that displacements of one byte reach
AHEAD = 96  # bytes that a pointer is ahead of the last access
FAR = -1 << 60
Pair = tuple[int, int]  # array, flat position
RESIDUALS, SEEDS = -1, -2  # arrays of a sweep that are no arguments,
BASES = {RESIDUALS: RBX, SEEDS: R14}  # and where they are: in the workspace, or around a one among zeros


@dataclass(slots=True)
class CodeBody:
    """Machine code of the operations, and the `entries` before it, which grow downwards from its beginning."""

    code: bytearray = field(default_factory=bytearray)
    entries: list[bytes] = field(default_factory=list)
    places: dict[bytes, int] = field(default_factory=dict)  # of constants
    called: dict[str, int] = field(default_factory=dict)  # places of the addresses of functions
    workspace: int = 0
    lanes: bool = False  # whether some of its values are wide
    points: bool = False  # whether rdx stands among the constants: no call overwrites it

    def constant(self, value: bytes) -> int:
        """Return the place of 8 bytes, or of several lanes of 8 bytes, relative to the beginning of the code."""
        place = self.places.get(value)
        if place is None:
            if len(value) > 8:
                self.entries += [bytes(8)] * (-len(self.entries) % (len(value) // 8))
            for start in range(len(value) - 8, -8, -8):
                place = self._entry(value[start : start + 8])
            assert place is not None
            self.places[value] = place
        return place

    def address(self, function: str) -> int:
        """Return the place for the address of a function."""
        place = self.called.get(function)
        if place is None:
            place = self.called[function] = self._entry(bytes(8))
        return place

    def unit_vectors(self, size: int) -> int:
        """Return the place of a 1 between zeros, the last constants: every unit vector starts at some place of it."""
        zeros = [bytes(8)] * (size - 1)
        self.entries += [*zeros, struct.pack("<d", 1.0), *zeros]
        return -8 * (len(self.entries) - size + 1)

    def call(self, function: str) -> None:
        place = self.address(function)
        self.code += CALL + (place - len(self.code) - 6).to_bytes(4, "little", signed=True)

    def _entry(self, value: bytes) -> int:
        self.entries.append(value)
        return -8 * len(self.entries)


def stored_places(stores: Iterable[tuple[int, int, int]], arrays: Sequence[int]) -> dict[int, list[Pair]]:
    """Return where each row is stored, in arrays with these numbers.

    >>> stored_places([(0, 4, 7), (1, 2, 7)], [3, RESIDUALS])
    {7: [(3, 4), (-1, 2)]}
    """
    places: dict[int, list[Pair]] = {}
    for array, position, row in stores:
        places.setdefault(row, []).append((arrays[array], position))
    return places


def spread_form(code: str) -> str:
    """Return the form of an instruction whose last operand is one number in memory for all lanes."""
    return "spread8" if code == "load8" else code + SPREAD


class KernelValues:
    """The code of one kernel, its registers, and its values."""

    def __init__(
        self, rows: Sequence[Row], order: Sequence[int], inputs: Sequence[Pair], stores: dict[int, list[Pair]],
        functions: dict[tuple[str, int], str], both: dict[int, int],
    ) -> None:  # fmt: skip
        self.rows, self.order, self.inputs, self.stores, self.functions = rows, order, inputs, stores, functions
        self.body = CodeBody()
        for mask in sorted(MASKS, reverse=True):
            self.body.entries += [MASKS[mask][8:], MASKS[mask][:8]]
        self.both = both  # sine and cosine of one angle, which are computed at once
        self.early: set[int] = set()  # values that were computed with the other one
        self.dead: list[int] = []  # operands whose last use is the current operation
        calls = bool(functions)  # without calls, all registers for pointers are free
        self.input_pointer, self.output_pointer = (R14, R15) if calls else (RAX, RCX)
        self.current = {self.input_pointer: -1, self.output_pointer: -1}  # the array that each points into
        self.moved = {self.input_pointer: 0, self.output_pointer: 0}  # bytes from its beginning
        self.missed = {self.input_pointer: FAR, self.output_pointer: FAR}  # the last place, if it was out of reach
        self.body.points = not calls
        self.lanes = lanes_of_rows(rows)
        self.wide = False  # whether the upper half of a register may be in use
        self.workspace = Workspace(self.lanes)
        self.registers = Registers(rows, uses_in_order(rows, order), self.workspace, self.read, self.save)

    def read(self, register: int, row: int) -> None:
        self.at("load" + SUFFIXES[self.lanes.get(row, 1)], register, 0, row)

    def save(self, register: int, row: int) -> None:
        code = "store" + SUFFIXES[self.lanes.get(row, 1)]
        self.memory(code, register, 0, RBX, 8 * self.workspace.places[row])

    def at(self, code: str, first: int, middle: int, row: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand is a row in memory."""
        operand = self.rows[row]
        kind = operand[0]
        if kind == "const":
            self.relative(code, first, middle, self.body.constant(operand[1][::-1]), immediate)
        elif kind == "constants" and len(operand[1]) <= WIDEST:
            packed = b"".join(number[::-1] for number in operand[1])
            self.relative(code, first, middle, self.body.constant(packed), immediate)
        elif kind == "constants":
            self.relative(spread_form(code), first, middle, self.body.constant(operand[1][0][::-1]), immediate)
        elif kind in ("input", "beside", "uniform"):
            place = self.inputs[operand[1] if kind == "input" else operand[1][1]]
            form = spread_form(code) if kind == "uniform" else code
            self.element(form, first, middle, self.input_pointer, place, immediate)
        elif kind in LEAVES:
            truth = self.body.constant((b"\xff" if kind == "true" else b"\0") * 8)
            self.relative(code, first, middle, truth, immediate)
        else:
            self.memory(code, first, middle, RBX, 8 * self.workspace.places[row], immediate)

    def element(self, code: str, first: int, middle: int, register: int, place: Pair, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand is an element of an array."""
        array, at = place[0], 8 * place[1]
        if array in BASES:
            self.memory(code, first, middle, BASES[array], at, immediate)
            return
        if self.current[register] != array:
            self.point(register, array)
            self.current[register], self.moved[register] = array, 0
        away = at - self.moved[register]
        if -NEAR // 2 <= away < NEAR // 2:
            self.missed[register] = FAR
        else:
            away = self._follow(register, at)
        self.memory(code, first, middle, register, away, immediate)

    def point(self, register: int, array: int) -> None:
        """Let a pointer point to the beginning of an array."""
        table = R12 if register == self.input_pointer else R13
        width = width_of(8 * array, table)
        head = pointer_before_displacement(register, table, width)
        self.body.code += head + (8 * array).to_bytes(width, "little")

    def _follow(self, register: int, at: int) -> int:
        """Move a pointer if two places out of reach are near each other; return the distance of the place from it."""
        missed = self.missed[register]
        self.missed[register] = at
        if abs(at - missed) < NEAR:
            beyond = AHEAD if at > self.moved[register] else -AHEAD  # more will come in this direction
            moved = at + beyond - self.moved[register]
            width = width_of(moved, register)
            self.body.code += pointer_before_displacement(register, register, width, address=True)
            self.body.code += moved.to_bytes(width, "little", signed=True)
            self.moved[register], self.missed[register] = at + beyond, FAR
        return at - self.moved[register]

    def memory(self, code: str, first: int, middle: int, base: int, displacement: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand stands at a displacement from a pointer."""
        written = displaced(code, displacement, base)
        self.body.code += before_displacement(code, first, middle, base, len(written)) + written + immediate

    def relative(self, code: str, first: int, middle: int, place: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand stands at a place before the code."""
        if self.body.points and place >= -NEAR:
            self.memory(code, first, middle, RDX, place - MIDDLE, immediate)
            return
        head, written = before_displacement(code, first, middle, NEXT, 4), self.body.code
        displacement = place - len(written) - len(head) - 4 - len(immediate)
        written += head + displacement.to_bytes(4, "little", signed=True) + immediate

    def saved(self, code: str, register: int, row: int, lane: int) -> None:
        """Load from a group in the workspace, from a lane on."""
        self.memory(code, register, 0, RBX, 8 * (self.workspace.places[row] + lane))

    def neighbours(self, operands: Sequence[int]) -> bool:
        """Whether rows are inputs side by side in memory, and in no register."""
        rows, of = self.rows, self.registers.of
        if any(rows[operand][0] != "input" or operand in of for operand in operands):
            return False
        places = [self.inputs[rows[operand][1]] for operand in operands]
        array, first = places[0]
        return places == [(array, first + k) for k in range(len(places))]

    def output(self, code: str, register: int, place: Pair) -> None:
        self.element(code, register, 0, self.output_pointer, place)

    def store(self, register: int, row: int) -> None:
        """Store a value in the results, and free its register where nothing else reads it."""
        registers, code = self.registers, "store" + SUFFIXES[self.lanes.get(row, 1)]
        for place in self.stores.get(row, ()):
            self.output(code, register, place)
        if not registers.uses.get(row):
            registers.release(row)

    def operands(self, row: Row) -> tuple[int, ...]:
        """Return the operands of a row, and count this use; for some it is the last one."""
        operands, uses = row[FIRST_OPERAND.get(row[0], 1) :], self.registers.uses
        self.dead = dead = []
        for operand in operands:
            left = uses[operand]
            left.pop()
            if not left:
                dead.append(operand)
        return operands

    def brought(self, operands: tuple[int, ...]) -> tuple[int, ...]:
        """Load spilled operands that will be read again, if registers are free; return all operands."""
        registers = self.registers
        for operand in operands:
            saved = operand in self.workspace.places and operand not in registers.of
            if saved and registers.uses[operand] and len(registers.free) > 1:
                registers.wanted(operand)
        return operands

    def finished(self) -> None:
        """Free the registers of those operands that are not read again."""
        for operand in self.dead:
            self.registers.release(operand)

    def define(self, register: int, index: int) -> None:
        """Note the result of an operation, whose operands have been read."""
        registers = self.registers
        registers.of[index] = register
        registers.row_in[register] = index
        if self.dead:
            self.workspace.forget_all(self.dead)
        if index in self.stores:
            self.store(register, index)

    def only_low(self) -> None:
        """Clear the upper halves of registers, which would slow down the following code."""
        if self.wide:
            self.body.code += ZERO_UPPER
            self.wide = False
