"""Notes on an expansion: branches taken, conventions at kinks, values outside a domain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.ir.program import Head, reachable
from symad.classroom.expansion.expansion_levels import Levelled
from symad.classroom.expansion.expansion_values import NodeValues
from symad.derivatives.level import Level
from symad.display.document import Cell

FEW = 4
SHORT = 60  # nodes of a formula that is written out
_AT_A_KINK: dict[Head, str] = {
    sp.Abs: "there the derivative of |u| is taken as sign(0) = 0",
    sp.Max: "at a tie each of the two gets one half",
    sp.Min: "at a tie each of the two gets one half",
}


def asked_conditions(level: Level) -> dict[int, bool]:
    """Return the conditions that Python's control flow evaluated during the call of f, and their answers."""
    graph, values = level.scope.graph, level.scope.values
    return {node: bool(values[node]) for node in list(values) if graph.is_boolean(node) and graph.operands[node]}


def notes_of(
    values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic], answers: Mapping[int, bool]
) -> tuple[Cell, ...]:
    """Return the notes, each a line of prose with mathematics."""
    notes: list[Cell] = []
    for node, answer in list(answers.items())[:FEW]:
        if (shown := written(values, node, symbols)) is not None:
            verdict = "holds" if answer else "does not hold"
            notes.append(("Here ", shown, f" {verdict}: only the path that Python takes then is expanded."))
    if values.exceptional:
        conditions = sorted({sp.Eq(*condition.args) for condition in values.exceptional}, key=str)[:FEW]
        listed: list[Any] = [part for c in conditions for part in (", ", c.lhs, " = ", c.rhs)][1:]
        notes.append(("The formulas hold except where ", *listed, ": there a convention takes their place."))
    return (*notes, *_kinks(values, nodes, symbols), *_not_finite(values, nodes, symbols))


def _kinks(values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic]) -> list[Cell]:
    """Return the conventions that a numeric expansion used."""
    graph, notes = values.graph, list[Cell]()
    for target, _ in nodes.stages[0].rows:
        operands = graph.operands[target]
        if graph.heads[target] not in _AT_A_KINK or any(map(values.is_symbolic, operands)):
            continue
        sizes = values.of(operands)
        if sizes[0] == (sizes[1] if len(sizes) > 1 else 0.0):
            shown = written(values, target, symbols)
            convention = f": {_AT_A_KINK[graph.heads[target]]}."
            notes.append(f"A kink{convention}" if shown is None else (shown, f" has a kink here{convention}"))
    return notes[:FEW]


def _not_finite(values: NodeValues, nodes: Levelled, symbols: Mapping[int, sp.Basic]) -> list[Cell]:
    """Return the first operation whose value or derivative is not finite."""
    coefficients = [node for row in nodes.coefficients.values() for node in row if node is not None]
    if all(map(_is_finite, values.of(coefficients))):
        return []
    graph = values.graph
    for node in reachable(graph, nodes.coefficients[()]):  # type: ignore[arg-type]
        if graph.operands[node] and not graph.is_boolean(node) and not _finite_node(values, node):
            return [_domain(values, node, symbols, "is not finite here, outside its domain or at a pole")]
    for stage in nodes.stages:
        for target, _ in stage.rows:
            if not _finite_node(values, stage.parts[target]):
                return [_domain(values, target, symbols, "has a value, but no finite derivative here")]
    return [("A coefficient is not finite.",)]


def _domain(values: NodeValues, node: int, symbols: Mapping[int, sp.Basic], verdict: str) -> Cell:
    graph, shown = values.graph, written(values, node, symbols)
    operands = [part for part in graph.operands[node] if part not in graph.atoms and not values.is_symbolic(part)]
    numbers = ", ".join(f"{value:g}" for value in values.of(operands))
    name = (graph.heads[node].__name__,) if shown is None else (shown,)
    return (*name, f" {verdict} (at {numbers})." if numbers else f" {verdict}.")


def _finite_node(values: NodeValues, node: int | None) -> bool:
    value = values.short(node, SHORT)
    return value is None or _is_finite(value)


def _is_finite(value: Any) -> bool:
    if isinstance(value, sp.Basic):
        return not value.has(sp.nan, sp.zoo, sp.oo, -sp.oo)
    return math.isfinite(value)


def written(values: NodeValues, node: int, symbols: Mapping[int, sp.Basic], limit: int = SHORT) -> sp.Basic | None:
    """Return a traced node as the user wrote it, in the symbols of the argument; None if it is longer than `limit`."""
    graph, rebuilt = values.graph, dict(symbols)
    if values.size(node) > limit:
        return None
    for part in reachable(graph, [node]):
        operands = [rebuilt[operand] for operand in graph.operands[part] if operand in rebuilt]
        if part not in rebuilt and not operands:
            rebuilt[part] = graph.atoms[part]
        elif part not in rebuilt:
            rebuilt[part] = rebuild(graph.heads[part], operands, evaluate=True)
    return rebuilt[node]
