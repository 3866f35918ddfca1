"""What a function imports when it is called: in a second run, the stand-ins of what it asks for.

`from scipy.integrate import quad` inside of a function makes a name that no namespace has. While such a run lasts, the
builtin that import statements call answers those in functions of the shadowed modules with a module of stand-ins.
Import statements of modules themselves, and of functions that keep what they import as global names, get the original
modules; so do other threads.
"""

from __future__ import annotations

import builtins
import dis
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from inspect import CO_OPTIMIZED
from threading import Lock
from types import CodeType
from typing import Any

from symad.tracing.calling.stand_ins import replacements
from symad.tracing.calling.user_place import FILES

_STORES = dis.opmap["STORE_GLOBAL"]
_shadowed: ContextVar[frozenset[int]] = ContextVar("symad_namespaces_that_import_stand_ins", default=frozenset())


class _Imports:
    """The builtin of import statements, in which several threads may have ours; the last one to leave restores it."""

    def __init__(self) -> None:
        self.lock, self.calls, self.former, self.ours = Lock(), 0, builtins.__import__, builtins.__import__

    def enter(self) -> None:
        with self.lock:
            if self.calls == 0:
                self.former = builtins.__import__
                self.ours = builtins.__import__ = _answering(self.former)
            self.calls += 1

    def leave(self) -> None:
        with self.lock:
            self.calls -= 1
            if self.calls == 0 and builtins.__import__ is self.ours:  # else somebody has put another one there since
                builtins.__import__ = self.former


_imports = _Imports()


@contextmanager
def imports_answered(namespaces: Sequence[Any]) -> Iterator[None]:
    """Answer the import statements in functions of some namespaces with modules of stand-ins."""
    token = _shadowed.set(frozenset(map(id, namespaces)))
    _imports.enter()
    try:
        yield
    finally:
        _imports.leave()
        _shadowed.reset(token)


def _answering(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def imported(
        name: str, globals: Any = None, locals: Any = None, fromlist: Sequence[str] | None = (), level: int = 0
    ) -> Any:
        module = original(name, globals, locals, fromlist, level)
        if id(globals) not in _shadowed.get() or not isinstance(globals, Mapping):
            return module
        if not _is_local(sys._getframe(1).f_code):
            return module
        known, form = replacements().get(id(module), (None, None))
        return module if known is not module else form

    return imported


@lru_cache(maxsize=FILES)
def _is_local(code: CodeType) -> bool:
    """Whether what code imports are names of a function, which end with its call."""
    return bool(code.co_flags & CO_OPTIMIZED) and _STORES not in code.co_code[::2]
