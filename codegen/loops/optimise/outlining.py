"""Outline a long linear sum, so that its Hessian is a scaled outer product.

The Hessian of g(w . x) in 64 inputs has 2080 different entries, but it is one number times an outer product. With w . x
in a buffer (see `pieces`) a body has one entry, and a loop writes the outer product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sympy as sp

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import Program
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft

FEWEST_SLOTS = 12  # of an outlined sum
COMPUTED = ("workspace", "output")  # kinds of buffers that may depend on inputs
MOST_VALUES = 32  # of outlined sums, in all repetitions of all regions


def with_outlined_sums(program: RolledProgram, inputs: Collection[int]) -> tuple[RolledProgram, frozenset[int]]:
    """Return a program whose long linear sums have buffers, and these buffers; regions know nothing of each other."""
    draft, left = Draft(program), MOST_VALUES
    for at, region in enumerate(program.steps):
        assert isinstance(region, Region)
        computed = {k for k, use in enumerate(region.gathers) if program.buffers[use.buffer].kind in COMPUTED}
        variable = computed | {k for k, use in enumerate(region.gathers) if use.buffer in inputs}
        rows = _outlined_sums(region.body, variable) if region.count <= left else []
        if not rows or region.count * len(rows) > left:
            continue
        left -= region.count * len(rows)
        sums, draft.steps[at] = split(region, rows, [draft.workspace(region.count) for _ in rows])
        draft.insert(at, sums)
    outlined = draft.finished() if draft.added else program
    return outlined, frozenset(range(outlined.first_output - len(draft.added), outlined.first_output))


def _outlined_sums(body: Program, variable: set[int]) -> list[int]:
    """Return the rows that are linear in many variable slots, and are operands of nonlinear rows."""
    support: list[frozenset[int]] = []
    linear: list[bool] = []
    used: set[int] = set()
    for row, operands in enumerate(body.operands):
        parts = [support[part] for part in operands]
        support.append(frozenset([row] if row in variable else ()).union(*parts))
        depends = [part for part in operands if support[part]]
        straight = body.heads[row] is sp.Add or (body.heads[row] is sp.Mul and len(depends) == 1)
        linear.append(not depends or (straight and all(linear[part] for part in depends)))
        if not linear[-1]:
            used |= {part for part in depends if linear[part] and len(support[part]) >= FEWEST_SLOTS}
    return sorted(used)


def split(region: Region, rows: Sequence[int], buffers: Sequence[int]) -> tuple[Region, Region]:
    """Return the region that stores some rows in buffers, and the region that reads them there."""
    everywhere = Affine(0, 1, region.count)
    reads = {row: Gather(buffer, everywhere) for row, buffer in zip(rows, buffers, strict=True)}
    kept = [(row, Result(0, read.buffer, everywhere, "store")) for row, read in reads.items()]
    return rebuilt(region, kept, {}), rebuilt(region, outputs_of(region), reads)
