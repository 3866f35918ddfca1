"""Read formulas of matrices, and infer the shapes of their letters.

Capital letters are matrices, small letters columns, Greek letters numbers; I is the unit matrix. A shape is a pair of
names of sizes; the size "1" is that of columns and numbers. After a comma a question may say that a matrix is
symmetric (A = A^T), or that the entries of a column have the sum 1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import sympy as sp

from symad.classroom.formulas.formula_names import FUNCTIONS, LETTER_OF
from symad.classroom.formulas.read import named_left, reading
from symad.classroom.formulas.tokens import LOWERED
from symad.classroom.formulas.typesetting import ROUND, normalized
from symad.display.notation import Determinant, Norm, Ones, Total, Trace, Transposed
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

_MARKS = re.compile(
    r"(?<=[A-Za-df-z)\]}])\s*\^\{?\s*-?\s*T(?![a-z])|ᵀ|⊤|\\\||‖|\|\|[^|]+\|\||(?<![a-z])(?:tr|trace|det|softmax|diag)(?![a-z])"
)
_LETTER = r"d[A-Za-z](?![a-z])|[A-Za-zα-ω](?:_\d|[₀-₉])?"
_DEEP = rf"\((?:[^()]|\((?:[^()]|{ROUND})*\))*\)"
_BASE = rf"((?:softmax|diag)\s*{_DEEP}|{_DEEP}|(?:{_LETTER}))"
_PLAIN: list[tuple[str, Any]] = [
    (r"[ᵀ⊤]", "^T"),
    (r"⁻\^T", "^{-T}"),
    (r"\\(?:mathrm|operatorname|mathbf|boldsymbol|bm|text)\s*\{\s*(\w+)\s*\}", r" \1 "),
    (r"\\(tr|det|log|ln)(?![a-z])", r" \1 "),
    (r"\\(?:var)?([a-z]+)(?![a-zA-Z])\s?", lambda word: LETTER_OF.get(word[1], word[0])),
    (rf"(?<![a-zA-Z])inv\s*({_DEEP})", r"(\1^{-1})"),
    (r"\\\||\|\|", "‖"),
    (r"‖([^‖]*)‖(?:_(?:F|2|\{[F2]\}))?", r"norm(\1)"),
    (r"(?<![a-zA-Z])(tr|trace|det)\s+([A-Z])(?=\s*(?:$|[-+*/)=|]))", r"\1(\2)"),
]
_TRANSPOSED = re.compile(rf"(?<![a-z]){_BASE}\s*\^\s*(?:T|\{{\s*(-?)\s*T\s*\}}|\((-?)\s*T\s*\))")
_OF_ONES = re.compile(r"transposed\(([a-z])\)\s*1(?![\d.])")  # y^T 1, where 1 is a column of ones
HEADS: dict[str, Any] = {
    "tr": Trace, "trace": Trace, "det": Determinant, "norm": Norm, "transposed": Transposed, "sum": Total,
    "softmax": sp.Function("softmax"), "diag": sp.Function("diag"),
}  # fmt: skip
_WORDS = re.compile(rf"\\[a-z]+|(?:{'|'.join(sorted({*HEADS, *FUNCTIONS}, key=len, reverse=True))})(?![a-z])")
_SYMMETRIC = re.compile(r"\s*([A-Z])\s*(?:=\s*\1\s*\^\{?T\}?|\^\{?T\}?\s*=\s*\1|(?:is\s+)?symmetric)\s*")
_ONE = re.compile(r"\s*(?:sum\s*\(?\s*([a-z])\s*\)?|1\s*\^\{?T\}?\s*([a-z])|([a-z])\s*\^\{?T\}?\s*1)\s*=\s*1\s*")

Shape = tuple[str, str]
NUMBER: Shape = ("1", "1")
ONES = Ones("1", commutative=False)  # a column of ones


def is_of_matrices(f: Any, x: Any, mine: Any) -> bool:
    """Whether a question has matrices: by its signs, or because the answer contains dX of a capital X.

    >>> is_of_matrices("x^T A x", "x", "2Ax"), is_of_matrices("X^{-1}", "X", "-1/X^2"), is_of_matrices("x^2", "x", "2x")
    (True, False, False)
    """
    if not (isinstance(f, str) and isinstance(x, str) and len(x) == 1 and x != "T"):
        return False
    by_change = isinstance(mine, str) and x.isupper() and re.search(rf"(?<![A-Za-z])d{x}", mine) is not None
    return by_change or _MARKS.search(normalized(f)) is not None


def with_conditions(text: str) -> tuple[str, dict[str, str]]:
    """Return a question without the conditions behind its commas, and what they say of letters.

    >>> with_conditions("f(x) = x^T A x, A = A^T")
    ('x^T A x', {'A': 'symmetric'})
    """
    formula, *conditions = re.split(r",|\\quad|;|\b(?:with|where)\b", normalized(text))
    said: dict[str, str] = {}
    for condition in filter(str.strip, conditions):
        if (match := _SYMMETRIC.fullmatch(condition)) is not None:
            said[match[1]] = "symmetric"
        elif (match := _ONE.fullmatch(condition)) is not None:
            said[match[1] or match[2] or match[3]] = "sum 1"
        else:
            raise refusal(f"the condition {condition.strip()!r}", do="write A = A^T or sum(y) = 1")
    left = named_left(formula)
    return formula[left.end() if left else 0 :].strip(), said


def plain_text(text: str) -> str:
    r"""Return a formula with a name for each function of matrices.

    >>> plain_text(r"\|Ax\|^2 + x^TAX^{-T}"), plain_text("tr X")
    ('norm(Ax)^2 + transposed(x) Atransposed((X)^(-1)) ', 'tr(X)')
    """
    text = normalized(text)
    for pattern, put in _PLAIN:
        text = re.sub(pattern, put, text)
    text = re.sub(r"(?<![\d.])1\s*\^\s*\{?T\}?\s*([a-z])(?![a-z])", r"transposed(\1) 1", text)
    while (match := _TRANSPOSED.search(text)) is not None:
        base = f"({match[1]})^(-1)" if match[2] or match[3] else match[1]
        text = f"{text[: match.start()]}transposed({base}) {text[match.end() :]}"
    return _OF_ONES.sub(r"sum(\1)", text)


def letters(text: str) -> set[str]:
    """Return the letters of a formula."""
    return {letter.translate(LOWERED) for letter in re.findall(_LETTER, _WORDS.sub(" ", plain_text(text)))}


def read_matrices(text: str, names: set[str], where: str) -> sp.Expr:
    """Return a formula whose letters are symbols that do not commute, but for numbers."""
    symbols = {name: sp.Symbol(name, commutative=is_number(name)) for name in names}
    functions = {name: sp.Function(name) for name in HEADS}
    try:
        expression = reading(plain_text(text), {**symbols, **functions}, others=False, functions=False).expression
    except ArgumentError as error:
        do = "use A^T, X^{-1}, tr( ), det( ), log, numbers, capital letters for matrices and small ones for columns"
        raise ArgumentError(error.what, where=where, why=error.why, do=do) from None
    return _with_heads(expression)


def _with_heads(part: Any) -> Any:
    if not part.args:
        return part
    parts = [_with_heads(argument) for argument in part.args]
    return HEADS.get(part.func.__name__, part.func)(*parts)


def is_number(name: str) -> bool:
    """Whether a letter stands for a number: a Greek one."""
    return not name.removeprefix("d")[:1].isascii()


def repeated(factor: Any) -> list[Any]:
    """Return x, x for the factor x^2 of a product, in which SymPy collects equal neighbours."""
    base, exponent = factor.as_base_exp()
    is_product = not base.is_commutative and exponent.is_Integer and exponent > 1
    return [base] * int(exponent) if is_product else [factor]


class Shapes:
    """The shapes of letters, so that all sums and products fit; sizes that have to be equal have one name."""

    def __init__(self) -> None:
        self._same: dict[str, str] = {}

    def size(self, name: str) -> str:
        """Return the name of a size."""
        while name in self._same:
            name = self._same[name]
        return name

    def _join(self, first: str, second: str, what: str) -> None:
        first, second = sorted((self.size(first), self.size(second)))
        if first != second:
            if first == "1":
                raise refusal(what, do="write sums and products of matrices whose shapes fit")
            self._same[second] = first

    def letter(self, name: str) -> Shape:
        """Return the shape of a letter."""
        name = name.removeprefix("d") if len(name) > 1 and name[1].isalpha() else name
        if is_number(name):
            return NUMBER
        columns = "1" if name[:1].islower() or name == ONES.name else f"{name} columns" if name != "I" else "I rows"
        return self.size(f"{name} rows"), self.size(columns)

    def of(self, part: Any, where: str) -> Shape:
        """Return the shape of a formula; ArgumentError if it has none."""
        if part.is_Symbol:
            return self.letter(part.name)
        if not part.args:
            return NUMBER
        if part.is_Mul:
            return self._product([base for factor in part.args for base in repeated(factor)], where)
        shapes = [self.of(argument, where) for argument in part.args]
        rows, columns = shapes[0]
        if part.is_Add:
            for first, second in (pair for shape in shapes[1:] for pair in zip(shapes[0], shape, strict=True)):
                self._join(first, second, f"a sum of two shapes ({where})")
        if isinstance(part, Transposed):
            return self.size(columns), self.size(rows)
        is_power = part.is_Pow and (rows, columns) != NUMBER
        if isinstance(part, Trace | Determinant) or is_power:
            self._join(rows, columns, f"a power, trace or determinant, whose shapes do not fit ({where})")
        if isinstance(part, Trace | Determinant | Norm | Total):
            return NUMBER
        return self.size(rows), self.size(rows if part.func.__name__ == "diag" else columns)

    def _product(self, factors: Sequence[Any], where: str) -> Shape:
        kept: list[Shape] = []
        for shape in (self.of(factor, where) for factor in factors):
            if shape == NUMBER:
                continue
            if kept and kept[-1][0] == "1" == shape[1]:  # a row times a column is a number: b (x^T a)
                self._join(kept.pop()[1], shape[0], f"a product whose shapes do not fit ({where})")
            else:
                kept.append(shape)
        for left, right in pairwise(kept):
            self._join(left[1], right[0], f"a product whose shapes do not fit ({where})")
        return (self.size(kept[0][0]), self.size(kept[-1][1])) if kept else NUMBER


def groups(factors: Sequence[Any], shapes: Shapes) -> Iterator[list[Any]]:
    """Yield the factors of a product in groups: those that are numbers, among them rows times columns, and the rest."""
    kept: list[tuple[Shape, list[Any]]] = []
    for factor in factors:
        shape = shapes.of(factor, "")
        if shape == NUMBER:
            yield [factor]
            continue
        kept.append((shape, [factor]))
        while len(kept) > 1 and kept[-1][0][1] == "1" and kept[-2][0][0] == "1":
            (_, before), (_, last) = kept[-2:]
            del kept[-2:]
            yield [*before, *last]
    start = 0
    for place in range(len(kept)):  # x^T A x
        if kept[start][0][0] == "1" == kept[place][0][1]:
            yield [factor for _, part in kept[start : place + 1] for factor in part]
            start = place + 1
    if start < len(kept):
        yield [factor for _, part in kept[start:] for factor in part]


class MatrixFormula:
    """A formula of matrices, its variable, the shapes of its letters, and what it says of them."""

    def __init__(self, text: str, x: str) -> None:
        formula, self.said = with_conditions(text)
        self.variable, self.names, self.shapes = x, letters(formula) | {x, f"d{x}"}, Shapes()
        self.f = read_matrices(formula, self.names, "the question")
        self.shape = self.shapes.of(self.f, "the question")
        self.x, self.dx = (sp.Symbol(name, commutative=False) for name in (x, f"d{x}"))

    @property
    def is_number(self) -> bool:
        """Whether f is a number, so that there is a gradient."""
        return self.shape == NUMBER
