"""Numbers of a program outside of the domain of a function are NaN, whatever steps make them."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.ir.region import Nest, RolledProgram
from codegen.ir.tables import Affine
from symad.derivatives.loops.kinds import restricted
from tests.support.derive_cases import Made, region, run as table
from tests.support.derive_strict import run


def domain() -> RolledProgram:
    """1 where the first number is positive, else NaN."""
    made = Made({"x": (4,)}, {"factor": ()})
    return made.program(
        region(lambda x: (np.where(x > 0, 1.0, np.nan),), 1, [made.at("x", 0)], [made.to(0, "factor", 0)])
    )


def in_one_loop() -> RolledProgram:
    made = Made({"x": (4,)}, {"f": (4,)})
    return made.program(region(lambda x: (x * x,), 4, [made.at("x", table(4))], [made.to(0, "f", table(4))]))


def in_rounds() -> RolledProgram:
    made = Made({"x": (4,)}, {"f": (4,)})
    places = Affine(0, 1, 2, (2,))
    return made.program(Nest(2, (region(lambda x: (x * x,), 2, [made.at("x", places)], [made.to(0, "f", places)]),)))


def in_part() -> RolledProgram:
    """The last number is a structural zero."""
    made = Made({"x": (4,)}, {"f": (4,)})
    return made.program(region(lambda x: (x * x,), 3, [made.at("x", table(3))], [made.to(0, "f", table(3))]))


@pytest.mark.parametrize("case", [in_one_loop, in_rounds, in_part])
def test_all_numbers_are_nan_outside(case) -> None:  # type: ignore[no-untyped-def]
    program = restricted(case(), domain())
    for first in (1.0, -1.0):
        x = np.array([first, 2.0, 3.0, 4.0])
        wanted = x * x if case is not in_part else np.where(np.arange(4) < 3, x * x, 0.0)
        np.testing.assert_array_equal(run(program, [x])[0], wanted if first > 0 else np.full(4, np.nan))
