"""The logarithms of divisors, through which quotients of arrays are differentiated (see `partials.log_divisor`)."""

from __future__ import annotations

from fractions import Fraction

import sympy as sp

from symad.graph.array_operands import ArrayNode, OperandAccess, result_of
from symad.graph.builder import Builder
from symad.rules.partials import is_reciprocal, log_modulus, quotient


class LogDivisors:
    """The nodes of log(|v|) for those v by which something is divided; they are never computed."""

    def __init__(self, build: Builder) -> None:
        self.build, self.arrays = build, build.graph.arrays
        self._known: dict[int, int] = {}  # by the first node of 1/v: that of log(|v|)

    def of(self, reciprocal: OperandAccess) -> OperandAccess | None:
        """Return log(|v|) in the form in which 1/v is read, None for one that is not known."""
        first = self._first(reciprocal)
        if first not in self._known:
            return None
        return self.arrays.reading(reciprocal.ids - first + self._known[first])

    def new(self, node: int | ArrayNode) -> tuple[int | ArrayNode, OperandAccess, OperandAccess] | None:
        """Return log(|v|), 1/v and v for the first quotient u/v by a v; None for another node."""
        reciprocal = self._of_number(node) if isinstance(node, int) else self._of_array(node)
        if reciprocal is None or (first := self._first(reciprocal)) in self._known:
            return None
        array = self.arrays.at(first)
        if array is None:
            v = self.build.graph.operands[first][0]
            self._known[first] = logarithm = self.build.graph.node(log_modulus, v)
            return logarithm, self.arrays.reading_of(first), self.arrays.reading_of(v)
        added = self.arrays.made(ArrayNode("each", array.shape, array.element, array.operands[:1], log_modulus))
        self._known[first] = added.first
        return added, result_of(array), array.operands[0]

    def _first(self, reading: OperandAccess) -> int:
        """Return the first node of the only array, or the only number, that is read; -1 if there are several."""
        if reading.view is not None:
            return reading.view.node.first
        return -1 if reading.only is None else reading.only

    def _of_number(self, node: int) -> OperandAccess | None:
        parts = quotient(self.build, node)
        return None if parts is None or self.arrays.at(parts[1]) is not None else self.arrays.reading_of(parts[1])

    def _of_array(self, node: ArrayNode) -> OperandAccess | None:
        if node.kind != "each" or node.head is not sp.Mul or len(node.operands) != 2:
            return None
        for reciprocal, numerator in (node.operands, node.operands[::-1]):
            is_number = numerator.only is not None and isinstance(self.build.constant(numerator.only), int | Fraction)
            if not is_number and self._is_reciprocal(reciprocal):
                return reciprocal
        return None

    def _is_reciprocal(self, reading: OperandAccess) -> bool:
        """Whether an operand is 1/v, and not the 1/(1 + exp(u)) that has a derivative of its own."""
        array = None if reading.view is None else reading.view.node
        if array is None:
            only = reading.only
            return only is not None and is_reciprocal(self.build, only)
        if array.kind != "each" or array.head is not sp.Pow or array.operands[1].only != self.build.minus_one:
            return False
        inner = array.operands[0].view
        terms = () if inner is None or inner.node.head is not sp.Add else inner.node.operands
        return not any(term.view is not None and term.view.node.head is sp.exp for term in terms)
