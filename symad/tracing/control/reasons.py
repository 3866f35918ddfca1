"""The reasons why the body of a loop cannot be traced once, for the report on loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from symad.errors import WorkbenchError
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.user_place import raised_place, user_place
from symad.tracing.values.traced import NumberError


class NotOneBodyError(Exception):
    """A body cannot be traced once for all repetitions: the loop is unrolled.

    It has a message if the reason concerns the user.
    """


@contextmanager
def written_if_possible() -> Iterator[None]:
    """Leave the block if a body cannot be traced once, and note the reason for the report on loops."""
    try:
        yield
    except NotOneBodyError as error:
        scope = innermost_scope()
        if scope is not None and scope.loops is not None and error.args:
            scope.carried_out[user_place()] = str(error)


def reason(changed: str, failure: Exception | None) -> tuple[str, ...]:
    """Return why a body cannot be traced once, if that is known."""
    if isinstance(failure, NotOneBodyError):
        return failure.args
    if isinstance(failure, NumberError):
        text = failure.what.replace("a traced value", "a value that is another one in every repetition")
        return (f"{text} ({short(failure.where)})",)
    if isinstance(failure, WorkbenchError):
        return (f"{failure.what} ({short(failure.where)})" if failure.where else failure.what,)
    if failure is not None:
        return (f"{type(failure).__name__}: {failure} ({short(raised_place(failure))})",)
    return (f"its body changes {changed}, and it has to do so in every repetition",)


def short(place: str) -> str:
    return place.rpartition("/")[2]
