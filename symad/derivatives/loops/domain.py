"""Outside the domain of a function, all numbers of its derivatives are NaN.

A choice between NaN and a value would have derivative 0 outside. So the value is differentiated as if it existed
everywhere, and the derivatives are multiplied by 1 or NaN afterwards.
"""

from __future__ import annotations

from dataclasses import replace

from codegen.ir.readdress import buffers_read, buffers_written, renumbered
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft
from symad.derivatives.loops.body_derivatives import body_program


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
    product = body_program(lambda value, factor: (value * factor,), 2)
    values = {buffer: draft.like(buffer) for _, buffer in outputs}
    steps = [*renumbered(domain.steps, number.__getitem__)]
    steps += renumbered(program.steps, lambda buffer: values.get(buffer, buffer))
    for buffer, before in values.items():
        whole = Affine(0, 1, program.buffers[buffer].size)
        read = Gather(before, whole), Gather(factor, replace(whole, step=0))
        steps.append(Region(product, whole.count, read, (Result(0, buffer, whole, "store"),), origin="domain"))
    draft.steps = steps
    return replace(draft.finish(inputs, outputs, "domain"), name=program.name)
