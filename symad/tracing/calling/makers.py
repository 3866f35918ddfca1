"""NumPy's array constructors on traced values."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import numpy as np

from symad.tracing.calling.scope import innermost_scope
from symad.tracing.numpy.complex_arrays import made
from symad.tracing.values.array import Array, wrap
from symad.tracing.values.bounds import bounds_of
from symad.tracing.values.computed_items import Indexed
from symad.tracing.values.node_arrays import constants, converted
from symad.tracing.values.node_operands import holds_traced, nodes_of, scope_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import refuse_function
from symad.tracing.values.whole_numbers import are_whole
from symad.tracing.values.whole_values import whole_of


def as_new_array(value: Any, dtype: Any = None, *, copy: Any = True, order: Any = "K", ndmin: int = 0, **_: Any) -> Any:
    """np.array of nested lists, object arrays or traced values: a new traced array, unless copy says otherwise."""
    shares = copy in (False, None, np._CopyMode.IF_NEEDED, np._CopyMode.NEVER)
    if shares and isinstance(value, Array) and ndmin <= value.ndim:
        return as_array(value, dtype, order)
    scope = scope_of(value)
    nodes = nodes_of(value, scope)
    nodes = np.array(nodes if dtype is None else converted(scope.graph, nodes, dtype), order=order, ndmin=ndmin)
    return Array(nodes, scope)


def as_array(value: Any, dtype: Any = None, order: Any = "K", **keywords: Any) -> Any:
    if not isinstance(value, Array):
        return as_new_array(value, dtype, order=order)
    array = value if dtype is None else value.astype(dtype, copy=False)
    flags = array.nodes.flags
    return array if {"C": flags.c_contiguous, "F": flags.f_contiguous}.get(order, True) else array.copy(order)


_REQUIREMENTS = {
    **dict.fromkeys(("C", "C_CONTIGUOUS", "CONTIGUOUS"), "C"), **dict.fromkeys(("F", "F_CONTIGUOUS", "FORTRAN"), "F"),
    **dict.fromkeys(("W", "WRITEABLE"), "W"), **dict.fromkeys(("O", "OWNDATA"), "O"),
    **dict.fromkeys(("A", "ALIGNED"), "A"), **dict.fromkeys(("E", "ENSUREARRAY"), "E"),
}  # fmt: skip


def required(a: Any, dtype: Any = None, requirements: Any = None, **_: Any) -> Any:
    """np.require: the array itself if it has these properties, else a copy. Traced arrays are always aligned."""
    properties = {_REQUIREMENTS[name.upper()] for name in requirements or ()}
    if {"C", "F"} <= properties:
        raise ValueError('Cannot specify both "C" and "F" order')
    array = as_array(a, dtype, next(iter(properties & {"C", "F"}), "A"))
    nodes = array.nodes if isinstance(array, Array) else np.zeros(())
    if "O" in properties and array is a:
        refuse_function("np.require with 'O'", "it is not known whether NumPy's array is a view", "write a.copy()")
    return array if nodes.flags.writeable or "W" not in properties else array.copy("A")


def from_iterable(values: Any, dtype: Any, count: int = -1, **keywords: Any) -> Any:
    values = list(values if count < 0 else islice(values, count))  # without a count the values have an end
    return as_new_array(values, dtype) if holds_traced(values) else np.fromiter(values, dtype, count, **keywords)


def full(shape: Any, fill_value: Any, dtype: Any = None, **_: Any) -> Any:
    scope = scope_of(fill_value)
    nodes = nodes_of(fill_value, scope) if dtype is None else nodes_of(as_new_array(fill_value, dtype), scope)
    return wrap(np.full(shape, nodes), scope)


def arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Any:
    """np.arange of traced bounds. The number of elements follows the values, and has no derivative."""
    first, last = (0 if start is None else start, stop) if stop is not None else (0, start)
    length = last if type(first) is int and first == 0 and type(step) is int and step == 1 else (last - first) / step
    if isinstance(length, Scalar):
        is_count = are_whole(length.scope.graph, length.node) and bounds_of(length.scope.graph, length.node).low >= 0
        count: Any = length if is_count else np.maximum(np.ceil(length), 0)
        length = whole_of(count.scope, count.node, "the length of np.arange", at_once=True)
    first, second = as_new_array([first, first + step], dtype)  # as NumPy, which converts and rounds these two
    return first + np.arange(max(math.ceil(length), 0)) * (second - first)


def of_constants(array: Any) -> Any:
    """Return an array of numbers as a traced one, which takes traced values; other values unchanged."""
    scope = innermost_scope()
    array = array.view(np.ndarray) if type(array) is Indexed else array  # np.zeros_like(TABLE)
    if scope is None or type(array) is not np.ndarray or array.dtype.kind not in "fc" or not array.flags.writeable:
        return array
    if array.dtype.kind == "c":
        return made(*(wrap(constants(scope.graph, part), scope) for part in (array.real, array.imag)))
    return Array(constants(scope.graph, array), scope)  # of no axis too: it has an element to assign
