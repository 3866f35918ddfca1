"""Run a command and turn an error into one line and an exit status."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from symad.commands.progress import Progress
from symad.errors import ArgumentError, NotationWarning, WorkbenchError
from symad.limits import time_limit
from symad.tracing.calling.tracebacks import VARIABLE
from symad.tracing.calling.user_place import is_defect, is_library, is_standard, user_frame

USAGE, FAILURE, INTERRUPTED = 2, 3, 130
QUIET = ("workbench", "cache", "completion")  # which do not compute, or compute elsewhere


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
            return f"{user.f_code.co_filename}:{user.f_lineno}"
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
    lines += [
        f"  called at {entry.filename}:{entry.lineno}, in {entry.name}: {entry.line}" for entry in reversed(users)
    ]
    more = f"  ({VARIABLE}=full shows the lines of symad's too)"
    return [*lines, more] if len(lines) > 1 else [lines[0] + more]
