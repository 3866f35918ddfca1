"""Limits of processor time for foreign code, which may catch every exception."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

ASLEEP = 10  # times as long by the clock: for what waits and does nothing


class TooLongError(BaseException):
    """The limit of processor time is over; an `except Exception` of foreign code does not catch this."""


@contextlib.contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raise TooLongError when the block has taken so much processor time; inside of another limit, that one holds."""

    over = False

    def stop(number: int, frame: FrameType | None) -> None:
        leaving = frame is not None and frame.f_code.co_filename == contextlib.__file__
        if not (over or leaving):  # signals come while the block is left, too
            raise TooLongError

    if is_limited():
        yield
        return
    for kind in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(kind, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 0.05)  # again: bare `except`s catch it; cleaning up takes time
    signal.setitimer(signal.ITIMER_REAL, ASLEEP * seconds, 0.05)
    try:
        yield
    finally:
        over = True
        for timer, kind in ((signal.ITIMER_PROF, signal.SIGPROF), (signal.ITIMER_REAL, signal.SIGALRM)):
            signal.setitimer(timer, 0)
            signal.signal(kind, signal.SIG_DFL)


def is_limited() -> bool:
    """Whether a limit is running."""
    return signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL
