"""The loop of a worker process: wait for a request, compute, send progress and the answer; lessons and practice.

The last studies are kept, so that the panes of one question share them. No question raises an error here: errors become
messages for the page, without tracebacks.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from functools import lru_cache
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

from symad.classroom.exercises.exercise import Exercise, exercise
from symad.classroom.lessons.lesson import Lesson, LessonStep, read_steps, run_steps
from symad.classroom.workbench.panes import answer, exported, file_of
from symad.classroom.workbench.processes import Message
from symad.classroom.workbench.questions import Question, Study, question_of
from symad.classroom.workbench.titles import PANES
from symad.display import html
from symad.errors import ArgumentError, WorkbenchError
from symad.limits import time_limit

FORMS = (".html", ".ipynb", ".tex", ".txt")
KEPT = 4  # questions whose studies are kept
WARMING = ("expansion", "stages", "graph", "code")  # panes whose first answer is slow: it is computed at the start
_LESSON = re.compile(r"lesson-(\d{1,3})")
_NO_PLACE = re.compile(r"^<\w+>:\d+: ")  # the place of an error in a formula, which has no file
_exercise = lru_cache(maxsize=8)(exercise)


def lesson_number(pane: str) -> int | None:
    """Return the number of the lesson that a pane's name means, None if it means none.

    >>> lesson_number("lesson-3"), lesson_number("graph")
    (3, None)
    """
    match = _LESSON.fullmatch(pane)
    return int(match[1]) if match else None


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
    return {"title": step.title, "html": html.bare(step.blocks()), "question": fields, "panes": open_panes}


def practice(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return an exercise for the page, what is said of the answer, and as many hints as are asked for."""
    chosen = _exercise(asked.get("topic", ""), asked.get("level", 1), asked.get("seed", 0))
    count = asked.get("hints", 0)
    hints = chosen.hints[: count if isinstance(count, int) else 0]
    return {
        "title": f"Exercise: {chosen.title}", "html": html.bare(chosen.question.asked()), "hints": hints,
        "more": len(hints) < len(chosen.hints), "verdict": _verdict(chosen, str(asked.get("mine", ""))),
        "solution": html.bare(chosen.solution.document()[1:]) if asked.get("solution") else "",
    }  # fmt: skip


def _verdict(exercise: Exercise, mine: str) -> dict[str, Any]:
    """Return whether an answer is right and its lines with verdicts, or the message of one that is not readable."""
    if not mine.strip():
        return {"right": None, "html": "", "error": ""}
    try:
        checked = exercise.check(mine)
    except WorkbenchError as error:
        return {"right": None, "html": "", "error": str(error)}
    blocks = [block for block in checked.document()[1:] if block not in exercise.question.asked()]
    return {"right": checked.right, "html": html.bare(tuple(blocks)), "error": ""}


def _sentence(error: Exception) -> str:
    """Return what the page says about an error: of the workbench, of the user's function, or a defect."""
    if isinstance(error, WorkbenchError):
        return _NO_PLACE.sub("", str(error))
    if isinstance(error, RecursionError):
        return "this is nested too deeply to be shown"
    if isinstance(error, MemoryError):
        return "this needs more memory than there is"
    return f"{type(error).__name__}: {error}"


class Desk:
    """The studies of a worker and the lessons that it has run, with the options of the workbench."""

    def __init__(self, file: str, allow_code: bool, seconds: float) -> None:
        self.file, self.allow_code, self.seconds = file, allow_code, seconds
        self._kept: dict[tuple[Question, float], Study] = {}
        self._lessons: dict[int, Lesson] = {}

    def carried_out(self, request: Mapping[str, Any], send: Callable[[Message], None]) -> Message:
        """Return the last message about a request: an answer, a file or an error. Send progress before.

        An error has `unread` where no function could be read, which is the same for all panes.
        """
        try:
            with time_limit(self.seconds, f"the pane {str(request['pane'])[:40]}"):
                if request["pane"] == "practice":
                    return {"answer": practice(request["question"])}
                if (number := lesson_number(request["pane"])) is not None:
                    if "form" in request:
                        return {"file": self._lesson_file(number, request["form"])}
                    return {"answer": self._lesson(number, send)}
                try:
                    question = question_of(request["question"])
                    study = self._study(question)
                    _ = study.subject
                except Exception as error:
                    return {"error": _sentence(error), "unread": True}
                if "form" in request:
                    return {"file": exported(study, question, request["pane"], request["form"])}
                return {"answer": answer(study, question, request["pane"], lambda stage: send({"progress": stage}))}
        except Exception as error:
            return {"error": _sentence(error)}

    def warm(self) -> None:
        """Answer a small question once, so that imports and first compilations are done."""
        for pane in WARMING:
            self.carried_out({"pane": pane, "question": {"text": "x*sin(x)"}}, lambda message: None)
        self._kept.clear()

    def _lesson(self, number: int, send: Callable[[Message], None]) -> Message:
        """Send the steps of a lesson, and each again after its code has run. Return title and forms for the page."""
        steps = read_steps(number)
        send({"progress": "", "steps": [_step(step) for step in steps]})
        run: list[LessonStep] = []
        for step in self._lessons[number].steps if number in self._lessons else run_steps(number):
            run.append(step)
            shown = html.bare(step.blocks())
            send({"progress": f"step {len(run)} of {len(steps)}", "run": len(run), "html": shown})
        self._lessons[number] = Lesson(number, tuple(run))
        return {"title": self._lessons[number].title, "forms": list(FORMS)}

    def _lesson_file(self, number: int, suffix: str) -> bytes:
        """Return a lesson as a file; ArgumentError for an unknown form."""
        if suffix not in FORMS:
            raise ArgumentError(f"a lesson as {suffix[:20]!r}", do=f"choose one of {', '.join(FORMS)}")
        if number not in self._lessons:
            self._lessons[number] = Lesson(number, tuple(run_steps(number)))
        return file_of(self._lessons[number], f"lesson{suffix}")

    def _study(self, question: Question) -> Study:
        """Return the study of a question: the kept one unless its file has changed."""
        written = os.path.getmtime(self.file.rpartition(":")[0]) if question.kind == "file" and self.file else 0.0
        key = question.core, written
        if key not in self._kept:
            while len(self._kept) >= KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = Study(question.core, self.file, self.allow_code)
        return self._kept[key]


def work(connection: Connection, file: str, allow_code: bool, seconds: float) -> None:
    """Carry out requests until the connection or the parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has the terminal
    threading.Thread(target=_end_with_parent, daemon=True).start()
    desk = Desk(file, allow_code, seconds)
    desk.warm()
    while True:
        try:
            request = connection.recv()
            connection.send(desk.carried_out(request, connection.send))
        except (EOFError, OSError):
            return


def _end_with_parent() -> None:
    if (parent := parent_process()) is not None:
        parent.join()
        os._exit(0)
