"""Expansions of random functions, at orders 1 to 4, one to three levels, every style: each displayed equality holds.

Making a page checks it; what is counted here is how many equalities were checked, and how many had no values.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import sympy as sp

import symad as sa
from symad.classroom.expansion import displayed

x, y = sp.symbols("x y")
_UNARY: list[Callable[[Any], Any]] = [
    sp.sin, sp.cos, sp.exp, sp.log, sp.tan, sp.sqrt, sp.atan, sp.cosh, sp.tanh, sp.asin, sp.Abs, sp.Function("g"),
    lambda part: 1 / part, lambda part: part**2, lambda part: part**3, lambda part: 1 / (1 + part**2),
]  # fmt: skip


def expression(source: Random, depth: int) -> sp.Expr:
    """Return a random formula of x and y."""
    if depth == 0:
        return source.choice([x, x, y, sp.Integer(source.randint(1, 4)), x + 1, 2 * x, x * y, x**2])
    kind = source.random()
    if kind < 0.35:
        return source.choice(_UNARY)(expression(source, depth - 1))
    left, right = expression(source, depth - 1), expression(source, source.randint(0, depth - 1))
    if kind < 0.85:
        return left + right if kind < 0.6 else left * right
    return left / right if kind < 0.95 else left ** source.choice([2, 3, -1, sp.Rational(1, 2), right])


def _asked(source: Random) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return a formula, where it is expanded, along which directions, and options."""
    while True:
        formula = expression(source, source.randint(1, 3))
        if formula.has(x) and not formula.has(sp.zoo, sp.nan, sp.I, sp.re, sp.im):
            break
    levels, options = source.choice([1, 1, 2, 2, 3]), {"style": source.choice([None, None, "rules", "book"])}
    if formula.has(y):
        return formula, [x, y], [["a", "b"], ["c", "d"], ["p", "q"]][:levels], options
    at = {x: source.choice([0.5, 1.5, 2])} if source.random() < 0.1 else x
    if source.random() < 0.2:
        return formula, at, 1, {**options, "order": source.randint(1, 4)}
    return formula, at, ["v", "w", "u"][:levels], options


def made(asked: tuple[Any, Any, Any, dict[str, Any]], counted: Counter[str]) -> str:
    """Make a page, which checks its equalities; InvariantError for a false one."""
    formula, at, directions, options = asked
    before = displayed.checked.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sa.expand(formula, at, directions, **options).document()
    counted.update(displayed.checked - before)
    return "page"


def tries(seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield pages; after every thousand the number of equalities is printed."""
    source, counted = Random(seed), Counter[str]()
    number = 0
    while True:
        asked = _asked(source)
        yield str(asked), partial(made, asked, counted)
        number += 1
        if number % 500 == 0:
            print(f"{number} pages, equalities {dict(counted)}", flush=True)
