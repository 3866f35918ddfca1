"""Copy propagation: read the source of a copy instead of the copy.

Where a slot reads from several buffers, these are copied into one first. When such buffers have become one
(`codegen.loops.find.repeated_regions`), the sources may lie in even steps there: then nothing needs the copies.
Nor does anything need a copy of a whole array; a single copy in another order is a layout, and stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TypeAlias, TypeGuard

import numpy as np

from codegen.ir.body_parts import row_of
from codegen.ir.readdress import all_readdressed, moved
from codegen.ir.region import Gather, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.strictness import checked
from codegen.ir.tables import Affine, Places, Table, table
from codegen.loops.optimise.draft import Draft

Sources: TypeAlias = Mapping[int, tuple[int, Places]]  # by the target of copies: their source, and the places there


def without_copies(program: RolledProgram) -> RolledProgram:
    """Return a program that reads the sources of copies into one buffer; the same one without such copies.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.body_parts import copy
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer
    >>> import sympy as sp
    >>> x = sp.Symbol("x")
    >>> copies = [copy(Gather(0, Affine(3 * k, 0, 1)), 1, Affine(k, 0, 1)) for k in range(4)]
    >>> uses = (Gather(1, Affine(0, 1, 4)),), (Result(0, 2, Affine(0, 1, 4), "store"),)
    >>> loop = Region(program_from_sympy([x], [sp.sin(x)]), 4, *uses)
    >>> arrays = (Input("x", (12,)),), (Output((4,), ()),)
    >>> buffers = Buffer("input", 12), Buffer("workspace", 4), Buffer("output", 4)
    >>> (region,) = without_copies(RolledProgram(*arrays, buffers, (*copies, loop))).steps
    >>> region.gathers
    (Gather(buffer=0, table=Affine(start=0, step=3, count=4, shifts=())),)
    """
    sources = _read_evenly(program, _sources(program))
    if not sources:
        return program

    def where(buffer: int, places: Table) -> tuple[int, Table]:
        there = _there(places, sources[buffer][1]) if buffer in sources else None
        return (buffer, places) if there is None else (sources[buffer][0], there)

    kept = [step for step in program.steps if not _is_copy(step) or step.results[0].buffer not in sources]
    draft = Draft(program)
    return checked(draft.program_of(all_readdressed(kept, where), *draft.arrays), "reading what was copied")


def _is_copy(step: Step) -> TypeGuard[Region]:
    """Whether a step, outside of nests, is a copy."""
    if not isinstance(step, Region) or not step.parallel or len(step.gathers) != 1 or len(step.results) != 1:
        return False
    return step.results[0].kind == "store" and row_of(step.body, step.results[0].output) == 0


def _sources(program: RolledProgram) -> Sources:
    """Return the sources of workspaces that copies fill from one buffer, which is not such a workspace itself."""
    writers = Counter(use.buffer for region, _ in regions_of(program.steps) for use in region.results)
    copies: dict[int, list[tuple[Gather, Result]]] = {}
    for step in program.steps:
        if _is_copy(step):
            copies.setdefault(step.results[0].buffer, []).append((step.gathers[0], step.results[0]))
    sources = {}
    for target, uses in copies.items():
        origins, buffer = {gather.buffer for gather, _ in uses}, program.buffers[target]
        if len(uses) == writers[target] and len(origins) == 1 and buffer.kind == "workspace":
            places = np.full(buffer.size, -1)
            for gather, result in uses:
                places[result.table.places()] = gather.table.places()
            if places.min() >= 0 and (len(uses) > 1 or (np.diff(places) == 1).all()):
                sources[target] = origins.pop(), places
    return {target: sources[target] for target in sources if sources[target][0] not in sources}


def _read_evenly(program: RolledProgram, sources: Sources) -> Sources:
    """Return the copies whose readers all read even places of the source."""
    kept = dict(sources)
    for region, _ in regions_of(program.steps):
        for use in region.reads:
            if use.buffer in kept:
                there = _there(use.table, kept[use.buffer][1])
                if there is None or (region.matrix is not None and there.count > 1 and there.step != 1):
                    del kept[use.buffer]
    return kept


def _there(places: Table, source: Places) -> Affine | None:
    """Return the places of a table in the source of the copies; None where these are not even."""
    steps = np.diff(source)
    if len(steps) and (steps == steps[0]).all():  # the whole source is even, in every round of nests
        there = moved(places, int(source[0]), scale=int(steps[0]))
    elif any(places.shifts):
        return None
    else:
        there = table(source[places.places()])
    return there if isinstance(there, Affine) else None
