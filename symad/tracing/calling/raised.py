"""See errors that Python or a library raises about traced values where they are raised, and recognise them.

The user's code, or a library, may catch such an error and continue on a path that no number takes. Errors of ours are
noted where they are made (`recorded_errors`). `sys.monitoring` sees the others; before Python 3.12 a trace function
does, which runs only if code that the function reaches has a handler. An error counts as the function's own only if
plain numbers would certainly raise it too. Otherwise the run does not count if the error does not come out. On a path
that numbers take, such an error says that the function has no value there.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from itertools import takewhile
from threading import get_ident
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import ref

import numpy as np

from symad.errors import TraceError, WorkbenchError
from symad.tracing.calling.recorded_errors import Note, Watch
from symad.tracing.calling.transformed_function import Transformed
from symad.tracing.calling.user_place import (
    entries_of,
    in_library_of_objects,
    is_library,
    is_passed_over,
    is_raise,
    is_symad,
    library_function,
    met_by_user,
    raised_by_user,
    raised_frame,
    segment_at,
)
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import AxesError, NumberError, StoreError, TextIndexError, Traced
from symad.tracing.values.whole_values import NoNumberError, OutsideError

_OF_CODE = (  # caused by the code or by plain numbers, not by traced values
    NameError, ImportError, SyntaxError, StopIteration, StopAsyncIteration, ArithmeticError, AssertionError, OSError,
    NotImplementedError, UnicodeError, EOFError, RecursionError, MemoryError,
)  # fmt: skip
_OF_KINDS = (  # words about types
    "ython object", "object array", "dtype", "Scalar", "Array", "<traced", "sequence", "uffer", "onvert",
)  # fmt: skip
_OF_NUMBERS = (  # texts of errors that floats raise too
    "has no len()", "object is not iterable", "object is not subscriptable", "object is not callable",
    "does not support item assignment", "does not support item deletion", "cannot unpack non-iterable",
    "indices must be integers or slices, not str",
    "unsupported operand type(s) for", "can only concatenate", "not supported between instances of",
    "cannot convert float NaN to integer", "of empty iterable",
    "missing 1 required", "positional argument", "unexpected keyword argument", "argument of type",
)  # fmt: skip
_PLAIN = (
    int, float, complex, str, bytes, bool, type(None), np.generic, type, ModuleType, FunctionType, Transformed, range,
    slice,
)  # fmt: skip
_STORED = re.compile(r"'(Scalar|Array)' object has no attribute '(\w+)'")
LOOKED_AT = 1_000  # parts of a container


def watching_raised(watch: Watch, *, handles: bool) -> AbstractContextManager[None]:
    """Return a block that notes errors about traced values in a watch.

    `handles` says whether the code in it may catch an error.
    """
    tool = _tool()
    if tool is not None:
        return _monitoring(watch, tool)
    return _tracing(watch) if handles else nullcontext()


@contextmanager
def _tracing(watch: Watch) -> Iterator[None]:
    """Note errors by a trace function; an existing one continues."""
    before: Any = sys.gettrace()
    while (outer := getattr(before, "watch", None)) is not None and not outer.is_open:
        before = before.before  # one of ours, whose run has ended

    def start(frame: FrameType, event: Any, argument: Any) -> Any:
        if not watch.is_open:  # an interrupt came before the end
            sys.settrace(before)
            return None
        others = None if before is None else before(frame, event, argument)
        if is_passed_over(frame.f_code.co_filename):
            return others
        if others is None:
            frame.f_trace_lines = False

        def step(frame: FrameType, event: Any, argument: Any) -> Any:
            nonlocal others
            if others is not None:
                others = others(frame, event, argument)
            if event == "exception" and isinstance(argument[1], Exception):
                argument[1].__traceback__ = argument[2]  # as Python does next
                _note(watch, argument[1], frame)
            return step

        return step

    start.watch, start.before = watch, before  # type: ignore[attr-defined]
    try:
        sys.settrace(start)
        yield
    finally:
        sys.settrace(before)


@contextmanager
def _monitoring(watch: Watch, tool: int) -> Iterator[None]:
    """Note errors of this thread by RAISE events, which cost nothing if none is raised."""
    monitoring, thread = sys.monitoring, get_ident()  # type: ignore[attr-defined]
    entry, set_events, event = (thread, ref(watch)), monitoring.set_events, monitoring.events.RAISE
    try:
        _watches.append(entry)
        set_events(tool, event)
        yield
    finally:
        _watches.remove(entry)
        set_events(tool, event if _watches else 0)  # no other thread can run between the question and the call


_watches: list[tuple[int, ref[Watch]]] = []  # of all threads; no lock, which an interrupt could leave held


def _raised(code: CodeType, offset: int, error: BaseException) -> None:
    thread = get_ident()
    watch = next((entry() for number, entry in reversed(list(_watches)) if number == thread), None)
    if watch is not None and watch.is_open and isinstance(error, Exception) and not is_passed_over(code.co_filename):
        _note(watch, error, sys._getframe(1))


@cache
def _tool() -> int | None:
    """Return the number under which symad monitors, None if none is free."""
    monitoring: Any = getattr(sys, "monitoring", None)
    free = [] if monitoring is None else [k for k in (4, 3) if monitoring.get_tool(k) is None]
    if not free:
        return None
    monitoring.use_tool_id(free[0], "symad")
    monitoring.register_callback(free[0], monitoring.events.RAISE, _raised)
    return free[0]


def _note(watch: Watch, error: Exception, frame: FrameType) -> None:
    """Note an error in a frame of the user's, unless it is known or certainly the user's own."""
    if type(error).__module__.startswith("symad.") or any(note.error is error for note in watch.notes):
        return  # errors of ours are noted where they are made
    if not is_certain(error, frame):
        watch.notes.append(Note(error, uncertain=not is_conversion(error)))


def is_certain(error: Exception, frame: FrameType) -> bool:
    """Whether plain numbers would also raise an error in a frame of the user's."""
    if raised_by_user(error) or (isinstance(error, _OF_CODE) and not names_a_traced_value(error)):
        return True
    if isinstance(error, AttributeError):
        return _has_no_attribute(error)
    if isinstance(error, KeyError) and not any(isinstance(key, Traced) for key in error.args):
        return True
    text = str(error)
    is_of_numbers = any(words in text for words in _OF_NUMBERS) and "Array" not in text
    if (isinstance(error, TypeError | ValueError) and is_of_numbers) or _met_plain_values(error):
        return True
    if is_conversion(error):
        return False
    if isinstance(error, IndexError | ValueError) and not any(word in text for word in _OF_KINDS):
        return True  # about lengths, places and plain numbers, which traced values have or refuse by errors of ours
    return _was_raised_by_us(error) or not _may_be_traced(frame)


def _met_plain_values(error: Exception) -> bool:
    """Whether a library function called by the user raised an error, and had no traced values."""
    frames = [trace.tb_frame for trace in reversed(entries_of(error))]
    called = list(takewhile(lambda frame: is_passed_over(frame.f_code.co_filename), frames))
    return bool(called) and all(_is_plain(value) for frame in called for value in frame.f_locals.values())


def _has_no_attribute(error: AttributeError) -> bool:
    """Whether a number, or an array of numbers, lacks the attribute too."""
    owner = error.obj
    if owner is None and (stored := _STORED.match(str(error))):  # Python names no object where an attribute is stored
        return stored[1] == "Scalar" or not hasattr(np.ndarray, stored[2])
    if not isinstance(owner, Traced):
        return not is_conversion(error)
    return not hasattr(owner.apparent_kind(), error.name or "")


def _was_raised_by_us(error: Exception) -> bool:
    """Whether a raise statement of ours raised an error in place of NumPy: no defect of ours."""
    place = [(trace.tb_frame.f_code, trace.tb_lasti) for trace in entries_of(error)[-1:]]
    return any(is_symad(code.co_filename) and is_raise(code, offset) for code, offset in place)


def _may_be_traced(frame: FrameType) -> bool:
    """Whether the current instruction of a frame may compute with a traced value."""
    text = segment_at(frame.f_code, frame.f_lasti)
    try:
        names = {node.id for node in ast.walk(ast.parse(f"({text})", mode="eval")) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError, RecursionError):
        names = set(frame.f_locals)
    values = [frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name) for name in names]
    return not all(map(_is_plain, values))


def _is_plain(value: Any) -> bool:
    """Whether a value certainly contains no traced value."""
    waiting = [value]
    for part in waiting:  # which grows
        kind = type(part)
        if kind in (list, tuple, set, frozenset):
            waiting.extend(part)
        elif kind is dict:
            waiting.extend([*part, *part.values()])
        elif kind is np.ndarray:
            if part.dtype.hasobject:
                return False
        elif kind is FunctionType:
            if part.__closure__ and not is_library(part.__code__.co_filename):
                return False
        elif isinstance(part, Traced) or not issubclass(kind, _PLAIN):
            return False
        if len(waiting) > LOOKED_AT:
            return False
    return True


# A function has no value where it raises an error, except for these, which show mistakes in the code
_MISTAKES = (TypeError, AttributeError, NameError, LookupError, ImportError, NotImplementedError)
_MATHS = ("math domain error", "expected a ")  # how the math module words its ValueError


def is_of_function(error: Exception) -> bool:
    """Whether the function raises an error itself, on purpose or by a computation with plain numbers."""
    if isinstance(error, (*_MISTAKES, WorkbenchError)):
        return False
    if raised_by_user(error) or isinstance(error, ArithmeticError) or str(error).startswith(_MATHS):
        return True
    frame = raised_frame(error)
    return isinstance(error, ValueError) and frame is not None and is_certain(error, frame)


def is_of_values(error: Exception, *, lengths: bool, no_number: bool) -> bool:
    """Whether whole numbers that were decided on this path cause an error: indices, keys, `lengths`.

    With `no_number`, a value that is no number was used as an index.
    """
    if isinstance(error, KeyError):
        return any(type(key) is Scalar for key in error.args)
    if isinstance(error, NoNumberError | OutsideError) or (no_number and isinstance(error, IndexError)):
        return True
    if not lengths or isinstance(error, WorkbenchError) or asks_for_numbers(error):
        return False
    if isinstance(error, TypeError):  # reduce() of nothing, too few arguments
        return isinstance(error, AxesError) or met_by_user(error)
    return isinstance(error, ValueError | IndexError | StopIteration)


_OBJECT_LOOPS = (  # texts of refusals of object arrays
    "loop of ufunc does not support argument", "Cannot cast ufunc", "Cannot cast array data from dtype('O')",
    "a traced scalar has no attribute 'dtype'",  # of a sum of objects
    "not supported for the input types", "No loop matching the specified signature", "must be real number",
    "object arrays are not supported",
    "<class 'numpy.object_'> not inexact",  # of np.finfo, which asks for the digits of an array's numbers
    "array type dtype('O') not supported", "array type not supported", "data type not supported",
    "Unsupported array type", "input type 'object' not supported", "'float' object has no attribute 'dtype'",
    "can't convert type 'Scalar'",
    "object __array__ method not producing an array",  # of an object that holds a traced array
    "can't unbox array from PyObject",  # by numba, which asks for the flags of arrays
    "has no attribute '__array_interface__'",
    "No matching signature found",  # by Cython, for functions of several types
    "Function call with ambiguous argument types", "Iterator operand or requested dtype holds references",
)  # fmt: skip
STORES = (  # texts of NumPy for a store or an index that failed
    "setting an array element with a sequence", "Error setting single item of array", "only integers, slices",
    "assignment destination is read-only", "output array is read-only",
)  # fmt: skip


def asks_for_numbers(error: BaseException) -> bool:
    """Whether an error refuses a plain number, or is one of NumPy about traced objects."""
    if isinstance(error, TextIndexError):
        return False
    texts = any(text in str(error) for text in (*_OBJECT_LOOPS, *STORES))
    return texts or caused_by(error, NumberError) or caused_by(error, StoreError)


def is_conversion(error: BaseException) -> bool:
    """Whether a traced value, or NumPy on an array of them, refused to become plain numbers."""
    if asks_for_numbers(error):
        return True
    if isinstance(error, TraceError):
        return False
    if names_a_traced_value(error):
        return True
    if any(text in str(error) for text in _PLACES) and in_library_of_objects(error):
        return True
    library = library_function(error)
    if library.startswith("numba."):  # whose compiler has no type for it
        return "pyobject" in str(error) or isinstance(error, AttributeError)
    if library.startswith("numpy.random."):  # which would shuffle a copy
        return "read-only" in str(error)
    return library.startswith("scipy.") and not isinstance(error, RuntimeError)


# of a place, in pandas
_PLACES = (
    "has no attribute 'ndim'", "Cannot index by location index", "Invalid value", "Cannot cast array data",
    "has no attribute 'type'", "has no attribute '_sorted_data'", "fill_value must be a scalar",
    "Buffer dtype mismatch",
)  # fmt: skip
_OUR_TYPES = (
    "<traced ", " Scalar ", "'Scalar'", "'Array'", "got Array)", "got Scalar)", "convert Array to", "convert Scalar to",
    "not Scalar", "not Array", "got Scalar", "got Array", "scalar.Scalar'", "array.Array'",
    "numeric or string argument", "Object of type float64 is not JSON",
)  # fmt: skip
_ARGUMENTS = re.compile(r"[(\[, ](Scalar|Array)[)\],]")  # lists of the types of arguments, by SWIG and pybind11


def names_a_traced_value(error: BaseException) -> bool:
    """Whether an error names a traced value: code that takes floats or ordinary arrays only (mpmath, Cython)."""
    is_of_type = isinstance(error, TypeError | AttributeError | NotImplementedError) and "unhashable" not in str(error)
    return is_of_type and (any(text in str(error) for text in _OUR_TYPES) or bool(_ARGUMENTS.search(str(error))))


def caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    """Whether an error is of a kind, or was caused by one that is (NumPy wraps them)."""
    return any(isinstance(cause, kind) for cause in causes_of(error))


def causes_of(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error and those that caused it, ten at most."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
