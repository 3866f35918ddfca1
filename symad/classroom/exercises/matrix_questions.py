"""Questions of matrix calculus: a table of answers, lines of the differential, and wrong answers; all is checked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from symad.classroom.answers.answer_check import check_derivative
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import Reveal
from symad.classroom.exercises.practice_questions import PracticeQuestion, WrongAnswer
from symad.classroom.exercises.topics import Draw, Topic, filled, table
from symad.display.document import Block, Document, Paragraph, Typeset

_TYPESET = [(r"\btr\s*(?=\()", r"\\operatorname{tr}"), (r"\b(det|log|exp)\b", r"\\\1 "), ("‖", r"\\|")]


@cache
def _rows() -> dict[str, Any]:
    rows: dict[str, Any] = table("matrices.toml")
    return rows


class MatrixQuestion(PracticeQuestion):
    """A number f that depends on a vector or a matrix: the row of a table, with drawn letters."""

    def __init__(self, topic: Topic, level: int, draw: Draw) -> None:
        super().__init__(topic, level, draw)
        self.variables = [str(self.drawn[self.topic.variables])]
        self.row = _rows()[self.template]

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
