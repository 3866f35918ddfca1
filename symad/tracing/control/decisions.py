"""The conditions decided on a path, the next path to follow, and both in words; the steps of loops on a path.

A `while` that ends by a value has a path for each number of steps. There is no last one, so the loop gets a bound:
if it has not ended by then, the function has no value, and the user is warned.
"""

from __future__ import annotations

import dis
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from types import CodeType, FrameType
from typing import NamedTuple

from codegen.records import dataclass
from symad.errors import BoundWarning, LimitError, TraceError
from symad.tracing.calling.merged_calls import PathsError
from symad.tracing.calling.user_place import FILES, is_library, user_frame, user_place


@dataclass(frozen=True)
class Decision:
    """A condition (a node without aliases), its outcome, the user's file and line, and SciPy's function there."""

    condition: int
    outcome: bool
    place: str
    library: str = ""


Decisions = tuple[Decision, ...]


def next_plan(taken: Sequence[Decision]) -> Decisions | None:
    """Return the decisions of the next path: the last one that holds is reversed."""
    kept = list(taken)
    while kept and not kept[-1].outcome:
        kept.pop()
    return (*kept[:-1], replace(kept[-1], outcome=False)) if kept else None


def in_words(decisions: Sequence[Decision]) -> str:
    """Return a path in words."""
    words = [f"the condition at {d.place} {'holds' if d.outcome else 'does not hold'}" for d in decisions[-3:]]
    return ("... " if len(decisions) > 3 else "") + " and ".join(words)


class UnsteadyError(TraceError):
    """A function decides differently when it is run again."""


def unsteady(name: str, planned: Decision, met: Decision) -> UnsteadyError:
    return UnsteadyError(
        f"{name} met another condition when it was run again",
        where=met.place,
        why=f"the run before decided the one at {planned.place} here, so the function depends on more than its inputs",
        do="remove random numbers and changes of state from it, or use np.where",
    )


def too_many(name: str, limit: int, taken: Sequence[Decision], deciding: Iterable[CodeType]) -> PathsError:
    """Return the error for more paths than the limit."""
    place, count = Counter(decision.place for decision in taken).most_common(1)[0]
    return PathsError(
        f"{name} has more than {limit} paths through its conditions",
        where=place,
        why=f"the condition there was decided {count} times on one path, about different values each time",
        do="for a loop: while_loop with max_steps, or fori_loop; for a choice: cond, np.where, np.maximum; "
        "or raise max_paths",
        deciding=deciding,
    )


_OF_STEPS = {  # what of a loop there is too much of, why, and what to do
    "paths through its conditions": (
        "a step of the loop there changes what cannot be merged: the length of a list, a text, or which object",
        "change numbers only, in variables, arrays, and lists and dicts that keep their length; or raise max_paths",
    ),
    "steps of loops with conditions inside": (
        "each step has paths of its own, which are followed and merged",
        "write the inner loop down: while_loop with max_steps, or fori_loop; or raise max_paths",
    ),
}


def too_many_of(what: str, name: str, limit: int, deciding: Iterable[CodeType]) -> PathsError:
    """Return the error for steps of a loop whose paths cannot be merged, or for more steps than the limit."""
    why, do = _OF_STEPS[what]
    return PathsError(f"{name} has more than {limit} {what}", where=user_place(), why=why, do=do, deciding=deciding)


def too_many_recursions(name: str, limit: int) -> LimitError:
    """Return the error for a function that calls itself without a known end."""
    return LimitError(
        f"{name} calls itself {limit} times",
        where=user_place(),
        why="how deep it goes depends on traced values, and all depths are followed",
        do="write it as a loop, symad.while_loop(cond, body, init, max_steps), or call it on numbers",
    )


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
        asking, around = user_frame(), loop_around(end)
        if around is None or asking is None:
            return 0, None
        frame, loop = around
        self._frames.append(frame)
        key = id(frame), loop, asking.f_code, asking.f_lasti
        self._counts[key] += 1
        return self._counts[key], loop


def loop_around(end: CodeType) -> tuple[FrameType, Loop] | None:
    """Return the innermost loop around the user's line, or a `while` around that, and its frame; see `Steps.count`."""
    frame = user_frame()
    around: tuple[FrameType, Loop] | None = None
    while frame is not None and frame.f_code is not end:
        loop = None if is_library(frame.f_code.co_filename) else _loop_at(frame.f_code, frame.f_lasti)
        if loop is not None and (around is None or loop.is_while):
            around = frame, loop
            if loop.is_while:
                break
        frame = frame.f_back
    return around


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
