"""Reaching definitions: which repetitions wrote each place, and whether it is active.

What a place holds is the sum of what was written to it. If that is little code, the same for all places that a slot
reads, it can be written where it is read (`pieces`); places that are made in the same way have the same recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Program
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Places, distinct
from codegen.records import dataclass

MOST_DEFINITIONS = 32  # of a place that is written where it is read
MOST_ROWS = 400
MOST_SLOTS = 32  # that are active
MOST_DEPTH = 12
MOST_UNIFORM_ROWS = 16  # of a body that is run once, and would be computed again in every repetition
CHEAP_ROWS = 2
MOST_SHARED = 16  # values that are read by several repetitions each, and still not computed for each
ZERO, FIXED, INNER = -1, -2, -3

Activity = bool | NDArray[np.bool_]


@dataclass(frozen=True)
class Size:
    """Operations, active slots, and depth of a result with all that would be written into it."""

    rows: int
    slots: int
    depth: int

    @property
    def small(self) -> bool:
        """Whether it is written where it is read."""
        return self.rows <= MOST_ROWS and self.slots <= MOST_SLOTS and self.depth <= MOST_DEPTH


@dataclass(frozen=True, eq=False)
class Definition:
    """One result of a region."""

    region: Region
    result: Result
    size: Size

    @property
    def small(self) -> bool:
        """Whether it may be written where it is read."""
        return self.size.small and (self.region.count > 1 or self.size.rows <= MOST_UNIFORM_ROWS)


@dataclass(eq=False)
class BufferDefinitions:
    """The results that go to a buffer; `active[place]` says whether one that depends on the input does."""

    active: NDArray[np.bool_]
    results: list[tuple[int, Places]] = field(default_factory=list)
    _made: Made | None = None

    def made(self, written: Sequence[Definition]) -> Made:
        """Return how each place is made by what was written so far."""
        if self._made is None or self._made.results != len(self.results):
            self._made = _made(self.results, written, len(self.active))
        return self._made


@dataclass(frozen=True, eq=False)
class Made:
    """How the places of a buffer are made: the number of a recipe, or ZERO or INNER.

    A recipe is the results that are added up, in order. Those at place p have the repetitions from `begins[p]` on.
    """

    results: int
    recipe: Places
    recipes: list[tuple[int, ...]]
    begins: Places
    repetitions: Places


def _made(results: Sequence[tuple[int, Places]], written: Sequence[Definition], size: int) -> Made:
    empty = [np.empty(0, dtype=np.int64)]
    places = np.concatenate([places for _, places in results] or empty)
    numbers = np.repeat([number for number, _ in results], [len(places) for _, places in results]).astype(np.int64)
    repetitions = np.concatenate([np.arange(len(places)) for _, places in results] or empty)
    counts = np.bincount(places, minlength=size)
    order = np.argsort(places, kind="stable")
    begins = np.cumsum(counts) - counts
    recipe, recipes = np.where(counts == 0, ZERO, INNER), list[tuple[int, ...]]()
    numbers = numbers[order]
    for count in np.unique(counts[(counts > 0) & (counts <= MOST_DEFINITIONS)]).tolist():
        chosen = np.nonzero(counts == count)[0]
        columns = numbers[begins[chosen][:, None] + np.arange(count)]
        different, which = np.unique(columns, axis=0, return_inverse=True)
        for number, column in enumerate(different.tolist()):
            if _small([written[k] for k in column]):
                recipe[chosen[which.ravel() == number]] = len(recipes)
                recipes.append(tuple(column))
    return Made(len(results), recipe, recipes, begins, repetitions[order])


def _small(parts: Sequence[Definition]) -> bool:
    return all(part.small for part in parts) and _sum(part.size for part in parts).small


def _sum(sizes: Iterable[Size]) -> Size:
    found = list(sizes)
    rows, slots = sum(size.rows for size in found), sum(size.slots for size in found)
    return Size(rows, slots, max((size.depth for size in found), default=0))


class ReachingDefinitions:
    """What wrote the places of workspaces and outputs; `active` ones depend on one of some inputs."""

    program: RolledProgram
    inputs: frozenset[int]
    kept: frozenset[int]

    def __init__(
        self, program: RolledProgram, regions: Sequence[Region], inputs: Collection[int], kept: Collection[int] = ()
    ) -> None:
        self.program, self.inputs, self.kept = program, frozenset(inputs), frozenset(kept)
        self.written: list[Definition] = []
        self.of: dict[int, BufferDefinitions] = {
            number: BufferDefinitions(np.zeros(buffer.size, dtype=bool))
            for number, buffer in enumerate(program.buffers)
            if buffer.kind in ("workspace", "output")
        }
        for region in regions:
            self._run(region)

    def made(self, buffer: int) -> Made:
        """Return how the places of a buffer are made."""
        return self.of[buffer].made(self.written)

    def kinds(self, buffer: int, places: Places) -> Places:
        """Return how each place is read: ZERO, FIXED, INNER, or the number of its recipe.

        A place that nothing wrote is 0; one that is not active is a fixed number.
        """
        recipe = self.made(buffer).recipe[places]
        if buffer in self.kept:
            recipe = np.where(recipe == ZERO, ZERO, INNER)
        return np.where(self.of[buffer].active[places] | (recipe == ZERO), recipe, FIXED)

    def shared(self, recipe: Sequence[int], places: Places) -> bool:
        """Whether few values are read by many repetitions, and cost something: then they are not computed again."""
        if len(places) < 2 or (len(recipe) == 1 and self.written[recipe[0]].size.rows <= CHEAP_ROWS):
            return False
        found = len(distinct(places))
        return 2 * found <= len(places) and (found <= MOST_SHARED or len(recipe) > 1)

    def _run(self, region: Region) -> None:
        activity = self._activity(region)
        sizes = [self._size(region, result) for result in region.results]
        for result, size in zip(region.results, sizes, strict=True):
            places, into = result.table.places(), self.of[result.buffer]
            into.results.append((len(self.written), places))
            np.logical_or.at(into.active, places, activity[region.body.outputs[result.output].rows[0]])
            self.written.append(Definition(region, result, size))

    def _activity(self, region: Region) -> list[Activity]:
        """Return of each row of the body whether it is active: True, False, or one for each repetition."""
        found: list[Activity] = [self._slot_activity(gather) for gather in region.gathers]
        for operands in region.body.operands[len(found) :]:
            parts = [found[operand] for operand in operands]
            if any(part is True for part in parts):
                found.append(True)
                continue
            arrays = [part for part in parts if not isinstance(part, bool)]
            found.append(np.logical_or.reduce(arrays) if arrays else False)
        return found

    def _slot_activity(self, gather: Gather) -> Activity:
        if gather.buffer not in self.of:
            return gather.buffer in self.inputs
        active = self.of[gather.buffer].active[gather.table.places()]
        return bool(active[0]) if (active == active[0]).all() else active

    def _size(self, region: Region, result: Result) -> Size:
        rows, slots = _cone(region.body, region.body.outputs[result.output].rows[0])
        behind = _sum(self._behind(region.gathers[slot]) for slot in slots)
        return Size(rows + behind.rows, behind.slots, 1 + behind.depth)

    def _behind(self, gather: Gather) -> Size:
        """The size of what would be written in the place of a slot: the largest."""
        if gather.buffer not in self.of:
            return Size(0, int(gather.buffer in self.inputs), 0)
        kinds = self.kinds(gather.buffer, gather.table.places())
        recipes = self.made(gather.buffer).recipes
        sizes = [_sum(self.written[k].size for k in recipes[kind]) for kind in np.unique(kinds).tolist() if kind >= 0]
        sizes.append(Size(0, int((kinds == INNER).any()), 0))
        return Size(*(max(getattr(size, name) for size in sizes) for name in ("rows", "slots", "depth")))


def _cone(body: Program, row: int) -> tuple[int, list[int]]:
    """Return how many operations a row needs, and the slots among what it needs."""
    seen, stack = {row}, [row]
    while stack:
        for operand in body.operands[stack.pop()]:
            if operand not in seen:
                seen.add(operand)
                stack.append(operand)
    slots = sorted(found for found in seen if found < len(body.inputs))
    return sum(1 for found in seen if body.operands[found]), slots
