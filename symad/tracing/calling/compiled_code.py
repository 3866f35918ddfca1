"""Never give object arrays of traced values to compiled functions of packages.

Where no stand-in reaches, NumPy makes arrays of addresses of traced scalars. Compiled code that does not check their
type takes the addresses for numbers, and raises no error. So before such an array is made, the names in the running
code, and in the Python functions that it calls by name, are searched for compiled functions that do not belong to
NumPy, SciPy (which has stand-ins) or Python's own library.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from symad.tracing.calling.user_place import is_library, is_standard, is_symad

_LOOKED_AT = 200  # functions
_KNOWN = sys.stdlib_module_names | {"numpy", "scipy", "symad", "codegen", "sympy", "mpmath", "optree", "numba"}
_KINDS = ("cython_function_or_method", "fused_cython_function", "builtin_function_or_method", "nb_func", "nb_method")


def compiled_function_beside(frame: FrameType | None) -> str:
    """Return the full name of a compiled function that the code of a frame, or of its callers, may call; "" if none.

    The search ends at the function that is traced.
    """
    waiting: list[tuple[CodeType, Mapping[str, Any], Mapping[str, Any]]] = []
    while frame is not None and not is_symad(frame.f_code.co_filename):
        if not _is_passed_over(frame.f_code.co_filename):
            waiting.append((frame.f_code, frame.f_globals, frame.f_locals))
        frame = frame.f_back
    seen = set[int]()
    while waiting and len(seen) < _LOOKED_AT:
        code, names, variables = waiting.pop()
        if id(code) in seen:
            continue
        seen.add(id(code))
        for value in _named(code, names, variables):
            is_builtin = isinstance(value, BuiltinFunctionType) or type(value).__name__ in _KINDS
            if is_builtin and _module(value).partition(".")[0] not in _KNOWN:
                return f"{_module(value)}.{getattr(value, '__name__', '?')}"
            function = value.__func__ if isinstance(value, MethodType) else value
            if isinstance(function, FunctionType) and not _is_passed_over(function.__code__.co_filename):
                waiting.append((function.__code__, function.__globals__, {}))
    return ""


def _named(code: CodeType, names: Mapping[str, Any], variables: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the values of the names in code: variables, global names, and attributes of the modules among them."""
    for name in (*code.co_names, *code.co_varnames, *code.co_freevars):
        value = variables[name] if name in variables else names.get(name)
        yield value
        if isinstance(value, ModuleType):
            yield from (vars(value).get(attribute) for attribute in code.co_names)


def _module(value: Any) -> str:
    """Return the module of a function, or that of the type of the object whose method it is."""
    module = getattr(value, "__module__", None)
    owner = getattr(value, "__self__", None)
    if isinstance(module, str):
        return module
    return owner.__name__ if isinstance(owner, ModuleType) else type(owner).__module__


def _is_passed_over(file: str) -> bool:
    return is_library(file) or is_standard(file)
