"""Diagnose the first wrong step of an answer: the wrong term, the right term, and the mistake between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import sympy as sp

from symad.classroom.answers.answer_names import CONSTANT
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer, Judged, remarked, term_of
from symad.classroom.answers.answer_problem import AnswerProblem, derivative_within
from symad.classroom.answers.implicit_problem import ImplicitProblem
from symad.classroom.answers.mistake_rules import by_terms
from symad.classroom.answers.mistakes import OF_TERMS, Mistake, mistakes_of, of_differentiated_equation
from symad.classroom.answers.rounded_answers import is_rounded_from
from symad.classroom.equality.equality import agreement
from symad.classroom.equality.turns import is_at_turn
from symad.classroom.expansion.displayed import Definitions, check_equality
from symad.classroom.expansion.epsilon import Levels, readable


def corrected(problem: AnswerProblem, judged: tuple[Judged, ...], bad: Judged) -> CheckedAnswer:
    """Return the answer with its first wrong or undecided step."""
    if bad.step.bare:
        words = f"an epsilon without a number: there are {problem.count} levels, and each has an epsilon of its own"
        return replace(remarked(problem, judged, bad.step, "confused levels", words), term=sp.Symbol("epsilon"))
    levels = next(levels_of_term for levels_of_term, how in bad.terms.items() if not how)
    expected, written = readable(bad.expected[levels]), readable(bad.written[levels])
    for shown, value in ((expected, bad.expected[levels]), (written, bad.written[levels])):
        if shown != value:
            check_equality(shown, value, Definitions("", (), value))
    is_intermediate = bad.step.about is not None and not is_asked(bad.expected, problem)
    term = None if is_intermediate else term_of(problem, levels)
    parts = [judgement.step.expression for judgement in judged if judgement.step.defines]
    mistakes = _mistakes(problem, bad, levels, parts) if bad.right is False else ()
    if positive := bad.terms[levels].positive:
        signs = [part for constant in positive for part in (", ", constant, " > 0")][1:]
        mistakes = (Mistake("sign of a constant", ("It is right where ", *signs, ", and not everywhere")),)
    if bad.right is False and (before := _right_before(judged, bad)) is not None:
        of_terms = tuple(mistake for mistake in mistakes if mistake.kind in OF_TERMS and problem.expansion)
        mistakes = of_terms or (_slip(before, bad, levels),)
    line, witness = AnswerLine(bad.step.line, bad.step.text), bad.terms[levels].witness
    return CheckedAnswer(problem, judged, bad.right, True, line, term, expected, written, mistakes, witness)


def _right_before(judged: Sequence[Judged], bad: Judged) -> Judged | None:
    """Return the right step before a wrong one, if nothing is differentiated between them."""
    earlier = judged[: next(place for place, judgement in enumerate(judged) if judgement is bad)]
    before = next((judgement for judgement in reversed(earlier) if not judgement.step.restated), None)
    if before is None or not before.right or before.step.derives or before.step.about != bad.step.about:
        return None
    return None if before.step.about is not None and before.step.is_left else before  # a left side is right by itself


def _slip(before: Judged, bad: Judged, levels: Levels) -> Mistake:
    """Return a slip of algebra: the step before is right and this one is not."""
    text = f"line {before.step.line}" if before.step.line != bad.step.line else "the step before"
    slip = "lost a sign" if agreement(bad.written[levels], -bad.expected[levels]) else "made a slip of algebra"
    return Mistake("algebra", (f"This does not follow from {text}, which is right: you {slip}",))


def _mistakes(problem: AnswerProblem, bad: Judged, levels: Levels, parts: Sequence[sp.Expr]) -> tuple[Mistake, ...]:
    """Return the mistakes that lead to a wrong coefficient; for f'(x) or u', those of that function."""
    written = bad.written[levels]
    if written.has(CONSTANT) and agreement(bad.expected[levels], written.subs(CONSTANT, 0)):
        words = ("You added a constant of integration, which belongs to an integral",)
        return (Mistake("constant of integration", words),)
    if written.has(sp.nan, sp.zoo, sp.oo):
        return (_without_value(problem, bad),)
    if bad.step.rounded is not None:
        decimals = problem.coefficients(bad.step.rounded.expression)[levels]
        at = {symbol: value * sp.pi / 180 for symbol, value in problem.at.items()}
        if at and is_rounded_from(decimals, problem.general(levels).xreplace(at), bad.step.rounded.decimals, 2):
            return (Mistake("unit of angle", ("You took the number as degrees: derivatives are taken in radians",)),)
        if is_rounded_from(decimals, bad.expected[levels], bad.step.rounded.decimals, 1):
            do = f"give {problem.digits} significant digits or more" if problem.digits else "write the number exactly"
            return (Mistake("rounded", (f"You rounded too much: {do}",)),)
    if bad.step.about is None or is_asked(bad.expected, problem):
        return mistakes_of(problem, levels, written)
    if bad.step.about == problem.value(problem.formula):
        return _of_powers(problem, written)
    if isinstance(problem, ImplicitProblem):
        return of_differentiated_equation(problem, bad.step.gap) if problem.count == 1 else ()
    if len(problem.symbols) == 1:
        for formula, order in product([problem.formula, *parts], range(1, problem.count + 1)):
            within = derivative_within(problem, order, formula)
            if agreement(within.truth[within.terms[0]], bad.expected[levels]).equal:
                return mistakes_of(within, within.terms[0], written)
    return ()


def _of_powers(problem: AnswerProblem, written: sp.Expr) -> tuple[Mistake, ...]:
    """Return the mistake (a + b)^n = a^n + b^n in the formula itself, if it leads to the written expression."""
    for node in problem.formula.atoms(sp.Pow, sp.Function):
        apart = by_terms(node)
        if apart is not None and agreement(problem.value(problem.formula.xreplace({node: apart})), written):
            return (Mistake("algebra", ("You took ", node, " term by term, but it is not ", apart)),)
    return ()


def _without_value(problem: AnswerProblem, bad: Judged) -> Mistake:
    if not bad.step.expression.has(*problem.epsilons):
        return Mistake("no value", ("what is written has no value there",))
    if any(map(is_at_turn, [bad.step.expression] * problem.count, problem.epsilons)):
        return Mistake("no derivative", ("a root, a step or the absolute value of an epsilon has no epsilon-part",))
    return Mistake("division by epsilon", ("an epsilon has no reciprocal: nothing can be divided by it",))


def is_asked(expected: Mapping[Levels, sp.Expr], problem: AnswerProblem) -> bool:
    """Whether the expected claim of a step is the question itself."""
    return all(agreement(expected[levels], problem.truth[levels]).equal for levels in problem.terms)
