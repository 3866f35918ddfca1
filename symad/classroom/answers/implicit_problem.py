"""Implicit differentiation: the derivatives of y(x) given an equation in x and y."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import islice
from typing import Any

import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.answer_problem import DIGITS as FEWEST, AnswerProblem, Reveal, ones, real
from symad.classroom.equality.equality import Agreement, Witness, agreement
from symad.classroom.equality.hyperdual import constant
from symad.classroom.equality.independent_values import DIGITS, IndependentValues, UnknownValueError
from symad.classroom.expansion.displayed import Definitions, check_coefficients
from symad.classroom.expansion.epsilon import Along, Listed, Nested, subsets
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.read import named_left, read_formula
from symad.derivatives.level import Epsilon
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

_MOST_ORDER = 4
_POINTS = 6  # points of the curve at which equal sides have to agree
_ATTEMPTS = 60
_SIZES = (2, 8, 0.1, 50)  # of the values at the points: x² - y² = 4 has none with |x| < 2
_AGREED = mp.mpf(10) ** -35
_NEAR = 5  # further from 0, e^{xy} may be too small to make a difference


@dataclass(frozen=True)
class ImplicitProblem(AnswerProblem):
    """The derivative of some order of `dependent` in the variable on the curve `formula` = 0."""

    dependent: sp.Symbol = sp.Symbol("y", real=True)

    @property
    def dependent_name(self) -> str:
        return str(self.dependent.name)

    def general(self, levels: Any) -> sp.Expr:
        (x,), y = self.symbols, self.dependent
        slope = derivative = -sp.diff(self.formula, x) / sp.diff(self.formula, y)
        for _ in levels[1:]:
            derivative = sp.diff(derivative, x) + sp.diff(derivative, y) * slope
        return derivative

    def next_derivative(self, derivative: sp.Expr) -> sp.Expr:
        return sp.diff(derivative, self.symbols[0]) + sp.diff(derivative, self.dependent) * derivative

    def agreement(self, expected: sp.Expr, written: sp.Expr) -> Agreement:
        """Return whether two expressions are equal on the curve; None if only on a part of it."""
        everywhere = agreement(expected, written)
        if everywhere.equal is not False or self.at:
            return everywhere
        agreed, differing, witness = list[Any](), list[Any](), None
        for at in islice(self._points(), 2 * _POINTS):
            values = IndependentValues({symbol: constant(value) for symbol, value in at.items()})
            try:
                left, right = values.of(expected), values.of(written)
            except (UnknownValueError, ArithmeticError, ValueError, TypeError):
                continue
            if not (left.is_real and right.is_real):
                continue
            if abs(left.real - right.real) > _AGREED * (1 + abs(left.real)):
                shown = {symbol: sp.Rational(mp.nstr(value, 6)) for symbol, value in at.items()}
                witness = witness or Witness(shown, left.real, right.real)
                differing.append(max(map(abs, at.values())))
            else:
                agreed.append(max(map(abs, at.values())))
        if witness is not None:  # undecided if it holds only on a part of the curve, such as y > 0
            is_partly = min(agreed, default=mp.inf) < max(_NEAR, min(differing))
            return Agreement(None if is_partly else False, points=len(agreed), witness=witness)
        return Agreement(True if len(agreed) >= _POINTS else None, points=len(agreed))

    def _points(self) -> Any:
        """Yield points of the curve. All names except the dependent one have random values."""
        source = random.Random(7)
        names = sorted(self.formula.free_symbols - {self.dependent}, key=str)
        function = sp.lambdify([*names, self.dependent], self.formula, "mpmath")
        for attempt in range(_ATTEMPTS):
            size = _SIZES[attempt % len(_SIZES)]
            at = {name: mp.mpf(source.uniform(-size, size)) for name in names}
            with mp.workdps(DIGITS):
                try:
                    root = mp.findroot(lambda y, at=at: function(*at.values(), y), mp.mpf(source.uniform(-size, size)))
                except (ArithmeticError, ValueError, TypeError):
                    continue
                if mp.im(root) == 0:
                    yield {**at, self.dependent: mp.re(root)}


def is_equation(f: Any, x: Any = "x") -> bool:
    """Whether a question is an equation that defines y as a function of x, not a formula such as y = x^2.

    x may be a point of the curve: {"x": 3, "y": 4}.

    >>> is_equation("x^2 + y^2 = 25"), is_equation("y = x^2"), is_equation("x^2")
    (True, False, False)
    >>> is_equation("y = x^y"), is_equation("x = y^2"), is_equation("x = cos t", "t")
    (True, True, False)
    """
    if not isinstance(f, str) or f.count("=") != 1 or any(sign in f for sign in "<>!") or "{cases}" in f:
        return False
    x, left = next(iter(x), "") if isinstance(x, Mapping) else x, named_left(f)
    if left is None or left[1] == str(x) or left[2]:
        return left is None or left[1] == str(x)
    try:  # y = x^y gives y by an equation
        return left[1] in {symbol.name for symbol in read_formula(f.partition("=")[2], [left[1]]).free_symbols}
    except ArgumentError:
        return False


def parts_of_equation(f: Any, x: Any) -> tuple[sp.Expr, sp.Expr, sp.Symbol, sp.Symbol]:
    """Return both sides of an equation, its symbol x, and the dependent one: y, or the only other one."""
    left, right = map(real, [read_formula(side, [x]) for side in f.split("=")] if isinstance(f, str) else f.args)
    symbols, name = left.free_symbols | right.free_symbols, plain(str(x))
    others = sorted((s for s in symbols if plain(s.name) != name), key=str)
    dependent = next((s for s in others if s.name == "y"), others[0] if len(others) == 1 else None)
    variable = next((s for s in symbols if plain(s.name) == name), None)
    if dependent is None or variable is None:
        raise refusal(f"the equation {str(f)!r}", do=f"write an equation in {x} and y")
    return left, right, variable, dependent


def implicit_problem(f: str, x: Any, order: int, digits: int = FEWEST, reveal: Reveal = "always") -> ImplicitProblem:
    """Return the problem of dy/dx, or of a higher order. y is the other name in the equation, or the one called y."""
    point, x = (x, next(iter(x), "")) if isinstance(x, Mapping) else ({}, x)
    if not isinstance(x, str | sp.Symbol) or isinstance(order, bool) or order not in range(1, _MOST_ORDER + 1):
        do = f"name one variable, such as x, and ask for an order of 1 to {_MOST_ORDER}"
        raise refusal("an equation as a question", do=do)
    left, right, variable, dependent = parts_of_equation(f, x)
    formula, at = left - right, _on_the_curve(point, variable, dependent, left - right)
    options: dict[str, Any] = {"digits": digits, "reveal": reveal, "dependent": dependent}
    problem = ImplicitProblem(formula, (variable,), at, ones(order), order, False, "y", **options)
    _check_on_the_curve(problem)
    return problem


def _on_the_curve(point: Mapping[Any, Any], x: sp.Symbol, y: sp.Symbol, formula: sp.Expr) -> dict[sp.Symbol, sp.Expr]:
    """Return a point as exact values of x and y; ArgumentError for one that is not on the curve."""
    read = {name: read_formula(value) if isinstance(value, str) else value for name, value in point.items()}
    named = {plain(str(name)): real(value) for name, value in read.items()}
    at = {symbol: named[plain(symbol.name)] for symbol in (x, y) if plain(symbol.name) in named}
    if not point:
        return {}
    if len(at) < 2 or len(named) > 2 or sp.simplify(formula.xreplace(at)) != 0:
        what = ", ".join(f"{name} = {value}" for name, value in named.items())
        raise refusal(f"the point {what}", do=f"give {x} and {y} of a point of the curve")
    if sp.simplify(sp.diff(formula, y).xreplace(at)) == 0:
        raise refusal("a point without a slope", "the tangent may be vertical there", "take another point")
    return at


def _check_on_the_curve(problem: ImplicitProblem) -> None:
    """Raise InvariantError unless the equation holds along the curve (x + ε, y + y'ε + ...) to the order asked for."""
    (variable,), every = problem.symbols, subsets(problem.count)[1:]
    products = {levels: sp.Mul(*map(Epsilon.of_level, levels)) for levels in every}
    along = [part for levels in every for part in (problem.general(levels), products[levels])]
    ones = [part for levels in every if len(levels) == 1 for part in (sp.S.One, products[levels])]
    moved = Listed(Nested(variable, 1, *ones), Nested(problem.dependent, 1, *along))
    definitions = Definitions("the formula", (variable, problem.dependent), problem.formula)
    check_coefficients(dict.fromkeys(every, sp.S.Zero), Along(sp.Symbol("the formula"), sp.S.Zero, moved), definitions)
