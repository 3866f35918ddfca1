"""Matrices by columns: a pushforward along every unit vector, one after the other in a nest.

For programs that have no other way to a matrix: chains, nests, deep graphs of regions. What does not depend on the
seed is computed once, before the nest. A buffer that does has a part for each round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from codegen.ir.program import Output
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Indexed, Table
from symad.derivatives.loops.activity import dependent
from symad.derivatives.loops.draft import Draft
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward

FEWEST_OPERATIONS = 20_000  # of one call, below which straight lines, or sweeps over columns, are faster
MOST_ROUNDS = 4096
MOST_NUMBERS = 2**24  # in the buffers of all rounds


def hessian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Hessian of a scalar program, forward over reverse; None for too many columns."""
    pushed = pushforward(gradient(program, [wrt]), [wrt], units=True)
    shape = program.inputs[wrt].shape
    return by_rounds(pushed, len(program.inputs), 1, shape + shape, across=False)


def jacobian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Jacobian of the only output; by rows, in reverse mode, where these are fewer."""
    if len(program.outputs) != 1:
        return None
    shape = program.outputs[0].shape + program.inputs[wrt].shape
    if program.outputs[0].size < program.inputs[wrt].size:
        return by_rounds(pullback(program, [wrt], units=True), len(program.inputs), 1, shape, across=False)
    return by_rounds(pushforward(program, [wrt], units=True), len(program.inputs), 1, shape, across=True)


def by_rounds(
    program: RolledProgram, seed: int, output: int, shape: tuple[int, ...], *, across: bool
) -> RolledProgram | None:
    """Return an output at every unit vector of an input, the seed, as rows of one array, or as columns (`across`)."""
    rounds, size = program.inputs[seed].size, program.outputs[output].size
    active = dependent(program.steps, seed)
    numbers = sum(program.buffers[buffer].size for buffer in active) * rounds
    if rounds > MOST_ROUNDS or numbers > MOST_NUMBERS:
        return None
    draft, target = Draft(program), program.first_output + output
    unit = np.zeros(2 * rounds - 1)
    unit[rounds - 1] = 1.0
    draft.buffers.append(Buffer("constant", len(unit), unit))
    moves = {buffer: Move(buffer, 1, 0, program.buffers[buffer].size) for buffer in active}
    moves[seed] = Move(len(draft.buffers) - 1, 1, rounds - 1, -1)
    moves[target] = Move(target, rounds, 0, 1) if across else Move(target, 1, 0, size)
    for buffer in {*active, target} - {seed}:
        draft.buffers[buffer] = Buffer("workspace", program.buffers[buffer].size * rounds)
    before, inside = (
        _parts(program.steps, active, moves, within=False),
        _parts(program.steps, active, moves, within=True),
    )
    draft.steps = [*before, Nest(rounds, tuple(inside))] if inside else before
    inputs = [(array, number) for number, array in enumerate(program.inputs) if number != seed]
    return draft.finish(inputs, [(Output(shape, ()), target)], "columns")


@dataclass(frozen=True)
class Move:
    """Where the places of a buffer are in each round: `scale * place + first + shift * round` of another one."""

    buffer: int
    scale: int
    first: int
    shift: int

    def gather(self, use: Gather) -> Gather:
        """Return a use of the buffer in the rounds."""
        return Gather(self.buffer, self.table(use.table))

    def result(self, use: Result) -> Result:
        """Return a use of the buffer in the rounds."""
        return replace(use, buffer=self.buffer, table=self.table(use.table))

    def table(self, table: Table) -> Table:
        """Return the places of a table in the rounds."""
        shifts = (self.shift, *(self.scale * shift for shift in table.shifts))
        if isinstance(table, Affine):
            return Affine(self.scale * table.start + self.first, self.scale * table.step, table.count, shifts)
        return Indexed(self.scale * table.index + self.first, shifts)


def _parts(steps: Sequence[Step], active: frozenset[int], moves: dict[int, Move], *, within: bool) -> list[Step]:
    """Return what steps compute in the rounds, or before them."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Nest):
            inner = _parts(step.steps, active, moves, within=within)
            found += [Nest(step.count, tuple(inner))] if inner else []
            continue
        results = tuple(use for use in step.results if (use.buffer in active) == within)
        if results:
            part = replace(step, results=results)
            found.append(_moved(part, moves) if within else part)
    return found


def _moved(region: Region, moves: dict[int, Move]) -> Region:
    """Return a region with its tables in the rounds."""

    def gather(use: Gather) -> Gather:
        return moves[use.buffer].gather(use) if use.buffer in moves else _still(use)

    carries = tuple(replace(carry, initial=tuple(gather(use) for use in carry.initial)) for carry in region.carries)
    return replace(
        region,
        gathers=tuple(gather(use) for use in region.gathers),
        results=tuple(moves[use.buffer].result(use) for use in region.results),
        carries=carries,
    )


def _still(use: Gather) -> Gather:
    """Return a use of what is the same in all rounds; the shifts of inner nests stay theirs."""
    return replace(use, table=replace(use.table, shifts=(0, *use.table.shifts))) if use.table.shifts else use
