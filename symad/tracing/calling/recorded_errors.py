"""Record errors that tracing causes where they are raised, until the traced function ends.

A traced value refuses some questions by an error, and the function runs again in another form. If the function or a
library catches that error, it continues on a path that no number takes, and its result is wrong. So each error of ours
is recorded in the watch of the running call. A run whose recorded errors did not come out does not count.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, TracebackType
from weakref import ref

from codegen.bound import bound
from symad.errors import EscapedValueError, TraceError, WorkbenchError
from symad.tracing.calling.user_place import (
    is_library,
    is_public,
    is_symad,
    known_name,
    line_of,
    scipy_calls,
    user_place,
)

LONGEST = 100  # characters of a library's message
_NUMBER = re.compile(r"'Scalar' object|'Scalar'|\bScalar\b")
_ARRAY = re.compile(r"'Array' object|'Array'|\bArray\b")
_FOREIGN = (TraceError, EscapedValueError)  # only traced values raise these


class Note:
    """An error, its place, and the function of SciPy that it was raised in.

    An excused one is harmless: it was raised on a path that only NaN takes. An `uncertain` one is Python's or a
    library's: plain numbers might have raised it too.
    """

    error: Exception
    place: str

    def __init__(self, error: Exception, *, uncertain: bool = False) -> None:
        self.error, self.place, self.uncertain = error, user_place(), uncertain
        called = scipy_calls()
        self.library: str = next(filter(is_public, reversed(called)), called[-1] if called else "")
        self.excused = False


class Watch:
    """The errors noted during a call.

    `has_stand_ins`: stand-ins answer calls. `makes_objects`: NumPy may make object arrays nevertheless. `makes_arrays`:
    the user's float arrays become traced ones. `asks_for_identity`: code of the run asks whether something `is True`.
    """

    def __init__(self, has_stand_ins: bool, makes_objects: bool, makes_arrays: bool, asks_for_identity: bool) -> None:
        self.has_stand_ins, self.makes_objects, self.makes_arrays = has_stand_ins, makes_objects, makes_arrays
        self.asks_for_identity = asks_for_identity
        self.notes: list[Note] = []
        self.is_open = True


_innermost: ContextVar[Watch | None] = ContextVar("symad_swallowed_errors", default=None)
_open: list[ref[Watch]] = []  # of all threads; no lock, which an interrupt could leave held


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """Open a watch for the errors that are raised in this block."""
    entry = ref(watch)
    _open.append(entry)
    try:
        with bound(_innermost, watch):
            yield
    finally:
        watch.is_open = False
        _open.remove(entry)


def innermost_watch() -> Watch | None:
    """Return the watch of the running call in this thread, None outside of every call."""
    watch = _innermost.get()
    return watch if watch is not None and watch.is_open else None  # a task may have inherited one that is closed


def _all_open() -> list[Watch]:
    return [watch for entry in list(_open) if (watch := entry()) is not None and watch.is_open]


class discarding_recorded_errors:
    """A block whose errors our own code catches. If one leaves it, all errors noted in it are forgotten."""

    def __enter__(self) -> None:
        self.watch: Watch | None = innermost_watch()
        self.start: int = 0 if self.watch is None else len(self.watch.notes)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        if self.watch is None:
            discard_recorded_error(error)
        else:
            del self.watch.notes[self.start :]


def discard_recorded_error(error: BaseException) -> None:
    """Forget an error that our own code has caught, and its causes."""
    own = innermost_watch()
    for watch in _all_open() if own is None else [own]:
        cause: BaseException | None = error
        while cause is not None:
            watch.notes[:] = [note for note in watch.notes if note.error is not cause]
            cause = cause.__cause__


def excuse(start: int) -> None:
    """Excuse the notes from a position on."""
    watch = innermost_watch()
    for note in [] if watch is None else watch.notes[start:]:
        note.excused = True


def noted() -> int:
    """Return the number of noted errors."""
    watch = innermost_watch()
    return 0 if watch is None else len(watch.notes)


def _record(error: WorkbenchError) -> None:
    if not error.of_tracing:
        return
    watch = innermost_watch()
    if watch is not None:
        watch.notes.append(Note(error))
    elif _open and isinstance(error, _FOREIGN):  # a thread of the user's got traced values: whose is not known
        note = Note(error)
        for watch in _all_open():
            watch.notes.append(note)


WorkbenchError.listeners.append(_record)


def swallowed_error(note: Note) -> TraceError:
    """Return the refusal of a function that caught an error of ours.

    SciPy's compiled code may go on after an error in what it has called, and raise another one or none.
    """
    if note.library:
        return library_refusal(note.library, note.error, note.place)
    caught = _caught_at(note.error)
    met = note.error.what if isinstance(note.error, WorkbenchError) else f"{type(note.error).__name__}: {note.error}"
    return TraceError(
        f"an error was caught that plain numbers {'may' if note.uncertain else 'would'} not have raised ({met:.200})",
        where=note.place,
        why=f"the function went on{caught and f' at {caught}'} as if numbers had raised it, and its result is wrong",
        do=getattr(note.error, "do", "") or "let the error come out",
    )


def library_refusal(name: str, error: BaseException, where: str) -> TraceError:
    """Return the refusal of a library function that computes with plain numbers and raised an error."""
    cause = error.__cause__ if isinstance(error, SystemError) and error.__cause__ is not None else error
    if name.startswith("numba."):
        return TraceError(
            "a function that numba has compiled got a traced value",
            where=where,
            why="its code takes plain numbers only",
            do="call the Python function that it was made of, f.py_func(x); that of a name outside of the function is "
            "found and traced",
        )
    if name.startswith("numpy.random."):
        return TraceError(
            f"numpy.random's {name.rpartition('.')[2]} got a traced value ({short_text(cause)})",
            where=where,
            why="it moves plain numbers in memory",
            do="draw the places: x[rng.permutation(len(x))]",
        )
    solver = "; a root, a fixed point or a minimum: symad.root, fixed_point, argmin"
    return TraceError(
        f"{known_name(name, error)} got a traced value ({short_text(cause)})",
        where=where,
        why="it computes with plain numbers, which would lose the derivative",
        do=f"write this step with NumPy functions, or with those of scipy.special{solver * ('optimize' in name)}",
    )


def objects_refusal(package: str, said: BaseException, where: str) -> TraceError:
    """Return the refusal of an operation of pandas, xarray or pydantic in compiled code."""
    ways = {"pydantic": "make it without checks, Model.model_construct(a=x), or pass the model as an argument"}
    return TraceError(
        f"{package} got a traced value where its compiled code takes plain ones ({short_text(said)})",
        where=where,
        why="the derivative would be lost in it",
        do=ways.get(package, "take the numbers, s.to_numpy(), and NumPy's functions for this step"),
    )


_AS_NO_NUMBER = {  # what Python says of a number that is taken for something else: what was done, why not, what to do
    "object is not callable": ("a number is called like a function", "it is none", "write * for a product"),
    "object is not iterable": ("a number is iterated over", "it has no elements", "give an array or np.atleast_1d(x)"),
    "item assignment": ("an element of a number is assigned", "it has none", "assign to the array that it is from"),
    "has no len()": ("a number is asked for its length", "it has no elements", "give an array or np.atleast_1d(x)"),
}


def python_refusal(error: BaseException, where: str) -> TraceError:
    """Return the refusal of a traced value that Python, or a library, takes for something other than a number."""
    for words, (event, why, do) in _AS_NO_NUMBER.items():
        if words in str(error) and "Scalar" in str(error):
            return TraceError(event, where=where, why=why, do=do)
    return TraceError(
        f"what takes plain values got a traced one ({short_text(error)})",
        where=where,
        why="the derivative would be lost in it",
        do="write this step with NumPy functions, or take it with the result, outside of the function",
    )


def short_text(said: BaseException) -> str:
    """Return the text of an error in one line, cut, with readable names of our types.

    >>> short_text(TypeError("must be real number, not Scalar"))
    'must be real number, not a traced number'
    """
    text = " ".join((said.what if isinstance(said, WorkbenchError) else str(said)).split())
    text = _NUMBER.sub("a traced number", _ARRAY.sub("a traced array", text))
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " ..."


def _caught_at(error: BaseException) -> str:
    """Return `file:line` of the handler that caught an error, the function if it is a library's, "" if unknown."""
    trace = error.__traceback__  # its first entry is the frame that caught it
    if trace is None or is_symad(trace.tb_frame.f_code.co_filename):
        return ""
    code = trace.tb_frame.f_code
    if is_library(code.co_filename):
        return f"{trace.tb_frame.f_globals.get('__name__', code.co_filename)}.{code.co_name}"
    return f"{code.co_filename}:{_handler(code, trace.tb_lasti) or line_of(code, trace.tb_lasti)}"


def _handler(code: CodeType, instruction: int) -> int | None:
    """Return the line of the handler of an error that an instruction raised."""
    for entry in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined]  # which typeshed lacks
        if entry.start <= instruction < entry.end:
            lines = (line for start, line in dis.findlinestarts(code) if start > entry.target and line is not None)
            return next(lines, None)
    return None
