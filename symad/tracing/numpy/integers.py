"""Bit operations and divisors of traced whole numbers, by floors and remainders.

A bit of a whole number is a floor and a remainder, of negative ones that of their two's complement. Numbers that are
not whole by how they were made are refused, as NumPy refuses floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

import symad.tracing.values.node_builders as op
from symad.graph.array_operands import Nodes
from symad.graph.graph import Graph
from symad.tracing.numpy.reduce import is_traced, together, traced
from symad.tracing.values.constant_nodes import constant
from symad.tracing.values.node_arrays import all_truths, elementwise
from symad.tracing.values.node_operands import as_integers, nodes_of
from symad.tracing.values.traced import refuse_function
from symad.tracing.values.whole_numbers import OF_INTEGERS, SIGNED, are_noted, are_whole, note_integers

BITS = 53  # of a whole number that is a float
TABLE = 4096  # the longest table of divisors


def _bit(value: Any, k: int) -> Any:
    return np.mod(np.floor(value / 2**k), 2)


def _mask_of(left: Any, right: Any) -> tuple[Any, int] | None:
    """Return a traced operand and a plain mask, None where there is no such pair."""
    for value, mask in ((left, right), (right, left)):
        if is_traced(value) and not is_traced(mask) and np.ndim(mask) == 0 and int(mask) == mask and mask >= 0:
            return value, int(mask)
    return None


def _and(left: Any, right: Any) -> Any:
    masked = _mask_of(left, right)
    if masked is None:
        refuse_function("a bitwise operator", "two traced numbers have bits without bounds", "give a mask, k & 7")
    value, mask = masked
    if mask & (mask + 1) == 0:
        return np.mod(value, mask + 1)
    bits = [k for k in range(mask.bit_length()) if mask >> k & 1]
    return sum(2**k * _bit(value, k) for k in bits)


def _bit_count(value: Any) -> Any:
    size = np.abs(value)
    return sum(_bit(size, k) for k in range(BITS))


def _divisor(left: Any, right: Any) -> Any:
    pair = next(((a, b) for a, b in ((left, right), (right, left)) if is_traced(a) and not is_traced(b)), None)
    largest = TABLE if pair is None else int(np.max(np.abs(pair[1]), initial=1))
    if pair is None or largest >= TABLE:
        refuse_function("np.gcd", f"one of its operands has to be plain numbers below {TABLE}", "give it such")
    value, others = pair[0], np.abs(np.asarray(pair[1]))
    table = np.array([[math.gcd(k, n) if n else 0 for k in range(largest + 1)] for n in range(largest + 1)])
    rest = np.where(others == 0, 0, np.mod(value, np.where(others == 0, 1, others)))
    divisors, places = together(table.ravel(), others * (largest + 1) + rest)
    divisor = np.take(divisors, places)
    return np.where(others == 0, np.abs(value), divisor)


def _multiple(left: Any, right: Any) -> Any:
    divisor = _divisor(left, right)
    return np.where(divisor == 0, 0, np.abs(left * right) / np.where(divisor == 0, 1, divisor))


INTEGERS: dict[str, Callable[..., Any]] = {
    "bitwise_and": _and, "gcd": _divisor, "lcm": _multiple, "invert": lambda u: -u - 1,
    "bitwise_or": lambda u, v: u + v - _and(u, v), "bitwise_xor": lambda u, v: u + v - 2 * _and(u, v),
    "left_shift": lambda u, n: np.trunc(u * 2.0**n) if is_traced(n) else u * np.left_shift(1, n),  # seen to be whole
    "right_shift": lambda u, n: np.floor(u / 2.0**n),
    "bitwise_count": _bit_count,
}  # fmt: skip
_OF_TRUTHS = frozenset({"bitwise_and", "bitwise_or", "bitwise_xor", "invert"})


def keeping_integers(graph: Graph, name: str, result: Nodes, operands: Sequence[npt.NDArray[Any]]) -> Nodes:
    """Return what an operation makes of arrays, noted as ints where all operands are, and never -0.0 then."""
    if not (graph.integers and result.size) or any(nodes.dtype != np.int64 for nodes in operands):
        return result
    if name not in OF_INTEGERS or not all(are_noted(graph, nodes) for nodes in operands):
        return result
    if name == "power" and any((constant(graph, node) or 0) < 0 for node in operands[1].ravel().tolist()):
        return result
    if name in SIGNED:
        result = elementwise(graph, op.add, result, np.array(graph.number(0)))
    return note_integers(graph, result)


def integer_form(ufunc: np.ufunc, inputs: Any) -> Callable[..., Any] | None:
    """Return what a ufunc of bits and divisors is of whole numbers; None for truth values, and for other ufuncs."""
    form = INTEGERS.get(ufunc.__name__)
    if form is None:
        return None
    whole = [value for value in inputs if is_traced(value) or np.asarray(value).dtype != bool]
    parts = [(traced(value), value) for value in whole if is_traced(value)]
    if ufunc.__name__ in _OF_TRUTHS and all(
        not v.size or all_truths(v.scope.graph, nodes_of(v, v.scope)) for v, _ in parts
    ):
        return None
    if not all(are_whole(v.scope.graph, nodes_of(v, v.scope)) for v, _ in parts):
        if ufunc.__name__ in _OF_TRUTHS:
            return None  # which refuses them
        refuse_function(f"np.{ufunc.__name__}", "it is defined for integers only", "write x.astype(int)")
    return lambda *operands: as_integers(form(*operands))
