"""Turn the equal rows of regions that a Python loop made into a nest.

Each NumPy operation on large arrays is traced as a region, so a Python loop around such operations (time steps, layers)
makes equal regions in every round: equal bodies over equal tables, between other buffers. The distance between equal
stretches of six regions is a candidate for the period, as for chains. Then every use of every round is compared.
Buffers that take turns at one use become one, with places for each round; a use has to move on by the same distance
from each round to the next. Rounds at the beginning or the end for which that does not hold stay as they are, and use
the same places.

A nest carries out the same regions in the same order, so no number changes. Later passes (derivatives, optimisation,
machine code) visit the regions of one round only.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.ir.readdress import all_readdressed, each_region, moved, shifts_to
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.strictness import checked
from codegen.ir.tables import Table, distances
from codegen.loops.find.chains_columns import PeriodicRun, runs
from codegen.loops.optimise.draft import Draft
from codegen.records import dataclass

FEWEST_ROUNDS = 4  # of a nest
FEWEST_SAVED = 32  # regions that a nest saves

Part: TypeAlias = tuple[int, int]  # a buffer, and the first place in it
Path: TypeAlias = tuple[int, ...]  # the nests around some steps, each by its place among the steps around it


def with_nests(program: RolledProgram) -> RolledProgram:
    """Return a program in which regions that repeat are nests, also within nests; itself where none repeat.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.tables import Affine
    >>> import sympy as sp
    >>> x, whole = sp.Symbol("x"), Affine(0, 1, 9)
    >>> body = program_from_sympy([x], [sp.sin(x)])
    >>> steps = [Region(body, 9, (Gather(k, whole),), (Result(0, k + 1, whole, "store"),)) for k in range(50)]
    >>> buffers = [Buffer("workspace", 9)] * 49
    >>> arrays = (Input("x", (9,)),), (Output((9,), ()),), (Buffer("input", 9), *buffers, Buffer("output", 9))
    >>> program = with_nests(RolledProgram(*arrays, tuple(steps)))
    >>> [step.count for step in program.steps], [buffer.size for buffer in program.buffers]
    ([9, 48, 9], [9, 441, 9])
    """
    if len(program.steps) < FEWEST_SAVED:
        return program
    steps, buffers = program.steps, list(program.buffers)
    paths: list[Path] = [()]
    while paths:
        path = paths.pop()
        while (rounds := _best(_at(steps, path), buffers, len(path))) is not None:
            buffers += rounds.joined[1]
            steps = all_readdressed(_put(steps, path, rounds.steps()), rounds.outside)
        paths += [(*path, at) for at, step in enumerate(_at(steps, path)) if isinstance(step, Nest)]
    if steps is program.steps:
        return program
    draft = Draft(program)
    draft.buffers = buffers
    return checked(draft.program_of(steps, *draft.arrays), "writing regions that repeat as nests")


def _at(steps: Sequence[Step], path: Path) -> Sequence[Step]:
    for at in path:
        nest = steps[at]
        assert isinstance(nest, Nest)
        steps = nest.steps
    return steps


def _put(steps: Sequence[Step], path: Path, inner: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps with `inner` as the steps at the end of a path."""
    for depth in reversed(range(len(path))):
        around = list(_at(steps, path[:depth]))
        around[path[depth]] = Nest(around[path[depth]].count, tuple(inner))
        inner = around
    return tuple(inner)


def _best(steps: Sequence[Step], buffers: Sequence[Buffer], depth: int) -> _RepeatedRounds | None:
    """Return the rounds among steps, within `depth` nests, that save most as a nest; None where none do."""
    if len(steps) < FEWEST_SAVED:
        return None
    best, saved = None, FEWEST_SAVED
    for run in sorted(runs(_step_classes(steps)), key=lambda run: run.period - (run.stop - run.start)):
        if run.stop - run.start - run.period < saved:
            break
        rounds = _RepeatedRounds(steps, buffers, depth, replace(run, start=_begin(steps, run)))
        if rounds.count >= FEWEST_ROUNDS and rounds.saved >= saved:
            best, saved = rounds, rounds.saved + 1
    return best


def _begin(steps: Sequence[Step], run: PeriodicRun) -> int:
    """Return where rounds begin: where the fewest buffers, and the fewest that allow fusion, cross the boundary."""
    middle = run.start + (run.stop - run.start) // run.period // 2 * run.period
    stop = min(middle + run.period, run.stop)
    written: dict[int, tuple[int, set[Hashable]]] = {}  # by which step, and at which places
    live_in = [set[int]() for _ in range(run.period)]  # buffers that are read at or behind a step, written before it
    fusible = [0] * run.period
    for at in range(middle - run.period, stop):
        regions = [region for region, _ in regions_of([steps[at]])]
        for use in chain.from_iterable(region.reads for region in regions):
            source, places = written.get(use.buffer, (at, set[Hashable]()))
            for cut in range(max(source + 1, middle), at + 1):
                live_in[cut - middle].add(use.buffer)
                fusible[cut - middle] += use.table.key in places
        for result in chain.from_iterable(region.results for region in regions):
            places = written[result.buffer][1] if written.get(result.buffer, (-1,))[0] == at else set()
            written[result.buffer] = at, places | {result.table.key}
    live = [{buffer for buffer in buffers if buffer in written} for buffers in live_in[: stop - middle]]
    return run.start + min(range(len(live)), key=lambda cut: (len(live[cut]), fusible[cut], cut))


def _step_classes(steps: Sequence[Step]) -> NDArray[np.uint64]:
    """Return a number for each step, equal for steps that may be one step in different rounds."""
    numbers: dict[Hashable, int] = {}
    known: dict[int, Hashable] = {}
    return np.array([numbers.setdefault(_step_key(step, known), len(numbers)) for step in steps], dtype=np.uint64)


def _step_key(step: Step, known: dict[int, Hashable]) -> Hashable:
    """Return a key, equal for steps that may be one step in different rounds; `known` are keys of arrays of indices."""
    keys: list[Hashable] = []
    left = [step]
    while left:
        following = left.pop()
        if isinstance(following, Nest):
            keys.append((following.count, len(following.steps)))
            left += reversed(following.steps)
        else:
            keys.append(_region_key(following, known))
    return tuple(keys)


def _region_key(region: Region, known: dict[int, Hashable]) -> Hashable:
    tables = tuple(distances(use.table, known) for use in _uses(region))
    carries = tuple((carry.output, carry.lag) for carry in region.carries)
    results = tuple((use.output, use.kind) for use in region.results)
    return id(region.body), region.count, tables, carries, results, region.stop, region.matrix, region.origin


def _uses(region: Region) -> tuple[Gather | Result, ...]:
    """Return the uses of a region, results first."""
    return (*region.results, *region.reads)


@dataclass(frozen=True, eq=False)
class _RepeatedRounds:
    """The rounds of a run, of which `count` from `first` on become a nest."""

    given: Sequence[Step]
    buffers: Sequence[Buffer]
    depth: int
    run: PeriodicRun

    @cached_property
    def columns(self) -> list[list[Gather | Result]]:
        """For each use of a round its uses in all rounds; results come before reads."""
        period, rounds = self.run.period, range(self.run.start, self.run.stop - self.run.period + 1, self.run.period)
        columns: list[list[Gather | Result]] = []
        for at in range(period):
            steps = ([self.given[first + at]] for first in rounds)
            uses = ([use for region, _ in regions_of(step) for use in _uses(region)] for step in steps)
            columns += [list(column) for column in zip(*uses, strict=True)]
        return sorted(columns, key=lambda column: isinstance(column[0], Gather))

    @cached_property
    def joined(self) -> tuple[dict[int, Part], list[Buffer]]:
        """The places of buffers that take turns in new buffers, and these."""
        parts: dict[int, Part] = {}
        new: list[Buffer] = []
        for column in self.columns:
            numbers = [use.buffer for use in column]
            last = self.buffers[numbers[-2]]
            if len(set(numbers)) == len(numbers) and last.kind in ("workspace", "constant"):
                sources = [(number, self.buffers[number]) for number in numbers if number not in parts]
                alike = [n for n, buffer in sources if (buffer.kind, buffer.size) == (last.kind, last.size)]
                if len(alike) >= FEWEST_ROUNDS:
                    parts |= self._join(alike, new)
        return parts, new

    def _join(self, alike: Sequence[int], new: list[Buffer]) -> dict[int, Part]:
        """Return the places of buffers side by side in a new one; equal constants become the first of them."""
        size = self.buffers[alike[0]].size
        values = [values for values in (self.buffers[number].values for number in alike) if values is not None]
        if values and len({array.tobytes() for array in values}) == 1:
            return dict.fromkeys(alike, (alike[0], 0))
        joined = np.concatenate(values) if values else None
        new.append(Buffer("constant" if values else "workspace", size * len(alike), joined))
        target = len(self.buffers) + len(new) - 1
        return {number: (target, k * size) for k, number in enumerate(alike)}

    def place(self, use: Gather | Result) -> Part:
        buffer, start = self.joined[0].get(use.buffer, (use.buffer, 0))
        return buffer, start + use.table.first

    @cached_property
    def even(self) -> tuple[int, int]:
        """The first round, and the last but one, between which all uses move on evenly."""
        first, stop = 0, len(self.columns[0])
        for column in self.columns:
            buffers, places = np.array([self.place(use) for use in column]).T
            steps = np.diff(places)
            middle = len(steps) // 2
            broken = np.flatnonzero((buffers[1:] != buffers[:-1]) | (steps != steps[middle]))
            if middle in broken:
                return 0, 0
            first = max([first, *(broken[broken < middle] + 1).tolist()])
            stop = min([stop, *(broken[broken > middle] + 1).tolist()])
        return first, stop

    @property
    def count(self) -> int:
        return self.even[1] - self.even[0]

    @property
    def saved(self) -> int:
        return (self.count - 1) * self.run.period

    def outside(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where a use outside of the nest is."""
        number, start = self.joined[0].get(buffer, (buffer, 0))
        return number, moved(table, start)

    def steps(self) -> list[Step]:
        """Return the steps with the nest, whose uses are already readdressed; all others are not yet."""
        period = self.run.period
        first = self.run.start + self.even[0] * period
        nest = Nest(self.count, tuple(map(self.moving, range(first, first + period))))
        return [*self.given[:first], nest, *self.given[first + self.count * period :]]

    def moving(self, at: int) -> Step:
        """Return a step whose uses move on with the rounds."""
        others = (region for region, _ in regions_of([self.given[at + self.run.period]]))
        (step,) = each_region([self.given[at]], lambda region: self.moving_region(region, next(others)))
        return step

    def moving_region(self, first: Region, second: Region) -> Region:
        def gathers(here: Sequence[Gather], there: Sequence[Gather]) -> tuple[Gather, ...]:
            return tuple(Gather(*self.moving_use(*pair)) for pair in zip(here, there, strict=True))

        carries = zip(first.carries, second.carries, strict=True)
        return replace(
            first,
            gathers=gathers(first.gathers, second.gathers),
            carries=tuple(Carry(here.output, gathers(here.initial, there.initial)) for here, there in carries),
            results=tuple(
                Result(here.output, *self.moving_use(here, there), here.kind)
                for here, there in zip(first.results, second.results, strict=True)
            ),
        )

    def moving_use(self, here: Gather | Result, there: Gather | Result) -> tuple[int, Table]:
        """Return a use that moves on with the rounds from one place to another; nests around and inside move it too."""
        (buffer, place), (_, later) = self.place(here), self.place(there)
        around = shifts_to(here.table, self.depth)
        shifts = (*around[: self.depth], later - place, *around[self.depth :])
        return buffer, moved(here.table, place - here.table.first, shifts=shifts if any(shifts) else ())
