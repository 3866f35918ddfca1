"""Exact derivatives at a point: 40 digits from values of f alone, and balls around the values of a formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numpy as np

from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import ComparisonProblem
from symad.classroom.comparison.differences import (
    EXACT_DIGITS,
    EXACT_STEPS,
    Kind,
    exact_difference,
    settled_difference,
    spread,
    working_digits,
)
from symad.classroom.verification.balls_functions import as_mpf
from symad.classroom.verification.enclose import enclose
from symad.classroom.verification.verify import CANCELLED, compare_exact, exact_values
from symad.derivatives.interpolation import multi_indices
from symad.errors import LimitError, WorkbenchError
from symad.limits import time_limit
from symad.tracing.trace import Trace, trace
from symad.transforms.first_order import derivative
from symad.transforms.higher_order import partials

FROM_VALUES = "from values of f alone, in hundreds of digits"
FROM_FORMULA = "from the formula of AD in hundreds of digits, because differences take too long"


@dataclass(frozen=True)
class Reference:
    """The derivatives at the point to 40 digits and their source, or why there are none."""

    values: tuple[Any, ...]
    refusal: str = ""
    source: str = FROM_VALUES


def reference_of(problem: ComparisonProblem) -> Reference:
    """Return the exact derivatives at the point; none at a kink, or at the edge or outside of the domain.

    They are differences of f, or where these take longer than the problem allows, those of AD.
    """
    x = np.array([mpmath.mpf(value) for value in problem.flat], dtype=object)
    with mpmath.workdps(working_digits(problem.order, x)):
        if refusal := _refusal(problem, x):
            return Reference((), refusal)
        try:
            with time_limit(problem.seconds, "the exact values"):
                values = _differences(problem, x)
        except LimitError:
            values = _of_formula(problem)
            noise = max(map(abs, values)) * mpmath.mpf(10) ** -EXACT_DIGITS
            return Reference(tuple(v if abs(v) > noise else mpmath.mpf(0) for v in values), source=FROM_FORMULA)
        if not all(map(mpmath.isfinite, values)):
            return Reference((), "differences of f do not settle here: it has no derivative, or is too steep to tell")
        return Reference(tuple(values))


def _differences(problem: ComparisonProblem, x: Any) -> Sequence[Any]:
    axes = np.diag(np.array([mpmath.mpf(1)] * problem.inputs, dtype=object))
    by_index = {}
    for times in multi_indices(problem.inputs, problem.order):
        used = [k for k, count in enumerate(times) if count]
        by_index[times] = settled_difference(problem.exactly, x, [axes[k] for k in used], [times[k] for k in used])
    values: Sequence[Any] = spread(by_index, problem.inputs, problem.order).tolist()
    return values


def _of_formula(problem: ComparisonProblem) -> Sequence[Any]:
    order = problem.order
    transformed = derivative(problem.function, order) if problem.scalar else partials(problem.function, order)
    return exact_values(trace(transformed, problem.x), (problem.x,), mpmath.mp.dps)


def _refusal(problem: ComparisonProblem, x: Any) -> str:
    """Return why there is no derivative at a point: one-sided differences differ, or are not finite."""
    if not all(map(mpmath.isfinite, x)):
        return "the point is not finite"
    if not mpmath.isfinite(problem.exactly(x)):
        return f"f is {mpmath.nstr(problem.exactly(x))} at this point: outside its domain"
    weights = [1.0] if problem.scalar else np.random.default_rng(1).uniform(0.5, 1.0, problem.inputs).tolist()
    direction = np.array([mpmath.mpf(weight) for weight in weights], dtype=object)
    kinds: tuple[Kind, Kind] = ("backward", "forward")
    gap = mpmath.mpf(0)
    for places in EXACT_STEPS:
        along, times = [direction], [problem.order]
        sides = [exact_difference(problem.exactly, x, along, times, kind, places) for kind in kinds]
        before, gap, largest = gap, abs(sides[1] - sides[0]), max(map(abs, sides))
        if gap <= max(largest * mpmath.mpf(10) ** -10, before * mpmath.mpf(10) ** -100):  # a true 0 shrinks
            return ""
    if not all(map(mpmath.isfinite, sides)):
        return "the point is at the edge of the domain of f"
    if gap > before * mpmath.mpf(10) ** 100:
        return "f jumps or is infinitely steep here, or in a derivative: difference quotients grow without bound"
    left, right = (mpmath.nstr(side, 6) for side in sides)
    return f"f has a kink here: the derivative is {left} on one side of the point and {right} on the other"


@dataclass(frozen=True)
class Enclosure:
    """Balls around the values of a formula, as midpoints and radii, or why there are none."""

    middles: tuple[Any, ...]
    radii: tuple[Any, ...]
    refusal: str = ""

    def ulp_bound(self, values: Sequence[float]) -> float:
        """Return a bound of the error of floats in ULP, over the entries that do not cancel."""
        largest = max(map(abs, self.middles))
        wide = [
            float(radius / math.ulp(float(middle)))
            for middle, radius in zip(self.middles, self.radii, strict=True)
            if abs(middle) >= CANCELLED * largest
        ]
        return compare_exact(values, self.middles).worst_ulp + max(wide)

    def contains(self, exact: Sequence[Any]) -> bool:
        """Whether numbers good to 25 digits may be inside the balls."""
        largest = max(map(abs, exact))
        gaps = (abs(a - b) - radius for a, b, radius in zip(exact, self.middles, self.radii, strict=True))
        return all(gap <= largest * mpmath.mpf(10) ** -25 for gap in gaps)


def enclosure_of(traced: Trace, problem: ComparisonProblem) -> Enclosure:
    """Return balls around the values of a formula at the point (extra: symad[rigorous])."""
    try:
        with mpmath.workdps(60):
            balls = enclose(traced, problem.flat)
            if not all(ball.is_finite() for ball in balls):
                return Enclosure((), (), "ball arithmetic gives no finite enclosure")
            return Enclosure(tuple(as_mpf(ball.mid()) for ball in balls), tuple(as_mpf(ball.rad()) for ball in balls))
    except WorkbenchError as error:
        return Enclosure((), (), str(error).splitlines()[0])
