"""Turn the equal rows of regions that a Python loop made into a nest.

What NumPy does to large arrays is traced as a region each, so a Python loop around such operations (time steps, layers,
rounds of an optimiser) leaves its regions again and again: equal bodies over equal tables, between other buffers. Where
they come in the same order, the distance between equal stretches of six regions is a candidate for the period, as for
chains (`periods`). Then every use of every round is compared. Buffers that take turns at one use become one, with
places for each round; a use has to move on by the same distance from each round to the next. Rounds at the beginning or
the end for which that does not hold stay what they are, and use the same places.

So a nest carries out what was written down, in the same order, and all that is done to regions later on is done to
those of one round: derivatives, optimisation, machine code. Nothing is guessed, and no number changes. (To keep all
regions, and to do equal work for equal ones once, would save less: some thirty passes would still visit each.)
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
from codegen.loops.find.periods import PeriodicRun, runs
from codegen.loops.optimise.draft import Draft
from codegen.records import dataclass

FEWEST_ROUNDS = 4  # of a nest
FEWEST_SAVED = 32  # regions that a nest saves

Part: TypeAlias = tuple[int, int]  # where the places of a buffer are: in which one, and from where on
Path: TypeAlias = tuple[int, ...]  # the nests that lead to some steps, each by its place among the steps around it


def with_nests(program: RolledProgram) -> RolledProgram:
    """Return a program in which regions that repeat are nests, also within nests; the same one where none repeat.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.tables import Affine
    >>> import sympy as sp
    >>> x, whole = sp.Symbol("x"), Affine(0, 1, 9)
    >>> body = program_from_sympy([x], [sp.sin(x)])
    >>> steps = [Region(body, 9, (Gather(k, whole),), (Result(0, k + 1, whole, "store"),)) for k in range(50)]
    >>> buffers = [Buffer("workspace", 9)] * 49
    >>> arrays = (Input("x", (9,)),), (Output((9,), ()),), (Buffer("input", 9), *buffers, Buffer("output", 9))
    >>> made = with_nests(RolledProgram(*arrays, tuple(steps)))
    >>> [step.count for step in made.steps], [buffer.size for buffer in made.buffers]
    ([9, 48, 9], [9, 441, 9])
    """
    if len(program.steps) < FEWEST_SAVED:
        return program
    steps, buffers = program.steps, list(program.buffers)
    paths: list[Path] = [()]
    while paths:
        path = paths.pop()
        while (found := _best(_at(steps, path), buffers, len(path))) is not None:
            buffers += found.further
            steps = _put(steps, path, found.steps())
            steps = all_readdressed(steps, found.outside)
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
    """Return steps with others at the end of a path."""
    for depth in reversed(range(len(path))):
        around = list(_at(steps, path[:depth]))
        around[path[depth]] = Nest(around[path[depth]].count, tuple(inner))
        inner = around
    return tuple(inner)


def _best(steps: Sequence[Step], buffers: Sequence[Buffer], depth: int) -> _RepeatedRounds | None:
    """Return the rounds among steps, in so many nests, that save most as a nest; None where none do."""
    if len(steps) < FEWEST_SAVED:
        return None
    best, saved = None, FEWEST_SAVED
    for run in sorted(runs(_looks(steps)), key=lambda run: run.period - (run.stop - run.start)):
        if run.stop - run.start - run.period < saved:
            break
        rounds = _RepeatedRounds(steps, buffers, depth, replace(run, start=_begin(steps, run)))
        if rounds.count >= FEWEST_ROUNDS and rounds.saved >= saved:
            best, saved = rounds, rounds.saved + 1
    return best


def _begin(steps: Sequence[Step], run: PeriodicRun) -> int:
    """Return where rounds begin: where the fewest buffers are handed on, the fewest of them to where they can be fused.

    So what one repetition leaves for the same one of the next region is in the same round.
    """
    middle = run.start + (run.stop - run.start) // run.period // 2 * run.period
    stop = min(middle + run.period, run.stop)
    written: dict[int, tuple[int, set[Hashable]]] = {}  # by which step, and at which places
    handed = [set[int]() for _ in range(run.period)]  # what is read at or behind a step, and was written before it
    fusible = [0] * run.period
    for at in range(middle - run.period, stop):
        regions = [region for region, _ in regions_of([steps[at]])]
        for use in chain.from_iterable(region.reads for region in regions):
            source, places = written.get(use.buffer, (at, set[Hashable]()))
            for cut in range(max(source + 1, middle), at + 1):
                handed[cut - middle].add(use.buffer)
                fusible[cut - middle] += use.table.key in places
        for result in chain.from_iterable(region.results for region in regions):
            places = written[result.buffer][1] if written.get(result.buffer, (-1,))[0] == at else set()
            written[result.buffer] = at, places | {result.table.key}
    live = [{buffer for buffer in found if buffer in written} for found in handed[: stop - middle]]
    return run.start + min(range(len(live)), key=lambda cut: (len(live[cut]), fusible[cut], cut))


def _looks(steps: Sequence[Step]) -> NDArray[np.uint64]:
    """Return what each step looks like, as a number: equal for regions that may be one in different rounds."""
    numbers: dict[Hashable, int] = {}
    known: dict[int, Hashable] = {}
    found = [numbers.setdefault(_look(step, known), len(numbers)) for step in steps]
    return np.array(found, dtype=np.uint64)


def _look(step: Step, known: dict[int, Hashable]) -> Hashable:
    """Return what is equal for steps that may be one in different rounds; `known` by the arrays of indices."""
    found: list[Hashable] = []
    stack: list[Step | str] = [step]
    while stack:
        each = stack.pop()
        if isinstance(each, Nest):
            stack += ["end", *reversed(each.steps)]
            found.append(each.count)
        else:
            found.append(each if isinstance(each, str) else _look_of_region(each, known))
    return tuple(found)


def _look_of_region(region: Region, known: dict[int, Hashable]) -> Hashable:
    tables = tuple(distances(use.table, known) for use in _uses(region))
    carries = tuple((carry.output, carry.lag) for carry in region.carries)
    results = tuple((use.output, use.kind) for use in region.results)
    return id(region.body), region.count, tables, carries, results, region.stop, region.matrix, region.origin


def _uses(region: Region) -> tuple[Gather | Result, ...]:
    """Return the uses of a region, what is written first."""
    return (*region.results, *region.reads)


def _uses_of(step: Step) -> list[Gather | Result]:
    return [use for region, _ in regions_of([step]) for use in _uses(region)]


@dataclass(frozen=True, eq=False)
class _RepeatedRounds:
    """The rounds of a run, of which `count` from `first` on become a nest."""

    given: Sequence[Step]
    buffers: Sequence[Buffer]
    depth: int
    run: PeriodicRun

    @cached_property
    def columns(self) -> list[list[Gather | Result]]:
        """For each use of a round what it is in every round; what is written comes before what is read."""
        period, number = self.run.period, (self.run.stop - self.run.start) // self.run.period
        found = [
            column
            for at in range(self.run.start, self.run.start + period)
            for column in zip(*(_uses_of(self.given[at + k * period]) for k in range(number)), strict=True)
        ]
        return [list(column) for column in sorted(found, key=lambda column: isinstance(column[0], Gather))]

    @cached_property
    def together(self) -> tuple[dict[int, Part], list[Buffer]]:
        """Where buffers that take turns are together, and the buffers of those."""
        parts: dict[int, Part] = {}
        made: list[Buffer] = []
        for column in self.columns:
            numbers = [use.buffer for use in column]
            last = self.buffers[numbers[-2]]
            if len(set(numbers)) == len(numbers) and last.kind in ("workspace", "constant"):
                alike = [n for n in numbers if self._alike(n, last) and n not in parts]
                if len(alike) >= FEWEST_ROUNDS:
                    parts |= self._joined(alike, made)
        return parts, made

    def _alike(self, number: int, other: Buffer) -> bool:
        found = self.buffers[number]
        return found.kind == other.kind and found.size == other.size

    def _joined(self, alike: Sequence[int], made: list[Buffer]) -> dict[int, Part]:
        """Return where some buffers are in a new one, side by side; equal constants are all where the first is."""
        size = self.buffers[alike[0]].size
        values = [found for found in (self.buffers[number].values for number in alike) if found is not None]
        if values and len({found.tobytes() for found in values}) == 1:
            return dict.fromkeys(alike, (alike[0], 0))
        joined = np.concatenate(values) if values else None
        made.append(Buffer("constant" if values else "workspace", size * len(alike), joined))
        target = len(self.buffers) + len(made) - 1
        return {number: (target, k * size) for k, number in enumerate(alike)}

    @property
    def further(self) -> list[Buffer]:
        """The buffers that there are more of."""
        return self.together[1]

    def place(self, use: Gather | Result) -> Part:
        """Return where a use begins."""
        buffer, start = self.together[0].get(use.buffer, (use.buffer, 0))
        return buffer, start + use.table.first

    @cached_property
    def even(self) -> tuple[int, int]:
        """The first and the last but one of the rounds in which all uses move on evenly."""
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
        """How many rounds the nest has."""
        return self.even[1] - self.even[0]

    @property
    def saved(self) -> int:
        """How many regions fewer there are."""
        return (self.count - 1) * self.run.period

    def outside(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where a use is that is not in the nest."""
        number, start = self.together[0].get(buffer, (buffer, 0))
        return number, moved(table, start)

    def steps(self) -> list[Step]:
        """Return the steps with the nest; its uses are already where they are to be, all others not yet."""
        period = self.run.period
        first = self.run.start + self.even[0] * period
        nest = Nest(self.count, tuple(map(self.moving, range(first, first + period))))
        return [*self.given[:first], nest, *self.given[first + self.count * period :]]

    def moving(self, at: int) -> Step:
        """Return a step whose uses move on to those of the next round."""
        others = (region for region, _ in regions_of([self.given[at + self.run.period]]))
        (step,) = each_region([self.given[at]], lambda region: self.moving_region(region, next(others)))
        return step

    def moving_region(self, one: Region, other: Region) -> Region:
        def gathers(here: Sequence[Gather], there: Sequence[Gather]) -> tuple[Gather, ...]:
            return tuple(Gather(*self.moving_use(*pair)) for pair in zip(here, there, strict=True))

        carries = zip(one.carries, other.carries, strict=True)
        return replace(
            one,
            gathers=gathers(one.gathers, other.gathers),
            carries=tuple(Carry(here.output, gathers(here.initial, there.initial)) for here, there in carries),
            results=tuple(
                Result(here.output, *self.moving_use(here, there), here.kind)
                for here, there in zip(one.results, other.results, strict=True)
            ),
        )

    def moving_use(self, here: Gather | Result, there: Gather | Result) -> tuple[int, Table]:
        """Return where a use is that is somewhere else in the next round; nests around and inside move it too."""
        (buffer, place), (_, later) = self.place(here), self.place(there)
        around = shifts_to(here.table, self.depth)
        shifts = (*around[: self.depth], later - place, *around[self.depth :])
        return buffer, moved(here.table, place - here.table.first, shifts=shifts if any(shifts) else ())
