"""The exhibit for a formula of one's own, nested in a program of the literature."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp

from codegen.evaluation.interpret import Arithmetic, Functions, carry_out
from codegen.ir.program import Head, needed
from symad.classroom.confusion.exhibit import Exhibit, exhibit
from symad.classroom.confusion.naive import FUNCTIONS
from symad.errors import ArgumentError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy

SHORT = 60  # letters of a formula in a heading
_BY_NAME = {head: name for name in FUNCTIONS if (head := getattr(sp, name, None)) is not None}


def own_exhibit(expression: sp.Expr, symbols: tuple[sp.Basic, ...], point: list[float]) -> Exhibit:
    """Return the exhibit of a nested program with a formula of one or two variables.

    For one variable it is D x: x · D y: x · f(y) at y = x, for two D x: x · D y: f(x, y), where the inner function
    captures x. ArgumentError for more variables, and for functions that the wrong designs lack.

    >>> x, y = sp.symbols("x y")
    >>> shown = own_exhibit(x + y, (x, y), [1.0, 1.0])
    >>> shown.right.result, [wrong.result for wrong in shown.wrong]
    (1.0, [2.0, 1.0, 1.0])
    """
    if len(symbols) not in (1, 2):
        raise ArgumentError(f"the exhibit of a formula of {len(symbols)} variables", do="type one of one or two")
    f = watchable(expression, symbols)
    written = str(expression)
    names = ", ".join(map(str, symbols))
    if len(symbols) == 1:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: x * f(y), x), {point[0]:g})"
        shown = exhibit(lambda d: d(lambda x: x * d(lambda y: x * f(y), x), point[0]))
    else:
        source = f"f = lambda {names}: {written}\nd(lambda x: x * d(lambda y: f(x, y), {point[1]:g}), {point[0]:g})"
        shown = exhibit(lambda d: d(lambda x: x * d(lambda y: f(x, y), point[1]), point[0]))
    title = written if len(written) <= SHORT else "a formula of your own"
    return replace(shown, heading=f"with f({names}) = {title}", source=source)


def watchable(expression: sp.Expr, symbols: tuple[sp.Basic, ...]) -> Callable[..., Any]:
    """Return a formula as a function for any design: sums, products, integer powers, a few functions."""
    graph = Graph(lines=False)
    (result,) = from_sympy(graph, [expression])
    places = {atom: row for row, atom in graph.atoms.items()}
    functions = Functions(_function)
    arithmetic = Arithmetic(functions, functions, float)

    def f(*numbers: Any) -> Any:
        values: dict[int, Any] = {places[s]: n for s, n in zip(symbols, numbers, strict=True) if s in places}
        carry_out(graph, needed(graph, [result], values), values, arithmetic)
        return values[result]

    return f


def _function(head: Head) -> Callable[..., Any]:
    known = {
        sp.Add: lambda first, *rest: sum(rest, first),
        sp.Mul: lambda first, *rest: math.prod(rest, start=first),
        sp.Pow: _power,
    }
    if head not in _BY_NAME and head not in known:
        raise _refused(head.__name__)
    return known.get(head) or getattr(np, _BY_NAME[head])


def _power(base: Any, exponent: Any) -> Any:
    size = abs(exponent) if isinstance(exponent, float) else 0.0
    if size != 0.5 and (not size or not size.is_integer()):
        raise _refused("a power")
    root = np.sqrt(base) if size == 0.5 else base if size == 1 else base ** int(size)
    return root if exponent > 0 else 1.0 / root


def _refused(subject: str) -> ArgumentError:
    return ArgumentError(
        f"{subject} in the exhibit",
        why="the wrong designs that are compared do not have it",
        do=f"use +, -, *, /, whole powers and {', '.join(map(str, _BY_NAME.values()))}",
    )
