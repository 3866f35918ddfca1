"""Surroundings: what a body can change outside of itself. A body that does is carried out repetition by repetition.

A body that is traced once appends to a list once, and not n times. So what its function can reach by name (variables
of enclosing functions, global names, the lists, dicts, arrays and objects that they stand for, generators of random
numbers) is compared with what it was, and put back where it has changed.
"""

from __future__ import annotations

import functools
import random
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.array import Array
from symad.tracing.place import is_library
from symad.tracing.traced import Traced

REACHED = 10_000  # objects that are looked at
LARGEST = 2**24  # elements of an array that is looked at

_LIBRARIES = frozenset({"numpy", "sympy", "scipy", "mpmath", "optree", "symad", "codegen", "builtins", "types"})
_NUMBERS = frozenset({int, float, bool, str, bytes, complex, type(None), np.float64, np.int64})


class Surroundings:
    """What functions can reach, as it was, and how each part is put back."""

    def __init__(self, *roots: Any) -> None:
        self._kept: list[tuple[Callable[[], Any], Any, Callable[[Any], Any]]] = []  # (state now, state, put back)
        self._note(random.getstate, random.setstate)
        self._note(np.random.get_state, np.random.set_state)
        seen, waiting = set[int](), list(roots)
        while waiting and len(seen) < REACHED:
            value = waiting.pop()
            if type(value) not in _NUMBERS and id(value) not in seen:
                seen.add(id(value))
                waiting += self._keep(value)

    def changed(self) -> bool:
        """Whether anything is not as it was."""
        return any(not _same(now(), before) for now, before, _ in self._kept)

    def restore(self) -> None:
        """Put back what has changed."""
        for now, before, put_back in self._kept:
            if not _same(now(), before):
                put_back(before)

    def _note(self, now: Callable[[], Any], put_back: Callable[[Any], Any]) -> None:
        self._kept.append((now, now(), put_back))

    def _keep(self, value: Any) -> list[Any]:
        """Note the state of one object; return what it leads to."""
        if isinstance(value, Traced):
            if isinstance(value, Array) and type(value) is Array:
                self._note(lambda: (value.nodes.copy(), value.scope), functools.partial(_refill, value))
            return []
        if isinstance(value, np.ndarray):
            if value.flags.writeable and value.size <= LARGEST:
                self._note(value.copy, lambda old: np.copyto(value, old))
            return []
        if isinstance(value, np.random.Generator):
            generator = value.bit_generator
            self._note(lambda: generator.state, lambda old: setattr(generator, "state", old))
            return []
        if isinstance(value, list | deque | bytearray):
            self._note(lambda: tuple(value), lambda old: (value.clear(), value.extend(old)))
            return list(value)
        if isinstance(value, dict | set):
            self._note(lambda: _entries(value), lambda old: (value.clear(), value.update(old)))
            return list(value.values()) if isinstance(value, dict) else []
        return self._keep_function(value)

    def _keep_function(self, value: Any) -> list[Any]:
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, types.MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, functools.partial):
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, types.FunctionType):
            return [*self._cells(value), *self._globals(value), *(value.__defaults__ or ())]
        kind = type(value)
        if kind.__module__.split(".")[0] in _LIBRARIES or not hasattr(value, "__dict__"):
            return []
        return [vars(value), *(vars(base).get("__call__") for base in kind.__mro__)]

    def _cells(self, f: types.FunctionType) -> list[Any]:
        """Note the variables of enclosing functions; of our own functions only the functions in them matter."""
        reached = []
        for cell in f.__closure__ or ():
            try:
                reached.append(cell.cell_contents)
            except ValueError:  # not yet bound
                continue
            if not _is_ours(f):
                self._note(functools.partial(_contents, cell), functools.partial(_refill_cell, cell))
        return [value for value in reached if callable(value)] if _is_ours(f) else reached

    def _globals(self, f: types.FunctionType) -> list[Any]:
        if _is_ours(f):
            return []
        space = f.__globals__
        names = [name for name in f.__code__.co_names if name in space]
        self._note(lambda: [space.get(name) for name in names], lambda old: space.update(zip(names, old, strict=True)))
        return [space[name] for name in names]


def _is_ours(f: Any) -> bool:
    return is_library(f.__code__.co_filename)


def _refill(array: Array, old: tuple[Any, Any]) -> None:
    array.nodes[...], array.scope = old


def _contents(cell: types.CellType) -> list[Any]:
    return [cell.cell_contents]


def _refill_cell(cell: types.CellType, old: list[Any]) -> None:
    cell.cell_contents = old[0]


def _entries(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else list(value)


def _same(now: Any, before: Any) -> bool:
    """Whether two states are the same: the same objects, the same bytes, equal numbers."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if type(now) is np.ndarray:
        return now.shape == before.shape and now.dtype == before.dtype and bool(now.tobytes() == before.tobytes())
    if isinstance(now, list | tuple):
        return len(now) == len(before) and all(map(_same, now, before))
    if isinstance(now, dict):
        return _same(list(now.items()), list(before.items()))
    return type(now) in _NUMBERS and bool(now == before or now != now)
