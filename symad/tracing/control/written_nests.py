"""Nests: a loop inside a sum or map becomes one loop over pairs; a chain keeps it inside.

The reads of the inner loop are known for every pair: pieces of the outer operands, loop-invariant values, and values
that the outer body computes before, which then become a loop of their own. The results of the inner loop are slots of
the outer body. Inner chains run side by side: a carry's lag is the number of chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import operations_of
from codegen.loops.loop import Loop, LoopCarry, LoopResult, Nodes, Reads, RolledBlock, is_nodes
from symad.graph.graph import Graph
from symad.tracing.control.equal_bodies import digest, rows_of
from symad.tracing.control.reasons import NotOneBodyError
from symad.tracing.control.written_bodies import WrittenBody, keep, leaves, moving_nodes, read_by, write_down
from symad.tracing.values.node_arrays import constants

LARGEST = 2**24  # pairs of repetitions
FEWEST = 500  # operations of the loops in a chain


def enclose(body: WrittenBody) -> None:
    """Put the loops that a body has recorded inside its chain; NotOneBodyError if they are small."""
    written = body.inner.loops or {}
    for key, loop in list(written.items()):
        if moving_nodes(body.scope.graph, body, read_by(loop)):
            body.made |= {node: loop for use in loop.results for node in use.nodes.tolist()}
        else:
            _hoist(body, key, loop)
    inside = {id(loop): loop for loop in body.made.values()}.values()
    if inside and sum(map(_executed, inside)) < FEWEST:
        raise NotOneBodyError


def _executed(loop: Loop) -> int:
    if isinstance(loop, RolledBlock):
        return loop.program.executed
    return loop.count * (operations_of(loop.body) + sum(map(_executed, loop.inside)))


def flatten(body: WrittenBody) -> None:
    """Record the loops of a body as loops beside it, and let it read their results."""
    for key, loop in list((body.inner.loops or {}).items()):
        nodes = read_by(loop)
        moving = moving_nodes(body.scope.graph, body, nodes)
        if not moving:
            _hoist(body, key, loop)
        elif isinstance(loop, RolledBlock) or loop.inside or body.count * loop.count > LARGEST:
            raise NotOneBodyError
        else:
            _write_pairs(body, loop, _columns(body, nodes, moving))


def _hoist(body: WrittenBody, key: object, loop: Loop) -> None:
    """Record a loop that is the same in every repetition outside."""
    recorded = keep(body.scope, key, lambda: loop)
    if recorded is not loop:
        for use, known in zip(loop.results, recorded.results, strict=True):
            pairs = zip(use.nodes.tolist(), known.nodes.tolist(), strict=True)
            body.reads |= {node: np.full(body.count, other) for node, other in pairs}


def _columns(body: WrittenBody, nodes: list[int], moving: set[int]) -> dict[int, Reads]:
    """Return the values of nodes of a body in each of its repetitions. Computed ones become a loop of their own."""
    computed = [node for node in nodes if node in moving and node not in body.reads]
    values = write_down(body, (), computed, "each", numbers=True)[1] if computed else []
    columns: dict[int, Reads] = dict(zip(computed, values, strict=True))
    for node in nodes:
        if node not in columns:
            columns[node] = body.reads[node] if node in moving else np.full(body.count, node)
    return columns


def _write_pairs(body: WrittenBody, loop: Loop, columns: Mapping[int, Reads]) -> None:
    """Record a loop over the pairs of repetitions; its results are slots of the body.

    The inner repetition varies fastest; in chains the outer one does.
    """
    graph, shape = body.scope.graph, (body.count, loop.count)
    reads = [_ordered(loop, _pairs(graph, column, columns, body.count)) for column in loop.reads]
    initial = [_pairs(graph, use.initial, columns, body.count, numbers=False).T.ravel() for use in loop.carries]
    places = [_places(use, loop.count) for use in loop.results]
    key = (rows_of(loop.body), shape, *(tuple(map(digest, part)) for part in (reads, initial, places)))

    def written() -> Loop:
        uses = zip(loop.results, places, strict=True)
        results = tuple(_result(graph, loop, use, place, shape) for use, place in uses)
        pairs = zip(loop.carries, initial, strict=True)
        carries = tuple(LoopCarry(carry.output, nodes.astype(np.int64)) for carry, nodes in pairs)
        count = body.count * loop.count
        return replace(loop, count=count, reads=tuple(reads), results=results, carries=carries)

    recorded = keep(body.scope, key, written).results
    for use, result in zip(loop.results, recorded, strict=True):
        table = result.nodes.reshape(shape[::-1]).T if loop.carries else result.nodes.reshape(shape)
        known = np.broadcast_to(use.nodes, loop.count)  # of several with the same value the last one
        body.reads |= {node: np.ascontiguousarray(table[:, k]) for k, node in enumerate(known.tolist())}


def _places(use: LoopResult, count: int) -> Nodes:
    """Return for each inner repetition the number of the result that it computes or adds to."""
    if use.kind in ("each", "last"):
        return np.arange(count)
    return np.unique(np.broadcast_to(use.nodes, count), return_inverse=True)[1].astype(np.int64)


def _result(graph: Graph, loop: Loop, use: LoopResult, place: Nodes, shape: tuple[int, int]) -> LoopResult:
    table = leaves(graph, shape[0] * (int(place.max()) + 1)).reshape(-1, shape[0])
    nodes = _ordered(loop, table[place].T)
    return LoopResult(use.output, "each" if use.kind in ("each", "last") else "add", nodes.astype(np.int64))


def _ordered(loop: Loop, pairs: NDArray[Any]) -> Any:
    """Return values of pairs, given with the outer repetitions along the first axis, in the order of the pairs."""
    return np.ascontiguousarray(pairs.T).ravel() if loop.carries else np.ascontiguousarray(pairs).ravel()


def _pairs(
    graph: Graph, column: Reads, columns: Mapping[int, Reads], count: int, *, numbers: bool = True
) -> NDArray[Any]:
    """Return what a slot reads in every pair of repetitions: nodes, or numbers where they are allowed."""
    if not is_nodes(column):
        return np.broadcast_to(column, (count, len(column)))
    different, place = np.unique(column, return_inverse=True)
    parts = [columns[node] for node in different.tolist()]
    if not numbers or any(map(is_nodes, parts)):
        parts = [part if is_nodes(part) else constants(graph, part) for part in parts]
    pairs: NDArray[Any] = np.array(parts)[place].T
    return pairs
