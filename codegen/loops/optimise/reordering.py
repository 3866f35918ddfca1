"""Reorder independent repetitions so that stores run through memory in order.

A sum along the last axis of an array takes its terms column by column, so in a reverse pass its cotangents are stored
in long steps. In the order of their places they are stored side by side, and other loops over the same array have that
order too, so that they can be fused. Numbers stay the same: loops that store are reordered.

Of loops that add, only one kind is reordered: more terms than are unrolled for each of many places (the sum along the
last axis of an array), read in long steps. Place by place its terms lie side by side, in the order that they had; but
registers add up parts of a sum now, as in all sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from codegen.ir.readdress import each_region
from codegen.ir.region import Gather, Region, Result, Step
from codegen.ir.tables import Affine, Indexed, Places, Table, table
from codegen.loops.optimise.unrolled_sums import TERMS

FEWEST = 256  # repetitions of a loop that is worth it
STORED = 2.0  # cost of a store in long steps, relative to a load in long steps


def reordered(steps: Sequence[Step]) -> list[Step]:
    """Return steps with the repetitions of loops in the order of their stores, where that has fewer long steps.

    >>> from codegen.ir.program import Program
    >>> body = Program([], [], {}, (), ())
    >>> columns = np.arange(600).reshape(300, 2).T.ravel()
    >>> loop = Region(body, 600, (Gather(0, Affine(0, 1, 600)),), (Result(0, 1, Indexed(columns), "store"),))
    >>> (region,) = reordered([loop])
    >>> region.results[0].table, region.gathers[0].table.places()[:4].tolist()
    (Affine(start=0, step=1, count=600, shifts=()), [0, 300, 1, 301])
    """
    return list(each_region(steps, _reordered))


def _reordered(region: Region) -> Region:
    if region.count < FEWEST or not region.parallel:
        return region
    if any(use.kind != "store" for use in region.results):
        return _place_by_place(region)
    before = _dearness(region.gathers, region.results)
    for use in region.results:
        if not isinstance(use.table, Indexed) or _long_steps(use.table) < 0.5:
            continue
        candidate = _in_order(region, np.argsort(use.table.index, kind="stable"))
        if _dearness(candidate.gathers, candidate.results) < before:
            return candidate
    return region


def _place_by_place(region: Region) -> Region:
    """Return a loop with the terms of each place one after the other, where that halves the long steps."""
    use = region.results[0]
    if len(region.results) > 1 or use.kind != "add" or not isinstance(use.table, Indexed):
        return region
    low, high = use.table.bounds
    if region.count <= TERMS * (high - low + 1) or _dearness(region.gathers) < 0.5:
        return region
    candidate = _in_order(region, np.argsort(use.table.index, kind="stable"))
    return candidate if _dearness(candidate.gathers) < 0.5 * _dearness(region.gathers) else region


def _in_order(region: Region, order: Places) -> Region:
    return replace(
        region,
        gathers=tuple(Gather(use.buffer, _permuted(use.table, order)) for use in region.gathers),
        results=tuple(replace(use, table=_permuted(use.table, order)) for use in region.results),
    )


def _permuted(places: Table, order: Places) -> Table:
    if isinstance(places, Affine) and places.fixed:
        return places
    return replace(table(places.places()[order]), shifts=places.shifts)


def _dearness(gathers: Sequence[Gather], results: Sequence[Result] = ()) -> float:
    return sum(_long_steps(use.table) for use in gathers) + STORED * sum(_long_steps(use.table) for use in results)


def _long_steps(places: Table) -> float:
    """Return the part of the repetitions whose place is neither next to the place before nor the same."""
    if isinstance(places, Affine):
        return float(places.step not in (0, 1))
    steps = np.diff(places.index)
    return float(np.mean((steps != 0) & (steps != 1)))
