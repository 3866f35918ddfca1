"""Decide whether the user's `try` would catch an error at the current line."""

from __future__ import annotations

import concurrent.futures.thread
import dis
import sys
import threading
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType
from typing import Any

from symad.tracing.calling.user_place import FILES, is_attempt, is_library

_NEVER_SUPPRESSING = frozenset({  # context managers that let every error out
    "errstate", "printoptions", "catch_warnings", "nullcontext", "closing", "open", "localcontext", "workdps",
    "workprec", "ThreadPoolExecutor", "Lock", "RLock", "source_lines",
})  # fmt: skip

_OF_THREADS = frozenset({threading.__file__, concurrent.futures.thread.__file__})


def is_caught() -> bool:
    """Whether one of the user's functions in the run that is going on has a handler around the call that it is at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_attempt(frame):
        if frame.f_code.co_filename in _OF_THREADS:
            return False  # which prints an error, or keeps it for another thread
        if not is_library(frame.f_code.co_filename) and _is_covered(frame):
            return True
        frame = frame.f_back
    return False


def _is_covered(frame: FrameType) -> bool:
    return any(start <= frame.f_lasti < end for start, end in _protected(frame.f_code))


@lru_cache(maxsize=FILES)
def _protected(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return where instructions of a function begin and end that a handler stands behind.

    The object of a `with` may suppress an error, unless the code names one that never does and not `suppress`.
    """
    listed = list(dis.get_instructions(code))
    suppresses = "suppress" in code.co_names or _NEVER_SUPPRESSING.isdisjoint(code.co_names)
    handlers = {
        one.offset
        for one, other in pairwise(listed)
        if one.opname == "PUSH_EXC_INFO" and (suppresses or other.opname != "WITH_EXCEPT_START")
    }
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end) for entry in entries if _leads_to(handlers, entry.target, entries))


def _leads_to(handlers: set[int], target: int, entries: list[Any]) -> bool:
    """Whether what follows an error is a handler or in the reach of one, as the end of a comprehension is."""
    for _ in entries:
        if target in handlers:
            return True
        around = next((entry for entry in entries if entry.start <= target < entry.end), None)
        if around is None or around.target == target:
            return False
        target = around.target
    return False
