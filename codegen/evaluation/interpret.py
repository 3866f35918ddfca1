"""Interpreter: evaluates rows one by one, in floats or at high precision; no compiler, no recursion."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.errors import ArgumentError, LimitError
from codegen.evaluation.arithmetic import Arithmetic, carry_out
from codegen.evaluation.constant_folding import ANY_SIZE, LARGEST_OPERAND, leaf_constant, precise, to_float
from codegen.functions.intrinsics import INTRINSICS
from codegen.functions.reference_functions import precision
from codegen.ir.float_functions import divide
from codegen.ir.program import Head, Rows, needed


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
    order = needed(rows, wanted, values)
    if arithmetic == "float64":
        carry_out(rows, order, values, FLOATS)
    else:
        with precision(digits):
            carry_out(rows, order, values, Arithmetic(_EXACT, _EXACT, partial(_reference_leaf, digits=digits)))
    return [values[row] for row in wanted]


def leaf_number(atom: sp.Basic) -> float | bool:
    """Return a leaf as a machine number or a truth value."""
    constant = leaf_constant(atom)
    return constant if isinstance(constant, bool) else to_float(constant)


def _reference(head: Head, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of high precision that takes any numbers, unless they are too large for it."""

    def checked(*operands: Any) -> Any:
        numbers = [_high_precision(operand) for operand in operands]
        if head not in ANY_SIZE:
            _check_size(head, numbers)
        return function(*numbers)

    return checked


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


_NUMBERS: dict[Head, Callable[..., Any]] = {head: row.number for head, row in INTRINSICS.items()}
_EXACT: dict[Head, Callable[..., Any]] = {head: _reference(head, row.reference) for head, row in INTRINSICS.items()}
FLOATS = Arithmetic(_NUMBERS, {**_NUMBERS, sp.Add: operator.add, sp.Mul: operator.mul}, leaf_number, divide)
