"""The arithmetic of formulas that are typed: SymPy's, within limits that are looked at before anything is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sp

BIT_LIMIT = 4000  # of the integers in a number: 1200 digits
EXPONENT_LIMIT = 1000
SIZE_LIMIT = 1e300  # of a constant


class Refused(Exception):  # noqa: N818 - never leaves the parser, which adds the column
    """A value that is not computed: what it is, and what to write instead."""

    def __init__(self, what: str, do: str = "give smaller numbers") -> None:
        self.what, self.do = what, do
        super().__init__(what)


@dataclass(frozen=True)
class Value:
    """A part of a formula: its expression, the factors it was written with, and about how large a constant it is."""

    expression: sp.Expr
    size: complex | None = None
    factors: tuple[sp.Expr, ...] = ()
    literal: bool = False  # an integer as typed


def constant(expression: sp.Expr, *, literal: bool = False) -> Value:
    """Return a constant that is not computed further."""
    return value(lambda: expression, (), literal=literal)


def total(terms: Sequence[Value]) -> Value:
    """Return the sum of values."""
    return terms[0] if len(terms) == 1 else value(lambda: sp.Add(*(term.expression for term in terms)), terms)


def product(factors: Sequence[Value]) -> Value:
    """Return the product of values; a constant in front of a sum stays there, as it was written."""
    if len(factors) == 1:
        return factors[0]
    flat = [part for factor in factors for part in (factor.factors or (factor.expression,))]
    return value(lambda: sp.Mul(*flat), factors, tuple(flat))


def reciprocal(of: Value) -> Value:
    """Return 1 over a value, factor by factor: y/(2*(x + 1)) is not y/(2*x + 2)."""
    if of.expression.is_zero:
        raise Refused("a division by zero", "divide by what is not zero")
    minus = constant(sp.Integer(-1))
    if not of.factors:
        return power(of, minus)
    parts = [power(Value(factor, _size(factor) if factor.is_number else None), minus) for factor in of.factors]
    return product(parts)


def power(base: Value, exponent: Value) -> Value:
    """Return base**exponent; Refused where numbers would grow beyond the limits."""
    number = exponent.expression
    if number.is_Number and abs(number) > EXPONENT_LIMIT:
        raise Refused("so large an exponent", f"give an exponent of at most {EXPONENT_LIMIT}")
    if exponent.size is not None:
        constants = [factor for factor in sp.Mul.make_args(base.expression) if factor.is_number]
        atoms = [atom for factor in constants for atom in factor.atoms(sp.Rational)]
        if sum(map(_bits, atoms)) * max(1.0, abs(exponent.size)) > BIT_LIMIT:
            raise Refused("so large a power of a number")
    if base.expression.is_zero and exponent.size is not None and exponent.size.real <= 0:
        raise Refused("a power of zero that is not defined" if exponent.size else "0**0", "give another exponent")
    return value(lambda: sp.Pow(base.expression, number), (base, exponent))


def applied(head: Callable[..., Any], arguments: Sequence[Value], largest: float) -> Value:
    """Return head(*arguments); Refused where a constant argument is larger than the head is given."""
    for argument in arguments:
        if argument.size is not None and abs(argument.size) > largest:
            raise Refused("so large an argument of a function", f"give a number of at most {largest:g}")
    return value(lambda: head(*(argument.expression for argument in arguments)), arguments)


def value(
    build: Callable[[], sp.Expr], parts: Sequence[Value], factors: tuple[sp.Expr, ...] = (), *, literal: bool = False
) -> Value:
    """Return what is built of parts; Refused where SymPy cannot, and where it is no finite number within the limits."""
    try:
        made = build()
        if made.has(sp.nan, sp.zoo, sp.oo, -sp.oo):
            raise Refused("a value that is not finite", "leave out divisions by zero and infinities")
        size = _size(made) if all(part.size is not None for part in parts) and made.is_number else None
    except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise Refused(f"what cannot be computed ({type(error).__name__})", "write it differently") from error
    for number in {made, *made.args[:1]}:
        if number.is_Rational and _bits(number) > BIT_LIMIT:
            raise Refused("so long a number")
    return Value(made, size, factors, literal)


def _bits(number: sp.Rational) -> int:
    """Return how long a number is; 1 and -1 count nothing, they do not grow."""
    return 0 if abs(number) == 1 else max(int(number.p).bit_length(), int(number.q).bit_length())


def _size(expression: sp.Expr) -> complex:
    """Return about how large a constant is; Refused beyond what floats hold."""
    if expression.is_Rational and _bits(expression) > BIT_LIMIT:
        raise Refused("so long a number")
    size = complex(expression.evalf(15, maxn=100))
    if not abs(size) <= SIZE_LIMIT:
        raise Refused("so large a number")
    return size
