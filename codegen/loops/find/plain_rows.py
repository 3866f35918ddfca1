"""The rows that the results of a trace need, without aliases, each operation once.

Even powers of |u|, and |u| |u|, become those of u: the same bits, and smooth at 0 also where the factors would be read
from other repetitions or other loops. So derivatives are those of straight lines, which combine such factors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import sympy as sp

from codegen.heads import Alias
from codegen.ir.copy_rows import copy_rows
from codegen.ir.lazy_atoms import atoms_of
from codegen.ir.program import Head, Rows, needed
from codegen.ir.row_table import RowTable
from codegen.loops.find.flat_rows import FlatRows, flat_of, flattened, leaf_ranges
from codegen.loops.loop import Loop, Nodes, between
from codegen.records import dataclass


@dataclass(frozen=True, eq=False)
class PlainRows:
    """Rows in topological order: inputs first. Without aliases in the graph, a row is the node of its number."""

    heads: list[Head]
    operands: list[tuple[int, ...]]
    atoms: dict[int, sp.Basic]
    flat: FlatRows
    renumbered: tuple[Nodes, Nodes] | None  # the rows of all nodes, -1 for none; the nodes of all rows

    @property
    def operations(self) -> int:
        """Number of operations among the rows."""
        return len(self.flat.rows)

    def rows_of(self, nodes: Nodes) -> Nodes:
        return nodes if self.renumbered is None else self.renumbered[0][nodes]

    def node_of(self, row: int) -> int | None:
        """Return the node of a row; None for a new row."""
        if row >= len(self.heads):
            return None
        return row if self.renumbered is None else int(self.renumbered[1][row])

    def loop(self, loop: Loop) -> Loop:
        """Return a loop between nodes of the graph as one between rows."""
        return loop if self.renumbered is None else between(loop, self.rows_of)


def plain_rows(graph: Rows, inputs: Nodes, outputs: Nodes, loops: Sequence[Loop]) -> PlainRows:
    """Return the rows that outputs and loops need; the results of loops are leaves, needed or not.

    A graph without aliases keeps its numbers, which takes a tenth of the time.

    >>> table = RowTable()
    >>> x = table.leaf(sp.Symbol("x"))
    >>> sine = table.row(sp.sin, (table.row(Alias, (x,)),))
    >>> plain = plain_rows(table, np.array([x]), np.array([sine]), [])
    >>> plain.heads, plain.operands, plain.node_of(1)
    ([<class 'sympy.core.symbol.Symbol'>, sin], [(), (0,)], 2)
    """
    leaves = np.concatenate([inputs, *(result.nodes for loop in loops for result in loop.results)])
    is_read = np.zeros(len(graph.heads), dtype=bool)
    for nodes in (outputs, *(nodes for loop in loops for nodes in loop.nodes_read)):
        is_read[nodes] = True
    targets = np.flatnonzero(is_read)
    return _unchanged(graph, targets, leaves) or _renumbered(graph, targets, leaves.tolist())


def _unchanged(graph: Rows, targets: Nodes, leaves: Nodes) -> PlainRows | None:
    """Return the rows of a graph under their own numbers, None where it has aliases; unneeded rows become leaves."""
    flat = flattened(graph)
    if Alias in flat.heads or flat.is_operation[leaves].any():
        return None
    heads, operands, size = list(graph.heads), list(graph.operands), len(flat)
    if sp.Abs in flat.heads and _smoothed(heads, operands, graph.atoms):
        flat = flat_of(heads, operands, leaf_ranges(graph))
    uses = np.bincount(flat.operands, minlength=size)
    uses[targets] += 1
    constant = np.zeros(size, dtype=bool)
    constant[flat.operands] = constant[targets] = True
    constant[flat.rows] = constant[leaves] = False
    atoms = atoms_of(graph.atoms, np.flatnonzero(constant))
    unneeded = _unneeded(operands, uses, flat.rows[uses[flat.rows] == 0].tolist())
    for node in unneeded:
        heads[node], operands[node] = sp.Symbol, ()
    atoms.update(dict.fromkeys(unneeded, _LEAF))
    return PlainRows(heads, operands, atoms, flat.without(unneeded) if unneeded else flat, None)


def _unneeded(operands: Sequence[tuple[int, ...]], uses: Nodes, unused: list[int]) -> list[int]:
    """Return the unused operations, and those that only they need; reduce the uses of their operands."""
    unneeded = []
    while unused:
        node = unused.pop()
        unneeded.append(node)
        for part in operands[node]:
            uses[part] -= 1
            if not uses[part] and operands[part]:
                unused.append(part)
    return unneeded


def _renumbered(graph: Rows, targets: Nodes, leaves: list[int]) -> PlainRows:
    """Return the rows of a graph without its aliases."""
    table, row_of = RowTable(), {node: row for row, node in enumerate(leaves)}
    table.heads, table.operands = [sp.Symbol] * len(leaves), [()] * len(leaves)
    table.atoms = dict.fromkeys(range(len(leaves)), _LEAF)
    copy_rows(graph, needed(graph, targets.tolist(), row_of), table, row_of)
    there, at = np.sort(np.fromiter(row_of, np.int64)), np.full(len(graph.heads), -1)
    at[there] = [row_of[node] for node in there.tolist()]
    node_of = np.zeros(len(table), dtype=np.int64)
    node_of[at[there][::-1]] = there[::-1]  # of several nodes in one row the first
    _smoothed(table.heads, table.operands, table.atoms)
    flat = flat_of(table.heads, table.operands)
    return PlainRows(table.heads, table.operands, table.atoms, flat, (at, node_of))


def _smoothed(heads: Sequence[Head], operands: list[tuple[int, ...]], atoms: Mapping[int, sp.Basic]) -> bool:
    """Replace even powers of |u| by those of u, in place; return whether there is one."""
    changed = False
    for row, (head, parts) in enumerate(zip(heads, operands, strict=True)):
        if len(parts) != 2 or heads[parts[0]] is not sp.Abs or not operands[parts[0]]:
            continue
        (inner,), exponent = operands[parts[0]], atoms.get(parts[1])
        if head is sp.Mul and parts[0] == parts[1]:
            operands[row], changed = (inner, inner), True
        elif head is sp.Pow and isinstance(exponent, sp.Integer) and exponent % 2 == 0:
            operands[row], changed = (inner, parts[1]), True
    return changed


_LEAF = sp.Symbol("leaf")  # inputs and results of loops are told apart by their rows
