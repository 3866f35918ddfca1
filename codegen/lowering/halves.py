"""The two halves of a sweep: operations that do not depend on the seed, and those that are done for every column."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from codegen.engine import vector_bits
from codegen.ir.machine_rows import TRUTHS, operands_of
from codegen.ir.program import Program
from codegen.lowering.guards import guard
from codegen.lowering.lower import Lowered

ZERO = ("const", bytes(8))


@dataclass(frozen=True)
class Split:
    """The two halves of a sweep: `once` stores the residuals as a last array, and `columns` reads them."""

    once: Lowered
    columns: Lowered
    residuals: int


def columns_at_once(program: Program) -> int:
    """Return how many columns go side by side: as many as fill the widest register, a power of two.

    >>> from codegen.ir.program import Input
    >>> columns_at_once(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True))
    2
    """
    columns, width = program.inputs[-1].size, max(1, vector_bits() // 64)
    while width > columns:
        width //= 2
    return max(width, 1)


def executed(program: Program, lowered: Lowered) -> Counter[str]:
    """Operations that one call of a sweep carries out, by kind; one on a vector register counts once."""
    halves = split(program, lowered)
    return executed_halves(program, halves.once, halves.columns)


def executed_halves(program: Program, once: Lowered, columns: Lowered) -> Counter[str]:
    """The same, of halves that are apart already."""
    blocks = -(-program.inputs[-1].size // columns_at_once(program))
    return once.count() + Counter({kind: blocks * count for kind, count in columns.count().items()})


def split(program: Program, lowered: Lowered) -> Split:
    """Return the rows that do not depend on the seed and those that do, each with its stores; products are guarded."""
    seed = program.inputs[-1]
    start = program.input_count - seed.size
    lowered = guard(lowered, start, seed.size)
    rows = lowered.rows
    swept = [output.swept for output in program.outputs]
    moving = [store for store in lowered.stores if swept[store[0]]]
    depends = _dependent(lowered, start)
    crossing = _crossing(lowered, depends, [row for _, _, row in moving])
    once, columns = list(rows), list(rows)
    stores = [store for store in lowered.stores if not swept[store[0]]]
    number = {array: sum(other == swept[array] for other in swept[:array]) for array in range(len(swept))}
    stores = [(number[array], position, row) for array, position, row in stores]
    for row, place in crossing.items():
        kept = row
        if rows[row][0] in TRUTHS:  # crosses as a number
            kept = len(once)
            once.append(("number", row))
            columns += [("input", place), ZERO]
            columns[row] = ("compare", "une", len(columns) - 2, len(columns) - 1)
        else:
            columns[row] = ("input", place)
        stores.append((len(swept) - sum(swept), place, kept))
    for index, (code, *fields) in enumerate(rows):
        if code == "input" and fields[0] >= start:
            columns[index] = ("input", fields[0] - start + len(crossing))
    second = [(number[array], position, row) for array, position, row in moving]
    return Split(
        replace(lowered, rows=once, stores=stores), replace(lowered, rows=columns, stores=second), len(crossing)
    )


def _dependent(lowered: Lowered, start: int) -> bytearray:
    """Mark the rows that depend on the seed: the inputs from position `start` on."""
    depends = bytearray(len(lowered.rows))
    for index in lowered.live():
        row = lowered.rows[index]
        seed = row[0] == "input" and row[1] >= start
        depends[index] = seed or any(depends[operand] for operand in operands_of(row))
    return depends


def _crossing(lowered: Lowered, depends: bytearray, stored: list[int]) -> dict[int, int]:
    """Number the rows without seed that rows with seed, or stores of columns, read; constants are known to both."""
    wanted = [u for row in lowered.live() if depends[row] for u in operands_of(lowered.rows[row])]
    needed = dict.fromkeys(u for u in [*wanted, *stored] if not depends[u])
    constant = ("const", "true", "false")
    return {row: place for place, row in enumerate(row for row in needed if lowered.rows[row][0] not in constant)}
