"""Exercises of all topics, levels and seeds: their answers are right in any form, and their wrong answers are wrong.

Drawing an exercise confirms its own texts. Here the right answer comes once more, as SymPy rewrites it and in another
notation, and with it each wrong answer: it has to be wrong again, with the same diagnosis where it has one.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from random import Random
from typing import Any

import sympy as sp

from codegen.errors import WorkbenchError
from symad.classroom.exercises.calculus_questions import CalculusQuestion, _typed
from symad.classroom.exercises.exercise import WRONG_ANSWERS, Exercise, exercise
from symad.classroom.exercises.topics import LEVELS, topics
from symad.classroom.exercises.trace_questions import TraceQuestion
from symad.classroom.formulas.read import read_formula
from symad.display.mathematics import signs_of, too_large
from symad.errors import LimitError
from symad.limits import time_limit
from tests.support.generated_answers import SECONDS

FORMS: list[Callable[[Any], Any]] = [
    sp.expand, sp.factor, sp.simplify, sp.together, sp.factor_terms, sp.trigsimp, sp.radsimp, sp.powsimp,
    lambda part: sp.expand(part, trig=True), lambda part: part.rewrite(sp.tan, sp.sin), sp.logcombine,
]  # fmt: skip
LONGEST = 1000  # letters of an entry
NOTATIONS: list[Callable[[Any], str]] = [
    _typed, sp.sstr, lambda part: sp.sstr(part).replace("**", "^"), lambda part: sp.latex(part, ln_notation=True),
]  # fmt: skip
_ROW = r" \\ "
_MATRICES = ("({0})", "-(-({0}))", "2({0}) - ({0})", "(({0})^T)^T", "({0}) + ({0}) - ({0})", "1/2 ({0} + {0})")


def _rewritten(text: str, names: list[str], source: Random) -> str:
    """Return a formula in another form and notation, cases and vectors part by part."""
    form, notation = source.choice(FORMS), source.choice(NOTATIONS)

    def written(part: sp.Expr) -> str:
        other = part
        with contextlib.suppress(LimitError, sp.PolynomialError, NotImplementedError), time_limit(SECONDS, "a form"):
            other = form(part)
        numbers = other.atoms(sp.Integer)
        unread = other.has(sp.I, sp.re, sp.im, sp.Piecewise) or too_large(other) or max(numbers, default=0) > 10**300
        unread = unread or len(text := notation(other)) > LONGEST
        return _typed(part) if unread else text

    expression = read_formula(text, names)
    if isinstance(expression, sp.Piecewise):
        cases = (f"{written(part)} & {signs_of(case)}" for part, case in expression.args)
        return rf"\begin{{cases}} {_ROW.join(cases)} \end{{cases}}".replace("True", "otherwise")
    return written(expression)


def other_form(practice: Exercise, text: str, source: Random) -> str:
    """Return an answer in another form."""
    question = practice.question
    if isinstance(question, TraceQuestion):
        rows = text.split("\n")
        return "\n".join(source.choice([rows, [row.replace(" | ", "\t") for row in rows]]))
    if not isinstance(question, CalculusQuestion):
        return source.choice(_MATRICES).format(text)
    names = [*question.variables, "y", "v", "w", "eps_1", "eps_2"]
    if question.topic.kind == "hessian":
        rows = [row.split(", ") for row in text[2:-2].split("), (")]
        return f"[{', '.join('[' + ', '.join(_rewritten(p, names, source) for p in row) + ']' for row in rows)}]"
    if question.topic.kind == "gradient":
        return f"({', '.join(_rewritten(part, names, source) for part in text[1:-1].split(', '))})"
    return _rewritten(text, names, source)


def judged(topic: str, level: int, seed: int, counted: Counter[str]) -> str:
    """Draw an exercise and judge its answers in other forms; AssertionError for a wrong verdict."""
    source = Random(f"{topic} {level} {seed}")
    practice = exercise(topic, level, seed)
    assert len(practice.wrong_answers) == WRONG_ANSWERS
    right = other_form(practice, practice.answer, source)
    verdict = practice.check(right).right
    counted["right answers"] += 1
    assert verdict is True, f"{practice.question.f}: {right!r} is called {verdict}, from {practice.answer!r}"
    for wrong in practice.wrong_answers:
        text = other_form(practice, wrong.text, source)
        checked = practice.check(text)
        counted["wrong answers"] += 1
        assert checked.right is False, f"{practice.question.f}: {text!r} is called {checked.right}, from {wrong.text!r}"
        mistakes = [str(mistake) for mistake in getattr(checked, "mistakes", ())]
        counted["diagnosed again"] += mistakes[:1] == [wrong.diagnosis]
        counted["another diagnosis"] += bool(mistakes) and mistakes[:1] != [wrong.diagnosis]
    return topic


def tries(seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield exercises: all topics and levels of a seed, then those of the next one."""
    counted = Counter[str]()
    warnings.simplefilter("ignore")
    for number, (here, topic, level) in enumerate(
        (here, topic, level) for here in count(seed) for topic, level in product(topics(), LEVELS)
    ):
        yield f"{topic}, level {level}, seed {here}", partial(_named, topic, level, here, counted)
        if number % 500 == 499:
            print(f"{number + 1} exercises, {dict(counted)}", flush=True)


def _named(topic: str, level: int, seed: int, counted: Counter[str]) -> str:
    """As `judged`, but an error of ours is a failure: every topic, level and seed has an exercise, and is read."""
    try:
        return judged(topic, level, seed, counted)
    except WorkbenchError as error:
        raise AssertionError(f"{type(error).__name__}: {error}") from error
