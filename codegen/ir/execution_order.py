"""The regions of a rolled program in execution order. Regions in nests occur once for each round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np

from codegen.ir.readdress import shift_at
from codegen.ir.region import Region, Step, regions_of
from codegen.ir.tables import Affine, Places, Table


def regions_in_time(steps: Sequence[Step]) -> Iterator[tuple[Region, tuple[int, ...]]]:
    """Return every region each time it runs, with the rounds of the nests around it, the outermost first.

    >>> from codegen.ir.program import Program
    >>> from codegen.ir.region import Nest
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> [rounds for _, rounds in regions_in_time([region, Nest(2, (region, Nest(1, (region,))))])]
    [(), (0,), (0, 0), (1,), (1, 0)]
    """
    stack: list[Iterator[tuple[Step, tuple[int, ...]]]] = [zip(steps, repeat(()), strict=False)]
    while stack:
        following = next(stack[-1], None)
        if following is None:
            stack.pop()
            continue
        step, rounds = following
        if isinstance(step, Region):
            yield step, rounds
        else:
            stack.append(_rounds(step.steps, step.count, rounds))


def places_in(table: Table, rounds: Sequence[int], block: slice) -> Places:
    """Return the places of some repetitions in a round of the nests around.

    >>> places_in(Affine(0, 1, 3, (10, 100)), (2, 1), slice(0, 2))
    array([120, 121])
    """
    moved = sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))
    if isinstance(table, Affine):
        return table.start + moved + table.step * np.arange(block.start, block.stop, dtype=np.int64)
    return table.index[block] + moved


def place_in(table: Table, rounds: Sequence[int]) -> int:
    """Return the first place of a table in a round of the nests around."""
    return table.first + sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))


def all_places(table: Table, counts: Sequence[int]) -> Places:
    """Return the places of a table in all rounds of the nests around.

    >>> all_places(Affine(0, 1, 2, (10,)), (3,)).tolist()
    [0, 1, 10, 11, 20, 21]
    """
    places = table.places()
    for depth in reversed(range(len(counts))):
        rounds = shift_at(table, depth) * np.arange(counts[depth], dtype=np.int64)
        places = (rounds[:, None] + places[None, :]).ravel()
    return places


def _rounds(steps: Sequence[Step], count: int, rounds: tuple[int, ...]) -> Iterator[tuple[Step, tuple[int, ...]]]:
    return ((step, (*rounds, k)) for k in range(count) for step in steps)


def filled_before_use(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that are used outside of nests only, and written before they are read.

    >>> from codegen.ir.body_parts import copy
    >>> from codegen.ir.region import Gather
    >>> from codegen.ir.tables import Affine
    >>> first, second = [copy(Gather(k, Affine(0, 1, 4)), k + 1, Affine(0, 1, 4)) for k in range(2)]
    >>> filled_before_use([first, second]), filled_before_use([second, first])
    ({1, 2}, {2})
    """
    read = set[int]()
    filled = {use.buffer for step in steps if isinstance(step, Region) for use in step.results}
    for step in steps:
        for region, counts in regions_of([step]):
            reads, results = {use.buffer for use in region.reads}, {use.buffer for use in region.results}
            filled -= (reads | results) if counts else (results & read)
            read |= reads
    return filled
