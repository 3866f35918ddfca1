"""Read a pupil's answer: lines, steps between equals signs, and the subject of each step."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import sympy as sp
from sympy.core.function import AppliedUndef

from codegen.records import dataclass
from symad.classroom.answers.answer_names import AnswerNames
from symad.classroom.answers.answer_problem import AnswerProblem
from symad.classroom.answers.answer_statements import Statement, lines_of, rewritten, sides_of, statements
from symad.classroom.answers.answer_text import is_prose, left_side, without_remainder, words_at_the_end
from symad.classroom.answers.step_of_quotients import LIMIT, MOVED, STEP, at_zero, completed
from symad.classroom.equality.equality import agreement
from symad.classroom.expansion.epsilon import monomial
from symad.classroom.formulas.cases import condition_of
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.read import FormulaReading, reading
from symad.display.mathematics import too_large
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

MOST_LINES = 100
_DELTA = re.compile(r"(?:\\Delta\s*|Δ)x")
_DECIMAL = re.compile(r"\d[.,]\d|\.\d")
_TAYLOR = re.compile(r"[A-Z]_?\{?[0-9₀-₉]\}?\s*(?:\(\s*\w\s*\))?")  # T_3(x) =
_DOTS = re.compile(r"[-+−]\s*(?:\.\.\.|…|\\[lc]?dots)\s*$")


@dataclass(frozen=True)
class AnswerStep:
    """One side of an equation: its text, its claim, and the claim that it must equal (None: the question)."""

    line: int
    text: str
    expression: sp.Expr
    about: sp.Expr | None = None
    order: int | None = None  # of the derivative that it is about, where its left side says so
    gap: sp.Expr = sp.S.Zero  # of a differentiated equation: the first side minus this one
    bare: bool = False  # an epsilon without a number, although there are several levels
    named: bool = False  # contains f by name
    restated: bool = False  # only f(...) or an unevaluated derivative
    derives: bool = False  # contains an unevaluated derivative
    notes: tuple[str, ...] = ()  # the assumptions of its reading
    condition: str = ""  # the condition written beside it
    under: sp.Basic | None = None  # the same as inequalities, if it can be read
    starts: bool = False  # the first side of a statement
    is_left: bool = False  # the left side of an equation
    defines: bool = False  # it only names a part of the formula
    determines: bool = False  # it determines the answer
    rounded: FormulaReading | None = None  # its reading with a symbol for each decimal number
    general: sp.Expr | None = None  # at a point: the formula before the point is put in


class Reader:
    """The lines of one answer, read in order."""

    def __init__(self, problem: AnswerProblem) -> None:
        self.problem, self.names = problem, AnswerNames(problem)
        self.number, self.line = 1, ""  # of the line that is read
        self.equation = False  # whether the current statement is an equation for y'
        self.up_to = 0  # the degree of the current remainder O(h^n), 0 without one
        self.first: sp.Expr = sp.S.Zero  # the first side of the current statement
        self.about: sp.Expr | None = None  # its claim, for the equations of the line and those that go on
        self.order: int | None = None  # the order of that derivative

    def steps(self, mine: Any) -> list[AnswerStep]:
        """Return the steps of an answer: lines of text, a list of lines or expressions, or a dict of coefficients."""
        if isinstance(mine, Mapping):
            steps = [self._coefficients(mine)]
        else:
            lines = lines_of(mine)
            if not self.problem.expansion:
                lines = [(number, _DELTA.sub("h", line) if isinstance(line, str) else line) for number, line in lines]
            if any(isinstance(line, str) and MOVED.search(line) for _, line in lines) and not self.problem.expansion:
                self.names.names.setdefault("h", STEP)
            if len(lines) > MOST_LINES:
                raise refusal(f"an answer of {len(lines)} lines", do=f"give at most {MOST_LINES}")
            steps = [step for number, line in lines for step in self._line(number, line)]
        if steps and all(step.defines for step in steps):
            steps[-1] = replace(steps[-1], about=None)  # only a name and a value: the value is the answer
        if not steps:
            do = f"write a line, such as {'x³ + 3x²v ε₁' if self.problem.expansion else 'f′(x) = 3x²'}"
            raise refusal("an empty answer", do=do)
        return self._with_lower_orders(steps)

    def _with_lower_orders(self, steps: list[AnswerStep]) -> list[AnswerStep]:
        """Return steps in which f′ and f″ without left sides, before the answer, are about these: 4x³, 12x²."""
        problem, point = self.problem, self.names.point
        if problem.count == 1 or problem.expansion or problem.dependent_name:
            return steps
        lower = [problem.value(sp.diff(problem.formula, point, order)) for order in range(problem.count + 1)]
        first = [place for place, step in enumerate(steps) if step.starts]
        for start, end in pairwise(first):
            sides = steps[start:end]
            bare = all(step.about is None for step in sides)
            equal = (all(agreement(derivative, step.expression) for step in sides) for derivative in lower if bare)
            if (order := next((k for k, agrees in enumerate(equal) if agrees), None)) is not None:
                lower = lower[order:]  # the orders rise
                at = problem.count + 1 - len(lower)
                steps[start:end] = [replace(step, about=lower[0], order=at) for step in sides]
        return steps

    def _line(self, number: int, line: Any) -> list[AnswerStep]:
        self.number = number
        if isinstance(line, str):
            point = plain(str(self.names.point)) if not self.problem.dependent_name else ""
            self.line = rewritten(line, self.names.is_known, point, str(self.problem.at.get(self.names.point, "")))
            said = statements(self.line, self.names.is_known)
            return self._in_order([statement for statement in said if not self._is_prose(statement)])
        parts = line.args if isinstance(line, sp.Equality) else [line]
        sides = [(str(part), FormulaReading(self.names.given(part, number))) for part in parts]
        self._set_about([read for _, read in sides])
        steps = [self._step(text, read, self.about) for text, read in sides]
        return [replace(steps[0], starts=True), *steps[1:]]

    def _statement(self, said: Statement) -> list[AnswerStep]:
        """Return the steps of a statement. A definition such as u = x^2 is one step."""
        self.up_to = 0
        goes_on = self.line[said.start : said.end].startswith(("=", "≈"))
        cut = sides_of(self.line, said.start, said.end)
        if len(cut) > 1 and (definition := self._definition(cut)) is not None:
            return [definition]
        if self.problem.taylor and _TAYLOR.fullmatch(cut[0][0]):
            cut = cut[1:]
        own = [left_side(self.line[start:end]) for _, start, end in cut[:-1]]
        letters = set[str]()
        while own and (left := own[0]) is not None and self.names.is_own_name(left):
            if left.order and (not letters or left.letter in letters or left.order == self.problem.count):
                break
            letters.add(left.letter)  # a(t) = v'(t) = s''(t) = 9.8, with the pupil's own names of the function
            cut, own = cut[1:], own[1:]
        sides = [(text, self._side(start, end, len(cut) > 1)) for text, start, end in cut]
        if not goes_on:
            self._set_about([read for _, read in sides])
        under = self._condition(said.condition)
        steps = [self._step(text, read, self.about) for text, read in sides]
        steps = [replace(step, condition=said.condition, under=under) for step in steps]
        if steps and not goes_on:
            steps[0] = replace(steps[0], starts=True, is_left=len(steps) > 1)
        return steps

    def _condition(self, text: str) -> sp.Basic | None:
        """Return a condition as inequalities; None if there is none, or it cannot be read."""
        try:
            return condition_of(text, lambda side: self.names.concrete(self._read(0, len(side), side).expression))
        except (ArgumentError, TypeError):
            return None

    def _set_about(self, sides: Sequence[FormulaReading]) -> None:
        """Note the claim that the sides must equal: the first side if it is f, a derivative or f(x + h)."""
        first, *others = sides
        self.first = first.expression
        concrete = self.names.concrete(first.expression)
        is_formula = not self.problem.expansion and concrete == self.names.concrete(self.problem.formula)
        says = self.names.is_named(first.expression) or first.derivative or is_formula or concrete.has(STEP)
        if not self.problem.expansion:  # 1 = y'/cos² y; 2x = f'(x) is an answer
            pure = AppliedUndef | sp.Derivative | sp.Subs
            says |= any(self.names.is_named(s.expression) and not isinstance(s.expression, pure) for s in others)
        self.about = concrete if others and says else None
        is_f = is_formula or first.expression.is_Function
        self.order = getattr(first.expression, "derivative_count", 0 if is_f else None)
        in_slope = [self.names.has_slope(read.expression) and not read.derivative for read in sides]
        self.equation = any(in_slope) and not first.expression.is_Derivative

    def _definition(self, cut: Sequence[tuple[str, int, int]]) -> AnswerStep | None:
        """Return the step of a definition such as u = x^2, and keep its name."""
        word, (_, start, end) = self.names.part_named(cut[0][0], len(cut)), cut[-1]
        if not word or (read := self._readable(start, end)) is None:
            return None
        step = self._step(self.line[start:end].strip(), read)
        self.names.define(word, step.expression, called=re.search(rf"\(\s*{self.names.point}\b", cut[0][0]) is not None)
        return replace(step, about=step.expression, starts=True, defines=True)

    def _step(self, text: str, read: FormulaReading, about: sp.Expr | None = None) -> AnswerStep:
        expression, concrete = read.expression, self.names.concrete(read.expression)
        named = self.names.is_named(expression) and not self.problem.dependent_name
        named |= self.names.has_slope(expression)
        restated = read.derivative or isinstance(expression, AppliedUndef | sp.Derivative | sp.Subs)
        restated &= not (self.problem.dependent_name and expression.is_Function)  # y' = y
        rounded = read.rounded and replace(read.rounded, expression=self.names.concrete(read.rounded.expression))
        is_of_y = about is not None and self.problem.dependent_name
        gap = self.names.with_symbols(self.first - expression) if is_of_y else sp.S.Zero
        is_general = bool(self.problem.at) and expression.has(*self.problem.at) and not (named or restated)
        general = expression if is_general and not self.problem.dependent_name else None
        return AnswerStep(
            self.number, text, concrete, about, self.order if about is not None else None, gap,
            expression.has(self.names.bare), named, restated, read.derives, read.notes,
            determines=self._determines(expression, about), rounded=rounded, general=general,
        )  # fmt: skip

    def _determines(self, side: sp.Expr, about: sp.Expr | None) -> bool:
        """Whether a side determines the answer: it contains y', or h, which goes to 0."""
        asked = self.problem.truth[self.problem.terms[0]]
        if self.up_to > self.problem.count and side.has(STEP):
            return True
        if about is not None and about.has(STEP) and side.has(STEP) and not self.names.is_named(side):
            return bool(agreement(side.subs(STEP, 0), asked))
        return self.equation

    def _side(self, start: int, end: int, equation: bool) -> FormulaReading:
        """Return a side of a line: a left side, or a formula without its note or remainder."""
        if equation and (about := self.names.derivative(self.line[start:end])) is not None:
            return FormulaReading(about, derivative=not self.names.is_named(about))
        if (limit := LIMIT.match(self.line, start, end)) is not None:
            return FormulaReading(at_zero(self.names.concrete(self._read(limit.end(), end).expression)), derives=True)
        before = words_at_the_end(self.line, start, end, self.names.is_known)
        if before < end and self._readable(start, end) is None:
            end = before
        if self.problem.taylor and (dots := _DOTS.search(self.line[start:end])):
            end = start + dots.start()
        if not self.problem.expansion and STEP not in self.names.names.values():
            return self._read(start, end)
        end, remainder = without_remainder(self.line, start, end)
        if remainder is not None and not self.problem.expansion:
            return self._up_to(self._read(start, end), self._read(*remainder).expression)
        if remainder is not None:
            self._check_remainder(remainder)
        return self._read(start, end)

    def _up_to(self, read: FormulaReading, size: sp.Expr) -> FormulaReading:
        """Return a Taylor polynomial in h with the remainder O(size) as f(x + h), if it is right."""
        if not size.is_polynomial(STEP) or not size.has(STEP):
            raise refusal(f"the remainder O({size}) in line {self.number}", do="write a power of h, such as O(h^2)")
        self.up_to = int(sp.degree(size, STEP))
        point = self.names.point
        moved = self.names.concrete(self.problem.formula.subs(point, point + STEP))
        return replace(read, expression=completed(self.names.concrete(read.expression), moved, self.up_to))

    def _in_order(self, said: list[Statement]) -> list[AnswerStep]:
        """Return the steps of the statements of a line; one that needs a later definition comes after it."""
        if not said:
            return []
        statement, *later = said
        try:
            steps = self._statement(statement)
        except ArgumentError:
            if not any(self.names.part_named(self.line[s.start : s.end].partition("=")[0], 2) for s in later):
                raise
            return self._in_order(later) + self._statement(statement)
        return steps + self._in_order(later)

    def _is_prose(self, said: Statement) -> bool:
        """Whether a statement consists of words alone, or gives a value to the variable."""
        text = self.line[said.start : said.end]
        if re.match(rf"\s*{re.escape(str(self.names.point))}\s*=\s*-?[\d.,/]+\b", text):  # x = 0 is a minimum
            return True
        return is_prose(text, self.names.is_known) and self._readable(said.start, said.end) is None

    def _readable(self, start: int, end: int) -> FormulaReading | None:
        """Return the reading of a part of a line; None if it is no formula."""
        try:
            return self._read(start, end)
        except ArgumentError:
            return None

    def _check_remainder(self, part: tuple[int, int]) -> None:
        """Refuse a remainder that would hide the answer: it must be a power or a product that vanishes."""
        problem, content = self.problem, self._read(*part).expression
        names: set[sp.Basic] = {*problem.epsilons, self.names.bare} & content.free_symbols
        falls_away = 2
        if problem.taylor:
            falls_away = problem.count + (self.line[: part[0]].rstrip(" (")[-1:] != "o")
            names = names or set(problem.symbols) & content.free_symbols
        degree = sp.Poly(content, *names).total_degree() if names and content.is_polynomial(*names) else 0
        if degree < falls_away:
            do = "write O(ε²) for what falls away, and all terms that are asked for"
            raise refusal(f"the remainder O({self.line[slice(*part)].strip()}) in line {self.number}", do=do)

    def _read(self, start: int, end: int, text: str | None = None) -> FormulaReading:
        line = self.line if text is None else text
        line = line[:start] + self.names.with_ratios(line[start:end]) + line[end:]
        options: dict[str, Any] = {"part": (start, end), **self.names.options()}
        try:
            formula = reading(line, self.names.names, **options)
            has_decimals = _DECIMAL.search(line[start:end]) is not None
            rounded = reading(line, self.names.names, decimals=True, **options) if has_decimals else None
            formula, rounded = self.names.written_out(formula), rounded and self.names.written_out(rounded)
        except ArgumentError as error:
            raise ArgumentError(
                error.what, where=f"line {self.number}, {error.where}", why=error.why, do=error.do
            ) from None
        if large := too_large(formula.expression):
            raise refusal(f"line {self.number}: {large}", do="give a shorter line")
        return replace(formula, rounded=rounded)

    def _coefficients(self, mine: Mapping[Any, Any]) -> AnswerStep:
        """Return a table of coefficients as one line."""
        if not self.problem.expansion:
            raise refusal("a dict as the answer to a derivative", do="give the derivative as a text or expression")
        terms, texts = dict[sp.Expr, sp.Expr](), []
        for key, value in mine.items():
            term, coefficient = map(self._entry, (monomial(key) if isinstance(key, tuple) else key, value))
            factors = [] if term == 1 else list(sp.Mul.make_args(term))
            if not set(factors) <= set(self.problem.epsilons) or len(set(factors)) < len(factors):
                raise refusal(f"the term {key}", do="give 1 and products of different epsilons, such as 'eps_1 eps_2'")
            if term in terms:
                raise refusal(f"the term {key} twice", do="give each term once")
            if coefficient.has(*self.problem.epsilons, self.names.bare):
                raise refusal(f"the coefficient {value} of {key}", do="give coefficients without epsilons")
            terms[term] = term * coefficient
            texts.append(f"{key}: {value}")
        return self._step(", ".join(texts), FormulaReading(sp.Add(*terms.values())))

    def _entry(self, value: Any) -> sp.Expr:
        return self._read(0, len(value), value).expression if isinstance(value, str) else self.names.given(value, 1)


def steps_of(mine: Any, problem: AnswerProblem) -> Sequence[AnswerStep]:
    """Return the steps of an answer to a problem.

    >>> from symad.classroom.answers.answer_problem import derivative_problem
    >>> problem = derivative_problem("x**2", "x", 1)
    >>> [(step.line, step.text) for step in steps_of("f'(x) = 2x\\n= x + x  # the same", problem)]
    [(1, "f'(x)"), (1, '2x'), (2, 'x + x')]
    """
    return Reader(problem).steps(mine)
