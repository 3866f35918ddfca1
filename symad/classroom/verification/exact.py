"""Exact values in many digits or balls, and the error of a float against them."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy as sp
from mpmath import mp

import codegen.heads as heads
from codegen import Kernel
from codegen.evaluation.interpret import evaluate
from codegen.functions.reference_functions import precision
from codegen.ir.program import Rows, reachable
from codegen.records import dataclass
from symad.classroom.verification.balls import enclosures, known_bits, numbered, results_of
from symad.classroom.verification.balls_functions import as_mpf
from symad.errors import ArgumentError, LimitError
from symad.tracing.trace import Trace

WORKING = 60  # digits for differences of exact numbers and floats
SETTLED = 20  # decimal digits in which two evaluations have to agree
MOST_DIGITS = 2400
BALL_BITS = (128, 512, 2560, 8192)
SHARP = 1 / 64  # ULP: the tolerated uncertainty of an exact value


@dataclass(frozen=True, slots=True)
class Known:
    """An exact number: a middle (mpmath) and how far away it can be at most; a middle of nan is undefined."""

    middle: Any
    radius: Any = 0


COMPARED = (sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne)
STEPS = (sp.sign, sp.Heaviside, sp.floor, sp.ceiling, heads.trunc, heads.rint, sp.frac)

Exact = Callable[[Sequence[Any]], list[Known]]  # the results at a point that is given by its flat numbers


def by_digits(kernel_or_trace: Kernel | Trace, digits: int = 50) -> Exact:
    """Return a function for exact results: it evaluates in `digits` digits and again in more digits.

    If the two differ, or a result is 0 beside very small or large inputs, it uses still more digits. A result that
    never settles has the difference of the last two as its radius.

    >>> from symad.tracing.trace import trace
    >>> exact = by_digits(trace(lambda x: (1 - np.cos(x)) / x**2, 0.0))
    >>> [value] = exact([1e-40])
    >>> abs(value.middle - 0.5) < 1e-60
    True
    """
    rows, results = results_of(kernel_or_trace)
    present = [row for row in results if row is not None]
    edges = _edges(rows, present)
    needed = list(dict.fromkeys([*present, *(row for edge in edges for row in edge)]))

    def at(numbers: Sequence[Any], dps: int) -> dict[int, Any]:
        inputs = as_exact(numbered(kernel_or_trace, numbers), dps)
        return dict(zip(needed, evaluate(rows, needed, inputs, "reference", dps), strict=True))

    def exact(numbers: Sequence[Any]) -> list[Known]:
        try:
            return settled(numbers)
        except LimitError:  # a huge number, whose evaluation would take hours
            return [Known(mp.nan, mp.inf)] * len(results)

    def settled(numbers: Sequence[Any]) -> list[Known]:
        decades = _decades(numbers)
        after, dps = at(numbers, digits), digits + SETTLED + 2 * decades
        while True:
            before, after = after, at(numbers, dps)
            pairs = {row: _known(before[row], after[row]) for row in present}
            with precision(dps + SETTLED):
                noise = any(_known(_gap(before, edge), _gap(after, edge)).radius != 0 for edge in edges)
            least = digits + SETTLED + 4 * decades if any(after[row] == 0 for row in present) else dps
            if dps >= MOST_DIGITS and noise:
                return [Known(mp.nan, mp.inf)] * len(results)
            is_settled = dps >= least and not noise and all(known.radius == 0 for known in pairs.values())
            if dps >= MOST_DIGITS or is_settled:
                return [Known(mp.mpf(0)) if row is None else pairs[row] for row in results]
            dps = min(2 * dps, MOST_DIGITS)

    return exact


def _edges(rows: Rows, results: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the operands of comparisons, signs and roundings. These jump where a difference vanishes."""
    known = [row for row in reachable(rows, results) if rows.heads[row] in (*COMPARED, *STEPS)]
    return list(dict.fromkeys(tuple(rows.operands[row][: 2 if rows.heads[row] in COMPARED else 1]) for row in known))


def _gap(values: Mapping[int, Any], edge: tuple[int, ...]) -> Any:
    """Return the distance from a jump: from the other operand, or from the nearest multiple of 1/2."""
    first, *others = (mp.mpf(values[row]) for row in edge)
    if not mp.isfinite(first) or not all(map(mp.isfinite, others)):
        return mp.nan
    return first - others[0] if others else first - mp.nint(2 * first) / 2


def by_balls(kernel_or_trace: Kernel | Trace) -> Exact:
    """Return a function for exact results with a proven radius, as sharp as floats need if possible.

    A result without an enclosure is undefined if evaluation in 50 digits gives no number either.
    """
    rows, results = results_of(kernel_or_trace)
    present = list(dict.fromkeys(row for row in results if row is not None))

    def undefined(unknown: list[int], inputs: dict[int, Any]) -> set[int]:
        """Return the rows without an enclosure that are nan in the references too."""
        try:
            values = evaluate(rows, unknown, as_exact(inputs, 50), "reference", 50)
        except LimitError:
            return set()
        return {row for row, value in zip(unknown, values, strict=True) if mp.isnan(value)}

    def exact(numbers: Sequence[Any]) -> list[Known]:
        inputs = numbered(kernel_or_trace, numbers)
        balls: dict[int, Any] = {}
        nowhere: set[int] = set()
        for bits in BALL_BITS:
            coarse = (row for row in present if row not in balls or known_bits(balls[row]) < 64)
            open_rows = [row for row in coarse if row not in nowhere]
            if not open_rows:
                break
            balls.update(zip(open_rows, enclosures(rows, open_rows, inputs, bits), strict=True))
            if unknown := [row for row in open_rows if balls[row].is_nan()]:
                nowhere |= undefined(unknown, inputs)
        known = {row: Known(mp.nan) if row in nowhere else _of_ball(enclosed) for row, enclosed in balls.items()}
        return [Known(mp.mpf(0)) if row is None else known[row] for row in results]

    return exact


def _of_ball(ball: Any) -> Known:
    if not ball.is_finite():
        return Known(as_mpf(ball)) if ball.is_exact() else Known(mp.nan, mp.inf)
    return Known(as_mpf(ball.mid()), as_mpf(ball.rad()))


def _known(before: Any, after: Any) -> Known:
    """Return a number of two evaluations. Its radius is 0 if they agree."""
    if isinstance(after, bool):
        return Known(mp.mpf(after), 0 if before == after else 1)
    if mp.isnan(before) or mp.isnan(after) or before == after:
        return Known(after, 0 if before == after or (mp.isnan(before) and mp.isnan(after)) else mp.inf)
    gap = abs(before - after)
    return Known(after, 0 if gap <= abs(after) * mp.mpf(10) ** -SETTLED else gap)


def _decades(numbers: Sequence[Any]) -> int:
    """Return the largest distance of the numbers from 1, in decades. So many digits may cancel."""
    sizes = [abs(float(number)) for number in numbers if math.isfinite(number)]
    return int(max((abs(math.log10(size)) for size in sizes if size), default=0.0))


def as_exact(inputs: Mapping[int, float], digits: int) -> dict[int, Any]:
    """Return floats as mpmath numbers, without rounding."""
    with precision(max(digits, 17)):
        return {row: mp.mpf(value) for row, value in inputs.items()}


def spacing(value: float, single: bool = False) -> float:
    """Return the unit in the last place of a number, as a double or in single precision.

    >>> spacing(1.0) == 2**-52, spacing(-1.0, single=True) == 2**-23, spacing(0.0)
    (True, True, 5e-324)
    """
    if not single:
        return math.ulp(value)
    size = np.float32(abs(value))
    return float(np.spacing(size if size < np.finfo(np.float32).max else np.nextafter(size, np.float32(0))))


def rounded(exact: Any, single: bool = False) -> float:
    """Return an mpmath number rounded to the nearest float; inf if it is too large."""
    value = float(exact)
    with np.errstate(over="ignore"):
        return float(np.float32(value)) if single else value


def ulp_error(value: float, exact: Any, single: bool = False) -> float:
    """Return |value - exact| in units of the last place of the exact number rounded to double.

    Infinite where one of the two is nan, or only one infinite.

    >>> ulp_error(1.0, mpmath.mpf(1)), ulp_error(1.0 + 2**-52, mpmath.mpf(1))
    (0.0, 1.0)
    """
    near = rounded(exact, single)
    if math.isnan(value) or math.isnan(near) or math.isinf(near) or math.isinf(value):
        return 0.0 if value == near or (math.isnan(value) and math.isnan(near)) else math.inf
    with precision(WORKING):
        return _as_float(abs(mpmath.mpf(value) - exact) / mpmath.mpf(spacing(near, single)))


def _as_float(error: Any) -> float:
    """Return a finite error as a finite float: infinity is reserved for nan and inf."""
    return min(float(error), sys.float_info.max)


def error_bound(value: float, known: Known, single: bool = False) -> float | None:
    """Return the largest possible error of a value in ULP; None if the exact number is too uncertain.

    >>> error_bound(1.0, Known(mpmath.mpf(1), mpmath.mpf(2) ** -60)) < 0.01
    True
    >>> error_bound(1.0, Known(mpmath.mpf(1), mpmath.mpf(1))) is None
    True
    """
    if known.radius == 0:
        return ulp_error(value, known.middle, single)
    if not mp.isfinite(known.radius) or not mp.isfinite(known.middle):
        return None
    with precision(WORKING):
        least = max(abs(known.middle) - known.radius, mp.mpf(0))
        uncertain = known.radius / mp.mpf(spacing(rounded(least, single), single))
        if uncertain > SHARP:
            return None
        return float(ulp_error(value, known.middle, single) + uncertain)


def condition(exact: Exact, numbers: Sequence[float], single: bool = False) -> list[float]:
    """Return, for each result at a point, the error in ULP that rounding the inputs alone would cause.

    Every non-zero input is moved by exactly half a unit in its last place, and the changes of the exact results are
    added up. A large sum means that the result is ill-conditioned there.

    >>> from symad.tracing.trace import trace
    >>> [bad] = condition(by_digits(trace(lambda x: x - 1, 1.0)), [1 + 1e-10])
    >>> 1e9 < bad < 1e10
    True
    """
    with precision(WORKING):
        here = [known.middle for known in exact(numbers)]
        totals = [mp.mpf(0)] * len(here)
        for position, number in enumerate(numbers):
            if number != 0 and math.isfinite(number):
                changes = _changes(exact, numbers, position, here, single)
                totals = [total + change for total, change in zip(totals, changes, strict=True)]
        units = [mp.mpf(spacing(_finite(number, single), single)) for number in here]
        return [_as_float(total / unit) for total, unit in zip(totals, units, strict=True)]


def _changes(exact: Exact, numbers: Sequence[float], position: int, here: list[Any], single: bool) -> list[Any]:
    """Return the change of each result if one input moves by half a unit, the larger of up and down."""
    step = mp.mpf(spacing(numbers[position], single)) / 2
    sides = [exact([*numbers[:position], numbers[position] + side, *numbers[position + 1 :]]) for side in (-step, step)]
    return [max(_distance(u, v.middle), _distance(u, w.middle)) for u, v, w in zip(here, *sides, strict=True)]


def _distance(u: Any, v: Any) -> Any:
    """Return |u - v|, 0 if one of them is not finite."""
    return abs(u - v) if mp.isfinite(u) and mp.isfinite(v) else mp.mpf(0)


def _finite(exact: Any, single: bool) -> float:
    near = rounded(exact, single)
    return near if math.isfinite(near) else float(np.finfo(np.float32 if single else float).max)


def check_kernel(kernel: Any) -> bool:
    """Return whether a kernel is in single precision; ArgumentError if its errors are not measured in ULP."""
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"verify of an object of type {type(kernel).__name__}",
            why="the numbers of a kernel are compared with exact ones",
            do="compile the function first: verify(compile(f, x), x)",
        )
    if kernel.options.number.parts != 1:
        raise ArgumentError(
            f"verify of a {kernel.options.dtype} kernel",
            why="errors are measured in the last place of real results",
            do="verify a float64 kernel of the real and imaginary parts",
        )
    return kernel.options.dtype == "float32"
