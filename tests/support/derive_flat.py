"""What a rolled program unrolls to, as a function of arrays; random points; when arrays agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from codegen.ir.region import RolledProgram
from codegen.ir.unroll import unroll
from symad.derivatives.loops.body_derivatives import function_of

Arrays = list[np.ndarray]


def points(program: RolledProgram, seed: int = 1) -> Arrays:
    """Random numbers for the inputs, all between 0.3 and 1.3."""
    random = np.random.default_rng(seed)
    return [np.asarray(random.uniform(0.3, 1.3, array.shape)) for array in program.inputs]


def flat_function(program: RolledProgram) -> Callable[..., tuple[object, ...]]:
    """Return the unrolled program as a function of arrays that gives a tuple of arrays."""
    flat = unroll(program)
    apply, sizes = function_of(flat), [output.size for output in flat.outputs]

    def function(*arrays: object) -> tuple[object, ...]:
        values = apply(*[value for array in arrays for value in np.ravel(array)])
        parts = (values[a:b] for a, b in pairwise(np.cumsum([0, *sizes])))
        return tuple(
            np.stack(list(part)).reshape(output.shape) if output.shape else part[0]
            for part, output in zip(parts, program.outputs, strict=True)
        )

    return function


def agree(found: Iterable[object], expected: Iterable[object]) -> None:
    """Assert that arrays are the same to 1e-12 of their size."""
    for a, b in zip(found, expected, strict=True):
        wanted = np.asarray(b, dtype=float).reshape(np.shape(a))
        largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(a, wanted, rtol=1e-12, atol=1e-12 * largest)
