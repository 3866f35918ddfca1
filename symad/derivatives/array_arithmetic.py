"""The arithmetic behind linear maps of whole arrays: on nodes of a graph, or on numbers.

Nodes may be differentiated again; numbers may not, but leave the graph as it is. In both, a structural zero is an
absent element, with which nothing is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from codegen.evaluation.matrix_numbers import existing_numbers
from codegen.ir.matrix_operation import MatrixOperation
from symad.graph.absent_numbers import ABSENT, there
from symad.graph.array_operands import ArrayNode, Kind, OperandAccess, result_of
from symad.graph.builder import Builder
from symad.graph.graph import Graph
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.array_graph import LEAST
from symad.tracing.values.array import Array
from symad.tracing.values.node_arrays import accumulate, constants, elementwise, loops_on, matmul, reduce
from symad.tracing.values.node_operands import nodes_of

Carriers: TypeAlias = NDArray[Any]  # nodes, or numbers


class Columns:
    """Carriers of one value for each element, or of k: then `columns` is (k,), and their last axis has these."""

    columns: tuple[int, ...] = ()

    def over(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return something that elements have, to be broadcast over the columns."""
        return array[..., None] if self.columns else array

    def product(self, left: Carriers, right: Carriers, carried: Literal["left", "right"]) -> Carriers:
        """Return products of matrices, of which one has columns: a single product for all of them."""
        if not self.columns:
            return self.matmul(left, right)
        if carried == "left":
            turned = self.product(np.swapaxes(right, -1, -2), np.swapaxes(left, -2, -3), "right")
            return np.swapaxes(turned, -2, -3)
        side_by_side = self.matmul(left, right.reshape(*right.shape[:-2], -1))
        return side_by_side.reshape(*side_by_side.shape[:-1], *right.shape[-2:])

    def matmul(self, left: Carriers, right: Carriers) -> Carriers:
        """Return products of matrices."""
        raise NotImplementedError


class NodeArithmetic(Columns):
    """Operations that add nodes to a graph: array nodes, where it has them."""

    absent: Any = np.int64(-1)
    of_numbers = False  # else arrays may be changed in place, and absent elements computed with and left out

    def __init__(self, build: Builder, columns: tuple[int, ...] = ()) -> None:
        self.build: Builder = build
        self.graph: Graph = build.graph
        self.columns = columns

    def there(self, values: Carriers) -> NDArray[np.bool_]:
        """Return which elements are no structural zeros."""
        return np.asarray(values >= 0)

    def number(self, value: float) -> Carriers:
        """Return a number."""
        return np.array(self.build.number(value))

    def settled(self, values: Carriers) -> Carriers:
        """Return values of which none is a structural zero by its place, as the number 0 where it is one by number."""
        return values

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums."""
        return elementwise(self.graph, op.add, left, right)

    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        """Return products."""
        return elementwise(self.graph, op.multiply, coefficient, values)

    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        """Return the sums along axes."""
        return reduce(self.graph, op.add, terms, axes)

    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        """Return as many sums, to which each value of a vector is added at its place; every place has one."""
        writer = loops_on(self.graph)
        if len(values) >= LEAST and writer is not None and writer.on_numbers:
            return self.graph.arrays.add("scatter", (count,), [values], places=places)
        sums: list[int | None] = [None] * count
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            before = sums[place]
            sums[place] = value if before is None else self.build.add(before, value)
        return np.array(sums, dtype=np.int64)

    def running(self, terms: Carriers) -> Carriers:
        """Return the sums along the first axis, after each term."""
        return accumulate(self.graph, op.add, terms, 0)

    def matmul(self, left: Carriers, right: Carriers) -> Carriers:
        return matmul(self.graph, left, right)

    def carried_out(self, operation: MatrixOperation, operands: Sequence[Carriers]) -> Carriers:
        """Return the only result of an operation on whole matrices, flat."""
        return self.graph.arrays.matrices(operation, operands)[0]

    def map(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        """Return a function of each element, in NumPy's words."""
        scope = innermost_scope()
        assert scope is not None
        return nodes_of(function(*[Array(value, scope) for value in values]), scope)

    def known(self, numbers: NDArray[Any]) -> Carriers:
        """Return constants."""
        return constants(self.graph, numbers)


class GuardedArithmetic(NodeArithmetic):
    """Operations that add nodes whose numbers may turn out to be absent (`absent_numbers`), where a guard fails."""

    def __init__(self, build: Builder) -> None:
        super().__init__(build)
        self._guarded = set[int]()  # array nodes, by their first, of which some numbers may be absent

    def present(self, guard: Carriers, values: Carriers) -> Carriers:
        """Return values where a guard holds, absent elsewhere."""
        return self._add("present", np.broadcast_shapes(guard.shape, values.shape), guard, values)

    def shares(self, terms: OperandAccess, array: ArrayNode) -> Carriers:
        """Return by how much each term counts for the extremum that an array node is."""
        shares = self.graph.arrays.add("shares", terms.shape, [terms, result_of(array)], head=array.head)
        return self._noted(shares)

    def settled(self, values: Carriers) -> Carriers:
        """Return values with the number 0 for absent elements."""
        return self.graph.arrays.add("settled", values.shape, [values]) if self._may_lack(values) else values

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        lacks = self._may_lack(left), self._may_lack(right)
        kind: Kind = "plus" if any(lacks) else "add"
        total = self.graph.arrays.add(kind, np.broadcast_shapes(left.shape, right.shape), [left, right])
        return self._noted(total) if all(lacks) else total

    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        if coefficient.size == 1 and int(coefficient.flat[0]) == self.build.one:
            return values
        shape = np.broadcast_shapes(coefficient.shape, values.shape)
        if not (self._may_lack(coefficient) or self._may_lack(values)):
            if not any(values.strides) and values.size and int(values.flat[0]) == self.build.one:  # a seed, spread
                return np.broadcast_to(coefficient, shape)
            return self.graph.arrays.add("multiply", shape, [coefficient, values])
        return self._add("times", shape, coefficient, values)

    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        kept = tuple([n for k, n in enumerate(terms.shape) if k not in axes])
        return self._added(terms, lambda part: self.graph.arrays.add("total", kept, [part], places=np.array(axes)))

    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        return self._added(values, lambda values: super(GuardedArithmetic, self).scattered(values, places, count))

    def _added(self, values: Carriers, add: Callable[[Carriers], Carriers]) -> Carriers:
        """Return sums of the elements that are present; absent where none is."""
        if not self._may_lack(values):
            return add(values)
        counts = add(self.graph.arrays.add("there", values.shape, [values]))
        return self.present(counts, add(self.settled(values)))

    def _add(self, kind: Kind, shape: tuple[int, ...], *operands: Carriers) -> Carriers:
        return self._noted(self.graph.arrays.add(kind, shape, operands))

    def _noted(self, result: Carriers) -> Carriers:
        self._guarded.add(int(result.flat[0]))
        return result

    def _may_lack(self, values: Carriers) -> bool:
        if not (self._guarded and values.size):
            return False
        return any(node.first in self._guarded for node in self.graph.arrays.reading(values).array_nodes)


class NumberArithmetic(Columns):
    """The same by NumPy."""

    absent: Any = ABSENT
    of_numbers = True

    def __init__(self, columns: tuple[int, ...] = ()) -> None:
        self.columns = columns

    def there(self, values: Carriers) -> NDArray[np.bool_]:
        return there(values)

    def number(self, value: float) -> Carriers:
        return np.array(value)

    def settled(self, values: Carriers) -> Carriers:
        return values

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        return np.asarray(np.add(left, right))

    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        return np.asarray(np.multiply(coefficient, values))

    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        return np.asarray(np.add.reduce(terms, axis=axes))

    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        return np.bincount(places, values, count)

    def running(self, terms: Carriers) -> Carriers:
        return np.asarray(np.add.accumulate(terms, axis=0))

    def matmul(self, left: Carriers, right: Carriers) -> Carriers:
        return np.asarray(np.matmul(left, right))

    def carried_out(self, operation: MatrixOperation, operands: Sequence[Carriers]) -> Carriers:
        return existing_numbers(operation, operands)[0]

    def map(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        return np.asarray(function(*values))

    def known(self, numbers: NDArray[Any]) -> Carriers:
        return numbers


ArrayArithmetic: TypeAlias = NodeArithmetic | NumberArithmetic
