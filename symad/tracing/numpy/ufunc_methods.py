"""Calls of ufuncs and of their methods reduce, accumulate, outer, at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import symad.tracing.values.node_arrays as node_arrays
import symad.tracing.values.node_builders as op
from symad.errors import TraceError
from symad.tracing.calling.jitted import python_form, tell
from symad.tracing.calling.running import callee
from symad.tracing.calling.scope import Scope
from symad.tracing.calling.user_place import user_place
from symad.tracing.numpy.complex_arrays import check_beside_complex, complex_ufunc, is_complex
from symad.tracing.numpy.integers import integer_form, keeping_integers
from symad.tracing.numpy.reduce import delivered, is_traced
from symad.tracing.numpy.registry import implements_method
from symad.tracing.numpy.select import known
from symad.tracing.numpy.ufuncs import SEVERAL_OUTPUTS, UFUNCS
from symad.tracing.values.array import Array, plain_index, wrap
from symad.tracing.values.complex_points import check_real
from symad.tracing.values.constant_nodes import as_truth
from symad.tracing.values.mask_selection import Selection
from symad.tracing.values.node_arrays import Nodes, elementwise
from symad.tracing.values.node_builders import Build
from symad.tracing.values.node_operands import nodes_of, scope_of
from symad.tracing.values.scalar import Scalar
from symad.tracing.values.traced import Traced, refuse_function, store_error
from symad.tracing.values.whole_numbers import note_integers
from symad.tracing.values.whole_values import OutsideError, no_value_where

Keywords = Mapping[str, Any]

_COMPARISONS = frozenset({"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"})
_COMPLEX_RESULTS = frozenset({"wofz"})
_PLAIN = frozenset({float, int, np.ndarray})
_ORDER_FREE = frozenset({"maximum", "minimum", "fmax", "fmin"})  # besides those with a neutral element


@implements_method("__call__")
def call(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> Any:
    """Return ufunc(*inputs), with `out=` and `where=`."""
    if type(ufunc) is not np.ufunc and (function := python_form(ufunc)) is not None:
        tell(function)
        return call(np.frompyfunc(callee(function), ufunc.nin, 1), inputs, keywords)
    form = integer_form(ufunc, inputs)
    if form is not None:
        if keywords and (set(keywords) != {"out"} or len(keywords["out"]) != 1):
            refuse_function("a ufunc of integers with where= or dtype=", "only out= is traced", "use np.where")
        return delivered(form(*inputs), *keywords.get("out", (None,)))
    if not keywords and (result := _of_one_scope(ufunc, inputs)) is not None:
        return result
    if ufunc.__name__ in _COMPLEX_RESULTS or any(map(is_complex, inputs)):
        check_real(f"np.{ufunc.__name__} of a complex number")
        check_beside_complex(inputs)
        return complex_ufunc(ufunc, "__call__", inputs, keywords)
    if any(getattr(value, "__array_ufunc__", True) is None for value in inputs):
        return NotImplemented
    selection = next((value for value in inputs if isinstance(value, Selection)), None)
    if selection is not None:
        return selection.__array_ufunc__(ufunc, "__call__", *inputs, **keywords)
    node_arrays.require_float(f"np.{ufunc.__name__}", keywords.get("dtype"))
    targets, where = keywords.get("out", ()), keywords.get("where", True)
    scope = scope_of(*inputs, *targets, where)
    operands = [nodes_of(value, scope) for value in inputs]
    if ufunc.__name__.endswith("(vectorized)"):  # np.frompyfunc: the user's own Python function, element by element
        return _python_results(ufunc(*[Array(nodes, scope).__array__(object) for nodes in operands]), scope)
    if ufunc.signature:
        return _deliver(ufunc, scope, _product(ufunc, scope, operands, keywords), targets, where)
    parts = SEVERAL_OUTPUTS.get(ufunc.__name__)
    if parts is None:
        return _deliver(ufunc, scope, elementwise(scope.graph, builder(ufunc), *operands), targets, where)
    result = [elementwise(scope.graph, part, *operands) for part in parts]
    places = targets or [None] * len(result)
    return tuple(_deliver(ufunc, scope, part, (place,), where) for part, place in zip(result, places, strict=True))


def _of_one_scope(ufunc: np.ufunc, inputs: Sequence[Any]) -> Any:
    """Return the result for traced values of one scope, numbers and plain arrays of them; None for anything else."""
    build, scope = UFUNCS.get(ufunc.__name__), None
    if build is None and ufunc is not np.matmul:
        return None
    for value in inputs:
        kind = type(value)
        if kind is Array or kind is Scalar:
            if scope is not None and value.scope is not scope:
                return None
            scope = value.scope
        elif kind not in _PLAIN or (kind is np.ndarray and value.dtype.kind in "Oc"):
            return None
    if scope is None:
        return None
    scope.check_open()
    graph, loops = scope.graph, node_arrays.loops_on(scope.graph)
    least = loops.least if loops is not None and loops.on_numbers and build is not op.power else None
    operands = [_operand(value, scope, least) for value in inputs]
    nodes = node_arrays.matmul(graph, *operands) if build is None else elementwise(graph, build, *operands)
    return wrap(keeping_integers(graph, ufunc.__name__, nodes, operands), scope)


def _operand(value: Any, scope: Scope, least: int | None) -> npt.NDArray[Any]:
    """Return nodes; large arrays of numbers as they are, where they need no nodes."""
    if type(value) is Array:
        return value.nodes
    if type(value) is float:
        return np.array(scope.graph.number(value))
    if type(value) is np.ndarray and least is not None and value.dtype == np.float64 and value.size >= least:
        return value
    return nodes_of(value, scope)


def _python_results(result: Any, scope: Scope) -> Any:
    if isinstance(result, tuple):
        return tuple(_python_results(part, scope) for part in result)
    return wrap(nodes_of(result, scope), scope)


@implements_method("reduce")
def reduce(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> Any:
    """Return ufunc.reduce(array, axis=0, keepdims=False, initial=..., where=True): a chain from left to right."""
    node_arrays.require_float(f"np.{ufunc.__name__}.reduce", keywords.get("dtype"))
    axis, where, targets = keywords.get("axis", 0), keywords.get("where", True), keywords.get("out", ())
    scope = scope_of(*inputs, keywords.get("initial"), where, *targets)
    graph = scope.graph
    given = nodes_of(inputs[0], scope)
    nodes = _prepared(ufunc, scope, given)
    if not nodes.ndim and not isinstance(axis, tuple | None) and axis in (0, -1):
        axis = ()  # as NumPy: a number is reduced along its first or last axis, which it lacks
    has_order = ufunc.identity is None and ufunc.__name__ not in _ORDER_FREE
    if has_order and isinstance(axis, tuple | None) and len(node_arrays.normalized_axes(axis, nodes.ndim)) > 1:
        raise ValueError(f"reduction operation {ufunc.__name__!r} is not reorderable, so at most one axis is allowed")
    start = keywords.get("initial", np._NoValue)
    if start is np._NoValue and (where is not True or not nodes.size):
        start = ufunc.identity
    if start is None and where is not True:
        raise ValueError(f"np.{ufunc.__name__}.reduce with where= needs initial=: it has no neutral element")
    truths = None if where is True else elementwise(graph, as_truth, nodes_of(where, scope))
    result = node_arrays.reduce(
        graph, builder(ufunc), nodes, axis, keepdims=bool(keywords.get("keepdims", False)),
        initial=None if start is None or start is np._NoValue else int(nodes_of(start, scope)),
        where=None if truths is None else np.broadcast_to(truths, nodes.shape),
    )  # fmt: skip
    if targets and targets[0] is not None and np.shape(targets[0]) != result.shape:
        raise ValueError(f"out= has the shape {np.shape(targets[0])}, and the result {result.shape}")
    return _deliver(ufunc, scope, _counted(scope, ufunc, given, nodes, result), targets, True)


@implements_method("accumulate")
def accumulate(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> Any:
    """Return ufunc.accumulate(array, axis=0): running sums, products, maxima."""
    node_arrays.require_float(f"np.{ufunc.__name__}.accumulate", keywords.get("dtype"))
    scope = scope_of(*inputs, *keywords.get("out", ()))
    given = nodes_of(inputs[0], scope)
    nodes = _prepared(ufunc, scope, given)
    if not nodes.ndim:
        raise TypeError("cannot accumulate on a scalar")
    result = node_arrays.accumulate(scope.graph, builder(ufunc), nodes, keywords.get("axis", 0))
    return _deliver(ufunc, scope, _counted(scope, ufunc, given, nodes, result), keywords.get("out", ()), True)


def _counted(scope: Scope, ufunc: np.ufunc, given: Nodes, nodes: Nodes, result: Nodes) -> Nodes:
    """Return a sum, noted as integers where truth values are counted or integers are added."""
    if ufunc.__name__ == "add" and given.size and node_arrays.all_truths(scope.graph, given):
        return note_integers(scope.graph, result)
    return keeping_integers(scope.graph, ufunc.__name__, result, [nodes])


@implements_method("reduceat")
def reduceat(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> Any:
    """Return ufunc.reduceat(array, starts, axis=0)."""
    array, starts, axis = inputs[0], plain_index(inputs[1]), keywords.get("axis", 0)
    scope = scope_of(array, *keywords.get("out", ()))
    rows = Array(np.moveaxis(nodes_of(array, scope), axis, 0), scope)
    outside = [start for start in starts if not 0 <= start < len(rows)]
    if outside:
        raise IndexError(f"index {outside[0]} out-of-bounds in {ufunc.__name__}.reduceat [0, {len(rows)})")
    ends = [*starts[1:], len(rows)]
    parts = [ufunc.reduce(rows[first : max(end, first + 1)]) for first, end in zip(starts, ends, strict=True)]
    results = np.moveaxis(np.stack(parts), 0, axis)
    return _deliver(ufunc, scope, nodes_of(results, scope), keywords.get("out", ()), True)


@implements_method("outer")
def outer(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> Any:
    """Return ufunc.outer(a, b): every element of a with every element of b."""
    scope = scope_of(*inputs)
    left, right = (nodes_of(value, scope) for value in inputs)
    return call(ufunc, (wrap(left.reshape((*left.shape, *[1] * right.ndim)), scope), wrap(right, scope)), keywords)


@implements_method("at")
def at(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Keywords) -> None:
    """Do ufunc.at(target, index, values) in place: repeated indices act one after the other."""
    target, index, *others = inputs
    if not isinstance(target, Array):
        raise store_error()
    scope = scope_of(target, *others)
    build, graph = builder(ufunc), scope.graph
    if known(index) is None:
        target[...] = _at_computed(ufunc, target, index, *others)
        return
    places = np.arange(target.size).reshape(target.shape)[plain_index(index)]
    columns = [np.broadcast_to(nodes_of(value, scope), places.shape).ravel().tolist() for value in others]
    flat = target.nodes.reshape(-1).copy()
    for place, *operands in zip(places.ravel().tolist(), *columns, strict=True):
        element = np.array(build(graph, int(flat[place]), *operands))
        flat[place] = node_arrays.like(graph, target.nodes, element)
    with graph.arrays.storing(target.nodes):
        target.nodes[...] = flat.reshape(target.shape)
    target.scope = scope


def _at_computed(ufunc: np.ufunc, target: Any, index: Any, *others: Any) -> Any:
    """Return a target of one axis after ufunc.at at places that are computed: sums at once, others one by one."""
    if not is_traced(index) or target.ndim != 1 or np.ndim(index) > 1 or len(others) > 1:
        refuse_function(f"np.{ufunc.__name__}.at", "its places are computed along more than one axis")
    flat, size = np.ravel(index), len(target)
    places = np.where(flat < 0, flat + size, flat)
    here = np.equal(np.arange(size)[:, None], places)
    no_value_where(np.any(~np.any(here, axis=0)), OutsideError(f"index is out of bounds for size {size}"))
    values = [np.broadcast_to(value, np.shape(flat)) for value in others]
    if ufunc in (np.add, np.subtract):
        return ufunc(target, np.sum(np.where(here, values[0], 0.0), axis=1))
    result: Any = target
    for k in range(len(places)):
        result = np.where(here[:, k], ufunc(result, *[value[k] for value in values]), result)
    return result


def builder(ufunc: np.ufunc) -> Build:
    """Return the builder of a ufunc; TraceError for one that has no row in the table."""
    build = UFUNCS.get(ufunc.__name__)
    if build is None:
        refuse_function(f"the ufunc {ufunc.__name__}", "it has no row in the table of traced ufuncs")
    return build


def _prepared(ufunc: np.ufunc, scope: Scope, nodes: Nodes) -> Nodes:
    """Return what a reduction works on: sums and products of truth values count, logical ones ask for u != 0."""
    name, graph = ufunc.__name__, scope.graph
    if name in ("add", "multiply"):
        return node_arrays.numbers(graph, nodes)
    if name.startswith("logical_"):
        return elementwise(graph, as_truth, nodes)
    if name in _COMPARISONS and not node_arrays.all_truths(graph, nodes):
        raise TypeError(f"NumPy reduces truth values by np.{name}, not numbers")
    return nodes


def _deliver(ufunc: np.ufunc, scope: Scope, result: Nodes, targets: Sequence[Any], where: Any) -> Any:
    """Wrap the result, or write it into `out=` (under `where=`)."""
    target = targets[0] if targets else None
    if target is None and where is not True:
        raise TraceError(
            f"np.{ufunc.__name__} was called with where= and without out=",
            where=user_place(),
            why="the elements left out would be uninitialised memory",
            do="give out=np.zeros_like(x), or use np.where(condition, a, b)",
        )
    if target is None:
        return wrap(result, scope)
    if not isinstance(target, Traced):
        raise store_error()
    if where is not True:
        result = elementwise(scope.graph, op.select, nodes_of(where, scope), result, nodes_of(target, scope))
    target[...] = wrap(result, scope)  # type: ignore[index]
    return target


def _product(ufunc: np.ufunc, scope: Scope, operands: Sequence[Nodes], keywords: Keywords) -> Nodes:
    """Return matmul, vecdot, matvec or vecmat of the operands."""
    name = ufunc.__name__
    axis = keywords.get("axis", -1) if name == "vecdot" else -1
    if name not in _PRODUCTS or "axes" in keywords or (name != "vecdot" and "axis" in keywords):
        refuse_function(f"the ufunc {name}" + " with axes=" * ("axes" in keywords), "it has no traced form")
    if name in ("vecdot", "vecmat"):
        check_real(f"np.{name}", "use np.matmul, which takes no conjugates")
    left, right = (np.moveaxis(nodes, axis, -1) if axis != -1 else nodes for nodes in operands)
    add_left, add_right = _PRODUCTS[name]
    product = node_arrays.matmul(
        scope.graph, left[..., None, :] if add_left else left, right[..., None] if add_right else right
    )
    product = product[..., 0] if add_right else product
    product = product[..., 0] if add_left and add_right else product[..., 0, :] if add_left else product
    return np.expand_dims(product, axis) if keywords.get("keepdims") else product


# Which operand of a product gets an axis to be a matrix: a row on the left, a column on the right.
_PRODUCTS = {"matmul": (False, False), "vecdot": (True, True), "matvec": (False, True), "vecmat": (True, False)}
