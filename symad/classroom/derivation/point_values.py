"""The derivative at a point, and the points at which there is none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sympy as sp

from symad.classroom.answers.answer_problem import real
from symad.classroom.derivation.derivation_question import DerivationQuestion
from symad.classroom.derivation.derivation_sections import Section
from symad.classroom.derivation.slopes import places_to_look_at, shown_number, slopes_at
from symad.classroom.derivation.tidying import in_book_order
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.formulas.read import read_formula
from symad.display.document import Inline
from symad.display.notation import Pending
from symad.errors import InvariantError
from symad.tracing.calling.user_place import refusal

_AGREED = 1e-6  # of a value and a difference quotient

Prose = tuple[Inline, ...]


def notes_on_places(question: DerivationQuestion) -> Iterator[Prose]:
    """Yield the points at which f is defined and has no first derivative, with the reason."""
    if question.kind != "function" or question.constants:
        return
    (f,), (x,) = question.formulas, question.variables
    for place in places_to_look_at(f, x):
        slopes = slopes_at(f, x, place)
        if slopes.is_defined and not slopes.exists and not _is_end(slopes.left, slopes.right):
            yield (_primed(question, 1, place), " does not exist: ", *slopes.why_not(question.name))


def _is_end(left: Any, right: Any) -> bool:
    """Whether f ends at a point with a slope: there is a derivative on one side."""
    sides = [side for side in (left, right) if side is not None]
    return len(sides) == 1 and sides[0] not in (sp.oo, float("inf"))


def _primed(question: DerivationQuestion, order: int, place: sp.Expr) -> sp.Basic:
    letter = question.variables[0]
    return sp.Subs(sp.Derivative(sp.Function(question.name)(letter), (letter, order)), letter, place)


def at_the_point(question: DerivationQuestion, sections: Sequence[Section], order: int, at: Any) -> tuple[Any, Prose]:
    """Return the value of the derivative at a point (None if it does not exist there), and how it is said."""
    point = _point(question, at)
    if question.kind == "function":
        return _of_a_function(question, sections, order, point)
    if question.kind == "equation":
        return _on_the_curve(question, sections, point)
    last = sections[-1]
    value = _put(last.result, point)
    where = ", ".join(f"{name} = {place}" for name, place in point.items())
    if not _is_number(value):
        return None, (f"at {where} it does not exist",)
    slopes = last.left if last.left.has(Pending) else None
    if slopes is not None:
        check_equality(slopes, value, Definitions("", (), None, point))
    return value, (f"at {where}: ", last.left, " = ", value)


def _of_a_function(
    question: DerivationQuestion, sections: Sequence[Section], order: int, point: Mapping[Any, sp.Expr]
) -> tuple[Any, Prose]:
    before = sections[-2].result if order > 1 else question.formulas[0]
    (x,), result = question.variables, sections[-1].result
    place, left = point[x], _primed(question, order, point[x])
    value = _put(result, point)
    if question.constants or not place.is_number:
        check_equality(Pending(before, x), value, Definitions("", (), None, point))
        return value, (left, " = ", in_book_order(value))
    slopes = slopes_at(before, x, place)
    name = question.name + "′" * (order - 1)
    if not slopes.exists:
        return None, (left, " does not exist: ", *slopes.why_not(name))
    if not _is_number(value):
        value = shown_number(slopes.left)
    if abs(float(value) - float(slopes.left)) > _AGREED * (1 + abs(float(value))):
        raise InvariantError("a derivative that is no slope", where=f"{question.formulas[0]} at {place}: {value}")
    return value, (left, " = ", value)


def _on_the_curve(
    question: DerivationQuestion, sections: Sequence[Section], point: Mapping[Any, sp.Expr]
) -> tuple[Any, Prose]:
    y = next(name for name in point if name not in question.variables)
    function = sp.Function(y.name, real=True)(*question.variables)
    left, right = (_put(f.xreplace({function: y}), point) for f in question.formulas)
    where = ", ".join(f"{name} = {place}" for name, place in point.items())
    if sp.simplify(left - right) != 0:
        raise refusal(f"the point {where}", "it is not on the curve", f"the sides are {left} and {right} there")
    value = _put(sections[-1].result.xreplace({function: y}), point)
    if not _is_number(value):
        return None, (f"at {where} there is no slope: the tangent is vertical, or the curve has a special point",)
    return value, (f"at {where}: ", sp.Symbol(f"{y}{_primes(sections[-1].left)}"), " = ", value)


def _primes(left: sp.Basic) -> str:
    return "'" * int(left.derivative_count)


def _put(expression: sp.Basic, point: Mapping[Any, sp.Expr]) -> Any:
    """Return an expression at a point; nan where it has no value."""
    try:
        return sp.sympify(expression).subs(point)
    except (ArithmeticError, ValueError, TypeError):
        return sp.nan


def _is_number(value: Any) -> bool:
    parts = value if isinstance(value, sp.Tuple | sp.MatrixBase) else [value]
    return all(part.is_finite and part.is_real for part in parts)


def _point(question: DerivationQuestion, at: Any) -> dict[Any, sp.Expr]:
    """Return a point as exact values of the variables."""
    names = [*question.variables, *([question.dependent] if question.dependent is not None else [])]
    if isinstance(at, Mapping):
        given = {str(name): value for name, value in at.items()}
        values = [given.get(name.name) for name in names]
        if None in values or len(given) > len(names):
            raise refusal(f"at={at!r}", do=f"give a value for {', '.join(map(str, names))}")
    else:
        values = list(at) if isinstance(at, list | tuple) else [at]
    if len(values) != len(names):
        do = f"give {len(names)} values, for {', '.join(map(str, names))}"
        raise refusal(f"at={at!r}", do=do)
    exact = [read_formula(value) if isinstance(value, str) else value for value in values]
    return dict(zip(names, map(real, exact), strict=True))
