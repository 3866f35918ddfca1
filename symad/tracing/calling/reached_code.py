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

_OF_COLUMNS = frozenset(
    {"select_dtypes", "numeric_only", "describe", "dtypes"}
)  # of numbers, where pandas makes objects
_OF_TYPES = _OF_COLUMNS | {"type", "hasattr", "getattr"}
FUNCTIONS = 100  # more than these count as code that handles and asks


@dataclass(frozen=True)
class ReachedCode:
    """Whether code that a function reaches may catch an error, ask for types, or certainly asks what `is True`.

    And whether it picks the columns of a DataFrame by their types.
    """

    handles: bool
    asks_for_types: bool
    asks_for_identity: bool = False
    picks_columns: bool = False


_BOTH = ReachedCode(handles=True, asks_for_types=True)
_handling: WeakSet[FunctionType] = WeakSet()  # which reach code that handles and asks: remembered, at worst too long


def reached_code(f: Any) -> ReachedCode:
    """Return what is known of the code that a function reaches.

    Calls of `type` or `hasattr` on traced values cannot be seen, so stand-ins answer from the beginning. If the walk is
    not complete, the code counts as handling and asking.

    >>> reached_code(lambda x: 2 * x)
    ReachedCode(handles=False, asks_for_types=False, asks_for_identity=False, picks_columns=False)
    """
    inner: Any = unwrap(f)
    inner = getattr(inner, "__func__", inner)
    is_users = type(inner) is FunctionType and not is_library(inner.__code__.co_filename)
    if is_users and inner in _handling:
        return _BOTH
    functions, complete = reached_functions(f, _Enough())
    facts = [facts_of(function.__code__) for function in functions]
    identity = any(part.asks_for_identity for part in facts)
    reached = ReachedCode(
        not complete or any(part.handles for part in facts),
        not all(_OF_TYPES.isdisjoint(part.names) for part in facts),
        identity,
        any(not _OF_COLUMNS.isdisjoint(part.names) for part in facts),
    )
    if identity or reached.picks_columns or (len(functions) < FUNCTIONS and reached != _BOTH):
        return reached
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
