"""Layout: a matrix that loops write, packed in the order of the loops, by rows or columns, or dense.

Loops that store side by side are fastest. Other orders are written at once where that costs little, else the numbers
are packed in the order of the loops first, and copied to their places; of a symmetric matrix only a triangle is packed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from codegen.ir.program import Output
from codegen.ir.region import RolledProgram, Step
from codegen.ir.sparsity import Format, SparsityPattern
from codegen.ir.tables import Places
from codegen.loops.optimise.draft import Draft
from symad.derivatives.loops.hessian_pieces import RegionDraft
from symad.derivatives.loops.layout_copies import copies, cost
from symad.derivatives.loops.layout_costs import Entry, writing
from symad.derivatives.loops.layout_wide import in_chunks, narrow
from symad.derivatives.loops.patterns import arranged, each, keys_of, met_alone

Made = tuple[Output, int]  # an output and its buffer


class Assembly:
    """A rolled program in the making, over the inputs and regions of another."""

    def __init__(self, program: RolledProgram) -> None:
        self.program, self.draft = program, Draft(program)
        self.steps: list[Step | RegionDraft] = list(program.steps)

    def workspace(self, size: int) -> int:
        """Return the number of a new workspace."""
        return self.draft.workspace(size)

    def constants(self, values: NDArray[np.float64]) -> int:
        """Return the number of a new table of constants."""
        return self.draft.constants(values)

    def rolled(self, outputs: Sequence[Made]) -> RolledProgram:
        """Return the program: what the outputs do not need is left out."""
        self.draft.steps = []
        for step in self.steps:
            if not isinstance(step, RegionDraft):
                self.draft.steps.append(step)
            elif step.results:
                self.draft.steps += in_chunks([part.region() for part in narrow(step, self.workspace)])
        return self.draft.finish(self.draft.arrays[0], outputs, "scattered matrix")

    def dense(self, entries: Sequence[Entry], width: int, shape: tuple[int, ...]) -> Made:
        """Let entries be a dense matrix, an array of some shape."""
        output = Output(shape, ())
        buffer = self.workspace(output.size)
        keys = _keys(entries, width)
        _write(entries, buffer, keys, met_alone(keys))
        return output, buffer

    def packed(self, entries: Sequence[Entry], shape: tuple[int, int], format: Format) -> Made:
        """Let entries be the packed data of a matrix."""
        found = arranged([(entry.rows, entry.columns) for entry in entries], shape)
        order = _order(found.rows, found.columns, format)
        made = self.packed_output(found.rows[order], found.columns[order], shape, format)
        rank = _inverse(order)
        direct = [each(lambda position, _: rank[position], positions, positions) for positions in found.positions]
        here = np.arange(len(order))
        if writing(entries, direct, found.alone) <= writing(entries, found.positions, found.alone) + cost(here, rank):
            _write(entries, made[1], direct, found.alone)
        else:
            packed = self.workspace(len(order))
            _write(entries, packed, found.positions, found.alone)
            self.steps += copies(packed, here, made[1], rank)
        return made

    def packed_output(self, rows: Places, columns: Places, shape: tuple[int, int], format: Format) -> Made:
        """Return an output of packed data."""
        pattern = SparsityPattern(rows, columns, shape, format)
        return Output((len(rows),), (), None, pattern), self.workspace(len(rows))

    def symmetric(
        self, lower: Sequence[Entry], whole: Sequence[Entry], shape: tuple[int, ...], format: Format | None
    ) -> Made:
        """Let the entries of a lower triangle and their mirror images be a matrix, dense without a format.

        `whole` are the same entries with their mirror images among them. The loops write the triangle, packed, and it
        is copied, if that is cheaper than to write the whole.
        """
        width = int(np.prod(shape[: len(shape) // 2], dtype=np.int64))
        found = arranged([(entry.rows, entry.columns) for entry in lower], (width, width))
        mirrored = np.nonzero(found.rows != found.columns)[0]
        source = np.concatenate([np.arange(len(found.rows)), mirrored])
        rows = np.concatenate([found.rows, found.columns[mirrored]])
        columns = np.concatenate([found.columns, found.rows[mirrored]])
        order = _order(rows, columns, format or "csr")
        keys = rows * width + columns
        places = _inverse(order) if format else keys
        at_once = writing(whole, self.targets(whole, width, keys, places), met_alone(_keys(whole, width)))
        if format == "regions" or at_once <= writing(lower, found.positions, found.alone) + cost(source, places):
            return self.packed(whole, (width, width), format) if format else self.dense(whole, width, shape)
        packed = self.workspace(len(found.rows))
        _write(lower, packed, found.positions, found.alone)
        output = Output(shape, ())
        made = (
            self.packed_output(rows[order], columns[order], (width, width), format)
            if format
            else (output, self.workspace(output.size))
        )
        self.steps += copies(packed, source, made[1], places)
        return made

    def targets(self, entries: Sequence[Entry], width: int, keys: Places, places: Places) -> list[Places]:
        """Return where entries go when the matrix has `keys` at `places`."""
        order = np.argsort(keys, kind="stable")
        found = _keys(entries, width)
        return [each(lambda key, _: places[order[np.searchsorted(keys, key, sorter=order)]], key, key) for key in found]


def _keys(entries: Sequence[Entry], width: int) -> list[Places]:
    return keys_of([(entry.rows, entry.columns) for entry in entries], width)


def _order(rows: Places, columns: Places, format: Format) -> Places:
    if format == "regions":
        return np.arange(len(rows))
    return np.lexsort((rows, columns) if format == "csc" else (columns, rows))


def _inverse(order: Places) -> Places:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def _write(entries: Sequence[Entry], buffer: int, positions: Sequence[Places], alone: Sequence[bool]) -> None:
    for entry, places, single in zip(entries, positions, alone, strict=True):
        entry.draft.result(entry.node, buffer, places, "store" if single else "add")
