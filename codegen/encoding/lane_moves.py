"""Move numbers between lanes: join scalars in a register, broadcast one, extract one.

A row `("half", group)` is the upper two of four lanes: the third and fourth lane are extracted from it.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.encoding.registers import WIDEST
from codegen.encoding.written_values import SUFFIXES, KernelValues
from codegen.encoding.x86_instructions import in_registers
from codegen.ir.machine_rows import Row, code_of

UPPER = b"\1"  # of the two halves of a register


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


def spread(values: KernelValues, index: int, row: Row, lanes: str) -> None:
    """Write one number into all lanes."""
    code = f"spread{row[1][0]}"
    values.wide |= row[1][0] >= WIDEST
    (number,) = values.operands(row)
    source = values.registers.of.get(number)
    values.finished()
    result = values.registers.take()
    if source is None:
        values.at(code, result, 0, number)
    else:
        values.body.code += in_registers(code, result, 0, source)
    values.define(result, index)


def gather(values: KernelValues, index: int, row: Row, lanes: str) -> None:
    """Write numbers side by side, two at a time."""
    registers, operands = values.registers, values.operands(row)
    if values.neighbours(operands):
        result = registers.take()
        values.at("load" + SUFFIXES[len(operands)], result, 0, operands[0])
        values.define(result, index)
        return
    held = [registers.of[operand] for operand in operands if operand in registers.of]
    result = _pair(values, operands[:2], held)
    if len(operands) == WIDEST:
        values.wide = True
        upper = operands[2:]
        if values.neighbours(upper):
            values.at("insert", result, result, upper[0], UPPER)
        else:
            other = _pair(values, upper, [*held, result])
            values.body.code += in_registers("insert", result, result, other) + UPPER
            registers.free.append(other)
    values.finished()
    values.define(result, index)


def _pair(values: KernelValues, operands: Sequence[int], keep: Sequence[int]) -> int:
    """Write two numbers into one register, which the caller owns."""
    registers, (first, second) = values.registers, operands
    result, of = registers.take(keep), registers.of
    if values.neighbours(operands):
        values.at("load2", result, 0, first)
        return result
    if first == second and first not in of:
        values.at("spread2", result, 0, first)
        return result
    lower = of.get(first, result)
    if lower == result:
        values.read(result, first)
    if second in of:
        values.body.code += in_registers("low", result, lower, of[second])
    else:
        values.at("load_high", result, lower, second)
    return result


def lane(values: KernelValues, index: int, row: Row, lanes: str) -> None:
    """Extract one of the lower two lanes; a lane that is only stored needs no register."""
    registers, number = values.registers, row[1]
    (group,) = values.operands(row)
    source = registers.of.get(group)
    if source is None:
        values.finished()
        result = registers.take()
        values.saved("load", result, group, number)
    elif not registers.uses.get(index):
        for place in values.stores[index]:
            values.output("store_high" if number else "store", source, place)
        values.finished()
        values.workspace.forget_all(values.dead)
        return
    else:
        values.finished()
        result = registers.take()
        if number:
            values.body.code += in_registers("high", result, source, source)
        elif result != source:
            values.body.code += in_registers("move", result, 0, source)
    values.define(result, index)


def half(values: KernelValues, index: int, row: Row, lanes: str) -> None:
    """Extract the upper two of four lanes."""
    registers = values.registers
    (group,) = values.operands(row)
    source = registers.of.get(group)
    values.finished()
    result = registers.take()
    if source is None:
        values.saved("load2", result, group, WIDEST // 2)
    else:
        values.body.code += in_registers("extract", result, 0, source) + UPPER
    values.define(result, index)


MOVES = {"spread": spread, "gather": gather, "lane": lane, "half": half}
