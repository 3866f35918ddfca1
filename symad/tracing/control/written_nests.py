"""Nests: a loop inside a sum or map becomes one loop over pairs; a chain keeps it inside.

What the inner loop reads is known for every pair: pieces of the outer operands, what does not change, and what the
outer body computes before, which is then a loop of its own. The results of the inner loop are slots of the outer body.
Inner chains take turns: each carries what it left as many repetitions ago as there are chains.
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
    """Let a chain have the loops that its body has written down; NotOneBodyError if there is little in them."""
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
    """Write the loops that a body has written down as loops beside it, and let it read their results."""
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
    """Write a loop that is the same in every repetition outside."""
    there = keep(body.scope, key, lambda: loop)
    if there is not loop:
        for use, known in zip(loop.results, there.results, strict=True):
            pairs = zip(use.nodes.tolist(), known.nodes.tolist(), strict=True)
            body.reads |= {node: np.full(body.count, other) for node, other in pairs}


def _columns(body: WrittenBody, nodes: list[int], moving: set[int]) -> dict[int, Reads]:
    """Return what nodes of a body are in each of its repetitions; what it has to compute is a loop of its own."""
    computed = [node for node in nodes if node in moving and node not in body.reads]
    found = write_down(body, (), computed, "each", numbers=True)[1] if computed else []
    columns: dict[int, Reads] = dict(zip(computed, found, strict=True))
    for node in nodes:
        if node not in columns:
            columns[node] = body.reads[node] if node in moving else np.full(body.count, node)
    return columns


def _write_pairs(body: WrittenBody, loop: Loop, columns: Mapping[int, Reads]) -> None:
    """Write a loop over the pairs of repetitions; its results are slots of the body.

    The inner repetitions are the faster ones, but for chains, where the outer ones are.
    """
    graph, shape = body.scope.graph, (body.count, loop.count)
    reads = [_ordered(loop, _pairs(graph, column, columns, body.count)) for column in loop.reads]
    initial = [_pairs(graph, use.initial, columns, body.count, numbers=False).T.ravel() for use in loop.carries]
    places = [_places(use, loop.count) for use in loop.results]
    key = (rows_of(loop.body), shape, *(tuple(map(digest, part)) for part in (reads, initial, places)))

    def written() -> Loop:
        results = tuple(
            _result(graph, loop, use, place, shape) for use, place in zip(loop.results, places, strict=True)
        )
        pairs = zip(loop.carries, initial, strict=True)
        carries = tuple(LoopCarry(carry.output, nodes.astype(np.int64)) for carry, nodes in pairs)
        count = body.count * loop.count
        return replace(loop, count=count, reads=tuple(reads), results=results, carries=carries)

    made = keep(body.scope, key, written).results
    for use, there in zip(loop.results, made, strict=True):
        table = there.nodes.reshape(shape[::-1]).T if loop.carries else there.nodes.reshape(shape)
        known = np.broadcast_to(use.nodes, loop.count)  # of several with the same value the last one
        body.reads |= {node: np.ascontiguousarray(table[:, k]) for k, node in enumerate(known.tolist())}


def _places(use: LoopResult, count: int) -> Nodes:
    """Return for each inner repetition a number of what it computes, or adds to."""
    if use.kind in ("each", "last"):
        return np.arange(count)
    return np.unique(np.broadcast_to(use.nodes, count), return_inverse=True)[1].astype(np.int64)


def _result(graph: Graph, loop: Loop, use: LoopResult, place: Nodes, shape: tuple[int, int]) -> LoopResult:
    made = leaves(graph, shape[0] * (int(place.max()) + 1)).reshape(-1, shape[0])
    nodes = _ordered(loop, made[place].T)
    return LoopResult(use.output, "each" if use.kind in ("each", "last") else "add", nodes.astype(np.int64))


def _ordered(loop: Loop, pairs: NDArray[Any]) -> Any:
    """Return what belongs to pairs, the outer repetitions along the first axis, in the order of the pairs."""
    return np.ascontiguousarray(pairs.T).ravel() if loop.carries else np.ascontiguousarray(pairs).ravel()


def _pairs(
    graph: Graph, column: Reads, columns: Mapping[int, Reads], count: int, *, numbers: bool = True
) -> NDArray[Any]:
    """Return what a slot reads in every pair of repetitions: nodes, or numbers if they are wanted."""
    if not is_nodes(column):
        return np.broadcast_to(column, (count, len(column)))
    different, place = np.unique(column, return_inverse=True)
    parts = [columns[node] for node in different.tolist()]
    if not numbers or any(map(is_nodes, parts)):
        parts = [part if is_nodes(part) else constants(graph, part) for part in parts]
    pairs: NDArray[Any] = np.array(parts)[place].T
    return pairs
