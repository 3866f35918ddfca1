"""`check_expansion` and `check_derivative`: the first wrong line of an answer, its term, and the mistake."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

import sympy as sp

from symad.classroom.answers.answer_lines import AnswerStep, steps_of
from symad.classroom.answers.answer_names import SLOPE
from symad.classroom.answers.answer_page import CheckedAnswer, Judged, remarked
from symad.classroom.answers.answer_problem import (
    DIGITS,
    AnswerProblem,
    Reveal,
    expansion_problem,
    problem_of,
    smooth,
    with_decimal_logarithms,
)
from symad.classroom.answers.asked import Asked, Layout, components_of
from symad.classroom.answers.diagnosis import corrected, is_asked
from symad.classroom.answers.entry_answers import checked_entries, entry_question
from symad.classroom.answers.implicit_problem import implicit_problem, is_equation
from symad.classroom.answers.matrix_answers import MatrixQuestion, checked_matrices
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.answers.order_answers import existence_check, nth_check, taylor_check
from symad.classroom.answers.rounded_answers import is_rounded_from
from symad.classroom.equality.equality import Agreement, agreement
from symad.classroom.expansion.epsilon import Levels, monomial, readable
from symad.classroom.formulas.calls import INVERSE
from symad.classroom.formulas.tokens import refuse_if_long
from symad.classroom.matrix_calculus.matrix_formulas import is_of_matrices
from symad.display.mathematics import expanded_terms
from symad.errors import ArgumentError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

_F, _NAMES_F = re.compile(r"(?<![A-Za-z]{2})(?<!\\)f(?![A-Za-z]{2})"), re.compile(r"(?:^|[\n,;])\s*f\s*(?:\(\w\))?\s*=")
_E = re.compile(r"e(?![\w^({²³⁻])")  # an e that nothing is attached to: Euler's number, or an epsilon


@overload
def check_expansion(
    mine: Any, f: Any, x: Any, directions: Any, *, order: int | None = ..., epsilons: Sequence[str] | None = ...,
    digits: int = ..., reveal: Reveal = ..., each: Literal[False] = ...,
) -> CheckedAnswer: ...  # fmt: skip
@overload
def check_expansion(
    mine: Any, f: Any, x: Any, directions: Any, *, order: int | None = ..., epsilons: Sequence[str] | None = ...,
    digits: int = ..., reveal: Reveal = ..., each: Literal[True],
) -> list[CheckedAnswer | ArgumentError]: ...  # fmt: skip
@public_api
def check_expansion(
    mine: Any, f: Any, x: Any, directions: Any, *, order: int | None = None, epsilons: Sequence[str] | None = None,
    digits: int = DIGITS, reveal: Reveal = "always", each: bool = False,
) -> CheckedAnswer | list[CheckedAnswer | ArgumentError]:  # fmt: skip
    """Return which line of a pupil's expansion of f(x + eps_1 v + eps_2 w + ...) is the first wrong one, and why.

    `mine` is a text of several lines (steps between equals signs, comments after #), a list of texts or SymPy
    expressions, or a dict {term: coefficient}; f, x, directions and order are those of `expand`. The epsilons are
    called eps_1, e1, ε₁..., and also as `epsilons` names them, one for each level. A step is right if it
    equals f(x + eps_1 v + ...) where the squares of the epsilons are 0, in whatever form; a step after `f'(x) =` is
    compared with that. Texts are parsed, never evaluated: ArgumentError for a text that is no formula. With `each`,
    `mine` is a list of answers, and the result is a list with an ArgumentError for each answer that cannot be read.
    A decimal number is right if it is rounded properly and has at least `digits` significant digits; with digits=0,
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
    return _each(mine, partial(checked_answer, problem=problem)) if each else checked_answer(mine, problem)


@overload
def check_derivative(
    mine: Any, f: Any, x: Any, *, order: Any = ..., along: Any = ..., taylor: bool = ..., layout: Layout | None = ...,
    digits: int = ..., reveal: Reveal = ..., each: Literal[False] = ...,
) -> CheckedAnswer: ...  # fmt: skip
@overload
def check_derivative(
    mine: Any, f: Any, x: Any, *, order: Any = ..., along: Any = ..., taylor: bool = ..., layout: Layout | None = ...,
    digits: int = ..., reveal: Reveal = ..., each: Literal[True],
) -> list[CheckedAnswer | ArgumentError]: ...  # fmt: skip
@public_api
def check_derivative(
    mine: Any, f: Any, x: Any, *, order: Any = 1, along: Any = None, taylor: bool = False, layout: Layout | None = None,
    digits: int = DIGITS, reveal: Reveal = "always", each: bool = False,
) -> CheckedAnswer | list[CheckedAnswer | ArgumentError]:  # fmt: skip
    """Return which line of a pupil's derivative of f of some order is the first wrong one, and why.

    An equation such as x^2 + y^2 = 25 asks for dy/dx. In several variables the gradient is asked for, with order=2 the
    Hessian, of several formulas the Jacobian: ∇f = (2xy, x^2), or lines f_x = 2xy. `order` may be the variables of a
    mixed partial derivative, or "n" for a formula in n; `along` is a direction, taken as it is written; with `taylor`,
    the polynomial of degree `order` about the point in x is asked for. Where f has no derivative at the point, "does
    not exist" is right. Questions such as x^T A x, tr(A X), log det X or ‖Ax - b‖² are of matrices (capital letters)
    and columns (small ones); an answer may have dX in it. `layout` says what becomes of a transposed answer:
    "numerator", "denominator", "either", or None to ask back.

    `mine`, f, x, digits, reveal and each are as in `check_expansion`.

    >>> answer = check_derivative("cos(x^2)", "sin(x^2)", "x")
    >>> print(answer.right, *answer.mistakes)
    False chain rule: You left out 2x, the inner derivative of sin(x²)
    >>> [answer.right for answer in check_derivative(["2x", "x + x", "x"], "x^2", "x", each=True)]
    [True, True, False]
    >>> check_derivative("12xy", "x^2 y^3", ["x", "y"], order=("x", "y", "y")).right
    True
    """
    check = check_of(f, x, Asked(order, along, taylor, layout, digits, reveal), mine)
    return _each(mine, check) if each else check(mine)


def check_of(f: Any, x: Any, asked: Asked, mine: Any = "", other: Any = None) -> Callable[[Any], CheckedAnswer]:
    """Return the check of answers to a question: of matrices, with an equation, of one or of several variables.

    `other` is the formula in which "log" has the base 10.
    """
    for text in f if isinstance(f, list | tuple) else [f]:
        if isinstance(text, str):
            refuse_if_long(text)
    order, digits, reveal = asked.order, asked.digits, asked.reveal
    with_layout = asked.layout is not None and isinstance(x, str) and len(components_of(f)) == 1
    if is_of_matrices(f, x, mine) or with_layout:
        return partial(checked_matrices, question=MatrixQuestion(f, x, asked))
    if is_equation(f, x):
        return partial(checked_answer, problem=implicit_problem(f, x, order, digits, reveal))
    if (question := entry_question(f, x, asked)) is not None:
        return partial(checked_entries, question=question, check=checked_answer)
    if asked.taylor:
        return taylor_check(f, x, asked, checked_answer)
    if order == "n":
        return nth_check(f, x, asked, checked_answer)
    problem = problem_of(f, x, order, digits, reveal)
    if other is not None:
        problem = replace(problem, otherwise=problem_of(other, x, order, digits, reveal))
    return existence_check(problem, checked_answer) or partial(checked_answer, problem=smooth(problem))


def _each(answers: Any, check: Callable[[Any], CheckedAnswer]) -> list[CheckedAnswer | ArgumentError]:
    """Check every answer of a list. An answer that cannot be read becomes its error."""
    if not isinstance(answers, list | tuple):
        raise refusal(f"answers of type {type(answers).__name__}", do="give a list of answers, or leave each=True out")
    checked_answers: list[CheckedAnswer | ArgumentError] = []
    for answer in answers:
        try:
            checked_answers.append(check(answer))
        except ArgumentError as error:
            checked_answers.append(error)
    return checked_answers


def checked_answer(mine: Any, problem: AnswerProblem) -> CheckedAnswer:
    """Return an answer to a known problem, checked."""
    judged = _with_carried(tuple(_judged(step, problem) for step in steps_of(mine, problem)), problem)
    is_f = _is_function(judged, problem) if any(judgement.right is False for judgement in judged) else []
    if _is_before_arrow(judged, is_f):  # x^(3/2) → 3/2 x^(1/2)
        judged, is_f = judged[is_f.index(False) :], []
    asked = [judgement for judgement in judged if judgement.step.about is None or is_asked(judgement.expected, problem)]
    asked = asked or [judgement for judgement in judged if judgement.step.determines]
    bad = next((judgement for right in (False, None) for judgement in judged if judgement.right is right), None)
    if bad is not None:
        if bad.right is False:
            _ask_about_readings(mine, problem, bad)
        if is_f:
            words = "This is the function itself, no derivative: write f′(x) = before the derivative, not ="
            judged = tuple(replace(step, right=None if same else True) for step, same in zip(judged, is_f, strict=True))
            return remarked(problem, judged, judged[0].step, "equals sign", words, right=None)
        right = [other for other in asked if other.right and not (other.step.restated or problem.dependent_name)]
        if bad.right is False and not bad.step.expression and right and judged.index(right[0]) < judged.index(bad):
            words = "This sets the derivative to 0: that is another question, and no step of the derivative"
            return remarked(problem, judged, bad.step, "equals sign", words, right=None)
        return corrected(problem, judged, bad)
    answers = [judgement for judgement in asked if not judgement.step.restated]
    if not answers:
        missing = Mistake("unfinished", ("no line gives what is asked for",))
        itself = problem.value(problem.formula)
        says_more = any(not judgement.step.restated and judgement.step.about != itself for judgement in judged)
        return CheckedAnswer(problem, judged, None if says_more else False, finished=False, mistakes=(missing,))
    last = answers[-1].step
    if (kept := _kept_square(last.expression, problem)) is not None:
        named, written = monomial((problem.epsilons.index(kept) + 1,)), last.expression.diff(kept, 2).subs(kept, 0) / 2
        why = ("the square of ", named, " is 0: its term falls away")
        answer = remarked(problem, judged, last, "squared epsilon", *why)
        square = sp.Pow(named, 2, evaluate=False)
        return replace(answer, finished=False, term=square, expected=sp.S.Zero, written=readable(written))
    is_open = last.named or last.derives or last.determines or last.general is not None
    return CheckedAnswer(problem, judged, True, finished=not is_open and _is_finished(last.expression, problem))


def _ask_about_readings(mine: Any, problem: AnswerProblem, bad: Judged) -> None:
    """Raise ArgumentError if a wrong answer may be right in another reading of a sign."""
    if asked_back := next((note for note in bad.step.notes if INVERSE in note), ""):
        do = "write arcsin(x) or 1/sin(x), whichever is meant (so for each function); recommended: arcsin(x)"
        raise refusal(f"line {bad.step.line}: {asked_back}", why="the exponent -1 has two readings", do=do)
    for what, do, answer, other in _other_readings(mine, problem) if isinstance(mine, str) else ():
        try:
            is_right = checked_answer(answer, other).right
        except ArgumentError:  # it has no such reading
            continue
        if is_right:
            raise refusal(what, do=do)


def _other_readings(mine: str, problem: AnswerProblem) -> Iterator[tuple[str, str, str, AnswerProblem]]:
    """Yield other readings of an answer: the ambiguous text, its spelling, the answer and its problem."""
    if problem.otherwise is not None:
        what = "the logarithm 'log', which is read as ln: with log_10 the answer is right"
        do = "write ln x or log_10 x in the question, whichever is meant; recommended: log_10 x"
        yield what, do, with_decimal_logarithms(mine), problem.otherwise
    if problem.expansion and problem.count == 1 and (answer := _E.sub("ε", mine)) != mine:
        what = "'e', which is read as Euler's number: as an epsilon the answer is right"
        yield what, "write ε or exp(1), whichever is meant; recommended: ε", answer, problem
    if _NAMES_F.search(mine) and not problem.expansion:
        letter = next(letter for letter in "pqrk" if sp.Symbol(letter, real=True) not in problem.formula.free_symbols)
        what = "'f', which is the whole function: as the name of a part the answer is right"
        yield what, "write u or another letter for the part; recommended: u", _F.sub(letter, mine), problem


def _is_function(judged: tuple[Judged, ...], problem: AnswerProblem) -> list[bool]:
    """Return, for each side, whether it restates f before the answer: (x + 1)^2 = 2x + 2."""
    if problem.expansion or problem.dependent_name or any(judgement.step.named for judgement in judged):
        return []
    formula, asked = problem.value(problem.formula), problem.truth[problem.terms[0]]
    if not agreement(judged[0].step.expression, formula):
        return []
    sides = [bool(agreement(judgement.step.expression, asked)) for judgement in judged]
    is_f = [bool(agreement(judgement.step.expression, formula)) for judgement in judged]
    is_right = judged[-1].right is not False or judged[-1].step.general is None
    is_chain = sides[-1] and is_right and all(map(operator.or_, sides, is_f))
    return is_f if is_chain else []


def _is_before_arrow(judged: tuple[Judged, ...], is_f: list[bool]) -> bool:
    """Whether f itself stands before an arrow in the line of the answer."""
    first = is_f.index(False) if False in is_f else 0
    starts = judged[first].step.starts and judged[first].step.line == judged[first - 1].step.line
    return first > 0 and starts and not any(is_f[first:])


def _with_carried(judged: tuple[Judged, ...], problem: AnswerProblem) -> tuple[Judged, ...]:
    """Return steps, marking those that are wrong only because of an earlier one, so that an error counts once."""
    result: list[Judged] = []
    for judgement in judged:
        before = next((other for other in reversed(result) if not other.step.restated), None)
        if before is not None and before.right is judgement.right is False:
            judgement = replace(judgement, carried=_follows(before, judgement, problem))
        result.append(judgement)
    return tuple(result)


def _follows(wrong: Judged, judged: Judged, problem: AnswerProblem) -> bool:
    """Whether a wrong step follows from a wrong step before it: it is equal, solved for y′, or f″ of a wrong f′."""
    if wrong.step.about == judged.step.about:
        return all(agreement(wrong.written[levels], judged.written[levels]) for levels in judged.written)
    asked = problem.terms[0]
    if wrong.step.gap.has(SLOPE) and problem.count == 1:
        return any(agreement(slope, judged.written[asked]) for slope in sp.solve(wrong.step.gap, SLOPE))
    pairs = ((wrong.expected, judged.expected), (wrong.written, judged.written))
    is_higher = problem.count > 1 and not (problem.expansion or problem.at)
    return is_higher and all(agreement(problem.next_derivative(a[asked]), b[asked]) for a, b in pairs)


def _judged(step: AnswerStep, problem: AnswerProblem) -> Judged:
    """Return the verdict on a step, term by term until one is wrong."""
    expected = problem.truth if step.about is None else problem.coefficients(step.about)
    written = problem.coefficients(step.expression)
    terms: dict[Levels, Agreement] = {}
    for levels in problem.terms:
        finite = not written[levels].has(sp.nan, sp.zoo, sp.oo)
        terms[levels] = problem.agreement(expected[levels], written[levels]) if finite else Agreement(False)
        if terms[levels].equal is False and _is_rounded(step, problem, levels, expected[levels]):
            terms[levels] = Agreement(True, rounded=True)
    verdicts = {agreement_of_term.equal for agreement_of_term in terms.values()} | ({False} if step.bare else set())
    if step.condition and False in verdicts:  # it may be right under its condition
        differing = [levels for levels, how in terms.items() if how.equal is False]
        verdicts = {False if any(_differs(step, expected[levels], written[levels]) for levels in differing) else None}
    right = False if False in verdicts else None if None in verdicts else True
    if right and (other := _as_formula(step, problem)) is not None:
        return other
    nowhere = (sp.pi**5 + sp.E, True)  # a value that nobody writes, where none of the cases holds
    whole = step.expression
    if right and whole.has(sp.Piecewise):
        whole = whole.replace(sp.Piecewise, lambda *cases: sp.Piecewise(*cases, nowhere))
    if right and whole != step.expression:
        said = replace(step, condition="its cases")
        if not _judged(replace(said, expression=whole), problem).right:
            return Judged(said, None, dict.fromkeys(terms, Agreement(None)), written, expected)
    return Judged(step, right, terms, written, expected)


def _as_formula(step: AnswerStep, problem: AnswerProblem) -> Judged | None:
    """Return the verdict on a formula that has the right value only at the point: 6x for the derivative of x³ at 2."""
    if step.general is None or problem.expansion:
        return None
    (asked,) = problem.terms
    written = step.general
    put = {symbol: at for symbol, at in problem.at.items() if symbol not in written.free_symbols}
    orders = [problem.general(asked[:k]).xreplace(put) for k in (len(asked), step.order) if k is not None]
    verdicts = [problem.agreement(formula, written) for formula in orders]
    if any(verdict.equal is not False for verdict in verdicts):
        return None
    return Judged(step, False, {asked: verdicts[0]}, {asked: written}, {asked: orders[0]})


def _differs(step: AnswerStep, expected: sp.Expr, written: sp.Expr) -> bool:
    """Whether a coefficient is wrong even where the condition of its step holds."""
    if step.under is None:
        return False
    return agreement(expected, sp.Piecewise((written, step.under), (expected, True))).equal is False


def _is_rounded(step: AnswerStep, problem: AnswerProblem, levels: Levels, expected: sp.Expr) -> bool:
    """Whether a coefficient has properly rounded decimal numbers."""
    if step.rounded is None or not problem.digits:
        return False
    written = problem.coefficients(step.rounded.expression)[levels]
    return is_rounded_from(written, expected, step.rounded.decimals, problem.digits)


def _kept_square(expression: sp.Expr, problem: AnswerProblem) -> sp.Symbol | None:
    """Return an epsilon whose square is in an answer."""
    powers = expression.atoms(sp.Pow) if problem.expansion else set()
    squares = [power.base for power in powers if power.base in problem.epsilons and power.exp.is_Integer]
    return min((base for base in squares), key=str, default=None)


def _is_finished(expression: sp.Expr, problem: AnswerProblem) -> bool:
    """Whether an expansion is a sum of coefficients times products of epsilons."""
    if not problem.expansion:
        return True
    if problem.taylor:
        return bool(expression.is_polynomial(*problem.epsilons))
    if isinstance(expression, sp.Piecewise):
        return all(_is_finished(value, problem) for value, _ in expression.args)
    if not expression.is_polynomial(*problem.epsilons) or expanded_terms(expression) > 1000:
        return False
    return all(max(powers) <= 1 for powers in sp.Poly(expression, *problem.epsilons).monoms())
