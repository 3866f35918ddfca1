"""Random chains in straight lines: whatever is found, the values are the same bits.

`python -m tests.support.chains_fuzz 10000` tries that many programs and prints those that fail.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import Table
from tests.support.chains_oracle import check, found

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

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.table = Table()
        self.inputs = int(self.random.integers(1, 50))
        self.known = [self.table.leaf(sp.Symbol(f"x{k}", real=True)) for k in range(self.inputs)]
        self.tables = [self.known[:]]
        self.wanted: list[int] = []

    def chance(self, probability: float) -> bool:
        return bool(self.random.random() < probability)

    def pick(self, some: Sequence[Any]) -> Any:
        return some[int(self.random.integers(len(some)))]

    def constant(self) -> int:
        return self.table.leaf(self.pick(CONSTANTS))

    def node(self) -> int:
        return self.constant() if self.chance(0.2) else int(self.pick(self.known))

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
        for _ in range(int(self.random.integers(0, 6))):
            self.known.append(self.write(int(self.random.integers(16)), self.node(), self.node()))

    def body(self) -> Body:
        """Draw a body; every state has a few initial nodes, for lags of one to three."""
        body = Body()
        size, states = int(self.random.integers(1, 10)), int(self.random.choice((0, 1, 1, 2, 2, 3, 4)))
        for offset in range(size):
            specs = [self.spec(offset, states) for _ in range(2)]
            body.operations.append((int(self.random.integers(16)), specs[0], specs[1]))
        for _ in range(states):
            body.states.append(size - 1 - int(self.random.integers(min(size, 3))))
            body.history.append([self.node() for _ in range(3)])
        return body

    def spec(self, offset: int, states: int) -> Spec:
        """Draw an operand."""
        kinds = ["row"] * (4 if offset else 0) + ["state"] * (5 if states else 0) + ["node", "constants", "table"]
        kind = self.pick(kinds)
        if kind == "row":
            return "row", offset - 1 - int(self.random.integers(min(offset, 4)))
        if kind == "state":
            return "state", int(self.random.integers(states)), self.pick((1, 1, 1, 2, 3))
        if kind == "node":
            return "node", self.node()
        nodes = [self.constant() for _ in range(5)] if kind == "constants" else self.pick(self.tables)
        return "table", nodes, int(self.random.integers(len(nodes))), self.pick((1, 1, -1, 2))

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
        bodies = [self.body()] + ([self.body()] if self.chance(0.2) else [])
        odd = int(self.random.integers(60)) if self.chance(0.3) else -1
        for number in range(int(self.random.integers(6, 70))):
            for body in bodies:
                kept = list(body.operations)
                if number == odd:
                    offset = int(self.random.integers(len(kept)))
                    body.operations[offset] = (0, ("node", self.node()), kept[offset][1])
                self.repeat(body, number)
                body.operations = kept if self.chance(0.7) else body.operations
        for body in bodies:
            columns = [list(column) for column in zip(*body.rows, strict=True)]
            self.tables += [column for column in columns if self.chance(0.3)]
            self.known += [column[-1] for column in columns if self.chance(0.5)] + body.rows[-1][-1:]
            if self.chance(0.2):
                self.wanted += self.pick(columns)
            if self.chance(0.2):
                self.wanted.append(self.pick(self.pick(columns)))

    def program(self) -> Program:
        """Write all, in an order of rows that is sometimes another."""
        for _ in range(int(self.random.integers(1, 4))):
            self.straight()
            self.loop()
        self.straight()
        self.wanted += self.known[-int(self.random.integers(1, 6)) :]
        width = self.pick((2.0, 10.0, 1000.0)) if self.chance(0.2) else 0.0
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
        key = np.arange(count) + self.random.uniform(0, width, count)
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


def try_one(seed: int) -> float:
    """Compare a random program with and without loops; return the part of it that is in loops."""
    program = Author(seed).program()
    return check(program, found(program), seed)


def main() -> None:
    """Try as many programs as the first argument says, from the seed of the second on."""
    count, first = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    parts, wrong = [], 0
    for seed in range(first, first + count):
        try:
            parts.append(try_one(seed))
        except Exception as error:
            wrong += 1
            print(f"seed {seed}: {type(error).__name__} {error}")
    print(f"{count} programs, {wrong} wrong; loops in {np.count_nonzero(parts)}, {np.mean(parts):.0%} of operations")


if __name__ == "__main__":
    main()
