"""Layout: a matrix that loops write, packed in the order of the loops, by rows or columns, or dense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.program import Input, Output, Program
from codegen.regions.region import Buffer, Gather, Nest, Region, Result, RolledProgram, Step
from codegen.regions.runs import runs
from codegen.regions.table import Places, Table, table
from codegen.sparsity import Format, SparsityPattern
from symad.regions.patterns import Arranged, arranged
from symad.regions.pieces import Draft

COPY = Program([sp.Symbol], [()], {0: sp.Symbol("s0")}, (Input("s0", ()),), (Output((), (0,)),), "copy")


@dataclass(frozen=True, eq=False)
class Entry:
    """A node of a region in the making, and its place in the matrix in every repetition."""

    draft: Draft
    node: int
    rows: Places
    columns: Places


class Assembly:
    """A rolled program in the making, over the inputs and regions of another; its outputs have numbers ~0, ~1, ..."""

    def __init__(self, program: RolledProgram) -> None:
        self.program = program
        self.buffers = [
            Buffer("workspace", buffer.size) if buffer.kind == "output" else buffer for buffer in program.buffers
        ]
        self.steps: list[Step | Draft] = list(program.steps)

    def workspace(self, size: int) -> int:
        """Return the number of a new workspace."""
        self.buffers.append(Buffer("workspace", size))
        return len(self.buffers) - 1

    def constants(self, values: NDArray[np.float64]) -> int:
        """Return the number of a new table of constants."""
        self.buffers.append(Buffer("constant", len(values), values))
        return len(self.buffers) - 1

    def rolled(self, outputs: Sequence[Output]) -> RolledProgram:
        """Return the program: what the outputs do not need is left out."""
        steps = [step.region() if isinstance(step, Draft) else step for step in self.steps if _does_something(step)]
        kept, used = _needed(steps, {~number for number in range(len(outputs))})
        inputs = len(self.program.inputs)
        middle = [number for number in range(inputs, len(self.buffers)) if number in used]
        number_of = {number: number for number in range(inputs)}
        number_of |= {number: inputs + k for k, number in enumerate(middle)}
        number_of |= {~k: inputs + len(middle) + k for k in range(len(outputs))}
        buffers = [*self.buffers[:inputs], *(self.buffers[number] for number in middle)]
        buffers += [Buffer("output", output.size) for output in outputs]
        renumbered = tuple(_renumbered(step, number_of) for step in kept)
        return RolledProgram(self.program.inputs, tuple(outputs), tuple(buffers), renumbered, self.program.name)

    def dense(self, entries: Sequence[Entry], width: int, shape: tuple[int, ...], number: int = 0) -> Output:
        """Let entries be a dense matrix, an array of some shape; return that output."""
        found = arranged([(entry.rows, entry.columns) for entry in entries], (1, width))
        _write(entries, ~number, [entry.rows * width + entry.columns for entry in entries], found.alone)
        return Output(shape, ())

    def packed(self, entries: Sequence[Entry], shape: tuple[int, int], format: Format) -> Output:
        """Let entries be the packed data of a matrix; return that output."""
        found = arranged([(entry.rows, entry.columns) for entry in entries], shape)
        if format == "regions" or not len(found.rows):
            _write(entries, ~0, found.positions, found.alone)
            return Output((len(found.rows),), (), None, _pattern(found, slice(None), format))
        order = np.lexsort((found.rows, found.columns) if format == "csc" else (found.columns, found.rows))
        self.sorted(entries, found, order)
        return Output((len(order),), (), None, _pattern(found, order, format))

    def sorted(self, entries: Sequence[Entry], found: Arranged, order: Places) -> None:
        """Write entries in an order: at once where the loops stay as regular as they are, else by a copy."""
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        direct = [rank[positions] for positions in found.positions]
        if _runs(entries, direct) <= _runs(entries, found.positions):
            _write(entries, ~0, direct, found.alone)
            return
        packed = self.workspace(len(order))
        _write(entries, packed, found.positions, found.alone)
        copied, everywhere = Gather(packed, table(order)), table(np.arange(len(order)))
        self.steps.append(Region(COPY, len(order), (copied,), (Result(0, ~0, everywhere, "store"),), origin="order"))


def _write(entries: Sequence[Entry], buffer: int, positions: Sequence[Places], alone: Sequence[bool]) -> None:
    for entry, places, single in zip(entries, positions, alone, strict=True):
        entry.draft.result(entry.node, buffer, places, "store" if single else "add")


def _pattern(found: Arranged, order: Places | slice, format: Format) -> SparsityPattern:
    return SparsityPattern(found.rows[order], found.columns[order], found.shape, format)


def _runs(entries: Sequence[Entry], positions: Sequence[Places]) -> float:
    """Return in how many stretches the loops run in which their tables are affine: at worst, repetitions."""
    tables: dict[int, list[Table]] = {}
    drafts = {id(entry.draft): entry.draft for entry in entries}
    for number, draft in drafts.items():
        columns = [places for _, _, places in draft.slots]
        tables[number] = [table(places) for places in columns]
        tables[number] += [result.table for _, result in draft.results]
    for entry, places in zip(entries, positions, strict=True):
        tables[id(entry.draft)].append(table(places))
    found = [(draft.count, runs(tables[number], draft.count)) for number, draft in drafts.items()]
    return float(sum(count if regular is None else len(regular) for count, regular in found))


def _does_something(step: Step | Draft) -> bool:
    return not isinstance(step, Draft) or bool(step.results)


def _needed(steps: Sequence[Step], buffers: set[int]) -> tuple[list[Step], set[int]]:
    """Return the steps that some buffers need, and all buffers that these steps use."""
    kept: list[Step] = []
    for step in reversed(steps):
        part = _part(step, buffers) if isinstance(step, Region) else step
        if part is not None and (isinstance(part, Region) or buffers & _buffers_of(part, write=True)):
            kept.append(part)
            buffers = buffers | _buffers_of(part, write=False) | _buffers_of(part, write=True)
    return kept[::-1], buffers


def _part(region: Region, buffers: set[int]) -> Region | None:
    """Return a region with the results that go to some buffers."""
    results = tuple(use for use in region.results if use.buffer in buffers)
    if not results or len(results) == len(region.results) or not region.parallel:
        return region if results else None
    return replace(region, results=results)


def _buffers_of(step: Step, *, write: bool) -> set[int]:
    if isinstance(step, Nest):
        return {buffer for inner in step.steps for buffer in _buffers_of(inner, write=write)}
    if write:
        return {use.buffer for use in step.results}
    return {use.buffer for use in step.gathers} | {use.buffer for c in step.carries for use in c.initial}


def _renumbered(step: Step, number_of: dict[int, int]) -> Step:
    if isinstance(step, Nest):
        return Nest(step.count, tuple(_renumbered(inner, number_of) for inner in step.steps))
    gathers = tuple(replace(use, buffer=number_of[use.buffer]) for use in step.gathers)
    results = tuple(replace(use, buffer=number_of[use.buffer]) for use in step.results)
    carries = tuple(
        replace(carry, initial=tuple(replace(use, buffer=number_of[use.buffer]) for use in carry.initial))
        for carry in step.carries
    )
    return replace(step, gathers=gathers, results=results, carries=carries)
