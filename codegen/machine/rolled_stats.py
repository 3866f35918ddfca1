"""Sizes of a rolled program: what its bodies hold, each counted once, and how often they are run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import prod

from codegen.loops.emit.rolled_code import RolledPlan
from codegen.lowering.algebra import Effect
from codegen.lowering.lower import FUSED
from codegen.lowering.prepare import Prepared
from codegen.machine.calls.compiled import RegionStats, Stats


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
