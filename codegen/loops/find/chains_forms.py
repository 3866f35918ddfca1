"""Verified repetitions in their simplest form: few slots, and columns that come from one place each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.loops.find.chains_columns import OPERATION, Columns
from codegen.loops.find.verify_chain import Chain, Matrix

KEPT = 0.9  # the part of a chain that must be left when others are straightened out


def apart(columns: Columns, chains: Sequence[Chain]) -> list[Chain]:
    """Shorten chains, given in order, so that a column is computed in one loop or in straight lines, but not in both.

    Such a column would have to be gathered first. Chains of which too little would be left stay as they are.
    """
    owner, numbers = np.full(len(columns), -1), 0
    found = []
    for chain in chains:
        reads = np.nonzero(~chain.shape.carried & (chain.shape.kind == OPERATION))[0]
        alike = _longest_alike(chain, owner[columns.place[chain.operands[:, reads]]])
        chain = alike if alike.count >= KEPT * chain.count else chain
        period = chain.shape.period
        owner[chain.start : chain.stop] = numbers + np.tile(np.arange(period), chain.count)
        numbers += period
        found.append(chain)
    return found


def divided(columns: Columns, chain: Chain) -> Chain:
    """Shorten a chain so that a factor is 1 / v in all repetitions or in none: u / v is rounded only once."""
    heads = np.array([head is sp.Mul for head in columns.heads])
    factors = heads[columns.codes[chain.shape.model + chain.shape.consumer]]
    place = columns.place[chain.operands[:, factors]]
    return _longest_alike(chain, columns.inverse[place] & (place >= 0))


def _longest_alike(chain: Chain, features: NDArray[Any]) -> Chain:
    """Return the longest part of a chain whose repetitions have the same features."""
    breaks = np.nonzero((features[1:] != features[:-1]).any(axis=1))[0] + 1
    edges = np.concatenate([[0], breaks, [chain.count]])
    longest = int(np.argmax(np.diff(edges)))
    return chain.part(int(edges[longest]), int(edges[longest + 1]))


def aligned(chain: Chain) -> Chain:
    """Turn pairs so that an operand that is the same in all repetitions is on one side, and carries begin alike."""
    chain = replace(chain, operands=chain.operands.copy())
    shape, operands = chain.shape, chain.operands
    reads = ~shape.carried
    for left in shape.left[reads[shape.left] | reads[shape.left + 1]].tolist():
        for read, other in ((left, left + 1), (left + 1, left)):
            if reads[read] and not (operands[:, read] == operands[-1, read]).all():
                _gather(operands, read, other, shape.lag[other] if shape.carried[other] else chain.count)
    _align_initial(chain)
    return chain


def _gather(operands: Matrix, read: int, other: int, count: int) -> None:
    """Turn a pair in the first `count` repetitions where that makes a column the same node in all of them."""
    value = operands[-1, read]
    turned = np.nonzero(operands[:count, read] != value)[0]
    if (operands[turned, other] == value).all() and (operands[count:, read] == value).all():
        operands[turned, other], operands[turned, read] = operands[turned, read], operands[turned, other]


def _align_initial(chain: Chain) -> None:
    """Turn pairs of carries so that carries of one operation begin with the same nodes, where they can."""
    shape, operands = chain.shape, chain.operands
    waits = shape.carried & (shape.lag > 0)
    both = shape.left[waits[shape.left] & waits[shape.left + 1]]
    alone = np.setdiff1d(np.nonzero(waits)[0], np.concatenate([both, both + 1]))
    known: dict[tuple[int, int], int] = {}  # by operation of the body and how long before the first repetition
    for column in [*alone.tolist(), *both.tolist()]:
        pair = [column, column + 1] if column in both else [column]
        for k in range(int(shape.lag[pair].min())):
            places = [(int(shape.producer[e]), int(shape.lag[e]) - k) for e in pair]
            nodes = [int(operands[k, e]) for e in pair]
            wrong = [known.get(place) == node for place, node in zip(places, nodes[::-1], strict=True)]
            if len(set(nodes)) == 2 and any(wrong):
                nodes.reverse()
                operands[k, pair] = nodes
            for place, node in zip(places, nodes, strict=True):
                known.setdefault(place, node)
