"""A pupil's answer, read: its lines, the steps in each line between equals signs, and what each step is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.records import dataclass
from symad.display.mathematics import too_large
from symad.errors import ArgumentError
from symad.formulas.formula_names import Name, known
from symad.formulas.read import Reading, reading
from symad.teaching.answers.answer_problem import Problem, real, undefined
from symad.teaching.answers.answer_text import (
    along_directions,
    left_side,
    without_note,
    without_remainder,
    without_typesetting,
)
from symad.teaching.expansion.epsilon import monomial
from symad.tracing.calling.user_place import refusal

MOST_LINES = 100
_EQUALS = re.compile(r"==?")
_GOES_ON = re.compile(r"\s*[+*/·×)]")
_UNFINISHED = re.compile(r"[-+*/·×(=,]\s*$")


@dataclass(frozen=True)
class Step:
    """One side of an equation in a line: its text, what it says, and what it has to be (None: what is asked for)."""

    line: int
    text: str
    expression: sp.Expr
    about: sp.Expr | None = None
    bare: bool = False  # an epsilon without a number, where there are several levels
    named: bool = False  # f is still written as f
    restated: bool = False  # nothing but f(...) or a derivative that is not carried out
    derives: bool = False  # a derivative in it is not carried out
    notes: tuple[str, ...] = ()  # what was taken for granted in reading it


class Reader:
    """The names that a pupil may use, and what they stand for."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        directions = [part for parts in problem.directions.values() for part in parts]
        parts = [problem.formula, *problem.at.values(), *directions]
        symbols = {symbol for part in parts for symbol in part.free_symbols} | set(problem.symbols)
        named = sorted(filter(lambda symbol: not symbol.is_Dummy, symbols), key=str)
        self.names: dict[str, Name] = {symbol.name: symbol for symbol in named}
        self.names |= {function.__name__: function for part in parts for function in undefined(part)}
        self.bare: Any = sp.Dummy("epsilon", real=True)
        if problem.expansion:
            self._name_epsilons()
        self.function: UndefinedFunction | None = None
        if problem.name not in self.names:
            self.function = self.names[problem.name] = sp.Function(problem.name)
            self.names.setdefault("f", self.function)
        self.about: sp.Expr | None = None  # what the equations of the line before are about
        self.point: Any | None = problem.symbols[0] if len(problem.symbols) == 1 else None

    def _name_epsilons(self) -> None:
        """Name the epsilons; one without a number is that of the only level, unless f has a symbol of that name."""
        for level, epsilon in enumerate(self.problem.epsilons, 1):
            if known(self.names, epsilon.name) is not None:
                raise refusal(f"a symbol {epsilon} in f", do="rename it: the levels are called so")
            self.names[epsilon.name] = epsilon
            if known(self.names, f"e_{level}") is None:
                self.names[f"e_{level}"] = epsilon
        for name, epsilon in zip(self.problem.called, self.problem.epsilons, strict=False):
            if known(self.names, name) not in (None, epsilon):
                raise refusal(f"{name!r} as the name of an epsilon", do="take one that stands for nothing else")
            self.names[name] = epsilon
        if known(self.names, self.bare.name) is None:
            self.names[self.bare.name] = self.problem.epsilons[0] if self.problem.count == 1 else self.bare

    def steps(self, mine: Any) -> list[Step]:
        """Return the steps of an answer: lines of text, a list of lines or expressions, or a dict of coefficients."""
        if isinstance(mine, Mapping):
            found = [self._coefficients(mine)]
        else:
            lines = _lines(mine)
            if len(lines) > MOST_LINES:
                raise refusal(f"an answer of {len(lines)} lines", do=f"give at most {MOST_LINES}")
            found = [step for number, line in lines for step in self._line(number, line)]
        if not found:
            raise refusal("an empty answer", do="write a line such as '= x**3 + 3*x**2*v*eps_1'")
        return found

    def _line(self, number: int, line: Any) -> list[Step]:
        goes_on = isinstance(line, str) and line.lstrip().startswith("=")
        if isinstance(line, str):
            cut = _sides(line)
            sides = [(text, self._side(number, line, start, end, len(cut) > 1)) for text, start, end in cut]
        else:
            parts = line.args if isinstance(line, sp.Equality) else [line]
            sides = [(str(part), Reading(self._given(number, part))) for part in parts]
        if not goes_on and sides:
            first = sides[0][1]
            named = len(sides) > 1 and (self._is_named(first.expression) or first.derivative)
            self.about = self.concrete(first.expression) if named else None
        return [self._step(number, text, read, self.about) for text, read in sides]

    def _step(self, number: int, text: str, read: Reading, about: sp.Expr | None = None) -> Step:
        expression = read.expression
        named, bare = self._is_named(expression), expression.has(self.bare)
        restated = read.derivative or isinstance(expression, AppliedUndef | sp.Derivative | sp.Subs)
        concrete = self.concrete(expression)
        return Step(number, text, concrete, about, bare, named, restated, read.derives, read.notes)

    def _is_named(self, expression: sp.Expr) -> bool:
        """Whether f stands in an expression by its name."""
        return self.function is not None and expression.has(self.function)

    def concrete(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression at the point of the problem, with the formula of f for its name."""
        problem = self.problem
        if self.function is not None and self._is_named(expression):
            for call in expression.atoms(AppliedUndef):
                if call.func == self.function and len(call.args) != len(problem.symbols):
                    do = f"give {len(problem.symbols)}: {', '.join(symbol.name for symbol in problem.symbols)}"
                    raise refusal(f"{problem.name} of {len(call.args)} arguments in {call}", do=do)

            def formula(*arguments: sp.Expr) -> sp.Expr:
                return problem.formula.subs(list(zip(problem.symbols, arguments, strict=True)), simultaneous=True)

            expression = _with_places(expression).replace(self.function, formula).doit()
        return problem.value(expression)

    def _derivative(self, text: str) -> sp.Expr | None:
        """Return what y' or dy/dx stands for where f has one variable; None for any other text."""
        found = left_side(text)
        if found is None or self.function is None or self.point is None:
            return None
        letters = ("y", "f", self.problem.name)
        if found.letter not in letters or known(self.names, found.letter) not in (None, self.function):
            return None
        if found.variable not in ("", self.point.name):
            return None
        at = self.function(self.point)
        return sp.Derivative(at, (self.point, found.order)) if found.order else at

    def _side(self, number: int, line: str, start: int, end: int, equation: bool) -> Reading:
        """Return a side of a line: what an equation is about, or a formula, with a note or a remainder behind it."""
        if equation and (about := self._derivative(line[start:end])) is not None:
            return Reading(about)
        end = without_note(line, start, end, lambda word: known(self.names, word) is not None)
        if self.problem.expansion:
            end, remainder = without_remainder(line, start, end)
            if remainder is not None:
                self._check_remainder(number, line, remainder)
        moved = along_directions(line[start:end])
        if moved != line[start:end] and known(self.names, "D") is None:
            return self._read(number, moved, 0, len(moved))
        return self._read(number, line, start, end)

    def _check_remainder(self, number: int, line: str, part: tuple[int, int]) -> None:
        """Refuse a remainder that is no square or product of epsilons: it would swallow what is asked for."""
        content = self._read(number, line, *part).expression
        epsilons = {*self.problem.epsilons, self.bare} & content.free_symbols
        degree = sp.Poly(content, *epsilons).total_degree() if epsilons and content.is_polynomial(*epsilons) else 0
        if degree < 2:
            do = "write O(ε²) for what falls away, and all terms that are asked for"
            raise refusal(f"the remainder O({line[slice(*part)].strip()}) in line {number}", do=do)

    def _read(self, number: int, line: str, start: int, end: int) -> Reading:
        try:
            found = reading(line, self.names, others=False, functions=False, point=self.point, part=(start, end))
        except ArgumentError as error:
            raise ArgumentError(error.what, where=f"line {number}, {error.where}", why=error.why, do=error.do) from None
        if large := too_large(found.expression):
            raise refusal(f"line {number}: {large}", do="give a shorter line")
        return found

    def _given(self, number: int, value: Any) -> sp.Expr:
        """Return a SymPy expression in the symbols of the problem, which are found by their names."""
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
            found = known(self.names, symbol.name)
            if not isinstance(found, sp.Expr):
                do = f"known are {', '.join(self.names)}"
                raise refusal(f"the symbol {symbol} in line {number}", do=do)
            put[symbol] = found
        return real(expression.doit().xreplace(put))

    def _coefficients(self, mine: Mapping[Any, Any]) -> Step:
        """Return a table of coefficients as one line."""
        if not self.problem.expansion:
            raise refusal("a dict as the answer to a derivative", do="give the derivative as a text or expression")
        terms, texts = dict[sp.Expr, sp.Expr](), []
        for key, value in mine.items():
            if isinstance(key, tuple):
                key = monomial(key)
            term, coefficient = self._entry(key), self._entry(value)
            factors = [] if term == 1 else list(sp.Mul.make_args(term))
            if not set(factors) <= set(self.problem.epsilons) or len(set(factors)) < len(factors):
                raise refusal(f"the term {key}", do="give 1 and products of different epsilons, such as 'eps_1 eps_2'")
            if term in terms:
                raise refusal(f"the term {key} twice", do="give each term once")
            if coefficient.has(*self.problem.epsilons, self.bare):
                raise refusal(f"the coefficient {value} of {key}", do="give coefficients without epsilons")
            terms[term] = term * coefficient
            texts.append(f"{key}: {value}")
        return self._step(1, ", ".join(texts), Reading(sp.Add(*terms.values())))

    def _entry(self, value: Any) -> sp.Expr:
        return self._read(1, value, 0, len(value)).expression if isinstance(value, str) else self._given(1, value)


def _lines(mine: Any) -> list[tuple[int, Any]]:
    """Return the numbered lines of an answer, without comments (which begin with #); a line that cannot end goes on."""
    if not isinstance(mine, str):
        return list(enumerate(mine if isinstance(mine, list | tuple) else [mine], 1))
    found: list[tuple[int, str]] = []
    for number, line in enumerate(mine.strip("\n").splitlines(), 1):
        code = without_typesetting(line.partition("#")[0]).rstrip()
        if found and (_GOES_ON.match(code) or _UNFINISHED.search(found[-1][1])):
            found[-1] = (found[-1][0], f"{found[-1][1]} {code.lstrip()}")
        elif code:
            found.append((number, code))
    return list(found)


def _with_places(expression: sp.Expr) -> sp.Expr:
    """Return an expression with f'(g(x)) as a derivative in a place, where g(x) is put: g may become a formula."""

    def placed(part: sp.Derivative) -> sp.Expr:
        puts = {found: sp.Dummy("xi") for found in part.variables if not found.is_Symbol}
        return sp.Subs(part.xreplace(puts), list(puts.values()), list(puts)) if puts else part

    return expression.replace(sp.Derivative, lambda *parts: placed(sp.Derivative(*parts, evaluate=False)))


def _sides(line: str) -> list[tuple[str, int, int]]:
    """Return the sides of the equations in a line, with where they begin and end."""
    code = line.partition("#")[0]
    ends = [match.start() for match in _EQUALS.finditer(code)] + [len(code)]
    starts = [0] + [match.end() for match in _EQUALS.finditer(code)]
    cut = [(code[start:end].strip(), start, end) for start, end in zip(starts, ends, strict=True)]
    return [side for position, side in enumerate(cut) if side[0] or (position and code.strip() != "=")]


def steps_of(mine: Any, problem: Problem) -> Sequence[Step]:
    """Return the steps of an answer to a problem.

    >>> from symad.teaching.answers.answer_problem import derivative_problem
    >>> problem = derivative_problem("x**2", "x", 1)
    >>> [(step.line, step.text) for step in steps_of("f'(x) = 2x\\n= x + x  # the same", problem)]
    [(1, "f'(x)"), (1, '2x'), (2, 'x + x')]
    """
    return Reader(problem).steps(mine)
