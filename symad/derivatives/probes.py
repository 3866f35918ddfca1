"""Derivatives along many directions at one point, in numbers: no graph is made, all directions go side by side."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from codegen.evaluation.interpret import evaluate
from symad.derivatives.level import Level
from symad.derivatives.linear import Linear

Directions = NDArray[np.float64]  # one in each column


def images(level: Level, linear: Linear, directions: Directions) -> Directions:
    """Return the images of directions (inputs x number) under a linear map of an open level, at its numbers.

    >>> from symad.derivatives.level import open_level
    >>> from symad.derivatives.modes import derivative_of
    >>> with open_level([np.array([2.0, 3.0])]) as level:
    ...     linear = derivative_of(level, level.call(lambda x: x * x[0]))
    ...     images(level, linear, np.eye(2))
    array([[4., 0.],
           [3., 2.]])
    """
    number = _numbers(level, linear)
    values = dict(zip(linear.inputs, directions, strict=True))
    with np.errstate(all="ignore"):
        for target, row in linear.rows:
            for coefficient, source, guard in row:
                if source not in values or (guard is not None and not number[guard]):
                    continue
                term = values[source] if coefficient is None else number[coefficient] * values[source]
                values[target] = values[target] + term if target in values else term
    nothing = np.zeros(directions.shape[1])
    return np.array([values.get(node, nothing) for node in linear.outputs]).reshape(-1, directions.shape[1])


def _numbers(level: Level, linear: Linear) -> dict[int, float | bool]:
    """Return the values of all coefficients and guards."""
    edges = [edge for _, row in linear.rows for edge in row]
    nodes = sorted({node for coefficient, _, guard in edges for node in (coefficient, guard) if node is not None})
    return dict(zip(nodes, evaluate(level.scope.graph, nodes, level.scope.values), strict=True))
