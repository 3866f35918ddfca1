"""`exercise`: a random question with its derivation, hints and typical wrong answers; `worksheet`: a sheet of them.

Nothing is shown that is not checked: the final answer is judged right, and each wrong answer wrong, with the mistake
that it was made by. A question for which this fails is drawn again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from itertools import count as counting
from typing import Any

from codegen.records import dataclass
from symad.classroom.answers.answer_check import check_derivative
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import Reveal
from symad.classroom.exercises.calculus_questions import CalculusQuestion, ExpansionQuestion
from symad.classroom.exercises.practice_questions import Checked, PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import LEVELS, Draw, Topic, filled, table, topic_named, topics, whole
from symad.classroom.exercises.trace_questions import TraceQuestion
from symad.display.document import Blank, Block, Code, Document, Heading, Marked, Paragraph, Typeset
from symad.display.shown import Shown
from symad.errors import LimitError, WorkbenchError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

_TYPESET = [(r"\btr\s*(?=\()", r"\\operatorname{tr}"), (r"\b(det|log|exp)\b", r"\\\1 "), ("‖", r"\\|")]


class MatrixQuestion(PracticeQuestion):
    """A number f that depends on a vector or a matrix: the row of a table, with drawn letters."""

    def __init__(self, topic: Topic, level: int, draw: Draw) -> None:
        super().__init__(topic, level, draw)
        self.variables = [str(self.drawn[self.topic.variables])]
        self.row = table("matrices.toml")[self.template]

    @property
    def answer(self) -> str:
        return filled(self.row["answer"], self.drawn)

    def _pairs(self, name: str) -> list[tuple[str, str]]:
        """Return the lines of df with their reasons, or the wrong answers with what leads there."""
        parts = (filled(line, self.drawn).partition(" | ") for line in self.row[name])
        return [(text, words) for text, _, words in parts]

    def check(self, mine: Any, reveal: Reveal) -> CheckedAnswer:
        return check_derivative(mine, self.f, self.variables[0], reveal=reveal)

    def mistaken(self) -> Iterator[WrongAnswer]:
        yield from (WrongAnswer(*pair) for pair in self._pairs("wrong"))

    def confirms(self, wrong: WrongAnswer) -> bool:
        """Whether the check finds a wrong answer wrong. On random matrices it has no names for mistakes."""
        return self.checked(wrong.text).right is False

    def is_right(self) -> bool:
        return all(self.check(text, "always").right for text, _ in self._pairs("lines"))

    def hints(self) -> list[str]:
        lines = self._pairs("lines")
        return [self.told(self.topic.hint), f"Use: {lines[0][1]}", *(f"df = {text}" for text, _ in lines)]

    def shown_formula(self) -> Block:
        return Paragraph(("f = ", _typeset(self.f)))

    def worked(self) -> Document:
        lines = [Paragraph(("df = ", _typeset(text), f"    [{reason}]")) for text, reason in self._pairs("lines")]
        return (*lines, Paragraph((f"{self.told(self.topic.result)} = ", _typeset(self.answer))))


def _typeset(text: str) -> Typeset:
    latex = text
    for pattern, put in _TYPESET:
        latex = re.sub(pattern, put, latex)
    return Typeset(latex, text)


WRONG_ANSWERS = 3
_TRIES = 12  # questions that are drawn until one has all its parts
_CANDIDATES = 12  # wrong answers of a question that are tried
MOST = 60  # exercises of a sheet
_SPACE = {1: 3, 2: 5, 3: 7}  # empty lines by level
_SEEDS = 40  # that are tried for a question that is not on the sheet yet


@dataclass(frozen=True, eq=False, repr=False)
class Exercise(Shown):
    """A question of some topic, level and seed. `print` shows the question alone; `solution` has everything.

    `answer` is the final answer in the form that a book prints, and `wrong_answers` are three typical ones, each with
    its `text` and `diagnosis`. `check` judges an answer, `hint` leads towards it.
    """

    topic: str
    level: int
    seed: int
    question: PracticeQuestion
    answer: str
    wrong_answers: tuple[WrongAnswer, ...]

    @property
    def title(self) -> str:
        return f"{self.topic}, level {self.level}, seed {self.seed}"

    def document(self) -> Document:
        """Return the question."""
        return (Heading(f"Exercise: {self.title}", 1), *self.question.asked())

    @property
    def hints(self) -> tuple[str, ...]:
        """All hints: the rule, then the steps up to the one before the answer."""
        return tuple(self.question.hints())

    def hint(self, k: int = 1) -> str:
        """Return the k-th hint: the first names the rule, the next ones are steps. None of them is the answer.

        ArgumentError where there are fewer.
        """
        hints = self.hints
        if k not in range(1, len(hints) + 1):
            raise refusal(f"hint {k!r:.40} of {len(hints)}", do="use .solution, which has the whole derivation")
        return hints[k - 1]

    def check(self, answer: Any, *, reveal: Reveal = "after") -> Checked:
        """Return the verdict on an answer, as `check_derivative`, `check_expansion` or `check_trace` gives it.

        By default a page shows the right answer only beside a right one.
        """
        return self.question.check(answer, reveal)

    @property
    def solution(self) -> Solutions:
        """The question with its derivation, the answer, and the typical wrong answers."""
        return Solutions(self.title, (self,))


@dataclass(frozen=True, eq=False, repr=False)
class Solutions(Shown):
    """Exercises with their derivations, final answers, and typical wrong answers."""

    name: str
    exercises: tuple[Exercise, ...]

    @property
    def title(self) -> str:
        return self.name

    def document(self) -> Document:
        """Return the exercises, numbered if there are several."""
        blocks: list[Block] = [Heading(f"Solutions: {self.title}", 1)]
        for number, exercise in enumerate(self.exercises, 1):
            if len(self.exercises) > 1:
                blocks += [Heading(f"Exercise {number}"), Paragraph(Marked(exercise.title, "muted"))]
            blocks += [*exercise.question.asked(), *_solved(exercise)]
        return tuple(blocks)


@dataclass(frozen=True, eq=False, repr=False)
class Worksheet(Shown):
    """A sheet of exercises, without their answers; `solutions` is the sheet for the teacher.

    Pages print on A4 and on Letter.
    """

    exercises: tuple[Exercise, ...]

    @property
    def title(self) -> str:
        names = list(dict.fromkeys(exercise.topic for exercise in self.exercises))
        return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")

    @property
    def solutions(self) -> Solutions:
        """The same exercises with their derivations, answers and typical mistakes."""
        return Solutions(self.title, self.exercises)

    def document(self) -> Document:
        blocks: list[Block] = [Heading(f"Worksheet: {self.title}", 1), Paragraph("Name:")]
        for number, practice in enumerate(self.exercises, 1):
            blocks += [Heading(f"Exercise {number}"), *practice.question.asked(), Blank(_SPACE[practice.level])]
        return tuple(blocks)


def _solved(exercise: Exercise) -> Document:
    """Return the derivation without headings of its own, the answer as it may be typed, and the wrong answers."""
    asked, question = exercise.question.asked(), exercise.question
    lines = (Paragraph(Marked(block.text, "strong")) if isinstance(block, Heading) else block
             for block in question.worked() if block not in asked)  # fmt: skip
    wrong = [b for wrong in exercise.wrong_answers for b in (Paragraph(wrong.diagnosis), Code(wrong.text))]
    typed, mistakes = (Paragraph(Marked(text, "strong")) for text in ("As it is typed", "Typical mistakes"))
    return (*lines, typed, Code(exercise.answer), mistakes, *wrong)


@public_api
def exercise(topic: str, level: int = 1, seed: int = 0) -> Exercise:
    """Return a random exercise. The same topic, level and seed give the same exercise on every machine.

    Topics go from "power rule", "chain rule" over "implicit equations", "gradients", "Hessians", "Taylor polynomials"
    and "traces and determinants" to "dual numbers", "forward traces" and "reverse traces"; `symad exercise` lists all.
    Levels are 1 to 3, a seed is any integer.

    ArgumentError for an unknown topic, with the nearest ones, for another level, and for a seed that is no integer;
    LimitError if no question of a dozen could be confirmed with its wrong answers.

    >>> practice = exercise("product rule", level=1, seed=3)
    >>> print(practice)
    Exercise: product rule, level 1, seed 3
    <BLANKLINE>
    Find f′(x).
    <BLANKLINE>
      f(x) = x·sin(x)
    >>> practice.check("cos(x)").right, practice.check("x cos(x) + sin(x)").right
    (False, True)
    >>> practice.hint(1)
    'Use the product rule: (u·v)′ = u′·v + u·v′; the sine: (sin(x))′ = cos(x)'
    >>> practice.answer, practice.wrong_answers[0].diagnosis
    ('sin(x) + x·cos(x)', 'product rule: You left out the part with the derivative of x in the derivative of x·sin(x)')
    """
    name = topic_named(topic)
    level, seed = whole("level", level, LEVELS[0], LEVELS[-1]), whole("seed", seed)
    draw = Draw(name, level, seed)
    for _ in range(_TRIES):
        question = _KINDS.get(topics()[name].kind, CalculusQuestion)(topics()[name], level, draw)
        try:
            established = _established(question)
        except WorkbenchError:  # a formula that cannot be derived, or an answer that cannot be read
            continue
        if established is not None:
            return Exercise(name, level, seed, question, *established)
    raise LimitError(f"no exercise of {name!r}, level {level}, seed {seed} in {_TRIES} tries", do="take another seed")


_KINDS: dict[str, type[PracticeQuestion]] = {
    **dict.fromkeys(("forward", "reverse"), TraceQuestion), "matrix": MatrixQuestion,
    **dict.fromkeys(("taylor", "dual", "levels"), ExpansionQuestion),
}  # fmt: skip


def _established(question: PracticeQuestion) -> tuple[str, tuple[WrongAnswer, ...]] | None:
    """Return the answer and three wrong ones, all confirmed; None if that fails."""
    answer = question.answer
    if question.check(answer, "always").right is not True or not question.is_right():
        return None
    wrong: dict[str, WrongAnswer] = {}
    for candidate in question.mistaken():
        known = {part for other in wrong.values() for part in (other.text, other.diagnosis)}
        with contextlib.suppress(WorkbenchError):  # a text that has two readings, say
            if known.isdisjoint((candidate.text, candidate.diagnosis)) and question.confirms(candidate):
                wrong[candidate.text] = candidate
        if len(wrong) == WRONG_ANSWERS:
            return answer, tuple(wrong.values())
        if len(question.tried) >= _CANDIDATES:
            break
    return None


@public_api
def worksheet(topics: str | Sequence[str], *, level: int = 1, seed: int = 0, count: int = 10) -> Worksheet:
    """Return a sheet of random exercises, of one topic or of several in turn, all different.

    The same arguments give the same sheet. `save("sheet.html")` writes a page that prints on A4 and Letter, `.tex` a
    LaTeX text; `.solutions.save("solutions.html")` the sheet for the teacher. Topics, level and seed are as in
    `exercise`, `count` is at most 60. LimitError if a topic has not so many different questions.

    >>> sheet = worksheet(["chain rule", "quotient rule"], seed=1, count=4)
    >>> [practice.topic for practice in sheet.exercises]
    ['chain rule', 'quotient rule', 'chain rule', 'quotient rule']
    >>> sheet.solutions
    <Solutions: chain rule, quotient rule>
    """
    if not isinstance(topics, str | list | tuple) or not topics:
        raise refusal(f"topics={topics!r:.60}", do='give a topic such as "chain rule", or a list of topics')
    names = [topic_named(name) for name in ([topics] if isinstance(topics, str) else topics)]
    level, seed = whole("level", level, LEVELS[0], LEVELS[-1]), whole("seed", seed)
    seeds: dict[str, Any] = {name: counting(seed) for name in names}
    exercises: dict[str, Exercise] = {}
    for number in range(whole("count", count, 1, MOST)):
        name = names[number % len(names)]
        for _ in range(_SEEDS):
            practice = exercise(name, level, next(seeds[name]))
            question = f"{name} {[str(block) for block in practice.question.asked()]}"
            if question not in exercises:
                exercises[question] = practice
                break
        else:
            do = "take fewer, another level, or more topics"
            raise LimitError(f"{count} different exercises of {name!r}, level {level}", do=do)
    return Worksheet(tuple(exercises.values()))
