"""Costs of layouts: what it takes to write entries of a matrix to their places, in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codegen.ir.tables import Places
from codegen.pricing.price import Use, Work, places_work
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.patterns import table_of


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
    uses: dict[int, list[Use]] = {}
    for number, draft in drafts.items():
        uses[number] = [("gather", table_of(places)) for _, _, places in draft.slots]
        uses[number] += [(result.kind, result.table) for _, result in draft.results]
    for entry, places, single in zip(entries, positions, alone, strict=True):
        uses[id(entry.draft)].append(("store" if single else "add", table_of(places)))
    return sum(Work(places_work(draft.count, uses[number])).price.call for number, draft in drafts.items())
