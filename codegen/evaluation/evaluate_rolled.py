"""Evaluate a rolled program with NumPy. Tests check kernels and derivatives against it.

Independent repetitions are computed side by side. In a loop with carries, only the rows that the carries and the stop
need are computed one repetition after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen.errors import ArgumentError
from codegen.evaluation.column_functions import evaluate_columns
from codegen.evaluation.interpret import FLOATS
from codegen.evaluation.matrix_numbers import matrix_numbers
from codegen.ir.program import reachable
from codegen.ir.readdress import place_in, places_in, regions_in_time
from codegen.ir.region import Region, Result, RolledProgram
from codegen.limits import check

Numbers = NDArray[np.float64]
BLOCK = 1 << 14  # repetitions side by side, whose columns stay in the caches


def evaluate_rolled(program: RolledProgram, arrays: Sequence[ArrayLike]) -> list[Numbers]:
    """Return the outputs of a rolled program for input arrays, as new arrays.

    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Region, Result
    >>> from codegen.ir.tables import Affine
    >>> import sympy as sp
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> total = Result(0, 1, Affine(0, 0, 3), "add")
    >>> region = Region(program_from_sympy([x], [x**2]), 3, (Gather(0, Affine(0, 1, 3)),), (total,))
    >>> buffers = (Buffer("input", 3), Buffer("output", 1))
    >>> rolled = RolledProgram((Input("x", (3,)),), (Output((), ()),), buffers, (region,))
    >>> evaluate_rolled(rolled, [[1.0, 2.0, 3.0]])
    [array(14.)]
    """
    buffers = _buffers(program, arrays)
    for region, rounds in regions_in_time(program.steps):
        check("evaluating loops")
        _run(region, rounds, buffers)
    outputs = zip(program.outputs, buffers[program.first_output :], strict=True)
    return [values.reshape(output.shape) for output, values in outputs]


def _buffers(program: RolledProgram, arrays: Sequence[ArrayLike]) -> list[Numbers]:
    """Return what is in the buffers at the start."""
    inputs = [np.array(array, dtype=np.float64) for array in arrays]
    if [array.shape for array in inputs] != [array.shape for array in program.inputs]:
        shapes = ", ".join(str(array.shape) for array in program.inputs)
        raise ArgumentError(
            f"arrays of shapes {[array.shape for array in inputs]}", why=f"{program.name} takes {shapes}"
        )
    own = [np.zeros(buffer.size) if buffer.values is None else buffer.values for buffer in program.buffers]
    return [array.ravel() for array in inputs] + own[len(inputs) :]


def _run(region: Region, rounds: tuple[int, ...], buffers: list[Numbers]) -> None:
    """Run a region once."""
    if region.matrix is not None:
        operands = [
            buffers[use.buffer][places_in(use.table, rounds, slice(0, use.table.count))] for use in region.gathers
        ]
        for use, numbers in zip(region.results, matrix_numbers(region.matrix, operands), strict=True):
            _leave([use], [numbers], rounds, slice(0, use.table.count), buffers)
        return
    rows = [output.rows[0] for output in region.body.outputs]
    slots = len(region.gathers) + len(region.carries)
    order = [row for row in reachable(region.body, rows) if row >= slots]
    chain = None if region.parallel else _Chain(region, rows, rounds, buffers)
    for first in range(0, region.count, BLOCK):
        block = slice(first, min(first + BLOCK, region.count))
        gathered = [buffers[use.buffer][places_in(use.table, rounds, block)] for use in region.gathers]
        carried = list[Numbers]()
        if chain is not None:
            carried = chain.run(gathered, block)
            block = slice(block.start, block.start + chain.done)
            gathered = [column[: chain.done] for column in gathered]
        values: dict[int, Any] = dict(enumerate([*gathered, *carried]))
        evaluate_columns(region.body, order, values)
        length = (block.stop - block.start,)
        columns = [np.broadcast_to(values[rows[use.output]], length) for use in region.results]
        _leave(region.results, columns, rounds, block, buffers)
        if chain is not None and chain.stopped:
            break


def _leave(
    results: Sequence[Result], values: Sequence[Any], rounds: tuple[int, ...], block: slice, buffers: list[Numbers]
) -> None:
    """Put the results of some repetitions into buffers, sums in the order of the repetitions."""
    added: dict[int, list[tuple[Any, Any]]] = {}
    for use, column in zip(results, values, strict=True):
        if use.kind == "last":
            buffers[use.buffer][place_in(use.table, rounds)] = column[-1]
            continue
        places = places_in(use.table, rounds, block)
        if use.kind == "store":
            buffers[use.buffer][places] = column
        else:
            added.setdefault(use.buffer, []).append((places, column))
    for buffer, these in added.items():
        places, columns = (np.stack(parts, axis=1).ravel() for parts in zip(*these, strict=True))
        np.add.at(buffers[buffer], places, columns)


class _Chain:
    """What the carries and the stop of a body need: rows that do not depend on carries, and those that do."""

    def __init__(self, region: Region, rows: Sequence[int], rounds: tuple[int, ...], buffers: list[Numbers]) -> None:
        self.body, self.first = region.body, len(region.gathers)
        slots = self.first + len(region.carries)
        self.fed = [rows[carry.output] for carry in region.carries]
        self.stop = None if region.stop is None else rows[region.stop]
        self.queues = [
            [float(buffers[use.buffer][place_in(use.table, rounds)]) for use in carry.initial]
            for carry in region.carries
        ]  # the values that each carried slot reads, from the next repetition on
        ends = self.fed + ([] if self.stop is None else [self.stop])
        needed = reachable(self.body, ends)
        moving = set(range(self.first, slots))
        for row in needed:
            if moving.intersection(self.body.operands[row]):
                moving.add(row)
        self.before = [row for row in needed if row >= slots and row not in moving]
        self.steps = [(row, *FLOATS.step(self.body, row)) for row in needed if row >= slots and row in moving]
        self.read = {part for _, _, parts in self.steps for part in parts} | set(ends)
        self.done, self.stopped = 0, False

    def run(self, gathered: list[Numbers], block: slice) -> list[Numbers]:
        """Return the columns of the carried slots; `done` says how many repetitions of the block were run."""
        values: dict[int, Any] = dict(enumerate(gathered))
        evaluate_columns(self.body, self.before, values)
        length = block.stop - block.start
        columns_read = [(row, np.broadcast_to(values[row], (length,)).tolist()) for row in self.read & values.keys()]
        now: list[Any] = [0.0] * len(self.body)
        for k in range(length):
            for row, column in columns_read:
                now[row] = column[k]
            for slot, queue in enumerate(self.queues, self.first):
                now[slot] = queue[k]
            for row, function, parts in self.steps:
                if len(parts) == 2:
                    first, second = parts
                    now[row] = function(now[first], now[second])
                else:
                    now[row] = function(*[now[part] for part in parts])
            for queue, row in zip(self.queues, self.fed, strict=True):
                queue.append(now[row])
            if self.stop is not None and now[self.stop]:
                self.stopped = True
                break
        self.done = k + 1
        columns = [np.array(queue[: self.done], dtype=np.float64) for queue in self.queues]
        self.queues = [queue[self.done :] for queue in self.queues]
        return columns
