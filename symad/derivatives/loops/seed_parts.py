"""Split a program by dependence on a seed. The rest is computed once for all seeds."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

from sympy.logic.boolalg import Boolean

from codegen.ir.body_parts import outputs_of
from codegen.ir.program import reachable
from codegen.ir.readdress import each_region
from codegen.ir.region import Region, Step
from codegen.loops.optimise.draft import Draft
from codegen.loops.optimise.outlining import split


def before_and_within(
    draft: Draft, steps: Sequence[Step], active: frozenset[int]
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return what steps compute once, and what they compute for each seed, on which the `active` buffers depend."""
    parts = [part for step in steps for part in _split(draft, step, active)]
    return _parts(parts, active, within=False), _parts(parts, active, within=True)


def _split(draft: Draft, step: Step, active: Container[int]) -> list[Step]:
    """Return a step in two: first the rows of its body that are the same in all rounds, which are kept."""
    if not isinstance(step, Region) or not step.parallel:
        return [step]
    body, moving = step.body, {slot for slot, use in enumerate(step.gathers) if use.buffer in active}
    for row, operands in enumerate(body.operands):
        if not moving.isdisjoint(operands):
            moving.add(row)
    met = moving.intersection(reachable(body, [row for row, _ in outputs_of(step)]))
    needed = {part for row in met for part in body.operands[row]}
    rows = [row for row in sorted(needed - moving) if body.operands[row] and not issubclass(body.heads[row], Boolean)]
    return list(split(step, rows, [draft.workspace(step.count) for _ in rows])) if rows else [step]


def _parts(steps: Sequence[Step], active: frozenset[int], *, within: bool) -> tuple[Step, ...]:
    """Return what steps compute in the rounds, or before them."""

    def part(region: Region) -> Region | None:
        results = tuple(use for use in region.results if (use.buffer in active) == within)
        return replace(region, results=results) if results else None

    return each_region(steps, part)
