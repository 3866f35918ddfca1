"""Runs: stretches of repetitions in which every table is affine with a step that all stretches share.

So an index is `start + step * k` with a constant step: 0 is one number for all (a register), 1 lies side by side (a
vector load or store). Pairs (i, j) with i < j, for one, are a run for each i. No table of indices is read at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codegen.ir.tables import Affine, Places, Table

SHORTEST = 4.0  # repetitions in a run, on average; below it the tables are read instead
SAMPLE = 1000  # steps among which the usual one is looked for


@dataclass(frozen=True, eq=False)
class Runs:
    """Lengths of the runs; for every table its step, and where it starts in each run (one number: the same in all)."""

    lengths: Places
    steps: tuple[int, ...]
    starts: tuple[Places, ...]

    def __len__(self) -> int:
        return len(self.lengths)


def runs(tables: Sequence[Table], count: int) -> Runs | None:
    """Return the runs of some tables over `count` repetitions; None where they are too short to be worth it.

    >>> from codegen.ir.tables import Indexed
    >>> i, j = np.triu_indices(9, 1)
    >>> found = runs([Indexed(i), Indexed(j)], 36)
    >>> found.lengths.tolist(), found.steps
    ([8, 7, 6, 5, 4, 3, 2, 1], (0, 1))
    """
    steps = [found.step if isinstance(found, Affine) else _usual_step(found.index) for found in tables]
    broken = np.zeros(max(count - 1, 0), dtype=bool)
    for found, step in zip(tables, steps, strict=True):
        if not isinstance(found, Affine):
            broken |= np.diff(found.index) != step
    first = np.concatenate([[0], np.nonzero(broken)[0] + 1])
    if count < SHORTEST * len(first) and len(first) > 1:
        return None
    lengths = np.diff(np.append(first, count))
    return Runs(lengths, tuple(steps), tuple(found.places()[first] for found in tables))


def _usual_step(places: Places) -> int:
    steps = np.diff(places)
    return usual(steps[:: max(1, len(steps) // SAMPLE)])


def usual(numbers: Places) -> int:
    """Return the number that comes most often, the lowest of several; by sorting, faster than `np.unique`.

    >>> usual(np.array([3, 1, 3, 1, 2]))
    1
    """
    found = np.sort(numbers)
    begins = np.concatenate([[0], np.nonzero(found[1:] != found[:-1])[0] + 1, [len(found)]])
    return int(found[begins[np.argmax(begins[1:] - begins[:-1])]])
