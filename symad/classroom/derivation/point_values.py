"""The derivative at a point, and the points at which there is none: by difference quotients, which share no code.

f is evaluated with 50 digits on both sides of the point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp

from symad.classroom.answers.answer_problem import real
from symad.classroom.derivation.derivation_sections import DerivationQuestion, Section
from symad.classroom.equality.slopes import put, slope_at
from symad.classroom.equality.turns import turns
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.formulas.read import read_formula
from symad.display.document import Inline
from symad.errors import InvariantError
from symad.tracing.calling.user_place import refusal

_MOST_DEGREE = 4  # of polynomials whose roots are looked at

Prose = tuple[Inline, ...]


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
    value, where = put(question.with_y(last.result), point), ", ".join(f"{x} = {place}" for x, place in point.items())
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
    sides = [put(question.with_y(f), point) for f in question.formulas]
    if question.kind == "equation" and sp.simplify(sides[0] - sides[1]) != 0:
        raise refusal(
            f"the point {where}", f"the sides are {sides[0]} and {sides[1]} there", "give a point of the curve"
        )
    if not (_is_number(value) or question.constants):
        return None, (f"At {where} there is no derivative",)
    if last.meaning is not None:
        check_equality(last.meaning, value, Definitions("", (), None, point))
    return value, (f"At {where}: ", last.left, " = ", value)


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
