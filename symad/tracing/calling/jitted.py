"""Run the Python function of a numba function on traced values.

Numba's compiled code takes plain numbers only. Each of its functions keeps the Python function behind it, which is
traced like other user code; a warning says so, once for each function.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

from symad.errors import NumbaWarning
from symad.reach.object_classes import python_form as python_form
from symad.tracing.values.node_operands import holds_traced

Function = Callable[..., Any]


def traced_form(f: Function) -> Function:
    """Return the form of one of numba's functions, any other function unchanged; ufuncs have their own protocol."""
    function = None if hasattr(f, "_dispatcher") else python_form(f)
    return f if function is None else traced_through(f, function)


def traced_through(original: Any, function: FunctionType) -> Function:
    """Return a form of one of numba's functions that calls a Python function on traced values."""

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not holds_traced((*args, *keywords.values())):
            return original(*args, **keywords)
        tell(function)
        return function(*args, **keywords)

    call.py_func = function  # type: ignore[attr-defined]  # as numba's functions have
    return call


def tell(function: FunctionType) -> None:
    """Warn, once, that the Python function of one of numba's functions is traced."""
    code, names = function.__code__, function.__globals__
    warnings.warn_explicit(
        f"{function.__name__} is compiled by numba for plain numbers: the Python function it was made of is traced",
        NumbaWarning,
        code.co_filename,
        code.co_firstlineno,
        names.get("__name__", code.co_filename),
        names.setdefault("__warningregistry__", {}),
    )
