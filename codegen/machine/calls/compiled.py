"""What compiling a program gives: statistics, and what a kernel is made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from codegen.engine import Library
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.lower import FUSED
from codegen.lowering.passes import Effect, Prepared
from codegen.machine.listing import LISTING
from codegen.machine.storage.shelf import Shelf
from codegen.options import Options, Tier
from codegen.stages import Bisection, Compilation, compilation

Pack = Callable[[tuple[Any, ...], dict[str, Any]], Sequence[Any]]
Unpack = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class RegionStats:
    """One loop of a kernel: how often its body is run in each of the rounds of the nests around it."""

    count: int
    rounds: int
    operations: int  # machine operations of the body, before fusion
    origin: str  # where the body was written: "file.py:12-16"
    blocks: int = 1  # parts that threads may share; 1 where one thread runs it all


@dataclass(frozen=True)
class Stats:
    """What compiling did: sizes, operations by kind, and seconds per stage."""

    nodes: int  # rows of the program that the outputs need
    operations_before: float  # operations written out as trees, without sharing
    operations_after: int  # operations after common sub-expressions are shared
    machine_operations: dict[str, int]  # by kind, before fusion
    fused: int  # multiplications that went into fused multiply-adds
    chunks: int = 1
    workspace: int = 0  # float64 values passed between chunks or loops
    seconds: dict[str, float] = field(default_factory=dict)  # lower, schedule, emit, parse, codegen; or load
    code_bytes: int = 0
    strategy: str = "straight"  # or "sweep", see codegen.emission.sweep, or "rolled", see codegen.ir.region
    executed: int = 0  # machine operations that one call carries out; one on a vector register counts once
    cached: bool = False  # the object code came from the disk cache: nothing was compiled
    passes: Sequence[
        tuple[str, int, int]
    ] = ()  # of accuracy "fast": name, operations before and after, fused ones once
    regions: tuple[RegionStats, ...] = ()  # the loops of a rolled kernel, whose operations are those of all bodies
    plan: Any = None  # why it was compiled so, from who asked for it; kept in no file

    @property
    def total(self) -> int:
        """Number of machine operations before fusion."""
        return sum(self.machine_operations.values())


@dataclass(frozen=True)
class Compiled:
    """What a kernel is made of: the program, its machine code, the options and the statistics."""

    program: Program | RolledProgram
    library: Library
    options: Options
    stats: Stats
    release: bool  # long enough to release the GIL
    shelf: Shelf  # of the object code of other forms
    tier: Tier = "default"  # of this machine code, "default" or "fast"
    revive: Callable[..., Any] | None = None  # makes the kernel again, from portable bytes: what its pickles call
    bisection: Bisection | None = None  # what the first code left out

    def again(self, what: str) -> AbstractContextManager[Compilation]:
        """Open the stages of more code for the program, with the same optional passes as the first."""
        kept = None if self.bisection is None else self.bisection.copy()
        return compilation(f"{self.program.name} {what}", LISTING, kept)


def sizes(plan: RolledPlan) -> Stats:
    """Return the statistics of a rolled program that do not depend on how its loops are written.

    >>> from codegen.options import Options
    >>> from codegen.ir.region import RolledProgram
    >>> sizes(RolledPlan.of(RolledProgram((), (), (), ()), Options())).total
    0
    """
    bodies = [prepared.plain for prepared in plan.prepared]
    kinds = sum((body.count() for body in bodies), Counter[str]())
    regions = tuple(
        RegionStats(region.count, prod(rounds), prepared.plain.count().total(), region.origin, blocks)
        for ((region, rounds), prepared), blocks in zip(plan.regions, plan.cut, strict=True)
    )
    return Stats(
        nodes=sum(body.nodes for body in bodies),
        operations_before=sum(body.operations_before for body in bodies),
        operations_after=sum(body.operations_after_sharing for body in bodies),
        machine_operations=dict(kinds),
        fused=sum(prepared.fused.rows[row][0] in FUSED for prepared in plan.prepared for row in prepared.fused.live()),
        passes=_effects(plan.prepared),
        regions=regions,
    )


def _effects(bodies: Sequence[Prepared]) -> tuple[Effect, ...]:
    """What each pass did to all bodies together."""
    found: dict[str, Effect] = {}
    for effect in (effect for body in bodies for effect in body.effects):
        before = found.get(effect.name, Effect(effect.name, 0, 0))
        found[effect.name] = Effect(effect.name, before.before + effect.before, before.after + effect.after)
    return tuple(found.values())
