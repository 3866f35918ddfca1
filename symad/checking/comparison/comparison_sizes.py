"""How large a formula is: as a graph, and as the tree that it stands for, which is counted without being unfolded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mpmath

from codegen.heads import Alias
from codegen.ir.program import Rows, reachable
from symad.drawing.tree_drawing import tree_operations
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy

MOST_DIGITS = 9  # of a whole number that is written out


@dataclass(frozen=True)
class Sizes:
    """Nodes and operations, each shared one counted once (graph) or at every use (tree). Exact whole numbers."""

    graph: int
    tree: int
    operations: int
    tree_operations: int

    @property
    def swell(self) -> float:
        """How many times larger the tree is than the graph.

        >>> Sizes(graph=10, tree=500, operations=8, tree_operations=400).swell
        50.0
        """
        return self.tree / self.graph


def sizes(rows: Rows, outputs: Sequence[int]) -> Sizes:
    """Return the sizes of what the outputs need; aliases count for nothing.

    >>> import numpy as np
    >>> import symad as sa
    >>> def tower(x):
    ...     for _ in range(100):
    ...         x = np.sin(x) * x
    ...     return x
    >>> found = sa.trace(tower, 1.0)
    >>> size = sizes(found.graph, found.outputs.flat)
    >>> size.graph, size.tree == 3 * 2**100 - 2
    (201, True)
    """
    tree: dict[int, int] = {}
    graph = operations = 0
    for row in reachable(rows, outputs):
        operands = rows.operands[row]
        if rows.heads[row] is Alias:
            tree[row] = tree[operands[0]]
            continue
        graph, operations = graph + 1, operations + bool(operands)
        tree[row] = 1 + sum(tree[operand] for operand in operands)
    return Sizes(graph, sum(tree[row] for row in outputs), operations, tree_operations(rows, outputs))


def sizes_of_expressions(expressions: Sequence[Any]) -> Sizes:
    """Return the sizes of SymPy expressions, their sums and products in pairs.

    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> sizes_of_expressions([sp.sin(x) ** 2 + sp.sin(x)])
    Sizes(graph=5, tree=7, operations=3, tree_operations=4)
    """
    graph = Graph(lines=False)
    return sizes(graph, from_sympy(graph, expressions, binary=True))


def whole(number: int | None) -> str:
    """Return a whole number, written out or as a power of ten; it may be far beyond any float.

    >>> whole(12345), whole(3 * 10**400), whole(None)
    ('12345', '3.0e+400', '')
    """
    if number is None:
        return ""
    if abs(number) < 10**MOST_DIGITS:
        return str(number)
    with mpmath.workdps(20):
        return str(mpmath.nstr(mpmath.mpf(number), 2, min_fixed=0, max_fixed=0))


def derivative_name(order: int) -> str:
    """Return a name of the derivatives of an order.

    >>> derivative_name(1), derivative_name(3), derivative_name(22)
    ('First derivative', 'Third derivative', 'Derivative of order 22')
    """
    first = ("First", "Second", "Third", "Fourth", "Fifth")
    return f"{first[order - 1]} derivative" if order <= len(first) else f"Derivative of order {order}"
