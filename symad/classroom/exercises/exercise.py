"""`exercise`: a random question with its derivation, hints, and three typical wrong answers with their diagnosis.

Nothing is shown that is not checked: the final answer is judged right, and each wrong answer wrong, with the mistake
that it was made by. A question for which this fails is drawn again.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import Reveal
from symad.classroom.exercises.calculus_questions import CalculusQuestion, ExpansionQuestion
from symad.classroom.exercises.matrix_questions import MatrixQuestion
from symad.classroom.exercises.practice_questions import Checked, PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import LEVELS, Draw, topic_named, topics, whole
from symad.classroom.exercises.trace_questions import TraceQuestion
from symad.display.document import Block, Code, Document, Heading, Marked, Paragraph, Table
from symad.display.shown import Shown
from symad.errors import LimitError, WorkbenchError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal

WRONG_ANSWERS = 3
_TRIES = 12  # questions that are drawn until one has all its parts
_CANDIDATES = 12  # wrong answers of a question that are tried


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
        return f"Exercise: {self.topic}, level {self.level}, seed {self.seed}"

    def document(self) -> Document:
        """Return the question."""
        return (Heading(self.title, 1), *self.question.asked())

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
        return Solutions(self.title.replace("Exercise", "Solution", 1), (self,))


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
        blocks: list[Block] = [Heading(self.title, 1)]
        for number, exercise in enumerate(self.exercises, 1):
            if len(self.exercises) > 1:
                drawn = f"{exercise.topic}, level {exercise.level}, seed {exercise.seed}"
                blocks += [Heading(f"Exercise {number}"), Paragraph(Marked(drawn, "muted"))]
            blocks += [*exercise.question.asked(), *_solved(exercise)]
        return tuple(blocks)


def _solved(exercise: Exercise) -> Document:
    """Return the derivation without headings of its own, the answer as it may be typed, and the wrong answers."""
    asked, is_table = exercise.question.asked(), "\n" in exercise.answer
    worked = [block for block in exercise.question.worked() if block not in asked]
    lines = (Paragraph(Marked(block.text, "strong")) if isinstance(block, Heading) else block for block in worked)
    rows = tuple((Marked(wrong.text, "code"), wrong.diagnosis) for wrong in exercise.wrong_answers)
    tables = chain.from_iterable((Paragraph(wrong.diagnosis), Code(wrong.text)) for wrong in exercise.wrong_answers)
    typed: Document = (Paragraph(("As it is typed: ", Marked(exercise.answer, "code"))),)
    typed = (Paragraph("As it is typed:"), Code(exercise.answer)) if is_table else typed
    mistakes = tables if is_table else (Table(("wrong answer", "what leads there"), rows, "ll"),)
    return (*lines, *typed, Paragraph(Marked("Typical mistakes", "strong")), *mistakes)


@public_api
def exercise(topic: str, level: int = 1, seed: int = 0) -> Exercise:
    """Return a random exercise. The same topic, level and seed give the same exercise on every machine.

    Topics go from "power rule", "chain rule" over "implicit equations", "gradients", "Hessians", "Taylor polynomials"
    and "traces and determinants" to "dual numbers", "forward traces" and "reverse traces"; `symad exercise` lists all.
    Levels are 1 to 3, a seed is any integer.

    ArgumentError for an unknown topic, with the nearest ones, for another level, and for a seed that is no integer.

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
    for _, candidate in zip(range(_CANDIDATES), question.mistaken(), strict=False):
        is_new = candidate.text not in wrong and candidate.diagnosis not in {
            other.diagnosis for other in wrong.values()
        }
        if is_new and _is_confirmed(question, candidate):
            wrong[candidate.text] = candidate
        if len(wrong) == WRONG_ANSWERS:
            return answer, tuple(wrong.values())
    return None


def _is_confirmed(question: PracticeQuestion, candidate: WrongAnswer) -> bool:
    try:
        return question.confirms(candidate)
    except WorkbenchError:  # a text that has two readings, say
        return False
