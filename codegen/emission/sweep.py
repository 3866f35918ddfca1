"""Sweeps: a program whose last input is a seed is evaluated at every unit vector of that seed, in vector lanes.

A dense Jacobian or Hessian is a pushforward along every column. What does not depend on the seed (values and partial
derivatives) is computed once, in scalar code; the linear rest runs over blocks of columns, one column in each lane.
So the code stays as small as one pushforward, where the straight-line matrix has an operation for every entry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from codegen.emission.emit import MEMORY, POINT, Emitted, Form
from codegen.emission.lanes import Lanes, Layout
from codegen.emission.schedule import CHUNK
from codegen.emission.straight import StraightPlan
from codegen.emission.sweep_text import driver, unit_vectors
from codegen.engine import vector_bits
from codegen.lowering.guards import guard
from codegen.lowering.lower import Lowered
from codegen.lowering.machine import TRUTHS, operands_of
from codegen.program import Input, Output, Program

ZERO = ("const", bytes(8))


def lanes_of(program: Program) -> Lanes:
    """Return the lanes of a sweep: the widest registers that the columns fill.

    >>> lanes_of(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True)).width
    2
    """
    columns, width = program.inputs[-1].size, max(1, vector_bits() // 64)
    while width > columns:
        width //= 2
    return Lanes(max(width, 1))


@dataclass(frozen=True)
class Split:
    """The two halves of a sweep: `once` stores the residuals as a last array, and `columns` reads them."""

    once: Lowered
    columns: Lowered
    residuals: int


@dataclass(frozen=True)
class SweepPlan:
    """The two halves of a sweep, ready to be written: `once` writes the residuals that `columns` reads."""

    program: Program
    once: StraightPlan
    columns: StraightPlan
    residuals: int
    strategy = "sweep"

    @classmethod
    def of(
        cls, program: Program, lowered: Lowered, chunk: int | None = None, *, vector_libm: bool = False
    ) -> SweepPlan:
        """Split a seeded program, and schedule both halves."""
        seed = program.inputs[-1]
        halves = split(program, lowered)
        fixed = tuple(output for output in program.outputs if not output.swept)
        swept = tuple(replace(output, positions=None) for output in program.outputs if output.swept)
        kept = Output((halves.residuals,), ())
        first = replace(program, inputs=program.arguments, outputs=(*fixed, kept), seeded=False)
        second = replace(program, inputs=(Input("residuals", kept.shape), seed), outputs=swept, seeded=False)
        return cls(
            program,
            StraightPlan.of(first, halves.once, chunk, vector_libm=vector_libm),
            StraightPlan.of(second, halves.columns, chunk or CHUNK, vector_libm=vector_libm),
            halves.residuals,
        )

    @property
    def lanes(self) -> Lanes:
        """Lanes of the columns: the widest registers that they fill."""
        return lanes_of(self.program)

    def emit(self, form: Form = POINT) -> Emitted:
        """Return the IR: both halves, and the kernel that runs the second one over blocks of columns.

        Several points side by side fill the lanes themselves, and columns follow one another.
        """
        columns, points = self.program.inputs[-1].size, form.lanes.width
        if points > 1:
            second = Form("columns", form.lanes, {1: Layout(-1, uniform=True)})
        else:
            rows = {k: Layout(1) for k in range(len(self.columns.program.outputs))}
            second = Form("columns", self.lanes, {0: Layout(1, uniform=True), 1: Layout(-1)}, rows)
        emitted = self.once.emit(Form("once", form.lanes)) + self.columns.emit(second)
        kernel = driver(self.program, self.residuals, 1 if points > 1 else self.lanes.width, form.lanes)
        unit = unit_vectors(columns, form.lanes.scalar)
        return emitted + Emitted([], [unit, kernel], {found.name: found for found in MEMORY})

    def executed(self) -> Counter[str]:
        """Operations that one call carries out, by kind; one on a vector register counts once."""
        return _executed(self.program, self.once.lowered, self.columns.lowered)

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return self.once.chunks + self.columns.chunks

    @property
    def workspace(self) -> int:
        """Number of values that pass through memory, between halves and from chunk to chunk."""
        return self.residuals + self.once.workspace + self.columns.workspace * self.lanes.width


def executed(program: Program, lowered: Lowered) -> Counter[str]:
    """Operations that one call of a sweep carries out, by kind; one on a vector register counts once."""
    halves = split(program, lowered)
    return _executed(program, halves.once, halves.columns)


def _executed(program: Program, once: Lowered, columns: Lowered) -> Counter[str]:
    blocks = -(-program.inputs[-1].size // lanes_of(program).width)
    return once.count() + Counter({kind: blocks * count for kind, count in columns.count().items()})


def split(program: Program, lowered: Lowered) -> Split:
    """Return the rows that do not depend on the seed and those that do, each with its stores; products are guarded."""
    seed = program.inputs[-1]
    start = program.input_count - seed.size
    lowered = guard(lowered, start, seed.size)
    rows = lowered.rows
    swept = [output.swept for output in program.outputs]
    moving = [store for store in lowered.stores if swept[store[0]]]
    depends = _dependent(lowered, start)
    crossing = _crossing(lowered, depends, [row for _, _, row in moving])
    once, columns = list(rows), list(rows)
    stores = [store for store in lowered.stores if not swept[store[0]]]
    number = {array: sum(other == swept[array] for other in swept[:array]) for array in range(len(swept))}
    stores = [(number[array], position, row) for array, position, row in stores]
    for row, place in crossing.items():
        kept = row
        if rows[row][0] in TRUTHS:  # crosses as a number
            kept = len(once)
            once.append(("number", row))
            columns += [("input", place), ZERO]
            columns[row] = ("compare", "une", len(columns) - 2, len(columns) - 1)
        else:
            columns[row] = ("input", place)
        stores.append((len(swept) - sum(swept), place, kept))
    for index, (code, *fields) in enumerate(rows):
        if code == "input" and fields[0] >= start:
            columns[index] = ("input", fields[0] - start + len(crossing))
    second = [(number[array], position, row) for array, position, row in moving]
    return Split(
        replace(lowered, rows=once, stores=stores), replace(lowered, rows=columns, stores=second), len(crossing)
    )


def _dependent(lowered: Lowered, start: int) -> bytearray:
    """Mark the rows that depend on the seed: the inputs from position `start` on."""
    depends = bytearray(len(lowered.rows))
    for index in lowered.live():
        row = lowered.rows[index]
        seed = row[0] == "input" and row[1] >= start
        depends[index] = seed or any(depends[operand] for operand in operands_of(row))
    return depends


def _crossing(lowered: Lowered, depends: bytearray, stored: list[int]) -> dict[int, int]:
    """Number the rows without seed that rows with seed, or stores of columns, read; constants are known to both."""
    wanted = [u for row in lowered.live() if depends[row] for u in operands_of(lowered.rows[row])]
    needed = dict.fromkeys(u for u in [*wanted, *stored] if not depends[u])
    constant = ("const", "true", "false")
    return {row: place for place, row in enumerate(row for row in needed if lowered.rows[row][0] not in constant)}
