"""Turn verified repetitions into a loop: slots, body, carries and live-out values.

Before that, repetitions get their simplest form: few slots, and columns with one source each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray
from sympy.logic.boolalg import Boolean

from codegen.ir.copy_rows import body_of
from codegen.ir.program import Head, Program
from codegen.ir.row_table import RowTable
from codegen.loops.find.chains_columns import CONSTANT, LITERAL, OPERATION, OperationColumns
from codegen.loops.find.flat_rows import Flags
from codegen.loops.find.verify_chain import Chain, passed_on
from codegen.loops.loop import Loop, LoopCarry, LoopResult, Nodes

KEPT = 0.9  # smallest part of a chain that may be left by `apart`


def apart(columns: OperationColumns, chains: Sequence[Chain]) -> list[Chain]:
    """Shorten chains, given in order, so that a column is computed in one loop or in straight lines, but not in both.

    A column of both would have to be gathered first. Chains of which too little would be left stay as they are.
    """
    owner, numbers = np.full(len(columns), -1), 0
    shortened = []
    for chain in chains:
        reads = np.nonzero(~chain.shape.carried & (chain.shape.kind == OPERATION))[0]
        alike = _longest_alike(chain, owner[columns.place[chain.operands[:, reads]]])
        chain = alike if alike.count >= KEPT * chain.count else chain
        period = chain.shape.period
        owner[chain.start : chain.stop] = numbers + np.tile(np.arange(period), chain.count)
        numbers += period
        shortened.append(chain)
    return shortened


def divided(columns: OperationColumns, chain: Chain) -> Chain:
    """Shorten a chain so that a factor is 1 / v in all repetitions or in none: u / v is rounded only once."""
    heads = np.array([head is sp.Mul for head in columns.heads])
    factors = heads[columns.codes[chain.shape.model + chain.shape.consumer]]
    place = columns.place[chain.operands[:, factors]]
    return _longest_alike(chain, columns.inverse[place] & (place >= 0))


def _longest_alike(chain: Chain, features: NDArray[Any]) -> Chain:
    """Return the longest part of a chain whose repetitions have the same features."""
    breaks = np.nonzero((features[1:] != features[:-1]).any(axis=1))[0] + 1
    edges = np.concatenate([[0], breaks, [chain.count]])
    longest = int(np.argmax(np.diff(edges)))
    return chain.part(int(edges[longest]), int(edges[longest + 1]))


def aligned(chain: Chain) -> Chain:
    """Turn pairs so that an operand that is the same in all repetitions is on one side, and carries begin alike."""
    chain = replace(chain, operands=chain.operands.copy())
    shape, operands = chain.shape, chain.operands
    reads = ~shape.carried
    for left in shape.left[reads[shape.left] | reads[shape.left + 1]].tolist():
        for read, other in ((left, left + 1), (left + 1, left)):
            value = operands[-1, read]
            if not reads[read] or (operands[:, read] == value).all():
                continue
            count = shape.lag[other] if shape.carried[other] else chain.count
            turned = np.nonzero(operands[:count, read] != value)[0]
            if (operands[turned, other] == value).all() and (operands[count:, read] == value).all():
                operands[turned, other], operands[turned, read] = operands[turned, read], operands[turned, other]
    _align_initial(chain)
    return chain


def _align_initial(chain: Chain) -> None:
    """Turn pairs of carries so that carries of one operation begin with the same nodes, where they can."""
    shape, operands = chain.shape, chain.operands
    waits = shape.carried & (shape.lag > 0)
    both = shape.left[waits[shape.left] & waits[shape.left + 1]]
    alone = np.setdiff1d(np.nonzero(waits)[0], np.concatenate([both, both + 1]))
    known: dict[tuple[int, int], int] = {}  # by operation of the body, and repetitions before the first one
    for column in [*alone.tolist(), *both.tolist()]:
        pair = [column, column + 1] if column in both else [column]
        for k in range(int(shape.lag[pair].min())):
            places = [(int(shape.producer[e]), int(shape.lag[e]) - k) for e in pair]
            nodes = [int(operands[k, e]) for e in pair]
            wrong = [known.get(place) == node for place, node in zip(places, nodes[::-1], strict=True)]
            if len(set(nodes)) == 2 and any(wrong):
                nodes.reverse()
                operands[k, pair] = nodes
            for place, node in zip(places, nodes, strict=True):
                known.setdefault(place, node)


READ, RECOMPUTED = -1, -2  # instead of a producer
Part: TypeAlias = tuple[str, int]  # an operand: "row", "read", "carry", "literal" or "recomputed", and a number


def loop_of(columns: OperationColumns, chain: Chain) -> Loop | None:
    """Return the loop of a chain; None where a truth value would be carried or a result: no buffer holds these."""
    shape, needed = chain.shape, passed_on(columns, chain)
    truth = columns.truth[shape.model : shape.model + shape.period]
    if truth[shape.producer[shape.carried & (shape.lag > 0)]].any() or truth[needed.any(axis=0)].any():
        return None
    return _ChainBodyWriter(columns, chain).loop(needed)


class _ChainBodyWriter:
    """A body under construction: slots are numbered first, then rows are written."""

    def __init__(self, columns: OperationColumns, chain: Chain) -> None:
        self.columns, self.chain, self.shape = columns, chain, chain.shape
        self.producer = chain.shape.producer
        self.reads: dict[bytes, Nodes] = {}
        self.carries: dict[tuple[int, bytes], Nodes] = {}  # by producer: initial nodes
        self.numbers: dict[tuple[int, bytes], int] = {}  # of slots and of recomputed operations
        self.recomputed: dict[bytes, tuple[Head, list[Part]]] = {}  # operations from before the loop
        self.whole = True
        self.table = RowTable()
        self.row_of: dict[Part, int] = {}

    def loop(self, needed: Flags) -> Loop | None:
        """Return the loop; `needed` are the values, by repetition and operation, that are needed after it."""
        after = np.nonzero(needed.any(axis=0))[0].tolist()
        parts = self.parts(after)
        if not self.whole:
            return None
        last = {offset for offset in after if not needed[:-1, offset].any()}
        carried = {producer for (producer, _), initial in self.carries.items() if len(initial) == 1}
        for offset in sorted(last - carried):
            self.carry(offset, next(iter(self.carries.values()))[:1])  # never read
        offsets = sorted({*after, *(producer for producer, _ in self.carries)})
        number = {offset: k for k, offset in enumerate(offsets)}
        carries = (LoopCarry(number[producer], initial) for (producer, _), initial in self.carries.items())
        period, nodes = self.shape.period, self.columns.nodes[self.chain.start : self.chain.stop]
        results = (
            LoopResult(number[offset], "last", nodes[offset - period :][:1])
            if offset in last
            else LoopResult(number[offset], "each", nodes[offset::period])
            for offset in after
        )
        slots = tuple(self.reads.values()), tuple(results), tuple(carries)
        return Loop(self.body(parts, offsets), self.chain.count, *slots, example=tuple(nodes[:period].tolist()))

    def parts(self, after: list[int]) -> dict[int, list[Part]]:
        """Return the operands of the needed operations, by offset; not of operations that all readers recompute."""
        edges = np.searchsorted(self.shape.consumer, np.arange(self.shape.period + 1)).tolist()
        alive, left = set(after), list(after)
        while left:
            offset = left.pop()
            read = set[int]().union(*map(self.needs, range(*edges[offset : offset + 2]))) - alive
            alive |= read
            left += read
        return {
            offset: [self.part(number) for number in range(*edges[offset : offset + 2])] for offset in sorted(alive)
        }

    def needs(self, number: int) -> set[int]:
        """Return the operation of the body that an operand needs, if any."""
        if self.inverse_before(number):
            number = int(np.searchsorted(self.shape.consumer, self.producer[number]))  # v of 1 / v
        return {int(self.producer[number])} if self.shape.carried[number] else set()

    def is_factor(self, number: int) -> bool:
        return self.columns.heads[self.columns.codes[self.shape.model + self.shape.consumer[number]]] is sp.Mul

    def inverse_before(self, number: int) -> bool:
        """Whether an operand is the factor 1 / v of a repetition before."""
        later = self.shape.carried[number] and self.shape.lag[number] and self.is_factor(number)
        return bool(later and self.columns.inverse[self.shape.model + self.producer[number]])

    def part(self, number: int) -> Part:
        column, shape = self.chain.operands[:, number], self.shape
        if shape.carried[number]:
            producer, lag = int(self.producer[number]), int(shape.lag[number])
            if self.inverse_before(number):
                return self.carried_inverse(producer, column[:lag])
            return self.carry(producer, column[:lag]) if lag else ("row", producer)
        if self.is_truth(column) or (self.is_factor(number) and self.is_inverse(column)):
            return self.repeated(column)
        return self.outside(column)

    def carried_inverse(self, producer: int, initial: Nodes) -> Part:
        """Return 1 / v of `len(initial)` repetitions before: v is carried, and the body recomputes 1 / v."""
        shape, operands = self.shape, self.chain.operands
        base = int(np.searchsorted(shape.consumer, producer))
        bases = np.array([self.columns.rows.operands[node][0] for node in initial.tolist()])
        if shape.carried[base]:
            first = np.concatenate([bases, operands[: shape.lag[base], base]])
            slot = self.carry(int(self.producer[base]), first)
        else:
            slot = self.outside(np.concatenate([bases, operands[: -len(bases), base]]))
        key = str(slot).encode()
        self.recomputed.setdefault(key, (sp.Pow, [slot, ("literal", int(operands[0, base + 1]))]))
        return "recomputed", self.numbers.setdefault((RECOMPUTED, key), len(self.recomputed) - 1)

    def outside(self, column: Nodes) -> Part:
        """Return an operand that is from before the loop."""
        kinds = self.columns.kinds[column]
        if (column == column[0]).all() and kinds[0] in (CONSTANT, LITERAL):
            return "literal", int(column[0])
        operations = np.unique(column[kinds == OPERATION]).tolist()
        truth = any(issubclass(self.columns.rows.heads[node], Boolean) for node in operations)
        self.whole &= not truth and not (kinds == LITERAL).any()
        return "read", self.read(column)

    def repeated(self, column: Nodes) -> Part:
        """Return an operand that the body recomputes: a truth value, whose operands are read, or 1 / v."""
        rows, columns = self.columns.rows, [column]
        parts: list[list[Nodes]] = []
        for row in columns:  # grows
            parts.append(list(np.array([rows.operands[node] for node in row.tolist()], dtype=np.int64).T.copy()))
            columns += [operand for operand in parts[-1] if self.is_truth(operand)]
        for row, operands in zip(columns[::-1], parts[::-1], strict=True):
            places = [self.place_of(operand) for operand in operands]
            self.recomputed.setdefault(row.tobytes(), (rows.heads[row[0]], places))
            self.numbers.setdefault((RECOMPUTED, row.tobytes()), len(self.recomputed) - 1)
        return self.place_of(column)

    def place_of(self, column: Nodes) -> Part:
        """Return an operand of a recomputed operation."""
        number = self.numbers.get((RECOMPUTED, column.tobytes()))
        return self.outside(column) if number is None else ("recomputed", number)

    def is_truth(self, column: Nodes) -> bool:
        """Whether nodes are operations of one head whose values are true or false."""
        rows, head = self.columns.rows, self.columns.rows.heads[column[0]]
        if self.columns.kinds[column[0]] != OPERATION or not issubclass(head, Boolean):
            return False
        count = len(rows.operands[column[0]])
        return all(rows.heads[node] is head and len(rows.operands[node]) == count for node in column.tolist())

    def is_inverse(self, column: Nodes) -> bool:
        """Whether nodes are 1 / v: as factors of u they are recomputed, because u / v is rounded only once."""
        place = self.columns.place[column]
        return bool((self.columns.inverse[place] & (place >= 0)).all())

    def read(self, column: Nodes) -> int:
        self.reads.setdefault(column.tobytes(), column.copy())
        return self.numbers.setdefault((READ, column.tobytes()), len(self.reads) - 1)

    def carry(self, producer: int, initial: Nodes) -> Part:
        """Return the slot of an operation of the body `len(initial)` repetitions before."""
        self.carries.setdefault((producer, initial.tobytes()), initial.copy())
        return "carry", self.numbers.setdefault((producer, initial.tobytes()), len(self.carries) - 1)

    def body(self, parts: dict[int, list[Part]], offsets: list[int]) -> Program:
        """Write the rows of the body; its outputs are the operations at some offsets."""
        slots = [*(("read", k) for k in range(len(self.reads))), *(("carry", k) for k in range(len(self.carries)))]
        for part in slots:
            self.row_of[part] = self.table.leaf(sp.Symbol(f"{part[0]}{part[1]}"))
        for number, (head, operands) in enumerate(self.recomputed.values()):
            row = self.table.canonical(head, tuple([self.written(part) for part in operands]))
            self.row_of["recomputed", number] = row
        for offset, operands in parts.items():
            head = self.columns.heads[self.columns.codes[self.shape.model + offset]]
            self.row_of["row", offset] = self.table.canonical(head, tuple([self.written(part) for part in operands]))
        outputs = (self.row_of["row", offset] for offset in offsets)
        return body_of(self.table, (f"{kind}{k}" for kind, k in slots), outputs, "repetition")

    def written(self, part: Part) -> int:
        """Return the row of an operand; a literal is written when it is first met."""
        if part not in self.row_of:
            self.row_of[part] = self.table.leaf(self.columns.rows.atoms[part[1]])
        return self.row_of[part]
