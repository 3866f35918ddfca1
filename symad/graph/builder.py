"""Constructors that rules and derivative passes grow a graph with.

A trace is kept as written; derivative passes may write better. So these constructors fold numbers, drop factors of one
and powers of one, and sort commutative pairs: rewrites that never change a bit of the value. They never drop a zero: a
structural zero is an absent entry, and the number 0 stays a number.

Guards are conditions, alone or joined; None is the guard that always holds, `never` the one that holds nowhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain, product

import sympy as sp

from codegen.evaluation.constant_folding import plain_number
from codegen.ir.program import Head
from symad.graph.graph import Graph

_STRICT = (sp.StrictLessThan, sp.StrictGreaterThan)
Exact = int | Fraction
Literals = frozenset[tuple[int, bool]]  # conditions, and whether each holds

MOST_ALTERNATIVES = 16  # of a guard that is looked into


class Builder:
    """Constructors over one graph; every method takes and returns node ids.

    >>> graph = Graph()
    >>> build = Builder(graph)
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> build.mul(build.one, x) == x
    True
    >>> graph.atoms[build.mul(build.number(2), build.number(Fraction(3, 4)))]
    3/2
    """

    __slots__ = ("_alternatives", "_constants", "finite", "graph", "half", "minus_one", "never", "one", "true", "two",
                 "zero", "zeros")  # fmt: skip

    def __init__(self, graph: Graph) -> None:
        self.graph: Graph = graph
        self._constants: dict[int, Exact | float | None] = {}
        self.finite: dict[int, bool] = {}  # whether nodes are finite, by `symad.rules.partials`
        self.zeros: set[int] = set()  # leaves of constants, of a body of a loop, of which some are 0
        self._alternatives: dict[int, tuple[Literals, ...]] = {}
        self.zero: int = graph.number(0)
        self.one: int = graph.number(1)
        self.two: int = graph.number(2)
        self.minus_one: int = graph.number(-1)
        self.half: int = graph.number(Fraction(1, 2))
        self.true: int = graph.number(True)
        self.never: int = graph.number(False)

    def number(self, value: int | float | Fraction) -> int:
        """Return the leaf of a number."""
        return self.graph.number(value)

    def constant(self, node: int) -> Exact | float | None:
        """Return the value of a finite numeric leaf (int or Fraction when exact, float for a Float), else None."""
        if self.graph.operands[node]:  # asked of every operand: most are no leaves
            return None
        if node not in self._constants:
            atom = self.graph.atoms.get(node)
            if atom is None:
                return None
            self._constants[node] = plain_number(atom) if isinstance(atom, sp.Rational | sp.Float) else None
        return self._constants[node]

    def even_integer(self, node: int) -> int | None:
        """Return the value of a leaf that is an even Integer, else None."""
        value = self.constant(node)
        return value if isinstance(value, int) and value % 2 == 0 else None

    def call(self, head: Head, *operands: int) -> int:
        """Return `head(*operands)`, through the folding constructor where the head has one."""
        fold = _FOLDING.get(head)
        return self.graph.node(head, *operands) if fold is None else fold(self, *operands)

    def add(self, left: int, right: int, *more: int) -> int:
        """Return the sum, from left to right."""
        total = self._pair(sp.Add, left, right)
        for term in more:
            total = self._pair(sp.Add, total, term)
        return total

    def mul(self, left: int, right: int, *more: int) -> int:
        """Return the product, from left to right, without factors of one."""
        unit = self.one
        product = right if left == unit else left if right == unit else self._pair(sp.Mul, left, right)
        for factor in more:
            product = self._product(product, factor)
        return product

    def neg(self, operand: int) -> int:
        """Return -u."""
        return self.mul(self.minus_one, operand)

    def sub(self, left: int, right: int) -> int:
        """Return u - v."""
        return self.add(left, self.neg(right))

    def reciprocal(self, operand: int) -> int:
        """Return 1/u."""
        return self.graph.node(sp.Pow, operand, self.minus_one)

    def div(self, left: int, right: int) -> int:
        """Return u / v."""
        return self.mul(left, self.reciprocal(right))

    def sqrt(self, operand: int) -> int:
        """Return the square root of u."""
        return self.graph.node(sp.Pow, operand, self.half)

    def power(self, base: int, exponent: int) -> int:
        """Return u**v, without powers of zero and one."""
        value = self.constant(exponent)
        if value == 1:
            return base
        return self.one if value == 0 else self.graph.node(sp.Pow, base, exponent)

    def select(self, condition: int, value: int, otherwise: int) -> int:
        """Return `value` where the condition holds, else `otherwise`."""
        if value == otherwise:
            return value
        return self.graph.node(sp.Piecewise, value, condition, otherwise, self.true)

    def both(self, left: int | None, right: int | None) -> int | None:
        """Return the conjunction of two guards: `never` where they exclude each other.

        >>> build = Builder(Graph())
        >>> p, q = (build.graph.leaf(sp.Symbol(name)) for name in "pq")
        >>> build.both(build.both(p, q), build.negate(p)) == build.never
        True
        >>> build.both(build.both(p, q), p) == build.both(p, q)
        True
        """
        if left is None or left == right:
            return right
        if right is None:
            return left
        if self.never in (left, right):
            return self.never
        alternatives, other = self._alternatives_of(left), self._alternatives_of(right)
        if all(_exclude(a, b) for a in alternatives for b in other):
            return self.never
        if all(any(a >= b for b in other) for a in alternatives):
            return left  # which implies the other
        if all(any(b >= a for a in alternatives) for b in other):
            return right
        return self.graph.pair(sp.And, left, right)

    def either(self, left: int | None, right: int | None) -> int | None:
        """Return the disjunction of two guards."""
        if left is None or right is None:
            return None
        if self.never in (left, right):
            return left if right == self.never else right
        if self.negate(left) == right or self._are_sides(left, right):
            return None
        return left if left == right else self.graph.pair(sp.Or, left, right)

    def _are_sides(self, left: int, right: int) -> bool:
        """Whether two guards are not u < v and not v < u, one of which always holds: the sides of an extremum."""
        heads, operands = self.graph.heads, self.graph.operands
        if heads[left] is not sp.Not or heads[right] is not sp.Not:
            return False
        (first,), (second,) = operands[left], operands[right]
        order = heads[first]
        return order is heads[second] and order in _STRICT and operands[first] == operands[second][::-1]

    def _alternatives_of(self, guard: int) -> tuple[Literals, ...]:
        """Return a guard as conjunctions of conditions, one of which holds; of a large one, its outermost parts."""
        heads, operands, known = self.graph.heads, self.graph.operands, self._alternatives
        stack = [guard]
        while stack:
            node = stack[-1]
            parts = operands[node] if heads[node] in (sp.And, sp.Or) else ()
            missing = [part for part in parts if part not in known]
            stack += missing
            if not missing:
                known[stack.pop()] = self._joined(node, [known[part] for part in parts])
        return known[guard]

    def _joined(self, node: int, parts: list[tuple[Literals, ...]]) -> tuple[Literals, ...]:
        heads, operands = self.graph.heads, self.graph.operands
        if heads[node] is sp.Or and sum(map(len, parts)) <= MOST_ALTERNATIVES:
            return tuple(dict.fromkeys(chain.from_iterable(parts)))
        if parts and heads[node] is sp.And and math.prod(map(len, parts)) <= MOST_ALTERNATIVES:
            return tuple(frozenset[tuple[int, bool]]().union(*choice) for choice in product(*parts))
        literal = (operands[node][0], False) if heads[node] is sp.Not else (node, True)
        return (frozenset([literal]),)

    def negate(self, condition: int) -> int:
        """Return the negation of a condition."""
        if self.graph.heads[condition] is sp.Not:
            return self.graph.operands[condition][0]
        return self.graph.node(sp.Not, condition)

    def _product(self, left: int, right: int) -> int:
        if left == self.one:
            return right
        return left if right == self.one else self._pair(sp.Mul, left, right)

    def _pair(self, head: Head, left: int, right: int) -> int:
        operands = self.graph.operands
        if not (operands[left] or operands[right]):
            a, b = self.constant(left), self.constant(right)
            if a is not None and b is not None:
                return self.number(simplest(a + b if head is sp.Add else a * b))
        return self.graph.pair(head, left, right)


def _exclude(left: Literals, right: Literals) -> bool:
    """Whether one conjunction needs a condition whose opposite the other needs."""
    return any((node, not holds) in right for node, holds in left)


def simplest(value: Exact | float) -> Exact | float:
    """Return an int for a Fraction that is one."""
    return value.numerator if isinstance(value, Fraction) and value.denominator == 1 else value


_FOLDING: dict[Head, Callable[..., int]] = {sp.Add: Builder.add, sp.Mul: Builder.mul, sp.Pow: Builder.power}
