"""Jacobians by vertex elimination. Forward and reverse mode are two of its orders.

The linear map of a trace is a graph whose edges carry partial derivatives. Eliminating a node multiplies every edge
into it with every edge out of it; when only inputs and outputs are left, the edges are the Jacobian. From the inputs
on, this is forward mode; from the outputs on, reverse mode. The cross-country order takes the node with the smallest
Markowitz degree (edges in times edges out) next: a heuristic, because the optimal order is NP-complete (Naumann 2008).

Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed. (2008), chapters 9 and 10.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np

from symad.derivatives.level import Kind, note
from symad.derivatives.linear import Linear, Term, scale, settle, total, totals
from symad.graph.builder import Builder
from symad.tracing.values.node_trees import Nodes

Entries = dict[tuple[int, int], int]


def forward(build: Builder, linear: Linear) -> Entries:
    """Return the non-zeros of the Jacobian, `{(output, input): node}`, with the nodes eliminated from the inputs on.

    >>> import sympy as sp
    >>> from symad.derivatives.linear import linearize
    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x, y = (build.graph.alias(build.graph.leaf(sp.Symbol(name))) for name in "xy")
    >>> linear = linearize(build, [build.call(sp.sin, x), build.mul(x, y)], [x, y])
    >>> forward(build, linear) == reverse(build, linear) == cross_country(build, linear)
    True
    >>> list(forward(build, linear))
    [(0, 0), (1, 0), (1, 1)]
    """
    return _eliminated(_Edges(build, linear), [target for target, _ in linear.rows], "fwd")


def reverse(build: Builder, linear: Linear) -> Entries:
    """Return the same with the nodes eliminated from the outputs on."""
    return _eliminated(_Edges(build, linear), [target for target, _ in reversed(linear.rows)], "rev")


def cross_country(build: Builder, linear: Linear, limit: float = inf) -> Entries | None:
    """Eliminate in the order of the smallest Markowitz degree; None once more than `limit` operations are made.

    A node whose degree changed is queued again, so the work is proportional to the products.
    """
    edges = _Edges(build, linear)
    place = {target: k for k, (target, _) in enumerate(linear.rows)}
    queue = [(edges.degree(target), k, target) for target, k in place.items()]
    heapify(queue)
    while queue:
        degree, _, node = heappop(queue)
        if node not in place or degree != edges.degree(node):
            continue  # eliminated, or queued again with another degree
        del place[node]
        for neighbour in edges.eliminate(node):
            if neighbour in place:
                heappush(queue, (edges.degree(neighbour), place[neighbour], neighbour))
        if edges.operations > limit:
            return None
    return edges.entries("cross-country")


def forward_operations(linear: Linear, limit: float = inf) -> int:
    """Return how many products and sums elimination from the inputs makes, from the structure alone.

    For elimination from the outputs, pass the transposed map. Counting stops beyond the limit.
    """
    depends: dict[int, frozenset[int]] = {}
    for k, node in enumerate(linear.inputs):
        depends[node] = depends.get(node, frozenset()) | {k}
    ones, operations = set(depends), 0  # nodes whose only derivative is the number 1: products with it are not made
    for target, row in linear.rows:
        union = depends.get(target, frozenset())
        for coefficient, source, _ in row:
            reached = depends.get(source, frozenset())  # transposed maps have sources that no output uses
            operations += len(union & reached)
            operations += len(reached) if coefficient is not None and source not in ones else 0
            union = union | reached if union else reached
        ones.discard(target)
        if target not in depends and len(row) == 1 and row[0][0] is None and row[0][1] in ones:
            ones.add(target)
        depends[target] = union
        if operations > limit:
            break
    return operations


class _Edges:
    """The linear map as edges by both ends; output number k is the node ~k, which nothing else is."""

    def __init__(self, build: Builder, linear: Linear) -> None:
        self.build, self.inputs, self.outputs = build, linear.inputs, len(linear.outputs)
        self.linear, self.start = linear, len(build.graph)
        self.into: dict[int, dict[int, list[Term]]] = {}
        self.out_of: dict[int, dict[int, None]] = {}
        self.operations, parameters = 0, set(linear.inputs)
        for target, row in linear.rows:
            for coefficient, source, guard in row:
                self._insert(source, target, (build.one if coefficient is None else coefficient, guard))
        for k, node in enumerate(linear.outputs):
            if node in self.into or node in parameters:  # else it is a constant
                self._insert(node, ~k, (build.one, None))

    def _insert(self, source: int, target: int, term: Term) -> None:
        self.into.setdefault(target, {}).setdefault(source, []).append(term)
        self.out_of.setdefault(source, {})[target] = None

    def degree(self, node: int) -> int:
        """Return the Markowitz degree of a node: the number of products its elimination makes."""
        return len(self.into.get(node, ())) * len(self.out_of.get(node, ()))

    def eliminate(self, node: int) -> Sequence[int]:
        """Replace the edges into and out of a node by their products; return its former neighbours."""
        build, unit = self.build, self.build.one
        sources = {source: total(build, terms) for source, terms in self.into.pop(node, {}).items()}
        targets = self.out_of.pop(node, {})
        for source in sources:
            del self.out_of[source][node]
        for target in targets:
            into = self.into[target]
            coefficient, guard = total(build, into.pop(node))
            for source, term in sources.items():
                self.operations += (coefficient != unit and term[0] != unit) + (source in into)
                into.setdefault(source, []).append(scale(build, term, coefficient, guard))
                self.out_of[source][target] = None
        return (*sources, *targets)

    def entries(self, mode: str) -> Entries:
        """Return the entries after all inner nodes are eliminated, by the numbers of outputs and inputs."""
        column = {node: k for k, node in enumerate(self.inputs)}
        entries = {
            (k, column[source]): settle(self.build, term)
            for k in range(self.outputs)
            for source, term in sorted(totals(self.build, self.into.get(~k, {})).items())
        }
        kind: Kind = "cotangent" if mode == "rev" else "tangent"
        note("eliminated", self.build.graph, self.linear.level, self.start, self.linear, mode, kind, entries)
        return entries


def dense(build: Builder, entries: Entries, shape: tuple[int, int]) -> Nodes:
    """Return the full matrix of nodes from its entries; a structural zero becomes the number 0."""
    matrix = np.full(shape, build.zero, dtype=np.int64)
    for place, node in entries.items():
        matrix[place] = node
    return matrix


def _eliminated(edges: _Edges, order: list[int], mode: str) -> Entries:
    for node in order:
        edges.eliminate(node)
    return edges.entries(mode)
