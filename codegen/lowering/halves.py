"""Split a sweep: operations that do not depend on the seed, and those of every column.

Guards: a value contributes exactly 0 to columns that it does not depend on, also where a coefficient is infinite.
Straight-line code has no products with structural zeros. In a sweep all columns share one product, and 0 * inf is NaN:
so a product of a coefficient that may be infinite, with a tangent of some columns only, gets a select.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import accumulate, groupby
from typing import Literal

from codegen.ir.machine_rows import LEAVES, TRUTHS, Row, constant_of, is_truth_row, operands_of, with_operands
from codegen.ir.operations import NEGATED
from codegen.ir.program import Program
from codegen.lowering.lower import KINDS, Lowered
from codegen.processor import vector_bits
from codegen.records import dataclass


def guard(lowered: Lowered, start: int, columns: int) -> Lowered:
    """Return a seeded program with its products guarded; the seed is at the input positions from `start` on."""
    writer = _HalvesWriter(lowered, start, columns)
    live = lowered.live()
    for index in live:  # leaves first: constants may stand behind their users
        if lowered.rows[index][0] in LEAVES:
            writer.leaf(index)
    for index in live:
        if lowered.rows[index][0] not in LEAVES:
            writer.row(index)
    stores = [(array, position, writer.place[row]) for array, position, row in lowered.stores]
    return replace(lowered, rows=writer.rows, stores=stores)


class _Reached:
    """`reached[row]` has a bit for every column that the row's value may depend on."""

    def __init__(self, rows: list[Row], reached: list[int], columns: int) -> None:
        self.rows, self.reached, self.full = rows, reached, (1 << columns) - 1

    def guarded(self, row: Row) -> int | None:
        """Return the columns of a product, or None where no guard is needed."""
        if row[0] not in ("mul", "div", *NEGATED):
            return None
        first, second = row[1:3]
        mask = self.reached[first] | self.reached[second]
        if mask in (0, self.full):
            return None
        value = constant_of(self.rows, second if self.reached[first] else first)
        if value is None:
            return mask
        keeps_zero = value != 0 and not math.isnan(value) if row[0] == "div" else math.isfinite(value)
        return None if keeps_zero else mask


class _HalvesWriter(_Reached):
    def __init__(self, lowered: Lowered, start: int, columns: int) -> None:
        super().__init__([], [], columns)
        self.old, self.start = lowered.rows, start
        self.place: dict[int, int] = {}
        self.sums: dict[int, int] = {}  # rows of sums of unit vectors, by mask; at first the seeds
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
            self.sums[1 << column] = self.place[index]

    def row(self, index: int) -> None:
        row = with_operands(self.old[index], self.place.__getitem__)
        reached = 0
        for operand in operands_of(row):
            reached |= self.reached[operand]
        self.place[index] = place = self.put(row, reached)
        mask = self.guarded(row)
        if mask is not None:
            self.place[index] = self.put(("select", self._test(mask), place, self._otherwise(row)), reached)

    def _otherwise(self, row: Row) -> int:
        """Return the value in the other columns: 0, or the summand of a fused product."""
        if row[0] not in NEGATED:
            return self.put(("const", bytes(8)), 0)
        summand = row[3]
        return self.put(("neg", summand), self.reached[summand]) if 2 in NEGATED[row[0]] else summand

    def _test(self, mask: int) -> int:
        """Return the truth value of the columns of a mask: the sum of their unit vectors is not 0."""
        if mask not in self.tests:
            zero = self.put(("const", bytes(8)), 0)
            self.tests[mask] = self.put(("compare", "une", self._sum(mask), zero), mask)
        return self.tests[mask]

    @cached_property
    def _steps(self) -> UnitVectorSums:
        return UnitVectorSums(list(self.sums))

    def _sum(self, mask: int) -> int:
        """Return the sum of the unit vectors of a mask."""
        for done, operation, first, second in self._steps.of(mask):
            if done not in self.sums:
                self.sums[done] = self.put((operation, self.sums[first], self.sums[second]), done)
        return self.sums[mask]


class UnitVectorSums:
    """Sums of unit vectors, in few steps for many masks: sums of their beginnings, whose differences are long runs.

    A sum is named by its mask. All lanes are 0 or 1, so that differences are exact.
    """

    def __init__(self, seeds: list[int]) -> None:
        """`seeds` are the masks of single columns."""
        self.seeds = sorted(seeds)
        self.beginnings = [0, *accumulate(self.seeds)]  # masks
        self.yielded = 1  # beginnings

    def of(self, mask: int) -> Iterator[tuple[int, Literal["add", "sub"], int, int]]:
        """Yield steps as (the mask of the result, the operation, the masks of its operands); known ones may recur."""
        total = 0
        for low, high in self._runs(mask):
            run = self.seeds[low]
            if high - low > LONG_RUN:
                for k in range(self.yielded, high):
                    yield self.beginnings[k + 1], "add", self.beginnings[k], self.seeds[k]
                self.yielded = max(self.yielded, high)
                run = self.beginnings[high] - self.beginnings[low]
                if low:
                    yield run, "sub", self.beginnings[high], self.beginnings[low]
            else:
                for seed in self.seeds[low + 1 : high]:
                    yield run | seed, "add", run, seed
                    run |= seed
            if total:
                yield total | run, "add", total, run
            total |= run

    def _runs(self, mask: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of seeds in a mask, by the numbers of their first seeds and of those behind their ends."""
        inside = [k for k, seed in enumerate(self.seeds) if mask & seed]
        for _, run in groupby(enumerate(inside), lambda pair: pair[1] - pair[0]):
            numbers = [number for _, number in run]
            yield numbers[0], numbers[-1] + 1


LONG_RUN = 8  # columns: up to here a run is added up
ZERO = ("const", bytes(8))


@dataclass(frozen=True)
class Split:
    """The two halves of a sweep: `once` stores the residuals as a last array, and `columns` reads them."""

    once: Lowered
    columns: Lowered
    residuals: int


def columns_at_once(program: Program) -> int:
    """Return how many columns of a program run side by side: as many as fill the widest register.

    >>> from codegen.ir.program import Input
    >>> columns_at_once(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True))
    2
    """
    return side_by_side(program.inputs[-1].size)


def side_by_side(columns: int) -> int:
    """Return how many of some columns a register holds: a power of two."""
    width = max(1, vector_bits() // 64)
    while width > max(columns, 1):
        width //= 2
    return width


def executed(program: Program, lowered: Lowered) -> Counter[str]:
    """Count the operations of one call of a sweep by kind, without writing its halves; one on vectors counts once."""
    size = program.inputs[-1].size
    start, rows = program.input_count - size, lowered.rows
    columns_of = _Reached(rows, [0] * len(rows), size)
    reached, once, columns = columns_of.reached, Counter[str](), Counter[str]()
    tests: set[int] = set()
    crossing: set[int] = set()
    for index in lowered.live():
        row = rows[index]
        if row[0] in LEAVES:
            reached[index] = 1 << (row[1] - start) if row[0] == "input" and row[1] >= start else 0
            continue
        operands = operands_of(row)
        mask = 0
        for operand in operands:
            mask |= reached[operand]
        reached[index] = mask
        (columns if mask else once)[KINDS[row[0]]] += 1
        if mask:
            crossing.update([operand for operand in operands if not reached[operand] and is_truth_row(rows[operand])])
            if (guarded := columns_of.guarded(row)) is not None:
                tests.add(guarded)
                columns["select"] += 1
                if 2 in NEGATED.get(row[0], ()):
                    (columns if reached[row[3]] else once)["neg"] += 1
    steps = UnitVectorSums([seed for row in lowered.live() if rows[row][0] == "input" and (seed := reached[row])])
    sums = {done: operation for mask in tests for done, operation, *_ in steps.of(mask)}
    columns += Counter(compare=len(tests)) + Counter(sums.values())
    truths = sum(rows[row][0] not in LEAVES for row in crossing)  # each crosses as a number
    columns["compare"] += truths
    once["select"] += truths
    return once + _times(columns, -(-size // columns_at_once(program)))


def executed_halves(program: Program, once: Lowered, columns: Lowered, width: int) -> Counter[str]:
    """Return the same for halves that are split already, with `width` columns side by side."""
    return once.count() + _times(columns.count(), -(-program.inputs[-1].size // width))


def _times(counts: Counter[str], blocks: int) -> Counter[str]:
    return Counter({kind: blocks * count for kind, count in counts.items()})


def split(program: Program, lowered: Lowered) -> Split:
    """Return the rows that do not depend on the seed and those that do, each with its stores; products are guarded."""
    seed = program.inputs[-1]
    start = program.input_count - seed.size
    lowered = guard(lowered, start, seed.size)
    rows = lowered.rows
    swept = [output.swept for output in program.outputs]
    moving = [store for store in lowered.stores if swept[store[0]]]
    depends = bytearray(len(rows))  # on the seed
    for index in lowered.live():
        is_seed = rows[index][0] == "input" and rows[index][1] >= start
        depends[index] = is_seed or any(depends[operand] for operand in operands_of(rows[index]))
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


def _crossing(lowered: Lowered, depends: bytearray, stored: list[int]) -> dict[int, int]:
    """Number the rows without seed that rows with seed, or stores of columns, read; both halves have constants."""
    operands = [u for row in lowered.live() if depends[row] for u in operands_of(lowered.rows[row])]
    needed = dict.fromkeys(u for u in [*operands, *stored] if not depends[u])
    constant = ("const", "true", "false")
    return {row: place for place, row in enumerate(row for row in needed if lowered.rows[row][0] not in constant)}
