"""Merge the results of all paths: two under a condition, until one is left, with the guards of where it has no value.

Common parts of two results are computed once, and a choice is made where they differ.

`f(a, s)` where c holds, else `f(b, s)`, equals f(choice of a or b, s): the same bits and the same derivatives, because
each head is evaluated at the operands of the branch that is taken. Where two results differ in several places, a choice
at each place may cost more than one between the results; the operations of both are counted.

No choice moves into a head that is differentiated as part of a composition (log(1 + exp(u)): see `partials`), which it
would hide, nor to a constant operand, such as an order or an exponent, except in sums and products.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

import optree
import sympy as sp

import symad.tracing.values.node_builders as op
from codegen.heads import Alias
from codegen.ir.program import needed
from codegen.ir.row_table import COMMUTATIVE
from codegen.records import dataclass
from symad.errors import ArgumentError
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.partials import derivative_form
from symad.tracing.control.decisions import Decisions, in_words
from symad.tracing.values.constant_nodes import as_truth, constant
from symad.tracing.values.container_types import NAMESPACE
from symad.tracing.values.node_trees import Tree

_OF_CONSTANTS = (sp.Add, sp.Mul, sp.Piecewise)  # heads that a constant does not change

Pair = tuple[int, int]  # a node where the condition holds, and one where it does not


def merged(graph: Graph, condition: int, holds: Tree, fails: Tree, start: int = 0) -> Tree:
    """Return one of two trees that are alike, leaf by leaf the first where a condition holds, else the second.

    Nodes below `start` are older than both trees. No choice moves into a pair of them.

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
    parted = _DifferingPairs(graph, pairs, start)
    ways = [parted.written(condition, pairs, ends) for ends in parted.ways(pairs)]
    if len(ways) > 1:
        common = parted.common() | {condition}
        ways.sort(key=lambda way: graph.count_operations(way, common))
    return holds.refill(ways[0])


class _DifferingPairs:
    """Pairs of nodes, followed down while both have the same head: `below` has the pairs of operands that differ.

    None ends the descent. In loops one result may be a later step of the other, and pairs would lead back through all
    steps. So they end at a node that occurs on both sides.
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
                differing = None if is_end else self._operands(*pair)
                self.below[pair] = differing
                stack += differing or ()
                first.update(left for left, _ in differing or ())
                second.update(right for _, right in differing or ())
        for pair in sorted(order):  # operands have lower numbers than their users
            inside = self.below[pair]
            if inside is not None and any(self._is_truth(part) and self.below[part] is None for part in inside):
                self.below[pair] = None  # a choice between truth values is no cheaper than one between numbers

    def ways(self, roots: Iterable[Pair]) -> list[set[Pair]]:
        """Return sets of pairs to choose between: as far down as one for each result, and as far down as possible."""
        ends: dict[Pair, Pair] = {}
        for pair in sorted(self.below):
            inside = {ends[part] for part in self.below[pair] or ()}
            ends[pair] = inside.pop() if len(inside) == 1 else pair
        highest = {ends[pair] for pair in roots if pair[0] != pair[1]}
        lowest = {pair for pair, inside in self.below.items() if inside is None}
        return [highest] if highest <= lowest else [highest, lowest]

    def common(self) -> set[int]:
        """Return the nodes that every such set needs."""
        parted = {node for pair, inside in self.below.items() if inside is None for node in pair}
        inner = [pair for pair, inside in self.below.items() if inside is not None]
        return parted | {first for pair in inner for first, second in _aligned(self.graph, *pair) if first == second}

    def written(self, condition: int, roots: Sequence[Pair], ends: Collection[Pair]) -> list[int]:
        """Return the nodes of results, with choices at the given pairs."""
        graph, chosen, stack = self.graph, dict[Pair, int](), list(roots)
        while stack:
            pair = stack[-1]
            left, right = pair
            inside = self.below.get(pair) if pair not in ends else None
            missing = [part for part in inside or () if part not in chosen]
            stack += missing
            if missing:
                continue
            stack.pop()
            if pair in chosen:
                continue
            if left == right:
                chosen[pair] = left
            elif inside is None:
                chosen[pair] = op.select(graph, condition, left, right)
            else:
                aligned = _aligned(graph, left, right)
                parts = tuple(chosen.get(part, part[0]) for part in aligned)
                chosen[pair] = graph.like(left, parts)
        return [chosen[pair] for pair in roots]

    def _operands(self, left: int, right: int) -> list[Pair] | None:
        """Return the operands in which two nodes differ, None if no choice moves into them."""
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
        """Whether a node is differentiated by its own head, or as the square of its operand."""
        _, operands = derivative_form(self.build, node)
        own = self.graph.operands[node]
        return all(operand in own or self.build.constant(operand) is not None for operand in operands)

    def _is_truth(self, pair: Pair) -> bool:
        return self.graph.is_boolean(pair[0]) or self.graph.is_boolean(pair[1])


def _aligned(graph: Graph, left: int, right: int) -> list[Pair]:
    """Return operands in pairs. In sums and products, a common operand is paired with itself."""
    first, second = graph.operands[left], graph.operands[right]
    if len(first) == 2 and graph.heads[left] in COMMUTATIVE and (first[0] == second[1] or first[1] == second[0]):
        second = second[::-1]
    return list(zip(first, second, strict=True))


def _is_constant(graph: Graph, node: int) -> bool:
    return not graph.operands[node] and not issubclass(graph.heads[node], sp.Symbol)


def without_aliases(graph: Graph, nodes: Sequence[int], kept: dict[int, int]) -> list[int]:
    """Return nodes without aliases, except those in `kept`, which gets the results for all others.

    Closed levels made new aliases of the same values in each run. An alias with a rule of its own stays, because its
    derivative is not that of its value; so do the nodes in which the rule has derivatives.
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


Guards = tuple[int | None, ...]  # of which one holds; None always does
RAISED = object()  # in place of a result that a path does not have
UNIONS: dict[type, Callable[[Sequence[Any]], Sequence[Any]]] = {}  # for results whose structure depends on the path


class UnlikeResultsError(ArgumentError):
    """The results of two paths differ in structure or shape."""


@dataclass(frozen=True)
class Result:
    """The result of a path: nodes, or None where the function raises; and the guards under which it has no value."""

    tree: Tree | None
    raised: Guards


def lifted(values: list[Any], raised: Sequence[Guards], lift: Callable[[Any], Tree]) -> list[Result]:
    """Return the results of paths as trees of nodes."""
    if len(values) > 1:
        values = _of_one_structure(values)
    trees = [None if value is RAISED else lift(value) for value in values]
    return [Result(tree, guards) for tree, guards in zip(trees, raised, strict=True)]


def of_all_paths(
    graph: Graph, name: str, paths: Sequence[Decisions], results: Sequence[Result], plain: dict[int, int], start: int
) -> Result:
    """Return the result of a function: neighbouring paths, which differ in their last decision, are merged.

    `plain` maps nodes to nodes without aliases (see `without_aliases`); nodes below `start` are older than the paths.
    UnlikeResultsError if two results cannot be merged.
    """
    whole = next(result.tree for result in results if result.tree is not None)
    stack: list[tuple[Decisions, Result]] = []
    for path, result in zip(paths, results, strict=True):
        if result.tree is not None and len(paths) > 1:
            _check_alike(name, whole, result.tree, paths[0], path)
            result = replace(result, tree=result.tree.refill(without_aliases(graph, result.tree.flat, plain)))
        stack.append((path, result))
        while len(stack) > 1 and stack[-2][0][:-1] == stack[-1][0][:-1]:
            (decisions, holds), (_, fails) = stack[-2:]
            del stack[-2:]
            stack.append((decisions[:-1], _either(graph, decisions[-1].condition, holds, fails, start)))
    ((_, merged_result),) = stack
    return merged_result


def _either(graph: Graph, condition: int, holds: Result, fails: Result, start: int) -> Result:
    """Return the result of two paths; if one of them has no value, that of the other."""
    build = Builder(graph)
    sides = ((condition, holds.raised), (build.negate(condition), fails.raised))
    conditions = [build.both(side, guard) for side, guards in sides for guard in guards]
    raised: Guards = (reduce(build.either, conditions),) if conditions else ()
    if holds.tree is None or fails.tree is None:
        return Result(fails.tree if holds.tree is None else holds.tree, raised)
    return Result(merged(graph, condition, holds.tree, fails.tree, start), raised)


def _check_alike(name: str, first: Tree, other: Tree, path: Decisions, other_path: Decisions) -> None:
    if first.is_like(other):
        return
    met, expected = (other.shapes, first.shapes) if first.structure == other.structure else (other, first)
    raise UnlikeResultsError(
        f"{name} returns {_form(met)} where {in_words(other_path)}",
        why=f"it returns {_form(expected)} where {in_words(path)}",
        do="return the same structure and shapes on every path",
    )


def with_nan(graph: Graph, tree: Tree, condition: int | None) -> Tree:
    """Return a tree with NaN where a condition holds."""
    if condition is None:
        return tree
    nan = graph.number(math.nan)
    return tree.refill([op.select(graph, condition, nan, node) for node in tree.flat])


def _of_one_structure(values: list[Any]) -> list[Any]:
    """Return results with parts whose structure depends on the path (sparse matrices) in a common structure."""
    whole = [k for k, value in enumerate(values) if value is not RAISED]
    parts = [optree.tree_flatten(values[k], lambda v: type(v) in UNIONS, namespace=NAMESPACE) for k in whole]
    if len({structure for _, structure in parts}) != 1 or not parts[0][0]:
        return values
    columns = [list(column) for column in zip(*[leaves for leaves, _ in parts], strict=True)]
    for k, column in enumerate(columns):
        kind = type(column[0])
        if kind in UNIONS and all(type(leaf) is kind for leaf in column):
            columns[k] = list(UNIONS[kind](column))
    aligned = list(values)
    for k, leaves in zip(whole, zip(*columns, strict=True), strict=True):
        aligned[k] = optree.tree_unflatten(parts[0][1], leaves)
    return aligned


def _form(value: Tree | list[tuple[int, ...]]) -> str:
    if isinstance(value, Tree):
        return str(value.structure).removeprefix("PyTreeSpec(").removesuffix(")")
    return ("shape " if len(value) == 1 else "shapes ") + ", ".join(map(str, value))
