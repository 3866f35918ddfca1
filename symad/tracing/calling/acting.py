"""Wrap a user's object while its operator, attribute or item is asked for, so that its methods are rewritten.

`a + b` runs `type(a).__add__`, which Python finds without a call that rewritten code could see (`rewriting`). So an
operand whose class has such methods is wrapped for that moment in an object of a generated class, whose methods call
the rewritten ones with the object itself. The wrapper is not kept: the methods take and return the user's own objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from symad.tracing.calling.stand_ins import modules_with_methods, replacements
from symad.tracing.calling.user_place import is_library, is_standard
from symad.tracing.values.traced import CALLING_METHODS, Traced

Function = Callable[..., Any]

_BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "pow", "matmul", "lshift", "rshift", "and", "or",
    "xor",
)  # fmt: skip
_OTHERS = (
    "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "eq", "ne", "getitem", "setitem", "delitem", "contains",
    "len", "iter", "next", "reversed", "enter", "exit", "bool", "float", "int", "index", "complex", "round", "trunc",
    "floor", "ceil",
)  # fmt: skip
_METHODS = frozenset(f"__{prefix}{name}__" for name in _BINARY for prefix in ("", "r", "i")).union(
    f"__{name}__" for name in _OTHERS
)
_PRIORITIES = ("__array_priority__", "__pandas_priority__")  # which decide that the other operand answers an operator
_STANDARD = frozenset({"statistics", "functools", "contextlib", "fractions"})  # modules whose code is rewritten too

PANDAS_OPERATORS = "pandas.core.roperator"  # pandas finds these functions in tables, so they stay unchanged


def is_users(f: FunctionType) -> bool:
    """Whether a function's code is rewritten: the user's, that of Python packages, some of the standard library's.

    So are SciPy's modules that define classes with stand-ins for methods, and NumPy's modules that call methods.
    """
    file, module = f.__code__.co_filename, f.__globals__.get("__name__", "")
    if is_standard(file):
        return module in _STANDARD
    return not is_library(file) or module in modules_with_methods() or module in CALLING_METHODS


def acting_class(kind: type, callee: Callable[[Any], Any], known: dict[type, Any]) -> type[Acting] | None:
    """Return the class of the wrappers for instances of a class, None if they need no wrapper.

    `known` has those of other classes. Base classes are added: they decide whose reflected operator comes first.
    """
    if issubclass(kind, type | np.ndarray | Traced) or not kind.__flags__ & _HEAP:
        return None
    for base in reversed(kind.__mro__):
        if base not in known:
            known[base] = _made(base, callee, known)
    wrapper: type[Acting] | None = known[kind]
    return wrapper


_HEAP = 1 << 9  # of a class that Python code has made


class Acting:
    """An operand whose operators call the rewritten methods of its class.

    Traced values leave operators with it to it (`is_acting`).
    """

    __slots__ = ("_object",)
    is_acting = True
    accessors: dict[str, Any] = {}  # noqa: RUF012 - of each class its own
    callee: Callable[[Any], Any]

    def __init__(self, value: Any) -> None:
        object.__setattr__(self, "_object", value)

    def __getattribute__(self, name: str) -> Any:
        value, kind = _object_of(self), type(self)
        accessor = kind.accessors.get(name)
        if isinstance(accessor, property) and accessor.fget is not None:
            return kind.callee(accessor.fget)(value)
        if isinstance(accessor, functools.cached_property):
            kept = vars(value)
            if name not in kept:
                kept[name] = kind.callee(accessor.func)(value)
            return kept[name]
        if (own := kind.accessors.get("__getattribute__")) is not None:
            return kind.callee(own)(value, name)
        otherwise = kind.accessors.get("__getattr__")
        if otherwise is None:
            return getattr(value, name)
        try:
            return object.__getattribute__(value, name)
        except AttributeError:
            return kind.callee(otherwise)(value, name)

    def __setattr__(self, name: str, new: Any) -> None:
        value, kind = _object_of(self), type(self)
        accessor = kind.accessors.get(name)
        if isinstance(accessor, property) and accessor.fset is not None:
            kind.callee(accessor.fset)(value, new)
        elif (own := kind.accessors.get("__setattr__")) is not None:
            kind.callee(own)(value, name, new)
        else:
            setattr(value, name, new)

    def __delattr__(self, name: str) -> None:
        delattr(_object_of(self), name)

    def __hash__(self) -> int:
        return hash(_object_of(self))


def _object_of(acting: Any) -> Any:
    return object.__getattribute__(acting, "_object")


def _made(kind: type, callee: Callable[[Any], Any], known: dict[type, Any]) -> type[Acting] | None:
    """Return the wrapper class for a class with known bases."""
    above = tuple(wrapper for base in kind.__bases__ if (wrapper := known.get(base)) is not None)
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        members |= vars(base)
    accessors = {name: member for name, member in members.items() if _is_accessor(name, member)}
    if not (above or accessors or any(_is_rewritten(members[name]) for name in _METHODS & members.keys())):
        return None
    space = {name: _answer(kind, name, known) for name in _METHODS & members.keys()}
    if issubclass(kind, list | tuple | str | bytes):
        space.setdefault("__radd__", lambda self, other: other + _object_of(self))  # the class of the left one answers
    space |= {name: members[name] for name in _PRIORITIES if name in members}
    if "__array_ufunc__" in members:
        space["__array_ufunc__"] = None if members["__array_ufunc__"] is None else _delegating("__array_ufunc__")
    space |= {"__slots__": (), "accessors": accessors, "callee": staticmethod(callee), "__hash__": Acting.__hash__}
    return type(kind.__name__, above or (Acting,), space)


def _delegating(name: str) -> Function:
    def call(self: Acting, *args: Any, **keywords: Any) -> Any:
        value = _object_of(self)
        return getattr(type(value), name)(value, *map(_itself, args), **keywords)

    return call


def _itself(argument: Any) -> Any:
    return _object_of(argument) if Acting in type(argument).__mro__ else argument


def _is_rewritten(member: Any) -> bool:
    return type(member) is FunctionType and (is_users(member) or id(member) in replacements())


def _is_accessor(name: str, member: Any) -> bool:
    if type(member) is property:
        return any(_is_rewritten(part) for part in (member.fget, member.fset))
    if type(member) is functools.cached_property:
        return _is_rewritten(member.func)
    return name in ("__getattr__", "__getattribute__", "__setattr__") and _is_rewritten(member)


def _answer(kind: type, name: str, known: dict[type, Any]) -> Any:
    """Return a method of a wrapper class; an inherited method is that of the wrapper of the base class."""
    owner = next((base for base in kind.__mro__ if name in vars(base)), type)
    if owner is not kind and known.get(owner) is not None:
        return vars(known[owner])[name]
    member: Any = vars(owner).get(name)
    return _calling(member) if _is_rewritten(member) else _delegating(name)


def _calling(method: FunctionType) -> Function:
    def call(self: Acting, *args: Any) -> Any:
        return type(self).callee(method)(_object_of(self), *map(_itself, args))

    call.__name__ = method.__name__
    return call
