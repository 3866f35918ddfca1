"""Unroll short sums: the repetitions of the loop become the places that are added to.

The sum along an axis of an array takes its terms one by one, and adds each to its place in memory. With the places as
repetitions, a body adds its terms in registers, in the same order, and stores the sum once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from typing import TypeGuard

import numpy as np
import sympy as sp

from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import body_of, copied
from codegen.ir.program import Program, operations_of
from codegen.ir.readdress import key_of
from codegen.ir.region import Gather, Kind, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Affine, Indexed, table

PLACES = 64  # of a loop that is worth it
TERMS = 32  # of a sum, which one body has
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
    writers = Counter(use.buffer for region, _ in regions_of(program.steps) for use in region.results)
    steps = [_unrolled(program, step) if _is_sum(step, writers) else None for step in program.steps]
    if not any(steps):
        return program
    return replace(program, steps=tuple(unrolled or step for unrolled, step in zip(steps, program.steps, strict=True)))


def _is_sum(step: Step, writers: Counter[int]) -> TypeGuard[Region]:
    """Whether a step is a parallel loop that only adds to one buffer, to which nothing else adds."""
    if not isinstance(step, Region) or not step.parallel or len(step.results) != 1:
        return False
    (use,) = step.results
    return use.kind == "add" and isinstance(use.table, Indexed) and writers[use.buffer] == 1


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
    if not all(isinstance(gather.table, Affine) for gathers in reads for gather in gathers):
        return None
    slots: dict[Hashable, Gather] = {key_of(gather): gather for gathers in reads for gather in gathers}
    number = {key: slot for slot, key in enumerate(slots)}
    chosen = [[number[key_of(gather)] for gather in gathers] for gathers in reads]
    body = _sum(step.body, use.output, len(slots), chosen)
    kind: Kind = "store" if count == program.buffers[use.buffer].size else "add"  # else the other places would not be 0
    result = Result(0, use.buffer, Affine(first, 1, count), kind)
    return Region(body, count, tuple(slots.values()), (result,), origin=step.origin)


def _sum(body: Program, output: int, slots: int, terms: list[list[int]]) -> Program:
    """Return the body that adds the values of a body for several choices of its slots, from left to right."""
    rows = RowTable()
    leaves = [rows.leaf(sp.Symbol(f"s{k}", real=True)) for k in range(slots)]
    total: int | None = None
    for chosen in terms:
        (term,) = copied(body, [row_of(body, output)], rows, dict(enumerate(leaves[slot] for slot in chosen)))
        total = term if total is None else rows.row(sp.Add, (total, term))
    assert total is not None
    return body_of(rows, (f"s{k}" for k in range(slots)), [total], body.name)
