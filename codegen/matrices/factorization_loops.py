"""Factorizations as nests, for machines without LAPACK: one round for each column.

Choices leave entries that a column does not change, and the matrix turns by one column with each round, so that all
rounds are alike. Every round has its own places. Nonlinear operations read a copy of the round's column, so reverse
mode needs no matrix of any round, and a kernel keeps only one.

Source: Golub and Van Loan, Matrix Computations, 4th edition (2013): the outer product form of Cholesky (4.2), and
elimination with partial pivoting (3.4), here that of Gauss and Jordan, without exchanges of rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace

import numpy as np
import sympy as sp

from codegen.expressions.sympy_in import program_from_sympy
from codegen.ir.program import Input, Output
from codegen.ir.region import Buffer, Carry, Gather, Kind, Nest, Region, Result, RolledProgram, Step
from codegen.ir.tables import Affine, Places, Table, table
from codegen.records import dataclass

A, B, C, D, E = sp.symbols("a b c d e", real=True)
MARKED = sp.Piecewise((B, sp.Ne(A, 0)), (0, True))  # B of the row that A marks
Place = tuple[int, Table]  # a buffer, and places in it


@dataclass
class LoopBuffers:
    """Buffers in their order: inputs, constants, workspaces, outputs."""

    buffers: list[Buffer] = field(default_factory=list)

    def inputs(self, *sizes: int) -> list[int]:
        return [self._add(Buffer("input", size)) for size in sizes]

    def constant(self, values: np.ndarray) -> int:
        return self._add(Buffer("constant", values.size, values.ravel().astype(np.float64)))

    def workspaces(self, *sizes: int) -> list[int]:
        return [self._add(Buffer("workspace", size)) for size in sizes]

    def outputs(self, *sizes: int) -> list[int]:
        return [self._add(Buffer("output", size)) for size in sizes]

    def program(self, name: str, *steps: Step) -> RolledProgram:
        inputs = [buffer.size for buffer in self.buffers if buffer.kind == "input"]
        outputs = tuple(Output((buffer.size,), ()) for buffer in self.buffers if buffer.kind == "output")
        named = tuple(Input(f"array_{k}", (size,)) for k, size in enumerate(inputs))
        return RolledProgram(named, outputs, tuple(self.buffers), steps, name)

    def _add(self, buffer: Buffer) -> int:
        self.buffers.append(buffer)
        return len(self.buffers) - 1


def _at(place: int, count: int = 1, shift: int = 0) -> Affine:
    """Return one place, which moves on with each round."""
    return Affine(place, 0, count, (shift,))


def _run(place: int, count: int, shift: int = 0, step: int = 1) -> Affine:
    """Return places at equal distances, which move on with each round."""
    return Affine(place, step, count, (shift,))


def _moving(places: Places, shift: int) -> Table:
    return replace(table(places), shifts=(shift,))


def loop_over(
    slots: Sequence[sp.Symbol], formulas: Sequence[sp.Basic], count: int, reads: Sequence[Place],
    writes: Sequence[Place], kind: Kind = "store",
) -> Region:  # fmt: skip
    """Return a loop over formulas in its slots; the first of them are written."""
    gathers = tuple(Gather(buffer, places) for buffer, places in reads)
    results = tuple(Result(k, buffer, places, kind) for k, (buffer, places) in enumerate(writes))
    return Region(program_from_sympy(list(slots), list(formulas)), count, gathers, results)


def _copy(count: int, source: Place, target: Place) -> Region:
    return loop_over([A], [A], count, [source], [target])


def cholesky_program(n: int) -> RolledProgram:
    """Return the lower factor of a matrix of n rows, of which the lower triangle is read; NaN where there is none.

    >>> program = cholesky_program(3)
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(9,)], [9, 3, 9])
    """
    buffers, square = LoopBuffers(), n * n
    (source,) = buffers.inputs(square)
    below = buffers.constant(np.tri(n)[::-1])  # a row for each round: 1 for the rest of a column
    matrix, kept, pivots, columns = buffers.workspaces((n + 1) * square, square, n, square)
    (output,) = buffers.outputs(square)
    i, j = (axis.ravel() for axis in np.indices((n, n)))
    lower = table(np.maximum(i, j) * n + np.minimum(i, j))
    rounds = Nest(n, (
        _copy(n, (matrix, _run(0, n, square, n)), (kept, _run(0, n, n))),
        loop_over([A], [sp.sqrt(A)], 1, [(kept, _at(0, 1, n))], [(pivots, _at(0, 1, 1))]),
        loop_over([A, B, C], [sp.Piecewise((A / B, sp.Ne(C, 0)), (0, True))], n,
              [(kept, _run(0, n, n)), (pivots, _at(0, n, 1)), (below, _run(0, n, n))], [(columns, _run(0, n, n))]),
        loop_over([A, B, C], [A - B * C], square,
              [(matrix, _run(0, square, square)), (columns, _moving(i, n)), (columns, _moving(j, n))],
              [(matrix, _moving(square + (i - 1) % n * n + (j - 1) % n, square))]),
    ))  # fmt: skip
    first = _copy(square, (source, lower), (matrix, _run(0, square)))
    last = _copy(square, (columns, table(j * n + (i - j) % n)), (output, _run(0, square)))
    return buffers.program("cholesky", first, rounds, last)


def elimination_program(n: int, m: int, transposed: bool = False) -> RolledProgram:
    """Return the solutions of a system of n rows with m right-hand sides; pivots are the largest entries.

    The right-hand sides are rows, and so are the solutions; a `transposed` matrix is given by its columns.

    >>> program = elimination_program(3, 1)
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(3,)], [9, 3, 3, 3, 3])
    """
    buffers = LoopBuffers()
    source, right = buffers.inputs(n * n, n * m)
    eliminated = _Elimination(buffers, n, m)
    (solved,) = buffers.outputs(n * m)
    steps = eliminated.steps(source, right, transposed)
    end = n * eliminated.size + eliminated.at * eliminated.width + eliminated.side
    reads = [(eliminated.ones, _moving(eliminated.at, n)), (eliminated.matrix, _moving(end, 0))]
    solutions = loop_over([A, B], [MARKED], n * m, reads, [(solved, _moving(eliminated.side * n, 1))], "add")
    return buffers.program("elimination", *steps, Nest(n, (solutions,)))


def determinant_program(n: int, *, logarithm: bool) -> RolledProgram:
    """Return the determinant of a matrix of n rows; or the logarithm of its absolute value, and its sign.

    >>> [len(determinant_program(3, logarithm=logarithm).outputs) for logarithm in (False, True)]
    [1, 2]
    """
    buffers = LoopBuffers()
    (source,) = buffers.inputs(n * n)
    right, unit = buffers.constant(np.zeros(n)), buffers.constant(np.ones(1))
    eliminated = _Elimination(buffers, n, 1)
    pivots, places, swaps, product = buffers.workspaces(n, n, 1, 1)
    outputs = buffers.outputs(1, 1) if logarithm else buffers.outputs(1)
    steps = list(eliminated.steps(source, right, False))
    steps.append(_copy(n, (eliminated.sums, _run(0, n, step=eliminated.width)), (pivots, _run(0, n))))
    steps.append(_copy(n, (eliminated.chosen, _run(0, n)), (places, _run(0, n))))
    first, second = (table(axis) for axis in np.triu_indices(n, 1)) if n > 1 else (_run(0, 1), _run(0, 1))
    inverted = sp.Piecewise((1, A > B), (0, True))
    pairs = max(n * (n - 1) // 2, 1)
    reads, target = [(places, first), (places, second)], (swaps, _run(0, pairs, step=0))
    steps.append(loop_over([A, B], [inverted], pairs, reads, [target], "add"))
    factor = sp.sign(A) if logarithm else A
    chain = loop_over([A, B], [B * factor], n, [(pivots, _run(0, n))], [(product, _at(0))], "last")
    steps.append(replace(chain, carries=(Carry(0, (Gather(unit, _at(0)),)),)))
    signed = A * (1 - 2 * sp.Mod(B, 2))
    steps.append(loop_over([A, B], [signed], 1, [(product, _at(0)), (swaps, _at(0))], [(outputs[-1], _at(0))]))
    if logarithm:
        target = outputs[0], _run(0, n, step=0)
        steps.append(loop_over([A], [sp.log(sp.Abs(A))], n, [(pivots, _run(0, n))], [target], "add"))
    return buffers.program("log determinant" if logarithm else "determinant", *steps)


@dataclass
class _Elimination:
    """The buffers of an elimination of n rows with m right-hand sides beside them."""

    buffers: LoopBuffers
    n: int
    m: int

    def __post_init__(self) -> None:
        n, self.width = self.n, self.n + self.m
        self.size = n * self.width
        self.numbers = self.buffers.constant(np.arange(n))
        self.start = self.buffers.constant(np.array([-1.0, 0.0]))
        sizes = (n + 1) * self.size, n * n, self.size, self.size
        self.matrix, self.kept, self.sums, self.row = self.buffers.workspaces(*sizes)
        self.used, self.chosen, self.ones = self.buffers.workspaces((n + 1) * n, n, n * n)
        self.at, self.side = (axis.ravel() for axis in np.indices((n, self.m)))

    def steps(self, source: int, right: int, transposed: bool) -> tuple[Step, ...]:
        """Return the steps that eliminate a matrix beside right-hand sides."""
        n, width = self.n, self.width
        row, column = (axis.ravel() for axis in np.indices((n, n)))
        entries = table(column * n + row if transposed else row * n + column)
        sides = table(self.at * width + n + self.side)
        return (
            _copy(n * n, (source, entries), (self.matrix, table(row * width + column))),
            _copy(n * self.m, (right, table(self.side * n + self.at)), (self.matrix, sides)),
            loop_over([], [sp.S.Zero], n, [], [(self.used, _run(0, n))]),
            Nest(n, self.rounds()),
        )  # fmt: skip

    def rounds(self) -> tuple[Region, ...]:
        """Return the regions of a round."""
        n, width, size, matrix, kept, ones = self.n, self.width, self.size, self.matrix, self.kept, self.ones
        i, j = (axis.ravel() for axis in np.indices((n, width)))
        return (
            _copy(n, (matrix, _run(0, n, size, width)), (kept, _run(0, n, n))),
            _search(n, (kept, _run(0, n, n)), (self.used, _run(0, n, n)), (self.numbers, _run(0, n)), self.start,
                    (self.chosen, _at(0, 1, 1))),
            _marked(n, self.numbers, self.chosen, self.used, ones),
            loop_over([A, B], [MARKED], size, [(ones, _moving(i, n)), (matrix, _run(0, size, size))],
                  [(self.sums, _moving(j, width))], "add"),
            loop_over([A, B], [A / B], width, [(self.sums, _run(0, width, width)), (self.sums, _at(0, width, width))],
                  [(self.row, _run(0, width, width))]),
            loop_over([A, B, C, D], [sp.Piecewise((D, sp.Ne(A, 0)), (B - C * D, True))], size,
                  [(ones, _moving(i, n)), (matrix, _run(0, size, size)), (kept, _moving(i, n)),
                   (self.row, _moving(j, width))],
                  [(matrix, _moving(size + i * width + (j - 1) % width, size))]),
        )  # fmt: skip


def substitution_program(n: int, m: int, transposed: bool = False) -> RolledProgram:
    """Return the solutions of a triangular system, of which the lower triangle is read, by substitution.

    >>> program = substitution_program(3, 2)
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(6,)], [6, 3])
    """
    buffers, size = LoopBuffers(), n * m
    source, right = buffers.inputs(n * n, size)
    order = np.arange(n)[::-1] if transposed else np.arange(n)  # of the unknowns
    ahead = np.tri(n, k=-1).T[:, ::-1] if transposed else np.tri(n, k=-1).T  # a row for each round: later unknowns
    later = buffers.constant(ahead)
    (left,) = buffers.workspaces((n + 1) * size)
    (solved,) = buffers.outputs(size)
    side, i = (axis.ravel() for axis in np.indices((m, n)))
    first, step = int(order[0]), -1 if transposed else 1
    every = np.arange(m) * n + first
    reads = [(left, _moving(every, size + step)), (source, _at(first * (n + 1), m, step * (n + 1)))]
    quotients = loop_over([A, B], [A / B], m, reads, [(solved, _moving(every, step))])
    factors = _moving(first * n + i, -n) if transposed else _moving(i * n, 1)
    rest = loop_over([A, B, C, D], [sp.Piecewise((A - B * C, sp.Ne(D, 0)), (0, True))], size,
                 [(left, _run(0, size, size)), (source, factors), (solved, _moving(side * n + first, step)),
                  (later, _moving(i, n))],
                 [(left, _run(size, size, size))])  # fmt: skip
    first_copy = _copy(size, (right, _run(0, size)), (left, _run(0, size)))
    return buffers.program("substitution", first_copy, Nest(n, (quotients, rest)))


def reflections_program(m: int, n: int) -> RolledProgram:
    """Return Q and R of a matrix of m rows and n columns, all by columns, with LAPACK's signs: a reflection a round.

    The identity stands behind the matrix, and becomes Q; with each round the columns turn by one.

    >>> program = reflections_program(3, 2)
    >>> [output.shape for output in program.outputs], program.steps[2].count
    ([(6,), (4,)], 2)
    """
    buffers = LoopBuffers()
    (source,) = buffers.inputs(n * m)
    identity, upper = buffers.constant(np.eye(m)), buffers.constant(np.tri(n))
    reflected = _Reflections(buffers, m, n)
    outputs, matrix = buffers.outputs(n * m, n * n), reflected.matrix
    last = n * (n + m) * m
    i, j = (axis.ravel() for axis in np.indices((n, n)))
    row, column = (axis.ravel() for axis in np.indices((m, n)))
    reads = [(upper, _run(0, n * n)), (matrix, table(last + (i + m) * m + j))]
    return buffers.program(
        "qr",
        _copy(n * m, (source, _run(0, n * m)), (matrix, _run(0, n * m))),
        _copy(m * m, (identity, _run(0, m * m)), (matrix, _run(n * m, m * m))),
        Nest(n, reflected.rounds()),
        _copy(n * m, (matrix, table(last + row * m + column)), (outputs[0], table(column * m + row))),
        loop_over([A, B], [MARKED], n * n, reads, [(outputs[1], _run(0, n * n))]),
    )


@dataclass
class _Reflections:
    """The buffers of reflections of n columns of m entries, with m others behind them."""

    buffers: LoopBuffers
    m: int
    n: int

    def __post_init__(self) -> None:
        m, n, buffers = self.m, self.n, self.buffers
        self.width = n + m
        self.size = self.width * m
        places = np.subtract.outer(np.arange(n), np.arange(m))
        self.here, self.below = buffers.constant(1.0 * (places == 0)), buffers.constant(1.0 * (places < 0))
        sizes = (n + 1) * self.size, n * m, n * m, n * self.width
        self.matrix, self.kept, self.axes, self.inner = buffers.workspaces(*sizes)
        self.first, self.squares, self.ends, self.factors = buffers.workspaces(n, n, n, n)

    def rounds(self) -> tuple[Region, ...]:
        """Return the regions of a round."""
        m, width, size, matrix, kept, axes = self.m, self.width, self.size, self.matrix, self.kept, self.axes
        column, row = np.repeat(np.arange(width), m), np.tile(np.arange(m), width)
        own, same, single = _run(0, m, m), _at(0, m, 1), _at(0, 1, 1)
        root = sp.sqrt(A * A + B)
        square = sp.Piecewise((B * B, sp.Ne(A, 0)), (0, True))
        end = sp.Piecewise((A, sp.Eq(B, 0)), (-root, A >= 0), (root, True))
        factor = sp.Piecewise((0, sp.Eq(A, B)), ((B - A) / B, True))
        axis = sp.Piecewise((1, sp.Ne(B, 0)), (A / (D - E), sp.Ne(C, 0) & sp.Ne(A, 0)), (0, True))
        return (
            _copy(m, (matrix, _run(0, m, size)), (kept, own)),
            loop_over([A, B], [MARKED], m, [(self.here, own), (kept, own)], [(self.first, same)], "add"),
            loop_over([A, B], [square], m, [(self.below, own), (kept, own)], [(self.squares, same)], "add"),
            loop_over([A, B], [end], 1, [(self.first, single), (self.squares, single)], [(self.ends, single)]),
            loop_over([A, B], [factor], 1, [(self.first, single), (self.ends, single)], [(self.factors, single)]),
            loop_over([A, B, C, D, E], [axis], m,
                  [(kept, own), (self.here, own), (self.below, own), (self.first, same), (self.ends, same)],
                  [(axes, own)]),
            loop_over([A, B], [A * B], size, [(axes, _moving(row, m)), (matrix, _run(0, size, size))],
                  [(self.inner, _moving(column, width))], "add"),
            loop_over([A, B, C, D], [A - B * C * D], size,
                  [(matrix, _run(0, size, size)), (axes, _moving(row, m)), (self.inner, _moving(column, width)),
                   (self.factors, _at(0, size, 1))],
                  [(matrix, _moving(size + (column - 1) % width * m + row, size))]),
        )  # fmt: skip


def _search(n: int, column: Place, used: Place, numbers: Place, start: int, chosen: Place) -> Region:
    """Return the search for the row of the largest entry among unused ones: a chain over all rows."""
    smaller = sp.Or(sp.Abs(A) <= D, sp.Ne(B, 0))  # NaN is not: it becomes the pivot, and makes all results NaN
    formulas = [sp.Piecewise((E, smaller), (C, True)), sp.Piecewise((D, smaller), (sp.Abs(A), True))]
    chain = loop_over([A, B, C, D, E], formulas, n, [column, used, numbers], [chosen], "last")
    largest, row = ((Gather(start, _at(place)),) for place in (0, 1))
    return replace(chain, carries=(Carry(1, largest), Carry(0, row)))


def _marked(n: int, numbers: int, chosen: int, used: int, ones: int) -> Region:
    """Return the loop that marks the chosen row with 1, for this round and among the used rows."""
    formulas = [sp.Piecewise((1, sp.Eq(A, B)), (0, True)), sp.Piecewise((1, sp.Eq(A, B)), (C, True))]
    reads = [(numbers, _run(0, n)), (chosen, _at(0, n, 1)), (used, _run(0, n, n))]
    return loop_over([A, B, C], formulas, n, reads, [(ones, _run(0, n, n)), (used, _run(n, n, n))])
