"""check_expansion and check_derivative: the first wrong line of a pupil's answer, the term, and how it went wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, overload

from symad.errors import ArgumentError
from symad.teaching.answers.answer_page import CheckedAnswer
from symad.teaching.answers.answer_problem import DIGITS, Reveal, derivative_problem, expansion_problem
from symad.teaching.answers.gradient_answers import first_wrong, gradient_problems
from symad.teaching.answers.implicit_problem import implicit_problem, is_equation
from symad.teaching.answers.matrix_answers import checked_matrices, is_of_matrices
from symad.teaching.answers.verdicts import checked_answer
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
