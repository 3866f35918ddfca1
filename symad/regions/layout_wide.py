"""Wide regions: a body with more sums than there are registers is cut into several loops.

The first loop stores what the summands are made of, the others multiply and add up some of the sums each: a matrix of
sums block by block, as in a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from codegen.regions.region import Result
from codegen.regions.table import Affine
from symad.regions.pieces import RegionDraft

MOST_SUMS = 32  # of one loop
SIDE = 5  # of a block: with ten numbers at hand it makes 25 products
FEWEST_REPETITIONS = 16


def narrow(draft: RegionDraft, workspace: Callable[[int], int]) -> list[RegionDraft]:
    """Return the regions that a region is cut into; `workspace(size)` makes a buffer."""
    sums = [(node, result) for node, result in draft.results if _is_sum(draft, node, result)]
    if len(sums) <= MOST_SUMS or draft.count < FEWEST_REPETITIONS:
        return [draft]
    chosen = {id(result) for _, result in sums}
    others = [(node, result) for node, result in draft.results if id(result) not in chosen]
    first = RegionDraft(draft.build, draft.count, draft.slots, others, draft.origin)
    slots, everywhere = list(draft.slots), np.arange(draft.count)
    for part in _parts(draft, [node for node, _ in sums]):
        buffer = workspace(draft.count)
        first.result(part, buffer, everywhere, "store")
        slots.append((part, buffer, everywhere))
    return [
        first,
        *(RegionDraft(draft.build, draft.count, slots, block, draft.origin) for block in _blocks(draft, sums)),
    ]


def _is_sum(draft: RegionDraft, node: int, result: Result) -> bool:
    """Whether a result is added up at one place, and made of other values."""
    fixed = isinstance(result.table, Affine) and result.table.step == 0
    return fixed and result.kind == "add" and bool(draft.build.graph.operands[node]) and node not in _leaves(draft)


def _leaves(draft: RegionDraft) -> set[int]:
    return {slot[0] for slot in draft.slots}


def _parts(draft: RegionDraft, nodes: list[int]) -> list[int]:
    """Return the operands of some nodes that have to be computed."""
    operands, leaves = draft.build.graph.operands, _leaves(draft)
    found = dict.fromkeys(part for node in nodes for part in operands[node])
    return [part for part in found if operands[part] and part not in leaves]


def _blocks(draft: RegionDraft, sums: list[tuple[int, Result]]) -> list[list[tuple[int, Result]]]:
    """Return the sums in blocks that share their operands."""
    operands = draft.build.graph.operands
    rank: dict[tuple[int, int], int] = {}
    for node, _ in sums:
        for side, part in enumerate((min(operands[node]), max(operands[node]))):
            rank.setdefault((side, part), len([key for key in rank if key[0] == side]))
    blocks: dict[tuple[int, ...], list[tuple[int, Result]]] = {}
    for node, result in sums:
        ends = enumerate((min(operands[node]), max(operands[node])))
        blocks.setdefault(tuple(rank[side, part] // SIDE for side, part in ends), []).append((node, result))
    return [block[k : k + MOST_SUMS] for block in blocks.values() for k in range(0, len(block), MOST_SUMS)]
