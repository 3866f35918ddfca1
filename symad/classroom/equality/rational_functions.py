"""Decide equality of rational functions over Q exactly, by python-flint or SymPy."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import sympy as sp

from symad.errors import ArgumentError
from symad.extras import optional

_MOST_TERMS = {True: 200_000, False: 4_000}  # of numerator or denominator, with python-flint and without
_NUMBERS = (2, 3, 1, -1, 5, -2, 7, sp.Rational(1, 2), -3, 11)  # witnesses with small numbers are easy to read
_MOST_POINTS = 100


def is_rational(expression: sp.Expr) -> bool:
    """Whether an expression is a rational function of symbols with rational coefficients.

    >>> x = sp.Symbol("x")
    >>> is_rational((x + 1) / x**2), is_rational(sp.sqrt(x))
    (True, False)
    """
    return all(
        part.is_Add or part.is_Mul or part.is_Symbol or part.is_Rational or (part.is_Pow and part.exp.is_Integer)
        for part in sp.preorder_traversal(expression)
    )


def are_equal(left: sp.Expr, right: sp.Expr) -> bool | None:
    """Whether two rational functions are equal; None if their polynomials would be too long.

    >>> x = sp.Symbol("x")
    >>> are_equal((x**2 - 1) / (x - 1), x + 1), are_equal(1 / x, 1 / (x + 1))
    (True, False)
    """
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    try:
        flint = optional("flint", "polynomials")
        context = flint.fmpq_mpoly_ctx.get(tuple(f"x{k}" for k in range(len(symbols))), "lex")
        generators, one, limit = context.gens(), context.constant(1), _MOST_TERMS[True]
        number: Any = lambda value: flint.fmpq(int(value.p), int(value.q))  # noqa: E731 - one of two
    except ArgumentError:
        ring = sp.polys.rings.PolyRing([f"x{k}" for k in range(len(symbols))], sp.QQ, sp.polys.orderings.lex)
        generators, one, limit, number = ring.gens, ring.one, _MOST_TERMS[False], sp.QQ.from_sympy
    leaves = dict(zip(symbols, generators, strict=True))
    sides = [_fraction(side, leaves, one, number, limit) for side in (left, right)]
    if None in sides:
        return None
    (above, below), (other_above, other_below) = sides
    return bool(above * other_below == other_above * below)


def _fraction(expression: sp.Expr, leaves: dict[sp.Symbol, Any], one: Any, number: Any, limit: int) -> Any:
    """Return numerator and denominator as polynomials; None if one has too many terms."""
    known: dict[sp.Basic, tuple[Any, Any]] = {}
    for part in sp.postorder_traversal(expression):
        if part in known:
            continue
        if part.is_Symbol:
            fraction = leaves[part], one
        elif part.is_Rational:
            fraction = one * number(part), one
        elif part.is_Pow:
            fraction = _power(*known[part.base], int(part.exp), limit)
        else:
            fraction = known[part.args[0]]
            for operand in part.args[1:]:
                fraction = _joined(fraction, known[operand], part.is_Add, limit) if fraction else fraction
        if fraction is None or max(map(len, fraction)) > limit:
            return None
        known[part] = fraction
    return known[expression]


def _power(above: Any, below: Any, exponent: int, limit: int) -> Any:
    if abs(exponent) * max(len(above), len(below)) > limit or (exponent < 0 and above == 0):
        return None
    return (above**exponent, below**exponent) if exponent > 0 else (below**-exponent, above**-exponent)


def _joined(first: Any, second: Any, is_sum: bool, limit: int) -> Any:
    """Return the sum or the product of two fractions, in lowest terms if that shortens the next step."""
    (a, b), (c, d) = first, second
    if max(len(a), len(b)) * max(len(c), len(d)) > limit:
        return None
    if not is_sum:
        return a * c, b * d
    shared = b.gcd(d)
    b_rest, d_rest = b // shared if shared != 0 else b, d // shared if shared != 0 else d
    return a * d_rest + c * b_rest, b * d_rest


def small_points(symbols: Sequence[sp.Symbol]) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Yield points with small coordinates, distinct ones if possible."""
    source = random.Random(1)
    for attempt in range(_MOST_POINTS if symbols else 1):
        if attempt < len(_NUMBERS):
            numbers = [_NUMBERS[(attempt + k) % len(_NUMBERS)] for k in range(len(symbols))]
        else:
            numbers = source.choices(_NUMBERS, k=len(symbols))
        yield dict(zip(symbols, map(sp.sympify, numbers), strict=True))


def witness(left: sp.Expr, right: sp.Expr) -> dict[sp.Symbol, sp.Rational] | None:
    """Return a point with small numbers where two rational functions differ; None if there is none.

    >>> x = sp.Symbol("x")
    >>> witness(x**2, 2 * x)
    {x: 3}
    """
    for point in small_points(sorted(left.free_symbols | right.free_symbols, key=str)):
        values = [side.xreplace(point) for side in (left, right)]
        if all(value.is_Rational for value in values) and values[0] != values[1]:
            return point
    return None
