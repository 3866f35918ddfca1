"""Names of functions and arguments, for messages and input symbols."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import sympy as sp

from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal


def name_of(f: Callable[..., Any]) -> str:
    """Return a name to show for a function."""
    return getattr(f, "__name__", type(f).__name__)


def argument_names(f: Callable[..., Any] | None, count: int) -> list[str]:
    """Return names for positional arguments: those of the signature, then numbered ones.

    >>> argument_names(lambda x, y: x, 3)
    ['x', 'y', 'argument_2']
    """
    names = _positional_names(f)[:count]
    if isinstance(f, sp.Lambda):  # its signature in Python is *args
        names = [part.name if part.is_symbol else f"argument_{k}" for k, part in enumerate(f.signature)][:count]
    return names + [f"argument_{k}" for k in range(len(names), count)]


def _positional_names(f: Callable[..., Any] | None) -> list[str]:
    if type(f) is FunctionType and f.__dict__.keys().isdisjoint(("__wrapped__", "__signature__")):
        code = f.__code__  # a signature takes a quarter of a gradient's time
        return list(code.co_varnames[: code.co_argcount])
    try:
        parameters = [] if f is None else list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in parameters if parameter.kind in kinds]


def check_function(f: object, names: Sequence[str] | None = None) -> None:
    """Raise ArgumentError for what cannot be called: often the result of a function in place of the function.

    With the names of its arguments, also for a function that does not take that many.
    """
    if isinstance(f, sp.Basic) and not callable(f):
        raise ArgumentError(
            f"the expression {f} in place of a function",
            why="it does not say which symbols are its arguments",
            do="make a function of it: sa.from_sympy([x], expression)",
        )
    if not callable(f):
        raise ArgumentError(
            f"a value of type {type(f).__name__} in place of a function",
            why="a transform takes a function and returns one",
            do="give the function itself, and the arguments in the call after it: grad(f)(x)",
        )
    if names is not None and (misfit := _misfit(f, names)):
        raise refusal(
            f"{name_of(f)} does not take the arguments ({', '.join(names)})",
            why=misfit,
            do="give a function that does, and a value for each of its arguments",
        )


def _misfit(f: Callable[..., Any], args: Sequence[Any]) -> str:
    """Return why a function cannot be called with these arguments, "" if it can or its signature is not known."""
    try:
        inspect.signature(f).bind(*args)
    except ValueError:  # a builtin does not always have one
        return ""
    except TypeError as error:
        return str(error)
    return ""


def check_call(f: object, examples: tuple[Any, ...]) -> None:
    """Raise ArgumentError unless a function takes that many positional arguments."""
    check_function(f)
    if misfit := _misfit(f, examples):  # type: ignore[arg-type]
        raise ArgumentError(
            f"{name_of(f)} with {len(examples)} example arguments ({misfit})",  # type: ignore[arg-type]
            do="give one example for each argument, of its structure and shape, such as np.zeros(3), 1.0",
        )


def positional(
    f: Callable[..., Any],
    args: tuple[Any, ...],
    keywords: dict[str, Any],
    why: str = "its derivative rule knows arguments by their positions",
) -> tuple[Any, ...]:
    """Return the arguments of a call by position; ArgumentError for those that have none.

    >>> positional(lambda x, y: x, (1,), {"y": 2})
    (1, 2)
    """
    try:
        bound = inspect.signature(f).bind(*args, **keywords)
    except TypeError as error:
        raise refusal(f"a call of {name_of(f)}", why=str(error)) from None
    if bound.kwargs:
        raise ArgumentError(
            f"keyword {next(iter(bound.kwargs))!r} of {name_of(f)}",
            why=why,
            do="make it an argument that can be given by position",
        )
    return bound.args
