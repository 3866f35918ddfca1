"""Linear maps at a point: the pushforward (jvp, linearize) and the pullback (vjp) of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from symad.derivatives import in_code, modes
from symad.derivatives.application import Function, as_tuple, fitting
from symad.derivatives.array_linear import ArrayLinear
from symad.derivatives.level import FunctionResultError, Level, carry, deliver, in_level
from symad.derivatives.linear import Linear
from symad.derivatives.signatures import R
from symad.errors import ArgumentError
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.scope import Scope, independent_traces, innermost_scope, open_scope
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.control.array_graph import ArrayGraph, array_graph
from symad.tracing.values.node_trees import Tree


@public_api
def jvp(f: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[R, R]:
    """Return `(f(*primals), directional derivative along tangents)`: the pushforward, one forward pass.

    `tangents` has the structure and shapes of `primals`; the results have those of f's result. ArgumentError when
    they do not fit. A function-valued f gives a function-valued derivative (a fresh level for each application), and
    so does each part of a container with functions in it.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
    (6.0, 3.0)
    """
    value_and_tangent: tuple[R, R] = _jvp(f, as_tuple(primals, "primals"), as_tuple(tangents, "tangents"))
    return value_and_tangent


def _jvp(f: Function, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    if (written := in_code.pushforward(f, primals, tangents)) is not None:
        return written
    try:
        return in_level(primals, argument_names(f, len(primals)), partial(_pushed, f, tangents))
    except FunctionResultError as error:
        error.unless_from(f)
        if not error.is_single:
            return f(*primals), error.each(f, lambda part: jvp(part, primals, tangents)[1])
        return f(*primals), lambda *more: jvp(lambda *p: f(*p)(*more), primals, tangents)[1]


def _pushed(f: Function, tangents: tuple[Any, ...], level: Level) -> tuple[Any, Any]:
    directions = fitting(level.scope, level.parameters, tangents, "tangents")
    result = level.call(f)
    linear = modes.linear_map(level, result)
    value, tangent = level.close(result, result.refill(modes.push(level.scope, linear, directions.nodes)))
    return value, tangent


@public_api
def linearize(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[..., R]]:
    """Return `(f(*primals), pushforward)`; the pushforward may be called with many tangents, f is traced once.

    >>> value, pushforward = linearize(lambda x: x**3, 2.0)
    >>> value, pushforward(1.0), pushforward(2.0)
    (8.0, 12.0, 24.0)
    """
    return _value_and_map(f, primals, "pushforward")


@public_api
def vjp(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[[R], tuple[Any, ...]]]:
    """Return `(f(*primals), pullback)`; `pullback(cotangent)` returns one cotangent for each primal, as a tuple.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> value, pullback(1.0)
    (6.0, (3.0, 2.0))
    """
    return _value_and_map(f, primals, "pullback")


def _value_and_map(f: Function, primals: tuple[Any, ...], kind: str) -> tuple[Any, Function]:
    def anew() -> tuple[Any, Function]:
        carried_out = partial(_linear_map, f, pullback=kind == "pullback")
        return in_level(primals, argument_names(f, len(primals)), carried_out)

    return in_code.linear_map(f, primals, kind, lambda: anew()[1]) or anew()


def _linear_map(f: Function, level: Level, *, pullback: bool) -> tuple[Any, Function]:
    """Return the value of a function in a level, and its pushforward or pullback."""
    result = level.call(f)
    linear = modes.linear_map(level, result)
    source, target = (result, level.parameters) if pullback else (level.parameters, result)
    linear_map = LinearFunction(level, linear.transpose() if pullback else linear, source, target, pullback=pullback)
    (value,) = level.close(result)
    return value, linear_map


class LinearFunction:
    """A pushforward or pullback: a linear map that may be called after its level closed, also at deeper levels."""

    def __init__(
        self, level: Level, linear: Linear | ArrayLinear, source: Tree, target: Tree, *, pullback: bool
    ) -> None:
        self._scope, self._linear, self._source, self._target = level.scope, linear, source, target
        self._pullback = pullback

    def __call__(self, *values: Any) -> Any:
        """Return the image of tangents (one argument for each primal) or of one cotangent."""
        around, parent = innermost_scope(), self._scope.parent
        if parent is not None:
            parent.check_open()
            if around is None or around.graph is not parent.graph:
                raise independent_traces()  # a number would be the answer, without its derivative in that parent
        # outside every level on a graph of its own, so that many calls do not make the traced one grow
        with open_scope() as scope:
            if isinstance(self._linear, ArrayLinear) and (around is None or isinstance(around.arrays, ArrayGraph)):
                scope.arrays = array_graph(scope)
            linear = self._linear if scope.graph is self._scope.graph else self._moved(scope)
            if self._pullback and len(values) != 1:
                raise ArgumentError(f"a pullback called with {len(values)} arguments", do="pass one cotangent")
            seed, role = (values[0], "cotangent") if self._pullback else (values, "tangents")
            seeds = fitting(scope, self._source, seed, role)
            return deliver(scope, self._target.refill(modes.push(scope, linear, seeds.nodes)))

    def _moved(self, around: Scope) -> Linear | ArrayLinear:
        """Return the map with its coefficients as constants of another graph (it was made outside that trace)."""
        if isinstance(self._linear, ArrayLinear):
            self._linear = self._linear.with_numbers(self._scope.graph, self._scope.values)
            return self._linear
        edges = [edge for _, row in self._linear.rows for edge in row]
        nodes = {node for coefficient, _, guard in edges for node in (coefficient, guard) if node is not None}
        moved = carry(self._scope, sorted(nodes), around.graph)
        there: dict[int | None, int | None] = {None: None, **{node: moved[node] for node in nodes}}
        rows = tuple(
            (target, tuple((there[c], source, there[g]) for c, source, g in row)) for target, row in self._linear.rows
        )
        return replace(self._linear, rows=rows, level=0)  # no level of that graph
