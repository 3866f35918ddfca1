"""Long bodies: a chain that was written down may carry out a step in time of all points of a grid in each repetition.

What repeats in such a body is looked for as in a function; then the chain is a nest, and does not grow with the grid.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from codegen.ir.region import RolledProgram
from codegen.ir.strictness import fall_back
from codegen.loops.find.agreement import agree
from codegen.loops.find.find import find
from codegen.loops.loop import Loop
from codegen.loops.place.buffers import Arrays
from codegen.loops.place.place_nodes import place
from codegen.loops.place.placed_bodies import can_be_nest
from codegen.pricing.price import price_rolled, price_unrolled

LONG = 500  # operations of a body in which loops are looked for,
LEFT = 64  # and of one that has some already
FEWEST_COPIES = 8  # of them carried out for one that is left


def with_loops(loop: Loop) -> Loop:
    """Return a chain with the loops that its body has; the chain as it is, where they are not worth it."""
    if not can_be_nest(loop):
        return loop
    loop = replace(loop, inside=tuple(map(with_loops, loop.inside)))
    body, slots = loop.body, np.arange(len(loop.body.inputs))
    if sum(map(bool, body.operands)) <= (LEFT if loop.inside else LONG):
        return loop
    outputs = np.array([output.rows[0] for output in body.outputs], dtype=np.int64)
    found = find(body, slots, outputs, loop.inside, lambda row: None)
    if len(found.loops) == len(loop.inside):
        return loop
    if not loop.inside:
        arrays = Arrays([("slots", slots)], [(outputs, None)])
        program = place(body, arrays, found.loops, found.sums, "body")
        if not _worth_it(program):
            return loop
        if not agree(program, body, arrays):
            fall_back(f"the loop at {loop.origin}", "the loops found in its body did not give its values")
            return loop
    inside = tuple(replace(inner, origin=inner.origin or loop.origin) for inner in found.loops)
    return replace(loop, inside=inside, sums=found.sums)


def _worth_it(program: RolledProgram) -> bool:
    if program.executed < FEWEST_COPIES * program.operations:
        return False
    return price_rolled(program).call <= price_unrolled(program).call
