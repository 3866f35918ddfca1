"""Linear maps at a point: the pushforward (jvp, linearize) and the pullback (vjp) of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from symad.derivatives import in_code, modes
from symad.derivatives.application import Function, LinearFunction, as_tuple, fitting
from symad.derivatives.level import FunctionResultError, Level, in_level
from symad.derivatives.signatures import R
from symad.tracing.calling.function_names import argument_names
from symad.tracing.calling.tracebacks import public_api


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
    return in_code.linear_map(f, primals, "pushforward", lambda: _linearize(f, primals)[1]) or _linearize(f, primals)


def _linearize(f: Function, primals: tuple[Any, ...]) -> tuple[Any, Function]:
    return in_level(primals, argument_names(f, len(primals)), partial(_linear_map, f, pullback=False))


@public_api
def vjp(f: Callable[..., R], *primals: Any) -> tuple[R, Callable[[R], tuple[Any, ...]]]:
    """Return `(f(*primals), pullback)`; `pullback(cotangent)` returns one cotangent for each primal, as a tuple.

    >>> value, pullback = vjp(lambda x, y: x * y, 2.0, 3.0)
    >>> value, pullback(1.0)
    (6.0, (3.0, 2.0))
    """
    return in_code.linear_map(f, primals, "pullback", lambda: _vjp(f, primals)[1]) or _vjp(f, primals)


def _vjp(f: Function, primals: tuple[Any, ...]) -> tuple[Any, Function]:
    return in_level(primals, argument_names(f, len(primals)), partial(_linear_map, f, pullback=True))


def _linear_map(f: Function, level: Level, *, pullback: bool) -> tuple[Any, Function]:
    """Return the value of a function in a level, and its pushforward or pullback."""
    result = level.call(f)
    linear = modes.linear_map(level, result)
    source, target = (result, level.parameters) if pullback else (level.parameters, result)
    linear_map = LinearFunction(level, linear.transpose() if pullback else linear, source, target, pullback=pullback)
    (value,) = level.close(result)
    return value, linear_map
