"""Detect outside inputs of a function: random numbers, the clock, files, the environment.

Python's profiler sees them everywhere: in the user's code, and in packages that it calls. Inputs that Python's own
library reads for itself (a log's time, an imported module) do not count.
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
_FOR_ITSELF = frozenset({  # modules of Python's library whose inputs their callers do not see
    "asyncio", "concurrent", "doctest", "importlib", "inspect", "linecache", "logging", "multiprocessing", "queue",
    "sched", "tempfile", "threading", "tokenize", "traceback", "unittest", "uuid", "warnings",
})  # fmt: skip


@dataclass(frozen=True)
class OutsideInput:
    """An input and its place: kind, file, line and text; `names` are those of its module."""

    kind: Kind
    file: str
    line: int
    text: str
    names: dict[str, Any]


class noting_inputs:
    """A block that notes the outside inputs of this thread; none are noted if another profiler is running.

    >>> with noting_inputs() as noted:
    ...     drawn, early = random.random() < 1, time.time() > 0
    >>> [found.kind for found in noted.inputs]
    ['random', 'clock']
    """

    def __init__(self) -> None:
        self._found: dict[tuple[Kind, str, int], OutsideInput] = {}
        self._seeded: list[random.Random] = []
        self._run = dict[int, tuple[CodeType, dict[str, Any]]]()

    @property
    def inputs(self) -> list[OutsideInput]:
        """The inputs, each line once. A file that is opened may have been looked for before."""
        opened = {place[1:] for place in self._found if place[0] == "file"}
        return [asked for place, asked in self._found.items() if place[0] != "path" or place[1:] not in opened]

    @property
    def code(self) -> list[tuple[CodeType, dict[str, Any]]]:
        """The user's code that was executed, with its global names."""
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
            owner = getattr(value, "__self__", None)
            if kind is not None and not any(owner is generator for generator in self._seeded):
                self._note(kind, frame)
        elif event == "call":
            code = frame.f_code
            if id(code) not in self._run:
                self._run[id(code)] = code, frame.f_globals
            if id(code) in _ENVIRONMENT:
                self._note("environment", frame)
            elif id(code) == _SEED:
                if frame.f_locals.get("a") is not None:
                    self._seeded.append(frame.f_locals["self"])  # with a seed, every run draws the same numbers
                else:
                    self._note("random", frame)

    def _note(self, kind: Kind, frame: FrameType) -> None:
        caller = _responsible_frame(frame)
        if caller is None or (kind == "environment" and is_installed(caller.f_code.co_filename)):
            return  # a package's own settings
        place = kind, caller.f_code.co_filename, caller.f_lineno
        if place not in self._found:
            text = segment_at(caller.f_code, caller.f_lasti)
            if kind != "date" or text.endswith("()") or ("strftime(" in text and "," not in text):
                self._found[place] = OutsideInput(*place, text, caller.f_globals)


def _kind_of(function: Any) -> Kind | None:
    """Return the kind of input that a builtin function reads, None if its result is always the same."""
    name, owner = getattr(function, "__name__", ""), getattr(function, "__self__", None)
    if name in ("random", "getrandbits") and isinstance(owner, random.Random):
        return "random"
    if name in ("now", "today", "utcnow") and isinstance(owner, type) and issubclass(owner, datetime.date):
        return "now" if name != "today" or issubclass(owner, datetime.datetime) else "date"
    try:
        return _BUILTINS.get(function)
    except TypeError:  # a method of an unhashable object
        return None


def _responsible_frame(frame: FrameType | None) -> FrameType | None:
    """Return the frame of the user's code, or of a package, that asked; None if a library did so for itself."""
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
