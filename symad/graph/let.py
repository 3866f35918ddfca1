"""The let form of a graph: `(replacements, reduced)`, the shape of `sympy.cse`, in linear time both ways.

`sympy.cse` is exponential on shared graphs; a hash-consed table already is the let form, so this is one flat loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.expressions.sympy_in import walk
from codegen.heads import Alias
from codegen.ir.program import reachable
from symad.graph.graph import Graph

Let = tuple[list[tuple[sp.Symbol, sp.Expr]], list[sp.Expr]]

DEPTH_LIMIT = 40  # expressions deeper than this are cut by a replacement, so that SymPy can still print them


def to_let(graph: Graph, outputs: Sequence[int], symbols: Iterable[sp.Symbol] | None = None) -> Let:
    """Return `(replacements, reduced)`: every node used more than once gets a symbol, in order of computation.

    `symbols` supplies the names (x0, x1, ... by default, skipping names that the graph uses). Aliases vanish.
    Method: the nodes of the table are already the common subexpressions; cf. sympy.cse.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> s = graph.node(sp.sin, x)
    >>> to_let(graph, [graph.node(sp.Mul, s, s)])
    ([(x0, sin(x))], [x0*x0])
    """
    order = reachable(graph, outputs)
    uses = _uses(graph, order, outputs)
    names = iter(symbols) if symbols is not None else _fresh_symbols(graph, order)
    replacements: list[tuple[sp.Symbol, sp.Expr]] = []
    inline: dict[int, sp.Basic] = {}
    depth: dict[int, int] = {}
    for node in order:
        operands = graph.operands[node]
        if not operands:
            inline[node], depth[node] = graph.atoms[node], 0
        elif graph.heads[node] is Alias:
            inline[node], depth[node] = inline[operands[0]], depth[operands[0]]
        else:
            expression = rebuild(graph.heads[node], [inline[operand] for operand in operands])
            depth[node] = 1 + max(depth[operand] for operand in operands)
            if (uses[node] > 1 or depth[node] >= DEPTH_LIMIT) and not graph.is_boolean(node):
                name = next(names)
                replacements.append((name, expression))
                inline[node], depth[node] = name, 0
            else:
                inline[node] = expression
    return replacements, [inline[node] for node in outputs]


def from_let(graph: Graph, replacements: Iterable[tuple[sp.Symbol, sp.Expr]], reduced: Sequence[sp.Expr]) -> list[int]:
    """Add the expressions of a let form (also one made by `sympy.cse`) to a graph; return the nodes of `reduced`.

    >>> x = sp.Symbol("x")
    >>> graph = Graph()
    >>> (node,) = from_let(graph, *sp.cse([sp.sin(x) ** 2 + sp.sin(x)]))
    >>> len(graph)
    5
    """
    bound: dict[sp.Basic, int] = {}

    def leaf(atom: sp.Basic) -> int:
        found = bound.get(atom)
        return graph.leaf(atom) if found is None else found

    for symbol, expression in replacements:
        (bound[symbol],) = walk([expression], leaf, lambda head, operands: graph.node(head, *operands))
    return walk(list(reduced), leaf, lambda head, operands: graph.node(head, *operands))


def _uses(graph: Graph, order: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
    """Count how often each node is used; a use through an alias counts for what the alias stands for."""
    uses = dict.fromkeys(order, 0)
    for node in outputs:
        uses[node] += 1
    for node in reversed(order):
        share = uses[node] if graph.heads[node] is Alias else 1
        for operand in graph.operands[node]:
            uses[operand] += share
    return uses


def _fresh_symbols(graph: Graph, order: Sequence[int]) -> Iterator[sp.Symbol]:
    taken = {graph.atoms[node].name for node in order if isinstance(graph.atoms.get(node), sp.Symbol)}
    index = 0
    while True:
        if f"x{index}" not in taken:
            yield sp.Symbol(f"x{index}", real=True)
        index += 1
