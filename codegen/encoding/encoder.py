"""Encode operations in order as x86-64 machine code, one instruction after the other.

The code stands behind its constants, which it reads relative to itself; so it has no address of this process in it, and
addresses of functions are put among the constants when it is mapped. Truth values are masks of ones or zeros. The frame
pointer is kept as debuggers and profilers expect it. Groups are in lanes of registers: a row
`("half", group)` is the upper two of four lanes, from which the third and fourth are extracted.

One function does all: `int kernel(double **inputs, double **outputs)`. Its prologue stands behind the body, because
only then is known how large the workspace is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codegen.emission.lane_functions import SINE_AND_COSINE
from codegen.encoding.registers import WIDEST
from codegen.encoding.written_values import (
    MAGNITUDE,
    MASKS,
    ONE,
    ONES,
    SIGN,
    SUFFIXES,
    CodeBody,
    KernelValues,
    spread_form,
)
from codegen.encoding.x86_instructions import COMMUTATIVE, in_registers
from codegen.ir.machine_rows import LEAVES, Row, code_of
from codegen.ir.operations import NEGATED
from codegen.limits import EVERY, check

BOTH = "sine and cosine"
UPPER = b"\1"  # of the two halves of a register
WIDE_MASKS = {place: mask[:8] for place, mask in MASKS.items()}  # of each lane
CONDITIONS = {
    "oeq": 0x00, "olt": 0x11, "ole": 0x12, "uno": 0x03, "une": 0x04, "uge": 0x15, "ugt": 0x16, "ord": 0x07,
    "ueq": 0x08, "ult": 0x19, "ule": 0x1A, "one": 0x0C, "oge": 0x1D, "ogt": 0x1E,
}  # fmt: skip  # none of them signals
COPYSIGN = "llvm.copysign.f64"
ROUNDINGS = {"llvm.floor.f64": 9, "llvm.ceil.f64": 10, "llvm.trunc.f64": 11, "llvm.rint.f64": 4}
INSTRUCTIONS = frozenset({*ROUNDINGS, COPYSIGN})  # functions that are instructions here


def in_halves(rows: Sequence[Row]) -> list[Row]:
    """Return rows that extract third and fourth lanes from halves, which stand behind all other rows.

    >>> in_halves([("input", 0), ("spread", (4,), 0), ("lane", 3, 1), ("lane", 2, 1), ("lane", 1, 1)])[2:]
    [('lane', 1, 5), ('lane', 0, 5), ('lane', 1, 1), ('half', 1)]
    """
    if "lane" not in map(code_of, rows):
        return list(rows)
    rewritten = list(rows)
    halves: dict[int, int] = {}
    for index, row in enumerate(rows):
        if row[0] == "lane" and row[1] >= WIDEST // 2:
            group = row[2]
            if group not in halves:
                halves[group] = len(rewritten)
                rewritten.append(("half", group))
            rewritten[index] = ("lane", row[1] - WIDEST // 2, halves[group])
    return rewritten


class Encoder(KernelValues):
    """Writes the operations of one kernel."""

    def run(self) -> CodeBody:
        rows, write = self.rows, self._writers()
        for time, index in enumerate(self.order):
            if not time % EVERY:
                check("encoding machine operations")
            row = rows[index]
            if row[0] == "wide":
                lanes, *shape = row[1]
                write[shape[0]](index, (*shape, *row[2:]), SUFFIXES[lanes])
                self.wide |= lanes >= WIDEST
            else:
                write[row[0]](index, row, "")
        self.only_low()
        self.body.workspace, self.body.lanes = self.workspace.size, bool(self.lanes)
        del self.registers  # they refer to this encoder: no cycles for the garbage collector
        return self.body

    def _writers(self) -> dict[str, Callable[[int, Row, str], None]]:
        """Return the writers of rows by code, called with the row's number, the row, and the suffix of its lanes."""
        return {
            **dict.fromkeys(("add", "sub", "mul", "div"), self.binary),
            **dict.fromkeys(NEGATED, self.fused),
            **dict.fromkeys(LEAVES, lambda index, row, lanes: self.store(self.registers.wanted(index), index)),
            **{code: getattr(self, code) for code in ("spread", "gather", "lane", "half")},
            "neg": lambda index, row, lanes: self.masked(index, row, "xor", SIGN, lanes),
            "abs": lambda index, row, lanes: self.masked(index, row, "and", MAGNITUDE, lanes),
            "not": self.negation,
            "number": self.number,
            "sqrt": lambda index, row, lanes: self.unary(index, row, "sqrt", lanes, b""),
            "compare": self.compare,
            "logic": self.logic,
            "select": self.select,
            "call": self.call,
        }

    def binary(self, index: int, row: Row, lanes: str, code: str = "", immediate: bytes = b"") -> None:
        """Write an operation on two numbers, or on two registers of them."""
        self.define(self.of_two(code or row[0] + lanes, row, self.registers.take, immediate), index)

    def of_two(self, code: str, row: Row, take: Callable[[], int], immediate: bytes = b"") -> int:
        """Write an instruction of whose two operands one may be in memory; return the register taken for its result."""
        registers = self.registers
        left, right = self.brought(self.operands(row))
        of = registers.of
        if code in COMMUTATIVE and left not in of and right in of:
            left, right = right, left
        first = registers.wanted(left, (of[right],) if right in of else ())
        second = of.get(right)
        self.finished()
        result = take()
        if second is None:
            self.at(code, result, first, right, immediate)
        else:
            self.body.code += in_registers(code, result, first, second) + immediate
        return result

    def compare(self, index: int, row: Row, lanes: str) -> None:
        self.binary(index, row, lanes, "compare" + lanes, bytes([CONDITIONS[row[1]]]))

    def negation(self, index: int, row: Row, lanes: str) -> None:
        self.masked(index, row, "xor", ONES, lanes)

    def number(self, index: int, row: Row, lanes: str) -> None:
        self.masked(index, row, "and", ONE, lanes)

    def masked(self, index: int, row: Row, code: str, mask: int, lanes: str) -> None:
        """Change the bits of a mask."""
        source = self.registers.wanted(self.operands(row)[0])
        self.finished()
        result = self.registers.take()
        self.with_mask(code + lanes, result, source, mask, lanes)
        self.define(result, index)

    def with_mask(self, code: str, result: int, source: int, mask: int, lanes: str) -> None:
        """Write an instruction whose last operand is a mask."""
        if lanes == "8":
            self.relative(spread_form(code), result, source, self.body.constant(WIDE_MASKS[mask]))
        else:
            place = self.body.constant(WIDE_MASKS[mask] * int(lanes)) if lanes else mask
            self.relative(code, result, source, place)

    def unary(self, index: int, row: Row, code: str, lanes: str, immediate: bytes) -> None:
        """Write a square root, or a rounding."""
        source = self.registers.wanted(self.operands(row)[0])
        self.finished()
        result = self.registers.take()
        self.body.code += in_registers(code + lanes, result, source, source) + immediate
        self.define(result, index)

    def signed(self, index: int, row: Row, lanes: str) -> None:
        """Write the magnitude of one number with the sign of another."""
        registers = self.registers
        size, sign = self.all_wanted(self.operands(row))
        bit = registers.take((size, sign))
        self.with_mask("and" + lanes, bit, sign, SIGN, lanes)
        self.finished()
        result = registers.take((bit,))
        self.with_mask("and" + lanes, result, size, MAGNITUDE, lanes)
        self.body.code += in_registers("or" + lanes, result, result, bit)
        registers.free.append(bit)
        self.define(result, index)

    def logic(self, index: int, row: Row, lanes: str) -> None:
        first, second = self.all_wanted(self.operands(row))
        self.finished()
        result = self.registers.take()
        self.body.code += in_registers(row[1] + lanes, result, first, second)
        self.define(result, index)

    def select(self, index: int, row: Row, lanes: str) -> None:
        test, first, second = self.all_wanted(self.operands(row))
        self.finished()
        result = self.registers.take()
        self.body.code += in_registers("blend" + lanes, result, second, first) + bytes([test << 4])
        self.define(result, index)

    def all_wanted(self, operands: Sequence[int]) -> list[int]:
        """Return the registers of all operands."""
        of, registers = self.registers.of, list[int]()
        for operand in operands:
            others = [of[other] for other in operands if other in of]
            registers.append(self.registers.wanted(operand, (*registers, *others)))
        return registers

    def fused(self, index: int, row: Row, lanes: str) -> None:
        """Write a fused operation, which overwrites one of its operands: one that is not read again, else a copy."""
        registers = self.registers
        operands = left, right, addend = self.brought(self.operands(row))
        of, uses = registers.of, registers.uses
        dying = next((operand for operand in (addend, left, right) if not uses[operand] and operand in of), None)
        if dying is not None:
            result, replaced = registers.leave(dying), dying
        else:
            replaced = next((operand for operand in (addend, left, right) if operand not in of), addend)
            source = of.get(replaced)
            result = registers.take([of[operand] for operand in operands if operand in of])
            if source is None:
                self.read(result, replaced)
            else:
                self.body.code += in_registers("move" + lanes, result, 0, source)
        if replaced == addend:
            order, middle, last = "231", left, right
        else:
            order, middle, last = "213", right if replaced == left else left, addend
        if middle != replaced and middle not in of:  # only the last operand may be in memory
            if last in of or last == replaced:
                order, middle, last = ("132" if order == "213" else "231"), last, middle
            else:
                registers.wanted(middle, (result, of[last]) if last in of else (result,))
        first = result if middle == replaced else of[middle]
        second = result if last == replaced else of.get(last)
        self.finished()
        if second is None:
            self.at(row[0] + order + lanes, result, first, last)
        else:
            self.body.code += in_registers(row[0] + order + lanes, result, first, second)
        self.define(result, index)

    def call(self, index: int, row: Row, lanes: str) -> None:
        """Call a function, which may overwrite every register."""
        if row[1] in ROUNDINGS:
            self.unary(index, row, "round", lanes, bytes([ROUNDINGS[row[1]]]))
            return
        if row[1] == COPYSIGN:
            self.signed(index, row, lanes)
            return
        registers = self.registers
        operands = self.operands(row)
        if index in self.early:
            self.finished()
            self.workspace.forget_all(self.dead)
            return
        if len(operands) == 1 and operands[0] in registers.of:
            source = registers.of[operands[0]]
            registers.empty()
            if source:
                self.body.code += in_registers("move" + lanes, 0, 0, source)
        else:
            for operand in operands:
                if operand in registers.of:
                    registers.keep_in_memory(operand)
            registers.empty()
            for number, operand in enumerate(operands):
                self.read(number, operand)
        if lanes != "4":
            self.only_low()
        both = self.both.get(index)
        self.body.call(self.functions[row[1] if both is None else BOTH, int(lanes or 1)])
        result = 0 if both is None else SINE_AND_COSINE.index(row[1])
        registers.free.remove(result)
        if both is not None:
            registers.free.remove(1 - result)
            registers.hold(1 - result, both)
            self.early.add(both)
            if both in self.stores:
                self.store(1 - result, both)
        self.define(result, index)

    # moves between lanes

    def spread(self, index: int, row: Row, lanes: str) -> None:
        """Write one number into all lanes."""
        code = f"spread{row[1][0]}"
        self.wide |= row[1][0] >= WIDEST
        (number,) = self.operands(row)
        source = self.registers.of.get(number)
        self.finished()
        result = self.registers.take()
        if source is None:
            self.at(code, result, 0, number)
        else:
            self.body.code += in_registers(code, result, 0, source)
        self.define(result, index)

    def gather(self, index: int, row: Row, lanes: str) -> None:
        """Write numbers side by side, two at a time."""
        registers, operands = self.registers, self.operands(row)
        if self.neighbours(operands):
            result = registers.take()
            self.at("load" + SUFFIXES[len(operands)], result, 0, operands[0])
            self.define(result, index)
            return
        held = [registers.of[operand] for operand in operands if operand in registers.of]
        result = self._pair(operands[:2], held)
        if len(operands) == WIDEST:
            self.wide = True
            upper = operands[2:]
            if self.neighbours(upper):
                self.at("insert", result, result, upper[0], UPPER)
            else:
                other = self._pair(upper, [*held, result])
                self.body.code += in_registers("insert", result, result, other) + UPPER
                registers.free.append(other)
        self.finished()
        self.define(result, index)

    def _pair(self, operands: Sequence[int], keep: Sequence[int]) -> int:
        """Write two numbers into one register, which the caller owns."""
        registers, (first, second) = self.registers, operands
        result, of = registers.take(keep), registers.of
        if self.neighbours(operands):
            self.at("load2", result, 0, first)
            return result
        if first == second and first not in of:
            self.at("spread2", result, 0, first)
            return result
        lower = of.get(first, result)
        if lower == result:
            self.read(result, first)
        if second in of:
            self.body.code += in_registers("low", result, lower, of[second])
        else:
            self.at("load_high", result, lower, second)
        return result

    def lane(self, index: int, row: Row, lanes: str) -> None:
        """Extract one of the lower two lanes; a lane that is only stored needs no register."""
        registers, number = self.registers, row[1]
        (group,) = self.operands(row)
        source = registers.of.get(group)
        if source is None:
            self.finished()
            result = registers.take()
            self.saved("load", result, group, number)
        elif not registers.uses.get(index):
            for place in self.stores[index]:
                self.output("store_high" if number else "store", source, place)
            self.finished()
            self.workspace.forget_all(self.dead)
            return
        else:
            self.finished()
            result = registers.take()
            if number:
                self.body.code += in_registers("high", result, source, source)
            elif result != source:
                self.body.code += in_registers("move", result, 0, source)
        self.define(result, index)

    def half(self, index: int, row: Row, lanes: str) -> None:
        """Extract the upper two of four lanes."""
        registers = self.registers
        (group,) = self.operands(row)
        source = registers.of.get(group)
        self.finished()
        result = registers.take()
        if source is None:
            self.saved("load2", result, group, WIDEST // 2)
        else:
            self.body.code += in_registers("extract", result, 0, source) + UPPER
        self.define(result, index)
