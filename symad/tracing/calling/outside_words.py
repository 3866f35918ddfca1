"""Outside words: whether the code that a function reaches by name has words for outside inputs, before it is run.

Names alone are looked at, in the user's code and in installed packages, and so more functions are found than ask for
anything; those are run once more, and looked at while they run (see `outside_inputs`).
"""

from __future__ import annotations

import functools
import random
import sys
import types
from collections.abc import Iterator
from typing import Any
from weakref import ProxyTypes

import numpy as np

from symad.tracing.calling.jitted import python_form
from symad.tracing.calling.user_place import is_library, is_standard

REACHED = 5_000  # objects that are looked at

_WORDS = frozenset({
    "random", "default_rng", "RandomState", "urandom", "getrandom", "SystemRandom", "rvs", "uuid1", "uuid4",
    "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time_ns", "process_time", "process_time_ns",
    "thread_time", "localtime", "gmtime", "ctime", "clock_gettime", "now", "today", "utcnow",
    "open", "input", "listdir", "scandir", "iterdir", "glob", "loadtxt", "genfromtxt", "fromfile", "memmap", "load",
    "loadmat", "environ", "environb", "getenv", "getenvb",
})  # fmt: skip
_MODULES = frozenset({"time", "random", "secrets", "numpy.random"})
_RANDOM = (np.random.Generator, np.random.RandomState, random.Random)
_PLAIN = frozenset({int, float, bool, complex, str, bytes, type(None), np.ndarray, np.float64, np.int64})
_CONTAINERS = (list, tuple, set, frozenset)
_LEFT_OUT = frozenset({"builtins", "numpy", "scipy", "sympy", "mpmath", "numba", "optree", "symad", "codegen"})
_MAKERS = frozenset({"__new__", "__init__", "__post_init__", "__init_subclass__", "__set_name__"})
_TEST_TOOLS = frozenset({"_pytest", "pytest"})  # which rewrite assert statements


def has_outside_words(*roots: Any) -> bool:
    """Whether what is reached by name may ask for something outside; True where that is too much to look at.

    >>> has_outside_words(lambda x: np.sin(x)), has_outside_words(lambda x: x * np.random.rand())
    (False, True)
    """
    return Reached(roots).asks()


class Reached:
    """Objects that are looked at; members of modules and classes wait for code that has their names.

    `functions` are those of the user's and of packages, `members` what their objects hold.
    """

    def __init__(self, roots: tuple[Any, ...]) -> None:
        self.waiting = list(roots)  # is extended: `+=` asks classes derived from lists
        self.functions: list[types.FunctionType] = []
        self.members: list[dict[str, Any]] = []
        self.names = set[str]()
        self.spaces: list[dict[str, Any]] = []
        self.kinds: set[int] = set[int]()  # classes of objects that were looked at

    def asks(self) -> bool:
        """Whether one of them may ask for something outside."""
        seen = set[int]()
        for value in self.waiting:  # which grows
            if (kind := type(value)) in _PLAIN or kind in ProxyTypes or id(value) in seen:
                continue
            seen.add(id(value))
            if len(seen) > REACHED or self._asks(value):
                return True
        return False

    def _asks(self, value: Any) -> bool:
        """Whether a value itself has such words; what it leads to is looked at later."""
        if isinstance(value, types.FunctionType):
            return self._of_function(value)
        if isinstance(value, np.ndarray | np.generic | int | float | str | bytes):
            return False
        if isinstance(value, (*_CONTAINERS, dict)):
            parts = value.values() if isinstance(value, dict) else value
            if not _PLAIN.issuperset(map(type, parts)):  # there may be millions
                self.waiting.extend(parts)
        elif isinstance(value, types.MethodType):
            self.waiting.extend([value.__func__, value.__self__])
        elif isinstance(value, functools.partial):
            self.waiting.extend([value.func, *value.args, *value.keywords.values()])
        elif isinstance(value, property | staticmethod | classmethod | functools.cached_property | np.vectorize):
            held = (getattr(value, name, None) for name in ("fget", "fset", "__func__", "func", "pyfunc"))
            self.waiting.extend([part for part in held if part is not None])
        elif isinstance(value, types.ModuleType):
            return value.__name__ in _MODULES or self._of_space(value.__name__, vars(value))
        elif isinstance(value, type):
            self.waiting.extend(value.__bases__)
            return self._of_space(str(value.__module__), dict(vars(value)))
        else:
            return self._of_object(value)
        return False

    def _of_function(self, f: types.FunctionType) -> bool:
        if wrapped := getattr(f, "__wrapped__", None):
            self.waiting.append(wrapped)
        cells = [part for cell in f.__closure__ or () for part in _contents(cell)]
        file = f.__code__.co_filename
        if is_library(file) or is_standard(file):
            self.waiting.extend(filter(callable, cells))
            return f.__module__ in _MODULES
        self.functions.append(f)
        self.waiting.extend([*cells, *(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()])
        names = {name for code in codes_of(f.__code__) for name in code.co_names}
        self.waiting.extend([f.__globals__[name] for name in names if name in f.__globals__])
        return self._has(names)

    def _has(self, names: set[str]) -> bool:
        """Add names that code has; whether one of them is such a word."""
        if not names.isdisjoint(_WORDS) or any(name.startswith("read_") for name in names):
            return True
        fresh = names - self.names
        self.names |= fresh
        self.waiting.extend([space[name] for space in self.spaces for name in fresh & space.keys()])
        return False

    def _of_space(self, module: str, space: dict[str, Any]) -> bool:
        package = module.partition(".")[0]
        if package in _LEFT_OUT | _TEST_TOOLS or package in sys.stdlib_module_names:
            return False
        self.spaces.append(space)
        called = (name for name in space if name.startswith("__") and name.endswith("__") and callable(space[name]))
        self.waiting.extend([space[name] for name in {*(self.names & space.keys()), *called}])
        return False

    def _of_object(self, value: Any) -> bool:
        if isinstance(value, _RANDOM):
            return True
        if (python := python_form(value)) is not None:
            return self._of_function(python)
        kind = type(value)
        if isinstance(value, types.BuiltinFunctionType | types.MethodWrapperType):
            return isinstance(value.__self__, _RANDOM) or str(getattr(value, "__module__", "")) in _MODULES
        if str(kind.__module__).partition(".")[0] in _LEFT_OUT:
            self.waiting.extend(filter(callable, (members_of(value) or {}).values()))
            return False
        slots = (name for base in kind.__mro__ for name in _names_of(getattr(base, "__slots__", ())))
        self.waiting.extend([getattr(value, name) for name in slots if hasattr(value, name)])
        members = members_of(value) or {}
        self.members.append(members)
        self.waiting.extend(members.values())
        for base in kind.__mro__:
            if id(base) not in self.kinds:  # what has made the object is not run again
                self.kinds.add(id(base))
                space = {name: member for name, member in vars(base).items() if name not in _MAKERS}
                self._of_space(str(base.__module__), space)
        return False


def members_of(value: Any) -> dict[str, Any] | None:
    """Return the dict of an object's attributes, None if it has none; the code of its class is not asked.

    >>> members_of(types.SimpleNamespace(a=1)), members_of(1.5)
    ({'a': 1}, None)
    """
    try:
        found = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):  # TypeError: of a class
        return None
    return found if isinstance(found, dict) else None


def _names_of(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def codes_of(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield code and that of the functions and comprehensions in it."""
    codes = [code]
    for each in codes:  # which grows
        yield each
        codes += [part for part in each.co_consts if isinstance(part, types.CodeType)]


def _contents(cell: types.CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # nothing is bound to it
        return []
