"""Place nodes and loops: every node that another region reads gets a place in a buffer.

A loop runs as soon as all its operands are computed. Straight lines between loops are a region that is run once, a
piece: pieces and loops take turns, stage by stage. A column of a loop that reads from several buffers is gathered
first, so that every slot has one table.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from codegen.ir.body_parts import copy, row_of
from codegen.ir.program import Input, Output, Rows
from codegen.ir.readdress import all_readdressed, interned, moved, renumbered
from codegen.ir.region import Buffer, Carry, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.strictness import checked
from codegen.ir.tables import Affine, distinct, table
from codegen.limits import EVERY, check
from codegen.loops.loop import Loop, LoopResult, Nodes, Reads, RolledBlock, StraightError, is_nodes, joined
from codegen.loops.place.buffers import Arrays, Buffers, Spot, added_to, in_rounds, piece_of
from codegen.matrices.matrix_loops import without_matrices

Sums = Mapping[int, tuple[int, ...]]
MANY = 32  # loops


def place(rows: Rows, arrays: Arrays, loops: Sequence[Loop], sums: Sums, name: str = "kernel") -> RolledProgram:
    """Return the rolled program of loops and of the nodes that they leave in straight lines.

    `sums` overrides rows: its keys are sums of its values, from left to right. Nodes beyond the rows are results of
    loops. StraightError for loops that wait for each other.

    >>> import sympy as sp
    >>> from codegen.ir.program import Program
    >>> from codegen.loops.loop import LoopResult
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), (Output((), (1,)),))
    >>> rows = Program([sp.Symbol] * 3, [()] * 3, dict.fromkeys(range(3), x), (Input("x", (3,)),), ())
    >>> loop = Loop(square, 3, (np.arange(3),), (LoopResult(0, "sum", np.array([3])),))
    >>> rolled = place(rows, Arrays([("x", np.arange(3))], [(np.array(3), None)]), [loop], {})
    >>> [(region.count, region.results[0].kind) for region in rolled.steps]
    [(3, 'add')]
    """
    placer = _Placer(rows, arrays, loops, sums, name)
    placer.run()
    return checked(placer.rolled(), "placing loops", needed=True)


class _Placer(Buffers):
    """Buffers and regions under construction."""

    def __init__(
        self, rows: Rows, arrays: Arrays, loops: Sequence[Loop], sums: Sums, name: str, nested: bool = False
    ) -> None:
        self.loops, self.sums, self.name, self.nested = loops, sums, name, nested
        results = [result.nodes for loop in loops for result in loop.results]
        size = max([len(rows.heads), *(int(nodes.max()) + 1 for nodes in results if nodes.size)])
        super().__init__(rows, arrays, size)
        self.owner = np.full(size, -1)  # the loop that computes a node, or one of those that add to it
        self.is_added = np.zeros(size, dtype=bool)  # nodes that loops add to
        self.adders: dict[int, list[int]] = {}  # for a loop that adds: all loops that add to the same nodes
        for number, loop in enumerate(loops):
            for result in loop.results:
                if result.kind == "add":
                    self.join(number, result.nodes)
                self.owner[result.nodes] = number
        self.sums_kept: dict[int, tuple[int, Nodes, Nodes]] = {}  # where loops add: buffer, places, and the nodes
        self.parts: dict[int, list[int]] = {}  # operands of nodes in straight lines and of loops (~number)
        self.readers = self.readers_of([use for loop in loops for use in loop.results if use.kind in ("sum", "last")])
        for nodes in chain.from_iterable(loop.nodes_read for loop in loops):
            self.read[nodes] = True

    def readers_of(self, uses: Sequence[LoopResult]) -> dict[int, list[int]]:
        """Return the columns that read each number that loops leave at their end."""
        single, readers = np.zeros(len(self.buffer), dtype=bool), dict[int, list[int]]()
        for use in uses:
            single[use.nodes] = True
        for column, nodes in enumerate(chain.from_iterable(loop.nodes_read for loop in self.loops)):
            for node in distinct(nodes[single[nodes]]).tolist():
                readers.setdefault(node, []).append(column)
        return readers

    def join(self, number: int, nodes: Nodes) -> None:
        """Note that a loop adds to nodes, which are complete when all loops that add to them have run."""
        self.is_added[nodes] = True
        others = {int(other) for other in np.unique(self.owner[nodes]) if other >= 0} | {number}
        together = sorted({adder for other in others for adder in self.adders.get(other, [other])})
        self.adders |= dict.fromkeys(together, together)

    def run(self) -> None:
        """Write loops and straight lines after their operands; few loops run early, many keep their order."""
        stages = self.stages()
        straight = {item: stage for item, stage in sorted(stages.items()) if item >= 0}
        for node, stage in straight.items():  # pieces read each other and loops
            for operand in self.operands(node):
                if self.owner[operand] >= 0 or straight.get(operand, stage) < stage:
                    self.read[operand] = True
        pieces: list[list[int]] = [[] for _ in range(max([0, *stages.values()]) + 1)]
        for node, stage in straight.items():
            pieces[stage].append(node)
        ahead = {
            number: [self.step_of(part, stages) for part in self.parts[~number]] for number in range(len(self.loops))
        }
        for stage, nodes in enumerate(pieces):
            ahead[~stage] = [self.step_of(part, stages) for node in nodes for part in self.parts[node]]
        stack = [*range(-len(pieces), 0), *reversed(range(len(self.loops)))]
        if len(self.loops) < MANY:
            stack.sort(key=lambda step: (stages[~step], 0, step) if step >= 0 else (~step, 1), reverse=True)
        written = set[int]()
        while stack:
            step = stack[-1]
            left = [part for part in ahead.pop(step, ()) if part not in written and part != step]
            if left:
                stack += reversed(left)
            elif step == stack.pop() and step not in written:
                written.add(step)
                if step >= 0:
                    self.write(self.loops[step])
                else:
                    self.write_piece(pieces[~step])
        self.write_outputs()

    def step_of(self, item: int, stages: Mapping[int, int]) -> int:
        """Return the loop of an item, or the stage (as ~stage) of its straight lines."""
        return ~item if item < 0 else ~stages[item]

    def rolled(self) -> RolledProgram:
        """Return the regions with the buffers of the outputs behind all others."""
        inputs = tuple(Input(name, nodes.shape) for name, nodes in self.arrays.inputs)
        outputs = tuple(Output(nodes.shape, (), None, pattern) for nodes, pattern in self.arrays.outputs)
        front = [Buffer("input", array.size) for array in inputs]
        back = [Buffer("output", array.size) for array in outputs]
        first = len(front) + len(self.buffers)  # output buffers are written ~number so far
        steps = interned(renumbered(self.steps, lambda buffer: buffer if buffer >= 0 else first + ~buffer))
        return RolledProgram(inputs, outputs, (*front, *self.buffers, *back), steps, self.name)

    def operands(self, node: int) -> tuple[int, ...]:
        return self.sums.get(node) or self.rows.operands[node]

    def is_constant(self, node: int) -> bool:
        return node < len(self.rows.heads) and not self.operands(node) and self.owner[node] < 0

    def stages(self) -> dict[int, int]:
        """Return when each straight node, and each loop (as ~number), can run; in a stage, loops come first."""
        outputs = joined(nodes for nodes, _ in self.arrays.outputs)
        outputs = outputs[(self.buffer[outputs] < 0) & (self.owner[outputs] < 0)]
        stack = [node for node in outputs.tolist() if not self.is_constant(node)]
        stack += (~number for number in range(len(self.loops)))
        stages: dict[int, int] = {}
        parts = self.parts
        while stack:
            item = stack[-1]
            if item not in stages and item not in parts:
                if not len(parts) % EVERY or item < 0:
                    check("placing loops")
                parts[item] = self.waits_for(item)
                ahead = [part for part in parts[item] if part not in stages]
                if any(part in parts for part in ahead):
                    raise StraightError("its loops wait for each other: no order runs them all")
                stack += ahead
            else:
                stack.pop()
                if item not in stages:
                    stages[item] = max([0, *(stages[part] + (item < 0) for part in parts[item])])
        return stages

    def waits_for(self, item: int) -> list[int]:
        """Return the straight nodes and the loops (~number) that a node or a loop reads."""
        if item < 0:
            nodes = distinct(joined(nodes[self.buffer[nodes] < 0] for nodes in self.loops[~item].nodes_read))
        else:
            nodes = np.array(self.operands(item), dtype=np.int64)
        owned = {~int(number) for number in distinct(self.owner[nodes]) if number >= 0}
        adding = distinct(self.owner[nodes[self.is_added[nodes]]]).tolist()
        owned |= {~adder for number in adding for adder in self.adders[number]}
        others = nodes[(self.buffer[nodes] < 0) & (self.owner[nodes] < 0)].tolist()
        return [*owned, *(node for node in others if node in self.sums or self.rows.operands[node])]

    def write(self, loop: Loop) -> None:
        check("placing loops")
        if isinstance(loop, RolledBlock):
            self.write_block(loop)
        elif loop.inside:
            self.write_nest(loop)
        else:
            self.write_loop(loop)

    def is_needed(self, use: LoopResult) -> bool:
        return bool(self.read[use.nodes].any() or self.shown[use.nodes].any())

    def write_block(self, block: RolledBlock) -> None:
        """Write the regions of a program, which reads its inputs in place, or copied side by side."""
        if not any(map(self.is_needed, block.results)):
            return
        program = without_matrices(block.program) if self.nested else block.program
        at = {number: self.array(nodes) for number, nodes in enumerate(block.reads) if is_nodes(nodes)}
        for number in range(len(program.inputs), program.first_output):
            at[number] = self.new_buffer(program.buffers[number].size, program.buffers[number].values), 0
        for number, use in enumerate(block.results, program.first_output):
            buffer, places = self.keep(use.nodes)
            whole = buffer >= 0 or use.nodes.size == self.arrays.outputs[~buffer][0].size
            if whole and (places == np.arange(use.nodes.size)).all():
                at[number] = buffer, 0
            else:
                at[number] = self.new_buffer(use.nodes.size), 0
                self.buffer[use.nodes], self.spot[use.nodes] = at[number][0], np.arange(use.nodes.size)
                self.shown[use.nodes] = True
        self.steps += all_readdressed(
            program.steps, lambda buffer, places: (at[buffer][0], moved(places, at[buffer][1]))
        )

    def write_loop(self, loop: Loop) -> None:
        gathers = tuple(self.column(reads) for reads in loop.reads)
        initial = (tuple(self.column(np.array([node])) for node in carry.initial.tolist()) for carry in loop.carries)
        carries = tuple(Carry(carry.output, first) for carry, first in zip(loop.carries, initial, strict=True))
        needed = [use for use in loop.results if use.kind == "add" or self.is_needed(use)]
        single = [use.nodes for use in needed if use.kind in ("sum", "last")]
        spots = self.keep_single(np.concatenate(single)) if single else {}
        results = []
        for use in needed:
            if use.kind == "add":
                results.append(self.add(use))
            elif use.kind == "each":
                buffer, places = self.keep(use.nodes)
                results.append(Result(use.output, buffer, table(places), "store"))
            else:
                buffer, place = spots[int(use.nodes[0])]
                summed = use.kind == "sum"
                table_of = Affine(place, 0, loop.count if summed else 1)
                results.append(Result(use.output, buffer, table_of, "add" if summed else "last"))
        if results:
            self.steps.append(Region(loop.body, loop.count, gathers, tuple(results), carries, loop.stop, loop.origin))

    def keep_single(self, nodes: Nodes) -> dict[int, tuple[int, int]]:
        """Give the results at the end of a loop places, side by side for equal readers; return these by node."""
        groups: dict[Hashable, list[int]] = {}
        for node in nodes.tolist():
            groups.setdefault((self.array_of(node), *self.readers.get(node, (~node,))), []).append(node)
        spots: dict[int, tuple[int, int]] = {}
        for group in groups.values():
            buffer, places = self.keep(np.array(group))
            spots |= {node: (buffer, place) for node, place in zip(group, places.tolist(), strict=True)}
        return spots

    def write_nest(self, loop: Loop) -> None:
        """Write a chain with loops in its body: its carries have new places in every round."""
        needed = [use for use in loop.results if self.is_needed(use)]
        if not needed:
            return
        width = len(loop.carries)
        history = self.new_buffer((loop.count + 1) * width)
        self.copy(np.concatenate([carry.initial for carry in loop.carries]), history, np.arange(width))
        reads = self.columns(loop.reads, loop.count) + [Spot(history, k, width) for k in range(width)]
        arrays: dict[int, list[LoopResult]] = {}
        for use in needed:
            if use.kind == "each":
                arrays.setdefault(self.array_of(int(use.nodes[0])), []).append(use)
        self.steps, ahead = [], self.steps
        spots = [self.spot_of(np.stack([use.nodes for use in uses], axis=1)) for uses in arrays.values()]
        self.steps, after = ahead, self.steps
        outputs = [
            [carry.output for carry in loop.carries],
            *([use.output for use in uses] for uses in arrays.values()),
        ]
        self.steps += [self.nest(loop, reads, outputs, [Spot(history, width, width), *spots]), *after]
        carried = {carry.output: k for k, carry in enumerate(loop.carries)}
        for use in needed:
            if use.kind == "last":
                self.buffer[use.nodes], self.spot[use.nodes] = history, loop.count * width + carried[use.output]

    def nest(self, loop: Loop, reads: Sequence[Spot], outputs: Sequence[Sequence[int]], places: Sequence[Spot]) -> Nest:
        """Return the nest of a body, whose slots and outputs are at places that move on with the rounds."""
        groups = {key: k for k, key in enumerate(dict.fromkeys((spot.buffer, spot.shift) for spot in reads))}
        nowhere = np.empty(0, dtype=np.int64)
        rows = [np.array([row_of(loop.body, output) for output in part]) for part in outputs]
        inner = _Placer(
            loop.body, Arrays([("", nowhere)] * len(groups), [(part, None) for part in rows]),
            loop.inside, loop.sums, self.name, nested=True,
        )  # fmt: skip
        for slot, spot in enumerate(reads):
            inner.buffer[slot], inner.spot[slot] = groups[spot.buffer, spot.shift], spot.start
        inner.run()
        spots = {k: Spot(buffer, 0, shift) for (buffer, shift), k in groups.items()}
        spots |= {~k: spot for k, spot in enumerate(places)}
        added = added_to(inner.steps)
        for number, buffer in enumerate(inner.buffers, len(groups)):
            rounds = loop.count if number in added else 1
            target = self.new_buffer(buffer.size * rounds, buffer.values)
            spots[number] = Spot(target, 0, buffer.size if rounds > 1 else 0)
        return Nest(loop.count, in_rounds(inner.steps, spots))

    def columns(self, columns: Sequence[Reads], count: int) -> list[Spot]:
        """Return where slots of a nest read; columns that do not move on evenly are copied to a buffer first."""
        spots: dict[int, Spot] = {}
        apart: list[int] = []
        numbers: dict[int, NDArray[np.float64]] = {}
        for slot, reads in enumerate(columns):
            if not is_nodes(reads):
                numbers[slot] = np.asarray(reads, dtype=np.float64)
                continue
            buffers, places = self.buffer[reads], self.spot[reads]
            steps, together = np.diff(places), (buffers == buffers[0]).all()
            if together and buffers[0] < 0:
                numbers[slot] = self.values(reads)
            elif together and (steps == steps[0]).all():
                spots[slot] = Spot(int(buffers[0]), int(places[0]), int(steps[0]))
            else:
                apart.append(slot)
        if numbers:
            target = self.new_buffer(count * len(numbers), np.stack(list(numbers.values()), axis=1).ravel())
            spots |= {slot: Spot(target, k, len(numbers)) for k, slot in enumerate(numbers)}
        if apart:
            target = self.new_buffer(count * len(apart))
            nodes = np.stack([columns[slot] for slot in apart], axis=1).ravel()
            self.copy(nodes.astype(np.int64), target, np.arange(nodes.size))
            spots |= {slot: Spot(target, k, len(apart)) for k, slot in enumerate(apart)}
        return [spots[slot] for slot in range(len(columns))]

    def spot_of(self, nodes: Nodes) -> Spot:
        """Return where a nest stores results, one row for each round; copy them to their places if they are apart."""
        buffer, places = self.keep(nodes.ravel())
        places = places.reshape(nodes.shape)
        moves = np.diff(places[:, 0])
        if (np.diff(places, axis=1) == 1).all() and (np.diff(places, axis=0) == moves[0]).all():
            return Spot(buffer, int(places[0, 0]), int(moves[0]))
        apart, count = self.new_buffer(nodes.size), nodes.size
        self.steps.append(copy(Gather(apart, Affine(0, 1, count)), buffer, table(places.ravel())))
        return Spot(apart, 0, nodes.shape[1])

    def add(self, result: LoopResult) -> Result:
        """Return where a loop adds; the first loop of a group gives places to all nodes of the group."""
        together = self.adders[int(self.owner[result.nodes[0]])]
        if together[0] not in self.sums_kept:
            added = [use.nodes for number in together for use in self.loops[number].results if use.kind == "add"]
            nodes = distinct(np.concatenate(added))
            self.sums_kept[together[0]] = (*self.keep(nodes), nodes)
        buffer, places, nodes = self.sums_kept[together[0]]
        return Result(result.output, buffer, table(places[np.searchsorted(nodes, result.nodes)]), "add")

    def write_piece(self, nodes: Sequence[int]) -> None:
        """Write straight lines as a region that is run once."""
        results = [node for node in nodes if self.read[node] or self.shown[node]]
        if not results:
            return
        check("placing straight lines")
        body, outside = piece_of(self.rows, self.sums, nodes, results, self.buffer)
        gathers = tuple(Gather(int(self.buffer[node]), Affine(int(self.spot[node]), 0, 1)) for node in outside)
        direct = [node for node in results if self.target[node] >= 0 and not self.read[node]]
        kept = [node for node in results if node not in set(direct)]
        places_of = {node: self.keep(np.array([node])) for node in direct}
        if kept:
            buffer, places = self.keep(np.array(kept))
            places_of |= {node: (buffer, places[k : k + 1]) for k, node in enumerate(kept)}
        stores = tuple(
            Result(k, places_of[node][0], Affine(int(places_of[node][1][0]), 0, 1), "store")
            for k, node in enumerate(results)
        )
        self.steps.append(Region(body, 1, gathers, stores, origin="straight lines"))

    def write_outputs(self) -> None:
        """Copy nodes that are not yet in the output arrays."""
        for number, (nodes, _) in enumerate(self.arrays.outputs):
            flat = nodes.ravel()
            missing = np.nonzero(self.shown[flat])[0]
            if len(missing):
                self.copy(flat[missing], ~number, missing)
