"""What the questions of all exercises have: a task, an answer, a check, wrong answers, hints, and a derivation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import Reveal, asked_formula
from symad.classroom.answers.trace_answers import CheckedTrace
from symad.classroom.derivation.tidying import in_book_order
from symad.classroom.exercises.topics import Draw, Topic, filled
from symad.display.document import Block, Document, Formula, Paragraph

Checked = CheckedAnswer | CheckedTrace


@dataclass(frozen=True)
class WrongAnswer:
    """A wrong answer, and the diagnosis of the mistake that leads there."""

    text: str
    diagnosis: str


class PracticeQuestion:
    """The base of the kinds of questions. Texts of answers are such as `check` reads."""

    point: Mapping[str, int]  # may be empty
    direction: tuple[int, ...] = ()

    def __init__(self, topic: Topic, level: int, draw: Draw) -> None:
        self.topic, self.draw = topic, draw
        self.template, self.drawn = draw.of(topic.formulas[level]), draw.letters()
        self.f = filled(self.template, self.drawn)
        self.variables = topic.variables.split()
        self.point = {}
        self.tried: dict[str, Any] = {}  # wrong answers, checked

    @property
    def answer(self) -> str:
        """The final answer, in the form that a book prints."""
        raise NotImplementedError

    def check(self, mine: Any, reveal: Reveal) -> Checked:
        raise NotImplementedError

    def mistaken(self) -> Iterator[WrongAnswer]:
        """Yield wrong answers, not checked yet."""
        raise NotImplementedError

    def hints(self) -> list[str]:
        """Return the name of the rule, then steps before the answer."""
        raise NotImplementedError

    def worked(self) -> Document:
        """Return the derivation and the answer."""
        raise NotImplementedError

    def told(self, text: str) -> str:
        """Return a text of the topic with the point, the direction and the variable."""
        v = self.direction if len(self.direction) != 1 else self.direction[0]
        at = ", ".join(f"{name} = {value}" for name, value in self.point.items())
        return filled(text, {"at": at, "p": ", ".join(map(str, self.point.values())), "v": v, "x": self.variables[0]})

    def asked(self) -> Document:
        """Return the question."""
        return Paragraph(self.told(self.topic.task)), self.shown_formula()

    def shown_formula(self) -> Block:
        arguments = list(self.point) or ["x", *(name for name in self.variables if name != "x")]
        symbols = [sp.Symbol(name, real=True) for name in arguments]
        return Formula(in_book_order(asked_formula(self.f, self.variables)[0]), sp.Function("f")(*symbols))

    def is_right(self) -> bool:
        """Whether the derivation is confirmed; `steps`, `expand` and `explain` check theirs themselves."""
        return True

    def checked(self, text: str) -> Any:
        """Return the check of a text, which several mistakes may lead to; it is done once."""
        if text not in self.tried:
            self.tried[text] = self.check(text, "always")
        return self.tried[text]

    def confirms(self, wrong: WrongAnswer) -> bool:
        """Whether the check finds a wrong answer wrong, and names just its mistake."""
        checked = self.checked(wrong.text)
        return checked.right is False and [str(m) for m in getattr(checked, "mistakes", ())][:1] == [wrong.diagnosis]
