"""Keys of values that are equal only if types, order and signs of zeros agree."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import numpy as np

_ATOMS = (int, bool, str, bytes, type(None))
_NUMBERS = (float, complex)  # whose text tells zeros apart, and is one for NaN
_BY_IDENTITY = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType)
MOST = 10_000  # parts that are compared


class StrictKey:
    """A value as a key.

    >>> StrictKey(2) == StrictKey(2.0), StrictKey((1, "a")) == StrictKey((1, "a")), StrictKey(0.0) == StrictKey(-0.0)
    (False, True, False)
    """

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value: Any = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StrictKey) and same(self.value, other.value)

    def __hash__(self) -> int:
        return hash(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


def same(first: Any, second: Any) -> bool:
    """Whether two values agree in every part; False for values whose parts are unknown, unless they are one object.

    >>> same([1, {"a": np.zeros(2)}], [1, {"a": np.zeros(2)}]), same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    (True, False)
    """
    pairs = [(first, second)]
    for a, b in pairs:  # which grows
        if a is b:
            continue
        if type(a) is not type(b) or len(pairs) > MOST:
            return False
        if type(a) in _ATOMS:
            if a != b:
                return False
        elif type(a) in _NUMBERS:
            if repr(a) != repr(b):
                return False
        elif type(a) is np.ndarray and not a.dtype.hasobject:
            if a.shape != b.shape or a.dtype != b.dtype or not same_bytes(a, b):
                return False
        else:
            parts, others = _parts(a), _parts(b)
            if parts is None or others is None or len(parts) != len(others):
                return False
            pairs += zip(parts, others, strict=True)
    return True


COPIED = 4096  # bytes of arrays that are compared as copies: larger ones are compared in place, which is quicker


def same_bytes(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    """Whether two arrays of one shape and type hold the same bytes."""
    if first.dtype.hasobject or first.nbytes <= COPIED:
        return first.tobytes() == second.tobytes()
    if not first.size:
        return True
    kind = np.uint64 if first.nbytes % 8 == 0 else np.uint8
    words, others = (np.ascontiguousarray(array).reshape(-1).view(np.uint8).view(kind) for array in (first, second))
    return np.array_equal(words, others)


def _parts(value: Any) -> list[Any] | None:
    """Return the parts of a value, None if they are not known."""
    if isinstance(value, _BY_IDENTITY):
        return None
    if type(value) in (tuple, list):
        return list(value)
    if type(value) is dict:
        return [part for pair in value.items() for part in pair]
    if type(value) in (set, frozenset):
        return sorted(((type(part).__name__, repr(part)) for part in value), key=str)
    try:
        reduced = value.__reduce_ex__(4)
    except Exception:  # it cannot be pickled, for whatever reason of its own
        return None
    if isinstance(reduced, str):
        return None
    return [list(part) if isinstance(part, Iterator) else part for part in reduced]
