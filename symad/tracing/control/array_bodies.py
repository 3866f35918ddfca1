"""Bodies of loops over arrays: rows over slots, and programs of them."""

from __future__ import annotations

import sympy as sp

from codegen.ir.program import Input, Output, Program
from codegen.ir.row_table import Table
from symad.graph.graph import Graph


def slots_on(number: int) -> tuple[Graph, list[int]]:
    """Return a graph with so many slots."""
    graph = Graph(lines=False)
    return graph, [graph.leaf(sp.Symbol(f"slot_{k}", real=True)) for k in range(number)]


def program_of(rows: Table, slots: int, *results: int) -> Program:
    """Return rows, of which the first are slots, as a program of scalars."""
    inputs = tuple(Input(f"slot_{k}", ()) for k in range(slots))
    outputs = tuple(Output((), (result,)) for result in results)
    return Program(rows.heads, rows.operands, rows.atoms, inputs, outputs, "body")
