"""Formulas of nodes in Python's operators, for rows of the ufunc table."""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import sympy as sp

import symad.tracing.values.node_builders as op
from codegen.ir.program import Head
from symad.graph.graph import Graph
from symad.tracing.values.node_builders import Build, comparison, composed


def _binary(build: Build, *, swapped: bool = False) -> Callable[[Term, Any], Term]:
    def operate(self: Term, other: Any) -> Term:
        node = other.node if isinstance(other, Term) else self.graph.number(other)
        return Term(self.graph, build(self.graph, node, self.node) if swapped else build(self.graph, self.node, node))

    return operate


class Term:
    """A node of a graph; its operators build nodes. Numbers are operands too."""

    __slots__ = ("graph", "node")

    def __init__(self, graph: Graph, node: int) -> None:
        self.graph, self.node = graph, node

    __add__, __radd__ = _binary(op.add), _binary(op.add, swapped=True)
    __sub__, __rsub__ = _binary(op.subtract), _binary(op.subtract, swapped=True)
    __mul__, __rmul__ = _binary(op.multiply), _binary(op.multiply, swapped=True)
    __truediv__, __rtruediv__ = _binary(op.divide), _binary(op.divide, swapped=True)
    __pow__ = _binary(op.power)
    __lt__, __le__ = _binary(comparison(sp.StrictLessThan, operator.lt)), _binary(comparison(sp.LessThan, operator.le))
    __ge__ = _binary(comparison(sp.GreaterThan, operator.ge))

    def __neg__(self) -> Term:
        return Term(self.graph, op.negative(self.graph, self.node))


def of(head: Head, *operands: Any) -> Term:
    """Return a head of terms and numbers, one term among them at least."""
    graph = next(operand.graph for operand in operands if isinstance(operand, Term))
    return Term(graph, graph.node(head, *[_node(graph, operand) for operand in operands]))


def built(build: Build, *operands: Any) -> Term:
    """Return what a builder makes of terms and numbers, the first of them a term."""
    graph = operands[0].graph
    return Term(graph, build(graph, *[_node(graph, operand) for operand in operands]))


def chosen(condition: Term, value: Any, otherwise: Any) -> Term:
    """Return a choice of two terms or numbers."""
    return built(op.select, condition, value, otherwise)


def _node(graph: Graph, operand: Any) -> int:
    return operand.node if isinstance(operand, Term) else graph.number(operand)


def formula(terms: Callable[..., Term]) -> Build:
    """Return the builder of a formula."""
    return composed(lambda graph, *operands: terms(*[Term(graph, node) for node in operands]).node)


HALF = Fraction(1, 2)
