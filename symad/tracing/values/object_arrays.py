"""Object arrays that NumPy makes of traced scalars, and the errors of NumPy's loops over them.

NumPy's loops over objects compare by `>=` and `bool` and know no NaN: results of maximum, sort, argmax, sign, any...
differ from those for floats. So user code gets no such array: the first run refuses it, and in the second run the
stand-in of `np.array` makes a traced one. Where no stand-in reaches, and in SciPy's code, comparisons are watched.

There NumPy makes arrays of addresses of traced scalars. Compiled code that does not check their type takes the
addresses for numbers, and raises no error. So before such an array is made, the names in the running code, and in the
Python functions that it calls by name, are searched for compiled functions that do not belong to NumPy, SciPy (which
has stand-ins) or Python's own library.
"""

from __future__ import annotations

import dis
import math
import sys
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NoReturn

import numpy as np

from symad.tracing.calling.recorded_errors import discarding_recorded_errors, innermost_watch
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import (
    in_scipy,
    is_library,
    is_numpy,
    is_ours,
    is_scipy,
    is_standard,
    is_symad,
    source_segment,
    user_place,
)
from symad.tracing.numpy.registry import STAND_INS
from symad.tracing.values.known_numbers import SymbolicValueError, value_of
from symad.tracing.values.traced import IndexNumberError, NumberError, refuse_number

_COMPARES = dis.opmap["COMPARE_OP"]
_CALLS = {code for name, code in dis.opmap.items() if "CALL" in name}
_ITEMS = {dis.opmap[name] for name in ("BINARY_SUBSCR", "STORE_SUBSCR") if name in dis.opmap}
_READS_BY_OPERATOR = (dis.opmap["BINARY_OP"], 26)  # since CPython 3.14, NB_SUBSCR


class ObjectArrayError(NumberError):
    """NumPy made an object array of traced values, or compared those in one."""


def asked_by_an_index(frame: FrameType) -> bool:
    """Whether C code asks for an array at `ordinary[index]` or `ordinary[index] = ...`.

    For a stored value, NumPy asks with the dtype of the target.
    """
    code, at = frame.f_code.co_code, frame.f_lasti
    return code[at] in _ITEMS or (code[at], code[at + 1]) == _READS_BY_OPERATOR


def may_trace_ordinary_arrays() -> bool:
    """Whether the function can run again with traced arrays in place of ordinary ones."""
    watch = innermost_watch()
    return watch is not None and not watch.makes_arrays


def refuse_places() -> NoReturn:
    """Raise the error for an index of an ordinary array, after which the function runs again."""
    refuse_number("places or a mask", "write np.take(data, places), or np.where(mask, data, 0)", IndexNumberError)


def check_making(frame: FrameType) -> None:
    """Raise ObjectArrayError if NumPy makes an object array in user code, which can run again with stand-ins.

    A function of SciPy with a stand-in may never make one, nor may code beside a compiled function of another package:
    compiled code may take the addresses of objects for numbers, as `ndimage.distance_transform_edt` does. Code that is
    generated at every call has new names each time, so no stand-in reaches it.
    """
    watch = innermost_watch()
    if watch is None or asked_by_an_index(frame):
        return
    caller: FrameType | None = frame
    while caller is not None and is_numpy(caller.f_code.co_filename):
        caller = caller.f_back
    if caller is None or is_ours(caller.f_code.co_filename):
        return
    scipy = is_scipy(caller.f_code.co_filename)
    if watch.makes_objects:
        if scipy and in_scipy(caller, STAND_INS):
            raise _anew_error()
        name = compiled_function_beside(caller)
        if name:
            raise _compiled_error(name)
        return
    if scipy and not in_scipy(caller, STAND_INS):
        return  # only a function with a stand-in is refused before an error
    raise ObjectArrayError(
        "a NumPy function got traced values and made an object array of them",
        where=user_place(),
        why="NumPy's loops over objects are not those over floats",
        do="make the array with np.stack([...]), np.concatenate or np.zeros_like(x)",
    )


def _anew_error() -> ObjectArrayError:
    segment = source_segment()
    return ObjectArrayError(
        f"{repr(segment) if segment else 'a function of SciPy'} got traced values in code that each call makes anew",
        where=user_place(),
        why="so it calls SciPy's own function, whose compiled part may take them for numbers",
        do="make the function (exec, eval, lambdify) once, outside of what is differentiated",
    )


def _compiled_error(name: str) -> ObjectArrayError:
    return ObjectArrayError(
        f"traced values would become an object array in code that calls {name}",
        where=user_place(),
        why="compiled code may take the addresses in such an array for numbers",
        do="write this step with NumPy functions, by names of your module or ones that are imported inside",
    )


def check_order(frame: FrameType, scope: Scope, node: int, other: Any, sign: str) -> None:
    """Raise ObjectArrayError if C code that may be NumPy's compares traced values that may be NaN (or equal)."""
    if frame.f_code.co_code[frame.f_lasti] == _COMPARES or not _is_watched(frame):
        return
    with_ties = sign in (">=", "<=")  # maximum and minimum, whose derivative at a tie differs
    left = _known(scope, node)
    right = other if isinstance(other, int | float) else _known(scope, getattr(other, "node", None))
    if left is None or right is None or math.isnan(left) or math.isnan(right) or (with_ties and left == right):
        raise _loop_error(f"traced values by {sign}")


def check_truth(frame: FrameType) -> None:
    """Raise ObjectArrayError if C code that may be NumPy's asks for the truth of a traced number."""
    if frame.f_code.co_code[frame.f_lasti] in _CALLS and _is_watched(frame):
        raise _loop_error("a traced number with zero")


def _loop_error(what: str) -> ObjectArrayError:
    segment = source_segment()
    return ObjectArrayError(
        f"{repr(segment) if segment else 'a function'} compares {what} in a library's code",
        where=user_place(),
        why="which knows no NaN, and no derivative",
        do="write this step with NumPy functions; an array of traced values with np.stack([...]) or np.zeros_like(x)",
    )


def _is_watched(frame: FrameType) -> bool:
    """Whether the C code that was called may be NumPy's: in the second run, calls by the user are stand-ins."""
    watch = innermost_watch()
    if watch is None or is_ours(frame.f_code.co_filename):
        return False
    file = frame.f_code.co_filename
    return watch.makes_objects or not watch.has_stand_ins or is_numpy(file) or is_scipy(file)


def _known(scope: Scope, node: int | None) -> float | None:
    if node is None:
        return None
    try:
        with discarding_recorded_errors():
            return float(value_of(scope, node))
    except SymbolicValueError:
        return None


def boxed(value: Any) -> Any:
    """Return an object array without axes that holds a value."""
    box = np.empty((), dtype=object)
    box[()] = value
    return box


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
