"""Calling a user's function; where plain names stand in the way of tracing, again with those names shadowed.

`math.sin(x)`, `float(x)`, `np.array([x[0], 1.0])` and `z = np.zeros(3); z[0] = x[0]` convert to plain numbers before
any protocol of NumPy is asked. When a traced value refuses such a conversion, the function is called once more (at
most four times), while the stand-ins of `stand_ins` take the place of these names in the modules of the user's code.
NumPy and math themselves are never changed. Other threads see the stand-ins too, and get the originals' results.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock
from types import CellType, FunctionType, ModuleType
from typing import Any

from symad.errors import TraceError
from symad.tracing.calling.stand_ins import BUILTINS, arrays_are_traced, memoised, replacements
from symad.tracing.calling.user_place import is_library, library_function, raised_place, user_globals
from symad.tracing.values.traced import NumberError, StoreError

Namespace = dict[str, Any]

_ABSENT = object()
_CACHED = functools._lru_cache_wrapper
_ASKED_OF_SYMPY = ("cannot determine truth value of Relational", "Cannot convert expression to float")
_RETRIED = (  # a TraceError is a TypeError; the last two are those of SciPy's C code
    TypeError, ValueError, IndexError, AttributeError, RuntimeError, SystemError,
)  # fmt: skip
_RETRIES = 4  # code that is made anew at every call (sympy.lambdify inside the function) has ever new names
_OBJECT_LOOPS = (  # how NumPy's refusals of object arrays read
    "loop of ufunc does not support argument",
    "Cannot cast ufunc",
    "not supported for the input types",
    "No loop matching the specified signature",
    "must be real number",
    "object arrays are not supported",
    "array type dtype('O') not supported",
    "array type not supported",
    "can't convert type 'Scalar'",
)
_STORES = (  # how NumPy words a store or an index that it could not do
    "setting an array element with a sequence", "Error setting single item of array", "only integers, slices",
    "assignment destination is read-only", "output array is read-only",
)  # fmt: skip


def call(f: Callable[..., Any], arguments: Callable[[], Sequence[Any]]) -> Any:
    """Call a user's function on traced arguments, which are made afresh for every attempt.

    Errors are those of the function. Where a conversion to plain numbers was the cause and shadowed names do not
    help, TraceError says what was met and what to write instead.
    """
    attempt, retries = _active.get(), 0
    while True:
        try:
            with _shadowed(attempt):
                return f(*arguments())
        except _RETRIED as error:
            better = _better(attempt, error, f) if retries < _RETRIES else None
            if better is None:
                _explain(error)
                raise
            attempt, retries = better, retries + 1


@dataclass(frozen=True)
class _Attempt:
    """Which modules' names are shadowed, and whether arrays of floats are made as traced arrays."""

    namespaces: tuple[Names, ...] = ()
    arrays: bool = False

    def holds(self, namespace: Names) -> bool:
        return any(_identity(namespace) == _identity(known) for known in self.namespaces)


_PLAIN = _Attempt()
_active: ContextVar[_Attempt] = ContextVar("symad_shadowed_names", default=_PLAIN)


def _better(attempt: _Attempt, error: BaseException, f: Callable[..., Any]) -> _Attempt | None:
    """Return the next thing to try, None when nothing is left or the error is of another kind."""
    if not _is_conversion(error):
        return None
    found = _new(attempt, [*user_globals(error), *_enclosed(f)])
    stores = _has(error, StoreError) or any(text in str(error) for text in _STORES)
    if attempt.namespaces and (not found or stores):  # who made the array may be elsewhere
        found += _new(_Attempt((*attempt.namespaces, *found)), _reached((*attempt.namespaces, *found)))
    arrays = attempt.arrays or stores or not found
    if not found and arrays == attempt.arrays:
        return None
    return _Attempt((*attempt.namespaces, *found), arrays)


def _new(attempt: _Attempt, namespaces: Sequence[Names]) -> tuple[Names, ...]:
    fresh = {_identity(namespace): namespace for namespace in namespaces if not attempt.holds(namespace)}
    return tuple(fresh.values())


class _Cell:
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


Names = Namespace | _Cell


def _identity(namespace: Names) -> int:
    return id(namespace.cell if isinstance(namespace, _Cell) else namespace)


def _enclosed(f: Any) -> list[_Cell]:
    """Return the variables of enclosing functions that hold something with a stand-in."""
    table, found, seen, waiting = replacements(), list[_Cell](), set[int](), [f]
    while waiting:
        function = waiting.pop()
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # an empty cell
                waiting.append(cell.cell_contents)
                if id(cell.cell_contents) in table and not is_library(function.__code__.co_filename):
                    found.append(_Cell(cell))
    return found


def _reached(namespaces: Sequence[Names]) -> list[Names]:
    """Return the namespaces of the user's modules whose functions, classes or names these ones use."""
    found, waiting = list(namespaces), deque(namespaces)
    while waiting:
        for value in list(waiting.popleft().values()):
            namespace = _namespace_of(value)
            if namespace is not None and not any(namespace is known for known in found):
                found.append(namespace)
                waiting.append(namespace)
    return found


def _namespace_of(value: Any) -> Namespace | None:
    if isinstance(value, FunctionType):
        namespace: Namespace | None = value.__globals__
    elif isinstance(value, type):
        namespace = getattr(sys.modules.get(value.__module__), "__dict__", None)
    else:
        namespace = vars(value) if isinstance(value, ModuleType) else None
    file = namespace and namespace.get("__file__")
    users = isinstance(file, str) and not is_library(file) and not file.startswith(_INSTALLED)
    return namespace if users else None


_INSTALLED = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _is_conversion(error: BaseException) -> bool:
    """Whether a traced value, or NumPy on an array of them, refused to become plain numbers."""
    if (
        _has(error, NumberError)
        or _has(error, StoreError)
        or any(text in str(error) for text in (*_OBJECT_LOOPS, *_STORES))
    ):
        return True
    return library_function(error).startswith("scipy.") and not isinstance(error, TraceError | RuntimeError)


def _has(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an error is of a kind, or was caused by one that is (NumPy wraps them)."""
    seen = 0
    while error is not None and seen < 10:
        if isinstance(error, kind):
            return True
        error, seen = error.__cause__ or error.__context__, seen + 1
    return False


def _explain(error: BaseException) -> None:
    """Raise a TraceError in place of what NumPy, SciPy and SymPy say of traced values that they cannot take."""
    if any(text in str(error) for text in _ASKED_OF_SYMPY):
        raise TraceError(
            f"a SymPy expression was asked for a number or a truth value ({error})",
            where=raised_place(error),
            why="SymPy does not know the values of traced values in it",
            do="use the NumPy function there (np.sin instead of sympy.sin), or sympy.Piecewise for a condition",
        ) from error
    if isinstance(error, TraceError) or not _is_conversion(error) or "read-only" in str(error):
        return  # an array may be read-only because the user wants it so
    name = library_function(error)
    if name:
        said = error.__cause__ if isinstance(error, SystemError) and error.__cause__ is not None else error
        solver = "; a root, a fixed point or a minimum: symad.root, fixed_point, argmin"
        raise TraceError(
            f"{name} got a traced value ({said})",
            where=raised_place(error),
            why="it computes with plain numbers, which would lose the derivative",
            do=f"write this step with NumPy functions, or with those of scipy.special{solver * ('optimize' in name)}",
        ) from error
    raise TraceError(
        f"a NumPy function got an object array ({error})",
        where=raised_place(error),
        why="np.array([...]) and np.full make one of traced values, and NumPy's compiled loops cannot trace it",
        do="make the array with np.stack([...]), np.concatenate or np.zeros_like(x)",
    ) from error


# Putting the stand-ins in place. Several threads may shadow one module: the last one to leave restores it.


class _Patch:
    """The names of one namespace that are shadowed, with their former values, and by how many calls."""

    def __init__(self, namespace: Names) -> None:
        self.namespace, self.calls = namespace, 0
        table = replacements()
        self.names = {name: table[id(value)][1] for name, value in namespace.items() if id(value) in table}
        self.names |= {name: form for name, form in BUILTINS.items() if name not in namespace}
        self.names |= {name: memoised(value) for name, value in namespace.items() if isinstance(value, _CACHED)}
        self.former = {name: namespace.get(name, _ABSENT) for name in self.names}

    def restore(self) -> None:
        for name, value in self.former.items():
            if self.namespace.get(name) is not self.names[name]:
                continue  # the function has bound the name anew
            if value is _ABSENT:
                del self.namespace[name]  # type: ignore[union-attr]  # a cell is never empty
            else:
                self.namespace.update({name: value})


_lock = Lock()
_patches: dict[int, _Patch] = {}  # by id of the namespace; an entry lives as long as calls that need it


def _enter(namespace: Names) -> None:
    with _lock:
        patch = _patches.get(_identity(namespace))
        if patch is None:
            patch = _patches[_identity(namespace)] = _Patch(namespace)
            namespace.update(patch.names)
        patch.calls += 1


def _leave(namespace: Names) -> None:
    with _lock:
        patch = _patches[_identity(namespace)]
        patch.calls -= 1
        if patch.calls == 0:
            _patches.pop(_identity(namespace)).restore()


@contextmanager
def _shadowed(attempt: _Attempt) -> Iterator[None]:
    if attempt is _active.get():  # as it is: the first attempt, or inside a function that runs with shadows
        yield
        return
    tokens = _active.set(attempt), arrays_are_traced.set(attempt.arrays)
    with ExitStack() as stack:
        try:
            for namespace in attempt.namespaces:
                _enter(namespace)
                stack.callback(_leave, namespace)
            yield
        finally:
            _active.reset(tokens[0])
            arrays_are_traced.reset(tokens[1])
