"""Checkpoints of nests: a chain with loops in its body is cut as one without them is.

What rounds hand on are the places of a window in a buffer (see `codegen.loops.optimise.contraction`). A nest of n
rounds becomes a nest of segments: each copies the numbers that it begins with from where they are kept, runs its rounds
in a buffer that all segments use one after the other, and keeps the numbers that the next one begins with. The rounds
left over, one at least, are a nest of their own. Going back, the rounds of each segment are run again (see `Reverse`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from codegen.ir.body_parts import copy
from codegen.ir.readdress import all_readdressed, moved, shift_at, shifts_to
from codegen.ir.region import Gather, Nest, Region, Step
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.contraction import Window, is_zeros, uses_of, visits, wide_zeros, window_of, zeros
from codegen.loops.optimise.draft import Draft
from symad.derivatives.loops.checkpoints import Checkpoints, segments_of_rounds

Cuts = dict[Nest, frozenset[int]]  # nests of segments, and the buffers that their rounds use one after the other
Known = tuple[Step, frozenset[int]]  # a step, and what its rounds use one after the other if it is a nest of segments


def cut_nests(
    draft: Draft, steps: Sequence[Step], checkpoints: Checkpoints, depth: int, first: int = 0
) -> tuple[list[Step], Cuts]:
    """Return steps, in so many nests, with long nests among them in segments.

    Only buffers from a number on may be cut. A nest that hands on nothing in a window stays as it is. To cut one is to
    write the steps around it anew, and not one for one: so what is known of a step stands beside it, under no number.
    """
    found: list[Known] = [(step, frozenset()) for step in steps]
    at = 0
    while at < len(found):
        nest, _ = found[at]
        segments = segments_of_rounds(checkpoints, nest.count, depth) if isinstance(nest, Nest) else 1
        windows = _windows(draft, [step for step, _ in found], at, depth, first) if segments > 1 else {}
        if isinstance(nest, Nest) and windows:
            cut = _Cut(draft, nest, segments, depth, windows)
            before = [(moved, known) for step, known in found[:at] for moved in cut.ahead(step)]
            after = [(moved, known) for step, known in found[at + 1 :] for moved in all_readdressed([step], cut.final)]
            found = [*before, *cut.parts, *after]
            at = len(before) + len(cut.parts)
        else:
            at += 1
    return [step for step, _ in found], {step: known for step, known in found if isinstance(step, Nest) and known}


def _windows(draft: Draft, steps: Sequence[Step], at: int, depth: int, first: int) -> dict[int, Window]:
    """Return the windows of the buffers of a nest, the step at a place of some steps in so many nests."""
    around: Sequence[Step] = steps
    for _ in range(depth):
        around = [Nest(1, tuple(around))]
    number = next(visit.number for visit in visits(around) if visit.step is steps[at])
    uses = {buffer: found for buffer, found in uses_of(around).items() if buffer >= first}
    kinds = {buffer: draft.buffers[buffer].kind for buffer in uses}
    windows = {buffer: window_of(found, number) for buffer, found in uses.items() if kinds[buffer] == "workspace"}
    return {buffer: window for buffer, window in windows.items() if window is not None}


class _Cut:
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
        made = Nest(segments, (*clears, *loads, inner, *saves))
        clears = [zeros(self.rest[b], draft.buffers[self.rest[b]].size) for b in windows if b in added and depth]
        loads = [self.load(b, self.rest[b], self.left, inside=False) for b in self.kept]
        last = Nest(self.left, all_readdressed(nest.steps, self.behind))
        rest: list[Step] = [*clears, *loads, last]
        self.parts: list[Known] = [(made, frozenset(self.scratch.values())), *((step, frozenset()) for step in rest)]

    def ahead(self, step: Step) -> list[Step]:
        """Return what a step before the nest becomes; zeros of all places are those that the first segment finds."""
        if not isinstance(step, Region) or not is_zeros(step):
            return list(all_readdressed([step], self.initial))
        rest, wide = wide_zeros(step, self.windows)
        first = [zeros(self.kept[buffer], self.windows[buffer].left) for buffer in wide if buffer in self.kept]
        return [*all_readdressed(rest, self.initial), *first]

    def size(self, window: Window, rounds: int) -> int:
        """Return how many places the windows of some rounds have."""
        return window.size + (rounds - 1) * abs(window.step)

    def first(self, window: Window, rounds: int) -> int:
        """Return where the window of the first of some rounds begins in the buffer of all of them."""
        return max(-window.step * (rounds - 1), 0)

    def initial(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where something is before the nest."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, table
        return self.kept[buffer], moved(table, -window.lowest - window.old.start)

    def within(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where something is in the rounds of a segment."""
        window, shifts = self.windows.get(buffer), shifts_to(table, self.depth + 1)
        before, step, after = shifts[: self.depth], shifts[self.depth], shifts[self.depth + 1 :]
        if window is None:
            return buffer, moved(table, shifts=(*before, step * self.length, step, *after))
        begin = self.first(window, self.length) - window.lowest
        return self.scratch[buffer], moved(table, begin, shifts=(*before, 0, step, *after))

    def behind(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where something is in the rounds left over."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, moved(table, shift_at(table, self.depth) * self.segments * self.length)
        return self.rest[buffer], moved(table, self.first(window, self.left) - window.lowest)

    def final(self, buffer: int, table: Table) -> tuple[int, Table]:
        """Return where something is after the nest."""
        window = self.windows.get(buffer)
        if window is None:
            return buffer, table
        begin = self.first(window, self.left) - window.lowest - window.step * self.segments * self.length
        return self.rest[buffer], moved(table, begin)

    def load(self, buffer: int, target: int, rounds: int, *, inside: bool) -> Region:
        """Return the copy of what a segment, or the rest, begins with."""
        window = self.windows[buffer]
        source = (
            Affine(0, 1, window.left, self.at(window))
            if inside
            else Affine(self.segments * window.left, 1, window.left)
        )
        begin = self.first(window, rounds) + window.old.start
        return copy(Gather(self.kept[buffer], source), target, Affine(begin, 1, window.left))

    def save(self, buffer: int) -> Region:
        """Return the copy of what the next segment begins with."""
        window = self.windows[buffer]
        begin = self.first(window, self.length) + window.old.start + self.length * window.step
        target = Affine(window.left, 1, window.left, self.at(window))
        return copy(Gather(self.scratch[buffer], Affine(begin, 1, window.left)), self.kept[buffer], target)

    def at(self, window: Window) -> tuple[int, ...]:
        """Return the shifts of what moves on with the segments."""
        return (*[0] * self.depth, window.left)
