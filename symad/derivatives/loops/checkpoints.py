"""Checkpoints: which values of a chain reverse mode stores, and which it computes again.

"all" stores the carries of every repetition: 8 bytes for each number that the reverse pass needs. "sqrt" cuts a chain
of n repetitions into about sqrt(n) segments and stores the carries at their beginnings; the reverse pass runs each
segment again, in a workspace that all segments share: about 3 sqrt(n) numbers for each carry, and one more run forward.
"none" cuts segments into segments, sixteen at a time, down to a few repetitions: about 34 numbers for each carry at
each of log16(n) levels, and one more run forward for each level. Nests are cut like chains, unless what rounds hand on
is read later. A table of places that is not affine is read, or written, through a workspace of n numbers.

In the reverse pass each segment has places of its own. "sqrt" cuts them again; "none" does not, because sixteen are
few, so a reverse mode of a reverse mode stores as much as "all".

Rounds hand on the places of a window in a buffer (see `codegen.loops.optimise.contraction`). A nest of n rounds becomes
a nest of segments: each loads the numbers that it begins with, runs its rounds in a buffer that all segments share, and
saves the numbers that the next one begins with. The rounds left over, at least one, are a nest of their own. In the
reverse pass the rounds of each segment are run again (see `Reverse`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isqrt
from typing import Literal, TypeAlias, get_args

from codegen.ir.body_parts import Wiring, copy, identities
from codegen.ir.readdress import all_readdressed, moved, readdressed, repetitions, shift_at, shifts_to
from codegen.ir.region import Carry, Gather, Nest, Region, Result, Step
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.contraction import Window, is_zeros, uses_of, visits, wide_zeros, window_of, zeros
from codegen.loops.optimise.draft import Draft
from symad.errors import ArgumentError

Checkpoints: TypeAlias = Literal["all", "sqrt", "none"]

FEW = 32  # repetitions that are not cut any more
SIXTEEN = 16  # segments of a level of "none": with eight, a long chain takes 1.5 times as long, for 3/4 of the memory


def check_checkpoints(checkpoints: str) -> None:
    """Raise ArgumentError for an unknown policy."""
    if checkpoints not in get_args(Checkpoints):
        raise ArgumentError(f"checkpoints={checkpoints!r}", do='use "all", "sqrt" or "none"')


def segments_of(checkpoints: Checkpoints, region: Region, depth: int) -> int:
    """Return the number of segments of a chain inside `depth` nests; 1 where it is not cut."""
    return 1 if region.parallel or region.stop is not None else segments_of_rounds(checkpoints, region.count, depth)


def segments_of_rounds(checkpoints: Checkpoints, count: int, depth: int) -> int:
    """Return the number of segments of some repetitions or rounds.

    >>> [segments_of_rounds(policy, 10_000, 0) for policy in get_args(Checkpoints)]
    [1, 99, 16]
    """
    if checkpoints == "sqrt":
        return 1 if depth else max(isqrt(count - 1), 1)
    return SIXTEEN if checkpoints == "none" and count > FEW else 1


def segmented(draft: Draft, region: Region, segments: int, depth: int) -> list[Step]:
    """Return a chain as a nest of equal segments and a rest of at least 1 repetition; its carries are of lag 1.

    The carries at the beginning of each segment are kept in buffers, each place of which is read once.
    """
    return _Cut(draft, region, segments, depth).steps() if segments > 1 else [region]


class _Cut:
    def __init__(self, draft: Draft, region: Region, segments: int, depth: int) -> None:
        self.draft, self.region, self.segments, self.depth = draft, region, segments, depth
        self.length = (region.count - 1) // segments
        self.before: list[Step] = []
        self.after: list[Step] = []
        self.kept = [self.buffer(segments + 1) for _ in region.carries]
        gathers = tuple(self.read(use) for use in region.gathers)
        results = tuple(self.written(use) for use in region.results if use.kind != "last")
        self.affine = replace(region, gathers=gathers, results=results, carries=())

    def steps(self) -> list[Step]:
        region, count = self.region, self.segments * self.length
        states = [Result(0, kept, self.at(1), "last") for kept in self.kept]
        lasts = [replace(use, output=carry.output) for use, carry in zip(states, region.carries, strict=True)]
        piece = self.piece(0, self.length, 0, lasts)
        rest = self.piece(
            count, region.count - count, self.segments, [use for use in region.results if use.kind == "last"]
        )
        return [self.start(), *self.before, Nest(self.segments, (piece,)), rest, *self.after]

    def start(self) -> Region:
        """Return the region that keeps the initial values."""
        initial = {k: carry.initial[0] for k, carry in enumerate(self.region.carries)}
        kept = [(k, Result(0, buffer, Affine(0, 0, 1), "store")) for k, buffer in enumerate(self.kept)]
        return Wiring(identities(len(self.kept)), initial, {}, kept).region(1, self.region.origin)

    def piece(self, first: int, count: int, state: int, lasts: Sequence[Result]) -> Region:
        """Return some repetitions from a kept state: those of a round of the nest if they begin with the first."""
        inside = first == 0
        carries = [
            Carry(carry.output, (Gather(kept, self.at(state) if inside else Affine(state, 0, 1)),))
            for carry, kept in zip(self.region.carries, self.kept, strict=True)
        ]

        def part(buffer: int, table: Table) -> tuple[int, Table]:
            assert isinstance(table, Affine)
            return buffer, repetitions(table, first, count, self.depth if inside else None)

        region = readdressed(self.affine, part)
        return replace(region, count=count, carries=tuple(carries), results=(*region.results, *lasts))

    def at(self, place: int) -> Affine:
        """Return a place that moves by one with each round."""
        return Affine(place, 0, 1, (*[0] * self.depth, 1))

    def buffer(self, size: int) -> int:
        buffer = self.draft.workspace(size)
        self.draft.read_once.add(buffer)
        return buffer

    def read(self, use: Gather) -> Gather:
        """Return a gather with an affine table: of a filled workspace, if it has none."""
        if isinstance(use.table, Affine):
            return use
        apart = self.apart()
        self.before.append(copy(use, apart.buffer, apart.table, origin=self.region.origin))
        return apart

    def written(self, use: Result) -> Result:
        """Return a result with an affine table: to a workspace that is copied from afterwards, if it has none."""
        if isinstance(use.table, Affine):
            return use
        apart = self.apart()
        self.after.append(copy(apart, use.buffer, use.table, use.kind, self.region.origin))
        return Result(use.output, apart.buffer, apart.table, "store")

    def apart(self) -> Gather:
        return Gather(self.buffer(self.region.count), Affine(0, 1, self.region.count))


Cuts = dict[Nest, frozenset[int]]  # nests of segments, and the buffers that their rounds use one after the other
Known = tuple[Step, frozenset[int]]  # a step, and the buffers that its rounds share if it is a nest of segments


def cut_nests(
    draft: Draft, steps: Sequence[Step], checkpoints: Checkpoints, depth: int, first: int = 0
) -> tuple[list[Step], Cuts]:
    """Return steps, inside `depth` nests, with long nests among them in segments.

    Only buffers from number `first` on may be cut. A nest that hands on nothing in a window stays as it is. Cutting one
    rewrites the steps around it, so facts about a step stand beside it, and not under its number.
    """
    pairs: list[Known] = [(step, frozenset()) for step in steps]
    at = 0
    while at < len(pairs):
        nest, _ = pairs[at]
        segments = segments_of_rounds(checkpoints, nest.count, depth) if isinstance(nest, Nest) else 1
        windows = _windows(draft, [step for step, _ in pairs], at, depth, first) if segments > 1 else {}
        if isinstance(nest, Nest) and windows:
            cut = _CutNest(draft, nest, segments, depth, windows)
            before = [(moved, known) for step, known in pairs[:at] for moved in cut.ahead(step)]
            after = [(moved, known) for step, known in pairs[at + 1 :] for moved in all_readdressed([step], cut.final)]
            pairs = [*before, *cut.parts, *after]
            at = len(before) + len(cut.parts)
        else:
            at += 1
    return [step for step, _ in pairs], {step: known for step, known in pairs if isinstance(step, Nest) and known}


def _windows(draft: Draft, steps: Sequence[Step], at: int, depth: int, first: int) -> dict[int, Window]:
    """Return the windows of the buffers of a nest: step `at` of the steps, inside `depth` nests."""
    around: Sequence[Step] = steps
    for _ in range(depth):
        around = [Nest(1, tuple(around))]
    number = next(visit.number for visit in visits(around) if visit.step is steps[at])
    uses = {buffer: own_uses for buffer, own_uses in uses_of(around).items() if buffer >= first}
    kinds = {buffer: draft.buffers[buffer].kind for buffer in uses}
    windows = {buffer: window_of(own_uses, number) for buffer, own_uses in uses.items() if kinds[buffer] == "workspace"}
    return {buffer: window for buffer, window in windows.items() if window is not None}


class _CutNest:
    """One nest in segments: `parts` are the nest of them, and the rest."""

    def __init__(self, draft: Draft, nest: Nest, segments: int, depth: int, windows: Mapping[int, Window]) -> None:
        self.draft, self.nest, self.segments, self.depth, self.windows = draft, nest, segments, depth, windows
        self.length = (nest.count - 1) // segments
        self.left = nest.count - segments * self.length
        self.kept = {b: draft.workspace((segments + 1) * w.left) for b, w in windows.items() if w.left}
        self.scratch = {b: draft.workspace(self.size(w, self.length)) for b, w in windows.items()}
        self.rest = {b: draft.workspace(self.size(w, self.left)) for b, w in windows.items()}
        added = {b for b, uses in uses_of([nest]).items() if any(use.kind == "add" for use in uses)}
        inner = Nest(self.length, all_readdressed(nest.steps, self.within))
        clears = [zeros(self.scratch[b], draft.buffers[self.scratch[b]].size) for b in windows if b in added]
        loads = [self.load(b, self.scratch[b], self.length, inside=True) for b in self.kept]
        saves = [self.save(b) for b in self.kept]
        outer = Nest(segments, (*clears, *loads, inner, *saves))
        clears = [zeros(self.rest[b], draft.buffers[self.rest[b]].size) for b in windows if b in added and depth]
        loads = [self.load(b, self.rest[b], self.left, inside=False) for b in self.kept]
        last = Nest(self.left, all_readdressed(nest.steps, self.behind))
        rest: list[Step] = [*clears, *loads, last]
        self.parts: list[Known] = [(outer, frozenset(self.scratch.values())), *((step, frozenset()) for step in rest)]

    def ahead(self, step: Step) -> list[Step]:
        """Return the replacement of a step before the nest; zeros of all places become those of the first segment."""
        if not isinstance(step, Region) or not is_zeros(step):
            return list(all_readdressed([step], self.initial))
        rest, wide = wide_zeros(step, self.windows)
        first = [zeros(self.kept[buffer], self.windows[buffer].left) for buffer in wide if buffer in self.kept]
        return [*all_readdressed(rest, self.initial), *first]

    def size(self, window: Window, rounds: int) -> int:
        """Return how many places the windows of some rounds have."""
        return window.size + (rounds - 1) * abs(window.step)

    def first(self, window: Window, rounds: int) -> int:
        """Return where the window of the first of some rounds begins in the whole buffer."""
        return max(-window.step * (rounds - 1), 0)

    def initial(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return the place of a table before the nest."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, table
        return self.kept[buffer], moved(table, -window.lowest - window.old.start)

    def within(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return the place of a table in the rounds of a segment."""
        window, shifts = self.windows.get(buffer), shifts_to(table, self.depth + 1)
        before, step, after = shifts[: self.depth], shifts[self.depth], shifts[self.depth + 1 :]
        if window is None:
            return buffer, moved(table, shifts=(*before, step * self.length, step, *after))
        begin = self.first(window, self.length) - window.lowest
        return self.scratch[buffer], moved(table, begin, shifts=(*before, 0, step, *after))

    def behind(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return the place of a table in the rounds left over."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, moved(table, shift_at(table, self.depth) * self.segments * self.length)
        return self.rest[buffer], moved(table, self.first(window, self.left) - window.lowest)

    def final(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return the place of a table after the nest."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, table
        begin = self.first(window, self.left) - window.lowest - window.step * self.segments * self.length
        return self.rest[buffer], moved(table, begin)

    def load(self, buffer: int, target: int, rounds: int, *, inside: bool) -> Region:
        """Return the copy of the numbers that a segment, or the rest, begins with."""
        window = self.windows[buffer]
        source = (
            Affine(0, 1, window.left, self.at(window))
            if inside
            else Affine(self.segments * window.left, 1, window.left)
        )
        begin = self.first(window, rounds) + window.old.start
        return copy(Gather(self.kept[buffer], source), target, Affine(begin, 1, window.left))

    def save(self, buffer: int) -> Region:
        """Return the copy of the numbers that the next segment begins with."""
        window = self.windows[buffer]
        begin = self.first(window, self.length) + window.old.start + self.length * window.step
        target = Affine(window.left, 1, window.left, self.at(window))
        return copy(Gather(self.scratch[buffer], Affine(begin, 1, window.left)), self.kept[buffer], target)

    def at(self, window: Window) -> tuple[int, ...]:
        """Return the shifts of places that move with the segments."""
        return (*[0] * self.depth, window.left)
