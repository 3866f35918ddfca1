"""Matrix operations as programs of one region, and as the loops that they stand for.

Loops replace calls of a library in straight lines, in exported C, for derivatives by entries, and where SciPy is
missing. Operations with a routine in the kernel have loops only in straight lines and in nests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.errors import LimitError, LoweringError
from codegen.functions.libraries import EXTRA
from codegen.ir.body_parts import copy
from codegen.ir.matrix_operation import OWN, WITHOUT_LOOPS, MatrixOperation
from codegen.ir.program import Input, Output, Program
from codegen.ir.readdress import all_readdressed, moved, renumbered, shifts_to
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Table, table
from codegen.ir.unroll import unroll
from codegen.matrices.factorization_loops import (
    cholesky_program,
    determinant_program,
    elimination_program,
    reflections_program,
    substitution_program,
)
from codegen.matrices.order_loops import order_loops
from codegen.matrices.product_loops import matrix_product

LARGEST = 320  # rows of a matrix that is factorized by loops: these keep n**3 numbers, 260 MB


def matrix_region(operation: MatrixOperation, operands: Sequence[Gather], results: Sequence[Result]) -> Region:
    """Return the region of an operation between matrices.

    >>> square = MatrixOperation("cholesky", (2,))
    >>> whole = Affine(0, 1, 4)
    >>> matrix_region(square, [Gather(0, whole)], [Result(0, 1, whole, "store")]).parallel
    False
    """
    return Region(operation.body, 1, tuple(operands), tuple(results), matrix=operation)


def matrix_program(
    operation: MatrixOperation, values: Sequence[NDArray[np.float64] | None] = (None, None)
) -> RolledProgram:
    """Return an operation as a program; operands with values are constants, the others inputs.

    >>> program = matrix_program(MatrixOperation("log_determinant", (3,)))
    >>> [array.size for array in program.inputs], [array.size for array in program.outputs]
    ([9], [1, 1])
    """
    sizes = operation.operands
    order = sorted(range(len(sizes)), key=lambda k: values[k] is not None)  # the inputs come first
    inputs = tuple(Input(f"matrix_{k}", (sizes[k],)) for k in order if values[k] is None)
    buffers = [Buffer("input" if values[k] is None else "constant", sizes[k], values[k]) for k in order]
    operands = [Gather(order.index(k), Affine(0, 1, size)) for k, size in enumerate(sizes)]
    results = [Result(k, len(sizes) + k, Affine(0, 1, n), "store") for k, n in enumerate(operation.results)]
    outputs = tuple(Output((size,), ()) for size in operation.results)
    buffers += [Buffer("output", size) for size in operation.results]
    region = matrix_region(operation, operands, results)
    return RolledProgram(inputs, outputs, tuple(buffers), (region,), operation.kind.replace("_", " "))


def loops_of(operation: MatrixOperation) -> RolledProgram:
    """Return the loops that an operation stands for; both operands of a product by rows.

    LimitError for a matrix that is too large to be factorized by loops, LoweringError for operations without loops.
    """
    n = operation.sizes[0]
    if operation.kind in WITHOUT_LOOPS:
        raise LoweringError(
            f"the {operation.description} as loops",
            why="only LAPACK carries it out, in a kernel of this process, and outside of loops over it",
            do=f"have SciPy installed ({EXTRA}); in exported code and in loops give these numbers as arguments",
        )
    if operation.kind == "product":
        return matrix_product(*operation.sizes)
    if operation.kind in OWN:
        return order_loops(operation)
    kept = n**3 if operation.kind != "qr" else n * sum(operation.sizes) * operation.sizes[1] // 2
    if kept > LARGEST**3:
        raise LimitError(
            f"the {operation.kind} of a matrix of {n} rows as loops",
            why=f"they keep {kept} numbers, and more than {LARGEST**3} are not allowed",
            do=f"have LAPACK carry it out, in a kernel of this process ({EXTRA}); exported code has loops",
        )
    if operation.kind == "qr":
        return reflections_program(n, operation.sizes[1])
    if operation.kind == "cholesky":
        return cholesky_program(n)
    if operation.kind in ("determinant", "log_determinant"):
        return determinant_program(n, logarithm=operation.kind == "log_determinant")
    make = elimination_program if operation.kind == "solve" else substitution_program
    return make(n, operation.sizes[1], operation.transposed[0])


def has_matrices(program: RolledProgram) -> bool:
    """Return whether some region of a program is a matrix operation."""
    return any(region.matrix is not None for region, _ in regions_of(program.steps))


def asks_library(program: RolledProgram) -> bool:
    """Return whether some region of a program is a matrix operation of a library."""
    return any(region.matrix is not None and region.matrix.kind not in OWN for region, _ in regions_of(program.steps))


def only_whole(program: RolledProgram) -> bool:
    """Return whether some region of a program is a matrix operation without loops outside of straight lines."""
    whole = OWN | WITHOUT_LOOPS
    return any(region.matrix is not None and region.matrix.kind in whole for region, _ in regions_of(program.steps))


def without_library(program: RolledProgram) -> RolledProgram:
    """Return a program with loops in place of calls of a library; LimitError where these are too large."""
    return _replaced(program, lambda operation: operation.kind not in OWN)


def without_matrices(program: RolledProgram) -> RolledProgram:
    """Return a program with loops in place of matrix operations; LimitError where these are too large.

    >>> written = without_matrices(matrix_program(MatrixOperation("cholesky", (3,))))
    >>> has_matrices(written), len(written.steps)
    (False, 3)
    """
    return _replaced(program, lambda operation: True)


Chosen: TypeAlias = Callable[[MatrixOperation], bool]


def _replaced(program: RolledProgram, chosen: Chosen) -> RolledProgram:
    """Return a program with loops in place of chosen operations."""
    if not any(region.matrix is not None and chosen(region.matrix) for region, _ in regions_of(program.steps)):
        return program
    first = program.first_output
    steps = renumbered(program.steps, lambda buffer: buffer if buffer < first else ~(buffer - first))
    writer = _LoopWriter(list(program.buffers[:first]), steps, chosen)
    written = writer.steps(steps, ())
    behind = len(writer.buffers)
    numbered = renumbered(written, lambda buffer: buffer if buffer >= 0 else behind + ~buffer)
    buffers = (*writer.buffers, *program.buffers[first:])
    return RolledProgram(program.inputs, program.outputs, buffers, numbered, program.name)


def written_out(program: Program | RolledProgram) -> Program:
    """Return the straight lines of any program, also of its matrix operations.

    >>> len(written_out(matrix_program(MatrixOperation("product", (1, 1, 2, 1)))))
    7
    """
    return unroll(without_matrices(program) if isinstance(program, RolledProgram) else program)


class _LoopWriter:
    """Writes matrix operations as loops; `buffers` are those of the program without outputs."""

    def __init__(self, buffers: list[Buffer], steps: Sequence[Step], chosen: Chosen) -> None:
        self.buffers, self.chosen = buffers, chosen
        self.results = Counter(use.buffer for region, _ in regions_of(steps) for use in region.results)

    def steps(self, steps: Sequence[Step], counts: tuple[int, ...]) -> list[Step]:
        """Return steps with loops in place of operations, within nests of `counts` rounds."""
        written: list[Step] = []
        for step in steps:
            if isinstance(step, Nest):
                written.append(replace(step, steps=tuple(self.steps(step.steps, (*counts, step.count)))))
            elif step.matrix is None or not self.chosen(step.matrix):
                written.append(step)
            else:
                written += self.loops(step, step.matrix, counts)
        return written

    def loops(self, region: Region, operation: MatrixOperation, counts: tuple[int, ...]) -> list[Step]:
        """Return the loops of an operation; their workspaces have places for every round."""
        before: list[Step] = []
        program, after = loops_of(operation), list[Step]()
        at: dict[int, tuple[int, Table]] = {}  # the places of a buffer: first place and shifts of a table
        for number, use in enumerate(region.gathers):
            at[number] = use.buffer, use.table
            if operation.kind == "product" and operation.transposed[number]:
                at[number] = self.workspace(use.table.count, counts)
                source = Gather(use.buffer, _by_rows(operation, number, use.table))
                before.append(copy(source, *at[number]))
        for number in range(len(program.inputs), program.first_output):
            buffer = program.buffers[number]
            at[number] = self.workspace(buffer.size, counts) if buffer.values is None else self.constants(buffer)
        for number, result in enumerate(region.results, program.first_output):
            at[number] = result.buffer, result.table
            if result.kind != "store" or counts or self.results[result.buffer] > 1:  # loops add from 0, only once
                at[number] = self.workspace(result.table.count, counts)
                after.append(copy(Gather(*at[number]), result.buffer, result.table, result.kind))

        def where(buffer: int, places: Table) -> tuple[int, Table]:
            there, whole = at[buffer]
            return there, moved(places, whole.first, shifts=(*shifts_to(whole, len(counts)), *places.shifts))

        return [*before, *all_readdressed(program.steps, where), *after]

    def workspace(self, size: int, counts: tuple[int, ...]) -> tuple[int, Affine]:
        """Return a new buffer with `size` places for each round."""
        self.buffers.append(Buffer("workspace", size * prod(counts)))
        shifts = tuple(size * prod(counts[k + 1 :]) for k in range(len(counts)))
        return len(self.buffers) - 1, Affine(0, 1, size, shifts)

    def constants(self, buffer: Buffer) -> tuple[int, Affine]:
        self.buffers.append(buffer)
        return len(self.buffers) - 1, Affine(0, 1, buffer.size)


def _by_rows(operation: MatrixOperation, number: int, places: Table) -> Table:
    """Return the places of the entries of an operand of a product, in the order of its rows."""
    stack, rows, inner, columns = operation.sizes
    shape = (stack, inner, rows) if number == 0 else (stack, columns, inner)
    return replace(table(np.swapaxes(places.places().reshape(shape), 1, 2).ravel()), shifts=places.shifts)
