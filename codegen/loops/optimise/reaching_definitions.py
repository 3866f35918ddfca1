"""Reaching definitions: which repetitions wrote each place, and whether it is active.

The value of a place is the sum of the results written to it. If their code is short, and the same for all places that
a slot reads, it can be inlined in the reader (`pieces`). Places with the same results have the same recipe.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from codegen.ir.body_parts import row_of
from codegen.ir.program import needed
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Places, distinct
from codegen.records import dataclass

MOST_DEFINITIONS = 32  # of a place that is inlined
MOST_DEPTH = 12
MOST_UNIFORM_ROWS = 16  # of a body that is run once, and would be recomputed in every repetition
CHEAP_ROWS = 2
MOST_SHARED = 16  # values that are read by several repetitions each, and still not computed for each
ZERO, FIXED, INNER = -1, -2, -3

Activity = bool | NDArray[np.bool_]


@dataclass(frozen=True)
class Size:
    """Operations, active slots, and depth of a result with all inlined definitions; equal ones count each time."""

    rows: int
    slots: int
    depth: int

    def is_within(self, most: Size) -> bool:
        """Whether it is inlined."""
        return self.rows <= most.rows and self.slots <= most.slots and self.depth <= most.depth


DENSE_SLOTS = Size(400, 12, MOST_DEPTH)  # where a sum of more slots is an inner value, for a product of matrices
FEW_SLOTS = Size(400, 32, MOST_DEPTH)  # for second derivatives, which may have an entry for each two slots
MANY_SLOTS = Size(4000, 512, 16)  # where there are no loops otherwise: a bundle adjustment counts 487, 275 and 13


@dataclass(frozen=True, eq=False)
class Definition:
    """One result of a region."""

    region: Region
    result: Result
    size: Size

    def is_within(self, most: Size) -> bool:
        """Whether it may be inlined."""
        return self.size.is_within(most) and (self.region.count > 1 or self.size.rows <= MOST_UNIFORM_ROWS)


@dataclass(eq=False)
class BufferDefinitions:
    """The results written to a buffer; `active[place]` says whether one of them depends on the input."""

    active: NDArray[np.bool_]
    results: list[tuple[int, Places]] = field(default_factory=list)
    _recipes: Recipes | None = None

    def recipes(self, written: Sequence[Definition], most: Size) -> Recipes:
        """Return the recipes of all places after the results so far."""
        if self._recipes is None or self._recipes.results != len(self.results):
            self._recipes = _recipes(self.results, written, len(self.active), most)
        return self._recipes


@dataclass(frozen=True, eq=False)
class Recipes:
    """The recipe of each place of a buffer: the number of a recipe, or ZERO or INNER.

    A recipe is the results that are added up, in order. Those at place p have the repetitions from `begins[p]` on.
    """

    results: int
    recipe: Places
    recipes: list[tuple[int, ...]]
    begins: Places
    repetitions: Places


def _recipes(results: Sequence[tuple[int, Places]], written: Sequence[Definition], size: int, most: Size) -> Recipes:
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
        if (columns == columns[0]).all():  # sorting them takes half of the time of large programs
            different, which = columns[:1], np.zeros(len(columns), dtype=np.int64)
        else:
            different, which = np.unique(columns, axis=0, return_inverse=True)
        for number, column in enumerate(different.tolist()):
            parts = [written[k] for k in column]
            if all(part.is_within(most) for part in parts) and _sum(part.size for part in parts).is_within(most):
                recipe[chosen[which.ravel() == number]] = len(recipes)
                recipes.append(tuple(column))
    return Recipes(len(results), recipe, recipes, begins, repetitions[order])


def _sum(sizes: Iterable[Size]) -> Size:
    parts = list(sizes)
    return Size(sum(s.rows for s in parts), sum(s.slots for s in parts), max((s.depth for s in parts), default=0))


class ReachingDefinitions:
    """The definitions of all places of workspaces and outputs; active places depend on one of some inputs.

    What is larger than `most` is not inlined.
    """

    program: RolledProgram
    inputs: frozenset[int]
    kept: frozenset[int]

    def __init__(
        self,
        program: RolledProgram,
        regions: Sequence[Region],
        inputs: Collection[int],
        kept: Collection[int] = (),
        most: Size = FEW_SLOTS,
    ) -> None:
        self.program, self.inputs, self.kept, self.most = program, frozenset(inputs), frozenset(kept), most
        self.written: list[Definition] = []
        self.of: dict[int, BufferDefinitions] = {
            number: BufferDefinitions(np.zeros(buffer.size, dtype=bool))
            for number, buffer in enumerate(program.buffers)
            if buffer.kind in ("workspace", "output")
        }
        for region in regions:
            self._run(region)

    def made(self, buffer: int) -> Recipes:
        """Return the recipes of the places of a buffer."""
        return self.of[buffer].recipes(self.written, self.most)

    def kinds(self, buffer: int, places: Places) -> Places:
        """Return of each place ZERO (never written), FIXED (not active), INNER, or the number of its recipe."""
        recipe = self.made(buffer).recipe[places]
        if buffer in self.kept:
            recipe = np.where(recipe == ZERO, ZERO, INNER)
        return np.where(self.of[buffer].active[places] | (recipe == ZERO), recipe, FIXED)

    def shared(self, recipe: Sequence[int], places: Places) -> bool:
        """Whether few values are read by many repetitions, and cost something: then they are not recomputed."""
        if len(places) < 2 or (len(recipe) == 1 and self.written[recipe[0]].size.rows <= CHEAP_ROWS):
            return False
        different = len(distinct(places))
        return 2 * different <= len(places) and (different <= MOST_SHARED or len(recipe) > 1)

    def _run(self, region: Region) -> None:
        activity = self._activity(region)
        sizes = []
        for result in region.results:
            rows = needed(region.body, [row_of(region.body, result.output)], ())
            behind = _sum(self._behind(region.gathers[row]) for row in rows if row < len(region.gathers))
            operations = sum(bool(region.body.operands[row]) for row in rows)
            sizes.append(Size(operations + behind.rows, behind.slots, 1 + behind.depth))
        for result, size in zip(region.results, sizes, strict=True):
            places, into = result.table.places(), self.of[result.buffer]
            into.results.append((len(self.written), places))
            np.logical_or.at(into.active, places, activity[row_of(region.body, result.output)])
            self.written.append(Definition(region, result, size))

    def _activity(self, region: Region) -> list[Activity]:
        """Return of each row of the body whether it is active: True, False, or one for each repetition."""
        activity: list[Activity] = [self._slot_activity(gather) for gather in region.gathers]
        for operands in region.body.operands[len(activity) :]:
            parts = [activity[operand] for operand in operands]
            if any(part is True for part in parts):
                activity.append(True)
                continue
            arrays = [part for part in parts if not isinstance(part, bool)]
            activity.append(np.logical_or.reduce(arrays) if arrays else False)
        return activity

    def _slot_activity(self, gather: Gather) -> Activity:
        if gather.buffer not in self.of:
            return gather.buffer in self.inputs
        active = self.of[gather.buffer].active[gather.table.places()]
        return bool(active[0]) if (active == active[0]).all() else active

    def _behind(self, gather: Gather) -> Size:
        """Return the largest size of the definitions that would be inlined for a slot."""
        if gather.buffer not in self.of:
            return Size(0, int(gather.buffer in self.inputs), 0)
        kinds = self.kinds(gather.buffer, gather.table.places())
        recipes = self.made(gather.buffer).recipes
        sizes = [_sum(self.written[k].size for k in recipes[kind]) for kind in np.unique(kinds).tolist() if kind >= 0]
        sizes.append(Size(0, int((kinds == INNER).any()), 0))
        return Size(*(max(getattr(size, name) for size in sizes) for name in ("rows", "slots", "depth")))
