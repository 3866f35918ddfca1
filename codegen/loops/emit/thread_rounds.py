"""Run the rounds of a nest on several threads. The results keep their bits.

A product of matrices that is cut into chunks is a nest: each round stores some columns in workspaces, and adds their
products to the results. Its loops are too short to be cut. But where no round reads the workspaces of another one, and
each adds to a place of the results once, threads take rounds: each thread has its own workspaces, and each round
adds to a copy of the results. Then the copies are added to the results in the order of the rounds, as one thread does.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np

from codegen.emission.emit import MEMORY, Emitted
from codegen.emission.schedule import LINE
from codegen.functions.routine_values import CLEARED, COPIED
from codegen.functions.routines import MOVES
from codegen.functions.symbols import Symbol, symbol
from codegen.functions.workers import PARALLEL
from codegen.ir.region import Nest, Region, Result, RolledProgram, regions_of
from codegen.ir.tables import Places, distinct
from codegen.lanes import Lanes
from codegen.loops.emit.loop_columns import Use
from codegen.loops.emit.loop_lanes import SMALLER
from codegen.loops.emit.thread_blocks import SPLIT
from codegen.loops.emit.thread_text import adding
from codegen.loops.emit.workspace import Memory
from codegen.records import dataclass

ROUND = 4_000.0  # nanoseconds of a round from which on threads take them
MOST_MEMORY = 1 << 22  # numbers of a workspace that each thread may have
COPIES = 1 << 17  # numbers of the copies of rounds that are under way together


@dataclass(frozen=True)
class Sum:
    """An array to which rounds add, by the number of its buffer, and where it begins in the copies of a round."""

    buffer: int
    size: int
    begin: int


@dataclass(frozen=True)
class ThreadRounds:
    """`count` rounds of a nest, of which `together` are under way; each has copies of `size` numbers."""

    count: int
    together: int
    sums: tuple[Sum, ...]
    size: int


def rounds_of(
    program: RolledProgram, nest: Nest, stored: Sequence[frozenset[int]], work: float, scalar: Lanes
) -> ThreadRounds | None:
    """Return how threads share the rounds of a nest, of `work` ns each, or None; `stored` are sums of one term."""
    if nest.count < 2 or work < ROUND or work * nest.count < SPLIT:
        return None
    regions = [step for step in nest.steps if isinstance(step, Region)]
    if len(regions) < len(nest.steps) or any(region.matrix or region.stop is not None for region in regions):
        return None
    pairs = zip(regions, stored, strict=True)
    results = [
        (use, use.kind == "add" and c not in once) for region, once in pairs for c, use in enumerate(region.results)
    ]
    buffers = sorted({use.buffer for use, adds in results if adds})
    if not _are_sums([result for result in results if result[0].buffer in buffers]):
        return None
    if not _are_apart(program, nest, regions, buffers):
        return None
    line, sums, size = LINE // scalar.size, [], 0
    for number in buffers:
        sums.append(Sum(number, program.buffers[number].size, size))
        size += -(-sums[-1].size // line) * line
    together = min(nest.count, COPIES // max(size, 1))
    return ThreadRounds(nest.count, together, tuple(sums), size) if together > 1 else None


def _are_sums(results: Sequence[tuple[Result, bool]]) -> bool:
    """Whether a round adds once to each of its places, and does nothing else there."""
    fixed = all(adds and use.table.fixed and not any(use.table.shifts) for use, adds in results)
    return fixed and len({(use.buffer, use.table.first) for use, _ in results}) == len(results)


def _are_apart(program: RolledProgram, nest: Nest, regions: Sequence[Region], sums: Sequence[int]) -> bool:
    """Whether a round reads only results that it stores itself, and nobody reads these after the nest."""
    kinds = [buffer.kind for buffer in program.buffers]
    stores = [use for region in regions for use in region.results if use.buffer not in sums]
    kept = {use.buffer for use in stores if kinds[use.buffer] == "workspace"}
    behind = [region for region, _ in regions_of(program.steps[program.steps.index(nest) + 1 :])]
    computed = {number for number, kind in enumerate(kinds) if kind not in ("input", "constant")}
    return _read_their_own(regions, computed) and _read_their_own(behind, kept)


def _read_their_own(regions: Sequence[Region], buffers: Set[int]) -> bool:
    """Whether regions read in some buffers only places that one of them has stored to, in the same round of a nest."""
    stored: dict[tuple[int, tuple[int, ...]], list[Places]] = {}
    for region in regions:
        for use in region.reads:
            there = stored.get(_moving(use), [])
            if use.buffer in buffers and not (there and np.isin(use.table.places(), np.concatenate(there)).all()):
                return False
        for result in region.results:
            if result.kind != "add":
                stored.setdefault(_moving(result), []).append(distinct(result.table.places()))
    return True


def _moving(use: Use) -> tuple[int, tuple[int, ...]]:
    """The buffer of a use, and how its places move on with the rounds around."""
    shifts = use.table.shifts
    while shifts and not shifts[-1]:
        shifts = shifts[:-1]
    return use.buffer, shifts


GIVEN = (("ptr", "in"), ("ptr", "real"), ("ptr", "work"), ("ptr", "copies"), ("i64", "first"))  # to a round


@dataclass(frozen=True)
class RoundsText:
    """The IR of rounds on threads: `name(in, out, work)`; %work has `own` numbers, those of each thread, the copies."""

    name: str
    rounds: ThreadRounds
    memory: Memory
    own: int
    outputs: int
    threads: int

    @property
    def size(self) -> int:
        """Numbers of memory, all together."""
        return self.own * (1 + self.threads) + self.rounds.together * self.rounds.size

    def written(self, calls: Sequence[str]) -> Emitted:
        """Return the functions, of which one runs the round %round by calls that find %in, %out and %w."""
        moving = Symbol(COPIED, MOVES[COPIED])
        symbols = (*MEMORY, SMALLER, symbol(PARALLEL, 4), adding(self.memory.scalar), moving)
        return Emitted([], [self._round(calls), self._whole()], {called.name: called for called in symbols})

    def _round(self, calls: Sequence[str]) -> str:
        """Return the function that runs one round: sums of outputs are added to its copies, other sums are copied."""
        kind, size = self.memory.scalar.type, self.memory.scalar.size
        lines = [f"define internal void @{self.name}.round(ptr %given,i64 %b,i64 %thread) nounwind {{"]
        for k, (kind_of, name) in enumerate(GIVEN):
            lines += [
                f"%{name}.at=getelementptr i64,ptr %given,i64 {k}",
                f"%{name}=load {kind_of},ptr %{name}.at,align 8",
            ]
        lines += [
            "%round=add i64 %first,%b",
            "%number=add i64 %thread,1",
            f"%mine=mul i64 %number,{self.own}",
            f"%w=getelementptr {kind},ptr %work,i64 %mine",
            f"%before=mul i64 %b,{self.rounds.size}",
            f"%copies.here=getelementptr {kind},ptr %copies,i64 %before",
            f"%out=alloca [{self.outputs} x ptr],align 8",
            f"call void @{COPIED}(ptr %out,ptr %real,i64 {8 * self.outputs},i1 false)",
        ]
        after: list[str] = []
        for sum_of in self.rounds.sums:
            number, copy, length = sum_of.buffer, f"%copy{sum_of.buffer}", f"i64 {sum_of.size * size},i1 false"
            table, place = self.memory.pointers[number].split()
            target = f"%sums{number}"
            lines.append(f"{copy}=getelementptr {kind},ptr %copies.here,i64 {sum_of.begin}")
            if table == "%out":
                target = copy
                lines.append(f"%entry{number}=getelementptr ptr,ptr %out,i64 {place}")
                lines.append(f"store ptr {copy},ptr %entry{number}")
            else:
                lines.append(f"{target}=getelementptr {kind},ptr %w,i64 {place}")
                after.append(f"call void @{COPIED}(ptr {copy},ptr {target},{length})")
            lines.append(f"call void @{CLEARED}(ptr {target},i8 0,{length})")
        return "\n".join([*lines, "br label %start", "start:", *calls, *after, "ret void", "}"])

    def _whole(self) -> str:
        """Return the function that runs the rounds, some at a time, and then adds their copies."""
        rounds, kind = self.rounds, self.memory.scalar.type
        lines = [
            f"define internal void @{self.name}(ptr %in,ptr %real,ptr %work) noinline nounwind {{",
            "entry:",
            f"%copies=getelementptr {kind},ptr %work,i64 {self.own * (1 + self.threads)}",
            f"%given=alloca [{len(GIVEN)} x i64],align 8",
        ]
        for k, (kind_of, name) in enumerate(GIVEN):
            lines.append(f"%{name}.at=getelementptr i64,ptr %given,i64 {k}")
            lines += [f"store ptr %{name},ptr %{name}.at,align 8"] if kind_of == "ptr" else []
        lines += [
            "br label %some",
            "some:",
            "%first=phi i64 [0,%entry],[%next,%some]",
            "store i64 %first,ptr %first.at,align 8",
            f"%left=sub i64 {rounds.count},%first",
            f"%now=call i64 @{SMALLER.name}(i64 %left,i64 {rounds.together})",
            f"call void @{PARALLEL}(ptr @{self.name}.round,ptr %given,i64 %now,i64 {self.threads})",
        ]
        for sum_of in rounds.sums:
            number, (table, place) = sum_of.buffer, self.memory.pointers[sum_of.buffer].split()
            if table == "%out":
                lines.append(f"%entry{number}=getelementptr ptr,ptr %real,i64 {place}")
                lines.append(f"%sums{number}=load ptr,ptr %entry{number},align 8")
            else:
                lines.append(f"%sums{number}=getelementptr {kind},ptr %work,i64 {place}")
            arguments = f"ptr %sums{number},ptr %copy{number},i64 %now,i64 {rounds.size},i64 {sum_of.size}"
            lines.append(f"%copy{number}=getelementptr {kind},ptr %copies,i64 {sum_of.begin}")
            lines.append(f"call void @copies.add({arguments})")
        lines += ["%next=add i64 %first,%now", f"%more=icmp ult i64 %next,{rounds.count}"]
        return "\n".join([*lines, "br i1 %more,label %some,label %exit", "exit:", "ret void", "}"])
