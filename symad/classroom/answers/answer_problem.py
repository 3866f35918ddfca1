"""The reference for a pupil's answer: f as a formula, the directions, and the right coefficients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import lru_cache
from typing import Any, Literal, TypeVar, get_args

import numpy as np
import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

import symad.tracing.values.containers as containers
from codegen.records import dataclass
from symad.classroom.equality.equality import Agreement, agreement
from symad.classroom.equality.turns import is_at_turn, turns
from symad.classroom.expansion.displayed import Definitions, check_coefficients
from symad.classroom.expansion.epsilon import Along, Levels, Listed, subsets
from symad.classroom.expansion.expansion_levels import by_levels
from symad.classroom.formulas.given import given, names_in
from symad.classroom.formulas.read import read_formula
from symad.derivatives.level import Epsilon
from symad.display.mathematics import too_large
from symad.graph.sympy_io import to_sympy
from symad.tracing.calling.user_place import refusal
from symad.tracing.trace import trace

Reveal = Literal["never", "after", "always"]  # when a page shows the right answer; after: beside a right one
MOST_LEVELS = 4  # 16 terms, which nobody writes by hand
MOST_ORDER = 6
MOST_DIGITS = 15
DIGITS = 2  # default of the significant digits that decimal numbers need
_OF_SIGNS = (sp.Abs, sp.sign, sp.Max, sp.Min, sp.Heaviside, sp.Piecewise)  # a question about signs
_ROUNDED = 13  # digits that only a computed number has
_KEPT = 4096  # derivatives: all mistakes of a question, and all answers to it, differentiate the same parts

Problem = TypeVar("Problem", bound="AnswerProblem")


@dataclass(frozen=True)
class AnswerProblem:
    """f as a formula of its symbols, the point, and the directions by sets of levels.

    `terms` are the sets of levels that an answer has coefficients of. A derivative of order n moves x by 1 along n
    levels, and has one term, that of all of them.
    """

    formula: sp.Expr
    symbols: tuple[sp.Symbol, ...]
    at: Mapping[sp.Symbol, sp.Expr]
    directions: Mapping[Levels, Sequence[sp.Expr]]
    count: int
    expansion: bool
    name: str
    called: tuple[str, ...] = ()  # the question's names of the epsilons
    taylor: bool = False  # one direction for all levels: answers may be polynomials in one epsilon
    digits: int = DIGITS  # significant digits that decimal numbers need; 0: exact
    reveal: Reveal = "always"
    otherwise: AnswerProblem | None = None  # the problem with "log" to base 10
    others: tuple[sp.Symbol, ...] = ()  # variables that are held fixed
    wrongs: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)  # kept by `mistakes`
    epsilons: tuple[sp.Symbol, ...] = field(init=False)
    truth: Mapping[Levels, sp.Expr] = field(init=False)

    def __post_init__(self) -> None:
        if self.reveal not in get_args(Reveal):
            raise refusal(f"reveal={self.reveal!r}", do=f"use one of {', '.join(map(repr, get_args(Reveal)))}")
        if isinstance(self.digits, bool) or not isinstance(self.digits, int) or not 0 <= self.digits <= MOST_DIGITS:
            raise refusal(f"digits={self.digits!r}", do=f"give 1 to {MOST_DIGITS}, or 0 where numbers have to be exact")
        kind = sp.Symbol if self.expansion else sp.Dummy  # a derivative may be in a variable that is called ε₁
        object.__setattr__(self, "epsilons", tuple(kind(f"epsilon_{k}", real=True) for k in range(1, self.count + 1)))
        object.__setattr__(self, "truth", {levels: self.value(self.general(levels)) for levels in self.terms})

    @property
    def terms(self) -> list[Levels]:
        return subsets(self.count) if self.expansion else [tuple(range(1, self.count + 1))]

    def general(self, levels: Sequence[int]) -> sp.Expr:
        """Return the right coefficient of some levels, in the symbols of f."""
        coefficient = self.formula
        for level in levels:
            coefficient = along(coefficient, self.tangents(level))
        return coefficient

    def tangents(self, level: int) -> dict[sp.Symbol, sp.Expr]:
        """Return the steps by which a level moves symbols and the directions of earlier levels."""
        moved = dict(zip(self.symbols, self.directions[(level,)], strict=True))
        for levels, direction in self.directions.items():
            if len(levels) > 1 and levels[-1] == level:
                names = self.directions[levels[:-1]]
                moved |= {name: part for name, part in zip(names, direction, strict=True) if name.is_Symbol}
        return moved

    def value(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression in the symbols of f at the point; nan for the pending derivative of a step."""
        try:
            return expression.xreplace(dict(self.at)).doit() if self.at else expression
        except ValueError:
            return sp.nan

    def named(self, part: Any) -> Any:
        """Return an expression, or a word, with the user's names for its symbols."""
        if not isinstance(part, sp.Basic):
            return part
        dummies = part.atoms(sp.Dummy) if isinstance(part, sp.Expr) else ()
        return part.xreplace({symbol: real(sp.Symbol(symbol.name)) for symbol in dummies})

    def agreement(self, expected: sp.Expr, written: sp.Expr) -> Agreement:
        """Return whether the written expression equals the expected one; undecided if only for positive constants."""
        verdict = agreement(expected, written)
        constants = sorted(self.formula.free_symbols - set(self.symbols), key=str)
        if verdict.equal is not False or not constants or self.formula.has(*_OF_SIGNS):
            return verdict

        def agrees(positive: Sequence[sp.Symbol]) -> bool:
            squares = {constant: sp.Dummy(real=True) ** 2 for constant in positive}
            return bool(agreement(expected.subs(squares), written.subs(squares)))

        if not agrees(constants):
            return verdict
        positive = next(([constant] for constant in constants if agrees([constant])), constants)
        return replace(verdict, equal=None, positive=tuple(positive))

    def next_derivative(self, derivative: sp.Expr) -> sp.Expr:
        """Return the derivative of a derivative, right or wrong."""
        return sp.diff(derivative, self.symbols[0])

    @property
    def own_names(self) -> dict[str, sp.Symbol]:
        """Further names that an answer may use."""
        return {symbol.name: symbol for symbol in self.others}

    def derivative_named(self, text: str) -> sp.Expr | None:
        """Return the value of a left side that only this kind of question has."""
        return None

    def own_mistakes(self, written: sp.Expr) -> list[tuple[str, str]] | None:
        """Return kinds and words of mistakes; None for a problem whose mistakes are those of rules."""
        return None

    @property
    def dependent_name(self) -> str:
        """The name of the function that an equation defines; "" if f is a formula."""
        return ""

    @property
    def epsilon_sum(self) -> sp.Expr:
        """The sum of all epsilons: the one epsilon of a Taylor polynomial."""
        return sp.Add(*self.epsilons)

    @property
    def moved(self) -> list[sp.Expr]:
        """The entries of the argument x + eps_1 v + ..."""
        monomials = {levels: sp.Mul(*(self.epsilons[k - 1] for k in levels)) for levels in self.directions}
        steps = ([part * monomials[levels] for part in parts] for levels, parts in self.directions.items())
        return [
            self.value(symbol) + sum(parts)
            for symbol, parts in zip(self.symbols, zip(*steps, strict=True), strict=True)
        ]

    def coefficients(self, expression: sp.Expr) -> dict[Levels, sp.Expr]:
        """Return the coefficients of an expression for the terms of an answer. Squares of epsilons are 0.

        The coefficient of eps_1 eps_2 is the mixed derivative in both at 0, whatever form the expression has.
        """
        if not self.expansion:
            return {self.terms[0]: expression}
        turns_here = any(self.value(turn) == 0 for turn in turns([self.formula]))  # f has a kink or a step
        coefficients: dict[Levels, sp.Expr] = {(): expression}
        for level, epsilon in enumerate(self.epsilons, 1):
            for levels, part in list(coefficients.items()):
                sloped = turns_here or not is_at_turn(part, epsilon)
                coefficients[(*levels, level)] = slope(part, epsilon).subs(epsilon, 0) if sloped else sp.nan
                coefficients[levels] = part.subs(epsilon, 0)
        return coefficients


def along(expression: sp.Expr, tangents: Mapping[sp.Symbol, sp.Expr]) -> sp.Expr:
    """Return the derivative of an expression in a direction.

    >>> x, v = sp.symbols("x v")
    >>> along(x**3, {x: v})
    3*v*x**2
    """
    moved = [(symbol, part) for symbol, part in tangents.items() if expression.has(symbol) and part != 0]
    return sp.Add(*(slope(expression, symbol) * part for symbol, part in moved))


@lru_cache(_KEPT)
def slope(expression: sp.Expr, symbol: sp.Symbol) -> sp.Expr:
    """Return the derivative in a symbol, if it exists. Steps have slope 0 between their jumps.

    >>> x = sp.Symbol("x", real=True)
    >>> slope(x * sp.floor(x), x), slope(sp.sign(x), x)
    (floor(x), 0)
    """
    derivative = sp.diff(expression, symbol)
    steps = [part for part in derivative.atoms(sp.Derivative) if isinstance(part.expr, sp.floor | sp.ceiling)]
    return derivative.xreplace(dict.fromkeys([*steps, *derivative.atoms(sp.DiracDelta)], sp.S.Zero))


def expansion_problem(
    f: Any, x: Any, directions: Any, order: int | None, called: Sequence[str] | None = None,
    digits: int = DIGITS, reveal: Reveal = "always",
) -> AnswerProblem:  # fmt: skip
    """Return the problem of an expansion; ArgumentError for more than MOST_LEVELS levels."""
    formula, symbols, values, argument, name = asked_formula(f, x)
    directions_of = by_levels(argument, directions, order)
    count = max(max(levels) for levels in directions_of)
    most = MOST_LEVELS if order is None else MOST_ORDER
    if count > most:
        raise refusal(f"an answer of {2**count} terms", do=f"give at most {most} levels")
    if called is not None and len(called) != count:
        raise refusal(f"{len(called)} names of epsilons", do=f"give {count}, one for each level")
    exact = {levels: [real(part) for part in parts] for levels, parts in directions_of.items()}
    apart = _apart(formula, symbols, values, [part for parts in exact.values() for part in parts])
    names = tuple(called or ())
    other = with_decimal_logarithms(f)
    otherwise = None if other == f else expansion_problem(other, x, directions, order, called, digits, reveal)
    return smooth(AnswerProblem(*apart, exact, count, True, name, names, order is not None, digits, reveal, otherwise))


def derivative_problem(f: Any, x: Any, order: int, digits: int = DIGITS, reveal: Reveal = "always") -> AnswerProblem:
    """Return the problem of a derivative in one symbol; ArgumentError where it has none at the point."""
    return smooth(problem_of(f, x, order, digits, reveal))


def problem_of(f: Any, x: Any, order: int, digits: int, reveal: Reveal) -> AnswerProblem:
    """Return the problem of a derivative in one symbol, which need not exist at the point."""
    formula, symbols, values, _, name = asked_formula(f, x)
    if len(symbols) != 1:
        do = "name one as x, or use check_expansion with directions"
        raise refusal(f"a derivative in {len(symbols)} variables", do=do)
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= MOST_ORDER:
        raise refusal(f"order={order!r}", do=f"give an integer from 1 to {MOST_ORDER}")
    apart, other = _apart(formula, symbols, values, []), with_decimal_logarithms(f)
    otherwise = None if other == f else derivative_problem(other, x, order, digits, reveal)
    return AnswerProblem(*apart, ones(order), order, False, name, (), False, digits, reveal, otherwise)


def of_kind(kind: type[Problem], problem: AnswerProblem, **more: Any) -> Problem:
    """Return a problem as one of another kind."""
    return kind(**{entry.name: getattr(problem, entry.name) for entry in fields(AnswerProblem) if entry.init}, **more)


def with_decimal_logarithms(text: Any) -> Any:
    """Return a text with log_10 for each "log" without a base; other values unchanged.

    >>> with_decimal_logarithms("x log x + log_2 x + \\\\log x")
    'x log_10 x + log_2 x + \\\\log_{10} x'
    """
    if not isinstance(text, str) or re.search(r"log\s*\([^()]*,", text):
        return text
    text = re.sub(r"(?<![\\A-Za-z])log(?![A-Za-z0-9_₀-₉]|\s*_)", "log_10", text)
    return re.sub(r"\\log(?![A-Za-z_]|\s*_)", r"\\log_{10}", text)


def directional_problem(f: Any, x: Any, direction: Sequence[sp.Expr], digits: int, reveal: Reveal) -> AnswerProblem:
    """Return the problem of a derivative along a direction, which is taken as it is."""
    formula, symbols, values, _, name = asked_formula(f, x)
    entries = [real(part) for part in direction]
    apart = _apart(formula, symbols, values, entries)
    return smooth(AnswerProblem(*apart, {(1,): entries}, 1, False, name, digits=digits, reveal=reveal))


def derivative_within(problem: AnswerProblem, order: int, formula: sp.Expr) -> AnswerProblem:
    """Return the problem of a derivative of f, or of a part of it, that a line of an answer is about."""
    return replace(problem, formula=formula, directions=ones(order), count=order, expansion=False)


def ones(order: int) -> dict[Levels, list[sp.Expr]]:
    """Return the directions of a derivative in one symbol: 1 along each level."""
    return {(level,): [sp.S.One] for level in range(1, order + 1)}


def asked_formula(f: Any, x: Any) -> tuple[sp.Expr, tuple[sp.Symbol, ...], dict[sp.Symbol, sp.Expr], Any, str]:
    """Return f as a formula in real symbols, the symbols, their values in x, x itself, and f's name."""
    if isinstance(f, str):
        f = read_formula(f, names_in(x))
    question = given(f, x, parameters=True)
    if isinstance(f, sp.Expr):
        formula = f
    else:
        traced = trace(question.function, question.argument)
        results = to_sympy(traced.graph, traced.outputs.flat, evaluate=True)
        if len(results) != 1:
            raise refusal(f"a function of {len(results)} results", do="check one of them at a time")
        inputs = [traced.graph.atoms[node] for node in traced.inputs.flat]
        formula = results[0].xreplace(dict(zip(inputs, question.symbols, strict=True)))
    _check_exact(formula)
    if large := too_large(formula):
        raise refusal(large, do="give a formula that can be expanded by hand")
    if not all(isinstance(symbol, sp.Symbol) for symbol in question.symbols):
        raise refusal(f"x = {', '.join(map(str, question.symbols))}", do="give plain symbols")
    symbols = tuple(real(symbol) for symbol in question.symbols)
    values = [item for leaf in containers.flatten(question.argument)[0] for item in np.ravel(leaf).tolist()]
    at = {symbol: real(value) for symbol, value in zip(symbols, values, strict=True) if symbol != real(value)}
    return real(formula), symbols, at, question.argument, question.name


def smooth(problem: AnswerProblem) -> AnswerProblem:
    """Return a problem whose coefficients have values without conventions such as sign(0) = 0; else refuse it.

    The coefficients are checked by arithmetic that shares no code with the rules that made them.
    """
    for levels in problem.terms if problem.at else []:
        general = problem.general(levels)
        steps = [step for step in general.atoms(sp.sign, sp.Heaviside) if problem.value(step.args[0]) == 0]
        steps += [step for step in general.atoms(sp.floor, sp.ceiling) if problem.value(step.args[0]).is_Integer]
        held = {step: sp.Dummy(real=True) for step in steps}
        value = problem.value(general.xreplace(held))
        if value.has(sp.nan, sp.zoo, sp.oo, *held.values()):
            place = ", ".join(f"{symbol.name} = {value}" for symbol, value in problem.at.items())
            raise refusal(f"f without a derivative at {place}", do="take another point")
    epsilons = {epsilon: Epsilon.of_level(k) for k, epsilon in enumerate(problem.epsilons, 1)}
    name = "the formula"  # no function in it has this name
    moved = Along(sp.Symbol(name), sp.S.Zero, Listed(*(part.xreplace(epsilons) for part in problem.moved)))
    check_coefficients(problem.truth, moved, Definitions(name, problem.symbols, problem.formula))
    return problem


def _check_exact(formula: sp.Expr) -> None:
    """Refuse numbers such as math.pi: they would differ from a pupil's exact answer."""
    for number in formula.atoms(sp.Float):
        if len(str(number).lower().partition("e")[0].replace(".", "").strip("-0")) >= _ROUNDED:
            do = "write it exactly, as sp.pi or sp.Rational(1, 3)"
            raise refusal(f"the number {number} in f, which seems to be rounded", do=do)


def _apart(
    formula: sp.Expr, symbols: Sequence[sp.Symbol], at: Mapping[sp.Symbol, sp.Expr], directions: Sequence[sp.Expr]
) -> tuple[sp.Expr, tuple[sp.Symbol, ...], dict[sp.Symbol, sp.Expr]]:
    """Return f, its symbols and their values, with new symbols for names that a direction or a value shares.

    In f(x + eps_1 x) the second x is what the first is at the point, and does not move.
    """
    elsewhere = {symbol for part in (*directions, *at.values()) for symbol in part.free_symbols}
    new = {symbol: sp.Dummy(symbol.name, **symbol.assumptions0) for symbol in symbols if symbol in elsewhere}
    values = {new.get(symbol, symbol): at.get(symbol, symbol) for symbol in symbols if symbol in new or symbol in at}
    return formula.xreplace(new), tuple(new.get(symbol, symbol) for symbol in symbols), values


def real(value: Any) -> sp.Expr:
    """Return a value as an exact expression in real symbols. A float becomes its decimal number.

    >>> real(0.1 * sp.Symbol("x")), real(0.1 * sp.Symbol("x")).is_real
    (x/10, True)
    """
    expression = sp.sympify(value)
    exact: dict[sp.Basic, sp.Basic] = {number: sp.Rational(str(number)) for number in expression.atoms(sp.Float)}
    named = {s: sp.Symbol(s.name, real=True) for s in expression.free_symbols if s.is_extended_real is None}
    return expression.xreplace({**exact, **named})


def undefined(expression: sp.Expr) -> set[UndefinedFunction]:
    """Return the undefined functions in an expression."""
    return {call.func for call in expression.atoms(AppliedUndef)}
