"""Loop fission: cut a body with more sums than registers into several loops.

The first loop stores what the summands are made of, the others multiply and add up some of the sums each: a matrix of
sums block by block, as in a matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from codegen.ir.readdress import each_region, readdressed
from codegen.ir.region import Nest, Region, Result, Step, regions_of
from codegen.ir.tables import Affine, Table
from symad.derivatives.loops.hessian_pieces import RegionDraft

FEWEST_SUMS = 192  # of a body that is cut; up to 171 sums, the cut ones took 1.1 to 1.6 times as long
MOST_SUMS = 32  # of each loop that it is cut into
SIDE = 5  # of a block: with ten numbers at hand it makes 25 products
FEWEST_REPETITIONS = 16
CHUNKS = range(1024, 2048)  # repetitions, of which some dozens of numbers each are kept in the second cache


def narrow(draft: RegionDraft, workspace: Callable[[int], int]) -> list[RegionDraft]:
    """Return the regions that a region is cut into; `workspace(size)` makes a buffer."""
    summed = [_is_sum(draft, node, result) for node, result in draft.results]
    sums = [item for item, is_sum in zip(draft.results, summed, strict=True) if is_sum]
    if len(sums) < FEWEST_SUMS or draft.count < FEWEST_REPETITIONS:
        return [draft]
    others = [item for item, is_sum in zip(draft.results, summed, strict=True) if not is_sum]
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
    """Whether a result is a sum at one place of computed values."""
    return (
        result.table.fixed
        and result.kind == "add"
        and bool(draft.build.graph.operands[node])
        and node not in _leaves(draft)
    )


def _leaves(draft: RegionDraft) -> set[int]:
    return {slot[0] for slot in draft.slots}


def _parts(draft: RegionDraft, nodes: list[int]) -> list[int]:
    operands, leaves = draft.build.graph.operands, _leaves(draft)
    parts = dict.fromkeys(part for node in nodes for part in operands[node])
    return [part for part in parts if operands[part] and part not in leaves]


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


def in_chunks(steps: Sequence[Step], sizes: range = CHUNKS) -> list[Step]:
    """Return regions that repeat equally often as a nest over chunks, which keeps what they hand on in the cache.

    The regions may be in nests. A repetition must not read what another one stores. A few stay as they are.

    >>> from symad.derivatives.loops.matrix_layout import copies
    >>> (copy,) = copies(0, np.arange(10_007), 1, np.arange(10_007))
    >>> [(type(step).__name__, step.count) for step in in_chunks([copy, Nest(3, (copy,))])]
    [('Nest', 5), ('Region', 2), ('Nest', 3)]
    """
    regions = [region for region, _ in regions_of(steps)]
    count = regions[0].count
    if (
        (isinstance(steps[-1], Region) and len(steps) < 2) or count < 2 * sizes.stop
        or any(region.count != count for region in regions)
        or not all(isinstance(use.table, Affine) for region in regions for use in region.uses)
    ):  # fmt: skip
        return list(steps)
    chunk = min(sizes, key=lambda size: count % size)
    rounds, rest = divmod(count, chunk)
    nest = Nest(rounds, each_region(steps, lambda region: _chunk(region, 0, chunk)))
    return [nest, *(each_region(steps, lambda region: _chunk(region, rounds * chunk, rest)) if rest else ())]


def _chunk(region: Region, begin: int, count: int) -> Region:
    """Return a part of the repetitions of a region; its begin moves with the rounds."""

    def part(buffer: int, table: Table) -> tuple[int, Table]:
        assert isinstance(table, Affine)
        shifts = table.shifts if begin else (table.step * count, *table.shifts)
        return buffer, Affine(table.start + table.step * begin, table.step, count, shifts)

    return replace(readdressed(region, part), count=count)
