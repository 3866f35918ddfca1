"""Bounds of nodes by interval arithmetic, and whether a node may be NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import permutations
from typing import NamedTuple

import numpy as np
import sympy as sp

import codegen.heads as h
from codegen.ir.program import Head
from symad.graph.graph import Graph
from symad.tracing.values.constant_nodes import constant, is_boolean


class Bounds(NamedTuple):
    """The least and largest possible number of a node, and whether it may be NaN."""

    low: float = -math.inf
    high: float = math.inf
    nan: bool = True


ANY = Bounds()
_COMPARED = {  # order of the sides that makes a comparison < or <=, and whether it is <
    sp.StrictLessThan: (1, True), sp.LessThan: (1, False),
    sp.StrictGreaterThan: (-1, True), sp.GreaterThan: (-1, False),
}  # fmt: skip
Known = Callable[[int], Bounds]


def bounds_of(graph: Graph, node: int, known: Known | None = None, cache: dict[int, Bounds] | None = None) -> Bounds:
    """Return the bounds of a node; `known` returns further bounds of nodes, from the current path.

    Without it, `cache` may be kept between calls.

    >>> graph = Graph()
    >>> down = graph.node(sp.floor, graph.leaf(sp.Symbol("x")))
    >>> tuple(bounds_of(graph, graph.node(sp.Max, graph.node(sp.Mod, down, graph.number(4)), graph.number(1))))
    (1.0, 3.0, True)
    """
    cache = {} if cache is None else cache
    stack = [node]
    while stack:
        top = stack[-1]
        operands = _numbers(graph, top)
        missing = [operand for operand in operands if operand not in cache]
        if missing:
            stack += missing
            continue
        stack.pop()
        if top not in cache:
            bounds = _of(graph, top, [cache[operand] for operand in operands])
            cache[top] = bounds if known is None else _within(bounds, known(top))
    return cache[node]


def truth_by_bounds(graph: Graph, condition: int, cache: dict[int, Bounds]) -> bool | None:
    """Return the truth of a comparison that the bounds of both sides decide, None for any other; NaN makes it false.

    >>> graph = Graph()
    >>> square = graph.node(sp.Abs, graph.leaf(sp.Symbol("x")))
    >>> truth_by_bounds(graph, graph.node(sp.StrictLessThan, square, graph.number(0)), {})
    False
    """
    sides = _COMPARED.get(graph.heads[condition])
    if sides is None:
        return None
    order, strict = sides
    left, right = (bounds_of(graph, node, cache=cache) for node in graph.operands[condition][::order])
    if left.low > right.high or (strict and left.low == right.high):
        return False
    holds = left.high < right.low or (not strict and left.high == right.low)
    return True if holds and not (left.nan or right.nan) else None


def _numbers(graph: Graph, node: int) -> Sequence[int]:
    """Return the operands that determine the bounds: of a choice its numbers."""
    if graph.arrays.at(node) is not None or is_boolean(graph, node):
        return ()
    head = graph.heads[node]
    return graph.operands[node][:: 2 if head is sp.Piecewise else 1] if head in _RULES else ()


def _within(first: Bounds, second: Bounds) -> Bounds:
    return Bounds(max(first.low, second.low), min(first.high, second.high), first.nan and second.nan)


def _of(graph: Graph, node: int, operands: Sequence[Bounds]) -> Bounds:
    noted: Bounds | None = next((bounds for leaves, bounds in graph.whole.items() if node in leaves), None)
    if noted is not None:
        return noted
    if is_boolean(graph, node):
        return Bounds(0.0, 1.0, False)
    number = constant(graph, node)
    if number is not None:
        return _of_number(number)
    rule = _RULES.get(graph.heads[node])
    if rule is None or not operands or graph.arrays.at(node) is not None:
        return ANY
    low, high = (_rounded(end, side) for end, side in zip(rule(graph, node, operands), (-1, 1), strict=True))
    nan = any(operand.nan for operand in operands) or math.isnan(low) or math.isnan(high)
    return Bounds(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high, nan)


def _rounded(end: float, side: int) -> float:
    """Return an end moved outwards by the error of rounding in another order, unless it is exact."""
    return end if math.isinf(end) or math.isnan(end) or end == round(end) else end + side * abs(end) * 1e-12


def _of_number(number: object) -> Bounds:
    try:
        value = float(number)  # type: ignore[arg-type]
    except OverflowError:  # an int beyond the floats
        return ANY
    return Bounds(math.inf, -math.inf) if math.isnan(value) else Bounds(value, value, False)


_Pair = tuple[float, float]
_Rule = Callable[[Graph, int, Sequence[Bounds]], _Pair]


def _rising(function: Callable[[float], float]) -> _Rule:
    def rule(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
        with np.errstate(all="ignore"):
            return float(function(operands[0].low)), float(function(operands[0].high))

    return rule


def _between(low: float, high: float) -> _Rule:
    return lambda graph, node, operands: (low, high)


def _sum(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
    is_zero = operands[0].nan or math.isfinite(operands[0].high - operands[0].low)
    if is_zero and _cancels(graph, *graph.operands[node]):
        return 0.0, 0.0  # or NaN, at infinity
    return sum(term.low for term in operands), sum(term.high for term in operands)


def _cancels(graph: Graph, *terms: int) -> bool:
    """Whether a sum has a number and its negative as terms."""
    if len(terms) != 2:
        return False
    return any(
        graph.heads[minus] is sp.Mul
        and any(a == plus and constant(graph, b) == -1 for a, b in permutations(graph.operands[minus], 2))
        for plus, minus in permutations(terms)
    )


def _product(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
    def times(first: _Pair, second: _Pair) -> _Pair:
        ends = [0.0 if 0.0 in (a, b) else a * b for a in first for b in second]
        return min(ends), max(ends)

    return reduce(times, [(factor.low, factor.high) for factor in operands])


def _absolute(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
    low, high, _ = operands[0]
    return max(low, -high, 0.0), max(abs(low), abs(high))


def _remainder(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
    """Return the bounds of a remainder, below its divisor if both are whole."""
    divisor = constant(graph, graph.operands[node][1])
    if divisor is None or not divisor > 0:
        return -math.inf, math.inf
    if operands[0].low >= 0 and operands[0].high < divisor:
        return operands[0].low, operands[0].high
    whole = isinstance(divisor, int) and graph.heads[graph.operands[node][0]] in _ROUNDED
    return 0.0, float(divisor) - (1.0 if whole else 0.0)


def _power(graph: Graph, node: int, operands: Sequence[Bounds]) -> _Pair:
    exponent = constant(graph, graph.operands[node][1])
    low, high, _ = operands[0]
    if exponent == -1 and low > 0:
        return 1 / high, 1 / low
    even = isinstance(exponent, int) and exponent % 2 == 0
    return (0.0 if even or low >= 0 else -math.inf), math.inf


_ROUNDED = frozenset({sp.floor, sp.ceiling, h.trunc, h.rint})
_RULES: dict[Head, _Rule] = {
    sp.floor: _rising(np.floor), sp.ceiling: _rising(np.ceil), h.trunc: _rising(np.trunc), h.rint: _rising(np.rint),
    h.Alias: lambda graph, node, operands: operands[0][:2],
    sp.Add: _sum, sp.Mul: _product, sp.Abs: _absolute, sp.Mod: _remainder, sp.Pow: _power,
    sp.Max: lambda graph, node, operands: (max(part.low for part in operands), max(part.high for part in operands)),
    sp.Min: lambda graph, node, operands: (min(part.low for part in operands), min(part.high for part in operands)),
    sp.Piecewise: lambda graph, node, operands: (
        min(part.low for part in operands), max(part.high for part in operands)
    ),
    sp.sin: _between(-1.0, 1.0), sp.cos: _between(-1.0, 1.0), sp.tanh: _between(-1.0, 1.0),
    sp.sign: _between(-1.0, 1.0), sp.exp: _between(0.0, math.inf),
}  # fmt: skip
