"""Expand level by level as a textbook does: substitute, multiply out, strike squares of epsilon, collect.

Polynomials are multiplied out. Functions become Taylor series with a struck second term. Sums, products, quotients and
compositions follow in the order of computation. `why_not` returns why a formula is left to the table of rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from sympy.codegen.cfunctions import Cbrt, exp2, expm1, log1p, log2, log10
from sympy.core.function import AppliedUndef, ArgumentIndexError

import symad.tracing.values.containers as containers
from codegen.heads import RealFunction
from symad.classroom.expansion.epsilon import Levels, Nested, monomial, readable
from symad.classroom.expansion.expansion_values import as_sympy
from symad.classroom.expansion.steps import Parts
from symad.classroom.formulas.calls import derivative
from symad.derivatives.level import Epsilon
from symad.display.document import Formula, Inline
from symad.display.mathematics import expanded_terms, too_large
from symad.display.notation import Nothing, Struck

MOST_TERMS = 40  # of a polynomial that is multiplied out by hand
MOST_DEGREE = 8
_MOST_OPERATIONS = 60  # of a formula that is expanded by hand
_WRITTEN_POWERS = 4  # powers of epsilon that are written down before they are struck
_SERIES = (
    sp.sin, sp.cos, sp.tan, sp.cot, sp.sinh, sp.cosh, sp.tanh, sp.exp, sp.log, sp.asin, sp.acos, sp.atan, sp.asinh,
    sp.acosh, sp.atanh, sp.sec, sp.csc, sp.erf, Cbrt, exp2, expm1, log1p, log2, log10,
)  # fmt: skip

Moves = Mapping[sp.Expr, sp.Expr]  # the steps of symbols


def why_not(expression: sp.Expr, moves: Moves) -> str:
    """Return why a book would not expand a formula by hand, "" if it would.

    >>> x = sp.Symbol("x")
    >>> why_not(sp.exp(x * sp.sin(x)), {x: 1}), why_not(sp.Abs(x), {x: 1})
    ('', 'Abs has no Taylor series in every point')
    """
    if too_large(expression) or sp.count_ops(expression) > _MOST_OPERATIONS:
        return "the formula is long"
    moved = (node for node in sp.postorder_traversal(expression) if isinstance(node, sp.Expr) and node.has(*moves))
    for node in dict.fromkeys(moved):
        if node.is_Symbol or node.is_Add or node.is_Mul or node.is_Pow:
            continue
        if isinstance(node, AppliedUndef) and len(node.args) == 1:
            continue
        if not isinstance(node, (*_SERIES, RealFunction)) or len(node.args) != 1 or _slopes(node) is None:
            return f"{type(node).__name__} has no Taylor series in every point"
    return ""


def _line(left: sp.Expr | None, right: sp.Expr, *reason: Inline) -> Formula:
    """Return a line of a level. A left side of None continues the line before."""
    return Formula(right, Nothing() if left is None else left, reason)


class Level:
    """One level: the symbols that it moves, its epsilon, and the epsilon-parts found so far."""

    moves: Moves
    eps: Epsilon

    def __init__(self, number: int, moves: Moves) -> None:
        self.moves, self.eps = moves, Epsilon.of_level(number)
        self.parts: dict[sp.Expr, sp.Expr] = dict(moves)  # the epsilon-part of each expression that moves
        self.domains: dict[sp.Rel, None] = {}  # of powers whose exponents move: u > 0
        self.shift = {symbol: Nested(symbol, 1, part, self.eps) for symbol, part in moves.items()}
        self.terms: list[tuple[sp.Expr, sp.Expr]] = []  # coefficients that are expanded, and their products of epsilons
        self.written: list[Formula] = []  # their lines

    def blocks(self, called: sp.Expr, put: tuple[Inline, ...]) -> list[Formula]:
        """Return the level as formulas. `called` is f(x + v ε₁), and `put` explains the substitution."""
        moved = [part for coefficient, factor in self.terms for part in (self.moved(coefficient), factor)]
        lines = list(self.written)
        if lines and len(self.terms) == 1 and lines[0].left == moved[0]:
            lines[0] = replace(lines[0], left=Nothing())
        return [Formula(Nested(*moved), called, put), *lines]

    def moved(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression with x + v ε in place of x, unevaluated."""
        return _rebuilt(expression, self.shift)

    def part(self, expression: sp.Expr) -> sp.Expr:
        """Return the epsilon-part of an expanded expression, 0 if it does not move."""
        if not expression.has(*self.moves):
            return sp.S.Zero
        if expression not in self.parts:  # a sum, or a product in which one factor moves: by the parts of its operands
            parts = [self.part(term) for term in expression.args]
            if expression.is_Mul:
                others = [sp.Mul(*expression.args[:k], *expression.args[k + 1 :]) for k in range(len(parts))]
                parts = [part * other for part, other in zip(parts, others, strict=True)]
            self.parts[expression] = sp.Add(*parts)
        return self.parts[expression]

    def dual(self, expression: sp.Expr) -> sp.Expr:
        """Return a + b ε, unevaluated."""
        part = self.part(expression)
        return expression if part == 0 else Nested(expression, 1, readable(part), self.eps)

    def lines(self, expression: sp.Expr) -> list[Formula]:
        """Return the lines of an expression: each part once, the whole last."""
        lines: list[Formula] = []
        done: set[sp.Basic] = set(self.parts)
        stack = [(expression, False)]
        while stack:
            node, ready = stack.pop()
            if node in done or not node.has(*self.moves):
                continue
            if ready:
                done.add(node)
                lines += self._line(node)
                continue
            stack.append((node, True))
            if _is_exponential(node, self.moves):
                stack.append((_exponent(node), False))
            elif not self._is_multiplied_out(node):
                stack += [(part, False) for part in reversed(_inner(node))]
        return lines

    def _is_multiplied_out(self, node: sp.Expr) -> bool:
        """Whether an expression is a polynomial that is multiplied out as a whole."""
        if not node.is_polynomial(*self.moves):
            return False
        terms = expanded_terms(node.xreplace({x: x + self.eps for x in self.moves}))
        return terms <= MOST_TERMS and bool(sp.Poly(node, *self.moves).total_degree() <= MOST_DEGREE)

    def _line(self, node: sp.Expr) -> list[Formula]:
        """Return the expansion of one expression whose inner parts are known, and note its epsilon-part."""
        if self._is_multiplied_out(node):
            return self._multiplied_out(node)
        if node.is_Add:
            self.part(node)
            return []
        if node.is_Mul:
            return self._product(node)
        if _is_exponential(node, self.moves):
            return self._exponential(node)
        if node.is_Pow and node.base.has(*self.moves):
            is_reciprocal = node.exp.is_Integer and node.exp < 0
            return self._quotient(sp.S.One, 1 / node, node) if is_reciprocal else self._power(node)
        return self._series(node)

    def _multiplied_out(self, node: sp.Expr) -> list[Formula]:
        e = sp.Dummy("e")
        moved = sp.expand(node.xreplace({symbol: symbol + part * e for symbol, part in self.moves.items()}))
        coefficients = _coefficients(moved, e)
        self.parts[node] = coefficients.get(1, sp.S.Zero)
        if max(coefficients) <= 1 and not (node.is_Mul and any(part.is_Add for part in node.args)):
            return []
        why = ("multiplied out", *self._struck(max(coefficients)))
        return [_line(self.moved(node), self._sum(coefficients), *why)]

    def _struck(self, degree: int) -> tuple[Inline, ...]:
        if degree < 2:
            return ()
        more = " and all higher powers with it" if degree > 2 else ""
        return ("; ", sp.Pow(self.eps, 2, evaluate=False), " = 0", more)

    def _sum(self, coefficients: Mapping[int, sp.Expr]) -> sp.Expr:
        """Return a sum of powers of epsilon. Powers above the first are struck."""
        parts: list[sp.Expr] = []
        for power in sorted(coefficients):
            coefficient = coefficients[power]
            if power < 2:
                parts += [coefficient, self.eps**power if power else sp.S.One]
                continue
            sign = -1 if coefficient.could_extract_minus_sign() and not coefficient.is_Add else 1
            parts += [sp.Integer(sign), Struck(Nested(sign * coefficient, sp.Pow(self.eps, power, evaluate=False)))]
        return Nested(*parts)

    def _product(self, node: sp.Expr) -> list[Formula]:
        moved = [factor for factor in node.args if factor.has(*self.moves)]
        if under := [part for part in moved if part.is_Pow and part.exp.is_Integer and part.exp < 0]:
            above = sp.Mul(*(part for part in node.args if part not in under))
            return self._quotient(above, sp.Mul(*(1 / part for part in under)), node)
        if len(moved) == 1:
            self.part(node)
            return []
        e = sp.Dummy("e")
        constant = sp.Mul(*(factor for factor in node.args if factor not in moved))
        names = {part: sp.Dummy() for factor in moved for part in (factor, self.part(factor)) if not part.is_number}
        whole = sp.expand(sp.Mul(*(names.get(f, f) + names.get(self.part(f), self.part(f)) * e for f in moved)))
        back = {name: part for part, name in names.items()}
        coefficients = {k: readable(constant * c.xreplace(back)) for k, c in _coefficients(whole, e).items()}
        self.parts[node] = coefficients.get(1, sp.S.Zero)
        left = _as_written([constant] if constant != 1 else [], [self.dual(factor) for factor in moved])
        return [_line(left, self._sum(coefficients), "multiplied out", *self._struck(max(coefficients)))]

    def _quotient(self, above: sp.Expr, below: sp.Expr, node: sp.Expr) -> list[Formula]:
        """Return (a + b ε)/(c + d ε), multiplied above and below by c - d ε."""
        lines = [line for part in (above, below) for line in self.lines(part)]
        (a, b), (c, d) = ((part, readable(self.part(part))) for part in (above, below))
        conjugate = Nested(c, 1, readable(-d), self.eps)
        left = _fraction(self.dual(above), self.dual(below))
        widened = _as_written([self.dual(above)] if above != 1 else [], [conjugate])
        widened = _fraction(widened, _as_written([], [self.dual(below), conjugate]))
        middle = readable(b * c - a * d)
        numerator = self._sum({0: a * c, 1: middle} | ({2: readable(-b * d)} if b != 0 else {}))
        denominator = self._sum({0: c**2, 2: readable(-(d**2))})
        self.parts[node] = sp.Mul(middle, c**-2)
        square = sp.Pow(self.eps, 2, evaluate=False)
        return [
            *lines,
            _line(left, widened, "times ", conjugate, " above and below"),
            _line(None, _fraction(numerator, denominator), "multiplied out; ", square, " = 0"),
            _line(None, Nested(node, 1, self.parts[node], self.eps)),
        ]

    def _power(self, node: sp.Expr) -> list[Formula]:
        base, exponent = node.args
        part, whole = readable(self.part(base)), exponent.is_Integer and exponent <= _WRITTEN_POWERS
        powers = range(int(exponent) + 1) if whole else range(3)
        coefficients = {k: sp.binomial(exponent, k) * base ** (exponent - k) * part**k for k in powers}
        self.parts[node] = coefficients[1]
        left = sp.Pow(self.dual(base), exponent, evaluate=False)
        why = ("multiplied out", *self._struck(max(coefficients))) if whole else ("binomial series", *self._struck(3))
        return [_line(left, self._sum(coefficients), *why)]

    def _exponential(self, node: sp.Expr) -> list[Formula]:
        """Return the Taylor series of u^v = e^(v ln u), where both u and v move."""
        dual, part = self.dual(_exponent(node)), readable(self.part(_exponent(node)))
        u, v = sp.symbols("u v")
        written = sp.exp(dual, evaluate=False)
        moved = sp.Pow(*map(self.dual, node.args), evaluate=False)
        domain = sp.StrictGreaterThan(node.base, 0, evaluate=False)  # else True of a symbol that is positive
        self.parts[node], self.domains[domain] = sp.Mul(node, part), None
        why = (sp.Pow(u, v), " = ", sp.exp(v * sp.log(u), evaluate=False), " for ", domain)
        series = self._sum({0: node, 1: self.parts[node], 2: node * part**2 / 2})
        return [_line(moved, written, *why), _line(None, series, "Taylor series", *self._struck(3))]

    def _series(self, node: sp.Expr) -> list[Formula]:
        """Return the Taylor series of a function, with the second term struck."""
        slopes = _slopes(node)
        inner = node.exp if node.is_Pow else node.args[0]
        assert slopes is not None
        part = readable(self.part(inner))
        coefficients = {0: node, 1: slopes[0] * part, 2: slopes[1] * part**2 / 2}
        if slopes[1] == 0:
            del coefficients[2]
        self.parts[node] = coefficients[1]
        dual = self.dual(inner)
        left = sp.Pow(node.base, dual, evaluate=False) if node.is_Pow else node.func(dual, evaluate=False)
        named = ("Taylor series",) if node.is_Pow else ("Taylor series of ", node.func(sp.Symbol("u"), evaluate=False))
        return [_line(left, self._sum(coefficients), *named, *self._struck(3))]


def _slopes(node: sp.Expr) -> tuple[sp.Expr, sp.Expr] | None:
    """Return the first two derivatives of a function at its argument; None if they are no formulas."""
    if node.is_Pow:
        return node * sp.log(node.base), node * sp.log(node.base) ** 2
    if isinstance(node, AppliedUndef):
        return derivative(node.func, node.args, [1]), derivative(node.func, node.args, [2])
    slot = sp.Dummy("xi", real=True)
    try:
        first = node.func(slot).diff(slot)
        slopes = first, first.diff(slot)
    except (ArgumentIndexError, NotImplementedError, ValueError):
        return None
    if any(slope.has(sp.Derivative, sp.Subs, sp.Piecewise, sp.nan) for slope in slopes):
        return None
    return tuple(slope.xreplace({slot: node.args[0]}) for slope in slopes)


def _is_exponential(node: sp.Expr, moves: Moves) -> bool:
    """Whether both the base and the exponent of a power move."""
    return bool(node.is_Pow and node.base.has(*moves) and node.exp.has(*moves))


def _exponent(node: sp.Expr) -> sp.Expr:
    """Return v ln u of a power u^v."""
    return node.exp * sp.log(node.base)


def _inner(node: sp.Expr) -> list[sp.Expr]:
    """Return the expressions to expand first: the operands, and the whole base of a reciprocal."""
    if node.is_Pow and node.exp.is_Integer and node.exp < 0:
        return [1 / node]
    if node.is_Mul:
        return [1 / part if part.is_Pow and part.exp.is_Integer and part.exp < 0 else part for part in node.args]
    return list(node.args)


def _coefficients(expanded: sp.Expr, e: sp.Symbol) -> dict[int, sp.Expr]:
    """Return the coefficients of an expanded sum by powers of a symbol."""
    terms_of: dict[int, list[sp.Expr]] = {}
    for term in sp.Add.make_args(expanded):
        rest, power = term.as_independent(e)
        terms_of.setdefault(int(power.as_base_exp()[1]) if power != 1 else 0, []).append(rest)
    return {power: sp.Add(*terms) for power, terms in terms_of.items() if sp.Add(*terms) != 0}


def _rebuilt(expression: sp.Expr, shift: Mapping[sp.Expr, sp.Expr]) -> sp.Expr:
    """Return an expression with other operands, without simplification."""
    rebuilt: dict[sp.Basic, sp.Basic] = dict(shift)
    for node in sp.postorder_traversal(expression):
        if node not in rebuilt:
            operands = [rebuilt[part] for part in node.args]
            same = all(new is old for new, old in zip(operands, node.args, strict=True))
            how = {} if isinstance(node, AppliedUndef | sp.Derivative | sp.Subs) else {"evaluate": False}
            rebuilt[node] = node if same else node.func(*operands, **how)
    return rebuilt[expression]


def _as_written(first: Sequence[sp.Expr], factors: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Mul(*first, *factors, evaluate=False) if len(first) + len(factors) > 1 else [*first, *factors][0]


def _fraction(above: sp.Expr, below: sp.Expr) -> sp.Expr:
    under = sp.Pow(below, -1, evaluate=False)
    return under if above == 1 else sp.Mul(above, under, evaluate=False)


MOST_LEVELS = 5  # each has twice as many terms as the one before
MOST_LINES = 14  # formulas of one level that a book has


class Book:
    """The levels and their coefficients, or the reason why there are none (`why_not`)."""

    def __init__(self, parts: Parts, formula: sp.Basic | None) -> None:
        self.levels: list[Level] = []
        self.coefficients: dict[Levels, sp.Expr] = {}
        values = [item for leaf in containers.flatten(parts.given.argument)[0] for item in np.ravel(leaf).tolist()]
        if not isinstance(formula, sp.Expr) or values != list(parts.given.symbols):
            self.why_not: str = "it is done for one formula at symbols"
        elif parts.levels > MOST_LEVELS:
            self.why_not = f"it is done for {MOST_LEVELS} levels at most"
        else:
            self.coefficients[()] = as_sympy(formula)
            reasons = (self._add(parts, k) for k in range(1, parts.levels + 1))
            self.why_not = next(filter(None, reasons), "")

    def _add(self, parts: Parts, k: int) -> str:
        """Expand one level. Return why it is not expanded, "" if it is."""
        moves = moves_of(parts, k)
        if not all(isinstance(name, sp.Symbol) for name in moves):
            return "a direction that is moved itself is no symbol"
        if any(part.has(*parts.given.symbols) for part in moves.values()):
            return "a direction has the variable in it"
        before = {levels: part for levels, part in self.coefficients.items() if part != 0}
        if reason := next(filter(None, (why_not(part, moves) for part in before.values())), ""):
            return reason
        level = Level(k, moves)
        level.written = [line for part in before.values() for line in level.lines(part)]
        if parts.style is None and len(level.written) > MOST_LINES:
            return "it has many lines"
        level.terms = [(part, monomial(levels)) for levels, part in before.items()]
        self.levels.append(level)
        self.coefficients |= {(*levels, k): readable(level.part(part)) for levels, part in self.coefficients.items()}
        return ""


def moves_of(parts: Parts, k: int) -> dict[Any, sp.Expr]:
    """Return the steps by which a level moves the symbols of f and the directions of earlier levels."""
    moved = [(list(parts.given.symbols), parts.directions[(k,)])]
    later = [levels for levels in parts.directions if len(levels) > 1 and levels[-1] == k]
    moved += [(parts.directions[levels[:-1]], parts.directions[levels]) for levels in later]
    pairs = [(name, exact(part)) for names, direction in moved for name, part in zip(names, direction, strict=True)]
    return {name: part for name, part in pairs if part != 0}


def exact(part: Any) -> sp.Expr:
    """Return an entry of a direction, 1.0 as 1.

    >>> exact(1.0), exact(2), exact(sp.Symbol("v"))
    (1, 2, v)
    """
    value = sp.sympify(part)
    return sp.Integer(int(value)) if value.is_Number and float(value) in (0, 1) else value
