"""Hessians of rolled programs: every body is differentiated twice, once, and its entries are scattered by loops.

The pieces (see `pieces`) are visited from the last to the first, as in reverse mode: the adjoint of what a
piece is added to is there when the piece is reached, and gives its terms their weights. The second derivatives of the
weighted sum of its terms in the input are entries of the Hessian, in each repetition at a place of their own; those in
inner values go on to `outer`. Edge pushing on the body finds the pattern, and what entries share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.regions.region import Region, RolledProgram
from codegen.sparsity import Format
from symad.derivatives.linear import linearize
from symad.derivatives.second_order import edge_pushing
from symad.derivatives.sparse import Triangle
from symad.regions.layout import Assembly, Entry
from symad.regions.outer import InnerJacobian, LowRank, draft_of, flat_draft, parameters_of, sum_of
from symad.regions.pieces import Draft, Inner, Piece, Slot, Term, pieces_of

MOST_INPUTS = 2**31  # so that rows * columns is a 64-bit integer


def hessian(
    program: RolledProgram, wrt: int, triangle: Triangle | None, format: Format = "coo"
) -> RolledProgram | None:
    """Return the Hessian of a scalar rolled program in one of its inputs; None where it has another form.

    Without a triangle it is dense, of the shape of the input twice; else packed in a format, with the exact pattern.

    >>> import sympy as sp
    >>> from codegen.program import Input, Output
    >>> from codegen.regions.region import Buffer, Gather, Result
    >>> from codegen.regions.table import Affine
    >>> from codegen.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> body = program_from_sympy([x, y], [x**2 * y])
    >>> gathers = (Gather(0, Affine(0, 1, 3)), Gather(0, Affine(1, 1, 3)))
    >>> region = Region(body, 3, gathers, (Result(0, 1, Affine(0, 0, 3), "add"),))
    >>> buffers = (Buffer("input", 4), Buffer("output", 1))
    >>> rolled = RolledProgram((Input("x", (4,)),), (Output((), ()),), buffers, (region,))
    >>> found = hessian(rolled, 0, "lower", "regions")
    >>> found.outputs[0].pattern.rows.tolist(), found.outputs[0].pattern.columns.tolist()
    ([0, 1, 2, 1, 2, 3], [0, 1, 2, 0, 1, 2])
    """
    regions = [step for step in program.steps if isinstance(step, Region) and step.parallel]
    scalar = len(program.outputs) == 1 and program.outputs[0].size == 1
    if not scalar or len(regions) < len(program.steps) or program.inputs[wrt].size >= MOST_INPUTS:
        return None
    found = pieces_of(program, regions, wrt)
    if found is None:
        return None
    sweep = _Sweep(program, *found, wrt, triangle)
    entries = sweep.entries()
    if entries is None:
        return None
    shape = program.inputs[wrt].shape
    width = program.inputs[wrt].size
    if triangle is None:
        return sweep.assembly.rolled([sweep.assembly.dense(entries, width, shape + shape)])
    return sweep.assembly.rolled([sweep.assembly.packed(entries, (width, width), format)])


class _Sweep:
    """Visits pieces backward: adjoints of inner values, entries of the Hessian, and what `outer` needs."""

    def __init__(
        self, program: RolledProgram, pieces: Sequence[Piece], inner: Inner, wrt: int, triangle: Triangle | None
    ) -> None:
        self.pieces, self.inner, self.triangle = pieces, inner, triangle
        self.width = program.inputs[wrt].size
        inner.note(program.first_output, np.zeros(1, dtype=np.int64))
        self.assembly = Assembly(program)
        self.adjoints: list[float | None] = [0.0] * len(inner)  # None: it is in a buffer
        self.adjoints[int(inner.of(program.first_output, np.zeros(1, dtype=np.int64))[0])] = 1.0
        self.stored = self.assembly.workspace(len(inner))
        self.low_rank = LowRank(self.assembly, inner, self.width)
        self.found: list[Entry] = []

    def entries(self) -> list[Entry] | None:
        """Return the entries; None where the inner values fill too much."""
        for piece in reversed(self.pieces):
            self.visit(piece)
        jacobian = InnerJacobian(self.assembly, self.pieces, self.inner, self.width)
        jacobian.write(self.low_rank.numbers)
        entry = self.low_rank.entry(jacobian, self.triangle)
        return None if entry is None else self.found + entry

    def visit(self, piece: Piece) -> None:
        """Differentiate a piece twice."""
        draft, slots, build = draft_of(piece), parameters_of(piece), piece.build
        weighted = [node for term in piece.terms if (node := self.weighted(draft, term)) is not None]
        if not weighted or not slots:
            return
        total = sum_of(build, weighted)
        sweep = linearize(build, [total], [slot.node for slot in slots])
        for (p, q), node in sorted(edge_pushing(build, sweep, total).items()):
            self.second(draft, node, slots[p], slots[q])
        gradient = sweep.transpose().apply(build, [build.one])
        for slot, first in zip(slots, gradient, strict=True):
            if slot.role == "inner" and first is not None:
                self.first(draft, first, slot)
        self.assembly.steps.append(draft)

    def weighted(self, draft: Draft, term: Term) -> int | None:
        """Return a term times the adjoint of what it is added to; None where that is 0."""
        numbers = self.inner.of(term.buffer, term.places)
        met = np.unique(numbers).tolist()
        values = {self.adjoints[number] for number in met}
        if len(values) == 1 and None not in values:
            (value,) = values
            return None if not value else draft.build.mul(draft.build.number(_exact(value)), term.node)
        for number in met:
            self.store(number)
        return draft.build.mul(draft.slot(self.stored, numbers), term.node)

    def store(self, number: int) -> None:
        """Put the adjoint of an inner value into its buffer."""
        value, self.adjoints[number] = self.adjoints[number], None
        if value:
            draft = flat_draft(1)
            draft.result(draft.build.number(_exact(value)), self.stored, np.array([number]))
            self.assembly.steps.append(draft)

    def first(self, draft: Draft, node: int, slot: Slot) -> None:
        """Add a derivative to the adjoint of an inner value: a number to a number, where that is all."""
        numbers = self.inner.of(slot.buffer, slot.places)
        constant, kept = draft.build.constant(node), self.adjoints[int(numbers[0])]
        if draft.count == 1 and constant is not None and kept is not None:
            self.adjoints[int(numbers[0])] = kept + float(constant)
            return
        for number in np.unique(numbers).tolist():
            self.store(number)
        draft.result(node, self.stored, numbers)

    def second(self, draft: Draft, node: int, first: Slot, second: Slot) -> None:
        """Let a second derivative go where it belongs."""
        if first.role == "active" and second.role == "active":
            self.note(draft, node, first, second)
            return
        if first.role == "active":
            first, second = second, first
        numbers = self.inner.of(first.buffer, first.places)
        if second.role == "active":
            self.low_rank.cross(draft, node, numbers, second.places)
            return
        others = self.inner.of(second.buffer, second.places)
        self.low_rank.curve(draft, node, numbers, others)
        if first is not second:
            self.low_rank.curve(draft, node, others, numbers)

    def twice(self, draft: Draft, node: int, first: Slot, second: Slot) -> int:
        """Return an entry of two slots, times 2 where both are the same place: it stands for two on the diagonal."""
        same = first.places == second.places
        if first is second or not same.any():
            return node
        factors = self.assembly.constants(np.where(same, 2.0, 1.0))
        return draft.build.mul(draft.slot(factors, np.arange(draft.count)), node)

    def note(self, draft: Draft, node: int, first: Slot, second: Slot) -> None:
        """Note an entry of a triangle, or the entry and its mirror image, which add up where they meet."""
        if self.triangle not in ("lower", "upper"):
            self.found.append(Entry(draft, node, first.places, second.places))
            if first is not second:
                self.found.append(Entry(draft, node, second.places, first.places))
            return
        low, high = np.minimum(first.places, second.places), np.maximum(first.places, second.places)
        rows, columns = (high, low) if self.triangle == "lower" else (low, high)
        self.found.append(Entry(draft, self.twice(draft, node, first, second), rows, columns))


def _exact(value: float) -> int | float:
    """Return a whole number as an int, so that it is folded exactly."""
    return int(value) if value.is_integer() else value
