"""Table: rows that are kept once, the common base of programs under construction and of symad's graph."""

from __future__ import annotations

from threading import Lock

import sympy as sp

from codegen.limits import EVERY, check
from codegen.program import Head


class Table:
    """Growing columns `heads`, `operands`, `atoms`; equal rows are one row. Threads may add to one table.

    >>> table = Table()
    >>> x = table.leaf(sp.Symbol("x"))
    >>> table.row(sp.sin, (x,)) == table.row(sp.sin, (x,))
    True
    """

    __slots__ = ("_lock", "_memo", "atoms", "heads", "operands")

    def __init__(self) -> None:
        self.heads: list[Head] = []
        self.operands: list[tuple[int, ...]] = []
        self.atoms: dict[int, sp.Basic] = {}
        self._memo: dict[object, int] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self.heads)

    def row(self, head: Head, operands: tuple[int, ...]) -> int:
        """Return the row `head(*operands)`, as written."""
        found = self._memo.get((head, operands))
        return self._append((head, operands), head, operands) if found is None else found

    def leaf(self, atom: sp.Basic) -> int:
        """Return the leaf of a SymPy atom; Floats are told apart by value and precision."""
        key = (sp.Float, atom._mpf_, atom._prec) if isinstance(atom, sp.Float) else (type(atom), atom)
        found = self._memo.get(key)
        return self._append(key, type(atom), (), atom) if found is None else found

    def has(self, atom: sp.Basic) -> bool:
        """Whether an atom that is not a Float is a leaf already."""
        return (type(atom), atom) in self._memo

    def _append(self, key: object, head: Head, operands: tuple[int, ...], atom: sp.Basic | None = None) -> int:
        """Add a row unless its key is there; without a key it is never merged with another."""
        with self._lock:
            found = None if key is None else self._memo.get(key)
            if found is None:
                found = len(self.heads)
                if not found % EVERY:
                    check("writing operations", self.heads)
                self.heads.append(head)
                self.operands.append(operands)
                if atom is not None:
                    self.atoms[found] = atom
                if key is not None:
                    self._memo[key] = found  # last: a key that is found has its row
            return found
