"""Sweeps: a program whose last input is a seed is evaluated at every unit vector of that seed, in vector lanes.

A dense Jacobian or Hessian is a pushforward along every column. What does not depend on the seed (values and partial
derivatives) is computed once, in scalar code; the linear rest runs over blocks of columns, one column in each lane.
So the code stays as small as one pushforward, where the straight-line matrix has an operation for every entry.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from codegen.emission.emit import MEMORY, POINT, Emitted, Form
from codegen.emission.schedule import CHUNK
from codegen.emission.straight import StraightPlan
from codegen.emission.sweep_text import driver, unit_vectors
from codegen.ir.program import Input, Output, Program
from codegen.lanes import Lanes, Layout
from codegen.lowering.halves import columns_at_once, executed_halves, split
from codegen.lowering.lower import Lowered
from codegen.stages import observed, part


def lanes_of(program: Program) -> Lanes:
    """Return the lanes of a sweep: the widest registers that the columns fill.

    >>> lanes_of(Program([], [], {}, (Input("seed", (3,)),), (), seeded=True)).width
    2
    """
    return Lanes(columns_at_once(program))


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
        observed(halves.once, "sweep split, what is done once")
        observed(halves.columns, "sweep split, what is done for every column")
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
        with part("once"):
            emitted = self.once.emit(Form("once", form.lanes))
        with part("columns"):
            emitted += self.columns.emit(second)
        kernel = driver(self.program, self.residuals, 1 if points > 1 else self.lanes.width, form.lanes)
        unit = unit_vectors(columns, form.lanes.scalar)
        return emitted + Emitted([], [unit, kernel], {found.name: found for found in MEMORY})

    def executed(self) -> Counter[str]:
        """Operations that one call carries out, by kind; one on a vector register counts once."""
        return executed_halves(self.program, self.once.lowered, self.columns.lowered)

    @property
    def chunks(self) -> int:
        """Number of chunk functions."""
        return self.once.chunks + self.columns.chunks

    @property
    def workspace(self) -> int:
        """Number of values that pass through memory, between halves and from chunk to chunk."""
        return self.residuals + self.once.workspace + self.columns.workspace * self.lanes.width
