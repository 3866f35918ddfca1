"""State that was read from objects: compare it with now, and put it back.

A part has a function that reads the state of one object as a flat sequence of its contents. Two states are the same if
they hold the same objects, or equal numbers, texts and arrays in their place. No user code is called.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from symad.reach.strict_key import same_bytes

PutBack = Callable[[Any], Any]
Space = dict[str, Any]

NUMBERS = frozenset({int, float, bool, str, bytes, complex, type(None), np.float64, np.int64})
SCALARS = frozenset(
    kind for kind in np.sctypeDict.values() if issubclass(kind, np.generic) and kind not in (np.void, np.object_)
)
_NUMBERS, _SCALARS = ({id(kind) for kind in kinds} for kinds in (NUMBERS, SCALARS))  # a class may have its own hash


class StatePart(NamedTuple):
    """The state of an object: reader, value before, how to put it back, description, and global name (or "")."""

    now: Callable[[], Sequence[Any]]
    before: Sequence[Any]
    put_back: PutBack | None
    what: str
    name: str
    owner: Any = None

    @property
    def is_same(self) -> bool:
        """Whether the state is unchanged."""
        try:
            return same_parts(self.now(), self.before)
        except (KeyError, ValueError, AttributeError, RuntimeError):  # the object has lost what was read
            return False


class ComparedState:
    """Parts of state. Names, variables and functions, which are compared most often, have quick forms of their own."""

    def __init__(self) -> None:
        self.parts: list[StatePart] = []
        self.arrays: list[tuple[StatePart, NDArray[Any], tuple[Any, ...], Any]] = []
        self.cells: list[tuple[types.CellType, Any, str]] = []
        self.unbound: list[tuple[types.CellType, str]] = []  # variables without a value
        self.functions: list[tuple[types.FunctionType, types.CodeType, Any, Any, Space, str]] = []
        self.empty: list[Space] = []  # dicts of functions that have no attributes
        self._names: list[tuple[Space, str, Any]] = []
        self._words: dict[tuple[int, str], str] = {}  # names in messages, by namespace and name
        self.absent: dict[int, tuple[Space, set[str]]] = {}
        self.bytes = 0  # that are compared

    def read(self, space: Space, key: str, value: Any, name: str) -> None:
        """Note the value of a name in a namespace."""
        if (id(space), key) not in self._words:
            self._words[id(space), key] = name
            self._names.append((space, key, value))

    def unchanged(self) -> bool:
        """Whether all state is unchanged: first by identity, and only if that fails by value."""
        return self._is_identical() or next(self.different(), None) is None

    def _is_identical(self) -> bool:
        try:
            for space, name, value in self._names:
                if space[name] is not value:
                    return False
            for cell, value, _ in self.cells:
                if cell.cell_contents is not value:
                    return False
            for f, code, defaults, keywords, attributes, _ in self.functions:
                if f.__code__ is not code or f.__defaults__ is not defaults:
                    return False
                if f.__kwdefaults__ is not keywords or f.__dict__ is not attributes:
                    return False
            for part in self.parts:
                now, before = part.now(), part.before
                if len(now) != len(before) or not all(map(is_, now, before)):
                    return False
        except (KeyError, ValueError, AttributeError, RuntimeError):  # it is gone, or being changed
            return False
        for attributes in self.empty:
            if attributes:
                return False
        for space, names in self.absent.values():
            if not space.keys().isdisjoint(names):
                return False
        if self.unbound and any(is_bound(cell) for cell, _ in self.unbound):
            return False
        return not self.arrays or all(_same_array(array, form, copy) for _, array, form, copy in self.arrays)

    def different(self) -> Any:
        """Yield the changed parts."""
        for space, key, value in self._names:
            if not same(space.get(key, self), value):
                yield StatePart(tuple, (), None, "a global name", self._words[id(space), key])
        for space, absent in self.absent.values():
            for key in absent & space.keys():
                yield StatePart(tuple, (), None, "a global name", key)
        for cell, value, name in self.cells:
            if not _holds(cell, value):
                yield StatePart(tuple, (value,), partial(_set_cell, cell), f"the variable {name}", "")
        for cell, name in self.unbound:
            if is_bound(cell):
                yield StatePart(tuple, (), partial(_unbind, cell), f"the variable {name}", "")
        for f, code, defaults, keywords, attributes, name in self.functions:
            now = f.__code__, f.__defaults__, f.__kwdefaults__, f.__dict__
            if not same_parts(now, (code, defaults, keywords, attributes)):
                before = (code, defaults, keywords, attributes)
                yield StatePart(tuple, before, partial(_rewrite, f), "a function", name)
        for space in filter(None, self.empty):
            yield StatePart(tuple, (), partial(_empty, space), "a function", "")
        yield from (part for part in self.parts if not part.is_same)
        yield from (part for part, array, form, copy in self.arrays if not _same_array(array, form, copy))


def _holds(cell: types.CellType, value: Any) -> bool:
    try:
        return same(cell.cell_contents, value)
    except ValueError:  # nothing is bound to it any more
        return False


def is_bound(cell: types.CellType) -> bool:
    """Whether a variable of an enclosing function has a value."""
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _unbind(cell: types.CellType, _: Any) -> None:
    del cell.cell_contents


def _empty(space: Space, _: Any) -> None:
    space.clear()


def _set_cell(cell: types.CellType, old: Sequence[Any]) -> None:
    cell.cell_contents = old[0]


def _rewrite(f: types.FunctionType, old: Sequence[Any]) -> None:
    f.__code__, f.__defaults__, f.__kwdefaults__, f.__dict__ = old


def form_of(array: NDArray[Any]) -> tuple[Any, ...]:
    """Return the shape, strides and type of an array."""
    return array.shape, array.strides, array.dtype


def _same_array(array: NDArray[Any], form: tuple[Any, ...], copy: Any) -> bool:
    """Whether an array is unchanged; `copy` of a small one are its bytes."""
    if (array.shape, array.strides, array.dtype) != form:
        return False
    return bool(array.tobytes() == copy) if type(copy) is bytes else same_bytes(array, copy)


def same_parts(now: Sequence[Any], before: Sequence[Any]) -> bool:
    """Whether two states agree, part by part."""
    return len(now) == len(before) and all(map(same, now, before))


def same(now: Any, before: Any) -> bool:
    """Whether two values are one object, or equal numbers, texts or arrays of one type, to the bit.

    >>> same(0.0, -0.0), same(1, True), same(np.zeros(2), np.zeros(2)), same([1], [1])
    (False, False, True, False)
    """
    if now is before:
        return True
    kind = type(now)
    if kind is not type(before):
        return False
    if kind is np.ndarray:
        return not now.dtype.hasobject and form_of(now) == form_of(before) and same_bytes(now, before)
    if kind is tuple:
        return len(now) < 1000 and same_parts(now, before)
    if kind is float or kind is complex:
        return repr(now) == repr(before)
    if id(kind) in _SCALARS:
        return bool(now.dtype == before.dtype and now.tobytes() == before.tobytes())
    return id(kind) in _NUMBERS and bool(now == before)
