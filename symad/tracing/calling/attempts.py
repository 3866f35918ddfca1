"""Call a user's function as it is. Where plain names stop the trace, call a rewritten form of its code.

`math.sin(x)`, `float(x)`, `np.array([x[0], 1.0])` and `z = np.zeros(3); z[0] = x[0]` convert to plain numbers before
any protocol of NumPy is asked. If a traced value refuses such a conversion, the function is called again, at most four
times, in a form whose calls stand-ins answer (`rewriting`, `dispatch`). Nothing of the user's changes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from inspect import unwrap
from types import CodeType, FunctionType
from typing import Any
from weakref import WeakSet

from codegen.bound import bound
from codegen.limits import bytes_are_limited
from codegen.records import dataclass
from symad.errors import TraceError, WorkbenchError
from symad.reach.code_facts import facts_of
from symad.reach.known_packages import is_library
from symad.reach.reachable_state import reached_functions
from symad.tracing.calling.dispatch import DispatchedRun
from symad.tracing.calling.memory import told
from symad.tracing.calling.merged_calls import PathsError
from symad.tracing.calling.raised import (
    STORES,
    caused_by,
    causes_of,
    is_conversion,
    names_a_traced_value,
    watching_raised,
)
from symad.tracing.calling.recorded_errors import (
    Note,
    Watch,
    innermost_watch,
    library_refusal,
    noted,
    objects_refusal,
    python_refusal,
    swallowed_error,
    watching,
)
from symad.tracing.calling.rewriting import Style
from symad.tracing.calling.running import Key, callee, key_of, running
from symad.tracing.calling.stand_ins import arrays_are_traced
from symad.tracing.calling.user_place import (
    in_library_of_objects,
    library_function,
    raised_by_user,
    raised_in_own_code,
    raised_place,
)
from symad.tracing.values.object_arrays import ObjectArrayError
from symad.tracing.values.traced import NumberError, StoreError

Function = Callable[..., Any]

_ASKED_OF_SYMPY = ("cannot determine truth value of Relational", "Cannot convert expression to float")
_RETRIED = (  # a TraceError is a TypeError; the last three are SciPy's: of C code, and of objects in arrays (1.18)
    TypeError, ValueError, IndexError, AttributeError, RuntimeError, SystemError, DeprecationWarning,
)  # fmt: skip
_RETRIES = 4


def call(f: Function, arguments: Callable[[], Sequence[Any]], *, alone: bool = False) -> Any:
    """Call a user's function on traced arguments, which are made afresh for every attempt.

    Errors are those of the function. If a conversion to plain numbers was the cause and stand-ins do not help, a
    TraceError says what to write instead. So it does if the function caught such an error and went on (see
    `recorded_errors`).
    """
    return attempted(f, lambda form: form(*arguments()), alone=alone)


def attempted(f: Function, run: Callable[[Function], Any], *, alone: bool = False) -> Any:
    """Return the result of `run`, which calls a form of the user's function f once or along all its paths; see `call`.

    Errors inside another such call belong to the outer call, which runs again as a whole, unless this one is `alone`.
    """
    if innermost_watch() is not None and not alone:
        return _attempted_inside(f, run)
    around, attempt, retries, reached = innermost_watch(), _active.get(), 0, reached_code(f)
    if attempt is _PLAIN and (bytes_are_limited() or reached.asks_for_types):
        attempt = _Attempt(Style(operators=reached.picks_columns))  # stand-ins answer before NumPy and Python do
    refused: Exception | None = None
    plain: _Attempt | None = None  # before loops are read
    while True:
        error, result = None, None
        watch = Watch(attempt.style is not None, attempt.objects, attempt.arrays, reached.asks_for_identity)
        with watching(watch):
            try:
                with _dispatching(attempt), watching_raised(watch, handles=reached.handles):
                    result = run(callee(f))
                if not watch.notes:
                    return result
            except Exception as raised:
                error = told(raised)
        better = _next_attempt(attempt, error, watch) if retries < _RETRIES else None
        if better is None and plain is not None:
            better, plain, retries = replace(plain, reads_loops=False), None, 0
        if better is None:
            if around is not None:
                around.notes += watch.notes
            if refused is not None and error is not None and not isinstance(error, WorkbenchError):
                raise refused from error  # merged steps go along paths that no number takes
            _raise_final_error(error, watch)
            return result
        if better.stepped and not attempt.stepped:
            refused, plain = error, attempt if attempt.reads_loops else None
        attempt, retries = better, retries + (better.deciding == attempt.deciding)


def _attempted_inside(f: Function, run: Callable[[Function], Any]) -> Any:
    """Run inside another such call. An error is recorded there even if it is caught before."""
    start = noted()
    try:
        return run(callee(f))
    except _RETRIED as error:
        if noted() == start and is_conversion(error):  # one of NumPy's
            with contextlib.suppress(TraceError):
                _refuse_by_text(error)
        raise


@dataclass(frozen=True)
class _Attempt:
    """The style of rewriting, if any; whether float arrays become traced ones, and NumPy may make object arrays.

    `deciding` are the keys of the user's code whose calls are merged, because it has too many paths; `stepped` the
    files and names of the functions whose loops are calls of their steps. Without `reads_loops`, after that has failed,
    paths are followed through loops up to the limit.
    """

    style: Style | None = None
    arrays: bool = False
    objects: bool = False
    deciding: frozenset[Key] = frozenset()
    stepped: frozenset[tuple[str, str]] = frozenset()
    reads_loops: bool = True


_PLAIN = _Attempt()
_active: ContextVar[_Attempt] = ContextVar("symad_active_attempt", default=_PLAIN)


@contextmanager
def _dispatching(attempt: _Attempt) -> Iterator[None]:
    run = None
    if attempt.style is not None:
        run = DispatchedRun(attempt.style, attempt.arrays, attempt.deciding, attempt.stepped)
    with bound(_active, attempt), bound(running, run), bound(arrays_are_traced, attempt.arrays):
        yield


def reads_loops_of(deciding: Iterable[CodeType]) -> bool:
    """Whether a loop is read as a whole when its condition is asked again, before paths through it are followed.

    `deciding` is the code that has asked conditions.
    """
    attempt = _active.get()
    is_new = not attempt.deciding.issuperset(map(key_of, deciding))
    return is_new and attempt.reads_loops and innermost_watch() is not None


def _next_attempt(attempt: _Attempt, error: Exception | None, watch: Watch) -> _Attempt | None:
    """Return the next attempt, None if none is left or the error has another cause."""
    if isinstance(error, PathsError):
        keys = frozenset(map(key_of, error.deciding)) - attempt.deciding
        if not keys:
            return None
        around = frozenset((file, name) for file, full, _ in keys for name in _enclosing_names(full))
        merged = _Attempt(Style(operators=True), arrays=True, objects=attempt.objects)  # items are traced places
        return replace(merged, deciding=attempt.deciding | keys, stepped=attempt.stepped | around)
    causes = [error] if error is not None and _is_retried(error) and is_conversion(error) else []
    for cause in [*causes, *(note.error for note in watch.notes if note.uncertain or is_conversion(note.error))]:
        better = _next_by_cause(attempt, cause)
        if better is not None:
            return better
    return None


def _enclosing_names(name: str) -> list[str]:
    """Return the full names of a function and of those around it.

    >>> _enclosing_names("outer.<locals>.inner")
    ['outer', 'outer.<locals>.inner']
    """
    parts = name.split(".<locals>.")
    return [".<locals>.".join(parts[: k + 1]) for k in range(len(parts))]


def _next_by_cause(attempt: _Attempt, error: BaseException) -> _Attempt | None:
    """Return the attempt after an error: with stand-ins for calls, then for operators and arrays, then with objects."""
    stores = caused_by(error, StoreError) or any(text in str(error) for text in STORES)
    if attempt.style is None:
        return replace(attempt, style=Style(operators=stores), arrays=stores)
    if not (attempt.style.operators and attempt.arrays):
        return replace(attempt, style=replace(attempt.style, operators=True), arrays=True)
    if not attempt.objects and caused_by(error, ObjectArrayError):
        return replace(attempt, objects=True)
    return None


def _raise_final_error(error: Exception | None, watch: Watch) -> None:
    """Raise the error of the last attempt, or the refusal of a function that caught an error of ours."""
    spoilt = next((note for note in watch.notes if not note.excused), None)
    try:
        if error is not None and spoilt is not None and _replaces_ours(error, spoilt):
            package = in_library_of_objects(error)
            raise (objects_refusal(package, spoilt.error, spoilt.place) if package else spoilt.error) from error
        if spoilt is not None and (error is None or not _is_ours(error, watch)):
            raise swallowed_error(spoilt) from spoilt.error
        if error is not None:
            if _is_retried(error):
                _refuse_by_text(error)
            if spoilt is not None and not isinstance(error, WorkbenchError) and not _is_noted(error, watch):
                raise swallowed_error(spoilt) from error  # one of the function's own, while it handled ours
            raise error
    finally:
        del error  # its traceback holds this frame


def _is_retried(error: Exception) -> bool:
    """Whether a traced value may have caused an error; numba's compiler has errors of its own."""
    return isinstance(error, _RETRIED) or type(error).__module__.startswith("numba.")


def _replaces_ours(error: Exception, note: Note) -> bool:
    """Whether C code that the function called replaced an error of ours by one of its own."""
    if isinstance(error, WorkbenchError) or note.library or raised_by_user(error):
        return False
    return raised_place(error) == note.place and isinstance(note.error, WorkbenchError)


def _is_noted(error: BaseException, watch: Watch) -> bool:
    return any(note.error is error for note in watch.notes)


def _is_ours(error: Exception, watch: Watch) -> bool:
    """Whether an error is one of those noted, or was raised because of one."""
    return any(isinstance(cause, WorkbenchError) or _is_noted(cause, watch) for cause in causes_of(error))


def _refuse_by_text(error: BaseException) -> None:
    """Raise a TraceError in place of an error of NumPy, SciPy or SymPy about traced values."""
    if raised_in_own_code(error):
        return  # the function's own check of its arguments
    if isinstance(error.__cause__, NumberError | StoreError) and any(text in str(error) for text in STORES):
        raise error.__cause__  # NumPy takes a value with indices for a sequence, and hides our error
    if any(text in str(error) for text in _ASKED_OF_SYMPY):
        raise TraceError(
            f"a SymPy expression was asked for a number or a truth value ({error})",
            where=raised_place(error),
            why="SymPy does not know the values of traced values in it",
            do="use the NumPy function there (np.sin instead of sympy.sin), or sympy.Piecewise for a condition",
        ) from error
    package = in_library_of_objects(error)
    if package and (is_conversion(error) or names_a_traced_value(error)):
        raise objects_refusal(package, error, raised_place(error)) from error
    name = library_function(error)
    by_f2py = name and "can't be converted to" in str(error)  # its words, in an error of our class
    if not by_f2py and (isinstance(error, TraceError) or not is_conversion(error)):
        return
    if str(error).startswith("only integers") and not name and not caused_by(error, NumberError):
        return  # of an index that is no number either
    if "read-only" in str(error) and "<traced " not in str(error) and not name:
        return  # an array may be read-only because the user wants it so
    if name:
        raise library_refusal(name, error, raised_place(error)) from error
    if names_a_traced_value(error):
        raise python_refusal(error, raised_place(error)) from error
    event, why, do = _ITERATED if "Iterator operand" in str(error) else _OBJECTS
    raise TraceError(event.format(error), where=raised_place(error), why=why, do=do) from error


_ITERATED = (
    "a traced array was given to np.nditer",
    "it iterates over the memory of ordinary arrays",
    "write `for value in x.flat`, or np.ndenumerate(x)",
)
_OBJECTS = (
    "a NumPy function got an object array ({})",
    "np.array([...]) and np.full make one of traced values, and NumPy's compiled loops cannot trace it",
    "make the array with np.stack([...]), np.concatenate or np.zeros_like(x)",
)


_OF_COLUMNS = frozenset(
    {"select_dtypes", "numeric_only", "describe", "dtypes"}
)  # of numbers, where pandas makes objects
_OF_TYPES = _OF_COLUMNS | {"type", "hasattr", "getattr"}
FUNCTIONS = 100  # more than these count as code that handles and asks


@dataclass(frozen=True)
class ReachedCode:
    """Whether code that a function reaches may catch an error, ask for types, or certainly asks what `is True`.

    And whether it picks the columns of a DataFrame by their types.
    """

    handles: bool
    asks_for_types: bool
    asks_for_identity: bool = False
    picks_columns: bool = False


_BOTH = ReachedCode(handles=True, asks_for_types=True)
_handling: WeakSet[FunctionType] = WeakSet()  # which reach code that handles and asks: remembered, at worst too long


def reached_code(f: Any) -> ReachedCode:
    """Return what is known of the code that a function reaches.

    Calls of `type` or `hasattr` on traced values cannot be seen, so stand-ins answer from the beginning. If the walk is
    not complete, the code counts as handling and asking.

    >>> reached_code(lambda x: 2 * x)
    ReachedCode(handles=False, asks_for_types=False, asks_for_identity=False, picks_columns=False)
    """
    inner: Any = unwrap(f)
    inner = getattr(inner, "__func__", inner)
    is_users = type(inner) is FunctionType and not is_library(inner.__code__.co_filename)
    if is_users and inner in _handling:
        return _BOTH
    functions, complete = reached_functions(f, FUNCTIONS)
    facts = [facts_of(function.__code__) for function in functions]
    identity = any(part.asks_for_identity for part in facts)
    reached = ReachedCode(
        not complete or any(part.handles for part in facts),
        not all(_OF_TYPES.isdisjoint(part.names) for part in facts),
        identity,
        any(not _OF_COLUMNS.isdisjoint(part.names) for part in facts),
    )
    if identity or reached.picks_columns or (len(functions) < FUNCTIONS and reached != _BOTH):
        return reached
    if is_users:
        _handling.add(inner)
    return _BOTH
