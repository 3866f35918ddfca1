"""Outside the domain of a function, all numbers of its derivatives are NaN.

A choice between NaN and a value would have derivative 0 outside. So the value is differentiated as if it existed
everywhere, and the derivatives are multiplied by 1 or NaN: in the bodies that compute all of them, else afterwards.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace

import numpy as np
import sympy as sp

from codegen.ir.body_parts import row_of
from codegen.ir.copy_rows import body_of, copied
from codegen.ir.program import Program
from codegen.ir.readdress import buffers_read, buffers_written, each_region, renumbered
from codegen.ir.region import Gather, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft


def restricted(program: RolledProgram, domain: RolledProgram) -> RolledProgram:
    """Return a program with all of its numbers multiplied by the only one of another program of the same inputs."""
    draft = Draft(program)
    factor = draft.workspace(1)
    number = {domain.first_output: factor, **{k: k for k in range(len(domain.inputs))}}
    for buffer in buffers_read(domain.steps) | buffers_written(domain.steps):
        if buffer not in number:
            draft.buffers.append(domain.buffers[buffer])
            number[buffer] = len(draft.buffers) - 1
    inputs, outputs = draft.arrays
    later = {buffer: draft.like(buffer) for _, buffer in outputs if not _is_covered(program, buffer)}
    steps: list[Step] = [*renumbered(domain.steps, number.__getitem__)]
    steps += each_region(program.steps, lambda region: _multiplied(region, factor, program.first_output, later.keys()))
    steps = [*renumbered(steps, lambda buffer: later.get(buffer, buffer))]
    for buffer, before in later.items():
        whole = Affine(0, 1, program.buffers[buffer].size)
        read = Gather(before, whole), Gather(factor, replace(whole, step=0))
        steps.append(Region(_PRODUCT, whole.count, read, (Result(0, buffer, whole, "store"),), origin="domain"))
    draft.steps = steps
    return replace(draft.finish(inputs, outputs, "domain"), name=program.name)


def _product() -> Program:
    table, names = RowTable(), ("s0", "s1")
    rows = [table.leaf(sp.Symbol(name, real=True)) for name in names]
    return body_of(table, names, [table.pair(sp.Mul, rows[0], rows[1])], "domain")


_PRODUCT = _product()


def _is_covered(program: RolledProgram, output: int) -> bool:
    """Whether each number of an output is made of results of bodies that are run once for each of their places."""
    covered = np.zeros(program.buffers[output].size, dtype=bool)
    for region, counts in regions_of(program.steps):
        for use in region.results:
            if use.buffer != output:
                continue
            if counts or region.matrix is not None or region.stop is not None or use.kind == "last":
                return False  # a last value is that of a carry, as it is
            covered[use.table.places()] = True
    return bool(covered.all())


def _multiplied(region: Region, factor: int, first_output: int, later: Container[int]) -> Region:
    """Return a region with its outputs multiplied by the factor, except those of `later`."""
    outgoing = [k for k, use in enumerate(region.results) if use.buffer >= first_output and use.buffer not in later]
    if not outgoing:
        return region
    table, first = RowTable(), len(region.gathers)  # the number of the new slot: carries come behind
    names = [f"s{k}" for k in range(len(region.body.inputs) + 1)]
    times, *carried = [table.leaf(sp.Symbol(name, real=True)) for name in names][first:]
    rows = dict(enumerate([*range(first), *carried]))
    nodes = copied(region.body, [row_of(region.body, k) for k in range(len(region.body.outputs))], table, rows)
    results = list(region.results)
    for k in outgoing:
        results[k] = replace(results[k], output=len(nodes))
        nodes.append(table.pair(sp.Mul, nodes[region.results[k].output], times))
    gathers = (*region.gathers, Gather(factor, Affine(0, 0, region.count)))
    return replace(region, body=body_of(table, names, nodes, region.body.name), gathers=gathers, results=tuple(results))
