"""Sharing: the graph without aliases, in which equal operations of different levels are one, as in a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from codegen.ir.copy_rows import copy_rows
from symad.graph.graph import Graph


class Sharing:
    """A plain copy of a graph; `there[node]` is where a node went, the same place for all that are equal.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> sines = [graph.node(sp.sin, graph.alias(x)) for _ in range(2)]
    >>> Sharing(graph, {}).operations(sines, set())
    1
    """

    def __init__(self, graph: Graph, inputs: Mapping[int, sp.Symbol]) -> None:
        self.plain = Graph(lines=False)
        row_of = {node: self.plain.own_leaf(symbol) for node, symbol in inputs.items()}
        copy_rows(graph, range(len(graph)), self.plain, row_of)
        self.there = [row_of[node] for node in range(len(graph))]

    def operations(self, nodes: Iterable[int], counted: set[int]) -> int:
        """Return how many operations nodes need beyond those that are counted already, which they join."""
        stack, found = [self.there[node] for node in nodes], 0
        while stack:
            node = stack.pop()
            if node not in counted:
                counted.add(node)
                found += bool(self.plain.operands[node])
                stack += self.plain.operands[node]
        return found
