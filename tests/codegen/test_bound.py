"""A block that was left suspended, as interrupts leave it, is closed in another context, which keeps its values."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context

import pytest

from codegen.bound import bound

VARIABLE: ContextVar[int] = ContextVar("variable", default=0)


@contextmanager
def block() -> Iterator[None]:
    with bound(VARIABLE, 1):
        yield


def test_a_value_holds_in_its_block_only() -> None:
    with bound(VARIABLE, 1):
        with pytest.raises(ZeroDivisionError), bound(VARIABLE, 2):
            VARIABLE.set(1 // 0)
        assert VARIABLE.get() == 1
    assert VARIABLE.get() == 0


def test_a_suspended_block_that_is_closed_elsewhere_changes_nothing_there() -> None:
    suspended, other = block(), copy_context()
    other.run(suspended.__enter__)
    with bound(VARIABLE, 3):
        suspended.gen.close()  # type: ignore[attr-defined]  # what the garbage collector does
        assert VARIABLE.get() == 3
    assert VARIABLE.get() == 0
