"""Count how often a loop asked a traced condition on a path, and end it at a bound.

A `while` that ends by a value has a path for each number of steps. There is no last one, so the loop gets a bound:
if it has not ended by then, the function has no value, and the user is warned.
"""

from __future__ import annotations

import dis
import warnings
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

from symad.errors import BoundWarning
from symad.tracing.calling.user_place import FILES, is_library, user_frame


class EndOfPath(BaseException):
    """The bound of a loop was reached: this path ends."""


class Loop(NamedTuple):
    """A loop: where it begins in which code, and whether only a value ends it."""

    code: CodeType
    start: int
    is_while: bool


class Steps:
    """How often each loop was decided on one path."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[int, Loop, CodeType, int]] = Counter()
        self._frames: list[FrameType] = []  # kept so that their ids stay unique

    def count(self, end: CodeType) -> tuple[int, Loop | None]:
        """Count a decision in the user's code; return how often it was made in the innermost loop, and the loop.

        A `while` around it counts instead. The search ends at the frame of the code `end`.
        """
        asking = frame = user_frame()
        around: tuple[FrameType, Loop] | None = None
        while frame is not None and frame.f_code is not end:
            loop = None if is_library(frame.f_code.co_filename) else _loop_at(frame.f_code, frame.f_lasti)
            if loop is not None and (around is None or loop.is_while):
                around = frame, loop
                if loop.is_while:
                    break
            frame = frame.f_back
        if around is None or asking is None:
            return 0, None
        frame, loop = around
        self._frames.append(frame)
        key = id(frame), loop, asking.f_code, asking.f_lasti
        self._counts[key] += 1
        return self._counts[key], loop


def _loop_at(code: CodeType, offset: int) -> Loop | None:
    """Return the innermost loop around an instruction."""
    around = [(end - start, start) for start, end in _loops(code).items() if start <= offset <= end]
    return Loop(code, min(around)[1], code.co_code[min(around)[1]] != dis.opmap["FOR_ITER"]) if around else None


@lru_cache(maxsize=FILES)
def _loops(code: CodeType) -> dict[int, int]:
    """Return where the loops of a function begin and end."""
    ends: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        if "JUMP_BACKWARD" in instruction.opname and "INTERRUPT" not in instruction.opname:
            start = int(instruction.argval)
            ends[start] = max(ends.get(start, 0), instruction.offset)
    return ends


def tell(places: Collection[str], bound: int) -> None:
    """Warn of loops that have a bound."""
    for place in places:
        warnings.warn(
            f"{place}: how often this is repeated depends on traced values; it is followed for {bound} steps, and "
            "where it goes on the kernel returns NaN. Write a loop as symad.while_loop(cond, body, init, max_steps), "
            "bound a count by min(n, 20), or give max_paths=",
            BoundWarning,
            stacklevel=2,
        )
