"""Record operations on large arrays as loops with one body, while loops are recorded.

The nodes of a result are leaves that stand for it, like those of `sum_over`: no element gets a row of its own, and no
loop has to be searched for. Slices, reshaped and broadcast forms are NumPy's own views of the array of node ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from functools import cache, partial, reduce
from typing import Any, ClassVar, cast

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation
from codegen.ir.program import Program
from codegen.ir.region import RolledProgram
from codegen.limits import check_bytes, machine_memory
from codegen.loops.loop import Loop, LoopCarry, LoopResult, Nodes, Reads, RolledBlock, is_nodes
from codegen.matrices.matrix_loops import matrix_program
from codegen.matrices.product_loops import sums_of_products
from codegen.records import dataclass
from symad.tracing.calling.scope import Scope
from symad.tracing.control.array_bodies import element_body, program_of, slots_on
from symad.tracing.control.derivative_blocks import NOTHING
from symad.tracing.control.equal_bodies import digest, rows_of
from symad.tracing.control.written_bodies import Kind as ResultKind, keep, leaves, origin
from symad.tracing.values.array_blocks import (
    CONSTANTS,
    Kind,
    are_constants,
    exactly,
    given_of,
    heads_of,
    kinds_of,
    template_of,
)
from symad.tracing.values.layouts import in_even_steps, usual_step
from symad.tracing.values.node_builders import Build
from symad.tracing.values.whole_numbers import note_whole

LARGE = 4096  # elements of the first operation that is recorded; loops are searched for in smaller ones
SMALL = 256  # elements of later operations, and of one that reads arguments in even steps (`reads_leaves`)
GATHERED = 512  # and of one that gathers or broadcasts arguments
SHORT = 32  # terms of a reduction in one body; different exponents of one operation
MANY_PRODUCTS = 6  # of matrices, after which smaller ones are recorded too: written out, their rounds have long bodies
PRODUCT, TERMS = 100, 8  # terms of such products, and of each of their sums
FEW_TERMS = 16  # of a product of a matrix and a vector in one body
SPARSE = 4  # entries for each nonzero from which a product goes through the nonzeros only
NARROW = 64  # sums side by side; fewer are added one after the other


@dataclass
class ArrayLoops:
    """Record the operations on large arrays of one scope. A method returns None for operations that it does not record.

    Truth values are numbers in a loop: their nodes compare these with 0.
    """

    scope: Scope
    least: int = LARGE
    products: int = LARGE  # terms of a first product of matrices
    at_once: bool = True  # whether a first operation on arguments in even steps needs SMALL elements only
    multiplied: int = 0  # products of matrices that are not quite small
    written_down: int = 0  # recorded loops, with those of inner scopes
    small: bool = False  # whether `at_once` decided on an operation, with those of inner scopes
    around: ArrayLoops | None = None
    known: dict[bytes, tuple[range, NDArray[np.float64]]] = field(default_factory=dict)  # constants, by their content
    programs: dict[Any, RolledProgram] = field(default_factory=dict)  # of blocks, by their keys
    on_numbers: ClassVar[bool] = False  # whether a function is called on numbers, and not traced
    truths: dict[int, range] = field(default_factory=dict)  # nodes of truth values, by the first of their numbers
    factors: dict[int, tuple[Nodes, Nodes]] = field(default_factory=dict)  # of Cholesky: as computed, and with zeros

    def within(self, inner: Scope) -> ArrayLoops:
        """Return a recorder for an inner scope on the same graph: a function that is differentiated there."""
        return replace(self, scope=inner, written_down=0, small=False, around=self)

    def outwards(self) -> Iterator[ArrayLoops]:
        """Yield this recorder and those of the scopes around."""
        recorder: ArrayLoops | None = self
        while recorder is not None:
            yield recorder
            recorder = recorder.around

    def constants(self, values: NDArray[np.float64]) -> Nodes | None:
        """Return the leaves of an array of numbers. Their atoms are made lazily."""
        zeros = values == 0
        if values.size < self.least or not np.isfinite(values).all() or np.signbit(values[zeros]).any():
            return None  # -0.0, infinities and NaN have atoms of other kinds
        flat = values.ravel()
        key = digest(flat)
        if key not in self.known:
            flat = flat.copy()
            self.known[key] = self.scope.graph.own_floats(flat), flat
        nodes = self.known[key][0]
        return np.arange(nodes.start, nodes.stop).reshape(values.shape)

    def elementwise(self, build: Build, operands: Sequence[Nodes], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of every element of operands that broadcast to a shape."""
        if build is op.select and (chosen := self.chosen(*operands)) is not None:
            return chosen if chosen.shape == shape else np.broadcast_to(chosen, shape).copy()
        if math.prod(shape) < self.least:
            if not (self.at_once and self.reads_leaves(operands, shape)):
                return None
            for recorder in self.outwards():
                recorder.small = True
        if build is op.power and operands[1].size > 1:
            return self.powers(operands[0], operands[1], shape)
        return self.mapped(build, operands, shape)

    def reads_leaves(self, operands: Sequence[Nodes], shape: tuple[int, ...]) -> bool:
        """Whether an operation reads leaves, each once and in even steps if they are few. The search for loops would
        find it too, but at the cost of its rows, and in part only where many places are read in any order.
        """
        parts, read = self.scope.graph.operands, [nodes for nodes in operands if nodes.size > 1]
        if math.prod(shape) < SMALL or any(parts[nodes.item(k)] for nodes in read for k in (0, -1)):
            return False
        in_lines = all(nodes.shape == shape and in_even_steps(nodes) for nodes in read)
        return in_lines or math.prod(shape) >= GATHERED

    def mapped(self, build: Build, operands: Sequence[Nodes], shape: tuple[int, ...]) -> Nodes | None:
        """Return build(...) of every element, for any number of elements."""
        numbers = [self.numbers_of(nodes) for nodes in operands]
        if any(nodes is None for nodes in numbers) or not self.moves(operands):
            return None
        forms = given_of(self.scope.graph, operands)
        element = element_body(build, forms, exactly(forms))
        if element is None:
            return None
        columns = [self.column(np.broadcast_to(cast(Nodes, numbers[k]), shape)) for k in element.varied]
        result = self.written(element.body, columns, "each", looks=element.looks).reshape(shape)
        if not element.is_truth:
            note_whole(self.scope.graph, element.body, [operands[k] for k in element.varied], result)
        return self.as_truths(result) if element.is_truth else result

    def powers(self, base: Nodes, exponents: Nodes, shape: tuple[int, ...]) -> Nodes | None:
        """Return powers, one loop for each different exponent."""
        if [self.kind(base), self.kind(exponents)] != ["number", "constant"]:
            return self.mapped(op.power, (base, exponents), shape)
        base, column = np.broadcast_to(base, shape), self.column(np.broadcast_to(exponents, shape))
        different, which = np.unique(column, return_inverse=True)
        if len(different) > SHORT:
            return None
        result = np.empty(shape, dtype=np.int64)
        for k, exponent in enumerate(different.tolist()):
            node = exponent if is_nodes(column) else self.scope.graph.number(exponent)
            here = which.reshape(shape) == k
            if (power := self.mapped(op.power, (base[here], np.array(node)), (int(here.sum()),))) is None:
                return None
            result[here] = power
        return result

    def chosen(self, conditions: Nodes, first: Nodes, second: Nodes) -> Nodes | None:
        """Return the choice by truth values that are known. Nothing is computed."""
        true, false = map(self.scope.graph.number, (True, False))
        if conditions.size < 2 or not np.isin(conditions, (true, false)).all():
            return None
        kinds = {self.kind(first), self.kind(second)}
        return np.where(conditions == true, first, second) if kinds <= {"number", "constant"} else None

    def as_truths(self, numbers: Nodes) -> Nodes:
        """Return the truth values that the numbers of a loop stand for."""
        graph, first = self.scope.graph, int(numbers.flat[0])
        if first not in self.truths:
            nodes = graph.rows(sp.Unequality, [numbers.ravel(), graph.number(0)])
            self.truths[first] = range(int(nodes[0]), int(nodes[-1]) + 1)
        return numbers - first + self.truths[first].start

    def numbers_of(self, nodes: Nodes) -> Nodes | None:
        """Return the numbers behind recorded truth values; numbers unchanged; None for other truth values."""
        if self.kind(nodes) != "truth":
            return nodes
        lowest, highest = int(nodes.min()), int(nodes.max())
        for first, numbers in self.truths.items():
            if lowest in numbers and highest in numbers:
                return nodes - numbers.start + first
        return None

    def reduction(self, build: Build, rows: Nodes) -> Nodes | None:
        """Return build(...build(first, second)...) of an array along its first axis, from left to right."""
        terms, places = rows.shape
        if rows.size < self.least or terms < 2:
            return None
        kind = self.kind(rows)
        if kind != "number":
            return self.counted(build, rows) if kind == "truth" else None
        if build is op.add:
            return self.total(rows)
        if places < NARROW and terms > SHORT:
            return self.chain(build, rows)[0]
        total: Nodes | None = (rows := self.side_by_side(rows))[0]
        for k in range(1, terms, SHORT):
            operands = [cast(Nodes, total), *rows[k : k + SHORT]]
            total = self.mapped(_one_after_the_other(build), operands, (places,))
            if total is None:
                return None
        return total

    def side_by_side(self, rows: Nodes) -> Nodes:
        """Return rows as one array. Constants among the elements would give each row a body of its own."""
        if not any(issubclass(head, CONSTANTS) for head in heads_of(self.scope.graph, rows)):
            return rows
        by_rows, turned = _by_rows(rows)
        copied = self.written(_passed_on(), [self.column(by_rows)], "each").reshape(by_rows.shape)
        return copied.T if turned else copied

    def counted(self, build: Build, rows: Nodes) -> Nodes | None:
        """Return whether any, or all, of some truth values hold, by a sum that counts them."""
        graph = self.scope.graph
        template, _, result = template_of(graph, build, (rows[0], rows[1]))
        comparison = {sp.Or: (sp.Unequality, 0), sp.And: (sp.Equality, len(rows))}.get(template.heads[result])
        numbers = self.numbers_of(rows)
        if comparison is None or numbers is None:
            return None
        head, count = comparison
        return np.array([graph.node(head, node, graph.number(count)) for node in self.total(numbers).tolist()])

    def running(self, build: Build, rows: Nodes) -> Nodes | None:
        """Return the partial results of a reduction along the first axis."""
        terms, places = rows.shape
        if rows.size < self.least or terms < 2 or places >= NARROW or self.kind(rows) != "number":
            return None
        return np.concatenate([rows[:1], self.chain(build, rows)[1]])

    def chain(self, build: Build, rows: Nodes) -> tuple[Nodes, Nodes]:
        """Return the last values of a reduction of rows, and all values but the first, by one loop with carries."""
        graph, (terms, places) = self.scope.graph, rows.shape
        body, slots = slots_on(2 * places)
        outputs = [build(body, carried, term) for term, carried in zip(slots[:places], slots[places:], strict=True)]
        program = program_of(body, 2 * places, *outputs)
        reads = tuple(self.column(column) for column in rows[1:].T)

        def new_loop() -> Loop:
            nodes = leaves(graph, terms * places).reshape(places, terms)
            results = [LoopResult(k, "last", nodes[k, -1:]) for k in range(places)]
            results += [LoopResult(k, "each", nodes[k, :-1]) for k in range(places)]
            carries = tuple(LoopCarry(k, rows[0, k : k + 1].copy()) for k in range(places))
            return Loop(program, terms - 1, reads, tuple(results), carries, origin=origin())

        uses = self.loop(("chain", rows_of(program), digest(rows[0].copy()), *map(digest, reads)), new_loop).results
        last, others = [use.nodes for use in uses[:places]], [use.nodes for use in uses[places:]]
        return np.concatenate(last), np.stack(others, axis=-1)

    def total(self, rows: Nodes) -> Nodes:
        """Return the sums of an array along its first axis, from left to right."""
        places = rows.shape[1]
        if places == 1:
            return self.written(_passed_on(), [self.column(rows)], "sum")
        at = np.broadcast_to(np.arange(places), rows.shape)
        if places < NARROW:
            rows, at = rows.T, at.T
        nodes = self.written(_passed_on(), [self.column(rows)], "add", at.ravel())
        return nodes.reshape(rows.shape)[:, 0] if places < NARROW else nodes[:places]

    def matmul(self, left: Nodes, right: Nodes) -> Nodes | None:
        """Return the products of matrices, or of stacks of them, their sums from left to right."""
        stack = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        rows, inner, columns = *left.shape[-2:], right.shape[-1]
        number = math.prod(stack)
        terms = number * rows * inner * columns
        self.multiplied += terms >= PRODUCT and inner > TERMS
        least = self.products if self.multiplied <= MANY_PRODUCTS or inner <= TERMS else PRODUCT
        if terms < min(self.least, least) or not self.moves((left, right)):
            return None
        if "truth" in map(self.kind, (left, right)):
            return None
        shape = *stack, rows, columns
        left = np.broadcast_to(left, (*stack, rows, inner))
        if math.prod(right.shape[:-2]) == 1:  # one matrix for all: their rows are those of one product
            return self.product(left.reshape(1, -1, inner), right.reshape(1, inner, columns)).reshape(shape)
        right = np.broadcast_to(right, (*stack, inner, columns))
        return self.product(left.reshape(-1, rows, inner), right.reshape(-1, inner, columns)).reshape(shape)

    def product(self, left: Nodes, right: Nodes) -> Nodes:
        """Return the products of equally many matrices on the left and on the right."""
        (number, rows, inner), columns = left.shape, right.shape[2]
        if number * rows * columns == 1 and inner > FEW_TERMS:  # a sum, as any other
            operands = [self.column(left.ravel()), self.column(right.ravel())]
            return self.written(sums_of_products(1, 1), operands, "sum").reshape(1, 1, 1)
        if number == 1 in (rows, columns):
            matrix, vector = (left[0], right[0, :, 0]) if columns == 1 else (right[0].T, left[0, 0])
            if (sparse := self.sparse_product(matrix, vector)) is not None:
                return sparse.reshape(1, rows, columns)
        if inner <= FEW_TERMS and (1 in (rows, columns) or inner * columns < NARROW):
            shape = number, rows, columns
            parts = [np.broadcast_to(left[:, :, k, None], shape).ravel() for k in range(inner)]
            parts += [np.broadcast_to(right[:, None, k], shape).ravel() for k in range(inner)]
            return self.written(sums_of_products(1, inner), list(map(self.column, parts)), "each")
        (left, first), (right, second) = map(_by_rows, (left, right))
        operation = MatrixOperation("product", (number, rows, inner, columns), (first, second))
        return self.carried_out(operation, left, right)[0]

    def sparse_product(self, matrix: Nodes, vector: Nodes) -> Nodes | None:
        """Return the product of a mostly zero matrix of constants and a vector; None for other operands."""
        if self.kind(matrix) != "constant":
            return None
        numbers, number = self.column(matrix), self.scope.graph.number
        zeros = np.isin(numbers, [number(0), number(0.0), number(-0.0)]) if is_nodes(numbers) else numbers == 0
        rows, columns = np.nonzero(~zeros.reshape(matrix.shape))
        if not len(rows) or len(rows) * SPARSE > matrix.size:
            return None
        result = np.full(len(matrix), number(0.0))
        reads = self.column(matrix[rows, columns]), self.column(vector[columns])
        result[rows] = self.written(sums_of_products(1, 1), reads, "add", rows)
        return result

    def solution(self, matrix: Nodes, right: Nodes) -> Nodes:
        """Return the solution of linear systems. A Cholesky factor is solved by substitution, without pivots."""
        for turned, lower in ((False, matrix), (True, matrix.T)):
            if self.factor_of(lower) is not None:
                return self.triangular(lower, right, turned)
        (matrix, turned) = _by_rows(matrix)
        return self.solved("solve", matrix, right, turned)

    def triangular(self, matrix: Nodes, right: Nodes, turned: bool) -> Nodes:
        """Return the solution of systems with the lower triangle of a matrix, or with its transpose."""
        factor = self.factor_of(matrix)
        return self.solved("triangular", matrix if factor is None else factor, right, turned)

    def solved(self, kind: MatrixKind, matrix: Nodes, right: Nodes, turned: bool) -> Nodes:
        """Return the solution of linear systems with a matrix, or with its transpose, as columns."""
        result = self.carried_out(MatrixOperation(kind, right.shape, (turned, False)), matrix, right.T)
        return result[0].reshape(right.shape[::-1]).T

    def determinant(self, matrix: Nodes) -> Nodes:
        """Return a determinant."""
        return self.carried_out(MatrixOperation("determinant", matrix.shape[:1]), matrix)[0].reshape(())

    def signed_log_determinant(self, matrix: Nodes) -> tuple[Nodes, Nodes]:
        """Return the logarithm of the absolute value of a determinant, and its sign."""
        logarithm, sign = self.carried_out(MatrixOperation("log_determinant", matrix.shape[:1]), matrix)
        return logarithm.reshape(()), sign.reshape(())

    def cholesky(self, matrix: Nodes) -> Nodes:
        """Return the lower factor of a matrix."""
        n = len(matrix)
        whole = self.carried_out(MatrixOperation("cholesky", (n,)), matrix)[0].reshape(n, n)
        lower = np.where(np.tri(n, dtype=bool), whole, self.scope.graph.number(0))
        self.factors[int(whole[0, 0])] = whole, lower
        return lower.copy()

    def factor_of(self, lower: Nodes) -> Nodes | None:
        """Return the whole result of the factorization that gave a matrix; None for other matrices."""
        whole, factor = self.factors.get(int(lower[0, 0]), (None, None))
        return whole if factor is not None and np.array_equal(factor, lower) else None

    def carried_out(self, operation: MatrixOperation, *operands: Nodes) -> list[Nodes]:
        """Return the flat results of an operation on whole matrices. Constants are passed as numbers."""
        sides = list(map(self.column, operands))
        values: list[NDArray[np.float64] | None] = [None if is_nodes(side) else cast(Any, side) for side in sides]
        key = operation, *(None if numbers is None else digest(numbers) for numbers in values)
        return self.block(key, lambda: matrix_program(operation, values), [side for side in sides if is_nodes(side)])

    def block(self, key: tuple[Any, ...], make: Callable[[], RolledProgram], arrays: Sequence[Nodes]) -> list[Nodes]:
        """Return the nodes of the outputs of a program between nodes."""
        graph, reads = self.scope.graph, tuple(nodes.flatten() for nodes in arrays)

        def new_block() -> Loop:
            if key not in self.programs:
                self.programs[key] = make()
            program = self.programs[key]
            outputs = [leaves(graph, output.size) for output in program.outputs]
            results = tuple(LoopResult(k, "each", nodes) for k, nodes in enumerate(outputs))
            return RolledBlock(NOTHING, 1, reads, results, origin=origin(), program=program)

        return [use.nodes.copy() for use in self.loop((*key, *map(digest, reads)), new_block).results]

    def moves(self, operands: Sequence[Nodes]) -> bool:
        """Whether operands are numbers or truth values, and not all of them constants."""
        kinds = set(map(self.kind, operands))
        return None not in kinds and kinds != {"constant"}

    def kind(self, nodes: Nodes) -> Kind | None:
        """Return what nodes are: "constant" where all of them are constants."""
        (kind,) = kinds_of(self.scope.graph, [nodes])
        if kind == "constant" and not are_constants(self.scope.graph, nodes):
            return "number"
        return kind

    def column(self, nodes: Nodes) -> Reads:
        """Return what a slot reads: nodes, or the numbers of constants, copied at this moment."""
        check_bytes(f"an array of {nodes.size:,} numbers", 8 * nodes.size, at_most=machine_memory())
        if not any(nodes.strides):
            return np.broadcast_to(nodes.flat[0], (nodes.size,))
        flat, lowest, highest = nodes.flatten(), int(nodes.min()), int(nodes.max())  # a copy: arrays are stored into
        for leaves_of, values in self.known.values():
            if lowest in leaves_of and highest in leaves_of:
                return values[flat - leaves_of.start]
        return flat

    def written(
        self, body: Program, columns: Sequence[Reads], kind: ResultKind, places: Nodes | None = None, looks: Any = None
    ) -> Nodes:
        """Record a loop of one result, and return its nodes: of "add" one for each of the places.

        `looks` is the key of the body, if it is known.
        """
        size, graph = len(columns[0]), self.scope.graph

        def new_loop() -> Loop:
            number = size if kind == "each" else 1 if places is None else int(places.max()) + 1
            nodes = leaves(graph, number)
            result = LoopResult(0, kind, nodes if places is None else nodes[places])
            return Loop(body, size, tuple(columns), (result,), origin=origin())

        key = looks or rows_of(body), size, tuple(map(digest, columns)), kind, places is not None and digest(places)
        return self.loop(key, new_loop).results[0].nodes.copy()

    def loop(self, key: Any, make: Callable[[], Loop]) -> Loop:
        """Return the loop with a key. Its nodes are copied for users, who may store into arrays."""
        for recorder in self.outwards():
            recorder.least, recorder.written_down = SMALL, recorder.written_down + 1
        return keep(self.scope, key, make)


@cache
def _one_after_the_other(build: Build) -> Build:
    return lambda graph, *operands: reduce(partial(build, graph), operands)


def _passed_on() -> Program:
    """Return the body whose result is its slot."""
    graph, (slot,) = slots_on(1)
    return program_of(graph, 1, slot)


def _by_rows(matrices: Nodes) -> tuple[Nodes, bool]:
    """Return matrices in the order in which their nodes were made (else that in memory); whether by columns."""
    turned = matrices.swapaxes(-1, -2)
    down, along = (usual_step(matrices, axis) for axis in (-2, -1))
    by_columns = down < along if down and along else turned.flags.c_contiguous and not matrices.flags.c_contiguous
    return (turned, True) if by_columns else (matrices, False)
