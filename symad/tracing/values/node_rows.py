"""Program rows of graph nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp

from codegen.functions.intrinsics import intrinsic, supports
from codegen.heads import LEAVES
from codegen.ir.copy_rows import copy_rows
from codegen.ir.row_table import RowTable
from symad.errors import LoweringError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import located


def add_rows(
    table: RowTable, row_of: dict[int, int], graph: Graph, nodes: Sequence[int], atom: Callable[[int], sp.Basic]
) -> None:
    """Add nodes, in topological order, to a table, and their rows to `row_of`; `atom` returns the atoms of leaves.

    LoweringError, with the user's line, for a head that codegen does not know.

    >>> graph, table, row_of = Graph(), RowTable(), dict[int, int]()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> add_rows(table, row_of, graph, [x, graph.alias(x), graph.node(sp.sin, x)], graph.atoms.__getitem__)
    >>> row_of, table.heads
    ({0: 0, 1: 0, 2: 1}, [<class 'sympy.core.symbol.Symbol'>, sin])
    """
    heads = graph.heads
    present = set(map(heads.__getitem__, nodes))
    unknown = {head for head in present if not supports(head) and not issubclass(head, LEAVES)}
    for node in nodes if unknown else ():
        if heads[node] in unknown and graph.operands[node]:
            try:
                intrinsic(heads[node])
            except LoweringError as error:
                raise located(error, graph, node) from error
    copy_rows(graph, nodes, table, row_of, lambda node: table.leaf(atom(node)), alone=True)
