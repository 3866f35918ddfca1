"""The conditions decided on a path, the next path to follow, and both in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import CodeType

from codegen.records import dataclass
from symad.errors import LimitError, TraceError
from symad.tracing.calling.merged_calls import PathsError
from symad.tracing.calling.user_place import user_place


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


def too_many_unlike(name: str, limit: int, deciding: Iterable[CodeType]) -> PathsError:
    """Return the error for steps of a loop whose paths cannot be merged."""
    return PathsError(
        f"{name} has more than {limit} paths through its conditions",
        where=user_place(),
        why="a step of the loop there changes what cannot be merged: the length of a list, a text, or which object",
        do="change numbers only, in variables, arrays, and lists and dicts that keep their length; or raise max_paths",
        deciding=deciding,
    )


def too_many_recursions(name: str, limit: int) -> LimitError:
    """Return the error for a function that calls itself without a known end."""
    return LimitError(
        f"{name} calls itself {limit} times",
        where=user_place(),
        why="how deep it goes depends on traced values, and all depths are followed",
        do="write it as a loop, symad.while_loop(cond, body, init, max_steps), or call it on numbers",
    )


def too_many_steps(name: str, limit: int, deciding: Iterable[CodeType]) -> PathsError:
    """Return the error for more steps of loops with conditions inside than the limit."""
    return PathsError(
        f"{name} has more than {limit} steps of loops with conditions inside",
        where=user_place(),
        why="each step has paths of its own, which are followed and merged",
        do="write the inner loop down: while_loop with max_steps, or fori_loop; or raise max_paths",
        deciding=deciding,
    )
