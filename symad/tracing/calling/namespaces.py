"""Namespaces: where names stand that stand-ins may take the place of: modules, enclosing functions, classes."""

from __future__ import annotations

import builtins
import contextlib
import statistics
import sys
import sysconfig
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from symad.reach.code_facts import facts_of
from symad.tracing.calling.jitted import jitted_forms, python_form
from symad.tracing.calling.merged_calls import call_forms
from symad.tracing.calling.stand_ins import owners, replaced
from symad.tracing.calling.user_place import in_library_of_objects, is_library, library_function, user_frames
from symad.tracing.numpy.distributions import MODULES
from symad.tracing.values.indexed import is_table

Namespace = dict[str, Any]


class Cell:
    """A variable of an enclosing function, in the form of a namespace with one name."""

    def __init__(self, cell: CellType) -> None:
        self.cell = cell

    def items(self) -> list[tuple[str, Any]]:
        return [("", self.cell.cell_contents)]

    def values(self) -> list[Any]:
        return [self.cell.cell_contents]

    def get(self, name: str, default: Any = None) -> Any:
        return self.cell.cell_contents

    def update(self, names: dict[str, Any]) -> None:
        for value in names.values():
            self.cell.cell_contents = value

    def __contains__(self, name: str) -> bool:
        return True  # so that no name of a builtin is added


class Members:
    """The attributes of a class, in the form of a namespace."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def items(self) -> list[tuple[str, Any]]:
        return list(vars(self.kind).items())

    def values(self) -> list[Any]:
        return list(vars(self.kind).values())

    def get(self, name: str, default: Any = None) -> Any:
        return vars(self.kind).get(name, default)

    def update(self, names: dict[str, Any]) -> None:
        for name, value in names.items():
            setattr(self.kind, name, value)

    def __contains__(self, name: str) -> bool:
        return True


class Attributes:
    """The attributes of an object, in the form of a namespace."""

    def __init__(self, owner: Any) -> None:
        self.owner = vars(owner)

    def items(self) -> list[tuple[str, Any]]:
        return list(self.owner.items())

    def values(self) -> list[Any]:
        return list(self.owner.values())

    def get(self, name: str, default: Any = None) -> Any:
        return self.owner.get(name, default)

    def update(self, names: dict[str, Any]) -> None:
        self.owner.update(names)

    def __contains__(self, name: str) -> bool:
        return True


Names = Namespace | Cell | Members | Attributes


def identity(namespace: Names) -> int:
    """Return what tells namespaces apart."""
    if isinstance(namespace, Cell):
        return id(namespace.cell)
    if isinstance(namespace, Attributes):
        return id(namespace.owner)
    return id(namespace.kind if isinstance(namespace, Members) else namespace)


def of_scipy(error: BaseException) -> list[Names]:
    """Return the members of classes of SciPy and pandas whose methods have stand-ins, if an error came from them.

    Of distributions those of their modules too: their formulas are Python code like a user's.
    """
    frames = traceback.walk_tb(error.__traceback__)
    if any(frame.f_globals is vars(statistics) for frame, _ in frames):
        return [vars(statistics)]  # NormalDist and others are Python code like a user's, of functions of math
    package = ".".join(library_function(error).split(".")[:2])
    package = package if package.startswith("scipy.") else in_library_of_objects(error)
    if not package:
        return []
    names: list[Names] = []
    if package == "scipy.stats":
        names += [vars(sys.modules[name]) for name in MODULES if name in sys.modules]
    places = [name.rpartition(".") for name in owners() if name.startswith(f"{package}.")]
    found = (getattr(sys.modules.get(module), name, None) for module, _, name in places)
    return names + [Members(kind) for kind in found if isinstance(kind, type)]


def enclosed(f: Any, deciding: frozenset[CodeType] = frozenset()) -> list[Cell]:
    """Return the variables of enclosing functions that hold something with a stand-in, or a function with some code."""
    found = list[Cell]()
    for function in closed_over(f):
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                variable = Cell(cell)
                items = variable.items()
                has_form = replaced(items) or call_forms(items, deciding) or is_table(cell.cell_contents)
                if jitted_forms(items) or (has_form and not is_library(function.__code__.co_filename)):
                    found.append(variable)
    return found


def owners_in(error: BaseException) -> list[Names]:
    """Return the attributes of the objects that the user's code had in its variables when an error was raised."""
    found: dict[int, Names] = {}
    waiting = [value for frame in user_frames(error) for value in frame.f_locals.values()]
    while waiting and len(found) < _OWNERS:
        value = waiting.pop()
        kind = type(value)
        module = sys.modules.get(kind.__module__)
        if not isinstance(getattr(value, "__dict__", None), dict) or isinstance(
            value, type | ModuleType | FunctionType
        ):
            continue
        if id(vars(value)) not in found and module is not None and not _is_of_library(module):
            found[id(vars(value))] = Attributes(value)
            waiting += vars(value).values()
    return list(found.values())


def _is_of_library(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    standard = isinstance(file, str) and file.startswith(_STANDARD) and "site-packages" not in file
    return module is builtins or standard or (isinstance(file, str) and is_library(file))


def used_by(f: Any) -> list[Names]:
    """Return the namespaces that a function uses before it has been run: its module's, and those reached from there."""
    modules = {id(each.__globals__): each.__globals__ for each in closed_over(f) if _is_users(each.__globals__)}
    return [*reached(list(modules.values())), *enclosed(f)]


def asks_for_types(f: Any) -> bool:
    """Whether type(...) is called in a function, in those around it or in those of its module that it calls by name.

    Nothing tells when it is given a traced value, so a stand-in of it answers from the beginning.
    """
    seen, waiting = set[int](), list(closed_over(f))
    while waiting and len(seen) < _FUNCTIONS:
        function = waiting.pop()
        if id(function.__code__) in seen or is_library(function.__code__.co_filename):
            continue
        seen.add(id(function.__code__))
        names = facts_of(function.__code__).names
        if "type" in names and "type" not in function.__globals__:
            return True
        waiting += [value for name in names if type(value := function.__globals__.get(name)) is FunctionType]
    return False


def closed_over(f: Any) -> Iterator[FunctionType]:
    """Yield a function and those in the variables around it."""
    seen, waiting = set[int](), [f]
    while waiting:
        function = waiting.pop()
        if type(function) is partial:  # `isinstance` would ask an object that may answer wrongly
            waiting.append(function.func)
        function = python_form(function) or function
        if type(function) is not FunctionType or id(function) in seen:
            continue
        seen.add(id(function))
        yield function
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                waiting.append(cell.cell_contents)


def reached(namespaces: Sequence[Names]) -> list[Names]:
    """Return the namespaces of the user's modules whose functions, classes or names these ones use."""
    found, waiting = list(namespaces), deque(namespaces)
    seen: dict[int, Names] = {id(namespace): namespace for namespace in namespaces}
    while waiting:
        for value in list(waiting.popleft().values()):
            namespace = _namespace_of(value)
            if namespace is None or id(namespace) in seen:
                continue
            seen[id(namespace)] = namespace
            if _is_users(namespace):
                found.append(namespace)
                waiting.append(namespace)
    return found


def _namespace_of(value: Any) -> Namespace | None:
    if type(value) is FunctionType:
        return value.__globals__
    if issubclass(type(value), type):
        return getattr(sys.modules.get(value.__module__), "__dict__", None)
    return vars(value) if issubclass(type(value), ModuleType) else None


def _is_users(namespace: Namespace) -> bool:
    file = namespace.get("__file__")
    return isinstance(file, str) and not is_library(file) and not file.startswith(_INSTALLED)


_FUNCTIONS = 200  # that are looked at
_OWNERS = 100  # objects whose attributes are looked at
_STANDARD = sysconfig.get_path("stdlib")
_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
