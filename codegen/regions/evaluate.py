"""Evaluate: a rolled program with NumPy, without a compiler; what its kernels and derivatives are checked against.

Repetitions that know nothing of each other are computed side by side. Of a loop with carries, only what the carries
and the stop need is computed one repetition after the other, and then all the rest side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from codegen.errors import ArgumentError
from codegen.functions.float_functions import divide
from codegen.functions.intrinsics import intrinsic
from codegen.interpret import PAIRS
from codegen.limits import check
from codegen.program import Program, reachable
from codegen.regions.columns import evaluate_columns, quotient_of
from codegen.regions.region import Region, Result, RolledProgram
from codegen.regions.rounds import place_in, places_in, regions_in_time

Numbers = NDArray[np.float64]
BLOCK = 1 << 14  # repetitions side by side, whose columns stay in the caches


def evaluate_rolled(program: RolledProgram, arrays: Sequence[ArrayLike]) -> list[Numbers]:
    """Return the outputs of a rolled program for input arrays, as new arrays.

    >>> from codegen.program import Input, Output
    >>> from codegen.regions.region import Buffer, Gather, Region, Result
    >>> from codegen.regions.table import Affine
    >>> from codegen.sympy_in import program_from_sympy
    >>> import sympy as sp
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
    given = [np.array(array, dtype=np.float64) for array in arrays]
    if [array.shape for array in given] != [array.shape for array in program.inputs]:
        shapes = ", ".join(str(array.shape) for array in program.inputs)
        raise ArgumentError(
            f"arrays of shapes {[array.shape for array in given]}", why=f"{program.name} takes {shapes}"
        )
    made = [np.zeros(buffer.size) if buffer.values is None else buffer.values for buffer in program.buffers]
    return [array.ravel() for array in given] + made[len(given) :]


def _run(region: Region, rounds: tuple[int, ...], buffers: list[Numbers]) -> None:
    """Run a region once."""
    gathers = [buffers[use.buffer][places_in(use.table, rounds)] for use in region.gathers]
    wanted = [output.rows[0] for output in region.body.outputs]
    count, carried = region.count, list[Numbers]()
    if not region.parallel:
        initial = [[float(buffers[g.buffer][place_in(g.table, rounds)]) for g in c.initial] for c in region.carries]
        count, carried = _Chain(region, wanted).run(gathers, initial)
    slots = [column[:count] for column in (*gathers, *carried)]
    order = [row for row in reachable(region.body, wanted) if row >= len(slots)]
    places = [places_in(use.table, rounds) for use in region.results]
    for block in _blocks(count):
        values: dict[int, Any] = {k: column[block] for k, column in enumerate(slots)}
        evaluate_columns(region.body, order, values)
        found = [
            np.broadcast_to(values[wanted[use.output]], (block.stop - block.start,)) for use in region.results
        ]  # fmt: skip
        _leave(region.results, places, found, block, buffers)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(first, min(first + BLOCK, count)) for first in range(0, count, BLOCK))


def _leave(
    results: Sequence[Result], places: Sequence[Any], found: Sequence[Any], block: slice, buffers: list[Numbers]
) -> None:
    """Put the results of some repetitions into buffers, sums in the order of the repetitions."""
    added: dict[int, list[int]] = {}
    for k, use in enumerate(results):
        if use.kind == "add":
            added.setdefault(use.buffer, []).append(k)
        elif use.kind == "store":
            buffers[use.buffer][places[k][block]] = found[k]
        else:
            buffers[use.buffer][places[k][0]] = found[k][-1]
    for buffer, these in added.items():
        where = np.stack([places[k][block] for k in these], axis=1)
        np.add.at(buffers[buffer], where.ravel(), np.stack([found[k] for k in these], axis=1).ravel())


class _Chain:
    """What the carries and the stop of a body need: rows that do not depend on carries, and those that do."""

    def __init__(self, region: Region, wanted: Sequence[int]) -> None:
        self.region, self.body, self.wanted = region, region.body, wanted
        self.first = len(region.gathers)
        self.slots = self.first + len(region.carries)
        self.fed = [wanted[carry.output] for carry in region.carries]
        self.stop = None if region.stop is None else wanted[region.stop]
        needed = reachable(self.body, [*self.fed, *([] if self.stop is None else [self.stop])])
        moving = set(range(self.first, self.slots))
        for row in needed:
            if moving.intersection(self.body.operands[row]):
                moving.add(row)
        self.before = [row for row in needed if row >= self.slots and row not in moving]
        self.steps = [_step(self.body, row) for row in needed if row >= self.slots and row in moving]
        self.moving = moving

    def run(self, gathers: list[Numbers], initial: list[list[float]]) -> tuple[int, list[Numbers]]:
        """Return how many repetitions were run, and the columns of the carried slots."""
        values: dict[int, Any] = dict(enumerate(gathers))
        evaluate_columns(self.body, self.before, values)
        read = {part for _, _, parts in self.steps for part in parts} | {*self.fed, self.stop}
        given = [
            (row, np.broadcast_to(column, (self.region.count,)).tolist())
            for row, column in values.items() if row in read
        ]  # fmt: skip
        now: list[Any] = [0.0] * len(self.body)
        for k in range(self.region.count):
            for row, column in given:
                now[row] = column[k]
            for slot, queue in enumerate(initial, self.first):
                now[slot] = queue[k]
            for row, function, parts in self.steps:
                now[row] = function(*[now[part] for part in parts])
            for queue, row in zip(initial, self.fed, strict=True):
                queue.append(now[row])
            if self.stop is not None and now[self.stop]:
                break
        return k + 1, [np.array(queue[: k + 1], dtype=np.float64) for queue in initial]


def _step(body: Program, row: int) -> tuple[int, Callable[..., Any], tuple[int, ...]]:
    """A row as a function of floats."""
    quotient = quotient_of(body, row)
    if quotient is not None:
        return row, divide, quotient
    parts, head = body.operands[row], body.heads[row]
    number = intrinsic(head).number
    return row, PAIRS.get(head, number) if len(parts) == 2 else number, parts
