"""Traced values that are whole by construction and may be indices and keys."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import sympy as sp

import codegen.heads as h
from codegen.ir.program import Head, Program
from symad.graph.array_operands import ArrayNode, Nodes, OperandAccess
from symad.graph.graph import Graph
from symad.tracing.values.bounds import ANY
from symad.tracing.values.constant_nodes import constant, is_boolean

_Part = TypeVar("_Part", OperandAccess, int)

_ROUNDED = frozenset({sp.floor, sp.ceiling, h.trunc, h.rint})
SIGNED = frozenset({"matmul", "multiply", "negative", "remainder", "floor_divide"})  # which can be -0.0 for floats
OF_INTEGERS = SIGNED | {"add", "subtract", "matmul", "absolute", "positive", "maximum", "minimum", "sign",
                       "square", "power"}  # fmt: skip
_KEPT = frozenset({sp.Add, sp.Mul, sp.Mod, sp.Max, sp.Min, sp.Abs, sp.Piecewise, h.Alias})  # whole if the operands are


def are_whole(graph: Graph, nodes: npt.NDArray[np.int64] | int) -> bool:
    """Whether nodes are rounded numbers and whole constants, or sums, products, remainders and choices of these.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> down = graph.node(sp.floor, x)
    >>> [are_whole(graph, graph.node(sp.Mod, down, graph.number(n))) for n in (3, 0.5)], are_whole(graph, x)
    ([True, False], False)
    """
    arrays, singles, seen = graph.arrays, list[int](), set[int]()
    whole = np.asarray(nodes)
    if graph.whole and whole.size and _among(graph.whole, int(whole.min()), int(whole.max())):
        return True
    readings = [arrays.reading(np.asarray(nodes))]
    while readings or singles:
        if not readings:
            node = singles.pop()
            if node in seen:
                continue
            seen.add(node)
            if graph.whole and _among(graph.whole, node, node):
                continue
            if arrays.at(node) is not None:
                readings.append(arrays.reading_of(node))
            elif graph.heads[node] in _KEPT:
                singles += _numbers_among(graph.heads[node], graph.operands[node])
            elif graph.heads[node] not in _ROUNDED and type(constant(graph, node)) is not int:
                return False
            continue
        reading = readings.pop()
        singles += reading.single_nodes
        for array in reading.array_nodes:
            if array.first in seen:
                continue
            seen.add(array.first)
            if array.kind == "each" and array.head in _KEPT:
                readings += _numbers_among(array.head, array.operands)
            elif not _is_whole(array):
                return False
    return True


def as_integer(value: Any) -> Any:
    """Return a traced number as an int of Python: the result of int(x), round(x) and math.floor(x).

    An int is never -0.0: 0 is added.
    """
    node = getattr(value, "node", None)
    if node is None:
        return value
    graph = value.scope.graph
    whole = unsigned(graph, node)
    if whole in graph.numpys:
        whole = graph.alias(whole)
    graph.integers.add(whole)
    return value if whole == node else type(value)(whole, value.scope)


def unsigned(graph: Graph, node: int) -> int:
    """Return a number plus 0, which turns -0.0 into 0.0; constants are folded.

    >>> graph = Graph()
    >>> graph.atoms[unsigned(graph, graph.number(-0.0))]
    0
    """
    known = constant(graph, node)
    if known is not None:
        return graph.number(int(known)) if known == 0 else node
    return graph.pair(sp.Add, node, graph.number(0))


def keeping_integers(graph: Graph, name: str, result: int, operands: Sequence[int]) -> int:
    """Return the result of a ufunc of numbers, noted as an int (and so never -0.0) if all operands are ints."""
    if name not in OF_INTEGERS or not all(_is_noted(graph, node) for node in operands):
        return result
    if name == "power" and not (type(exponent := constant(graph, operands[1])) is int and exponent >= 0):
        return result
    if name in SIGNED:
        result = unsigned(graph, result)
    if constant(graph, result) is None:
        graph.integers.add(result)
        if any(node in graph.numpys for node in operands):
            graph.numpys.add(result)
    return result


def _is_noted(graph: Graph, node: int) -> bool:
    return node in graph.integers or type(constant(graph, node)) is int or is_boolean(graph, node)


def note_integers(graph: Graph, nodes: Nodes) -> Nodes:
    """Note nodes as ints (of array nodes the first one); return them."""
    reading = graph.arrays.reading(nodes)
    noted = [*reading.single_nodes, *(array.first for array in reading.array_nodes)]
    graph.integers.update(noted)
    graph.numpys.update(noted)
    return nodes


def are_noted(graph: Graph, nodes: Nodes) -> bool:
    """Whether all nodes are noted as ints, or are whole constants or truth values."""
    reading = graph.arrays.reading(nodes)
    if not all(array.first in graph.integers for array in reading.array_nodes):
        return False
    return all(_is_noted(graph, node) for node in reading.single_nodes)


def is_numpys(graph: Graph, node: int) -> bool:
    """Whether an integer is one of NumPy's: made by NumPy, or from such a number."""
    waiting, seen = [node], set[int]()
    while waiting:
        part = waiting.pop()
        head, operands = graph.heads[part], graph.operands[part]
        if part in graph.numpys or (is_boolean(graph, part) and part not in graph.floats):
            return True
        if part not in seen and part not in graph.integers:
            counts = head is sp.Piecewise and [constant(graph, value) for value in operands[::2]] == [
                1,
                0,
            ]  # of a truth
            waiting += operands[1:2] if counts else _numbers_among(head, operands)
        seen.add(part)
    return False


def is_integer(graph: Graph, node: int) -> bool:
    """Whether a number is made from ints of Python and whole constants by operations that keep them whole.

    Rounded quotients are: `n // 2` is an int, and `n / 2` a float.
    """
    waiting, seen = [(node, False)], set[tuple[int, bool]]()  # and whether it is rounded
    while waiting:
        pair = current, rounded = waiting.pop()
        if pair in seen or current in graph.integers:
            continue
        seen.add(pair)
        head, operands = graph.heads[current], graph.operands[current]
        if not operands:
            if type(constant(graph, current)) not in ((int, Fraction) if rounded else (int,)):
                return False
        elif head in _KEPT or head in _ROUNDED:
            waiting += [(part, rounded or head in _ROUNDED) for part in _numbers_among(head, operands)]
        elif head is sp.Pow and type(power := constant(graph, operands[1])) is int and (rounded or power >= 0):
            waiting.append((operands[0], rounded))
        else:
            return False
    return True


def note_whole(graph: Graph, body: Program, slots: Sequence[Nodes], leaves: Nodes) -> None:
    """Note in a graph that the leaves of a body are whole numbers, if they are made from such."""
    stack, seen = [body.outputs[0].rows[0]], set[int]()
    while stack:
        row = stack.pop()
        if row in seen or body.heads[row] in _ROUNDED or isinstance(body.atoms.get(row), sp.Integer):
            continue
        seen.add(row)
        if row < len(slots):
            if not are_whole(graph, slots[row]):
                return
        elif body.heads[row] in _KEPT and body.operands[row]:
            stack += _numbers_among(body.heads[row], body.operands[row])
        else:
            return
    graph.whole[range(int(leaves.min()), int(leaves.max()) + 1)] = ANY


def _among(known: Iterable[range], low: int, high: int) -> bool:
    return any(low in its and high in its for its in known)


def _is_whole(array: ArrayNode) -> bool:
    if array.numbers is not None:
        return array.numbers.dtype != bool and bool((np.trunc(array.numbers) == array.numbers).all())
    return array.kind == "each" and array.head in _ROUNDED


def _numbers_among(head: Head | None, operands: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """Return the operands that the result consists of: not the conditions of a choice."""
    return operands[::2] if head is sp.Piecewise else operands
