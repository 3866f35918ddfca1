"""Minima in kernels: a bounded descent, whose end is checked to be a strict minimum.

Sources: Nocedal and Wright, "Numerical Optimization" (2006), chapters 3 and 16 (Newton's method with a multiple of the
identity added to the Hessian, projected onto bounds); Kiefer, "Sequential minimax search for a maximum" (1953).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.derivatives.symbolic_equations import SymbolicEquation, polished, vector
from symad.tracing.control.written import repeated

Function = Callable[..., Any]

STEPS = 200
EXPANSIONS = 100  # of an interval until there is a minimum in it
SECTIONS = 50  # of that interval, by the golden ratio: 3e-11 of it is left
GOLDEN = (np.sqrt(5.0) - 1) / 2
FLAT = 1e-10  # curvature that counts as 0, relative to the largest
LARGEST_SHIFT = 1e12  # of the Hessian, relative to its entries
AT_BOUND = 1e-7  # how near to a bound a component is at it, relative to 1 + |bound|
PUSHES = 1e-4  # the least slope that holds it there, relative to the largest


def descent(equation: SymbolicEquation, objective: Function, low: Any = -np.inf, high: Any = np.inf) -> Any:
    """Return the place of a minimum between bounds, where the steps end."""
    size = equation.start.size
    low, high = (np.broadcast_to(end, (size,)) for end in (low, high))
    is_free = bool(np.all(np.isinf(low)) and np.all(np.isinf(high)))

    def step(carry: Any) -> tuple[Any, Any]:
        y, shift = carry
        slope, curvature = equation.linearized(y)
        if not is_free:
            held = ((y <= low) & (slope > 0)) | ((y >= high) & (slope < 0))
            slope, curvature = _without(held, slope, curvature)
        scale = np.max(np.abs(curvature))
        matrix = curvature + shift * scale * np.eye(size)
        trial = y - np.linalg.solve(matrix, slope)
        trial = trial if is_free else np.minimum(np.maximum(trial, low), high)
        before, after = (equation.number_at(place, objective) for place in (y, trial))
        moved = np.max(np.abs(trial - y) / (1 + np.abs(trial)))
        takes = is_positive(matrix) & ((after <= before) | (moved < 1e-9))
        ended = takes & (moved <= 1e-14) & (shift == 0)
        following = np.where(takes, np.where(shift < 1e-6, 0.0, shift / 10), np.maximum(10 * shift, 1e-4))
        hopeless = (shift > LARGEST_SHIFT) | np.isnan(before)
        return (np.where(takes, trial, y), following), ended | hopeless

    begin = vector(equation)
    begin = begin if is_free else np.minimum(np.maximum(begin, low), high)
    y, _ = repeated(step, (begin, 0.0), STEPS, equation.f, objective)
    return y


def free_minimum(equation: SymbolicEquation, objective: Function) -> tuple[Any, Any]:
    """Return a minimum without bounds, and whether it is a strict one."""
    return strict(equation, descent(equation, objective))


def bounded_minimum(equation: SymbolicEquation, objective: Function, low: Any, high: Any) -> tuple[Any, Any]:
    """Return a minimum between bounds, and whether it is a strict one whose bounds hold it or are far."""
    y = descent(equation, objective, low, high)
    slope, _ = equation.linearized(y)
    at_low, at_high, is_sure = held_at(y, slope, low, high)
    held = at_low | at_high
    y = np.where(at_low, low, np.where(at_high, high, y))
    equation.hold(held, y)
    better, is_strict = strict(equation, y, held)
    return better, is_strict & is_sure


def strict(equation: SymbolicEquation, y: Any, held: Any = None) -> tuple[Any, Any]:
    """Return the place of a minimum, moved by Newton's method, and whether it is a strict one, and the same."""
    better, is_near = polished(equation, y)
    slope, curvature = equation.linearized(better)
    if held is not None:
        _, curvature = _without(held, slope, curvature)
    least = FLAT * np.max(np.abs(curvature))
    return better, is_near & is_positive(curvature - least * np.eye(equation.start.size))


def is_positive(matrix: Any) -> Any:
    """Whether all eigenvalues of a symmetric matrix are positive: whether all pivots of its elimination are."""
    holds: Any = True
    while len(matrix):
        pivot, column = matrix[0, 0], matrix[1:, 0]
        holds = holds & (pivot > 0)
        matrix = matrix[1:, 1:] - column[:, None] * column[None, :] / pivot
    return holds


def held_at(y: Any, slope: Any, low: Any, high: Any) -> tuple[Any, Any, Any]:
    """Return the components at their lower and upper bound, and whether the slope decides that for all of them."""
    at_low = np.isfinite(low) & (y - low <= AT_BOUND * (1 + np.abs(np.where(np.isfinite(low), low, 0.0))))
    at_high = np.isfinite(high) & (high - y <= AT_BOUND * (1 + np.abs(np.where(np.isfinite(high), high, 0.0))))
    pushes = np.abs(slope) > PUSHES * np.max(np.abs(slope))
    return at_low & (slope > 0), at_high & (slope < 0), np.all(np.logical_not(at_low | at_high) | pushes)


def _without(held: Any, slope: Any, curvature: Any) -> tuple[Any, Any]:
    """Return a linear system that leaves the held unknowns where they are."""
    either = held[:, None] | held[None, :]
    diagonal = np.max(np.abs(curvature)) * np.eye(len(slope))
    return np.where(held, 0.0, slope), np.where(either, diagonal, curvature)


def least_between(f: Function, low: Any, high: Any) -> Any:
    """Return the place of a minimum of one variable in an interval, by the golden section."""

    def step(carry: Any) -> tuple[Any, Any]:
        a, b, left, at_left, right, at_right = carry
        is_left = at_left < at_right
        a, b = np.where(is_left, a, left), np.where(is_left, right, b)
        kept, at_kept = np.where(is_left, left, right), np.where(is_left, at_left, at_right)
        fresh = np.where(is_left, b - GOLDEN * (b - a), a + GOLDEN * (b - a))
        at_fresh = f(fresh)
        pairs = (fresh, kept), (at_fresh, at_kept)
        (left, right), (at_left, at_right) = (
            (np.where(is_left, new, old), np.where(is_left, old, new)) for new, old in pairs
        )
        return (a, b, left, at_left, right, at_right), np.abs(b - a) <= 1e-15 * np.abs(kept)

    inner = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    ends = (low, high, inner[0], f(inner[0]), inner[1], f(inner[1]))
    _, _, left, at_left, right, at_right = repeated(step, ends, SECTIONS, f)
    return np.where(at_left < at_right, left, right)


def expanded(f: Function, first: Any, second: Any) -> tuple[Any, Any]:
    """Return an interval downhill of two places, which has a minimum in it, or has become too wide."""

    def step(carry: Any) -> tuple[Any, Any]:
        _, middle, at_middle, last, at_last = carry
        further = last + (last - middle) / GOLDEN
        ended = np.logical_not(at_last < at_middle)
        after = np.where(ended, last, further)
        moved = np.where(ended, carry[0], middle), np.where(ended, middle, last), np.where(ended, at_middle, at_last)
        return (*moved, after, np.where(ended, at_last, f(after))), ended

    at_first, at_second = f(first), f(second)
    swaps = at_first < at_second
    a, b = np.where(swaps, second, first), np.where(swaps, first, second)
    at_b = np.where(swaps, at_first, at_second)
    last = b + (b - a) / GOLDEN
    left, _, _, right, _ = repeated(step, (a, b, at_b, last, f(last)), EXPANSIONS, f)
    return left, right
