"""Draft: a rolled program in the making. Buffers come in any order; in the end those in use are numbered anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from codegen.ir.body_parts import body_part
from codegen.ir.accesses import check_rounds
from codegen.ir.program import Input, Output, Program
from codegen.ir.readdress import buffers_read, buffers_written, renumbered
from codegen.ir.region import Buffer, Carry, Gather, Region, Result, RolledProgram, Step
from codegen.ir.strictness import checked, strict
from codegen.ir.tables import Affine
from codegen.loops.optimise.dead_code import without_dead_code
from codegen.loops.optimise.fusion import fused
from codegen.stages import carried_out, observed, watched

Pass = Callable[[Sequence[Step]], Sequence[Step]]


class Draft:
    """The buffers of a program and what a derivative adds to them; the steps that the derivative consists of."""

    def __init__(self, program: RolledProgram) -> None:
        self.program = program
        self.buffers = list(program.buffers)
        self.steps: list[Step] = []
        self.numbers: dict[float, int] = {}
        self.read_once: set[int] = set()  # buffers each place of which is read by one repetition of one region

    @property
    def infinite(self) -> list[int]:
        """Constants that are not all finite."""
        return [k for k, found in enumerate(self.buffers) if found.values is not None and not _finite(found.values)]

    def workspace(self, size: int) -> int:
        """Return a new buffer."""
        self.buffers.append(Buffer("workspace", size))
        return len(self.buffers) - 1

    def like(self, buffer: int) -> int:
        """Return a new buffer of the size of another one: for its tangents or cotangents."""
        return self.workspace(self.buffers[buffer].size)

    def number(self, value: float, count: int = 1) -> Gather:
        """Return where a constant is read."""
        if value not in self.numbers:
            self.buffers.append(Buffer("constant", 1, np.array([value])))
            self.numbers[value] = len(self.buffers) - 1
        return Gather(self.numbers[value], Affine(0, 0, count))

    def finish(
        self, inputs: Sequence[tuple[Input, int]], outputs: Sequence[tuple[Output, int]], name: str
    ) -> RolledProgram:
        """Return the program of the steps with these arrays, without what the outputs do not need.

        `name` is that of the pass whose steps they are.
        """
        wanted = [buffer for _, buffer in outputs]

        def whole(steps: Sequence[Step]) -> RolledProgram:
            return self.program_of(steps, inputs, outputs)

        tidy: Pass = partial(without_dead_code, wanted=wanted)
        passes: list[tuple[str, Pass]] = [("dead-code", tidy), ("loop-fusion", fused), ("dead-code", tidy)]
        steps: Sequence[Step] = observed(self.steps, name, whole=whole)
        for each, change in passes:
            steps = carried_out(each, change, steps, whole=whole)
            if strict() and each == "dead-code" and not watched():  # what is fused is whole when dead code has gone
                checked(whole(steps), f"{each} of {name}", needed=True)
        made = whole(steps)
        if strict():
            check_rounds(made)
        return made

    def check(self, steps: Sequence[Step], after: str, before: Sequence[Step]) -> None:
        """With strictness on, check what a pass has made of the steps `before`, which compute the program's outputs."""
        if strict() and list(steps) != list(before):
            inputs = [(array, number) for number, array in enumerate(self.program.inputs)]
            outputs = [(array, number) for number, array in enumerate(self.program.outputs, self.program.first_output)]
            checked(self.program_of(steps, inputs, outputs), after)

    def program_of(
        self, steps: Sequence[Step], inputs: Sequence[tuple[Input, int]], outputs: Sequence[tuple[Output, int]]
    ) -> RolledProgram:
        """Return the program of some steps, with the buffers that they use."""
        ends = {buffer for _, buffer in (*inputs, *outputs)}
        used = buffers_read(steps) | buffers_written(steps)
        middle = [buffer for buffer in range(len(self.buffers)) if buffer in used and buffer not in ends]
        order = [*(buffer for _, buffer in inputs), *middle, *(buffer for _, buffer in outputs)]
        number = {buffer: k for k, buffer in enumerate(order)}
        buffers = [
            *(Buffer("input", array.size) for array, _ in inputs),
            *(Buffer("workspace", found.size) if found.values is None else found for found in map(self._at, middle)),
            *(Buffer("output", array.size) for array, _ in outputs),
        ]
        return RolledProgram(
            tuple(array for array, _ in inputs), tuple(array for array, _ in outputs), tuple(buffers),
            renumbered(steps, number.__getitem__), self.program.name,
        )  # fmt: skip

    def _at(self, buffer: int) -> Buffer:
        return self.buffers[buffer]


def _finite(values: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(values).all())


@dataclass(frozen=True, eq=False)
class Wiring:
    """A region in the making: what each slot of a body reads, in any order, and where its outputs go.

    Outputs may be those that `body_part` knows: ~s for slot s itself, None for the number 0.
    """

    body: Program
    gathers: Mapping[int, Gather]
    carries: Mapping[int, tuple[int | None, tuple[Gather, ...]]]
    results: Sequence[tuple[int | None, Result]]  # the output of the result is not looked at

    def region(self, count: int, origin: str, stop: int | None = None) -> Region:
        """Return the region: gathers first, outputs one after the other."""
        outputs = [output for output, _ in self.carries.values()] + [output for output, _ in self.results]
        outputs += [] if stop is None else [stop]
        number = {output: k for k, output in enumerate(dict.fromkeys(outputs))}
        body = body_part(self.body, [*self.gathers, *self.carries], list(number))
        results = tuple(replace(use, output=number[output]) for output, use in self.results)
        carries = tuple(Carry(number[output], initial) for output, initial in self.carries.values())
        last = None if stop is None else number[stop]
        return Region(body, count, tuple(self.gathers.values()), results, carries, last, origin)


def fresh_name(name: str, taken: Sequence[Input]) -> str:
    """Return a name that no input has yet, with underscores behind it if need be.

    >>> fresh_name("x", [Input("x", ()), Input("x_", ())])
    'x__'
    """
    names = {array.name for array in taken}
    while name in names:
        name += "_"
    return name
