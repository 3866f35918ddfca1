"""Side effects: whether a function may do what nobody sees who does not run it.

A function that prints, reads a clock or a file, or draws random numbers has to be run at each call. Whether one does is
asked of its code, and of all code that it reaches by name: it has no side effects where every name leads to numbers,
arrays, containers, functions and classes of the user's of which the same is true, builtins that are known, or one of a
few packages. Anything else counts as a side effect. What a function changes of its surroundings is seen by
`symad.tracing.control.surroundings`.
"""

from __future__ import annotations

import builtins
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from symad.tracing.calling.outside_words import members_of
from symad.tracing.calling.user_place import is_installed, is_library

REACHED = 10_000  # objects that are looked at

_PACKAGES = frozenset({"numpy", "scipy", "symad", "math", "operator", "functools", "itertools", "collections"})
_TYPES = frozenset({"abc", "dataclasses", "types", "typing"})  # modules of classes that are written in a user's class
_BUILTINS = frozenset({
    "abs", "all", "any", "bool", "bytes", "callable", "chr", "classmethod", "complex", "dict", "divmod",
    "enumerate", "filter", "float", "frozenset", "hasattr", "int", "isinstance", "issubclass", "iter", "len",
    "list", "map", "max", "min", "next", "object", "ord", "pow", "property", "range", "repr", "reversed",
    "round", "set", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip",
})  # fmt: skip
_EFFECTS = frozenset({  # what the packages have
    "datasets", "dump", "dumps", "fromfile", "genfromtxt", "io", "load", "loadtxt", "memmap", "random", "rvs",
    "save", "savetxt", "savez", "savez_compressed", "set_printoptions", "seterr", "seterrcall", "setbufsize",
    "test", "tofile",
})  # fmt: skip
_UNSEEN = frozenset({"IMPORT_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
_VALUES = (int, float, complex, str, bytes, type(None), type(...), type(NotImplemented), np.generic, np.ndarray,
           np.dtype, slice, range, types.MemberDescriptorType, types.GetSetDescriptorType)  # fmt: skip
_CONTAINERS = (list, tuple, set, frozenset)
_OF_PYTHON = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType, np.ufunc)


def side_effect_of(function: Callable[..., Any]) -> str:
    """Return what a function may do that is not seen from outside, "" if nothing.

    >>> side_effect_of(lambda x: np.sum(x**2)), side_effect_of(lambda x: print(x))
    ('', 'print')
    """
    waiting: list[Any] = [function]
    seen = set[int]()
    for value in waiting:  # which grows
        if isinstance(value, _Effect):
            return value.name
        if isinstance(value, _VALUES) or id(value) in seen:
            continue
        seen.add(id(value))
        if len(seen) > REACHED:
            return f"more than {REACHED:,} objects"
        waiting += _reached(value)
    return ""


class _Effect:
    """A side effect, by its name."""

    def __init__(self, value: Any) -> None:
        named = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        self.name = value if isinstance(value, str) else named or f"an object of type {type(value).__qualname__}"


def _reached(value: Any) -> list[Any]:
    """Return what a value leads to."""
    if isinstance(value, _CONTAINERS):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, types.FunctionType):
        return _of_function(value)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, property):
        return [value.fget, value.fset]
    if isinstance(value, staticmethod | classmethod):
        return [value.__func__]
    if isinstance(value, np.vectorize):
        return [value.pyfunc]
    if isinstance(value, types.ModuleType):
        return [] if _is_known(value.__name__) else [_Effect(value)]
    if isinstance(value, _OF_PYTHON):
        return [] if _is_known_builtin(value) else [_Effect(value)]
    return _of_class(value) if isinstance(value, type) else _of_object(value)


def _is_known(module: str | None) -> bool:
    return (module or "").partition(".")[0] in _PACKAGES and not (module or "").startswith("numpy.random")


def _is_known_builtin(value: Any) -> bool:
    owner = getattr(value, "__self__", None)
    if owner is builtins or isinstance(owner, type):
        return (value if owner is builtins else owner).__name__ in _BUILTINS
    return not isinstance(value, types.BuiltinFunctionType) or _is_known(value.__module__)


def _of_function(value: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or () if _is_bound(cell)]
    if is_library(value.__code__.co_filename):
        return [part for part in cells if isinstance(part, types.FunctionType | types.MethodType | functools.partial)]
    if is_installed(value.__code__.co_filename):
        return [] if _is_known(value.__module__) else [_Effect(value)]
    return [*cells, value.__defaults__, value.__kwdefaults__, *_named(value.__code__, value.__globals__)]


def _is_bound(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False


def _named(code: types.CodeType, space: dict[str, Any]) -> Iterator[Any]:
    """Yield what the names in code stand for; an attribute's may be one of a builtin or a global too."""
    codes = [code]
    for each in codes:  # which grows
        codes += [part for part in each.co_consts if isinstance(part, types.CodeType)]
        yield from (_Effect(step.opname) for step in dis.get_instructions(each) if step.opname in _UNSEEN)
        for name in each.co_names:
            if name in _EFFECTS:
                yield _Effect(name)
            elif name in space:
                yield from _of_global(space[name], each.co_names)
            else:
                yield vars(builtins).get(name)


def _of_global(value: Any, names: tuple[str, ...]) -> list[Any]:
    """Return a value; of a module of the user's, what the names in the same code are there."""
    if not isinstance(value, types.ModuleType) or is_installed(getattr(value, "__file__", None) or "<frozen "):
        return [value]
    return [vars(value)[name] for name in names if name in vars(value)]


def _of_class(kind: type) -> list[Any]:
    if kind.__module__ == "builtins":
        return [] if kind.__name__ in _BUILTINS or issubclass(kind, Exception) else [_Effect(kind)]
    if _is_known(kind.__module__) or kind.__module__ in _TYPES:
        return []
    if kind.__module__ in sys.stdlib_module_names or is_installed(_file_of(kind)):
        return [_Effect(kind)]
    methods = (types.FunctionType, property, staticmethod, classmethod)
    inside = [
        part
        for name, part in vars(kind).items()
        if (isinstance(part, methods) and name != "__repr__") or not name.startswith("__")
    ]
    return [*inside, *kind.__bases__]


def _file_of(kind: type) -> str:
    return getattr(sys.modules.get(kind.__module__), "__file__", None) or ""


def _of_object(value: Any) -> list[Any]:
    kind = type(value)
    if isinstance(value, Iterator | np.random.Generator | np.random.RandomState):
        return [_Effect(value)]
    if kind.__module__.partition(".")[0] in ("_collections", "numpy", "scipy"):
        return []
    if kind.__module__ == "builtins" or is_library(_file_of(kind)):
        return [_Effect(value)]
    slots = [name for base in kind.__mro__ for name in getattr(base, "__slots__", ())]
    held = [getattr(value, name) for name in slots if hasattr(value, name)]
    return [kind, *held, *(members_of(value) or {}).values()]
