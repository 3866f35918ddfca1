"""`enclose`: proven bounds of exact results, at a point or over a box (extra "rigorous").

Over a box it evaluates balls, and bisects the box where that overestimates.
"""

from __future__ import annotations

import heapq
import math
from time import monotonic
from typing import Any, TypeAlias

import numpy as np

from codegen import Kernel
from codegen.options import check_whole
from symad.classroom.verification.balls import enclosures, flat_floats, numbered, results_of, tight, working_bits
from symad.classroom.verification.balls_functions import Ball, as_mpf, ball, flint, hull
from symad.classroom.verification.exact import check_kernel
from symad.classroom.verification.points import Points, box_of
from symad.errors import ArgumentError
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.trace import Trace

BITS = 64
DEEPEST = 40  # halvings of a piece without an enclosure
CLOSE = 0.01  # tolerated overestimation, in widths of the known range


@public_api
def enclose(
    kernel_or_trace: Kernel | Trace, *args: Any, digits: int = 50, box: Any = None, pieces: int = 1000,
    max_seconds: float = 10.0,
) -> list[Ball]:  # fmt: skip
    """Return balls (`flint.arb`) around the exact results at a point, in flat order, with `digits` digits if possible.

    The precision is raised until it is. A ball that stays wider contains the exact result all the same: it may be an
    exact 0 that cancels, or lie on the edge of a branch that cannot be decided; nan says that nothing is known.

    With a `box` (as in `verify`) in place of a point, each ball contains that result at every point of the box. The box
    is cut into up to `pieces` pieces, for `max_seconds` at most: first those whose enclosure goes furthest beyond
    results that are known to be taken. A ball is infinite where a pole or the end of a domain is inside.
    ArgumentError for a box of a trace or of a float32 kernel.

    >>> import symad as sa
    >>> [value] = enclose(sa.compile(lambda x: x**2 - 2, 1.5), 1.5, digits=30)
    >>> value.is_exact(), value == 0.25
    (True, True)
    >>> [range_] = enclose(sa.compile(lambda x: x - x**2, 0.5), box=(0, 1))
    >>> -0.01 < float(range_.lower()) <= 0, 0.25 <= float(range_.upper()) < 0.26
    (True, True)
    """
    check_whole("digits", digits)
    check_whole("pieces", pieces)
    if box is not None:
        if not isinstance(kernel_or_trace, Kernel) or args:
            raise ArgumentError("a box of a trace, or with a point", do="give a kernel and a box, or leave the box out")
        return _over_box(kernel_or_trace, box, pieces, max_seconds)
    rows, results = results_of(kernel_or_trace)
    present = [row for row in results if row is not None]
    inputs = numbered(kernel_or_trace, flat_floats(args))
    balls = tight(rows, present, inputs, digits * math.log2(10))
    stored = dict(zip(present, balls, strict=True))
    return [ball(0) if row is None else stored[row] for row in results]


def _over_box(kernel: Kernel, box: Any, pieces: int, max_seconds: float) -> list[Ball]:
    if check_kernel(kernel):
        raise ArgumentError("the range of a float32 kernel", do="compile it in float64: exact results are the same")
    bounds_of_inputs = box_of(kernel, box)
    search = _Refinement(kernel, bounds_of_inputs.low, bounds_of_inputs.high)
    stop = monotonic() + max_seconds
    while len(search.heap) < pieces and monotonic() < stop and search.refine():
        pass
    arb = flint().arb
    bounds = zip(*(bound.tolist() for bound in search.bounds()), strict=True)
    with working_bits(BITS):
        return [hull(arb(u), arb(v)) if math.isfinite(u + v) else arb(0, math.inf) for u, v in bounds]


Bounds: TypeAlias = tuple[Points, Points]


class _Refinement:
    """The pieces of a box in a heap. The piece that overestimates most is on top.

    A piece has its negative excess, a number, its corners, the bounds of the results, and how often it was halved.
    """

    def __init__(self, kernel: Kernel, low: Points, high: Points) -> None:
        self.rows, self.results = results_of(kernel)
        self.width = np.where(high > low, high / 2 - low / 2, 1.0)
        self.taken_low = np.full(len(self.results), math.inf)
        self.taken_high = np.full(len(self.results), -math.inf)
        self.heap: list[tuple[float, int, Bounds, Bounds, int]] = []
        self.count = 0
        self._add(low, high, 0)

    def refine(self) -> bool:
        """Halve the top piece across its longest side. Return False if that is not worthwhile."""
        least, _, (low, high), _, depth = self.heap[0]
        side = int(np.argmax((high / 2 - low / 2) / self.width)) if len(low) else 0
        middle = low[side] / 2 + high[side] / 2 if len(low) else 0.0
        if -least <= CLOSE or not len(low) or not low[side] < middle < high[side]:
            return False
        heapq.heappop(self.heap)
        for start, end in ((low[side], middle), (middle, high[side])):
            left, right = low.copy(), high.copy()
            left[side], right[side] = start, end
            self._add(left, right, depth + 1)
        return True

    def bounds(self) -> Bounds:
        low, high = zip(*(bounds for *_, bounds, _ in self.heap), strict=True)
        return np.min(low, axis=0), np.max(high, axis=0)

    def _add(self, low: Points, high: Points, depth: int) -> None:
        at_middle = self._enclosed([flint().arb(number) for number in (low / 2 + high / 2).tolist()])
        known = np.isfinite(at_middle[0]) & np.isfinite(at_middle[1])
        self.taken_low = np.where(known, np.minimum(self.taken_low, at_middle[1]), self.taken_low)
        self.taken_high = np.where(known, np.maximum(self.taken_high, at_middle[0]), self.taken_high)
        with working_bits(BITS):
            sides = [hull(flint().arb(u), flint().arb(v)) for u, v in zip(low.tolist(), high.tolist(), strict=True)]
        bounds = self._enclosed(sides)
        self.count += 1
        heapq.heappush(self.heap, (-self._excess(*bounds, depth), self.count, (low, high), bounds, depth))

    def _excess(self, low: Points, high: Points, depth: int) -> float:
        """Return how far a piece's bounds exceed known results, in widths of the known range."""
        if np.isinf(low).any() or np.isinf(high).any():
            return 0.0 if depth >= DEEPEST else math.inf
        width = np.maximum(self.taken_high - self.taken_low, np.abs(self.taken_high) * 1e-9 + 1e-300)
        beyond = np.maximum(self.taken_low - low, high - self.taken_high)
        with np.errstate(invalid="ignore"):
            return float(np.max(np.nan_to_num(beyond / width, nan=math.inf), initial=0.0))

    def _enclosed(self, inputs: list[Ball]) -> Bounds:
        present = list(dict.fromkeys(row for row in self.results if row is not None))
        balls = dict(zip(present, enclosures(self.rows, present, dict(enumerate(inputs)), BITS), strict=True))
        ends = [(0.0, 0.0) if row is None else _ends(balls[row]) for row in self.results]
        pairs = np.array(ends, dtype=float).reshape(len(ends), 2)
        return pairs[:, 0], pairs[:, 1]


def _ends(enclosure: Ball) -> tuple[float, float]:
    """Return the ends of a ball as floats, rounded outward; infinite if the ball is not finite."""
    if not enclosure.is_finite():
        return (-math.inf, math.inf)
    with working_bits(BITS):
        low, high = float(as_mpf(enclosure.lower())), float(as_mpf(enclosure.upper()))
    exact = enclosure.is_exact() and low == high and enclosure == low
    return (low, high) if exact else (math.nextafter(low, -math.inf), math.nextafter(high, math.inf))
