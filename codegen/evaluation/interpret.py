"""Evaluate rows one by one, in floats or at high precision, without a compiler and without recursion."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.errors import ArgumentError, LimitError
from codegen.evaluation.constant_folding import ANY_SIZE, LARGEST_OPERAND, leaf_constant, precise, to_float
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.functions.reference_functions import precision
from codegen.ir.float_functions import divide
from codegen.ir.program import Head, Rows, needed
from codegen.records import dataclass

Function = Callable[..., Any]


class Functions(dict[Head, Function]):
    """Functions by head; those that are not there are made when they are asked for."""

    def __init__(self, make: Callable[[Head], Function], there: Mapping[Head, Function] | None = None) -> None:
        super().__init__(there or {})
        self.make = make

    def __missing__(self, head: Head) -> Function:
        return self.make(head)


@dataclass(frozen=True)
class Arithmetic:
    """The functions of each head in one kind of numbers; `pairs` are those of two operands, such as `+`.

    `quotient` computes rows u * v**-1, rounded once; without it they are products.
    """

    functions: Mapping[Head, Function]
    pairs: Mapping[Head, Function]
    leaf: Callable[[sp.Basic], Any]
    quotient: Function | None = None

    def step(self, rows: Rows, row: int) -> tuple[Function, tuple[int, ...]]:
        """Return the function of a row, and the rows that it takes; LoweringError for a head that has none."""
        head, parts = rows.heads[row], rows.operands[row]
        intrinsic(head)  # names a head that has no function
        if len(parts) != 2:
            return self.functions[head], parts
        if head is sp.Mul and self.quotient is not None and (quotient := _quotient_of(rows, *parts)) is not None:
            return self.quotient, quotient
        return self.pairs[head], parts


def carry_out(rows: Rows, order: Iterable[int], values: dict[int, Any], numbers: Arithmetic) -> None:
    """Compute rows, in topological order, from the values that are there; LoweringError for a head without a function.

    >>> from operator import add, mul
    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program, values = program_from_sympy([x], [2 * x + 1]), {0: 5}
    >>> carry_out(program, range(1, len(program)), values, Arithmetic({}, {sp.Add: add, sp.Mul: mul}, int))
    >>> values[program.outputs[0].rows[0]]
    11
    """
    heads, operands, functions, pairs = rows.heads, rows.operands, numbers.functions, numbers.pairs
    product, power = sp.Mul, sp.Pow
    for row in order:
        parts, head = operands[row], heads[row]
        try:
            if len(parts) == 2:
                left, right = parts
                if head is product and (heads[right] is power or heads[left] is power):
                    values[row] = _product(rows, left, right, values, numbers)
                else:
                    values[row] = pairs[head](values[left], values[right])
            elif len(parts) == 1:
                values[row] = functions[head](values[parts[0]])
            elif parts:
                values[row] = functions[head](*[values[part] for part in parts])
            else:
                values[row] = numbers.leaf(rows.atoms[row])
        except KeyError:
            intrinsic(head)  # names the head that has no function
            raise


def _product(rows: Rows, left: int, right: int, values: Mapping[int, Any], numbers: Arithmetic) -> Any:
    """Return a product with a power: a quotient, unless the power's base has no value here."""
    if numbers.quotient is not None:
        quotient = _quotient_of(rows, left, right)
        if quotient is not None and quotient[1] in values:
            return numbers.quotient(values[quotient[0]], values[quotient[1]])
    return numbers.pairs[sp.Mul](values[left], values[right])


def _quotient_of(rows: Rows, left: int, right: int) -> tuple[int, int] | None:
    """Return u and v for a product u * v**-1, which is one quotient, rounded once."""
    for power, other in ((right, left), (left, right)):
        if rows.heads[power] is sp.Pow:
            base, exponent = rows.operands[power]
            if rows.atoms.get(exponent) is sp.S.NegativeOne:
                return other, base
    return None


def evaluate(
    rows: Rows, results: Sequence[int], values: dict[int, Any], arithmetic: str = "float64", digits: int = 50
) -> list[Any]:
    """Return the values of rows; `values` (row -> number) holds the inputs and is filled further.

    Only needed rows that are not in `values` are visited, so a growing graph is evaluated step by step.
    `arithmetic="reference"` works with mpmath at `digits` decimal digits (give the inputs as exact numbers). A
    Piecewise evaluates all its branches. UnboundSymbolError for a symbol without a value, LoweringError for a head
    without a row in the table of intrinsics, LimitError for a function of a number beyond 2**65536 (reference only),
    ArgumentError for another arithmetic.

    >>> from codegen.ir.program import Input, Output, Program
    >>> x = sp.Symbol("x")
    >>> square = Program([sp.Symbol, sp.Mul], [(), (0, 0)], {0: x}, (Input("x", ()),), (Output((), (1,)),))
    >>> evaluate(square, [1], {0: 3.0})
    [9.0]
    """
    if arithmetic not in ("float64", "reference"):
        raise ArgumentError(f"arithmetic={arithmetic!r}", do='use "float64" or "reference"')
    order = needed(rows, results, values)
    with precision(digits) if arithmetic == "reference" else nullcontext():
        carry_out(rows, order, values, FLOATS if arithmetic == "float64" else exact_arithmetic(digits))
    return [values[row] for row in results]


def exact_arithmetic(digits: int) -> Arithmetic:
    """Return mpmath's functions of real numbers; they work at the precision that is set when they are called."""
    return Arithmetic(_EXACT, _EXACT, partial(_reference_leaf, digits=digits))


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
