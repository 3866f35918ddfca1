"""Whether two nodes are equal everywhere, or in single points at most: asked at a point chosen at random."""

from __future__ import annotations

import math
import random
import zlib
from typing import Any

import sympy as sp

from codegen.errors import WorkbenchError
from codegen.evaluation.interpret import evaluate
from codegen.ir.program import reachable
from symad.graph.graph import Graph
from symad.rules.undefined import Formal

POINTS = 2
CLOSE = 1e-9  # relative; two different values are closer with a probability of about that


def coincide(graph: Graph, left: int, right: int) -> bool:
    """Return whether two nodes have the same value at random points, or none that could be compared.

    Symbols get random numbers, and an undefined function is a smooth function of its arguments like any other.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> double = graph.node(sp.Mul, graph.number(2), x)
    >>> coincide(graph, double, graph.node(sp.Add, x, x)), coincide(graph, double, x)
    (True, False)
    """
    return all(_equal_at(graph, left, right, seed) for seed in range(POINTS))


def _equal_at(graph: Graph, left: int, right: int, seed: int) -> bool:
    known: dict[int, Any] = {}
    try:
        for node in reachable(graph, [left, right]):
            if isinstance(graph.atoms.get(node), sp.Symbol):
                known[node] = random.Random(f"{graph.atoms[node]} {seed}").uniform(0.5, 2.0)
            elif issubclass(graph.heads[node], Formal):
                at = evaluate(graph, graph.operands[node], known)
                known[node] = _some_function(graph.heads[node].__name__, at)
        one, other = evaluate(graph, [left, right], known)
    except (WorkbenchError, ArithmeticError, ValueError):
        return True
    if math.isnan(one) or math.isnan(other):
        return True
    return bool(abs(one - other) <= CLOSE * (abs(one) + abs(other)))


def _some_function(name: str, arguments: list[float]) -> float:
    """Return a value in (0.5, 2.5) that depends on a name, and smoothly on numbers."""
    phase = zlib.crc32(name.encode()) % 1000
    return 1.5 + math.sin(phase + sum((k + 1) * argument for k, argument in enumerate(arguments)))
