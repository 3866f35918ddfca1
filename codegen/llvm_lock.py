"""One lock for all calls of LLVM beside llvmlite's own. It survives forks and interrupts."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any

LOCK = threading.RLock()
_HELD: list[AbstractContextManager[Any]] = []  # while the process forks


def _calls() -> Any:
    """Return the lock that llvmlite holds in every call, also where it frees things; None before it is loaded."""
    loaded = sys.modules.get("llvmlite.binding.ffi")
    return getattr(getattr(loaded, "lib", None), "_lock", None)


def release_calls() -> None:
    """Release what an interrupt has left held: llvmlite's lock is taken by Python code, in which one may come.

    Nobody else could call LLVM any more. No call is running: this thread is back from all of its own.
    """
    lock = getattr(_calls(), "_lock", None)
    while lock is not None and lock._is_owned():
        lock.release()


def _hold() -> None:
    LOCK.acquire()
    calls = _calls() or nullcontext()
    calls.__enter__()
    _HELD.append(calls)


def _let_go() -> None:
    _HELD.pop().__exit__(None, None, None)
    LOCK.release()


if hasattr(os, "register_at_fork"):  # a child must not be born while another thread compiles
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
