"""A question in a TOML file: the formula, what is asked, and its points."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from codegen.records import dataclass
from symad.classroom.answers.answer_check import check_of, checked_answer
from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import (
    DIGITS,
    AnswerProblem,
    Reveal,
    derivative_problem,
    expansion_problem,
    with_decimal_logarithms,
)
from symad.classroom.answers.implicit_problem import is_equation
from symad.classroom.answers.matrix_answers import is_of_matrices
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.given import names_in
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.targets import variables_at
from symad.errors import ArgumentError

LARGEST = 1_000_000  # bytes of a file
MOST_ORDERS = 100


@dataclass(frozen=True)
class Question:
    """A question: a derivative of some order, or an expansion along directions, of a formula.

    `functions` are names of undefined functions, `epsilons` what the question calls its epsilons, `at` a point.
    `digits` are the significant digits that decimal numbers need, 0 where they have to be exact.
    `reveal` says whether pages show the right answer: always, after (beside a right one), never.
    `readings` says once for a class what notations mean that have two readings: {"1/2x": "x/2"}.
    `points` are for a right answer; one that is right and not finished gets the part `unfinished` of them.

    >>> Question("x^3").checked("3x^2").right, Question("x^2 + y^2 = 25").checked("y' = -x/y").right
    (True, True)
    """

    formula: str
    variables: tuple[str, ...] = ()
    directions: tuple[Any, ...] = ()
    order: int | None = None
    functions: tuple[str, ...] = ()
    epsilons: tuple[str, ...] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    points: float = 1.0
    unfinished: float = 0.5
    digits: int = DIGITS
    reveal: Reveal = "always"
    readings: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    @property
    def name(self) -> str:
        """The question's name on pages."""
        return self.title or f"{'Expansion' if self.directions else 'Derivative'} of {self.formula}"

    def problem(self) -> AnswerProblem:
        """The problem that answers are compared with; ArgumentError for a question without an answer."""
        other = with_decimal_logarithms(self.formula)
        problem = self._as_read()
        return problem if other == self.formula else replace(problem, otherwise=replace(self, formula=other).problem())

    def _as_read(self) -> AnswerProblem:
        formula, x = self._read()
        if not self.directions:
            return derivative_problem(formula, x, self.order or 1, self.digits, self.reveal)
        directions = self.directions[0] if self.order is not None else list(self.directions)
        return expansion_problem(formula, x, directions, self.order, self.epsilons or None, self.digits, self.reveal)

    def _read(self) -> tuple[Any, Any]:
        """Return the formula and its variables, at the point if there is one."""
        names = [*self.variables, *(f"{name}(x)" for name in self.functions)]
        formula = read_formula(self.formula, names)
        named = {plain(str(name)) for name in names_in(self.directions)} - {plain(name) for name in self.variables}
        free = [symbol for symbol in sorted(formula.free_symbols, key=str) if plain(symbol.name) not in named]
        at = {name: read_formula(value) if isinstance(value, str) else value for name, value in self.at.items()}
        return formula, variables_at(self.formula, free, self.variables, at)

    def check(self) -> Callable[[Any], CheckedAnswer]:
        """Return the check of answers. A question may be an equation, of matrices, or have several variables."""
        x = self.variables[0] if self.variables else "x"
        is_other = not self.directions and (is_equation(self.formula, x) or is_of_matrices(self.formula, x, ""))
        if self.directions or (not is_other and len(self.variables) < 2):
            return partial(checked_answer, problem=self.problem())
        formula, x = (self.formula, x) if is_other else self._read()
        return check_of(formula, x, self.order or 1, self.digits, self.reveal)

    def as_meant(self, answer: Any) -> Any:
        """Return an answer with ambiguous notations written as the question defines them.

        >>> Question("x^2/4", readings={"1/2x": "x/2"}).as_meant("= 1/2x")
        '= (x/2)'
        """
        if not isinstance(answer, str):
            return answer
        for written, meant in self.readings.items():
            pattern = rf"(?<![\w^]){re.escape(written)}(?![\w^(])"
            answer = f"({meant})".join(re.split(pattern, answer))
        return answer

    def checked(self, answer: Any) -> CheckedAnswer:
        """Return an answer, checked; ArgumentError with its place if it cannot be read."""
        return self.check()(self.as_meant(answer))


def read_question(path: str | Path) -> Question:
    """Return the question in a TOML file; ArgumentError if there is none.

    The names in the file are those of `Question`: formula = "x^3", directions = ["v", "w"], points = 2...
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ArgumentError(f"a question of more than {LARGEST:,} bytes in {str(path)!r}", do="give a shorter file")
        parts = tomllib.loads(text.decode("utf-8"))
    except RecursionError as error:
        raise ArgumentError(f"cannot read {str(path)!r}", why="it is nested too deep", do="write it flat") from error
    except (OSError, ValueError) as error:  # invalid UTF-8 or TOML, or integers with thousands of digits
        raise ArgumentError(f"cannot read {str(path)!r}", why=str(error), do='write a line formula = "x^3"') from error
    return question_of(parts, str(path))


def question_of(parts: Mapping[str, Any], where: str = "question") -> Question:
    """Return a question from its named parts; ArgumentError for an unknown or invalid part."""
    known = {field.name: field for field in fields(Question)}
    for name in parts:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            do = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ArgumentError(f"{name!r} in a question", where=where, do=do)
    if not isinstance(parts.get("formula"), str):
        raise ArgumentError("a question without a formula", where=where, do='write formula = "x^3"')
    for name in ("variables", "functions", "epsilons", "directions"):
        entries = parts.get(name, [])
        fits = isinstance(entries, list | tuple) and (name == "directions" or all(isinstance(e, str) for e in entries))
        if not fits:
            raise ArgumentError(
                f"{name} = {entries!r}", where=where, do=f'give a list of names, such as {name} = ["v"]'
            )
    for name in ("points", "unfinished"):
        number = parts.get(name, 1)
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 10**6:
            raise ArgumentError(f"{name} = {number!r}"[:80], where=where, do="give a number from 0")
    order, title, at = parts.get("order", 1), parts.get("title", ""), parts.get("at", {})
    if type(order) is not int or not 1 <= order <= MOST_ORDERS:
        raise ArgumentError(f"order = {order!r}"[:80], where=where, do=f"give a number from 1 to {MOST_ORDERS}")
    if not isinstance(title, str):
        raise ArgumentError(f"title = {title!r}"[:80], where=where, do='write title = "..."')
    if not isinstance(at, Mapping) or not all(isinstance(value, int | float | str) for value in at.values()):
        raise ArgumentError(f"at = {at!r}"[:80], where=where, do="write at = {x = 2}")
    readings = parts.get("readings", {})
    if not isinstance(readings, Mapping) or not all(isinstance(e, str) and e for e in (*readings, *readings.values())):
        raise ArgumentError(f"readings = {readings!r}"[:80], where=where, do='write readings = {"1/2x" = "x/2"}')
    lists = {name: tuple(entries) for name, entries in parts.items() if isinstance(entries, list)}
    return Question(**{**parts, **lists})
