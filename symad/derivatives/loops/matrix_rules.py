"""Tangents and cotangents of matrix operations in regions are matrix operations too.

So every order follows, by the rules that arrays on numbers share (`symad.derivatives.matrix_factors`). Numbers at
computed places read their tangents at the same places, and add their cotangents there. Where no cotangent of a result
holds, as on a path not taken, operands receive nothing: 0 times the infinite inverse of a singular matrix is NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from operator import add
from typing import Any

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.matrix_operation import MOVING, MatrixKind, MatrixOperation
from codegen.ir.program import Program
from codegen.ir.region import Gather, Kind, Region, Result, Step
from codegen.ir.tables import Affine, Places, table
from codegen.loops.optimise.draft import Draft
from codegen.matrices.matrix_loops import matrix_region
from symad.derivatives.loops.body_derivatives import body_program
from symad.derivatives.matrix_algebra import Algebra
from symad.derivatives.matrix_factors import pulled, pushed, values_read


@cache
def _body(function: Callable[..., Any], slots: int) -> Program:
    return body_program(lambda *given: (function(*given),), slots)


def _same(x: Any) -> Any:
    return x


def _where_held(x: Any, guard: Any) -> Any:
    return np.where(guard != 0, x, 0.0)


def everywhere(draft: Draft, guard: Gather) -> Region:
    """Return the region that says of guards that they hold."""
    return copy(draft.number(1.0, guard.table.count), guard.buffer, guard.table, "add", "")


class MatrixRule(Algebra[Gather]):
    """The steps that carry the tangents or cotangents of one matrix operation, under construction.

    Rounds of a nest share the same workspace. `held` is a number that is not 0 where a cotangent of a result holds,
    None where one always does.
    """

    draft: Draft
    region: Region
    operation: MatrixOperation
    nested: bool
    held: Gather | None = None

    def __init__(self, draft: Draft, region: Region, operation: MatrixOperation, nested: bool = False) -> None:
        self.draft, self.region, self.operation, self.nested = draft, region, operation, nested
        self.steps: list[Step] = []
        self.results: list[Gather] = [Gather(use.buffer, use.table) for use in region.results]

    def forward(self, tangents: Mapping[int, Gather], targets: Mapping[int, Gather]) -> list[Step]:
        """Return the steps from the tangents of some operands, by number, to those of some results."""
        if self.operation.kind in MOVING:
            self.moved(self.operation.kind, tangents[0], targets[0], self.region.results[0].kind)
        elif self.operation.kind == "product":
            self.product_forward(tangents, targets[0])
        else:
            for number, value in pushed(self, self.operation, self.read, tangents, sorted(targets)).items():
                self.entries(_same, [value], targets[number], self.region.results[number].kind)
        return self.steps

    def backward(self, cotangents: Mapping[int, Gather], targets: Mapping[int, Gather]) -> list[Step]:
        """Return the steps that add to the cotangents of some operands, by number; from those of results."""
        if self.operation.kind in MOVING:
            self.moved(_ADJOINT[self.operation.kind], cotangents[0], targets[0], "add")
        elif self.operation.kind == "product":
            self.product_backward(cotangents[0], targets)
        else:
            for number, (value, places) in pulled(self, self.operation, self.read, cotangents, targets).items():
                self.put(value, self.picked(targets[number], places))
        return self.steps

    def hold_where(self, guards: Sequence[Gather]) -> None:
        """Have operands get cotangents only where one of some guards of results holds."""
        for guard in guards:
            ones = self.draft.number(1.0, guard.table.count)
            total = self.product((1, 1, guard.table.count, 1), guard, ones, (False, False))
            self.held = total if self.held is None else self.entries(add, [self.held, total])

    def guards(self, guard: Gather | None, target: Gather, *, ahead: bool) -> list[Step]:
        """Return the steps that say of guards whether they hold: where those do that it comes from, by default all."""
        if self.operation.kind not in MOVING and self.held is not None:
            return [copy(_repeated(self.held, target.table.count), target.buffer, target.table, "add")]
        if self.operation.kind not in MOVING:
            return [everywhere(self.draft, target)]
        kind: MatrixKind = self.operation.kind if ahead else _ADJOINT[self.operation.kind]
        source = self.region.gathers[0] if ahead else self.region.results[0]
        known = self.draft.number(1.0, source.table.count) if guard is None else guard
        self.steps = []
        self.moved(kind, known, target, self.region.results[0].kind if ahead else "add")
        return self.steps

    def put(self, value: Gather, target: Gather) -> None:
        """Have cotangents added where they hold."""
        reads = [value] if self.held is None else [value, _repeated(self.held, value.table.count)]
        self.entries(_same if self.held is None else _where_held, reads, target, "add")

    def moved(self, kind: MatrixKind, values: Gather, target: Gather, how: Kind) -> None:
        """Have numbers taken from places, or added up there."""
        self.run(MatrixOperation(kind, self.operation.sizes), [values, self.region.gathers[1]], target, how)

    @property
    def read(self) -> Sequence[Gather]:
        """What the rule of the operation reads."""
        return list(map(self.side_by_side, values_read(self.operation, self.region.gathers, self.results)))

    def map(self, function: Callable[..., Any], *values: Gather) -> Gather:
        return self.entries(function, values)

    def picked(self, value: Gather, places: Places) -> Gather:
        return Gather(value.buffer, replace(table(value.table.places()[places]), shifts=value.table.shifts))

    def known(self, numbers: np.ndarray) -> Gather:
        flat = np.ascontiguousarray(numbers, dtype=np.float64).ravel()
        return Gather(self.draft.constants(flat), Affine(0, 1, flat.size))

    def joined(self, values: Sequence[Gather]) -> Gather:
        whole, start = self.whole(sum(map(self.size, values))), 0
        for value in values:
            self.entries(_same, [value], Gather(whole.buffer, Affine(start, 1, self.size(value))))
            start += self.size(value)
        return whole

    def size(self, value: Gather) -> int:
        return value.table.count

    # The algebra of the rules

    def whole(self, size: int) -> Gather:
        """Return a new matrix."""
        return Gather(self.draft.workspace(size), Affine(0, 1, size))

    def run(self, operation: MatrixOperation, operands: Sequence[Gather], target: Gather | None = None,
            kind: Kind = "store") -> Gather:  # fmt: skip
        """Have an operation carried out; return where its result is."""
        result = self.whole(operation.results[0]) if target is None else target
        inputs = [self.side_by_side(use) for use in operands]
        self.steps.append(matrix_region(operation, inputs, [Result(0, result.buffer, result.table, kind)]))
        return result

    def side_by_side(self, use: Gather) -> Gather:
        """Return a matrix whose entries are side by side in memory, row by row."""
        if isinstance(use.table, Affine) and (use.table.step == 1 or use.table.count == 1):
            return use
        return self.entries(_same, [use])

    def entries(self, function: Callable[..., Any], reads: Sequence[Gather], target: Gather | None = None,
                kind: Kind = "store") -> Gather:  # fmt: skip
        """Have a function of entries carried out."""
        count = reads[0].table.count
        written = self.whole(count) if target is None else target
        body = _body(function, len(reads))
        result = Result(0, written.buffer, written.table, kind)
        self.steps.append(Region(body, count, tuple(reads), (result,)))
        return written

    def product(self, sizes: tuple[int, ...], left: Gather, right: Gather, transposed: tuple[bool, bool],
                target: Gather | None = None, kind: Kind = "store") -> Gather:  # fmt: skip
        return self.run(MatrixOperation("product", sizes, transposed), [left, right], target, kind)

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
            self.put_product((number, rows, columns, inner), cotangent, right, (False, not right_turned), targets[0])
        elif 0 in targets:
            self.put_product((number, inner, columns, rows), right, cotangent, (right_turned, True), targets[0])
        if 1 in targets and not right_turned:
            self.put_product((number, inner, rows, columns), left, cotangent, (not left_turned, False), targets[1])
        elif 1 in targets:
            self.put_product((number, columns, rows, inner), cotangent, left, (True, left_turned), targets[1])

    def put_product(self, sizes: tuple[int, ...], left: Gather, right: Gather, turned: tuple[bool, bool],
                    target: Gather) -> None:  # fmt: skip
        """Have a product added where it holds."""
        if self.held is None:
            self.product(sizes, left, right, turned, target, "add")
        else:
            self.put(self.product(sizes, left, right, turned), target)


def _repeated(number: Gather, count: int) -> Gather:
    return Gather(number.buffer, Affine(0, 0, count))


_ADJOINT: dict[MatrixKind, MatrixKind] = {"gather": "scatter", "scatter": "gather"}
