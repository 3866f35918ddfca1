"""Plain rows: what the results of a trace need, without aliases, each operation once: what structure is found in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp

from codegen.heads import Alias
from codegen.program import Head
from codegen.regions.table import distinct
from codegen.sympy_in import PAIRWISE
from codegen.table import Table
from symad.graph.table import Graph
from symad.structure.loop import Loop, LoopCarry, LoopResult, Nodes, is_nodes


@dataclass(frozen=True, eq=False)
class PlainRows:
    """Rows in topological order: inputs first; `node_of[row]` is the graph's node, `row_of[node]` the row or -1."""

    heads: list[Head]
    operands: list[tuple[int, ...]]
    atoms: dict[int, sp.Basic]
    node_of: Nodes
    row_of: Nodes

    def loop(self, loop: Loop) -> Loop:
        """Return a loop between nodes of the graph as one between rows."""
        at = self.row_of
        reads = tuple(at[column] if is_nodes(column) else column for column in loop.reads)
        results = tuple(LoopResult(use.output, use.kind, at[use.nodes]) for use in loop.results)
        carries = tuple(LoopCarry(use.output, at[use.initial]) for use in loop.carries)
        return replace(loop, reads=reads, results=results, carries=carries)


def plain_rows(graph: Graph, inputs: Nodes, outputs: Nodes, loops: Sequence[Loop]) -> PlainRows:
    """Return the rows that outputs and loops need; the results of loops are leaves, needed or not.

    >>> graph = Graph()
    >>> x = graph.own_leaf(sp.Symbol("x"))
    >>> sine = graph.node(sp.sin, graph.alias(graph.alias(x)))
    >>> plain = plain_rows(graph, np.array([x]), np.array([sine]), [])
    >>> plain.heads, plain.operands, plain.node_of
    ([<class 'sympy.core.symbol.Symbol'>, sin], [(), (0,)], array([0, 3]))
    """
    made = [result.nodes for loop in loops for result in loop.results]
    leaves = np.concatenate([inputs, *made]).tolist()
    used = [column for loop in loops for column in loop.reads if is_nodes(column)]
    used += [carry.initial for loop in loops for carry in loop.carries]
    needed = _needed(graph, distinct(np.concatenate([outputs, *used])), leaves)
    table, at = Table(), [-1] * len(graph.heads)
    table.heads, table.operands = [sp.Symbol] * len(leaves), [()] * len(leaves)
    table.atoms = dict.fromkeys(range(len(leaves)), _LEAF)
    for row, node in enumerate(leaves):
        at[node] = row
    heads, operands = graph.heads, graph.operands
    for node in needed:
        parts = operands[node]
        if at[node] >= 0:
            continue
        if not parts:
            at[node] = table.leaf(graph.atoms[node])
        elif heads[node] is Alias:
            at[node] = at[parts[0]]
        else:
            moved = tuple([at[part] for part in parts])
            if len(moved) == 2 and moved[0] > moved[1] and heads[node] in PAIRWISE:
                moved = (moved[1], moved[0])
            at[node] = table.row(heads[node], moved)
    row_of = np.array(at, dtype=np.int64)
    there = np.nonzero(row_of >= 0)[0]
    node_of = np.zeros(len(table), dtype=np.int64)
    node_of[row_of[there][::-1]] = there[::-1]  # of several nodes in one row the first
    return PlainRows(table.heads, table.operands, table.atoms, node_of, row_of)


_LEAF = sp.Symbol("leaf")  # inputs and results of loops are told apart by their rows


def _needed(graph: Graph, wanted: Nodes, leaves: Sequence[int]) -> list[int]:
    """Return the nodes that some nodes need, ascending; what leads to leaves only is not looked at."""
    top = int(wanted.max(initial=-1))
    needed = bytearray(top + 1)
    for node in wanted.tolist():
        needed[node] = 1
    for node in leaves:
        if node <= top:
            needed[node] = 0
    operands = graph.operands
    for node in range(top, -1, -1):
        if needed[node]:
            for part in operands[node]:
                needed[part] = 1
    return [node for node in range(top + 1) if needed[node]]
