"""The layout of a matrix that loops write: packed in loop order, by rows or columns, or dense; what writing it costs.

Loops that store side by side are fastest. Other orders are written at once. Where that costs too much, only a triangle
of a symmetric matrix is packed in loop order first, and copied to its places.

Pairs (i, j) in the order of i write a triangle below the diagonal column by column, in that of j row by row: so
independent repetitions may be reordered until the places they store to rise. Entries that share their places, mostly
those of the diagonal, may lie at irregular places and spoil the steps of all others; they are added up apart, packed,
and copied.

Loop fission: a body with more sums than registers is cut into several loops. The first one stores what the summands are
made of, the others multiply and add up some of the sums each: a matrix of sums block by block, as in a matrix product.
Summands that share no factors are not stored: that would be a workspace for each sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.program import Output
from codegen.ir.readdress import each_region, readdressed
from codegen.ir.region import Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.sparsity import Format, SparsityPattern
from codegen.ir.tables import Affine, Places, Table, table
from codegen.loops.optimise.draft import Draft
from codegen.pricing.places import Use, places_work, without_gaps
from codegen.pricing.price import Work
from codegen.pricing.price_table import NANOSECONDS
from codegen.records import dataclass
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.patterns import (
    Arranged,
    arranged,
    each,
    is_uniform,
    keys_of,
    reordered,
    retabled,
    table_of,
)

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


FEWEST_SUMS = 192  # of a body that is cut; up to 171 sums, the cut ones took 1.1 to 1.6 times as long
MOST_SUMS = 32  # of each loop that it is cut into
SIDE = 5  # of a block: with ten numbers at hand it makes 25 products
FEWEST_REPETITIONS = 16
CHUNKS = range(1024, 2048)  # repetitions, of which some dozens of numbers each are kept in the second cache


def narrow(draft: RegionDraft, workspace: Callable[[int], int]) -> list[RegionDraft]:
    """Return the regions that a region is cut into; `workspace(size)` makes a buffer."""
    summed = [_is_sum(draft, node, result) for node, result in draft.results]
    sums = [item for item, is_sum in zip(draft.results, summed, strict=True) if is_sum]
    parts = _parts(draft, [node for node, _ in sums])
    if len(sums) < max(FEWEST_SUMS, 2 * len(parts)) or draft.count < FEWEST_REPETITIONS:
        return [draft]
    others = [item for item, is_sum in zip(draft.results, summed, strict=True) if not is_sum]
    first = RegionDraft(draft.build, draft.count, draft.slots, others, draft.origin)
    slots, everywhere = list(draft.slots), np.arange(draft.count)
    for part in parts:
        buffer = workspace(draft.count)
        first.result(part, buffer, everywhere, "store")
        slots.append((part, buffer, everywhere))
    return [
        first,
        *(RegionDraft(draft.build, draft.count, slots, block, draft.origin) for block in _blocks(draft, sums)),
    ]


def _is_sum(draft: RegionDraft, node: int, result: Result) -> bool:
    """Whether a result is a sum at one place of computed values."""
    return (
        result.table.fixed
        and result.kind == "add"
        and bool(draft.build.graph.operands[node])
        and node not in _leaves(draft)
    )


def _leaves(draft: RegionDraft) -> set[int]:
    return {slot[0] for slot in draft.slots}


def _parts(draft: RegionDraft, nodes: list[int]) -> list[int]:
    operands, leaves = draft.build.graph.operands, _leaves(draft)
    parts = dict.fromkeys(part for node in nodes for part in operands[node])
    return [part for part in parts if operands[part] and part not in leaves]


def _blocks(draft: RegionDraft, sums: list[tuple[int, Result]]) -> list[list[tuple[int, Result]]]:
    """Return the sums in blocks that share their operands."""
    operands = draft.build.graph.operands
    rank: dict[tuple[int, int], int] = {}
    for node, _ in sums:
        for side, part in enumerate((min(operands[node]), max(operands[node]))):
            rank.setdefault((side, part), len([key for key in rank if key[0] == side]))
    blocks: dict[tuple[int, ...], list[tuple[int, Result]]] = {}
    for node, result in sums:
        ends = enumerate((min(operands[node]), max(operands[node])))
        blocks.setdefault(tuple(rank[side, part] // SIDE for side, part in ends), []).append((node, result))
    return [block[k : k + MOST_SUMS] for block in blocks.values() for k in range(0, len(block), MOST_SUMS)]


def in_chunks(steps: Sequence[Step], sizes: range = CHUNKS) -> list[Step]:
    """Return regions that repeat equally often as a nest over chunks, which keeps what they hand on in the cache.

    The regions may be in nests. A repetition must not read what another one stores. A few stay as they are.

    >>> (copy,) = copies(0, np.arange(10_007), 1, np.arange(10_007))
    >>> [(type(step).__name__, step.count) for step in in_chunks([copy, Nest(3, (copy,))])]
    [('Nest', 5), ('Region', 2), ('Nest', 3)]
    """
    regions = [region for region, _ in regions_of(steps)]
    count = regions[0].count
    if (
        (isinstance(steps[-1], Region) and len(steps) < 2) or count < 2 * sizes.stop
        or any(region.count != count for region in regions)
        or not all(isinstance(use.table, Affine) for region in regions for use in region.uses)
    ):  # fmt: skip
        return list(steps)
    chunk = min(sizes, key=lambda size: count % size)
    rounds, rest = divmod(count, chunk)
    nest = Nest(rounds, each_region(steps, lambda region: _chunk(region, 0, chunk)))
    return [nest, *(each_region(steps, lambda region: _chunk(region, rounds * chunk, rest)) if rest else ())]


def _chunk(region: Region, begin: int, count: int) -> Region:
    """Return a part of the repetitions of a region; its begin moves with the rounds."""

    def part(buffer: int, table: Table) -> tuple[int, Table]:
        assert isinstance(table, Affine)
        shifts = table.shifts if begin else (table.step * count, *table.shifts)
        return buffer, Affine(table.start + table.step * begin, table.step, count, shifts)

    return replace(readdressed(region, part), count=count)


ORIGIN = "order"


def cost(source: Places, target: Places) -> float:
    """Return the nanoseconds of a copy; 0 if it changes nothing."""
    if np.array_equal(source, target):
        return 0.0
    is_dense = len(target) == int(target.max() - target.min()) + 1
    return len(source) * (NANOSECONDS["table"] + (0.0 if is_dense else NANOSECONDS["table store"]))


def copies(source_buffer: int, source: Places, target_buffer: int, target: Places) -> list[Region]:
    """Return the region of a copy, in the order of the target; none of nothing."""
    if not len(source):
        return []
    order = np.argsort(target, kind="stable")
    return [copy(Gather(source_buffer, table(source[order])), target_buffer, table(target[order]), origin=ORIGIN)]


Made = tuple[Output, int]  # an output and its buffer


class Assembly(Draft):
    """A rolled program under construction, over the inputs and regions of another; `pieces` become its steps."""

    steps: list[Step]

    def __init__(self, program: RolledProgram) -> None:
        super().__init__(program)
        self.pieces: list[Step | RegionDraft] = list(program.steps)

    def rolled(self, outputs: Sequence[Made]) -> RolledProgram:
        """Return the program, without parts that no output needs."""
        self.steps = []
        for step in self.pieces:
            if not isinstance(step, RegionDraft):
                self.steps.append(step)
            elif step.results:
                self.steps += in_chunks([part.region() for part in narrow(step, self.workspace)])
        return self.finish(self.arrays[0], outputs, "scattered matrix")

    def write(self, writing: Writing, buffer: int) -> None:
        """Let the entries go to a buffer; those that are added up apart are copied there."""
        apart = self.workspace(len(writing.apart)) if len(writing.apart) else buffer
        writing.carry_out(buffer, apart)
        self.pieces += copies(apart, np.arange(len(writing.apart)), buffer, writing.apart)

    def dense(self, entries: Sequence[WrittenEntry], width: int, shape: tuple[int, ...]) -> Made:
        """Let entries be a dense matrix, an array of some shape."""
        output = Output(shape, ())
        buffer = self.workspace(output.size)
        layout = arranged([(entry.rows, entry.columns) for entry in entries], (width, width))
        self.write(cheapest_writing(entries, _keys(entries, width), layout), buffer)
        return output, buffer

    def packed(self, entries: Sequence[WrittenEntry], shape: tuple[int, int], format: Format) -> Made:
        """Let entries be the packed data of a matrix."""
        layout = arranged([(entry.rows, entry.columns) for entry in entries], shape)
        order = _order(layout.rows, layout.columns, format)
        output = self.packed_output(layout.rows[order], layout.columns[order], shape, format)
        rank = _inverse(order)
        direct = [each(lambda position, _: rank[position], positions, positions) for positions in layout.positions]
        self.write(cheapest_writing(entries, direct, layout), output[1])
        return output

    def packed_output(self, rows: Places, columns: Places, shape: tuple[int, int], format: Format) -> Made:
        """Return an output of packed data."""
        pattern = SparsityPattern(rows, columns, shape, format)
        return Output((len(rows),), (), None, pattern), self.workspace(len(rows))

    def symmetric(
        self,
        lower: Sequence[WrittenEntry],
        whole: Sequence[WrittenEntry],
        shape: tuple[int, ...],
        format: Format | None,
    ) -> Made:
        """Write the entries of a lower triangle and their mirror images as a matrix, dense without a format.

        `whole` are the entries and their mirror images. If that is cheaper, loops write only the triangle, packed, and
        it is copied.
        """
        width = int(np.prod(shape[: len(shape) // 2], dtype=np.int64))
        if format == "regions":
            return self.packed(whole, (width, width), format)
        layout = arranged([(entry.rows, entry.columns) for entry in lower], (width, width))
        mirrored = np.nonzero(layout.rows != layout.columns)[0]
        source = np.concatenate([np.arange(len(layout.rows)), mirrored])
        rows = np.concatenate([layout.rows, layout.columns[mirrored]])
        columns = np.concatenate([layout.columns, layout.rows[mirrored]])
        order = _order(rows, columns, format or "csr")
        keys = rows * width + columns
        places = _inverse(order) if format else keys
        both = arranged([(entry.rows, entry.columns) for entry in whole], (width, width))
        at_once = cheapest_writing(whole, self.targets(whole, width, keys, places), both)
        in_loops = Writing(lower, layout.positions, layout.alone)
        output = Output(shape, ())
        packed_output = (
            self.packed_output(rows[order], columns[order], (width, width), format)
            if format
            else (output, self.workspace(output.size))
        )
        if at_once.cost <= in_loops.cost + cost(source, places):
            self.write(at_once, packed_output[1])
            return packed_output
        packed = self.workspace(len(layout.rows))
        self.write(in_loops, packed)
        self.pieces += copies(packed, source, packed_output[1], places)
        return packed_output

    def targets(self, entries: Sequence[WrittenEntry], width: int, keys: Places, places: Places) -> list[Places]:
        """Return where entries go when the matrix has `keys` at `places`."""
        order = np.argsort(keys, kind="stable")
        all_keys = _keys(entries, width)
        return [
            each(lambda key, _: places[order[np.searchsorted(keys, key, sorter=order)]], key, key) for key in all_keys
        ]


def _keys(entries: Sequence[WrittenEntry], width: int) -> list[Places]:
    return keys_of([(entry.rows, entry.columns) for entry in entries], width)


def _order(rows: Places, columns: Places, format: Format) -> Places:
    if format == "regions":
        return np.arange(len(rows))
    return np.lexsort((rows, columns) if format == "csc" else (columns, rows))


def _inverse(order: Places) -> Places:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank
