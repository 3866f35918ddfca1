"""The current run of a user's function in this thread, and the forms of the functions that it calls."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextvars import ContextVar
from types import CodeType, FunctionType
from typing import Any

Key = tuple[str, str, int]


def key_of(code: CodeType) -> Key:
    """Return a key that code shares with its rewritten form, and with no other code of its file."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def copied(f: FunctionType, code: CodeType, names: dict[str, Any], closure: Any) -> FunctionType:
    """Return a function like f with other code, names or variables."""
    twin = FunctionType(code, names, f.__name__, f.__defaults__, closure)
    twin.__kwdefaults__, twin.__qualname__, twin.__doc__ = f.__kwdefaults__, f.__qualname__, f.__doc__
    twin.__module__ = f.__module__
    vars(twin).update(vars(f))
    return twin


running: ContextVar[Any] = ContextVar("symad_running_dispatcher", default=None)  # `dispatch.DispatchedRun`


def callee(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that is called in place of f in this run: f itself if no code is rewritten.

    >>> callee(len) is len
    True
    """
    dispatcher = running.get()
    form: Callable[..., Any] = f if dispatcher is None else dispatcher.callee(f)
    return form


def _replacing(kind: str) -> Callable[[Any], Any]:
    """Return a function that returns the replacement of an operand in this run."""

    def replacement(operand: Any) -> Any:
        dispatcher = running.get()
        return operand if dispatcher is None else getattr(dispatcher, kind)(operand)

    return replacement


value, item, place = map(_replacing, ("value", "item", "place"))  # of an operand; if it is indexed; if an item is set


def result(operator_name: str, left: Any, right: Any) -> Any:
    """Return the result of an operator on two operands in this run.

    >>> result("sub", 3.0, 1.0)
    2.0
    """
    dispatcher = running.get()
    if dispatcher is None:
        return getattr(operator, operator_name)(left, right)
    return dispatcher.result(operator_name, left, right)
