"""Domain: where a function has a value. Outside of it, all numbers of the program of its derivatives are NaN.

A choice between NaN and a value has no derivative outside, and would pass on 0 there. So derivatives are taken of the
value as if there were one everywhere, and the numbers that come out are multiplied by 1, or by NaN.
"""

from __future__ import annotations

from dataclasses import replace

import sympy as sp

from codegen.ir.copy_rows import body_of
from codegen.ir.readdress import buffers_read, buffers_written, renumbered
from codegen.ir.region import Gather, Region, Result, RolledProgram, Step
from codegen.ir.row_table import Table
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft


def restricted(program: RolledProgram, domain: RolledProgram) -> RolledProgram:
    """Return a program with all of its numbers multiplied by the one that another program has of the same inputs."""
    draft = Draft(program)
    factor = Gather(draft.workspace(1), Affine(0, 0, 1))
    number = {domain.first_output: factor.buffer, **{k: k for k in range(len(domain.inputs))}}
    for buffer in buffers_read(domain.steps) | buffers_written(domain.steps):
        if buffer not in number:
            draft.buffers.append(domain.buffers[buffer])
            number[buffer] = len(draft.buffers) - 1
    inputs, outputs = draft.arrays
    results = {buffer: draft.like(buffer) for _, buffer in outputs}
    steps: list[Step] = [*renumbered(domain.steps, number.__getitem__)]
    steps += renumbered(program.steps, lambda buffer: results.get(buffer, buffer))
    for array, buffer in outputs:
        read = Gather(results[buffer], Affine(0, 1, array.size))
        times = replace(factor, table=Affine(0, 0, array.size))
        steps.append(_product(read, times, buffer))
    draft.steps = steps
    return replace(draft.finish(inputs, outputs, "domain"), name=program.name)


def _product(read: Gather, times: Gather, target: int) -> Region:
    table, symbols = Table(), [sp.Symbol(name, real=True) for name in ("s0", "s1")]
    rows = [table.leaf(symbol) for symbol in symbols]
    body = body_of(table, (symbol.name for symbol in symbols), [table.pair(sp.Mul, *rows)], "domain")
    size = read.table.count
    return Region(body, size, (read, times), (Result(0, target, Affine(0, 1, size), "store"),), origin="domain")
