"""Atoms of leaves that are made when they are asked for: a million inputs need no million symbols."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import sympy as sp

AtomOf = Callable[[int], sp.Basic]


class LazyAtoms(dict[int, sp.Basic]):
    """The atoms of a graph, with ranges of nodes whose atoms a function makes; otherwise a dict.

    >>> atoms = LazyAtoms({0: sp.pi})
    >>> atoms.later(range(5, 8), lambda k: sp.Symbol(f"x_{k}"))
    >>> 6 in atoms, 8 in atoms, atoms[7], len(atoms)
    (True, False, x_2, 4)
    """

    def __init__(self, atoms: dict[int, sp.Basic]) -> None:
        super().__init__(atoms)
        self._ranges: list[range] = []  # ascending
        self._starts: list[int] = []
        self._makers: list[AtomOf] = []

    def later(self, nodes: range, atom: AtomOf) -> None:
        """Let the atom of `nodes[k]` be `atom(k)`; the ranges come in ascending order."""
        self._ranges.append(nodes)
        self._starts.append(nodes.start)
        self._makers.append(atom)

    def __missing__(self, node: int) -> sp.Basic:
        at = bisect_right(self._starts, node) - 1
        if at < 0 or node not in self._ranges[at]:
            raise KeyError(node)
        made = self[node] = self._makers[at](node - self._starts[at])
        return made

    def __contains__(self, node: object) -> bool:
        return super().__contains__(node) or any(node in nodes for nodes in self._ranges)

    def get(self, node: int, default: Any = None) -> Any:
        """Return the atom of a node, or the default."""
        try:
            return self[node]
        except KeyError:
            return default

    def _make_all(self) -> None:
        for nodes in self._ranges:
            for node in nodes:
                self[node]

    def __len__(self) -> int:
        self._make_all()
        return super().__len__()

    def __iter__(self) -> Iterator[int]:
        self._make_all()
        return super().__iter__()

    def keys(self) -> Any:
        """All nodes; makes every atom."""
        self._make_all()
        return super().keys()

    def values(self) -> Any:
        """All atoms."""
        self._make_all()
        return super().values()

    def items(self) -> Any:
        """All nodes with their atoms."""
        self._make_all()
        return super().items()

    def __reduce__(self) -> Any:
        return dict, (list(self.items()),)
