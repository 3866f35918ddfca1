"""Matrix operations forward and backward: their tangents and cotangents are matrix operations too.

So every order follows. Stacks of right-hand sides are rows, as in `codegen.ir.matrix_operation`: X = R A^-T solves
A x = r for each row. What is read of a lower triangle only has tangents and cotangents there only.

Numbers at computed places have their tangents from the same places, and cotangents are added up there.

Source: Giles, An extended collection of matrix derivative results for forward and reverse mode AD (2008); for the
Cholesky factor Murray, Differentiation of the Cholesky decomposition, arXiv:1602.07527 (2016).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import add, mul, neg, sub
from typing import Any

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.matrix_operation import MOVING, MatrixKind, MatrixOperation
from codegen.ir.program import Program
from codegen.ir.region import Gather, Kind, Region, Result, Step
from codegen.ir.tables import Affine, Places, table
from codegen.loops.optimise.contraction import zeros
from codegen.loops.optimise.draft import Draft
from codegen.matrices.matrix_loops import matrix_region
from symad.derivatives.loops.body_derivatives import body_program
from symad.derivatives.matrix_algebra import Algebra, of_both, pulled, pushed


@cache
def _body(function: Callable[..., Any], slots: int) -> Program:
    return body_program(lambda *given: (function(*given),), slots)


def _same(x: Any) -> Any:
    return x


def _times_both(x: Any, y: Any, z: Any) -> Any:
    return x * y * z


def _often(use: Gather, count: int) -> Gather:
    """Return one number as many."""
    return Gather(use.buffer, Affine(use.table.first, 0, count, use.table.shifts))


def everywhere(draft: Draft, guard: Gather) -> Region:
    """Return the region that says of guards that they hold."""
    return copy(draft.number(1.0, guard.table.count), guard.buffer, guard.table, "add", "")


class MatrixRule(Algebra[Gather]):
    """The steps that carry the tangents or cotangents of one matrix operation, in the making.

    In a nest each round uses the same workspace again for what is between them.
    """

    def __init__(self, draft: Draft, region: Region, operation: MatrixOperation, nested: bool = False) -> None:
        self.draft, self.region, self.operation, self.nested = draft, region, operation, nested
        self.n = operation.sizes[0]
        self.steps: list[Step] = []
        self.results = [Gather(use.buffer, use.table) for use in region.results]

    def forward(self, tangents: Mapping[int, Gather], targets: Mapping[int, Gather]) -> list[Step]:
        """Return the steps from the tangents of some operands, by number, to those of some results."""
        if self.operation.kind in MOVING:
            self.moved(self.operation.kind, tangents[0], targets[0], self.region.results[0].kind)
            return self.steps
        if self.operation.kind in _FORWARD:
            _FORWARD[self.operation.kind](self, tangents, targets[0])
            return self.steps
        found = pushed(self, self.operation, self.read, tangents[0], sorted(targets))
        for number, target in targets.items():
            self.entries(_same, [found[number]], target, self.region.results[number].kind)
        return self.steps

    def backward(self, cotangents: Mapping[int, Gather], targets: Mapping[int, Gather]) -> list[Step]:
        """Return the steps that add to the cotangents of some operands, by number; from those of results."""
        if self.operation.kind in MOVING:
            self.moved(_ADJOINT[self.operation.kind], cotangents[0], targets[0], "add")
            return self.steps
        if self.operation.kind in _BACKWARD:
            _BACKWARD[self.operation.kind](self, cotangents[0], targets)
            return self.steps
        found, places = pulled(self, self.operation, self.read, cotangents)
        self.entries(_same, [found], self.at(targets[0], places), "add")
        return self.steps

    def guards(self, given: Gather | None, target: Gather, *, ahead: bool) -> list[Step]:
        """Return the steps that say of guards whether they hold: where those do that it comes from, by default all."""
        if self.operation.kind not in MOVING:
            return [everywhere(self.draft, target)]
        kind: MatrixKind = self.operation.kind if ahead else _ADJOINT[self.operation.kind]
        source = self.region.gathers[0] if ahead else self.region.results[0]
        known = self.draft.number(1.0, source.table.count) if given is None else given
        self.steps = []
        self.moved(kind, known, target, self.region.results[0].kind if ahead else "add")
        return self.steps

    def moved(self, kind: MatrixKind, values: Gather, target: Gather, how: Kind) -> None:
        """Have numbers taken from places, or added up there."""
        self.run(MatrixOperation(kind, self.operation.sizes), [values, self.region.gathers[1]], target, how)

    @property
    def read(self) -> Sequence[Gather]:
        """What the rule of a factorization reads."""
        return [self.side_by_side(self.region.gathers[0])] if self.operation.kind == "exponential" else self.results

    def multiplied(self, sizes: tuple[int, int, int], left: Gather, right: Gather,
                   turned: tuple[bool, bool] = (False, False)) -> Gather:  # fmt: skip
        """Return a product of matrices."""
        return self.product((1, *sizes), left, right, turned)

    def each(self, function: Callable[..., Any], *values: Gather) -> Gather:
        """Return a function of each entry."""
        return self.entries(function, values)

    def picked(self, value: Gather, places: Places) -> Gather:
        """Return entries at places."""
        return self.at(value, places)

    def known(self, numbers: np.ndarray) -> Gather:
        """Return constants."""
        return self.numbers(numbers)

    def substituted(self, n: int, lower: Gather, right: Gather, turned: bool) -> Gather:
        """Return the solutions of triangular systems, for right-hand sides as rows."""
        sizes = n, right.table.count // n
        return self.run(MatrixOperation("triangular", sizes, (turned, False)), [lower, right])

    def joined(self, values: Sequence[Gather]) -> Gather:
        """Return arrays one behind the other."""
        found, start = self.whole(sum(map(self.size, values))), 0
        for value in values:
            self.entries(_same, [value], Gather(found.buffer, Affine(start, 1, self.size(value))))
            start += self.size(value)
        return found

    def exponential(self, n: int, matrix: Gather) -> Gather:
        """Return the exponential of a matrix."""
        return self.run(MatrixOperation("exponential", (n,)), [matrix])

    def size(self, value: Gather) -> int:
        """Return how many entries an array has."""
        return value.table.count

    # What rules are made of

    def whole(self, size: int) -> Gather:
        """Return a new matrix."""
        return Gather(self.draft.workspace(size), Affine(0, 1, size))

    def run(self, operation: MatrixOperation, operands: Sequence[Gather], target: Gather | None = None,
            kind: Kind = "store") -> Gather:  # fmt: skip
        """Have an operation carried out; return where its result is."""
        found = self.whole(operation.results[0]) if target is None else target
        given = [self.side_by_side(use) for use in operands]
        self.steps.append(matrix_region(operation, given, [Result(0, found.buffer, found.table, kind)]))
        return found

    def side_by_side(self, use: Gather) -> Gather:
        """Return a matrix whose entries are side by side in memory, row by row."""
        if isinstance(use.table, Affine) and (use.table.step == 1 or use.table.count == 1):
            return use
        return self.entries(_same, [use])

    def entries(self, function: Callable[..., Any], reads: Sequence[Gather], target: Gather | None = None,
                kind: Kind = "store") -> Gather:  # fmt: skip
        """Have a function of entries carried out."""
        count = reads[0].table.count
        found = self.whole(count) if target is None else target
        body = _body(function, len(reads))
        result = Result(0, found.buffer, found.table, kind)
        self.steps.append(Region(body, count, tuple(reads), (result,)))
        return found

    def product(self, sizes: tuple[int, ...], left: Gather, right: Gather, transposed: tuple[bool, bool],
                target: Gather | None = None, kind: Kind = "store") -> Gather:  # fmt: skip
        return self.run(MatrixOperation("product", sizes, transposed), [left, right], target, kind)

    def solved(self, right: Gather, transposed: bool, target: Gather | None = None, kind: Kind = "store") -> Gather:
        """Return the solutions of the systems of the first operand, or of its transposed ones."""
        factor = self.region.gathers[0]
        if self.operation.kind == "cholesky":
            factor = self.results[0]
        kind_of: MatrixKind = "triangular" if self.operation.kind in ("cholesky", "triangular") else "solve"
        sizes = self.n, right.table.count // self.n
        return self.run(MatrixOperation(kind_of, sizes, (transposed, False)), [factor, right], target, kind)

    def at(self, use: Gather, places: Places) -> Gather:
        """Return some entries of a matrix."""
        return Gather(use.buffer, replace(table(use.table.places()[places]), shifts=use.table.shifts))

    def turned(self, use: Gather) -> Gather:
        """Return a transposed matrix."""
        n = self.n
        return self.at(use, np.arange(use.table.count).reshape(-1, n).T.ravel())

    def numbers(self, values: np.ndarray) -> Gather:
        flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
        return Gather(self.draft.constants(flat), Affine(0, 1, flat.size))

    @property
    def lower(self) -> Places:
        """The entries of the lower triangle."""
        row, column = np.tril_indices(self.n)
        return row * self.n + column

    @property
    def halved(self) -> np.ndarray:
        """What keeps the lower triangle and half of the diagonal."""
        return np.tri(self.n) - 0.5 * np.eye(self.n)

    def masked(self, use: Gather) -> Gather:
        """Return the lower triangle of a matrix."""
        return self.entries(mul, [use, self.numbers(np.tri(self.n))])

    @property
    def inverse(self) -> Gather:
        """The transposed inverse of the operand."""
        return self.solved(self.numbers(np.eye(self.n)), False)

    # Rules

    def product_forward(self, tangents: Mapping[int, Gather], target: Gather) -> None:
        (left, right), sizes, turned = self.region.gathers, self.operation.sizes, self.operation.transposed
        kind: Kind = self.region.results[0].kind
        pairs = [(tangents.get(0, left), right)] * (0 in tangents) + [(left, tangents.get(1, right))] * (1 in tangents)
        if len(pairs) == 1:
            self.product(sizes, *pairs[0], turned, target, kind)
        elif self.nested:  # where each round may store to the same places, none adds to them
            self.entries(add, [self.product(sizes, *pair, turned) for pair in pairs], target, kind)
        else:
            for pair in pairs:
                self.product(sizes, *pair, turned, target, "add")

    def product_backward(self, cotangent: Gather, targets: Mapping[int, Gather]) -> None:
        (left, right), (left_turned, right_turned) = self.region.gathers, self.operation.transposed
        number, rows, inner, columns = self.operation.sizes
        if 0 in targets and not left_turned:
            self.product((number, rows, columns, inner), cotangent, right, (False, not right_turned), targets[0], "add")
        elif 0 in targets:
            self.product((number, inner, columns, rows), right, cotangent, (right_turned, True), targets[0], "add")
        if 1 in targets and not right_turned:
            self.product((number, inner, rows, columns), left, cotangent, (not left_turned, False), targets[1], "add")
        elif 1 in targets:
            self.product((number, columns, rows, inner), cotangent, left, (True, left_turned), targets[1], "add")

    def cholesky_forward(self, tangents: Mapping[int, Gather], target: Gather) -> None:
        n = self.n
        row, column = (axis.ravel() for axis in np.indices((n, n)))
        symmetric = self.at(tangents[0], np.maximum(row, column) * n + np.minimum(row, column))
        half = self.solved(symmetric, False)
        both = self.solved(self.turned(half), False)
        inner = self.entries(mul, [both, self.numbers(self.halved)])
        self.product((1, n, n, n), self.results[0], inner, (False, False), target, self.region.results[0].kind)

    def cholesky_backward(self, cotangent: Gather, targets: Mapping[int, Gather]) -> None:
        n, lower = self.n, self.lower
        found = self.product((1, n, n, n), self.results[0], self.masked(cotangent), (True, False))
        inner = self.entries(mul, [found, self.numbers(self.halved)])
        half = self.solved(self.turned(inner), True)
        both = self.solved(self.turned(half), True)
        kept = self.numbers(self.halved.ravel()[lower])
        reads = [self.at(both, lower), self.at(self.turned(both), lower), kept]
        self.entries(of_both, reads, self.at(targets[0], lower), "add")

    def solution_forward(self, tangents: Mapping[int, Gather], target: Gather) -> None:
        turned, kind, right = self.operation.transposed[0], self.region.results[0].kind, tangents.get(1)
        if 0 in tangents:
            sides = self.operation.sizes[1]
            matrix = self.masked(tangents[0]) if self.operation.kind == "triangular" else tangents[0]
            less = self.product((1, sides, self.n, self.n), self.results[0], matrix, (False, not turned))
            right = self.entries(neg, [less]) if right is None else self.entries(sub, [right, less])
        assert right is not None
        self.solved(right, turned, target, kind)

    def solution_backward(self, cotangent: Gather, targets: Mapping[int, Gather]) -> None:
        turned, sides = self.operation.transposed[0], self.operation.sizes[1]
        found = self.solved(cotangent, not turned)
        if 1 in targets:
            self.entries(_same, [found], targets[1], "add")
        if 0 in targets:
            pair = (self.results[0], found) if turned else (found, self.results[0])
            outer = self.product((1, self.n, sides, self.n), *pair, (True, False))
            places = self.lower if self.operation.kind == "triangular" else np.arange(self.n**2)
            self.entries(neg, [self.at(outer, places)], self.at(targets[0], places), "add")

    def determinant_forward(self, tangents: Mapping[int, Gather], target: Gather) -> None:
        count = self.n**2
        logarithm = self.operation.kind == "log_determinant"
        sum_of = target if logarithm else self.whole(1)
        if not logarithm and self.nested:  # each round begins the sum anew
            self.steps.append(zeros(sum_of.buffer, 1))
        self.entries(mul, [self.inverse, tangents[0]], _often(sum_of, count), "add")
        if not logarithm:
            self.entries(mul, [sum_of, self.results[0]], target, self.region.results[0].kind)

    def determinant_backward(self, cotangent: Gather, targets: Mapping[int, Gather]) -> None:
        count = self.n**2
        if self.operation.kind == "log_determinant":
            self.entries(mul, [self.inverse, _often(cotangent, count)], targets[0], "add")
            return
        reads = [self.inverse, _often(self.results[0], count), _often(cotangent, count)]
        self.entries(_times_both, reads, targets[0], "add")


_ADJOINT: dict[MatrixKind, MatrixKind] = {"gather": "scatter", "scatter": "gather"}
_FORWARD: dict[MatrixKind, Callable[..., None]] = {
    "product": MatrixRule.product_forward,
    "cholesky": MatrixRule.cholesky_forward,
    "triangular": MatrixRule.solution_forward,
    "solve": MatrixRule.solution_forward,
    "determinant": MatrixRule.determinant_forward,
    "log_determinant": MatrixRule.determinant_forward,
}
_BACKWARD: dict[MatrixKind, Callable[..., None]] = {
    "product": MatrixRule.product_backward,
    "cholesky": MatrixRule.cholesky_backward,
    "triangular": MatrixRule.solution_backward,
    "solve": MatrixRule.solution_backward,
    "determinant": MatrixRule.determinant_backward,
    "log_determinant": MatrixRule.determinant_backward,
}
