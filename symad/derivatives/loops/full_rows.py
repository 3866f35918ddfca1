"""Many inner values, each a sum over the whole input: their part of a dense matrix as a product of matrices.

These are the sums along an axis of a large array: distances of many points to one, the rows of a softmax. `outer` goes
through its inner values one by one, with a pattern for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.region import Gather, Result
from codegen.ir.tables import Affine, Places
from codegen.matrices.matrix_loops import matrix_region
from codegen.matrices.product_loops import lower_products
from symad.derivatives.loops.hessian_pieces import Inner, Piece, RegionDraft, Term, parameters_of
from symad.derivatives.loops.matrix_layout import Assembly, WrittenEntry, in_chunks
from symad.derivatives.loops.outer import draft_of, flat_draft, partials


class FullRows:
    """Z' in a workspace, a row for each number of the input, where there are many inner values.

    They have to be sums of terms in the input alone, and all those that are needed in the same numbers of it: a product
    with a 0 that stands for no term would spread NaN.
    """

    def __init__(self, assembly: Assembly, inner: Inner, width: int) -> None:
        self.assembly, self.inner, self.count = assembly, inner, len(inner)
        self.buffer = assembly.workspace(len(inner) * width)
        self.support = np.zeros((len(inner), width), dtype=bool)

    def columns(self, pieces: Sequence[Piece], needed: NDArray[np.bool_]) -> Places | None:
        """Write the slopes of some values; return the numbers of the input that they depend on, None for others."""
        wanted = np.append(needed, False).take  # -1 is the number of an output
        for piece in pieces:
            terms = [term for term in piece.terms if wanted(self.inner.of(term.buffer, term.places)).any()]
            if terms and piece.inner:
                return None
            if terms:
                self.write(piece, terms)
        rows = self.support[needed]
        return np.flatnonzero(rows[0]) if (rows == rows[0]).all() else None

    def write(self, piece: Piece, terms: Sequence[Term]) -> None:
        """Add the derivatives of a piece's terms."""
        draft, slots = draft_of(piece), parameters_of(piece)
        for (term, number), node in partials(piece, [term.node for term in terms]).items():
            numbers, places = self.inner.of(terms[term].buffer, terms[term].places), slots[number].places
            draft.result(node, self.buffer, places * self.count + numbers)
            self.support[numbers, places] = True
        self.assembly.pieces.append(draft)


class InnerProducts:
    """The part of a dense Hessian that many inner values make, as a product of matrices.

    Besides Z' there is R', with R = L_zx + L_zz Z / 2, or L_zz Z where there is no L_zx.
    """

    def __init__(self, assembly: Assembly, inner: Inner, width: int, *, guarded: bool) -> None:
        self.assembly, self.count, self.guarded = assembly, len(inner), guarded
        self.rows, self.crossed = FullRows(assembly, inner, width), assembly.workspace(len(inner) * width)
        self.crossing = np.zeros((len(inner), width), dtype=bool)
        self.curves: dict[bytes, tuple[int, Places, Places]] = {}  # a buffer of weights, and the values they combine

    def cross(self, draft: RegionDraft, node: int, numbers: Places, places: Places) -> None:
        """Add a node to L_zx."""
        draft.result(node, self.crossed, places * self.count + numbers)
        self.crossing[numbers, places] = True

    def curve(self, draft: RegionDraft, node: int, numbers: Places, others: Places) -> None:
        """Add a node to L_zz."""
        key = numbers.tobytes() + others.tobytes()
        if key not in self.curves:
            self.curves[key] = self.assembly.workspace(len(numbers)), numbers, others
        draft.result(node, self.curves[key][0], np.arange(len(numbers)))

    def entry(self, pieces: Sequence[Piece]) -> list[WrittenEntry] | None:
        """Return the entry of the whole matrix, a list of one or none; None for values that are not in full rows."""
        needed: NDArray[np.bool_] = np.asarray(self.crossing.any(axis=1))
        diagonal = len(self.curves) == 1 and not needed.any()
        for _, numbers, others in self.curves.values():
            needed[numbers] = needed[others] = True
            diagonal = diagonal and np.array_equal(numbers, others)
        if not needed.any():
            return []
        columns = self.rows.columns(pieces, needed) if diagonal or not self.guarded else None
        crossed = np.flatnonzero(self.crossing.any(axis=0))
        return None if columns is None or not np.isin(crossed, columns).all() else [self.product(columns)]

    def product(self, columns: Places) -> WrittenEntry:
        """Multiply Z' by R, for some numbers of the input, and add the product turned where it is not symmetric."""
        crosses, (width, count), assembly = bool(self.crossing.any()), (len(columns), self.count), self.assembly
        left, right, target = (assembly.workspace(size) for size in (width * count, width * count, width * width))
        for buffer, numbers, others in self.curves.values():
            draft = flat_draft(width * len(numbers))
            build, goes = draft.build, np.add.outer(np.arange(width) * count, numbers).ravel()
            weight = draft.slot(buffer, np.tile(np.arange(len(numbers)), width))
            slope = draft.slot(self.rows.buffer, np.add.outer(columns * count, others).ravel())
            if self.guarded:  # the slopes of a value without weight may be those of a branch not taken
                slope = build.select(build.graph.node(sp.Ne, weight, build.zero), slope, build.zero)
                draft.result(slope, left, goes)
            draft.result(build.mul(build.mul(build.half, weight) if crosses else weight, slope), right, goes)
            assembly.pieces.append(draft)
        copied = [(self.rows.buffer, left)] * (not self.guarded) + [(self.crossed, right)] * crosses
        for source, packed in copied:
            draft = flat_draft(width * count)
            places = np.add.outer(columns * count, np.arange(count)).ravel()
            draft.result(draft.slot(source, places), packed, np.arange(width * count))
            assembly.pieces.append(draft)
        first, second = (Gather(buffer, Affine(0, 1, width * count)) for buffer in (left, right))
        operation, whole = MatrixOperation("product", (1, width, count, width), (False, True)), width * width
        assembly.pieces += (
            [matrix_region(operation, [first, second], [Result(0, target, Affine(0, 1, whole), "store")])]
            if crosses
            else in_chunks(lower_products(first, second, width, count, target))
        )
        i, j = (axis.ravel() for axis in np.indices((width, width)))
        draft = flat_draft(whole)
        node = draft.slot(target, np.maximum(i, j) * width + np.minimum(i, j))
        if crosses:
            node = draft.build.add(node, draft.slot(target, np.minimum(i, j) * width + np.maximum(i, j)))
        assembly.pieces.append(draft)
        return WrittenEntry(draft, node, columns[i], columns[j])
