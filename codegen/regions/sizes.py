"""Sizes of a rolled program: what its bodies hold, each counted once, and how often they are run."""

from __future__ import annotations

from collections import Counter
from math import prod

from codegen.calls.compiled import RegionStats, Stats
from codegen.engine import has_fma
from codegen.lowering.fuse import fuse
from codegen.lowering.lower import FUSED, lower
from codegen.options import Options
from codegen.regions.region import RolledProgram, regions_of


def sizes(program: RolledProgram, options: Options) -> Stats:
    """Return the statistics of a rolled program that do not depend on how it is written.

    >>> sizes(RolledProgram((), (), (), ()), Options()).total
    0
    """
    kinds: Counter[str] = Counter()
    found, nodes, trees, shared, fused = [], 0, 0.0, 0, 0
    for region, rounds in regions_of(program.steps):
        lowered = lower(region.body)
        operations = lowered.count()
        kinds += operations
        nodes += lowered.nodes
        trees += lowered.operations_before
        shared += lowered.operations_after_sharing
        if options.fma and has_fma():
            rows = fuse(lowered)
            fused += sum(rows.rows[row][0] in FUSED for row in rows.live())
        found.append(RegionStats(region.count, prod(rounds), operations.total(), region.origin))
    return Stats(nodes, trees, shared, dict(kinds), fused, regions=tuple(found))
