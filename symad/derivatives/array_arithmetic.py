"""What linear maps of whole arrays are carried out with: nodes of a graph, or numbers.

Nodes may be differentiated again. Where nothing will be, at the outside, NumPy carries numbers through the map, and the
graph does not grow. Both mark a structural zero as an element that is absent: no arithmetic is done with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

import symad.tracing.values.node_builders as op
from codegen.evaluation.matrix_numbers import matrix_numbers
from codegen.ir.matrix_operation import MatrixOperation
from symad.graph.builder import Builder
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.control.array_graph import LEAST
from symad.tracing.values.array import Array
from symad.tracing.values.node_arrays import accumulate, constants, elementwise, loops_on, matmul, reduce
from symad.tracing.values.node_operands import nodes_of

Carriers: TypeAlias = NDArray[Any]  # nodes, or numbers

_MARK = np.int64(0x7FF8_5A5A_0000_0001)  # the bits of a NaN that no operation makes


class Arithmetic(ABC):
    """Operations on arrays of nodes, or of numbers, in which every element is there."""

    absent: Any
    of_numbers: ClassVar[bool]  # arrays may be changed in place, and absent elements computed with and left out

    @abstractmethod
    def there(self, values: Carriers) -> NDArray[np.bool_]:
        """Return which elements are no structural zeros."""

    @abstractmethod
    def number(self, value: float) -> Carriers:
        """Return a number."""

    @abstractmethod
    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums."""

    @abstractmethod
    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        """Return products."""

    @abstractmethod
    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        """Return the sums along axes."""

    @abstractmethod
    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        """Return as many sums, to which each value is added at its place; every place has one."""

    @abstractmethod
    def running(self, terms: Carriers) -> Carriers:
        """Return the sums along the first axis, after each term."""

    @abstractmethod
    def product(self, left: Carriers, right: Carriers) -> Carriers:
        """Return products of matrices."""

    @abstractmethod
    def solution(self, matrix: Carriers, right: Carriers) -> Carriers:
        """Return the solutions of linear systems."""

    @abstractmethod
    def each(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        """Return a function of each element, in NumPy's words."""

    @abstractmethod
    def exponential(self, n: int, matrix: Carriers) -> Carriers:
        """Return the exponential of a matrix of n rows, flat."""

    @abstractmethod
    def known(self, numbers: NDArray[Any]) -> Carriers:
        """Return constants."""


class NodeArithmetic(Arithmetic):
    """Operations that add nodes to a graph: array nodes, where it has them."""

    absent = np.int64(-1)
    of_numbers = False

    def __init__(self, build: Builder) -> None:
        self.build, self.graph = build, build.graph

    def there(self, values: Carriers) -> NDArray[np.bool_]:
        """Return which elements are no structural zeros."""
        return np.asarray(values >= 0)

    def number(self, value: float) -> Carriers:
        """Return a number."""
        return np.array(self.build.number(value))

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums."""
        return elementwise(self.graph, op.add, left, right)

    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        """Return products."""
        if coefficient.size == 1 and int(coefficient.flat[0]) == self.build.one:
            return values
        return elementwise(self.graph, op.multiply, coefficient, values)

    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        """Return the sums along axes."""
        return reduce(self.graph, op.add, terms, axes)

    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        """Return as many sums, to which each value is added at its place."""
        if len(values) >= LEAST and self._adds_arrays():
            return self.graph.arrays.add("scatter", (count,), [values], places=places)
        found: list[int | None] = [None] * count
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            before = found[place]
            found[place] = value if before is None else self.build.add(before, value)
        return np.array(found, dtype=np.int64)

    def running(self, terms: Carriers) -> Carriers:
        """Return the sums along the first axis, after each term."""
        return accumulate(self.graph, op.add, terms, 0)

    def product(self, left: Carriers, right: Carriers) -> Carriers:
        """Return products of matrices."""
        return matmul(self.graph, left, right)

    def solution(self, matrix: Carriers, right: Carriers) -> Carriers:
        """Return the solutions of linear systems."""
        if self._adds_arrays():
            return self.graph.arrays.add("solve", right.shape, [matrix, right])
        scope = innermost_scope()
        assert scope is not None
        return nodes_of(np.linalg.solve(Array(matrix, scope), Array(right, scope)), scope)

    def each(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        """Return a function of each element."""
        scope = innermost_scope()
        assert scope is not None
        return nodes_of(function(*[Array(value, scope) for value in values]), scope)

    def exponential(self, n: int, matrix: Carriers) -> Carriers:
        """Return the exponential of a matrix."""
        return self.graph.arrays.factors(MatrixOperation("exponential", (n,)), matrix)[0]

    def known(self, numbers: NDArray[Any]) -> Carriers:
        """Return constants."""
        return constants(self.graph, numbers)

    def _adds_arrays(self) -> bool:
        writer = loops_on(self.graph)
        return writer is not None and writer.on_numbers


class NumberArithmetic(Arithmetic):
    """NumPy's operations."""

    absent = _MARK.view(np.float64)
    of_numbers = True

    def there(self, values: Carriers) -> NDArray[np.bool_]:
        """Return which elements are no structural zeros."""
        return np.asarray(np.asarray(values).view(np.int64) != _MARK)

    def number(self, value: float) -> Carriers:
        """Return a number."""
        return np.array(value)

    def plus(self, left: Carriers, right: Carriers) -> Carriers:
        """Return sums."""
        return np.asarray(np.add(left, right))

    def times(self, coefficient: Carriers, values: Carriers) -> Carriers:
        """Return products."""
        return np.asarray(np.multiply(coefficient, values))

    def total(self, terms: Carriers, axes: tuple[int, ...]) -> Carriers:
        """Return the sums along axes."""
        return np.asarray(np.add.reduce(terms, axis=axes))

    def scattered(self, values: Carriers, places: NDArray[np.int64], count: int) -> Carriers:
        """Return as many sums, to which each value is added at its place."""
        return np.bincount(places, values, count)

    def running(self, terms: Carriers) -> Carriers:
        """Return the sums along the first axis, after each term."""
        return np.asarray(np.add.accumulate(terms, axis=0))

    def product(self, left: Carriers, right: Carriers) -> Carriers:
        """Return products of matrices."""
        return np.asarray(np.matmul(left, right))

    def solution(self, matrix: Carriers, right: Carriers) -> Carriers:
        """Return the solutions of linear systems."""
        return np.linalg.solve(matrix, right)

    def each(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        """Return a function of each element."""
        return np.asarray(function(*values))

    def exponential(self, n: int, matrix: Carriers) -> Carriers:
        """Return the exponential of a matrix."""
        return matrix_numbers(MatrixOperation("exponential", (n,)), [matrix])[0]

    def known(self, numbers: NDArray[Any]) -> Carriers:
        """Return constants."""
        return numbers
