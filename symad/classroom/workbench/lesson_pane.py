"""The lessons pane: shows the steps at once, and their results when the code has run."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from symad.classroom.lessons.lesson import Lesson, LessonStep, read_steps, run_steps
from symad.classroom.workbench.questions import Question, question_of
from symad.classroom.workbench.titles import PANES
from symad.display import html
from symad.errors import ArgumentError

FORMS = (".html", ".ipynb", ".tex", ".txt")
_NAME = re.compile(r"lesson-(\d{1,3})")


def lesson_number(pane: str) -> int | None:
    """Return the number of the lesson that a pane's name means, None if it means none.

    >>> lesson_number("lesson-3"), lesson_number("graph")
    (3, None)
    """
    match = _NAME.fullmatch(pane)
    return int(match[1]) if match else None


class LessonPane:
    """The lessons that a worker has run."""

    def __init__(self) -> None:
        self._run: dict[int, Lesson] = {}

    def content(self, number: int, send: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Send the steps of a lesson, and each again after its code has run. Return title and forms for the page."""
        steps = read_steps(number)
        send({"progress": "", "steps": [_step(step) for step in steps]})
        run: list[LessonStep] = []
        for step in self._run[number].steps if number in self._run else run_steps(number):
            run.append(step)
            send({"progress": f"step {len(run)} of {len(steps)}", "run": len(run), "html": _html(step)})
        self._run[number] = Lesson(number, tuple(run))
        return {"title": self._run[number].title, "forms": list(FORMS)}

    def exported(self, number: int, suffix: str) -> bytes:
        """Return a lesson as a file; ArgumentError for an unknown form."""
        if suffix not in FORMS:
            raise ArgumentError(f"a lesson as {suffix[:20]!r}", do=f"choose one of {', '.join(FORMS)}")
        if number not in self._run:
            self._run[number] = Lesson(number, tuple(run_steps(number)))
        with tempfile.TemporaryDirectory() as folder:
            return self._run[number].save(Path(folder) / f"lesson{suffix}").read_bytes()


def beside(step: LessonStep) -> tuple[Question | None, list[str]]:
    """Return the question of the panes beside a step, and the open panes; None and none if there are no panes."""
    parts = dict(step.beside)
    if not parts:
        return None, []
    open_panes = [name.strip() for name in parts.pop("panes", ", ".join(PANES)).split(",")]
    if unknown := [name for name in open_panes if name not in PANES]:
        raise ArgumentError(f"the pane {unknown[0]!r} beside a lesson", do=f"the panes are {', '.join(PANES)}")
    order = {"order": int(parts.pop("order"))} if "order" in parts else {}
    return question_of({**parts, **order}), open_panes


def _step(step: LessonStep) -> dict[str, Any]:
    question, open_panes = beside(step)
    fields = {} if question is None else {
        "text": question.text, "point": question.point, "transform": question.transform, "order": str(question.order)
    }  # fmt: skip
    return {"title": step.title, "html": _html(step), "question": fields, "panes": open_panes}


def _html(step: LessonStep) -> str:
    return html.bare(step.blocks())
