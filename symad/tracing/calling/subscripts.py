"""Remember which container the user's code is indexing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from codegen.bound import bound
from symad.tracing.values.traced import Traced

_LOOKUPS = frozenset({"get", "pop", "setdefault"})  # of dicts
_CONTAINERS = (list, tuple, range, str, np.ndarray, Mapping)
_asked: ContextVar[Any] = ContextVar("symad_container_asked", default=None)


def subscripted() -> Any:
    """Return the sequence or mapping of `container[...]` or `container.get(...)`, None if unknown."""
    return _asked.get()


class Subscripted:
    """A container that notes that it is asked for an element at a traced place, or by a traced key."""

    def __init__(self, container: Any) -> None:
        self._container = container

    def __getitem__(self, key: Any) -> Any:
        return _looked_up(self._container, lambda at: self._container[at], key)  # NumPy's arrays see an index here


def subscripted_form(container: Any) -> Any:
    """Return the replacement of a container that is indexed; other values unchanged.

    >>> subscripted_form([1, 2])[0], subscripted_form(3)
    (1, 3)
    """
    return Subscripted(container) if isinstance(container, _CONTAINERS) else container


def lookup_form(method: Any) -> Any:
    """Return the replacement of a method of a mapping that looks a key up; other methods unchanged."""
    container = method.__self__
    if method.__name__ not in _LOOKUPS or not isinstance(container, Mapping):
        return method
    return lambda *args, **keywords: _looked_up(container, lambda _: method(*args, **keywords), *args[:1])


def _looked_up(container: Any, look_up: Callable[[Any], Any], key: Any = None) -> Any:
    if not isinstance(key, Traced):
        return look_up(key)
    with bound(_asked, container):
        return look_up(key)


def places_of(container: Sequence[Any] | Mapping[Any, Any]) -> list[int]:
    """Return the whole numbers that are places in a sequence, from either end, or keys of a mapping.

    >>> places_of("abc"), places_of({1: "one", 2.0: "two", "three": 3})
    ([0, 1, 2, -1, -2, -3], [1, 2])
    """
    if isinstance(container, Mapping):
        numbers = [key for key in container if isinstance(key, int | float) and key == key // 1]
        return [int(number) for number in numbers]
    count = 0 if isinstance(container, np.ndarray) and not container.ndim else len(container)
    return [*range(count), *range(-1, -count - 1, -1)]
