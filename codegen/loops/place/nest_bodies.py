"""Rounds: the regions of a body become those of a nest, whose places move on with each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from codegen.ir.readdress import all_readdressed, moved
from codegen.ir.region import Step, regions_of
from codegen.ir.tables import Table
from codegen.loops.loop import Loop


@dataclass(frozen=True)
class Spot:
    """Where place 0 of a buffer is in the first round: at `start` of another one; it moves on by `shift`."""

    buffer: int
    start: int
    shift: int


def can_be_nest(loop: Loop) -> bool:
    """Return whether a loop is a chain that can have loops inside."""
    chain = bool(loop.carries) and all(len(carry.initial) == 1 for carry in loop.carries)
    return chain and loop.count > 1 and loop.stop is None and all(use.kind in ("each", "last") for use in loop.results)


def in_rounds(steps: Sequence[Step], spots: Mapping[int, Spot]) -> tuple[Step, ...]:
    """Return steps in a nest: of each of their buffers, `spots` says where that is."""

    def where(buffer: int, table: Table) -> tuple[int, Table]:
        spot = spots[buffer]
        return spot.buffer, moved(table, spot.start, shifts=(spot.shift, *table.shifts))

    return all_readdressed(steps, where)


def added_to(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps add to: these begin at zero in each round, so each round has its own."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.results if use.kind == "add"}
