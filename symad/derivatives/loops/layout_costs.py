"""Costs of layouts: what it takes to write entries of a matrix to their places, estimated in nanoseconds.

The numbers were measured on loops with eight lanes. Only their proportions matter: they choose between layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.ir.affine_runs import runs
from codegen.ir.tables import Places, Table
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.patterns import table_of

SIDE_BY_SIDE = 0.06  # a vector store or add
REGISTER = 0.02  # an add to one place
APART = {True: 0.35, False: 0.8}  # lane by lane: a store, an add
READ = 1.0  # at a place that is read from a table
RUN = 5.0  # to begin a stretch of repetitions with affine tables


@dataclass(frozen=True, eq=False)
class Entry:
    """A node of a region in the making, and its place in the matrix in every repetition."""

    draft: RegionDraft
    node: int
    rows: Places
    columns: Places


def writing(entries: Sequence[Entry], positions: Sequence[Places], alone: Sequence[bool]) -> float:
    """Return what it costs to write entries to positions; `alone` says for each whether it is stored or added."""
    drafts = {id(entry.draft): entry.draft for entry in entries}
    tables: dict[int, list[Table]] = {}
    singles: dict[int, list[bool]] = {number: [] for number in drafts}
    for number, draft in drafts.items():
        tables[number] = [table_of(places) for _, _, places in draft.slots] + [
            result.table for _, result in draft.results
        ]
    for entry, places, single in zip(entries, positions, alone, strict=True):
        tables[id(entry.draft)].append(table_of(places))
        singles[id(entry.draft)].append(single)
    return sum(_region(draft.count, tables[number], singles[number]) for number, draft in drafts.items())


def _region(count: int, tables: Sequence[Table], alone: Sequence[bool]) -> float:
    found = runs(tables, count)
    if found is None:
        return READ * count * len(tables)
    steps = found.steps[len(tables) - len(alone) :]
    return RUN * len(found) + count * sum(_step(step, single) for step, single in zip(steps, alone, strict=True))


def _step(step: int, single: bool) -> float:
    if abs(step) <= 1:
        return SIDE_BY_SIDE if step else REGISTER
    return APART[single]
