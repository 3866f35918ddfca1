"""Sharing: the graph without aliases, in which equal operations of different levels are one, as in a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy as sp

from codegen.expressions.sympy_in import PAIRWISE
from codegen.heads import Alias
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
        self.plain, self.there = Graph(lines=False), list[int]()
        for node, (head, operands) in enumerate(zip(graph.heads, graph.operands, strict=True)):
            if node in inputs:
                self.there.append(self.plain.own_leaf(inputs[node]))
            elif not operands:
                self.there.append(self.plain.leaf(graph.atoms[node]))
            elif head is Alias:
                self.there.append(self.there[operands[0]])
            else:
                moved = [self.there[operand] for operand in operands]
                pairwise = head in PAIRWISE and len(moved) == 2
                self.there.append(self.plain.pair(head, *moved) if pairwise else self.plain.node(head, *moved))

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
