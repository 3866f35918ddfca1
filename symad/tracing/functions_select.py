"""Choosing and rounding on traced values: where, select, clip, piecewise, round, sinc, polynomials, interpolation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sympy as sp

import symad.tracing.operations as op
from symad.tracing.array import Array, wrap
from symad.tracing.functions_reduce import traced
from symad.tracing.node_arrays import elementwise
from symad.tracing.operands import nodes_of, scope_of
from symad.tracing.registry import available, implements
from symad.tracing.scalar import Scalar, quick_nodes
from symad.tracing.traced import Traced, refuse_function
from symad.tracing.values import values_of


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
            return Scalar(op.select(condition.scope.graph, *nodes), condition.scope)
    scope = scope_of(condition, x, y)
    parts = [nodes_of(value, scope) for value in (condition, x, y)]
    return wrap(elementwise(scope.graph, op.select, *parts), scope)


@implements(np.select)
def select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    """The choice of the first condition that holds."""
    made = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        made = (
            chosen(condition, choice, made)
            if _is_traced(condition, choice, made)
            else np.where(condition, choice, made)
        )
    return made


def _is_traced(*values: Any) -> bool:
    return any(isinstance(value, Traced) for value in values)


@implements(np.piecewise)
def piecewise(x: Any, condlist: Any, funclist: Any, *args: Any, **keywords: Any) -> Any:
    """funclist[k](x) where condlist[k] holds (a last extra one elsewhere); every function is evaluated."""
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    made: Any = funclist[-1] if len(funclist) == len(conditions) + 1 else 0.0
    made = made(x, *args, **keywords) if callable(made) else made
    for condition, function in reversed(list(zip(conditions, funclist, strict=False))):
        value = function(x, *args, **keywords) if callable(function) else function
        made = chosen(condition, value, made)
    return made


@implements(np.clip)
def clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None, max: Any = None, **_: Any
) -> Any:
    """minimum(maximum(a, low), high)."""
    low, high = a_min if min is None else min, a_max if max is None else max
    made = traced(a)
    made = made if low is None or low is np._NoValue else np.maximum(made, low)
    made = made if high is None or high is np._NoValue else np.minimum(made, high)
    if out is None:
        return made
    out[...] = made
    return out


@implements(np.round, np.around)
def round_(a: Any, decimals: int = 0, out: Any = None) -> Any:
    """Round to the given number of decimals, halves to even."""
    a = traced(a)
    if decimals == 0:
        return np.rint(a)
    factor = 10.0 ** abs(decimals)
    return np.rint(a * factor) / factor if decimals > 0 else np.rint(a / factor) * factor


@implements(np.fix)
def fix(x: Any, out: Any = None) -> Any:
    """Round towards zero."""
    return np.trunc(traced(x))


@implements(np.sinc)
def sinc(x: Any) -> Any:
    """sin(pi x) / (pi x), 1 at zero."""
    return _mapped(x, lambda graph, u: graph.node(sp.sinc, op.multiply(graph, u, graph.number(float(np.pi)))))


@implements(np.i0)
def bessel_i0(x: Any) -> Any:
    """The modified Bessel function of order 0."""
    return _mapped(x, lambda graph, u: graph.node(sp.besseli, graph.number(0), u))


def _mapped(x: Any, build: Callable[..., int]) -> Any:
    scope = scope_of(x)
    return wrap(elementwise(scope.graph, build, nodes_of(x, scope)), scope)


@implements(np.nan_to_num)
def nan_to_num(x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    """NaN and infinities replaced by numbers."""
    largest = np.finfo(float).max
    made = np.where(np.isnan(x), nan, x)
    made = np.where(made == np.inf, largest if posinf is None else posinf, made)
    return np.where(made == -np.inf, -largest if neginf is None else neginf, made)


@implements(*available("astype"))
def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """Float stays as it is (bool becomes 0 and 1), bool is x != 0, int truncates; complex and others are refused."""
    return x.astype(dtype)


@implements(np.logspace)
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0, **_: Any) -> Any:
    """Numbers spaced evenly on a logarithmic scale."""
    return np.power(base, linspace(start, stop, num, endpoint))


@implements(np.polyval)
def polyval(p: Any, x: Any) -> Any:
    """The polynomial with coefficients p (highest first) at x, by Horner's rule."""
    made: Any = 0
    for coefficient in p:
        made = made * x + coefficient
    return made


@implements(np.vander)
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # noqa: N803 (NumPy's name)
    """The Vandermonde matrix."""
    x = traced(x)
    columns = [x**k if k else np.ones_like(x) for k in range(len(x) if N is None else N)]
    return np.stack(columns if increasing else columns[::-1], axis=1)


@implements(np.convolve)
def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    """The discrete convolution of two vectors."""
    scope = scope_of(a, v)
    left, right = (Array(np.atleast_1d(nodes_of(value, scope)), scope) for value in (a, v))
    if len(right) > len(left):
        left, right = right, left
    n, m = len(left), len(right)
    made = [np.dot(left[max(0, k - m + 1) : k + 1], right[max(0, k - n + 1) : k + 1][::-1]) for k in range(n + m - 1)]
    start, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    return np.stack(made[start : start + count])


@implements(np.correlate)
def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors."""
    return convolve(a, np.flip(v), mode)


@implements(np.interp)
def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Piecewise linear interpolation; traced abscissae and values are both allowed, the points xp are numbers."""
    if period is not None or isinstance(xp, Traced):
        refuse_function("np.interp with traced xp or a period", "the order of the points must be known")
    xp = np.asarray(xp, dtype=float)
    fp = fp if isinstance(fp, Traced) else np.asarray(fp, dtype=float)
    made = fp[0] if left is None else left
    for k in range(len(xp) - 1):
        slope = (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k])
        made = np.where(x >= xp[k], slope * (x - xp[k]) + fp[k], made)
    made = np.where(x >= xp[-1], fp[-1], made)
    return made if right is None else np.where(x > xp[-1], right, made)


@implements(np.linspace)
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, **_: Any) -> Any:
    """Evenly spaced numbers between two traced ends (the new axis first)."""
    step = (stop - start) / (num - 1 if endpoint else num)
    rows = [start + k * step for k in range(num)]
    if endpoint and num > 1:
        rows[-1] = stop + 0 * step
    made = np.stack(rows)
    return (made, step) if retstep else made


def values(value: Any) -> Any:
    """Return the plain values of traced values (a decision), also inside lists; other values unchanged."""
    if isinstance(value, list | tuple):
        return type(value)([values(part) for part in value])
    if not isinstance(value, Traced):
        return value
    return values_of(value.scope, nodes_of(value, value.scope))
