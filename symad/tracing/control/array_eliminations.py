"""Factorizations of large matrices as nests: a round for each column, of loops over all entries.

What a column does not change is left as it is by choices, and the matrix turns by one column with each round, so that
all rounds are alike. Every round has places of its own; but what is not linear reads a copy of the round's column, so
reverse mode needs the matrix of no round, and in a kernel one takes the place of the other.

Source: Golub and Van Loan, Matrix Computations, 4th edition (2013): the outer product form of Cholesky (4.2), and
elimination with partial pivoting (3.4), here as Gauss and Jordan have it, in which rows stay where they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy as sp

from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Kind, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Places, Table, table

A, B, C, D, E = sp.symbols("a b c d e", real=True)
ITS = sp.Piecewise((B, sp.Ne(A, 0)), (0, True))  # B of the row that A marks
Place = tuple[int, Table]  # a buffer, and where in it


@dataclass
class _Buffers:
    """Buffers in the order in which they are taken: inputs, constants, workspaces, outputs."""

    taken: list[Buffer] = field(default_factory=list)

    def inputs(self, *sizes: int) -> list[int]:
        return [self._take(Buffer("input", size)) for size in sizes]

    def constant(self, values: np.ndarray) -> int:
        return self._take(Buffer("constant", values.size, values.ravel().astype(np.float64)))

    def workspaces(self, *sizes: int) -> list[int]:
        return [self._take(Buffer("workspace", size)) for size in sizes]

    def outputs(self, *sizes: int) -> list[int]:
        return [self._take(Buffer("output", size)) for size in sizes]

    def program(self, name: str, *steps: Step) -> RolledProgram:
        inputs = [buffer.size for buffer in self.taken if buffer.kind == "input"]
        outputs = tuple(Output((buffer.size,), ()) for buffer in self.taken if buffer.kind == "output")
        named = tuple(Input(f"array_{k}", (size,)) for k, size in enumerate(inputs))
        return RolledProgram(named, outputs, tuple(self.taken), steps, name)

    def _take(self, buffer: Buffer) -> int:
        self.taken.append(buffer)
        return len(self.taken) - 1


def _at(place: int, count: int = 1, shift: int = 0) -> Affine:
    """Return one place, which moves on with each round."""
    return Affine(place, 0, count, (shift,))


def _run(place: int, count: int, shift: int = 0, step: int = 1) -> Affine:
    """Return places at equal distances, which move on with each round."""
    return Affine(place, step, count, (shift,))


def _moving(places: Places, shift: int) -> Table:
    return replace(table(places), shifts=(shift,))


def _loop(
    slots: Sequence[sp.Symbol],
    formulas: Sequence[sp.Basic],
    count: int,
    reads: Sequence[Place],
    writes: Sequence[Place],
    kind: Kind = "store",
) -> Region:
    """Return a loop over formulas in its slots; the first of them are written."""
    gathers = tuple(Gather(buffer, found) for buffer, found in reads)
    results = tuple(Result(k, buffer, found, kind) for k, (buffer, found) in enumerate(writes))
    return Region(program_from_sympy(list(slots), list(formulas)), count, gathers, results)


def _copy(count: int, source: Place, target: Place) -> Region:
    return _loop([A], [A], count, [source], [target])


def cholesky_program(n: int) -> RolledProgram:
    """Return the lower factor of a matrix of n rows, of which the lower triangle is read; NaN where there is none.

    >>> program = cholesky_program(3)
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(9,)], [9, 3, 9])
    """
    buffers, square = _Buffers(), n * n
    (given,) = buffers.inputs(square)
    below = buffers.constant(np.tri(n)[::-1])  # a row for each round: 1 for what is left of a column
    matrix, kept, pivots, columns = buffers.workspaces((n + 1) * square, square, n, square)
    (output,) = buffers.outputs(square)
    i, j = (axis.ravel() for axis in np.indices((n, n)))
    lower = table(np.maximum(i, j) * n + np.minimum(i, j))
    rounds = Nest(
        n,
        (
            _copy(n, (matrix, _run(0, n, square, n)), (kept, _run(0, n, n))),
            _loop([A], [sp.sqrt(A)], 1, [(kept, _at(0, 1, n))], [(pivots, _at(0, 1, 1))]),
            _loop(
                [A, B, C],
                [sp.Piecewise((A / B, sp.Ne(C, 0)), (0, True))],
                n,
                [(kept, _run(0, n, n)), (pivots, _at(0, n, 1)), (below, _run(0, n, n))],
                [(columns, _run(0, n, n))],
            ),
            _loop(
                [A, B, C],
                [A - B * C],
                square,
                [(matrix, _run(0, square, square)), (columns, _moving(i, n)), (columns, _moving(j, n))],
                [(matrix, _moving(square + (i - 1) % n * n + (j - 1) % n, square))],
            ),
        ),
    )
    first = _copy(square, (given, lower), (matrix, _run(0, square)))
    last = _copy(square, (columns, table(j * n + (i - j) % n)), (output, _run(0, square)))
    return buffers.program("cholesky", first, rounds, last)


def elimination_program(n: int, m: int) -> RolledProgram:
    """Return what elimination makes of a matrix of n rows with m right-hand sides; pivots are the largest entries.

    Outputs are the solutions, the pivots, and the rows in which they stood.

    >>> program = elimination_program(3, 1)
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(3,), (3,), (3,)], [9, 3, 3, 3, 3, 3, 3])
    """
    buffers, width = _Buffers(), n + m
    size = n * width
    given, right = buffers.inputs(n * n, n * m)
    numbers, start = buffers.constant(np.arange(n)), buffers.constant(np.array([-1.0, 0.0]))
    matrix, kept, sums, row = buffers.workspaces((n + 1) * size, n * n, size, size)
    used, chosen, ones = buffers.workspaces((n + 1) * n, n, n * n)
    solved, pivots, places = buffers.outputs(n * m, n, n)
    i, j = (axis.ravel() for axis in np.indices((n, width)))
    at, side = (axis.ravel() for axis in np.indices((n, m)))
    rounds = (
        _copy(n, (matrix, _run(0, n, size, width)), (kept, _run(0, n, n))),
        _search(n, (kept, _run(0, n, n)), (used, _run(0, n, n)), (numbers, _run(0, n)), start, (chosen, _at(0, 1, 1))),
        _marked(n, numbers, chosen, used, ones),
        _loop([A, B], [ITS], size, [(ones, _moving(i, n)), (matrix, _run(0, size, size))],
              [(sums, _moving(j, width))], "add"),
        _loop([A, B], [A / B], width, [(sums, _run(0, width, width)), (sums, _at(0, width, width))],
              [(row, _run(0, width, width))]),
        _loop([A, B, C, D], [sp.Piecewise((D, sp.Ne(A, 0)), (B - C * D, True))], size,
              [(ones, _moving(i, n)), (matrix, _run(0, size, size)), (kept, _moving(i, n)), (row, _moving(j, width))],
              [(matrix, _moving(size + i * width + (j - 1) % width, size))]),
    )  # fmt: skip
    end = n * size + at * width + side
    return buffers.program(
        "elimination",
        _copy(n * n, (given, _run(0, n * n)), (matrix, table((i * width + j)[j < n]))),
        _copy(n * m, (right, _run(0, n * m)), (matrix, table((i * width + j)[j >= n]))),
        _loop([], [sp.S.Zero], n, [], [(used, _run(0, n))]),
        Nest(n, rounds),
        Nest(n, (_loop([A, B], [ITS], n * m, [(ones, _moving(at, n)), (matrix, _moving(end, 0))],
                       [(solved, _moving(side, m))], "add"),)),
        _copy(n, (sums, _run(0, n, step=width)), (pivots, _run(0, n))),
        _copy(n, (chosen, _run(0, n)), (places, _run(0, n))),
    )  # fmt: skip


def _search(n: int, column: Place, used: Place, numbers: Place, start: int, chosen: Place) -> Region:
    """Return the search for the row of the largest entry among those that no round has had: a chain over all rows."""
    smaller = sp.Or(sp.Abs(A) <= D, sp.Ne(B, 0))  # NaN is not: it becomes the pivot, and is seen in all results
    formulas = [sp.Piecewise((E, smaller), (C, True)), sp.Piecewise((D, smaller), (sp.Abs(A), True))]
    found = _loop([A, B, C, D, E], formulas, n, [column, used, numbers], [chosen], "last")
    largest, its = ((Gather(start, _at(place)),) for place in (0, 1))
    return replace(found, carries=(Carry(1, largest), Carry(0, its)))


def _marked(n: int, numbers: int, chosen: int, used: int, ones: int) -> Region:
    """Return the loop that marks the row that was chosen with 1, in this round and among those that were used."""
    formulas = [sp.Piecewise((1, sp.Eq(A, B)), (0, True)), sp.Piecewise((1, sp.Eq(A, B)), (C, True))]
    reads = [(numbers, _run(0, n)), (chosen, _at(0, n, 1)), (used, _run(0, n, n))]
    return _loop([A, B, C], formulas, n, reads, [(ones, _run(0, n, n)), (used, _run(n, n, n))])
