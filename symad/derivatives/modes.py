"""Derivatives of an open level, as trees of nodes: the four ways through one linear map.

Each function takes the level and the tree of its result and returns nodes; nothing here knows what a user's value is.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from symad.derivatives.dyadic import dyad_operations, dyads
from symad.derivatives.level import Level
from symad.derivatives.linear import Linear, gradients, linearize, settle
from symad.derivatives.second_order import edge_pushing
from symad.tracing.trees import Nodes, Tree

DYADIC_INPUTS = 256  # beyond it dense gradients at every node are never the cheaper way, and looking costs memory


def derivative_of(level: Level, result: Tree) -> Linear:
    """Return the linear map from the level's parameters to its result."""
    return linearize(level.build, result.flat, level.parameters.flat)


def push(level: Level, linear: Linear, tangents: Sequence[int | None]) -> list[int]:
    """Return tangents of the outputs; a structural zero becomes the number 0."""
    return [level.build.zero if node is None else node for node in linear.apply(level.build, tangents)]


def columns(level: Level, result: Tree) -> Nodes:
    """Return the transposed Jacobian by forward mode: one pass for each parameter, shape (parameters, outputs)."""
    return _passes(level, derivative_of(level, result))


def rows(level: Level, result: Tree) -> Nodes:
    """Return the Jacobian by reverse mode: one pass for each output, shape (outputs, parameters)."""
    return _passes(level, derivative_of(level, result).transpose())


def sparse_jacobian(level: Level, result: Tree) -> dict[tuple[int, int], int]:
    """Return the non-zeros of the Jacobian, `{(row, column): node}`: the pattern is exact, nothing dense is formed."""
    linear = derivative_of(level, result)
    found = gradients(level.build, linear)
    return {
        (position, k): settle(level.build, term)
        for position, output in enumerate(linear.outputs)
        for k, term in found.get(output, {}).items()
    }


def hessian_entries(level: Level, result: Tree, mode: str = "auto") -> dict[tuple[int, int], int]:
    """Return the non-zeros of the lower triangle of a scalar's Hessian, by edge pushing or by dyads.

    "auto" pushes edges, and takes dyads where they need fewer operations.
    """
    sweep = derivative_of(level, result)
    build, output = level.build, result.flat[0]
    if mode == "dyadic":
        return dyads(build, sweep, output)
    pushed = edge_pushing(build, sweep, output)
    if mode == "edge":
        return pushed
    given = level.parameters.flat
    operations = build.graph.count_operations(pushed.values(), given)
    if len(sweep.inputs) > DYADIC_INPUTS or dyad_operations(build, sweep) >= operations:
        return pushed
    alternative = dyads(build, sweep, output)
    return alternative if build.graph.count_operations(alternative.values(), given) < operations else pushed


def symmetric(level: Level, lower: dict[tuple[int, int], int], shape: tuple[int, int]) -> Nodes:
    """Return the full matrix of nodes from the entries of its lower triangle."""
    matrix = np.full(shape, level.build.zero, dtype=np.int64)
    for (row, column), node in lower.items():
        matrix[row, column] = matrix[column, row] = node
    return matrix


def _passes(level: Level, linear: Linear) -> Nodes:
    """Apply a linear map to every unit vector."""
    count = len(linear.inputs)
    seeds = ([level.build.one if k == position else None for k in range(count)] for position in range(count))
    found = [push(level, linear, seed) for seed in seeds]
    return np.array(found, dtype=np.int64).reshape(count, len(linear.outputs))
