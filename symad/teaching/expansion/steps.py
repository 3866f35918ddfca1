"""The lines of an expansion: every operation of every level, the rule behind it, and its eps-part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from symad.derivatives.linear import Row
from symad.graph.graph import Graph
from symad.teaching.expansion.epsilon import Nested, monomial
from symad.teaching.expansion.expansion_levels import Stage
from symad.teaching.expansion.expansion_values import Values, as_sympy
from symad.teaching.expansion.rules import Rule, rule_of

SHORT = 60  # nodes of a value that stands in a line
_LETTERS = ("u", "z", "q", "s", "y", "t", "line")


@dataclass(frozen=True)
class Step:
    """One line of one level: `name = line`, the rule, the eps-part in names, and what both are worth (None: too long).

    `repeated` says that an earlier level has the same line, with the same rule.
    """

    level: int
    name: sp.Symbol
    line: sp.Expr
    rule: Rule
    part: sp.Expr
    value: Any
    part_value: Any
    repeated: bool

    @property
    def part_name(self) -> sp.Symbol:
        """What the eps-part is called: du_3 for the line u_3."""
        return sp.Symbol(f"d{self.name.name}")

    @property
    def dual(self) -> sp.Expr:
        """The line as a dual number: name + part * eps."""
        return Nested(self.name, 1, self.part, monomial((self.level,)))


def steps_of(values: Values, stages: Sequence[Stage], given: Mapping[int, sp.Expr], most: int) -> list[list[Step]]:
    """Return the lines of each stage, at most so many of each; `given` has the symbols of the parameters."""
    letter = _letter(values.graph)
    names: dict[int, sp.Symbol] = {}
    found = []
    for stage, new in zip(stages, new_rows(stages), strict=True):
        for target, _ in new:
            names[target] = sp.Symbol(f"{letter}_{len(names) + 1}")
        lines, fresh = _Lines(values, stage, names, given), {target for target, _ in new}
        rows = [*new, *(row for row in stage.rows if row[0] not in fresh)]
        found.append([lines.step(row, row[0] not in fresh) for row in rows[:most]])
    return found


def new_rows(stages: Sequence[Stage]) -> list[list[Row]]:
    """Return for each stage the rows that no stage before it has."""
    seen: set[int] = set()
    found = []
    for stage in stages:
        found.append([row for row in stage.rows if row[0] not in seen])
        seen |= {target for target, _ in stage.rows}
    return found


def _letter(graph: Graph) -> str:
    """Return a letter for lines that no symbol of the user has."""
    taken = {atom.name.split("_")[0] for atom in graph.atoms.values() if isinstance(atom, sp.Symbol)}
    return next((letter for letter in _LETTERS if not {letter, f"d{letter}"} & taken), "row")


class _Lines:
    """The lines of one stage, with the names that they and all before them have."""

    def __init__(
        self, values: Values, stage: Stage, names: Mapping[int, sp.Symbol], given: Mapping[int, sp.Expr]
    ) -> None:
        self._values, self._graph, self._stage = values, values.graph, stage
        self._names = names
        self._written: dict[int, sp.Expr] = {**given, **names}

    def step(self, row: Row, repeated: bool) -> Step:
        """Return the line of one row."""
        target, edges = row
        operands = self._graph.operands[target]
        shown = operands[:1] if self._graph.heads[target] is Alias else operands
        written = [self._write(operand) for operand in shown]
        line = rebuild(self._graph.heads[target], written)
        active = {source for _, source, _ in edges}
        terms = [self._term(*edge) for edge in edges]
        return Step(
            self._stage.level,
            self._names[target],
            as_sympy(line),
            rule_of(self._graph, target, active, self._written),
            as_sympy(sp.Add(*terms)),
            self._values.short(target, SHORT),
            self._values.short(self._stage.parts[target], SHORT),
            repeated,
        )

    def _term(self, coefficient: int | None, source: int, guard: int | None) -> sp.Expr:
        term = self._part_of(source)
        if coefficient is not None:
            term = self._write(coefficient) * term
        return term if guard is None else sp.Piecewise((term, self._write(guard)), (0, True))

    def _part_of(self, source: int) -> sp.Expr:
        """Return the eps-part of an operand: the direction of a parameter, du_1 of the line u_1."""
        source = self._values.resolved(source)
        part = self._stage.parts[source]
        if part is None:
            return sp.S.Zero
        if source in self._names:
            return sp.Symbol(f"d{self._names[source]}")
        direction = self._values.short(part, SHORT)
        return sp.Symbol(f"d{self._write(source)}") if direction is None else sp.sympify(direction)

    def _write(self, node: int) -> sp.Expr:
        """Return a node in the names of lines; what has no name is written out, or called c_1, c_2 where it is long."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self._written:
                stack.pop()
                continue
            taken = self._values.generic(top)
            operands = (taken,) if taken is not None else self._graph.operands[top]
            missing = [operand for operand in operands if operand not in self._written]
            if missing:
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
