"""Dead code elimination: drop what no output needs, and read each place once in a repetition.

Adds to a buffer become stores where all places are different and nothing else writes: it is zero at the start.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeAlias

import numpy as np

from codegen.ir.body_parts import Wiring, slots_behind
from codegen.ir.readdress import all_places, each_region, key_of, shift_at
from codegen.ir.region import Nest, Region, Result, Step, regions_of
from codegen.ir.tables import Affine, Table, distinct

Rounds: TypeAlias = tuple[Table, tuple[int, ...]]  # a table, and the counts of the nests around
LOOKED_AT = 1 << 24  # places that are compared to find out whether they are different


def without_dead_code(steps: Sequence[Step], outputs: Sequence[int]) -> tuple[Step, ...]:
    """Return the steps that some buffers need, without dead code in them."""
    live, before = set(outputs), -1
    backward = [region for region, _ in regions_of(steps)][::-1]
    while len(live) > before:
        before = len(live)
        for region in backward:
            live.update(_buffers_read(region, live))
        if not any(isinstance(step, Nest) for step in steps):
            break  # only a nest reads in one round what it wrote in another
    kept = each_region(steps, lambda region: _reduced(region, *_needed(region, live)))
    stored = _stored(kept)
    return each_region(kept, lambda region: _with_stores(region, stored))


def _needed(region: Region, live: Collection[int]) -> tuple[list[Result], list[int]]:
    """Return the results of a region in live buffers, and the slots that they need."""
    results = [use for use in region.results if use.buffer in live]
    if not results:
        return [], []
    if region.matrix is not None:
        return list(region.results), list(range(len(region.gathers)))
    first = len(region.gathers)
    outputs = {use.output for use in results} | ({region.stop} if region.stop is not None else set())
    outputs |= {carry.output for carry in region.carries if carry.output in _lasts(results)}
    slots: list[int] = []
    while True:
        before, slots = slots, slots_behind(region.body, sorted(outputs))
        if before == slots:
            return results, slots
        outputs |= {region.carries[slot - first].output for slot in slots if slot >= first}


def _lasts(results: Sequence[Result]) -> set[int]:
    return {use.output for use in results if use.kind == "last"}


def _kept_carries(region: Region, results: Sequence[Result], slots: Sequence[int]) -> list[int]:
    """Return the carries to keep: those that are read, and for each "last" result one that has it."""
    first = len(region.gathers)
    kept = [number for number in range(len(region.carries)) if first + number in slots]
    for output in sorted(_lasts(results)):
        having = [k for k, carry in enumerate(region.carries) if carry.output == output and carry.lag == 1]
        if having and not set(having) & set(kept):
            kept.append(having[0])
    return sorted(kept)


def _buffers_read(region: Region, live: Collection[int]) -> list[int]:
    results, slots = _needed(region, live)
    first = len(region.gathers)
    initial = [use for k in _kept_carries(region, results, slots) for use in region.carries[k].initial]
    return [use.buffer for use in (*(region.gathers[slot] for slot in slots if slot < first), *initial)]


def _reduced(region: Region, results: Sequence[Result], slots: Sequence[int]) -> Region | None:
    """Return a region with these results, None if there are none; slots that read the same places become one."""
    if not results:
        return None
    if region.matrix is not None:
        return region
    first, first_of_row = len(region.gathers), dict[int, int]()
    output = [first_of_row.setdefault(output.rows[0], k) for k, output in enumerate(region.body.outputs)]
    carries = _kept_carries(region, results, slots)
    reads: dict[Hashable, int] = {}
    same: dict[int, int] = {}
    for slot in [*(slot for slot in slots if slot < first), *(first + k for k in carries)]:
        if slot < first:
            key: Hashable = key_of(region.gathers[slot])
        else:
            carry = region.carries[slot - first]
            key = output[carry.output], tuple(map(key_of, carry.initial))
        if reads.setdefault(key, slot) != slot:
            same[slot] = reads[key]
    if not same and _is_whole(region, results, slots, output):
        return region
    kept = [*reads.values()]
    gathers = {slot: region.gathers[slot] for slot in kept if slot < first}
    held = {slot: region.carries[slot - first] for slot in kept if slot >= first}
    wiring = Wiring(
        region.body, gathers, {slot: (output[carry.output], carry.initial) for slot, carry in held.items()},
        [(output[use.output], use) for use in results], same,
    )  # fmt: skip
    return wiring.region(region.count, region.origin, None if region.stop is None else output[region.stop])


def _is_whole(region: Region, results: Sequence[Result], slots: Sequence[int], output: Sequence[int]) -> bool:
    """Whether all slots and results of a region without carries are needed, and its outputs are those of results."""
    used = list(dict.fromkeys(output[use.output] for use in results))
    all_of = len(results) == len(region.results) and len(slots) == len(region.gathers) == len(region.body.inputs)
    return all_of and region.stop is None and used == list(range(len(region.body.outputs)))


def _stored(steps: Sequence[Step]) -> set[int]:
    """Return the buffers to each place of which one repetition at most adds."""
    places: dict[int, list[Rounds]] = {}
    others = set()
    for region, counts in regions_of(steps):
        for use in region.results:
            places.setdefault(use.buffer, []).append((use.table, counts))
            if use.kind != "add":
                others.add(use.buffer)
    return {buffer for buffer, tables in places.items() if buffer not in others and _different(tables)}


def _different(tables: Sequence[Rounds]) -> bool:
    """Return whether all places of some tables, in all rounds, are different."""
    for table, counts in tables:
        still = any(count > 1 and not shift_at(table, depth) for depth, count in enumerate(counts))
        if still or (table.fixed and table.count > 1):
            return False
    if all(isinstance(table, Affine) and not counts for table, counts in tables):
        bounds = sorted(table.bounds for table, _ in tables)
        if all(last < first for (_, last), (first, _) in pairwise(bounds)):
            return True
    if sum(table.count * prod(counts) for table, counts in tables) > LOOKED_AT:
        return False
    places = np.concatenate([all_places(table, counts) for table, counts in tables])
    return len(distinct(places)) == len(places)


def _with_stores(region: Region, stored: Collection[int]) -> Region:
    """Return a region that stores to some buffers instead of adding."""
    if not any(use.buffer in stored and use.kind != "store" for use in region.results):
        return region
    results = [replace(use, kind="store") if use.buffer in stored else use for use in region.results]
    return replace(region, results=tuple(results))
