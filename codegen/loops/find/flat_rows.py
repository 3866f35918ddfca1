"""Flat rows: operands side by side in arrays, so that what is asked of all rows is asked of many at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Head, Rows
from codegen.ir.row_table import Table
from codegen.loops.loop import Nodes

Flags: TypeAlias = NDArray[np.bool_]

MANY = 4096  # rows for which waves are worth it
SHARE = 64  # on average, this part of the rows that are left is in a wave,
SMALL_WAVES = 4  # but for so many
LINKS = 256  # pairs of a long sum
SLOTS = 20  # bits of the table in which equal keys meet


@dataclass(frozen=True, eq=False)
class Flat:
    """The operands of row r are `operands[start[r] : start[r + 1]]`, its head is `heads[codes[r]]`."""

    start: Nodes
    operands: Nodes
    codes: Nodes
    heads: list[Head]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def arity(self) -> Nodes:
        """The number of operands of each row."""
        return np.diff(self.start)

    def parts(self, rows: Nodes) -> tuple[Nodes, Nodes]:
        """Return the operands of some rows side by side, and how many each has."""
        counts = self.start[rows + 1] - self.start[rows]
        places = np.arange(int(counts.sum())) + np.repeat(self.start[rows + 1] - np.cumsum(counts), counts)
        return self.operands[places], counts


def flattened(rows: Rows) -> Flat:
    """Return the operands and heads of rows as arrays.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> flat = flattened(program_from_sympy([x], [sp.sin(x) * x]))
    >>> flat.start, flat.operands, [flat.heads[code].__name__ for code in flat.codes]
    (array([0, 0, 1, 3]), array([0, 0, 1]), ['Symbol', 'sin', 'Mul'])
    """
    return flat_of(rows.heads, rows.operands, leaf_ranges(rows))


def leaf_ranges(rows: Rows) -> Sequence[range]:
    """Return ranges of rows that are known to be leaves of one head."""
    return rows.blocks.leaves if isinstance(rows, Table) else ()


def flat_of(heads: Sequence[Head], operands: Sequence[tuple[int, ...]], leaves: Sequence[range] = ()) -> Flat:
    """Return the operands and heads of rows that are given as lists; ranges of leaves of one head are not read.

    >>> import sympy as sp
    >>> flat = flat_of([sp.Symbol] * 9 + [sp.sin], [()] * 9 + [(4,)], [range(2, 9)])
    >>> flat.start[-3:], flat.operands, len(flat.heads)
    (array([0, 0, 1]), array([4]), 2)
    """
    edges = [0, *(end for block in leaves for end in (block.start, block.stop)), len(operands)]
    between = [slice(*ends) for ends in zip(edges[::2], edges[1::2], strict=True) if ends[0] < ends[1]]
    counts, identities = np.zeros(len(operands), dtype=np.int64), np.empty(len(heads), dtype=np.int64)
    for block in leaves:
        identities[block.start : block.stop] = id(heads[block.start])
    for rows in between:
        size = rows.stop - rows.start
        counts[rows] = np.fromiter(map(len, operands[rows]), np.int64, size)
        identities[rows] = np.fromiter(map(id, heads[rows]), np.int64, size)
    start = np.concatenate([[0], np.cumsum(counts)])
    parts = chain.from_iterable(chain.from_iterable(operands[rows] for rows in between))
    flat = np.fromiter(parts, np.int64, int(start[-1]))
    named = {heads[block.start] for block in leaves}.union(*(heads[rows] for rows in between))
    different = sorted(named, key=id)  # by identity, which is faster than their hash
    codes = np.searchsorted(np.array(list(map(id, different)), dtype=np.int64), identities)
    return Flat(start, flat, codes, different)


def needed(rows: Rows, flat: Flat, wanted: Flags, given: Flags) -> Flags:
    """Return which rows the wanted ones need; what only given ones need is not.

    Where each row is used by a later one, or wanted, all are needed; else they are looked at one by one.
    """
    used = flat.operands if not given.any() else flat.operands[np.repeat(~given[: len(flat)], flat.arity)]
    found = wanted.copy()
    found[used] = True
    if (found[: len(flat)] | given[: len(flat)] | (flat.arity == 0)).all():
        return found
    operands, flags, stop = rows.operands, bytearray(wanted.tobytes()), given.tobytes()
    for row in range(len(operands) - 1, -1, -1):
        if flags[row] and not stop[row]:
            for part in operands[row]:
                flags[part] = 1
    return np.frombuffer(flags, dtype=bool).copy()


def waves(flat: Flat, todo: Flags, late: Flags) -> Iterator[Nodes]:
    """Yield the rows to do in waves: rows whose operands are done; when waves get small, the last one has all others.

    That last wave may have rows that are operands of others in it; rows are in ascending order. What is late is done
    after all waves but that one.

    >>> flat = Flat(np.array([0, 0, 1, 2]), np.array([0, 1]), np.zeros(3, dtype=np.int64), [])
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


def links(flat: Flat, rows: Nodes) -> list[slice]:
    """Return the long stretches of some rows in which each is a pair of something and the row before.

    >>> pairs = np.array([0, 1] + [part for row in range(2, 500) for part in (0, row)])
    >>> flat = Flat(np.concatenate([[0, 0], 2 * np.arange(500)]), pairs, np.zeros(501, dtype=np.int64), [])
    >>> links(flat, np.arange(2, 501))
    [slice(0, 499, None)]
    """
    pair = np.nonzero(flat.arity[rows] == 2)[0]
    linked = np.zeros(len(rows) + 1, dtype=bool)
    operands = flat.operands[flat.start[rows[pair]][:, None] + np.arange(2)]
    linked[pair] = (pair > 0) & (operands == rows[pair - 1][:, None]).any(axis=1)
    edges = np.nonzero(np.diff(linked, prepend=False))[0].reshape(-1, 2)
    return [slice(begin - 1, end) for begin, end in edges.tolist() if end - begin >= LINKS]


def grouped(keys: Nodes) -> tuple[Nodes, Nodes]:
    """Return where each different key is first, and for each key the number of its first one.

    >>> grouped(np.array([7, 9, 7]))
    (array([0, 1]), array([0, 1, 0]))
    """
    mixed = (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - SLOTS)
    slots, table = mixed.astype(np.int64), np.empty(1 << SLOTS, dtype=np.int64)
    table[slots[::-1]] = np.arange(len(keys))[::-1]
    first = table[slots]
    if not (keys[first] == keys).all():  # different keys met in a slot
        _, firsts, numbers = np.unique(keys, return_index=True, return_inverse=True)
        first = firsts[numbers]
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[first] = True
    return np.nonzero(is_first)[0], (np.cumsum(is_first) - 1)[first]


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
