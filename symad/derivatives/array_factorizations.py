"""Linear-map rows of factorizations, by the rules that loops use too (`matrix_derivatives`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.ir.matrix_operation import MatrixOperation
from codegen.records import dataclass
from symad.derivatives.array_arithmetic import ArrayArithmetic, Carriers
from symad.derivatives.array_carried import Carried
from symad.derivatives.array_rows import ArrayRow
from symad.derivatives.matrix_algebra import Algebra, Places
from symad.derivatives.matrix_derivatives import pulled, pushed
from symad.derivatives.matrix_factors import has_equal_values
from symad.errors import RuleError
from symad.graph.array_operands import ArrayNode, OperandAccess, spread


@dataclass(frozen=True)
class MatrixRow(ArrayRow):
    """One result of an operation on whole matrices; `read` has the values that its rule reads."""

    target: ArrayNode
    operands: tuple[OperandAccess, ...]
    moves: tuple[bool, ...]  # whether each does
    read: tuple[Carriers, ...]

    def push(self, tangents: Carried) -> None:
        """Give the node its tangents."""
        moving = {k: its for k, operand in enumerate(self.operands) if (its := tangents.at(operand)) is not None}
        if moving and self.target.matrix is not None:
            tangents_in = {k: spread(tangents.filled(its), self.operands[k].shape).ravel() for k, its in moving.items()}
            number = self.target.number
            tangents_out = pushed(_Entries(tangents.by), self.target.matrix, self.read, tangents_in, [number])
            tangents.put(self.target, tangents_out[number])

    def pull(self, cotangents: Carried) -> None:
        """Give the operands what they have of the node's cotangents."""
        cotangent = cotangents.of(self.target)
        if cotangent is not None and self.target.matrix is not None:
            numbers = [k for k, moves in enumerate(self.moves) if moves]
            cotangents_out = {self.target.number: cotangents.filled(cotangent)}
            cotangents_in = pulled(_Entries(cotangents.by), self.target.matrix, self.read, cotangents_out, numbers)
            for k, (values, places) in cotangents_in.items():
                whole = np.full(self.operands[k].shape, cotangents.by.absent)
                whole.reshape(-1)[places] = values
                cotangents.add(self.operands[k], whole)

    def coefficients(self) -> list[Carriers]:
        """Return what the row multiplies by."""
        return list(self.read)

    def with_coefficients(self, coefficients: Iterator[Carriers]) -> ArrayRow:
        """Return the row with others."""
        return replace(self, read=tuple([next(coefficients) for _ in self.read]))


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
        return self.by.product(first, second).ravel()

    def each(self, function: Callable[..., Any], *values: Carriers) -> Carriers:
        return self.by.each(function, *values)

    def picked(self, value: Carriers, places: Places) -> Carriers:
        return value[places]

    def known(self, numbers: NDArray[Any]) -> Carriers:
        return self.by.known(numbers)

    def joined(self, values: Sequence[Carriers]) -> Carriers:
        return np.concatenate(values)

    def size(self, value: Carriers) -> int:
        return value.size
