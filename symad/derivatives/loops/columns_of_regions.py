"""Matrices by columns: a pushforward along every unit vector, one after the other in a nest.

For programs that have no other way to a matrix: chains, nests, deep graphs of regions. What does not depend on the
seed is computed once, before the nest. A buffer that does has a part for each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.program import Output
from codegen.ir.readdress import all_readdressed, each_region, moved
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Table
from codegen.loops.optimise.draft import Draft
from codegen.matrices.matrix_loops import has_matrices
from codegen.records import dataclass
from symad.derivatives.loops.activity import dependent
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward

FEWEST_OPERATIONS = 20_000  # of one call, below which straight lines, or sweeps over columns, are faster
MOST_ROUNDS = 4096
MOST_NUMBERS = 2**24  # in the buffers of all rounds


def worth_columns(program: RolledProgram) -> bool:
    """Whether a matrix is taken by columns in loops: of matrix operations in any case, which nobody writes out."""
    return program.executed >= FEWEST_OPERATIONS or has_matrices(program)


def hessian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Hessian of a scalar program, forward over reverse; None for too many columns."""
    pushed = pushforward(gradient(program, [wrt]), [wrt], units=True)
    shape = program.inputs[wrt].shape
    return by_rounds(pushed, len(program.inputs), shape + shape, across=False)


def jacobian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Jacobian of the only output; by rows, in reverse mode, where these are fewer."""
    if len(program.outputs) != 1:
        return None
    shape = program.outputs[0].shape + program.inputs[wrt].shape
    if program.outputs[0].size < program.inputs[wrt].size:
        return by_rounds(pullback(program, [wrt], units=True), len(program.inputs), shape, across=False)
    return by_rounds(pushforward(program, [wrt], units=True), len(program.inputs), shape, across=True)


def by_rounds(program: RolledProgram, seed: int, shape: tuple[int, ...], *, across: bool) -> RolledProgram | None:
    """Return the second output at every unit vector of an input, the seed, as rows or as columns (`across`)."""
    rounds, size = program.inputs[seed].size, program.outputs[1].size
    program = _apart(program, program.first_output + 1) if across else program
    active = dependent(program.steps, seed)
    numbers = sum(program.buffers[buffer].size for buffer in active) * rounds
    if rounds > MOST_ROUNDS or numbers > MOST_NUMBERS:
        return None
    draft, target = Draft(program), program.first_output + 1
    unit = np.zeros(2 * rounds - 1)
    unit[rounds - 1] = 1.0
    moves = {buffer: Move(buffer, 1, 0, program.buffers[buffer].size) for buffer in active}
    moves[seed] = Move(draft.constants(unit), 1, rounds - 1, -1)
    moves[target] = Move(target, rounds, 0, 1) if across else Move(target, 1, 0, size)
    for buffer in {*active, target} - {seed}:
        draft.buffers[buffer] = Buffer("workspace", program.buffers[buffer].size * rounds)
    before, within = _parts(program.steps, active, within=False), _parts(program.steps, active, within=True)
    inside = all_readdressed(within, lambda b, places: moves[b].use(b, places) if b in moves else _still(b, places))
    draft.steps = [*before, Nest(rounds, inside)] if inside else [*before]
    return draft.finish(
        [found for found in draft.arrays[0] if found[1] != seed], [(Output(shape, ()), target)], "columns"
    )


def _apart(program: RolledProgram, target: int) -> RolledProgram:
    """Return a program in which no matrix operation writes to a buffer: a column of it is not side by side."""
    draft, steps = Draft(program), list[Step]()
    for step in program.steps:
        if not isinstance(step, Region) or step.matrix is None or all(use.buffer != target for use in step.results):
            steps.append(step)
            continue
        results, copies = list[Result](), list[Step]()
        for use in step.results:
            size = use.table.count
            whole = Gather(draft.workspace(size), Affine(0, 1, size))
            results.append(Result(use.output, whole.buffer, whole.table, "store"))
            copies.append(copy(whole, use.buffer, use.table, use.kind))
        steps += [replace(step, results=tuple(results)), *copies]
    return draft.program_of(steps, *draft.arrays) if draft.added else program


@dataclass(frozen=True)
class Move:
    """Where the places of a buffer are in each round: `scale * place + first + shift * round` of another one."""

    buffer: int
    scale: int
    first: int
    shift: int

    def use(self, _: int, table: Table) -> tuple[int, Table]:
        """Return the places of a table in the rounds."""
        shifts = (self.shift, *(self.scale * shift for shift in table.shifts))
        return self.buffer, moved(table, self.first, scale=self.scale, shifts=shifts)


def _parts(steps: Sequence[Step], active: frozenset[int], *, within: bool) -> tuple[Step, ...]:
    """Return what steps compute in the rounds, or before them."""

    def part(region: Region) -> Region | None:
        results = tuple(use for use in region.results if (use.buffer in active) == within)
        return replace(region, results=results) if results else None

    return each_region(steps, part)


def _still(buffer: int, table: Table) -> tuple[int, Table]:
    """Return a use of what is the same in all rounds; the shifts of inner nests stay theirs."""
    return buffer, moved(table, shifts=(0, *table.shifts)) if table.shifts else table
