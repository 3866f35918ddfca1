"""Where and in which order loops write the entries of a matrix, and what that costs.

Pairs (i, j) in the order of i write a triangle below the diagonal column by column, in that of j row by row: so
independent repetitions may be reordered until the places they store to rise. Entries that share their places, mostly
those of the diagonal, may lie at irregular places and spoil the steps of all others; they are added up apart, packed,
and copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from codegen.ir.tables import Places
from codegen.pricing.places import Use, places_work, without_gaps
from codegen.pricing.price import Work
from codegen.pricing.price_table import NANOSECONDS
from codegen.records import dataclass
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.patterns import Arranged, each, is_uniform, reordered, retabled, table_of

Orders: TypeAlias = dict[int, Places]  # of a draft, by its id, the order of its repetitions


@dataclass(frozen=True, eq=False)
class WrittenEntry:
    """A node of a region under construction, and its place in the matrix in every repetition."""

    draft: RegionDraft
    node: int
    rows: Places
    columns: Places


@dataclass(frozen=True, eq=False)
class Writing:
    """Entries that go to positions, stored where they are `alone`, else added.

    With `apart`, the others are added up in a buffer of their own, whose positions these are.
    """

    entries: Sequence[WrittenEntry]
    positions: Sequence[Places]
    alone: Sequence[bool]
    orders: Orders = field(default_factory=dict)
    apart: Places = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def drafts(self) -> list[RegionDraft]:
        """The different regions under construction."""
        return list({id(entry.draft): entry.draft for entry in self.entries}.values())

    def places(self) -> Iterable[tuple[WrittenEntry, Places, bool]]:
        """Return each entry, its positions in the order of the repetitions, and whether they are in the matrix."""
        for entry, positions, single in zip(self.entries, self.positions, self.alone, strict=True):
            places = reordered(positions, self.orders.get(id(entry.draft)))
            yield entry, places, single or not len(self.apart)

    @cached_property
    def cost(self) -> float:
        """What it costs, in nanoseconds."""
        uses: dict[int, list[Use]] = {}
        for draft in self.drafts:
            order = self.orders.get(id(draft))
            uses[id(draft)] = [("gather", table_of(reordered(places, order))) for _, _, places in draft.slots]
            uses[id(draft)] += [(use.kind, retabled(use.table, order)) for _, use in draft.results]
        written: dict[int, list[int]] = {number: [] for number in uses}
        for (entry, places, here), single in zip(self.places(), self.alone, strict=True):
            number = id(entry.draft)
            written[number] += [len(uses[number])] if here else []
            uses[number].append(("store" if single else "add", table_of(places)))
        total = NANOSECONDS["table store"] * len(self.apart)
        for draft in self.drafts:
            its = uses[id(draft)]
            packed = without_gaps(draft.count, its, written[id(draft)], alone=len(uses) == 1)
            total += Work(places_work(draft.count, its, packed)).price.call
        return total

    def carry_out(self, buffer: int, apart: int) -> None:
        """Let the entries be results in a buffer, and those that are added up apart in another one."""
        targets = list(self.places())
        for draft in self.drafts:
            if id(draft) in self.orders:
                draft.reorder(self.orders[id(draft)])
        for (entry, places, here), single in zip(targets, self.alone, strict=True):
            entry.draft.result(entry.node, buffer if here else apart, places, "store" if single else "add")


def cheapest_writing(entries: Sequence[WrittenEntry], positions: Sequence[Places], layout: Arranged) -> Writing:
    """Return how entries go to positions at the least cost; `layout` says which of them are alone."""
    ways = [Writing(entries, positions, layout.alone)]
    if any(layout.alone) and not all(layout.alone):
        numbers, apart = _apart(positions, layout)
        ways.append(Writing(entries, numbers, layout.alone, apart=apart))
    if orders := rising(entries, positions, layout.alone):
        ways += [replace(way, orders=orders) for way in ways]
    return min(ways, key=lambda way: way.cost)


def _apart(positions: Sequence[Places], layout: Arranged) -> tuple[list[Places], Places]:
    """Return positions with numbers for entries that are not alone, side by side as they are arranged, and theirs."""
    meeting = [k for k, single in enumerate(layout.alone) if not single]
    short = {k: slice(1) if is_uniform(layout.positions[k]) else slice(None) for k in meeting}
    known, first = np.unique(np.concatenate([layout.positions[k][short[k]] for k in meeting]), return_index=True)
    numbers = list(positions)
    for k in meeting:
        numbers[k] = each(lambda places, _: np.searchsorted(known, places), layout.positions[k], layout.positions[k])
    return numbers, np.concatenate([positions[k][short[k]] for k in meeting])[first]


def rising(entries: Sequence[WrittenEntry], positions: Sequence[Places], alone: Sequence[bool]) -> Orders:
    """Return orders of the repetitions in which the positions of the first stored entry rise.

    Regions whose positions rise already have none.
    """
    orders: Orders = {}
    for entry, places, single in zip(entries, positions, alone, strict=True):
        if single and id(entry.draft) not in orders:
            orders[id(entry.draft)] = np.argsort(places, kind="stable")
    return {draft: order for draft, order in orders.items() if (np.diff(order) != 1).any()}
