"""Errors that come from instructions which have no line, as those that clean up after `with` and `except`."""

from collections.abc import Callable
from typing import Any

import pytest

import symad as sa


def without_lines(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function none of whose instructions has a line."""
    f.__code__ = f.__code__.replace(co_linetable=b"")
    return f


@without_lines
def raises(x: Any) -> Any:
    raise KeyError("of the user's")


@without_lines
def asks(x: Any) -> Any:
    return x["a"]


@without_lines
def compiles(x: Any) -> Any:
    return sa.compile(lambda y: y, 1.0, unknown=True)


FIRST = {f: f.__code__.co_firstlineno for f in (raises, asks, compiles)}


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "numbers": sa.grad,
    "kernel": lambda f: lambda x: sa.compile(f, x),
    "jit": sa.jit,
}


def outcome(f: Callable[..., Any]) -> tuple[str, str]:
    """Return the kind of the error and its place; pytest cannot show a traceback without lines."""
    try:
        f(1.0)
    except Exception as error:
        return type(error).__name__, getattr(error, "where", "")
    return "no error", ""


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("f", FIRST)
def test_the_error_is_the_one_that_was_raised(f: Callable[..., Any], transform: str) -> None:
    """The cause of a failed run of judged answers: TypeError, since a line was None."""
    kind, place = outcome(TRANSFORMS[transform](f))
    assert kind == {raises: "KeyError", asks: "ScalarIndexError", compiles: "ArgumentError"}[f]
    assert place in ("", f"{__file__}:{FIRST[f]}")
