"""Expand one level as a textbook does: substitute, multiply out, strike squares of epsilon, collect.

Polynomials are multiplied out. Functions become Taylor series with a struck second term. Sums, products, quotients and
compositions follow in the order of computation. `why_not` returns why a formula is left to the table of rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import sympy as sp
from sympy.codegen.cfunctions import Cbrt, exp2, expm1, log1p, log2, log10
from sympy.core.function import AppliedUndef, ArgumentIndexError

from codegen.heads import RealFunction
from codegen.records import dataclass
from symad.classroom.expansion.epsilon import Nested, readable
from symad.classroom.formulas.calls import derivative
from symad.derivatives.level import Epsilon
from symad.display.document import Block, Formula, Inline
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
    for node in _moved_parts(expression, moves):
        if node.is_Symbol or node.is_Add or node.is_Mul or node.is_Pow:
            continue
        if isinstance(node, AppliedUndef) and len(node.args) == 1:
            continue
        if not isinstance(node, (*_SERIES, RealFunction)) or len(node.args) != 1 or _slopes(node) is None:
            return f"{type(node).__name__} has no Taylor series in every point"
    return ""


def _moved_parts(expression: sp.Expr, moves: Moves) -> Iterator[sp.Expr]:
    """Yield the distinct parts that move, inner ones first."""
    seen: set[sp.Basic] = set()
    for node in sp.postorder_traversal(expression):
        if node not in seen and isinstance(node, sp.Expr) and node.has(*moves):
            seen.add(node)
            yield node


@dataclass(frozen=True)
class BookLine:
    """A line of a level: expression, value, reason. A left side of None continues the line before."""

    left: sp.Expr | None
    right: sp.Expr
    reason: tuple[Inline, ...]

    def block(self) -> Block:
        """Return the line as a formula on a page."""
        return Formula(self.right, Nothing() if self.left is None else self.left, self.reason)


class Level:
    """One level: the symbols that it moves, its epsilon, and the epsilon-parts found so far."""

    moves: Moves
    eps: Epsilon

    def __init__(self, number: int, moves: Moves) -> None:
        self.moves, self.eps = moves, Epsilon.of_level(number)
        self.parts: dict[sp.Expr, sp.Expr] = dict(moves)  # the epsilon-part of each expression that moves
        self.positive: dict[sp.Expr, None] = {}  # bases of powers whose exponents move
        self.shift = {symbol: Nested(symbol, 1, part, self.eps) for symbol, part in moves.items()}

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

    def lines(self, expression: sp.Expr) -> list[BookLine]:
        """Return the lines of an expression: each part once, the whole last."""
        lines: list[BookLine] = []
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
        return expanded_terms(node.xreplace({x: x + self.eps for x in self.moves})) <= MOST_TERMS and (
            sp.Poly(node, *self.moves).total_degree() <= MOST_DEGREE
        )

    def _line(self, node: sp.Expr) -> list[BookLine]:
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

    def _multiplied_out(self, node: sp.Expr) -> list[BookLine]:
        e = sp.Dummy("e")
        moved = sp.expand(node.xreplace({symbol: symbol + part * e for symbol, part in self.moves.items()}))
        coefficients = _coefficients(moved, e)
        self.parts[node] = coefficients.get(1, sp.S.Zero)
        if max(coefficients) <= 1 and not (node.is_Mul and any(part.is_Add for part in node.args)):
            return []
        why = ("multiplied out", *self._struck(max(coefficients)))
        return [BookLine(self.moved(node), self._sum(coefficients), why)]

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

    def _product(self, node: sp.Expr) -> list[BookLine]:
        above, below = _above_and_below(node, self.moves)
        if below.has(*self.moves):
            return self._quotient(above, below, node)
        moved = [factor for factor in node.args if factor.has(*self.moves)]
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
        return [BookLine(left, self._sum(coefficients), ("multiplied out", *self._struck(max(coefficients))))]

    def _quotient(self, above: sp.Expr, below: sp.Expr, node: sp.Expr) -> list[BookLine]:
        """Return (a + b ε)/(c + d ε), multiplied above and below by c - d ε."""
        lines = [line for part in (above, below) for line in self.lines(part)]
        (a, b), (c, d) = ((part, readable(self.part(part))) for part in (above, below))
        conjugate = Nested(c, 1, readable(-d), self.eps)
        left = _fraction(self.dual(above), self.dual(below))
        widened = _fraction(
            _as_written([self.dual(above)] if above != 1 else [], [conjugate]),
            _as_written([], [self.dual(below), conjugate]),
        )
        middle = readable(b * c - a * d)
        numerator = self._sum({0: a * c, 1: middle} | ({2: readable(-b * d)} if b != 0 else {}))
        denominator = self._sum({0: c**2, 2: readable(-(d**2))})
        self.parts[node] = sp.Mul(middle, c**-2)
        square = sp.Pow(self.eps, 2, evaluate=False)
        return [
            *lines,
            BookLine(left, widened, ("times ", conjugate, " above and below")),
            BookLine(None, _fraction(numerator, denominator), ("multiplied out; ", square, " = 0")),
            BookLine(None, Nested(node, 1, self.parts[node], self.eps), ()),
        ]

    def _power(self, node: sp.Expr) -> list[BookLine]:
        base, exponent = node.args
        part, whole = readable(self.part(base)), exponent.is_Integer and exponent <= _WRITTEN_POWERS
        powers = range(int(exponent) + 1) if whole else range(3)
        coefficients = {k: sp.binomial(exponent, k) * base ** (exponent - k) * part**k for k in powers}
        self.parts[node] = coefficients[1]
        left = sp.Pow(self.dual(base), exponent, evaluate=False)
        why = ("multiplied out", *self._struck(max(coefficients))) if whole else ("binomial series", *self._struck(3))
        return [BookLine(left, self._sum(coefficients), why)]

    def _exponential(self, node: sp.Expr) -> list[BookLine]:
        """Return the Taylor series of u^v = e^(v ln u), where both u and v move."""
        dual, part = self.dual(_exponent(node)), readable(self.part(_exponent(node)))
        self.parts[node], self.positive[node.base] = sp.Mul(node, part), None
        u, v = sp.symbols("u v")
        written = sp.exp(dual, evaluate=False)
        moved = sp.Pow(*map(self.dual, node.args), evaluate=False)
        why = (sp.Pow(u, v), " = ", sp.exp(v * sp.log(u), evaluate=False), " for ", node.base > 0)
        series = self._sum({0: node, 1: self.parts[node], 2: node * part**2 / 2})
        return [BookLine(moved, written, why), BookLine(None, series, ("Taylor series", *self._struck(3)))]

    def _series(self, node: sp.Expr) -> list[BookLine]:
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
        return [BookLine(left, self._sum(coefficients), (*named, *self._struck(3)))]


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


def _above_and_below(node: sp.Expr, moves: Moves) -> tuple[sp.Expr, sp.Expr]:
    """Return numerator and denominator. Moving factors with a negative integer exponent are below."""
    under = [part for part in node.args if part.is_Pow and part.exp.is_Integer and part.exp < 0 and part.has(*moves)]
    return sp.Mul(*(part for part in node.args if part not in under)), sp.Mul(*(1 / part for part in under))


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
            rebuilt[node] = node if same else _unevaluated(node, operands)
    return rebuilt[expression]


def _unevaluated(node: sp.Basic, operands: Sequence[sp.Basic]) -> sp.Basic:
    if isinstance(node, AppliedUndef | sp.Derivative | sp.Subs):
        return node.func(*operands)
    return node.func(*operands, evaluate=False)


def _as_written(first: Sequence[sp.Expr], factors: Sequence[sp.Expr]) -> sp.Expr:
    return sp.Mul(*first, *factors, evaluate=False) if len(first) + len(factors) > 1 else [*first, *factors][0]


def _fraction(above: sp.Expr, below: sp.Expr) -> sp.Expr:
    under = sp.Pow(below, -1, evaluate=False)
    return under if above == 1 else sp.Mul(above, under, evaluate=False)
