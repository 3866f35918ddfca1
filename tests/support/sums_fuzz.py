"""Random programs with repeated templates: loops that are found have the values of the straight lines.

`python -m tests.support.sums_fuzz 10000 [first seed]` tries that many programs and prints those that fail.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable

import numpy as np
import sympy as sp

from codegen.evaluation.interpret import evaluate
from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import Table
from codegen.loops.find.find import Found, find_sums
from codegen.loops.loop import Loop
from tests.support.loop_values import flat_values, rolled_values

CONSTANTS: tuple[sp.Basic, ...] = (
    sp.Integer(0), sp.Integer(1), sp.Integer(-1), sp.Integer(2), sp.Float(1.0), sp.Float(0.5), sp.Rational(1, 3), sp.pi,
)  # fmt: skip
UNARY = (sp.sin, sp.cos, sp.tanh)
Maker = Callable[[int], int]  # the row of an expression in repetition k


class Author:
    """Writes a random program."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.table = Table()
        self.inputs = int(self.random.integers(1, 40))
        self.known = [self.table.leaf(sp.Symbol(f"x{k}", real=True)) for k in range(self.inputs)]
        self.bank = list(self.known)  # rows that anything may read

    def pick(self, some: list[int]) -> int:
        return some[int(self.random.integers(len(some)))]

    def pair(self, head: type[sp.Basic], left: int, right: int) -> int:
        return self.table.row(head, (min(left, right), max(left, right)))

    def constant(self) -> int:
        return self.table.leaf(CONSTANTS[int(self.random.integers(len(CONSTANTS)))])

    def leaf_maker(self) -> Maker:
        """A leaf: inputs in order or anywhere, a shared row, a constant, constants that differ."""
        choice, shared, constant = self.random.integers(7), self.pick(self.bank), self.constant()
        shift, step = int(self.random.integers(5)), int(self.random.integers(1, 3))
        rows = self.bank[int(self.random.integers(len(self.bank))) :] if choice == 1 else self.known
        if choice <= 2:
            return lambda k: rows[(shift + step * k) % len(rows)]
        if choice == 3:
            return lambda k: self.pick(self.bank)
        if choice == 4:
            return lambda k: shared
        return (lambda k: constant) if choice == 5 else (lambda k: self.constant())

    def maker(self, depth: int) -> Maker:
        """A template of a random expression; parts of it may come twice."""
        if depth == 0 or self.random.random() < 0.15:
            return self.leaf_maker()
        left, right = self.maker(depth - 1), self.maker(depth - 1)
        row, pair, choice = self.table.row, self.pair, self.random.integers(9)
        head = UNARY[int(self.random.integers(3))]
        if choice <= 1:
            return lambda k: pair(sp.Add, left(k), right(k))
        if choice <= 3:
            return lambda k: pair(sp.Mul, left(k), right(k))
        if choice == 4:
            minus = self.table.leaf(sp.S.NegativeOne)
            return lambda k: pair(sp.Add, left(k), pair(sp.Mul, minus, right(k)))
        if choice == 5:
            exponent = self.table.leaf(sp.Integer(self.random.integers(2, 4)))
            return lambda k: row(sp.Pow, (left(k), exponent))
        if choice == 6:
            return lambda k: self.twice(left(k), right(k))
        if choice == 7:
            true = self.table.leaf(sp.true)
            return lambda k: row(sp.Piecewise, (left(k), row(sp.Lt, (right(k), left(k))), right(k), true))
        return lambda k: row(head, (left(k),))

    def twice(self, left: int, right: int) -> int:
        product = self.pair(sp.Mul, left, right)
        return self.pair(sp.Add, product, self.table.row(sp.sin, (product,)))

    def total(self, terms: list[int]) -> int:
        """Add up terms: a chain, a chain from zero, a tree, or all at once."""
        shape = self.random.integers(4)
        if shape == 3 and len(terms) > 1:
            return self.table.row(sp.Add, tuple(terms))
        rest = list(terms) if shape else [self.table.leaf(sp.Integer(0)), *terms]
        while len(rest) > 1:
            at = 0 if shape < 2 else int(self.random.integers(len(rest) - 1))
            rest[at : at + 2] = [self.pair(sp.Add, rest[at], rest[at + 1])]
        return rest[0]

    def phase(self) -> list[int]:
        """Some templates, repeated: rows that are results, or go on to what comes next."""
        makers = [self.maker(int(self.random.integers(1, 5))) for _ in range(self.random.integers(1, 4))]
        if self.random.random() < 0.01:
            return [self.total([makers[0](k + 3 * j) for k in range(130)]) for j in range(9)]
        counts = [int(self.random.choice([3, 7, 8, 9, 16, 30])) for _ in makers]
        if self.random.random() < 0.5:
            counts = counts[:1] * len(makers)
        terms = [[maker(k) for k in range(count)] for maker, count in zip(makers, counts, strict=True)]
        kind = self.random.integers(6)
        if kind == 0:
            return [row for some in terms for row in some]
        if kind == 1:
            mixed = [row for some in terms for row in some]
            self.random.shuffle(mixed)
            return [self.total(mixed)]
        if kind == 2:
            return [self.total(some) for some in terms]
        if kind >= 4:
            return self.ragged(makers)
        lengths = self.random.integers(1, 5, size=20)
        return [self.total([self.pick(terms[0]) for _ in range(length)]) for length in lengths]

    def ragged(self, makers: list[Maker]) -> list[int]:
        """Sums of many lengths, of terms of several templates, as over what meets in the nodes of a network."""
        sums = []
        for _ in range(self.random.integers(8, 40)):
            chosen = self.random.integers(len(makers), size=self.random.integers(1, 8))
            sums.append(self.total([makers[maker](int(self.random.integers(50))) for maker in chosen]))
        return sums

    def program(self) -> Program:
        """Write phases; the results of each may be read by those after it."""
        wanted: list[int] = []
        for _ in range(self.random.integers(1, 4)):
            results = self.phase()
            if self.random.random() < 0.3:
                results = [self.table.row(sp.tanh, (row,)) for row in results]
            self.bank += results
            if self.random.random() < 0.5:
                self.known = results if len(results) > 3 else self.known
            wanted += results if self.random.random() < 0.6 else results[-1:]
        table = self.table
        inputs = (Input("x", (self.inputs,)),)
        return Program(table.heads, table.operands, table.atoms, inputs, (Output((len(wanted),), tuple(wanted)),))


def shuffled(program: Program, seed: int) -> Program:
    """Return the same program with its rows in another order that is topological; inputs stay."""
    random = np.random.default_rng(seed)
    users: list[list[int]] = [[] for _ in program.heads]
    waiting = [len(set(operands)) for operands in program.operands]
    for row, operands in enumerate(program.operands):
        for operand in set(operands):
            users[operand].append(row)
    place = random.permutation(len(program)) + program.input_count
    place[: program.input_count] = np.arange(program.input_count)
    heap = [(int(place[row]), row) for row, count in enumerate(waiting) if not count]
    heapq.heapify(heap)
    order: list[int] = []
    while heap:
        _, row = heapq.heappop(heap)
        order.append(row)
        for user in users[row]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(heap, (int(place[user]), user))
    at = {row: new for new, row in enumerate(order)}
    operands = []
    for row in order:
        moved = tuple(at[operand] for operand in program.operands[row])
        pair = len(moved) == 2 and program.heads[row] in (sp.Add, sp.Mul)
        operands.append(tuple(sorted(moved)) if pair else moved)
    atoms = {at[row]: atom for row, atom in program.atoms.items()}
    outputs = tuple(
        Output(output.shape, tuple(at[row] for row in output.rows), output.positions) for output in program.outputs
    )
    return Program([program.heads[row] for row in order], operands, atoms, program.inputs, outputs, program.name)


def wrong(program: Program, found: Found, done: list[Loop], seed: int) -> str:
    """Return what is wrong with loops at a random point; "" for nothing.

    Where sums cancel, both may be wrong: the loops may not be further from the exact values than the straight lines.
    """
    point = np.random.default_rng(seed).uniform(-1.0, 1.0, program.input_count)
    wanted = list(program.outputs[0].rows)
    flat = flat_values(program, point)
    both = Found([*done, *found.loops], found.sums)
    values, _ = rolled_values(program, both, wanted, dict(enumerate(point)))
    got, expected = np.array([values[row] for row in wanted]), np.array([flat[row] for row in wanted])
    near = np.isclose(got, expected, rtol=1e-11, atol=1e-11, equal_nan=True)
    if near.all():
        return ""
    exact = {row: sp.Rational(*float(value).as_integer_ratio()) for row, value in enumerate(point)}
    reference = np.array([float(value) for value in evaluate(program, wanted, exact, "reference")])
    near |= np.abs(got - reference) <= 1e-9 * np.abs(reference) + 1000 * np.abs(expected - reference)
    return "" if near.all() else f"{got[~near][:3]} and not {expected[~near][:3]}"


def try_one(seed: int) -> tuple[str, int]:
    """Return what is wrong with the loops of one random program, and how many there are."""
    program = Author(seed).program()
    if seed % 3 == 0:
        program = shuffled(program, seed)
    inputs, outputs = np.arange(program.input_count), np.array(program.outputs[0].rows)
    found = find_sums(program, inputs, outputs, [], len(program))
    answer = wrong(program, found, [], seed)
    random = np.random.default_rng(seed)
    apart = random.random() < 0.5  # loops that add to the same sums are all given, or none
    kinds = [(loop, {use.kind for use in loop.results}) for loop in found.loops]
    adders = [loop for loop, some in kinds if "add" in some] if apart else []
    if any("sum" in some for loop, some in kinds if "add" in some):
        adders = []
    done = adders + [loop for loop, some in kinds if some == {"each"} and random.random() < 0.5]
    if not answer and done:
        again = find_sums(program, inputs, outputs, done, len(program))
        answer = wrong(program, again, done, seed)
    return answer, len(found.loops)


def main(programs: int, first: int = 0) -> None:
    """Try random programs; print the seeds of those that fail, and how many loops there were."""
    loops = failures = with_loops = 0
    for seed in range(first, first + programs):
        try:
            answer, number = try_one(seed)
        except Exception as error:
            answer, number = f"{type(error).__name__}: {error}", 0
        loops, with_loops = loops + number, with_loops + bool(number)
        if answer:
            failures += 1
            print(f"seed {seed}: {answer}")
    print(f"{programs} programs, {with_loops} with loops, {loops} loops, {failures} wrong")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or [1000]))
