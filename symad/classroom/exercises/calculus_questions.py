"""Questions about one formula: derivatives, values, gradients, Hessians, directions, equations; and expansions of it.

The derivation is that of `steps`. A wrong answer has one entry that a known mistake of `check_derivative` leads to.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, cached_property, partial
from typing import Any

import sympy as sp

import symad.classroom.answers.answer_problem as problems
from symad.classroom.answers.answer_check import check_of, checked_answer
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import AnswerProblem, Reveal
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.entry_answers import entry_question
from symad.classroom.answers.implicit_problem import implicit_problem
from symad.classroom.answers.mistake_rules import Wrong
from symad.classroom.answers.mistakes import Mistake, wrong_coefficients
from symad.classroom.derivation.derivation_steps import Derivation, steps
from symad.classroom.derivation.textbook_rules import NAMES, slope_of
from symad.classroom.derivation.tidying import in_book_order
from symad.classroom.exercises.practice_questions import PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import Draw, Topic, table
from symad.classroom.expansion.epsilon import Levels, Nested, monomial, readable
from symad.classroom.expansion.expand import expand
from symad.display.document import Block, Document, Formula, Paragraph, Table
from symad.display.mathematics import signs_of
from symad.display.notation import Pending
from symad.tracing.calling.tracebacks import public_api

Place = tuple[int, ...]  # the variables of a partial derivative, or the levels of a coefficient
_POINTS, _DIRECTIONS = (1, 2, 3, -1, -2), ((3, 4), (1, 2), (2, -1), (1, -1), (-3, 4))
_LONGEST = 1.6  # of a typical wrong answer, times the right one
_ROW = r" \\ "
_ROOT = re.compile(r"√(\w)(?=·)")  # of √x·y
_X, _V, _W = sp.symbols("x v w", real=True)


@cache
def _words() -> Any:
    """Return the laws of rules, those of functions from their slopes, and which kinds of mistakes are typical."""
    words = table("rules.toml")
    heads = ((name, head(_X), slope_of(head(_X), 0)) for head, name in NAMES.items() if "step" not in name)
    return {**words, "laws": words["laws"] | {name: f"({signs_of(f)})′ = {signs_of(s)}" for name, f, s in heads}}


class CalculusQuestion(PracticeQuestion):
    """A derivative of some order, in one or several variables, as a formula, at a point or along a direction."""

    def __init__(self, topic: Topic, level: int, draw: Draw) -> None:
        super().__init__(topic, level, draw)
        self.x: Any = self.variables[0] if len(self.variables) == 1 else self.variables
        point = {name: 0 if topic.kind == "taylor" else draw.of(_POINTS) for name in self.variables}
        self.point = point if topic.kind in ("value", "directional", "taylor", "dual") else {}
        self.at: Any = dict(self.point) or self.x
        self.direction = draw.of(_DIRECTIONS)
        self.checks: dict[str, Callable[[Any], CheckedAnswer]] = {}

    @cached_property
    def derivation(self) -> Derivation:
        return steps(self.f, self.x, order=self.topic.order)

    @cached_property
    def problems(self) -> dict[Place, AnswerProblem]:
        """The problems of the entries of the answer."""
        if self.topic.kind == "equation":
            return {(): implicit_problem(self.f, self.x, self.topic.order)}
        if len(self.variables) == 1:
            return {(): problems.derivative_problem(self.f, self.at, self.topic.order)}
        entries = self._problems_of(**self.asked_of)
        return {(): next(iter(entries.values()))} if self.topic.kind == "directional" else entries

    @property
    def asked_of(self) -> dict[str, Any]:
        """What `check_derivative` is told beside the formula and the variables."""
        if self.topic.kind == "directional":
            return {"along": self.direction}
        return {"order": tuple(self.variables) if self.topic.kind == "mixed" else self.topic.order}

    def _problems_of(self, **asked: Any) -> dict[Place, AnswerProblem]:
        """Return the problems of the entries of a gradient, a Hessian, a mixed or a directional derivative."""
        question = entry_question(self.f, self.at, Asked(**asked))
        assert question is not None
        return {tuple(place[1:]): question.problem(place) for place in question.asked}

    @cached_property
    def entries(self) -> dict[Place, sp.Expr]:
        """The right entries: as `steps` tidies them, else the shortest form."""
        if self.point or self.topic.kind == "levels":
            return {place: _tidy(problem.truth[_levels(place, problem)]) for place, problem in self.problems.items()}
        if len(self.problems) == 1 and self.topic.kind != "mixed":
            return {(): self.derivation.question.with_y(self.derivation.sections[-1].shown)}
        sections = {section.heading: section.shown for section in self.derivation.sections if section.lines}
        names = {place: "".join(self.variables[k] for k in place) for place in self.problems}
        return {place: sections[f"{self.derivation.question.name}_{name}"] for place, name in names.items()}

    @property
    def answer(self) -> str:
        return _typed(self.shown({}))

    def shown(self, put: Mapping[Place, sp.Expr]) -> Any:
        """Return the answer, or one with other entries."""
        entries = {**self.entries, **put}
        if self.topic.kind == "gradient":
            return sp.Tuple(*entries.values())
        if self.topic.kind == "hessian":
            return sp.Tuple(*(sp.Tuple(entries[0, k], entries[k, 1]) for k in (0, 1)))
        return next(iter(entries.values()))

    @public_api
    def check(self, mine: Any, reveal: Reveal) -> CheckedAnswer:
        if (key := str(reveal)) not in self.checks:
            self.checks[key] = self.check_with(reveal)
        return self.checks[key](mine)

    def check_with(self, reveal: Reveal) -> Callable[[Any], CheckedAnswer]:
        """Return the check of all answers, as `check_derivative` makes one."""
        return check_of(self.f, self.at, Asked(**self.asked_of, reveal=reveal))

    def mistaken(self) -> Iterator[WrongAnswer]:
        """Yield wrong answers: the kinds of mistakes in turn, those of the topic first, long answers last."""
        own = {rule for line in self.derivation.lines for rule in line.rule.split(", ")}
        kinds, rows, turns = _words()["kinds"], list[tuple[int, Place, Wrong]](), Counter[str]()
        for place, wrong in self.draw.shuffled([*self._wrongs()]):
            turn = turns[wrong.kind] + 3 * (wrong.kind in kinds["seldom"])
            turn += wrong.kind not in [*own, *kinds["typical"]]
            turns[wrong.kind] += 1
            rows.append((turn + 2 * any("elsewhere" in str(word) for word in wrong.words), place, wrong))
        most, long = _LONGEST * len(self.answer) + 10, list[WrongAnswer]()
        for _, place, wrong in sorted(rows, key=lambda row: row[0]):
            value = sp.piecewise_fold(self.problems[place].value(wrong.value))
            if not value.has(sp.nan, sp.zoo, sp.oo, sp.I, sp.Derivative, sp.DiracDelta):
                text = _typed(self.shown({place: _tidy(value)}))
                answer = WrongAnswer(text, str(Mistake(wrong.kind, wrong.words)))
                if len(text) <= most:
                    yield answer
                else:
                    long.append(answer)
        yield from sorted(long, key=lambda answer: len(answer.text))

    def _wrongs(self) -> Iterator[tuple[Place, Wrong]]:
        for place, problem in self.problems.items():
            for wrong in wrong_coefficients(problem, _levels(place, problem)) if place or not problem.expansion else ():
                yield place, wrong

    def hints(self) -> list[str]:
        """Return the rules with their laws, but no law that is the answer, and the lines with pending derivatives."""
        lines = [line for line in self.derivation.lines if line.before.has(Pending)]
        rules = dict.fromkeys(rule for line in lines for rule in line.rule.split(", "))
        laws = ((rule, _words()["laws"].get(rule, "")) for rule in rules if rule not in ("identity", "simplified"))
        named = [f"{rule}: {law}" if law and not law.endswith(f"= {self.answer}") else rule for rule, law in laws]
        sides = (map(self.derivation.question.with_y, (line.before, line.after)) for line in lines)
        pending = [f"{signs_of(left)} = {signs_of(right)}" for left, right in sides if right.has(Pending)]
        return [*filter(None, [self.topic.hint]), *([f"Use the {'; the '.join(named)}"] if named else []), *pending]

    def shown_formula(self) -> Block:
        if self.topic.kind != "equation":
            return super().shown_formula()
        left, right = map(self.derivation.question.with_y, self.derivation.question.formulas)
        return Formula(right, left, "y depends on x")  # as in the derivation

    def worked(self) -> Document:
        blocks: Document = self.derivation.document()[1:]
        if self.topic.kind == "directional":
            entries = self._problems_of(order=1).values()
            parts = [signs_of(problem.truth[problem.terms[0]]) for problem in entries]
            terms = [f"({part})·({along})" for part, along in zip(parts, self.direction, strict=True)]
            blocks = (*blocks, Paragraph(f"∇f·v = {' + '.join(terms)}"))
        return (*blocks, *self.result())

    def result(self) -> Document:
        """Return the answer as a formula, where the derivation does not end with it."""
        left = self.told(self.topic.result)
        return (Formula(self.shown({}), sp.Symbol(left)),) if left else ()


class ExpansionQuestion(CalculusQuestion):
    """A formula at dual numbers, of one or two levels, or its Taylor polynomial."""

    @property
    def given(self) -> tuple[Any, Any, int | None]:
        """The point or variable, the directions and the order for `expand`."""
        directions = {"levels": [_V, _W], "taylor": 1, "dual": [1]}[self.topic.kind]
        return self.at, directions, self.topic.order if self.topic.kind == "taylor" else None

    @cached_property
    def problems(self) -> dict[Place, AnswerProblem]:
        problem = problems.expansion_problem(self.f, *self.given)
        return dict.fromkeys(problem.terms, problem)

    def shown(self, put: Mapping[Place, sp.Expr]) -> Any:
        entries = {**self.entries, **put}
        parts = [(value, monomial(place)) for place, value in entries.items()]
        if self.topic.kind == "taylor":
            places = [tuple(range(1, k + 1)) for k in range(self.topic.order + 1)]
            parts = [(entries[place] / sp.factorial(k), _X**k) for k, place in enumerate(places)]
        return Nested(*(part for value, power in parts if value != 0 for part in (value, power)))

    def check_with(self, reveal: Reveal) -> Callable[[Any], CheckedAnswer]:
        problem = problems.expansion_problem(self.f, *self.given, reveal=reveal)
        return partial(checked_answer, problem=problem)

    def worked(self) -> Document:
        if self.topic.kind == "taylor":
            rows = [(str(len(place)), signs_of(value)) for place, value in self.entries.items()]
            table = Table(("k", "f⁽ᵏ⁾ at 0"), tuple(dict(rows).items()))
            return (*self.derivation.document()[1:], table, *self.result())
        directions = [_V, _W] if self.topic.kind == "levels" else [sp.S.One]
        return (*expand(self.f, self.x, directions).document()[2:], *self.result())


def _levels(place: Place, problem: AnswerProblem) -> Levels:
    return place if problem.expansion else problem.terms[0]


def _tidy(value: sp.Expr) -> sp.Expr:
    if isinstance(value, sp.Piecewise):
        return value.func(*((_tidy(branch), case) for branch, case in value.args))
    return in_book_order(readable(value))


def _typed(expression: Any) -> str:
    """Return a formula, a vector or rows of vectors as a text that is read back as the same."""
    if isinstance(expression, sp.Tuple):
        return f"({', '.join(map(_typed, expression))})"
    if isinstance(expression, sp.Piecewise):
        cases = [(_typed(value), "otherwise" if case is sp.true else signs_of(case)) for value, case in expression.args]
        return rf"\begin{{cases}} {_ROW.join(map(' & '.join, cases))} \end{{cases}}"
    return _ROOT.sub(r"√(\1)", signs_of(expression))
