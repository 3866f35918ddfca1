"""Checkpoints: what is kept of a chain for its way back, and what is run again.

"all" keeps the carries of every repetition: 8 bytes for each number that the way back needs of them.
"sqrt" cuts a chain of n repetitions into about sqrt(n) segments and keeps the carries at their beginnings; going back,
each segment is run again, and its repetitions are kept in a workspace that the next segment uses again. That is about
3 sqrt(n) numbers for each carry, and one more run forward.
"none" cuts segments into segments, sixteen at a time, down to a few repetitions: about 34 numbers for each carry at
each of log16(n) levels, and one more run forward for each level.
Loops in nests are run again in every round by both; nests are cut as chains are (see `checkpoints_nests`), where what
rounds hand on is not read by anything else later. A table of places that is not affine is read, or written, through a
workspace of n numbers.

Going back through what was cut, each segment gets places of its own. They are cut again by "sqrt"; by "none" they are
not, sixteen of them being few, so that a reverse mode of a reverse mode keeps as much as by "all".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt
from typing import Literal, TypeAlias, get_args

from codegen.ir.body_parts import Wiring, copy, identities
from codegen.ir.readdress import readdressed, repetitions
from codegen.ir.region import Carry, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.draft import Draft
from symad.errors import ArgumentError

Checkpoints: TypeAlias = Literal["all", "sqrt", "none"]

FEW = 32  # repetitions that are not cut any more
SIXTEEN = 16  # segments of a level of "none": with eight, a long chain takes 1.5 times as long, for 3/4 of the memory


def memory(program: RolledProgram) -> int:
    """Return the bytes of the workspace of a program: of all its buffers but constants, inputs and outputs.

    >>> from codegen.ir.region import Buffer
    >>> memory(RolledProgram((), (), (Buffer("workspace", 10),), ()))
    80
    """
    return 8 * sum(buffer.size for buffer in program.buffers if buffer.kind == "workspace")


def check_checkpoints(checkpoints: str) -> None:
    """Raise ArgumentError for a policy that there is not."""
    if checkpoints not in get_args(Checkpoints):
        raise ArgumentError(f"checkpoints={checkpoints!r}", do='use "all", "sqrt" or "none"')


def segments_of(checkpoints: Checkpoints, region: Region, depth: int) -> int:
    """Return into how many segments a chain is cut, which stands in so many nests; 1 for not at all."""
    return 1 if region.parallel or region.stop is not None else segments_of_rounds(checkpoints, region.count, depth)


def segments_of_rounds(checkpoints: Checkpoints, count: int, depth: int) -> int:
    """Return into how many segments so many repetitions or rounds are cut.

    >>> [segments_of_rounds(policy, 10_000, 0) for policy in get_args(Checkpoints)]
    [1, 99, 16]
    """
    if checkpoints == "sqrt":
        return 1 if depth else max(isqrt(count - 1), 1)
    return SIXTEEN if checkpoints == "none" and count > FEW else 1


def segmented(draft: Draft, region: Region, segments: int, depth: int) -> list[Step]:
    """Return a chain as a nest of equal segments and what is left, 1 repetition at least; its carries are of lag 1.

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

        found = readdressed(self.affine, part)
        return replace(found, count=count, carries=tuple(carries), results=(*found.results, *lasts))

    def at(self, place: int) -> Affine:
        """Return a place that moves on by one with each round."""
        return Affine(place, 0, 1, (*[0] * self.depth, 1))

    def buffer(self, size: int) -> int:
        made = self.draft.workspace(size)
        self.draft.read_once.add(made)
        return made

    def read(self, use: Gather) -> Gather:
        """Return a gather with an affine table: if it has none, of a workspace that is filled before."""
        if isinstance(use.table, Affine):
            return use
        apart = self.apart()
        self.before.append(copy(use, apart.buffer, apart.table, origin=self.region.origin))
        return apart

    def written(self, use: Result) -> Result:
        """Return a result with an affine table: if it has none, to a workspace that is copied from afterwards."""
        if isinstance(use.table, Affine):
            return use
        apart = self.apart()
        self.after.append(copy(apart, use.buffer, use.table, use.kind, self.region.origin))
        return Result(use.output, apart.buffer, apart.table, "store")

    def apart(self) -> Gather:
        return Gather(self.buffer(self.region.count), Affine(0, 1, self.region.count))
