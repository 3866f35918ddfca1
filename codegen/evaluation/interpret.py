"""Interpreter: evaluates rows one by one, in floats or at high precision; no compiler, no recursion."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.errors import ArgumentError, LimitError
from codegen.evaluation.constant_folding import ANY_SIZE, LARGEST_OPERAND, leaf_constant, precise, to_float
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.functions.reference_functions import precision
from codegen.ir.program import Head, Rows

NUMBERS: dict[Head, Callable[..., Any]] = {head: row.number for head, row in INTRINSICS.items()}
PAIRS: dict[Head, Callable[[Any, Any], Any]] = {
    **{head: row.number for head, row in INTRINSICS.items()}, sp.Add: operator.add, sp.Mul: operator.mul,
}  # fmt: skip
REFERENCES: dict[Head, Callable[..., Any]] = {head: row.reference for head, row in INTRINSICS.items()}


def evaluate(
    rows: Rows, wanted: Sequence[int], values: dict[int, Any], arithmetic: str = "float64", digits: int = 50
) -> list[Any]:
    """Return the values of the wanted rows; `values` (row -> number) holds the inputs and is filled further.

    Only rows that are needed and not yet in `values` are visited, so a growing graph is evaluated step by step.
    `arithmetic="reference"` works with mpmath at `digits` decimal digits (give the inputs as exact numbers). A
    Piecewise evaluates all its branches. UnboundSymbolError for a symbol without a value, LoweringError for a head
    without a row in the table of intrinsics, LimitError for a function of a number beyond 2**65536 (reference only).

    >>> from codegen.ir.program import Input, Output, Program
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), (Output((), (1,)),))
    >>> evaluate(square, [1], {0: 3.0})
    [9.0]
    """
    if arithmetic not in ("float64", "reference"):
        raise ArgumentError(f"arithmetic={arithmetic!r}", do='use "float64" or "reference"')
    order = _needed(rows, wanted, values)
    if arithmetic == "float64":
        _evaluate_floats(rows, order, values)
    else:
        with precision(digits):
            _evaluate_reference(rows, order, values, digits)
    return [values[row] for row in wanted]


def _needed(rows: Rows, wanted: Sequence[int], values: dict[int, Any]) -> list[int]:
    """Rows to compute, ascending (topological); only these are touched."""
    operands = rows.operands
    needed = {row for row in wanted if row not in values}
    stack = list(needed)
    while stack:
        for operand in operands[stack.pop()]:
            if operand not in values and operand not in needed:
                needed.add(operand)
                stack.append(operand)
    return sorted(needed)


def _evaluate_floats(rows: Rows, order: list[int], values: dict[int, Any]) -> None:
    operands, heads, pairs = rows.operands, rows.heads, PAIRS
    for row in order:
        parts = operands[row]
        try:
            if len(parts) == 2:
                left, right = parts
                if heads[row] is sp.Mul and (heads[right] is sp.Pow or heads[left] is sp.Pow):
                    values[row] = _product(rows, left, right, values)
                else:
                    values[row] = pairs[heads[row]](values[left], values[right])
            elif len(parts) == 1:
                values[row] = NUMBERS[heads[row]](values[parts[0]])
            elif parts:
                values[row] = NUMBERS[heads[row]](*[values[part] for part in parts])
            else:
                values[row] = leaf_number(rows.atoms[row])
        except KeyError:
            intrinsic(heads[row])  # names the head that has no row
            raise


def _product(rows: Rows, left: int, right: int, values: dict[int, Any]) -> Any:
    """Return a product with a power; u * v**-1 is the quotient u / v, which is rounded once."""
    for power, other in ((right, left), (left, right)):
        if rows.heads[power] is sp.Pow:
            base, exponent = rows.operands[power]
            if rows.atoms.get(exponent) is sp.S.NegativeOne and values.get(base):
                return values[other] / values[base]
    return values[left] * values[right]


def leaf_number(atom: sp.Basic) -> float | bool:
    """Return a leaf as a machine number or a truth value."""
    constant = leaf_constant(atom)
    return constant if isinstance(constant, bool) else to_float(constant)


def _evaluate_reference(rows: Rows, order: list[int], values: dict[int, Any], digits: int) -> None:
    operands, heads = rows.operands, rows.heads
    for row in order:
        parts = operands[row]
        if parts:
            if heads[row] not in REFERENCES:
                intrinsic(heads[row])
            numbers = [_high_precision(values[part]) for part in parts]
            if heads[row] not in ANY_SIZE:
                _check_size(heads[row], numbers)
            values[row] = REFERENCES[heads[row]](*numbers)
        else:
            values[row] = _reference_leaf(rows.atoms[row], digits)


def _check_size(head: Head, numbers: list[Any]) -> None:
    """Raise LimitError for an operand so large that mpmath would work on it for hours: sin(exp(1e30))."""
    for number in numbers[1:] if head is sp.Pow else numbers:
        if type(number) is mp.mpf and number._mpf_[2] + number._mpf_[3] > LARGEST_OPERAND:
            raise LimitError(f"{head.__name__} of a number beyond 2**{LARGEST_OPERAND} in high precision")


def _high_precision(value: Any) -> Any:
    return value if isinstance(value, bool) or type(value) is mp.mpf else mp.mpf(value)


def _reference_leaf(atom: sp.Basic, digits: int) -> Any:
    if isinstance(atom, sp.NumberSymbol):
        return mp.make_mpf(atom._as_mpf_val(mp.prec))
    return precise(leaf_constant(atom), digits)
