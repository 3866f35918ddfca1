"""Array expansion: give each round of a nest its own places in a workspace.

Such a workspace comes from checkpoints: the reverse pass through its nest needs values of a round that later rounds
have overwritten. `codegen.loops.optimise.contraction` is the inverse. Likewise a carry of a long lag, whose slot holds
one value after another, becomes several carries with a slot each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from codegen.ir.body_parts import body_part
from codegen.ir.readdress import all_readdressed, moved, shift_at
from codegen.ir.region import Buffer, Carry, Region, Step
from codegen.ir.tables import Table
from codegen.loops.optimise.contraction import VisitedUse, uses_of


def expanded(steps: Sequence[Step], buffers: list[Buffer]) -> tuple[Step, ...]:
    """Return steps in which no place is stored twice; buffers grow for that, in their list.

    >>> from codegen.loops.optimise.contraction import zeros
    >>> from codegen.ir.region import Nest
    >>> buffers = [Buffer("workspace", 4)]
    >>> (nest,) = expanded([Nest(10, (zeros(0, 4),))], buffers)
    >>> nest.steps[0].results[0].table, buffers[0].size
    (Affine(start=0, step=1, count=4, shifts=(4,)), 40)
    """
    further: dict[int, tuple[int, ...]] = {}
    for buffer, uses in sorted(uses_of(steps).items()):
        size, shifts = _rounds_apart(buffers[buffer].size, uses)
        if any(shifts):
            further[buffer], buffers[buffer] = shifts, Buffer("workspace", size)
    if not further:
        return tuple(steps)

    def change(buffer: int, table: Table) -> tuple[int, Table]:
        pairs = zip_longest(table.shifts, further.get(buffer, ()), fillvalue=0)
        return buffer, moved(table, shifts=tuple(shift + more for shift, more in pairs))

    return all_readdressed(steps, change)


def _rounds_apart(size: int, uses: Sequence[VisitedUse]) -> tuple[int, tuple[int, ...]]:
    """Return the size of a buffer with places for every round, and the distances of rounds.

    The rounds are those of the nests around all uses of the buffer in which the same places are stored again.
    """
    first = uses[0].visit
    depth = max(k for k in range(len(first.nests) + 1) if all(use.visit.nests[:k] == first.nests[:k] for use in uses))
    stores = [use.table for use in uses if use.kind in ("store", "last", "zero")]
    shifts = [0] * depth
    for level in reversed(range(depth)):
        if first.counts[level] > 1 and any(shift_at(table, level) == 0 for table in stores):
            shifts[level] = size
            size *= first.counts[level]
    return size, tuple(shifts)


def single_lags(region: Region) -> Region:
    """Return a region with carries of lag 1: one of lag 3 becomes three, which pass their slots on to each other."""
    if all(carry.lag == 1 for carry in region.carries):
        return region
    first, inputs = len(region.gathers), len(region.body.inputs)
    outputs: list[int | None] = list(range(len(region.body.outputs)))
    carries: list[Carry] = []
    passing: list[Carry] = []
    for carry in region.carries:
        output = carry.output
        for initial in reversed(carry.initial[1:]):
            outputs.append(~(inputs + len(passing)))
            passing.append(Carry(output, (initial,)))
            output = len(outputs) - 1
        carries.append(Carry(output, carry.initial[:1]))
    slots = range(first + len(carries))
    body = body_part(region.body, slots, outputs, further=len(passing))
    return replace(region, body=body, carries=(*carries, *passing))
