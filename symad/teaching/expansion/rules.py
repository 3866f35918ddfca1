"""What a lecturer calls the rule behind a line, with the partial derivatives that `symad.rules` has for its head."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass

import sympy as sp

from codegen.heads import Alias
from codegen.ir.program import Head
from symad.display.document import Cell, Inline
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.rules.composites import derivative_form
from symad.rules.partials import edges
from symad.rules.undefined import Formal, formal
from symad.teaching.expansion.expansion_values import Values, as_sympy

_CHOICES: dict[Head, str] = {
    sp.Piecewise: "that of the branch taken",
    sp.Max: "that of the larger one",
    sp.Min: "that of the smaller one",
}


@dataclass(frozen=True)
class Rule:
    """The name of a rule, and the partial derivatives of the head: (how it is called, what it is) each."""

    name: str
    partials: tuple[tuple[sp.Expr, sp.Expr], ...] = ()

    def cell(self) -> Cell:
        """Return the rule as it stands in a table: power rule, 3u**2."""
        if not self.partials:
            return self.name
        parts: list[Inline] = []
        for called, found in self.partials:
            parts += [", " if parts else f"{self.name}: ", called]
            parts += [" = ", found] if found != called else []
        return tuple(parts)


def rule_of(graph: Graph, node: int, active: Container[int], names: Mapping[int, sp.Expr]) -> Rule:
    """Return the rule by which a node is differentiated in its active operands, which have names.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> rule = rule_of(graph, graph.node(sp.sin, x), [x], {x: sp.Symbol("u_1")})
    >>> rule.name, rule.partials
    ('chain rule', ((Derivative(sin(u_1), u_1), cos(u_1)),))
    """
    head, operands = graph.heads[node], graph.operands[node]
    if node in graph.rules:
        return Rule("the rule given with this function")
    if head is Alias:
        return Rule("the same value")
    if head is sp.Add:
        return Rule("sum rule")
    if head is sp.Mul and operands[0] != operands[1]:
        return Rule("product rule" if all(operand in active for operand in operands) else "constant factor")
    if head in _CHOICES:
        return Rule(_CHOICES[head])
    return _asked(graph, node, active, names)


def _asked(graph: Graph, node: int, active: Container[int], names: Mapping[int, sp.Expr]) -> Rule:
    """Ask the table of rules for the partial derivatives of a head in the names of its operands."""
    head, operands = derivative_form(Builder(graph), node)
    build = Builder(Graph())
    letters: dict[int, int] = {}
    for operand in operands:
        atom, name = graph.atoms.get(operand), names.get(operand)
        number = atom is not None and atom.is_number
        letter = atom if number else name if isinstance(name, sp.Symbol) else sp.Symbol(f"c_{len(letters)}")
        letters.setdefault(operand, build.graph.leaf(letter))
    moving = [letters[operand] for operand in dict.fromkeys(operands) if operand in active]
    line = build.graph.node(head, *[letters[operand] for operand in operands])
    values = Values(build.graph, len(build.graph), {})
    found = edges(build, line, moving.__contains__)
    if not found:
        return Rule("constant between its jumps")
    name = "power rule" if head is sp.Pow else "chain rule"
    if head is sp.Pow and build.constant(letters[operands[1]]) is None:
        name = "exponential" if operands[0] not in active else "power rule and exponential"
    elif head is sp.Pow and operands[1] == Builder(graph).minus_one:
        name = "reciprocal rule"
    written = (sp.S.One if coefficient is None else values.of([coefficient])[0] for coefficient, _, _ in found)
    called = (_called(head, build.graph, line, source) for _, source, _ in found)
    return Rule(name, tuple(zip(called, written, strict=True)))


def _called(head: Head, graph: Graph, line: int, source: int) -> sp.Expr:
    """Return how a partial derivative is written: sin'(u), or d/du u**3."""
    letter, count = graph.atoms[source], len(graph.operands[line])
    if issubclass(head, Formal):
        orders = tuple(
            order + (operand == source) for order, operand in zip(head.orders, graph.operands[line], strict=True)
        )
        return formal(head.function, orders)(*(graph.atoms[operand] for operand in graph.operands[line])).doit()
    if count == 1 and issubclass(head, sp.Function):
        return sp.Derivative(sp.Function(head.__name__)(letter), letter)
    (written,) = to_sympy(graph, [line])
    return sp.Derivative(as_sympy(written), letter, evaluate=False)
