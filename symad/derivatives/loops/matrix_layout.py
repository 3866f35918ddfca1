"""Layout: a matrix that loops write, packed in the order of the loops, by rows or columns, or dense.

Loops that store side by side are fastest. Other orders are written at once where that costs little, else the numbers
are packed in the order of the loops first, and copied to their places; of a symmetric matrix only a triangle is packed.

The diagonal and the other entries of a band matrix go to every second or third place: such stretches are copied side
by side in one loop, which reads no table. Any other order is a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codegen.ir.body_parts import copy, identities
from codegen.ir.program import Output
from codegen.ir.region import Gather, Region, Result, RolledProgram, Step
from codegen.ir.sparsity import Format, SparsityPattern
from codegen.ir.tables import Affine, Places, runs, table
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price import Use, Work, places_work
from codegen.pricing.price_table import NANOSECONDS
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.layout_wide import in_chunks, narrow
from symad.derivatives.loops.patterns import arranged, each, keys_of, met_alone, table_of

MOST_STRETCHES = 8
WIDEST = 8  # the step of places that one loop fills
ORIGIN = "order"


@dataclass(frozen=True)
class Stretch:
    """Numbers from place `source` on, that go to `target`, `target + step`..."""

    source: int
    target: int
    step: int
    count: int


def stretches(source: Places, target: Places) -> list[Stretch] | None:
    """Return the few stretches that a copy consists of; None if there are more, or their steps are wide.

    >>> stretches(np.arange(5), np.array([0, 2, 4, 1, 3]))
    [Stretch(source=0, target=0, step=2, count=3), Stretch(source=3, target=1, step=2, count=2)]
    """
    found: list[Stretch] = []
    begin, steps, side_by_side = 0, np.diff(target), np.diff(source) == 1
    while begin < len(source):
        if len(found) == MOST_STRETCHES:
            return None
        step = int(steps[begin]) if begin < len(steps) and side_by_side[begin] else 1
        ends = np.nonzero((steps[begin:] != step) | ~side_by_side[begin:])[0]
        end = begin + 1 + int(ends[0]) if len(ends) else len(source)
        if not 1 <= step <= WIDEST:
            return None
        found.append(Stretch(int(source[begin]), int(target[begin]), step, end - begin))
        begin = end
    return found


def cost(source: Places, target: Places) -> float:
    """Return what a copy costs, in nanoseconds; nothing if it changes nothing."""
    if np.array_equal(source, target):
        return 0.0
    if stretches(source, target) is not None:
        return NANOSECONDS["stride store"] * len(source)
    anywhere = 0.0 if len(target) == _extent(target) else NANOSECONDS["table store"]
    return len(source) * (NANOSECONDS["table"] + anywhere)


def _extent(target: Places) -> int:
    return int(target.max() - target.min()) + 1 if len(target) else 0


def copies(source_buffer: int, source: Places, target_buffer: int, target: Places) -> list[Region]:
    """Return the regions of a copy."""
    if not len(source):
        return []
    found = stretches(source, target)
    if found is None:
        order = np.argsort(target, kind="stable")
        return [copy(Gather(source_buffer, table(source[order])), target_buffer, table(target[order]), origin=ORIGIN)]
    regions = []
    while found:
        step = found[0].step
        together = [stretch for stretch in found if stretch.step == step][:step]
        count = min(stretch.count for stretch in together)
        regions.append(_together(source_buffer, target_buffer, together, count))
        rest = [_shortened(stretch, count) for stretch in together if stretch.count > count]
        found = rest + [stretch for stretch in found if stretch not in together]
    return regions


def _together(source: int, target: int, parts: Sequence[Stretch], count: int) -> Region:
    gathers = tuple(Gather(source, Affine(part.source, 1, count)) for part in parts)
    results = (Result(k, target, Affine(part.target, part.step, count), "store") for k, part in enumerate(parts))
    return Region(identities(len(parts)), count, gathers, tuple(results), origin=ORIGIN)


def _shortened(stretch: Stretch, count: int) -> Stretch:
    return Stretch(stretch.source + count, stretch.target + count * stretch.step, stretch.step, stretch.count - count)


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
    written: dict[int, list[int]] = {number: [] for number in drafts}
    for number, draft in drafts.items():
        uses[number] = [("gather", table_of(places)) for _, _, places in draft.slots]
        uses[number] += [(result.kind, result.table) for _, result in draft.results]
    for entry, places, single in zip(entries, positions, alone, strict=True):
        written[id(entry.draft)].append(len(uses[id(entry.draft)]))
        uses[id(entry.draft)].append(("store" if single else "add", table_of(places)))
    total = 0.0
    for number, draft in drafts.items():
        packed = without_gaps(draft.count, uses[number], written[number], alone=len(drafts) == 1)
        total += Work(places_work(draft.count, uses[number], packed)).price.call
    return total


def without_gaps(count: int, uses: Sequence[Use], written: Sequence[int], *, alone: bool = True) -> list[int]:
    """Return those of the uses that write to one matrix in steps between which they leave out nothing.

    They are brought side by side in registers, and stored as whole vectors (`codegen.loops.emit`); not so sums, to
    which others are added elsewhere when this loop is not alone.

    >>> uses = [("store", Affine(1, 3, 9)), ("add", Affine(2, 3, 9)), ("add", Affine(3, 3, 9))]
    >>> without_gaps(9, uses, range(3)), without_gaps(9, uses, range(2)), without_gaps(9, uses, range(3), alone=False)
    ([0, 1, 2], [], [])
    """
    found = runs([each for _, each in uses], count)
    if found is None:
        return []
    families: dict[int, list[int]] = {}
    for number in written:
        if alone or uses[number][0] == "store":
            families.setdefault(found.steps[number], []).append(number)
    full = [
        family
        for step, family in families.items()
        if 1 < step <= WIDEST and len({int(found.starts[number][0]) % step for number in family}) == step
    ]
    return [number for family in full for number in family]


Made = tuple[Output, int]  # an output and its buffer


class Assembly(Draft):
    """A rolled program in the making, over the inputs and regions of another; `pieces` become its steps."""

    steps: list[Step]

    def __init__(self, program: RolledProgram) -> None:
        super().__init__(program)
        self.pieces: list[Step | RegionDraft] = list(program.steps)

    def rolled(self, outputs: Sequence[Made]) -> RolledProgram:
        """Return the program: what the outputs do not need is left out."""
        self.steps = []
        for step in self.pieces:
            if not isinstance(step, RegionDraft):
                self.steps.append(step)
            elif step.results:
                self.steps += in_chunks([part.region() for part in narrow(step, self.workspace)])
        return self.finish(self.arrays[0], outputs, "scattered matrix")

    def dense(self, entries: Sequence[Entry], width: int, shape: tuple[int, ...]) -> Made:
        """Let entries be a dense matrix, an array of some shape."""
        output = Output(shape, ())
        buffer = self.workspace(output.size)
        keys = _keys(entries, width)
        _write(entries, buffer, keys, met_alone(keys))
        return output, buffer

    def packed(self, entries: Sequence[Entry], shape: tuple[int, int], format: Format) -> Made:
        """Let entries be the packed data of a matrix."""
        found = arranged([(entry.rows, entry.columns) for entry in entries], shape)
        order = _order(found.rows, found.columns, format)
        made = self.packed_output(found.rows[order], found.columns[order], shape, format)
        rank = _inverse(order)
        direct = [each(lambda position, _: rank[position], positions, positions) for positions in found.positions]
        here = np.arange(len(order))
        if writing(entries, direct, found.alone) <= writing(entries, found.positions, found.alone) + cost(here, rank):
            _write(entries, made[1], direct, found.alone)
        else:
            packed = self.workspace(len(order))
            _write(entries, packed, found.positions, found.alone)
            self.pieces += copies(packed, here, made[1], rank)
        return made

    def packed_output(self, rows: Places, columns: Places, shape: tuple[int, int], format: Format) -> Made:
        """Return an output of packed data."""
        pattern = SparsityPattern(rows, columns, shape, format)
        return Output((len(rows),), (), None, pattern), self.workspace(len(rows))

    def symmetric(
        self, lower: Sequence[Entry], whole: Sequence[Entry], shape: tuple[int, ...], format: Format | None
    ) -> Made:
        """Let the entries of a lower triangle and their mirror images be a matrix, dense without a format.

        `whole` are the same entries with their mirror images among them. The loops write the triangle, packed, and it
        is copied, if that is cheaper than to write the whole.
        """
        width = int(np.prod(shape[: len(shape) // 2], dtype=np.int64))
        found = arranged([(entry.rows, entry.columns) for entry in lower], (width, width))
        mirrored = np.nonzero(found.rows != found.columns)[0]
        source = np.concatenate([np.arange(len(found.rows)), mirrored])
        rows = np.concatenate([found.rows, found.columns[mirrored]])
        columns = np.concatenate([found.columns, found.rows[mirrored]])
        order = _order(rows, columns, format or "csr")
        keys = rows * width + columns
        places = _inverse(order) if format else keys
        at_once = writing(whole, self.targets(whole, width, keys, places), met_alone(_keys(whole, width)))
        if format == "regions" or at_once <= writing(lower, found.positions, found.alone) + cost(source, places):
            return self.packed(whole, (width, width), format) if format else self.dense(whole, width, shape)
        packed = self.workspace(len(found.rows))
        _write(lower, packed, found.positions, found.alone)
        output = Output(shape, ())
        made = (
            self.packed_output(rows[order], columns[order], (width, width), format)
            if format
            else (output, self.workspace(output.size))
        )
        self.pieces += copies(packed, source, made[1], places)
        return made

    def targets(self, entries: Sequence[Entry], width: int, keys: Places, places: Places) -> list[Places]:
        """Return where entries go when the matrix has `keys` at `places`."""
        order = np.argsort(keys, kind="stable")
        found = _keys(entries, width)
        return [each(lambda key, _: places[order[np.searchsorted(keys, key, sorter=order)]], key, key) for key in found]


def _keys(entries: Sequence[Entry], width: int) -> list[Places]:
    return keys_of([(entry.rows, entry.columns) for entry in entries], width)


def _order(rows: Places, columns: Places, format: Format) -> Places:
    if format == "regions":
        return np.arange(len(rows))
    return np.lexsort((rows, columns) if format == "csc" else (columns, rows))


def _inverse(order: Places) -> Places:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def _write(entries: Sequence[Entry], buffer: int, positions: Sequence[Places], alone: Sequence[bool]) -> None:
    for entry, places, single in zip(entries, positions, alone, strict=True):
        entry.draft.result(entry.node, buffer, places, "store" if single else "add")
