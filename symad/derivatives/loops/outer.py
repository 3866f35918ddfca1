"""Outer functions: the contribution of inner values z to a Hessian.

With the pieces as terms of a Lagrangian L(x, z), and Z = dz/dx, the Hessian is L_xx + L_xz Z + Z' L_zx + Z' L_zz Z.
The first part is the scatter of body Hessians. The rest has the rank of the inner values:
R = L_zx + L_zz Z / 2, and then Z' R + R' Z, at the places where that may be non-zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sp

from codegen.ir.tables import Places, distinct
from codegen.records import dataclass
from symad.derivatives.linear import linearize
from symad.derivatives.loops.hessian_pieces import Inner, Piece, RegionDraft, apart, parameters_of
from symad.derivatives.loops.matrix_layout import Assembly, WrittenEntry
from symad.derivatives.modes import jacobians
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.rules.finite import is_finite
from symad.rules.overrides import GATES
from symad.tracing.values.sparse_matrix import Triangle

MOST_PLACES = 50_000_000  # of a matrix that inner values fill


@dataclass(eq=False)
class Support:
    """Where the rows of a matrix of inner values times inputs may be non-zero."""

    width: int
    columns: dict[int, Places]

    def add(self, numbers: Places, places: Places) -> None:
        """Note entries."""
        for number in distinct(numbers).tolist():
            columns = distinct(places[numbers == number])
            self.columns[number] = np.union1d(self.columns.get(number, columns[:0]), columns)

    def of(self, number: int) -> Places:
        """Return the columns of a row that may be non-zero."""
        return self.columns.get(number, np.empty(0, dtype=np.int64))


def draft_of(piece: Piece) -> RegionDraft:
    """Return a region under construction with the slots of a piece."""
    slots = [(slot.node, slot.buffer, slot.places) for slot in piece.slots]
    return RegionDraft(piece.build, piece.count, slots, [], piece.origin)


def partials(piece: Piece, nodes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return the derivatives of nodes in the parameters, `{(node number, slot number): node}`, by the cheapest mode."""
    build, slots = piece.build, [slot.node for slot in parameters_of(piece)]
    if not slots:
        return {}
    ways = jacobians(build, linearize(build, nodes, slots))
    return min(ways.values(), key=lambda entries: build.graph.count_operations(entries.values()))


def flat_draft(count: int) -> RegionDraft:
    """Return a region under construction on a graph of its own."""
    return RegionDraft(Builder(Graph(lines=False)), count, [])


class InnerJacobian:
    """Z = dz/dx, a row of `width` numbers for each inner value, in a workspace.

    Where branches are chosen and some derivative may be infinite, a second workspace counts the terms of each number
    whose branch is taken: one without any is a structural zero.
    """

    assembly: Assembly
    pieces: Sequence[Piece]
    inner: Inner
    width: int

    def __init__(self, assembly: Assembly, pieces: Sequence[Piece], inner: Inner, width: int, *, guarded: bool) -> None:
        self.guarded = guarded
        self.assembly, self.pieces, self.inner, self.width = assembly, pieces, inner, width
        self.buffer: int = assembly.workspace(len(inner) * width)
        tame = all(is_finite(piece.build, term.node) for piece in pieces for term in piece.terms)
        self.counts: int | None = assembly.workspace(len(inner) * width) if guarded and not tame else None
        self.support: Support = Support(width, {})

    def read(self, draft: RegionDraft, places: Places) -> tuple[int, int | None]:
        """Return the slot of numbers, and that of the counts of their terms."""
        return draft.slot(self.buffer, places), None if self.counts is None else draft.slot(self.counts, places)

    def write(self, values: set[int]) -> None:
        """Write the rows of the wanted values and of those behind them."""
        chosen = self.behind(values)
        for piece in self.pieces:
            terms = [
                term for term in piece.terms if chosen & set(distinct(self.inner.of(term.buffer, term.places)).tolist())
            ]
            if terms:
                numbers = [self.inner.of(term.buffer, term.places) for term in terms]
                self.write_piece(piece, [term.node for term in terms], numbers)

    def behind(self, numbers: set[int]) -> set[int]:
        """Return values with all that they depend on."""
        behind = set(numbers)
        for piece in reversed(self.pieces):
            targets = {n for term in piece.terms for n in distinct(self.inner.of(term.buffer, term.places)).tolist()}
            if targets & behind:
                for slot in piece.inner:
                    behind |= set(distinct(self.inner.of(slot.buffer, slot.places)).tolist())
        return behind

    def write_piece(self, piece: Piece, nodes: Sequence[int], numbers: Sequence[Places]) -> None:
        """Add the contributions of a piece's terms."""
        draft, slots = draft_of(piece), parameters_of(piece)
        pairs = list[tuple[RegionDraft, int, Places]]()  # coefficients of other rows: row times all + column
        parts = [draft]
        met, buffers = partials(piece, nodes), self.assembly.buffers
        entries = apart(piece, draft, buffers, met, lambda key: [numbers[key[0]], slots[key[1]].places])
        for (term, number), node, part, chosen in entries:
            slot = slots[number].part(chosen)
            rows = numbers[term] if chosen is None else numbers[term][chosen]
            parts.append(part)
            if slot.role == "active":
                self.support.add(rows, slot.places)
                part.result(node, self.buffer, rows * self.width + slot.places)
                if self.counts is not None:
                    part.result(_is_taken(part.build, node), self.counts, rows * self.width + slot.places)
            else:
                pairs.append((part, node, rows * len(self.inner) + self.inner.of(slot.buffer, slot.places)))
        combined = distinct(np.concatenate([*(keys for *_, keys in pairs), np.empty(0, dtype=np.int64)]))
        coefficients = self.assembly.workspace(len(combined))
        taken = None if self.counts is None else self.assembly.workspace(len(combined))
        for part, node, keys in pairs:
            part.result(node, coefficients, np.searchsorted(combined, keys))
            if taken is not None:
                part.result(_is_taken(part.build, node), taken, np.searchsorted(combined, keys))
        self.assembly.pieces += dict.fromkeys(part for part in parts if part.results)
        self.combine(combined, coefficients, taken)

    def combine(self, met: Places, coefficients: int, taken: int | None) -> None:
        """Add multiples of other rows, whose coefficients are added up first; `taken` counts the terms of these."""
        into, of = met // len(self.inner), met % len(self.inner)
        rows = {number: np.nonzero(into == number)[0] for number in distinct(into).tolist()}
        for numbers in alike({number: of[places] for number, places in rows.items()}):
            places = np.array([rows[n] for n in numbers])
            self.combine_rows(numbers, of[rows[numbers[0]]], coefficients, taken, places)

    def combine_rows(
        self, numbers: Sequence[int], others: Places, coefficients: int, taken: int | None, places: Places
    ) -> None:
        """Add multiples of some rows to several; `places[i, j]` is where the coefficient of row j for row i is."""
        columns = distinct(np.concatenate([self.support.of(other) for other in others.tolist()]))
        if not len(columns):
            return
        across, targets = np.tile(columns, len(numbers)), np.repeat(numbers, len(columns))
        draft = flat_draft(len(across))
        terms, counts = [], []
        for position, other in enumerate(others.tolist()):
            of_row = np.repeat(places[:, position], len(columns))
            factor = draft.slot(coefficients, of_row)
            row, count = self.read(draft, other * self.width + across)
            if count is not None and taken is not None:
                count = draft.build.mul(draft.slot(taken, of_row), count)
                counts.append(count)
            terms.append(times(draft.build, factor, row, count, guarded=self.guarded))
        draft.result(sum_of(draft.build, terms), self.buffer, targets * self.width + across)
        if self.counts is not None:
            draft.result(sum_of(draft.build, counts), self.counts, targets * self.width + across)
        self.support.add(targets, across)
        self.assembly.pieces.append(draft)


class LowRank:
    """The part of a Hessian that inner values make: Z' R + R' Z with R = L_zx + L_zz Z / 2."""

    assembly: Assembly
    inner: Inner
    width: int

    def __init__(self, assembly: Assembly, inner: Inner, width: int, *, guarded: bool) -> None:
        self.guarded = guarded
        self.assembly, self.inner, self.width = assembly, inner, width
        self.crossed: int = assembly.workspace(len(inner) * width)  # L_zx
        self.curved: int = assembly.workspace(len(inner) ** 2)  # L_zz
        self.crossing: Support = Support(width, {})
        self.curving: Support = Support(len(inner), {})

    def cross(self, draft: RegionDraft, node: int, numbers: Places, places: Places) -> None:
        """Add a node to L_zx."""
        draft.result(node, self.crossed, numbers * self.width + places)
        self.crossing.add(numbers, places)

    def curve(self, draft: RegionDraft, node: int, numbers: Places, others: Places) -> None:
        """Add a node to L_zz."""
        draft.result(node, self.curved, numbers * len(self.inner) + others)
        self.curving.add(numbers, others)

    @property
    def numbers(self) -> set[int]:
        """The inner values whose derivatives are needed."""
        return set(self.crossing.columns) | set(self.curving.columns)

    def entry(self, jacobian: InnerJacobian, triangle: Triangle | None) -> list[WrittenEntry] | None:
        """Return the entry of a triangle or of the whole matrix, a list of one or none; None where it is too much."""
        places = self.places(jacobian.support, triangle)
        if places is None or not len(places):
            return None if places is None else []
        rows, columns = places // self.width, places % self.width
        half = self.right(jacobian)
        draft, terms = flat_draft(len(places)), []
        for number, buffer in half.items():
            begin = number * self.width
            pairs = [(rows, columns), (columns, rows)] if self.crossing.columns else [(rows, columns)]
            for left, right in pairs:
                z, count = jacobian.read(draft, begin + left)
                weight = draft.slot(buffer, begin + right)
                terms.append(times(draft.build, weight, z, count, guarded=self.guarded))
        self.assembly.pieces.append(draft)
        return [WrittenEntry(draft, sum_of(draft.build, terms), rows, columns)]

    def places(self, support: Support, triangle: Triangle | None) -> Places | None:
        """Return where a triangle, or the whole matrix, may be non-zero, in the order of rows."""
        places = [np.empty(0, dtype=np.int64)]
        pairs = [(support.of(number), columns) for number, columns in self.crossing.columns.items()]
        for number, others in self.curving.columns.items():
            pairs += [(support.of(number), support.of(other)) for other in others.tolist()]
        if sum(len(first) * len(second) for first, second in pairs) > MOST_PLACES:
            return None
        for first, second in pairs:
            rows, columns = (grid.ravel() for grid in np.meshgrid(first, second, indexing="ij"))
            low, high = np.minimum(rows, columns), np.maximum(rows, columns)
            places += [high * self.width + low] if triangle != "upper" else []
            places += [low * self.width + high] if triangle != "lower" else []
        return distinct(np.concatenate(places))

    def right(self, jacobian: InnerJacobian) -> dict[int, int]:
        """Write the rows of R, of L_zz Z where there is no L_zx; return the buffer of each."""
        if not self.curving.columns:
            return dict.fromkeys(self.crossing.columns, self.crossed)
        buffer = self.assembly.workspace(len(self.inner) * self.width)
        factors = {n: np.concatenate([self.curving.of(n), [-1], self.crossing.of(n)]) for n in sorted(self.numbers)}
        for numbers in alike(factors):
            self.right_rows(buffer, numbers, jacobian)
        return dict.fromkeys(sorted(self.numbers), buffer)

    def right_rows(self, buffer: int, numbers: Sequence[int], jacobian: InnerJacobian) -> None:
        """Write rows of R that are made of the same rows of Z, and of L_zx at the same places."""
        others, crossing = self.curving.of(numbers[0]).tolist(), self.crossing.of(numbers[0])
        columns = distinct(np.concatenate([crossing, *(jacobian.support.of(other) for other in others)]))
        if not len(columns):
            return
        across, targets = np.tile(columns, len(numbers)), np.repeat(numbers, len(columns))
        draft = flat_draft(len(across))
        build, terms = draft.build, []
        for other in others:
            weight = draft.slot(self.curved, targets * len(self.inner) + other)
            weight = build.mul(build.half, weight) if self.crossing.columns else weight
            row, count = jacobian.read(draft, other * self.width + across)
            terms.append(times(build, weight, row, count, guarded=self.guarded))
        if len(crossing):
            terms.append(draft.slot(self.crossed, targets * self.width + across))
        draft.result(sum_of(build, terms), buffer, targets * self.width + across, "store")
        self.assembly.pieces.append(draft)


def alike(rows: dict[int, Places]) -> list[list[int]]:
    """Return the keys of equal values together, by the first of each."""
    groups: dict[bytes, list[int]] = {}
    for number, values in rows.items():
        groups.setdefault(values.tobytes(), []).append(number)
    return list(groups.values())


def chooses(pieces: Sequence[Piece]) -> bool:
    """Whether something is chosen: then a weight may be 0 because a branch is not taken."""
    return any(not GATES.keys().isdisjoint(piece.build.graph.heads) for piece in pieces)


def _is_taken(build: Builder, node: int) -> int:
    """Return 1 for a derivative that counts, 0 where it is that of a branch not taken."""
    if build.graph.heads[node] is not sp.Piecewise:
        return build.one
    _, condition, otherwise, _ = build.graph.operands[node]
    return build.select(condition, build.one, build.zero) if otherwise == build.zero else build.one


def times(build: Builder, weight: int, value: int, count: int | None = None, *, guarded: bool) -> int:
    """Return a product, 0 for a weight of 0 if it is guarded: 0 * inf must not come from a branch not taken.

    It is 0 too where the `count` of the value's terms is 0.
    """
    product = build.mul(weight, value)
    for factor in (weight, count) if guarded else ():
        if factor is not None:
            product = build.select(build.graph.node(sp.Ne, factor, build.zero), product, build.zero)
    return product


def sum_of(build: Builder, terms: Sequence[int]) -> int:
    """Return the sum of one or more terms."""
    return terms[0] if len(terms) == 1 else build.add(terms[0], terms[1], *terms[2:])
