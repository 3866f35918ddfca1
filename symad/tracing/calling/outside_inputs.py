"""Detect outside inputs of a function: random numbers, the clock, files, the environment.

They are seen by Python's profiler, wherever they are asked for: in the user's code, or in a package that it calls. What
Python's own library asks for its own ends (a log's time, a module that is imported) is not.
"""

from __future__ import annotations

import datetime
import io
import os
import random
import sys
import time
from types import CodeType, FrameType
from typing import Any, Literal

from codegen.records import dataclass
from symad.tracing.calling.user_place import is_installed, is_library, is_ours, is_standard, segment_at

Kind = Literal["random", "clock", "now", "date", "file", "path", "environment"]

_CLOCKS = ("monotonic", "perf_counter", "process_time", "thread_time", "time")
_DATES = ("ctime", "gmtime", "localtime", "strftime")  # of now, where nothing is given
_BUILTINS: dict[Any, Kind] = {
    **{getattr(time, name): "clock" for word in _CLOCKS for name in (word, f"{word}_ns")},
    **{getattr(time, name): "clock" for name in ("clock_gettime", "clock_gettime_ns") if hasattr(time, name)},
    **{getattr(time, name): "date" for name in _DATES},
    **dict.fromkeys((io.open, os.open, os.listdir, os.scandir, input), "file"),
    **dict.fromkeys((os.stat, os.lstat, os.access, os.getcwd, os.readlink), "path"),
    **{getattr(os, name): "random" for name in ("urandom", "getrandom") if hasattr(os, name)},
}
_ENVIRONMENT = frozenset(id(method.__code__) for method in (type(os.environ).__getitem__, type(os.environ).__iter__))
_SEED = id(random.Random.seed.__code__)
_FOR_ITSELF = frozenset({  # modules of Python's library that ask for what their callers do not see
    "asyncio", "concurrent", "doctest", "importlib", "inspect", "linecache", "logging", "multiprocessing", "queue",
    "sched", "tempfile", "threading", "tokenize", "traceback", "unittest", "uuid", "warnings",
})  # fmt: skip


@dataclass(frozen=True)
class OutsideInput:
    """What was asked for, and where: of which kind, in which file, line and text; `names` are those of its module."""

    kind: Kind
    file: str
    line: int
    text: str
    names: dict[str, Any]


class noting_inputs:
    """A block in which it is noted what this thread asks for; nothing is, where another profiler is running.

    >>> with noting_inputs() as noted:
    ...     drawn, early = random.random() < 1, time.time() > 0
    >>> [each.kind for each in noted.inputs]
    ['random', 'clock']
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, str, int], OutsideInput] = {}
        self._seeded: list[random.Random] = []
        self._run = dict[int, tuple[CodeType, dict[str, Any]]]()

    @property
    def inputs(self) -> list[OutsideInput]:
        """What was asked for, each line once; a file that is opened may be looked for before."""
        opened = {place[1:] for place in self._found if place[0] == "file"}
        return [each for place, each in self._found.items() if place[0] != "path" or place[1:] not in opened]

    @property
    def code(self) -> list[tuple[CodeType, dict[str, Any]]]:
        """The user's code that was run, and the global names of each."""
        return [(code, names) for code, names in self._run.values() if not is_installed(code.co_filename)]

    def __enter__(self) -> noting_inputs:
        self._notes = sys.getprofile() is None
        if self._notes:
            sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        if self._notes:
            sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, value: Any) -> None:
        if event == "c_call":
            kind = _kind_of(value)
            if kind is not None and not any(getattr(value, "__self__", None) is each for each in self._seeded):
                self._note(kind, frame)
        elif event == "call":
            code = frame.f_code
            if id(code) not in self._run:
                self._run[id(code)] = code, frame.f_globals
            if id(code) in _ENVIRONMENT:
                self._note("environment", frame)
            elif id(code) == _SEED:
                self._seed(frame)

    def _seed(self, frame: FrameType) -> None:
        """Note a seed: with one, the same numbers are drawn in every run."""
        if frame.f_locals.get("a") is not None:
            self._seeded.append(frame.f_locals["self"])
        else:
            self._note("random", frame)

    def _note(self, kind: Kind, frame: FrameType) -> None:
        caller = _asking(frame)
        if caller is None or (kind == "environment" and is_installed(caller.f_code.co_filename)):
            return  # a package's own settings
        place = kind, caller.f_code.co_filename, caller.f_lineno
        if place not in self._found:
            text = segment_at(caller.f_code, caller.f_lasti)
            if kind != "date" or text.endswith("()") or ("strftime(" in text and "," not in text):
                self._found[place] = OutsideInput(*place, text, caller.f_globals)


def _kind_of(function: Any) -> Kind | None:
    """Return of which kind a builtin function's answer is, None where it is the same every time."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name in ("random", "getrandbits") and isinstance(owner, random.Random):
        return "random"
    if name in ("now", "today", "utcnow") and isinstance(owner, type) and issubclass(owner, datetime.date):
        return "now" if name != "today" or issubclass(owner, datetime.datetime) else "date"
    try:
        return _BUILTINS.get(function)
    except TypeError:  # a method of what has no hash
        return None


def _asking(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the user's code, or of a package, that asked; None where a library did so for itself."""
    module = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if is_standard(file):
            module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
            if file.startswith("<frozen importlib"):
                return None
        elif is_ours(file):
            return None
        elif not is_library(file):
            return None if module in _FOR_ITSELF else frame
        frame = frame.f_back
    return None
