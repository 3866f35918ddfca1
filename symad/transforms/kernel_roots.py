"""Root finding in kernels, in place of SciPy's: bracketing and Newton steps as a loop.

They are the same methods with the same tolerances and numbers of steps, so they find the same root where there are
several. Where SciPy raises an error (no change of sign, too many steps) the kernel has NaN.

Sources: Brent, "Algorithms for Minimization without Derivatives" (1973), chapter 4; Ridders, "A new algorithm for
computing a single root of a real continuous function" (1979); Traub, "Iterative Methods for the Solution of Equations"
(1964), for the methods of Halley and the secant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from symad.tracing.control.written import repeated

Function = Callable[[Any], Any]
Number = Any  # traced

XTOL, RTOL, STEPS = 2e-12, 4 * np.finfo(float).eps, 100  # of SciPy's bracketing methods


def bracketed(method: str, f: Function, a: Number, b: Number, xtol: Any, rtol: Any, maxiter: int) -> tuple[Any, Any]:
    """Return the root between a and b that a method of SciPy's finds, and whether it ends there."""
    at_a, at_b = f(a), f(b)
    root, ended = METHODS[method](f, (a, at_a), (b, at_b), xtol, rtol, maxiter, method == "brenth")
    y = np.where(at_a == 0, a, np.where(at_b == 0, b, root))
    changes = (at_a == 0) | (at_b == 0) | ((np.signbit(at_a) != np.signbit(at_b)) & ended)
    return y, changes & ~np.isnan(at_a) & ~np.isnan(at_b)


def _brent(
    f: Function, first: Any, last: Any, xtol: Any, rtol: Any, maxiter: int, is_hyperbolic: bool
) -> tuple[Any, Any]:
    """Inverse quadratic (or hyperbolic) steps where these come nearer fast enough, bisection elsewhere."""

    def step(carry: Any) -> tuple[Any, Any]:
        old, at_old, best, at_best, other, at_other, before, taken, _ = carry
        crosses = (at_old != 0) & (at_best != 0) & (np.signbit(at_old) != np.signbit(at_best))
        width = best - old
        other, at_other = np.where(crosses, old, other), np.where(crosses, at_old, at_other)
        before, taken = np.where(crosses, width, before), np.where(crosses, width, taken)
        swaps = np.abs(at_other) < np.abs(at_best)
        old, at_old, best, at_best, other, at_other = (
            np.where(swaps, best, old), np.where(swaps, at_best, at_old),
            np.where(swaps, other, best), np.where(swaps, at_other, at_best),
            np.where(swaps, best, other), np.where(swaps, at_best, at_other),
        )  # fmt: skip
        least, half = (xtol + rtol * np.abs(best)) / 2, (other - best) / 2
        ended = (at_best == 0) | (np.abs(half) < least)
        secant = -at_best * (best - old) / (at_best - at_old)
        slope, far = (at_old - at_best) / (old - best), (at_other - at_best) / (other - best)
        if is_hyperbolic:
            curved = -at_best * (at_other - at_old) / (at_other * slope - at_old * far)
        else:
            curved = -at_best * (at_other * far - at_old * slope) / (far * slope * (at_other - at_old))
        tried = np.where(old == other, secant, curved)
        is_near = 2 * np.abs(tried) < np.minimum(np.abs(before), 3 * np.abs(half) - least)
        takes = (np.abs(before) > least) & (np.abs(at_best) < np.abs(at_old)) & is_near
        before, taken = np.where(takes, taken, half), np.where(takes, tried, half)
        moved = best + np.where(np.abs(taken) > least, taken, np.where(half > 0, least, -least))
        after = np.where(ended, best, moved)
        value = np.where(ended, at_best, f(after))
        return (best, at_best, after, value, other, at_other, before, taken, np.where(ended, 1.0, 0.0)), ended

    start = (*first, *last, 0.0, 0.0, 0.0, 0.0, 0.0)
    _, _, best, _, _, _, _, _, done = repeated(step, start, maxiter, f)
    return best, done > 0.5


def _bisected(f: Function, first: Any, last: Any, xtol: Any, rtol: Any, maxiter: int, _: bool) -> tuple[Any, Any]:
    """Halve the interval."""

    def step(carry: Any) -> tuple[Any, Any]:
        low, width, _, _ = carry
        width = width / 2
        middle = low + width
        value = f(middle)
        low = np.where(np.signbit(value) == np.signbit(first[1]), middle, low)
        ended = (value == 0) | (np.abs(width) < xtol + rtol * np.abs(middle))
        return (low, width, middle, np.where(ended, 1.0, 0.0)), ended

    _, _, middle, done = repeated(step, (first[0], last[0] - first[0], first[0], 0.0), maxiter, f)
    return middle, done > 0.5


def _ridder(f: Function, first: Any, last: Any, xtol: Any, rtol: Any, maxiter: int, _: bool) -> tuple[Any, Any]:
    """False position of the function times an exponential that makes it straight."""

    def step(carry: Any) -> tuple[Any, Any]:
        a, at_a, b, at_b, _, _ = carry
        half = (b - a) / 2
        middle = a + half
        value = f(middle)
        length = np.sqrt(value**2 - at_a * at_b)
        by = np.abs(half * value / length)  # at most half, but for rounding
        place = middle - np.where(np.signbit(at_a) == np.signbit(value), -1.0, 1.0) * np.sign(half) * np.minimum(
            by, np.abs(half)
        )
        at_place = f(place)
        beyond = np.signbit(at_place) != np.signbit(value)  # between the middle and the place
        lower = np.signbit(at_place) != np.signbit(at_a)  # between a and the place
        left, right = np.where(beyond, middle, np.where(lower, a, place)), np.where(beyond | lower, place, b)
        at_left = np.where(beyond, value, np.where(lower, at_a, at_place))
        at_right = np.where(beyond | lower, at_place, at_b)
        ended = (at_place == 0) | (value == 0) | (np.abs(right - left) < xtol + rtol * np.abs(place))
        return (left, at_left, right, at_right, np.where(value == 0, middle, place), np.where(ended, 1.0, 0.0)), ended

    *_, place, done = repeated(step, (*first, *last, first[0], 0.0), maxiter, f)
    return place, done > 0.5


METHODS = {"brentq": _brent, "brenth": _brent, "ridder": _ridder, "bisect": _bisected}


def open_root(
    f: Function, slope: Any, curvature: Any, start: Any, second: Any, tol: Any, rtol: Any, maxiter: int
) -> tuple[Any, Any]:
    """Return the root near a point by the secant method, or Newton's or Halley's where there are derivatives."""
    if slope is None:
        return _secant(f, start, second, tol, rtol, maxiter)
    return _newton(f, slope, curvature, start, tol, rtol, maxiter)


def _newton(
    f: Function, slope: Function, curvature: Any, start: Any, tol: Any, rtol: Any, maxiter: int
) -> tuple[Any, Any]:
    def step(carry: Any) -> tuple[Any, Any]:
        y, _ = carry
        value, by = f(y), slope(y)
        length = value / by
        if curvature is not None:
            bend = length * curvature(y) / by / 2
            length = np.where(np.abs(bend) < 1, length / (1 - bend), length)
        after = np.where(value == 0, y, y - length)
        ended = np.all((value == 0) | (np.abs(after - y) <= tol + rtol * np.abs(y)))
        return (after, np.where(ended, 1.0, 0.0)), ended | np.any((by == 0) & (value != 0))

    y, done = repeated(step, (start, 0.0), maxiter, f, slope, *([curvature] if curvature else []))
    return y, done > 0.5


def _secant(f: Function, start: Any, second: Any, tol: Any, rtol: Any, maxiter: int) -> tuple[Any, Any]:
    if second is None:
        by = 1e-4 if np.ndim(start) == 0 else float(np.finfo(float).eps) ** 0.33  # as SciPy has it
        second = start * (1 + by) + np.where(start >= 0, by, -by)
    at_start, at_second = f(start), f(second)
    swaps = (np.abs(at_second) < np.abs(at_start)) & (np.ndim(start) == 0)
    old, new = np.where(swaps, second, start), np.where(swaps, start, second)
    at_old, at_new = np.where(swaps, at_second, at_start), np.where(swaps, at_start, at_second)

    def step(carry: Any) -> tuple[Any, Any]:
        a, at_a, b, at_b, _ = carry
        ratio, inverse = at_a / at_b, at_b / at_a
        larger = np.abs(at_b) > np.abs(at_a)
        after = np.where(larger, (a - ratio * b) / (1 - ratio), (b - inverse * a) / (1 - inverse))
        after = np.where(at_a == at_b, np.where((a == b) | (at_b == 0), b, np.nan), after)
        ended = np.all(np.abs(after - b) <= tol + rtol * np.abs(b))
        return (b, at_b, after, f(after), np.where(ended, 1.0, 0.0)), ended | np.any(np.isnan(after))

    _, _, y, _, done = repeated(step, (old, at_old, new, at_new, 0.0), maxiter, f)
    return y, done > 0.5
