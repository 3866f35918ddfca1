"""Structural zeros by number: a constant 0 times what is finite wherever its inputs are.

0 times a number that may be infinite is NaN there, so such a product is no zero.
"""

from __future__ import annotations

import math

import numpy as np
import sympy as sp

import codegen.heads as h
from codegen.heads import Alias, NegativeZero
from codegen.ir.program import Rows
from symad.graph.array_operands import ArrayNode
from symad.graph.builder import Builder
from symad.rules.overrides import GATES

TAME = (sp.Symbol, sp.Add, sp.Mul, sp.sin, sp.cos, sp.tanh, sp.sech, sp.sign, sp.Abs, sp.floor, h.Alias, h.expit,
        h.tie_share, *GATES, sp.logic.boolalg.Boolean)  # fmt: skip  # finite for all finite operands
TAME_KINDS = ("sum", "running", "product", "scatter", "extremum")  # the same of array nodes


def vanishes(build: Builder, factor: int, other: int) -> bool:
    """Whether a product is a structural zero: one factor is the constant 0, and the other one is finite."""
    is_zero = build.constant(factor) == 0 or build.graph.heads[factor] is NegativeZero
    return is_zero and is_finite(build, other)


def presence(build: Builder, factor: int, other: int) -> int | None:
    """Return the guard of a product with constants of which some are 0: there it vanishes; None for other products."""
    if factor not in build.zeros or not is_finite(build, other):
        return None
    return build.graph.node(sp.Ne, factor, build.zero)


def is_finite(build: Builder, node: int) -> bool:
    """Whether a node is finite wherever its inputs are, unless it overflows: 0 log(x) is NaN at -1, and no zero.

    >>> from symad.graph.graph import Graph
    >>> graph = Graph()
    >>> build = Builder(graph)
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> is_finite(build, graph.node(sp.sin, x)), is_finite(build, build.reciprocal(x))
    (True, False)
    """
    graph, arrays, known = build.graph, build.graph.arrays, build.finite
    (root,) = arrays.roots(np.array([node]))
    needed, stack = {root} - known.keys(), [root]
    while stack:
        more = {part for part in arrays.operands_of(stack.pop()) if part not in known} - needed
        needed |= more
        stack += more
    for row in sorted(needed):
        head, array, operands = graph.heads[row], arrays.at(row), arrays.operands_of(row)
        if array is not None:
            is_tame = _is_finite_array(build, array)
        else:
            exponent = build.constant(operands[1]) if head is sp.Pow else None
            is_tame = head is sp.exp or is_finite_operation(graph, row, exponent)
        is_parameter = head is Alias and row not in graph.rules
        known[row] = is_parameter or (is_tame and all(known[part] for part in operands))
    return known[root]


def _is_finite_array(build: Builder, array: ArrayNode) -> bool:
    """Whether an array node gives finite numbers for all finite ones."""
    if array.numbers is not None:
        return bool(np.isfinite(array.numbers).all())
    if array.head is None or array.kind != "each":
        return array.kind in TAME_KINDS
    if array.head is sp.Pow:
        exponents = [build.constant(node) for node in array.operands[1].single_nodes]
        return bool(exponents) and all(isinstance(exponent, int) and exponent >= 0 for exponent in exponents)
    return array.head is sp.exp or issubclass(array.head, TAME)


def is_finite_operation(rows: Rows, row: int, exponent: object) -> bool:
    """Whether an operation gives finite numbers for all finite ones; `exponent` is that of a power, if a constant."""
    if rows.heads[row] is sp.Pow:
        return _is_finite_number(*map(rows.atoms.get, rows.operands[row])) or (
            isinstance(exponent, int) and exponent >= 0
        )
    if rows.operands[row]:
        return issubclass(rows.heads[row], TAME)
    return not isinstance(rows.atoms.get(row), sp.Number) or _is_finite_number(rows.atoms[row])


def _is_finite_number(base: sp.Basic | None, exponent: sp.Basic | None = sp.S.One) -> bool:
    """Whether this is a number, or a power of one, such as the 1/sqrt(16) of a scale, and a finite float."""
    if not (isinstance(base, sp.Number) and isinstance(exponent, sp.Number)):
        return False
    try:
        return math.isfinite(float(base) ** float(exponent))
    except (ArithmeticError, TypeError):  # too large, 1/0, or no real number
        return False
