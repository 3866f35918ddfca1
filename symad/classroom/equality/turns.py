"""Find kinks, steps and domain ends of expressions, and points on both sides.

Random points alone would miss a difference that begins at x = 5 if all points are below 5.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import sympy as sp
from mpmath import mp
from sympy.core.relational import Relational
from sympy.polys.polyerrors import BasePolynomialError

from codegen import heads

_MOST_TURNS = 12
_TURN_DEGREE = 6
# distances of points from a turn
_NEAR = (sp.Rational(1, 1000), sp.Rational(1, 30), sp.S.One, sp.Integer(30))
_FAR_RANGE = 10  # the largest random numbers are about 2**10


def turns(expressions: Sequence[sp.Expr]) -> list[sp.Expr]:
    """Return the expressions whose zeros are the turns of an expression.

    >>> x = sp.Symbol("x", real=True)
    >>> turns([sp.Abs(x - 5) + sp.Max(x, 7), sp.sqrt(x**2 - 4)])
    [x - 5, 7 - x, x**2 - 4]
    """
    zeros: dict[sp.Expr, None] = {}
    for part in (part for expression in expressions for part in sp.preorder_traversal(expression)):
        if isinstance(part, sp.Abs | sp.sign | sp.Heaviside | sp.floor | sp.ceiling | heads.cbrt):
            zeros[part.args[0]] = None
        elif isinstance(part, sp.asin | sp.acos):
            zeros |= {part.args[0] - 1: None, part.args[0] + 1: None}
        elif isinstance(part, sp.Max | sp.Min):
            zeros |= dict.fromkeys(left - right for left, right in combinations(part.args, 2))
        elif isinstance(part, Relational):
            zeros[part.lhs - part.rhs] = None
        elif isinstance(part, sp.Pow) and not part.exp.is_Integer:
            zeros[part.base] = None
    return [turn for turn in zeros if turn.free_symbols][:_MOST_TURNS]


def is_at_turn(expression: sp.Expr, symbol: sp.Symbol) -> bool:
    """Whether an expression turns where a symbol is 0, so that it has no slope in it there.

    >>> x, y = sp.symbols("x y", real=True)
    >>> is_at_turn(sp.Abs(x * y), x), is_at_turn(sp.Abs(x + y), x)
    (True, False)
    """
    return any(turn.has(symbol) and turn.subs(symbol, 0) == 0 for turn in turns([expression]))


def beside(
    turn: sp.Expr, values: Mapping[sp.Symbol, sp.Rational], source: random.Random
) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Yield points on both sides of a turn. One symbol after the other moves there, the others stay.

    >>> x, y = sp.symbols("x y", real=True)
    >>> points = list(beside(x - y, {x: sp.S.Zero, y: sp.Integer(5)}, random.Random(1)))
    >>> len([point for point in points if point[x] < point[y]]), len(points)
    (8, 16)
    """
    for symbol in values:
        at = turn.xreplace({other: value for other, value in values.items() if other != symbol})
        for root in _roots(at, symbol):
            steps = [side * near * _random(source) for near in _NEAR for side in (-1, 1)]
            yield from ({**values, symbol: root + step} for step in steps)


def _roots(expression: sp.Expr, symbol: sp.Symbol) -> list[sp.Rational]:
    """Return the real roots of a polynomial, none for a high degree or for other expressions."""
    if expression.free_symbols != {symbol} or not expression.is_polynomial(symbol):
        return []
    if not 1 <= sp.degree(expression, symbol) <= _TURN_DEGREE:
        return []
    try:
        roots = sp.Poly(expression, symbol).nroots(n=20)
    except (BasePolynomialError, mp.NoConvergence):
        return []
    return [sp.Rational(sp.re(root)) for root in roots if abs(sp.im(root)) < _NEAR[0]]


def far(symbols: Sequence[sp.Symbol], source: random.Random) -> dict[sp.Symbol, sp.Rational]:
    """Return a point of small and large numbers of both signs."""
    scale = source.randrange(-2, _FAR_RANGE)
    return {symbol: source.choice((-1, 1)) * _random(source) * sp.Integer(2) ** scale for symbol in symbols}


def _random(source: random.Random) -> sp.Rational:
    return sp.Rational(source.randrange(2**20, 2**21), 2**21)
