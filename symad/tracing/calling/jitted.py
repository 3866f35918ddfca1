"""Functions that numba compiles: where they are given traced values, the Python function that they were made of runs.

Numba's compiled code takes plain numbers only. Each of its functions keeps the Python function that it was made of,
which is traced as any other code of the user's; a warning says so, once for each.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any

from symad.errors import NumbaWarning
from symad.reach.object_classes import python_form as python_form
from symad.tracing.values.node_operands import holds_traced

Function = Callable[..., Any]


def jitted_forms(names: Iterable[tuple[str, Any]]) -> dict[str, Function]:
    """Return the forms of functions that numba.jit has made, by their names. Ufuncs have a protocol of their own."""
    forms = dict[str, Function]()
    for name, value in names:
        function = None if hasattr(value, "_dispatcher") else python_form(value)
        if function is not None:
            forms[name] = _traced_through(value, function)
    return forms


def traced_form(f: Function) -> Function:
    """Return the form of one of numba's functions, every other function as it is."""
    return jitted_forms([("", f)]).get("", f)


def _traced_through(original: Any, function: FunctionType) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if not holds_traced((*args, *keywords.values())):
            return original(*args, **keywords)
        tell(function)
        return function(*args, **keywords)

    call.py_func = function  # type: ignore[attr-defined]  # as numba's has it
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
