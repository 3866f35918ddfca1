"""Decide whether two expressions are equal: by algebra, or by values with 50 digits.

Rational functions are decided exactly. Other expressions are equal if a normal form of their difference is 0. Else both
are evaluated with 50 digits at random points where both are real, also beside their kinks, steps and edges, and with
integers for names in exponents, so that x**n has a value at negative x. Expressions are different only with a witness:
a point at which they differ, confirmed with 100 and 200 digits. Expressions without real values stay undecided.
Undefined functions become random polynomials, so that f(2*x), f'(2*x) and f(x) are consistent.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from typing import Any

import sympy as sp
from mpmath import mp
from sympy.concrete.expr_with_limits import ExprWithLimits
from sympy.core.function import AppliedUndef

from codegen.evaluation.interpret import carry_out, exact_arithmetic
from codegen.functions.intrinsics import supports
from codegen.functions.reference_functions import precision
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.equality.turns import beside, far, turns
from symad.display.mathematics import expanded_terms, too_large
from symad.display.notation import named_partial
from symad.errors import LimitError, WorkbenchError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy
from symad.limits import time_limit

POINTS = 8  # random points at which equal expressions have to agree
ATTEMPTS = 80
GRID = 2**40  # possible values of each number at a random point
DIGITS = 50
AGREED = 40  # digits
_LARGEST = 6000  # bits before the point of a number; the exponential of a longer one takes too long
_MOST_TERMS = 2000  # of an expression that is multiplied out
_MOST_NAMES = 16  # functions and roots in an expression with a common denominator
_CIRCULAR = (sp.sin, sp.cos, sp.tan, sp.cot, sp.sec, sp.csc, sp.sinh, sp.cosh, sp.tanh, sp.coth)
_BESIDE = 160  # points on both sides of turns
_WHOLE = 24  # points at which names in exponents are integers
_FAR = 24  # points far from 0, for expressions with turns
_FEW = 3  # points that are tested before algebra
_LONGEST_ALGEBRA = 2.0  # seconds
_MOST_DEGREE = 100
_DEGREE = 15  # of the polynomials that stand for undefined functions
_RANGES = ((-2.0, 2.0), (0.0, 2.0), (1.0, 4.0), (-1.0, 1.0), (0.0, 1.0), (-8.0, -1.0), (4.0, 64.0), (-64.0, -8.0))
_NUMBERS = (2, 3, 1, -1, 5, -2, 7, sp.Rational(1, 2), -3, 11)  # witnesses with small numbers are easy to read


def is_rational(expression: sp.Expr) -> bool:
    """Whether an expression is a rational function of symbols with rational coefficients.

    >>> x = sp.Symbol("x")
    >>> is_rational((x + 1) / x**2), is_rational(sp.sqrt(x))
    (True, False)
    """
    return all(
        part.is_Add or part.is_Mul or part.is_Symbol or part.is_Rational or (part.is_Pow and part.exp.is_Integer)
        for part in sp.preorder_traversal(expression)
    )


def are_equal(left: sp.Expr, right: sp.Expr) -> bool:
    """Whether two rational functions are equal, as elements of the field of fractions in their symbols.

    >>> x = sp.Symbol("x")
    >>> are_equal((x**2 - 1) / (x - 1), x + 1), are_equal(1 / x, 1 / (x + 1))
    (True, False)
    """
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    field = sp.QQ.frac_field(*symbols) if symbols else sp.QQ
    return bool(field.from_sympy(left) == field.from_sympy(right))


def small_points(symbols: Sequence[sp.Symbol]) -> Iterator[dict[sp.Symbol, sp.Rational]]:
    """Yield points with small coordinates, distinct ones if possible."""
    for start in range(len(_NUMBERS) if symbols else 1):
        yield {symbol: sp.sympify(_NUMBERS[(start + k) % len(_NUMBERS)]) for k, symbol in enumerate(symbols)}


@dataclass(frozen=True)
class Witness:
    """A point at which two expressions differ, and their values there; without symbols where a function has no formula.

    `at` is None if the expressions contain undefined functions: their values are those of polynomials.
    """

    at: Mapping[sp.Symbol, sp.Rational] | None
    left: Any
    right: Any

    @property
    def values(self) -> tuple[str, str]:
        """Both values, with as many digits as it takes to tell them apart."""
        for digits in (*range(6, DIGITS, 4), 4 * DIGITS):
            with mp.workdps(4 * DIGITS):
                left, right = (mp.nstr(value, digits).removesuffix(".0") for value in (self.left, self.right))
            if left != right:
                break
        return left, right


@dataclass(frozen=True)
class Agreement:
    """Whether two expressions are equal (None: unknown), the method, and a point where they differ."""

    equal: bool | None
    proved: bool = False
    points: int = 0
    degree: int = 0
    witness: Witness | None = None
    rounded: bool = False  # equal except for properly rounded decimal numbers
    positive: tuple[sp.Symbol, ...] = ()  # undecided: equal where these are positive, and not everywhere
    by: str = ""  # another way in which it was decided

    def __bool__(self) -> bool:
        return self.equal is True

    @property
    def chance(self) -> float:
        """A bound of the probability that different polynomials agree at all random points (Schwartz, Zippel)."""
        return 0.0 if self.proved or not self.equal else min(1.0, self.degree / GRID) ** self.points

    def __str__(self) -> str:
        if self.by:
            return self.by
        if self.equal is None:
            return f"undecided: real at {self.points} of {ATTEMPTS} random points"
        if not self.equal:
            return "they differ at a point"
        if self.proved:
            return "by algebra"
        if self.rounded:
            return "up to the rounding of decimal numbers"
        chance = f"polynomials of this size that differ pass with probability {self.chance:.0e}"
        return f"to {AGREED} digits at {self.points} random points ({chance})"


def agreement(left: sp.Expr, right: sp.Expr) -> Agreement:
    """Return whether two expressions in real symbols are equal wherever both are real.

    >>> x = sp.Symbol("x", real=True)
    >>> str(agreement((x + 1) ** 2, x**2 + 2 * x + 1)), agreement(x, x + 1).witness.values
    ('by algebra', ('2', '3'))
    >>> str(agreement(sp.log(x**2), 2 * sp.log(x)))
    'to 40 digits at 8 random points (polynomials of this size that differ pass with probability 2e-89)'
    >>> agreement(sp.sqrt(-1 - x**2), 0 * x).equal is None
    True
    """
    if left == right:
        return Agreement(True, proved=True)
    is_rational_both = not too_large(left) and not too_large(right) and is_rational(left) and is_rational(right)
    if is_rational_both and (decided := _of_rational_functions(left, right)) is not None:
        return decided
    if (different := _plainly_different(left, right)) is not None:
        return different
    try:
        with time_limit(_LONGEST_ALGEBRA, "algebra"):
            gap = algebraic_gap(left, right)
    except LimitError:
        gap = left - right
    return Agreement(True, proved=True) if gap == 0 else _tested(left, right, gap)


def _of_rational_functions(left: sp.Expr, right: sp.Expr) -> Agreement | None:
    """Return a difference that a point with small numbers shows, or a proof; None if there is neither."""
    for point in small_points(sorted(left.free_symbols | right.free_symbols, key=str)):
        values = [side.xreplace(point) for side in (left, right)]
        if all(value.is_Rational for value in values) and values[0] != values[1]:
            return Agreement(False, True, witness=Witness(point, *(mp.mpf(int(v.p)) / int(v.q) for v in values)))
    with suppress(LimitError, ZeroDivisionError), time_limit(_LONGEST_ALGEBRA, "algebra"):
        if are_equal(left, right):
            return Agreement(True, proved=True)
    return None


def _plainly_different(left: sp.Expr, right: sp.Expr) -> Agreement | None:
    """Return a difference that a few points show, before the slow algebra."""
    try:
        sampler = Sampler([left, right])
        _, different = _agreed(sampler, map(sampler.point, range(len(_RANGES))), _FEW)
        return None if different is None else Agreement(False, witness=_witness(sampler, different))
    except (WorkbenchError, RecursionError):
        return None


def algebraic_gap(left: sp.Expr, right: sp.Expr) -> sp.Expr:
    """Return the difference of two expressions, simplified as far as that is quick. 0 proves equality.

    >>> x = sp.Symbol("x")
    >>> algebraic_gap(sp.sin(2 * x), 2 * sp.sin(x) * sp.cos(x))
    0
    """
    gap = normal_form(left - right)
    if gap == 0 or gap.is_Rational:
        return gap
    exponential = normal_form(gap.rewrite(_CIRCULAR, sp.exp))
    return exponential if exponential.is_Rational else gap


def normal_form(expression: sp.Expr) -> sp.Expr:
    """Return an expression as one fraction in lowest terms if that is quick, else expanded or unchanged.

    >>> x = sp.Symbol("x")
    >>> normal_form((x**2 - 1) / (x - 1) - x)
    1
    """
    terms = _MOST_TERMS + 1 if too_large(expression) else expanded_terms(expression)
    if terms > _MOST_TERMS:
        return expression
    try:
        expanded = sp.expand(expression, power_exp=True)
        names = [part for part in expanded.atoms(sp.Symbol, sp.Function, sp.Pow) if not is_rational(part)]
        long = terms * _denominator_terms(expression) > _MOST_TERMS or len(names) > _MOST_NAMES
        if long or _degree(expanded) > _MOST_DEGREE:
            return expanded
        return sp.cancel(expanded)
    except (sp.PolynomialError, NotImplementedError, ZeroDivisionError):
        return expression


def _denominator_terms(expression: sp.Expr) -> int:
    """Return a bound of the number of terms of the common denominator."""
    terms: dict[sp.Expr, int] = {}
    for power in expression.atoms(sp.Pow):
        if power.exp.is_Integer and power.exp < 0:
            terms[power.base] = max(terms.get(power.base, 1), expanded_terms(1 / power))
    return min(int(sp.prod(list(terms.values()))), _MOST_TERMS + 1)


def _degree(expression: sp.Expr) -> int:
    """Return a bound of the degree of an expression as a polynomial in roots: x**(5/3) is the 5th power of x**(1/3)."""
    coefficients = (part.exp.as_coeff_Mul()[0] for part in expression.atoms(sp.Pow, sp.exp))
    exponents = [number for number in coefficients if number.is_Rational]
    return int(max(map(abs, exponents), default=1) * math.lcm(*(int(number.q) for number in exponents)))


class Sampler:
    """The values of expressions at random points. Equal expressions get the same points."""

    def __init__(self, expressions: Sequence[sp.Expr]) -> None:
        self.random: random.Random = random.Random(20260101)
        self.numbers: dict[Any, list[list[int]]] = {}
        self.graph: Graph = Graph()
        written_out = [e.doit() if e.has(sp.Derivative, sp.Subs, ExprWithLimits) else e for e in expressions]
        self.nodes: list[int] = from_sympy(self.graph, list(map(self._concrete, written_out)))
        self.keep(range(len(self.nodes)))
        self.symbols: list[int] = [node for node in self.leaves if isinstance(self.graph.atoms[node], sp.Symbol)]
        powers = [self.graph.operands[node] for node in self.order if self.graph.heads[node] is sp.Pow]
        exponents = [exponent for base, exponent in powers if base in self.symbols or self.graph.operands[base]]
        self.exponents: list[int] = [node for node in reachable(self.graph, exponents) if node in self.symbols]

    def keep(self, places: Iterable[int]) -> None:
        """Restrict further evaluation to the expressions at these places."""
        self.nodes = [self.nodes[place] for place in places]
        order = reachable(self.graph, self.nodes)
        self.order: list[int] = [node for node in order if self.graph.operands[node]]
        self.leaves: list[int] = [node for node in order if not self.graph.operands[node]]

    def _concrete(self, expression: Any) -> Any:
        """Return an expression with random polynomials, and their derivatives, for undefined functions."""
        if not expression.has(AppliedUndef):
            return expression
        if isinstance(expression, AppliedUndef):
            return self._polynomial(expression.func, [0] * len(expression.args), expression.args)
        if (derivative := named_partial(expression)) is not None:
            return self._polynomial(derivative.function.func, derivative.orders, derivative.arguments)
        return expression.func(*map(self._concrete, expression.args))

    def _polynomial(self, function: Any, orders: Sequence[int], arguments: Sequence[sp.Expr]) -> sp.Expr:
        """Return a partial derivative of the polynomial of a function: a sum of powers of random linear forms."""
        forms = 1 if len(arguments) == 1 else 8
        if function not in self.numbers:
            self.numbers[function] = [[self.random.randrange(1, 50) for _ in range(_DEGREE)] for _ in range(forms)]
        places, order, summands = [self._concrete(argument) for argument in arguments], sum(orders), []
        if order > _DEGREE - 3:
            raise LimitError(f"a derivative of order {order}")
        for row in self.numbers[function]:
            form = sum(row[k % _DEGREE] * place for k, place in enumerate(places)) + row[-1]
            slopes = sp.prod([sp.Integer(row[k % _DEGREE]) ** count for k, count in enumerate(orders)])
            powers = range(max(1, order), _DEGREE)
            summands += [row[k] * slopes * sp.ff(k, order) * form ** (k - order) / 10**k for k in powers]
        return sp.Add(*summands)

    def point(self, attempt: int) -> dict[int, Any]:
        """Return a random value for each symbol, from ranges that change with each attempt."""
        low, high = _RANGES[attempt % len(_RANGES)]
        step = sp.Rational(high - low) / GRID
        return {node: sp.Rational(low) + step * self.random.randrange(1, GRID) for node in self.symbols}

    def whole(self) -> Iterator[dict[int, Any]]:
        """Yield points at which names in exponents are small integers, if there are such names."""
        for attempt in range(_WHOLE if self.exponents else 0):
            exponents = {node: sp.Integer(self.random.choice((-3, -2, -1, 1, 2, 3, 4, 5))) for node in self.exponents}
            yield self.point(attempt) | exponents

    def beside(self, turns: Sequence[sp.Expr]) -> Iterator[dict[int, Any]]:
        """Yield points on both sides of each turn, then far ones."""
        named = {self.graph.atoms[node]: node for node in self.symbols}
        random_points = ({name: point[node] for name, node in named.items()} for point in map(self.point, count()))
        near = (beside(turn, next(random_points), self.random) for turn in turns for _ in range(2))
        away = (far(list(named), self.random) for _ in range(_FAR))
        yield from ({named[name]: value for name, value in point.items()} for point in chain(*near, away))

    def values(self, point: dict[int, Any], digits: int = DIGITS) -> list[Any]:
        """Return the values at a point; nan for a value that is not real, not finite, or too large."""
        numbers = exact_arithmetic(digits)
        with precision(digits):
            values = {node: mp.mpf(int(value.p)) / int(value.q) for node, value in point.items()}
            carry_out(self.graph, [node for node in self.leaves if node not in values], values, numbers)
            for node in self.order:
                operands = [values[operand] for operand in self.graph.operands[node]]
                tame = all(isinstance(operand, bool) or mp.mag(operand) < _LARGEST for operand in operands)
                if tame and supports(self.graph.heads[node]):
                    carry_out(self.graph, [node], values, numbers)
                else:
                    values[node] = mp.nan
            return [values[node] for node in self.nodes]


def _tested(left: sp.Expr, right: sp.Expr, gap: sp.Expr) -> Agreement:
    """Return the verdict of points. The gap is added by terms, so that nothing large hides a small difference."""
    terms = sp.Add.make_args(sp.expand(gap) if expanded_terms(gap) <= _MOST_TERMS else gap)
    degree = sum(1 for _ in sp.preorder_traversal(gap))
    points = 0
    try:
        sampler = Sampler([left, right, *terms])
        points, different = _agreed(sampler, map(sampler.point, range(ATTEMPTS)), POINTS)
        if different is None:
            _, different = _agreed(sampler, sampler.whole(), _WHOLE)
        if different is None and (kinks := turns([left, right])):
            more, different = _agreed(sampler, islice(sampler.beside(kinks), _BESIDE), _BESIDE)
            points = min(points + more, POINTS)
    except (WorkbenchError, RecursionError):
        return Agreement(None, points=points)
    if different is not None:
        return Agreement(False, witness=_witness(sampler, different))
    return Agreement(True if points >= POINTS else None, points=points, degree=degree)


def _agreed(sampler: Sampler, points: Iterable[dict[int, Any]], most: int) -> tuple[int, dict[int, Any] | None]:
    """Return the number of points where two sides agree, as far as needed, and the first point where they differ."""
    agreed = 0
    for point in points:
        differs = _differs(sampler.values(point))
        if differs and _stays(sampler, point):
            return agreed, point
        agreed += differs is False
        if agreed == most:
            break
    return agreed, None


def _witness(sampler: Sampler, point: dict[int, Any]) -> Witness:
    """Return a witness of a difference: a point with small numbers if one shows it, else the given point."""
    named = {sampler.graph.atoms[node]: node for node in sampler.symbols}
    for small in small_points(sorted(named, key=str)):
        candidate = {named[name]: value for name, value in small.items()}
        if _differs(sampler.values(candidate)) and _stays(sampler, candidate):
            point = candidate
            break
    left, right, *_ = sampler.values(point, 2 * DIGITS)
    has_formula = not sampler.numbers
    return Witness({name: point[node] for name, node in named.items()} if has_formula else None, left, right)


def _differs(values: Sequence[Any]) -> bool | None:
    """Return whether two sides differ at a point (first two values, then the terms of the gap); None without values."""
    gap, size = _gap(values)
    return None if gap is None else bool(abs(gap) > size * mp.mpf(10) ** -AGREED)


def _stays(sampler: Sampler, point: dict[int, Any]) -> bool:
    """Whether a difference is the same in more digits, which rounding would not be."""
    (gap, _), (finer, size) = (_gap(sampler.values(point, times * DIGITS)) for times in (2, 4))
    if gap is None or finer is None:
        return False
    return bool(abs(finer) > size * mp.mpf(10) ** -AGREED and abs(gap - finer) < abs(finer) / 100)


def _gap(values: Sequence[Any]) -> tuple[Any, Any]:
    """Return the difference of two sides, and the size of its terms; None without values."""
    left, right, *terms = values
    if not (mp.isfinite(left) and mp.isfinite(right)):
        return None, None
    with mp.workdps(5 * DIGITS):  # even a minus sign rounds to the working digits
        if not terms or not all(map(mp.isfinite, terms)):
            terms = [left, -right]
        return mp.fsum(terms), mp.fsum(terms, absolute=True)
