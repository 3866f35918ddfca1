"""Facts about all code that a function may run, before it runs."""

from __future__ import annotations

from inspect import unwrap
from types import FunctionType
from typing import Any
from weakref import WeakSet

from codegen.records import dataclass
from symad.reach.code_facts import facts_of
from symad.reach.known_packages import is_library
from symad.reach.reachable_state import reached_functions

_OF_TYPES = frozenset({"type", "hasattr", "getattr"})
FUNCTIONS = 100  # that are looked at: what is not known of more is taken for so


@dataclass(frozen=True)
class ReachedCode:
    """Whether code that a function reaches may catch an error, ask for types, or is seen to ask what `is True`."""

    handles: bool
    asks_for_types: bool
    asks_for_identity: bool = False


_BOTH = ReachedCode(handles=True, asks_for_types=True)
_handling: WeakSet[FunctionType] = WeakSet()  # that reach code which handles and asks: more work, never wrong


def reached_code(f: Any) -> ReachedCode:
    """Return what is known of the code that a function reaches.

    Nothing tells when `type` or `hasattr` is given a traced value, so stand-ins answer from the beginning. Where the
    walk does not come to an end, both are taken for so.

    >>> reached_code(lambda x: 2 * x)
    ReachedCode(handles=False, asks_for_types=False, asks_for_identity=False)
    """
    inner: Any = unwrap(f)
    inner = getattr(inner, "__func__", inner)
    is_users = type(inner) is FunctionType and not is_library(inner.__code__.co_filename)
    if is_users and inner in _handling:
        return _BOTH
    functions, complete = reached_functions(f, _Enough())
    facts = [facts_of(function.__code__) for function in functions]
    identity = any(part.asks_for_identity for part in facts)
    found = ReachedCode(
        not complete or any(part.handles for part in facts),
        not all(_OF_TYPES.isdisjoint(part.names) for part in facts),
        identity,
    )
    if identity or (len(functions) < FUNCTIONS and found != _BOTH):
        return found
    if is_users:
        _handling.add(inner)
    return _BOTH


class _Enough:
    """Whether a walk has met enough functions to answer."""

    def __init__(self) -> None:
        self._count = 0
        self._last: FunctionType | None = None

    def __call__(self, function: FunctionType) -> bool:
        if function is not self._last:
            self._count, self._last = self._count + 1, function
        return self._count >= FUNCTIONS
