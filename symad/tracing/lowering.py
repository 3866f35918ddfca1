"""From nodes of a graph to rows of a program: aliases stripped, rows interned anew, heads checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import sympy as sp

from codegen.functions.intrinsics import intrinsic
from codegen.heads import Alias
from codegen.ir.program import Head
from codegen.ir.row_table import Table
from symad.errors import LoweringError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import located


def add_rows(
    table: Table, row_of: dict[int, int], graph: Graph, nodes: Iterable[int], atom: Callable[[int], sp.Basic]
) -> None:
    """Add nodes, in topological order, to a table, and their rows to `row_of`; `atom` answers for the leaves.

    LoweringError, with the user's line, for a head that codegen does not know.

    >>> graph, table, row_of = Graph(), Table(), dict[int, int]()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> add_rows(table, row_of, graph, [x, graph.alias(x), graph.node(sp.sin, x)], graph.atoms.__getitem__)
    >>> row_of, table.heads
    ({0: 0, 1: 0, 2: 1}, [<class 'sympy.core.symbol.Symbol'>, sin])
    """
    lowered: set[Head] = set()
    for node in nodes:
        if node in row_of:
            continue
        head, operands = graph.heads[node], graph.operands[node]
        if head is Alias:
            row_of[node] = row_of[operands[0]]
        elif operands:
            if head not in lowered:
                lowered.add(head)
                _check_lowering(graph, node)
            row_of[node] = _interned(table, head, tuple([row_of[operand] for operand in operands]))
        else:
            row_of[node] = table.leaf(atom(node))


def _check_lowering(graph: Graph, node: int) -> None:
    try:
        intrinsic(graph.heads[node])
    except LoweringError as error:
        raise located(error, graph, node) from error


def _interned(table: Table, head: Head, operands: tuple[int, ...]) -> int:
    """Return a row; a commutative pair is sorted anew, because aliases that were apart may now be one row."""
    if head in (sp.Add, sp.Mul) and len(operands) == 2 and operands[0] > operands[1]:
        operands = (operands[1], operands[0])
    return table.row(head, operands)
