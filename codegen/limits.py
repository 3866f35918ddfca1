"""Limits on operations, seconds, and the bytes of one array.

Operations and seconds are checked wherever a table grows and between stages, bytes before they are asked for.

A check is one comparison for each 4096 rows, so that it costs nothing; within a stage that LLVM runs, it can only come
between two modules (see `codegen.emission.straight`).
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from numbers import Real
from typing import NamedTuple

from codegen.bound import bound
from codegen.errors import ArgumentError, LimitError, MemoryLimitError

_LEAVES = {"Atom", "BooleanAtom", "Alias"}  # classes of SymPy and of ours, by name: whoever has no program has no SymPy
EVERY = 4096  # rows between two checks


class Limits(NamedTuple):
    """How many operations a table may have, when the time is over (`time.monotonic`), how many bytes an array has."""

    operations: float
    deadline: float
    seconds: float
    bytes: float


_limits: ContextVar[Limits | None] = ContextVar("codegen_limits", default=None)


@contextmanager
def limits(
    max_ops: int | None = None, max_seconds: float | None = None, max_bytes: float | None = None
) -> Iterator[None]:
    """Raise LimitError in this block when a table of operations grows beyond `max_ops`, or after `max_seconds`.

    It is also raised for an array, a table, a result or a kernel's workspace of more than `max_bytes`, before the
    memory is asked for. ArgumentError for a limit that is not positive.

    >>> with limits(max_seconds=100.0):
    ...     check("adding")
    """
    for name, value in (("max_ops", max_ops), ("max_seconds", max_seconds), ("max_bytes", max_bytes)):
        if value is not None and (isinstance(value, bool) or not (isinstance(value, Real) and value > 0)):
            raise ArgumentError(f"{name}={value!r}", do="give a positive number, or None for no limit")
    if max_ops is None and max_seconds is None and max_bytes is None:
        yield
        return
    seconds = float("inf") if max_seconds is None else float(max_seconds)
    operations, size = (float("inf") if limit is None else limit for limit in (max_ops, max_bytes))
    given = Limits(operations, time.monotonic() + seconds, seconds, size)
    with bound(_limits, given):
        yield


def check(doing: str, heads: Sequence[type] = ()) -> None:
    """Raise LimitError when a limit is reached; `heads` are those of the rows so far, leaves included."""
    given = _limits.get()
    if given is None:
        return
    if len(heads) > given.operations:
        operations = _operations(heads)
        if operations.total() > given.operations:
            raise LimitError(
                f"{doing}: more than {given.operations:,} operations",
                why=f"max_ops is {given.operations:,}; so far: {_most_frequent(operations)}",
                do="raise max_ops, or make the problem smaller",
            )
    if time.monotonic() > given.deadline:
        operations = _operations(heads)
        so_far = f"; operations so far: {_most_frequent(operations)}" if operations else ""
        raise LimitError(
            f"{doing}: more than {given.seconds:g} s since the start",
            why=f"max_seconds is {given.seconds:g}{so_far}",
            do="raise max_seconds, or make the problem smaller",
        )


def _operations(heads: Sequence[type]) -> Counter[type]:
    counts = Counter(heads.values() if isinstance(heads, dict) else heads)  # without elements of arrays
    return Counter(
        {head: n for head, n in counts.items() if _LEAVES.isdisjoint(base.__name__ for base in head.__mro__)}
    )


def are_given() -> bool:
    """Whether there are limits here."""
    return _limits.get() is not None


def bytes_are_limited() -> bool:
    """Whether a limit says how many bytes an array may have."""
    given = _limits.get()
    return given is not None and given.bytes < float("inf")


def check_bytes(what: str, size: float, *, where: str = "", do: str = "", at_most: float = float("inf")) -> None:
    """Raise MemoryLimitError for something of so many bytes, beyond `max_bytes` or else beyond `at_most`.

    >>> with limits(max_bytes=100):
    ...     check_bytes("a table", 100)
    """
    given = _limits.get()
    limit, name, less = at_most, "this machine has", "make the problem smaller"
    if given is not None and given.bytes < float("inf"):
        limit, name, less = given.bytes, "max_bytes is", "raise max_bytes, or make the problem smaller"
    if size > limit:
        raise MemoryLimitError(
            f"{what}, {size:,.0f} bytes ({_readable(size)})",
            where=where,
            why=f"{name} {limit:,.0f}",
            do=do or less,
        )


def _readable(size: float) -> str:
    """A number of bytes in the unit that suits it."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    power = min(int(math.log2(max(size, 1)) // 10), len(units) - 1)
    return f"{size / 2.0 ** (10 * power):.3g} {units[power]}"


@cache
def machine_memory() -> float:
    """Return how many bytes of memory this machine has, infinity where that is not known.

    >>> machine_memory() > 2**20
    True
    """
    try:
        return float(os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return float("inf")


def _most_frequent(operations: Counter[type]) -> str:
    return ", ".join(f"{count:,} {head.__name__}" for head, count in operations.most_common(4))
