"""Give a context variable a value in a block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class bound(Generic[T]):
    """Give a context variable a value in this block.

    A generator that an interrupt has left suspended in such a block is closed by the garbage collector, in whichever
    context runs then. Another context's value stays as it is.

    >>> variable = ContextVar("variable", default=0)
    >>> with bound(variable, 1):
    ...     variable.get()
    1
    >>> variable.get()
    0
    """

    def __init__(self, variable: ContextVar[T], value: T) -> None:
        self._variable, self._value = variable, value
        self._token: Token[T] | None = None

    def __enter__(self) -> None:
        self._token = self._variable.set(self._value)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._token is None:
            return
        try:
            self._variable.reset(self._token)
        except ValueError:  # the token is of another context
            return
