"""SymPy expressions in and out of a graph, iteratively and without loss."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.expressions.sympy_in import walk
from codegen.ir.program import reachable
from symad.errors import LimitError
from symad.graph.graph import Graph

TREE_LIMIT = 100_000  # nodes of the unfolded tree; beyond it SymPy cannot print, compare or differentiate it


def from_sympy(graph: Graph, expressions: Sequence[sp.Basic], *, binary: bool = False) -> list[int]:
    """Add SymPy expressions to a graph and return their nodes; shared and deep expressions cost linear time.

    `binary=True` splits n-ary sums, products and Piecewise into pairs, the form that derivative passes work on;
    without it the expression comes back from `to_sympy` unchanged.

    >>> x = sp.Symbol("x")
    >>> graph = Graph()
    >>> (node,) = from_sympy(graph, [sp.sin(x) + x + 1])
    >>> to_sympy(graph, [node])
    [x + sin(x) + 1]
    """
    return walk(list(expressions), graph.leaf, lambda head, operands: graph.node(head, *operands), binary=binary)


def to_sympy(graph: Graph, nodes: Sequence[int], *, evaluate: bool = False) -> list[sp.Basic]:
    """Return the SymPy expressions of nodes; aliases vanish.

    With `evaluate=False` the expression is rebuilt exactly as the graph has it, with `evaluate=True` SymPy applies
    its usual simplifications on the way. LimitError when the unfolded tree exceeds TREE_LIMIT nodes (use the let form).
    """
    order = reachable(graph, nodes)
    _check_tree_size(graph, order, nodes)
    built: dict[int, sp.Basic] = {}
    for node in order:
        operands = graph.operands[node]
        parts = [built[operand] for operand in operands]
        built[node] = rebuild(graph.heads[node], parts, evaluate=evaluate) if parts else graph.atoms[node]
    return [built[node] for node in nodes]


def _check_tree_size(graph: Graph, order: Sequence[int], nodes: Sequence[int]) -> None:
    size: dict[int, int] = {}
    for node in order:
        size[node] = 1 + sum(size[operand] for operand in graph.operands[node])
        if size[node] > TREE_LIMIT:
            raise LimitError(
                f"the expression has {len(order)} nodes as a graph but more than {TREE_LIMIT} as a tree",
                why="SymPy expressions are trees: printing, comparing or differentiating one of this size never ends",
                do="use the let form (Trace.let()), which is linear in the graph",
            )
