"""Merge two results under a condition: compute common parts once, and select where they differ.

`f(a, s)` where c holds, else `f(b, s)`, is f of the choice between a and b, and s: the same bits, and the same
derivatives, as each head is evaluated at the operands of the branch that is taken. Where two results part in several
places, one choice for each of them may cost more than a choice between the results; both are counted.

A head is not looked into where its derivative is that of an equal composition (log(1 + exp(u)): see `partials`), which
a choice inside would hide, nor at a constant operand, such as an order or an exponent, but for sums and products.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sympy as sp

import symad.tracing.values.node_builders as op
from codegen.heads import Alias
from codegen.ir.program import needed
from codegen.ir.row_table import COMMUTATIVE
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.partials import derivative_form
from symad.tracing.values.constant_nodes import as_truth, constant
from symad.tracing.values.node_trees import Tree

_OF_CONSTANTS = (sp.Add, sp.Mul, sp.Piecewise)  # heads that a constant does not change

Pair = tuple[int, int]  # a node where the condition holds, and one where it does not


def merged(graph: Graph, condition: int, holds: Tree, fails: Tree, start: int = 0) -> Tree:
    """Return one of two trees that are alike, leaf by leaf the first where a condition holds, else the second.

    Nodes below `start` were there before: pairs of them are chosen between as they are.

    >>> import numpy as np
    >>> graph = Graph()
    >>> x, y, z = (graph.leaf(sp.Symbol(name)) for name in "xyz")
    >>> sines = [Tree(None, [np.array(graph.node(sp.sin, graph.pair(sp.Add, x, u)))]) for u in (y, z)]
    >>> (one,) = merged(graph, graph.node(sp.StrictGreaterThan, x, y), *sines).flat
    >>> graph.heads[one], graph.count_operations([one])
    (sin, 4)
    """
    pairs = list(zip(holds.flat, fails.flat, strict=True))
    condition = as_truth(graph, condition)
    known = constant(graph, condition)
    if known is not None:
        return holds if known else fails
    parted = _Parted(graph, pairs, start)
    ways = [parted.written(condition, pairs, ends) for ends in parted.ways(pairs)]
    if len(ways) > 1:
        common = parted.common() | {condition}
        ways.sort(key=lambda way: graph.count_operations(way, common))
    return holds.refill(ways[0])


class _Parted:
    """Pairs of nodes, followed down as long as both are the same head: `below` has the pairs of operands that differ.

    None for a pair that is not looked into: of loops, where one result is of a later step than the other, pairs would
    lead back through all steps; they end at a node that is on the one side as well as on the other.
    """

    def __init__(self, graph: Graph, pairs: Iterable[Pair], start: int) -> None:
        self.graph, self.build = graph, Builder(graph)
        self.below: dict[Pair, list[Pair] | None] = {}
        most, stack = len(graph), [pair for pair in pairs if pair[0] != pair[1]]
        order: list[Pair] = []
        first, second = {pair[0] for pair in stack}, {pair[1] for pair in stack}
        while stack:
            pair = stack.pop()
            if pair not in self.below:
                order.append(pair)
                is_later_step = pair[0] in second or pair[1] in first
                is_end = is_later_step or max(pair) < start or len(order) >= most
                found = None if is_end else self._operands(*pair)
                self.below[pair] = found
                stack += found or ()
                first.update(left for left, _ in found or ())
                second.update(right for _, right in found or ())
        for pair in sorted(order):  # operands come before what they are operands of
            inside = self.below[pair]
            if inside is not None and any(self._is_truth(each) and self.below[each] is None for each in inside):
                self.below[pair] = None  # a choice between truth values is no cheaper than one between numbers

    def ways(self, roots: Iterable[Pair]) -> list[set[Pair]]:
        """Return where choices may stand: as far down as there is one for each result; and as far down as possible."""
        ends: dict[Pair, Pair] = {}
        for pair in sorted(self.below):
            inside = {ends[each] for each in self.below[pair] or ()}
            ends[pair] = inside.pop() if len(inside) == 1 else pair
        highest = {ends[pair] for pair in roots if pair[0] != pair[1]}
        lowest = {pair for pair, inside in self.below.items() if inside is None}
        return [highest] if highest <= lowest else [highest, lowest]

    def common(self) -> set[int]:
        """Return the nodes on which all ways rest."""
        parted = {node for pair, inside in self.below.items() if inside is None for node in pair}
        inner = [pair for pair, inside in self.below.items() if inside is not None]
        return parted | {one for pair in inner for one, other in _aligned(self.graph, *pair) if one == other}

    def written(self, condition: int, roots: Sequence[Pair], ends: Collection[Pair]) -> list[int]:
        """Return the nodes of results, with choices at the given pairs."""
        graph, made, stack = self.graph, dict[Pair, int](), list(roots)
        while stack:
            pair = stack[-1]
            left, right = pair
            inside = self.below.get(pair) if pair not in ends else None
            missing = [each for each in inside or () if each not in made]
            stack += missing
            if missing:
                continue
            stack.pop()
            if pair in made:
                continue
            if left == right:
                made[pair] = left
            elif inside is None:
                made[pair] = op.select(graph, condition, left, right)
            else:
                aligned = _aligned(graph, left, right)
                parts = tuple(made.get(each, each[0]) for each in aligned)
                made[pair] = graph.like(left, parts)
        return [made[pair] for pair in roots]

    def _operands(self, left: int, right: int) -> list[Pair] | None:
        """Return the operands in which two nodes differ, None where they are not looked into."""
        graph = self.graph
        head = graph.heads[left]
        if head is not graph.heads[right] or head is Alias or not graph.operands[left]:
            return None
        if len(graph.operands[left]) != len(graph.operands[right]) or not (self._is_own(left) and self._is_own(right)):
            return None
        differ = [pair for pair in _aligned(graph, left, right) if pair[0] != pair[1]]
        if head not in _OF_CONSTANTS and any(_is_constant(graph, node) for pair in differ for node in pair):
            return None
        return differ

    def _is_own(self, node: int) -> bool:
        """Whether a node is differentiated as the head that it is, or as the square of its operand."""
        _, operands = derivative_form(self.build, node)
        own = self.graph.operands[node]
        return all(operand in own or self.build.constant(operand) is not None for operand in operands)

    def _is_truth(self, pair: Pair) -> bool:
        return self.graph.is_boolean(pair[0]) or self.graph.is_boolean(pair[1])


def _aligned(graph: Graph, left: int, right: int) -> list[Pair]:
    """Return operands in pairs; of sums and products, what both have is paired with itself."""
    one, other = graph.operands[left], graph.operands[right]
    if len(one) == 2 and graph.heads[left] in COMMUTATIVE and (one[0] == other[1] or one[1] == other[0]):
        other = other[::-1]
    return list(zip(one, other, strict=True))


def _is_constant(graph: Graph, node: int) -> bool:
    return not graph.operands[node] and not issubclass(graph.heads[node], sp.Symbol)


def without_aliases(graph: Graph, nodes: Sequence[int], kept: dict[int, int]) -> list[int]:
    """Return nodes without aliases, but for those that `kept` has, which also gets what becomes of the others.

    Levels that are closed made their aliases anew in each run, and the values are the same. An alias with a rule of its
    own stays, as its derivative is not that of its value; so do the nodes in which the rule has derivatives.
    """
    for rule in graph.rules:
        kept.update((node, node) for node in (rule, *graph.operands[rule][1:]))
    for node in needed(graph, nodes, kept):
        operands = graph.operands[node]
        if not operands:
            kept[node] = node
        elif graph.heads[node] is Alias:
            kept[node] = kept[operands[0]]
        else:
            kept[node] = graph.like(node, tuple([kept[operand] for operand in operands]))
    return [kept[node] for node in nodes]
