"""Gathers: `x[k]` inside a body, with a whole number k that is known for every repetition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from codegen.heads import Alias
from codegen.ir.program import Head
from codegen.loops.loop import Nodes
from symad.graph.graph import Graph
from symad.tracing.values.array import Array
from symad.tracing.values.constant_nodes import constant, is_boolean
from symad.tracing.values.scalar import Scalar

Whole = NDArray[np.int64]

OPERATIONS: dict[Head, Callable[..., Whole]] = {
    sp.Add: np.add, sp.Mul: np.multiply, sp.Mod: np.mod, Alias: np.positive,
}  # fmt: skip


def gathered(graph: Graph, known: Mapping[int, Whole], count: int, nodes: Nodes, key: Any) -> Nodes | None:
    """Return `nodes[key]` in every repetition, the repetitions first; None if the index is not known.

    `known` has the values of whole-number slots in every repetition.

    >>> graph = Graph()
    >>> k = graph.own_leaf(sp.Symbol("k"))
    >>> following = graph.node(sp.Add, k, graph.number(1))
    >>> whole_numbers(graph, {k: np.arange(3)}, following)
    array([1, 2, 3])
    """
    parts = key if isinstance(key, tuple) else (key,)
    columns = [_column(graph, known, part) for part in parts]
    if any(column is None for column in columns):
        return None
    if len(columns) == 1 or all(isinstance(column, int) or np.ndim(column) == 1 for column in columns):
        result: Nodes = nodes[tuple(columns)]
        return result
    repetitions = [nodes[tuple(c[k] if isinstance(c, np.ndarray) else c for c in columns)] for k in range(count)]
    return np.stack(repetitions)


def _column(graph: Graph, known: Mapping[int, Whole], part: Any) -> Any:
    """Return a part of an index in all repetitions; unchanged if it is the same in all."""
    if isinstance(part, Scalar):
        return None if is_boolean(graph, part.node) else whole_numbers(graph, known, part.node)
    if isinstance(part, Array):
        values = [whole_numbers(graph, known, node) for node in part.nodes.ravel().tolist()]
        columns = np.broadcast_arrays(*[value for value in values if value is not None])
        whole = len(columns) == len(values) > 0
        return np.stack(columns, -1).reshape(-1, *part.shape) if whole else None
    return None if part is None or isinstance(part, np.ndarray | list) else part


def whole_numbers(graph: Graph, known: Mapping[int, Whole], node: int) -> Whole | None:
    """Return the values of a node that sums, products and remainders make of slots and whole numbers; else None."""
    needed, stack = set[int](), [node]
    while stack:
        part = stack.pop()
        if part not in needed:
            needed.add(part)
            stack += [] if part in known else graph.operands[part]
    values = dict[int, Any]()
    for part in sorted(needed):
        operands, number = graph.operands[part], constant(graph, part)
        if part in known:
            values[part] = known[part]
        elif type(number) is int:
            values[part] = np.int64(number)
        elif not operands or graph.heads[part] not in OPERATIONS:
            return None
        else:
            values[part] = OPERATIONS[graph.heads[part]](*[values[operand] for operand in operands])
    result: Whole = values[node]
    return result
