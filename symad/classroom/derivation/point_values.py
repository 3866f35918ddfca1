"""The derivative at a point, and the points at which there is none: by difference quotients, which share no code.

f is evaluated with 50 digits on both sides of the point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.answers.answer_problem import real
from symad.classroom.derivation.derivation_sections import DerivationQuestion, Section
from symad.classroom.equality.hyperdual import constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.classroom.equality.turns import turns
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.formulas.read import read_formula
from symad.display.document import Inline
from symad.errors import InvariantError
from symad.tracing.calling.user_place import refusal

_NEAR, _NEARER = mp.mpf(10) ** -12, mp.mpf(10) ** -18  # distances of the difference quotients
_SAME = mp.mpf(10) ** -8  # of slopes: at _NEAR they have an error of that order
_CLOSE = mp.mpf(10) ** -5  # of slopes at both distances: those of x^(3/2) differ by 10^-6
_JUMP = mp.mpf(10) ** -3
_MOST_DEGREE = 4  # of polynomials whose roots are looked at

Prose = tuple[Inline, ...]


def slope_at(f: sp.Expr, x: sp.Symbol, place: sp.Expr) -> tuple[sp.Expr | None, str]:
    """Return the slope of f at a place, None with the reason if there is none."""
    with mp.workdps(DIGITS):
        at = mp.mpf(sp.Float(sp.N(place, DIGITS), DIGITS)._mpf_)
        middle, *beside = (_value(f, x, at + step) for step in (0, -_NEAR, -_NEARER, _NEAR, _NEARER))
        if middle is None or _put(f, {x: place}) in (sp.zoo, sp.nan):
            return None, "the function is not defined there"
        if None in beside[:2] and None in beside[2:]:
            return None, "there are no values beside it"
        if any(abs(value - middle) > _JUMP for value in beside if value is not None):
            return None, "the function jumps there"
        steps = (-_NEAR, -_NEARER, _NEAR, _NEARER)
        slopes = [None if value is None else (value - middle) / step for value, step in zip(beside, steps, strict=True)]
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


def kinks(question: DerivationQuestion) -> Iterator[Prose]:
    """Yield the points at which f is defined and has no derivative, with the reason."""
    if question.kind != "function" or question.constants or question.formulas[0].has(sp.floor, sp.ceiling):
        return
    (f,), (x,), places = question.formulas, question.variables, set[sp.Expr]()
    for zero in turns([f]):
        if zero.is_polynomial(x) and 0 < sp.degree(zero, x) <= _MOST_DEGREE:
            places |= {root for root in sp.roots(zero, x) if root.is_real}
    powers = [power for power in f.atoms(sp.Pow) if power.exp.has(x)]  # x^x begins at 0
    places -= {place for place in places if any(power.base.subs(x, place) == 0 for power in powers)}
    for place in sorted(places, key=float):
        slope, why = slope_at(f, x, place)
        if slope is None and "not defined" not in why:
            yield (_primed(question, 1, place), f" does not exist: {why}")


def _primed(question: DerivationQuestion, order: int, place: sp.Expr) -> sp.Basic:
    (x,) = question.variables
    return sp.Subs(sp.Derivative(sp.Function(question.name)(x), (x, order)), x, place)


def value_at(question: DerivationQuestion, sections: tuple[Section, ...], order: int, at: Any) -> tuple[Any, Prose]:
    """Return the value of the derivative at a point (None if it does not exist there), and how it is said."""
    point, last = _point(question, at), sections[-1]
    value, where = _put(question.with_y(last.result), point), ", ".join(f"{x} = {place}" for x, place in point.items())
    if question.kind == "function":
        ((x, place),), name = point.items(), _primed(question, order, *point.values())
        if place.is_number and not question.constants:
            slope, why = slope_at(sections[-2].result if order > 1 else question.formulas[0], x, place)
            if slope is None:
                return None, (name, f" does not exist: {why}")
            value = value if _is_number(value) else slope
            if abs(sp.N(value - slope)) > 1e-4 * (1 + abs(slope)):
                raise InvariantError("a derivative that is not the slope", where=f"{where}: {value} and {slope}")
        else:
            check_equality(last.meaning, value, Definitions("", (), None, point))
        return value, (name, " = ", value)
    sides = [_put(question.with_y(f), point) for f in question.formulas]
    if question.kind == "equation" and sp.simplify(sides[0] - sides[1]) != 0:
        raise refusal(
            f"the point {where}", f"the sides are {sides[0]} and {sides[1]} there", "give a point of the curve"
        )
    if not (_is_number(value) or question.constants):
        return None, (f"At {where} there is no derivative",)
    if last.meaning is not None:
        check_equality(last.meaning, value, Definitions("", (), None, point))
    return value, (f"At {where}: ", last.left, " = ", value)


def _put(expression: sp.Basic, point: Mapping[Any, sp.Expr]) -> Any:
    """Return an expression at a point; nan where it has no value."""
    try:
        return expression.subs(point)
    except (ArithmeticError, ValueError, TypeError):
        return sp.nan


def _is_number(value: Any) -> bool:
    parts = value if isinstance(value, sp.Tuple | sp.MatrixBase) else [value]
    return all(part.is_finite and part.is_real for part in parts)


def _point(question: DerivationQuestion, at: Any) -> dict[Any, sp.Expr]:
    """Return a point as exact values of the variables."""
    names = [*question.variables, *([question.dependent] if question.dependent is not None else [])]
    given = {str(name): value for name, value in at.items()} if isinstance(at, Mapping) else {}
    values = list(map(given.get, map(str, names))) if given else list(at) if isinstance(at, list | tuple) else [at]
    if len(values) != len(names) or None in values:
        raise refusal(f"at={at!r}", do=f"give a value for {', '.join(map(str, names))}")
    return {name: real(read_formula(v) if isinstance(v, str) else v) for name, v in zip(names, values, strict=True)}
