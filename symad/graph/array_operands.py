"""Operands of array operations: where in an array node the elements are.

An operand is an array of node ids that is not broadcast. Its `OperandAccess` says where the values of these nodes are:
in one array node (a view of its values, or places in it), in several, or among single nodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any, Literal, TypeAlias

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation
from codegen.ir.program import Head
from codegen.records import dataclass

Nodes: TypeAlias = NDArray[np.int64]
Question: TypeAlias = Callable[[NDArray[Any]], Any]  # a question about numbers
Asked: TypeAlias = tuple[
    Nodes, Question | None, NDArray[Any]
]  # nodes, the question about their numbers, and the answer


class Element(sp.Expr):  # type: ignore[misc]
    """The head of a node that is an element of an array node."""


class TruthElement(sp.logic.boolalg.Boolean):  # type: ignore[misc]
    """The head of a truth value that is an element of an array node."""


@dataclass(eq=False, slots=True)
class View:
    """Where an array of nodes is in the values of one array node: from `offset` on, in steps; a copy has `places`."""

    node: ArrayNode
    offset: int
    steps: tuple[int, ...]
    places: Nodes | None = None
    whole: bool = False  # all of them, in their order

    def of(self, values: NDArray[Any], shape: tuple[int, ...], columns: tuple[int, ...] = ()) -> NDArray[Any]:
        """Return these elements, in the shape of the operand, of flat values of the array node.

        With `columns` each element has as many values, along the last axis.
        """
        if self.whole:
            return values.reshape(shape + columns)
        if self.places is not None:
            return values[self.places]
        size = values.itemsize * math.prod(columns)
        steps = [step * size for step in self.steps] + [values.itemsize] * len(columns)
        return np.ndarray(shape + columns, values.dtype, values, self.offset * size, tuple(steps))

    def ids(self, shape: tuple[int, ...]) -> Nodes:
        """Return the nodes of these elements."""
        if self.places is not None:
            return self.places + self.node.first
        if self.whole:
            return self.node.ids.reshape(shape)
        ids = np.array(self.node.first + self.offset)
        for step, n in zip(self.steps, shape, strict=True):
            ids = ids[..., None] + step * np.arange(n)
        return ids

    def is_distinct(self, shape: tuple[int, ...]) -> bool:
        """Whether no element can be there twice; of a copy it is not known."""
        if self.whole:
            return True
        if self.places is not None:
            return False
        span = 0
        for step, n in sorted((abs(step), n) for step, n in zip(self.steps, shape, strict=True) if n > 1):
            if step <= span:
                return False
            span += step * (n - 1)
        return True


@dataclass(eq=False, slots=True)
class OperandPart:
    """Which elements of an operand are in an array node, and which ones there."""

    node: ArrayNode
    where: Nodes  # in the flat operand
    places: Nodes  # in the flat values of the array node
    spans: tuple[slice, slice] | None = None  # the same, where both are one after the other


@dataclass(eq=False, slots=True)
class Singles:
    """Which elements of an operand are nodes of no array node: the different ones of these, and which each is."""

    nodes: list[int]
    where: Nodes  # in the flat operand
    numbers: Nodes  # in `nodes`


class OperandAccess:
    """An operand: its shape, and where the values of its nodes are.

    `view` is set for nodes of one array node; else `parts` are those in array nodes, and `singles` the others. `kept`
    is the shape of the access: 1 along broadcast axes.
    """

    __slots__ = ("_ids", "kept", "parts", "shape", "singles", "size", "view")

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    size: int
    view: View | None
    parts: tuple[OperandPart, ...]
    singles: Singles | None

    def __init__(
        self,
        shape: tuple[int, ...],
        kept: tuple[int, ...],
        view: View | None = None,
        parts: tuple[OperandPart, ...] = (),
        singles: Singles | None = None,
        ids: Nodes | None = None,
    ) -> None:
        self.shape, self.kept, self.size = shape, kept, math.prod(kept)
        self.view, self.parts, self.singles, self._ids = view, parts, singles, ids

    @property
    def ids(self) -> Nodes:
        """The nodes that are read."""
        if self._ids is None:
            assert self.view is not None
            self._ids = self.view.ids(self.kept)
        return self._ids

    @property
    def array_nodes(self) -> list[ArrayNode]:
        """The array nodes that have some of its values."""
        if self.view is not None:
            return [self.view.node]
        return [part.node for part in self.parts]

    @property
    def single_nodes(self) -> list[int]:
        """The nodes that are no elements."""
        return [] if self.singles is None else self.singles.nodes

    @property
    def only(self) -> int | None:
        """The node, where it is one alone and no element."""
        return self.singles.nodes[0] if self.size == 1 and self.singles is not None else None

    def same_as(self, other: OperandAccess) -> bool:
        """Whether it has the same nodes as another one, in the same shape."""
        if self is other:
            return True
        if self.kept != other.kept:
            return False
        if self.view is not None and other.view is not None:
            view, two = self.view, other.view
            if view.node is not two.node:
                return False
            if view.places is None and two.places is None:
                return (view.whole, view.offset, view.steps) == (two.whole, two.offset, two.steps)
        if (self.view is None) != (other.view is None):
            return False
        return np.array_equal(self.ids, other.ids)


Kind: TypeAlias = Literal[
    "each", "sum", "extremum", "running", "product", "scatter", "given", "matrix", "result",
    "add", "multiply", "total", "present", "there", "plus", "times", "settled", "shares",
]  # fmt: skip


@dataclass(eq=False, slots=True)
class ArrayNode:
    """One operation on arrays: the nodes of its result are those from `first` on, in C order.

    "each": `head` of the elements of operands that broadcast to the shape. "sum", "extremum" (`head` is Max, Min, And
    or Or) and "running" (sums): along the first axis of one operand. "product": of two stacks of matrices.
    "scatter": sums of the elements of one operand, each added at its one of `places`. "given": numbers, or
    truth values.
    "matrix": an operation on a whole `matrix`; all results of one that has several, side by side, without derivatives.
    "result": one of these, `number`, which has some; it reads the operands, then the whole. `results` are the first
    nodes of all results.
    Without derivatives: "add" and "multiply", each rounded for itself; "total": the sums along the axes `places`;
    "present", "there", "plus", "times", "settled", "shares": what `absent_numbers` computes.
    """

    kind: Kind
    shape: tuple[int, ...]  # of its result
    element: Head  # the head of the nodes of its result; of numbers, that of most
    operands: tuple[OperandAccess, ...] = ()
    head: Head | None = None
    places: Nodes | None = None
    numbers: NDArray[np.float64 | np.bool_] | None = None
    matrix: MatrixOperation | None = None
    number: int = 0
    results: tuple[int, ...] = ()
    first: int = -1  # of the nodes of its result
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = math.prod(self.shape)

    @property
    def ids(self) -> Nodes:
        """The nodes of its result."""
        return np.arange(self.first, self.first + self.size).reshape(self.shape)


def spread(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return `np.broadcast_to(values, shape)`; values that have the shape, as they are."""
    return values if values.shape == shape else np.broadcast_to(values, shape)


def result_of(node: ArrayNode) -> OperandAccess:
    """Return all elements of an array node as an operand."""
    return OperandAccess(node.shape, node.shape, View(node, 0, (), None, True))
