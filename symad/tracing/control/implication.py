"""What conditions that were decided say about other conditions: `x < 0` implies `x < 1`, and excludes `x >= 0`.

Used to follow no path that nothing can take. The reasoning is simple and never wrong: one interval for each quantity
that is compared with numbers, the sign of the difference for two quantities, three-valued logic for connectives, and
NaN, for which every comparison but != is false, is a possible value until a comparison held.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import sympy as sp

from symad.graph.graph import Graph
from symad.tracing.values.constant_nodes import constant

Bound = tuple[float, int]  # a number, and -1 just below it, 0 at it, 1 just above it

_LOWEST, _HIGHEST = (-math.inf, 0), (math.inf, 0)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_SIGNS = {
    sp.StrictLessThan: "<", sp.LessThan: "<=", sp.StrictGreaterThan: ">", sp.GreaterThan: ">=", sp.Equality: "==",
    sp.Unequality: "!=",
}  # fmt: skip


@dataclass(frozen=True)
class _Range:
    """The values a quantity can still have: an interval, and perhaps NaN."""

    low: Bound = _LOWEST
    high: Bound = _HIGHEST
    nan: bool = True

    def truth(self, low: Bound, high: Bound) -> bool | None:
        """Whether the quantity lies in an interval; NaN does not."""
        if not self.nan and low <= self.low and self.high <= high:
            return True
        return False if max(low, self.low) > min(high, self.high) else None

    def within(self, low: Bound, high: Bound, nan: bool) -> _Range:
        return _Range(max(low, self.low), min(high, self.high), nan)


class Knowledge:
    """What follows from the conditions assumed so far.

    >>> graph = Graph()
    >>> x, zero, one = graph.leaf(sp.Symbol("x")), graph.number(0), graph.number(1)
    >>> known = Knowledge(graph)
    >>> known.assume(graph.node(sp.StrictLessThan, x, zero), True)
    >>> known.truth(graph.node(sp.StrictLessThan, x, one)), known.truth(graph.node(sp.LessThan, zero, x))
    (True, False)
    """

    def __init__(self, graph: Graph, known: Knowledge | None = None) -> None:
        self._graph = graph
        self._decided: dict[int, bool] = {} if known is None else dict(known._decided)
        self._ranges: dict[tuple[int, ...], _Range] = {} if known is None else dict(known._ranges)

    def truth(self, condition: int) -> bool | None:
        """Return whether a condition holds, None when it may or may not."""
        found: dict[int, bool | None] = {}
        for node in self._connected(condition):
            parts = [found.get(operand) for operand in self._graph.operands[node]]
            found[node] = self._decided[node] if node in self._decided else self._combined(node, parts)
        return found[condition]

    def assume(self, condition: int, outcome: bool) -> None:
        """Take a condition for decided."""
        stack = [(condition, outcome)]
        while stack:
            node, holds = stack.pop()
            self._decided[node] = holds
            head, operands = self._graph.heads[node], self._graph.operands[node]
            if head is sp.Not:
                stack.append((operands[0], not holds))
            elif (head is sp.And and holds) or (head is sp.Or and not holds):
                stack += [(operand, holds) for operand in operands]
            elif head in _SIGNS:
                self._narrow(node, holds)

    def leaves_only_nan(self) -> bool:
        """Whether the conditions assumed can hold together only where some quantity is NaN."""
        return any(known.low > known.high for known in self._ranges.values())

    def _connected(self, condition: int) -> list[int]:
        """Return a condition and the conditions it is made of, the parts first."""
        seen, stack = {condition}, [condition]
        while stack:
            node = stack.pop()
            if self._graph.heads[node] in (sp.And, sp.Or, sp.Not):
                fresh = [operand for operand in self._graph.operands[node] if operand not in seen]
                seen.update(fresh)
                stack += fresh
        return sorted(seen)

    def _combined(self, node: int, parts: list[bool | None]) -> bool | None:
        head = self._graph.heads[node]
        if head is sp.Not:
            return None if parts[0] is None else not parts[0]
        if head in (sp.And, sp.Or):
            decisive = head is sp.Or
            return decisive if decisive in parts else None if None in parts else not decisive
        if node in self._graph.atoms:
            return self._graph.atoms[node] is sp.true
        compared = self._compared(node) if head in _SIGNS else None
        if compared is None:
            return None
        quantity, sign, number = compared
        holds = self._ranges.get(quantity, _Range()).truth(*_interval("==" if sign == "!=" else sign, number))
        return holds if sign != "!=" or holds is None else not holds

    def _narrow(self, node: int, holds: bool) -> None:
        compared = self._compared(node)
        if compared is None:
            return
        quantity, sign, number = compared
        sign, holds = ("==", not holds) if sign == "!=" else (sign, holds)
        known = self._ranges.get(quantity, _Range())
        if holds:
            self._ranges[quantity] = known.within(*_interval(sign, number), nan=False)
        elif sign != "==":
            opposite = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[sign]
            self._ranges[quantity] = known.within(*_interval(opposite, number), nan=known.nan)

    def _compared(self, node: int) -> tuple[tuple[int, ...], str, float] | None:
        """Return a comparison as (quantity, sign, number); the quantity of two nodes is their difference."""
        left, right = self._graph.operands[node]
        sign = _SIGNS[self._graph.heads[node]]
        if constant(self._graph, left) is not None or left > right:
            left, right, sign = right, left, _MIRRORED[sign]
        if constant(self._graph, left) is not None:
            left, right, sign = right, left, _MIRRORED[sign]
        exact = constant(self._graph, right)
        if exact is None:
            return (left, right), sign, 0.0
        try:
            number = float(exact)
        except OverflowError:  # an int beyond the floats
            return None
        return None if math.isnan(number) else ((left,), sign, number)


def _interval(sign: str, number: float) -> tuple[Bound, Bound]:
    """Return the numbers for which a comparison with `number` holds."""
    return {
        "<": (_LOWEST, (number, -1)),
        "<=": (_LOWEST, (number, 0)),
        ">": ((number, 1), _HIGHEST),
        ">=": ((number, 0), _HIGHEST),
        "==": ((number, 0), (number, 0)),
    }[sign]
