"""Tangents and cotangents of all matrix operations but products."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import symad.derivatives.matrix_algebra as algebra
import symad.derivatives.matrix_factors as factors
from codegen.ir.matrix_operation import MatrixKind, MatrixOperation
from symad.derivatives.matrix_algebra import Algebra, Places, Value

Part = TypeVar("Part")

# Kinds whose rules read the first operand
_OF_OPERANDS: tuple[MatrixKind, ...] = ("solve", "triangular", "determinant", "log_determinant", "exponential")
_OF_RESULTS = frozenset({"log_determinant", "exponential"})  # whose rules read no result


def values_read(operation: MatrixOperation, operands: Sequence[Part], results: Sequence[Part]) -> list[Part]:
    """Return those of operands and results that the rule of an operation reads, in its order."""
    first = [operands[0]] if operation.kind in _OF_OPERANDS else []
    return [*first, *(() if operation.kind in _OF_RESULTS else results)]


def pushed(
    by: Algebra[Value],
    operation: MatrixOperation,
    read: Sequence[Value],
    tangents: Mapping[int, Value],
    targets: Collection[int],
) -> dict[int, Value]:
    """Return the tangents of some results, by their numbers, from those of operands."""
    if len(operation.operands) > 1:
        return {0: algebra.solution_forward(by, operation, read, tangents)}
    tangents_out: dict[int, Value] = _FORWARD[operation.kind](by, operation, read, tangents[0], targets)
    return tangents_out


def pulled(
    by: Algebra[Value],
    operation: MatrixOperation,
    read: Sequence[Value],
    cotangents: Mapping[int, Value],
    targets: Collection[int],
) -> dict[int, tuple[Value, Places]]:
    """Return the cotangents of some operands, by their numbers, and which of their entries have these."""
    if len(operation.operands) > 1:
        return algebra.solution_backward(by, operation, read, cotangents[0], targets)
    return {0: _BACKWARD[operation.kind](by, operation, read, cotangents)}


_FORWARD: dict[MatrixKind, Callable[..., Any]] = {
    "qr": factors.qr_forward, "eigen": factors.eigen_forward, "singular": factors.singular_forward,
    "determinant": algebra.determinant_forward, "log_determinant": algebra.determinant_forward,
    "cholesky": algebra.cholesky_forward, "exponential": algebra.exponential_forward,
}  # fmt: skip
_BACKWARD: dict[MatrixKind, Callable[..., Any]] = {
    "qr": factors.qr_backward, "eigen": factors.eigen_backward, "singular": factors.singular_backward,
    "determinant": algebra.determinant_backward, "log_determinant": algebra.determinant_backward,
    "cholesky": algebra.cholesky_backward, "exponential": algebra.exponential_backward,
}  # fmt: skip
