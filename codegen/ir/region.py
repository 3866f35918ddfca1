"""A region runs a body `count` times, over tables of the places that it reads and writes.

A rolled program is a list of regions over buffers: the input arrays, constants, workspaces, and the output arrays.
Straight-line code is a region that is run once, so there is only one kind of row.

    for k in range(count):
        slots  = [buffer[table[k]] for each gather] + [output of the body `lag` repetitions ago, for each carry]
        values = body(*slots)
        buffer[table[k]] = value    (store)
        buffer[table[k]] += value   (add: from zero, in the order of k)
        if the stop output is true: break
    buffer[table[0]] = value        (last: of the last repetition)

A nest runs its regions one after the other, `count` times; the places of their tables move on with each round.
Buffers other than inputs and constants are zero at the start. A place is either stored once or added to, and it is read
only after all writes to it, so derivatives have this form too: a gather transposed is an add, a store or add transposed
is a gather, a carry transposed is a carry that runs backward.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from itertools import chain, count as counting
from math import prod
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from codegen.errors import ArgumentError
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Input, Output, Program, operations_of
from codegen.ir.tables import Affine, Table
from codegen.records import dataclass

Kind = Literal["store", "add", "last"]


@dataclass(frozen=True, eq=False)
class Buffer:
    """Numbers side by side: an input array, constants (then with their values), a workspace, or an output array."""

    kind: Literal["input", "constant", "workspace", "output"]
    size: int
    values: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Gather:
    """The places that a slot of the body reads: `buffer[table[k]]`."""

    buffer: int
    table: Table


@dataclass(frozen=True, eq=False)
class Carry:
    """A slot that reads an output of the body from `lag` repetitions before; the first ones read initial values."""

    output: int
    initial: tuple[Gather, ...]  # each a table of one place; the oldest first

    @property
    def lag(self) -> int:
        return len(self.initial)


@dataclass(frozen=True, eq=False)
class Result:
    """The places that an output of the body is stored or added to: `buffer[table[k]]`; "last" has one place."""

    output: int
    buffer: int
    table: Table
    kind: Kind


@dataclass(frozen=True, eq=False)
class Region:
    """A body over `count` repetitions; its inputs are scalars: the slots of the gathers, then those of the carries.

    `stop` is the number of a Boolean output: the repetition in which it is true is the last one (a loop of `while`,
    of at most `count` repetitions). `origin` is where the body was written: "file.py:12-16". A region of a
    `matrix` operation is run once, and its tables have all entries of its operands and results.
    """

    body: Program
    count: int
    gathers: tuple[Gather, ...]
    results: tuple[Result, ...]
    carries: tuple[Carry, ...] = ()
    stop: int | None = None
    origin: str = ""
    matrix: MatrixOperation | None = None

    @cached_property
    def reads(self) -> tuple[Gather, ...]:
        """The reads of slots in every repetition, then of the initial values of carries."""
        return (*self.gathers, *(use for carry in self.carries for use in carry.initial))

    @property
    def uses(self) -> tuple[Gather | Result, ...]:
        """The uses in every repetition: reads of slots, then results."""
        return (*self.gathers, *self.results)

    @cached_property
    def filled(self) -> frozenset[int]:
        """The buffers of results."""
        return frozenset([use.buffer for use in self.results])

    @cached_property
    def touched(self) -> frozenset[int]:
        """The buffers that are read, or stored to."""
        stored = (use.buffer for use in self.results if use.kind != "add")
        return frozenset([*(use.buffer for use in self.reads), *stored])

    @property
    def parallel(self) -> bool:
        """Whether the repetitions are independent."""
        return not self.carries and self.stop is None and self.matrix is None


@dataclass(frozen=True, eq=False)
class Nest:
    """Regions one after the other, `count` times; places move on by shifts; rounds may reuse workspaces."""

    count: int
    steps: tuple[Step, ...]


Step: TypeAlias = Region | Nest


@dataclass(frozen=True, eq=False)
class RolledProgram:
    """Regions in the order in which they run, over buffers: inputs first, outputs last, in the order of the arrays.

    The outputs have shapes and patterns as those of a `Program`, but no rows.
    """

    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step, ...]
    name: str = field(default="kernel")
    seeded = False  # no sweep over columns, see Program

    def __post_init__(self) -> None:
        _check_arrays(self)
        for number, (region, counts) in enumerate(regions_of(self.steps)):
            _check(self, region, counts, f"region {number} of {self.name}")

    @property
    def arguments(self) -> tuple[Input, ...]:
        return self.inputs

    @property
    def first_output(self) -> int:
        """Number of the buffer of the first output."""
        return len(self.buffers) - len(self.outputs)

    @property
    def operations(self) -> int:
        """Operations in all bodies, each counted once; the size of the code is proportional to it."""
        return sum(operations_of(region.body) for region, _ in regions_of(self.steps))

    @property
    def executed(self) -> int:
        """Operations of one call: of the bodies and the additions of their results, times how often they run."""
        total = 0
        for region, counts in regions_of(self.steps):
            adds = sum(use.kind == "add" for use in region.results)
            once = region.count * (operations_of(region.body) + adds)
            total += prod(counts) * (once if region.matrix is None else region.matrix.operations)
        return total


def span(lines: Sequence[int]) -> str:
    """Return the lines of an origin as text, from the first to the last: "12-16"."""
    return f"{min(lines)}-{max(lines)}" if min(lines) < max(lines) else str(min(lines))


def regions_of(steps: Sequence[Step]) -> Iterator[tuple[Region, tuple[int, ...]]]:
    """Return every region in order, with the counts of the nests around it, the outermost first."""
    stack: list[tuple[Step, tuple[int, ...]]] = [(step, ()) for step in reversed(steps)]
    while stack:
        step, counts = stack.pop()
        if isinstance(step, Region):
            yield step, counts
        else:
            stack += [(inner, (*counts, step.count)) for inner in reversed(step.steps)]


def _check_arrays(program: RolledProgram) -> None:
    """Refuse buffers that do not fit the arrays."""
    kinds = [buffer.kind for buffer in program.buffers]
    inputs, outputs = len(program.inputs), len(program.outputs)
    middle = kinds[inputs : len(kinds) - outputs]
    fits = (
        kinds[:inputs] == ["input"] * inputs and kinds[len(kinds) - outputs :] == ["output"] * outputs
        and not {"input", "output"} & set(middle)
    )  # fmt: skip
    arrays: list[Input | Output] = [*program.inputs, *program.outputs]
    sizes = [buffer.size for buffer in (*program.buffers[:inputs], *program.buffers[len(kinds) - outputs :])]
    if not fits or [array.size for array in arrays] != sizes:
        raise ArgumentError(f"buffers {kinds} of {program.name}", why="the inputs come first and the outputs last")
    for buffer in program.buffers:
        if (buffer.kind == "constant") != (buffer.values is not None and len(buffer.values) == buffer.size):
            raise ArgumentError(f"a buffer of {buffer.size} numbers", why="constants have values, others have none")


def _check(program: RolledProgram, region: Region, counts: tuple[int, ...], where: str) -> None:
    """Refuse a region whose tables do not fit its body, its count or its buffers: ArgumentError that names it."""
    slots = len(region.gathers) + len(region.carries)
    if min((region.count, *counts)) < 1:
        raise ArgumentError(f"a loop of {(region.count, *counts)} repetitions", where=where, why="none are run")
    if slots != len(region.body.inputs) or not _is_scalar(region.body):
        raise ArgumentError(f"{slots} slots, {region.count} repetitions", where=where, why="the body does not fit")
    if not all(carry.initial for carry in region.carries):
        raise ArgumentError("a carry without initial values", where=where, why="its first slots have no number")
    uses: list[tuple[Gather | Result, int]] = [(gather, 1) for carry in region.carries for gather in carry.initial]
    if region.matrix is None:
        uses += [(gather, region.count) for gather in region.gathers]
        uses += [(use, 1 if use.kind == "last" else region.count) for use in region.results]
    else:
        _check_matrix(region, region.matrix, where)
        uses += zip(region.gathers, region.matrix.operands, strict=True)
        uses += zip(region.results, region.matrix.results, strict=True)
    for use, count in uses:
        if not 0 <= use.buffer < len(program.buffers):
            raise ArgumentError(f"buffer {use.buffer} of {len(program.buffers)}", where=where)
        low, high = bounds_in(use.table, counts) if use.table.count else (0, -1)
        if use.table.count != count or low < 0 or high >= program.buffers[use.buffer].size:
            raise ArgumentError(
                f"places {low} to {high} of a buffer of {program.buffers[use.buffer].size}, {use.table.count} times",
                where=where, why=f"the body is run {count} times, and a place outside of the buffer has no number",
            )  # fmt: skip
    if any(program.buffers[use.buffer].kind in ("input", "constant") for use in region.results):
        raise ArgumentError("a result that overwrites an input", where=where)
    used = [use.output for use in region.results] + [carry.output for carry in region.carries]
    used += [] if region.stop is None else [region.stop]
    if any(not 0 <= output < len(region.body.outputs) for output in used):
        raise ArgumentError(f"an output beyond the {len(region.body.outputs)} of the body", where=where)


def _check_matrix(region: Region, matrix: MatrixOperation, where: str) -> None:
    """Refuse a region of a matrix operation that is not run once, or has other operands or results."""
    tables = [use.table for use in region.uses if use.table.count > 1]
    if not all(isinstance(table, Affine) and table.step == 1 for table in tables):
        raise ArgumentError(f"a {matrix.kind} of matrices that are not side by side", where=where)
    if region.count != 1 or region.carries or region.body.heads != matrix.body.heads:
        raise ArgumentError(f"{region.count} repetitions of a {matrix.kind}", where=where, why="it is run once")
    numbers = len(region.gathers), len(region.results)
    if numbers != (len(matrix.operands), len(matrix.results)):
        raise ArgumentError(f"a {matrix.kind} with {numbers} operands and results", where=where)


def _is_scalar(body: Program) -> bool:
    rows = [output.rows for output in body.outputs if output.positions is None and not output.shape]
    single = len(rows) == len(body.outputs) and all(len(row) == 1 and 0 <= row[0] < len(body) for row in rows)
    return single and not body.seeded and not any(slot.shape for slot in body.inputs)


def bounds_in(table: Table, counts: tuple[int, ...]) -> tuple[int, int]:
    """Return the lowest and the highest place in all rounds of the nests around."""
    low, high = table.bounds
    for count, shift in zip(counts, table.shifts, strict=False):
        low, high = low + min(0, shift * (count - 1)), high + max(0, shift * (count - 1))
    return low, high


def buffer_names(program: RolledProgram) -> list[str]:
    """Return the names of all buffers: those of inputs, then new ones: out0... of outputs, w0... or c0... of others."""
    taken = [array.name for array in program.inputs]
    named = {
        "input": iter(taken), "output": _fresh("out", taken, first="out" if len(program.outputs) == 1 else None),
        "workspace": _fresh("w", taken), "constant": _fresh("c", taken),
    }  # fmt: skip
    return [next(named[buffer.kind]) for buffer in program.buffers]


def _fresh(letter: str, taken: Sequence[str], first: str | None = None) -> Iterator[str]:
    names = (f"{letter}{k}" for k in counting())
    yield from (name for name in chain([] if first is None else [first], names) if name not in taken)
