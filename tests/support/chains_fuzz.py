"""Random chains in straight lines: whatever is found, the values are the same bits.

`python -m tests.fuzz chains 10000` tries that many programs.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import RowTable
from tests.support import chains_oracle, written as text
from tests.support.draws import SEEDS, Draw
from tests.support.fuzzing import counted

CONSTANTS = (
    sp.Integer(0), sp.Integer(1), sp.Integer(-1), sp.Integer(2), sp.Float(0.5), sp.Float(-0.7), sp.Rational(1, 3),
)  # fmt: skip
UNARY = (sp.sin, sp.cos, sp.tanh, sp.Abs)
Spec = tuple[Any, ...]  # an operand: ("row", j), ("state", s, lag), ("node", n) or ("table", nodes, first, step)


@dataclass
class Body:
    """Operations of a repetition, and which of them are carried: for each state the operation and initial nodes."""

    operations: list[tuple[int, Spec, Spec]] = field(default_factory=list)
    states: list[int] = field(default_factory=list)
    history: list[list[int]] = field(default_factory=list)
    rows: list[list[int]] = field(default_factory=list)  # by repetition


class Author:
    """Writes a random program: straight lines and unrolled loops, one after the other."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.table = RowTable()
        self.inputs = draw.integer(1, 49)
        self.known = [self.table.leaf(sp.Symbol(f"x{k}", real=True)) for k in range(self.inputs)]
        self.tables = [self.known[:]]
        self.wanted: list[int] = []

    def constant(self) -> int:
        return self.table.leaf(self.draw.choice(CONSTANTS))

    def node(self) -> int:
        return self.constant() if self.draw.chance(0.2) else int(self.draw.choice(self.known))

    def write(self, kind: int, a: int, b: int) -> int:
        """Write an operation; sums and products are more frequent than others."""
        if kind < 8:
            return self.table.row(sp.Add if kind < 4 else sp.Mul, (min(a, b), max(a, b)))
        if kind == 8:
            inverse = self.table.row(sp.Pow, (b, self.table.leaf(sp.Integer(-1))))
            return self.table.row(sp.Mul, (min(a, inverse), max(a, inverse)))
        if kind == 9:
            below = self.table.row(sp.StrictLessThan, (a, b))
            return self.table.row(sp.Piecewise, (a, below, b, self.table.leaf(sp.true)))
        if kind == 10:
            return self.table.row(sp.Max, (a, b))
        if kind == 11:
            return self.table.row(sp.Pow, (a, self.table.leaf(sp.Integer(2))))
        return self.table.row(UNARY[kind % len(UNARY)], (a,))

    def straight(self) -> None:
        for _ in range(self.draw.below(6)):
            self.known.append(self.write(self.draw.below(16), self.node(), self.node()))

    def body(self) -> Body:
        """Draw a body; every state has a few initial nodes, for lags of one to three."""
        body = Body()
        size, states = self.draw.integer(1, 9), self.draw.choice((0, 1, 1, 2, 2, 3, 4))
        for offset in range(size):
            specs = [self.spec(offset, states) for _ in range(2)]
            body.operations.append((self.draw.below(16), specs[0], specs[1]))
        for _ in range(states):
            body.states.append(size - 1 - self.draw.below(min(size, 3)))
            body.history.append([self.node() for _ in range(3)])
        return body

    def spec(self, offset: int, states: int) -> Spec:
        """Draw an operand."""
        kinds = ["row"] * (4 if offset else 0) + ["state"] * (5 if states else 0) + ["node", "constants", "table"]
        kind = self.draw.choice(kinds)
        if kind == "row":
            return "row", offset - 1 - self.draw.below(min(offset, 4))
        if kind == "state":
            return "state", self.draw.below(states), self.draw.choice((1, 1, 1, 2, 3))
        if kind == "node":
            return "node", self.node()
        nodes = [self.constant() for _ in range(5)] if kind == "constants" else self.draw.choice(self.tables)
        return "table", nodes, self.draw.below(len(nodes)), self.draw.choice((1, 1, -1, 2))

    def repeat(self, body: Body, number: int) -> None:
        """Write one more repetition."""
        rows: list[int] = []
        for kind, *specs in body.operations:
            a, b = (self.value(body, spec, rows, number) for spec in specs)
            rows.append(self.write(kind, a, b))
        body.rows.append(rows)
        for state, offset in enumerate(body.states):
            body.history[state].append(rows[offset])

    def value(self, body: Body, spec: Spec, rows: list[int], number: int) -> int:
        if spec[0] == "row":
            return rows[spec[1]]
        if spec[0] == "state":
            return body.history[spec[1]][-spec[2]]
        if spec[0] == "node":
            return int(spec[1])
        _, nodes, first, step = spec
        return int(nodes[(first + step * number) % len(nodes)])

    def loop(self) -> None:
        """Write a loop, or two at once; a repetition may be irregular."""
        bodies = [self.body()] + ([self.body()] if self.draw.chance(0.2) else [])
        odd = self.draw.below(60) if self.draw.chance(0.3) else -1
        for number in range(self.draw.integer(6, 69)):
            for body in bodies:
                kept = list(body.operations)
                if number == odd:
                    offset = self.draw.below(len(kept))
                    body.operations[offset] = (0, ("node", self.node()), kept[offset][1])
                self.repeat(body, number)
                body.operations = kept if self.draw.chance(0.7) else body.operations
        for body in bodies:
            columns = [list(column) for column in zip(*body.rows, strict=True)]
            self.tables += [column for column in columns if self.draw.chance(0.3)]
            self.known += [column[-1] for column in columns if self.draw.chance(0.5)] + body.rows[-1][-1:]
            if self.draw.chance(0.2):
                self.wanted += self.draw.choice(columns)
            if self.draw.chance(0.2):
                self.wanted.append(self.draw.choice(self.draw.choice(columns)))

    def program(self) -> Program:
        """Write all, in an order of rows that is sometimes another."""
        for _ in range(self.draw.integer(1, 3)):
            self.draw.part(self.straight)
            self.draw.part(self.loop)
        self.straight()
        self.wanted += self.known[-self.draw.integer(1, 5) :]
        width = self.draw.choice((2.0, 10.0, 1000.0)) if self.draw.chance(0.2) else 0.0
        return self.in_order(self.shuffled(width))

    def in_order(self, order: Sequence[int]) -> Program:
        """Write the rows in an order."""
        row_of = {old: new for new, old in enumerate(order)}
        operands = [tuple(row_of[part] for part in self.table.operands[old]) for old in order]
        atoms = {row_of[old]: atom for old, atom in self.table.atoms.items()}
        outputs = (Output((len(self.wanted),), tuple(row_of[node] for node in self.wanted)),)
        heads = [self.table.heads[old] for old in order]
        return Program(heads, operands, atoms, (Input("x", (self.inputs,)),), outputs)

    def shuffled(self, width: float) -> list[int]:
        """Return another order of rows: each may come up to `width` rows later."""
        operands, count = self.table.operands, len(self.table)
        key = np.arange(count) + (self.draw.generator().uniform(0, width, count) if width else 0.0)
        key[: self.inputs] = -1
        readers: list[list[int]] = [[] for _ in range(count)]
        missing = [len(set(parts)) for parts in operands]
        for row, parts in enumerate(operands):
            for part in set(parts):
                readers[part].append(row)
        ready = [(float(key[row]), row) for row in range(count) if not missing[row]]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            order.append(heapq.heappop(ready)[1])
            for reader in readers[order[-1]]:
                missing[reader] -= 1
                if not missing[reader]:
                    heapq.heappush(ready, (float(key[reader]), reader))
        return order


@dataclass
class Case:
    """A program, and the seed of its point."""

    program: Program
    seed: int


def make(draw: Draw) -> Case:
    """A random program."""
    return Case(Author(draw).program(), draw.below(SEEDS))


def part_in_loops(case: Case) -> float:
    """Compare a program with and without loops; return the part of it that is in loops."""
    return chains_oracle.check(case.program, chains_oracle.found(case.program), case.seed)


def check(case: Case) -> str:
    """Compare a program with and without loops; AssertionError where bits differ."""
    counted("values")
    return "with loops" if part_in_loops(case) else "straight"


written = text.written
read = partial(text.read, Case=Case)
