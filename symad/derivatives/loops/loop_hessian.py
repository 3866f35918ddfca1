"""Hessians of rolled programs: differentiate each body twice, and scatter its entries by loops.

The pieces (see `pieces`) are visited from the last to the first, as in reverse mode: the adjoints of the sums that a
piece adds to are the weights of its terms. The second derivatives of the weighted sum in the input are entries of the
Hessian, in each repetition at another place; those in inner values go on to `outer`. Edge pushing on the body finds the
pattern and shares common parts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.ir.region import RolledProgram
from codegen.ir.sparsity import Format
from codegen.ir.tables import distinct
from codegen.loops.optimise.reaching_definitions import DENSE_SLOTS, FEW_SLOTS
from codegen.records import dataclass
from symad.derivatives.linear import linearize
from symad.derivatives.loops.columns_of_regions import cheapest, hessian_by_columns, worth_columns
from symad.derivatives.loops.full_rows import InnerProducts
from symad.derivatives.loops.hessian_pieces import (
    MOST_INNER,
    MOST_ROWS,
    Inner,
    Piece,
    RegionDraft,
    Slot,
    Term,
    apart,
    are_many,
    parameters_of,
    pieces_of,
)
from symad.derivatives.loops.matrix_layout import Assembly, WrittenEntry
from symad.derivatives.loops.outer import InnerJacobian, LowRank, chooses, draft_of, flat_draft, sum_of, times
from symad.derivatives.loops.patterns import each
from symad.derivatives.second_order import edge_pushing
from symad.tracing.values.sparse_matrix import Triangle

LARGE = 4_000_000  # operations of a function whose rows of slopes leave the caches: its sums stay in the bodies


def hessian(
    program: RolledProgram, wrt: int, triangle: Triangle | None, format: Format = "coo", *, columns: bool = False
) -> RolledProgram | None:
    """Return the Hessian of a scalar rolled program in one of its inputs; None where it has another form.

    Without a triangle it is dense, of the shape of the input twice; else packed in a format, with the exact pattern.
    With `columns` a dense one is taken column by column at once.

    >>> import sympy as sp
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
    >>> from codegen.ir.tables import Affine
    >>> from codegen.expressions.sympy_in import program_from_sympy
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
    if len(program.outputs) != 1 or program.outputs[0].size != 1:
        return None
    program_of_entries = None if columns and triangle is None else _scattered(program, wrt, triangle, format)
    if program_of_entries is not None or triangle is not None or not worth_columns(program):
        return program_of_entries
    products = _scattered(program, wrt, None, format, most_inner=MOST_ROWS // program.inputs[wrt].size)
    return cheapest([each for each in (hessian_by_columns(program, wrt), products) if each is not None])


def _scattered(
    program: RolledProgram, wrt: int, triangle: Triangle | None, format: Format, most_inner: int = MOST_INNER
) -> RolledProgram | None:
    """Return the Hessian of a program of sums and maps; None for any other."""
    short = FEW_SLOTS if program.executed > LARGE else DENSE_SLOTS
    split = pieces_of(program, wrt, packed=triangle is not None, most_inner=most_inner, short=short)
    if split is None:
        return None
    sweep = _Sweep(*split, wrt, packed=triangle is not None)
    sweep.run()
    entry = sweep.low_rank_entry(triangle)
    return None if entry is None else sweep.matrix(entry, program.inputs[wrt].shape, triangle, format)


@dataclass(frozen=True, eq=False)
class _Second:
    """A second derivative of a piece in two of its slots, or twice in one."""

    draft: RegionDraft
    node: int
    first: Slot
    second: Slot

    def in_triangle(self, assembly: Assembly, triangle: Triangle) -> WrittenEntry:
        """Return the entry of a triangle; where both slots are the same place, it stands for two on the diagonal."""
        first, second, node = self.first.places, self.second.places, self.node
        low, high = each(np.minimum, first, second), each(np.maximum, first, second)
        same = first == second
        if self.first is not self.second and same.any():
            factors = assembly.constants(np.where(same, 2.0, 1.0))
            node = self.draft.build.mul(self.draft.slot(factors, np.arange(len(same))), node)
        rows, columns = (high, low) if triangle == "lower" else (low, high)
        return WrittenEntry(self.draft, node, rows, columns)

    def twice(self) -> list[WrittenEntry]:
        """Return the entry and its mirror image."""
        entries = [WrittenEntry(self.draft, self.node, self.first.places, self.second.places)]
        if self.first is not self.second:
            entries.append(WrittenEntry(self.draft, self.node, self.second.places, self.first.places))
        return entries


class _Sweep:
    """Visits pieces backward: adjoints of inner values, entries of the Hessian, and the data for `outer`."""

    def __init__(
        self, program: RolledProgram, pieces: Sequence[Piece], inner: Inner, wrt: int, *, packed: bool
    ) -> None:
        self.pieces, self.inner = pieces, inner
        self.width = program.inputs[wrt].size
        inner.note(program.first_output, np.zeros(1, dtype=np.int64))
        self.assembly = Assembly(program)
        self.adjoints: list[float | None] = [0.0] * len(inner)  # None: it is in a buffer
        self.reached = {int(inner.of(program.first_output, np.zeros(1, dtype=np.int64))[0])}  # with an adjoint
        self.adjoints[int(inner.of(program.first_output, np.zeros(1, dtype=np.int64))[0])] = 1.0
        self.stored = self.assembly.workspace(len(inner))
        self.choosing = chooses(pieces)
        part = InnerProducts if are_many(inner, packed=packed) else LowRank
        self.low_rank: LowRank | InnerProducts = part(self.assembly, inner, self.width, guarded=self.choosing)
        self.seconds: list[_Second] = []

    def run(self) -> None:
        for piece in reversed(self.pieces):
            self.visit(piece)

    def low_rank_entry(self, triangle: Triangle | None) -> list[WrittenEntry] | None:
        """Return the contribution of inner values, a list of one entry or none; None where they fill too much."""
        if isinstance(self.low_rank, InnerProducts):
            return self.low_rank.entry(self.pieces)
        jacobian = InnerJacobian(self.assembly, self.pieces, self.inner, self.width, guarded=self.choosing)
        jacobian.write(self.low_rank.numbers)
        return self.low_rank.entry(jacobian, triangle)

    def matrix(
        self, more: list[WrittenEntry], shape: tuple[int, ...], triangle: Triangle | None, format: Format
    ) -> RolledProgram:
        """Return the program with the Hessian as its output."""
        assembly, width = self.assembly, self.width
        if triangle in ("lower", "upper"):
            entries = [second.in_triangle(assembly, triangle) for second in self.seconds]
            return assembly.rolled([assembly.packed([*entries, *more], (width, width), format)])
        whole = [*(entry for second in self.seconds for entry in second.twice()), *more]
        if not more:
            lower = [second.in_triangle(assembly, "lower") for second in self.seconds]
            return assembly.rolled([assembly.symmetric(lower, whole, shape + shape, format if triangle else None)])
        if triangle is None:
            return assembly.rolled([assembly.dense(whole, width, shape + shape)])
        return assembly.rolled([assembly.packed(whole, (width, width), format)])

    def visit(self, piece: Piece) -> None:
        """Differentiate a piece twice."""
        draft, slots, build = draft_of(piece), parameters_of(piece), piece.build
        weighted = [node for term in piece.terms if (node := self.weighted(draft, term)) is not None]
        if not weighted or not slots:
            return
        total = sum_of(build, weighted)
        sweep = linearize(build, [total], [slot.node for slot in slots])
        entries = dict(sorted(edge_pushing(build, sweep, total).items()))
        parts = list(apart(piece, draft, self.assembly.buffers, entries, lambda pair: [slots[k].places for k in pair]))
        for (p, q), node, part, chosen in parts:
            met = {k: slots[k].part(chosen) for k in (p, q)}
            self.second(part, node, met[p], met[q])
        self.assembly.pieces += dict.fromkeys(part for _, _, part, chosen in parts if chosen is not None)
        gradient = sweep.transpose().apply(build, [build.one])
        for slot, first in zip(slots, gradient, strict=True):
            if slot.role == "inner" and first is not None:
                self.first(draft, first, slot)
        self.assembly.pieces.append(draft)

    def weighted(self, draft: RegionDraft, term: Term) -> int | None:
        """Return a term times the adjoint of its sum; None where that is 0."""
        numbers = self.inner.of(term.buffer, term.places)
        met = distinct(numbers).tolist()
        values = {self.adjoints[number] for number in met}
        if len(values) == 1 and None not in values:
            (value,) = values
            return draft.build.mul(draft.build.number(_exact(value)), term.node) if self.reached & set(met) else None
        for number in met:
            self.store(number)
        return times(draft.build, draft.slot(self.stored, numbers), term.node, guarded=self.choosing)

    def store(self, number: int) -> None:
        """Put the adjoint of an inner value into its buffer."""
        value, self.adjoints[number] = self.adjoints[number], None
        if value:
            draft = flat_draft(1)
            draft.result(draft.build.number(_exact(value)), self.stored, np.array([number]))
            self.assembly.pieces.append(draft)

    def first(self, draft: RegionDraft, node: int, slot: Slot) -> None:
        """Add a derivative to the adjoint of an inner value: a number to a number, where that is all."""
        numbers = self.inner.of(slot.buffer, slot.places)
        self.reached.update(distinct(numbers).tolist())
        constant, kept = draft.build.constant(node), self.adjoints[int(numbers[0])]
        if constant == 0:
            return
        if draft.count == 1 and constant is not None and kept is not None:
            self.adjoints[int(numbers[0])] = kept + float(constant)
            return
        for number in distinct(numbers).tolist():
            self.store(number)
        draft.result(node, self.stored, numbers)

    def second(self, draft: RegionDraft, node: int, first: Slot, second: Slot) -> None:
        """Let a second derivative go where it belongs."""
        if first.role == "active" and second.role == "active":
            self.seconds.append(_Second(draft, node, first, second))
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


def _exact(value: float) -> int | float:
    """Return a whole number as an int, so that it is folded exactly."""
    return int(value) if value.is_integer() else value
