"""The atoms of a row table, made when they are asked for.

Arrays of constants are thousands of leaves, most of which are only needed as numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

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
        self._floats: list[tuple[range, NDArray[np.float64]]] = []  # ranges of Floats

    def later(self, nodes: range, atom: AtomOf) -> None:
        """Let the atom of `nodes[k]` be `atom(k)`; the ranges come in ascending order."""
        self._ranges.append(nodes)
        self._starts.append(nodes.start)
        self._makers.append(atom)

    def later_floats(self, nodes: range, values: NDArray[np.float64]) -> None:
        """Let the atom of `nodes[k]` be the Float of `values[k]`."""
        self.later(nodes, lambda k: sp.Float(float(values[k])))
        self._floats.append((nodes, values))

    def floats(self, nodes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
        """Return flags of the nodes that are such Floats, and their numbers; make no atom."""
        if not self._floats:
            return np.zeros(len(nodes), dtype=bool), np.empty(0)
        starts, stops = np.array([(nodes.start, nodes.stop) for nodes, _ in self._floats]).T
        at = np.searchsorted(starts, nodes, "right") - 1
        is_float = (at >= 0) & (nodes < stops[at])
        at, begins = at[is_float], np.cumsum([0, *(len(values) for _, values in self._floats)])
        numbers = np.concatenate([values for _, values in self._floats])
        return is_float, numbers[begins[at] + nodes[is_float] - starts[at]]

    def of(self, nodes: NDArray[np.int64]) -> LazyAtoms:
        """Return the atoms of some nodes, and all those Floats, which stay to be made."""
        atoms = LazyAtoms({node: self[node] for node in nodes[~self.floats(nodes)[0]].tolist()})
        for floats, values in self._floats:
            atoms.later_floats(floats, values)
        return atoms

    def __missing__(self, node: int) -> sp.Basic:
        at = self._range(node)
        if at is None:
            raise KeyError(node)
        atom = self[node] = self._makers[at](node - self._starts[at])
        return atom

    def _range(self, node: object) -> int | None:
        """Return the number of the range that a node is in."""
        at = bisect_right(self._starts, node) - 1 if isinstance(node, int) else -1
        return at if at >= 0 and node in self._ranges[at] else None

    def __contains__(self, node: object) -> bool:
        return super().__contains__(node) or self._range(node) is not None

    def get(self, node: int, default: Any = None) -> Any:
        """Return the atom of a node, or the default."""
        atom = super().get(node)
        if atom is not None:
            return atom
        return default if self._range(node) is None else self[node]

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


def atoms_of(atoms: dict[int, sp.Basic], nodes: NDArray[np.int64]) -> dict[int, sp.Basic]:
    """Return the atoms of some nodes; Floats that stay to be made may be more."""
    return atoms.of(nodes) if isinstance(atoms, LazyAtoms) else {node: atoms[node] for node in nodes.tolist()}


def floats_of(atoms: dict[int, sp.Basic], nodes: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return flags of the nodes that are Floats which stay to be made, and their numbers.

    >>> atoms = LazyAtoms({0: sp.pi})
    >>> atoms.later_floats(range(3, 6), np.array([0.5, 1.5, 2.5]))
    >>> floats_of(atoms, np.array([5, 0, 3])), len(dict.keys(atoms))
    ((array([ True, False,  True]), array([2.5, 0.5])), 1)
    """
    return atoms.floats(nodes) if isinstance(atoms, LazyAtoms) else (np.zeros(len(nodes), dtype=bool), np.empty(0))
