"""Map nodes to places in buffers while a rolled program is placed: also straight lines, and the regions of a nest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.evaluation.constant_folding import leaf_constant, to_float
from codegen.ir.body_parts import copy
from codegen.ir.copy_rows import BodyRows, copy_rows
from codegen.ir.lazy_atoms import floats_of
from codegen.ir.program import Program, Rows
from codegen.ir.readdress import all_readdressed, moved
from codegen.ir.region import Buffer, Gather, Step, regions_of
from codegen.ir.sparsity import SparsityPattern
from codegen.ir.tables import Affine, Table, table
from codegen.loops.loop import Loop, Nodes, Reads, is_nodes, joined
from codegen.records import dataclass


@dataclass(frozen=True, eq=False)
class Arrays:
    """Arrays of nodes: inputs with their names, outputs with the patterns of sparse ones."""

    inputs: Sequence[tuple[str, Nodes]]
    outputs: Sequence[tuple[Nodes, SparsityPattern | None]]


class Buffers:
    """Buffers under construction, with the places of nodes in them, and the steps that fill them."""

    rows: Rows
    arrays: Arrays
    buffer: NDArray[np.int64]  # where a node is
    spot: NDArray[np.int64]
    begins: NDArray[np.int64]

    def __init__(self, rows: Rows, arrays: Arrays, size: int) -> None:
        self.rows, self.arrays = rows, arrays
        self.buffers: list[Buffer] = []  # between inputs and outputs
        self.buffer, self.spot = np.full(size, -1), np.zeros(size, dtype=np.int64)
        for number, (_, nodes) in enumerate(arrays.inputs):
            self.buffer[nodes], self.spot[nodes] = number, np.arange(nodes.size).reshape(nodes.shape)
        self.steps: list[Step] = []
        self.copies: dict[bytes, int] = {}  # by nodes: the buffer with copies of them
        self.read: NDArray[np.bool_] = np.zeros(size, dtype=bool)  # by loops, or by straight lines of another stage
        shown = joined(nodes for nodes, _ in arrays.outputs)
        self.target: NDArray[np.int64] = np.full(size, -1)  # place among all outputs side by side; -1: none, or several
        self.target[shown] = np.arange(len(shown))
        self.target[shown[self.target[shown] != np.arange(len(shown))]] = -1
        self.shown: NDArray[np.bool_] = np.zeros(size, dtype=bool)
        self.shown[shown] = True
        self.begins = np.cumsum([0, *(nodes.size for nodes, _ in arrays.outputs)], dtype=np.int64)

    def new_buffer(self, size: int, values: NDArray[np.float64] | None = None) -> int:
        """Add a buffer between inputs and outputs; return its number."""
        self.buffers.append(Buffer("workspace" if values is None else "constant", size, values))
        return len(self.arrays.inputs) + len(self.buffers) - 1

    def keep(self, nodes: Nodes) -> tuple[int, Nodes]:
        """Give nodes places: in an output that has all of them, if nothing reads them; else in a new buffer."""
        targets = self.target[nodes]
        number = int(np.searchsorted(self.begins, targets[0], "right")) - 1 if targets[0] >= 0 else -1
        if number >= 0 and not self.read[nodes].any():
            inside = (self.begins[number] <= targets) & (targets < self.begins[number + 1])
            if inside.all():
                self.shown[nodes] = False
                return ~number, targets - self.begins[number]
        buffer = self.new_buffer(nodes.size)
        self.buffer[nodes], self.spot[nodes] = buffer, np.arange(nodes.size)
        return buffer, np.arange(nodes.size)

    def array_of(self, node: int) -> int:
        """Return the output array of a node; -1 for none, or several."""
        return int(np.searchsorted(self.begins, self.target[node], "right")) - 1 if self.target[node] >= 0 else -1

    def array(self, nodes: Nodes) -> tuple[int, int]:
        """Return the buffer that has these nodes side by side, and their first place; a copy if there is none."""
        buffer, first = int(self.buffer[nodes[0]]), int(self.spot[nodes[0]])
        same = buffer >= 0 and (self.buffer[nodes] == buffer).all()
        if same and (self.spot[nodes] == np.arange(first, first + nodes.size)).all():
            return buffer, first
        return self.gathered(nodes), 0

    def gathered(self, nodes: Nodes) -> int:
        """Return a buffer with copies of nodes from several places, shared by all readers; constants as numbers."""
        key = blake2b(np.ascontiguousarray(nodes).tobytes()).digest()
        if key not in self.copies and (self.buffer[nodes] < 0).all():
            self.copies[key] = self.new_buffer(nodes.size, self.values(nodes))
        elif key not in self.copies:
            self.copies[key] = self.new_buffer(nodes.size)
            self.copy(nodes, self.copies[key], np.arange(nodes.size))
        return self.copies[key]

    def column(self, reads: Reads) -> Gather:
        """Return the gather of a slot; nodes of several buffers, and constants among them, are copied first."""
        if not is_nodes(reads):
            return self.constants(np.asarray(reads, dtype=np.float64))
        buffers = self.buffer[reads]
        first = int(buffers[0])
        if first >= 0 and (buffers == first).all():
            return Gather(first, table(self.spot[reads]))
        if first < 0 and (buffers == first).all():
            return self.constants(self.values(reads))
        return Gather(self.gathered(reads), Affine(0, 1, len(reads)))

    def constants(self, values: NDArray[np.float64]) -> Gather:
        """Return a gather of numbers; of a single one where all have the same bits."""
        bits = values.view(np.int64)
        if (bits == bits[0]).all():
            return Gather(self.new_buffer(1, values[:1].copy()), Affine(0, 0, len(values)))
        return Gather(self.new_buffer(len(values), values), Affine(0, 1, len(values)))

    def values(self, nodes: Nodes) -> NDArray[np.float64]:
        numbers = np.empty(len(nodes))
        floats, known = floats_of(self.rows.atoms, nodes)
        numbers[floats] = known
        if not floats.all():
            different, where = np.unique(nodes[~floats], return_inverse=True)
            atoms = [self.rows.atoms[node] for node in different.tolist()]
            numbers[~floats] = np.array([to_float(leaf_constant(atom)) for atom in atoms])[where]
        return numbers

    def copy(self, nodes: Nodes, target: int, places: Nodes) -> None:
        """Write regions that copy nodes to places of a buffer, which has zeros already.

        In a workspace zeros are copied among other constants: else the places would depend on where zeros are, and
        equal lines with other constants, as of another time step, would differ.
        """
        buffers = self.buffer[nodes]
        for buffer in np.unique(buffers).tolist():
            chosen = np.nonzero(buffers == buffer)[0]
            if buffer < 0:
                values = self.values(nodes[chosen])
                some = values.view(np.int64) != 0
                if not some.any():
                    continue
                chosen = chosen if target >= 0 else chosen[some]
            gather = self.column(nodes[chosen])
            self.steps.append(copy(gather, target, table(places[chosen])))


@dataclass(frozen=True)
class Spot:
    """The position of a buffer in another one: place 0 is at `start` in the first round, and moves on by `shift`."""

    buffer: int
    start: int
    shift: int


def can_be_nest(loop: Loop) -> bool:
    """Return whether a loop is a chain that can have loops inside."""
    chain = bool(loop.carries) and all(len(carry.initial) == 1 for carry in loop.carries)
    return chain and loop.count > 1 and loop.stop is None and all(use.kind in ("each", "last") for use in loop.results)


def in_rounds(steps: Sequence[Step], spots: Mapping[int, Spot]) -> tuple[Step, ...]:
    """Return steps in a nest, whose buffers are at `spots`."""

    def where(buffer: int, table: Table) -> tuple[int, Table]:
        spot = spots[buffer]
        return spot.buffer, moved(table, spot.start, shifts=(spot.shift, *table.shifts))

    return all_readdressed(steps, where)


def added_to(steps: Sequence[Step]) -> set[int]:
    """Return the buffers that some steps add to: these begin at zero in each round, so each round has its own copy."""
    return {use.buffer for region, _ in regions_of(steps) for use in region.results if use.kind == "add"}


def piece_of(
    rows: Rows, sums: Mapping[int, tuple[int, ...]], nodes: Sequence[int], results: Sequence[int], buffer: Nodes
) -> tuple[Program, list[int]]:
    """Return straight lines as a program, and the nodes from outside that its inputs stand for.

    Nodes of `sums` are sums of others, whatever their rows say; nodes from outside with a buffer are read from there.
    """
    inside = set(nodes)
    parts = (part for node in nodes for part in sums.get(node) or rows.operands[node])
    met = dict.fromkeys(part for part in parts if part not in inside)
    outside = [node for node in met if buffer[node] >= 0]
    table = BodyRows(len(outside))
    row_of = dict(zip(outside, table.slots, strict=True))
    copy_rows(rows, met, table, row_of)
    for node in nodes:
        if node in sums:
            row_of[node] = table.canonical(sp.Add, tuple(row_of[part] for part in sums[node]))
        else:
            copy_rows(rows, [node], table, row_of)
    return table.body((row_of[node] for node in results), "straight"), outside
