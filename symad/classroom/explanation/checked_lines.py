"""Check the lines of an explanation when they are shown: formulas against values, rows against slopes."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.errors import WorkbenchError
from codegen.evaluation.interpret import evaluate
from codegen.heads import Alias
from symad.classroom.equality.hyperdual import HyperDual, constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.classroom.explanation.explanation_lines import Book, CarriedLine, Row, Statement, VariableLine
from symad.display.mathematics import text_of
from symad.errors import InvariantError

_AGREED = mp.mpf(10) ** -25
_MOST_LINES = 400  # that are checked of a long program
FAILURES = (UnknownValueError, WorkbenchError, ArithmeticError, ValueError, TypeError, KeyError, NotImplementedError)


def check_statements(book: Book, statements: Sequence[Statement]) -> int:
    """Raise InvariantError for a false line; return the number of lines with values to compare.

    A line is compared with the value of its node, at the point of the book or at random inputs. A row is compared with
    slopes of the lines, by hyper-dual arithmetic, and its number with that of its formula.
    """
    chosen = statements if book.values else statements[:_MOST_LINES]
    with mp.workdps(DIGITS):
        values = book.values or values_of(book, [node for statement in chosen for node in _nodes(statement)])
        known, truth = known_values(book, values)
        confirmed = 0
        for statement in chosen:
            confirmed += _check(book, statement, values, known, truth)
            if isinstance(statement, CarriedLine):  # the next one adds to it
                known[statement.symbol] = constant(statement.number)
        return confirmed


def known_values(book: Book, values: dict[int, Any]) -> tuple[dict[sp.Basic, Any], dict[sp.Basic, Any]]:
    """Return the numbers of the names of a book, and its conditions as true or false."""
    named = {book.symbol(node): value for node, value in values.items() if book.is_named(node)}
    known = {symbol: constant(value) for symbol, value in named.items() if not isinstance(value, bool)}
    return known, {symbol: sp.sympify(value) for symbol, value in named.items() if isinstance(value, bool)}


def _nodes(statement: Statement) -> list[int]:
    if isinstance(statement, VariableLine):
        return [statement.node, *statement.book.graph.operands[statement.node]]
    if isinstance(statement, Row):
        edges = [(coefficient, source) for coefficient, source, _ in statement.edges]
        return [statement.node, *(node for edge in edges for node in edge if node is not None)]
    return []


def values_of(book: Book, nodes: Sequence[int]) -> dict[int, Any]:
    """Return the real values of nodes at the point of the book, or at random inputs, without nodes that have none."""
    values: dict[int, Any] = {node: book.values[node] for node in book.inputs if node in book.values}
    for node, symbol in book.inputs.items():
        values.setdefault(node, mp.mpf(random.Random(str(symbol)).uniform(0.3, 1.9)))
    for node in dict.fromkeys(nodes):
        try:
            evaluate(book.graph, [node], values, "reference", DIGITS)
        except FAILURES:
            continue
    return {node: value for node, value in values.items() if isinstance(value, bool) or _is_real(value)}


def _is_real(value: Any) -> bool:
    return isinstance(value, mp.mpf) and bool(mp.isfinite(value))


def _check(
    book: Book, statement: Statement, values: dict[int, Any], known: dict[sp.Basic, Any], truth: dict[sp.Basic, Any]
) -> bool:
    try:
        if isinstance(statement, CarriedLine):
            pairs = [*_local_slopes(book, statement, known, truth), (_real(statement, known, truth), statement.number)]
        elif isinstance(statement, Row):
            pairs = [pair for edge in statement.edges for pair in _slopes(book, statement, edge, values, known)]
        elif statement.node not in book.inputs and _is_real(values.get(statement.node)):
            pairs = [(_real(statement, known, truth), values[statement.node])]
        else:
            return False
    except FAILURES:
        return False
    for shown, value in pairs:
        require_equal(shown, value, statement)
    return bool(pairs)


def require_equal(shown: Any, value: Any, statement: Statement) -> None:
    """Raise InvariantError for a line with another value than the one that is shown."""
    if not abs(shown - value) <= _AGREED * max(1, abs(value)):
        raise InvariantError(
            "a displayed line that does not hold",
            where=f"{statement.name} = {text_of(statement.expression)[:100]}",
            do="please report it with the function: this is a defect of symad",
        )


def _real(statement: Statement, known: dict[sp.Basic, Any], truth: dict[sp.Basic, Any]) -> Any:
    return IndependentValues(known).of(statement.expression.xreplace(truth)).real


def _local_slopes(
    book: Book, line: CarriedLine, known: dict[sp.Basic, Any], truth: dict[sp.Basic, Any]
) -> Iterator[tuple[Any, Any]]:
    """Yield the slopes of lines in their operands, and the numbers of the local derivatives."""
    for term in line.terms:
        if term.line not in book.graph.rules:
            yield _slope(book.formula(term.line).xreplace(truth), book.symbol(term.operand), known), term.number


def _slope(formula: sp.Basic, symbol: sp.Basic, known: dict[sp.Basic, Any]) -> Any:
    """Return the slope of a formula in one of its symbols."""
    moved = {**known, symbol: HyperDual({0: known[symbol].real, 1: mp.mpf(1)})}
    return IndependentValues(moved).of(formula).parts.get(1, mp.mpf(0))


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
    return [(written, _slope(book.formula(result), symbol, known))]
