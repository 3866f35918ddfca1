"""Calling a user's function; where plain names stand in the way of tracing, again with those names shadowed.

`math.sin(x)`, `float(x)`, `np.array([x[0], 1.0])` and `z = np.zeros(3); z[0] = x[0]` convert to plain numbers before
any protocol of NumPy is asked. When a traced value refuses such a conversion, the function is called once more (at
most four times), while the stand-ins of `stand_ins` take the place of these names in the modules of the user's code.
NumPy and math themselves are never changed. Other threads see the stand-ins too, and get the originals' results.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock
from types import CodeType, FunctionType
from typing import Any

from codegen.limits import bytes_are_limited
from codegen.records import dataclass
from symad.errors import TraceError, WorkbenchError
from symad.tracing.calling.conversions import STORES, caused_by, is_conversion, names_a_traced_value
from symad.tracing.calling.imported import imports_answered
from symad.tracing.calling.jitted import jitted_forms
from symad.tracing.calling.loop_steps import StepsOfLoops, functions_with, has_steps
from symad.tracing.calling.memory import told
from symad.tracing.calling.merged_calls import EXTREMA, PathsError, call_forms
from symad.tracing.calling.namespaces import (
    Names,
    asks_for_types,
    closed_over,
    enclosed,
    identity,
    of_scipy,
    owners_in,
    reached,
    used_by,
)
from symad.tracing.calling.scope import Scope, innermost_scope
from symad.tracing.calling.stand_ins import BUILTINS, Function, arrays_are_traced, replaced
from symad.tracing.calling.swallowed import (
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
from symad.tracing.calling.user_place import (
    in_library_of_objects,
    library_function,
    raised_by_user,
    raised_in_own_code,
    raised_place,
    user_globals,
)
from symad.tracing.values.indexed import indexed
from symad.tracing.values.node_operands import holds_traced
from symad.tracing.values.object_arrays import ObjectArrayError
from symad.tracing.values.traced import NumberError, StoreError

_ABSENT = object()
_CACHED = functools._lru_cache_wrapper
_ASKED_OF_SYMPY = ("cannot determine truth value of Relational", "Cannot convert expression to float")
_RETRIED = (  # a TraceError is a TypeError; the last three are SciPy's: of C code, and of objects in arrays (1.18)
    TypeError, ValueError, IndexError, AttributeError, RuntimeError, SystemError, DeprecationWarning,
)  # fmt: skip
_RETRIES = 4  # code that is made anew at every call (sympy.lambdify inside the function) has ever new names


def call(f: Callable[..., Any], arguments: Callable[[], Sequence[Any]], *, alone: bool = False) -> Any:
    """Call a user's function on traced arguments, which are made afresh for every attempt.

    Errors are those of the function. Where a conversion to plain numbers was the cause and shadowed names do not
    help, TraceError says what was met and what to write instead; so it does where the function caught such an error
    and went on (see `swallowed`).
    """
    return attempted(f, lambda: f(*arguments()), alone=alone)


def attempted(f: Callable[..., Any], run: Callable[[], Any], *, alone: bool = False) -> Any:
    """Return what `run` returns, which calls the user's function f once or along all its paths; see `call`.

    Inside another such call, the errors are those of that one, which runs again as a whole, but where this one is
    `alone`, or the names to shadow are made anew by every run (by sympy.lambdify inside the function).
    """
    around, attempt, retries = innermost_watch(), _active.get(), 0
    early = bytes_are_limited() or asks_for_types(f)  # stand-ins ask for the size of an array before NumPy does
    if early and not attempt.namespaces:
        attempt = _Attempt(_new(attempt, used_by(f)))
    inside, refused = around is not None and not alone, None
    if around is not None and inside and not attempt.namespaces:
        return _inside(around, f, run)
    while True:
        error: Exception | None = None
        kind = {"makes_objects": attempt.objects, "makes_arrays": attempt.arrays}
        with watching(has_stand_ins=bool(attempt.namespaces), **kind) as watch:
            try:
                with _shadowed(attempt):
                    result = run()
                if not watch.notes:
                    return result
            except Exception as raised:
                error = told(raised)
        whole = inside and isinstance(error, PathsError)  # the paths around have begun, and begin again with it
        better = _better(attempt, error, watch, f, retries) if retries < _RETRIES and not whole else None
        if better is None or (inside and len(better.namespaces) == len(attempt.namespaces)):
            if around is not None:
                around.notes += watch.notes
                around.functions += [f, *watch.functions]
            if refused is not None and error is not None and not isinstance(error, WorkbenchError):
                raise refused from error  # merged steps go along paths that no number takes
            _settle(error, watch)
            return result
        if better.stepped and not attempt.stepped:
            refused = error
        attempt, retries = better, retries + 1


def _inside(watch: Watch, f: Callable[..., Any], run: Callable[[], Any]) -> Any:
    """Run in a call that is running already: an error comes out, and is met there, even where it is caught before."""
    start = noted()
    try:
        return run()
    except _RETRIED as error:
        if noted() == start and is_conversion(error):  # one of NumPy's
            with contextlib.suppress(TraceError):
                _explain(error)
        raise
    finally:
        if noted() > start:
            watch.functions.append(f)


def _settle(error: Exception | None, watch: Watch) -> None:
    """Raise what came out of the last attempt, or the refusal of a function that caught an error of ours."""
    spoilt = next((note for note in watch.notes if not note.excused), None)
    try:
        if error is not None and spoilt is not None and _says_the_same(error, spoilt):
            package = in_library_of_objects(error)
            raise (objects_refusal(package, spoilt.error, spoilt.place) if package else spoilt.error) from error
        if spoilt is not None and (error is None or not _is_ours(error, watch)):
            raise swallowed_error(spoilt) from spoilt.error
        if error is not None:
            if _is_retried(error):
                _explain(error)
            if spoilt is not None and not isinstance(error, WorkbenchError):
                raise swallowed_error(spoilt) from error  # one of the function's own, while it handled ours
            raise error
    finally:
        del error  # its traceback holds this frame


def _is_retried(error: Exception) -> bool:
    """Whether an error may come of a traced value; numba's compiler has errors of its own."""
    return isinstance(error, _RETRIED) or type(error).__module__.startswith("numba.")


def _says_the_same(error: Exception, note: Note) -> bool:
    """Whether C code that the function called has said in its own words what an error of ours had said there."""
    if isinstance(error, WorkbenchError) or note.library or raised_by_user(error):
        return False
    return raised_place(error) == note.place


def _is_ours(error: Exception, watch: Watch) -> bool:
    """Whether an error that came out is one of those noted, or was raised because of one."""
    seen, known = 0, [note.error for note in watch.notes]
    cause: BaseException | None = error
    while cause is not None and seen < 10:
        if isinstance(cause, WorkbenchError) or cause in known:
            return True
        cause, seen = cause.__cause__ or cause.__context__, seen + 1
    return False


@dataclass(frozen=True)
class _Attempt:
    """Which modules' names are shadowed, whether float arrays are made as traced ones, and NumPy may make objects.

    `deciding` is the user's code whose calls are merged, because there are too many paths through it.
    """

    namespaces: tuple[Names, ...] = ()
    arrays: bool = False
    objects: bool = False
    deciding: frozenset[CodeType] = frozenset()
    stepped: tuple[FunctionType, ...] = ()  # whose loops are steps (see `loop_steps`)


_PLAIN = _Attempt()
_active: ContextVar[_Attempt] = ContextVar("symad_shadowed_names", default=_PLAIN)


def _better(
    attempt: _Attempt, error: Exception | None, watch: Watch, f: Callable[..., Any], retries: int
) -> _Attempt | None:
    """Return the next thing to try, None when nothing is left or the errors are of another kind."""
    cells = [cell for function in (f, *watch.functions) for cell in enclosed(function)]
    if isinstance(error, PathsError) and error.deciding - attempt.deciding:
        cells = [cell for function in (f, *watch.functions) for cell in enclosed(function, error.deciding)]
        found = _new(attempt, [*error.namespaces, *cells])
        deciding = attempt.deciding | error.deciding
        return replace(attempt, namespaces=(*attempt.namespaces, *found), deciding=deciding)
    if isinstance(error, PathsError) and not attempt.stepped:
        spaces = [*error.namespaces, *attempt.namespaces]
        among = [f, *closed_over(f), *(value for space in spaces for value in list(space.values()))]
        stepped = tuple(filter(has_steps, functions_with(error.deciding, among)))
        return replace(attempt, stepped=stepped) if stepped else None
    if error is not None and _is_retried(error):
        better = _helped(attempt, error, [*user_globals(error), *of_scipy(error), *cells], retries)
        if better is not None:
            return better
    for note in watch.notes:
        names = [*user_globals(note.error), *note.namespaces, *of_scipy(note.error), *cells]
        better = _helped(attempt, note.error, names, retries)
        if better is not None:
            return better
    return None


def _helped(attempt: _Attempt, error: BaseException, namespaces: Sequence[Names], retries: int) -> _Attempt | None:
    if not is_conversion(error):
        return None
    found = _new(attempt, namespaces)
    stores = caused_by(error, StoreError) or any(text in str(error) for text in STORES)
    if attempt.namespaces and (not found or stores):  # who made the array may be elsewhere
        found += _new(_Attempt((*attempt.namespaces, *found)), reached((*attempt.namespaces, *found)))
    arrays = attempt.arrays or stores or not found
    if arrays and not attempt.arrays:  # what has tables may be an object
        found += _new(_Attempt((*attempt.namespaces, *found)), owners_in(error))
    last = (not found and attempt.arrays) or retries == _RETRIES - 1
    objects = attempt.objects or (last and caused_by(error, ObjectArrayError))
    if not found and (arrays, objects) == (attempt.arrays, attempt.objects):
        return None
    return _Attempt((*attempt.namespaces, *found), arrays, objects, attempt.deciding, attempt.stepped)


def _new(attempt: _Attempt, namespaces: Sequence[Names]) -> tuple[Names, ...]:
    held = set(map(identity, attempt.namespaces))
    fresh = {identity(namespace): namespace for namespace in namespaces}
    return tuple(namespace for number, namespace in fresh.items() if number not in held)


def _explain(error: BaseException) -> None:
    """Raise a TraceError in place of what NumPy, SciPy and SymPy say of traced values that they cannot take."""
    if raised_in_own_code(error):
        return  # whatever the function says of its arguments is its own
    if isinstance(error.__cause__, NumberError | StoreError) and any(text in str(error) for text in STORES):
        raise error.__cause__  # NumPy takes what has indices for a sequence, and says so in place of our error
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
    what, why, do = _ITERATED if "Iterator operand" in str(error) else _OBJECTS
    raise TraceError(what.format(error), where=raised_place(error), why=why, do=do) from error


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


# Putting the stand-ins in place. Several threads may shadow one module: the last one to leave restores it.


class _Patch:
    """The names of one namespace that are shadowed, with their former values, and by how many calls."""

    def __init__(self, namespace: Names) -> None:
        self.namespace, self.calls = namespace, 0
        self.names, self.former = dict[str, Any](), dict[str, Any]()
        self._shadow(replaced(namespace.items()), BUILTINS)
        self._shadow(jitted_forms(namespace.items()), {})
        self._shadow({name: _memoised(value) for name, value in namespace.items() if isinstance(value, _CACHED)}, {})

    def merge(self, deciding: frozenset[CodeType]) -> None:
        """Shadow the functions with some code too, whose calls are merged."""
        forms = call_forms(self.namespace.items(), deciding)
        self._shadow(forms, EXTREMA)
        again = {name: form for name, form in forms.items() if name in self.names}  # of forms of numba's functions
        self.names |= again
        self.namespace.update(again)

    def index(self) -> None:
        """Shadow the ordinary arrays too, whose elements at traced places are wanted."""
        self._shadow(indexed(self.namespace.items()), {})

    def _shadow(self, names: Mapping[str, Any], builtins: Mapping[str, Any]) -> None:
        absent = {name: form for name, form in builtins.items() if name not in self.namespace}
        fresh = {name: form for name, form in {**names, **absent}.items() if name not in self.names}
        self.former |= {name: self.namespace.get(name, _ABSENT) for name in fresh}
        self.names |= fresh
        self.namespace.update(fresh)

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


def _enter(namespace: Names, deciding: frozenset[CodeType], arrays: bool) -> None:
    with _lock:
        patch = _patches.get(identity(namespace))
        if patch is None:
            patch = _patches[identity(namespace)] = _Patch(namespace)
        if deciding:
            patch.merge(deciding)
        if arrays:
            patch.index()
        patch.calls += 1


def _leave(namespace: Names) -> None:
    with _lock:
        patch = _patches[identity(namespace)]
        patch.calls -= 1
        if patch.calls == 0:
            _patches.pop(identity(namespace)).restore()


@contextmanager
def _shadowed(attempt: _Attempt) -> Iterator[None]:
    if attempt is _active.get():  # as it is: the first attempt, or inside a function that runs with shadows
        yield
        return
    tokens = _active.set(attempt), arrays_are_traced.set(attempt.arrays)
    with ExitStack() as stack:
        try:
            for namespace in attempt.namespaces:
                _enter(namespace, attempt.deciding, attempt.arrays)
                stack.callback(_leave, namespace)
            stack.enter_context(StepsOfLoops(attempt.stepped))
            stack.enter_context(imports_answered(attempt.namespaces))
            yield
        finally:
            _active.reset(tokens[0])
            arrays_are_traced.reset(tokens[1])


def _memoised(original: Any) -> Function:
    """Return a function with functools.cache that keeps no traced value after its level: later calls would get it."""
    caches: dict[Scope, Function] = {}

    @functools.wraps(original)
    def call(*args: Any, **keywords: Any) -> Any:
        if holds_traced((*args, *keywords.values())):
            return original.__wrapped__(*args, **keywords)
        scope = innermost_scope() if arrays_are_traced.get() else None
        if scope is None:
            return original(*args, **keywords)
        if scope not in caches:
            caches[scope] = functools.lru_cache(**original.cache_parameters())(original.__wrapped__)
        return caches[scope](*args, **keywords)

    call.cache_clear, call.cache_info = original.cache_clear, original.cache_info  # type: ignore[attr-defined]
    return call
