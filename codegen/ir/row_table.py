"""A table that keeps each row once. Programs under construction and symad's graph are such tables."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from threading import Lock
from typing import Any, ClassVar

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.errors import LimitError
from codegen.heads import Alias
from codegen.ir.program import Head, atom_key
from codegen.ir.row_blocks import Column, RowBlocks, bounds, first_of_each, rows_between, rows_of
from codegen.limits import EVERY, check

COMMUTATIVE = frozenset({sp.Add, sp.Mul, sp.Max, sp.Min, sp.And, sp.Or, sp.Xor})


class RowTable:
    """Growing columns `heads`, `operands`, `atoms`; equal rows are one row. Threads may add to one table.

    >>> table = RowTable()
    >>> x = table.leaf(sp.Symbol("x"))
    >>> table.row(sp.sin, (x,)) == table.row(sp.sin, (x,))
    True
    """

    most: ClassVar[int] = sys.maxsize  # rows

    __slots__ = ("_leaves", "_lock", "_memo", "atoms", "blocks", "heads", "operands")

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.operands: list[tuple[int, ...]] = []
        self.atoms: dict[int, sp.Basic] = {}
        self._memo: defaultdict[Head, dict[tuple[int, ...], int]] = defaultdict(dict)  # rows by their operands
        self._leaves: dict[object, int] = {}
        self.blocks: RowBlocks = RowBlocks()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.heads)

    def row(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return the row `head(*operands)`, as written."""
        known = self._memo[head].get(operands)
        return self._append(self._memo[head], operands, head, operands) if known is None else known

    def known(self, head: Head, *operands: int) -> int | None:
        """Return the row `head(*operands)`, None if there is none."""
        return self._memo[head].get(operands)

    def pair(self, head: Head, left: int, right: int) -> int:
        """Return `head(left, right)` for a commutative head, with the two operands sorted (bitwise the same value)."""
        operands = (left, right) if left <= right else (right, left)
        memo = self._memo[head]
        known = memo.get(operands)
        return self._append(memo, operands, head, operands) if known is None else known

    def canonical(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return the row `head(*operands)`; of a commutative head, a pair is sorted, and longer sums are not.

        >>> table = RowTable()
        >>> x, y = (table.leaf(sp.Symbol(name)) for name in "xy")
        >>> table.canonical(sp.Add, (y, x)) == table.row(sp.Add, (x, y)), table.canonical(sp.Pow, (y, x))
        (True, 3)
        """
        if len(operands) == 2 and operands[0] > operands[1] and head in COMMUTATIVE:
            operands = operands[::-1]
        return self.row(head, operands)

    def pairs_alone(
        self, heads: Sequence[Head], operands: Sequence[tuple[int, ...]], order: Iterable[int], row_of: dict[int, int],
        *, as_written: bool = False,
    ) -> Iterator[int]:  # fmt: skip
        """Copy rows of two operands, as `canonical` or `row` would, and yield the others, which the caller copies.

        No other thread may know the table: the lock is not taken. New rows are entered into `row_of`; rows in it are
        not copied.
        """
        if self.blocks.waiting:  # blocks may have equal rows
            yield from order
            return
        own_heads, own_operands, memo = self.heads, self.operands, self._memo
        new = len(own_heads)
        for row in order:
            if row in row_of:
                continue
            parts = operands[row]
            if len(parts) != 2 or (head := heads[row]) is Alias:
                yield row
                new = len(own_heads)
                continue
            left, right = parts
            left, right = row_of[left], row_of[right]
            pair = (right, left) if left > right and not as_written and head in COMMUTATIVE else (left, right)
            copy = row_of[row] = memo[head].setdefault(pair, new)
            if copy == new:
                if not new % EVERY:
                    check("writing operations", own_heads)
                own_heads.append(head)
                own_operands.append(pair)
                new += 1

    def leaf(self, atom: sp.Basic) -> int:
        """Return the leaf of a SymPy atom; Floats are told apart by value and precision."""
        key = atom_key(atom)
        known = self._leaves.get(key)
        return self._append(self._leaves, key, type(atom), (), atom) if known is None else known

    def has(self, atom: sp.Basic) -> bool:
        """Whether an atom that is not a Float is a leaf already."""
        return (type(atom), atom) in self._leaves

    def rows(self, head: Head, columns: Sequence[Column]) -> NDArray[np.int64]:
        """Return the rows `head(*operands)` of many operands at once, given as columns; one of them is an array.

        >>> table = RowTable()
        >>> x, y = (table.leaf(sp.Symbol(name)) for name in "xy")
        >>> table.rows(sp.Add, [np.array([x, y, x]), y])
        array([2, 3, 2])
        >>> table.row(sp.Add, (y, y)), table.operands
        (3, [(), (), (0, 1), (1, 1)])
        """
        with self._lock:
            newest = np.maximum.reduce(np.broadcast_arrays(*columns))
            known = self._known(head, columns, newest)
            if known is None:
                return self._add_rows(head, columns)
            new = np.nonzero(known < 0)[0]
            if len(new):
                known[new] = self._add_rows(head, [c if isinstance(c, int) else c[new] for c in columns])
            return known

    def chain(self, head: Head, first: NDArray[np.int64], terms: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the rows `head(terms[k], row above)`, of which `first` are those above the first ones.

        None unless those are of this head, and the last ones of the table: then all others are new.

        >>> table = RowTable()
        >>> x, y = (table.leaf(sp.Symbol(name)) for name in "xy")
        >>> first = table.rows(sp.Add, [np.array([x]), y])
        >>> table.chain(sp.Add, first, np.array([[x], [y]])).tolist(), table.operands
        ([[3], [4]], [(), (), (0, 1), (0, 2), (1, 3)])
        """
        with self._lock:
            start = len(self.heads)
            above = np.arange(start - len(first), start - len(first) + terms.size)
            heads = set(rows_between(self.heads, start - len(first), start))
            if not np.array_equal(first, above[: len(first)]) or heads != {head}:
                return None
            return self._add_rows(head, [terms.ravel(), above]).reshape(terms.shape)

    def _known(self, head: Head, columns: Sequence[Column], newest: NDArray[np.int64]) -> NDArray[np.int64] | None:
        """Return the known rows, -1 for the others; None where all are new."""
        self.blocks.scan(self.heads)
        for start, stop in self.blocks.overlapping(head, int(newest.min()), *bounds(columns)):
            self._enter(head, start, stop)
        old = np.nonzero(newest < self.blocks.latest.get(head, -1))[0]
        if not len(old):
            return None
        keys = rows_of([c if isinstance(c, int) else c[old] for c in columns])
        known = np.full(len(newest), -1)
        known[old] = np.fromiter(map(self._memo[head].get, keys, repeat(-1)), np.int64, len(old))
        return known

    def _add_rows(self, head: Head, columns: Sequence[Column]) -> NDArray[np.int64]:
        """Add new rows."""
        start, several = len(self.heads), first_of_each(columns)
        if several is not None:
            columns = [c if isinstance(c, int) else c[several[0]] for c in columns]
        self.operands += rows_of(columns)
        count = len(self.operands) - start
        self.heads += [head] * count
        self.blocks.add(head, start, start + count, columns)
        self.blocks.scanned = start + count
        check("writing operations", self.heads)
        return start + (np.arange(count) if several is None else several[1])

    def _enter(self, head: Head, start: int, stop: int) -> None:
        self._memo[head].update(zip(rows_between(self.operands, start, stop), range(start, stop), strict=True))

    def _append(
        self, memo: dict[Any, int] | None, key: object, head: Head, operands: tuple[int, ...],
        atom: sp.Basic | None = None,
    ) -> int:  # fmt: skip
        """Add a row unless its key is in the memo; without a memo it is never merged with another."""
        with self._lock:
            heads, blocks = self.heads, self.blocks
            if memo is not None:
                known = memo.get(key)
                if known is None and head in blocks.waiting and operands:
                    for start, stop in blocks.one_more(head, max(operands), operands):
                        self._enter(head, start, stop)
                    known = self._memo[head].get(operands)
                if known is not None:
                    return known
            row = len(heads)
            if row - blocks.elements >= self.most:
                raise self._too_many()
            if not row % EVERY:
                check("writing operations", heads)
            heads.append(head)
            self.operands.append(operands)
            if atom is not None:
                self.atoms[row] = atom
            if memo is not None:
                memo[key] = row  # last: a key in the memo has its row
            return row

    def _too_many(self) -> LimitError:
        return LimitError(f"{self.most} rows in one table", do="split the computation")
