"""The layout of a matrix that loops write: packed in loop order, by rows or columns, or dense.

Loops that store side by side are fastest. Other orders are written at once. Where that costs too much, only a triangle
of a symmetric matrix is packed in loop order first, and copied to its places. Independent repetitions may be reordered
so that the places they write rise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codegen.ir.body_parts import copy
from codegen.ir.program import Output
from codegen.ir.region import Gather, Region, RolledProgram, Step
from codegen.ir.sparsity import Format, SparsityPattern
from codegen.ir.tables import Places, table
from codegen.loops.optimise.draft import Draft
from codegen.pricing.price_table import NANOSECONDS
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.layout_wide import in_chunks, narrow
from symad.derivatives.loops.matrix_writing import Writing, WrittenEntry, cheapest_writing
from symad.derivatives.loops.patterns import arranged, each, keys_of

ORIGIN = "order"


def cost(source: Places, target: Places) -> float:
    """Return the nanoseconds of a copy; 0 if it changes nothing."""
    if np.array_equal(source, target):
        return 0.0
    is_dense = len(target) == int(target.max() - target.min()) + 1
    return len(source) * (NANOSECONDS["table"] + (0.0 if is_dense else NANOSECONDS["table store"]))


def copies(source_buffer: int, source: Places, target_buffer: int, target: Places) -> list[Region]:
    """Return the region of a copy, in the order of the target; none of nothing."""
    if not len(source):
        return []
    order = np.argsort(target, kind="stable")
    return [copy(Gather(source_buffer, table(source[order])), target_buffer, table(target[order]), origin=ORIGIN)]


Made = tuple[Output, int]  # an output and its buffer


class Assembly(Draft):
    """A rolled program under construction, over the inputs and regions of another; `pieces` become its steps."""

    steps: list[Step]

    def __init__(self, program: RolledProgram) -> None:
        super().__init__(program)
        self.pieces: list[Step | RegionDraft] = list(program.steps)

    def rolled(self, outputs: Sequence[Made]) -> RolledProgram:
        """Return the program, without parts that no output needs."""
        self.steps = []
        for step in self.pieces:
            if not isinstance(step, RegionDraft):
                self.steps.append(step)
            elif step.results:
                self.steps += in_chunks([part.region() for part in narrow(step, self.workspace)])
        return self.finish(self.arrays[0], outputs, "scattered matrix")

    def write(self, writing: Writing, buffer: int) -> None:
        """Let the entries go to a buffer; those that are added up apart are copied there."""
        apart = self.workspace(len(writing.apart)) if len(writing.apart) else buffer
        writing.carry_out(buffer, apart)
        self.pieces += copies(apart, np.arange(len(writing.apart)), buffer, writing.apart)

    def dense(self, entries: Sequence[WrittenEntry], width: int, shape: tuple[int, ...]) -> Made:
        """Let entries be a dense matrix, an array of some shape."""
        output = Output(shape, ())
        buffer = self.workspace(output.size)
        layout = arranged([(entry.rows, entry.columns) for entry in entries], (width, width))
        self.write(cheapest_writing(entries, _keys(entries, width), layout), buffer)
        return output, buffer

    def packed(self, entries: Sequence[WrittenEntry], shape: tuple[int, int], format: Format) -> Made:
        """Let entries be the packed data of a matrix."""
        layout = arranged([(entry.rows, entry.columns) for entry in entries], shape)
        order = _order(layout.rows, layout.columns, format)
        output = self.packed_output(layout.rows[order], layout.columns[order], shape, format)
        rank = _inverse(order)
        direct = [each(lambda position, _: rank[position], positions, positions) for positions in layout.positions]
        self.write(cheapest_writing(entries, direct, layout), output[1])
        return output

    def packed_output(self, rows: Places, columns: Places, shape: tuple[int, int], format: Format) -> Made:
        """Return an output of packed data."""
        pattern = SparsityPattern(rows, columns, shape, format)
        return Output((len(rows),), (), None, pattern), self.workspace(len(rows))

    def symmetric(
        self,
        lower: Sequence[WrittenEntry],
        whole: Sequence[WrittenEntry],
        shape: tuple[int, ...],
        format: Format | None,
    ) -> Made:
        """Write the entries of a lower triangle and their mirror images as a matrix, dense without a format.

        `whole` are the entries and their mirror images. If that is cheaper, loops write only the triangle, packed, and
        it is copied.
        """
        width = int(np.prod(shape[: len(shape) // 2], dtype=np.int64))
        if format == "regions":
            return self.packed(whole, (width, width), format)
        layout = arranged([(entry.rows, entry.columns) for entry in lower], (width, width))
        mirrored = np.nonzero(layout.rows != layout.columns)[0]
        source = np.concatenate([np.arange(len(layout.rows)), mirrored])
        rows = np.concatenate([layout.rows, layout.columns[mirrored]])
        columns = np.concatenate([layout.columns, layout.rows[mirrored]])
        order = _order(rows, columns, format or "csr")
        keys = rows * width + columns
        places = _inverse(order) if format else keys
        both = arranged([(entry.rows, entry.columns) for entry in whole], (width, width))
        at_once = cheapest_writing(whole, self.targets(whole, width, keys, places), both)
        in_loops = Writing(lower, layout.positions, layout.alone)
        output = Output(shape, ())
        packed_output = (
            self.packed_output(rows[order], columns[order], (width, width), format)
            if format
            else (output, self.workspace(output.size))
        )
        if at_once.cost <= in_loops.cost + cost(source, places):
            self.write(at_once, packed_output[1])
            return packed_output
        packed = self.workspace(len(layout.rows))
        self.write(in_loops, packed)
        self.pieces += copies(packed, source, packed_output[1], places)
        return packed_output

    def targets(self, entries: Sequence[WrittenEntry], width: int, keys: Places, places: Places) -> list[Places]:
        """Return where entries go when the matrix has `keys` at `places`."""
        order = np.argsort(keys, kind="stable")
        all_keys = _keys(entries, width)
        return [
            each(lambda key, _: places[order[np.searchsorted(keys, key, sorter=order)]], key, key) for key in all_keys
        ]


def _keys(entries: Sequence[WrittenEntry], width: int) -> list[Places]:
    return keys_of([(entry.rows, entry.columns) for entry in entries], width)


def _order(rows: Places, columns: Places, format: Format) -> Places:
    if format == "regions":
        return np.arange(len(rows))
    return np.lexsort((rows, columns) if format == "csc" else (columns, rows))


def _inverse(order: Places) -> Places:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank
