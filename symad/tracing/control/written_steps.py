"""Python loops whose steps are functions (`loop_steps`): trace one step for all items, with carries.

Variables that are bound before the loop are carried if they are numbers, truth values or arrays. All others must not
change. Variables that the step binds first have the values of the last item after the loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

import symad.tracing.values.containers as containers
from symad.reach.reachable_state import reached_functions
from symad.tracing.calling.loop_steps import UNBOUND
from symad.tracing.calling.running import callee
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.carries import Operands, carry_of, is_real, is_truth, operands_of, stacked
from symad.tracing.control.reasons import NotOneBodyError
from symad.tracing.control.written import written_chain
from symad.tracing.values.array import Array
from symad.tracing.values.node_operands import nodes_of
from symad.tracing.values.scalar import Scalar

FEWEST = 8  # items: fewer are followed one by one; calls are equally fast there (6: 0.11, 10: 0.12 microseconds)
_ASKING_FOR_TYPES = frozenset({"isinstance", "issubclass", "type", "str", "repr", "format"})
_SEQUENCES = (list, tuple, range, np.ndarray, Array)


class Paired:
    """The items of zip or enumerate of sequences. They can be iterated over again."""

    def __init__(self, f: Callable[..., Iterable[Any]], args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        self._iterable = partial(f, *args, **keywords)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable())


def paired(f: Any, *args: Any, **keywords: Any) -> Any:
    """Return `f(*args)`, the items of a loop, in a form that can be read in advance where f pairs sequences."""
    if (f is zip or f is enumerate) and all(type(arg) in _SEQUENCES for arg in args[: None if f is zip else 1]):
        return Paired(f, args, keywords)
    return callee(f)(*args, **keywords)


def written_steps(step: Callable[..., Any], items: Any, names: Sequence[str], state: Sequence[Any]) -> tuple[Any, ...]:
    """Return the variables after a loop; NotOneBodyError if items differ in form or the loop may end early."""
    operands = _operands(step, items)
    variables = _Variables(names, state)

    def once(before: list[Any], item: Any) -> tuple[list[Any], list[Any]]:
        values, leaves = variables.bound(before), containers.flatten(item)[0]
        with _unchanged([*values, *leaves]):
            goes_on, *_, bound = step(item, *values)
        if goes_on is not True:
            raise NotOneBodyError("it may end before the last item")
        return variables.taken(bound, leaves)

    last, rows = written_chain(step, once, variables.carry, operands, *state)
    (item,) = operands.row(operands.count - 1)
    return variables.after(last, [row[-1] for row in rows], containers.flatten(item)[0])


def written_while(
    step: Callable[..., Any], names: Sequence[str], state: Sequence[Any], limit: int
) -> tuple[int, Any, tuple[Any, ...]]:
    """Return the node of whether a `while` goes on after `limit` steps, whether `break` has left it, and its variables.

    See `written_steps`.
    """
    if _asks_for_types(step):
        raise NotOneBodyError("it may ask for the type of a whole number, and all numbers are real ones there")
    flags = "goes on", "left by break"  # beside the variables: names with blanks are none of the user's
    names, state = [*flags, *names], [True, False, *state]
    variables = _Variables(names, state, all_numbers=True)

    def once(before: list[Any], item: Any) -> tuple[list[Any], list[Any]]:
        goes_on, _, *others = variables.bound(before)
        if not goes_on:
            return before, []
        known = [first if first is UNBOUND else value for first, value in zip(state[2:], others, strict=True)]
        with _unchanged(known):
            goes_on, broke, returns, _, bound = step(item, *known)
        if returns:
            raise NotOneBodyError("it is left by return")
        pairs = zip(names[2:], others, strict=True)
        kept = {name: value for name, value in pairs if bound.get(name, UNBOUND) is UNBOUND}
        return variables.taken(bound | kept | dict(zip(flags, (goes_on, broke), strict=True)), ())

    last, _ = written_chain(
        step, once, variables.carry, operands_of((None,), [], [], limit + 1), *state
    )  # the last one only asks
    goes_on, broke, *values = variables.after(last, (), ())
    scope = innermost_scope()
    assert scope is not None
    return int(nodes_of(goes_on, scope)), broke, tuple(values)


@contextmanager
def _unchanged(values: Sequence[Any]) -> Iterator[None]:
    """Refuse stores into the arrays of a step: other variables may have the arrays that these stand for."""
    before = [(value, value.nodes.copy()) for value in values if type(value) is Array]
    yield
    if any(not np.array_equal(value.nodes, nodes) for value, nodes in before):
        raise NotOneBodyError("it stores into an array")


class _Variables:
    """The variables of a loop: those that are carried, and the values of the others after a step.

    Whole numbers, and variables that the step binds first, are carried only with `all_numbers`.
    """

    def __init__(self, names: Sequence[str], state: Sequence[Any], *, all_numbers: bool = False) -> None:
        self._names, self._state = names, state
        self._carried = [k for k, value in enumerate(state) if _is_carried(value, all_numbers)]
        self._truths = {k for k in self._carried if is_truth(state[k])}
        self.carry = carry_of([_number(state[k]) for k in self._carried], "the variables of a loop")
        self._others: list[tuple[Any, ...]] | None = None  # on the first path

    def bound(self, carry: Sequence[Any]) -> list[Any]:
        """Return the values before a step, or after the loop."""
        values = list(self._state)
        for k, number in zip(self._carried, carry, strict=True):
            values[k] = number > 0.5 if k in self._truths else number
        return values

    def taken(self, bound: dict[str, Any], leaves: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the carries after a step, and the numbers in variables that it binds first."""
        values = [bound.get(name, UNBOUND) for name in self._names]
        if any(is_truth(values[k]) is not (k in self._truths) for k in self._carried):
            raise NotOneBodyError("a variable is a number at times, and a truth value at others")
        others = [
            _CARRIED if k in self._carried else _kind(value, before, leaves)
            for k, (value, before) in enumerate(zip(values, self._state, strict=True))
        ]
        self._others = self._others or others
        if others != self._others:
            raise NotOneBodyError("a variable that is no real number depends on a condition")
        ends = [value for value, kind in zip(values, others, strict=True) if kind is _LAST]
        return [_number(values[k]) for k in self._carried], ends

    def after(self, carry: Sequence[Any], ends: Sequence[Any], leaves: Sequence[Any]) -> tuple[Any, ...]:
        """Return the values after the loop."""
        values, rest = self.bound(carry), iter(ends)
        for k, kind in enumerate(self._others or ()):
            if kind is _LAST:
                values[k] = next(rest)
            elif kind is not _CARRIED:
                name, content, *_ = kind
                values[k] = leaves[content] if name == "item" else content
        return tuple(values)


_CARRIED, _LAST = ("carried",), ("last",)


def _is_carried(value: Any, all_numbers: bool) -> bool:
    kind = type(value)
    if all_numbers and (kind is int or value is UNBOUND):
        return True
    is_array = kind is np.ndarray and value.dtype.kind == "f"
    return is_array or kind in (float, bool, np.float64, np.bool_, Scalar, Array)


def _number(value: Any) -> Any:
    if value is UNBOUND:
        return math.nan
    return np.where(value, 1.0, 0.0)[()] if is_truth(value) else value


def _kind(value: Any, before: Any, leaves: Sequence[Any]) -> tuple[Any, ...]:
    """Return the value of a variable without a carry after a step, in a form that can be compared between paths."""
    if value is before or (before is UNBOUND and type(value) in (int, bool, str, type(None))):
        return "same", value, type(value)
    place = next((k for k, leaf in enumerate(leaves) if leaf is value), None)
    if before is UNBOUND and place is not None:
        return "item", place
    if before is UNBOUND and is_real(value) and not is_truth(value):
        return _LAST
    raise NotOneBodyError("a variable that is no real number changes")


def _operands(step: Callable[..., Any], items: Any) -> Operands:
    """Return items as arrays along their first axis."""
    items = list(items) if type(items) is Paired else items
    kind = type(items)
    if kind not in _SEQUENCES or len(items) < FEWEST:
        raise NotOneBodyError
    if kind is range:
        items = np.arange(items.start, items.stop, items.step)
    elif kind in (list, tuple):
        items = _columns(items)
    dtypes = {leaf.dtype for leaf in containers.flatten(items)[0] if type(leaf) is np.ndarray}
    if not dtypes <= {np.dtype(np.float64), np.dtype(np.int64)}:  # others round and overflow in their own way
        raise NotOneBodyError
    if np.dtype(np.int64) in dtypes and _asks_for_types(step):
        raise NotOneBodyError("it may ask for the type of a whole number, and all numbers are real ones there")
    names = containers.paths(items, "items")
    return operands_of((items,), names, [0] * len(names))


def _columns(items: Sequence[Any]) -> Any:
    """Return items that are alike as one container of arrays."""
    parts = [containers.flatten(item) for item in items]
    leaves, structure = parts[0]
    if not leaves or any(other != structure for _, other in parts):
        raise NotOneBodyError
    columns = list(zip(*[leaves for leaves, _ in parts], strict=True))
    for column in columns:
        kinds = {type(leaf) for leaf in column}
        if not (kinds <= {int} or kinds <= {float, np.float64, Scalar, Array}) or len(set(map(np.shape, column))) > 1:
            raise NotOneBodyError
    return containers.unflatten(structure, [stacked(column) for column in columns])


def _asks_for_types(step: Callable[..., Any]) -> bool:
    functions, is_complete = reached_functions(step)
    return not is_complete or any(not _ASKING_FOR_TYPES.isdisjoint(f.__code__.co_names) for f in functions)
