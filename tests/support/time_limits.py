"""Limits of time for foreign code, which may catch every exception."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType


class TooLongError(BaseException):
    """The limit of seconds is over; an `except Exception` of foreign code does not catch this."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TooLongError when the block has taken that long; inside of another limit, that one holds."""

    over = False

    def stop(number: int, frame: FrameType | None) -> None:
        leaving = frame is not None and frame.f_code.co_filename == contextlib.__file__
        if not (over or leaving):  # signals come while the block is left, too
            raise TooLongError

    if is_limited():
        yield
        return
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.05)  # again: bare `except`s catch it; cleaning up takes time
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def is_limited() -> bool:
    """Whether a limit is running."""
    return signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
