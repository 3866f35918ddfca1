"""The loop of a worker process: wait for a request, compute, send progress and the answer.

The last studies are kept, so that the panes of one question share them. No question raises an error here: errors become
messages for the page, without tracebacks.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from typing import Any

from symad.classroom.workbench import practice_pane
from symad.classroom.workbench.lesson_pane import LessonPane, lesson_number
from symad.classroom.workbench.panes import answer, exported
from symad.classroom.workbench.processes import Message
from symad.classroom.workbench.questions import Question, question_of
from symad.classroom.workbench.study import Study
from symad.errors import WorkbenchError
from symad.limits import time_limit

KEPT = 4  # questions whose studies are kept
_NO_PLACE = re.compile(r"^<\w+>:\d+: ")  # the place of an error in a formula, which has no file
WARMING = ("expansion", "stages", "graph", "code")  # panes whose first answer is slow: it is computed at the start


class Desk:
    """The studies of a worker, with the options that the workbench was started with."""

    def __init__(self, file: str, allow_code: bool, seconds: float) -> None:
        self.file, self.allow_code, self.seconds = file, allow_code, seconds
        self._kept: dict[tuple[Question, float], Study] = {}
        self._lessons = LessonPane()

    def carried_out(self, request: Mapping[str, Any], send: Callable[[Message], None]) -> Message:
        """Return the last message about a request: an answer, a file or an error. Send progress before."""
        try:
            with time_limit(self.seconds, f"the pane {str(request['pane'])[:40]}"):
                if request["pane"] == "practice":
                    return {"answer": practice_pane.content(request["question"])}
                if (number := lesson_number(request["pane"])) is not None:
                    if "form" in request:
                        return {"file": self._lessons.exported(number, request["form"])}
                    return {"answer": self._lessons.content(number, send)}
                question = question_of(request["question"])
                study = self._study(question)
                if "form" in request:
                    return {"file": exported(study, question, request["pane"], request["form"])}
                content = answer(study, question, request["pane"], lambda stage: send({"progress": stage}))
                return {"answer": content}
        except WorkbenchError as error:
            return {"error": _NO_PLACE.sub("", str(error))}
        except RecursionError:
            return {"error": "this is nested too deeply to be shown"}
        except MemoryError:
            return {"error": "this needs more memory than there is"}
        except Exception as error:  # of the user's function, or a defect: the page shows a line and continues
            return {"error": f"{type(error).__name__}: {error}"}

    def warm(self) -> None:
        """Answer a small question once, so that imports and first compilations are done."""
        for pane in WARMING:
            self.carried_out({"pane": pane, "question": {"text": "x*sin(x)"}}, lambda message: None)
        self._kept.clear()

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
