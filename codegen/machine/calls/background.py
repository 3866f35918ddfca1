"""Compile better code for a working kernel in the background."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from codegen.later import Deferred

if TYPE_CHECKING:
    from concurrent import futures
else:  # for tier "auto"
    futures = Deferred("concurrent.futures")

T = TypeVar("T")


@cache
def _worker() -> futures.ThreadPoolExecutor:
    """One thread for the process: compilation is serialised by a lock anyway."""
    return futures.ThreadPoolExecutor(1, "symad-compile")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_worker.cache_clear)  # threads do not survive a fork


class Promise:
    """Work in the background; a fork of the process that began it does not continue it."""

    __slots__ = ("_future", "_process")

    def __init__(self, future: futures.Future[None]) -> None:
        self._future, self._process = future, os.getpid()

    def result(self, seconds: float | None = None) -> None:
        """Wait until the work is done; TimeoutError when the time is over, in a fork at once."""
        if os.getpid() != self._process and not self._future.done():
            raise TimeoutError
        self._future.result(seconds)


def later(owner: T, make: Callable[[], Callable[[T], None]]) -> Promise:
    """Run `make()` in the background and what it returns on the owner, unless the owner or the program is gone by then.

    >>> class Box:
    ...     value = 1
    >>> box = Box()
    >>> later(box, lambda: lambda box: setattr(box, "value", 2)).result()
    >>> box.value
    2
    """
    reference = weakref.ref(owner)

    def task() -> None:
        if reference() is None or not threading.main_thread().is_alive():
            return
        finish = make()
        alive = reference()
        if alive is not None:
            finish(alive)

    return Promise(_worker().submit(task))
