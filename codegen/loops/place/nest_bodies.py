"""Rounds: the regions of a body become those of a nest, whose places move on with each round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from codegen.ir.region import Carry, Gather, Nest, Step, regions_of
from codegen.ir.tables import Affine, Indexed, Table
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


def in_rounds(step: Step, spots: Mapping[int, Spot]) -> Step:
    """Return a step in a nest: of each of its buffers, `spots` says where that is.

    >>> from codegen.ir.program import Program
    >>> from codegen.ir.region import Region
    >>> region = Region(Program([], [], {}, (), ()), 3, (Gather(0, Affine(1, 1, 3)),), ())
    >>> in_rounds(region, {0: Spot(7, 10, 5)}).gathers
    (Gather(buffer=7, table=Affine(start=11, step=1, count=3, shifts=(5,))),)
    """
    if isinstance(step, Nest):
        return Nest(step.count, tuple(in_rounds(inner, spots) for inner in step.steps))

    def moved(use: Gather) -> Gather:
        spot = spots[use.buffer]
        return Gather(spot.buffer, _moved(use.table, spot))

    pairs = [(use, spots[use.buffer]) for use in step.results]
    return replace(
        step,
        gathers=tuple(map(moved, step.gathers)),
        carries=tuple(Carry(carry.output, tuple(map(moved, carry.initial))) for carry in step.carries),
        results=tuple(replace(use, buffer=spot.buffer, table=_moved(use.table, spot)) for use, spot in pairs),
    )


def moved_to(step: Step, at: Mapping[int, int]) -> Step:
    """Return a step with other numbers for its buffers."""
    if isinstance(step, Nest):
        return Nest(step.count, tuple(moved_to(inner, at) for inner in step.steps))
    return replace(
        step,
        gathers=tuple(Gather(at[use.buffer], use.table) for use in step.gathers),
        carries=tuple(
            Carry(carry.output, tuple(Gather(at[use.buffer], use.table) for use in carry.initial))
            for carry in step.carries
        ),
        results=tuple(replace(use, buffer=at[use.buffer]) for use in step.results),
    )


def added_to(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps add to: these begin at zero in each round, so each round has its own."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.results if use.kind == "add"}


def _moved(table: Table, spot: Spot) -> Table:
    shifts = (spot.shift, *table.shifts)
    if isinstance(table, Indexed):
        return Indexed(table.index + spot.start, shifts)
    return Affine(table.start + spot.start, table.step, table.count, shifts)
