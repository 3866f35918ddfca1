"""Check the lines of an explanation when they are shown: formulas against values, rows against slopes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.errors import WorkbenchError
from codegen.evaluation.interpret import evaluate
from codegen.heads import Alias
from symad.classroom.equality.hyperdual import HyperDual, constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.classroom.explanation.explanation_lines import Book, Row, Statement, VariableLine
from symad.display.mathematics import text_of
from symad.errors import InvariantError

_AGREED = mp.mpf(10) ** -25
_MOST_LINES = 400  # that are checked of a long program
_FAILURES = (UnknownValueError, WorkbenchError, ArithmeticError, ValueError, TypeError, KeyError, NotImplementedError)


def check_statements(book: Book, statements: Sequence[Statement]) -> int:
    """Raise InvariantError for a false line; return the number of lines with values to compare.

    A line is compared with the value of its node. A row is compared with slopes of the lines, by hyper-dual arithmetic.
    """
    chosen = statements[:_MOST_LINES]
    with mp.workdps(DIGITS):
        values = _values(book, [node for statement in chosen for node in _nodes(statement)])
        known = {book.symbol(node): constant(value) for node, value in values.items() if book.knows(node)}
        return sum(_check(book, statement, values, known) for statement in chosen)


def _nodes(statement: Statement) -> list[int]:
    if isinstance(statement, VariableLine):
        return [statement.node, *statement.book.graph.operands[statement.node]]
    if isinstance(statement, Row):
        edges = [(coefficient, source) for coefficient, source, _ in statement.edges]
        return [statement.node, *(node for edge in edges for node in edge if node is not None)]
    return []


def _values(book: Book, nodes: Sequence[int]) -> dict[int, Any]:
    """Return the real values of nodes at random inputs, without nodes that have none."""
    values: dict[int, Any] = {}
    for node, symbol in book.inputs.items():
        values[node] = mp.mpf(random.Random(str(symbol)).uniform(0.3, 1.9))
    for node in dict.fromkeys(nodes):
        try:
            evaluate(book.graph, [node], values, "reference", DIGITS)
        except _FAILURES:
            continue
    return {node: value for node, value in values.items() if isinstance(value, mp.mpf) and mp.isfinite(value)}


def _check(book: Book, statement: Statement, values: dict[int, Any], known: dict[sp.Basic, Any]) -> bool:
    try:
        if isinstance(statement, VariableLine) and statement.node in values and statement.node not in book.inputs:
            pairs = [(IndependentValues(known).of(statement.expression).real, values[statement.node])]
        elif isinstance(statement, Row):
            pairs = [pair for edge in statement.edges for pair in _slopes(book, statement, edge, values, known)]
        else:
            return False
    except _FAILURES:
        return False
    for shown, value in pairs:
        if not abs(shown - value) <= _AGREED * max(1, abs(value)):
            raise InvariantError(
                "a displayed line that does not hold",
                where=f"{statement.name} = {text_of(statement.expression)[:100]}",
                do="please report it with the function: this is a defect of symad",
            )
    return bool(pairs)


def _slopes(
    book: Book, row: Row, edge: tuple[Any, int, Any], values: dict[int, Any], known: dict[sp.Basic, Any]
) -> list[tuple[Any, Any]]:
    """Return the coefficient of an edge and the slope of its line; nothing without a formula."""
    coefficient, source, guard = edge
    result, moved = (row.node, source) if row.kind == "tangent" else (source, row.node)
    graph, symbol = book.graph, book.symbol(moved)
    alone = [other for other in row.edges if other[1] == source] == [edge]
    if guard is not None or not alone or result in graph.rules or graph.heads[result] is Alias:
        return []
    if symbol not in known or moved not in graph.operands[result] or not book.is_line(result):
        return []
    written = mp.mpf(1) if coefficient is None else values[coefficient]
    level = HyperDual({0: known[symbol].real, 1: mp.mpf(1)})
    line = IndependentValues({**known, symbol: level}).of(VariableLine(book, result).expression)
    return [(written, line.parts.get(1, mp.mpf(0)))]
