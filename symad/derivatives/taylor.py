"""Taylor coefficients a_0 to a_K of f(x(t)) along a path x(t) = x + v t + w t**2 + ..., for every node.

The recurrences are generated, not written per head. If y = h(u, ...) then y' = h_u u' + ..., so

    k y_k  =  sum over the edges of y, sum over j = 1..k, of  j u_j c_(k-j)

where the edge's coefficient c is the node that `symad.rules.partials` gives, and has a series of its own, needed to
one order less. Sharing closes the system: the coefficient of exp(u) is exp(u) itself, that of sin(u) is cos(u), whose
own is -sin(u); a family that does not close (gamma, polygamma(0, u), polygamma(1, u)...) grows by one node for each
order. Only products and constant powers, whose textbook recurrences need fewer operations, have rules of their own.
A coefficient is a_k, not k! a_k: nothing overflows before the series does. A guard stays outside every product.

Source: Griewank and Walther, "Evaluating Derivatives", 2nd ed. (2008), chapter 13.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

import sympy as sp

from symad.derivatives.level import note
from symad.derivatives.linear import Term, between, linearize, scale, settle, totals
from symad.derivatives.modes import cheapest, operations_of
from symad.errors import RuleError
from symad.graph.builder import Builder, simplest
from symad.rules.partials import Edge, derivative_form, edges
from symad.tracing.calling.scope import innermost_scope
from symad.tracing.calling.user_place import located

LARGEST_WHOLE = 1024  # exponents of whole powers that are products of halves; beyond it the chain rule is shorter

Step: TypeAlias = Callable[[int], Term | None]  # the k-th coefficient of one node from those known so far


def taylor_coefficients(
    build: Builder, outputs: Sequence[int], parameters: Sequence[int], path: Sequence[Sequence[int | None]], order: int
) -> list[list[int | None]]:
    """Return the coefficients a_0 .. a_order of the outputs, one list for each order; None is a structural zero.

    `path[k]` has the coefficient of t**(k + 1) of each parameter. RuleError when a head has no derivative.

    >>> from symad.graph.graph import Graph
    >>> build = Builder(Graph())
    >>> x = build.graph.alias(build.graph.leaf(sp.Symbol("x")))
    >>> y = build.graph.node(sp.exp, x)
    >>> [[y_0], [y_1], [y_2]] = taylor_coefficients(build, [y], [x], [[build.one]], 2)
    >>> y_0 == y_1 == y, y_2 == build.mul(build.half, y)
    (True, True)
    """
    start, expansion = len(build.graph), _Expansion(build, parameters, path, order)
    expansion.find_rules(outputs)
    for k in range(1, order + 1):
        for node, limit, step in expansion.rows:
            if k <= limit:
                expansion.series[node].append(step(k))
    terms_by_order = [[expansion.known(node, k) for node in outputs] for k in range(order + 1)]
    scope = innermost_scope()
    level = 0 if scope is None else scope.depth
    note(
        "eliminated",
        build.graph,
        level,
        start,
        None,
        "taylor",
        "tangent",
        expansion.series,
        expansion.residuals,
        outputs,
    )
    return [[None if term is None else settle(build, term) for term in row] for row in terms_by_order]


class _Expansion:
    """The series of all active nodes, and for each the step that makes its next coefficient."""

    def __init__(
        self, build: Builder, parameters: Sequence[int], path: Sequence[Sequence[int | None]], order: int
    ) -> None:
        self.build, self.parameters, self.order = build, parameters, order
        self.rows: list[tuple[int, int, Step]] = []  # (node, highest order that is needed, step), operands first
        self.needed: list[int] = []  # partial derivatives that rules multiply by
        self.residuals: list[int] = []  # the same, and the other values that they multiply by
        self.series: dict[int, list[Term | None]] = {}
        for position, parameter in enumerate(parameters):
            nodes = [row[position] for row in path[:order]] + [None] * (order - len(path))
            self.series[parameter] = [(parameter, None), *(None if node is None else (node, None) for node in nodes)]

    def find_rules(self, outputs: Sequence[int]) -> None:
        """Give a rule to all nodes, and to the partial derivatives that these need, one order less each time."""
        roots = list(outputs)
        for limit in range(self.order, 0, -1):
            for node in between(self.build, roots, self.parameters):
                self._add(node, limit)
            roots = [node for node in dict.fromkeys(self.needed) if node not in self.series]
            self.needed.clear()

    def known(self, node: int, k: int) -> Term | None:
        """Return a coefficient that was computed before; that of a constant is a structural zero from k = 1 on."""
        if k == 0:
            return node, None
        return self.series[node][k] if node in self.series else None

    def _add(self, node: int, limit: int) -> None:
        """Give a node its rule, if it depends on the parameters and has none yet."""
        if node in self.series:
            return
        step = self._special_rule(node, limit)
        if step is None:
            try:
                row = edges(self.build, node, self.series.__contains__)
            except RuleError as error:
                raise located(error, self.build.graph, node) from error
            if not row:
                return  # piecewise constant
            coefficients = [coefficient for coefficient, _, _ in row if coefficient is not None]
            self.needed += coefficients
            self.residuals += coefficients
            step = self._chain(row)
        self.series[node] = [(node, None)]
        self.rows.append((node, limit, step))

    def _chain(self, row: Sequence[Edge]) -> Step:
        """k y_k = sum of j u_j c_(k-j), in which the last term adds u_k c_0 to y_k: all that a constant c does."""
        build = self.build

        def step(k: int) -> Term | None:
            direct: list[Term | None] = []
            convolved: list[Term | None] = []
            for coefficient, source, guard in row:
                last = self.known(source, k)
                direct.append(last and scale(build, last, coefficient, guard))
                if coefficient is None or coefficient not in self.series:
                    continue
                for j in range(1, k):
                    weighted = self._scaled(j, self.known(source, j))
                    product = self._times(weighted, self.known(coefficient, k - j))
                    convolved.append(product and scale(build, product, None, guard))
            return self._sum([*direct, self._scaled(Fraction(1, k), self._sum(convolved))])

        return step

    def _special_rule(self, node: int, limit: int) -> Step | None:
        """Return the rule of a product of two active nodes or of a constant power of one, else None."""
        head, operands = derivative_form(self.build, node)
        if head is sp.Mul and len(operands) == 2 and all(u in self.series for u in operands):
            return self._product(*operands)
        if head is not sp.Pow or operands[0] not in self.series:
            return None
        base, exponent = operands[0], self.build.constant(operands[1])
        if exponent is None or exponent in (0, 1):
            return None
        if exponent == int(exponent) and 1 < exponent <= LARGEST_WHOLE:
            return self._whole_power(base, int(exponent), limit)
        if exponent == -1:
            return self._reciprocal(node, base)
        if exponent == Fraction(1, 2):
            return self._root(node, base)
        return None if exponent > 1 else self._power(node, base, exponent)  # u_0 = 0 is no pole of u**1.5

    def _product(self, u: int, v: int) -> Step:
        """Cauchy's product."""

        def step(k: int) -> Term | None:
            if u == v:
                return self._square(u, k, start=0)
            return self._sum([self._times(self.known(u, j), self.known(v, k - j)) for j in range(k + 1)])

        return step

    def _whole_power(self, base: int, exponent: int, limit: int) -> Step:
        """u**n as a product of two halves, which become nodes with series of their own."""
        left, right = (self.build.power(base, self.build.number(n)) for n in (exponent // 2, exponent - exponent // 2))
        self._add(left, limit)
        self._add(right, limit)
        return self._product(left, right)

    def _reciprocal(self, node: int, base: int) -> Step:
        """u y = 1 gives y_k = -y_0 (u_1 y_(k-1) + ... + u_k y_0)."""
        slope = self.build.neg(node)
        self.residuals.append(slope)

        def step(k: int) -> Term | None:
            convolved = [self._times(self.known(base, j), self.known(node, k - j)) for j in range(1, k + 1)]
            return self._times((slope, None), self._sum(convolved))

        return step

    def _root(self, node: int, base: int) -> Step:
        """y**2 = u gives 2 y_0 y_k = u_k - (y_1 y_(k-1) + ... + y_(k-1) y_1)."""
        slope = self.build.div(self.build.half, node)
        self.residuals.append(slope)

        def step(k: int) -> Term | None:
            rest = self._scaled(-1, self._square(node, k, start=1))
            return self._times((slope, None), self._sum([self.known(base, k), rest]))

        return step

    def _power(self, node: int, base: int, exponent: int | float | Fraction) -> Step:
        """u y' = a u' y gives u_0 y_k = a u_k y_0 + sum over 0 < j < k of (a j - (k - j)) / k u_j y_(k-j)."""
        build, exact = self.build, isinstance(exponent, int | Fraction)
        slope = build.mul(build.number(exponent), build.power(base, build.number(simplest(exponent - 1))))
        inverse = build.reciprocal(base)
        self.residuals += [slope, inverse]

        def step(k: int) -> Term | None:
            rest: list[Term | None] = []
            for j in range(1, k):
                factor = (Fraction(exponent) * j - (k - j)) / k
                product = self._times(self.known(base, j), self.known(node, k - j))
                rest.append(self._scaled(factor if exact else float(factor), product))
            first = self._times((slope, None), self.known(base, k))
            return self._sum([first, self._times((inverse, None), self._sum(rest))])

        return step

    def _square(self, u: int, k: int, *, start: int) -> Term | None:
        """Return the sum of u_j u_(k-j) for start <= j <= k - start, each pair formed once."""
        pairs = [self._times(self.known(u, j), self.known(u, k - j)) for j in range(start, (k + 1) // 2)]
        middle = self.known(u, k // 2) if k % 2 == 0 and k // 2 >= start else None
        return self._sum([self._scaled(2, self._sum(pairs)), self._times(middle, middle)])

    def _times(self, left: Term | None, right: Term | None) -> Term | None:
        return None if left is None or right is None else scale(self.build, right, *left)

    def _scaled(self, factor: int | float | Fraction, term: Term | None) -> Term | None:
        if term is None or factor == 0:
            return None
        return scale(self.build, term, self.build.number(simplest(factor)), None)

    def _sum(self, terms: Sequence[Term | None]) -> Term | None:
        present = [term for term in terms if term is not None]
        return totals(self.build, {0: present}).get(0) if present else None


def derivatives_along(
    build: Builder, outputs: Sequence[int], parameters: Sequence[int], tangents: Sequence[int | None],
    order: int, mode: str = "auto",
) -> list[int | None]:  # fmt: skip
    """Return the directional derivative of an order of each output; None is a structural zero.

    "auto" gives nested passes up as soon as they need more operations than Taylor coefficients do.
    """
    bound = math.inf

    def by_taylor() -> list[int | None]:
        nonlocal bound
        last = taylor_coefficients(build, outputs, parameters, [tangents], order)[-1]
        factor = build.number(math.factorial(order))
        nodes = [None if node is None else build.mul(factor, node) for node in last]
        bound = operations_of(build.graph, nodes, known)
        return nodes

    def by_nesting() -> list[int | None]:
        nodes: list[int | None] = list(outputs)
        for _ in range(order):
            nodes = pushed_forward(build, nodes, parameters, tangents)
            if operations_of(build.graph, nodes, known) > bound:
                break  # a derivative of lower order, which is never chosen
        return nodes

    known = [*parameters, *(node for node in tangents if node is not None)]
    ways = {"taylor": by_taylor, "nested": by_nesting}
    return cheapest(build.graph, f"derivative along a direction, order {order}", ways, known, mode)


def pushed_forward(
    build: Builder, nodes: Sequence[int | None], parameters: Sequence[int], tangents: Sequence[int | None]
) -> list[int | None]:
    """Return the tangents of nodes of which some may be structural zeros."""
    pushed = iter(linearize(build, [node for node in nodes if node is not None], parameters).apply(build, tangents))
    return [None if node is None else next(pushed) for node in nodes]
