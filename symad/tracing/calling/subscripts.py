"""Subscripts: which container the user's code asks for an element at the moment, where its text can tell."""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Mapping, Sequence
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from symad.tracing.calling.user_place import user_frame

_LOOKUPS = frozenset({"get", "pop", "setdefault"})  # of dicts
_WHOLE = frozenset({"int", "round", "min", "max", "abs", "len", "sum"})  # whose results are numbers
_CONTAINERS = (list, tuple, range, str, np.ndarray, Mapping)


def subscripted() -> Any:
    """Return the sequence or mapping of `container[...]` or `container.get(...)` at the user's line, None if unknown.

    Its text is read, and names and attributes in it are looked up; nothing is called.
    """
    frame = user_frame()
    expression = None if frame is None else _running(frame)
    if frame is None or expression is None:
        return None
    if isinstance(expression, ast.Call):
        called = expression.func
        if not isinstance(called, ast.Attribute) or called.attr not in _LOOKUPS:
            return None
        expression = called
    elif not isinstance(expression, ast.Subscript) or not _is_place(expression.slice, frame):
        return None
    found = _value(expression.value, frame)
    return found if isinstance(found, _CONTAINERS) else None


def _is_place(key: ast.expr, frame: FrameType) -> bool:
    """Whether what stands in brackets is one place, and no slice and no tuple of places."""
    if isinstance(key, ast.BinOp | ast.UnaryOp | ast.IfExp | ast.Compare | ast.BoolOp):
        return True
    if isinstance(key, ast.Name):
        return _is_traced(_value(key, frame))
    if not isinstance(key, ast.Call):
        return False
    if isinstance(key.func, ast.Name):
        return key.func.id in _WHOLE
    if not isinstance(key.func, ast.Attribute):
        return False
    owner = _value(key.func.value, frame)
    return isinstance(owner, ModuleType) or _is_traced(owner)


def _is_traced(value: Any) -> bool:
    return hasattr(type(value), "scope")


def _running(frame: FrameType) -> ast.expr | None:
    """Return the expression that a frame is at."""
    line, last, start, end = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    if line is None or last is None or start is None or end is None:
        return None
    lines = [linecache.getline(frame.f_code.co_filename, k).encode() for k in range(line, last + 1)]
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    try:
        return ast.parse("(" + b"".join(lines).decode() + ")", mode="eval").body
    except (SyntaxError, UnicodeDecodeError):
        return None


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """Return the value of an expression of names, attributes, displays and constants."""
    steps: list[ast.Attribute | ast.Subscript] = []
    while isinstance(expression, ast.Attribute | ast.Subscript):
        steps.append(expression)
        expression = expression.value
    found = _begun(expression, frame)
    for step in reversed(steps):
        if isinstance(step, ast.Attribute):
            found = _attribute(found, step.attr)
        elif isinstance(step.slice, ast.Constant) and isinstance(found, list | tuple | dict):
            try:
                found = found[step.slice.value]  # type: ignore[index]
            except (LookupError, TypeError):
                return None
        else:
            return None
    return found


def _begun(expression: ast.expr, frame: FrameType) -> Any:
    if isinstance(expression, ast.Name):
        return frame.f_locals.get(expression.id, frame.f_globals.get(expression.id))
    if isinstance(expression, ast.List | ast.Tuple):
        return None if any(isinstance(part, ast.Starred) for part in expression.elts) else [None] * len(expression.elts)
    if isinstance(expression, ast.Dict) and all(isinstance(key, ast.Constant) for key in expression.keys):
        return dict.fromkeys(key.value for key in expression.keys if isinstance(key, ast.Constant))
    return None


def _attribute(owner: Any, name: str) -> Any:
    found = inspect.getattr_static(owner, name, None)
    return None if hasattr(type(found), "__get__") else found


def places_of(container: Sequence[Any] | Mapping[Any, Any]) -> list[int]:
    """Return the whole numbers that are places in a sequence, from either end, or keys of a mapping.

    >>> places_of("abc"), places_of({1: "one", 2.0: "two", "three": 3})
    ([0, 1, 2, -1, -2, -3], [1, 2])
    """
    if isinstance(container, Mapping):
        numbers = [key for key in container if isinstance(key, int | float) and key == key // 1]
        return [int(number) for number in numbers]
    count = 0 if isinstance(container, np.ndarray) and not container.ndim else len(container)
    return [*range(count), *range(-1, -count - 1, -1)]
