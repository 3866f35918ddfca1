"""One route of a comparison: build it, call it, judge it. A failure becomes the text of the row."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import mpmath
import numpy as np

from codegen.limits import limits
from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import Built, ComparisonProblem, Sizes
from symad.classroom.comparison.identity import Sample, agreement, digits_at, proved, sample_at
from symad.classroom.comparison.reference import FROM_VALUES, Reference
from symad.classroom.comparison.routes import Route
from symad.classroom.verification.verify import compare_exact
from symad.errors import NotInstalledError, WorkbenchError
from symad.limits import time_limit
from symad.tracing.trace import Trace

Verdict = Literal[
    "proved", "tested", "agrees", "inaccurate", "wrong", "no derivative", "no number", "failed", "not installed"
]

FEWEST_DIGITS = 6.0  # right digits below which a route that truncates nothing is called inaccurate
LONGEST_PROOF = 3.0  # seconds
PROOF = "proved by algebra: the formula equals that of sympy.diff, which agrees with values of f at random points"


@dataclass(frozen=True)
class Row:
    """One route: its values, their error, the reason for the verdict, and the cost.

    `ulp` is the largest error in units of the last place over the entries that do not cancel (None where all exact
    values are 0), `ulp_bound` a proven bound of it by ball arithmetic, `absolute` the largest absolute error, `digits`
    the right digits of the worst entry compared with the largest one, `lost` how many entries have no right digit of
    their own; None where nothing exact is known. Operations and sizes are None where there is nothing to count,
    seconds where nothing was measured.
    """

    route: str
    family: str
    verdict: Verdict
    reason: str
    values: tuple[float, ...] = ()
    ulp: float | None = None
    ulp_bound: float | None = None
    digits: float | None = None
    absolute: float | None = None
    lost: int | None = None
    operations: int | None = None
    sizes: Sizes | None = None
    build_seconds: float | None = None
    call_seconds: float | None = None


@dataclass(frozen=True)
class Measures:
    """The reference for a route. `provable`: a tested formula of sympy.diff can prove equality."""

    problem: ComparisonProblem
    reference: Reference
    samples: Sequence[Sample]
    times: bool
    provable: bool = False


@dataclass(frozen=True)
class Judged:
    """A verdict, its reason, and the formula that agrees with the reference, if one does."""

    verdict: Verdict
    reason: str
    exact: Trace | None = None


def row_of(measures: Measures, name: str, variant: str, route: Route) -> tuple[Row, Trace | None]:
    """Build, call and judge a route. Any error becomes the row's reason. Also return a formula that is exact."""
    problem, called = measures.problem, None
    guards = time_limit(problem.seconds, name), limits(None, problem.seconds)
    try:
        with guards[0], guards[1], np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other libraries; the numbers show what they warn about
            start = time.perf_counter()
            built = route.build(problem, variant)
            taken = time.perf_counter() - start if built.seconds is None else built.seconds
            values = _flat(problem, built.call(problem.x))
            called = calling_time(built.call, problem.x) if measures.times else None
            judged = _judged(measures, built, route.expected(problem.order))
    except NotInstalledError as error:
        return Row(name, route.family, "not installed", str(error)), None
    except Exception as error:  # another library may raise anything
        return Row(name, route.family, "failed", _error_line(error)), None
    row = Row(
        name, route.family, judged.verdict, judged.reason, values, operations=built.operations, sizes=built.sizes,
        build_seconds=taken if measures.times else None, call_seconds=called,
    )  # fmt: skip
    return _measured(row, measures.reference, route.expected(problem.order)), judged.exact


def _error_line(error: Exception) -> str:
    """Return an error in one line, without place and advice."""
    if isinstance(error, WorkbenchError):
        return f"{error.what}: {error.why}" if error.why else error.what
    return f"{type(error).__name__}: {next(iter(str(error).splitlines()), '')}"


def _flat(problem: ComparisonProblem, result: Any) -> tuple[float, ...]:
    values = np.asarray(result, dtype=float).ravel()
    if len(values) != problem.inputs**problem.order:
        raise ValueError(f"{len(values)} values, where there are {problem.inputs**problem.order} derivatives")
    return tuple(values.tolist())


def _judged(measures: Measures, built: Built, expected: float) -> Judged:
    """Judge whether a route computes the derivative, by its formula or by its values at random points."""
    problem, samples = measures.problem, measures.samples
    if not samples:
        return Judged("no number", "f has no number at any random point")
    if built.traced is None:
        if (digits := digits_at(problem, built.call, samples)) is None:
            return Judged("inaccurate", "overflow or underflow may spoil floats at every random point")
        return _judged_by_values(digits, len(samples), expected)
    result = agreement(problem, built.traced, samples)
    if not result.points:
        return Judged("no number", str(result))
    if not result.passed:
        return Judged("wrong", str(result))
    if _wrong_here(measures, built.traced):
        return Judged("wrong", f"{result}; but at this very point the formula gives another number")
    if result.agreed < result.points:
        return Judged("agrees", str(result))
    seconds = min(LONGEST_PROOF, problem.seconds / 2)
    if measures.provable and proved(built.traced, problem.by_sympy()[0], problem.symbols, seconds):
        return Judged("proved", PROOF, built.traced)
    return Judged("tested", str(result), built.traced)


def _wrong_here(measures: Measures, traced: Trace) -> bool:
    """Whether a formula, evaluated in many digits, is wrong at the point itself."""
    reference = measures.reference
    if reference.refusal or reference.source != FROM_VALUES:
        return False
    result = agreement(measures.problem, traced, [sample_at(measures.problem, reference.values)])
    return result.points > 0 and not result.passed


def _judged_by_values(digits: float, points: int, expected: float) -> Judged:
    """Judge a route without a formula: it agrees or is inaccurate. Only a formula can be wrong."""
    reason = f"{digits:.2g} digits at the best of {points} random points"
    needed = needed_digits(expected)
    if expected:
        reason += f"; at least {needed:.2g} are to be expected of it"
    return Judged("agrees" if digits >= needed else "inaccurate", reason)


def needed_digits(expected: float) -> float:
    """Return the right digits that a route should have, given its relative error by design.

    >>> needed_digits(1e-4), needed_digits(0.0)
    (4.0, 6.0)
    """
    return max(1.0, -math.log10(expected)) if expected else FEWEST_DIGITS


def _measured(row: Row, reference: Reference, expected: float) -> Row:
    """Return a row with its error at the point and the resulting verdict."""
    if reference.refusal:
        return replace(row, verdict="no derivative", reason=f"f has none at this point; elsewhere: {row.reason}")
    odd = [value for value in row.values if not math.isfinite(value)]
    if odd and row.verdict != "wrong":
        return replace(row, verdict="no number", reason=f"the result is {odd[0]}; elsewhere: {row.reason}")
    beyond = [exact for exact in reference.values if math.isinf(float(exact))]
    if beyond and row.verdict != "wrong":
        reason = f"the exact {mpmath.nstr(beyond[0], 3)} is beyond all floats; elsewhere: {row.reason}"
        return replace(row, verdict="no number", reason=reason)
    row = replace(row, **errors_of(row.values, reference)._asdict())
    if row.verdict == "wrong":
        return row
    if row.digits is not None and row.digits < needed_digits(expected) and row.verdict != "inaccurate":
        return replace(row, verdict="inaccurate", reason=f"{row.digits:.2g} digits here; elsewhere: {row.reason}")
    return row


class Errors(NamedTuple):
    """The errors of a row, as in `Row`."""

    ulp: float | None
    digits: float | None
    absolute: float
    lost: int


def errors_of(values: Sequence[float], reference: Reference) -> Errors:
    """Return the errors of values against the reference.

    >>> errors_of([1.0, 2.0], Reference((1, 2)))
    Errors(ulp=0.0, digits=16.0, absolute=0.0, lost=0)
    """
    errors = compare_exact(values, reference.values)
    pairs = list(zip(values, reference.values, strict=True))
    largest = max(abs(float(exact)) for exact in reference.values)
    lost = sum(not abs(mpmath.mpf(value) - exact) < abs(exact) for value, exact in pairs if exact)
    if not largest:
        return Errors(None, None, errors.scaled, 0)
    if not math.isfinite(errors.scaled):
        return Errors(math.inf, 0.0, math.inf, lost)
    digits = min(16.0, max(0.0, -math.log10(errors.scaled))) if errors.scaled else 16.0
    return Errors(errors.worst_ulp, digits, errors.scaled * largest, lost)


def calling_time(call: Callable[[Any], Any], x: Any) -> float:
    """Return the seconds of one call, the best of a few bursts."""
    start = time.perf_counter()
    call(x)
    best = time.perf_counter() - start
    repeats = max(1, min(1000, int(2e-3 / max(best, 1e-7))))
    for _ in range(3 if best < 0.1 else 0):
        start = time.perf_counter()
        for _ in range(repeats):
            call(x)
        best = min(best, (time.perf_counter() - start) / repeats)
    return best
