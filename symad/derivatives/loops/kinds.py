"""The derivatives of rolled programs, by name.

`active` are the numbers of the differentiated input arrays; a kind adds inputs behind all of them. They serve
transforms around a compiled function and those in its code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from codegen.ir.region import RolledProgram
from codegen.ir.sparsity import Format
from codegen.loops.optimise.draft import select
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
