"""Derivatives of an open level, as trees of nodes: the four ways through one linear map.

Each function takes the level and the tree of its result and returns nodes; nothing here knows what a user's value is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from symad.derivatives.choice import cheapest
from symad.derivatives.dyadic import dyad_operations, dyads
from symad.derivatives.elimination import Entries, cross_country, forward, forward_operations, reverse
from symad.derivatives.level import Level
from symad.derivatives.linear import Linear, linearize
from symad.derivatives.second_order import edge_pushing
from symad.errors import ArgumentError
from symad.graph.builder import Builder
from symad.tracing.values.node_trees import Nodes, Tree

DYADIC_INPUTS = 256  # beyond it dense gradients at every node are never the cheaper way, and looking costs memory
DEARER = 2  # a way that counts beforehand this many times the operations of another is not written down
MOST_EDGES = 100_000  # of a linear map that is eliminated cross-country

Elimination: TypeAlias = Callable[..., Entries | None]
_ORDERS: dict[str, Elimination] = {"fwd": forward, "rev": reverse, "cross-country": cross_country}


def derivative_of(level: Level, result: Tree) -> Linear:
    """Return the linear map from the level's parameters to its result."""
    return linearize(level.build, result.flat, level.parameters.flat)


def push(level: Level, linear: Linear, tangents: Sequence[int | None]) -> list[int]:
    """Return tangents of the outputs; a structural zero becomes the number 0."""
    return [level.build.zero if node is None else node for node in linear.apply(level.build, tangents)]


def gradient(level: Level, result: Tree) -> Tree:
    """Return the gradient of a scalar by reverse mode, in the structure of the parameters."""
    pullback = derivative_of(level, result).transpose()
    return level.parameters.refill(push(level, pullback, [level.build.one]))


def jacobian_entries(level: Level, result: Tree, mode: str = "auto") -> Entries:
    """Return the non-zeros of the Jacobian, `{(row, column): node}`: the pattern is exact, nothing dense is formed.

    "auto" takes the order of elimination (see `elimination`) with the fewest operations; `choices` shows the counts.
    """
    made = jacobians(level.build, derivative_of(level, result), mode)
    found = {name: partial(made.__getitem__, name) for name in made}
    return cheapest(level.build.graph, "Jacobian", found, level.parameters.flat, nodes_of=dict.values)


def jacobians(build: Builder, linear: Linear, mode: str = "auto") -> dict[str, Entries]:
    """Return the non-zeros of a linear map by each order of elimination that may be the cheapest, or by one."""
    ways = {mode: _ORDERS[mode]} if mode in _ORDERS else _worth_trying(linear)
    return {name: entries for name, way in ways.items() if (entries := way(build, linear)) is not None}


def _worth_trying(linear: Linear) -> dict[str, Elimination]:
    """Return the orders of elimination that may be the cheapest, by the products and sums they will make.

    Forward or reverse mode is left out when it makes more than twice as many as the other. Cross-country elimination is
    left out for one input or one output, for more than 100 000 edges, and when the others use an edge hardly more than
    once; it is given up when it makes more than they do. So looking costs at most three times the cheapest way.
    """
    into, out = len(linear.inputs), len(linear.outputs)
    maps = {"fwd": linear, "rev": linear.transpose()}
    first, second = ("rev", "fwd") if out < into else ("fwd", "rev")
    counts = {first: forward_operations(maps[first])}
    counts[second] = forward_operations(maps[second], DEARER * counts[first])
    least = min(counts.values())
    ways = {name: _ORDERS[name] for name in counts if counts[name] <= DEARER * least}
    edges = sum(len(row) for _, row in linear.rows)
    if min(into, out) > 1 and edges <= MOST_EDGES and least > edges:
        ways["cross-country"] = partial(cross_country, limit=least)
    return ways


def blocks(level: Level, result: Tree, entries: Entries) -> Tree:
    """Return the Jacobians of the rows of a batch, each array of shape (batch, out..., in...), from all entries.

    ArgumentError when a row of the result depends on another row of the only parameter.
    """
    (batch,) = level.parameters.arrays
    count, width = len(batch), batch.size // len(batch)
    row_of = np.concatenate([np.arange(array.size) // max(1, array.size // count) for array in result.arrays])
    matrix = np.full((len(row_of), width), level.build.zero, dtype=np.int64)
    for (place, column), node in entries.items():
        if row_of[place] != column // width:
            raise ArgumentError(
                f"row {row_of[place]} of the result depends on row {column // width} of the batch",
                why="something mixes the rows (a mean over the batch, batch normalisation in training), so that the "
                "Jacobians of single rows leave out terms",
                do="use jacobian, which has all terms, or a function that treats every row on its own",
            )
        matrix[place, column % width] = node
    parts = np.split(matrix, np.cumsum([array.size for array in result.arrays])[:-1])
    shapes = [array.shape + batch.shape[1:] for array in result.arrays]
    return Tree(result.structure, [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])


def hessian_entries(level: Level, result: Tree, mode: str = "auto") -> Entries:
    """Return the non-zeros of the lower triangle of a scalar's Hessian, by edge pushing or by dyads.

    "auto" pushes edges, and takes dyads where they need fewer operations; `choices` shows the counts.
    """
    sweep = derivative_of(level, result)
    build, output, given = level.build, result.flat[0], level.parameters.flat
    ways = {"edge": partial(edge_pushing, build, sweep, output), "dyadic": partial(dyads, build, sweep, output)}
    if mode == "auto":
        pushed = ways["edge"]()
        ways["edge"] = partial(dict, pushed)
        operations = build.graph.count_operations(pushed.values(), given)
        if len(sweep.inputs) > DYADIC_INPUTS or dyad_operations(build, sweep) >= operations:
            del ways["dyadic"]
    return cheapest(build.graph, "Hessian", ways, given, mode, nodes_of=dict.values)


def dense(level: Level, entries: Entries, shape: tuple[int, int]) -> Nodes:
    """Return the full matrix of nodes from its entries; a structural zero becomes the number 0."""
    matrix = np.full(shape, level.build.zero, dtype=np.int64)
    for place, node in entries.items():
        matrix[place] = node
    return matrix
