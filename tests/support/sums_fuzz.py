"""Random programs with repeated templates: loops that are found have the values of the straight lines.

`python -m tests.fuzz sums 10000` tries that many programs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import sympy as sp

from codegen.evaluation.evaluate_rolled import evaluate_rolled
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from codegen.loops.find.find import Found, find_sums
from codegen.loops.loop import Loop
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place
from tests.support import written as text
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import counted
from tests.support.loop_values import flat_values, rolled_values

CONSTANTS: tuple[sp.Basic, ...] = (
    sp.Integer(0), sp.Integer(1), sp.Integer(-1), sp.Integer(2), sp.Float(1.0), sp.Float(0.5), sp.Rational(1, 3), sp.pi,
)  # fmt: skip
UNARY = (sp.sin, sp.cos, sp.tanh)
Maker = Callable[[int], int]  # the row of an expression in repetition k


class Author:
    """Writes a random program."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.table = RowTable()
        self.inputs = draw.integer(1, 39)
        self.known = [self.table.leaf(sp.Symbol(f"x{k}", real=True)) for k in range(self.inputs)]
        self.bank = list(self.known)  # rows that anything may read

    def pair(self, head: type[sp.Basic], left: int, right: int) -> int:
        return self.table.row(head, (min(left, right), max(left, right)))

    def constant(self) -> int:
        return self.table.leaf(self.draw.choice(CONSTANTS))

    def leaf_maker(self) -> Maker:
        """A leaf: inputs in order or anywhere, a shared row, a constant, constants that differ."""
        choice, shared, constant = self.draw.below(7), self.draw.choice(self.bank), self.constant()
        shift, step = self.draw.below(5), self.draw.integer(1, 2)
        rows = self.bank[self.draw.below(len(self.bank)) :] if choice == 1 else self.known
        if choice <= 2:
            return lambda k: rows[(shift + step * k) % len(rows)]
        if choice == 3:
            return lambda k: self.draw.choice(self.bank)
        if choice == 4:
            return lambda k: shared
        return (lambda k: constant) if choice == 5 else (lambda k: self.constant())

    def maker(self, depth: int) -> Maker:
        """A template of a random expression; parts of it may come twice."""
        if depth == 0 or self.draw.chance(0.15):
            return self.leaf_maker()
        left, right = self.maker(depth - 1), self.maker(depth - 1)
        row, pair, choice = self.table.row, self.pair, self.draw.below(9)
        head = self.draw.choice(UNARY)
        if choice <= 1:
            return lambda k: pair(sp.Add, left(k), right(k))
        if choice <= 3:
            return lambda k: pair(sp.Mul, left(k), right(k))
        if choice == 4:
            minus = self.table.leaf(sp.S.NegativeOne)
            return lambda k: pair(sp.Add, left(k), pair(sp.Mul, minus, right(k)))
        if choice == 5:
            exponent = self.table.leaf(sp.Integer(self.draw.integer(2, 3)))
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
        shape = self.draw.below(4)
        if shape == 3 and len(terms) > 1:
            return self.table.row(sp.Add, tuple(terms))
        rest = list(terms) if shape else [self.table.leaf(sp.Integer(0)), *terms]
        while len(rest) > 1:
            at = 0 if shape < 2 else self.draw.below(len(rest) - 1)
            rest[at : at + 2] = [self.pair(sp.Add, rest[at], rest[at + 1])]
        return rest[0]

    def phase(self) -> list[int]:
        """Some templates, repeated: rows that are results, or go on to what comes next."""
        makers = [self.maker(self.draw.integer(1, 4)) for _ in range(self.draw.integer(1, 3))]
        if self.draw.chance(0.01):
            return [self.total([makers[0](k + 3 * j) for k in range(130)]) for j in range(9)]
        counts = [self.draw.choice([3, 7, 8, 9, 16, 30]) for _ in makers]
        if self.draw.chance(0.5):
            counts = counts[:1] * len(makers)
        terms = [[maker(k) for k in range(count)] for maker, count in zip(makers, counts, strict=True)]
        kind = self.draw.below(6)
        if kind == 0:
            return [row for some in terms for row in some]
        if kind == 1:
            mixed = [row for some in terms for row in some]
            self.draw.generator().shuffle(mixed)
            return [self.total(mixed)]
        if kind == 2:
            return [self.total(some) for some in terms]
        if kind >= 4:
            return self.ragged(makers)
        lengths = [self.draw.integer(1, 4) for _ in range(20)]
        return [self.total([self.draw.choice(terms[0]) for _ in range(length)]) for length in lengths]

    def ragged(self, makers: list[Maker]) -> list[int]:
        """Sums of many lengths, of terms of several templates, as over what meets in the nodes of a network."""
        sums = []
        for _ in range(self.draw.integer(8, 39)):
            chosen = [self.draw.below(len(makers)) for _ in range(self.draw.integer(1, 7))]
            sums.append(self.total([makers[maker](self.draw.below(50)) for maker in chosen]))
        return sums

    def program(self) -> Program:
        """Write phases; the results of each may be read by those after it."""
        wanted: list[int] = []
        for _ in range(self.draw.integer(1, 3)):
            results = self.draw.part(self.phase)
            if self.draw.chance(0.3):
                results = [self.table.row(sp.tanh, (row,)) for row in results]
            self.bank += results
            if self.draw.chance(0.5):
                self.known = results if len(results) > 3 else self.known
            wanted += results if self.draw.chance(0.6) else results[-1:]
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
    arrays = Arrays([("x", np.arange(program.input_count))], [(np.array(wanted), None)])
    placed = np.ravel(evaluate_rolled(place(program, arrays, both.loops, both.sums), [point])[0])
    same = [np.isclose(placed, other, rtol=1e-11, atol=1e-11, equal_nan=True) for other in (got, expected)]
    near_placed = same[0] | same[1]  # a comparison of what is rounded may come out either way
    if near.all() and near_placed.all():
        return ""
    exact = {row: sp.Rational(*float(value).as_integer_ratio()) for row, value in enumerate(point)}
    reference = np.array([float(value) for value in evaluate(program, wanted, exact, "reference")])
    allowed = 1e-9 * np.abs(reference) + 1000 * np.abs(expected - reference)
    near |= np.abs(got - reference) <= allowed
    near_placed |= np.abs(placed - reference) <= allowed
    if not near_placed.all():
        return f"{placed[~near_placed][:3]} where loops are placed, and {got[~near_placed][:3]} between nodes"
    return "" if near.all() else f"{got[~near][:3]} and not {expected[~near][:3]}"


@dataclass
class Case:
    """A program, and the seed of its point and of the loops that are given."""

    program: Program
    seed: int


def make(draw: Draw) -> Case:
    """A random program, its rows in another order sometimes."""
    program = Author(draw).program()
    if not draw.below(3):
        program = shuffled(program, draw.below(SEEDS))
    return Case(program, draw.below(SEEDS))


def loops_of(case: Case) -> int:
    """Compare a program with and without loops; how many there are. AssertionError where numbers differ."""
    program, seed = case.program, case.seed
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
    counted("values")
    if not answer and done:
        counted("values, some loops given")
        again = find_sums(program, inputs, outputs, done, len(program))
        answer = wrong(program, again, done, seed)
    assert not answer, answer
    return len(found.loops)


def check(case: Case) -> str:
    """Compare a program with and without loops; AssertionError where numbers differ."""
    return "with loops" if loops_of(case) else "straight"


written = text.written
read = partial(text.read, Case=Case)
