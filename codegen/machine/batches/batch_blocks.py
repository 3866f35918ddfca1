"""Arrays in blocks: as many points as the code has lanes, one number of each point after the other.

The kernel reads and writes such arrays itself, without moving numbers between rows and lanes. An array has an axis of
blocks in front, then its own shape, then one axis of lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codegen.errors import ArgumentError
from codegen.ir.program import Input, Program
from codegen.ir.region import RolledProgram
from codegen.lanes import NumberType
from codegen.machine.calls.arguments import Array, as_numbers, results_of, writable


def block_arrays(
    program: Program | RolledProgram, number: NumberType, width: int, args: Sequence[Any], out: Any
) -> tuple[list[Array], list[Array], int]:
    """Return arguments as arrays, arrays for the results, and the number of blocks; ArgumentError for other arrays.

    >>> from codegen.ir.program import Output
    >>> from codegen.lanes import FLOAT64
    >>> program = Program([], [], {}, (Input("x", (3,)),), (Output((), ()),))
    >>> arrays, results, count = block_arrays(program, FLOAT64, 4, [np.ones((5, 3, 4))], None)
    >>> results[0].shape, count
    ((5, 4), 5)
    """
    if number.parts > 1:
        raise ArgumentError('layout="blocks" of complex numbers', do="leave the option out")
    inputs, outputs = program.arguments, program.outputs
    if len(args) != len(inputs):
        raise ArgumentError(f"{len(args)} arguments", why=f"the kernel takes {len(inputs)}")
    arrays = [as_numbers(value, array, k, number) for k, (value, array) in enumerate(zip(args, inputs, strict=True))]
    counts = {_blocks(array, form, k, width) for k, (array, form) in enumerate(zip(arrays, inputs, strict=True))}
    numbers = sorted(counts - {-1})
    if len(numbers) != 1:
        why = f"they have {' and '.join(map(str, numbers)) or 'none'}"
        raise ArgumentError("numbers of blocks of the arguments", why=why, do="give one number of blocks")
    shapes = [(numbers[0], *output.shape, width) for output in outputs]
    return arrays, results_of(out, shapes, number, f"{numbers[0]} blocks of {program.name}"), numbers[0]


def _blocks(array: Array, declared: Input, position: int, width: int) -> int:
    """How many blocks an argument has; -1 where all points share it."""
    if array.shape == declared.shape:
        return -1
    if array.ndim == len(declared.shape) + 2 and array.shape[1:] == (*declared.shape, width):
        return len(array)
    raise ArgumentError(
        f"shape {array.shape}",
        where=f"argument {position} ({declared.name})",
        why=f"blocks have the shape (blocks, {', '.join(map(str, (*declared.shape, width)))})",
    )


def in_blocks(
    program: Program | RolledProgram, width: int, arrays: list[Array], results: list[Array], count: int, *, fresh: bool
) -> tuple[list[Array], list[Array], list[tuple[Array, Array]]]:
    """Return inputs and outputs with axes of blocks, numbers and lanes, or of points and numbers for one lane.

    The third list has results that are scattered or may overlap, and the arrays computed in their place.
    """
    inputs = []
    for array, form in zip(arrays, program.arguments, strict=True):
        together = np.require(array, requirements=("C", "A"))
        if array.shape == form.shape:
            inputs.append(np.broadcast_to(together.reshape(-1), (count * width, form.size)))
        else:
            inputs.append(_placed(together, form.size, width))
    written = [array if fresh else writable(array, [*arrays, *results[:k]]) for k, array in enumerate(results)]
    outputs = [_placed(array, form.size, width) for array, form in zip(written, program.outputs, strict=True)]
    pairs = zip(results, written, outputs, strict=True)
    return inputs, outputs, [(array, points) for array, computed, points in pairs if computed is not array]


def _placed(array: Array, size: int, width: int) -> Array:
    return array.reshape(len(array), size, width) if width > 1 else array.reshape(len(array), size)
