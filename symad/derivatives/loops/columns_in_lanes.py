"""Columns side by side: a pushforward along all unit vectors, as repetitions of every loop.

A recurrence has no repetitions that could run side by side, but its columns could. Step k of a loop becomes round k of
a nest, in which one body runs over some columns. Carries are in a buffer with the numbers of every step.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np
from sympy.logic.boolalg import Boolean

from codegen.ir.body_parts import copy, outputs_of
from codegen.ir.program import Output, reachable
from codegen.ir.readdress import each_region
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.contraction import zeros
from codegen.loops.optimise.draft import Draft
from codegen.loops.optimise.reductions import split
from codegen.records import dataclass
from symad.derivatives.loops.activity import dependent

MOST_UNROLLED = 64  # repetitions of a loop with a table of indices, each of which is a loop over the columns
MOST_NUMBERS = 2**26  # in the buffers of all columns
WIDTHS = range(16, 49)  # columns side by side: their carries stay in the caches


def in_lanes(program: RolledProgram, seed: int, shape: tuple[int, ...], *, across: bool) -> RolledProgram | None:
    """Return the second output at every unit vector of an input, the seed, as rows or as columns (`across`).

    None for programs with matrix operations, loops with a stop condition or long tables of places, and for columns that
    store more than MOST_NUMBERS numbers.
    """
    target, count = program.first_output + 1, program.inputs[seed].size
    active, draft = dependent(program.steps, seed), Draft(program)
    before, within = before_and_within(draft, program.steps, active)
    regions = [region for region, _ in regions_of(within)]
    if not all(map(_has_columns, regions)):
        return None
    size = draft.buffers[target].size
    draft.buffers[target] = Buffer("workspace", size * count)
    unit = np.zeros(2 * count - 1)
    unit[count - 1] = 1.0
    constants, width, draft.steps = draft.constants(unit), _width(count), [*before]
    summed = {use.buffer for region in regions for use in region.results if use.kind == "add"}
    for first, columns, rounds in ((0, width, count // width), (count - count % width, count % width, 1)):
        if not columns:
            continue
        own = {b: draft.workspace(draft.buffers[b].size * columns) for b in sorted(active - {seed, target})}
        clears = [zeros(own[buffer], draft.buffers[own[buffer]].size) for buffer in sorted(summed & own.keys())]
        strides = (count, 1) if across else (1, size)
        lanes = _LaneColumns(draft, count, first, columns, seed, constants, target, strides, own)
        draft.steps.append(Nest(rounds, (*clears, *lanes.steps(within, 1))))
    if sum(buffer.size for buffer in draft.added if buffer.kind == "workspace") > MOST_NUMBERS:
        return None
    inputs = [array for array in draft.arrays[0] if array[1] != seed]
    return draft.finish(inputs, [(Output(shape, ()), target)], "columns in lanes")


def _width(count: int) -> int:
    """Return how many columns are side by side: all if they are few, else such that none are left over, if that can be.

    >>> _width(5), _width(30), _width(1000), _width(997)
    (5, 30, 40, 32)
    """
    fitting = [width for width in WIDTHS if count % width == 0]
    return max(fitting, key=lambda width: (width % 8 == 0, width), default=min(count, WIDTHS.start + 16))


def _has_columns(region: Region) -> bool:
    """Whether a region can run over all columns, step by step."""
    if region.matrix is not None or region.stop is not None:
        return False
    return region.count <= MOST_UNROLLED or all(isinstance(use.table, Affine) for use in region.uses)


@dataclass(frozen=True)
class _LaneColumns:
    """Steps for some columns, from a first one on, in the rounds of a nest: each round has the next columns.

    An active buffer has each number once for every column, side by side.
    """

    draft: Draft
    count: int  # of all columns
    first: int
    columns: int
    seed: int
    unit: int  # the buffer of a 1 with zeros around it
    target: int
    strides: tuple[int, int]  # of the target: from number to number of a column, and from column to column
    own: Mapping[int, int]  # the buffers of the columns, by the active ones

    def steps(self, steps: Sequence[Step], depth: int) -> list[Step]:
        """Return the steps inside `depth` nests."""
        steps_in_lanes: list[Step] = []
        for step in steps:
            if isinstance(step, Nest):
                steps_in_lanes.append(Nest(step.count, tuple(self.steps(step.steps, depth + 1))))
            else:
                steps_in_lanes += self.region(step, depth)
        return steps_in_lanes

    def region(self, region: Region, depth: int) -> list[Step]:
        """Return a loop as rounds of a loop over the columns; with places in a table, as one loop after the other."""
        columns, whole = self.columns, range(region.count)
        histories = [self.draft.workspace((region.count + carry.lag) * columns) for carry in region.carries]
        ends = [
            (use, self.draft.workspace(region.count * columns)) for use in region.results if use.kind == "last"
        ]  # a value of every step, of which the last one counts
        before = [
            copy(Gather(*self.where(use, 0, depth)), history, Affine(place * columns, 1, columns))
            for carry, history in zip(region.carries, histories, strict=True)
            for place, use in enumerate(carry.initial)
        ]
        rolled = region.count > 1 and all(isinstance(use.table, Affine) for use in region.uses)
        steps = []
        for k in whole[:1] if rolled else whole:
            step = columns if rolled else 0

            def of_step(number: int, step: int = step, k: int = k) -> Affine:
                start = (number + k) * columns
                return Affine(start, 1, columns, (*(0,) * depth, step) if step else ())

            gathers = [Gather(*self.where(use, k, depth, rolled)) for use in region.gathers]
            gathers += [Gather(history, of_step(0)) for history in histories]
            results = [
                Result(use.output, *self.where(use, k, depth, rolled), use.kind)
                for use in region.results
                if use.kind != "last"
            ]
            for carry, history in zip(region.carries, histories, strict=True):
                results.append(Result(carry.output, history, of_step(carry.lag), "store"))
            results += [Result(use.output, buffer, of_step(0), "store") for use, buffer in ends]
            steps.append(Region(region.body, columns, tuple(gathers), tuple(results), origin=region.origin))
        after = [
            copy(Gather(buffer, Affine((region.count - 1) * columns, 1, columns)), *self.where(use, 0, depth))
            for use, buffer in ends
        ]
        return [*before, *([Nest(region.count, tuple(steps))] if rolled else steps), *after]

    def where(self, use: Gather | Result, k: int, depth: int, rolled: bool = False) -> tuple[int, Table]:
        """Return the buffer and the places of all columns at a step; `rolled` is a round of one more nest."""
        places, columns = use.table, self.columns
        start = places.first if rolled else int(places.places()[k])
        moves = [*places.shifts, *[0] * (depth - 1 - len(places.shifts))]
        if rolled and isinstance(places, Affine):
            moves.append(places.step)
        if use.buffer == self.seed:
            shifts = (columns, *(-move for move in moves))
            return self.unit, Affine(self.count - 1 - start + self.first, 1, columns, shifts)
        if use.buffer == self.target:
            far, step = self.strides
            shifts = (columns * step, *(move * far for move in moves))
            return self.target, Affine(start * far + self.first * step, step, columns, shifts)
        if use.buffer in self.own:
            return self.own[use.buffer], Affine(start * columns, 1, columns, (0, *(move * columns for move in moves)))
        return use.buffer, Affine(start, 0, columns, (0, *moves))


def before_and_within(
    draft: Draft, steps: Sequence[Step], active: frozenset[int]
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that run once, and those that run for each seed because they depend on the `active` buffers."""
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
    """Return the steps inside the rounds, or before them."""

    def part(region: Region) -> Region | None:
        results = tuple(use for use in region.results if (use.buffer in active) == within)
        return replace(region, results=results) if results else None

    return each_region(steps, part)
