"""Run a command with a progress line, and turn an error into one line and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import Any, Self, TextIO

from symad.errors import ArgumentError, NotationWarning, WorkbenchError
from symad.limits import time_limit
from symad.tracing.calling.tracebacks import VARIABLE
from symad.tracing.calling.user_place import is_defect, is_library, is_standard, user_frame, user_place

USAGE, FAILURE, INTERRUPTED = 2, 3, 130
QUIET = ("workbench", "cache", "completion")  # which do not compute, or compute elsewhere
FIRST, AGAIN = 1.0, 0.2  # seconds before the first line, and between two


class Progress:
    """A line that is rewritten on a terminal and removed at the end. Elsewhere it writes nothing.

    What can be counted is counted by `progress(done, whole)`, and the time to go follows; `stage` names what is done.

    >>> import io
    >>> with Progress("verify", 300.0, io.StringIO()) as progress:  # which is no terminal
    ...     progress(250, 1000)
    ...     print(progress.line(4.0))
    symad verify: 250 of 1000, 4 s, 12 s to go
    """

    def __init__(self, command: str, most: float, stream: TextIO, *, shown: bool = True) -> None:
        self.command, self.most, self.stream, self.shown = command, most, stream, shown
        self._stage, self._done, self._whole = "", 0, 0
        self._started: float = monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.shown and self.stream.isatty():
            self._thread = threading.Thread(target=self._write, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end()

    def __call__(self, done: int, whole: int) -> None:
        """Say how much is done, of how much."""
        self._done, self._whole = done, whole

    def stage(self, name: str) -> None:
        """Show the current stage."""
        self._stage, self._done, self._whole = name, 0, 0

    def end(self) -> None:
        """Take the line away: a result is printed next."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def line(self, seconds: float) -> str:
        """Return the progress line after some seconds.

        >>> import sys
        >>> Progress("hessian", 300.0, sys.stderr).line(61.0)
        'symad hessian: 61 s, 239 s at most to go'
        """
        told = [self._stage] if self._stage else []
        if self._whole:
            told.append(f"{self._done} of {self._whole}")
        told.append(f"{seconds:.0f} s")
        if 0 < self._done <= self._whole:
            told.append(f"{seconds * (self._whole - self._done) / self._done:.0f} s to go")
        else:
            told.append(f"{max(self.most - seconds, 0.0):.0f} s at most to go")
        return f"symad {self.command}: {', '.join(told)}"

    def _write(self) -> None:
        if self._ended.wait(FIRST):
            return
        while not self._ended.is_set():
            self.stream.write(f"\r\x1b[K{self.line(monotonic() - self._started)}")
            self.stream.flush()
            self._ended.wait(AGAIN)
        self.stream.write("\r\x1b[K")
        self.stream.flush()


def carried_out(options: argparse.Namespace) -> int:
    """Carry out a command; return its exit status (see `symad.commands.names.STATUS`)."""
    try:
        named = f"symad {options.command}"
        progress = Progress(options.command, options.max_seconds, sys.stderr, shown=options.command not in QUIET)
        with warnings.catch_warnings(), time_limit(options.max_seconds, named, _place), progress as options.progress:
            warnings.simplefilter("always", NotationWarning)
            warnings.showwarning = _told(warnings.showwarning)
            status: int = options.run(options)
            sys.stdout.flush()
            return status
    except WorkbenchError as error:
        print(f"symad: error: {_said(error)}", file=sys.stderr)
        return USAGE if isinstance(error, ArgumentError) else FAILURE
    except BrokenPipeError:  # the reader, `head` perhaps, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if os.environ.get(VARIABLE) == "full" or is_defect(error):
            traceback.print_exc()  # of a defect of symad it is wanted
        else:
            print("\n".join(_user_lines(error)), file=sys.stderr)
    except KeyboardInterrupt:
        print("symad: interrupted", file=sys.stderr)
        return INTERRUPTED
    return FAILURE


def _place() -> str:
    """Return the running line of the user's function, "" without one."""
    user = user_frame()
    frame: FrameType | None = sys._getframe(1)
    while user is not None and frame is not None and frame.f_code is not carried_out.__code__:
        if frame is user:
            return user_place()
        frame = frame.f_back
    return ""


def _said(error: WorkbenchError) -> str:
    """Return an error's text, without a place in the script that started the command line."""
    launched = error.where.rpartition(":")[0] == os.path.abspath(sys.argv[0])
    return str(error).removeprefix(f"{error.where}: ") if launched else str(error)


def _told(otherwise: Callable[..., None]) -> Callable[..., None]:
    """Return a handler of warnings that shows assumptions about a formula in one line."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, NotationWarning):
            print(f"symad: note: {message}", file=sys.stderr)
        else:
            otherwise(message, category, *place, **more)

    return show


def _user_lines(error: Exception) -> list[str]:
    """Return an error of the user's own code: its innermost line first, then the callers."""
    frames = [entry for entry in traceback.extract_tb(error.__traceback__) if not is_library(entry.filename)]
    users = [entry for entry in frames if not is_standard(entry.filename)]
    if not users:
        return [f"symad: error: {type(error).__name__}: {error}"]
    last = users.pop()
    lines = [f"symad: error: {last.filename}:{last.lineno}: {type(error).__name__}: {error}"]
    lines += [f"  called at {user.filename}:{user.lineno}, in {user.name}: {user.line}" for user in reversed(users)]
    more = f"  ({VARIABLE}=full shows the lines of symad's too)"
    return [*lines, more] if len(lines) > 1 else [lines[0] + more]
