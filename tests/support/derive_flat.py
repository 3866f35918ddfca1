"""What a rolled program unrolls to, as a function of arrays; random points; when arrays agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

import symad as sa
from codegen.ir.region import RolledProgram

Arrays = list[np.ndarray]


def points(program: RolledProgram, seed: int = 1) -> Arrays:
    """Random numbers for the inputs, all between 0.3 and 1.3."""
    random = np.random.default_rng(seed)
    return [np.asarray(random.uniform(0.3, 1.3, array.shape)) for array in program.inputs]


def flat_function(program: RolledProgram) -> Callable[..., tuple[object, ...]]:
    """Return the unrolled program as a function of arrays that gives a tuple of arrays."""
    formula = sa.from_program(program)

    def function(*arrays: object) -> tuple[object, ...]:
        found = formula(*arrays)
        return found if isinstance(found, tuple) else (found,)

    return function


def agree(found: Iterable[object], expected: Iterable[object]) -> None:
    """Assert that arrays are the same to 1e-12 of their size."""
    for a, b in zip(found, expected, strict=True):
        wanted = np.asarray(b, dtype=float).reshape(np.shape(a))
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(a, wanted, rtol=1e-12, atol=1e-12 * largest)
