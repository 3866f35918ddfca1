"""Pieces: straight lines between loops, as the body of a region that is run once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from codegen.ir.copy_rows import body_of, copy_rows
from codegen.ir.program import Program, Rows
from codegen.ir.row_table import Table
from codegen.loops.loop import Nodes


def piece_of(
    rows: Rows, sums: Mapping[int, tuple[int, ...]], nodes: Sequence[int], results: Sequence[int], buffer: Nodes
) -> tuple[Program, list[int]]:
    """Return straight lines as a program, and the nodes from outside that its inputs stand for.

    Nodes of `sums` are sums of others, whatever their rows say; nodes from outside with a buffer are read from there.
    """

    inside, table = set(nodes), Table()
    parts = (part for node in nodes for part in sums.get(node) or rows.operands[node])
    met = dict.fromkeys(part for part in parts if part not in inside)
    outside = [node for node in met if buffer[node] >= 0]
    row_of = {node: table.leaf(sp.Symbol(f"z{k}")) for k, node in enumerate(outside)}
    copy_rows(rows, met, table, row_of)
    for node in nodes:
        if node in sums:
            row_of[node] = table.canonical(sp.Add, tuple(row_of[part] for part in sums[node]))
        else:
            copy_rows(rows, [node], table, row_of)
    names = (f"z{k}" for k in range(len(outside)))
    return body_of(table, names, (row_of[node] for node in results), "straight"), outside
