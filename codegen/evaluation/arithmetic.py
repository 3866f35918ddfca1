"""Arithmetic: the functions of all heads in one kind of numbers, and the one loop that carries out rows with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp

from codegen.functions.intrinsics import intrinsic
from codegen.ir.program import Head, Rows

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
    """What rows of each head are in one kind of numbers; `pairs` are those of two operands, for which `+` will do.

    `quotient` is u / v for rows u * v**-1, which is rounded once; without it they are products.
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
        if head is sp.Mul and self.quotient is not None and (found := _quotient_of(rows, *parts)) is not None:
            return self.quotient, found
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
        found = _quotient_of(rows, left, right)
        if found is not None and found[1] in values:
            return numbers.quotient(values[found[0]], values[found[1]])
    return numbers.pairs[sp.Mul](values[left], values[right])


def _quotient_of(rows: Rows, left: int, right: int) -> tuple[int, int] | None:
    """Return u and v for a product u * v**-1, which is one quotient, rounded once."""
    for power, other in ((right, left), (left, right)):
        if rows.heads[power] is sp.Pow:
            base, exponent = rows.operands[power]
            if rows.atoms.get(exponent) is sp.S.NegativeOne:
                return other, base
    return None
