"""Outline a long linear sum, so that its Hessian is a scaled outer product.

The Hessian of g(w . x) in 64 inputs has 2080 different entries, but it is one number times an outer product. With w . x
as an inner value (see `pieces`) a body has one entry, and a loop writes the outer product.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import sympy as sp

from codegen.ir.body_parts import outputs_of, rebuilt
from codegen.ir.program import Program
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft

FEWEST_SLOTS = 12  # of a sum that becomes a value
MOST_VALUES = 32  # in all repetitions of all regions


def with_outlined_sums(program: RolledProgram, inputs: Collection[int]) -> tuple[RolledProgram, frozenset[int]]:
    """Return a program whose long linear sums have buffers, and these buffers; regions know nothing of each other."""
    draft, left = Draft(program), MOST_VALUES
    for at, region in enumerate(program.steps):
        assert isinstance(region, Region)
        rows = _outlined_sums(region.body, _variable(program, region, inputs)) if region.count <= left else []
        if not rows or region.count * len(rows) > left:
            continue
        left -= region.count * len(rows)
        sums, draft.steps[at] = split(region, rows, [draft.workspace(region.count) for _ in rows])
        draft.insert(at, sums)
    made = draft.finished() if draft.added else program
    return made, frozenset(range(made.first_output - len(draft.added), made.first_output))


def _variable(program: RolledProgram, region: Region, inputs: Collection[int]) -> set[int]:
    """Return the slots that may depend on some inputs."""
    kinds = [program.buffers[use.buffer].kind for use in region.gathers]
    return {
        slot
        for slot, (use, kind) in enumerate(zip(region.gathers, kinds, strict=True))
        if use.buffer in inputs or kind in ("workspace", "output")
    }


def _outlined_sums(body: Program, variable: set[int]) -> list[int]:
    """Return the rows that are linear in many slots, and that are used in a way that is not."""
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
    """Return the region of some rows, which go to buffers, and the region that reads them there."""
    everywhere = Affine(0, 1, region.count)
    reads = {row: Gather(buffer, everywhere) for row, buffer in zip(rows, buffers, strict=True)}
    kept = [(row, Result(0, read.buffer, everywhere, "store")) for row, read in reads.items()]
    return rebuilt(region, kept, {}), rebuilt(region, outputs_of(region), reads)
