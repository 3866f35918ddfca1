"""Nests: a sum or map in the body of a sum or map becomes one loop over all pairs of repetitions.

What the inner loop reads is known for every pair: pieces of the outer operands, what does not change, and what the
outer body computes before, which is then a loop of its own. The results of the inner loop are slots of the outer body.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from codegen.regions.table import distinct
from symad.structure.loop import Loop, LoopResult, Nodes, Reads, is_nodes
from symad.tracing.constructs.bodies import (
    Body,
    Kind,
    NotOneBodyError,
    digest,
    keep,
    leaves,
    moving_nodes,
    rows_of,
    write_down,
)
from symad.tracing.node_arrays import constants

LARGEST = 2**24  # pairs of repetitions


def flatten(body: Body) -> None:
    """Write the loops that a body has written down as loops beside it, and let it read their results."""
    for key, loop in list((body.inner.loops or {}).items()):
        read = [column for column in loop.reads if is_nodes(column)]
        nodes = distinct(np.concatenate(read)) if read else np.empty(0, dtype=np.int64)
        moving = moving_nodes(body.scope.graph, body, nodes.tolist())
        if moving:
            _write_pairs(body, loop, _columns(body, nodes.tolist(), moving))
        else:
            _hoist(body, key, loop)


def _hoist(body: Body, key: object, loop: Loop) -> None:
    """Write a loop that is the same in every repetition outside."""
    there = keep(body.scope, key, lambda: loop)
    if there is not loop:
        for use, known in zip(loop.results, there.results, strict=True):
            pairs = zip(use.nodes.tolist(), known.nodes.tolist(), strict=True)
            body.reads |= {node: np.full(body.count, other) for node, other in pairs}


def _columns(body: Body, nodes: list[int], moving: set[int]) -> dict[int, Reads]:
    """Return what nodes of a body are in each of its repetitions; what it has to compute is a loop of its own."""
    computed = [node for node in nodes if node in moving and node not in body.reads]
    found = write_down(body, (), computed, "each", numbers=True)[1] if computed else []
    columns: dict[int, Reads] = dict(zip(computed, found, strict=True))
    for node in nodes:
        if node not in columns:
            columns[node] = body.reads[node] if node in moving else np.full(body.count, node)
    return columns


def _write_pairs(body: Body, loop: Loop, columns: Mapping[int, Reads]) -> None:
    """Write a loop over the pairs of repetitions, those of the inner loop faster; its results are slots of the body."""
    outer, inner = body.count, loop.count
    if outer * inner > LARGEST:
        raise NotOneBodyError
    reads = [_pairs(body, column, columns) for column in loop.reads]
    kinds, firsts, places = list[Kind](), [], list[Nodes]()
    for use in loop.results:
        nodes = np.broadcast_to(use.nodes, inner)
        _, first, place = np.unique(nodes, return_index=True, return_inverse=True)
        kinds.append("each" if use.kind == "each" else "add")
        firsts.append((nodes[first], first))
        places.append(place.astype(np.int64))
    key = (rows_of(loop.body), outer * inner, tuple(map(digest, reads)), tuple(kinds), tuple(map(digest, places)))

    def written() -> Loop:
        results = []
        for use, kind, place in zip(loop.results, kinds, places, strict=True):
            made = np.array(leaves(body.scope.graph, outer * (int(place.max()) + 1)), dtype=np.int64)
            results.append(LoopResult(use.output, kind, made.reshape(-1, outer)[place].T.ravel()))
        return replace(loop, count=outer * inner, reads=tuple(reads), results=tuple(results))

    for (nodes, first), use in zip(firsts, keep(body.scope, key, written).results, strict=True):
        table = use.nodes.reshape(outer, inner)
        body.reads |= {node: np.ascontiguousarray(table[:, k]) for node, k in zip(nodes.tolist(), first, strict=True)}


def _pairs(body: Body, column: Reads, columns: Mapping[int, Reads]) -> Reads:
    """Return what a slot of the inner loop reads in every pair of repetitions."""
    if not is_nodes(column):
        same: Reads = np.concatenate([column] * body.count)
        return same
    different, place = np.unique(column, return_inverse=True)
    parts = [columns[node] for node in different.tolist()]
    if any(map(is_nodes, parts)):
        parts = [part if is_nodes(part) else constants(body.scope.graph, part) for part in parts]
    pairs: Any = np.array(parts)[place].T.ravel()
    return cast(Reads, pairs)
