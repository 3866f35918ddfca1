"""Array operations as loops: what NumPy does to a large array is one body, where loops are written down.

The nodes of a result are leaves that stand for it, as those of `sum_over` are: nothing is made element by element, and
nothing has to be found again. Slices, reshaped and broadcast forms stay NumPy's own, of the array of node ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import count
from typing import Any, cast

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from codegen.ir.program import Input, Output, Program
from codegen.ir.region import Buffer, Gather, Nest, Region, Result, RolledProgram
from codegen.ir.row_table import Table
from codegen.ir.tables import Affine, table
from codegen.loops.loop import Block, Loop, LoopResult, Nodes, Reads, is_nodes
from symad.graph.graph import Graph
from symad.tracing.calling.scope import Scope
from symad.tracing.control.derivative_blocks import NOTHING
from symad.tracing.control.written_bodies import Kind, digest, keep, leaves, origin, rows_of
from symad.tracing.trace import add_rows
from symad.tracing.values.array_blocks import Template, kinds_of, template_of
from symad.tracing.values.node_builders import Build

LARGE = 4096  # elements; smaller arrays are written out, and what repeats in them is found
SHORT = 32  # a product of a matrix and a vector has sums of so few terms in one body
NARROW = 64  # sums side by side; fewer are added one after the other


@dataclass(frozen=True)
class ArrayLoops:
    """What writes the operations on large arrays of one scope; each answers None where they are written out."""

    scope: Scope
    known: dict[bytes, tuple[range, NDArray[np.float64]]] = field(default_factory=dict)  # constants, by their content

    def constants(self, values: NDArray[np.float64]) -> Nodes | None:
        """Return the leaves of an array of numbers, whose atoms are made when they are asked for."""
        zeros = values == 0
        if values.size < LARGE or not np.isfinite(values).all() or np.signbit(values[zeros]).any():
            return None  # -0.0 and what is not finite have atoms of other kinds
        flat = values.ravel()
        key = digest(flat)
        if key not in self.known:
            flat = flat.copy()
            made = self.scope.graph.own_leaves(flat.size, lambda k: sp.Float(float(flat[k])), sp.Float)
            self.known[key] = made, flat
        nodes = self.known[key][0]
        return np.arange(nodes.start, nodes.stop).reshape(values.shape)

    def elementwise(self, build: Build, operands: Sequence[Nodes], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of every element of operands that broadcast to a shape."""
        size = math.prod(shape)
        if size < LARGE or not self.moves(operands):
            return None
        template, slots, result = template_of(self.scope.graph, build, operands)
        varied = [slot for slot in slots if slot not in template.atoms]
        if result in slots or not template.operands[result] or template.is_boolean(result):
            return None
        if any(template.heads[row] is sp.Pow and template.operands[row][1] in varied for row in range(len(template))):
            return None  # an exponent is a constant that says which derivative there is, or has a logarithm in its own
        columns = [
            self.column(np.broadcast_to(nodes, shape))
            for slot, nodes in zip(slots, operands, strict=True)
            if slot in varied
        ]
        return self.written(_body(template, varied, result), columns, "each").reshape(shape)

    def total(self, rows: Nodes) -> Nodes | None:
        """Return the sums of an array along its first axis, from left to right."""
        terms, places = rows.shape
        if rows.size < LARGE or terms < 2 or kinds_of(self.scope.graph, [rows]) != ["number"]:
            return None
        if places == 1:
            return self.written(_passed_on(), [self.column(rows)], "sum")
        at = np.broadcast_to(np.arange(places), rows.shape)
        if places < NARROW:
            rows, at = rows.T, at.T
        nodes = self.written(_passed_on(), [self.column(rows)], "add", at.ravel())
        return nodes.reshape(rows.shape)[:, 0] if places < NARROW else nodes[:places]

    def matmul(self, left: Nodes, right: Nodes) -> Nodes | None:
        """Return the product of two matrices, its sums from left to right."""
        (rows, inner), columns = left.shape, right.shape[1]
        if rows * inner * columns < LARGE or not self.moves((left, right)):
            return None
        if inner <= SHORT and 1 in (rows, columns):
            pairs = (left, right.T) if columns == 1 else (right.T, left)
            parts = [np.broadcast_to(side[:, k], rows * columns) for side in pairs for k in range(inner)]
            body = _sum_of_products(inner)
            return self.written(body, [self.column(part) for part in parts], "each").reshape(rows, columns)
        sides = [self.column(left), self.column(right)]
        values: list[NDArray[np.float64] | None] = [None if is_nodes(side) else cast(Any, side) for side in sides]

        def made() -> Loop:
            program = _matrix_product(rows, inner, columns, values)
            nodes = np.array(leaves(self.scope.graph, rows * columns), dtype=np.int64)
            reads = tuple(np.ascontiguousarray(side) for side in sides if is_nodes(side))
            return Block(NOTHING, 1, reads, (LoopResult(0, "each", nodes),), origin=origin(), program=program)

        key = "matrix product", rows, inner, columns, *map(digest, sides)
        return self.kept(key, made).reshape(rows, columns)

    def moves(self, operands: Sequence[Nodes]) -> bool:
        """Whether operands are numbers, and not all of them constants."""
        kinds = kinds_of(self.scope.graph, operands)
        return "number" in kinds and set(kinds) <= {"number", "constant"}

    def column(self, nodes: Nodes) -> Reads:
        """Return what a slot reads: nodes, or the numbers that they stand for, as they are now."""
        if not any(nodes.strides):
            return np.broadcast_to(nodes.flat[0], (nodes.size,))
        flat, lowest, highest = nodes.flatten(), int(nodes.min()), int(nodes.max())  # a copy: arrays are stored into
        for made, values in self.known.values():
            if lowest in made and highest in made:
                return values[flat - made.start]
        return flat

    def written(self, body: Program, columns: Sequence[Reads], kind: Kind, places: Nodes | None = None) -> Nodes:
        """Write down a loop of one result, and return its nodes: of "add" one for each of the places."""
        size, graph = len(columns[0]), self.scope.graph

        def made() -> Loop:
            number = size if kind == "each" else 1 if places is None else int(places.max()) + 1
            nodes = np.array(leaves(graph, number), dtype=np.int64)
            result = LoopResult(0, kind, nodes if places is None else nodes[places])
            return Loop(body, size, tuple(columns), (result,), origin=origin())

        key = rows_of(body), size, tuple(map(digest, columns)), kind, places is not None and digest(places)
        return self.kept(key, made)

    def kept(self, key: Any, make: Callable[[], Loop]) -> Nodes:
        """Return the nodes of a loop's result, in an array of their own: the user may store into it."""
        return keep(self.scope, key, make).results[0].nodes.copy()


def _body(template: Template, slots: Sequence[int], result: int) -> Program:
    """Return the rows of a template as a program of its slots."""
    rows = Table()
    row_of = {slot: rows.leaf(sp.Symbol(f"slot_{k}", real=True)) for k, slot in enumerate(slots)}
    others = [row for row in range(len(template)) if row not in row_of]
    add_rows(rows, row_of, template, others, template.atoms.__getitem__)
    return _program(rows, len(slots), row_of[result])


def _program(rows: Table, slots: int, result: int) -> Program:
    inputs = tuple(Input(f"slot_{k}", ()) for k in range(slots))
    return Program(rows.heads, rows.operands, rows.atoms, inputs, (Output((), (result,)),), "body")


def _slots(number: int) -> tuple[Graph, list[int]]:
    graph = Graph(lines=False)
    return graph, [graph.leaf(sp.Symbol(f"slot_{k}", real=True)) for k in range(number)]


def _passed_on() -> Program:
    """Return the body that has its slot as it is."""
    graph, (slot,) = _slots(1)
    return _program(graph, 1, slot)


def _sum_of_products(terms: int) -> Program:
    """Return the sum of products of the first slots with the others, from left to right."""
    graph, slots = _slots(2 * terms)
    products = [op.multiply(graph, *pair) for pair in zip(slots[:terms], slots[terms:], strict=True)]
    return _program(graph, 2 * terms, reduce(partial(op.add, graph), products))


def _matrix_product(rows: int, inner: int, columns: int, values: Sequence[NDArray[np.float64] | None]) -> RolledProgram:
    """Return the product of two matrices, row by row; those with values are constants, the others inputs.

    >>> [(nest.count, nest.steps[0].count) for nest in _matrix_product(5, 3, 4, [None, None]).steps]
    [(5, 12)]
    """
    sizes = rows * inner, inner * columns
    inputs = tuple(Input(f"matrix_{k}", (sizes[k],)) for k in range(2) if values[k] is None)
    given = [Buffer("constant", found.size, found) for found in values if found is not None]
    numbers = {True: count(), False: count(len(inputs))}
    left, right = (next(numbers[found is None]) for found in values)
    product = len(inputs) + len(given)
    one = inner * columns  # repetitions for a row: of each inner index all columns
    by_inner = replace(table(np.repeat(np.arange(inner), columns)), shifts=(inner,))
    by_column = replace(table(np.tile(np.arange(columns), inner)), shifts=(columns,))
    gathers = Gather(left, by_inner), Gather(right, Affine(0, 1, one, (0,)))
    step = Region(_sum_of_products(1), one, gathers, (Result(0, product, by_column, "add"),))
    buffers = *(Buffer("input", array.size) for array in inputs), *given, Buffer("output", rows * columns)
    outputs = (Output((rows * columns,), ()),)
    return RolledProgram(inputs, outputs, buffers, (Nest(rows, (step,)),), "matrix product")
