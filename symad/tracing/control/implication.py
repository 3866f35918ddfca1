"""What decided conditions imply: `x < 0` implies `x < 1` and excludes `x >= 0`.

Paths that no value can take are not followed. The reasoning is simple and sound: a set of intervals for each quantity
that is compared with numbers, the sign of the difference for two quantities, three-valued logic for connectives. NaN,
for which every comparison but != is false, is a possible value until a comparison holds.
"""

from __future__ import annotations

import math
from functools import reduce

import sympy as sp

from codegen.records import dataclass
from symad.graph.graph import Graph
from symad.tracing.values.bounds import ANY, Bounds
from symad.tracing.values.constant_nodes import constant

Bound = tuple[float, int]  # a number, and -1 just below it, 0 at it, 1 just above it
Intervals = tuple[tuple[Bound, Bound], ...]  # which rise and have gaps between them

_LOWEST, _HIGHEST = (-math.inf, 0), (math.inf, 0)
_ALL: Intervals = ((_LOWEST, _HIGHEST),)
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_CONNECTIVES = (sp.And, sp.Or, sp.Not)
_SIGNS = {
    sp.StrictLessThan: "<", sp.LessThan: "<=", sp.StrictGreaterThan: ">", sp.GreaterThan: ">=", sp.Equality: "==",
    sp.Unequality: "!=",
}  # fmt: skip


def _both(first: Intervals, second: Intervals) -> Intervals:
    """Return the intersection."""
    pairs = [(max(low, bottom), min(high, top)) for low, high in first for bottom, top in second]
    return tuple((low, high) for low, high in pairs if low <= high)


def _outside(intervals: Intervals) -> Intervals:
    """Return the numbers that are in none of the intervals.

    >>> _outside((((0.0, 0), (1.0, -1)),))
    (((-inf, 0), (0.0, -1)), ((1.0, 0), (inf, 0)))
    """
    lows = [_LOWEST, *[(number, step + 1) for _, (number, step) in intervals]]
    highs = [*[(number, step - 1) for (number, step), _ in intervals], _HIGHEST]
    return tuple((low, high) for low, high in zip(lows, highs, strict=True) if low <= high)


@dataclass(frozen=True)
class _Where:
    """The values of one quantity for which a condition holds: numbers, and whether NaN is one."""

    quantity: tuple[int, ...]
    numbers: Intervals
    nan: bool = False

    def negated(self) -> _Where:
        return _Where(self.quantity, _outside(self.numbers), not self.nan)

    def conjoined(self, other: _Where) -> _Where:
        return _Where(self.quantity, _both(self.numbers, other.numbers), self.nan and other.nan)


@dataclass(frozen=True)
class _Range:
    """The possible values of a quantity: numbers, and perhaps NaN."""

    numbers: Intervals = _ALL
    nan: bool = True

    def truth(self, where: _Where) -> bool | None:
        """Whether a condition on the quantity holds; False if no value is possible."""
        possible = {where.nan} if self.nan else set()
        if _both(self.numbers, where.numbers):
            possible.add(True)
        if _both(self.numbers, _outside(where.numbers)):
            possible.add(False)
        return None if len(possible) == 2 else True in possible

    def within(self, where: _Where) -> _Range:
        return _Range(_both(self.numbers, where.numbers), self.nan and where.nan)


class Knowledge:
    """The consequences of the conditions assumed so far.

    >>> graph = Graph()
    >>> x, zero, one = graph.leaf(sp.Symbol("x")), graph.number(0), graph.number(1)
    >>> known = Knowledge(graph)
    >>> known.assume(graph.node(sp.StrictLessThan, x, zero), True)
    >>> known.truth(graph.node(sp.StrictLessThan, x, one)), known.truth(graph.node(sp.LessThan, zero, x))
    (True, False)
    """

    def __init__(
        self, graph: Graph, known: Knowledge | None = None, met: dict[int, _Where | None] | None = None
    ) -> None:
        self._graph = graph
        self._met = {} if met is None else met  # where conditions hold, for those asked so far on any path
        self._decided: dict[int, bool] = {} if known is None else dict(known._decided)
        self._ranges: dict[tuple[int, ...], _Range] = {} if known is None else dict(known._ranges)

    def truth(self, condition: int) -> bool | None:
        """Return whether a condition holds, None when it may or may not."""
        truths: dict[int, bool | None] = {}
        for node in self._connected(condition):
            parts = [truths.get(operand) for operand in self._graph.operands[node]]
            truths[node] = self._decided[node] if node in self._decided else self._combined(node, parts)
        is_open = truths[condition] is None and self._graph.heads[condition] in _CONNECTIVES
        where = self._where(condition) if is_open else None
        return truths[condition] if where is None else self._range(where).truth(where)

    def assume(self, condition: int, outcome: bool) -> None:
        """Take a condition as decided."""
        stack = [(condition, outcome)]
        while stack:
            node, holds = stack.pop()
            self._decided[node] = holds
            head, operands = self._graph.heads[node], self._graph.operands[node]
            if head is sp.Not:
                stack.append((operands[0], not holds))
            elif (head is sp.And and holds) or (head is sp.Or and not holds):
                stack += [(operand, holds) for operand in operands]
            elif (where := self._where(node)) is not None:
                self._ranges[where.quantity] = self._range(where).within(where if holds else where.negated())

    def bounds(self, node: int) -> Bounds:
        """Return the bounds of a quantity under the assumed conditions."""
        known = self._ranges.get((node,))
        if known is None or not known.numbers:
            return ANY
        return Bounds(known.numbers[0][0][0], known.numbers[-1][1][0], known.nan)

    def leaves_only_nan(self) -> bool:
        """Whether the assumed conditions can hold together only if some quantity is NaN."""
        return any(not known.numbers for known in self._ranges.values())

    def _connected(self, condition: int) -> list[int]:
        """Return a condition and its parts, parts first."""
        seen, stack = {condition}, [condition]
        while stack:
            node = stack.pop()
            if self._graph.heads[node] in _CONNECTIVES:
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
        return None if compared is None else self._range(compared).truth(compared)

    def _range(self, where: _Where) -> _Range:
        return self._ranges.get(where.quantity, _Range())

    def _where(self, condition: int) -> _Where | None:
        """Return where a condition on one quantity holds, None for other conditions."""
        if condition not in self._met:
            for node in self._connected(condition):
                self._met[node] = self._region(node)
        return self._met[condition]

    def _region(self, node: int) -> _Where | None:
        """Return where a comparison holds, or a connective of conditions on one quantity."""
        head = self._graph.heads[node]
        if head in _SIGNS:
            return self._compared(node)
        parts = [self._met.get(operand) for operand in self._graph.operands[node]] if head in _CONNECTIVES else []
        regions = [part for part in parts if part is not None]
        if not parts or len(regions) < len(parts) or len({region.quantity for region in regions}) > 1:
            return None
        if head is sp.And:
            return reduce(_Where.conjoined, regions)
        negated = reduce(_Where.conjoined, [region.negated() for region in regions])
        return negated if head is sp.Not else negated.negated()  # not a, or a | b = ~(~a & ~b)

    def _compared(self, node: int) -> _Where | None:
        """Return where a comparison holds. The quantity of two nodes is their difference."""
        left, right = self._graph.operands[node]
        sign = _SIGNS[self._graph.heads[node]]
        if constant(self._graph, left) is not None or left > right:
            left, right, sign = right, left, _MIRRORED[sign]
        if constant(self._graph, left) is not None:
            left, right, sign = right, left, _MIRRORED[sign]
        if left == right:  # as NaN is found
            equal = _Where((left,), _ALL if sign in ("<=", ">=", "==", "!=") else ())
            return equal.negated() if sign == "!=" else equal
        exact = constant(self._graph, right)
        if exact is None:
            return _comparison((left, right), sign, 0.0)
        try:
            number = float(exact)
        except OverflowError:  # an int beyond the floats
            return None
        return None if math.isnan(number) else _comparison((left,), sign, number)


def _comparison(quantity: tuple[int, ...], sign: str, number: float) -> _Where:
    """Return where a comparison with a number holds."""
    if sign == "!=":
        return _comparison(quantity, "==", number).negated()
    low, high = {
        "<": (_LOWEST, (number, -1)),
        "<=": (_LOWEST, (number, 0)),
        ">": ((number, 1), _HIGHEST),
        ">=": ((number, 0), _HIGHEST),
        "==": ((number, 0), (number, 0)),
    }[sign]
    return _Where(quantity, ((low, high),) if low <= high else ())
