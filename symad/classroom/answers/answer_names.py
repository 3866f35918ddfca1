"""Resolve names in a pupil's answer: symbols of f, epsilons, f itself, and parts that the pupil names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from symad.classroom.answers.answer_problem import AnswerProblem, real, undefined
from symad.classroom.answers.answer_text import LeftSide, left_side
from symad.classroom.formulas.formula_names import CONSTANTS, Name, known, plain
from symad.classroom.formulas.read import FormulaReading
from symad.display.mathematics import too_large
from symad.tracing.calling.user_place import refusal

CONSTANT = sp.Dummy("C", real=True)  # a letter c or C of the pupil, perhaps a constant of integration
SLOPE = sp.Symbol("y′", real=True)
_PART = re.compile(r"([^\W\d_](?:_?[0-9]+|_\{[0-9]+\})?)(?:\(\s*(\w+)\s*\))?")
# dy/du, g(u) and g'(u(x)), where u is a name of the pupil's
_IN_A_PART = re.compile(
    r"\\frac\{d([A-Za-z])\}\{d([A-Za-z])\}|(?<![A-Za-z])([A-Za-z])('?)\(\s*([A-Za-z])\s*(?:\(\s*\w\s*\))?\s*\)"
)


class AnswerNames:
    """Names and their meaning: `function` is f, `point` its only variable, `bare` an epsilon without a number."""

    def __init__(self, problem: AnswerProblem) -> None:
        self.problem = problem
        parts = [problem.formula, *problem.at.values(), *(p for parts in problem.directions.values() for p in parts)]
        symbols = {symbol for part in parts for symbol in part.free_symbols} | set(problem.symbols)
        named = sorted(filter(lambda symbol: not symbol.is_Dummy, symbols), key=str)
        self.names: dict[str, Name] = {symbol.name: symbol for symbol in named}
        self.names |= {function.__name__: function for part in parts for function in undefined(part)}
        self.bare: Any = sp.Dummy("epsilon", real=True)
        if problem.expansion:
            self._name_epsilons()
        self.point: Any | None = problem.symbols[0] if len(problem.symbols) == 1 else None
        self.names |= {name: symbol for name, symbol in problem.own_names.items() if not self.is_known(name)}
        self.own: dict[str, sp.Expr] = {}  # parts of the formula named by the answer
        self.partials: dict[str, sp.Expr] = {}  # F_x and F_y of an equation F(x, y) = 0
        self.function = self._named_function()
        if not problem.expansion:
            self.names |= {letter: CONSTANT for letter in ("c", "C", "const") if not self.is_known(letter)}
        calls = problem.formula.atoms(AppliedUndef)
        elsewhere = {call.func.__name__ for call in calls if call.args != (self.point,)}
        self._functions: set[str] = {call.func.__name__ for call in calls} - elsewhere if self.point else set()
        if self.function is not None and self.point is not None:
            self._functions |= {name for name, meaning in self.names.items() if meaning == self.function}
        if problem.dependent_name:  # a differential: 2x dx + 2y dy = 0
            d = sp.Dummy("d", positive=True)
            self.names |= {f"d{self.point}": d, f"d{problem.dependent_name}": d * self._slope()}
            for variable in (self.point, sp.Symbol(problem.dependent_name, real=True)):
                partial = sp.diff(problem.formula, variable).subs(variable, variable)
                self.partials |= {f"{letter}_{variable}": partial for letter in "Ff" if not self.is_known(letter)}
            self.names |= self.partials

    def _named_function(self) -> UndefinedFunction | None:
        """Return f as an undefined function, None if its name has another meaning."""
        dependent, name = self.problem.dependent_name, self.problem.name
        if name in self.names and not dependent:
            return None
        function = self.names[dependent or name] = sp.Function(dependent or name)
        for letter in "y" if dependent else "fy":
            if not self.is_known(letter):
                self.names[letter] = function
        return function

    def _name_epsilons(self) -> None:
        """Name the epsilons. One without a number belongs to the only level, unless f has a symbol of that name."""
        for level, epsilon in enumerate(self.problem.epsilons, 1):
            if self.is_known(epsilon.name):
                raise refusal(f"a symbol {epsilon} in f", do="rename it: the levels are called so")
            self.names[epsilon.name] = epsilon
            if not self.is_known(f"e_{level}"):
                self.names[f"e_{level}"] = epsilon
        for name, epsilon in zip(self.problem.called, self.problem.epsilons, strict=False):
            if known(self.names, name) not in (None, epsilon):
                raise refusal(f"{name!r} as the name of an epsilon", do="take one that stands for nothing else")
            self.names[name] = epsilon
        if not self.is_known(self.bare.name):
            only_epsilon = self.problem.epsilons[0] if self.problem.count == 1 else self.bare
            self.names[self.bare.name] = self.problem.epsilon_sum if self.problem.taylor else only_epsilon
        if self.problem.taylor:
            self.names.setdefault("h", self.problem.epsilon_sum)

    def is_known(self, word: str) -> bool:
        """Whether a word has a meaning."""
        return known(self.names, word) is not None

    def options(self) -> dict[str, Any]:
        """Return the options for reading answers: no other names, and f'g + fg' without arguments."""
        bare = {*self.own, *self._functions}
        return {"others": False, "functions": False, "point": self.point, "bare": bare}

    def part_named(self, text: str, sides: int) -> str:
        """Return the name that a left side defines, as in u = x^2; "" for any other text."""
        match = _PART.fullmatch(text.strip("$ "))
        if match is None or self.point is None or self.problem.expansion:
            return ""
        if match[2] not in (None, self.point.name, *self.own):
            return ""
        word = match[1].replace("{", "").replace("}", "")
        is_other = self.is_known(word) or word in (self.problem.name, "f", *CONSTANTS) or (match[2] and sides > 2)
        return "" if is_other else word

    def define(self, word: str, part: sp.Expr, *, called: bool) -> None:
        """Keep what the answer calls a part of the formula, a function where it is written with its argument."""
        self.own[word] = part
        self.names[word] = sp.Function(word) if called else part

    def written_out(self, read: FormulaReading) -> FormulaReading:
        """Return a reading in which the functions that the answer defines stand written out."""
        whole = read.expression
        for word, part in self.own.items():
            function = self.names[word]
            if isinstance(function, UndefinedFunction) and whole.has(function):
                whole = _with_places(whole).replace(function, lambda at, part=part: part.subs(self.point, at)).doit()
        derives = read.derives or (whole != read.expression and read.expression.has(sp.Derivative, sp.Subs))
        return replace(read, expression=whole, derives=derives)

    def is_own_name(self, left: LeftSide) -> bool:
        """Return whether a left side such as v(t), or v(3) at the point 3, is what the pupil calls the function."""
        numbers = re.fullmatch("-?[0-9.]+", left.at)
        is_there = not numbers or (self.point and self.problem.value(self.point) == sp.Rational(left.at))
        return bool(is_there) and not self.is_known(left.letter)

    def is_named(self, expression: sp.Expr) -> bool:
        """Whether an expression contains f by name."""
        return self.function is not None and expression.has(self.function)

    def _slope(self, order: int = 1) -> sp.Expr:
        return sp.Derivative(self.function(self.point), (self.point, order))  # type: ignore[misc]

    def has_slope(self, expression: sp.Expr) -> bool:
        """Whether an expression contains the derivative that is asked for, if an equation defines y."""
        return bool(self.problem.dependent_name) and expression.has(self._slope(self.problem.count))

    def with_symbols(self, equation: sp.Expr) -> sp.Expr:
        """Return a differentiated equation with symbols for y and y'."""
        y = self.problem.dependent_name
        return equation.doit().subs(self._slope(), SLOPE).subs(self.function(self.point), sp.Symbol(y, real=True))  # type: ignore[misc]

    def concrete(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression at the point of the problem, with the formula of f for its name."""
        problem = self.problem
        if problem.dependent_name:  # the right derivative for y'
            of_x, y = self.function(self.point), sp.Symbol(problem.dependent_name, real=True)  # type: ignore[misc]
            for order in range(problem.count, 0, -1):
                expression = expression.doit().subs(self._slope(order), problem.general(range(order)))
            return problem.value(expression.subs(of_x, y))
        if self.is_named(expression):
            for call in expression.atoms(AppliedUndef):
                if call.func == self.function and len(call.args) != len(problem.symbols):
                    do = f"give {len(problem.symbols)}: {', '.join(symbol.name for symbol in problem.symbols)}"
                    raise refusal(f"{problem.name} of {len(call.args)} arguments in {call}", do=do)

            def formula(*arguments: sp.Expr) -> sp.Expr:
                return problem.formula.subs(list(zip(problem.symbols, arguments, strict=True)), simultaneous=True)

            expression = _with_places(expression).replace(self.function, formula).doit()
        if problem.taylor and problem.at and not expression.has(*problem.epsilons):
            return expression.subs(list(zip(problem.symbols, problem.moved, strict=True)), simultaneous=True)
        return problem.value(expression)

    def derivative(self, text: str) -> sp.Expr | None:
        """Return the meaning of y', dy/dx or f_x if f has one variable; None for any other text."""
        if (own := self.problem.derivative_named(text)) is not None:
            return own
        side = left_side(text)
        if side is None or self.function is None or self.point is None:
            return None
        if (partial := self.partials.get(f"{side.letter}_{''.join(side.variables)}")) is not None and not side.at:
            return partial
        if side.letter not in self.own and known(self.names, side.letter) not in (None, self.function):
            return None
        at = self.function(self.point)
        of = self.own.get(side.letter, at)
        if side.at in self.own and side.order == 0:  # f(u) = u^5: f as a function of u
            return of
        if side.order == 1 and (part := next((name for name in (*side.variables, side.at) if name in self.own), "")):
            above = sp.Derivative(of, self.point) if of == at else sp.diff(of, self.point)  # dy/du = (dy/dx)/(du/dx)
            return above / sp.diff(self.own[part], self.point)
        here = {plain(self.point.name), str(self.problem.at.get(self.point, ""))}
        if not {plain(name) for name in (*side.variables, side.at) if name} <= here:
            return None
        if self.problem.taylor and re.match(r"-?\d", side.at):  # f''(0) = 1 is a number on the way to a polynomial
            return self.problem.value(sp.diff(self.problem.formula, self.point, side.order))
        if of != at:
            return sp.diff(of, self.point, side.order)
        if side.order == 0:
            is_f = side.letter in ("y", "f", self.problem.name) or known(self.names, side.letter) == self.function
            return at if is_f else None
        if not self.is_known(side.letter) and side.letter not in CONSTANTS:
            self.names[side.letter] = self.function  # the pupil's own name of the function from here on
        return sp.Derivative(at, (self.point, side.order))

    def with_ratios(self, text: str) -> str:
        """Return a text of the same length with dy/du, du/dx and g'(u) as names, if u is a name of the pupil's."""

        def name(match: re.Match[str]) -> str:
            of, mark, part = match[1] or match[3], match[4], match[2] or match[5]
            value = None
            if match[1] or part in self.own:
                value = self.derivative(f"{of}({part})" if mark == "" else f"\\frac{{d{of}}}{{d{part}}}")
            if value is None:
                return match[0]
            word = f"{of}_{part}" if mark == "" else f"d{of}_d{part}"
            self.names[word] = value
            return f" {word}".ljust(len(match[0])) if match[1] else word.ljust(len(match[0]))

        return _IN_A_PART.sub(name, text)

    def given(self, value: Any, number: int) -> sp.Expr:
        """Return a SymPy expression in the symbols of the problem, matched by name."""
        try:
            expression = sp.sympify(value, strict=True)
        except sp.SympifyError:
            expression = None
        if not isinstance(expression, sp.Expr):
            raise refusal(f"line {number} of type {type(value).__name__}", do="give a text or a SymPy expression")
        if large := too_large(expression):
            raise refusal(f"line {number}: {large}", do="give a shorter line")
        put = {}
        for symbol in expression.free_symbols:
            meaning = known(self.names, symbol.name)
            if not isinstance(meaning, sp.Expr):
                raise refusal(f"the symbol {symbol} in line {number}", do=f"known are {', '.join(self.names)}")
            put[symbol] = meaning
        return real(expression.doit().xreplace(put))


def _with_places(expression: sp.Expr) -> sp.Expr:
    """Return an expression with f'(g(x)) as a derivative at a place, so that g may become a formula."""

    def placed(part: sp.Derivative) -> sp.Expr:
        puts = {variable: sp.Dummy("xi") for variable in part.variables if not variable.is_Symbol}
        return sp.Subs(part.xreplace(puts), list(puts.values()), list(puts)) if puts else part

    return expression.replace(sp.Derivative, lambda *parts: placed(sp.Derivative(*parts, evaluate=False)))
