"""Limits on time."""

from __future__ import annotations

import _weakrefset
import gc
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from symad.errors import ArgumentError, LimitError

LONGEST = 1e9  # seconds: 30 years, which every timer can hold
_FINALIZERS = frozenset({"__del__", "_on_collected"})  # the second name is that of all our callbacks
_WEAK_REFERENCES = frozenset({weakref.__file__, _weakrefset.__file__})
AGAIN = 0.1  # seconds until an error comes again that was lost, or would have been


@contextmanager
def time_limit(seconds: float, what: str, place: Callable[[], str] = str) -> Iterator[None]:
    """Raise LimitError in a block that takes longer than `seconds`; no limit off the main thread or off POSIX.

    `place` says where the work was when its time was over, as far as that is a place of the user's.
    Limits nest: a block inside another one ends at the earlier of the two ends.

    >>> with time_limit(5.0, "adding"):
    ...     1 + 1
    2
    """
    if not 0 < seconds < LONGEST:
        raise ArgumentError(f"{what} in {seconds:g} s", do=f"give a positive time of less than {LONGEST:g} s")
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    over, raised = False, list[LimitError]()

    def expired(number: int, frame: FrameType | None) -> None:
        if 0 < around < seconds and callable(before):
            before(number, frame)  # it is the limit around this one that has ended
        elif not (over or _is_lost_in(frame) or any(error in raised for error in _handled())):
            raised.append(
                LimitError(
                    f"{what} took longer than {seconds:g} s",
                    where=place(),
                    why="the function may loop for ever, or the problem is larger than the limit allows",
                    do="raise the limit with --max-seconds, or make the example smaller",
                )
            )
            raise raised[-1]

    around, before, start = signal.getitimer(signal.ITIMER_REAL)[0], signal.getsignal(signal.SIGALRM), time.monotonic()
    try:  # a short time is over before anything else is done
        signal.signal(signal.SIGALRM, expired)  # `around` is what is left of a limit around this one
        signal.setitimer(signal.ITIMER_REAL, around if 0 < around < seconds else seconds, AGAIN)
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if around:
            signal.setitimer(signal.ITIMER_REAL, max(around - (time.monotonic() - start), 1e-6), AGAIN)


def _is_lost_in(frame: FrameType | None) -> bool:
    """Whether Python would print an error that is raised here, and go on: in finalizers and callbacks of references."""
    called = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code in called or code.co_name in _FINALIZERS or code.co_filename in _WEAK_REFERENCES:
            return True
        frame = frame.f_back
    return False


def _handled() -> Iterator[BaseException]:
    """Yield the exceptions that are handled where this is called: while they go through `finally`, say."""
    error = sys.exception()
    while error is not None:
        yield error
        error = error.__context__
