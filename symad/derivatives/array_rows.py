"""The action of array nodes on tangents, and of their transposes on cotangents."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation
from codegen.records import dataclass
from symad.derivatives.array_arithmetic import ArrayArithmetic, Carriers
from symad.derivatives.array_carried import Carried
from symad.derivatives.matrix_algebra import Algebra, Places
from symad.derivatives.matrix_factors import has_equal_values, pulled, pushed
from symad.errors import RuleError
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess


class ArrayRow(ABC):
    """A row of the linear map: pushes tangents of the operands to the target, and pulls its cotangents back.

    `MULTIPLIERS` names the fields with coefficients; such a field may be None.
    """

    MULTIPLIERS: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""

    @abstractmethod
    def pull(self, cotangents: Carried) -> None:
        """Add the node's cotangents to those of the operands."""

    def coefficients(self) -> list[Carriers]:
        """Return the coefficients of the row."""
        return [getattr(self, name) for name in self._multipliers]

    def with_coefficients(self, coefficients: Iterator[Carriers]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, **{name: next(coefficients) for name in self._multipliers})  # type: ignore[type-var]

    @property
    def _multipliers(self) -> list[str]:
        return [name for name in self.MULTIPLIERS if getattr(self, name) is not None]


@dataclass(frozen=True)
class ArrayEdge:
    """Edges of the elements of an array node, or of those where `holds`: `coefficient` (None: 1) times `source`."""

    coefficient: Carriers | None
    source: OperandAccess
    holds: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class EachRow(ArrayRow):
    """The edges of an operation on each element."""

    target: ArrayNode
    edges: tuple[ArrayEdge, ...]

    def push(self, tangents: Carried) -> None:
        for edge in self.edges:
            complete = tangents.is_complete(edge.source)
            terms = tangents.times(edge.coefficient, tangents.at(edge.source), self.target.shape, complete=complete)
            if edge.holds is not None:
                terms, complete = tangents.where(edge.holds, terms), False
            tangents.put(self.target, terms, complete=complete)

    def pull(self, cotangents: Carried) -> None:
        complete = self.target.first not in cotangents.partial
        for edge in self.edges:
            cotangent = cotangents.of(self.target)
            terms = cotangents.times(edge.coefficient, cotangent, self.target.shape, complete=complete)
            if edge.holds is not None:
                terms = cotangents.where(edge.holds, terms)
            cotangents.add(edge.source, terms, complete=complete and edge.holds is None)

    def coefficients(self) -> list[Carriers]:
        return [edge.coefficient for edge in self.edges if edge.coefficient is not None]

    def with_coefficients(self, coefficients: Iterator[Carriers]) -> ArrayRow:
        edges = self.edges
        return replace(
            self, edges=tuple(e if e.coefficient is None else replace(e, coefficient=next(coefficients)) for e in edges)
        )


@dataclass(frozen=True)
class SingleRow(ArrayRow):
    """A node that is no element, with its edges; an operand may be an element."""

    target: int
    edges: tuple[tuple[Carriers | None, int | OperandAccess], ...]  # coefficient, source

    def push(self, tangents: Carried) -> None:
        for coefficient, source in self.edges:
            value = tangents.singles.get(source) if isinstance(source, int) else tangents.at(source)
            if value is not None:
                tangents.put_single(self.target, tangents.scaled(coefficient, value))

    def pull(self, cotangents: Carried) -> None:
        value = cotangents.singles.get(self.target)
        if value is not None:
            for coefficient, source in self.edges:
                scaled = cotangents.scaled(coefficient, value)
                if isinstance(source, int):
                    cotangents.put_single(source, scaled)
                else:
                    cotangents.add(source, scaled)

    def coefficients(self) -> list[Carriers]:
        return [coefficient for coefficient, _ in self.edges if coefficient is not None]

    def with_coefficients(self, coefficients: Iterator[Carriers]) -> ArrayRow:
        return SingleRow(self.target, tuple([(None if c is None else next(coefficients), s) for c, s in self.edges]))


@dataclass(frozen=True)
class SumRow(ArrayRow):
    """Sums along the first axis."""

    target: ArrayNode
    terms: OperandAccess

    def push(self, tangents: Carried) -> None:
        values = tangents.at(self.terms)
        if values is not None:
            complete = tangents.is_complete(self.terms)
            total = tangents.summed(tangents.spread(values, self.terms.shape), complete=complete)
            tangents.put(self.target, total, complete=complete)

    def pull(self, cotangents: Carried) -> None:
        cotangent = cotangents.of(self.target)
        if cotangent is not None:
            complete = self.target.first not in cotangents.partial
            cotangents.add(self.terms, cotangents.spread(cotangent, self.terms.shape), complete=complete)


@dataclass(frozen=True)
class ExtremumRow(ArrayRow):
    """The largest or smallest elements along the first axis: `shares` are the weights of the terms.

    A term where `holds` is false is a structural zero; without `holds`, the numbers of `shares` decide.
    """

    MULTIPLIERS: ClassVar[tuple[str, ...]] = ("shares",)
    target: ArrayNode
    terms: OperandAccess
    shares: Carriers | None  # 1
    holds: NDArray[np.bool_] | None = None

    def push(self, tangents: Carried) -> None:
        shared = self._shared(tangents, tangents.at(self.terms))
        tangents.put(self.target, tangents.summed(shared))

    def pull(self, cotangents: Carried) -> None:
        cotangents.add(self.terms, self._shared(cotangents, cotangents.of(self.target)))

    def _shared(self, carried: Carried, values: Carriers | None) -> Carriers | None:
        shared = carried.times(self.shares, values, self.terms.shape)
        return shared if self.holds is None else carried.where(self.holds, shared)


@dataclass(frozen=True)
class RunningRow(ArrayRow):
    """Running sums along the first axis; those of cotangents run back."""

    target: ArrayNode
    terms: OperandAccess

    def push(self, tangents: Carried) -> None:
        tangents.put(self.target, self._running(tangents, tangents.at(self.terms), 1))

    def pull(self, cotangents: Carried) -> None:
        cotangents.add(self.terms, self._running(cotangents, cotangents.of(self.target), -1))

    def _running(self, carried: Carried, values: Carriers | None, step: int) -> Carriers | None:
        if values is None:
            return None
        return carried.by.running(carried.spread(carried.filled(values), self.target.shape)[::step])[::step]


@dataclass(frozen=True)
class ScatterRow(ArrayRow):
    """Sums to which each term is added at its place."""

    target: ArrayNode
    terms: OperandAccess
    places: Nodes

    def push(self, tangents: Carried) -> None:
        values = tangents.at(self.terms)
        if values is not None:
            values = tangents.spread(values, self.places.shape)
            there = tangents.present(values)
            different, numbers = np.unique(self.places[there], return_inverse=True)
            tangents.put_some(self.target, tangents.scattered(values[there], numbers, len(different)), different)

    def pull(self, cotangents: Carried) -> None:
        cotangent = cotangents.of(self.target)
        cotangents.add(self.terms, None if cotangent is None else cotangents.flat(cotangent)[self.places])


@dataclass(frozen=True)
class ProductRow(ArrayRow):
    """Products of matrices: the tangents of one side with the value of the other, where that side `moves`."""

    MULTIPLIERS: ClassVar[tuple[str, ...]] = ("left", "right")
    target: ArrayNode
    sides: tuple[OperandAccess, OperandAccess]
    left: Carriers | None  # where the right side moves
    right: Carriers | None

    def push(self, tangents: Carried) -> None:
        left, right = map(tangents.at, self.sides)
        every = (slice(None),) * len(tangents.by.columns)
        if left is not None and self.right is not None:
            left = tangents.spread(left, self.sides[0].shape)
            inner = self._inner(tangents, self.sides[0], left, -1)
            moved = tangents.filled(left[(..., inner, *every)])
            product = tangents.by.product(moved, self.right[..., inner, :], "left")
            tangents.put(self.target, product, complete=True)
        if right is not None and self.left is not None:
            right = tangents.spread(right, self.sides[1].shape)
            inner = self._inner(tangents, self.sides[1], right, -2)
            moved = tangents.filled(right[(..., inner, slice(None), *every)])
            product = tangents.by.product(self.left[..., inner], moved, "right")
            tangents.put(self.target, product, complete=True)

    def _inner(self, tangents: Carried, side: OperandAccess, values: Carriers, axis: int) -> Nodes | slice:
        """Return the terms in which any tangent is present."""
        if tangents.is_complete(side) or (there := tangents.present(values)).all():
            return slice(None)
        return np.flatnonzero(there.any(axis=tuple(k for k in range(there.ndim) if k != there.ndim + axis)))

    def pull(self, cotangents: Carried) -> None:
        own, by = cotangents.of(self.target), cotangents.by
        if own is None:
            return
        own = cotangents.filled(own, complete=self.target.first not in cotangents.partial)
        if self.right is not None:
            cotangents.add(self.sides[0], by.product(own, np.swapaxes(self.right, -1, -2), "left"), complete=True)
        if self.left is not None:
            cotangents.add(self.sides[1], by.product(np.swapaxes(self.left, -1, -2), own, "right"), complete=True)


@dataclass(frozen=True)
class MatrixRow(ArrayRow):
    """One result of an operation on whole matrices; `read` has the values that its rule reads."""

    target: ArrayNode
    operands: tuple[OperandAccess, ...]
    moves: tuple[bool, ...]  # whether each does
    read: tuple[Carriers, ...]

    def push(self, tangents: Carried) -> None:
        moving = {k: its for k, operand in enumerate(self.operands) if (its := tangents.at(operand)) is not None}
        if moving and (operation := self.target.matrix) is not None:
            shapes = {k: self.operands[k].shape for k in moving}
            tangents_in = {k: tangents.flat(tangents.spread(tangents.filled(v), shapes[k])) for k, v in moving.items()}
            entries, number = _Entries(tangents.by), self.target.number
            given = _by_column(tangents.by, tangents_in)
            images = [pushed(entries, operation, self.read, its, [number])[number] for its in given]
            values = np.stack(images, axis=-1) if tangents.by.columns else images[0]
            tangents.put(self.target, values)

    def pull(self, cotangents: Carried) -> None:
        cotangent = cotangents.of(self.target)
        if cotangent is not None and (operation := self.target.matrix) is not None:
            numbers = [k for k, moves in enumerate(self.moves) if moves]
            entries, given = _Entries(cotangents.by), {self.target.number: cotangents.filled(cotangent)}
            images = [pulled(entries, operation, self.read, its, numbers) for its in _by_column(cotangents.by, given)]
            for k, (values, places) in images[0].items():
                whole = cotangents.absent(*self.operands[k].shape)
                all_values = np.stack([its[k][0] for its in images], axis=-1) if cotangents.by.columns else values
                whole.reshape(-1, *cotangents.by.columns)[places] = all_values
                cotangents.add(self.operands[k], whole)

    def coefficients(self) -> list[Carriers]:
        return list(self.read)

    def with_coefficients(self, coefficients: Iterator[Carriers]) -> ArrayRow:
        return replace(self, read=tuple([next(coefficients) for _ in self.read]))


def _by_column(by: ArrayArithmetic, carried: dict[int, Carriers]) -> list[dict[int, Carriers]]:
    """Return the values of each column alone, as the rules of matrices read them."""
    if not by.columns:
        return [carried]
    numbers = range(*by.columns)
    return [{k: np.ascontiguousarray(values[..., n]) for k, values in carried.items()} for n in numbers]


def check_values(operation: MatrixOperation, values: NDArray[np.float64]) -> None:
    """Raise RuleError where vectors of equal eigenvalues or singular values are to be differentiated."""
    if has_equal_values(operation, values):
        eigen = operation.kind == "eigen"
        name, kind = ("eigenvectors", "eigenvalues") if eigen else ("singular vectors", "singular values")
        raise RuleError(
            f"the derivative of the {name} of a matrix",
            why=f"some of its {kind} are equal{'' if eigen else ', or 0'}, to the last digits: these vectors have none",
            do=f"take first derivatives of the {kind} only, or write the function without them: by traces, "
            "determinants, powers of the matrix",
        )


class _Entries(Algebra[Carriers]):
    """Operations on flat arrays of nodes, or of numbers."""

    def __init__(self, by: ArrayArithmetic) -> None:
        self.by = by

    def run(self, operation: MatrixOperation, operands: Sequence[Carriers]) -> Carriers:
        if operation.kind != "product":
            return self.by.carried_out(operation, operands)
        (_, rows, inner, columns), turned, (left, right) = operation.sizes, operation.transposed, operands
        first = left.reshape(inner, rows).T if turned[0] else left.reshape(rows, inner)
        second = right.reshape(columns, inner).T if turned[1] else right.reshape(inner, columns)
        return self.by.matmul(first, second).ravel()

    def map(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        return self.by.map(function, *values)

    def picked(self, value: Carriers, places: Places) -> Carriers:
        return value[places]

    def known(self, numbers: NDArray[Any]) -> Carriers:
        return self.by.known(numbers)

    def joined(self, values: Sequence[Carriers]) -> Carriers:
        return np.concatenate(values)

    def size(self, value: Carriers) -> int:
        return value.size
