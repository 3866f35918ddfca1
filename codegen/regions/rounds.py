"""Rounds: the regions of a rolled program in the order in which they run, those in nests once for each round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from codegen.regions.region import Region, Step
from codegen.regions.table import Places, Table


def regions_in_time(steps: Sequence[Step]) -> Iterator[tuple[Region, tuple[int, ...]]]:
    """Return every region each time it runs, with the rounds of the nests around it, the outermost first.

    >>> from codegen.program import Program
    >>> from codegen.regions.region import Nest
    >>> region = Region(Program([], [], {}, (), ()), 1, (), ())
    >>> [rounds for _, rounds in regions_in_time([region, Nest(2, (region, Nest(1, (region,))))])]
    [(), (0,), (0, 0), (1,), (1, 0)]
    """
    stack = [_steps(steps, ())]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        step, rounds = found
        if isinstance(step, Region):
            yield step, rounds
        else:
            stack.append(_rounds(step.steps, step.count, rounds))


def places_in(table: Table, rounds: Sequence[int]) -> Places:
    """Return the places of a table in a round of the nests around.

    >>> from codegen.regions.table import Affine
    >>> places_in(Affine(0, 1, 3, (10, 100)), (2, 1))
    array([120, 121, 122])
    """
    return table.places() + sum(shift * k for shift, k in zip(table.shifts, rounds, strict=False))


def place_in(table: Table, rounds: Sequence[int]) -> int:
    """Return the place of a table of one place in a round of the nests around."""
    return int(places_in(table, rounds)[0])


def _steps(steps: Sequence[Step], rounds: tuple[int, ...]) -> Iterator[tuple[Step, tuple[int, ...]]]:
    return ((step, rounds) for step in steps)


def _rounds(steps: Sequence[Step], count: int, rounds: tuple[int, ...]) -> Iterator[tuple[Step, tuple[int, ...]]]:
    return ((step, (*rounds, k)) for k in range(count) for step in steps)
