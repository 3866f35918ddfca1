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
    """Whether one of the user's functions in this run has a handler around its current line."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not is_attempt(frame):
        if frame.f_code.co_filename in _OF_THREADS:
            return False  # the thread prints an error, or keeps it for another thread
        if not is_library(frame.f_code.co_filename) and _is_covered(frame):
            return True
        frame = frame.f_back
    return False


def _is_covered(frame: FrameType) -> bool:
    return any(start <= frame.f_lasti < end for start, end in _protected(frame.f_code))


@lru_cache(maxsize=FILES)
def _protected(code: CodeType) -> tuple[tuple[int, int], ...]:
    """Return the ranges of instructions of a function that a handler covers.

    The object of a `with` may suppress an error, unless the code names one that never does, and no `suppress`.
    """
    listed = list(dis.get_instructions(code))
    suppresses = "suppress" in code.co_names or _NEVER_SUPPRESSING.isdisjoint(code.co_names)
    handlers = {
        instruction.offset
        for instruction, following in pairwise(listed)
        if instruction.opname == "PUSH_EXC_INFO" and (suppresses or following.opname != "WITH_EXCEPT_START")
    }
    entries = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end) for entry in entries if _leads_to(handlers, entry.target, entries))


def _leads_to(handlers: set[int], target: int, entries: list[Any]) -> bool:
    """Whether the target of an error is a handler or inside one, as the end of a comprehension is."""
    for _ in entries:
        if target in handlers:
            return True
        around = next((entry for entry in entries if entry.start <= target < entry.end), None)
        if around is None or around.target == target:
            return False
        target = around.target
    return False
