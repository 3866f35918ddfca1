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
from symad.classroom.verification.balls import enclosures, known_bits, results_of
from symad.classroom.verification.balls_functions import as_mpf
from symad.errors import ArgumentError, LimitError
from symad.tracing.trace import Trace

WORKING = 60  # digits for differences of exact numbers and floats
SETTLED = 20  # decimal digits in which two evaluations have to agree
MOST_DIGITS = 2400
BALL_BITS = (128, 512, 2560, 8192)
SHARP = 1 / 64  # of a unit in the last place: what an exact value may be uncertain by


@dataclass(frozen=True, slots=True)
class Known:
    """An exact number: a middle (mpmath) and how far away it can be at most; a middle of nan is undefined."""

    middle: Any
    radius: Any = 0


COMPARED = (sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne)
STEPS = (sp.sign, sp.Heaviside, sp.floor, sp.ceiling, heads.trunc, heads.rint, sp.frac)

Exact = Callable[[Sequence[Any]], list[Known]]  # the results at a point that is given by its flat numbers


def by_digits(kernel_or_trace: Kernel | Trace, digits: int = 50) -> Exact:
    """Return the exact results by evaluating in `digits` digits, and once more in more digits.

    Where the two do not agree, or a result is 0 beside very small or large inputs, in more digits still; what never
    agrees has their distance as its radius.

    >>> from symad.tracing.trace import trace
    >>> exact = by_digits(trace(lambda x: (1 - np.cos(x)) / x**2, 0.0))
    >>> [found] = exact([1e-40])
    >>> abs(found.middle - 0.5) < 1e-60
    True
    """
    rows, results = results_of(kernel_or_trace)
    wanted = [row for row in results if row is not None]
    leaves = kernel_or_trace.inputs.flat if isinstance(kernel_or_trace, Trace) else None

    edges = _edges(rows, wanted)
    every = list(dict.fromkeys([*wanted, *(row for edge in edges for row in edge)]))

    def at(numbers: Sequence[Any], dps: int) -> dict[int, Any]:
        inputs = as_exact(dict(zip(leaves or range(len(numbers)), numbers, strict=True)), dps)
        return dict(zip(every, evaluate(rows, every, inputs, "reference", dps), strict=True))

    def exact(numbers: Sequence[Any]) -> list[Known]:
        try:
            return settled(numbers)
        except LimitError:  # a number so large that evaluating it would take hours
            return [Known(mp.nan, mp.inf)] * len(results)

    def settled(numbers: Sequence[Any]) -> list[Known]:
        decades = _decades(numbers)
        found, dps = at(numbers, digits), digits + SETTLED + 2 * decades
        while True:
            before, found = found, at(numbers, dps)
            pairs = {row: _known(before[row], found[row]) for row in wanted}
            with precision(dps + SETTLED):
                noise = any(_known(_gap(before, edge), _gap(found, edge)).radius != 0 for edge in edges)
            least = digits + SETTLED + 4 * decades if any(found[row] == 0 for row in wanted) else dps
            if dps >= MOST_DIGITS and noise:
                return [Known(mp.nan, mp.inf)] * len(results)
            if dps >= MOST_DIGITS or (
                dps >= least and not noise and all(known.radius == 0 for known in pairs.values())
            ):
                return [Known(mp.mpf(0)) if row is None else pairs[row] for row in results]
            dps = min(2 * dps, MOST_DIGITS)

    return exact


def _edges(rows: Rows, wanted: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the operands of every comparison, sign and rounding: these jump where a difference vanishes."""
    known = [row for row in reachable(rows, wanted) if rows.heads[row] in (*COMPARED, *STEPS)]
    return list(dict.fromkeys(tuple(rows.operands[row][: 2 if rows.heads[row] in COMPARED else 1]) for row in known))


def _gap(values: Mapping[int, Any], edge: tuple[int, ...]) -> Any:
    """Return how far a number is from a jump: from the other one, or from the nearest half of a whole number."""
    first, *others = (mp.mpf(values[row]) for row in edge)
    if not mp.isfinite(first) or not all(map(mp.isfinite, others)):
        return mp.nan
    return first - others[0] if others else first - mp.nint(2 * first) / 2


def by_balls(kernel_or_trace: Kernel | Trace) -> Exact:
    """Return the exact results with a proven radius, as sharp as a float needs them where any precision gives that.

    A result without an enclosure is undefined where 50 digits give no number either.
    """
    rows, results = results_of(kernel_or_trace)
    wanted = list(dict.fromkeys(row for row in results if row is not None))
    leaves = kernel_or_trace.inputs.flat if isinstance(kernel_or_trace, Trace) else None

    def undefined(unknown: list[int], inputs: dict[int, Any]) -> set[int]:
        """Rows without an enclosure that are nan by the conventions of the references too."""
        try:
            values = evaluate(rows, unknown, as_exact(inputs, 50), "reference", 50)
        except LimitError:
            return set()
        return {row for row, value in zip(unknown, values, strict=True) if mp.isnan(value)}

    def exact(numbers: Sequence[Any]) -> list[Known]:
        inputs = dict(zip(leaves or range(len(numbers)), numbers, strict=True))
        found: dict[int, Any] = {}
        nowhere: set[int] = set()
        for bits in BALL_BITS:
            open_rows = [row for row in wanted if row not in found or known_bits(found[row]) < 64]
            open_rows = [row for row in open_rows if row not in nowhere]
            if not open_rows:
                break
            found.update(zip(open_rows, enclosures(rows, open_rows, inputs, bits), strict=True))
            if unknown := [row for row in open_rows if found[row].is_nan()]:
                nowhere |= undefined(unknown, inputs)
        known = {row: Known(mp.nan) if row in nowhere else _of_ball(enclosed) for row, enclosed in found.items()}
        return [Known(mp.mpf(0)) if row is None else known[row] for row in results]

    return exact


def _of_ball(found: Any) -> Known:
    if not found.is_finite():
        return Known(as_mpf(found)) if found.is_exact() else Known(mp.nan, mp.inf)
    return Known(as_mpf(found.mid()), as_mpf(found.rad()))


def _known(before: Any, found: Any) -> Known:
    """Return a number that two evaluations gave, with no radius where they agree."""
    if isinstance(found, bool):
        return Known(mp.mpf(found), 0 if before == found else 1)
    if mp.isnan(before) or mp.isnan(found) or before == found:
        return Known(found, 0 if before == found or (mp.isnan(before) and mp.isnan(found)) else mp.inf)
    gap = abs(before - found)
    return Known(found, 0 if gap <= abs(found) * mp.mpf(10) ** -SETTLED else gap)


def _decades(numbers: Sequence[Any]) -> int:
    """How many decades the numbers lie away from 1 at most: digits that may cancel beside them."""
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
    found = np.float32(abs(value))
    return float(np.spacing(found if found < np.finfo(np.float32).max else np.nextafter(found, np.float32(0))))


def rounded(exact: Any, single: bool = False) -> float:
    """Return an mpmath number rounded to the nearest float; inf where it is too large for one."""
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
    """Return a finite error as a float, which is finite too: infinite is said of nan and inf alone."""
    return min(float(error), sys.float_info.max)


def error_bound(value: float, known: Known, single: bool = False) -> float | None:
    """Return the largest error in ULP that a value can have; None where the exact number is not known well enough.

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
    """Return the error in ULP that rounding the inputs alone would cause, for each result at a point.

    Every input that is not 0 is moved by half a unit in its last place, exactly, and the changes of the exact results
    are added up. A result that no rounding of its inputs could give to the last place is ill-conditioned there.

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
    """Return how far each result moves when one input moves by half a unit, up or down, whichever is more."""
    step = mp.mpf(spacing(numbers[position], single)) / 2
    sides = [exact([*numbers[:position], numbers[position] + side, *numbers[position + 1 :]]) for side in (-step, step)]
    return [max(_distance(u, v.middle), _distance(u, w.middle)) for u, v, w in zip(here, *sides, strict=True)]


def _distance(u: Any, v: Any) -> Any:
    """|u - v|; 0 to a point where there is no number."""
    return abs(u - v) if mp.isfinite(u) and mp.isfinite(v) else mp.mpf(0)


def _finite(exact: Any, single: bool) -> float:
    near = rounded(exact, single)
    return near if math.isfinite(near) else float(np.finfo(np.float32 if single else float).max)


def check_kernel(kernel: Any) -> bool:
    """Return whether a kernel computes in single precision; ArgumentError for what has no error in ULP."""
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
