"""Answers of several entries or variables: gradients, Jacobians, Hessians, mixed partials, vectors, directions.

An entry has a place: the component of f and the variables that it is differentiated in. The question says which array
of places is asked for; an answer may be that array, in pieces, and have other places before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from functools import cached_property
from itertools import chain, combinations_with_replacement
from typing import Any

import sympy as sp

from codegen.records import dataclass
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer
from symad.classroom.answers.answer_problem import (
    MOST_ORDER,
    AnswerProblem,
    asked_formula,
    derivative_problem,
    directional_problem,
)
from symad.classroom.answers.answer_statements import refuse_long_answer
from symad.classroom.answers.answer_text import LeftSide, left_side, trimmed
from symad.classroom.answers.asked import Asked, components_of
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.answers.vector_texts import dot_product, joined, parts_of, sum_of_units, vector_parts
from symad.classroom.equality.equality import agreement
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.tokens import LOWERED
from symad.classroom.formulas.typesetting import operators
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

_MOST_COMPONENTS = 6
_TYPESET = re.compile(r"\\(?:operatorname|math[a-z]+|boldsymbol|vec|text)(?![a-z])|[\\\s|_{}$]")
_NAME = re.compile(
    r"\(?(?:(?:∇|nabla|grad|Hess|[HJD])\^?[2²]?\(?[a-zA-Z]?\)?|∇∇\^?T?[a-z]|[a-z]'{1,2}|d[a-z]/d[a-z]|"
    r"frac\(?d[a-z]\)?\(?d[a-z]\)?)(?:\((?P<at>[^()]*)\))?\)?(?:\^?T)?|gradient|hessian|hesse-matrix|jacobian",
    re.IGNORECASE,
)
_GRADIENT = re.compile(r"(?:∇|nabla|grad)(?!\^?[2²]|∇)", re.IGNORECASE)
_ALONG = re.compile(
    r"(?:D(?:\^|_)?\(?[uvwanr]⃗?\)?|∂f/∂[uvwan]|frac\(?∂f\)?\(?∂[uvwan]\)?|(?:∇|nabla|grad)f(?:\([^()]*\))?(?:[·*⋅∙•]|cdot)[a-z⟨(].*)"
    r"f?(?:\([^()]*\))?"
)
_ALONG_SPELLED = re.compile(r"\\hat|\\bar|[\u20d7\u0302]")

Place = tuple[int, ...]  # the component, then the variables in order; ALONG for the direction
Grid = Any  # a place, or a tuple of grids
ALONG = -1


@dataclass(frozen=True)
class EntryQuestion:
    """The components of f, the variables and their values, and the array of places that is asked for."""

    components: tuple[sp.Expr, ...]
    symbols: tuple[sp.Symbol, ...]
    x: Any
    options: Asked
    grid: Grid = ()
    _problems: dict[Place, AnswerProblem] = field(default_factory=dict, compare=False)

    @cached_property
    def names(self) -> list[str]:
        return [plain(symbol.name) for symbol in self.symbols]

    @cached_property
    def letters(self) -> dict[str, int]:
        """The components by their letters, where there are several: x, y, z or u, v, w."""
        count = len(self.components)
        families = [family for family in ("xyzuvw", "uvwpqs", "abcghk") if not set(family[:count]) & set(self.names)]
        return {letter: k for family in families for k, letter in enumerate(family[:count])} if count > 1 else {}

    def problem(self, place: Place) -> AnswerProblem:
        """Return the problem of one entry."""
        if place not in self._problems:
            component, *variables = place
            formula, options = self.components[component], self.options
            point = self.x if isinstance(self.x, dict) else {}
            if variables == [ALONG]:
                direction = options.direction(len(self.symbols))
                built = directional_problem(formula, self.x, direction, options.digits, options.reveal)
            else:
                *inner, last = (self.symbols[k] for k in variables)
                others = {symbol: value for symbol, value in point.items() if symbol != last}
                before = sp.diff(formula, *inner) if inner else formula
                where = {last: point[last]} if last in point and point[last] != last else last
                built = derivative_problem(before, where, 1, options.digits, options.reveal)
                fixed = tuple(symbol for symbol in self.symbols if symbol != last)
                built = replace(built, at={**others, **built.at} if point else built.at, others=fixed)
            self._problems[place] = built
        return self._problems[place]

    @property
    def asked(self) -> list[Place]:
        """The places that are asked for."""
        return list(dict.fromkeys(leaves(self.grid)))

    def shown(self, place: Place) -> sp.Symbol:
        """Return an entry's name, such as f_xy."""
        letter = next((name for name, k in self.letters.items() if k == place[0]), "f")
        below = "".join("v" if k == ALONG else self.names[k] for k in place[1:])
        return sp.Symbol(f"{letter}_{below}")

    def entries(self, mine: Any) -> list[tuple[Place, int, str]]:
        """Return the entries of an answer: place, line, and text of each."""
        if not isinstance(mine, str):
            raise refusal(f"an answer of type {type(mine).__name__} in several variables", do="give a text")
        result: list[tuple[Place, int, str]] = []
        for number, line in enumerate(joined(self._lettered(mine)).splitlines(), 1):
            line = line[slice(*trimmed(line, 0, len(line), self.names.__contains__))]
            parts = parts_of(line, ",;") if line.count("=") > 1 else [line]
            for statement in parts if all("=" in part for part in parts) else [line]:
                result += [(place, number, text) for place, text in self._statement(statement)]
        if not result:
            raise refusal("an empty answer", do="write a vector such as (2x, 3y), or lines such as f_x = 2x")
        return result

    def _lettered(self, text: str) -> str:
        """Return a text with the letters of the components for f_1, f_2."""
        if len(self.components) == 1:
            return text
        letters = list(self.letters)[: len(self.components)]

        def letter(match: re.Match[str]) -> str:
            number = int(match[1].translate(LOWERED).strip("_{}"))
            return letters[number - 1] if 0 < number <= len(letters) else match[0]

        return re.sub(r"(?<![A-Za-z\\])[fFgr](_?\{?[1-9]\}?|[₁-₉])(?=\s*(?:[}/(=']|_|$|∂))", letter, text)

    def _statement(self, statement: str) -> list[tuple[Place, str]]:
        if not statement.strip():
            return []
        left, *sides = map(self._with_index, parts_of(statement, "="))
        if not sides or self._is_side(left):
            left, sides = "", [left, *sides]
        grid = self._grid_of(left)
        if isinstance(grid, tuple) and grid and not isinstance(grid[0], tuple):  # a single place
            read = {side: left_side(operators(side, "D")) for side in sides}
            others = {side: other for side, other in read.items() if other is not None and other.variables}
            if any(self._place(other) != grid for other in others.values()) and grid[-1] != ALONG:
                raise refusal(f"two derivatives in {statement.strip()!r}", do="write one equation for each")
            kept = (side.strip() for side in sides if side not in others)  # f_xy = f_yx = 2x
            texts = (dot_product(side, len(self.symbols)) for side in kept)
            return [(grid, text) for text in texts if not _ALONG.fullmatch(_bare(text))]
        entries = (entry for side in sides for entry in self._array(side, grid))
        return [(place, text) for place, text in entries if not self._restates(place, text)]

    def _with_index(self, side: str) -> str:
        """Return a side with f_xy for fxy, also in a vector (fx, fy); other sides unchanged."""
        letters, names = "".join(self.letters) or "f", "|".join(map(re.escape, self.names))
        partial, at = rf"([{letters}])((?:{names})+)", r"(?:\([\w.,\s-]*\))?"
        is_partial = re.fullmatch(rf"\s*(?:{partial}{at}|\(\s*{partial}(?:,\s*{partial})+\s*\))\s*", side)
        return re.sub(rf"(?<!\w){partial}(?!\w)", r"\1_{\2}", side) if is_partial else side

    def _is_side(self, left: str) -> bool:
        """Whether a left side is no name but a value: (2xy, x²) = (4, 1), 4·3 + 1·4 = 16, or (f_x, f_y) = (4, 1)."""
        if not isinstance(self.grid[0], tuple):
            return not re.search(r"[A-Za-z∇∂]", left)
        if not re.match(r"\s*(?:[(\[<{⟨]|\\(?:begin|left|langle|binom))", left):
            return False
        try:
            return bool(list(self._array(left, self.grid)))
        except ArgumentError:
            return False

    def _grid_of(self, left: str) -> Grid:
        """Return the place or the array of places that a left side names."""
        point = ",".join(map(str, self.x.values())) if isinstance(self.x, dict) else ""
        left = re.sub(rf"\({re.escape(point)}\)\s*$", "", re.sub(r",\s+", ",", left))  # f_x(2, 1) at (2, 1)
        bare, side = _bare(left), left_side(operators(left, "D"))
        if not bare:
            return self.grid
        directional = self.options.along is not None
        if directional and _ALONG.fullmatch(_ALONG_SPELLED.sub("", bare)):
            return self.grid
        if side is not None and (place := self._place(side)) and len(place) <= MOST_ORDER + 1:
            return place
        if bare.lower() == "gradient" or (_GRADIENT.match(bare) and _NAME.fullmatch(bare)):
            return self._partials(next((k for letter, k in self.letters.items() if letter in bare[1:]), 0), 1)
        if re.fullmatch("d[a-zA-Z]", bare) and len(self.components) == 1:
            return self._partials(0, 1)
        if side is not None and side.order and len(self.symbols) == 1 and not side.variables:
            return self._vector(side.order)
        if _NAME.fullmatch(bare):
            return self._partials(0, 2) if re.match("[hH]|∇", bare) and len(self.components) == 1 else self.grid
        raise refusal(f"the left side {left.strip()!r}", do="write ∇f = (..., ...), H = [[...], [...]] or f_x = ...")

    def _partials(self, component: int, order: int) -> Grid:
        numbers = range(len(self.symbols))
        if order == 1:
            return tuple((component, k) for k in numbers)
        return tuple(tuple((component, *sorted((j, k))) for k in numbers) for j in numbers)

    def _vector(self, order: int) -> Grid:
        return tuple((component, *[0] * order) for component in range(len(self.components)))

    def _place(self, side: LeftSide) -> Place:
        """Return the place of a left side; nothing if it names none."""
        component = self.letters.get(side.letter, 0 if len(self.components) == 1 else None)
        if component is None or side.letter in self.names:
            return ()
        numbers = {str(k + 1): name for k, name in enumerate(self.names)}
        letters = [numbers.get(letter, plain(letter)) for letter in side.variables]
        if not letters and side.order and len(self.symbols) == 1:
            letters = self.names * side.order
        known = letters and set(letters) <= set(self.names)
        return (component, *sorted(map(self.names.index, letters))) if known else ()

    def _restates(self, place: Place, text: str) -> bool:
        """Whether an entry of a vector is the sign of its partial derivative: (f_x, f_y)."""
        side = left_side(text)
        if side is None or not (side.variables or (side.order and self._place(side))):
            return False
        if self._place(side) != place:
            raise refusal(f"{text!r} as an entry of the vector", do="write the partial derivatives in their order")
        return True

    def _array(self, side: str, grid: Grid) -> Iterator[tuple[Place, str]]:
        """Yield the entries of an array of places in a text."""
        if not isinstance(grid[0], tuple):
            yield grid, side
            return
        is_vector = not isinstance(grid[0][0], tuple)
        units = sum_of_units(side, self.symbols, len(grid)) if is_vector else []
        for part, text in zip(grid, units or vector_parts(side, len(grid)), strict=True):
            yield from self._array(text, part)


def _bare(text: str) -> str:
    return _TYPESET.sub("", text)


def leaves(grid: Grid) -> Iterator[Place]:
    """Yield the places of an array."""
    if isinstance(grid[0], tuple):
        yield from chain.from_iterable(map(leaves, grid))
    else:
        yield grid


def entry_question(f: Any, x: Any, asked: Asked) -> EntryQuestion | None:
    """Return the question of an answer with entries or several variables; None for one formula in one variable.

    >>> question = entry_question("x^2 y", ["x", "y"], Asked())
    >>> question.entries("∇f = (2xy, x^2)"), question.entries("f_{xy} = 2x")
    ([((0, 0), 1, '2xy'), ((0, 1), 1, 'x^2')], [((0, 0, 1), 1, '2x')])
    """
    parts = components_of(f)
    if len(parts) > _MOST_COMPONENTS:
        raise refusal(f"{len(parts)} components", do=f"give at most {_MOST_COMPONENTS}")
    read = [asked_formula(part, x) for part in parts]
    symbols, at = read[0][1], read[0][2]
    if len(parts) == len(symbols) == 1 and asked.along is None:
        return None
    point = {symbol: at.get(symbol, symbol) for symbol in symbols} if at else list(symbols)
    question = EntryQuestion(tuple(formula for formula, *_ in read), symbols, point, asked)
    if len(symbols) == 1 and len(parts) == 1:
        raise refusal(f"along={asked.along!r} in one variable", do="give the variables as a list, or leave along out")
    return replace(question, grid=_grid(question, asked))


def _grid(question: EntryQuestion, asked: Asked) -> Grid:
    count, variables = len(question.components), len(question.symbols)
    whole = isinstance(asked.order, int) and not isinstance(asked.order, bool)
    if isinstance(asked.order, tuple) or asked.along is not None:
        variables_of_each = (ALONG,) if asked.direction(variables) else asked.places(question.symbols)
        places = tuple((component, *variables_of_each) for component in range(count))
        return places if count > 1 else places[0]
    most = MOST_ORDER if variables == 1 else 2 if count == 1 else 1
    if not whole or not 1 <= asked.order <= most or asked.taylor:
        what = "a Taylor polynomial" if asked.taylor else f"order={asked.order!r}"
        say = {1: "1 for the Jacobian", 2: "1 for the gradient, 2 for the Hessian"}.get(most, f"an integer to {most}")
        do = f"give {say}, or variables such as ({question.names[0]!r}, {question.names[-1]!r})"
        raise refusal(f"{what} of {count} formulas in {variables} variables", do=do)
    if variables == 1:
        return question._vector(asked.order)
    if count == 1:
        return question._partials(0, asked.order)
    rows = tuple(question._partials(component, 1) for component in range(count))
    return tuple(zip(*rows, strict=True)) if asked.layout == "denominator" else rows


Check = Callable[[str, AnswerProblem], CheckedAnswer]


def checked_entries(mine: Any, question: EntryQuestion, check: Check) -> CheckedAnswer:
    """Return the first entry that is not right, checked, else the last one, finished if all entries are present."""
    refuse_long_answer(mine)
    grid, count = question.grid, min(len(question.components), len(question.symbols))
    is_jacobian = count > 1 and isinstance(grid[0][0], tuple)
    transposed = [replace(question, grid=tuple(zip(*grid, strict=True)))] if is_jacobian else []
    checked, *others = (_attempted(mine, asked, check) for asked in (question, *transposed))
    for other in others if isinstance(checked, ArgumentError) or checked.right is False else ():
        if isinstance(other, CheckedAnswer) and other.right and (other.finished or isinstance(checked, ArgumentError)):
            return _of_layout(other, question)
    if isinstance(checked, ArgumentError):
        raise checked
    return checked


def _attempted(mine: Any, question: EntryQuestion, check: Check) -> CheckedAnswer | ArgumentError:
    try:
        return _checked(mine, question, check)
    except ArgumentError as error:
        return error


def _of_layout(other: CheckedAnswer, question: EntryQuestion) -> CheckedAnswer:
    """Return the verdict on a transposed Jacobian: accepted, wrong by name, or asked back."""
    layout = question.options.layout
    if layout == "either":
        return other
    rows = "column for each component" if layout == "denominator" else "row for each component"
    if layout is None:
        do = f"write a Jacobian with a {rows}, or let layout accept both"
        raise refusal("an answer that is the transposed Jacobian", why="books have two layouts", do=do)
    step = other.steps[-1].step
    mistake = Mistake("layout", (f"It is transposed: the Jacobian has a {rows}",))
    return replace(other, right=False, line=AnswerLine(step.line, step.text), mistakes=(mistake,))


def _checked(mine: Any, question: EntryQuestion, check: Check) -> CheckedAnswer:
    entries = question.entries(mine)
    checked = [(place, check("\n" * (number - 1) + text, question.problem(place))) for place, number, text in entries]
    checked = [(place, _carried(place, answer, checked)) for place, answer in checked]
    first = next(((p, a) for right in (False, None) for p, a in checked if a.right is right), None)
    asked, last = question.asked, dict(checked)
    lower = [a for p, a in checked if p not in asked and a.right is False and not a.steps[-1].carried]
    parts = (*(last.get(place) for place in asked), *lower)
    if first is None:
        answer = checked[-1][1]
        return replace(answer, finished=answer.finished and None not in parts, parts=parts)
    place, answer = first
    if answer.right is False and not answer.mistakes and answer.written is not None:
        answer = replace(answer, mistakes=_other_entry(place, answer, question))
    return replace(answer, parts=parts)


def _other_entry(place: Place, answer: CheckedAnswer, question: EntryQuestion) -> tuple[Mistake, ...]:
    """Return the mistake of writing another entry, if that is what is written."""
    numbers, orders = range(len(question.symbols)), range(1, max(2, len(place)))
    others = [(place[0], *chosen) for k in orders for chosen in combinations_with_replacement(numbers, k)]
    others += question.asked
    for other in dict.fromkeys(others):
        if other == place or ALONG in (*other, *place):
            continue
        problem = question.problem(other)
        if agreement(problem.truth[problem.terms[0]], answer.written):
            return (Mistake("another entry", ("This is ", question.shown(other), ", and not ", question.shown(place))),)
    return ()


def _carried(place: Place, answer: CheckedAnswer, all_checked: list[tuple[Place, CheckedAnswer]]) -> CheckedAnswer:
    """Return a wrong entry, marked if it follows from a wrong entry of lower order: f_xy from a wrong f_x."""
    if answer.right is not False or answer.written is None or len(place) < 3:
        return answer
    for lower, before in all_checked:
        extra = [k for k in set(place[1:]) if tuple(sorted((*lower[1:], k))) == place[1:]]
        is_wrong = before.right is False and before.written is not None and not before.problem.at
        follows = is_wrong and lower[0] == place[0] and extra
        if follows and agreement(sp.diff(before.written, answer.problem.symbols[0]), answer.written):
            return replace(answer, steps=(*answer.steps[:-1], replace(answer.steps[-1], carried=True)))
    return answer
