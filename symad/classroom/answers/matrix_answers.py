"""Answers of matrix calculus: transposes, traces and determinants, compared on random matrices of several sizes.

An answer with dX is compared with the change along dX, another one with the gradient or the Jacobian.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import sympy as sp
from mpmath import mp

from symad.classroom.answers.answer_lines import AnswerStep
from symad.classroom.answers.answer_page import CheckedAnswer, Judged, remarked
from symad.classroom.answers.answer_problem import AnswerProblem, ones
from symad.classroom.answers.answer_statements import lines_of, sides_of
from symad.classroom.answers.answer_text import left_side
from symad.classroom.answers.asked import Asked
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.equality.equality import Agreement
from symad.classroom.matrix_calculus.differentials import Differentials
from symad.classroom.matrix_calculus.matrix_formulas import MatrixFormula, read_matrices
from symad.classroom.matrix_calculus.matrix_values import (
    DIGITS,
    PLANS,
    are_equal,
    change,
    derivative,
    random_values,
    shape,
    value_of,
)
from symad.display.document import Formula
from symad.errors import ArgumentError, InvariantError, RuleError
from symad.tracing.calling.user_place import refusal

_LEFT = re.compile(r"\s*(?:∇|\\nabla|d|∂|J|D|\\frac\s*\{\s*(?:\\partial|d))")
_FACTORS = {-1: "wrong sign", 2: "factor", sp.Rational(1, 2): "factor", -2: "factor"}
_BY = Agreement(True, by="on random matrices of several sizes")


class MatrixQuestion(MatrixFormula):
    """A question about a formula of matrices, and the values of its derivative by sizes."""

    def __init__(self, f: str, x: str, asked: Asked) -> None:
        if asked.order != 1:
            raise refusal(f"order={asked.order} of a formula of matrices", do="ask for the first derivative")
        super().__init__(f, x)
        self.layout = asked.layout
        self._known: dict[Any, tuple[Any, Any]] = {}
        symbols = (sp.Symbol(x, real=True),)
        self.problem = AnswerProblem(sp.Symbol(f), symbols, {}, ones(1), 1, False, "f", reveal=asked.reveal)

    def expected(self, plan: tuple[int, ...], by_change: bool, said: Mapping[str, str]) -> tuple[Any, Any]:
        """Return random values, and the derivative there, in the layout that is asked for."""
        key = (plan, by_change, tuple(sorted(said.items())))
        if key not in self._known:
            values = random_values(self.names, self.shapes, plan, said)
            if by_change:
                self._known[key] = values, change(self.f, values, self.x.name, values[self.dx.name])
            else:
                slopes = derivative(self.f, values, self.x.name)
                turned = self.layout == ("numerator" if self.is_number else "denominator")
                self._known[key] = values, slopes.T if turned else slopes
        return self._known[key]

    def pairs(self, tree: sp.Expr, where: str, said: Mapping[str, str]) -> Iterator[tuple[Any, Any]]:
        """Yield the value of an answer and the right one, at matrices of each of the sizes."""
        by_change = tree.has(self.dx)
        for plan in PLANS:
            try:
                values, right = self.expected(plan, by_change, said)
            except ZeroDivisionError:  # det(X^T X) is 0 where X has more columns than rows
                continue
            try:
                written = value_of(tree, {**values, "I": self._unit(tree, values, right)}, where)
                sides = shape(right) or (0, 0)
                is_row = 1 in sides and shape(written) == sides[::-1]
                yield written.T if is_row and self.layout in (None, "either") else written, right
            except ZeroDivisionError:
                raise refusal(f"{where}, which has no value", do="write a formula that has values everywhere") from None
            except ArgumentError:
                if len(plan) == 1:
                    raise
                what = f"{where}, which is right only where the matrices are square"
                raise refusal(what, do="write a formula whose shapes fit for all sizes") from None

    def _unit(self, tree: sp.Expr, values: Mapping[str, Any], right: Any) -> Any:
        """Return the unit matrix of the size that an answer needs, that of the derivative if nothing else says it."""
        fitted = copy.deepcopy(self.shapes)
        with contextlib.suppress(ArgumentError):
            fitted.of(tree, "")
        of_unit = fitted.size("I rows")
        sizes = [size for name in sorted(self.names)
                 for label, size in zip(self.shapes.letter(name), shape(values[name]) or (1, 1), strict=True)
                 if fitted.size(label) == of_unit]  # fmt: skip
        rows, columns = shape(right) or (0, 1)
        return mp.eye(sizes[0]) if sizes else mp.eye(rows) if rows == columns else values["I"]

    def mistake(self, text: str, where: str) -> Mistake | None:
        """Return what is wrong with a side; None if it is right."""
        tree = read_matrices(text, self.names | {"I"}, where)
        for written, right in self.pairs(tree, where, self.said):
            is_turned = shape(right) is not None and shape(written) is not None and are_equal(written, right.T)
            if are_equal(written, right) or (is_turned and self.layout == "either"):
                continue
            if is_turned and self.layout is None:
                do = "write it in the shape of the variable, a Jacobian with a row for each result, or choose a layout"
                raise refusal(f"{where}, which is the transposed derivative", why="books have two layouts", do=do)
            if is_turned:
                return Mistake("layout", (f"It is transposed: the question asks for the {self.layout} layout",))
            if shape(written) != shape(right):
                words = f"it has the shape {shape(written) or 'of a number'}, not {shape(right) or 'of a number'}"
                return Mistake("shape", (words,))
            return self._named_mistake(tree, where, written, right)
        return None

    def _named_mistake(self, tree: sp.Expr, where: str, written: Any, right: Any) -> Mistake:
        for name in sorted(self.names - self.said.keys() - {self.x.name, self.dx.name}):
            rows, columns = self.shapes.letter(name)
            said = "symmetric" if rows == columns != "1" else "sum 1" if columns == "1" != rows else ""
            if not said or not all(are_equal(*pair) for pair in self.pairs(tree, where, {**self.said, name: said})):
                continue
            if said == "symmetric":
                return Mistake("symmetric matrix", (f"It is right only where {name} is symmetric",))
            do = f"write the condition sum({name}) = 1 behind the question"
            raise refusal(f"{where}, which is right where the entries of {name} have the sum 1", do=do)
        for factor, kind in _FACTORS.items():
            if are_equal(written, right * mp.mpf(sp.N(factor))):
                words = "You have the wrong sign" if factor == -1 else f"It is {factor} times the right one"
                return Mistake(kind, (words,))
        try:
            fits = all(shape(value) == shape(other) for value, other in self.pairs(tree, where, self.said))
        except ArgumentError:
            fits = False
        if not fits:
            return Mistake("shape", ("Its shapes fit only where all matrices are square",))
        shown = [mp.nstr(part[0, 0] if shape(part) else part, 6) for part in (written, right)]
        words = f"on random matrices its first entry is {shown[0]}, and that of the right one {shown[1]}"
        return Mistake("another value", (words,))

    def explained(self) -> tuple[Formula, ...]:
        """Return the derivation of the right answer; nothing if no rule of differentials is known."""
        try:
            return Differentials(self.problem.formula.name, self.x.name).lines
        except (ArgumentError, RuleError, InvariantError):
            return ()


def _sides(mine: Any) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(mine):
        if not isinstance(line, str):
            raise refusal(f"line {number} of type {type(line).__name__}", do="give a text")
        sides = [text for text, _, _ in sides_of(line, 0, len(line))]
        is_about = len(sides) > 1 and (left_side(sides[0]) is not None or _LEFT.match(sides[0]) is not None)
        yield from ((number, side.strip(" $.")) for side in sides[is_about:])


def checked_matrices(mine: Any, question: MatrixQuestion) -> CheckedAnswer:
    """Return an answer to a question of matrix calculus, checked.

    >>> question = MatrixQuestion("tr(A X)", "X", Asked())
    >>> [checked_matrices(mine, question).right for mine in ("A^T", "A^T + X^T")]
    [True, False]
    """
    steps: list[Judged] = []
    for number, text in _sides(mine):
        with mp.workdps(DIGITS):
            mistake = question.mistake(text, f"line {number}")
        step = AnswerStep(number, text, sp.Symbol(text))
        steps.append(Judged(step, mistake is None, {(1,): _BY}, {}, {}))
        if mistake is not None:
            shown = question.explained() if question.problem.reveal == "always" else ()
            return replace(remarked(question.problem, steps, step, mistake.kind, *mistake.words), explanation=shown)
    if not steps:
        raise refusal("an empty answer", do="write a line such as '2Ax'")
    return CheckedAnswer(question.problem, tuple(steps), True)
