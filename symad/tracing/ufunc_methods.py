"""The ways of calling a ufunc on traced values: `np.add(...)`, `.reduce`, `.accumulate`, `.outer`, `.at`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import symad.tracing.node_arrays as node_arrays
import symad.tracing.operations as op
from symad.errors import TraceError
from symad.tracing.array import Array, plain_index, wrap
from symad.tracing.node_arrays import Nodes, elementwise
from symad.tracing.operands import nodes_of, scope_of
from symad.tracing.operations import Build
from symad.tracing.place import user_place
from symad.tracing.registry import implements_method
from symad.tracing.scope import Scope
from symad.tracing.traced import Traced, refuse_function, store_error
from symad.tracing.ufuncs import SEVERAL_OUTPUTS, UFUNCS

_IGNORED = frozenset({"casting", "order", "dtype", "subok", "signature"})
_STARTS = {"add": 0, "multiply": 1, "logical_or": False, "logical_and": True}


@implements_method("__call__")
def call(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return ufunc(*inputs), with `out=` and `where=`."""
    if any(getattr(value, "__array_ufunc__", True) is None for value in inputs):
        return NotImplemented
    targets = keywords.get("out", ())
    scope = scope_of(*inputs, *targets, keywords.get("where", True))
    operands = [nodes_of(value, scope) for value in inputs]
    if ufunc.__name__ in SEVERAL_OUTPUTS:
        return tuple(wrap(elementwise(scope.graph, part, *operands), scope) for part in SEVERAL_OUTPUTS[ufunc.__name__])
    if ufunc.__name__.endswith("(vectorized)"):  # np.frompyfunc: the user's own Python function, element by element
        return _python_results(ufunc(*[Array(nodes, scope).__array__(object) for nodes in operands]), scope)
    product = _PRODUCTS.get(ufunc.__name__)
    if product is not None:
        result = product(scope, operands, keywords)
    else:
        result = elementwise(scope.graph, builder(ufunc), *operands)
    return _deliver(scope, result, targets, keywords.get("where", True))


def _python_results(made: Any, scope: Scope) -> Any:
    if isinstance(made, tuple):
        return tuple(_python_results(part, scope) for part in made)
    return wrap(nodes_of(made, scope), scope)


@implements_method("reduce")
def reduce(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return ufunc.reduce(array, axis=0, keepdims=False, initial=..., where=True): a chain from left to right."""
    scope = scope_of(*inputs, keywords.get("initial"), *keywords.get("out", ()))
    nodes = _counted(ufunc, scope, nodes_of(inputs[0], scope))
    start = keywords.get("initial")
    start = None if start is None or start is np._NoValue else int(nodes_of(start, scope))
    where = keywords.get("where", True)
    if where is not True:
        start, nodes = _masked(ufunc, scope, nodes, where, start)
    if start is None and nodes.size == 0 and ufunc.__name__ in _STARTS:
        start = scope.graph.number(_STARTS[ufunc.__name__])
    axis = keywords.get("axis", 0)
    keepdims = bool(keywords.get("keepdims", False))
    result = node_arrays.reduce(scope.graph, builder(ufunc), nodes, axis, keepdims=keepdims, initial=start)
    return _deliver(scope, result, keywords.get("out", ()), True)


@implements_method("accumulate")
def accumulate(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return ufunc.accumulate(array, axis=0): running sums, products, maxima."""
    scope = scope_of(*inputs)
    nodes = _counted(ufunc, scope, nodes_of(inputs[0], scope))
    result = node_arrays.accumulate(scope.graph, builder(ufunc), nodes, keywords.get("axis", 0))
    return _deliver(scope, result, keywords.get("out", ()), True)


@implements_method("reduceat")
def reduceat(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return ufunc.reduceat(array, starts, axis=0)."""
    array, starts = inputs
    axis = keywords.get("axis", 0)
    rows = np.moveaxis(np.atleast_1d(array), axis, 0)
    ends = [*starts[1:], len(rows)]
    parts = [ufunc.reduce(rows[a:b]) if a < b else rows[a] for a, b in zip(starts, ends, strict=True)]
    return np.moveaxis(np.stack(parts), 0, axis)


@implements_method("outer")
def outer(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return ufunc.outer(a, b): every element of a with every element of b."""
    scope = scope_of(*inputs)
    left, right = (nodes_of(value, scope) for value in inputs)
    result = elementwise(scope.graph, builder(ufunc), left.reshape(*left.shape, *[1] * right.ndim), right)
    return _deliver(scope, result, keywords.get("out", ()), True)


@implements_method("at")
def at(ufunc: np.ufunc, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """Do ufunc.at(target, index, values) in place: repeated indices act one after the other."""
    target, index, *others = inputs
    if not isinstance(target, Array):
        raise store_error()
    scope = scope_of(target, *others)
    build, graph = builder(ufunc), scope.graph
    places = np.arange(target.size).reshape(target.shape)[plain_index(index)]
    columns = [np.broadcast_to(nodes_of(value, scope), places.shape).ravel().tolist() for value in others]
    flat = target.nodes.reshape(-1).copy()
    for place, *operands in zip(places.ravel().tolist(), *columns, strict=True):
        flat[place] = build(graph, int(flat[place]), *operands)
    target.nodes[...] = flat.reshape(target.shape)
    target.scope = scope


def builder(ufunc: np.ufunc) -> Build:
    """Return the builder of a ufunc; TraceError for one that has no row in the table."""
    build = UFUNCS.get(ufunc.__name__)
    if build is None:
        refuse_function(f"the ufunc {ufunc.__name__}", "it has no row in the table of traced ufuncs")
    return build


def _counted(ufunc: np.ufunc, scope: Scope, nodes: Nodes) -> Nodes:
    """Sums and products of truth values count: they are made of numbers."""
    return node_arrays.numbers(scope.graph, nodes) if ufunc.__name__ in ("add", "multiply") else nodes


def _masked(ufunc: np.ufunc, scope: Scope, nodes: Nodes, where: Any, start: int | None) -> tuple[int, Nodes]:
    """Replace the elements that `where=` leaves out by the neutral element."""
    if start is None:
        if ufunc.__name__ not in _STARTS:
            raise ValueError(f"reduction operation '{ufunc.__name__}' needs initial= to use a where mask")
        start = scope.graph.number(_STARTS[ufunc.__name__])
    neutral = scope.graph.number(_STARTS[ufunc.__name__]) if ufunc.__name__ in _STARTS else start
    mask = nodes_of(where, scope)
    return start, elementwise(scope.graph, op.select, mask, nodes, np.array(neutral))


def _deliver(scope: Scope, result: Nodes, targets: Sequence[Any], where: Any) -> Any:
    """Wrap the result, or write it into `out=` (under `where=`)."""
    target = targets[0] if targets else None
    if target is None:
        if where is not True:
            raise TraceError(
                "a ufunc was called with where= and without out=",
                where=user_place(),
                why="the elements left out would be uninitialised memory",
                do="give out=np.zeros_like(x), or use np.where(condition, a, b)",
            )
        return wrap(result, scope)
    if not isinstance(target, Traced):
        raise store_error()
    if where is not True:
        result = elementwise(scope.graph, op.select, nodes_of(where, scope), result, nodes_of(target, scope))
    target[...] = wrap(result, scope)  # type: ignore[index]
    return target


def _matmul(scope: Scope, operands: Sequence[Nodes], keywords: Mapping[str, Any]) -> Nodes:
    return node_arrays.matmul(scope.graph, *operands)


def _vecdot(scope: Scope, operands: Sequence[Nodes], keywords: Mapping[str, Any]) -> Nodes:
    left, right = operands
    return node_arrays.matmul(scope.graph, left[..., None, :], right[..., :, None])[..., 0, 0]


def _matvec(scope: Scope, operands: Sequence[Nodes], keywords: Mapping[str, Any]) -> Nodes:
    return node_arrays.matmul(scope.graph, operands[0], operands[1][..., :, None])[..., 0]


def _vecmat(scope: Scope, operands: Sequence[Nodes], keywords: Mapping[str, Any]) -> Nodes:
    return node_arrays.matmul(scope.graph, operands[0][..., None, :], operands[1])[..., 0, :]


_PRODUCTS = {"matmul": _matmul, "vecdot": _vecdot, "matvec": _matvec, "vecmat": _vecmat}
