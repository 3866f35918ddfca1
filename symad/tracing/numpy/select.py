"""Choosing and rounding: where, select, clip, piecewise, round, sinc, tests of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.values.node_builders as op
from symad.graph.graph import Graph
from symad.tracing.calling.recorded_errors import discarding_recorded_errors
from symad.tracing.numpy.reduce import delivered, given, is_traced, traced
from symad.tracing.numpy.registry import available, implements
from symad.tracing.values.array import wrap
from symad.tracing.values.known_numbers import SymbolicValueError, values_of
from symad.tracing.values.node_arrays import elementwise, require_float
from symad.tracing.values.node_builders import Build, function
from symad.tracing.values.node_operands import are_integers, as_integers, nodes_of, scope_of
from symad.tracing.values.scalar import Scalar, quick_nodes
from symad.tracing.values.traced import Traced


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """x where the condition holds, else y; the branch not taken never contributes a NaN."""
    if x is None or y is None:
        return np.nonzero(condition)
    return chosen(condition, x, y)


def chosen(condition: Any, x: Any, y: Any) -> Any:
    """Return the elementwise choice between two values."""
    if type(condition) is Scalar and condition.scope.open:
        nodes = quick_nodes((condition, x, y), condition.scope)
        if nodes is not None:
            scalar = Scalar(op.select(condition.scope.graph, *nodes), condition.scope)
            return as_integers(scalar) if are_integers(x) and are_integers(y) else scalar
    choice = applied(op.select, condition, x, y)
    return as_integers(choice) if are_integers(x) and are_integers(y) else choice


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The choice of the first condition that holds."""
    value = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        choose = chosen if any(map(is_traced, (condition, choice, value))) else np.where
        value = choose(condition, choice, value)
    return value


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Any:
    """funclist[k](x) where condlist[k] holds (the last such k; an extra function elsewhere); all are evaluated."""
    several = isinstance(condlist, list | tuple) or np.ndim(condlist) > np.ndim(x)
    conditions = list(condlist) if several else [condlist]
    if len(funclist) not in (len(conditions), len(conditions) + 1):
        raise ValueError(f"{len(conditions)} conditions take as many functions, or one more, not {len(funclist)}")
    values = [f(x, *args, **keywords) if callable(f) else f for f in funclist]
    result = values.pop() if len(values) > len(conditions) else 0.0
    for condition, value in zip(conditions, values, strict=True):
        result = chosen(condition, value, result)
    return result


@implements(np.clip)
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **more: Any
) -> Any:
    """minimum(maximum(a, low), high)."""
    bounds = given(low=a_min if min is None else min), given(high=a_max if max is None else max)
    clipped, where = traced(a), more.pop("where", True)
    require_float("np.clip", more.get("dtype"))
    for pick, bound in zip((np.maximum, np.minimum), bounds, strict=True):
        for limit in bound.values():
            clipped = pick(clipped, limit)
    return np.positive(clipped, **given(out=out), where=where) if out is not None or where is not True else clipped


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to the given number of decimals, halves to even."""
    a = traced(a)
    if decimals == 0:
        return delivered(np.rint(a), out)
    factor = 10.0 ** abs(decimals)
    return delivered(np.rint(a * factor) / factor if decimals > 0 else np.rint(a / factor) * factor, out)


def applied(build: Build, *values: Any) -> Any:
    """Return the array that a builder makes of the elements of traced values and others."""
    scope = scope_of(*values)
    return wrap(elementwise(scope.graph, build, *[nodes_of(value, scope) for value in values]), scope)


def _sinc(graph: Graph, u: int) -> int:
    return graph.node(sp.sinc, op.multiply(graph, u, graph.number(float(np.pi))))


implements(np.fix)(lambda x, out=None: delivered(np.trunc(traced(x)), out))
implements(np.sinc)(lambda x: applied(_sinc, x))
implements(np.i0)(lambda x: applied(function(sp.besseli), 0, x))
implements(np.isposinf)(lambda x, out=None: delivered(np.equal(x, np.inf), out))
implements(np.isneginf)(lambda x, out=None: delivered(np.equal(x, -np.inf), out))
implements(*available("astype"))(lambda x, dtype, /, *, copy=True, device=None: x.astype(dtype))


def values(value: Any) -> Any:
    """Return the plain values of traced values (a decision), also inside lists; other values unchanged."""
    if isinstance(value, list | tuple):
        return type(value)([values(part) for part in value])
    if not isinstance(value, Traced):
        return value
    return values_of(value.scope, nodes_of(value, value.scope))


def known(value: Any) -> Any:
    """Return the plain values of what is traced, None where they depend on symbols."""
    try:
        with discarding_recorded_errors():
            return values(value)
    except SymbolicValueError:
        return None
