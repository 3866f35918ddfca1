"""Follow the paths of a user's function call by call and merge them; also of `max` and `min`.

A function that asks 100 conditions, one in each call of another one, has 2**100 paths; each call has two. If a function
has too many paths, it runs again, and `dispatch` calls these forms of the functions that ask. Without conditions on
symbols each form is the original function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

import numpy as np

import symad.tracing.values.node_builders as op
from symad.errors import LimitError
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.values.array import wrap
from symad.tracing.values.node_operands import holds_traced, nodes_of, scope_of
from symad.tracing.values.scalar import Scalar

Function = Callable[..., Any]


class PathsError(LimitError):
    """A function has more paths than the limit; `deciding` is the user's code that met conditions."""

    def __init__(self, what: str, *, where: str, why: str, do: str, deciding: Iterable[CodeType]) -> None:
        super().__init__(what, where=where, why=why, do=do)
        self.deciding: frozenset[CodeType] = frozenset(deciding)


def merged(f: Function) -> Function:
    """Return the form of a function that merges the paths of its calls."""

    @functools.wraps(f)
    def call(*args: Any, **keywords: Any) -> Any:
        scope = innermost_scope()
        paths = None if scope is None else scope.deciding()
        if paths is None or not holds_traced((*args, *keywords.values())):
            return f(*args, **keywords)
        return paths.merge(f, args, keywords)

    return call


def _extremum(original: Function, is_better: Callable[[Any, Any], Any]) -> Function:
    """Return the form of max or min that chooses between numbers without a path: the first of equal ones."""

    @functools.wraps(original)
    def call(*args: Any, key: Any = None, **keywords: Any) -> Any:
        values = list(args[0]) if len(args) == 1 else list(args)
        scope = innermost_scope()
        keys = values if key is None else [key(value) for value in values]
        if scope is None or scope.deciding() is None or not (_has_numbers(values) and _has_numbers(keys)):
            return original(values, key=key, **keywords)
        best, highest = values[0], keys[0]
        for value, height in zip(values[1:], keys[1:], strict=True):
            better = is_better(height, highest)
            best, highest = _chosen(better, value, best), _chosen(better, height, highest)
        return best

    return call


def _has_numbers(values: list[Any]) -> bool:
    numbers = all(isinstance(value, Scalar | int | float | np.number) for value in values)
    return numbers and any(type(value) is Scalar for value in values)


def _chosen(condition: Any, value: Any, otherwise: Any) -> Any:
    if not isinstance(condition, Scalar):
        return value if condition else otherwise
    scope = scope_of(condition, value, otherwise)
    node, *sides = (int(nodes_of(part, scope)) for part in (condition, value, otherwise))
    return wrap(np.array(op.select(scope.graph, node, *sides)), scope)


def _sorted(values: Iterable[Any], /, *, key: Any = None, reverse: bool = False) -> Any:
    """The form of sorted: numbers are gathered in the order of their keys, which is no path.

    All are NaN where a key is: Python's order of the others then says nothing about their values.
    """
    listed, scope = list(values), innermost_scope()
    keys = listed if key is None else [key(value) for value in listed]
    if scope is None or scope.deciding() is None or len(listed) < 2 or not _has_numbers(keys):
        return sorted(listed, key=key, reverse=reverse)
    rows = [value if isinstance(value, tuple) else (value,) for value in listed]
    kinds = {tuple(map(_is_number, row)) for row in rows}
    if len(kinds) > 1 or not all(next(iter(kinds))):
        return sorted(listed, key=key, reverse=reverse)
    heights = np.stack(keys)
    order, in_order = np.argsort(-heights if reverse else heights, kind="stable"), ~np.any(np.isnan(heights))
    gathered = [np.take(np.stack([*column, keys[0]])[:-1], order) for column in zip(*rows, strict=True)]
    columns = [np.where(in_order, column, np.nan * column) for column in gathered]
    ordered = [tuple(row) for row in zip(*columns, strict=True)]
    return ordered if isinstance(listed[0], tuple) else [row[0] for row in ordered]


def _is_number(value: Any) -> bool:
    return isinstance(value, Scalar | float | np.floating)


EXTREMA = {"sorted": _sorted, "max": _extremum(max, lambda a, b: a > b), "min": _extremum(min, lambda a, b: a < b)}
