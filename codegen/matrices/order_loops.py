"""Sorts, insertion places, gathers and scatters as loops over pairs of elements.

A key's place in the order is the number of keys before it; a number at a computed place is a sum of choices among all.
So these operations have derivatives and straight lines.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import sympy as sp

from codegen.errors import LimitError
from codegen.ir.copy_rows import body_of
from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Gather, Kind, Region, Result, RolledProgram
from codegen.ir.row_table import RowTable
from codegen.ir.tables import Places, table

LARGEST = 1 << 20  # pairs of elements


def order_loops(operation: MatrixOperation) -> RolledProgram:
    """Return the loops of an operation with places; LimitError where they have too many repetitions.

    >>> program = order_loops(MatrixOperation("gather", (1, 5, 3)))
    >>> [output.shape for output in program.outputs], [step.count for step in program.steps]
    ([(3,)], [15, 3])
    """
    sizes = operation.sizes
    pairs = sizes[0] * sizes[1] * (sizes[-1] if operation.kind not in ("insertion", "insertion_right") else 1)
    if pairs > LARGEST:
        raise LimitError(
            f"the {operation.description} as loops",
            why=f"they bring {pairs} pairs together, and more than {LARGEST} are not allowed",
            do="take it out of loops, scans and third derivatives: there, and in straight lines, it is made of pairs",
        )
    if operation.kind in ("insertion", "insertion_right"):
        return _insertion(*sizes, right=operation.kind == "insertion_right")
    loops: dict[str, Callable[..., RolledProgram]] = {"order": _order, "gather": _gather, "scatter": _scatter}
    return loops[operation.kind](*sizes)


class _BodyRows:
    """The rows of a body under construction."""

    def __init__(self, slots: int) -> None:
        self.rows = RowTable()
        self.slots = [self.rows.leaf(sp.Symbol(f"slot_{k}", real=True)) for k in range(slots)]
        self.true, self.zero, self.one = map(self.rows.leaf, (sp.true, sp.S.Zero, sp.S.One))

    def select(self, condition: int, first: int, second: int) -> int:
        return self.rows.row(sp.Piecewise, (first, condition, second, self.true))

    def less(self, first: int, second: int) -> int:
        return self.rows.row(sp.StrictLessThan, (first, second))

    def equal(self, first: int, second: int) -> int:
        return self.rows.row(sp.Equality, (first, second))

    def is_number(self, value: int) -> int:
        return self.rows.row(sp.LessThan, (self.rows.row(sp.Abs, (value,)), self.rows.leaf(sp.oo)))

    def before(self, first: int, second: int, equal: int) -> int:
        """Return 1 where a key comes before another, else 0; `equal` for equal keys."""
        less = self.less(first, second)
        numbers = self.select(less, self.one, self.select(self.equal(first, second), equal, self.zero))
        return self.select(self.is_number(second), numbers, self.select(self.is_number(first), self.one, equal))

    def program(self, result: int) -> Program:
        return body_of(self.rows, (f"slot_{k}" for k in range(len(self.slots))), [result], "body")


def _before() -> Program:
    body = _BodyRows(3)
    return body.program(body.before(*body.slots))


def _where_equal() -> Program:
    """Return the body of the first slot where the others are equal."""
    body = _BodyRows(3)
    value, place, number = body.slots
    return body.program(body.select(body.equal(place, number), value, body.zero))


def _chosen() -> Program:
    """Return the same for a place that counts from the end where it is negative; the size is a slot too."""
    body = _BodyRows(4)
    value, place, number, size = body.slots
    turned = body.select(body.less(place, body.zero), body.rows.canonical(sp.Add, (place, size)), place)
    return body.program(body.select(body.equal(turned, number), value, body.zero))


def _inside() -> Program:
    """Return the body of the first slot, or NaN where a place is outside of the size."""
    body = _BodyRows(3)
    value, place, size = body.slots
    minus = body.rows.canonical(sp.Mul, (body.rows.leaf(sp.S.NegativeOne), size))
    below, above = body.less(place, size), body.rows.row(sp.LessThan, (minus, place))
    number = body.select(above, value, body.rows.leaf(sp.nan))
    return body.program(body.select(below, number, body.rows.leaf(sp.nan)))


def _loop(body: Program, reads: list[tuple[int, Places]], target: tuple[int, Places], kind: Kind) -> Region:
    gathers = tuple(Gather(buffer, table(places)) for buffer, places in reads)
    return Region(body, len(target[1]), gathers, (Result(0, target[0], table(target[1]), kind),))


def _program(name: str, sizes: tuple[int, ...], constants: list[np.ndarray], workspace: int, result: int,
             steps: Callable[..., tuple[Region, ...]]) -> RolledProgram:  # fmt: skip
    """Return a program of inputs, constants, a workspace and one output; `steps` gets the numbers of the last three."""
    buffers = [Buffer("input", size) for size in sizes]
    buffers += [Buffer("constant", values.size, values.astype(np.float64)) for values in constants]
    buffers += [Buffer("workspace", workspace)] * bool(workspace)
    buffers.append(Buffer("output", result))
    inputs = tuple(Input(f"array_{k}", (size,)) for k, size in enumerate(sizes))
    regions = steps(*range(len(sizes), len(buffers)))
    return RolledProgram(inputs, (Output((result,), ()),), tuple(buffers), regions, name)


def _axes(*sizes: int) -> list[Places]:
    return [axis.ravel() for axis in np.indices(sizes)]


def _order(rows: int, n: int) -> RolledProgram:
    row, i, j = _axes(rows, n, n)
    flags, numbers = np.array([0.0, 1.0]), np.arange(n)

    def steps(flag: int, number: int, ranks: int, target: int) -> tuple[Region, ...]:
        pairs = [(0, row * n + j), (0, row * n + i), (flag, (j < i).astype(np.int64))]
        return (
            _loop(_before(), pairs, (ranks, row * n + i), "add"),
            _loop(_where_equal(), [(number, i), (ranks, row * n + i), (number, j)], (target, row * n + j), "add"),
        )

    return _program("order", (rows * n,), [flags, numbers], rows * n, rows * n, steps)


def _insertion(n: int, m: int, *, right: bool) -> RolledProgram:
    k, i = _axes(m, n)

    def steps(flag: int, target: int) -> tuple[Region, ...]:
        return (_loop(_before(), [(0, i), (1, k), (flag, i * 0)], (target, k), "add"),)

    return _program("insertion", (n, m), [np.array([float(right)])], 0, m, steps)


def _gather(rows: int, n: int, m: int) -> RolledProgram:
    row, k, i = _axes(rows, m, n)

    def steps(number: int, size: int, sums: int, target: int) -> tuple[Region, ...]:
        reads, every = [(0, row * n + i), (1, row * m + k), (number, i), (size, i * 0)], np.arange(rows * m)
        return (
            _loop(_chosen(), reads, (sums, row * m + k), "add"),
            _loop(_inside(), [(sums, every), (1, every), (size, every * 0)], (target, every), "store"),
        )

    return _program("gather", (rows * n, rows * m), [np.arange(n), np.array([n])], rows * m, rows * m, steps)


def _scatter(rows: int, n: int, m: int) -> RolledProgram:
    row, i, k = _axes(rows, n, m)

    def steps(number: int, size: int, target: int) -> tuple[Region, ...]:
        reads = [(0, row * m + k), (1, row * m + k), (number, i), (size, i * 0)]
        return (_loop(_chosen(), reads, (target, row * n + i), "add"),)

    return _program("scatter", (rows * m, rows * m), [np.arange(n), np.array([n])], 0, rows * n, steps)
