"""Answers in several variables: gradients and Hessians as vectors, matrices, or one entry a line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations_with_replacement
from typing import Any

import sympy as sp

from symad.classroom.answers.answer_page import CheckedAnswer
from symad.classroom.answers.answer_problem import DIGITS, AnswerProblem, Reveal, derivative_problem, several_symbols
from symad.classroom.answers.answer_text import LeftSide, left_side
from symad.classroom.answers.answer_words import trimmed
from symad.classroom.formulas.formula_names import plain
from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.tokens import LOWERED
from symad.classroom.formulas.typesetting import normalized, operators
from symad.display.notation import counted
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

_MOST_ORDER = 2
_MATRIX = re.compile(
    r"(?:[(\[]\s*)?\\begin\s*\{(?P<name>[pbvBV]?(?:small)?matrix|array)\}(?:\s*\{[lcr| ]*\})?(?P<rows>.*?)"
    r"\\end\s*\{(?P=name)\}(?:\s*[)\]])?\s*|\\mqty\s*[({](?P<quantity>[^()]*(?:\([^()]*\)[^()]*)*)[)}]"
    r"|\\[pb]matrix\s*\{(?P<old>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}",
    re.DOTALL,
)
_TYPESET = re.compile(r"\\(?:operatorname|math[a-z]+|boldsymbol|vec|text)(?![a-z])|[\\\s|_{}]")
_NAME = re.compile(
    r"\(?(?:(?:∇|grad|Hess|[HJD])\^?[2²]?\(?[a-zA-Z]?\)?|∇∇\^?T?[a-z]|[a-z]'{1,2})(?:\((?P<at>[^()]*)\))?\)?(?:\^?T)?"
    r"|gradient|hessian|hesse-matrix",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"(?:\\(?:hat|vec|mathbf|boldsymbol)\s*\{?\s*\\?([ijke])(?:math)?\s*\}?|([îĵêe])\u20d7?)(?:(_)\{?([a-z\d])\}?)?"
)
_PLAIN = str.maketrans("îĵê", "ije")
_BRACKETS = {"langle": "⟨", "rangle": "⟩", "{": "(", "}": ")"}
_OPENS, _CLOSES = "([{⟨", ")]}⟩"

Place = tuple[int, ...]  # the indices of the variables of a partial derivative, in order


def gradient_problems(
    f: Any, x: Any, order: int, digits: int = DIGITS, reveal: Reveal = "always"
) -> dict[Place, AnswerProblem] | None:
    """Return the problem of each partial derivative up to an order; None for a single variable."""
    question = several_symbols(f, x)
    if question is None:
        return None
    formula, symbols, at = question
    if isinstance(order, bool) or order not in range(1, _MOST_ORDER + 1):
        raise refusal(f"order={order!r} in {len(symbols)} variables", do="give 1 for the gradient, 2 for the Hessian")
    problems: dict[Place, AnswerProblem] = {}
    places = (combinations_with_replacement(range(len(symbols)), lower) for lower in range(1, order + 1))
    for place in chain.from_iterable(places):
        inner, last = [symbols[k] for k in place[:-1]], symbols[place[-1]]
        point: Any = {symbol: at.get(symbol, symbol) for symbol in [last, *(s for s in symbols if s != last)]}
        differentiated = sp.diff(formula, *inner) if inner else formula
        where = last if not at else {last: point[last]}
        others = {symbol: value for symbol, value in at.items() if symbol != last}
        problems[place] = derivative_problem(differentiated.xreplace(others), where, 1, digits, reveal)
    return problems


def entries_of(mine: Any, symbols: Sequence[sp.Symbol], order: int) -> list[tuple[Place, int, str]]:
    """Return the entries of an answer: partial derivative, line, and text of each.

    >>> x, y = sp.symbols("x y")
    >>> entries_of("∇f = (2xy, x^2)", [x, y], 1)
    [((0,), 1, '2xy'), ((1,), 1, 'x^2')]
    >>> entries_of("f_{xy} = 2x", [x, y], 2)
    [((0, 1), 1, '2x')]
    """
    if not isinstance(mine, str):
        raise refusal(f"an answer of type {type(mine).__name__} in several variables", do="give a text")
    result: list[tuple[Place, int, str]] = []
    for number, line in enumerate(_joined(mine).splitlines(), 1):
        line = line[slice(*trimmed(line, 0, len(line), [symbol.name for symbol in symbols].__contains__))]
        parts = _parts(line, ",;") if line.count("=") > 1 else [line]
        for statement in parts if all("=" in part for part in parts) else [line]:
            result += [(place, number, text) for place, text in _entries(statement, symbols, order)]
    if not result:
        raise refusal("an empty answer", do="write a vector such as (2x, 3y), or lines such as f_x = 2x")
    return result


def _joined(text: str) -> str:
    """Return a text with each LaTeX matrix on one line as [[a, b], [c, d]]."""

    def rows(match: re.Match[str]) -> str:
        inside = match["rows"] or match["quantity"] or match["old"] or ""
        cells = [[cell.strip() for cell in row.split("&")] for row in re.split(r"\\\\|\\cr", inside) if row.strip()]
        if len(cells) == 1 or all(len(row) == 1 for row in cells):
            return f"[{', '.join(cell for row in cells for cell in row)}]"
        return f"[{', '.join(f'[{chr(44).join(row)}]' for row in cells)}]"

    text = normalized(text)
    text = re.sub(r"\\frac\s*\{\s*(\([^{}]*,[^{}]*\))\s*\}\s*(?=\{)", r"\1\\frac{1}", text)
    text = re.sub(r",?\s*\\q?quad\b", ", ", re.sub(r"<([^<>=]*,[^<>=]*)>", r"⟨\1⟩", text))
    text = re.sub(r"\s(?:and|und|et|sowie)\s|(?<=[^,\s])\s{2,}(?=[^=\s(,;][^=,;\n]*=)", ", ", text)
    text = re.sub(r"\\binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}|\{([^{}]*)\\choose([^{}]*)\}", r"(\1\3, \2\4)", text)
    text = re.sub(r"\\(?:langle|rangle|\{|\})", lambda sign: _BRACKETS[sign[0][1:]], _MATRIX.sub(rows, text))
    return text


def _entries(statement: str, symbols: Sequence[sp.Symbol], order: int) -> list[tuple[Place, str]]:
    if not statement.strip():
        return []
    left, *sides = _parts(statement, "=")
    if not sides:
        left, sides = "", [left]
    bare, side_read = _TYPESET.sub("", left), left_side(operators(left, "D"))
    if side_read is not None and (place := _place(side_read, symbols)) and len(place) <= order:
        others = {side: other for side in sides if (other := left_side(side)) is not None and other.variables}
        if any(_place(other, symbols) != place for other in others.values()):
            raise refusal(f"two derivatives in {statement.strip()!r}", do="write one equation for each")
        return [(place, side.strip()) for side in sides if side not in others]  # f_xy = f_yx = 2x
    if order == 1 and (not left or _NAME.fullmatch(bare) or re.fullmatch("d[a-zA-Z]", bare)):
        sums = [_sum_of_units(side, symbols) for side in sides]
        if all(sums):
            return [entry for entries in sums for entry in entries]
    if left and _is_of_signs(left, symbols, order):
        left = ""
    if left and not _NAME.fullmatch(bare):
        raise refusal(f"the left side {left.strip()!r}", do="write ∇f = (..., ...), H = [[...], [...]] or f_x = ...")
    entries = [entry for side in sides for entry in _vector(side, len(symbols), order)]
    return [(place, text) for place, text in entries if not _restates(place, text, symbols)]


def _restates(place: Place, text: str, symbols: Sequence[sp.Symbol]) -> bool:
    """Whether an entry of a vector is the sign of its partial derivative: (f_x, f_y)."""
    side = left_side(text)
    if side is None or not side.variables:
        return False
    if _place(side, symbols) != place:
        raise refusal(f"{text!r} as an entry of the vector", do="write the partial derivatives in their order")
    return True


def _place(side: LeftSide, symbols: Sequence[sp.Symbol]) -> Place:
    """Return the indices of the variables of a left side; nothing if one of them is no variable."""
    names = [plain(symbol.name) for symbol in symbols]
    numbers = {str(k + 1): name for k, name in enumerate(names)}
    letters = [numbers.get(letter, plain(letter)) for letter in side.variables]
    return tuple(sorted(map(names.index, letters))) if set(letters) <= set(names) else ()


def _is_of_signs(left: str, symbols: Sequence[sp.Symbol], order: int) -> bool:
    """Whether a left side is the vector of all partial derivatives: (f_x, f_y)."""
    try:
        return all(_restates(place, text, symbols) for place, text in _vector(left, len(symbols), order))
    except ArgumentError:
        return False


def _sum_of_units(side: str, symbols: Sequence[sp.Symbol]) -> list[tuple[Place, str]]:
    """Return the entries of 2x i + 3y j, or of 2x dx + 3y dy; none for any other text."""
    names, number = [symbol.name for symbol in symbols], range(1, len(symbols) + 1)
    if re.search(r"e_|[êîĵ\\]", side := side.translate(LOWERED)):
        side = _UNIT.sub(lambda unit: f" {(unit[1] or unit[2]).translate(_PLAIN)}{unit[3] or ''}{unit[4] or ''} ", side)
    families = ([f"d{name}" for name in names], [f"e_{name}" for name in names], [f"e_{k}" for k in number],
                list("ijk"[: len(names)]))  # fmt: skip
    units = next((units for units in families if units[0] in side), families[-1])
    if set(units) & set(names) or len(units) < len(names) or not re.search("|".join(units), side):
        return []
    try:
        expression = read_formula(side, [*symbols, *units])
    except ArgumentError:
        return []
    places = {sp.Symbol(unit): k for k, unit in enumerate(units)}
    parts = {k: expression.diff(unit) for unit, k in places.items()}
    is_sum = expression.xreplace(dict.fromkeys(places, sp.S.Zero)) == 0
    if not is_sum or any(part.has(*places) for part in parts.values()):
        return []
    return [((k,), sp.sstr(part)) for k, part in parts.items()]


def _vector(side: str, count: int, order: int) -> list[tuple[Place, str]]:
    before, whole, after = _scaled(side)
    entries: list[tuple[Place, str]] = [((), whole)]
    for _ in range(order):
        entries = [((*place, k), part) for place, row in entries for k, part in enumerate(_inside(row, count))]
    factor = re.sub(r"(?:[·*×]|\\cdot|\\times)?\s*$", "", before)
    factor = f"({factor})" if factor.strip("-−+ ") else factor.replace("+", "")
    if factor or after:
        entries = [(place, f"{factor}({text}){after}") for place, text in entries]
    return [(tuple(sorted(place)), text) for place, text in entries]


def _scaled(side: str) -> tuple[str, str, str]:
    """Return a vector with the factors before and after it: 2(x, y), (x, y)/√(x² + y²)."""
    text = re.sub(r"(?<=[)\]⟩])\s*(?:\^T|')$", "", side.strip(" $.\t"))
    depth = start = 0
    for place, letter in enumerate(text):
        start = place if depth == 0 and letter in _OPENS else start
        depth += (letter in _OPENS) - (letter in _CLOSES)
        if depth == 0 and letter in _CLOSES and len(_parts(text[start + 1 : place], ",;")) > 1:
            return text[:start], text[start : place + 1], text[place + 1 :].removeprefix("^T")
    return text[:start], text[start:], ""


def _inside(side: str, count: int) -> list[str]:
    """Return the parts of (a, b) or [a, b]; rows end with a semicolon in [a, b; c, d]."""
    text = side.strip()
    if len(parts := _parts(text, ",")) == count > 1:
        text = f"({text})"  # 2x, 3y
    if not text or text[0] not in _OPENS or text[-1] not in _CLOSES:
        raise refusal(f"{text[:40]!r} as a vector", do=f"write {count} entries in parentheses, such as (2x, 3y)")
    rows = _parts(text[1:-1], ";")
    is_matrix = len(rows) == count and all(len(_parts(row, ",")) == count for row in rows)
    parts = [f"({row})" for row in rows] if is_matrix else [part.strip() for part in _parts(text[1:-1], ",;")]
    if len(parts) != count:
        raise refusal(
            f"a vector of {counted(len(parts), 'entry')} in {count} variables", do=f"give {count}, with commas"
        )
    return parts


def _parts(text: str, signs: str) -> list[str]:
    """Return the parts of a text between signs outside of parentheses."""
    depth, result = 0, [""]
    for letter in text:
        depth += (letter in _OPENS) - (letter in _CLOSES)
        if letter in signs and depth == 0:
            result.append("")
        else:
            result[-1] += letter
    return result


def checked_gradient(
    mine: Any, problems: Mapping[Place, AnswerProblem], check: Callable[[str, AnswerProblem], CheckedAnswer]
) -> CheckedAnswer:
    """Return the first entry that is not right, checked, else the last one, finished if all entries are present."""
    symbols = list(dict.fromkeys(problem.symbols[0] for problem in problems.values()))
    order = max(map(len, problems))
    entries = entries_of(mine, symbols, order)
    checked = [check("\n" * (number - 1) + text, problems[place]) for place, number, text in entries]
    bad = next((judgement for right in (False, None) for judgement in checked if judgement.right is right), None)
    is_complete = {place for place, _, _ in entries} >= {place for place in problems if len(place) == order}
    if bad is not None:
        return bad
    return replace(checked[-1], finished=checked[-1].finished and is_complete)
