"""Makers of node builders, for the rows of the ufunc tables.

A builder is called as `build(graph, *operands)` with node ids and returns a node id. It folds plain numbers, converts
truth values to numbers where arithmetic needs them, and otherwise adds exactly the nodes as written.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import sympy as sp

from codegen.ir.program import Head
from symad.errors import TraceError
from symad.graph.graph import Graph
from symad.tracing.calling.user_place import user_place
from symad.tracing.values.constant_nodes import MAYBE_BOOLEAN, Numeric, as_number, as_truth, constant, fold, is_boolean

Build = Callable[..., int]

_LARGEST_EXACT_POWER = 1024


def function(head: Head, numeric: Numeric | None = None, exact: Numeric | None = None) -> Build:
    """Return the builder of `head(*operands)`."""

    def build(graph: Graph, *operands: int) -> int:
        if operands[0] in graph.atoms and (folded := fold(graph, operands, exact, numeric)) is not None:
            return folded
        heads = graph.heads
        numbers = [as_number(graph, node) if heads[node] in MAYBE_BOOLEAN else node for node in operands]
        return graph.node(head, *numbers)

    return build


def commutative(head: Head, on_truths: Head, exact: Numeric, numeric: Numeric) -> Build:
    """Return the builder of a commutative pair of numbers; of two truth values it makes `on_truths`, as NumPy does."""

    def build(graph: Graph, left: int, right: int) -> int:
        are_leaves = left in graph.atoms and right in graph.atoms
        if are_leaves and (folded := fold(graph, (left, right), exact, numeric)) is not None:
            return folded
        left_true, right_true = is_boolean(graph, left), is_boolean(graph, right)
        if left_true and right_true:
            return graph.pair(on_truths, left, right)
        if left_true or right_true:
            factor = constant(graph, right if left_true else left)
            product = graph.pair(head, as_number(graph, left), as_number(graph, right))
            is_negative = type(factor) is int and factor < 0  # False * -1 is the int 0, not -0.0
            return graph.pair(sp.Add, product, graph.number(0)) if head is sp.Mul and is_negative else product
        return graph.pair(head, left, right)

    return build


def _of_truths(on_truths: Numeric, on_numbers: Numeric) -> Numeric:
    """Return the exact form of + or *, which NumPy defines as `or` and `and` on two truth values."""
    return lambda a, b: (on_truths if isinstance(a, bool) and isinstance(b, bool) else on_numbers)(a, b)


add: Build = commutative(sp.Add, sp.Or, _of_truths(operator.or_, operator.add), operator.add)
multiply: Build = commutative(sp.Mul, sp.And, _of_truths(operator.and_, operator.mul), operator.mul)


def negative(graph: Graph, operand: int) -> int:
    """-u is Mul(-1, u)."""
    _refuse_truths(graph, operand)
    value = constant(graph, operand)
    if value is not None and value is not False and (value != 0 or isinstance(value, float)):
        return graph.number(-value)
    return graph.pair(sp.Mul, graph.number(-1), operand)


def subtract(graph: Graph, left: int, right: int) -> int:
    """u - v is Add(u, Mul(-1, v))."""
    if is_boolean(graph, left) and is_boolean(graph, right):
        _refuse_truths(graph, left)
    return add(graph, as_number(graph, left), negative(graph, as_number(graph, right)))


def divide(graph: Graph, left: int, right: int) -> int:
    """u / v is Mul(u, Pow(v, -1)); two plain numbers are divided."""
    if left in graph.atoms and right in graph.atoms:
        folded = fold(graph, (left, right), lambda a, b: Fraction(a) / Fraction(b) if b else None, np.divide)
        if folded is not None:
            return folded
    reciprocal = graph.node(sp.Pow, as_number(graph, right), graph.number(-1))
    return graph.pair(sp.Mul, as_number(graph, left), reciprocal)


def power(graph: Graph, base: int, exponent: int) -> int:
    """u ** v is Pow(u, v); the exponent keeps its kind: x**2 is not x**2.0."""
    are_leaves = base in graph.atoms and exponent in graph.atoms
    if are_leaves and (folded := fold(graph, (base, exponent), _exact_power, np.power)) is not None:
        return folded
    return graph.node(sp.Pow, as_number(graph, base), as_number(graph, exponent))


def power_of(exponent: int | Fraction, numeric: Numeric) -> Build:
    """Return the builder of u to a fixed exact power: square, sqrt, reciprocal."""

    def build(graph: Graph, operand: int) -> int:
        if operand in graph.atoms:
            exact = None if isinstance(exponent, Fraction) else lambda u: _exact_power(u, exponent)
            if (folded := fold(graph, (operand,), exact, numeric)) is not None:
                return folded
        return graph.node(sp.Pow, as_number(graph, operand), graph.number(exponent))

    return build


def scaled(factor: float) -> Build:
    """Return the builder of u * factor."""
    return lambda graph, operand: multiply(graph, operand, graph.number(factor))


def positive(graph: Graph, operand: int) -> int:
    """+u is u."""
    return as_number(graph, operand)


remainder: Build = function(sp.Mod, np.remainder, lambda a, b: a % b if b else None)


def comparison(head: Head, compare: Callable[[Any, Any], Any]) -> Build:
    """Return the builder of a relational."""

    def build(graph: Graph, left: int, right: int) -> int:
        are_leaves = left in graph.atoms and right in graph.atoms
        if are_leaves and (folded := fold(graph, (left, right), compare, compare)) is not None:
            return folded
        return graph.node(head, as_number(graph, left), as_number(graph, right))

    return build


def connective(head: Head, exact: Numeric, *, strict: bool = False) -> Build:
    """Return the builder of And, Or, Not; `strict` refuses numbers (& | ~ on floats), else u stands for u != 0."""

    def build(graph: Graph, *operands: int) -> int:
        if strict and not all(is_boolean(graph, node) for node in operands):
            raise TraceError(
                "a bitwise operator (& | ^ ~) on traced numbers",
                where=user_place(),
                why="it is defined for truth values and integers only",
                do="compare first, and put the comparisons in parentheses: (x > 0) & (x < 1)",
            )
        truths = [as_truth(graph, node) for node in operands]
        are_leaves = all(node in graph.atoms for node in truths)
        if are_leaves and (folded := fold(graph, truths, exact, None)) is not None:
            return folded
        return graph.node(head, *truths) if len(truths) == 1 else graph.pair(head, truths[0], truths[1])

    return build


def exclusive_or(strict: bool) -> Build:
    """Return the builder of (a and not b) or (b and not a)."""
    both = connective(sp.And, lambda a, b: a and b, strict=strict)
    either = connective(sp.Or, lambda a, b: a or b, strict=strict)
    invert = connective(sp.Not, operator.not_, strict=strict)

    def build(graph: Graph, left: int, right: int) -> int:
        return either(graph, both(graph, left, invert(graph, right)), both(graph, right, invert(graph, left)))

    return build


def select(graph: Graph, condition: int, value: int, otherwise: int) -> int:
    """`value` where the condition holds, else `otherwise`: Piecewise(value, c, otherwise, True).

    A condition that is a plain truth value chooses at once; two truth values make (c and a) or (not c and b).
    A constant NaN that is chosen at once is NaN times the other value, so that its derivative is NaN as well.
    """
    condition = as_truth(graph, condition)
    known = constant(graph, condition)
    if known is not None:
        choice, other = (value, otherwise) if known else (otherwise, value)
        return multiply(graph, choice, other) if graph.atoms.get(choice) is sp.nan else choice
    if is_boolean(graph, value) and is_boolean(graph, otherwise):
        kept = graph.pair(sp.And, condition, value)
        return graph.pair(sp.Or, kept, graph.pair(sp.And, graph.node(sp.Not, condition), otherwise))
    true = graph.number(True)
    return graph.node(sp.Piecewise, as_number(graph, value), condition, as_number(graph, otherwise), true)


def composed(formula: Callable[..., int]) -> Build:
    """Return a builder from a formula `(graph, *operands) -> node` over the builders of this file."""
    return lambda graph, *operands: formula(graph, *[as_number(graph, node) for node in operands])


def _exact_power(a: int | Fraction, b: int | Fraction) -> int | Fraction | None:
    if isinstance(b, Fraction) or abs(b) > _LARGEST_EXACT_POWER or (a == 0 and b < 0):
        return None
    result = Fraction(a) ** b
    return result if isinstance(result, Fraction) else None


def _refuse_truths(graph: Graph, *operands: int) -> None:
    if any(is_boolean(graph, node) for node in operands):
        raise TraceError(
            "the operator - on traced truth values",
            where=user_place(),
            why="NumPy has no negative or difference of booleans",
            do="use ~condition, or condition * 1.0 for a number",
        )
