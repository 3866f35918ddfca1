"""Kernels against arbitrary precision: the same program, or another route to the same derivative, in 50 digits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import symad.tracing.containers as containers
from codegen import Kernel
from codegen.interpret import evaluate
from symad.errors import ArgumentError
from symad.tracing.trace import Trace, trace

CANCELLED = 2.0**-26  # entries smaller than this part of the largest one have lost half their digits by cancelling


@dataclass(frozen=True)
class Verification:
    """How far a kernel's numbers are from exact ones.

    `worst_ulp` is the largest error in units of the last place of its own entry, over the entries that do not cancel;
    `worst_index` is its flat index, `value` and `exact` are its two numbers. An entry smaller than CANCELLED times the
    largest one is the difference of numbers that agree in half their digits: no float64 program can have it to the
    last place, so these are counted apart and measured like all others by `scaled`, the largest absolute error
    divided by the largest magnitude of the result.
    """

    entries: int
    cancelled: int
    worst_ulp: float
    worst_index: int
    value: float
    exact: float
    scaled: float

    def __str__(self) -> str:
        apart = f"{self.cancelled} entries cancel to less than 2**-26 of the largest; " if self.cancelled else ""
        return (
            f"{self.entries} entries: largest error {self.worst_ulp:.3g} ULP (flat index {self.worst_index}: "
            f"{self.value!r}, exact {self.exact!r}); {apart}largest absolute error {self.scaled:.2g} of the "
            "largest entry"
        )


def verify(kernel: Kernel, *args: Any, against: Callable[..., Any] | None = None, digits: int = 50) -> Verification:
    """Compare a kernel's result with arbitrary precision at one point.

    Without `against`, the kernel's own program is evaluated in `digits` digits: that measures rounding alone. With
    `against`, a function of the same arguments is traced and evaluated instead, for example the same derivative taken
    in another mode: that checks the derivative too. ArgumentError when the sizes differ.

    >>> import symad as sa
    >>> kernel = sa.compile(sa.grad(lambda x: x**3), 0.1)
    >>> sa.verify(kernel, 0.1, against=sa.jacfwd(lambda x: x * x * x)).worst_ulp < 1
    True
    """
    found = flat_floats(kernel(*args))
    if against is None:
        program = kernel.program
        inputs = dict(enumerate(flat_floats(args)))
        rows = [row for output in program.outputs for row in output.rows]
        exact = evaluate(program, rows, as_exact(inputs, digits), arithmetic="reference", digits=digits)
        positions = _stored_positions(program.outputs)
        found = [found[k] for k in positions]
    else:
        exact = exact_values(trace(against, *args), args, digits)
    if len(found) != len(exact):
        raise ArgumentError(f"a kernel with {len(found)} results against {len(exact)} exact ones")
    return compare_exact(found, exact)


def exact_values(traced: Trace, args: Sequence[Any], digits: int = 50) -> list[Any]:
    """Return the outputs of a trace at a point as mpmath numbers, in flat order."""
    inputs = dict(zip(traced.inputs.flat, flat_floats(tuple(args)), strict=True))
    return evaluate(traced.graph, traced.outputs.flat, as_exact(inputs, digits), arithmetic="reference", digits=digits)


def compare_exact(values: Sequence[float], exact: Sequence[Any]) -> Verification:
    """Return how far floats are from exact numbers; NaN against a number is an infinite error."""
    rounded = np.array([float(number) for number in exact])
    largest = float(np.max(np.abs(rounded), initial=0.0))
    cancels = np.abs(rounded) < CANCELLED * largest
    pairs = list(zip(values, exact, strict=True))
    gaps = np.array([abs(float(mpmath.mpf(value) - number)) for value, number in pairs])
    errors = np.array([0.0 if skip else ulp_error(*pair) for pair, skip in zip(pairs, cancels, strict=True)])
    worst = int(np.argmax(errors)) if pairs else 0
    value, number = (values[worst], float(rounded[worst])) if pairs else (0.0, 0.0)
    scaled = float(np.max(gaps, initial=0.0)) / (largest or 1.0)
    found = float(errors[worst]) if pairs else 0.0
    return Verification(len(pairs), int(cancels.sum()), found, worst, value, number, scaled)


def ulp_error(value: float, exact: Any) -> float:
    """Return |value - exact| in units of the last place of the exact number rounded to double.

    >>> ulp_error(1.0, mpmath.mpf(1)), ulp_error(1.0 + 2**-52, mpmath.mpf(1))
    (0.0, 1.0)
    """
    rounded = float(exact)
    if math.isnan(value) or math.isnan(rounded) or math.isinf(rounded):
        return 0.0 if value == rounded or (math.isnan(value) and math.isnan(rounded)) else math.inf
    return float(abs(mpmath.mpf(value) - exact) / mpmath.mpf(math.ulp(rounded)))


def flat_floats(values: Any) -> list[float]:
    """Return all numbers of a container in flat order."""
    leaves, _ = containers.flatten(values)
    return [float(number) for leaf in leaves for number in np.asarray(leaf, dtype=float).ravel().tolist()]


def as_exact(inputs: dict[int, float], digits: int) -> dict[int, Any]:
    """Return floats as mpmath numbers, without rounding."""
    with mpmath.workdps(max(digits, 17)):
        return {row: mpmath.mpf(value) for row, value in inputs.items()}


def _stored_positions(outputs: Sequence[Any]) -> list[int]:
    positions, start = [], 0
    for output in outputs:
        places = range(output.size) if output.positions is None else output.positions
        positions += [start + place for place in places]
        start += output.size
    return positions
