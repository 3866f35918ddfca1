"""The algebra of epsilon as written on a board: sums in the order of levels, nested sums, set partitions.

This is for display only. Derivatives are nested pairs on the graph (`expansion_levels`); nothing relies on SymPy's own
products of epsilons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, TypeAlias

import sympy as sp
from sympy.printing.precedence import PRECEDENCE

from symad.derivatives.level import Epsilon
from symad.display.mathematics import expanded_terms, too_large

Levels: TypeAlias = tuple[int, ...]

EXPANDED_TERMS = 60  # of a coefficient that is multiplied out for reading
FACTORED_TERMS = 16
FACTORED_DEGREE = 40
FACTORED_NAMES = 5
ATOMS = 16  # symbols and functions in it


class Nested(sp.Expr):  # type: ignore[misc]
    """A sum in the given order: coefficient, monomial, coefficient, monomial...

    >>> x, (one, two) = sp.Symbol("x"), map(Epsilon.of_level, (1, 2))
    >>> Nested(x**2, 1, Nested(x, 1, -1, one), two, -x, one * two)
    x**2 + (x - epsilon_1)*epsilon_2 - x*epsilon_1*epsilon_2
    """

    precedence = PRECEDENCE["Add"]
    is_commutative = True

    def __new__(cls, *parts: Any) -> Nested:
        """Make the sum of coefficient * monomial. SymPy does not reorder it."""
        total: Nested = super().__new__(cls, *map(sp.sympify, parts))
        return total

    def _sympystr(self, printer: Any) -> str:
        return self._joined(printer._print, lambda text: f"({text})", "*")

    def _latex(self, printer: Any) -> str:
        return self._joined(printer._print, lambda text: rf"\left({text}\right)", r" \, ")

    def _joined(self, show: Callable[[Any], str], bracket: Callable[[str], str], times: str) -> str:
        written = ""
        for coefficient, monomial in zip(self.args[::2], self.args[1::2], strict=True):
            text = show(coefficient)
            if isinstance(coefficient, Nested) or (coefficient.is_Add and monomial != 1):
                text = bracket(text)
            if monomial != 1:
                sign, factor = {"1": "", "-1": "-"}.get(text), show(monomial)
                factor = bracket(factor) if isinstance(monomial, Nested) else factor
                text = f"{text}{times}{factor}" if sign is None else sign + factor
            negative = text.startswith("-")
            joint = (" - " if negative else " + ") if written else ("-" if negative else "")
            written += joint + (text[1:].lstrip() if negative else text)
        return written or "0"


class Along(sp.Expr):  # type: ignore[misc]
    """A derivative along directions, f''(x)[v, w]: a name, an order, the point, the directions."""

    def _sympystr(self, printer: Any) -> str:
        return self._joined(printer, "({})", "[{}]", "^({})")

    def _latex(self, printer: Any) -> str:
        return self._joined(printer, r"\left({}\right)", r"\left[{}\right]", r"^{{({})}}")

    def _joined(self, printer: Any, point: str, directions: str, high: str) -> str:
        name, order, at, *along = self.args
        marks = "'" * int(order) if order < 4 else high.format(order)
        listed = directions.format(", ".join(map(printer._print, along))) if along else ""
        return f"{printer._print(name)}{marks}{point.format(printer._print(at))}{listed}"


class Listed(sp.Expr):  # type: ignore[misc]
    """The arguments of a function of several names: x, y."""

    def _sympystr(self, printer: Any) -> str:
        return ", ".join(map(printer._print, self.args))

    _latex = _sympystr


def monomial(levels: Levels) -> sp.Expr:
    """Return the product of the epsilons of some levels.

    >>> monomial(()), monomial((1, 3))
    (1, epsilon_1*epsilon_3)
    """
    return sp.Mul(*map(Epsilon.of_level, levels))


def subsets(count: int) -> list[Levels]:
    """Return all sets of levels 1..count, smaller sets first.

    >>> subsets(2)
    [(), (1,), (2,), (1, 2)]
    """
    return [chosen for size in range(count + 1) for chosen in combinations(range(1, count + 1), size)]


def expanded(coefficients: Mapping[Levels, sp.Expr], count: int) -> Nested:
    """Return the expanded sum of coefficients times epsilons, without zeros.

    >>> expanded({(): sp.Symbol("a"), (1,): sp.Integer(2)}, 1)
    a + 2*epsilon_1
    """
    present = [(coefficients[chosen], monomial(chosen)) for chosen in subsets(count) if coefficients[chosen] != 0]
    return Nested(*(part for term in present for part in term))


def nested(coefficients: Mapping[Levels, sp.Expr], count: int) -> Nested | sp.Expr:
    """Return the sum as pairs of pairs: (a + b eps_1) + (c + d eps_1) eps_2.

    >>> a, b, c, d = sp.symbols("a:d")
    >>> nested({(): a, (1,): b, (2,): c, (1, 2): d}, 2)
    (a + b*epsilon_1) + (c + d*epsilon_1)*epsilon_2
    """
    sums: dict[Levels, Any] = dict(coefficients)
    for level in range(1, count + 1):
        pairs = [(chosen, tuple(sorted((*chosen, level)))) for chosen in sums if level not in chosen]
        sums = {first: Nested(sums[first], 1, sums[second], Epsilon.of_level(level)) for first, second in pairs}
    return sums[()]


def polynomial(coefficients: Mapping[Levels, sp.Expr]) -> sp.Expr:
    """Return the sum as an ordinary SymPy expression."""
    return sp.Add(*(coefficient * monomial(levels) for levels, coefficient in coefficients.items()))


def partitions(levels: Levels, blocks: Sequence[Levels]) -> Iterator[tuple[Levels, ...]]:
    """Yield the partitions of a set of levels into the given blocks: the terms of the chain rule.

    >>> list(partitions((1, 2), [(1,), (2,), (1, 2)]))
    [((1,), (2,)), ((1, 2),)]
    """
    stack: list[tuple[Levels, tuple[Levels, ...]]] = [(levels, ())]
    while stack:
        rest, taken = stack.pop()
        if not rest:
            yield taken
        fitting = [block for block in blocks if rest and block[0] == rest[0] and set(block) <= set(rest)]
        for block in sorted(fitting, key=len, reverse=True):
            stack.append((tuple(level for level in rest if level not in block), (*taken, block)))


@lru_cache(1024)
def readable(expression: sp.Expr) -> sp.Expr:
    """Return the shortest of an expression, its expanded and its factored form, if that is quick.

    Functions and denominators count as names, so that only sums and products are rewritten. Expressions with floats
    stay unchanged, because another order of operations rounds differently.

    >>> x, v, w = sp.symbols("x v w")
    >>> readable(v * (sp.cos(x) * w * x + w * sp.sin(x)) + v * w * sp.sin(x))
    v*w*(x*cos(x) + 2*sin(x))
    """
    if not expression.args or too_large(expression) or expression.has(sp.Float, sp.nan, sp.oo, sp.zoo):
        return expression
    names = _names(expression)
    plain = expression.xreplace(names)
    if len(plain.free_symbols) > ATOMS or expanded_terms(plain) > EXPANDED_TERMS:
        return expression
    shortest = _shortest(plain)
    return shortest.xreplace({name: part for part, name in names.items() if name.is_Dummy})


def _shortest(expression: sp.Expr) -> sp.Expr:
    """Return the shortest form of a polynomial. A sum wins over a product that is hardly shorter."""
    expanded, factored = sp.expand(expression), sp.factor_terms(expression)
    inner = {part: sp.Dummy() for part in factored.atoms(sp.Add) if not any(a.has(sp.Add) for a in part.args)}
    collected = sp.factor_terms(sp.expand(factored.subs(inner)))  # a sum inside a longer sum too
    collected = collected.xreplace({name: part for part, name in inner.items()})
    forms = [expression, factored, collected]
    degree = max((power.exp for power in expanded.atoms(sp.Pow)), default=1)
    if len(sp.Add.make_args(expanded)) <= FACTORED_TERMS and degree <= FACTORED_DEGREE and _may_factor(expanded):
        forms.append(sp.factor(expanded))
    shortest = min(forms, key=sp.count_ops)
    return expanded if sp.count_ops(expanded) <= sp.count_ops(shortest) + 1 else shortest


def _may_factor(polynomial: sp.Expr) -> bool:
    """Whether a polynomial may have factors that are sums, beside itself.

    One that is linear in a name has only those that its two coefficients share. SymPy's factorization begins at random
    points, and some polynomials of seven names take it .01 s, or 90.
    """
    names = sorted(polynomial.free_symbols, key=sp.default_sort_key)
    for name in names:
        sides = sp.Poly(polynomial, name)
        if sides.degree() == 1:
            shared = sp.gcd(sides.nth(0), sides.nth(1))
            return bool(sp.expand(shared).is_Add)
    return len(names) <= FACTORED_NAMES


def _names(expression: sp.Expr) -> dict[sp.Basic, sp.Expr]:
    """Return names for the outermost parts that are no sums, products or powers. 1/u**2 is a name squared."""
    names: dict[sp.Basic, sp.Expr] = {}
    traversal = sp.preorder_traversal(expression)
    for part in traversal:
        if part.is_Pow and part.exp.is_Integer and part.exp < 0:
            names[part] = names.setdefault(1 / part.base, sp.Dummy()) ** -part.exp
        elif part.args and not (part.is_Add or part.is_Mul or (part.is_Pow and part.exp.is_Integer)):
            names.setdefault(part, sp.Dummy())
        else:
            continue
        traversal.skip()
    return names
