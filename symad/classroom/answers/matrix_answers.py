"""Answers of matrix calculus: transposes, traces and determinants, compared on random matrices.

Capital letters are square matrices, small letters columns, Greek letters numbers. A derivative comes from values of
the question alone, by central differences in 60 digits; an answer with dX is compared with the change along dX.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

import sympy as sp
from mpmath import mp

from symad.classroom.answers.answer_lines import AnswerStep
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer, Judged
from symad.classroom.answers.answer_problem import AnswerProblem, Reveal
from symad.classroom.answers.answer_statements import lines_of, sides_of
from symad.classroom.answers.answer_text import left_side
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.formulas.typesetting import normalized
from symad.tracing.calling.user_place import refusal

_SIZE = 3  # rows of the random matrices
_SQUARE = (_SIZE, _SIZE)
_POINTS = 3
_DIGITS = 60
_STEP = mp.mpf(10) ** -20
_AGREED = mp.mpf(10) ** -25
_MARKS = re.compile(
    r"(?<=[A-Za-df-z)\]}])\s*\^\{?\s*-?\s*T(?![a-z])|\\\||‖|\|\|[^|]+\|\||(?<![a-z])(?:tr|trace|det)(?![a-z])"
)
_LEFT = re.compile(r"\s*(?:∇|\\nabla|d|∂|\\frac\s*\{\s*(?:\\partial|d))")
_PLAIN = [
    (r"\\(?:quad|mathrm|operatorname|mathbf|boldsymbol)", " "),
    (r"\\\||\|\|", "‖"), (r"\\times|·", "*"), (r"\\(log|ln|det|tr|lambda)", r"\1 "),
    (r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"), (r"\\frac\s*(\d)\s*(\d)", r"(\1/\2)"), (r"[−–]", "-"),
    (r"[{\[]", "("), (r"[}\]]", ")"), (r"²", "^2"), (r"⁻¹", "^(-1)"), (r"½", "(1/2)"),
]  # fmt: skip
_LETTER = r"d[A-Z](?![a-z])|d[a-z](?![a-z])|[A-Za-zα-ω](?:_\d|[₀-₉])?"
_TOKENS = re.compile(rf"\s*(log|ln|det|trace|tr|lambda|{_LETTER}|\d+(?:\.\d+)?|[-+*/^()‖])")
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tr": lambda value: mp.fsum(value[k, k] for k in range(_SIZE)), "det": mp.det,
    "log": lambda value: mp.log(abs(value)),
}  # fmt: skip
_FUNCTIONS |= {"trace": _FUNCTIONS["tr"], "ln": _FUNCTIONS["log"]}
Names = Mapping[str, Any]


def is_of_matrices(f: Any, x: Any, mine: Any) -> bool:
    """Whether a question has matrices: by its signs, or because the answer contains dX of a capital X.

    >>> is_of_matrices("x^T A x", "x", "2Ax"), is_of_matrices("X^{-1}", "X", "-1/X^2"), is_of_matrices("x^2", "x", "2x")
    (True, False, False)
    """
    if not (isinstance(f, str) and isinstance(x, str) and len(x) == 1 and x != "T"):
        return False
    by_change = isinstance(mine, str) and x.isupper() and re.search(rf"(?<![A-Za-z])d{x}", mine) is not None
    return by_change or _MARKS.search(normalized(f)) is not None


class _MatrixFormula:
    """The value of a formula by recursive descent: sums, products, powers, functions of the next factor."""

    def __init__(self, text: str, names: Names, where: str) -> None:
        self.where, self.names, self.words, self.in_norm = where, names, _words(text, where), False
        self.value = self.sum()
        if self.words[0]:
            self.refuse(repr(self.words[0]))

    def refuse(self, what: str) -> NoReturn:
        do = "use A^T, X^{-1}, tr( ), det( ), log, numbers, capital letters for matrices and small ones for columns"
        raise refusal(f"{what} ({self.where})", do=do)

    def take(self, *words: str) -> str:
        return self.words.pop(0) if self.words[0] in words else ""

    def sum(self) -> Any:
        value = -self.product() if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            term = self.product()
            if _shape(term) != _shape(value):
                self.refuse("a sum of two shapes")
            value = value + term if sign == "+" else value - term
        return value

    def product(self) -> Any:
        value = self.power()
        while self.words[0] not in ("", "+", "-", ")") and not (self.words[0] == "‖" and self.in_norm):
            divides, factor = self.take("*", "/") == "/", self.power()
            if divides and _shape(factor) is not None:
                self.refuse("a division by a matrix")
            if None not in (_shape(value), _shape(factor)) and value.cols != factor.rows:
                self.refuse("a product whose shapes do not fit")
            value = value * (1 / factor) if divides else value * factor
            value = value[0, 0] if _shape(value) == (1, 1) else value
        return value

    def power(self) -> Any:
        value = self.operand()
        while self.take("^"):
            opened, negative = self.take("("), self.take("-")
            exponent = self.words[0] and self.words.pop(0)
            if exponent == "T" and _shape(value) is not None:
                value, exponent = value.T, "1"
            is_plain = exponent == "1" and not negative
            fits = is_plain or (exponent.isdigit() and _shape(value) in (None, _SQUARE))
            if not fits or (opened and not self.take(")")):
                self.refuse("an exponent")
            value = value if is_plain else value ** int(negative + exponent)
        return value

    def operand(self) -> Any:
        word = self.words[0] and self.words.pop(0)
        if word[:1].isdigit():
            return mp.mpf(word)
        if word in _FUNCTIONS:
            value = self.operand()
            if _shape(value) != _SQUARE if word in ("tr", "trace", "det") else _shape(value) is not None:
                self.refuse(f"{word} of another shape")
            if self.words[0] not in ("", "+", "-", "*", "/", ")", "‖") and word[:1] in "td" and not self.closed:
                self.refuse(f"what follows {word}, without parentheses")
            return _FUNCTIONS[word](value)
        if word not in ("(", "‖"):
            self.closed = False
            return self.names[word] if word in self.names else self.refuse(repr(word) if word else "the end")
        before, self.in_norm = self.in_norm, word == "‖"
        value = self.sum()
        self.in_norm, self.closed = before, True
        if not self.take(")" if word == "(" else word):
            self.refuse(f"{word!r} that is never closed")
        return value if word == "(" else mp.sqrt(mp.fsum(entry**2 for entry in value))

    closed = False  # whether the last operand was in parentheses


def _words(text: str, where: str) -> list[str]:
    text = normalized(text)
    for pattern, put in _PLAIN:
        text = re.sub(pattern, put, text)
    words, place = list[str](), 0
    while text[place:].strip():
        match = _TOKENS.match(text, place)
        if match is None:
            raise refusal(f"{text[place:].strip()[:20]!r} in a formula of matrices ({where})", do="write it plainly")
        words.append(match[1])
        place = match.end()
    return [*words, ""]


def _shape(value: Any) -> tuple[int, int] | None:
    return (value.rows, value.cols) if isinstance(value, mp.matrix) else None


def _names(question: str, x: str, seed: int) -> dict[str, Any]:
    """Return random values for the letters of a question: matrices, columns, numbers; I is the unit matrix."""
    source, values = random.Random(seed), dict[str, Any]()
    for letter in sorted({word for word in _words(question, "the question") if word[:1].isalpha()} | {x, f"d{x}"}):
        entries = [mp.mpf(source.randrange(-(10**9), 10**9)) / 10**9 for _ in range(_SIZE**2)]
        named = letter.removeprefix("d")[:1]
        columns = _SIZE if named.isupper() else 1
        is_number = letter == "lambda" or not named.isascii()
        values[letter] = entries[0] if is_number else mp.matrix(_SIZE, columns)
        for k in range(0 if is_number else _SIZE * columns):
            values[letter][k // columns, k % columns] = entries[k] + 2 * (k % columns == k // columns)
    return {**values, "I": mp.eye(_SIZE)}


def _change(question: str, names: Names, x: str, along: Any) -> Any:
    """Return the change of a formula in a direction by a central difference."""
    moved = ({**names, x: names[x] + sign * _STEP * along} for sign in (1, -1))
    up, down = (_MatrixFormula(question, at, "the question").value for at in moved)
    return (up - down) * (1 / (2 * _STEP))


def _derivative(question: str, names: Names, x: str) -> Any:
    """Return the derivative of a number in the shape of x, or of a column in a column; refuse others."""
    variable, value = names[x], _MatrixFormula(question, names, "the question").value
    if _shape(value) is not None and (value.cols, variable.cols) != (1, 1):
        raise refusal("the derivative of a matrix in a matrix", do=f"write the differential, with d{x} in it")
    slopes = mp.matrix(
        variable.rows if _shape(value) is None else value.rows, variable.cols if _shape(value) is None else _SIZE
    )
    for j in range(variable.rows):
        for k in range(variable.cols):
            unit = mp.zeros(variable.rows, variable.cols)
            unit[j, k] = 1
            slope = _change(question, names, x, unit)
            if _shape(value) is None:
                slopes[j, k] = slope
            else:
                slopes[:, j] = slope
    return slopes


def _difference(text: str, where: str, question: str, x: str, seed: int) -> str:
    """Return the difference of a side from the derivative on random matrices, "" if there is none."""
    with mp.workdps(_DIGITS):
        names = _names(question, x, seed)
        written = _MatrixFormula(text, names, where).value
        by_change = re.search(rf"d{x}(?![A-Za-z])", text) is not None
        expected = _change(question, names, x, names[f"d{x}"]) if by_change else _derivative(question, names, x)
        if _are_equal(written, expected):
            return ""
        if not by_change and _are_equal(written, expected.T):
            if expected.cols == 1:
                return ""  # a row for a column
            do = "write it in the shape of the variable, and a Jacobian with a row for each result"
            raise refusal(f"{where}, which is the transposed derivative", why="books have two layouts", do=do)
        if _shape(written) != _shape(expected):
            return f"it has the shape {_shape(written)}, and should have {_shape(expected)}"
        shown = [mp.nstr(part[0, 0] if _shape(part) else part, 6) for part in (written, expected)]
        return f"on random matrices its first entry is {shown[0]}, and that of the right one {shown[1]}"


def _are_equal(left: Any, right: Any) -> bool:
    if _shape(left) != _shape(right):
        return False
    pairs = zip(left, right, strict=True) if _shape(left) else [(left, right)]
    return all(abs(a - b) <= _AGREED * (1 + abs(b)) for a, b in pairs)


def _sides(mine: Any) -> Iterator[tuple[int, str]]:
    for number, line in lines_of(mine):
        if not isinstance(line, str):
            raise refusal(f"line {number} of type {type(line).__name__}", do="give a text")
        sides = [text for text, _, _ in sides_of(line, 0, len(line))]
        is_about = len(sides) > 1 and (left_side(sides[0]) is not None or _LEFT.match(sides[0]) is not None)
        yield from ((number, side.strip(" $.")) for side in sides[is_about:])


def checked_matrices(mine: Any, f: str, x: str, order: int, reveal: Reveal) -> CheckedAnswer:
    """Return an answer to a question of matrix calculus, checked.

    >>> [checked_matrices(mine, "tr(A X)", "X", 1, "always").right for mine in ("A^T", "A^T + X")]
    [True, False]
    """
    if order != 1:
        raise refusal(f"order={order} of a formula of matrices", do="ask for the first derivative")
    symbols = (sp.Symbol(x, real=True),)
    problem = AnswerProblem(sp.Symbol(f), symbols, {}, {(1,): [sp.S.One]}, 1, False, "f", reveal=reveal)
    steps: list[Judged] = []
    for number, text in _sides(mine):
        differences = [_difference(text, f"line {number}", f, x, seed) for seed in range(_POINTS)]
        words = next(filter(None, differences), "")
        steps.append(Judged(AnswerStep(number, text, sp.Symbol(text)), not words, {}, {}, {}))
        if words:
            mistake = Mistake("another value", (words,))
            return CheckedAnswer(problem, tuple(steps), False, True, AnswerLine(number, text), mistakes=(mistake,))
    if not steps:
        raise refusal("an empty answer", do="write a line such as '2Ax'")
    return CheckedAnswer(problem, tuple(steps), True)
