"""A rolled program under construction. Buffers come in any order and are numbered at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.accesses import check_rounds
from codegen.ir.program import Input, Output
from codegen.ir.readdress import buffers_read, buffers_written, interned, renumbered
from codegen.ir.region import Buffer, Gather, Region, RolledProgram, Step, regions_of
from codegen.ir.strictness import checked, strict
from codegen.ir.tables import Affine
from codegen.loops.optimise.constant_propagation import with_constants
from codegen.loops.optimise.dead_code import without_dead_code
from codegen.loops.optimise.fusion import fused
from codegen.loops.optimise.reordering import reordered
from codegen.stages import carried_out, observed, watched


class Draft:
    """The buffers and steps of a program, which a pass or a derivative extends or replaces."""

    def __init__(self, program: RolledProgram) -> None:
        self.program = program
        self.buffers: list[Buffer] = list(program.buffers)
        self.steps: list[Step] = list(program.steps)
        self.before: dict[int, list[Region]] = {}  # more regions, by the step that they stand before
        self.numbers: dict[float, int] = {}
        self.read_once: set[int] = set()  # buffers each place of which is read by one repetition of one region

    @property
    def infinite(self) -> list[int]:
        """Constants that are not all finite."""
        constants = ((k, buffer.values) for k, buffer in enumerate(self.buffers) if buffer.values is not None)
        return [k for k, values in constants if not np.isfinite(values).all()]

    @property
    def added(self) -> list[Buffer]:
        """The buffers that the program did not have."""
        return self.buffers[len(self.program.buffers) :]

    def workspace(self, size: int) -> int:
        self.buffers.append(Buffer("workspace", size))
        return len(self.buffers) - 1

    def constants(self, values: NDArray[np.float64]) -> int:
        self.buffers.append(Buffer("constant", len(values), values))
        return len(self.buffers) - 1

    def like(self, buffer: int) -> int:
        """Return a new buffer of the size of another one: for its tangents or cotangents."""
        return self.workspace(self.buffers[buffer].size)

    def number(self, value: float, count: int = 1) -> Gather:
        """Return a slot that reads a constant."""
        if value not in self.numbers:
            self.numbers[value] = self.constants(np.array([value]))
        return Gather(self.numbers[value], Affine(0, 0, count))

    def finish(
        self, inputs: Sequence[tuple[Input, int]], outputs: Sequence[tuple[Output, int]], name: str
    ) -> RolledProgram:
        """Return the optimised program of the steps with these arrays; `name` is the pass whose steps they are."""

        def whole(steps: Sequence[Step]) -> RolledProgram:
            return self.program_of(steps, inputs, outputs)

        tidy = partial(without_dead_code, outputs=[buffer for _, buffer in outputs])
        steps: Sequence[Step] = carried_out("dead-code", tidy, observed(self.steps, name, whole=whole), whole=whole)
        if strict() and not watched():
            checked(whole(steps), f"dead-code of {name}", needed=True)
        fewer = carried_out("constants", with_constants, steps, whole=whole)
        fewer = carried_out("reordering", reordered, fewer, whole=whole)
        fewer = carried_out("loop-fusion", fused, fewer, whole=whole)
        if watched() or [*regions_of(fewer)] != [*regions_of(steps)]:  # else there is no new dead code
            steps = carried_out("dead-code", tidy, fewer, whole=whole)
            if strict() and not watched():  # fused regions are valid once dead code is gone
                checked(whole(steps), f"dead-code of {name}", needed=True)
        program = whole(steps)
        if strict():
            check_rounds(program)
        return program

    def insert(self, at: int, region: Region) -> None:
        """Run a region before a step, after others inserted there."""
        self.before.setdefault(at, []).append(region)

    def finished(self) -> RolledProgram:
        """Return the program with all regions in place; the buffers right before the outputs are those added."""
        steps = [inner for at, step in enumerate(self.steps) for inner in (*self.before.get(at, ()), step)]
        return self.program_of([*steps, *self.before.get(len(self.steps), ())], *self.arrays)

    @property
    def arrays(self) -> tuple[list[tuple[Input, int]], list[tuple[Output, int]]]:
        """The arrays of the program with their buffers."""
        program = self.program
        outputs = [(array, number) for number, array in enumerate(program.outputs, program.first_output)]
        return [(array, number) for number, array in enumerate(program.inputs)], outputs

    def check(self, steps: Sequence[Step], after: str, before: Sequence[Step]) -> None:
        """With strictness on, check the steps of a pass if it changed the steps `before`."""
        if strict() and list(steps) != list(before):
            checked(self.program_of(steps, *self.arrays), after)

    def program_of(
        self, steps: Sequence[Step], inputs: Sequence[tuple[Input, int]], outputs: Sequence[tuple[Output, int]]
    ) -> RolledProgram:
        """Return the program of some steps, with the buffers that they use."""
        ends = {buffer for _, buffer in (*inputs, *outputs)}
        used = buffers_read(steps) | buffers_written(steps)
        middle = [buffer for buffer in range(len(self.buffers)) if buffer in used and buffer not in ends]
        order = [*(buffer for _, buffer in inputs), *middle, *(buffer for _, buffer in outputs)]
        number = {buffer: k for k, buffer in enumerate(order)}
        inner = (self.buffers[buffer] for buffer in middle)
        buffers = [
            *(Buffer("input", array.size) for array, _ in inputs),
            *(Buffer("workspace", buffer.size) if buffer.values is None else buffer for buffer in inner),
            *(Buffer("output", array.size) for array, _ in outputs),
        ]
        return RolledProgram(
            tuple(array for array, _ in inputs), tuple(array for array, _ in outputs), tuple(buffers),
            interned(renumbered(steps, number.__getitem__)), self.program.name,
        )  # fmt: skip


def select(program: RolledProgram, outputs: Sequence[int], constants: Mapping[int, Any]) -> RolledProgram:
    """Return a program with some outputs, in the order given; `constants` replace input arrays by their numbers."""
    draft = Draft(program)
    for number, values in constants.items():
        flat = np.ravel(np.asarray(values, dtype=np.float64)).copy()
        draft.buffers[number] = Buffer("constant", len(flat), flat)
    inputs = [(array, number) for number, array in enumerate(program.inputs) if number not in constants]
    selected = draft.finish(inputs, [(program.outputs[k], program.first_output + k) for k in outputs], "selection")
    return selected if selected.name == program.name else replace(selected, name=program.name)


def fresh_name(name: str, taken: Sequence[Input]) -> str:
    """Return a name that no input has yet, with underscores behind it if need be.

    >>> fresh_name("x", [Input("x", ()), Input("x_", ())])
    'x__'
    """
    names = {array.name for array in taken}
    while name in names:
        name += "_"
    return name
