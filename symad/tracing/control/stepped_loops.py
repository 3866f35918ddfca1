"""Python loops whose steps are functions (`loop_steps`): follow each step and merge its paths."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from symad.tracing.calling.handlers import is_caught
from symad.tracing.calling.loop_steps import BRANCHED, EITHER, LEFT, PAIRED, STEPPED, UNBOUND
from symad.tracing.calling.rewriting import provide
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.call_results import NUMBER, TRUTH, CallResults, NotFollowedError
from symad.tracing.control.paths import Paths
from symad.tracing.control.reasons import written_if_possible
from symad.tracing.control.written_steps import Paired, paired, written_steps, written_while
from symad.tracing.values.array import Array
from symad.tracing.values.constant_nodes import is_boolean
from symad.tracing.values.scalar import Scalar


class StepResults(CallResults):
    """The variables of a loop after each path of a step, whole numbers and arrays included.

    Truth values are merged as numbers and converted back. Arrays are merged only if the function changes none in place:
    another variable may have the same array.
    """

    arrays_too = False

    def common(self, column: list[Any]) -> Any:
        """Return the constant value of a variable on all paths, NUMBER if it is a number that differs."""
        first = column[0]
        if all(leaf is first for leaf in column) and not isinstance(first, Scalar):
            return first
        if type(first) in (bool, int, str) and all(type(leaf) is type(first) and leaf == first for leaf in column):
            return first
        bound = [leaf for leaf in column if leaf is not UNBOUND]
        if all(map(_is_truth, bound)):
            return TRUTH
        if all(type(leaf) in _NUMBERS and not _is_truth(leaf) for leaf in bound):
            return NUMBER
        if self.arrays_too and len(bound) == len(column) and all(map(_is_array, bound)):
            return NUMBER
        raise NotFollowedError

    def number(self, leaf: Any) -> Any:
        """Return a number in place of a truth value, or of a variable without a value."""
        if leaf is UNBOUND:
            return np.nan
        return np.where(leaf, 1.0, 0.0)[()] if _is_truth(leaf) else leaf


class _StepResultsOfArrays(StepResults):
    arrays_too = True


_NUMBERS = (Scalar, float, int, np.float64)


def _is_truth(leaf: Any) -> bool:
    if type(leaf) is Scalar:
        return is_boolean(leaf.scope.graph, leaf.node)
    return isinstance(leaf, bool | np.bool_)


def _is_array(leaf: Any) -> bool:
    return type(leaf) is Array or (type(leaf) is np.ndarray and leaf.dtype.kind == "f")


def stepped(
    step: Callable[..., Any],
    items: Any,
    bound_before: dict[str, Any],
    names: tuple[str, ...],
    stores: bool,
    added_to: tuple[str, ...],
) -> tuple[Any, ...]:
    """Return whether a loop was left, whether by a return, of which value, and its variables after it.

    `bound_before` has the variables before the loop; `stores` says whether the function changes arrays in place, and
    `added_to` which variables it would if they were arrays. Where paths are followed, a `while` that goes on after
    `max_paths` steps has no value.
    """
    paths = _followed()
    flags: tuple[Any, ...] = (True, False, False, UNBOUND)
    state = tuple(bound_before.get(name, UNBOUND) for name in names)
    if paths is not None:
        with written_if_possible():
            if items is not UNBOUND:
                return (False, False, UNBOUND, *written_steps(step, items, names, state))
            goes_on, broke, state = written_while(step, names, state, paths.limit)
            paths.unfinished(goes_on)
            return (broke, False, UNBOUND, *state)
    endless, count = not isinstance(items, Sized | Paired), 0
    for item in repeat(UNBOUND) if items is UNBOUND else items:
        once = partial(_once, step, names, flags, item, state)
        if paths is None:
            values = once()
        else:
            bound = bound_before | dict(zip(names, state, strict=True))
            stores = stores or any(_is_array(bound.get(name)) for name in added_to)
            values = _merged(paths, step, (item, *state), once, stores)
        flags, state = values[:4], values[4:]
        if flags[0] is False:
            break
        if isinstance(flags[0], Scalar) and paths is not None:
            count += 1
            if endless and count > paths.limit:  # the last one only asks
                paths.unfinished(flags[0].node)
                break
    return (*flags[1:], *state)


def _once(
    step: Callable[..., Any], names: tuple[str, ...], flags: tuple[Any, ...], item: Any, state: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return flags and variables after a step; unchanged if the loop has been left before."""
    if flags[0] is not True and not flags[0]:
        return (False, *flags[1:], *state)
    *status, bound = step(item, *state)
    return (*status, *(bound.get(name, UNBOUND) for name in names))


def branched(
    step: Callable[..., dict[str, Any]],
    test: Any,
    bound_before: dict[str, Any],
    names: tuple[str, ...],
    stores: bool,
    added_to: tuple[str, ...],
) -> tuple[Any, ...]:
    """Return the variables after an `if` statement, whose paths are merged; `test` is True if the step asks it."""
    state = tuple(bound_before.get(name, UNBOUND) for name in names)

    def once() -> tuple[Any, ...]:
        after = step(test, *state)
        return tuple(after.get(name, UNBOUND) for name in names)

    paths = _followed() if test is True or type(test) is Scalar else None
    if paths is None:
        return once()
    stores = stores or any(_is_array(bound_before.get(name)) for name in added_to)
    merged: tuple[Any, ...] = _merged(paths, step, (test, *state), once, stores)
    return merged


def _merged(
    paths: Paths, step: Callable[..., Any], args: tuple[Any, ...], once: Callable[[], Any], stores: bool
) -> Any:
    paths.count_merged_step()
    results = StepResults if stores else _StepResultsOfArrays
    return paths.merge(step, args, {}, run=once, results=results, hidden=True)


def either(expression: Callable[[], Any]) -> Any:
    """Return the value of a conditional expression, with its paths merged."""
    paths = _followed()
    if paths is None:
        return expression()
    paths.count_merged_step()
    expression.__name__ = expression.__qualname__.removesuffix(".<locals>.<lambda>").rpartition(".")[2]  # in messages
    return paths.merge(expression, (), {}, hidden=True)


def _followed() -> Paths | None:
    """Return the exploration of paths here; None where a handler could meet our own errors."""
    scope = innermost_scope()
    paths = None if scope is None else scope.deciding()
    return paths if isinstance(paths, Paths) and not is_caught() else None


provide({STEPPED: stepped, BRANCHED: branched, EITHER: either, PAIRED: paired, LEFT: UNBOUND})
