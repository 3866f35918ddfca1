"""Lists that are read or changed at a place that depends on values."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from symad.tracing.calling.subscripts import Subscripted
from symad.tracing.values.array import Array, Picked, shown
from symad.tracing.values.computed_places import picked, stored
from symad.tracing.values.constant_nodes import is_boolean
from symad.tracing.values.node_arrays import all_truths
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.scalar import Scalar

_NUMBERS = {Scalar, float, int, np.float64}


class Listed(Subscripted):
    """A list whose element at a traced place is a choice if all elements are numbers, or arrays of one shape.

    So places are not paths.
    """

    def __getitem__(self, key: Any) -> Any:
        element = _chosen(self._container, key)
        return super().__getitem__(key) if element is None else element

    def __setitem__(self, key: Any, value: Any) -> None:
        values = _with_set(self._container, key, value)
        self._container[key if values is None else slice(None)] = value if values is None else values

    def __delitem__(self, key: Any) -> None:
        del self._container[key]


def _chosen(values: list[Any], key: Any) -> Any:
    """Return the element of a list at an unknown place, None if no choice is possible."""
    if type(key) is not Scalar or not _are_alike(values):
        return None
    scope = scope_of(key, *values)
    nodes = [nodes_of(value, scope) for value in values]

    def again() -> Any:
        return picked(scope, np.stack(nodes), key)

    element = again()
    return None if element is None else shown(scope, np.asarray(element), nodes, again)


def _with_set(values: list[Any], key: Any, value: Any) -> list[Any] | None:
    """Return the elements of a list after a store at an unknown place, None if no choice is possible."""
    if type(key) is not Scalar or not values or not _are_alike([*values, value]):
        return None
    scope = scope_of(key, *values, value)
    nodes, new = [nodes_of(element, scope) for element in values], nodes_of(value, scope)

    def after(k: int | slice) -> Any:
        rows = stored(scope, np.stack(nodes), key, new)
        return None if rows is None else rows[k]

    rows = after(slice(None))
    if rows is None:
        return None
    return [shown(scope, np.array(row), [nodes[k], new], partial(after, k)) for k, row in enumerate(rows)]


def _are_alike(values: list[Any]) -> bool:
    """Whether values are numbers, or traced arrays of numbers and of one shape."""
    kinds = {type(value) for value in values}
    if kinds <= {Array, Picked}:
        is_truth = any(all_truths(value.scope.graph, value.nodes) for value in values)
        return len({value.shape for value in values}) == 1 and not is_truth
    return kinds <= _NUMBERS and not any(
        type(value) is Scalar and is_boolean(value.scope.graph, value.node) for value in values
    )
