"""The user's file and line, for error messages."""

from __future__ import annotations

import dis
import functools
import inspect
import linecache
import re
import sys
import traceback
from collections.abc import Callable, Collection
from itertools import islice, pairwise
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from symad.errors import ArgumentError, InvariantError, WorkbenchError
from symad.graph.graph import Graph
from symad.reach.known_packages import (
    FILES as FILES,
    converts_numbers as converts_numbers,
    has_labels as has_labels,
    is_installed as is_installed,
    is_library as is_library,
    is_numpy as is_numpy,
    is_ours as is_ours,
    is_scipy as is_scipy,
    is_standard as is_standard,
    is_symad as is_symad,
)

Failure = TypeVar("Failure", bound=WorkbenchError)

_REFUSALS = (TypeError, ValueError, IndexError, AttributeError, ArithmeticError)
_STORES = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}  # the second since 3.12
_CALLED = re.compile(r"(\w+)\(")
_RAISE = dis.opmap["RAISE_VARARGS"]
_OPERATOR = dis.opmap["BINARY_OP"]
_REMAINDERS = (6, 19)  # CPython's NB_REMAINDER and NB_INPLACE_REMAINDER


def user_frame() -> FrameType | None:
    """Return the innermost frame outside symad, codegen, optree, NumPy, SymPy, SciPy and Python's own library."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_passed_over(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


def in_library_of_objects(error: BaseException) -> str:
    """Return the package with Series, labelled arrays or checked fields that the user had called, "" if none."""
    name = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        file = frame.f_code.co_filename
        if has_labels(file):
            name = frame.f_globals.get("__name__", "").partition(".")[0]
        elif not is_passed_over(file):
            name = ""
    return name


def called_by_user(end: CodeType) -> bool:
    """Whether user code, or that of another library, stands between the caller and the innermost run of `end`."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code is not end:
        file = frame.f_code.co_filename
        if not (is_ours(file) or file == functools.__file__):
            return True
        frame = frame.f_back
    return frame is None


def user_place() -> str:
    """Return `file:line` of that frame, "" if there is none."""
    frame = user_frame()
    return "" if frame is None else f"{frame.f_code.co_filename}:{line_of(frame.f_code, frame.f_lasti)}"


def refusal(what: str, why: str = "", do: str = "") -> ArgumentError:
    """Return an error with that place."""
    return ArgumentError(what, where=user_place(), why=why, do=do)


def written_at(f: Callable[..., Any]) -> str:
    """Return `file:line` of a function of the user's, "" where that is not known.

    >>> written_at(max), written_at(written_at)
    ('', '')
    """
    code = getattr(inspect.unwrap(f), "__code__", None)
    return "" if code is None or is_library(code.co_filename) else f"{code.co_filename}:{code.co_firstlineno}"


def written_place(graph: Graph, node: int) -> str:
    """Return `file:line` of the user's code that made a node, "" when that is not known."""
    instruction = graph.instruction_of(node)
    if instruction is None or is_library(instruction[0].co_filename):
        return ""
    return f"{instruction[0].co_filename}:{line_of(*instruction)}"


def line_of(code: CodeType, offset: int) -> int:
    """Return the line of an instruction, the first of its code where it has none.

    Cleaning up after `with` and `except` has none, and an interrupt may come there.
    """
    return _position(code, offset)[0] or code.co_firstlineno


def _position(code: CodeType, offset: int) -> tuple[int | None, int | None, int | None, int | None]:
    return next(islice(code.co_positions(), offset // 2, None), (None, None, None, None))


def located(error: Failure, graph: Graph, node: int) -> Failure:
    """Return an error about a node with the user's line that made it, unless it has a place."""
    if error.where:
        return error
    return type(error)(error.what, where=written_place(graph, node), why=error.why, do=error.do)


def raised_place(error: BaseException) -> str:
    """Return `file:line` of the innermost user's frame in the traceback of an error."""
    trace = _innermost_users(error)
    if trace is None:
        return ""
    code = trace.tb_frame.f_code
    return f"{code.co_filename}:{line_of(code, trace.tb_lasti)}"


def raised_frame(error: BaseException) -> FrameType | None:
    """Return the innermost user's frame in the traceback of an error."""
    trace = _innermost_users(error)
    return None if trace is None else trace.tb_frame


def entries_of(error: BaseException) -> list[TracebackType]:
    """Return the entries of the traceback of an error, outermost first."""
    entries, trace = [], error.__traceback__
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    return entries


def _innermost_users(error: BaseException) -> TracebackType | None:
    innermost_first = reversed(entries_of(error))
    return next((trace for trace in innermost_first if not is_passed_over(trace.tb_frame.f_code.co_filename)), None)


def library_function(error: BaseException) -> str:
    """Return the SciPy or NumPy function that the user's code had called when an error was raised, "" if none."""
    name = last = ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if not _is_own(frame):
            name = ""
        elif not name:
            public = _wrapped_name(frame) or _public_name(frame)
            name = public if public.startswith(("scipy", "numpy", "numba")) else ""
            last = name or last
    return (
        last if isinstance(error, SystemError) else name
    )  # C code raises it in the frame of a function that it called


def in_scipy(frame: FrameType | None, names: Collection[str]) -> bool:
    """Whether a function of SciPy with one of these names, public or full, called for a frame of it."""
    while frame is not None and is_scipy(frame.f_code.co_filename):
        full = f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}"
        if full in names or _public_name(frame) in names:
            return True
        frame = frame.f_back
    return False


def _public_name(frame: FrameType) -> str:
    """Return the public name of a library function: without the private parts of its module."""
    module = frame.f_globals.get("__name__", "")
    return ".".join([part for part in module.split(".") if not part.startswith("_")] + [frame.f_code.co_name])


def _wrapped_name(frame: FrameType) -> str:
    """Return the name of the public function behind a decorator's function, "" for other functions."""
    held = [frame.f_locals.get(name) for name in frame.f_code.co_freevars]
    module = _public_name(frame).rpartition(".")[0]
    return next(
        (f"{module}.{f.__name__}" for f in held if inspect.isfunction(f) and is_public(f"{module}.{f.__name__}")), ""
    )


def is_public(name: str) -> bool:
    """Whether a function is accessible under its full name.

    >>> is_public("numpy.linalg.norm"), is_public("numpy.linalg.wrapper")
    (True, False)
    """
    module, _, last = name.rpartition(".")
    return not last.startswith("_") and hasattr(sys.modules.get(module), last)


def known_name(name: str, error: BaseException) -> str:
    """Return the name of a library function, or of the one that the user's code called for it when an error was raised.

    A decorated function has the name of its decorator's function.
    """
    trace = _innermost_users(error)
    if is_public(name) or trace is None:
        return name
    code, at = trace.tb_frame.f_code, trace.tb_lasti
    called = _CALLED.findall(segment_at(code, at) or linecache.getline(code.co_filename, line_of(code, at)))
    names = (f"{name.rpartition('.')[0]}.{word}" for word in called)
    return next(filter(is_public, names), name)


def is_defect(error: Exception) -> bool:
    """Whether an error in a trace shows a defect of ours: it is no refusal, and none of the user's code.

    Our errors are refusals, and so are the errors that we raise in place of NumPy's functions.

    >>> is_defect(WorkbenchError("a refusal")), is_defect(InvariantError("a defect"))
    (False, True)
    """
    if isinstance(error, WorkbenchError):
        return isinstance(error, InvariantError)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    if all(map(_is_own, frames)):
        return True
    inside = is_symad(frames[-1].f_code.co_filename)
    return inside and not isinstance(error, _REFUSALS)


def raised_by_user(error: BaseException) -> bool:
    """Whether an error comes from a raise or assert statement in the user's own code."""
    trace = _innermost(error)
    return met_by_user(error) and trace is not None and is_raise(trace.tb_frame.f_code, trace.tb_lasti)


def is_raise(code: CodeType, offset: int) -> bool:
    """Whether an instruction is that of a raise or assert statement."""
    return code.co_code[offset] == _RAISE


def met_by_user(error: BaseException) -> bool:
    """Whether an error comes from the user's own code, or from a function of Python that it calls."""
    trace = _innermost(error)
    return trace is not None and not _is_own(trace.tb_frame)


def _innermost(error: BaseException) -> TracebackType | None:
    """Return where an error was raised; the user's line if only the dispatcher and its callees follow."""
    entries, caller = entries_of(error), None
    for trace, following in pairwise(entries):
        if not _is_own(following.tb_frame):
            caller = None
        elif caller is None and is_dispatch(following.tb_frame):
            caller = trace
    return caller or (entries[-1] if entries else None)


def is_attempt(frame: FrameType) -> bool:
    """Whether a frame runs the traced function: its callers are not part of the run."""
    return frame.f_globals.get("__name__") == "symad.tracing.calling.attempts"


def is_dispatch(frame: FrameType) -> bool:
    """Whether a frame only calls a function for the user's code."""
    return frame.f_globals.get("__name__") in ("symad.tracing.calling.dispatch", "symad.tracing.calling.merged_calls")


def raised_in_own_code(error: BaseException) -> bool:
    """Whether an error comes from a raise or assert statement in the user's own code, and not in a package."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return raised_by_user(error) and not is_installed(frames[-1].f_code.co_filename)


@functools.lru_cache(maxsize=FILES)
def is_passed_over(file: str) -> bool:
    """Whether a file cannot be a user's place: a library's, or one of Python's own."""
    return is_library(file) or is_standard(file) or has_labels(file)


def _is_own(frame: FrameType) -> bool:
    return is_library(frame.f_code.co_filename)


def scipy_calls() -> list[str]:
    """Return the full names of SciPy's functions inside the user's code, innermost first."""
    names = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_own(frame):
        if frame.f_globals.get("__name__", "").startswith("scipy."):
            names.append(_public_name(frame))
        frame = frame.f_back
    return names


def calls_back(names: Collection[str]) -> bool:
    """Whether one of these functions of SciPy, called by user code, has called the user's current code."""
    frame = user_frame()
    while frame is not None and not is_attempt(frame):
        if is_scipy(frame.f_code.co_filename) and _public_name(frame) in names:
            return True
        frame = frame.f_back
    return False


def source_segment() -> str:
    """Return the piece of the user's source that runs now if it is on one line and readable, else ""."""
    frame = user_frame()
    return "" if frame is None else segment_at(frame.f_code, frame.f_lasti)


def segment_at(code: CodeType, offset: int) -> str:
    """Return the source of an instruction if it is on one line and readable, else ""."""
    line, last_line, start, end = _position(code, offset)
    if line is None or line != last_line or start is None or end is None:
        return ""
    text = linecache.getline(code.co_filename, line)
    return text.encode()[start:end].decode(errors="replace").strip()


def stores_item() -> bool:
    """Whether the user's frame is at an item assignment, `target[index] = value`."""
    frame = user_frame()
    return frame is not None and frame.f_code.co_code[frame.f_lasti] in _STORES


def formats_text() -> bool:
    """Whether the user's frame is at `text % values`, the one operator that asks its operands for floats."""
    frame = user_frame()
    if frame is None:
        return False
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] == _OPERATOR and code[at + 1] in _REMAINDERS
