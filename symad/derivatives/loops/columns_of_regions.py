"""Columns one after the other: a pushforward along each unit vector, in nests.

This works for every program: chains, nests, deep graphs of regions. Steps that do not depend on the seed run once,
before the nests. A buffer that depends on it has a part for each round. So the products of a constant matrix with the
vectors of all rounds are one product of matrices, and with the unit vectors the matrix itself: the Hessian of g(X w) is
X' D X.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import field, replace
from itertools import takewhile

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Output
from codegen.ir.readdress import all_readdressed, moved
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step, regions_of
from codegen.ir.tables import Affine, Table, table
from codegen.loops.optimise.draft import Draft
from codegen.matrices.matrix_loops import has_matrices, matrix_region
from codegen.matrices.product_loops import lower_products
from codegen.pricing.price import rolled_work
from codegen.records import dataclass
from symad.derivatives.loops.activity import dependent
from symad.derivatives.loops.columns_in_lanes import MOST_NUMBERS, before_and_within, in_lanes
from symad.derivatives.loops.matrix_layout import CHUNKS, in_chunks
from symad.derivatives.loops.pullback import gradient, pullback
from symad.derivatives.loops.pushforward import pushforward

FEWEST_OPERATIONS = 5_000  # of one call, below which straight lines, or sweeps over columns, are faster
MOST_ROUNDS = 4096
ACROSS = range(16, 32)  # repetitions that are run for all columns, so that these are stored to lines at hand


def worth_columns(program: RolledProgram) -> bool:
    """Whether a matrix is taken by columns in loops; always for matrix operations, which are never written out."""
    return program.executed >= FEWEST_OPERATIONS or has_matrices(program)


def hessian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Hessian of a scalar program, forward over reverse; None for too many columns."""
    pushed = pushforward(gradient(program, [wrt]), [wrt], units=True)
    shape = program.inputs[wrt].shape
    return cheapest(ways(pushed, len(program.inputs), shape + shape, symmetric=True))


def jacobian_by_columns(program: RolledProgram, wrt: int) -> RolledProgram | None:
    """Return the dense Jacobian of the only output; by rows, in reverse mode, where these are fewer."""
    if len(program.outputs) != 1:
        return None
    shape = program.outputs[0].shape + program.inputs[wrt].shape
    if program.outputs[0].size < program.inputs[wrt].size:
        return cheapest(ways(pullback(program, [wrt], units=True), len(program.inputs), shape))
    return cheapest(ways(pushforward(program, [wrt], units=True), len(program.inputs), shape, across=True))


def cheapest(programs: Sequence[RolledProgram]) -> RolledProgram | None:
    """Return the program with the lowest price; None of none."""
    return min(programs, key=lambda program: rolled_work(program).price.total(), default=None)


def ways(
    program: RolledProgram, seed: int, shape: tuple[int, ...], *, across: bool = False, symmetric: bool = False
) -> list[RolledProgram]:
    """Return the programs of the second output at every unit vector of an input, as rows or as columns (`across`)."""
    if program.inputs[seed].size > MOST_ROUNDS:
        return []
    programs = (
        by_rounds(program, seed, shape, across=across, symmetric=symmetric),
        in_lanes(program, seed, shape, across=across or symmetric),
    )
    return [program_of_columns for program_of_columns in programs if program_of_columns is not None]


def by_rounds(
    program: RolledProgram, seed: int, shape: tuple[int, ...], *, across: bool = False, symmetric: bool = False
) -> RolledProgram | None:
    """Return the second output at every unit vector of an input, the seed, as rows or as columns (`across`)."""
    rounds, size = program.inputs[seed].size, program.outputs[1].size
    program = _apart(program, program.first_output + 1) if across else program
    active = dependent(program.steps, seed)
    numbers = sum(program.buffers[buffer].size for buffer in active) * rounds
    if numbers > MOST_NUMBERS:
        return None
    draft, target = Draft(program), program.first_output + 1
    unit = np.zeros(2 * rounds - 1)
    unit[rounds - 1] = 1.0
    moves = {buffer: Move(buffer, 1, 0, program.buffers[buffer].size) for buffer in active}
    moves[seed] = Move(draft.constants(unit), 1, rounds - 1, -1)
    moves[target] = Move(target, rounds, 0, 1) if across else Move(target, 1, 0, size)
    for buffer in {*active, target} - {seed}:
        draft.buffers[buffer] = Buffer("workspace", program.buffers[buffer].size * rounds)
    before, within = before_and_within(draft, program.steps, active)
    draft.steps = [*before]
    _ColumnRounds(draft, rounds, moves, seed, target if symmetric else None, across).write(within)
    if symmetric:
        target = _mirrored(draft, target, rounds)
    return draft.finish(
        [array for array in draft.arrays[0] if array[1] != seed], [(Output(shape, ()), target)], "columns"
    )


def _mirrored(draft: Draft, matrix: int, rows: int) -> int:
    """Return a symmetric matrix from its lower triangle."""
    i, j = (axis.ravel() for axis in np.indices((rows, rows)))
    lower = Gather(matrix, table(np.maximum(i, j) * rows + np.minimum(i, j)))
    whole = draft.workspace(rows * rows)
    draft.steps.append(copy(lower, whole, Affine(0, 1, rows * rows)))
    return whole


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


@dataclass(frozen=True)
class _ColumnRounds:
    """Steps along every unit vector: products of matrices for all rounds at once, and nests for the steps between them.

    Of a `triangle`, a square matrix with the rounds as rows, products compute the lower triangle only.
    """

    draft: Draft
    count: int
    moves: Mapping[int, Move]
    seed: int
    triangle: int | None
    across: bool  # whether the rounds are the columns of the result
    turned: dict[Hashable, Gather] = field(default_factory=dict)  # matrices by columns
    uses: Counter[int] = field(default_factory=Counter)  # of buffers

    def write(self, steps: Sequence[Step]) -> None:
        """Write the steps of all rounds."""
        self.uses.update(use.buffer for region, _ in regions_of(steps) for use in region.uses)
        waiting: list[tuple[int, Step]] = []  # with the length of its chunks
        for step in steps:
            product = self.product(step) if isinstance(step, Region) else None
            if isinstance(product, list):
                self.nest(waiting, product)
                waiting = []
            elif product is None:
                waiting += [(self.own(step), inner) for inner in all_readdressed([step], self.where)]
            else:
                waiting.append((product.count, product))
        self.nest(waiting, [])

    def nest(self, waiting: Sequence[tuple[int, Step]], then: list[Step]) -> None:
        """Write a nest of the waiting steps; its end in chunks, with the product behind it."""
        last, sizes = waiting[-1][0] if waiting else 0, ACROSS if self.across else CHUNKS
        end = list(takewhile(lambda item: item[0] == last, reversed(waiting))) if last >= 2 * sizes.stop else []
        before = waiting[: len(waiting) - len(end)]
        parts = [Nest(self.count, tuple(step for _, step in part)) for part in (before, end[::-1]) if part]
        self.draft.steps += parts[:1] if before else []
        together = [*(parts[1:] if before else parts), *then]
        chunks = in_chunks(together, sizes) if together else []
        rows = next(regions_of(then))[0].gathers[0].buffer if then else -1
        own = [use for region, _ in regions_of(parts[-1:]) for use in region.uses if use.buffer == rows]
        if own and chunks != together and self.uses[rows] == len(own) + 1:
            chunks = self.short_rows(chunks, last, rows)
        self.draft.steps += chunks

    def short_rows(self, chunks: Sequence[Step], length: int, rows: int) -> list[Step]:
        """Return chunks that keep rows of numbers, which nothing else uses, for a chunk only: in the caches."""
        steps: list[Step] = []
        for chunk in chunks[:1], chunks[1:]:
            size = max((region.count for region, _ in regions_of(chunk)), default=0)
            short = self.draft.workspace(self.count * size) if size else rows

            def where(buffer: int, places: Table, short: int = short, size: int = size) -> tuple[int, Table]:
                if buffer != rows or not isinstance(places, Affine):
                    return buffer, places
                shifts = tuple(shift // length * size for shift in places.shifts)
                return short, Affine(places.start // length * size, 1, size, shifts)

            steps += all_readdressed(chunk, where)
        return steps

    def own(self, step: Step) -> int:
        """Return how many independent repetitions a loop has; 0 for any other step."""
        if not isinstance(step, Region) or not step.parallel:
            return 0
        own = Affine(0, 1, step.count).key
        moving = [use.table.key for use in step.uses if use.buffer in self.moves]
        return step.count if all(key == own for key in moving) else 0

    def where(self, buffer: int, places: Table) -> tuple[int, Table]:
        """Return where a round finds the places of a buffer; the shifts of inner nests stay."""
        if buffer in self.moves:
            return self.moves[buffer].use(buffer, places)
        return buffer, moved(places, shifts=(0, *places.shifts)) if places.shifts else places

    def product(self, region: Region) -> list[Step] | Region | None:
        """Return the product of the vectors of all rounds, side by side as rows, with a matrix that all rounds share.

        Of unit vectors it is the matrix: one region, in which a round copies a row. None for any other step.
        """
        active = [k for k, use in enumerate(region.gathers) if use.buffer in self.moves]
        if region.matrix is None or region.matrix.kind != "product" or len(active) != 1:
            return None
        (number, rows, inner, columns), turned, (k,) = region.matrix.sizes, region.matrix.transposed, active
        vectors, matrix, (result,) = region.gathers[k], region.gathers[1 - k], region.results
        if number > 1 or not (columns == 1 if k else rows == 1 or not turned[0]):
            return None
        rows, columns, by_columns = (1, rows, not turned[0]) if k else (rows, columns, turned[1])
        if vectors.buffer == self.seed and rows == 1 and (vectors.table.first, inner) == (0, self.count):
            lines = matrix if self.across or not by_columns else self.by_columns(matrix, columns, inner)
            step, shift = (inner, 1) if by_columns and lines is matrix else (1, columns)
            line = Gather(lines.buffer, Affine(lines.table.first, step, columns, (shift,)))
            return copy(line, *self.where(result.buffer, result.table), result.kind)
        if vectors.buffer == self.seed or not (self.follow(vectors) and self.follow(result)):
            return None
        operation = MatrixOperation("product", (1, self.count * rows, inner, columns), (False, by_columns))
        vector = Gather(self.moves[vectors.buffer].buffer, Affine(0, 1, operation.operands[0]))
        if result.buffer == self.triangle and rows == 1:
            others = matrix if by_columns else self.by_columns(matrix, inner, columns)
            return [*lower_products(vector, others, columns, inner, result.buffer)]
        return [matrix_region(operation, [vector, matrix], [replace(result, table=Affine(0, 1, operation.results[0]))])]

    def by_columns(self, matrix: Gather, rows: int, columns: int) -> Gather:
        """Return a matrix that is stored by columns; constants are put in that order now."""
        key = matrix.buffer, matrix.table.key, rows
        if key not in self.turned:
            size, values = rows * columns, self.draft.buffers[matrix.buffer].values
            if values is not None:
                flat = values[matrix.table.places()].reshape(rows, columns).T.ravel()
                self.turned[key] = Gather(self.draft.constants(flat), Affine(0, 1, size))
            else:
                turned = self.turned[key] = Gather(self.draft.workspace(size), Affine(0, 1, size))
                column = Gather(matrix.buffer, Affine(matrix.table.first, columns, rows, (1,)))
                self.draft.steps.append(Nest(columns, (copy(column, turned.buffer, Affine(0, 1, rows, (rows,))),)))
        return self.turned[key]

    def follow(self, use: Gather | Result) -> bool:
        """Whether the places that successive rounds use lie one behind the other."""
        move, places = self.moves[use.buffer], use.table
        return (move.scale, move.shift, places.first) == (1, places.count, 0)
