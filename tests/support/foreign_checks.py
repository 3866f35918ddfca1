"""Exact slopes of foreign calls: complex steps of the plain call, and differences at 50 digits of the traced program.

A complex step is taken of the unmodified function, where that takes complex numbers; it has all digits. Elsewhere the
function's own trace - no derivative is in it - is evaluated at 50 digits on both sides of the point, if it has the
values of plain calls at the point and beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from mpmath import mp

import symad as sa
from codegen.evaluation.interpret import evaluate
from symad.classroom.verification.exact import results_of
from tests.support.foreign_calls import SECONDS, Call, moved, plain_value
from tests.support.time_limits import TooLongError, limited

EXACT = 1e-8  # relative: what a slope may differ by
STEP = 1e-30  # of a complex step, relative
DISTANCES = (0.0, 1e-5, -1e-5, 1e-3, -1e-3)  # where a trace is compared with plain calls


@dataclass(frozen=True)
class Slopes:
    """The partial derivatives of a call by each exact way; None where that way is not to be had."""

    complex_steps: tuple[float, ...] | None = None
    many_digits: tuple[float, ...] | None = None

    def check_of(self, slopes: Sequence[float], start: Sequence[float], value: float) -> str:
        """Return the way that has these slopes: "complex steps", "50 digits", or "" where none has."""
        found = {"complex steps": self.complex_steps, "50 digits": self.many_digits}
        lost = 1e-13 * (abs(value) + sum(abs(slope * x) for slope, x in zip(slopes, start, strict=True)))
        for name, exact in found.items():
            if exact is not None and all(
                abs(ours - theirs) <= EXACT * abs(theirs) + lost / (abs(x) or 1.0)
                for ours, theirs, x in zip(slopes, exact, start, strict=True)
            ):
                return name
        return ""


UNKNOWN = Slopes()


def exact_slopes(call: Call) -> Slopes:
    """Return the slopes of a call by complex steps and by differences at 50 digits."""
    value = plain_value(call, call.start)
    return Slopes(_by_complex_steps(call, value), _by_many_digits(call)) if value is not None else UNKNOWN


def _by_complex_steps(call: Call, value: float) -> tuple[float, ...] | None:
    found = []
    for k, number in enumerate(call.start):
        step = STEP * (abs(number) or 1.0)
        stepped = call.complex_value([*call.start[:k], complex(number, step), *call.start[k + 1 :]])
        if stepped is None or not math.isclose(stepped.real, value, rel_tol=1e-12):
            return None
        found.append(stepped.imag / step)
    return tuple(found)


def _by_many_digits(call: Call) -> tuple[float, ...] | None:
    try:
        with limited(5 * SECONDS):
            traced = sa.trace(call.of_list, call.start)
            if not all(_has_plain_value(call, traced, by) for by in DISTANCES):
                return None
            return tuple(slope_in_digits(call, traced, k) for k in range(len(call.start)))
    except (Exception, TooLongError):  # what is not traced has no program
        return None


def _has_plain_value(call: Call, traced: sa.results.Trace, by: float) -> bool:
    numbers = moved(call, by)
    plain = plain_value(call, numbers)
    if plain is None:
        return True
    with np.errstate(all="ignore"):
        return math.isclose(float(program_value(traced, numbers, "float64")), plain, rel_tol=1e-9)


def program_value(traced: sa.results.Trace, numbers: Sequence[Any], arithmetic: str) -> Any:
    """Return the value of a traced call, in floats or in many digits."""
    rows, results = results_of(traced)
    return evaluate(rows, results, dict(zip(traced.inputs.flat, numbers, strict=True)), arithmetic)[0]


def slope_in_digits(call: Call, traced: sa.results.Trace, k: int) -> float:
    """Return a partial derivative as the difference of a traced call at 50 digits."""
    start = call.start
    with mp.workdps(50):
        step = mp.mpf(10) ** -16 * (abs(start[k]) or 1.0)
        ends = [
            program_value(traced, [*start[:k], mp.mpf(start[k]) + side * step, *start[k + 1 :]], "reference")
            for side in (1, -1)
        ]
        return float((ends[0] - ends[1]) / (2 * step))
