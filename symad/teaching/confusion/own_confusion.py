"""The confusion exhibit on one's own function: a formula nested in a program of the literature, run by every design."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.program import reachable
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy
from symad.teaching.confusion.exhibit import Exhibit, exhibit
from symad.teaching.confusion.naive import FUNCTIONS

SHORT = 60  # letters of a formula in a heading
_BY_NAME = {head: name for name in FUNCTIONS if (head := getattr(sp, name, None)) is not None}


def own_exhibit(expression: sp.Expr, symbols: tuple[sp.Basic, ...], point: list[float]) -> Exhibit:
    """Return the exhibit of a nested program with a formula of one or two variables in it.

    Of one variable it is D x: x · D y: x · f(y), at y = x; of two D x: x · D y: f(x, y), where the inner function
    captures x. ArgumentError for more variables, and for functions that the wrong designs do not have.

    >>> x, y = sp.symbols("x y")
    >>> shown = own_exhibit(x + y, (x, y), [1.0, 1.0])
    >>> shown.right.result, [made.result for made in shown.wrong]
    (1.0, [2.0, 1.0, 1.0])
    """
    if len(symbols) not in (1, 2):
        raise ArgumentError(f"the exhibit of a formula of {len(symbols)} variables", do="type one of one or two")
    f = watchable(expression, symbols)
    written = str(expression)
    names = ", ".join(map(str, symbols))
    if len(symbols) == 1:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: x * f(y), x), {point[0]:g})"
        found = exhibit(lambda d: d(lambda x: x * d(lambda y: x * f(y), x), point[0]))
    else:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: f(x, y), {point[1]:g}), {point[0]:g})"
        found = exhibit(lambda d: d(lambda x: x * d(lambda y: f(x, y), point[1]), point[0]))
    title = written if len(written) <= SHORT else "a formula of your own"
    return replace(found, heading=f"with f({names}) = {title}", source=source)


def watchable(expression: sp.Expr, symbols: tuple[sp.Basic, ...]) -> Callable[..., Any]:
    """Return a formula as a function of numbers of any design: sums, products, whole powers, a few functions."""
    graph = Graph(lines=False)
    (result,) = from_sympy(graph, [expression])
    order = reachable(graph, [result])
    places = {atom: row for row, atom in graph.atoms.items()}
    _check(graph, order)

    def f(*numbers: Any) -> Any:
        values: dict[int, Any] = {places[s]: n for s, n in zip(symbols, numbers, strict=True) if s in places}
        for row in order:
            if row not in values:
                operands = [values[operand] for operand in graph.operands[row]]
                values[row] = _applied(graph, row, operands) if operands else float(graph.atoms[row])
        return values[result]

    return f


def _check(graph: Graph, order: list[int]) -> None:
    for row in order:
        head = graph.heads[row]
        if not graph.operands[row] or head in (sp.Add, sp.Mul) or head in _BY_NAME:
            continue
        if head is not sp.Pow or _exponent(graph, row) is None:
            raise ArgumentError(
                f"{head.__name__} in the exhibit",
                why="the wrong designs that are compared do not have it",
                do=f"use +, -, *, /, whole powers and {', '.join(map(str, _BY_NAME.values()))}",
            )


def _exponent(graph: Graph, row: int) -> sp.Rational | None:
    exponent = graph.atoms.get(graph.operands[row][1])
    if isinstance(exponent, sp.Rational) and (exponent.is_Integer or abs(exponent) == sp.Rational(1, 2)):
        return exponent
    return None


def _applied(graph: Graph, row: int, operands: list[Any]) -> Any:
    head = graph.heads[row]
    if head is sp.Add:
        return sum(operands[1:], operands[0])
    if head is sp.Mul:
        return math.prod(operands[1:], start=operands[0])
    if head is sp.Pow:
        return _power(operands[0], _exponent(graph, row))
    return getattr(np, _BY_NAME[head])(operands[0])


def _power(base: Any, exponent: Any) -> Any:
    whole = int(abs(exponent)) if exponent.is_Integer else None
    made = np.sqrt(base) if whole is None else base if whole == 1 else base**whole
    return made if exponent > 0 else 1.0 / made
