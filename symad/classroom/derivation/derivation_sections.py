"""The sections of a derivation, for each kind of question; each displayed equality is checked when it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from itertools import combinations_with_replacement
from typing import Any

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.implicit_problem import ImplicitProblem
from symad.classroom.derivation.derivation_lines import DerivationLine, Detail, derived, tidied_lines
from symad.classroom.derivation.derivation_question import DerivationQuestion
from symad.classroom.derivation.tidying import cost, evaluated, in_book_order
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.display.notation import RAISED, Pending, WrittenProduct

_PLACES = [sp.Rational(text) for text in ("1.7 -2.3 0.41 -0.53 3.9 5.6 -4.7 0.07 12.3 -11.9 1.04 47".split())]
_POINTS = 3  # at which a line is checked

Meanings = Mapping[Any, sp.Basic]


@dataclass(frozen=True)
class Section:
    """A part of a derivation: its heading, its lines, and what it results in."""

    heading: str
    lines: tuple[DerivationLine, ...]
    left: sp.Basic
    result: sp.Basic
    is_checked: bool = True

    @property
    def shown(self) -> sp.Basic:
        """The result in the order of its last line."""
        last = evaluated(self.lines[-1].after, ordered=True) if self.lines else self.result
        return in_book_order(last if evaluated(last) == self.result else self.result)


@dataclass(frozen=True)
class Lineup:
    """A question with the detail of its lines, and the points at which they are checked."""

    question: DerivationQuestion
    detail: Detail
    points: Sequence[dict[Any, sp.Basic]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", list(self._points()))

    def _points(self) -> Iterator[dict[Any, sp.Basic]]:
        """Yield a few points at which all formulas have real values, on both sides of 0 where there are such."""
        variables, count = self.question.variables, 0
        for k in range(len(_PLACES)):
            at: dict[Any, sp.Basic] = {x: _PLACES[(k + 2 * j) % len(_PLACES)] for j, x in enumerate(variables)}
            if count < _POINTS and all(_has_values(f, at) for f in self.question.formulas):
                count += 1
                yield at

    def section(
        self, heading: str, lines: Sequence[DerivationLine], left: sp.Basic, result: sp.Basic, meanings: Meanings,
        checked: int = 0,
    ) -> Section:  # fmt: skip
        """Return a section whose lines are checked; InvariantError for a false one. The first lines may be checked."""
        equalities = [(line.before, line.after) for line in lines[checked:]] + [(left, result)]
        is_checked = all([self._holds(before, after, meanings) for before, after in equalities])
        return Section(heading, tuple(lines), left, result, is_checked)

    def _holds(self, left: sp.Basic, right: sp.Basic, meanings: Meanings) -> bool:
        question = self.question
        definitions = [
            Definitions(question.name, question.variables, question.formulas[0], {**at, **meanings})
            for at in self.points
        ]
        return any([check_equality(left, right, definition) for definition in definitions])

    def derived(
        self, f: sp.Expr, x: sp.Symbol, heading: str, left: sp.Basic | None = None, meaning: sp.Basic | None = None,
        tidy: bool = True,
    ) -> Section:  # fmt: skip
        """Return the section of the derivative of f in one variable, for which a letter may stand on the left."""
        partial = [sp.true] if self.question.kind == "several" else []
        lines = derived(Pending(in_book_order(f), x, *partial), self.detail, tidy)
        meanings = {} if meaning is None else {left: meaning}
        return self.section(heading, lines, left or lines[0].before, evaluated(lines[-1].after), meanings)


def _has_values(f: sp.Expr, at: dict[Any, sp.Basic]) -> bool:
    return check_equality(f, f, Definitions("", (), f, at))


def sections_of(question: DerivationQuestion, order: int, detail: Detail) -> list[Section]:
    """Return the sections of a derivation of some order."""
    kinds = {"function": _function, "several": _several, "equation": _equation, "curve": _curve}
    return list(kinds[question.kind](Lineup(question, detail), order))


def _function(lineup: Lineup, order: int) -> Iterator[Section]:
    (f,), (x,) = lineup.question.formulas, lineup.question.variables
    name = sp.Function(lineup.question.name)(x)
    for k in range(1, order + 1):
        section = lineup.derived(f, x, "" if order == 1 else _ordinal(k), sp.Derivative(name, (x, k)))
        yield section
        f = section.result


def _ordinal(k: int) -> str:
    return f"{('First', 'Second', 'Third')[k - 1] if k < 4 else f'{k}th'} derivative"


def _several(lineup: Lineup, order: int) -> Iterator[Section]:
    (f,), variables = lineup.question.formulas, lineup.question.variables
    name, first, slopes = lineup.question.name, [], []
    for x in variables:
        letter, slope = sp.Symbol(f"{name}_{x}"), Pending(f, x, sp.true)
        section = lineup.derived(f, x, f"In {x}: the other variables are constants", letter, slope)
        yield section
        first.append(section.result)
        slopes.append(slope)
    gradient = sp.Symbol(f"∇{name}")
    yield lineup.section("Gradient", (), gradient, sp.Tuple(*first), {gradient: sp.Tuple(*slopes)})
    if order == 2:
        yield from _hessian(lineup, first)


def _hessian(lineup: Lineup, first: Sequence[sp.Expr]) -> Iterator[Section]:
    (f,), variables, name = lineup.question.formulas, lineup.question.variables, lineup.question.name
    second: dict[tuple[int, int], sp.Expr] = {}
    for i, j in combinations_with_replacement(range(len(variables)), 2):
        letter = sp.Symbol(f"{name}_{variables[i]}{variables[j]}")
        slope = Pending(Pending(f, variables[i], sp.true), variables[j], sp.true)
        section = lineup.derived(first[i], variables[j], f"{letter.name}", letter, slope)
        yield section
        second[i, j] = second[j, i] = section.result
    size = range(len(variables))
    matrix = sp.ImmutableMatrix([[second[i, j] for j in size] for i in size])
    letter = sp.Symbol("H")
    slopes = [Pending(Pending(f, x, sp.true), y, sp.true) for x in variables for y in variables]
    yield lineup.section("Hessian", (), letter, matrix, {letter: sp.Tuple(*slopes)})


def _equation(lineup: Lineup, order: int) -> Iterator[Section]:
    """Yield both sides differentiated, the equation solved for y', and each higher order along the curve."""
    question = lineup.question
    (x,), y = question.variables, question.dependent
    whole = sp.Symbol("y") if y is None else y
    function = sp.Function(whole.name, real=True)(x)
    prime, sides = sp.Derivative(function, x), []
    for heading, f in zip(("Left side", "Right side"), question.formulas, strict=True):
        section = lineup.derived(f, x, heading, tidy=False)
        yield section
        sides.append(section.result)
    difference = sp.expand(sides[0] - sides[1])
    factor = sp.factor(difference.coeff(prime, 1))
    rest = evaluated(difference.coeff(prime, 0))
    slope = evaluated(tidied_lines(-rest / factor)[-1])
    value = {prime: slope}
    lines = [
        DerivationLine("both sides", sides[0], sides[1], ("both sides have equal derivatives",), starts=True),
        DerivationLine(
            "solved",
            WrittenProduct(factor, prime),
            in_book_order(-rest),
            (f"the terms with {whole}′ on one side",),
            starts=True,
        ),
    ]
    yield lineup.section(f"Solve for {whole}′", lines, prime, slope, value)
    curve = (question.formulas[0] - question.formulas[1]).xreplace({function: whole})
    derivative = slope
    for k in range(2, order + 1):
        section = lineup.derived(derivative, x, _ordinal(k), tidy=False)
        before = section.lines[-1].after
        put = before.xreplace({prime: in_book_order(slope)})
        lines = [*section.lines, DerivationLine("substitution", before, put, (f"put in {whole}′",))]
        forms = [put, *tidied_lines(evaluated(put))]
        lines += [DerivationLine("simplified", a, b, ("simplified",)) for a, b in zip(forms, forms[1:], strict=False)]
        higher = sp.Derivative(function, (x, k))
        known = {**value, higher: section.result}
        yield lineup.section(section.heading, lines, higher, evaluated(forms[-1]), known, len(section.lines))
        derivative = evaluated(forms[-1])
        on_curve = _by_the_equation(derivative, curve, function, whole, x)
        if on_curve is not None:
            line = DerivationLine(
                "equation of the curve", higher, on_curve, ("by the equation of the curve",), starts=True
            )
            yield Section("", (line,), higher, on_curve)


def _by_the_equation(
    derivative: sp.Expr, curve: sp.Expr, function: sp.Expr, y: sp.Symbol, x: sp.Symbol
) -> sp.Expr | None:
    """Return a shorter form of a derivative that is equal to it on the curve, which is checked at points of the curve."""
    plain = derivative.xreplace({function: y})
    top, bottom = sp.fraction(sp.together(plain))
    if not (top.is_polynomial(x, y) and curve.is_polynomial(x, y)):
        return None
    forms = [sp.factor(sp.reduced(sp.expand(top), [curve], *letters)[1] / bottom) for letters in ((y, x), (x, y))]
    shortest = min(forms, key=cost)
    if cost(shortest) >= cost(plain):
        return None
    problem = ImplicitProblem(curve, (x,), {}, {(1,): [sp.S.One]}, 1, False, name="y", dependent=y)
    return shortest.xreplace({y: function}) if problem.agreement(plain, shortest).equal else None


def _curve(lineup: Lineup, order: int) -> Iterator[Section]:
    (along, up), (t,) = lineup.question.formulas, lineup.question.variables
    names = [sp.Function(letter)(t) for letter in "xy"]
    parts = []
    for f, name in zip((along, up), names, strict=True):
        section = lineup.derived(f, t, f"{name.func.__name__}({t})")
        yield section
        parts.append(section.result)
    upper: sp.Expr = up
    for k in range(1, order + 1):
        mark = str(k).translate(RAISED)
        if k > 1:
            section = lineup.derived(upper, t, f"Derivative of the slope in {t}")
            yield section
            parts[1] = section.result
        quotient = WrittenProduct(Pending(upper, t), sp.Pow(Pending(along, t), -1))
        forms = [WrittenProduct(parts[1], sp.Pow(parts[0], -1, evaluate=False)), *tidied_lines(parts[1] / parts[0])]
        lines = [
            DerivationLine("chain rule", quotient, forms[0], ("the derivative of y divided by that of x",), starts=True)
        ]
        lines += [DerivationLine("simplified", a, b, ("simplified",)) for a, b in zip(forms, forms[1:], strict=False)]
        letter = sp.Symbol("dy/dx" if k == 1 else f"d{mark}y/dx{mark}")
        result = evaluated(forms[-1])
        yield lineup.section("Slope" if k == 1 else _ordinal(k), lines, letter, result, {letter: quotient})
        upper = result
