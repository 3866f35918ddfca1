"""Checks of a Hessian's numbers: finite, against another route in 50 digits, and along directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.containers as containers
from codegen.evaluation.evaluate_rolled import evaluate_rolled
from symad.checking.verification.verify import exact_values, flat_floats
from symad.compiling.loop_candidate import Primal
from symad.derivatives.loops.pullback import gradient
from symad.derivatives.loops.pushforward import pushforward
from symad.errors import ArgumentError
from symad.tracing.trace import trace
from symad.tracing.values.node_trees import object_array
from symad.transforms.first_order import HessianMode, hessian

DIGITS = 50
DIRECTIONS = 3


def check_finite(values: Any, rows: Any, columns: Any) -> None:
    bad = np.nonzero(~np.isfinite(values))[0]
    if len(bad):
        raise ArgumentError(
            f"the Hessian is not finite at the example point: entry ({rows[bad[0]]}, {columns[bad[0]]}) is "
            f"{values[bad[0]]}",
            why=f"{len(bad)} of {len(values)} entries are NaN or infinite",
            do="choose a point where the function is twice differentiable",
        )


def exact_matrix(function: Callable[..., Any], arguments: tuple[Any, ...], mode: HessianMode) -> Any:
    size = len(flat_floats(arguments[:1]))
    values = exact_values(trace(hessian(function, mode=mode), *arguments), arguments, DIGITS)
    return object_array(values, (size, size))


def check_pattern(exact: Any, rows: Any, columns: Any) -> None:
    """Every entry outside the pattern has to be exactly zero on the other route."""
    outside = np.tril(np.ones(exact.shape, dtype=bool))
    outside[rows, columns] = False
    for i, j in np.argwhere(outside):
        if exact[i, j] != 0:
            raise ArgumentError(f"entry ({i}, {j}) is outside the pattern but not zero", why="a defect of symad")


def along_directions(primal: Primal, arguments: tuple[Any, ...], values: NDArray[np.float64], places: Any) -> float:
    """Return how far packed values are from forward over reverse mode of the loops, along random directions."""
    rows, columns = places
    point = [np.asarray(array, dtype=float) for array in containers.flatten(arguments)[0]]
    second = pushforward(gradient(primal.program, [0]), [0])
    below, generator, worst = rows != columns, np.random.default_rng(0), 0.0
    for _ in range(DIRECTIONS):
        direction = generator.normal(size=point[0].shape)
        flat, size = direction.ravel(), direction.size
        found = np.bincount(rows, values * flat[columns], size)
        found += np.bincount(columns[below], values[below] * flat[rows[below]], size)
        expected = evaluate_rolled(second, [*point, direction])[1].ravel()
        worst = max(worst, float(np.max(np.abs(found - expected)) / np.max(np.abs(expected))))
    return worst
