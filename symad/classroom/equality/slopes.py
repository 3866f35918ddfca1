"""The slope of a function at a point, and why there is none: by difference quotients, which share no code.

f is evaluated with 50 digits on both sides of the point.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.equality.hyperdual import constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError

_NEAR, _NEARER = mp.mpf(10) ** -12, mp.mpf(10) ** -18  # distances of the difference quotients
_SAME = mp.mpf(10) ** -8  # of slopes: at _NEAR they have an error of that order
_CLOSE = mp.mpf(10) ** -5  # of slopes at both distances: those of x^(3/2) differ by 10^-6
_JUMP = mp.mpf(10) ** -3


def slope_at(f: sp.Expr, x: sp.Symbol, place: sp.Expr) -> tuple[sp.Expr | None, str]:
    """Return the slope of f at a place, None with the reason if there is none."""
    middle, beside, slopes = _beside(f, x, place)
    with mp.workdps(DIGITS):
        if middle is None or put(f, {x: place}) in (sp.zoo, sp.nan):
            return None, "the function is not defined there"
        if None in beside[:2] and None in beside[2:]:
            return None, "there are no values beside it"
        gaps = [mp.zero if value is None else abs(value - middle) for value in beside]
        if any(nearer > _JUMP and near < 10 * nearer for near, nearer in (gaps[:2], gaps[2:])):
            return None, "the function jumps there"
        sides = [(a, b) for a, b in (slopes[:2], slopes[2:]) if a is not None and b is not None]
        if any(abs(nearer) > 1 + 2 * abs(near) for near, nearer in sides):
            return None, "the slope grows without bound: the tangent is vertical"
        if any(abs(near - nearer) > _CLOSE * (1 + abs(near)) for near, nearer in sides):
            return None, "the slopes beside it have no limit that was found"
        if len(sides) == 1:
            return None, f"there are values on one side only, with the slope {_shown(sides[0][1])}"
        (_, left), (_, right) = sides
        if abs(left - right) > _SAME * (1 + abs(left)):
            return None, f"the slope is {_shown(left)} on the left and {_shown(right)} on the right"
        return _shown(left), ""


def side_slopes(f: sp.Expr, x: sp.Symbol, place: sp.Expr) -> tuple[mp.mpf | None, mp.mpf | None]:
    """Return the difference quotients on the left and on the right; None where f has no value."""
    _, left, _, right = _beside(f, x, place)[2]
    return left, right


def _beside(f: sp.Expr, x: sp.Symbol, place: sp.Expr) -> tuple[Any, list[Any], list[Any]]:
    """Return f at a place, at four points beside it, and the slopes to these."""
    steps = (-_NEAR, -_NEARER, _NEAR, _NEARER)
    with mp.workdps(DIGITS):
        at = mp.mpf(sp.Float(sp.N(place, DIGITS), DIGITS)._mpf_)
        values: list[Any] = [_value(f, x, at + step) for step in (0, *steps)]
        middle, *beside = values
        pairs = zip(beside, steps, strict=True)
        return middle, beside, [None if None in (middle, value) else (value - middle) / step for value, step in pairs]


def _value(f: sp.Expr, x: sp.Symbol, place: mp.mpf) -> mp.mpf | None:
    try:
        value = IndependentValues({x: constant(place)}).of(f)
    except (UnknownValueError, ArithmeticError, ValueError, TypeError):
        return None
    return mp.re(value.real) if value.is_real and mp.isfinite(value.real) else None


def _shown(number: mp.mpf) -> sp.Expr:
    """Return a number as a fraction with a small denominator, else with six digits."""
    fraction = sp.Rational(str(mp.nstr(number, 20))).limit_denominator(1000)
    is_near = abs(number - mp.mpf(fraction.p) / fraction.q) < _SAME
    return fraction if is_near else sp.Float(str(mp.nstr(number, 6)), 6)


def put(expression: sp.Basic, point: Mapping[Any, sp.Expr]) -> Any:
    """Return an expression at a point; nan where it has no value."""
    try:
        return expression.subs(point)
    except (ArithmeticError, ValueError, TypeError):
        return sp.nan
