"""Unroll short sums: the repetitions of the loop become the places that are added to.

The sum along an axis of an array takes its terms one by one, and adds each to its place in memory. With the places as
repetitions, a body adds its terms in registers, in the same order, and stores the sum once. Terms that a loop computes
for nothing else are computed in that body, and are not stored at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import replace
from functools import reduce
from typing import TypeGuard

import numpy as np
import sympy as sp

from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import BodyRows, copied
from codegen.ir.program import Program, operations_of
from codegen.ir.readdress import key_of
from codegen.ir.region import Gather, Kind, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Indexed, table

PLACES = 64  # of a loop that is worth it
TERMS = 12  # of a sum, which one body has; longer ones are quicker in registers that add up parts, from 16 on
LARGEST = 128  # operations of that body


def with_unrolled_sums(program: RolledProgram) -> RolledProgram:
    """Return the program with short sums unrolled, outside of nests; sums that several loops add to stay.

    >>> import numpy as np
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer
    >>> x = sp.Symbol("x")
    >>> uses = (Gather(0, Affine(0, 1, 300)),), (Result(0, 1, Indexed(np.arange(300) // 3), "add"),)
    >>> loop = Region(program_from_sympy([x], [x**2]), 300, *uses)
    >>> arrays = (Input("x", (300,)),), (Output((100,), ()),), (Buffer("input", 300), Buffer("output", 100))
    >>> (sums,) = with_unrolled_sums(RolledProgram(*arrays, (loop,))).steps
    >>> sums.count, [use.table.start for use in sums.gathers], sums.results[0].kind, sums.body.heads[-1].__name__
    (100, [0, 1, 2], 'store', 'Add')
    """
    regions = [region for region, _ in regions_of(program.steps)]
    writers = Counter(use.buffer for region in regions for use in region.results)
    readers = Counter(use.buffer for region in regions for use in region.reads)
    terms = {
        use.buffer: (step, use.output)
        for step in program.steps
        if isinstance(step, Region) and step.parallel
        for use in step.results
        if use.kind == "store" and use.table.key == Affine(0, 1, step.count).key
        if writers[use.buffer] == readers[use.buffer] == 1 and program.buffers[use.buffer].kind == "workspace"
    }
    steps = [_unrolled(program, _with_terms(step, terms)) if _is_sum(step, writers) else None for step in program.steps]
    if not any(steps):
        return program
    return replace(program, steps=tuple(unrolled or step for unrolled, step in zip(steps, program.steps, strict=True)))


def _is_sum(step: Step, writers: Counter[int]) -> TypeGuard[Region]:
    """Whether a step is a parallel loop that only adds to one buffer, to which nothing else adds."""
    if not isinstance(step, Region) or not step.parallel or len(step.results) != 1:
        return False
    (use,) = step.results
    return use.kind == "add" and isinstance(use.table, Indexed) and writers[use.buffer] == 1


def _with_terms(step: Region, terms: Mapping[int, tuple[Region, int]]) -> Region:
    """Return a sum that computes the terms which a loop stores for it alone."""
    if len(step.gathers) != 1 or step.gathers[0].buffer not in terms:
        return step
    (read,) = step.gathers
    (maker, output), places = terms[read.buffer], read.table.places()
    if step.count != maker.count:
        return step
    rows = BodyRows(len(maker.gathers))
    (term,) = copied(maker.body, [row_of(maker.body, output)], rows, dict(enumerate(rows.slots)))
    (total,) = copied(step.body, [row_of(step.body, step.results[0].output)], rows, {0: term})
    gathers = tuple(Gather(use.buffer, table(use.table.places()[places])) for use in maker.gathers)
    body = rows.body([total], step.body.name)
    return replace(step, body=body, gathers=gathers, results=(replace(step.results[0], output=0),))


def _unrolled(program: RolledProgram, step: Region) -> Region | None:
    """Return the loop over the places, None where the places have different numbers of terms, or too many or few."""
    (use,) = step.results
    places = use.table.places()
    first, count = int(places.min()), int(places.max() - places.min()) + 1
    terms, left = divmod(step.count, count)
    operations = operations_of(step.body) + 1
    if left or count < PLACES or not 1 < terms <= min(TERMS, LARGEST // operations):
        return None
    order = np.argsort(places, kind="stable").reshape(count, terms)
    if (places[order] != np.arange(first, first + count)[:, None]).any():
        return None
    reads = [
        [Gather(gather.buffer, table(gather.table.places()[order[:, k]])) for gather in step.gathers]
        for k in range(terms)
    ]
    kept = (now for gathers in reads for now, before in zip(gathers, step.gathers, strict=True) if _is_affine(before))
    if not all(map(_is_affine, kept)):
        return None
    slots: dict[Hashable, Gather] = {key_of(gather): gather for gathers in reads for gather in gathers}
    number = {key: slot for slot, key in enumerate(slots)}
    chosen = [[number[key_of(gather)] for gather in gathers] for gathers in reads]
    body = _sum(step.body, use.output, len(slots), chosen)
    kind: Kind = "store" if count == program.buffers[use.buffer].size else "add"  # else the other places would not be 0
    result = Result(0, use.buffer, Affine(first, 1, count), kind)
    return Region(body, count, tuple(slots.values()), (result,), origin=step.origin)


def _is_affine(gather: Gather) -> bool:
    return isinstance(gather.table, Affine)


def _sum(body: Program, output: int, slots: int, terms: list[list[int]]) -> Program:
    """Return the body that adds the values of a body for several choices of its slots, from left to right."""
    rows, row = BodyRows(slots), row_of(body, output)
    values = [copied(body, [row], rows, {k: rows.slots[slot] for k, slot in enumerate(chosen)})[0] for chosen in terms]
    return rows.body([reduce(lambda total, term: rows.row(sp.Add, (total, term)), values)], body.name)
