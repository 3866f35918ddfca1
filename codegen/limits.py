"""Limits on runaway work: so many operations, so many seconds, checked wherever a table grows and between stages.

A check is one comparison for each 4096 rows, so that it costs nothing; within a stage that LLVM runs, it can only come
between two modules (see `codegen.emission.straight`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from numbers import Real

import sympy as sp
from sympy.logic.boolalg import BooleanAtom

from codegen.errors import ArgumentError, LimitError
from codegen.heads import Alias

LEAVES = (sp.Atom, BooleanAtom, Alias)
EVERY = 4096  # rows between two checks


@dataclass(frozen=True, slots=True)
class Limits:
    """How many operations a table may have, and when the time is over (`time.monotonic`)."""

    operations: float
    deadline: float
    seconds: float


_limits: ContextVar[Limits | None] = ContextVar("codegen_limits", default=None)


@contextmanager
def limits(max_ops: int | None = None, max_seconds: float | None = None) -> Iterator[None]:
    """Raise LimitError in this block when a table of operations grows beyond `max_ops`, or after `max_seconds`.

    ArgumentError for a limit that is not positive.

    >>> with limits(max_seconds=100.0):
    ...     check("adding")
    """
    for name, value in (("max_ops", max_ops), ("max_seconds", max_seconds)):
        if value is not None and not (isinstance(value, Real) and value > 0):
            raise ArgumentError(f"{name}={value!r}", do="give a positive number, or None for no limit")
    if max_ops is None and max_seconds is None:
        yield
        return
    seconds = float("inf") if max_seconds is None else float(max_seconds)
    given = Limits(float("inf") if max_ops is None else max_ops, time.monotonic() + seconds, seconds)
    token = _limits.set(given)
    try:
        yield
    finally:
        _limits.reset(token)


def check(doing: str, heads: Sequence[type] = ()) -> None:
    """Raise LimitError when a limit is reached; `heads` are those of the rows so far, leaves included."""
    given = _limits.get()
    if given is None:
        return
    if len(heads) > given.operations:
        operations = Counter(head for head in heads if not issubclass(head, LEAVES))
        if operations.total() > given.operations:
            raise LimitError(
                f"{doing}: more than {given.operations:,} operations",
                why=f"max_ops is {given.operations:,}; so far: {_most_frequent(operations)}",
                do="raise max_ops, or make the problem smaller",
            )
    if time.monotonic() > given.deadline:
        operations = Counter(head for head in heads if not issubclass(head, LEAVES))
        so_far = f"; operations so far: {_most_frequent(operations)}" if operations else ""
        raise LimitError(
            f"{doing}: more than {given.seconds:g} s since the start",
            why=f"max_seconds is {given.seconds:g}{so_far}",
            do="raise max_seconds, or make the problem smaller",
        )


def _most_frequent(operations: Counter[type]) -> str:
    return ", ".join(f"{count:,} {head.__name__}" for head, count in operations.most_common(4))
