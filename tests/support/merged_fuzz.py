"""Random array programs with every call merged from the first attempt on, and every loop read by its steps.

`python -m tests.fuzz arrays-merged 1000`. A function is traced so only where it has too many paths, which few random
programs have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from symad.tracing.calling import attempts
from symad.tracing.calling.rewriting import Style
from tests.support import arrays_fuzz


class _All(frozenset[Any]):
    """A set that has everything."""

    def __contains__(self, key: object) -> bool:
        return True

    def __bool__(self) -> bool:
        return True

    def issuperset(self, other: object) -> bool:
        return True

    def __or__(self, other: object) -> _All:
        return self

    def __sub__(self, other: object) -> frozenset[Any]:
        return frozenset()


@contextmanager
def merging() -> Iterator[None]:
    """Merge the calls of all functions in this block."""
    first = replace(attempts._PLAIN, style=Style(operators=True), arrays=True, deciding=_All(), stepped=_All())
    token = attempts._active.set(first)
    try:
        yield
    finally:
        attempts._active.reset(token)


def check(text: str) -> str:
    """Compare values at odd points as `arrays-odd` does."""
    with merging():
        return arrays_fuzz.check_odd(text)
