"""Pieces: straight lines between loops, as the body of a region that is run once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sp

from codegen.ir.program import Head, Input, Output, Program, Rows
from codegen.loops.loop import Nodes


def piece_of(
    rows: Rows, sums: Mapping[int, tuple[int, ...]], nodes: Sequence[int], results: Sequence[int], buffer: Nodes
) -> tuple[Program, list[int]]:
    """Return straight lines as a program, and the nodes from outside that its inputs stand for.

    Nodes of `sums` are sums of others, whatever their rows say; nodes from outside with a buffer are read from there.
    """

    def operands_of(node: int) -> tuple[int, ...]:
        return sums.get(node) or rows.operands[node]

    inside = set(nodes)
    met = dict.fromkeys(part for node in nodes for part in operands_of(node) if part not in inside)
    outside = [node for node in met if buffer[node] >= 0]
    row_of = {node: row for row, node in enumerate(outside)}
    heads: list[Head] = [sp.Symbol] * len(outside)
    operands: list[tuple[int, ...]] = [()] * len(outside)
    atoms: dict[int, sp.Basic] = {row: sp.Symbol(f"z{row}") for row in range(len(outside))}
    for node in [*(node for node in met if buffer[node] < 0), *nodes]:
        row_of[node] = len(heads)
        if node in inside:
            heads.append(sp.Add if node in sums else rows.heads[node])
            operands.append(tuple(row_of[part] for part in operands_of(node)))
        else:
            atoms[len(heads)] = rows.atoms[node]
            heads.append(rows.heads[node])
            operands.append(())
    inputs = tuple(Input(f"z{row}", ()) for row in range(len(outside)))
    outputs = tuple(Output((), (row_of[node],)) for node in results)
    return Program(heads, operands, atoms, inputs, outputs, "straight"), outside
