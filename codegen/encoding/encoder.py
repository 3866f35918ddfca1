"""Encoder: operations in order become x86-64 machine code, one instruction after the other.

The code stands behind its constants, which it reads relative to itself; so it has no address of this process in it, and
addresses of functions are put among the constants when it is mapped. Truth values are masks of ones or zeros. The frame
pointer is kept as debuggers and profilers expect it.

One function does all: `int kernel(double **inputs, double **outputs)`. Its prologue stands behind the body, because
only then is known how large the workspace is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import field

from codegen.encoding.registers import Registers, uses_in_order
from codegen.encoding.x86_instructions import (
    CALL,
    COMMUTATIVE,
    NEXT,
    R12,
    R13,
    R14,
    R15,
    RAX,
    RBX,
    RCX,
    before_displacement,
    in_registers,
    pointer_before_displacement,
    width_of,
)
from codegen.ir.machine_rows import FIRST_OPERAND, LEAVES, Row
from codegen.limits import EVERY, check
from codegen.records import dataclass

SIGN, MAGNITUDE, ONES, ONE = -16, -32, -48, -64  # places of masks of 16 bytes before the code
MASKS = {SIGN: b"\0" * 7 + b"\x80" + b"\0" * 8, MAGNITUDE: b"\xff" * 7 + b"\x7f" + b"\xff" * 8, ONES: b"\xff" * 16,
         ONE: struct.pack("<d", 1.0) + b"\0" * 8}  # fmt: skip
CONDITIONS = {
    "oeq": 0x00, "olt": 0x11, "ole": 0x12, "uno": 0x03, "une": 0x04, "uge": 0x15, "ugt": 0x16, "ord": 0x07,
    "ueq": 0x08, "ult": 0x19, "ule": 0x1A, "one": 0x0C, "oge": 0x1D, "ogt": 0x1E,
}  # fmt: skip  # none of them signals
ROUNDINGS = {"llvm.floor.f64": 9, "llvm.ceil.f64": 10, "llvm.trunc.f64": 11, "llvm.rint.f64": 4}
ALIGNED = 8  # entries of 8 bytes: the code begins at a line of the processor's cache
Pair = tuple[int, int]  # output array, flat position


@dataclass(slots=True)
class Body:
    """Machine code of the operations, and what stands before it: `entries` grow downwards from its beginning."""

    code: bytearray = field(default_factory=bytearray)
    entries: list[bytes] = field(default_factory=list)
    places: dict[bytes, int] = field(default_factory=dict)  # of constants
    called: dict[str, int] = field(default_factory=dict)  # places of the addresses of functions
    workspace: int = 0

    def constant(self, value: bytes) -> int:
        """Return the place of 8 bytes, relative to the beginning of the code."""
        place = self.places.get(value)
        if place is None:
            place = self.places[value] = self._entry(value)
        return place

    def address(self, function: str) -> int:
        """Return the place where the address of a function will stand."""
        place = self.called.get(function)
        if place is None:
            place = self.called[function] = self._entry(bytes(8))
        return place

    def call(self, function: str) -> None:
        """Call a function."""
        place = self.address(function)
        self.code += CALL + (place - len(self.code) - 6).to_bytes(4, "little", signed=True)

    def _entry(self, value: bytes) -> int:
        self.entries.append(value)
        return -8 * len(self.entries)


class Encoder:
    """Writes the operations of one kernel."""

    def __init__(
        self, rows: Sequence[Row], order: Sequence[int], inputs: Sequence[Pair], stores: dict[int, list[Pair]],
        functions: dict[str, str],
    ) -> None:  # fmt: skip
        self.rows, self.order, self.inputs, self.stores, self.functions = rows, order, inputs, stores, functions
        self.body = Body()
        for mask in sorted(MASKS, reverse=True):
            self.body.entries += [MASKS[mask][8:], MASKS[mask][:8]]
        calls = bool(functions)  # without calls, all registers for pointers are ours
        self.input_pointer, self.output_pointer = (R14, R15) if calls else (RAX, RCX)
        self.current = {self.input_pointer: -1, self.output_pointer: -1}  # the array that each points to
        self.registers = Registers(rows, uses_in_order(rows, order), self.read, self.save)

    def run(self) -> Body:
        """Write all operations."""
        rows, write = self.rows, self._writers()
        for time, index in enumerate(self.order):
            if not time % EVERY:
                check("encoding machine operations")
            row = rows[index]
            write[row[0]](index, row)
        self.body.workspace = self.registers.size
        del self.registers  # which write by this encoder: nothing waits for the collector of cycles
        return self.body

    def _writers(self) -> dict[str, Callable[[int, Row], None]]:
        return {
            **dict.fromkeys(("add", "sub", "mul", "div"), self.binary),
            **dict.fromkeys(("fma", "fms", "fnma", "fnms"), self.fused),
            **dict.fromkeys(LEAVES, lambda index, row: self.store(self.registers.wanted(index), index)),
            "neg": lambda index, row: self.masked(index, row, "xor", SIGN),
            "abs": lambda index, row: self.masked(index, row, "and", MAGNITUDE),
            "not": lambda index, row: self.masked(index, row, "xor", ONES),
            "number": lambda index, row: self.masked(index, row, "and", ONE),
            "sqrt": lambda index, row: self.unary(index, row, b""),
            "compare": self.compare,
            "logic": self.logic,
            "select": self.select,
            "call": self.call,
        }

    # Values in memory

    def read(self, register: int, row: int) -> None:
        """Load a value."""
        self.at("load", register, 0, row)

    def save(self, register: int, place: int) -> None:
        """Save a value in the workspace."""
        self.memory("store", register, 0, RBX, 8 * place)

    def at(self, code: str, first: int, middle: int, row: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand is a row in memory."""
        found = self.rows[row]
        kind = found[0]
        if kind == "const":
            self.relative(code, first, middle, self.body.constant(found[1][::-1]), immediate)
        elif kind == "input":
            array, position = self.inputs[found[1]]
            self.memory(code, first, middle, self.pointer(self.input_pointer, array), 8 * position, immediate)
        elif kind in LEAVES:
            place = self.body.constant((b"\xff" if kind == "true" else b"\0") * 8)
            self.relative(code, first, middle, place, immediate)
        else:
            self.memory(code, first, middle, RBX, 8 * self.registers.places[row], immediate)

    def pointer(self, register: int, array: int) -> int:
        """Return the register of the pointer to an array, loaded where another is in it."""
        if self.current[register] != array:
            table = R12 if register == self.input_pointer else R13
            width = width_of(8 * array, table)
            head = pointer_before_displacement(register, table, width)
            self.body.code += head + (8 * array).to_bytes(width, "little")
            self.current[register] = array
        return register

    def memory(self, code: str, first: int, middle: int, base: int, displacement: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand stands at a displacement from a pointer."""
        width = width_of(displacement, base)
        head = before_displacement(code, first, middle, base, width)
        self.body.code += head + displacement.to_bytes(width, "little", signed=True) + immediate

    def relative(self, code: str, first: int, middle: int, place: int, immediate: bytes = b"") -> None:
        """Write an instruction whose last operand stands at a place before the code."""
        head, written = before_displacement(code, first, middle, NEXT, 4), self.body.code
        displacement = place - len(written) - len(head) - 4 - len(immediate)
        written += head + displacement.to_bytes(4, "little", signed=True) + immediate

    def store(self, register: int, row: int) -> None:
        """Store a value in the results, and free its register where nothing else reads it."""
        registers = self.registers
        for array, position in self.stores.get(row, ()):
            self.memory("store", register, 0, self.pointer(self.output_pointer, array), 8 * position)
        if not registers.uses.get(row):
            registers.release(row)

    # Operations

    def operands(self, row: Row) -> tuple[int, ...]:
        """Return the operands of a row, of each of which this is one use less."""
        operands, uses = row[FIRST_OPERAND.get(row[0], 1) :], self.registers.uses
        for operand in operands:
            uses[operand].pop()
        return operands

    def finished(self, operands: Sequence[int]) -> None:
        """Free the registers of operands that are not read again."""
        registers = self.registers
        for operand in operands:
            if not registers.uses[operand]:
                registers.release(operand)

    def define(self, register: int, index: int, operands: Sequence[int]) -> None:
        """Note the result of an operation, whose operands have been read."""
        registers = self.registers
        registers.hold(register, index)
        for operand in operands:
            if not registers.uses[operand]:
                registers.forget(operand)
        if index in self.stores:
            self.store(register, index)

    def binary(self, index: int, row: Row, code: str = "", immediate: bytes = b"") -> None:
        """One of two operands may be in memory."""
        registers = self.registers
        code = code or row[0]
        operands = left, right = self.operands(row)
        of = registers.of
        if code in COMMUTATIVE and left not in of and right in of:
            left, right = right, left
        first = registers.wanted(left, (of.get(right, -1),))
        second = of.get(right)
        self.finished(operands)
        result = registers.take()
        if second is None:
            self.at(code, result, first, right, immediate)
        else:
            self.body.code += in_registers(code, result, first, second) + immediate
        self.define(result, index, operands)

    def compare(self, index: int, row: Row) -> None:
        self.binary(index, row, "compare", bytes([CONDITIONS[row[1]]]))

    def masked(self, index: int, row: Row, code: str, mask: int) -> None:
        """Change bits as a mask says."""
        operands = self.operands(row)
        source = self.registers.wanted(operands[0])
        self.finished(operands)
        result = self.registers.take()
        self.relative(code, result, source, mask)
        self.define(result, index, operands)

    def unary(self, index: int, row: Row, immediate: bytes) -> None:
        """A square root, or a rounding."""
        operands = self.operands(row)
        source = self.registers.wanted(operands[0])
        self.finished(operands)
        result = self.registers.take()
        code = "round" if immediate else "sqrt"
        self.body.code += in_registers(code, result, source, source) + immediate
        self.define(result, index, operands)

    def logic(self, index: int, row: Row) -> None:
        operands = self.operands(row)
        first, second = self.all_wanted(operands)
        self.finished(operands)
        result = self.registers.take()
        self.body.code += in_registers(row[1], result, first, second)
        self.define(result, index, operands)

    def select(self, index: int, row: Row) -> None:
        operands = self.operands(row)
        test, first, second = self.all_wanted(operands)
        self.finished(operands)
        result = self.registers.take()
        self.body.code += in_registers("blend", result, second, first) + bytes([test << 4])
        self.define(result, index, operands)

    def all_wanted(self, operands: Sequence[int]) -> list[int]:
        """Return the registers of all operands."""
        of = self.registers.of
        found: list[int] = []
        for operand in operands:
            others = [of[other] for other in operands if other in of]
            found.append(self.registers.wanted(operand, (*found, *others)))
        return found

    def fused(self, index: int, row: Row) -> None:
        """A fused operation overwrites one of its operands: one that is not read again, else a copy."""
        registers = self.registers
        operands = left, right, addend = self.operands(row)
        of, uses = registers.of, registers.uses
        dying = next((one for one in (addend, left, right) if not uses[one] and one in of), None)
        if dying is not None:
            result, replaced = registers.leave(dying), dying
        else:
            replaced = next((one for one in (addend, left, right) if one not in of), addend)
            source = of.get(replaced)
            result = registers.take([of[one] for one in operands if one in of])
            if source is None:
                self.read(result, replaced)
            else:
                self.body.code += in_registers("move", result, 0, source)
        if replaced == addend:
            order, middle, last = "231", left, right
        else:
            order, middle, last = "213", right if replaced == left else left, addend
        if middle != replaced and middle not in of:  # only the last operand may be in memory
            if last in of or last == replaced:
                order, middle, last = ("132" if order == "213" else "231"), last, middle
            else:
                registers.wanted(middle, (result, of.get(last, -1)))
        first = result if middle == replaced else of[middle]
        second = result if last == replaced else of.get(last)
        self.finished(operands)
        if second is None:
            self.at(row[0] + order, result, first, last)
        else:
            self.body.code += in_registers(row[0] + order, result, first, second)
        self.define(result, index, operands)

    def call(self, index: int, row: Row) -> None:
        """Call a function: it may overwrite every register."""
        if row[1] in ROUNDINGS:
            self.unary(index, row, bytes([ROUNDINGS[row[1]]]))
            return
        registers = self.registers
        operands = self.operands(row)
        if len(operands) == 1 and operands[0] in registers.of:
            source = registers.of[operands[0]]
            registers.empty()
            if source:
                self.body.code += in_registers("move", 0, 0, source)
        else:
            for operand in operands:
                if operand in registers.of:
                    registers.keep_in_memory(operand)
            registers.empty()
            for number, operand in enumerate(operands):
                self.read(number, operand)
        self.body.call(self.functions[row[1]])
        registers.free.remove(0)
        self.define(0, index, operands)
