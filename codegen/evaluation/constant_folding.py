"""Keep constants exact, and round each of them once.

An exact constant is a Fraction or a `Precise` pair (number symbols and functions of exact constants, evaluated with
mpmath at two precisions, so that a value that is only round-off is recognised as zero). A constant with a Float is a
machine number, folded operation by operation in Python floats, as it would run.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import mpmath
import sympy as sp
from mpmath import mp

from codegen.errors import LoweringError, UnboundSymbolError
from codegen.functions.intrinsics import INTRINSICS, intrinsic
from codegen.functions.reference_functions import precision
from codegen.heads import Alias, NegativeZero
from codegen.ir.program import Rows
from codegen.records import dataclass

DIGITS = 50  # the second evaluation of a Precise pair has twice as many
LARGEST_OPERAND = 2**16  # bits of a constant in front of the point that a function is evaluated at
LARGEST_BITS = 4096  # a rational of more bits goes on as a Precise pair


@dataclass(frozen=True, slots=True)
class Precise:
    """A real constant at DIGITS and at 2*DIGITS decimal digits."""

    low: Any
    high: Any

    def __float__(self) -> float:
        """Return the value rounded once; LoweringError where the two do not agree, and are no round-off of a zero."""
        if self.high == 0 or not mp.isfinite(self.high):
            return float(self.high)
        with precision(2 * DIGITS):
            noise = mp.mpf(10) ** (-DIGITS // 2)
            if abs(self.low - self.high) <= abs(self.high) * noise:
                return float(self.high)
            largest = abs(self.low) * noise if self.low else mp.mpf(10) ** (10 - 2 * DIGITS)
            if mp.isfinite(self.low) and abs(self.high) <= largest:
                return 0.0  # it shrinks as digits are added: pure round-off of an exact zero
        raise LoweringError(
            "a constant without digits",
            why=f"{DIGITS} digits give {mp.nstr(self.low, 5)}, {2 * DIGITS} digits {mp.nstr(self.high, 5)}",
            do="write it as a float, or in a form that loses no digits",
        )


Constant: TypeAlias = Fraction | Precise | float | bool


def leaf_constant(atom: sp.Basic) -> Constant:
    """Return the value of a SymPy atom, exact where it is exact.

    UnboundSymbolError for a symbol, LoweringError for a complex number.

    >>> leaf_constant(sp.Rational(1, 3)), leaf_constant(sp.Float(0.1)), float(leaf_constant(sp.pi)) == math.pi
    (Fraction(1, 3), 0.1, True)
    """
    number = plain_number(atom)
    if number is not None:
        return Fraction(number) if type(number) is int else number
    if isinstance(atom, sp.NumberSymbol):
        low, high = (mp.make_mpf(atom._as_mpf_val(_bits(digits))) for digits in (DIGITS, 2 * DIGITS))
        return Precise(low, high)
    if isinstance(atom, sp.CRootOf) and atom.is_real:
        low, high = (mp.make_mpf(atom.evalf(digits + 10)._mpf_) for digits in (DIGITS, 2 * DIGITS))
        return Precise(low, high)
    if getattr(atom, "is_symbol", False):
        raise UnboundSymbolError(f"symbol {atom}", why="it has no value here", do="make it an input")
    raise LoweringError(f"{type(atom).__name__} leaf", why="it is no real number", do="keep the program real")


def plain_number(atom: sp.Basic) -> bool | int | Fraction | float | None:
    """Return the Python number or truth value that a SymPy atom is (exact where it is exact), None for any other atom.

    >>> [plain_number(atom) for atom in (sp.Integer(2), sp.Rational(1, 3), sp.Float(0.5), sp.true, sp.oo, sp.pi)]
    [2, Fraction(1, 3), 0.5, True, inf, None]
    """
    if isinstance(atom, sp.Float):
        sign, mantissa, exponent, bits = atom._mpf_
        if mantissa and bits <= 53 and -1000 < exponent < 900:  # a machine number: float(atom), at a fifth of the cost
            return math.ldexp(-mantissa if sign else mantissa, exponent)
        return float(atom)
    if isinstance(atom, sp.Integer):
        return int(atom)
    if isinstance(atom, sp.Rational):
        return Fraction(int(atom.p), int(atom.q))
    return SPECIAL_ATOMS.get(type(atom))


SPECIAL_ATOMS: dict[type[sp.Basic], float | bool] = {
    NegativeZero: -0.0,
    type(sp.oo): math.inf,
    type(-sp.oo): -math.inf,
    type(sp.nan): math.nan,
    type(sp.true): True,
    type(sp.false): False,
}


def to_float(constant: Constant) -> float:
    """Round a constant once to the nearest float (inf where it is too large).

    >>> to_float(Fraction(10) ** 400), to_float(Fraction(1, 3))
    (inf, 0.3333333333333333)
    """
    try:
        return float(constant)
    except OverflowError:
        return math.inf if constant > 0 else -math.inf  # type: ignore[operator]


def fold_constants(rows: Rows, order: Sequence[int], inputs: int) -> dict[int, float | bool]:
    """Return the value of every constant row in `order` (topological) that varying rows or none use, rounded once.

    Rows below `inputs` vary. Errors as for `leaf_constant`, and for heads without a row in the table.

    >>> from codegen.expressions.sympy_in import program_from_sympy
    >>> x = sp.Symbol("x")
    >>> program = program_from_sympy([x], [x + sp.Add(sp.Rational(1, 3), sp.Rational(1, 6), evaluate=False)])
    >>> 0.5 in fold_constants(program, range(len(program)), 1).values()
    True
    """
    exact: dict[int, Constant] = {}
    atoms, operands, heads = rows.atoms, rows.operands, rows.heads
    for row in order:
        if row < inputs:
            continue
        parts = operands[row]
        if not parts:
            exact[row] = leaf_constant(atoms[row]) if row in atoms else _empty(heads[row])
        elif parts[-1] in exact and parts[0] in exact and all(part in exact for part in parts):
            exact[row] = _apply(heads[row], [exact[part] for part in parts])
    return {row: value if isinstance(value, bool) else to_float(value) for row, value in exact.items()}


def _empty(head: type[sp.Basic]) -> Constant:
    raise LoweringError(f"{head.__name__} without operands", why="a leaf needs an atom", do="give the row an atom")


def _apply(head: type[sp.Basic], parts: list[Constant]) -> Constant:
    if head is Alias:
        return parts[0]
    row = intrinsic(head)
    if any(type(part) is float for part in parts):
        return _result(row.number(*[part if isinstance(part, bool) else to_float(part) for part in parts]))
    rational = RATIONAL.get(head)
    if rational is not None and all(isinstance(part, Fraction) for part in parts):
        folded = rational(parts)
        if folded is not None:
            return folded
    if head not in ANY_SIZE:
        _check_size(head, parts)
    low, high = (_at_precision(row.reference, parts, digits) for digits in (DIGITS, 2 * DIGITS))
    return high if isinstance(high, bool) else Precise(low, high)


def _check_size(head: type[sp.Basic], parts: list[Constant]) -> None:
    """Raise LoweringError for an operand so large that mpmath would work on it for hours: sin(9**9**9), 2**9**9**9."""
    for part in parts[1:] if head is sp.Pow else parts:
        if isinstance(part, Fraction):
            bits = part.numerator.bit_length() - part.denominator.bit_length()
        else:
            bits = mp.mag(part.high) if isinstance(part, Precise) and part.high and mp.isfinite(part.high) else 0
        if bits > LARGEST_OPERAND:
            name = "Pow with an exponent" if head is sp.Pow else head.__name__
            raise LoweringError(f"{name} of a constant beyond 2**{LARGEST_OPERAND}", do="write the result as a float")


def _result(value: Any) -> Constant:
    return value if isinstance(value, bool) else float(value)


def _at_precision(function: Callable[..., Any], parts: list[Constant], digits: int) -> Any:
    with precision(digits + 10):
        return function(*[precise(part, digits) for part in parts])


def precise(part: Constant, digits: int) -> Any:
    """Return a constant as mpmath number at the current precision (`digits` picks the half of a Precise pair)."""
    if isinstance(part, bool):
        return part
    if isinstance(part, Fraction):
        return mp.mpf(part.numerator) / part.denominator
    if isinstance(part, Precise):
        return part.low if digits <= DIGITS else part.high
    return mp.mpf(part)


def _small(value: Fraction) -> Fraction | None:
    return value if max(value.numerator.bit_length(), value.denominator.bit_length()) <= LARGEST_BITS else None


def _rational_fold(function: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Fraction | None]:
    def fold(parts: list[Any]) -> Fraction | None:
        result: Fraction | None = parts[0]
        for part in parts[1:]:
            result = None if result is None else _small(function(result, part))
        return result

    return fold


def _rational_power(parts: list[Any]) -> Fraction | None:
    base, exponent = parts
    if exponent.denominator != 1 or (base == 0 and exponent < 0):
        return None
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    return base ** int(exponent) if abs(exponent) * bits <= LARGEST_BITS else None


RATIONAL: dict[type[sp.Basic], Callable[[list[Any]], Fraction | bool | None]] = {
    sp.Add: _rational_fold(operator.add),
    sp.Mul: _rational_fold(operator.mul),
    sp.Pow: _rational_power,
    sp.Abs: lambda parts: Fraction(abs(parts[0])),
    sp.Max: lambda parts: Fraction(max(parts)),
    sp.Min: lambda parts: Fraction(min(parts)),
    **{head: (lambda parts, head=head: bool(INTRINSICS[head].number(*parts)))  # type: ignore[misc]
       for head in (sp.Lt, sp.Le, sp.Gt, sp.Ge, sp.Eq, sp.Ne)},
}  # fmt: skip

ANY_SIZE: frozenset[Any] = frozenset(
    {*RATIONAL, sp.log, sp.sign, sp.floor, sp.ceiling} - {sp.Pow}
)  # take no time for huge numbers


def _bits(digits: int) -> int:
    return int(mpmath.libmp.dps_to_prec(digits + 10))
