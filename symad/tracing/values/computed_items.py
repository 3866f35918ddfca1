"""Lists that are read or changed at a place that depends on values, and ordinary arrays at traced places."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from symad.tracing.calling.recorded_errors import discard_recorded_error
from symad.tracing.calling.subscripts import Subscripted
from symad.tracing.values.array import Array, Picked, plain_index, shown, wrap
from symad.tracing.values.computed_places import decide_outside, picked, stored
from symad.tracing.values.constant_nodes import is_boolean
from symad.tracing.values.known_numbers import SymbolicValueError
from symad.tracing.values.mask_selection import has_selection
from symad.tracing.values.node_arrays import all_truths, constants
from symad.tracing.values.node_operands import holds_traced, nodes_of, scope_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import IndexNumberError, Traced

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


class Indexed(np.ndarray):
    """A view of an ordinary array that accepts a traced index without a value; otherwise it is NumPy's.

    In a second run it replaces an array that is indexed.
    """

    def __getitem__(self, key: Any) -> Any:
        if not (isinstance(key, Traced) or (isinstance(key, tuple | list) and holds_traced((key,)))):
            return super().__getitem__(key)
        if has_selection(key):
            scope = scope_of(key)
            return wrap(constants(scope.graph, self.view(np.ndarray)), scope)[key]
        try:
            plain = plain_index(key)
        except (SymbolicValueError, IndexNumberError) as error:
            discard_recorded_error(error)
            scope = scope_of(key)
            nodes = constants(scope.graph, self.view(np.ndarray))
            known = None if scope.gather is None else scope.gather(nodes, key)
            if known is not None:
                return wrap(known, scope)
            if isinstance(key, Scalar):
                decide_outside(scope, [np.array(key.node)], self.shape[:1])
            return wrap(nodes, scope)[key]
        return super().__getitem__(plain)


def is_table(value: Any) -> bool:
    """Whether a value is an ordinary array of numbers with an axis."""
    return type(value) is np.ndarray and value.ndim > 0 and value.dtype.kind in "biuf"
