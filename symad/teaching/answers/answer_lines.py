"""A pupil's answer, read: its lines, the steps in each line between equals signs, and what each step is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef, UndefinedFunction

from codegen.records import dataclass
from symad.checking.equality import agreement
from symad.display.mathematics import too_large
from symad.errors import ArgumentError
from symad.formulas.formula_names import CONSTANTS, Name, known, plain
from symad.formulas.read import Reading, reading
from symad.teaching.answers.answer_problem import Problem, real, undefined
from symad.teaching.answers.answer_statements import (
    Statement,
    as_ratio,
    cases_of,
    lines_of,
    sides_of,
    statements,
    without_boxes,
)
from symad.teaching.answers.answer_text import (
    LeftSide,
    along_directions,
    left_side,
    without_note,
    without_remainder,
)
from symad.teaching.answers.step_of_quotients import AS_IT_VANISHES, LIMIT, MOVED, STEP, at_zero, completed
from symad.teaching.expansion.epsilon import monomial
from symad.tracing.calling.user_place import refusal

MOST_LINES = 100
CONSTANT = sp.Dummy("C", real=True)  # a letter c or C of the pupil, perhaps a constant of integration


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
    condition: str = ""  # under which it is said to hold
    is_left: bool = False  # the left side of an equation
    defines: bool = False  # it only gives a name to a part of the formula
    determines: bool = False  # what is asked for follows from it
    rounded: sp.Expr | None = None  # the expression with a symbol for each decimal number
    decimals: Mapping[sp.Symbol, tuple[sp.Rational, sp.Rational]] = field(default_factory=dict)


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
        if problem.dependent_name:
            self.function = self.names[problem.dependent_name] = sp.Function(problem.dependent_name)
        elif problem.name not in self.names:
            self.function = self.names[problem.name] = sp.Function(problem.name)
            self.names.setdefault("f", self.function)
        if self.function is not None and known(self.names, "y") is None:
            self.names["y"] = self.function
        if not problem.expansion:
            self.names |= {letter: CONSTANT for letter in ("c", "C", "const") if known(self.names, letter) is None}
        self.equation = False  # whether the statement at hand is an equation for y'
        self.up_to = 0  # the degree of the remainder O(h^n) of the statement at hand, 0 without one
        self.own: set[str] = set()  # names that the answer gives to parts of the formula
        self.about: sp.Expr | None = None  # what the equations of the line before are about
        self.point: Any | None = problem.symbols[0] if len(problem.symbols) == 1 else None
        calls = problem.formula.atoms(AppliedUndef)
        elsewhere = {call.func.__name__ for call in calls if call.args != (self.point,)}
        self.bare_functions: set[str] = {call.func.__name__ for call in calls} - elsewhere if self.point else set()
        if self.function is not None and self.point is not None:
            self.bare_functions |= {name for name, meaning in self.names.items() if meaning == self.function}

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
            one = self.problem.epsilons[0] if self.problem.count == 1 else self.bare
            self.names[self.bare.name] = self.problem.epsilon_sum if self.problem.taylor else one
        if self.problem.taylor:
            self.names.setdefault("h", self.problem.epsilon_sum)

    def steps(self, mine: Any) -> list[Step]:
        """Return the steps of an answer: lines of text, a list of lines or expressions, or a dict of coefficients."""
        if isinstance(mine, Mapping):
            found = [self._coefficients(mine)]
        else:
            lines = lines_of(mine)
            if any(isinstance(line, str) and MOVED.search(line) for _, line in lines) and not self.problem.expansion:
                self.names.setdefault("h", STEP)
            if len(lines) > MOST_LINES:
                raise refusal(f"an answer of {len(lines)} lines", do=f"give at most {MOST_LINES}")
            found = [step for number, line in lines for step in self._line(number, line)]
        if found and all(step.defines for step in found):
            found[-1] = replace(found[-1], about=None)  # nothing but a name and a value: the value is the answer
        if not found:
            raise refusal("an empty answer", do="write a line such as '= x**3 + 3*x**2*v*eps_1'")
        return found

    def _line(self, number: int, line: Any) -> list[Step]:
        if isinstance(line, str):
            line = AS_IT_VANISHES.sub("", without_boxes(as_ratio(line)))
            said = statements(line, lambda word: known(self.names, word) is not None)
            return [step for statement in said for step in self._statement(number, line, statement)]
        parts = line.args if isinstance(line, sp.Equality) else [line]
        sides = [(str(part), Reading(self._given(number, part))) for part in parts]
        self._set_about([read for _, read in sides])
        return [self._step(number, text, read, self.about) for text, read in sides]

    def _statement(self, number: int, line: str, said: Statement) -> list[Step]:
        """Return the steps of a statement; one that only names something (u = x^2), or says ε² = 0, has none."""
        self.up_to = 0
        goes_on = line[said.start : said.end].startswith(("=", "≈"))
        cut = sides_of(line, said.start, said.end)
        if len(cut) > 1 and (definition := self._definition(number, line, cut)) is not None:
            return [definition]
        letters = [self._unknown_letter(line[start:end]) for _, start, end in cut[:-1]]
        while len(cut) > 1 and letters and letters[0] is not None and letters[0].order == 0:
            cut, letters = cut[1:], letters[1:]  # v(t) = s'(t) = 9.8 t
        sides = [(text, self._side(number, line, start, end, len(cut) > 1)) for text, start, end in cut]
        if len(sides) > 1 and all(self._is_no_square(read.expression) for _, read in sides):
            return []
        if not goes_on:
            self._set_about([read for _, read in sides])
        steps = [self._step(number, text, read, self.about, said.condition) for text, read in sides]
        return [replace(steps[0], is_left=not goes_on and len(steps) > 1), *steps[1:]] if steps else []

    def _set_about(self, sides: Sequence[Reading]) -> None:
        if sides:
            first = sides[0]
            named = len(sides) > 1 and (self._is_named(first.expression) or first.derivative)
            concrete = self.concrete(first.expression)
            rewritten = (
                len(sides) > 1 and not self.problem.expansion and concrete == self.concrete(self.problem.formula)
            )
            moves = len(sides) > 1 and concrete.has(STEP)  # ((x + h)^2 - x^2)/h = ...
            self.about = concrete if named or rewritten or moves else None
            of_x = self.function(self.point) if self.function is not None and self.point is not None else sp.S.Zero
            slope = sp.Derivative(of_x, self.point) if self.problem.dependent_name else sp.Dummy()
            sides_with = [read.expression.has(slope) and not read.derivative for read in sides]
            self.equation = any(sides_with) and sides[0].expression != slope

    def _is_no_square(self, expression: sp.Expr) -> bool:
        """Return whether a side is 0, or a square of an epsilon: ε² = 0 is a rule, and no step."""
        epsilons = {*self.problem.epsilons, self.bare}
        is_power = expression.is_Pow and expression.base in epsilons and expression.exp.is_Integer
        return bool(self.problem.expansion and (expression == 0 or is_power))

    def _unknown_letter(self, text: str) -> LeftSide | None:
        """Return what a left side is about whose letter is the pupil's own name of the function."""
        about = left_side(text)
        return about if about is not None and known(self.names, about.letter) is None else None

    def _definition(self, number: int, line: str, cut: Sequence[tuple[str, int, int]]) -> Step | None:
        """Return the step of a statement that names a part of the formula, as u = x^2 does; the name is kept."""
        text, (_, start, end) = cut[0][0].strip("$ "), cut[-1]
        found = re.fullmatch(r"([^\W\d_](?:_?[0-9]+|_\{[0-9]+\})?)(?:\(\s*(\w+)\s*\))?", text)
        if found is None or self.point is None or self.problem.expansion or found[2] not in (None, self.point.name):
            return None
        word = found[1].replace("{", "").replace("}", "")
        if (
            known(self.names, word) is not None
            or word in (self.problem.name, "f", *CONSTANTS)
            or (found[2] and len(cut) > 2)
        ):
            return None
        try:
            step = self._step(number, line[start:end].strip(), self._read(number, line, start, end))
        except ArgumentError:
            return None
        self.names[word] = step.expression
        self.own.add(word)
        return replace(step, about=step.expression, defines=True)

    def _step(self, number: int, text: str, read: Reading, about: sp.Expr | None = None, condition: str = "") -> Step:
        expression = read.expression
        named, bare = self._is_named(expression), expression.has(self.bare)
        named = named and not (self.problem.dependent_name and not expression.has(sp.Derivative))
        restated = read.derivative or isinstance(expression, AppliedUndef | sp.Derivative | sp.Subs)
        concrete = self.concrete(expression)
        rounded = self.concrete(read.rounded.expression) if read.rounded is not None else None
        decimals = read.rounded.decimals if read.rounded is not None else {}
        found = Step(number, text, concrete, about, bare, named, restated, read.derives, read.notes, condition)
        found = replace(found, determines=self._determines(read.expression, about))
        return replace(found, rounded=rounded, decimals=decimals)

    def _determines(self, side: sp.Expr, about: sp.Expr | None) -> bool:
        """Return whether a side of an equation gives what is asked for: y' stands in it, or h, which goes to 0."""
        asked = self.problem.truth[self.problem.terms[0]]
        if self.up_to > self.problem.count and side.has(STEP):
            return True
        if about is not None and about.has(STEP) and side.has(STEP) and not self._is_named(side):
            return bool(agreement(side.subs(STEP, 0), asked))
        return self.equation

    def _is_named(self, expression: sp.Expr) -> bool:
        """Whether f stands in an expression by its name."""
        return self.function is not None and expression.has(self.function)

    def concrete(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression at the point of the problem, with the formula of f for its name."""
        problem = self.problem
        if self.function is not None and problem.dependent_name:
            return self._on_curve(expression)
        if self.function is not None and self._is_named(expression):
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

    def _on_curve(self, expression: sp.Expr) -> sp.Expr:
        """Return an expression in x and y, with the right derivative for y'."""
        of_x, y = self.function(self.point), sp.Symbol(self.problem.dependent_name, real=True)  # type: ignore[misc]
        (slope,) = self.problem.truth.values()
        return expression.doit().subs({sp.Derivative(of_x, self.point): slope}).subs(of_x, y)

    def _derivative(self, text: str) -> sp.Expr | None:
        """Return what y', dy/dx or f_x stands for where f has one variable; None for any other text."""
        about = left_side(text)
        if about is None or self.function is None or self.point is None:
            return None
        own = about.letter in self.own
        if not own and known(self.names, about.letter) not in (None, self.function):
            return None
        at = self.function(self.point)
        of = self.names[about.letter] if own else at
        if about.variable in self.own and about.order == 1:  # dy/du = (dy/dx)/(du/dx)
            above = sp.diff(of, self.point) if own else sp.Derivative(of, self.point)
            return above / sp.diff(self.names[about.variable], self.point)
        variables = {plain(letter) for letter in about.variable} if about.order > 1 else {plain(about.variable)}
        if about.variable and not variables <= {plain(self.point.name)}:
            return None
        if not own and about.order == 0 and about.letter not in ("y", "f", self.problem.name):
            return None
        if own:
            return sp.diff(of, self.point, about.order)
        return sp.Derivative(of, (self.point, about.order)) if about.order else of

    def _side(self, number: int, line: str, start: int, end: int, equation: bool) -> Reading:
        """Return a side of a line: what an equation is about, or a formula, with a note or a remainder behind it."""
        if equation and (about := self._derivative(line[start:end])) is not None:
            return Reading(about, derivative=not self._is_named(about))
        if (limit := LIMIT.match(line, start, end)) is not None:
            quotient = self.concrete(self._read(number, line, limit.end(), end).expression)
            return Reading(at_zero(quotient), derives=True)
        before = without_note(line, start, end, lambda word: known(self.names, word) is not None)
        if before < end and not self._is_read(number, line, before, end):
            end = before
        if self.problem.taylor and (dots := re.search(r"[-+−]\s*(?:\.\.\.|…|\\[lc]?dots)\s*$", line[start:end])):
            end = start + dots.start()
        if self.problem.expansion:
            end, remainder = without_remainder(line, start, end)
            if remainder is not None:
                self._check_remainder(number, line, remainder)
        elif STEP in self.names.values():
            end, remainder = without_remainder(line, start, end)
            if remainder is not None:
                size = self._read(number, line, *remainder).expression
                return self._up_to(number, self._read(number, line, start, end), size)
        moved = along_directions(line[start:end])
        if moved != line[start:end] and known(self.names, "D") is None:
            return self._read(number, moved, 0, len(moved))
        return self._read(number, line, start, end)

    def _up_to(self, number: int, read: Reading, size: sp.Expr) -> Reading:
        """Return a Taylor polynomial in h with the remainder O(size) as f(x + h), where it is right."""
        if not size.is_polynomial(STEP) or not size.has(STEP):
            raise refusal(f"the remainder O({size}) in line {number}", do="write a power of h, such as O(h^2)")
        self.up_to = int(sp.degree(size, STEP))
        moved = self.concrete(self.problem.formula.subs(self.point, self.point + STEP))
        return replace(read, expression=completed(self.concrete(read.expression), moved, self.up_to))

    def _is_read(self, number: int, line: str, start: int, end: int) -> bool:
        """Return whether a part of a line is a formula."""
        try:
            self._read(number, line, start, end)
        except ArgumentError:
            return False
        return True

    def _check_remainder(self, number: int, line: str, part: tuple[int, int]) -> None:
        """Refuse a remainder that would swallow what is asked for: it is a power or a product that falls away."""
        problem, content = self.problem, self._read(number, line, *part).expression
        names: set[sp.Basic] = {*problem.epsilons, self.bare} & content.free_symbols
        falls_away = 2
        if problem.taylor:
            falls_away = problem.count + (line[: part[0]].rstrip(" (")[-1:] != "o")
            names = names or set(problem.symbols) & content.free_symbols
        degree = sp.Poly(content, *names).total_degree() if names and content.is_polynomial(*names) else 0
        if degree < falls_away:
            do = "write O(ε²) for what falls away, and all terms that are asked for"
            raise refusal(f"the remainder O({line[slice(*part)].strip()}) in line {number}", do=do)

    def _read(self, number: int, line: str, start: int, end: int) -> Reading:
        if (cases := cases_of(line[start:end])) is not None:
            return Reading(self._piecewise(number, cases))
        line = line[:start] + self._with_ratios(line[start:end]) + line[end:]
        bare = self.own | self.bare_functions
        options: dict[str, Any] = {"others": False, "functions": False, "point": self.point, "bare": bare}
        try:
            found = reading(line, self.names, part=(start, end), **options)
            rounded = None
            if re.search(r"\d[.,]\d|\.\d", line[start:end]):
                rounded = reading(line, self.names, part=(start, end), decimals=True, **options)
        except ArgumentError as error:
            raise ArgumentError(error.what, where=f"line {number}, {error.where}", why=error.why, do=error.do) from None
        if large := too_large(found.expression):
            raise refusal(f"line {number}: {large}", do="give a shorter line")
        return replace(found, rounded=rounded)

    def _with_ratios(self, text: str) -> str:
        """Return a text with dy/du and du/dx as names, where u is a name of the pupil's."""

        def name(found: re.Match[str]) -> str:
            value = self._derivative(found[0])
            if value is None:
                return found[0]
            word = f"d{found[1]}_d{found[2]}"
            self.names[word] = value
            return word

        return re.sub(r"(?<![A-Za-z])d([A-Za-z])/d([A-Za-z])(?![A-Za-z(])", name, text)

    def _piecewise(self, number: int, cases: Sequence[tuple[str, str]]) -> sp.Expr:
        """Return a piecewise formula; a condition is a comparison of two formulas, or a word such as "otherwise"."""
        rows = []
        for value, condition in cases:
            signs = {"\\leq": "<=", "\\le": "<=", "\\geq": ">=", "\\ge": ">=", "≤": "<=", "≥": ">=", "\\lt": "<",
                     "\\gt": ">"}  # fmt: skip
            for sign, plainly in signs.items():
                condition = condition.replace(sign, plainly)
            found = re.fullmatch(r"([^<>=]+)(<=|>=|<|>)([^<>=]+)", condition)
            if found is None and not re.fullmatch(r"\s*(?:otherwise|else|sonst)\s*", condition):
                raise refusal(f"the case {condition!r} in line {number}", do="write x > 0, x < 0 or otherwise")
            holds: Any = sp.true
            if found is not None:
                left, right = (self._read(1, part, 0, len(part)).expression for part in (found[1], found[3]))
                holds = {"<": sp.Lt, "<=": sp.Le, ">": sp.Gt, ">=": sp.Ge}[found[2]](left, right)
            rows.append((self._read(number, value, 0, len(value)).expression, holds))
        return sp.Piecewise(*rows)

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


def _with_places(expression: sp.Expr) -> sp.Expr:
    """Return an expression with f'(g(x)) as a derivative in a place, where g(x) is put: g may become a formula."""

    def placed(part: sp.Derivative) -> sp.Expr:
        puts = {found: sp.Dummy("xi") for found in part.variables if not found.is_Symbol}
        return sp.Subs(part.xreplace(puts), list(puts.values()), list(puts)) if puts else part

    return expression.replace(sp.Derivative, lambda *parts: placed(sp.Derivative(*parts, evaluate=False)))


def steps_of(mine: Any, problem: Problem) -> Sequence[Step]:
    """Return the steps of an answer to a problem.

    >>> from symad.teaching.answers.answer_problem import derivative_problem
    >>> problem = derivative_problem("x**2", "x", 1)
    >>> [(step.line, step.text) for step in steps_of("f'(x) = 2x\\n= x + x  # the same", problem)]
    [(1, "f'(x)"), (1, '2x'), (2, 'x + x')]
    """
    return Reader(problem).steps(mine)
