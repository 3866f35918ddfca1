"""Tables of the buffer place that each repetition of a body accesses. Affine tables are stored as start and step.

Inside a nest (`codegen.ir.region.Nest`) all places of a table move on with each round by its `shifts`: one number for
each nest around it, the outermost first. A missing number is 0.

Runs are stretches of repetitions in which every table of a region is affine with a step that all stretches share. So an
index is `start + step * k` with a constant step: 0 is one number for all (a register), 1 lies side by side (a vector
load or store). For instance, pairs (i, j) with i < j are a run for each i. No table of indices is read.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.errors import ArgumentError
from codegen.records import dataclass

Places: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Affine:
    """Place `start + step * k` for repetition k; step 0 is one place for all."""

    start: int
    step: int
    count: int
    shifts: tuple[int, ...] = ()

    def places(self) -> Places:
        """Return all places in order, in the first round of the nests around.

        >>> Affine(3, 2, 4).places()
        array([3, 5, 7, 9])
        """
        return self.start + self.step * np.arange(self.count, dtype=np.int64)

    @property
    def fixed(self) -> bool:
        """Whether all repetitions have one place."""
        return self.step == 0

    @property
    def key(self) -> Hashable:
        """A key that is equal for equal places."""
        return self.start, self.step, self.count, self.shifts

    @property
    def first(self) -> int:
        """The place of the first repetition."""
        return self.start

    @property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest place."""
        last = self.start + self.step * max(self.count - 1, 0)
        return min(self.start, last), max(self.start, last)


@dataclass(frozen=True, eq=False)
class Indexed:
    """Place `index[k]` for repetition k."""

    index: Places
    shifts: tuple[int, ...] = ()
    fixed = False

    @property
    def count(self) -> int:
        return len(self.index)

    @cached_property
    def key(self) -> Hashable:
        """A key that is equal for equal places."""
        return self.count, blake2b(np.ascontiguousarray(self.index).tobytes()).digest(), self.shifts

    @cached_property
    def usual_step(self) -> int:
        """The most frequent step from repetition to repetition."""
        steps = np.diff(self.index)
        return usual(steps[:: max(1, len(steps) // SAMPLE)])

    @cached_property
    def breaks(self) -> Places:
        """The repetitions after another step than the usual one."""
        return np.nonzero(np.diff(self.index) != self.usual_step)[0] + 1

    def places(self) -> Places:
        return self.index

    @property
    def first(self) -> int:
        """The place of the first repetition."""
        return int(self.index[0])

    @cached_property
    def bounds(self) -> tuple[int, int]:
        """The lowest and the highest place."""
        return int(self.index.min()), int(self.index.max())


Table: TypeAlias = Affine | Indexed


def table(places: Places) -> Table:
    """Return the table of some places, affine if they are.

    >>> table(np.array([4, 2, 0])), table(np.array([1, 1, 0])).places()
    (Affine(start=4, step=-2, count=3, shifts=()), array([1, 1, 0]))
    """
    places = np.ascontiguousarray(places, dtype=np.int64)
    if not len(places):
        raise ArgumentError("a table without places", why="a body that is never run has no results")
    steps = np.diff(places)
    if len(steps) == 0 or (steps == steps[0]).all():
        return Affine(int(places[0]), int(steps[0]) if len(steps) else 0, len(places))
    return Indexed(places)


def distances(places: Table, known: dict[int, Hashable]) -> Hashable:
    """Return a key, equal for tables whose places are the same distances apart; `known` has keys of index arrays.

    >>> distances(Affine(5, 2, 3), {}) == distances(Affine(0, 2, 3), {}), distances(Affine(0, 1, 3), {})
    (True, (1, 3, ()))
    """
    if isinstance(places, Affine):
        return places.step, places.count, places.shifts
    key = id(places.index)
    if key not in known:
        known[key] = Indexed(np.ascontiguousarray(places.index - places.index[0])).key
    return known[key], places.shifts


def unique(places: Table) -> bool:
    """Return whether no place comes twice."""
    if isinstance(places, Affine):
        return places.step != 0 or places.count == 1
    return len(distinct(places.index)) == places.count


def distinct(places: Places) -> Places:
    """Return the different places in rising order, by sorting: `np.unique` hashes, 50 times slower on a range.

    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    if not len(places) or (places == places[0]).all():
        return places[:1]
    ascending: Places = np.sort(places, kind="stable")  # stretches that rise are merged, not sorted
    kept: Places = ascending[np.concatenate([[True], ascending[1:] != ascending[:-1]])]
    return kept


SHORTEST = 4.0  # repetitions in a run, on average; below it the tables are read instead
SAMPLE = 1000  # steps from which the usual one is determined


@dataclass(frozen=True, eq=False)
class Runs:
    """Lengths of the runs; the step of every table, and its starts in the runs (one number: the same in all)."""

    lengths: Places
    steps: tuple[int, ...]
    starts: tuple[Places, ...]

    def __len__(self) -> int:
        return len(self.lengths)


def runs(tables: Sequence[Table], count: int) -> Runs | None:
    """Return the runs of some tables over `count` repetitions; None where they are too short to be worth it.

    >>> from codegen.ir.tables import Indexed
    >>> i, j = np.triu_indices(9, 1)
    >>> pairs = runs([Indexed(i), Indexed(j)], 36)
    >>> pairs.lengths.tolist(), pairs.steps
    ([8, 7, 6, 5, 4, 3, 2, 1], (0, 1))
    """
    steps = [places.step if isinstance(places, Affine) else places.usual_step for places in tables]
    broken = np.zeros(count, dtype=bool)
    broken[:1] = True
    for places in tables:
        if not isinstance(places, Affine):
            broken[places.breaks] = True
    first = np.nonzero(broken)[0]
    if count < SHORTEST * len(first) and len(first) > 1:
        return None
    lengths = np.diff(np.append(first, count))
    starts = (t.start + t.step * first if isinstance(t, Affine) else t.index[first] for t in tables)
    return Runs(lengths, tuple(steps), tuple(starts))


def same_in_all(values: Places) -> bool:
    """Whether all numbers are one."""
    return bool(np.all(values == values[0]))


def usual(numbers: Places) -> int:
    """Return the most frequent number, the lowest of several; by sorting, faster than `np.unique`.

    >>> usual(np.array([3, 1, 3, 1, 2]))
    1
    """
    ascending = np.sort(numbers)
    begins = np.concatenate([[0], np.nonzero(ascending[1:] != ascending[:-1])[0] + 1, [len(ascending)]])
    return int(ascending[begins[np.argmax(begins[1:] - begins[:-1])]])
