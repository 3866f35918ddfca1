"""The lines of an expansion: each operation of each level, its rule, and its epsilon part."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias, log_argument
from codegen.ir.program import Head
from codegen.records import dataclass
from symad.classroom.expansion.epsilon import Levels, Nested, monomial
from symad.classroom.expansion.expansion_levels import Levelled, Stage
from symad.classroom.expansion.expansion_values import NodeValues, as_sympy
from symad.classroom.formulas.given import Given
from symad.derivatives.linear import Row
from symad.display.document import Cell, Inline
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.graph.sympy_io import to_sympy
from symad.rules.partials import derivative_form, edges
from symad.rules.undefined import Formal, formal
from symad.tracing.values.node_trees import Tree

_CHOICES: dict[Head, str] = {
    sp.Piecewise: "that of the branch taken",
    sp.Max: "that of the larger one",
    sp.Min: "that of the smaller one",
}


@dataclass(frozen=True)
class NamedRule:
    """The name of a rule, and the partial derivatives of the head as (name, formula)."""

    name: str
    partials: tuple[tuple[sp.Expr, sp.Expr], ...] = ()

    def cell(self) -> Cell:
        """Return the rule for a table: "power rule", 3u**2."""
        if not self.partials:
            return self.name
        parts: list[Inline] = []
        for called, formula in self.partials:
            parts += [", " if parts else f"{self.name}: ", called]
            parts += [" = ", formula] if formula != called else []
        return tuple(parts)


def rule_of(graph: Graph, node: int, active: Container[int], names: Mapping[int, sp.Expr]) -> NamedRule:
    """Return the rule that differentiates a node in its active operands, whose names are given.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> rule = rule_of(graph, graph.node(sp.sin, x), [x], {x: sp.Symbol("u_1")})
    >>> rule.name, rule.partials
    ('chain rule', ((Derivative(sin(u_1), u_1), cos(u_1)),))
    """
    head, operands = graph.heads[node], graph.operands[node]
    if node in graph.rules:
        return NamedRule("the rule given with this function")
    if head in (Alias, log_argument):
        return NamedRule("the same value")
    if head is sp.Add:
        return NamedRule("sum rule")
    if head is sp.Mul and operands[0] != operands[1]:
        return NamedRule("product rule" if all(operand in active for operand in operands) else "constant factor")
    if head in _CHOICES:
        return NamedRule(_CHOICES[head])
    return _table_rule(graph, node, active, names)


def _table_rule(graph: Graph, node: int, active: Container[int], names: Mapping[int, sp.Expr]) -> NamedRule:
    """Return the rule of a head with its partial derivatives in the names of its operands."""
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
    values = NodeValues(build.graph, len(build.graph), {})
    partials = edges(build, line, moving.__contains__)
    if not partials:
        return NamedRule("constant between its jumps")
    name = "power rule" if head is sp.Pow else "chain rule"
    if head is sp.Pow and build.constant(letters[operands[1]]) is None:
        name = "exponential" if operands[0] not in active else "power rule and exponential"
    elif head is sp.Pow and operands[1] == Builder(graph).minus_one:
        name = "reciprocal rule"
    written = (sp.S.One if coefficient is None else values.of([coefficient])[0] for coefficient, _, _ in partials)
    called = (_notation(head, build.graph, line, source) for _, source, _ in partials)
    return NamedRule(name, tuple(zip(called, written, strict=True)))


def _notation(head: Head, graph: Graph, line: int, source: int) -> sp.Expr:
    """Return the notation of a partial derivative: sin'(u), or d/du u**3."""
    letter, count = graph.atoms[source], len(graph.operands[line])
    if issubclass(head, Formal):
        pairs = zip(head.orders, graph.operands[line], strict=True)
        orders = tuple(order + (operand == source) for order, operand in pairs)
        return formal(head.function, orders)(*(graph.atoms[operand] for operand in graph.operands[line])).doit()
    if count == 1 and issubclass(head, sp.Function):
        return sp.Derivative(sp.Function(head.__name__)(letter), letter)
    (written,) = to_sympy(graph, [line])
    return sp.Derivative(as_sympy(written), letter, evaluate=False)


SHORT = 60  # nodes of a value in a line
_LETTERS = ("u", "z", "q", "s", "y", "t", "line")


@dataclass(frozen=True)
class ExpansionStep:
    """One line of one level: `name = line`, its rule, its epsilon part, and both values (None: too long).

    `repeated`: an earlier level has the same line with the same rule.
    """

    level: int
    name: sp.Symbol
    line: sp.Expr
    rule: NamedRule
    part: sp.Expr
    value: Any
    part_value: Any
    repeated: bool

    @property
    def part_name(self) -> sp.Symbol:
        """The name of the eps-part: du_3 for the line u_3."""
        return sp.Symbol(f"d{self.name.name}")

    @property
    def dual(self) -> sp.Expr:
        """The line as a dual number: name + part * eps."""
        return Nested(self.name, 1, self.part, monomial((self.level,)))


def new_rows(stages: Sequence[Stage]) -> list[list[Row]]:
    """Return, for each stage, the rows that no earlier stage has."""
    seen: set[int] = set()
    rows = []
    for stage in stages:
        rows.append([row for row in stage.rows if row[0] not in seen])
        seen |= {target for target, _ in stage.rows}
    return rows


def _letter(graph: Graph) -> str:
    """Return a letter for lines that no symbol of the user begins with."""
    taken = {atom.name.split("_")[0] for atom in graph.atoms.values() if isinstance(atom, sp.Symbol)}
    return next((letter for letter in _LETTERS if not {letter, f"d{letter}"} & taken), "row")


class _StageLines:
    """The lines of one stage, with the names of these and all earlier lines."""

    def __init__(
        self, values: NodeValues, stage: Stage, names: Mapping[int, sp.Symbol], symbols: Mapping[int, sp.Expr]
    ) -> None:
        self._values, self._graph, self._stage = values, values.graph, stage
        self._names = names
        self._written: dict[int, sp.Expr] = {**symbols, **names}

    def step(self, row: Row, repeated: bool) -> ExpansionStep:
        target, edges = row
        operands = self._graph.operands[target]
        shown = operands[:1] if self._graph.heads[target] is Alias else operands
        written = [self._write(operand) for operand in shown]
        line = rebuild(self._graph.heads[target], written)
        active = {source for _, source, _ in edges}
        terms = [self._term(*edge) for edge in edges]
        value, part_value = (self._values.short(node, SHORT) for node in (target, self._stage.parts[target]))
        rule = rule_of(self._graph, target, active, self._written)
        return ExpansionStep(
            self._stage.level, self._names[target], as_sympy(line), rule, as_sympy(sp.Add(*terms)), value, part_value,
            repeated,
        )  # fmt: skip

    def _term(self, coefficient: int | None, source: int, guard: int | None) -> sp.Expr:
        term = self._part_of(source)
        if coefficient is not None:
            term = self._write(coefficient) * term
        return term if guard is None else sp.Piecewise((term, self._write(guard)), (0, True))

    def _part_of(self, source: int) -> sp.Expr:
        """Return the eps-part of an operand: a parameter's direction, or du_1 for the line u_1."""
        resolved = self._values.resolved(source)
        source = resolved if resolved in self._stage.parts else source  # a constant has no part of its own
        if (part := self._stage.parts[source]) is None:
            return sp.S.Zero
        if source in self._names:
            return sp.Symbol(f"d{self._names[source]}")
        direction = self._values.short(part, SHORT)
        return sp.Symbol(f"d{self._write(source)}") if direction is None else sp.sympify(direction)

    def _write(self, node: int) -> sp.Expr:
        """Return a node in the names of lines. A node without a name is written out, or named c_1 if it is long."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._written:
                stack.pop()
                continue
            taken = self._values.generic(top)
            operands = (taken,) if taken is not None else self._graph.operands[top]
            if missing := [operand for operand in operands if operand not in self._written]:
                stack += missing
                continue
            stack.pop()
            parts = [self._written[operand] for operand in operands]
            self._written[top] = self._whole(top, parts, alone=taken is not None)
        return self._written[node]

    def _whole(self, node: int, parts: list[sp.Expr], *, alone: bool) -> sp.Expr:
        if not parts:
            return self._graph.atoms[node]
        if alone or self._graph.heads[node] is Alias:
            return parts[0]
        whole = rebuild(self._graph.heads[node], parts, evaluate=True)
        count = sum(1 for _ in zip(range(SHORT + 1), sp.preorder_traversal(whole), strict=False))
        return sp.Symbol(f"c_{node}") if count > SHORT else whole


@dataclass(frozen=True, eq=False, repr=False)
class Parts:
    """The function, its directions, the coefficients of each output, and the graph behind them."""

    given: Given
    directions: dict[Levels, list[Any]]
    flat: dict[Levels, list[Any]]
    notes: tuple[Cell, ...]
    detail: str
    style: str | None
    values: NodeValues = field(repr=False)
    nodes: Levelled = field(repr=False)
    parameters: Tree = field(repr=False)
    result: Tree = field(repr=False)

    @property
    def levels(self) -> int:
        return len(self.nodes.stages)

    @property
    def is_straight(self) -> bool:
        """Whether all levels share one direction, as a Taylor polynomial needs."""
        first = self.directions[(1,)]
        return all(len(levels) == 1 and parts == first for levels, parts in self.directions.items())

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The stages without rows that matter only at single points, where a convention holds."""
        coefficients = [node for row in self.nodes.coefficients.values() for node in row if node is not None]
        kept = {node for node in self.values.needed(coefficients) if self.values.resolved(node) == node}
        stages = self.nodes.stages
        return tuple(replace(stage, rows=tuple(row for row in stage.rows if row[0] in kept)) for stage in stages)

    def lines(self, most: int) -> list[list[ExpansionStep]]:
        """Return the lines of each level, at most `most` of each, new lines first."""
        symbols = dict(zip(self.parameters.flat, self.given.symbols, strict=True))
        letter, names, steps = _letter(self.values.graph), dict[int, sp.Symbol](), []
        for stage, new in zip(self.stages, new_rows(self.stages), strict=True):
            for target, _ in new:
                names[target] = sp.Symbol(f"{letter}_{len(names) + 1}")
            lines, fresh = _StageLines(self.values, stage, names, symbols), {target for target, _ in new}
            rows = [*new, *(row for row in stage.rows if row[0] not in fresh)]
            steps.append([lines.step(row, row[0] not in fresh) for row in rows[:most]])
        return steps
