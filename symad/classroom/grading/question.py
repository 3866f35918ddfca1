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
    expansion_problem,
    with_decimal_logarithms,
)
from symad.classroom.answers.asked import Asked, Layout, components_of
from symad.classroom.answers.implicit_problem import is_equation
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.given import names_in
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.targets import variables_at
from symad.classroom.matrix_calculus.matrix_formulas import is_of_matrices
from symad.errors import ArgumentError

LARGEST = 1_000_000  # bytes of a file
MOST_ORDERS = 100
PARTS = ("rule", "result", "form")  # of the points


@dataclass(frozen=True)
class Question:
    """A question: a derivative of some order, or an expansion along directions, of a formula or of several.

    `functions` are names of undefined functions, `epsilons` what the question calls its epsilons, `at` a point.
    `digits` are the significant digits that decimal numbers need, 0 where they have to be exact.
    `reveal` says whether pages show the right answer: always, after (beside a right one), never.
    `readings` says once for a class what notations mean that have two readings: {"1/2x": "x/2"}.
    `order`, `along`, `taylor` and `layout` are those of `check_derivative`: order = "n", order = ["x", "y", "y"].
    `points` are for a right answer; one that is right and not finished gets the part `unfinished` of them. `marks`
    divide the points: {"rule": 1, "result": 1, "form": 1}.

    >>> Question("x^3").checked("3x^2").right, Question("x^2 + y^2 = 25").checked("y' = -x/y").right
    (True, True)
    """

    formula: str | tuple[str, ...]
    variables: tuple[str, ...] = ()
    directions: tuple[Any, ...] = ()
    order: int | str | tuple[str, ...] | None = None
    along: Any = None
    taylor: bool = False
    layout: Layout | None = None
    functions: tuple[str, ...] = ()
    epsilons: tuple[str, ...] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    points: float = 1.0
    unfinished: float = 0.5
    marks: Mapping[str, float] = field(default_factory=dict)
    digits: int = DIGITS
    reveal: Reveal = "always"
    readings: Mapping[str, str] = field(default_factory=dict)
    title: str = ""

    @property
    def name(self) -> str:
        """The question's name on pages."""
        of = self.formula if isinstance(self.formula, str) else f"({', '.join(self.formula)})"
        kind = "Expansion" if self.directions else "Taylor polynomial" if self.taylor else "Derivative"
        return self.title or f"{kind} of {of}"

    def problem(self) -> AnswerProblem:
        """The problem that answers to an expansion are compared with; ArgumentError for one without an answer."""
        other = with_decimal_logarithms(self.formula)
        problem = self._as_read()
        return problem if other == self.formula else replace(problem, otherwise=replace(self, formula=other).problem())

    def _as_read(self) -> AnswerProblem:
        formula, x = self._read()
        order = self.order if isinstance(self.order, int) else None
        directions = self.directions[0] if order is not None else list(self.directions)
        return expansion_problem(formula, x, directions, order, self.epsilons or None, self.digits, self.reveal)

    def _read(self) -> tuple[Any, Any]:
        """Return the formula, or the list of formulas, and the variables, at the point if there is one."""
        names = [*self.variables, *(f"{name}(x)" for name in self.functions)]
        formulas = [read_formula(part, names) for part in components_of(self.formula)]
        named = {plain(str(name)) for name in names_in(self.directions)} - {plain(name) for name in self.variables}
        symbols = sorted(set().union(*(formula.free_symbols for formula in formulas)), key=str)
        free = [symbol for symbol in symbols if plain(symbol.name) not in named]
        at = {name: read_formula(value) if isinstance(value, str) else value for name, value in self.at.items()}
        x = variables_at(str(self.formula), free, self.variables, at)
        return formulas[0] if len(formulas) == 1 else formulas, x

    def check(self) -> Callable[[Any], CheckedAnswer]:
        """Return the check of answers. A question may be an equation, of matrices, or have several variables."""
        if self.directions:
            return partial(checked_answer, problem=self.problem())
        x: Any = self.variables[0] if self.variables else next(iter(self.at), "x")
        if is_equation(self.formula, x):
            x = {x: self.at[x], **self.at} if x in self.at else x
        formula = self.formula
        if not is_equation(formula, x) and not is_of_matrices(formula, x, ""):
            formula, x = self._read()
            if not self.variables and isinstance(x, list | dict) and len(x) > 1:
                do = f'name them: variables = ["{names_in(x)[0]}"]'
                raise ArgumentError(f"a derivative in {len(x)} variables", do=do)
        asked = Asked(self.order or 1, self.along, self.taylor, self.layout, self.digits, self.reveal)
        other = with_decimal_logarithms(self.formula)
        return check_of(
            formula, x, asked, other=None if other == self.formula else replace(self, formula=other)._read()[0]
        )

    def as_meant(self, answer: Any) -> Any:
        """Return an answer with ambiguous notations written as the question defines them.

        >>> Question("x^2/4", readings={"1/2x": "x/2"}).as_meant("= 1/2x")
        '= (x/2)'
        """
        if not isinstance(answer, str):
            return answer
        for written, meant in self.readings.items():
            answer = f"({meant})".join(re.split(rf"(?<![\w^]){re.escape(written)}(?![\w^(])", answer))
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
    formula = parts.get("formula")
    if not formula or not all(isinstance(part, str) for part in (formula if isinstance(formula, list) else [formula])):
        raise ArgumentError("a question without a formula", where=where, do='write formula = "x^3"')
    for name, (kind, fits, do) in _PARTS.items():
        value = parts.get(name)
        entries = value.items() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else [value]
        if name in parts and not (isinstance(value, kind) and all(map(fits, entries))):
            raise ArgumentError(f"{name} = {value!r}"[:80], where=where, do=do.format(name))
    order = parts.get("order", 1)
    is_mixed = isinstance(order, list) and order and all(isinstance(name, str) for name in order)
    if not (is_mixed or order == "n" or (type(order) is int and 1 <= order <= MOST_ORDERS)):
        do = f'give a number from 1 to {MOST_ORDERS}, "n", or variables such as ["x", "y", "y"]'
        raise ArgumentError(f"order = {order!r}"[:80], where=where, do=do)
    marks = parts.get("marks", {})
    lists = {name: tuple(entries) for name, entries in parts.items() if isinstance(entries, list)}
    points = {"points": float(sum(marks.values()))} if marks else {}
    return Question(**{**parts, **lists, **points})


def _is_number(number: Any) -> bool:
    return not isinstance(number, bool) and isinstance(number, int | float) and 0 <= number < 10**6


_NAMES = 'give a list of names, such as {} = ["v"]'
_PARTS: dict[str, tuple[Any, Callable[[Any], bool], str]] = {  # the type of a part, what its entries are, and advice
    **dict.fromkeys(("variables", "functions", "epsilons"), (list | tuple, lambda name: isinstance(name, str), _NAMES)),
    "directions": (list | tuple, lambda direction: True, _NAMES),
    **dict.fromkeys(("points", "unfinished"), (int | float, _is_number, "give a number from 0")),
    "marks": (Mapping, lambda mark: mark[0] in PARTS and _is_number(mark[1]),
              "write {} = {{rule = 1, result = 1, form = 1}}"),
    "title": (str, lambda title: True, 'write {} = "..."'),
    "at": (Mapping, lambda place: isinstance(place[1], int | float | str), "write {} = {{x = 2}}"),
    "readings": (Mapping, lambda pair: all(isinstance(text, str) and text for text in pair),
                 'write {} = {{"1/2x" = "x/2"}}'),
}  # fmt: skip
