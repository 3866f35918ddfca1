"""check_expansion and check_derivative: the first wrong line of a pupil's answer, the term, and how it went wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, Literal, overload

import sympy as sp

from symad.checking.equality import Agreement, agreement
from symad.checking.turns import is_at_turn
from symad.display.mathematics import expanded_terms
from symad.errors import ArgumentError
from symad.formulas.read import is_inverse_note
from symad.teaching.answers.answer_lines import Step, steps_of
from symad.teaching.answers.answer_names import CONSTANT
from symad.teaching.answers.answer_page import CheckedAnswer, Judged, Line, term_of
from symad.teaching.answers.answer_problem import (
    DIGITS,
    Problem,
    Reveal,
    derivative_problem,
    derivative_within,
    expansion_problem,
    with_decimal_logarithms,
)
from symad.teaching.answers.gradient_answers import first_wrong, gradient_problems
from symad.teaching.answers.implicit_problem import ImplicitProblem, implicit_problem, is_equation
from symad.teaching.answers.matrix_answers import checked_matrices, is_of_matrices
from symad.teaching.answers.mistake_rules import Words, by_terms
from symad.teaching.answers.mistakes import OF_TERMS, Mistake, mistakes_of, without_slope
from symad.teaching.answers.rounded_answers import is_rounded_from
from symad.teaching.expansion.displayed import Definitions, check_equality
from symad.teaching.expansion.epsilon import Levels, monomial, readable
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal


@overload
def check_expansion(
    mine: Any,
    f: Any,
    x: Any,
    directions: Any,
    *,
    order: int | None = None,
    epsilons: Sequence[str] | None = None,
    digits: int = DIGITS,
    reveal: Reveal = "always",
    each: Literal[False] = False,
) -> CheckedAnswer: ...


@overload
def check_expansion(
    mine: Any,
    f: Any,
    x: Any,
    directions: Any,
    *,
    order: int | None = None,
    epsilons: Sequence[str] | None = None,
    digits: int = DIGITS,
    reveal: Reveal = "always",
    each: Literal[True],
) -> list[CheckedAnswer | ArgumentError]: ...


@public_api
def check_expansion(
    mine: Any,
    f: Any,
    x: Any,
    directions: Any,
    *,
    order: int | None = None,
    epsilons: Sequence[str] | None = None,
    digits: int = DIGITS,
    reveal: Reveal = "always",
    each: bool = False,
) -> CheckedAnswer | list[CheckedAnswer | ArgumentError]:
    """Return which line of a pupil's expansion of f(x + eps_1 v + eps_2 w + ...) is the first wrong one, and why.

    `mine` is a text of several lines (steps between equals signs, comments after #), a list of texts or SymPy
    expressions, or a dict {term: coefficient}; f, x, directions and order are those of `expand`. The epsilons are
    called eps_1, e1, ε₁..., and also as `epsilons` names them, one for each level. A step is right if it
    equals f(x + eps_1 v + ...) where the squares of the epsilons are 0, in whatever form; a step after `f'(x) =` is
    compared with that. Texts are parsed, never evaluated: ArgumentError for what is no formula. With `each`, `mine` is
    a list of answers, and so is what is returned: the ArgumentError of one that cannot be read stands in its place.
    A decimal number is right if it is rounded properly and has at least so many significant `digits`; with digits=0,
    numbers have to be exact. `reveal` says whether a page shows the right answer: "always", "after" an answer is right,
    or "never". With `order`, a Taylor polynomial in one ε, or in x, is an answer too.

    >>> answer = check_expansion("= x^3 + 3x^2 v eps_1 + 3x^2 w eps_2 + 12 x v w eps_1 eps_2", "x**3", "x", ["v", "w"])
    >>> answer.right, answer.line.number, answer.term, answer.written, answer.expected
    (False, 1, epsilon_1*epsilon_2, 12*v*w*x, 6*v*w*x)
    >>> print(answer.mistakes[0])
    double-counted: You counted the term twice
    >>> check_expansion("(x + eps_1 v)^2 = x^2 + 2 x v eps_1", "x**2", "x", ["v"]).right
    True
    """
    problem = expansion_problem(f, x, directions, order, epsilons, digits, reveal)
    return _each(mine, lambda answer: checked_answer(answer, problem)) if each else checked_answer(mine, problem)


@overload
def check_derivative(
    mine: Any,
    f: Any,
    x: Any,
    *,
    order: int = 1,
    digits: int = DIGITS,
    reveal: Reveal = "always",
    each: Literal[False] = False,
) -> CheckedAnswer: ...


@overload
def check_derivative(
    mine: Any, f: Any, x: Any, *, order: int = 1, digits: int = DIGITS, reveal: Reveal = "always", each: Literal[True]
) -> list[CheckedAnswer | ArgumentError]: ...


@public_api
def check_derivative(
    mine: Any, f: Any, x: Any, *, order: int = 1, digits: int = DIGITS, reveal: Reveal = "always", each: bool = False
) -> CheckedAnswer | list[CheckedAnswer | ArgumentError]:
    """Return which line of a pupil's derivative of f of some order is the first wrong one, and why.

    An equation such as x^2 + y^2 = 25 asks for dy/dx. In several variables the gradient is asked for, with order=2 the
    Hessian: ∇f = (2xy, x^2), or lines f_x = 2xy. Questions such as x^T A x, tr(A X), log det X or ‖Ax - b‖² are of
    matrices (capital letters) and columns (small ones); an answer may have dX in it.

    `mine`, f, x, digits, reveal and each are as in `check_expansion`.

    >>> answer = check_derivative("cos(x^2)", "sin(x^2)", "x")
    >>> print(answer.right, *answer.mistakes)
    False chain rule: You left out 2x, the inner derivative of sin(x²)
    >>> [answer.right for answer in check_derivative(["2x", "x + x", "x"], "x^2", "x", each=True)]
    [True, True, False]
    """
    if is_of_matrices(f, x, mine):
        return (
            _each(mine, partial(checked_matrices, f=f, x=x, order=order, reveal=reveal))
            if each
            else (checked_matrices(mine, f, x, order, reveal))
        )
    equation = is_equation(f)
    problems = None if equation else gradient_problems(f, x, order, digits, reveal)
    if problems is None:
        problem = (implicit_problem if equation else derivative_problem)(f, x, order, digits, reveal)
        return _each(mine, lambda answer: checked_answer(answer, problem)) if each else checked_answer(mine, problem)
    symbols = list(dict.fromkeys(problem.symbols[0] for problem in problems.values()))

    def checked(answer: Any) -> CheckedAnswer:
        bad: CheckedAnswer
        bad, is_complete = first_wrong(answer, problems, symbols, checked_answer)
        return replace(bad, finished=bad.finished and is_complete) if bad.right else bad

    return _each(mine, checked) if each else checked(mine)


def _each(answers: Any, check: Callable[[Any], CheckedAnswer]) -> list[CheckedAnswer | ArgumentError]:
    """Return every answer of a list, checked; the error of one that cannot be read."""
    if not isinstance(answers, list | tuple):
        raise refusal(f"answers of type {type(answers).__name__}", do="give a list of answers, or leave each=True out")
    found: list[CheckedAnswer | ArgumentError] = []
    for answer in answers:
        try:
            found.append(check(answer))
        except ArgumentError as error:
            found.append(error)
    return found


def checked_answer(mine: Any, problem: Problem) -> CheckedAnswer:
    """Return an answer to a problem that was posed before, checked."""
    judged = _with_carried(tuple(_judged(step, problem) for step in steps_of(mine, problem)))
    asked = [found for found in judged if found.step.about is None or _is_asked(found.expected, problem)]
    asked = asked or [found for found in judged if found.step.determines]
    bad = next((found for right in (False, None) for found in judged if found.right is right), None)
    if bad is not None:
        if bad.right is False and (asked_back := next(filter(is_inverse_note, bad.step.notes), "")):
            do = "write arcsin(x) or 1/sin(x), whichever is meant (so for each function)"
            raise refusal(f"line {bad.step.line}: {asked_back}", why="the exponent -1 has two readings", do=do)
        if bad.right is False and _is_right_to_base_10(mine, problem):
            do = "write ln x or log_10 x in the question, whichever is meant"
            raise refusal("the logarithm 'log', which is read as ln", why="with log_10 the answer is right", do=do)
        return _corrected(problem, judged, bad)
    answers = [found for found in asked if not found.step.restated]
    if not answers:
        missing = Mistake("unfinished", ("no line gives what is asked for",))
        itself = problem.value(problem.formula)
        says_more = any(not found.step.restated and found.step.about != itself for found in judged)
        return CheckedAnswer(problem, judged, None if says_more else False, finished=False, mistakes=(missing,))
    last = answers[-1]
    kept = _kept_square(last.step.expression, problem)
    if kept is not None:
        line, written = Line(last.step.line, last.step.text), last.step.expression.diff(kept, 2).subs(kept, 0) / 2
        named = monomial((problem.epsilons.index(kept) + 1,))
        square = sp.Pow(named, 2, evaluate=False)
        mistake = Mistake("squared epsilon", ("the square of ", named, " is 0: its term falls away"))
        return CheckedAnswer(problem, judged, False, False, line, square, sp.S.Zero, readable(written), (mistake,))
    finished = not (last.step.named or last.step.derives or last.step.determines) and _is_finished(
        last.step.expression, problem
    )
    return CheckedAnswer(problem, judged, True, finished=finished)


def _is_right_to_base_10(mine: Any, problem: Problem) -> bool:
    """Return whether an answer is right where "log" in the question and in the answer is the decimal logarithm."""
    if problem.otherwise is None or not isinstance(mine, str):
        return False
    try:
        return checked_answer(with_decimal_logarithms(mine), problem.otherwise).right is True
    except ArgumentError:  # it cannot be read in that way
        return False


def _with_carried(judged: tuple[Judged, ...]) -> tuple[Judged, ...]:
    """Return steps, with those marked that are wrong only because an earlier one is: an error is marked once."""
    result: list[Judged] = []
    for found in judged:
        before = next((other for other in reversed(result) if not other.step.restated), None)
        if (
            found.right is False
            and before is not None
            and before.right is False
            and before.step.about == found.step.about
        ):
            follows = all(agreement(before.written[levels], found.written[levels]) for levels in found.written)
            result.append(replace(found, carried=follows))
        else:
            result.append(found)
    return tuple(result)


def _judged(step: Step, problem: Problem) -> Judged:
    """Return the verdict on a step: a term after the other, until one is wrong."""
    expected = problem.truth if step.about is None else problem.coefficients(step.about)
    written = problem.coefficients(step.expression)
    terms: dict[Levels, Agreement] = {}
    for levels in problem.terms:
        finite = not written[levels].has(sp.nan, sp.zoo, sp.oo)
        terms[levels] = problem.agreement(expected[levels], written[levels]) if finite else Agreement(False)
        if terms[levels].equal is False and _is_rounded(step, problem, levels, expected[levels]):
            terms[levels] = Agreement(True, rounded=True)
    verdicts = {found.equal for found in terms.values()} | ({False} if step.bare else set())
    if step.condition and False in verdicts:
        verdicts = {None}  # it may be right where the condition holds
    right = False if False in verdicts else None if None in verdicts else True
    return Judged(step, right, terms, written, expected)


def _is_rounded(step: Step, problem: Problem, levels: Levels, expected: sp.Expr) -> bool:
    """Whether a coefficient has decimal numbers that are rounded as they should be."""
    if step.rounded is None or not problem.digits:
        return False
    written = problem.coefficients(step.rounded.expression)[levels]
    return is_rounded_from(written, expected, step.rounded.decimals, problem.digits)


def _is_asked(expected: Mapping[Levels, sp.Expr], problem: Problem) -> bool:
    return all(agreement(expected[levels], problem.truth[levels]).equal for levels in problem.terms)


def _corrected(problem: Problem, judged: tuple[Judged, ...], bad: Judged) -> CheckedAnswer:
    """Return the answer with its first wrong step, or one that is not decided."""
    line = Line(bad.step.line, bad.step.text)
    if bad.step.bare:
        one = sp.Symbol("epsilon")
        return CheckedAnswer(problem, judged, False, True, line, one, mistakes=(_bare(problem),))
    levels = next(found for found, how in bad.terms.items() if not how)
    expected, written = readable(bad.expected[levels]), readable(bad.written[levels])
    for shown, value in ((expected, bad.expected[levels]), (written, bad.written[levels])):
        if shown != value:
            check_equality(shown, value, Definitions("", (), value))
    about = bad.step.about is not None and not _is_asked(bad.expected, problem)
    term = None if about else term_of(problem, levels)
    parts = [found.step.expression for found in judged if found.step.defines]
    mistakes = _mistakes(problem, bad, levels, parts) if bad.right is False else ()
    if bad.right is False and (before := _right_before(judged, bad)) is not None:
        of_terms = tuple(mistake for mistake in mistakes if mistake.kind in OF_TERMS and problem.expansion)
        mistakes = of_terms or (_slip(before, bad, levels),)
    witness = bad.terms[levels].witness
    return CheckedAnswer(problem, judged, bad.right, True, line, term, expected, written, mistakes, witness)


def _right_before(judged: Sequence[Judged], bad: Judged) -> Judged | None:
    """Return the right step that a wrong one follows from, where nothing is differentiated in between."""
    earlier = judged[: next(place for place, found in enumerate(judged) if found is bad)]
    before = next((found for found in reversed(earlier) if not found.step.restated), None)
    same = before is not None and before.step.about == bad.step.about and not before.step.derives
    if before is not None and before.step.about is not None and before.step.is_left:
        return None  # it is right by itself
    return before if same and before is not None and before.right else None


def _slip(before: Judged, bad: Judged, levels: Levels) -> Mistake:
    """Return a slip of algebra: the step before is right, and this one does not follow from it."""
    text = f"line {before.step.line}" if before.step.line != bad.step.line else "the step before"
    start: Words = ("This does not follow from ", text, ", which is right")
    right, written = bad.expected[levels], bad.written[levels]
    if agreement(written, -right):
        return Mistake("algebra", (*start, ": you lost a sign"))
    return Mistake("algebra", (*start, ": you made a slip of algebra"))


def _mistakes(problem: Problem, bad: Judged, levels: Levels, parts: Sequence[sp.Expr]) -> tuple[Mistake, ...]:
    """Return what leads to a wrong coefficient; of a line about f'(x), or u' of a named part u, what is known of it."""
    written = bad.written[levels]
    if written.has(CONSTANT) and agreement(bad.expected[levels], written.subs(CONSTANT, 0)):
        words = ("a derivative has no constant of integration: the derivative of a constant is 0",)
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
    if bad.step.about is None or _is_asked(bad.expected, problem):
        return mistakes_of(problem, levels, written)
    if bad.step.about == problem.value(problem.formula):
        return _of_powers(problem, written)
    if isinstance(problem, ImplicitProblem):
        return without_slope(problem, bad.expected[levels] - written)
    if len(problem.symbols) == 1:
        for formula, order in product([problem.formula, *parts], range(1, problem.count + 1)):
            within = derivative_within(problem, order, formula)
            if agreement(within.truth[within.terms[0]], bad.expected[levels]).equal:
                return mistakes_of(within, within.terms[0], written)
    return ()


def _of_powers(problem: Problem, written: sp.Expr) -> tuple[Mistake, ...]:
    """Return the mistake (a + b)^n = a^n + b^n in the formula itself, where it leads to what was written."""
    for node in problem.formula.atoms(sp.Pow, sp.Function):
        apart = by_terms(node)
        if apart is not None and agreement(problem.value(problem.formula.xreplace({node: apart})), written):
            return (Mistake("algebra", ("You took ", node, " term by term, but it is not ", apart)),)
    return ()


def _without_value(problem: Problem, bad: Judged) -> Mistake:
    if not bad.step.expression.has(*problem.epsilons):
        return Mistake("no value", ("what is written has no value there",))
    if any(map(is_at_turn, [bad.step.expression] * problem.count, problem.epsilons)):
        return Mistake("no derivative", ("a root, a step or the absolute value of an epsilon has no epsilon-part",))
    return Mistake("division by epsilon", ("an epsilon has no reciprocal: nothing can be divided by it",))


def _bare(problem: Problem) -> Mistake:
    words = (f"an epsilon without a number: there are {problem.count} levels, and each has an epsilon of its own",)
    return Mistake("confused levels", words)


def _kept_square(expression: sp.Expr, problem: Problem) -> sp.Symbol | None:
    """Return an epsilon whose square is written in an answer."""
    powers = expression.atoms(sp.Pow) if problem.expansion else set()
    squares = [power.base for power in powers if power.base in problem.epsilons and power.exp.is_Integer]
    return min((base for base in squares), key=str, default=None)


def _is_finished(expression: sp.Expr, problem: Problem) -> bool:
    """Whether an expansion is a sum of coefficients times products of epsilons."""
    if not problem.expansion:
        return True
    if problem.taylor:
        return bool(expression.is_polynomial(*problem.epsilons))
    if not expression.is_polynomial(*problem.epsilons) or expanded_terms(expression) > 1000:
        return False
    return all(max(powers) <= 1 for powers in sp.Poly(expression, *problem.epsilons).monoms())
