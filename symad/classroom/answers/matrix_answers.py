"""Answers of matrix calculus: transposes, traces and determinants, compared on random matrices.

Capital letters are square matrices, small letters columns, Greek letters numbers. A derivative comes from values of
the question alone, by central differences in 60 digits; an answer with dX is compared with the change along dX.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise, product
from typing import Any, NoReturn

import sympy as sp
from mpmath import mp

from symad.classroom.answers.answer_lines import AnswerStep
from symad.classroom.answers.answer_page import AnswerLine, CheckedAnswer, Judged
from symad.classroom.answers.answer_problem import AnswerProblem, Reveal
from symad.classroom.answers.answer_statements import lines_of, sides_of
from symad.classroom.answers.answer_text import left_side
from symad.classroom.answers.mistakes import Mistake
from symad.classroom.formulas.formula_names import FUNCTIONS, LETTER_OF
from symad.classroom.formulas.read import reading
from symad.classroom.formulas.tokens import LOWERED
from symad.classroom.formulas.typesetting import ROUND, normalized
from symad.errors import ArgumentError
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
_LETTER = r"d[A-Za-z](?![a-z])|[A-Za-zα-ω](?:_\d|[₀-₉])?"
_BASE = rf"({ROUND}|(?:{_LETTER}))"
_PLAIN: list[tuple[str, Any]] = [
    (r"\\(?:mathrm|operatorname|mathbf|boldsymbol|bm)\s*\{\s*(\w+)\s*\}", r" \1 "),
    (r"\\(tr|det|log|ln)(?![a-z])", r" \1 "),
    (r"\\(?:var)?([a-z]+)(?![a-zA-Z])\s?", lambda word: LETTER_OF.get(word[1], word[0])),
    (r"\\\||\|\|", "‖"),
    (r"‖([^‖]*)‖", r"norm(\1)"),
    (r"(?<![a-zA-Z])(tr|trace|det)\s+([A-Z])(?=\s*(?:$|[-+*/)=|]))", r"\1(\2)"),
]
_TRANSPOSED = re.compile(rf"(?<![a-z]){_BASE}\s*\^\s*(?:T|\{{\s*(-?)\s*T\s*\}}|\((-?)\s*T\s*\))")
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "tr": lambda value: mp.fsum(value[k, k] for k in range(_SIZE)), "det": mp.det,
    "norm": lambda value: mp.sqrt(mp.fsum(entry**2 for entry in value)), "transposed": lambda value: value.T,
}  # fmt: skip
_FUNCTIONS |= {"trace": _FUNCTIONS["tr"]}
_WORDS = re.compile(rf"\\[a-z]+|(?:{'|'.join(sorted({*_FUNCTIONS, *FUNCTIONS}, key=len, reverse=True))})(?![a-z])")
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


def _plain(text: str) -> str:
    r"""Return a formula with a name for each function of matrices.

    >>> _plain(r"\|Ax\|^2 + x^TAX^{-T}"), _plain("tr X")
    ('norm(Ax)^2 + transposed(x) Atransposed((X)^(-1)) ', 'tr(X)')
    """
    text = normalized(text)
    for pattern, put in _PLAIN:
        text = re.sub(pattern, put, text)
    while (match := _TRANSPOSED.search(text)) is not None:
        base = f"({match[1]})^(-1)" if match[2] or match[3] else match[1]
        text = f"{text[: match.start()]}transposed({base}) {text[match.end() :]}"
    return text


def _letters(text: str) -> set[str]:
    return {letter.translate(LOWERED) for letter in re.findall(_LETTER, _WORDS.sub(" ", _plain(text)))}


def _value_of(text: str, names: Names, where: str) -> Any:
    """Return the value of a formula on matrices: its letters are symbols that do not commute."""
    symbols = {name: sp.Symbol(name, commutative=_shape(value) is None) for name, value in names.items()}
    functions = {name: sp.Function(name) for name in _FUNCTIONS}
    try:
        expression = reading(_plain(text), {**symbols, **functions}, others=False).expression
    except ArgumentError as error:
        do = "use A^T, X^{-1}, tr( ), det( ), log, numbers, capital letters for matrices and small ones for columns"
        raise ArgumentError(error.what, where=where, why=error.why, do=do) from None
    return _evaluated(expression, names, where)


def _evaluated(part: Any, names: Names, where: str) -> Any:
    def refuse(what: str) -> NoReturn:
        raise refusal(f"{what} ({where})", do="write sums and products of matrices whose shapes fit")

    if part.is_number:
        return mp.mpf(sp.N(part, _DIGITS))
    if part.is_Symbol:
        return names[part.name]
    parts = [base for argument in part.args for base in _repeated(argument)] if part.is_Mul else part.args
    values = [_evaluated(argument, names, where) for argument in parts]
    if part.is_Add:
        if len({_shape(value) for value in values}) > 1:
            refuse("a sum of two shapes")
        return reduce(operator.add, values)
    if part.is_Mul:
        return _product(values, refuse)
    name = part.func.__name__
    if part.is_Pow:
        base, exponent = values
        if _shape(exponent) is not None or (_shape(base) is not None and (_shape(base) != _SQUARE or exponent % 1)):
            refuse("an exponent")
        return base ** (exponent if _shape(base) is None else int(exponent))
    if name not in _FUNCTIONS and _shape(values[0]) is None:
        return mp.log(abs(values[0])) if name == "log" else mp.mpf(part.func(sp.Float(values[0], _DIGITS)))
    if name not in _FUNCTIONS or (name in ("tr", "trace", "det") and _shape(values[0]) != _SQUARE):
        refuse(f"{name} of another shape")
    return _FUNCTIONS[name](values[0]) if _shape(values[0]) is not None else values[0]


def _repeated(factor: Any) -> list[Any]:
    """Return x, x for the factor x^2 of a product, in which SymPy collects equal neighbours."""
    base, exponent = factor.as_base_exp()
    is_product = not base.is_commutative and exponent.is_Integer and exponent > 1
    return [base] * int(exponent) if is_product else [factor]


def _product(values: Sequence[Any], refuse: Callable[[str], NoReturn]) -> Any:
    """Return a product of numbers and matrices. A row times a column is a number: b (x^T a)."""
    scale, factors = mp.mpf(1), list[Any]()
    for value in values:
        if _shape(value) is None:
            scale *= value
        elif factors and (factors[-1].rows, value.cols) == (1, 1) and factors[-1].cols == value.rows:
            scale *= (factors.pop() * value)[0, 0]
        else:
            factors.append(value)
    for left, right in pairwise(factors):
        if left.cols != right.rows:
            refuse("a product whose shapes do not fit")
    whole = reduce(operator.mul, factors, scale)
    return whole[0, 0] if _shape(whole) == (1, 1) else whole


def _shape(value: Any) -> tuple[int, int] | None:
    return (value.rows, value.cols) if isinstance(value, mp.matrix) else None


def _names(question: str, x: str, seed: int) -> dict[str, Any]:
    """Return random values for the letters of a question: matrices, columns, numbers; I is the unit matrix."""
    source, values = random.Random(seed), dict[str, Any]()
    for letter in sorted(_letters(question) | {x, f"d{x}"}):
        entries = [mp.mpf(source.randrange(-(10**9), 10**9)) / 10**9 for _ in range(_SIZE**2)]
        named = letter.removeprefix("d")[:1]
        columns = _SIZE if named.isupper() else 1
        is_number = not named.isascii()
        values[letter] = entries[0] if is_number else mp.matrix(_SIZE, columns)
        for k in range(0 if is_number else _SIZE * columns):
            values[letter][k // columns, k % columns] = entries[k] + 2 * (k % columns == k // columns)
    return {**values, "I": mp.eye(_SIZE)}


def _change(question: str, names: Names, x: str, along: Any) -> Any:
    """Return the change of a formula in a direction by a central difference."""
    moved = ({**names, x: names[x] + sign * _STEP * along} for sign in (1, -1))
    up, down = (_value_of(question, at, "the question") for at in moved)
    return (up - down) * (1 / (2 * _STEP))


def _derivative(question: str, names: Names, x: str) -> Any:
    """Return the derivative of a number in the shape of x, or of a column in a column; refuse others."""
    variable, value = names[x], _value_of(question, names, "the question")
    if _shape(value) is not None and (value.cols, variable.cols) != (1, 1):
        raise refusal("the derivative of a matrix in a matrix", do=f"write the differential, with d{x} in it")
    rows, columns = (variable.rows, variable.cols) if _shape(value) is None else (value.rows, _SIZE)
    slopes = mp.matrix(rows, columns)
    for j, k in product(range(variable.rows), range(variable.cols)):
        unit = mp.zeros(variable.rows, variable.cols)
        unit[j, k] = 1
        place = (j, k) if _shape(value) is None else (slice(None), j)
        slopes[place] = _change(question, names, x, unit)
    return slopes


def _difference(text: str, where: str, question: str, x: str, seed: int) -> str:
    """Return the difference of a side from the derivative on random matrices, "" if there is none."""
    with mp.workdps(_DIGITS):
        names = _names(question, x, seed)
        written = _value_of(text, names, where)
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
            return f"it has the shape {_shape(written) or 'of a number'}, not {_shape(expected) or 'of a number'}"
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
