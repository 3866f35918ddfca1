"""Numbers that differ by more than a tolerance: whether the two programs are the same in 50 digits, and it is rounding.

A chain that doubles what it begins with at every step has lost ten bits after ten; the order of a sum decides which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from symad.tracing.trace import to_program, trace
from tests.support.derive_flat import Arrays, agree
from tests.support.fuzzing import counted
from tests.support.rolling_fuzz import interpreted

DIGITS = 50
TIMES = 100.0  # how much further from the right numbers loops may be than straight lines are


def same(
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    program: RolledProgram,
    arrays: Arrays,
    straight: Callable[..., object],
    given: Arrays,
) -> None:
    """Assert that loops have the numbers of a function in straight lines, to 1e-12 or to what rounding leaves of them.

    Rounding it is where both are the same in 50 digits, and the loops are not 100 times as far off as the lines.
    """
    try:
        agree(found, expected)
    except AssertionError:
        exact = _in_digits(to_program(trace(straight, *given)), given)
        agree(_in_digits(unroll(program), arrays), exact)
        off, bound = _furthest(found, exact), TIMES * _furthest(expected, exact)
        if not off <= bound:
            raise
        counted("decided in 50 digits")


def _in_digits(program: object, arrays: Arrays) -> Arrays:
    return interpreted(program, np.concatenate([np.ravel(array) for array in arrays]), DIGITS)


def _furthest(found: Sequence[np.ndarray], exact: Sequence[np.ndarray]) -> float:
    """The largest error, relative to the largest number of its array; NaN where one is not finite."""
    errors = [0.0]
    for some, right in zip(found, exact, strict=True):
        largest = max(1.0, float(np.max(np.abs(right), initial=0.0)))
        errors.append(float(np.max(np.abs(np.ravel(some) - np.ravel(right)), initial=0.0)) / largest)
    return float(np.max(errors))
