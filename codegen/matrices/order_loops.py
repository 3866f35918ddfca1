"""Sorts, insertion places, gathers and scatters as loops over pairs of elements.

A key's place in the order is the number of keys before it; a number at a computed place is a sum of choices among all.
So these operations have derivatives and straight lines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import sympy as sp

from codegen.errors import LimitError
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.region import Kind, Region, RolledProgram
from codegen.ir.tables import Places, table
from codegen.matrices.factorization_loops import A, B, C, D, LoopBuffers, loop_over

LARGEST = 1 << 20  # pairs of elements


def order_loops(operation: MatrixOperation) -> RolledProgram:
    """Return the loops of an operation with places; LimitError where they have too many repetitions.

    >>> program = order_loops(MatrixOperation("gather", (1, 5, 3)))
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(3,)], [15, 3])
    """
    sizes = operation.sizes
    pairs = sizes[0] * sizes[1] * (sizes[-1] if operation.kind not in ("insertion", "insertion_right") else 1)
    if pairs > LARGEST:
        raise LimitError(
            f"the {operation.description} as loops",
            why=f"they bring {pairs} pairs together, and more than {LARGEST} are not allowed",
            do="take it out of loops, scans and third derivatives: there, and in straight lines, it is made of pairs",
        )
    if operation.kind in ("insertion", "insertion_right"):
        return _insertion(*sizes, right=operation.kind == "insertion_right")
    loops: dict[str, Callable[..., RolledProgram]] = {"order": _order, "gather": _gather, "scatter": _scatter}
    return loops[operation.kind](*sizes)


def _select(condition: sp.Basic, first: sp.Basic, second: sp.Basic | int) -> sp.Basic:
    return sp.Piecewise((first, condition), (second, True), evaluate=False)


def _is_number(value: sp.Basic) -> sp.Basic:
    return sp.Le(sp.Abs(value), sp.oo, evaluate=False)


def _before() -> sp.Basic:
    """Return 1 where the key A comes before the key B, else 0; C for equal keys, of which NaN is the last."""
    numbers = _select(A < B, sp.S.One, _select(sp.Eq(A, B), C, 0))
    return _select(_is_number(B), numbers, _select(_is_number(A), sp.S.One, C))


def _chosen() -> sp.Basic:
    """Return A where the place B, which counts from the end D if it is negative, is C; else 0."""
    return _select(B < 0, _select(sp.Eq(B + D, C), A, 0), _select(sp.Eq(B, C), A, 0))


def _inside() -> sp.Basic:
    """Return A, or NaN where the place B is outside of the size C."""
    return _select(B < C, _select(-C <= B, A, sp.nan), sp.nan)


def _region(
    formula: sp.Basic, reads: Sequence[tuple[int, Places]], target: tuple[int, Places], kind: Kind = "add"
) -> Region:
    slots, tables = (A, B, C, D)[: len(reads)], [(buffer, table(places)) for buffer, places in (*reads, target)]
    return loop_over(slots, [formula], len(target[1]), tables[:-1], tables[-1:], kind)


def _axes(*sizes: int) -> list[Places]:
    return [axis.ravel() for axis in np.indices(sizes)]


def _order(rows: int, n: int) -> RolledProgram:
    buffers, (row, i, j) = LoopBuffers(), _axes(rows, n, n)
    (keys,) = buffers.inputs(rows * n)
    flags, numbers = buffers.constant(np.array([0.0, 1.0])), buffers.constant(np.arange(n))
    (ranks,), (target,) = buffers.workspaces(rows * n), buffers.outputs(rows * n)
    pairs = [(keys, row * n + j), (keys, row * n + i), (flags, (j < i).astype(np.int64))]
    places = [(numbers, i), (ranks, row * n + i), (numbers, j)]
    return buffers.program(
        "order",
        _region(_before(), pairs, (ranks, row * n + i)),
        _region(_select(sp.Eq(B, C), A, 0), places, (target, row * n + j)),
    )


def _insertion(n: int, m: int, *, right: bool) -> RolledProgram:
    buffers, (k, i) = LoopBuffers(), _axes(m, n)
    keys, others = buffers.inputs(n, m)
    flag, (target,) = buffers.constant(np.array([float(right)])), buffers.outputs(m)
    return buffers.program("insertion", _region(_before(), [(keys, i), (others, k), (flag, i * 0)], (target, k)))


def _gather(rows: int, n: int, m: int) -> RolledProgram:
    buffers, (row, k, i), every = LoopBuffers(), _axes(rows, m, n), np.arange(rows * m)
    values, places = buffers.inputs(rows * n, rows * m)
    numbers, size = buffers.constant(np.arange(n)), buffers.constant(np.array([n]))
    (sums,), (target,) = buffers.workspaces(rows * m), buffers.outputs(rows * m)
    reads = [(values, row * n + i), (places, row * m + k), (numbers, i), (size, i * 0)]
    return buffers.program(
        "gather",
        _region(_chosen(), reads, (sums, row * m + k)),
        _region(_inside(), [(sums, every), (places, every), (size, every * 0)], (target, every), "store"),
    )


def _scatter(rows: int, n: int, m: int) -> RolledProgram:
    buffers, (row, i, k) = LoopBuffers(), _axes(rows, n, m)
    values, places = buffers.inputs(rows * m, rows * m)
    numbers, size = buffers.constant(np.arange(n)), buffers.constant(np.array([n]))
    (target,) = buffers.outputs(rows * n)
    reads = [(values, row * m + k), (places, row * m + k), (numbers, i), (size, i * 0)]
    return buffers.program("scatter", _region(_chosen(), reads, (target, row * n + i)))
