"""Bounds and constraints as SciPy takes them: pairs, `Bounds`, dicts, `LinearConstraint`, `NonlinearConstraint`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from symad.errors import ArgumentError
from symad.tracing.calling.running import callee, value

_TYPES = {"eq": (0.0, 0.0), "ineq": (0.0, np.inf)}


class ConstraintPart(NamedTuple):
    """A function of x with its lower and upper bounds."""

    function: Callable[..., Any]
    low: Any
    high: Any


def ends_of(given: Any, name: str) -> tuple[Any, Any]:
    """Return lower and upper bounds from a tuple of both, SciPy's pairs, or `Bounds`.

    A list of pairs has one pair for each number, as SciPy takes it. So has a tuple of tuples as `bounds`; there a tuple
    of two lists of two numbers can be read both ways, which is an ArgumentError. SciPy has no `constraint_bounds`: as
    these a tuple is always the lowest and the highest.

    >>> ends_of([(0, 1), (2, None)], "bounds")
    ([0, 2], [1, inf])
    >>> ends_of((0, None), "bounds")
    (0, None)
    """
    if hasattr(given, "lb") and hasattr(given, "ub"):
        return given.lb, given.ub
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.shape[1] == 2:
        return given[:, 0], given[:, 1]
    parts = list(given) if isinstance(given, list | tuple) else []
    pairs = [isinstance(part, list | tuple) and len(part) == 2 for part in parts]
    numbers = all(np.ndim(end) == 0 for part, is_pair in zip(parts, pairs, strict=True) if is_pair for end in part)
    own = name != "bounds" and isinstance(given, tuple) and len(parts) == 2
    if parts and all(pairs) and numbers and not own:
        if isinstance(given, tuple) and len(given) == 2 and not all(isinstance(part, tuple) for part in parts):
            raise ArgumentError(
                f"{name}={given!r}",
                why="this may be one pair for each of two numbers, as in SciPy, or all lowest and all highest numbers",
                do="give a list of pairs [(low, high), ...], or scipy.optimize.Bounds(lowest, highest)",
            )
        lows = [-np.inf if low is None else low for low, _ in parts]
        return lows, [np.inf if high is None else high for _, high in parts]
    if len(parts) != 2 or (isinstance(given, list) and any(np.ndim(part) for part in parts if part is not None)):
        raise ArgumentError(
            f"{name}={given!r}", do="give (lowest, highest), None where there is none, or a list of pairs as SciPy"
        )
    return parts[0], parts[1]


def parts_of(constraints: Any) -> tuple[ConstraintPart, ...]:
    """Return the parts of SciPy's constraints: one of them, or a sequence; ArgumentError for anything else."""
    single = isinstance(constraints, Mapping) or not isinstance(constraints, Sequence)
    return tuple(_part(part) for part in ([constraints] if single else constraints))


def _part(given: Any) -> ConstraintPart:
    if isinstance(given, Mapping):
        kind, function, args = given.get("type"), given.get("fun"), given.get("args", ())
        if kind not in _TYPES or not callable(function):
            raise ArgumentError(
                f"a constraint with keys {sorted(map(str, given))}", why=f"its type is {kind!r}",
                do='give {"type": "eq" or "ineq", "fun": f}, as SciPy takes it',
            )  # fmt: skip
        return ConstraintPart(partial(_with_arguments, function, args), *_TYPES[kind])
    if hasattr(given, "A") and hasattr(given, "lb"):  # a LinearConstraint
        return ConstraintPart(partial(_product, given.A), given.lb, given.ub)
    if callable(getattr(given, "fun", None)) and hasattr(given, "lb"):  # a NonlinearConstraint
        return ConstraintPart(given.fun, given.lb, given.ub)
    raise ArgumentError(
        f"a constraint of type {type(given).__name__}",
        do="give a function of x, or what scipy.optimize.minimize takes: a dict, LinearConstraint, NonlinearConstraint",
    )


def function_of(parts: Sequence[ConstraintPart]) -> Callable[..., Any]:
    """Return the function of x that all parts make up; parameters of the problem are not theirs."""
    return partial(_joined, parts)


def _with_arguments(function: Callable[..., Any], args: Sequence[Any], x: Any) -> Any:
    return callee(function)(x, *args)


def _product(matrix: Any, x: Any) -> Any:
    return value(matrix) @ np.ravel(x)


def _joined(parts: Sequence[ConstraintPart], x: Any, *_: Any) -> Any:
    return np.concatenate([np.ravel(callee(part.function)(x)) for part in parts])


def bounds_at(parts: Sequence[ConstraintPart], x: Any) -> tuple[Any, Any]:
    """Return the bounds of all parts. Their sizes are known at a point."""
    with np.errstate(all="ignore"):
        sizes = [np.size(part.function(x)) for part in parts]
    lows, highs = (
        np.concatenate([np.broadcast_to(np.asarray(part[end], dtype=float).ravel(), size)
                        for part, size in zip(parts, sizes, strict=True)])
        for end in (1, 2)
    )  # fmt: skip
    return lows, highs
