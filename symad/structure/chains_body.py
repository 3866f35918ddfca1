"""From verified repetitions to a Loop: slots, body, carries, and what is needed after it."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import sympy as sp
from sympy.logic.boolalg import Boolean

from codegen.program import Head, Input, Output, Program
from symad.structure.chains_columns import CONSTANT, LITERAL, OPERATION, Columns, Flags
from symad.structure.loop import Loop, LoopCarry, LoopResult, Nodes
from symad.structure.verify_chain import Chain

Part: TypeAlias = tuple[str, int]  # an operand: "row", "read", "carry", "literal", "truth" or "inverse", and a number


def loop_of(columns: Columns, chain: Chain, wanted: Flags) -> Loop | None:
    """Return the loop of a chain; `wanted[i]`: something else than an operation needs operation i.

    None where a truth value would go from one repetition to another or out of the loop: no buffer holds it.
    """
    truth = columns.truth[chain.shape.model : chain.shape.model + chain.shape.period]
    needed = needed_after(columns, chain, wanted)
    carried = chain.shape.producer[chain.shape.carried & (chain.shape.lag > 0)]
    if truth[carried].any() or truth[needed.any(axis=0)].any():
        return None
    return _Writer(columns, chain).loop(needed)


def needed_after(columns: Columns, chain: Chain, wanted: Flags) -> Flags:
    """Return, by repetition and operation of the body, what is needed after the loop."""
    inside = slice(chain.start, chain.stop)
    needed: Flags = (columns.last_use[inside] >= chain.stop) | wanted[inside]
    return needed.reshape(chain.count, chain.shape.period)


class _Writer:
    """A body in the making: slots are numbered first, then rows are written."""

    def __init__(self, columns: Columns, chain: Chain) -> None:
        self.columns, self.chain, self.shape = columns, chain, chain.shape
        self.reads: dict[bytes, Nodes] = {}
        self.carries: dict[tuple[int, bytes], Nodes] = {}  # by producer: initial nodes
        self.truths: dict[
            int, tuple[Part, ...]
        ] = {}  # truth values from before the loop, which the body computes again
        self.heads: list[Head] = []
        self.operands: list[tuple[int, ...]] = []
        self.atoms: dict[int, sp.Basic] = {}
        self.row_of: dict[Part, int] = {}

    def loop(self, needed: Flags) -> Loop:
        """Return the loop; `needed` tells by repetition and operation what is needed after it."""
        parts = [self.part(number) for number in range(len(self.shape.kind))]
        after = np.nonzero(needed.any(axis=0))[0].tolist()
        last = {offset for offset in after if not needed[:-1, offset].any()}
        carried = {producer for (producer, _), initial in self.carries.items() if len(initial) == 1}
        for offset in sorted(last - carried):
            self.carry(offset, self.chain.operands[0, :1])  # never read
        offsets = sorted({*after, *(producer for producer, _ in self.carries)})
        period, nodes = self.shape.period, self.columns.nodes[self.chain.start : self.chain.stop]
        results, carries = [], []
        for number, offset in enumerate(offsets):
            if offset in last:
                results.append(LoopResult(number, "last", nodes[offset - period :][:1]))
            elif offset in after:
                results.append(LoopResult(number, "each", nodes[offset::period]))
        for (producer, _), initial in self.carries.items():
            carries.append(LoopCarry(offsets.index(producer), initial))
        example = tuple(nodes[:period].tolist())
        body = self.body(parts, offsets)
        return Loop(body, self.chain.count, tuple(self.reads.values()), tuple(results), tuple(carries), example=example)

    def part(self, number: int) -> Part:
        """Return what an operand of the body is."""
        column, shape = self.chain.operands[:, number], self.shape
        if shape.carried[number]:
            producer, lag = int(shape.producer[number]), int(shape.lag[number])
            return self.carry(producer, column[:lag]) if lag else ("row", producer)
        if (column == column[0]).all():
            return self.uniform(int(column[0]))
        rows, consumer = self.columns.rows, self.columns.codes[shape.model + shape.consumer[number]]
        if self.columns.heads[consumer] is sp.Mul and all(map(self.is_inverse, column.tolist())):
            return "inverse", self.read(np.array([rows.operands[node][0] for node in column.tolist()]))
        return "read", self.read(column)

    def uniform(self, node: int) -> Part:
        """Return an operand that is one node in all repetitions; a truth value is computed again in the body."""
        if self.columns.kinds[node] in (CONSTANT, LITERAL):
            return "literal", node
        if self.is_inverse(node):
            return "inverse", self.read(np.full(self.chain.count, self.columns.rows.operands[node][0]))
        if not self.is_truth(node):
            return "read", self.read(np.full(self.chain.count, node))
        cone, stack = {node}, [node]
        while stack:
            fresh = {part for part in self.columns.rows.operands[stack.pop()] if self.is_truth(part)} - cone
            cone |= fresh
            stack += fresh
        for row in sorted(cone - self.truths.keys()):
            operands = self.columns.rows.operands[row]
            self.truths[row] = tuple(("truth", p) if p in cone else self.uniform(p) for p in operands)
        return "truth", node

    def is_truth(self, node: int) -> bool:
        """Whether a node is an operation whose value is true or false."""
        return self.columns.kinds[node] == OPERATION and issubclass(self.columns.rows.heads[node], Boolean)

    def is_inverse(self, node: int) -> bool:
        """Whether a node is 1 / v: as a factor of u it is not read, for u / v is rounded only once."""
        rows = self.columns.rows
        is_power = self.columns.kinds[node] == OPERATION and rows.heads[node] is sp.Pow
        return is_power and rows.atoms.get(rows.operands[node][1]) is sp.S.NegativeOne

    def read(self, column: Nodes) -> int:
        """Return the number of the slot that reads a column."""
        self.reads.setdefault(column.tobytes(), column.copy())
        return list(self.reads).index(column.tobytes())

    def carry(self, producer: int, initial: Nodes) -> Part:
        """Return the slot of an operation of the body `len(initial)` repetitions before."""
        self.carries.setdefault((producer, initial.tobytes()), initial.copy())
        return "carry", list(self.carries).index((producer, initial.tobytes()))

    def body(self, parts: list[Part], offsets: list[int]) -> Program:
        """Write the rows of the body; its outputs are the operations at some offsets."""
        slots = [*(("read", k) for k in range(len(self.reads))), *(("carry", k) for k in range(len(self.carries)))]
        for part in slots:
            self.row(part, sp.Symbol, (), sp.Symbol(f"{part[0]}{part[1]}"))
        rows = self.columns.rows
        for node, truths in self.truths.items():
            self.row(("truth", node), rows.heads[node], tuple([self.written(part) for part in truths]))
        edges = np.searchsorted(self.shape.consumer, np.arange(self.shape.period + 1)).tolist()
        heads = [self.columns.heads[code] for code in self.columns.codes[self.shape.model :][: self.shape.period]]
        for offset, head in enumerate(heads):
            operands = tuple([self.written(part) for part in parts[edges[offset] : edges[offset + 1]]])
            pair = len(operands) == 2 and head in (sp.Add, sp.Mul)
            self.row(("row", offset), head, tuple(sorted(operands)) if pair else operands)
        inputs = tuple(Input(f"{kind}{k}", ()) for kind, k in slots)
        outputs = tuple(Output((), (self.row_of["row", offset],)) for offset in offsets)
        return Program(self.heads, self.operands, self.atoms, inputs, outputs, "repetition")

    def written(self, part: Part) -> int:
        """Return the row of an operand; literals and inverses are written when they are first met."""
        kind, number = part
        if part not in self.row_of and kind == "literal":
            atom = self.columns.rows.atoms[number]
            self.row(part, type(atom), (), atom)
        elif part not in self.row_of and kind == "inverse":
            minus_one = next((row for row, atom in self.atoms.items() if atom is sp.S.NegativeOne), None)
            if minus_one is None:
                minus_one = self.row(("minus one", 0), type(sp.S.NegativeOne), (), sp.S.NegativeOne)
            self.row(part, sp.Pow, (self.row_of["read", number], minus_one))
        return self.row_of[part]

    def row(self, part: Part, head: Head, operands: tuple[int, ...], atom: sp.Basic | None = None) -> int:
        """Write a row."""
        self.row_of[part] = len(self.heads)
        self.heads.append(head)
        self.operands.append(operands)
        if atom is not None:
            self.atoms[self.row_of[part]] = atom
        return self.row_of[part]
