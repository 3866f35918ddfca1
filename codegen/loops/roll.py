"""Roll rows: turn repeated straight lines into a rolled program.

A repetition of a written chain may be a step in time of all points of a grid. Loops in such a body are found as in a
function; then the chain is a nest, and does not grow with the grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import sympy as sp

from codegen.ir.program import Output, Program, operations_of
from codegen.ir.region import RolledProgram
from codegen.ir.strictness import fall_back
from codegen.loops.find.agreement import agree
from codegen.loops.find.find import Line, find
from codegen.loops.find.plain_rows import PlainRows, plain_rows
from codegen.loops.loop import Loop, Nodes, StraightError, joined
from codegen.loops.place.buffers import Arrays, can_be_nest
from codegen.loops.place.place_nodes import place
from codegen.pricing.price import rolled_work, unrolled_work
from codegen.stages import observed, stage

Roll = Literal["auto", "never", "always"]  # whether repetitions become loops
FEWEST_ROWS = 128  # fewer operations have no loops worth their while
LONG = 500  # operations of a body in which loops are looked for
LEFT = 64  # operations of a body with loops in which more loops are looked for


def roll_rows(
    rows: PlainRows, arrays: Arrays, written: Sequence[Loop], line_of: Line, name: str
) -> tuple[list[Loop], RolledProgram]:
    """Return the loops of rows, those `written` down first, and the rolled program; StraightError where none is."""
    if len(rows.heads) < FEWEST_ROWS and not written:
        raise StraightError(f"too few operations for loops ({rows.operations})")
    stage("rows", lambda: _flat_program(rows, arrays))
    inputs = joined(nodes for _, nodes in arrays.inputs)
    pattern = find(rows, inputs, joined(nodes for nodes, _ in arrays.outputs), written, line_of)
    lines = (f"{loop.count} times {len(loop.body)} rows of {loop.origin}" for loop in pattern.loops)
    stage("loops", lambda: "\n".join(lines))
    if not pattern.loops:
        raise StraightError("nothing is repeated in it")
    program = observed(place(rows, arrays, pattern.loops, pattern.sums, name), "place")
    if not written and not agree(program, rows, arrays):
        fall_back(name, "the loops found did not give its values at a random point")
        raise StraightError("the loops found did not give the values of the straight lines at a random point")
    return pattern.loops, program


def roll_program(program: Program) -> RolledProgram:
    """Return a straight program as loops; StraightError with the reason where there are none.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.symbols("x:100")
    >>> energy = sum((a - b) ** 4 + sp.cos(a - b) for a, b in zip(x, x[1:]))
    >>> rolled = roll_program(program_from_sympy([list(x)], [energy]))
    >>> [step.count for step in rolled.steps], rolled.operations < 10
    ([99, 1], True)
    """
    if program.seeded:
        raise StraightError("a sweep is a loop over columns already")
    zero = len(program)  # the row of structural zeros of outputs
    heads, operands = [*program.heads, sp.core.numbers.Zero], [*program.operands, ()]
    table = replace(program, heads=heads, operands=operands, atoms={**program.atoms, zero: sp.S.Zero})
    ends = np.cumsum([0, *(array.size for array in program.inputs)])
    inputs = [np.arange(start, start + array.size) for start, array in zip(ends, program.inputs, strict=False)]
    outputs = [_filled(output, zero) for output in program.outputs]
    rows = plain_rows(table, joined(inputs), joined(outputs), [])
    arrays = Arrays(
        [(a.name, rows.rows_of(nodes).reshape(a.shape)) for a, nodes in zip(program.inputs, inputs, strict=True)],
        [(rows.rows_of(nodes).reshape(o.shape), o.pattern) for o, nodes in zip(program.outputs, outputs, strict=True)],
    )
    return roll_rows(rows, arrays, (), lambda row: None, program.name)[1]


def repeats_enough(program: RolledProgram) -> bool:
    """Whether a call carries out each operation of the bodies 8 times or more."""
    return program.executed >= 8 * program.operations


def _filled(output: Output, zero: int) -> Nodes:
    nodes = np.full(output.size, zero, dtype=np.int64)
    nodes[slice(None) if output.positions is None else list(output.positions)] = output.rows
    return nodes


def _flat_program(rows: PlainRows, arrays: Arrays) -> Program:
    """Return the rows as a program, for dumps."""
    names = {
        row: sp.Symbol(f"{name}[{place}]")
        for name, nodes in arrays.inputs
        for place, row in enumerate(nodes.ravel().tolist())
    }
    outputs = tuple(Output(nodes.shape, tuple(nodes.ravel().tolist())) for nodes, _ in arrays.outputs)
    return Program(rows.heads, rows.operands, {**rows.atoms, **names}, (), outputs)


def with_loops(loop: Loop) -> Loop:
    """Return a chain with the loops in its body; the chain itself, where they are not worth it."""
    if not can_be_nest(loop):
        return loop
    loop = replace(loop, inside=tuple(map(with_loops, loop.inside)))
    body, slots = loop.body, np.arange(len(loop.body.inputs))
    if operations_of(body) <= (LEFT if loop.inside else LONG):
        return loop
    outputs = np.array([output.rows[0] for output in body.outputs], dtype=np.int64)
    pattern = find(body, slots, outputs, loop.inside, lambda row: None)
    if len(pattern.loops) == len(loop.inside):
        return loop
    if not loop.inside:
        arrays = Arrays([("slots", slots)], [(outputs, None)])
        program = place(body, arrays, pattern.loops, pattern.sums, "body")
        if not repeats_enough(program) or rolled_work(program).price.call > unrolled_work(program).price.call:
            return loop
        if not agree(program, body, arrays):
            fall_back(f"the loop at {loop.origin}", "the loops found in its body did not give its values")
            return loop
    inside = tuple(replace(inner, origin=inner.origin or loop.origin) for inner in pattern.loops)
    return replace(loop, inside=inside, sums=pattern.sums)
