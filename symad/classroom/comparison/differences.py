"""Derivatives by finite differences, in floats and, as a reference, in many digits.

A derivative of any order and any mix of directions is a product of first differences, so one stencil serves all. Its
offsets are integer multiples of the steps, and its coefficients are integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, Literal

import mpmath
import numpy as np

from symad.derivatives.interpolation import multi_indices

Kind = Literal["forward", "backward", "central"]
Function = Callable[[Any], Any]

ENDS: dict[Kind, tuple[int, int]] = {"forward": (0, 1), "backward": (-1, 0), "central": (-1, 1)}
EPSILON = 2.0**-52
LEVELS = 8  # steps of an extrapolation, each half the one before
EXACT_DIGITS = 50
EXACT_STEPS = (30, 240, 480)  # decimal places by which the step of a reference is smaller than the point
SETTLED_DIGITS = 40  # in which two steps have to agree


def stencil(times: Sequence[int], kind: Kind) -> dict[tuple[int, ...], int]:
    """Return `{offset: coefficient}` of the difference taken `times[d]` times in direction d.

    Offsets count steps, those of central differences half steps.

    >>> stencil((2,), "central")
    {(-2,): 1, (0,): -2, (2,): 1}
    >>> stencil((1, 1), "forward")
    {(0, 0): 1, (0, 1): -1, (1, 0): -1, (1, 1): 1}
    """
    low, high = ENDS[kind]
    rows = [
        [(count * low + k * (high - low), (-1) ** (count - k) * math.comb(count, k)) for k in range(count + 1)]
        for count in times
    ]
    return {tuple(place for place, _ in terms): math.prod(factor for _, factor in terms) for terms in product(*rows)}


def difference(f: Function, x: Any, steps: Sequence[Any], times: Sequence[int], kind: Kind) -> Any:
    """Return the undivided difference of f at a flat array x (floats or mpmath numbers) along steps.

    >>> float(difference(lambda x: x[0] ** 2, np.array([3.0]), [np.array([0.5])], (2,), "central"))
    0.5
    """
    half = 2 if kind == "central" else 1
    total: Any = 0
    for offset, coefficient in stencil(times, kind).items():
        place = x
        for count, step in zip(offset, steps, strict=True):
            place = place + step * count / half if count else place
        total = total + coefficient * f(place)
    return total


def standard_step(kind: Kind, order: int, x: Any) -> Any:
    """Return the step that balances truncation and rounding, a power of two for each input.

    eps**(1 / (order + 1)) for one-sided and eps**(1 / (order + 2)) for central differences, times max(|x|, 1).

    >>> float(standard_step("forward", 1, np.array([0.7]))[0]) == 2.0**-26
    True
    """
    power = order + (2 if kind == "central" else 1)
    return nearest_power(EPSILON ** (1 / power) * np.maximum(np.abs(x), 1.0))


def nearest_power(step: Any) -> Any:
    """Return the nearest power of two, so that x + h - x is h."""
    return np.exp2(np.round(np.log2(step)))


def derivatives(f: Function, x: Any, order: int, kind: Kind, step: Any) -> Any:
    """Return all derivatives of an order of a scalar f at a flat array x by differences, flat in C order.

    >>> derivatives(lambda x: x[0] ** 2 * x[1], np.array([2.0, 3.0]), 2, "central", np.full(2, 2.0**-10)).tolist()
    [6.0, 4.0, 4.0, 0.0]
    """
    axes = np.diag(step)
    by_index = {}
    for times in multi_indices(len(x), order):
        used = [k for k, count in enumerate(times) if count]
        raw = difference(f, x, [axes[k] for k in used], [times[k] for k in used], kind)
        by_index[times] = raw / math.prod(step[k] ** times[k] for k in used)
    return spread(by_index, len(x), order).astype(float)


def spread(values: dict[tuple[int, ...], Any], inputs: int, order: int) -> Any:
    """Return the flat symmetric tensor of derivatives by multi-index, as an array of objects.

    >>> spread({(2, 0): 1, (1, 1): 2, (0, 2): 3}, 2, 2).tolist()
    [1, 2, 2, 3]
    """
    tensor = np.empty(inputs**order, dtype=object)
    for position, place in enumerate(product(range(inputs), repeat=order)):
        tensor[position] = values[tuple(place.count(k) for k in range(inputs))]
    return tensor


def extrapolated(f: Function, x: Any, order: int) -> Any:
    """Return all derivatives of an order by Richardson extrapolation of central differences.

    The first step is a quarter of max(|x|, 1), and each next one half of that. The value that changed least is taken.
    Places where f has no number are skipped.
    """
    largest = nearest_power(np.maximum(np.abs(x), 1.0) / 4)
    best, change, before = np.array(np.nan), np.array(np.inf), list[Any]()
    for level in range(LEVELS):
        row = [derivatives(f, x, order, "central", largest / 2**level)]
        for column in range(1, level + 1):
            refined = row[-1] + (row[-1] - before[column - 1]) / (4**column - 1)
            moved = np.maximum(np.abs(refined - row[-1]), np.abs(refined - before[column - 1]))
            better = np.nan_to_num(moved, nan=np.inf) < change
            best, change = np.where(better, refined, best), np.where(better, moved, change)
            row.append(refined)
        before = row
    return best


def evaluations(inputs: int, order: int, kind: Kind) -> int:
    """Return the number of function calls for all derivatives of an order.

    >>> evaluations(1, 1, "central"), evaluations(2, 2, "forward")
    (2, 10)
    """
    return sum(len(stencil([count for count in times if count], kind)) for times in multi_indices(inputs, order))


def working_digits(order: int, x: Any = (), places: int = EXACT_STEPS[0]) -> int:
    """Return the digits for a reference: those that differences cancel near x, and as many again."""
    decades = [int(abs(mpmath.log10(abs(value)))) for value in x if value and mpmath.isfinite(value)]
    return order * (places + 10 + 3 * max(decades, default=0)) + max(decades, default=0) + places + 2 * EXACT_DIGITS


def exact_difference(
    f: Function, x: Any, directions: Sequence[Any], times: Sequence[int], kind: Kind, places: int = EXACT_STEPS[0]
) -> Any:
    """Return a difference quotient of mpmath numbers in many digits, with step 10**-places of the point.

    >>> point = np.array([mpmath.mpf(1)])
    >>> slope = exact_difference(lambda x: mpmath.exp(x[0]), point, [np.array([mpmath.mpf(1)])], (1,), "central")
    >>> bool(abs(slope - mpmath.e) < 1e-15)
    True
    """
    with mpmath.workdps(working_digits(sum(times), x, places)):
        scale = min([mpmath.mpf(1), *(abs(value) for value in x if value)])  # the smallest non-zero |x|, at most 1
        step = mpmath.mpf(10) ** -places * scale
        return difference(f, x, [step * direction for direction in directions], times, kind) / step ** sum(times)


def settled_difference(f: Function, x: Any, directions: Sequence[Any], times: Sequence[int]) -> Any:
    """Return a derivative along directions to at least 40 digits, from values of f alone; nan if there is none.

    No rule of differentiation takes part. Smaller steps have to give the same number, however steep the function is, or
    a number that shrinks as the truncation error of an exact 0 does.

    >>> point = np.array([mpmath.mpf(1)])
    >>> steep = settled_difference(lambda x: mpmath.sin(10**40 * x[0]), point, [np.array([mpmath.mpf(1)])], (1,))
    >>> with mpmath.workdps(90):
    ...     bool(abs(steep / (10**40 * mpmath.cos(10**40)) - 1) < mpmath.mpf(10) ** -40)
    True
    """
    slope = before = mpmath.nan
    for places in EXACT_STEPS:
        before, slope = slope, exact_difference(f, x, directions, times, "central", places)
        if slope and abs(slope - before) <= abs(slope) * mpmath.mpf(10) ** -SETTLED_DIGITS:
            return slope
    nothing = abs(before) * mpmath.mpf(10) ** -SETTLED_DIGITS + (1 + abs(f(x))) * mpmath.mpf(10) ** -EXACT_STEPS[1]
    return mpmath.mpf(0) if abs(slope) <= nothing else mpmath.nan
