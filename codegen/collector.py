"""Run Python's garbage collector less often while many lasting objects are made.

A build makes hundreds of thousands of rows that live until its end. By its own rules the collector would look through
them again and again: a quarter of the time of a large build.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

SELDOM = 5_000_000  # new objects between two collections; Python's own number is 700, or 2000


class _Threshold:
    """The interpreter's threshold, raised while at least one build is at work."""

    def __init__(self) -> None:
        self.lock, self.builds = Lock(), 0
        self.before: tuple[int, int, int] = (0, 0, 0)

    def raise_it(self) -> None:
        with self.lock:
            self.builds += 1
            if self.builds == 1:
                self.before = gc.get_threshold()
                if 0 < self.before[0] < SELDOM:
                    gc.set_threshold(SELDOM, *self.before[1:])

    def restore(self) -> None:
        """Restore what was there, unless somebody has set another one meanwhile."""
        with self.lock:
            if not self.builds:  # they began in the process that this one is a fork of
                return
            self.builds -= 1
            if not self.builds and gc.get_threshold() == (SELDOM, *self.before[1:]):
                gc.set_threshold(*self.before)

    def forget(self) -> None:
        """Restore it in a fork: builds of other threads do not end there."""
        self.lock = Lock()
        self.builds = min(self.builds, 1)
        self.restore()


_THRESHOLD = _Threshold()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_THRESHOLD.forget)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let the collector come less often in this block; it is never off, and one that the user has turned off stays so.

    >>> before = gc.get_threshold()
    >>> with fewer_collections():
    ...     during = gc.get_threshold()
    >>> during[0] >= before[0], gc.get_threshold() == before
    (True, True)
    """
    _THRESHOLD.raise_it()
    try:
        yield
    finally:
        _THRESHOLD.restore()


@contextmanager
def imports() -> Iterator[None]:
    """The same while modules are imported. What they made stays: the collector has it among its oldest objects at once.

    It would look through a quarter of a million young ones twice, which takes .08 s, before it counts them so. Where
    the user has frozen objects, or has no collector, nothing is moved.

    >>> frozen = gc.get_freeze_count()
    >>> with imports():
    ...     made = [[k] for k in range(10_000)]
    >>> gc.get_freeze_count() > frozen
    False
    """
    with fewer_collections():
        yield
        if gc.isenabled() and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # to the oldest generation
