"""Minimisers in kernels, in place of SciPy's: methods of our own, with the same checks and a warning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.derivatives.implicit import TOLERANCE, solve
from symad.derivatives.symbolic_equations import SymbolicEquation
from symad.derivatives.symbolic_minima import (
    SECTIONS,
    STEPS,
    bounded_minimum,
    expanded,
    free_minimum,
    least_between,
    strict,
)
from symad.tracing.values.node_operands import holds_traced
from symad.transforms.first_order import grad
from symad.transforms.scipy_solvers import as_function, tell

Function = Callable[..., Any]
Find = Callable[[SymbolicEquation], tuple[Any, Any]]


def minimum_on_symbols(name: str, f: Function, start: Any, args: tuple[Any, ...], ends: Any = None) -> Any:
    """Return the place of a minimum in a kernel, by Newton's method; what lies at a bound stays there."""
    tell(name, "Newton's method with a part of the identity added to the Hessian", STEPS)
    begin = 1.0 * start if holds_traced((start,)) else np.array(start, dtype=float)
    if ends is None:
        return _stationary(f, begin, args, lambda equation: free_minimum(equation, f))
    low, high = (np.broadcast_to(end, np.shape(begin)) for end in ends)
    return _stationary(f, begin, args, lambda equation: bounded_minimum(equation, f, low, high))


def minimum_of_one(name: str, f: Function, args: tuple[Any, ...], near: Any = None, ends: Any = None) -> Any:
    """Return the place of a minimum of one variable in a kernel, between ends or downhill of two places."""
    tell(name, "the golden section", SECTIONS)
    objective = as_function(f, args)

    def find(equation: SymbolicEquation) -> tuple[Any, Any]:
        low, high = expanded(objective, *(near or (0.0, 1.0))[:2]) if ends is None else ends
        return strict(equation, np.reshape(least_between(objective, low, high), (1,)))

    return _stationary(f, 1.0, args, find)


def _stationary(f: Function, begin: Any, args: tuple[Any, ...], find: Find) -> Any:
    def slope(y: Any, *args: Any) -> Any:
        return grad(f)(y, *args)

    return solve(slope, begin, args, lambda *_: begin, TOLERANCE, find)
