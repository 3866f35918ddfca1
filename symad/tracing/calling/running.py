"""The current run of a user's function in this thread, and the forms of the functions that it calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextvars import ContextVar
from types import CodeType
from typing import Any, Protocol

Key = tuple[str, str, int]


def key_of(code: CodeType) -> Key:
    """Return what code and its rewritten form have in common, and no other code of its file."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


class Dispatcher(Protocol):
    """What answers rewritten code (see `dispatch`)."""

    def callee(self, f: Any) -> Any:
        """Return what is called in place of f."""

    def value(self, value: Any) -> Any:
        """Return what stands for an operand."""

    def item(self, value: Any) -> Any:
        """Return what stands for an object that is asked for an item."""

    def place(self, value: Any) -> Any:
        """Return what stands for an object an item of which is set."""

    def result(self, operator_name: str, left: Any, right: Any) -> Any:
        """Return what an operator makes of two operands."""


running: ContextVar[Dispatcher | None] = ContextVar("symad_running_dispatcher", default=None)


def callee(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of f in this run: f itself where no code is rewritten.

    >>> callee(len) is len
    True
    """
    dispatcher = running.get()
    found: Callable[..., Any] = f if dispatcher is None else dispatcher.callee(f)
    return found


def value(operand: Any) -> Any:
    """Return what stands for an operand in this run."""
    dispatcher = running.get()
    return operand if dispatcher is None else dispatcher.value(operand)


def item(operand: Any) -> Any:
    """Return what stands for an object that is asked for an item in this run."""
    dispatcher = running.get()
    return operand if dispatcher is None else dispatcher.item(operand)


def place(operand: Any) -> Any:
    """Return what stands for an object an item of which is set in this run."""
    dispatcher = running.get()
    return operand if dispatcher is None else dispatcher.place(operand)


def result(operator_name: str, left: Any, right: Any) -> Any:
    """Return what an operator makes of two operands in this run.

    >>> result("sub", 3.0, 1.0)
    2.0
    """
    dispatcher = running.get()
    if dispatcher is None:
        return getattr(operator, operator_name)(left, right)
    return dispatcher.result(operator_name, left, right)
