"""The derivatives of rolled programs, by name.

`active` are the numbers of the differentiated input arrays; a kind adds inputs behind all of them. They serve
transforms around a compiled function and those in its code.

Outside the domain of a function, all numbers of its derivatives are NaN. A choice between NaN and a value would have
derivative 0 there. So the value is differentiated as if it existed everywhere, and the derivatives are multiplied by 1
or NaN afterwards (`restricted`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from codegen.ir.readdress import buffers_read, buffers_written, renumbered
from codegen.ir.region import Gather, Region, Result, RolledProgram
from codegen.ir.sparsity import Format
from codegen.ir.tables import Affine
from codegen.loops.optimise.draft import Draft, select
from symad.derivatives.loops.body_derivatives import body_program
from symad.derivatives.loops.checkpoints import Checkpoints
from symad.derivatives.loops.loop_hessian import hessian
from symad.derivatives.loops.loop_jacobian import jacobian
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward
from symad.tracing.values.sparse_matrix import Triangle

Kind = Callable[..., RolledProgram | None]


def _gradient(
    program: RolledProgram, active: Sequence[int], checkpoints: Checkpoints, value: bool = True
) -> RolledProgram | None:
    """Value and gradients, or gradients alone, of a scalar; tracing refuses others."""
    if [output.shape for output in program.outputs] != [()]:
        return None
    return gradient(program, active, value=value, checkpoints=checkpoints)


def _pullback(program: RolledProgram, active: Sequence[int], checkpoints: Checkpoints) -> RolledProgram:
    """Cotangents of the arrays; further inputs are the cotangents of the outputs."""
    pulled = pullback(program, active, checkpoints=checkpoints)
    return select(pulled, range(len(program.outputs), len(pulled.outputs)), {})


def _derivative(program: RolledProgram, active: Sequence[int], checkpoints: Checkpoints) -> RolledProgram | None:
    """The derivative in the only input, a number."""
    if [array.shape for array in program.inputs] != [()]:
        return None
    width = len(program.outputs)
    return select(pushforward(program, active), range(width, 2 * width), {1: 1.0})


def _along(program: RolledProgram, active: Sequence[int], checkpoints: Checkpoints, order: int) -> RolledProgram:
    """Derivatives of orders 0, 1, ... along one direction; further inputs are the direction, once for each order."""
    width = len(program.outputs)
    for k in range(1, order + 1):
        pushed = pushforward(program, active)
        program = select(pushed, [*range(k * width), *range((2 * k - 1) * width, 2 * k * width)], {})
    return program


def _matrix(
    program: RolledProgram, active: Sequence[int], checkpoints: Checkpoints, second: bool, sparse: bool | Triangle,
    format: Format, columns: bool = False,
) -> RolledProgram | None:  # fmt: skip
    """The Jacobian or the Hessian of one array in one input; with `columns` a dense one column by column."""
    if len(program.outputs) != 1 or len(active) != 1:
        return None
    (number,) = active
    source, output = program.inputs[number], program.outputs[0]
    if second:
        triangle = None if not sparse else "full" if sparse is True else sparse
        matrix = hessian(program, number, triangle, format, columns=columns) if output.shape == () else None
        shape = source.shape + source.shape
    else:
        matrix = jacobian(program, number, bool(sparse), format, columns=columns)
        shape = output.shape + source.shape
    if matrix is None or matrix.outputs[0].pattern is not None:
        return matrix
    return replace(matrix, outputs=(replace(matrix.outputs[0], shape=shape),))


KINDS: dict[str, Kind] = {
    "value": lambda program, active, checkpoints: program,
    "gradient": _gradient,
    "derivative": _derivative,
    "pushforward": lambda program, active, checkpoints: pushforward(program, active),  # last inputs: tangents
    "pullback": _pullback,
    "directional derivatives": _along,
    "Jacobian": partial(_matrix, second=False),
    "Hessian": partial(_matrix, second=True),
}


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
