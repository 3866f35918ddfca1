"""Shorten tracebacks of public functions to the user's lines.

All lines are kept if the environment variable SYMAD_TRACEBACK is "full", and for defects of ours.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from contextvars import copy_context
from functools import wraps
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from symad.errors import InvariantError
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.user_place import is_defect, is_ours, is_symad, line_of

VARIABLE = "SYMAD_TRACEBACK"
CAUSES = 20  # errors behind an error whose tracebacks are shortened too

P = ParamSpec("P")
R = TypeVar("R")


def public_api(f: Callable[P, R]) -> Callable[P, R]:
    """Return a public function whose errors have the user's lines.

    >>> @public_api
    ... def squared(x):
    ...     return x * x
    >>> squared(3), squared.__name__
    (9, 'squared')
    """

    @wraps(f)
    def public_function(*args: P.args, **keywords: P.kwargs) -> R:
        try:
            if innermost_scope() is not None:
                return f(*args, **keywords)
            return _isolated(f, *args, **keywords)  # lines of symad's are left out: SYMAD_TRACEBACK=full shows them
        except Exception as error:
            leave_out_ours(error)
            raise

    return public_function


def _isolated(f: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
    """Call a function in a copy of the context: however it ends, no variable that symad has set stays set.

    Values that the user's code sets in context variables of its own are handed on.
    """
    context = copy_context()
    try:
        return context.run(f, *args, **keywords)
    finally:
        for variable, value in context.items():
            if not variable.name.startswith(_OURS) and variable.get(context) is not value:
                variable.set(value)


_OURS = ("symad_", "codegen_")  # how the names of our context variables begin


def leave_out_ours(error: BaseException) -> None:
    """Keep only the first of consecutive symad lines in a traceback, and in those of the errors behind it."""
    if innermost_scope() is not None or os.environ.get(VARIABLE) == "full":
        return  # an outer function is being traced, and looks at where an error was raised
    cause: BaseException | None = error
    for _ in range(CAUSES):
        if cause is None:
            return
        if isinstance(cause, InvariantError) or (isinstance(cause, Exception) and is_defect(cause)):
            return
        cause.__traceback__ = _without_ours(cause.__traceback__)
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _without_ours(trace: TracebackType | None) -> TracebackType | None:
    kept: list[TracebackType] = []
    inside = False
    while trace is not None:
        ours = _is_ours(trace.tb_frame, inside)
        if not (ours and inside):
            kept.append(trace)
        inside, trace = ours, trace.tb_next
    shortened: TracebackType | None = None
    for entry in reversed(kept):
        line = line_of(entry.tb_frame.f_code, entry.tb_lasti)  # tb_lineno may be None
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, line)
    return shortened


def _is_ours(frame: FrameType, inside: bool) -> bool:
    """Whether a frame is symad's, or one of SymPy or functools that symad has called."""
    file = frame.f_code.co_filename
    return is_symad(file) or (inside and (is_ours(file) or file == functools.__file__))
