"""Surroundings: what a body can change outside of itself. A body that does is carried out repetition by repetition.

A body that is traced once appends to a list once, and not n times. So what its function can reach by name (variables
of enclosing functions, the lists, dicts, arrays and objects that they stand for, generators of random numbers) is
compared with what it was, and put back where it has changed; a function that keeps its results (`functools.cache`)
forgets them, or it would not be called again. What global names stand for may belong to other threads
too: a body that changes it is refused.
"""

from __future__ import annotations

import argparse
import functools
import math
import random
import sys
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from typing import Any
from weakref import ProxyTypes

import numpy as np

from symad.errors import TraceError
from symad.tracing.calling.jitted import python_form
from symad.tracing.calling.loop_steps import own_code
from symad.tracing.calling.outside_words import members_of
from symad.tracing.calling.user_place import is_installed, is_library, user_place
from symad.tracing.control.identities import Identities
from symad.tracing.values.array import Array
from symad.tracing.values.exactly import same, same_bytes
from symad.tracing.values.traced import Traced

REACHED = 10_000  # objects that are looked at
LARGEST = 2**24  # elements of an array that is put back
RANDOM = "a generator of random numbers"
CACHED = type(functools.cache(len))  # of functions that keep their results

_MADE_LATER = frozenset({"__slotnames__", "__annotations__", "__annotations_cache__"})  # by Python, in a class
_LIBRARIES = frozenset(
    {"numpy", "numba", "sympy", "scipy", "mpmath", "optree", "symad", "codegen", "builtins", "types"}
)
_PLAIN = (types.SimpleNamespace, argparse.Namespace)
_NUMBERS = frozenset({int, float, bool, str, bytes, complex, type(None), np.float64, np.int64})
_SIMPLE = _NUMBERS.union(ProxyTypes)


class Surroundings:
    """What functions can reach, as it was, and how each part is put back; what global names lead to is left alone."""

    def __init__(
        self, *roots: Any, of_kernel: bool = False, left: Collection[int] = (), largest: float = math.inf
    ) -> None:
        self._kept: list[
            tuple[Callable[[], Any], Any, Callable[[Any], Any], str]
        ] = []  # (state now, state, put back, what)
        self._shared: list[tuple[Callable[[], Any], Any, str, str]] = []  # (state now, state, global name, what)
        self._quickly = Identities()  # what of both is asked for by identity first; and the rest (state now, state)
        self._slowly: list[tuple[Callable[[], Any], Any]] = []
        self._containers: dict[int, int] = {}  # lists and dicts by what gives their states, all by their ids
        self._caches: list[tuple[Any, Any]] = []  # functions that keep their results, and how many
        self._names: dict[int, tuple[str, Any]] = {}  # global names, by what they stand for
        self._name = ""  # of the global that is being looked at
        self.bytes = 0  # of arrays, which are compared
        self.runs_out = False  # something gives another value each time it is asked, and cannot be put back
        self._left = left  # arrays that may change, by their ids
        self._largest = largest  # bytes of an array that is compared
        self._of_kernel = of_kernel  # nothing is put back; names that are not bound yet may be, later
        if not of_kernel:
            self._note(random.getstate, random.setstate, RANDOM)
            self._note(np.random.get_state, np.random.set_state, RANDOM)
        seen = set[int]()
        self._visit(list(roots), seen)
        while self._names and len(seen) < REACHED:
            self._name, value = self._names.pop(next(iter(self._names)))
            self._visit([value], seen)
        self.complete: bool = len(seen) < REACHED

    def unchanged(self) -> bool:
        """Whether all of it is as it was."""
        if self._quickly.hold() and (not self._slowly or all(_same(now(), before) for now, before in self._slowly)):
            return True
        return all(_same(now(), before) for now, before, _, _ in self._shared) and not self._changed_here()

    def differences(self, left: Collection[int] = ()) -> dict[str, str]:
        """Return what is not as it was: what each is, by the name of what is global, else by that itself.

        Lists and dicts whose ids are in `left` do not count.
        """
        here = [(now, before, what, what) for now, before, _, what in self._kept]
        found = [each for each in (*here, *self._shared) if not _same(each[0](), each[1])]
        return {name: what for now, _, name, what in found if self._containers.get(id(now)) not in left}

    def changed(self) -> str:
        """Return what is not as it was, if anything; TraceError for something global, which others may change too."""
        for now, before, name, _ in self._shared:
            if not _same(now(), before):
                raise TraceError(
                    f"the body of a loop changes {name}",
                    where=user_place(),
                    why="a body is traced once for all repetitions, and global names are not put back",
                    do="return what the body computes; or make it a variable of the function around the loop; or "
                    'compile with roll="never"',
                )
        return self._changed_here()

    def _changed_here(self) -> str:
        return next((what for now, before, _, what in self._kept if not _same(now(), before)), "")

    def restore(self) -> None:
        """Put back what has changed; TraceError where results that were kept before would be lost."""
        for cache, before in self._caches:
            if cache.cache_info().misses != before.misses:
                if before.currsize:
                    raise TraceError(
                        f"the body of a loop calls {cache.__name__}, which keeps its results, and changes something",
                        where=user_place(),
                        why="the body is carried out again for each repetition, and what was kept cannot be told apart",
                        do='leave functools.cache out, or the change; or compile with roll="never"',
                    )
                cache.cache_clear()
        for now, before, put_back, _ in self._kept:
            if not _same(now(), before):
                put_back(before)

    def _visit(self, waiting: list[Any], seen: set[int]) -> None:
        while waiting and len(seen) < REACHED:
            value = waiting.pop()
            if type(value) not in _SIMPLE and id(value) not in seen:
                seen.add(id(value))
                waiting += self._keep(value)

    def _note(
        self,
        now: Callable[[], Any],
        put_back: Callable[[Any], Any],
        what: str,
        copy: Callable[[], Any] | None = None,
        *,
        quickly: bool = False,
    ) -> None:
        """Note what `now()` gives, or a `copy` of what it always gives but may change inside.

        `quickly` says that it is among the identities.
        """
        before = (copy or now)()
        if not quickly:
            self._slowly.append((now, before))
        if self._name:
            self._shared.append((now, before, self._name, what))
        else:
            self._kept.append((now, before, put_back, what))

    def _keep(self, value: Any) -> list[Any]:
        """Note the state of one object; return what it leads to."""
        if isinstance(value, Traced):
            if isinstance(value, Array) and type(value) is Array:
                self._note(lambda: (value.nodes.copy(), value.scope), functools.partial(_refill, value), "an array")
            return []
        if isinstance(value, np.ndarray):
            left = id(value) in self._left or value.nbytes > self._largest
            if not left and (may_change(value) if self._of_kernel else _can_be_put_back(value)):
                self.bytes += value.nbytes
                self._note(lambda: value, lambda old: np.copyto(value, old), "an array", value.copy)
            return []
        if isinstance(value, np.random.Generator):
            generator = value.bit_generator
            self._note(lambda: generator.state, lambda old: setattr(generator, "state", old), RANDOM)
            return []
        if isinstance(value, np.random.RandomState):
            self._note(value.get_state, value.set_state, RANDOM)
            return []
        if isinstance(value, random.SystemRandom):  # it has no state
            return []
        if isinstance(value, random.Random):
            self._note(value.getstate, value.setstate, RANDOM)
            return []
        if isinstance(value, Iterator):
            self.runs_out = True
            return []
        if isinstance(value, list | deque | bytearray):
            self._note(self._of(value, tuple), lambda old: (value.clear(), value.extend(old)), "a list")
            return list(value)
        if isinstance(value, dict | set):
            if not value:
                self._quickly.empty(value)
            now, what = self._of(value, _entries), "a dict or a set"
            self._note(now, lambda old: (value.clear(), value.update(old)), what, quickly=not value)
            return list(value.values()) if isinstance(value, dict) else []
        return self._keep_function(value)

    def _of(self, value: Any, state: Callable[[Any], Any]) -> Callable[[], Any]:
        """Return what gives the state of a list or dict, which it is known by."""
        now = functools.partial(state, value)
        self._containers[id(now)] = id(value)
        return now

    def _keep_function(self, value: Any) -> list[Any]:
        if isinstance(value, tuple):
            return list(value)
        if isinstance(value, types.MethodType):
            return [value.__func__, value.__self__]
        if isinstance(value, functools.partial):
            return [value.func, *value.args, *value.keywords.values()]
        if isinstance(value, CACHED):
            self._caches.append((value, value.cache_info()))
            return [value.__wrapped__]
        if (python := python_form(value)) is not None:
            return [python]
        if isinstance(value, types.FunctionType):
            if self._of_kernel and is_installed(value.__code__.co_filename):
                return _functions_in(value)
            self._globals(value)
            if not _is_ours(value):
                self._quickly.of_function(value)
                self._note(lambda: _text_of(value), functools.partial(_rewrite, value), "a function", quickly=True)
            attributes = [] if _is_ours(value) else [vars(value)]
            return [
                *self._cells(value),
                *(value.__defaults__ or ()),
                *(value.__kwdefaults__ or {}).values(),
                *attributes,
            ]
        if isinstance(value, property | staticmethod | classmethod):
            return [getattr(value, name) for name in ("fget", "__func__") if hasattr(value, name)]
        return self._keep_class(value) if isinstance(value, type) else self._keep_object(value)

    def _is_foreign(self, kind: type) -> bool:
        """Whether objects of a class are no business of the user's; the standard library's are no kernel's either."""
        package = str(kind.__module__ or "sympy").split(".")[0]  # SymPy makes classes without one
        return package in _LIBRARIES or (self._of_kernel and package in sys.stdlib_module_names)

    def _keep_class(self, kind: type) -> list[Any]:
        """Note the attributes of a class of the user's; return its methods, and the classes below it."""
        module = getattr(sys.modules.get(str(kind.__module__)), "__file__", "") or ""
        if self._is_foreign(kind) or (self._of_kernel and is_installed(module)):
            return []
        self._note(lambda: _attributes(kind), lambda old: _set_attributes(kind, _attributes(kind), old), "a class")
        return [*vars(kind).values(), *kind.__bases__]

    def _keep_object(self, value: Any) -> list[Any]:
        kind = type(value)
        if self._is_foreign(kind):
            return self._of_library(value) if self._of_kernel else []
        names = [name for base in kind.__mro__ for name in _slots(base)]
        if names:
            self._note(
                lambda: _held(value, names), lambda old: _set_attributes(value, _held(value, names), old), "an object"
            )
        members = members_of(value)
        return [kind, *_held(value, names).values(), *([] if members is None else [members])]

    def _of_library(self, value: Any) -> list[Any]:
        """Return what of the user's a library's object holds: functions and arrays, all of a namespace."""
        if isinstance(value, types.ModuleType):
            return []
        inside = members_of(value) or {}
        if isinstance(value, _PLAIN):
            return [inside]
        return [part for part in inside.values() if callable(part) or type(part) is np.ndarray]

    def _cells(self, f: types.FunctionType) -> list[Any]:
        """Note the variables of enclosing functions; of our own functions only the functions in them matter."""
        if _is_ours(f):
            return _functions_in(f)
        reached = []
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            found = _contents(cell)
            reached += found
            if found:  # or it is not yet bound
                now, put_back = functools.partial(_contents, cell), functools.partial(_refill_cell, cell)
                self._quickly.in_cell(cell)
                self._note(now, put_back, f"the variable {name}", quickly=True)
        return reached

    def _globals(self, f: types.FunctionType) -> None:
        if _is_ours(f):
            return
        space, codes = f.__globals__, [f.__code__]
        for code in codes:
            codes += [part for part in code.co_consts if isinstance(part, types.CodeType)]
            if self._of_kernel:
                for name in set(code.co_names) - space.keys():
                    self._quickly.in_space(space, name)
                    self._note(functools.partial(space.get, name), bool, name, quickly=True)
            for name in set(code.co_names) & space.keys():
                self._share(space, name, name)
                if isinstance(space[name], types.ModuleType) and not is_library(
                    getattr(space[name], "__file__", "") or ""
                ):
                    for attribute in set(code.co_names) & vars(space[name]).keys():
                        self._share(vars(space[name]), attribute, f"{name}.{attribute}")

    def _share(self, space: dict[str, Any], key: str, name: str) -> None:
        self._quickly.in_space(space, key)
        self._shared.append((functools.partial(space.get, key), space[key], name, "a global name"))
        self._names.setdefault(id(space[key]), (name, space[key]))


def _text_of(f: types.FunctionType) -> list[Any]:
    return [own_code(f), f.__defaults__, f.__kwdefaults__]


def _rewrite(f: types.FunctionType, old: list[Any]) -> None:
    f.__code__, f.__defaults__, f.__kwdefaults__ = old


def _is_ours(f: Any) -> bool:
    return is_library(f.__code__.co_filename)


def _refill(array: Array, old: tuple[Any, Any]) -> None:
    array.nodes[...], array.scope = old


def _functions_in(f: types.FunctionType) -> list[Any]:
    """Return the functions that a library's function was made of."""
    return [value for cell in f.__closure__ or () for value in _contents(cell) if callable(value)]


def _contents(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # nothing is bound to it
        return []


def _refill_cell(cell: types.CellType, old: list[Any]) -> None:
    cell.cell_contents = old[0]


def _attributes(kind: type) -> dict[str, Any]:
    """Return the attributes of a class, without those that Python makes when it is asked or copies an instance."""
    return {name: value for name, value in vars(kind).items() if name not in _MADE_LATER}


def _slots(kind: type) -> list[str]:
    """Return the names of the attributes that a class has slots for."""
    return [name for name, member in vars(kind).items() if isinstance(member, types.MemberDescriptorType)]


def _held(value: Any, names: list[str]) -> dict[str, Any]:
    return {name: getattr(value, name) for name in names if hasattr(value, name)}


def _set_attributes(value: Any, now: dict[str, Any], before: dict[str, Any]) -> None:
    for name in now.keys() - before.keys():
        delattr(value, name)
    for name in [name for name in before if name not in now or now[name] is not before[name]]:
        setattr(value, name, before[name])


def _entries(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else list(value)


def _same(now: Any, before: Any) -> bool:
    """Whether two states are the same: the same objects, the same bytes, equal numbers."""
    if now is before:
        return True
    if type(now) is not type(before):
        return False
    if type(now) is np.ndarray:
        return now.shape == before.shape and now.dtype == before.dtype and same_bytes(now, before)
    if isinstance(now, list | tuple):
        if {*map(type, now), *map(type, before)} == {int}:  # 625 numbers are the state of a generator
            return bool(now == before)
        return len(now) == len(before) and all(map(_same, now, before))
    if isinstance(now, dict):
        return _same(list(now.items()), list(before.items()))
    return type(now) in _NUMBERS and same(now, before)


def generator_states() -> tuple[Any, ...]:
    """Return the states of the generators of random numbers that all code has."""
    kind, state, *rest = np.random.get_state(legacy=True)
    return random.getstate(), kind, np.asarray(state).tobytes(), *rest


def may_change(array: np.ndarray[Any, Any]) -> bool:
    """Whether the numbers of an array may change, in its own memory or in that which it shows.

    >>> owner = np.ones(3)
    >>> shown, alone = owner[:2], np.ones(3)
    >>> shown.flags.writeable = alone.flags.writeable = False
    >>> may_change(shown), may_change(alone), may_change(np.frombuffer(b"01234567"))
    (True, False, False)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        owner = owner.base
    return owner is not None and not isinstance(owner, bytes)


def _can_be_put_back(array: np.ndarray[Any, Any]) -> bool:
    return bool(array.flags.writeable) and array.size <= LARGEST
