"""Constants while tracing: which nodes are plain numbers, and folding them.

Only an operation on plain numbers is folded. Exact numbers stay exact (3/2 is a Rational); with a Float among them, the
result is that of NumPy's float arithmetic. All other operations are kept as written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import sympy as sp
from sympy.logic import boolalg

from codegen.evaluation.constant_folding import plain_number
from codegen.heads import Alias
from symad.graph.array_operands import TruthElement
from symad.graph.builder import simplest
from symad.graph.graph import Graph, Number

Numeric = Callable[..., Any]

MAYBE_BOOLEAN = frozenset(
    {Alias, sp.StrictGreaterThan, sp.GreaterThan, sp.StrictLessThan, sp.LessThan, sp.Equality, sp.Unequality}
    | {sp.And, sp.Or, sp.Not, sp.Xor, sp.Nand, sp.Nor, sp.Implies, sp.Equivalent, sp.ITE}
    | {boolalg.BooleanTrue, boolalg.BooleanFalse, TruthElement}
)


def constant(graph: Graph, node: int) -> Number | None:
    """Return the number that a leaf stands for (int, Fraction, float or bool), else None (Symbol, pi, operations).

    >>> graph = Graph()
    >>> [constant(graph, graph.leaf(atom)) for atom in (sp.Integer(2), sp.Rational(1, 3), sp.Float(0.5), sp.pi)]
    [2, Fraction(1, 3), 0.5, None]
    """
    if graph.heads[node] is sp.Symbol:  # whose atom need not be made
        return None
    atom = graph.atoms.get(node)
    return None if atom is None else plain_number(atom)


def fold(graph: Graph, operands: Sequence[int], exact: Numeric | None, numeric: Numeric | None) -> int | None:
    """Return the folded leaf when every operand is a plain number, else None.

    `exact` is applied to ints and Fractions (and may answer None: not exact), `numeric` to floats.
    """
    values = [constant(graph, node) for node in operands]
    if any(value is None for value in values):
        return None
    if any(isinstance(value, float) for value in values):
        return None if numeric is None else _fold_floats(graph, values, numeric)
    result = None if exact is None else exact(*values)
    return None if result is None else graph.number(simplest(result))


def is_boolean(graph: Graph, node: int) -> bool:
    """Whether a node is a truth value; a quick test for the many that are not."""
    return graph.heads[node] in MAYBE_BOOLEAN and graph.is_boolean(node)


def as_number(graph: Graph, node: int) -> int:
    """Return the node as a number: a truth value c becomes Piecewise((1, c), (0, True))."""
    if not is_boolean(graph, node):
        return node
    if node in graph.atoms:
        return graph.number(1 if graph.atoms[node] else 0)
    return graph.node(sp.Piecewise, graph.number(1), node, graph.number(0), graph.number(True))


def as_truth(graph: Graph, node: int) -> int:
    """Return the node as a truth value: a number u becomes u != 0."""
    if is_boolean(graph, node):
        return node
    value = constant(graph, node)
    return graph.node(sp.Unequality, node, graph.number(0)) if value is None else graph.number(value != 0)


def _fold_floats(graph: Graph, values: Sequence[Any], numeric: Numeric) -> int | None:
    try:
        with np.errstate(all="ignore"):
            result = numeric(*[float(value) for value in values])
    except OverflowError:  # an int beyond the range of floats
        return None
    return graph.number(bool(result) if isinstance(result, (bool, np.bool_)) else float(result))
