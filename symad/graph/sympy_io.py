"""Convert SymPy expressions to a graph and back, iteratively and without loss; the let form of `sympy.cse`.

The let form is `(replacements, reduced)`, in linear time both ways: `sympy.cse` is exponential on shared graphs, but a
hash-consed table already is the let form, so this is one flat loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.expressions.sympy_in import walk
from codegen.heads import Alias, log_argument
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
    its usual simplifications on the way. LimitError when the unfolded tree exceeds TREE_LIMIT nodes, or is too deep for
    these simplifications (use the let form).
    """
    order = reachable(graph, nodes)
    _check_tree_size(graph, order, nodes)
    try:
        return _expressions(graph, order, nodes, evaluate)
    except RecursionError as error:
        raise LimitError(
            f"the expression is nested too deeply for SymPy, in a graph of {len(order):,} nodes",
            why="SymPy simplifies by functions that call themselves for each level",
            do="use the let form (Trace.let()), or raise Python's limit with sys.setrecursionlimit",
        ) from error


def _expressions(graph: Graph, order: Sequence[int], nodes: Sequence[int], evaluate: bool) -> list[sp.Basic]:
    """Return the expressions of nodes, built in the order of the graph."""
    built: dict[int, sp.Basic] = {}
    for node in order:
        operands = graph.operands[node]
        parts = [built[operand] for operand in operands]
        if evaluate and graph.heads[node] is sp.Piecewise:
            parts = _narrowed(parts)
        built[node] = rebuild(graph.heads[node], parts, evaluate=evaluate) if parts else graph.atoms[node]
        if evaluate and graph.heads[node] is sp.And:
            built[node] = _settled(built[node])
    return [built[node] for node in nodes]


def _settled(condition: sp.Basic) -> sp.Basic:
    """Return a conjunction in which symbols that it says are numbers are these in its other parts.

    >>> x = sp.Symbol("x", real=True)
    >>> _settled(sp.Eq(x, 0) & (x > 0)), _settled(sp.Eq(x, 2) & (x > 0)), _settled(sp.Eq(sp.Abs(x), 0) & (x > 0))
    (False, Eq(x, 2), False)
    """
    for part in condition.args if isinstance(condition, sp.And) else ():
        if (equation := _equation(part)) and isinstance(part, sp.Eq):
            others = [other.subs(*equation) for other in condition.args if other != part]
            condition = sp.And(part, *others)
            if not isinstance(condition, sp.And):
                break
    return condition


def _equation(relation: sp.Basic) -> tuple[sp.Symbol, sp.Basic] | None:
    """Return the symbol and the number that a relation says are equal, or not equal; None for other relations."""
    if not isinstance(relation, sp.Eq | sp.Ne) or not relation.rhs.is_number:
        return None
    left = relation.lhs.args[0] if isinstance(relation.lhs, sp.Abs) and relation.rhs.is_zero else relation.lhs
    return (left, relation.rhs) if left.is_Symbol else None


def _narrowed(parts: Sequence[sp.Basic]) -> list[sp.Basic]:
    """Return values and conditions of a Piecewise; values lose the cases that these conditions exclude.

    Only equations of a symbol with a number are used: where one holds, and where it does not.

    >>> x = sp.Symbol("x", real=True)
    >>> first, second = sp.Piecewise((1, x > 0), (2, True)), sp.Piecewise((3, sp.Ne(x, 0)), (4, True))
    >>> _narrowed([first, sp.Eq(x, 0), second, sp.true])
    [2, Eq(x, 0), 3, True]
    """
    narrowed: list[sp.Basic] = []
    refuted: list[sp.Basic] = []
    for value, condition in zip(parts[::2], parts[1::2], strict=True):
        facts = [(part, isinstance(part, sp.Eq)) for part in sp.And.make_args(condition)]
        for relation, equal in (*((part, isinstance(part, sp.Ne)) for part in refuted), *facts):
            if equation := _equation(relation):
                value = _under(value, *equation, equal)
        narrowed += (value, condition)
        refuted.append(condition)
    return narrowed


def _under(value: sp.Basic, symbol: sp.Symbol, number: sp.Basic, equal: bool) -> sp.Basic:
    """Return a value whose comparisons know whether a symbol equals a number."""
    built: list[sp.Basic] = []
    changed = False

    def leaf(expression: sp.Basic) -> int:
        built.append(expression)
        return len(built) - 1

    def node(head: Any, operands: Sequence[int]) -> int:
        nonlocal changed
        before = after = rebuild(head, [built[operand] for operand in operands], evaluate=True)
        if isinstance(before, sp.core.relational.Relational):
            if equal:
                after = before.subs(symbol, number)
            elif _equation(before) == (symbol, number):
                after = sp.true if isinstance(before, sp.Ne) else sp.false
            changed |= before != after
        return leaf(after)

    (result,) = walk([value], leaf, node)
    return built[result] if changed else value


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
        elif graph.heads[node] in (Alias, log_argument):
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
        node = bound.get(atom)
        return graph.leaf(atom) if node is None else node

    for symbol, expression in replacements:
        (bound[symbol],) = walk([expression], leaf, lambda head, operands: graph.node(head, *operands))
    return walk(list(reduced), leaf, lambda head, operands: graph.node(head, *operands))


def _uses(graph: Graph, order: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
    """Count how often each node is used; a use of an alias counts for its operand."""
    uses = dict.fromkeys(order, 0)
    for node in outputs:
        uses[node] += 1
    for node in reversed(order):
        share = uses[node] if graph.heads[node] in (Alias, log_argument) else 1
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
