"""The operands of many rows side by side in arrays, for questions about all rows at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Head, Rows
from codegen.ir.row_table import RowTable
from codegen.loops.loop import Nodes, joined
from codegen.records import dataclass

Flags: TypeAlias = NDArray[np.bool_]

MANY = 4096  # rows from which on waves pay off
SHARE = 64  # on average, a wave has at least this part of the remaining rows,
SMALL_WAVES = 4  # except for a few small waves


@dataclass(frozen=True, eq=False)
class FlatRows:
    """The operations among some rows: row `rows[k]` has the head `heads[kinds[k]]` and `counts[k]` of the operands.

    All other rows are leaves, of which whole arrays have many: arrays of that length are made only when asked for.
    """

    size: int
    rows: Nodes
    counts: Nodes
    operands: Nodes
    kinds: Nodes
    heads: list[Head]
    stretches: list[tuple[range, Nodes | int]]  # of rows, with the codes of their heads: one for all, or one for each

    def __len__(self) -> int:
        return self.size

    @cached_property
    def is_operation(self) -> Flags:
        """Flags of all rows that are operations."""
        flags = np.zeros(self.size, dtype=bool)
        flags[self.rows] = True
        return flags

    @cached_property
    def arity(self) -> Nodes:
        """The number of operands of each row."""
        counts = np.zeros(self.size, dtype=np.int64)
        counts[self.rows] = self.counts
        return counts

    @cached_property
    def start(self) -> Nodes:
        """The place of the first operand of each row."""
        return np.concatenate([[0], np.cumsum(self.arity)])

    @cached_property
    def codes(self) -> Nodes:
        """Codes of the heads: the head of a row is `heads[codes[row]]`."""
        codes_of_rows = np.empty(self.size, dtype=np.int64)
        for rows, codes in self.stretches:
            codes_of_rows[rows.start : rows.stop] = codes
        return codes_of_rows

    def has_head(self, *heads: Head) -> Flags:
        """Return which operations have one of these heads."""
        return np.array([head in heads for head in self.heads], dtype=bool)[self.kinds]

    def without(self, rows: Sequence[int]) -> FlatRows:
        """Return the same with some operations, which nothing reads, as leaves."""
        kept = ~np.isin(self.rows, rows)
        operands = self.operands[np.repeat(kept, self.counts)]
        return replace(self, rows=self.rows[kept], counts=self.counts[kept], operands=operands, kinds=self.kinds[kept])

    def parts(self, rows: Nodes) -> tuple[Nodes, Nodes]:
        """Return the operands of some rows side by side, and how many each has."""
        counts = self.start[rows + 1] - self.start[rows]
        places = np.arange(int(counts.sum())) + np.repeat(self.start[rows + 1] - np.cumsum(counts), counts)
        return self.operands[places], counts


def flattened(rows: Rows) -> FlatRows:
    """Return the operations among rows as arrays.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> flat = flattened(program_from_sympy([x], [sp.sin(x) * x]))
    >>> flat.rows, flat.counts, flat.operands, [flat.heads[kind].__name__ for kind in flat.kinds]
    (array([1, 2]), array([1, 2]), array([0, 0, 1]), ['sin', 'Mul'])
    """
    return flat_of(rows.heads, rows.operands, leaf_ranges(rows))


def leaf_ranges(rows: Rows) -> Sequence[range]:
    """Return ranges of rows that are known to be leaves."""
    return rows.blocks.leaves if isinstance(rows, RowTable) else ()


def flat_of(heads: Sequence[Head], operands: Sequence[tuple[int, ...]], leaves: Sequence[range] = ()) -> FlatRows:
    """Return the operations among rows in lists; rows in the ranges of leaves are not read.

    >>> import sympy as sp
    >>> flat = flat_of([sp.Symbol] * 9 + [sp.sin], [()] * 9 + [(4,)], [range(2, 9)])
    >>> flat.rows, flat.operands, len(flat)
    (array([9]), array([4]), 10)
    """
    edges = [0, *(end for block in leaves for end in (block.start, block.stop)), len(operands)]
    between = [range(*ends) for ends in zip(edges[::2], edges[1::2], strict=True) if ends[0] < ends[1]]
    inside = [slice(rows.start, rows.stop) for rows in between]
    arity = [np.fromiter(map(len, operands[rows]), np.int64, rows.stop - rows.start) for rows in inside]
    some = [np.flatnonzero(counts) for counts in arity]
    counts = joined(numbers[chosen] for numbers, chosen in zip(arity, some, strict=True))
    parts = chain.from_iterable(chain.from_iterable(operands[rows] for rows in inside))
    flat = np.fromiter(parts, np.int64, int(counts.sum()))
    named = {heads[block.start] for block in leaves}.union(*(heads[rows] for rows in inside))
    different = sorted(named, key=id)  # by identity, which is faster than their hash
    known = np.array(list(map(id, different)), dtype=np.int64)
    codes = [
        np.searchsorted(known, np.fromiter(map(id, heads[rows]), np.int64, rows.stop - rows.start)) for rows in inside
    ]
    stretches: list[tuple[range, Nodes | int]] = list(zip(between, codes, strict=True))
    stretches += [(block, int(np.searchsorted(known, id(heads[block.start])))) for block in leaves]
    rows = joined(chosen + first.start for chosen, first in zip(some, between, strict=True))
    kinds = joined(numbers[chosen] for numbers, chosen in zip(codes, some, strict=True))
    return FlatRows(len(operands), rows, counts, flat, kinds, different, stretches)


def needed(flat: FlatRows, targets: Flags, known: Flags) -> Flags:
    """Return flags of the rows that target rows need; known rows need nothing. Fast where all are needed."""
    stop = known[flat.rows]
    is_needed = targets.copy()
    is_needed[flat.operands if not stop.any() else flat.operands[np.repeat(~stop, flat.counts)]] = True
    if (is_needed[flat.rows] | stop).all():
        return is_needed
    flags, ends = bytearray(targets.tobytes()), np.cumsum(flat.counts)
    left = ~stop
    rows, begins, stops = (column[left].tolist()[::-1] for column in (flat.rows, ends - flat.counts, ends))
    operands = flat.operands.tolist()
    for row, begin, end in zip(rows, begins, stops, strict=True):
        if flags[row]:
            for part in operands[begin:end]:
                flags[part] = 1
    return np.frombuffer(flags, dtype=bool).copy()


def waves(flat: FlatRows, todo: Flags, late: Flags) -> Iterator[Nodes]:
    """Yield rows in waves: a row comes after its operands; when waves get small, the last one has all other rows.

    In the last wave rows may be operands of others; they are in ascending order. Rows that need late ones are in it.

    >>> import sympy as sp
    >>> flat = flat_of([sp.Symbol, sp.sin, sp.sin], [(), (0,), (1,)])
    >>> [wave.tolist() for wave in waves(flat, np.array([False, True, True]), np.zeros(3, dtype=bool))]
    [[1, 2]]
    """
    done, rows = ~(todo | late), np.nonzero(todo)[0]
    parts, counts = flat.parts(rows)
    effort = SMALL_WAVES * len(rows)
    while len(rows) >= MANY:
        ready = np.logical_and.reduceat(done[parts], np.cumsum(counts) - counts)
        wave = rows[ready]
        effort = min(effort + SHARE * len(wave), SMALL_WAVES * len(rows)) - len(rows)
        if effort < 0:
            break
        yield wave
        done[wave] = True
        parts, counts, rows = parts[np.repeat(~ready, counts)], counts[~ready], rows[~ready]
    yield rows


def grouped(keys: Nodes) -> tuple[Nodes, Nodes]:
    """Return where each different key is first, and for each key the number of its first one.

    >>> grouped(np.array([7, 9, 7]))
    (array([0, 1]), array([0, 1, 0]))
    """
    _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(firsts)
    return firsts[order], np.argsort(order)[numbers]


def packed(columns: list[Nodes]) -> Nodes:
    """Return a number for each row of some columns of numbers >= 0, the same for equal rows only.

    >>> packed([np.array([1, 2, 1]), np.array([5, 0, 5])]).tolist()
    [11, 12, 11]
    """
    keys, largest = columns[0], int(columns[0].max(initial=0))
    for column in columns[1:]:
        size = int(column.max(initial=0)) + 1
        if (largest + 1) * size >= 1 << 62:
            keys = grouped(keys)[1]
            largest = int(keys.max(initial=0))
        keys, largest = keys * size + column, (largest + 1) * size
    return keys
