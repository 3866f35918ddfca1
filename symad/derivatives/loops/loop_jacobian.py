"""Jacobians of rolled programs: scatter the partial derivatives of each body by loops.

The row of an entry is the place of the result, its column the place that the slot reads. Through inner values z (see
`pieces`) comes S_z Z, with the partial derivatives S_z in them and Z = dz/dx.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.ir.region import RolledProgram
from codegen.ir.sparsity import Format
from codegen.ir.tables import Places, distinct
from codegen.loops.optimise.reaching_definitions import MANY_SLOTS
from symad.derivatives.loops.columns_of_regions import cheapest, jacobian_by_columns, worth_columns
from symad.derivatives.loops.full_rows import FullRows
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
from symad.derivatives.loops.outer import (
    MOST_PLACES,
    InnerJacobian,
    Support,
    alike,
    chooses,
    draft_of,
    flat_draft,
    partials,
    sum_of,
    times,
)


def jacobian(
    program: RolledProgram, wrt: int, sparse: bool, format: Format = "coo", *, columns: bool = False
) -> RolledProgram | None:
    """Return the Jacobian of a rolled program in one of its inputs; None where it has another form.

    With `columns` a dense one is taken column by column, or row by row, at once.

    A sparse one is packed in a format, over the flat outputs side by side, with the exact pattern. Dense ones are an
    array for each output, of its shape and that of the input.

    >>> import sympy as sp
    >>> from codegen.ir.program import Input, Output
    >>> from codegen.ir.region import Buffer, Gather, Region, Result, RolledProgram
    >>> from codegen.ir.tables import Affine
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x, y = sp.symbols("x y")
    >>> body = program_from_sympy([x, y], [x**2 * y])
    >>> gathers = (Gather(0, Affine(0, 1, 3)), Gather(0, Affine(1, 1, 3)))
    >>> region = Region(body, 3, gathers, (Result(0, 1, Affine(0, 1, 3), "store"),))
    >>> buffers = (Buffer("input", 4), Buffer("output", 3))
    >>> rolled = RolledProgram((Input("x", (4,)),), (Output((3,), ()),), buffers, (region,))
    >>> found = jacobian(rolled, 0, True, "csr")
    >>> found.outputs[0].pattern.rows.tolist(), found.outputs[0].pattern.columns.tolist()
    ([0, 0, 1, 1, 2, 2], [0, 1, 1, 2, 2, 3])
    """
    program_of_entries = None if columns and not sparse else _scattered(program, wrt, sparse, format)
    if program_of_entries is not None or sparse or not worth_columns(program):
        return program_of_entries
    scattered = _scattered(program, wrt, False, format, MOST_ROWS // program.inputs[wrt].size)
    return cheapest([way for way in (jacobian_by_columns(program, wrt), scattered) if way is not None])


def _scattered(
    program: RolledProgram, wrt: int, sparse: bool, format: Format, most_inner: int = MOST_INNER
) -> RolledProgram | None:
    """Return the Jacobian of a program of sums and maps; None for any other."""
    split = pieces_of(program, wrt, packed=sparse, most_inner=most_inner, most_slots=MANY_SLOTS.slots)
    if split is None:
        return None
    width, inner_shape = program.inputs[wrt].size, program.inputs[wrt].shape
    writer = _EntryWriter(*split, width, packed=sparse)
    entries = writer.entries()
    if entries is None:
        return None
    assembly = writer.assembly
    if not sparse:
        shapes = [output.shape + inner_shape for output in program.outputs]
        parts = zip(entries, shapes, strict=True)
        return assembly.rolled([assembly.dense(part, width, shape) for part, shape in parts])
    begins = np.cumsum([0, *(output.size for output in program.outputs)])
    joined = [
        WrittenEntry(entry.draft, entry.node, entry.rows + begin, entry.columns)
        for begin, part in zip(begins.tolist(), entries, strict=False)
        for entry in part
    ]
    return assembly.rolled([assembly.packed(joined, (int(begins[-1]), width), format)])


class _EntryWriter:
    """Visits pieces, each for the entries of its terms that are outputs."""

    def __init__(
        self, program: RolledProgram, pieces: Sequence[Piece], inner: Inner, width: int, *, packed: bool
    ) -> None:
        self.program, self.pieces, self.inner, self.width = program, pieces, inner, width
        self.assembly, self.choosing = Assembly(program), chooses(pieces)
        self.written: list[list[WrittenEntry]] = [[] for _ in program.outputs]
        self.through = [Support(len(inner), {}) for _ in program.outputs]  # S_z of each output
        self.many = are_many(inner, packed=packed)
        self.through_buffers = [
            self.assembly.workspace(0 if self.many else output.size * len(inner)) for output in program.outputs
        ]
        self.weights: list[tuple[int, int, Places, Places]] = []  # output, buffer, places and values, if there are many

    def entries(self) -> list[list[WrittenEntry]] | None:
        """Return the entries of each output; None where the inner values fill too much."""
        for piece in self.pieces:
            terms = [term for term in piece.terms if term.buffer >= self.program.first_output]
            if terms:
                self.visit(piece, terms)
        if self.many:
            return self.through_rows()
        jacobian = InnerJacobian(self.assembly, self.pieces, self.inner, self.width, guarded=self.choosing)
        jacobian.write({int(n) for support in self.through for places in support.columns.values() for n in places})
        for number in range(len(self.written)):
            if not self.through_inner(number, jacobian):
                return None
        return self.written

    def visit(self, piece: Piece, terms: Sequence[Term]) -> None:
        """Differentiate a piece."""
        draft, slots = draft_of(piece), parameters_of(piece)
        entries = dict(sorted(partials(piece, [term.node for term in terms]).items()))
        parts = list(
            apart(
                piece, draft, self.assembly.buffers, entries, lambda key: [terms[key[0]].places, slots[key[1]].places]
            )
        )
        for (term, slot), node, part, chosen in parts:
            self.note(part, node, terms[term].part(chosen), slots[slot].part(chosen))
        self.assembly.pieces += dict.fromkeys([draft, *(part for _, _, part, _ in parts)])

    def note(self, draft: RegionDraft, node: int, term: Term, slot: Slot) -> None:
        """Let a partial derivative go where it belongs."""
        number = term.buffer - self.program.first_output
        if slot.role == "active":
            self.written[number].append(WrittenEntry(draft, node, term.places, slot.places))
            return
        values = self.inner.of(slot.buffer, slot.places)
        if self.many:
            weights = self.assembly.workspace(draft.count)
            draft.result(node, weights, np.arange(draft.count))
            self.weights.append((number, weights, term.places, values))
            return
        draft.result(node, self.through_buffers[number], term.places * len(self.inner) + values)
        self.through[number].add(term.places, values)

    def through_rows(self) -> list[list[WrittenEntry]] | None:
        """Return the entries, with a product S_z Z for each slot; None for values that are not in full rows."""
        needed, rows = np.zeros(len(self.inner), dtype=bool), FullRows(self.assembly, self.inner, self.width)
        for *_, values in self.weights:
            needed[values] = True
        columns = rows.columns(self.pieces, needed) if needed.any() else np.empty(0, dtype=np.int64)
        if columns is None:
            return None
        for number, buffer, places, values in self.weights if len(columns) else ():
            draft = flat_draft(len(values) * len(columns))
            weight = draft.slot(buffer, np.repeat(np.arange(len(values)), len(columns)))
            slope = draft.slot(rows.buffer, np.add.outer(values, columns * rows.count).ravel())
            node = times(draft.build, weight, slope, guarded=self.choosing)
            across = np.repeat(places, len(columns)), np.tile(columns, len(values))
            self.written[number].append(WrittenEntry(draft, node, *across))
            self.assembly.pieces.append(draft)
        return self.written

    def through_inner(self, number: int, jacobian: InnerJacobian) -> bool:
        """Note the entries of S_z Z in an output; False for too many."""
        support = self.through[number]
        parts = [(np.array(rows), support.of(rows[0])) for rows in alike(support.columns)]
        columns = [distinct(np.concatenate([jacobian.support.of(v) for v in values.tolist()])) for _, values in parts]
        if sum(len(rows) * len(places) for (rows, _), places in zip(parts, columns, strict=True)) > MOST_PLACES:
            return False
        for (rows, values), places in zip(parts, columns, strict=True):
            if len(places):
                self.product(number, rows, values, places, jacobian.buffer)
        return True

    def product(self, number: int, rows: Places, values: Places, columns: Places, jacobian: int) -> None:
        """Note the entries of some rows of S_z Z."""
        places, across = np.repeat(rows, len(columns)), np.tile(columns, len(rows))
        draft, terms = flat_draft(len(places)), []
        for value in values.tolist():
            weight = draft.slot(self.through_buffers[number], places * len(self.inner) + value)
            row = draft.slot(jacobian, value * self.width + across)
            terms.append(times(draft.build, weight, row, guarded=self.choosing))
        self.written[number].append(WrittenEntry(draft, sum_of(draft.build, terms), places, across))
        self.assembly.pieces.append(draft)
