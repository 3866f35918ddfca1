"""The table of exact types: how to read the state of an object, where it leads, and how to put it back."""

from __future__ import annotations

import array
import builtins
import contextvars
import datetime
import decimal
import functools
import gc
import io
import logging
import operator
import re
import sys
import threading
import types
import typing
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.records import dataclass
from symad.reach.compared_state import NUMBERS, SCALARS, StatePart, form_of
from symad.reach.known_packages import EFFECT_NAMES, SETTINGS, asks, has_effects, is_pure, module_of
from symad.reach.reach_trails import Trail
from symad.reach.reach_walk import ATOMS, ROWS, ReachWalk

LARGEST = 2**24  # elements of an array that is put back
SMALL = 2**12  # bytes of an array that are compared quicker as text than in place
CACHED = type(functools.cache(len))  # of functions that keep their results

_PURE_BUILTINS = frozenset({
    "abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "getattr", "hasattr", "hash", "hex",
    "isinstance", "issubclass", "iter", "len", "locals", "max", "min", "next", "oct", "ord", "pow", "repr", "round",
    "sorted", "sum", "__build_class__",
})  # fmt: skip

ATOMS |= {id(kind) for kind in (*NUMBERS, *SCALARS)}
ATOMS |= {
    id(kind)
    for kind in (
        type(...), type(NotImplemented), range, types.CodeType, types.MemberDescriptorType, types.GetSetDescriptorType,
        types.MethodDescriptorType, types.WrapperDescriptorType, types.ClassMethodDescriptorType, re.Pattern,
        datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone, type(sys.float_info),
        type(sys.int_info), type(sys.hash_info), type(sys.version_info), type(sys.flags), types.GenericAlias,
        types.UnionType, typing.TypeVar, operator.itemgetter, type(vars(namedtuple("Pair", "a"))["a"]),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Content:
    """The content that an object has from a built-in class, beside attributes: how to read and put it back."""

    read: Callable[[Any], Sequence[Any]]
    put_back: Callable[[Any, Sequence[Any]], Any] | None
    what: str


def attributes_of(value: Any) -> dict[Any, Any] | None:
    """Return the dict of an object's attributes, None if it has none; the code of its class is not asked.

    >>> attributes_of(types.SimpleNamespace(a=1)), attributes_of(1.5)
    ({'a': 1}, None)
    """
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):  # TypeError: of a class
        return None
    return attributes if isinstance(attributes, dict) else None


def entries(value: Any) -> list[Any]:
    """Return the keys of a dict, and its values."""
    return [*dict.keys(value), *dict.values(value)]


def refill_dict(value: Any, old: Sequence[Any]) -> None:
    """Put back the entries of a dict."""
    dict.clear(value)
    half = len(old) // 2
    dict.update(value, zip(old[:half], old[half:], strict=True))


def _refill_ordered(value: Any, old: Sequence[Any]) -> None:
    third = len(old) // 3
    OrderedDict.clear(value)
    OrderedDict.update(value, zip(old[:third], old[2 * third :], strict=True))


def _refill(kind: type, extend: str) -> Callable[[Any, Sequence[Any]], None]:
    clear, fill = kind.__dict__["clear"], kind.__dict__[extend]

    def refill(value: Any, old: Sequence[Any]) -> None:
        clear(value)
        fill(value, old)

    return refill


_FACTORY, _TYPECODE, _ARGUMENTS = (
    vars(kind)[name].__get__
    for kind, name in ((defaultdict, "default_factory"), (array.array, "typecode"), (BaseException, "args"))
)
_IMMUTABLE = Content(lambda _: (), None, "")
CONTENTS: dict[type, Content] = {
    dict: Content(entries, refill_dict, "a dict or a set"),
    OrderedDict: Content(lambda v: [*OrderedDict.__iter__(v), *entries(v)], _refill_ordered, "a dict or a set"),
    defaultdict: Content(lambda v: [_FACTORY(v)], None, "a dict or a set"),
    list: Content(lambda v: list(list.__iter__(v)), _refill(list, "extend"), "a list"),
    deque: Content(lambda v: list(deque.__iter__(v)), _refill(deque, "extend"), "a list"),
    set: Content(lambda v: list(set.__iter__(v)), _refill(set, "update"), "a dict or a set"),
    bytearray: Content(
        lambda v: (bytes(memoryview(v)),), lambda v, old: bytearray.__setitem__(v, slice(None), old[0]), "a list"
    ),
    array.array: Content(lambda v: (_TYPECODE(v), array.array.tobytes(v)), None, "a list"),
    tuple: Content(lambda v: list(tuple.__iter__(v)), None, ""),
    frozenset: Content(lambda v: list(frozenset.__iter__(v)), None, ""),
    slice: Content(lambda v: (v.start, v.stop, v.step), None, ""),
    **dict.fromkeys((object, int, float, complex, str, bytes, types.SimpleNamespace), _IMMUTABLE),
    BaseException: Content(_ARGUMENTS, None, ""),
}  # fmt: skip


def content(walk: ReachWalk, value: Any, trail: Trail, kind: type) -> None:
    """Note the content that an object has from a built-in class, and follow it."""
    row = CONTENTS[kind]
    if row is _IMMUTABLE:
        return
    if kind in (tuple, frozenset, slice):  # which cannot change
        walk.lead(row.read(value), trail)
        return
    put_back = None if row.put_back is None else partial(row.put_back, value)
    walk.lead(walk.ask(partial(row.read, value), row.what, trail, put_back, value), trail)


def _of_defaults(walk: ReachWalk, value: Any, trail: Trail) -> None:
    content(walk, value, trail, dict)
    content(walk, value, trail, defaultdict)


def keep_array(walk: ReachWalk, value: NDArray[Any], trail: Trail) -> None:
    """Note the numbers of an array; of an array of objects, its objects."""
    if value.dtype.hasobject:
        if value.dtype != object:
            walk.stop("a structured array of objects", trail)
            return
        before = walk.ask(lambda: [*form_of(value), *np.ndarray.ravel(value).tolist()], "an array", trail)
        walk.lead(before, trail)
        return
    if value.dtype.names:
        walk.ask(lambda: value.dtype.names or (), "an array", trail)
    skipped = id(value) in walk.left or value.nbytes > walk.largest
    is_small = value.flags.writeable and value.size <= LARGEST
    if skipped or not (is_small if walk.restores else may_change(value)):
        return
    copied = np.array(value, copy=True, order="K", subok=False)
    walk.state.bytes += value.nbytes
    part = StatePart(tuple, (copied,), lambda old: np.copyto(value, old[0]), "an array", trail.name)
    walk.state.arrays.append((part, value, form_of(value), copied.tobytes() if value.nbytes <= SMALL else copied))


def may_change(array: NDArray[Any]) -> bool:
    """Whether the numbers of an array may change. Those in bytes may not; other read-only ones may.

    >>> may_change(np.ones(3)), may_change(np.frombuffer(b"01234567"))
    (True, False)
    """
    owner: Any = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return not isinstance(owner, bytes)


def _structured(walk: ReachWalk, value: Any, trail: Trail) -> None:
    if value.dtype.hasobject:
        walk.stop("a row with objects", trail)
    else:
        walk.ask(lambda: (value.dtype, value.tobytes()), "a row of an array", trail)


def _held(what: str, *names: str) -> Any:
    """Return a row that reads attributes which the type itself has."""

    def row(walk: ReachWalk, value: Any, trail: Trail) -> None:
        walk.lead(walk.ask(lambda: [getattr(value, name) for name in names], what, trail), trail)

    return row


def _builtin(walk: ReachWalk, value: Any, trail: Trail) -> None:
    owner, name = value.__self__, value.__name__
    if owner is builtins:
        if name in ("print", "input", "open", "breakpoint", "setattr", "delattr"):
            walk.effect(name, trail, "io" if name in ("open", "input") else "")
        elif name not in _PURE_BUILTINS:
            walk.stop(f"the builtin {name}", trail)
    elif owner is None or type(owner) is types.ModuleType:
        module = value.__module__ if type(value.__module__) is str else ""
        if has_effects(module) or (is_pure(module) and name in EFFECT_NAMES):
            walk.effect(name, trail, module)
        elif not is_pure(module) or name in SETTINGS:
            walk.stop(f"the compiled function {module}.{name}", trail)
    elif issubclass(type(owner), type) and name in EFFECT_NAMES:
        walk.effect(name, trail)
    else:
        walk.lead([owner], trail)


def _of_numpy(walk: ReachWalk, value: Any, trail: Trail) -> None:
    if value.__name__ in EFFECT_NAMES:
        walk.effect(value.__name__, trail)


def _ufunc(walk: ReachWalk, value: Any, trail: Trail) -> None:
    if value.ntypes == 1 and set(value.types[0]) <= set("O->"):  # np.frompyfunc does not say of which function
        walk.stop("a function of np.frompyfunc", trail)


def _cached(walk: ReachWalk, value: Any, trail: Trail) -> None:
    if (wrapped := getattr(value, "__wrapped__", None)) is None:
        walk.stop("kept results of an unknown function", trail)
        return
    walk.lead([wrapped, value.__dict__], trail)
    if walk.restores:
        walk.caches.append((value, value.cache_info()))
    else:
        walk.ask(lambda: (value.cache_info().misses, value.cache_info().currsize), "kept results", trail)
        walk.keeps_results = True


def _context(walk: ReachWalk, value: Any, trail: Trail) -> None:
    missing = object()
    walk.lead(walk.ask(lambda: (value.get(missing),), "a context variable", trail), trail)


def _decimal(walk: ReachWalk, value: Any, trail: Trail) -> None:
    names = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")  # its flags say what was computed
    walk.ask(lambda: [getattr(decimal.getcontext(), name) for name in names], "the context of decimal", trail)


def _vectorized(walk: ReachWalk, value: Any, trail: Trail) -> None:
    names = ("pyfunc", "otypes", "signature", "excluded", "cache")  # and a cache of its own
    walk.lead(walk.ask(lambda: [vars(value).get(name) for name in names], "a vectorized function", trail), trail)


def _getter(walk: ReachWalk, value: Any, trail: Trail) -> None:
    parts = value.__reduce__()[1]
    walk.words(parts, trail)
    walk.lead(parts, trail)


def _module(walk: ReachWalk, value: Any, trail: Trail) -> None:
    name = vars(value).get("__name__")
    walk.module(value, name if type(name) is str and sys.modules.get(name) is value else "", trail)


ROWS |= {id(kind): partial(content, kind=kind) for kind, row in CONTENTS.items() if row is not _IMMUTABLE}
ROWS |= {
    id(defaultdict): _of_defaults,
    id(np.ndarray): keep_array,
    id(np.void): _structured,
    id(types.FunctionType): lambda walk, value, trail: walk.follow(value, trail),
    id(types.MethodType): lambda walk, value, trail: walk.lead([value.__func__, value.__self__], trail),
    id(types.BuiltinFunctionType): _builtin,
    id(types.MethodWrapperType): lambda walk, value, trail: walk.lead([value.__self__], trail),
    id(types.ModuleType): _module,
    id(types.MappingProxyType): lambda walk, value, trail: walk.lead(gc.get_referents(value), trail),
    id(partial): _held("a partial function", "func", "args", "keywords", "__dict__"),
    id(property): _held("a property", "fget", "fset", "fdel"),
    id(staticmethod): _held("a static method", "__func__", "__dict__"),
    id(classmethod): _held("a class method", "__func__", "__dict__"),
    id(functools.cached_property): _held("a property", "func"),
    id(CACHED): _cached,
    id(np.ufunc): _ufunc,
    id(np.vectorize): _vectorized,
    id(type(np.sum)): _of_numpy,
    id(operator.attrgetter): _getter,
    id(operator.methodcaller): _getter,
    id(threading.local): lambda walk, value, trail: walk.stop("values of one thread", trail),
    id(contextvars.ContextVar): _context,
    id(decimal.Decimal): _decimal,
}


def other_row(kind: type, module: str, is_ordinary: bool) -> Any:
    """Return the row of types with subclasses: NumPy's types of data, SymPy's expressions, iterators, loggers."""
    if issubclass(kind, np.dtype) or (module.partition(".")[0] == "sympy" and issubclass(kind, sp.Basic)):
        return lambda *_: None
    if kind.__name__ in ("cython_function_or_method", "fused_cython_function"):
        return _compiled
    if issubclass(kind, logging.Logger) or has_effects(module):
        return _with_effects
    return _iterator if not is_ordinary and issubclass(kind, Iterator) else None


def _compiled(walk: ReachWalk, value: Any, trail: Trail) -> None:
    if not is_pure(str(value.__module__)):
        walk.stop(f"the compiled function {value.__name__}", trail)


def _with_effects(walk: ReachWalk, value: Any, trail: Trail) -> None:
    """The row of an object with side effects, such as a logger. It is known if code only has names of its methods."""
    kind = type(value)
    module = module_of(kind)
    walk.effect(f"an object of type {kind.__qualname__}", trail, module if asks(module) else "")
    if not asks(module) or module == "_io":
        allowed = next((names for base, names in _DOING.items() if issubclass(kind, base)), frozenset[str]())
        attributes = attributes_of(value) or {}
        walk.ask(lambda: (attributes.get("name"),), "a name", trail)  # which many objects have
        known = {name for name in (*dir(kind), *attributes) if name not in _OF_MANY and not name.startswith("__")}
        walk.only_does(f"an object of type {kind.__qualname__}", known - allowed if allowed else None, trail)


_OF_MANY = frozenset({"name", "_cache"})
_DOING: dict[type, frozenset[str]] = {  # methods that ask nothing
    logging.Logger: frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"}),
    io.IOBase: frozenset({"write", "writelines", "flush"}),
    type(threading.Lock()): frozenset({"acquire", "release"}),
    type(threading.RLock()): frozenset({"acquire", "release"}),
}


def _iterator(walk: ReachWalk, value: Any, trail: Trail) -> None:
    walk.runs_out = True
    walk.stop("an iterator", trail)
