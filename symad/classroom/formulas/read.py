"""Read typed formulas with a tokeniser and a parser of our own. Only known names have a meaning.

`read_formula` takes what people write (2x, 3x^2 v, x sin x, eps_1 eps_2, f''(x), LaTeX) and SymPy's own notation.
Numbers stay exact: 0.1 is 1/10. Ambiguous text is refused with both readings, and expressions that would take too long
are refused: every refusal is an ArgumentError with the column and the advice. docs/notation.md has all notations.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any, cast

import sympy as sp

from codegen.records import dataclass
from symad.classroom.formulas.bars import with_bars
from symad.classroom.formulas.cases import cases_of, piecewise
from symad.classroom.formulas.formula_names import (
    FUNCTIONS,
    FormulaValue,
    Name,
    Names,
    applied,
    constant,
    declared,
    known,
    power,
    product,
    reciprocal,
    total,
)
from symad.classroom.formulas.glued_words import parted
from symad.classroom.formulas.latex_words import plain_words
from symad.classroom.formulas.name_readings import NameReadings
from symad.classroom.formulas.tokens import LENGTH_LIMIT, DerivativeSign, Token, asked_back, refuse, scanned
from symad.classroom.formulas.typesetting import normalized
from symad.errors import ArgumentError, NotationWarning

_LEFT_SIDE = re.compile(
    r"[\s$]*(?:\\(?:var)?)?([^\W\d_]|(?<=[\\r])[a-z]+)\s*(\(\s*\w+\s*(?:,\s*\w+\s*)*\))?\s*(?::?=(?!=)|≔)"
)


def named_left(text: str) -> re.Match[str] | None:
    r"""Return the left side of f(x) = ... or \varphi = ...; None for \sin(xy) = x, which is an equation."""
    left = _LEFT_SIDE.match(text)
    return None if left is None or left[1] in FUNCTIONS else left


@dataclass(frozen=True)
class FormulaReading:
    """The expression of a formula, and the assumptions of its reading.

    `derives` says whether something is differentiated in it, as in (x^2)' sin x, and `derivative` whether it is nothing
    but such a derivative. `decimals` has symbols for decimal numbers, where they are kept apart, each with its value
    and half a unit of its last place; `rounded` is the reading in which they are.
    """

    expression: sp.Expr
    notes: tuple[str, ...] = ()
    derives: bool = False
    derivative: bool = False
    decimals: Mapping[sp.Symbol, tuple[sp.Rational, sp.Rational]] = field(default_factory=dict)
    rounded: FormulaReading | None = None


def read_formula(text: str, names: Names = (), **options: Any) -> sp.Expr:
    """Return the SymPy expression of a typed formula. It is parsed, never evaluated as Python.

    `names` declares symbols, undefined functions ("f(x)"), and what else a name stands for ({"c": 3}). Other names
    become symbols where they are no function and no constant; with `others=False` they are refused. Declared names say
    where a word is a product: with x and v declared, `xv` is `x*v`. `f'[v]` is the derivative at `point`. The options
    are those of `Cursor`. NotationWarning names the assumptions: a decimal comma, or a product such as `ωt` with an
    undeclared letter.

    >>> read_formula("2x^3 + x sin(x)/2")
    2*x**3 + x*sin(x)/2
    >>> read_formula("f(x) + f'(x) v ε₁", names=["f(x)", "x", "v", "eps_1"])
    eps_1*v*Derivative(f(x), x) + f(x)
    >>> read_formula(r"\\frac{d}{dx} \\left(\\sin^2 x\\right) + |x|")
    2*sin(x)*cos(x) + Abs(x)
    """
    formula = reading(text, declared(names), **options)
    for note in formula.notes:
        warnings.warn(note, NotationWarning, stacklevel=2)
    return formula.expression


def reading(
    text: str, names: Mapping[str, Name], part: tuple[int, int | None] = (0, None), **options: Any
) -> FormulaReading:
    """Return the reading of a text, or of a part of it. f(x) = ... and y = ... stand for their right sides.

    The options are those of `Cursor`.

    >>> reading("f(x) = 3,5x", {}).notes
    ('3,5 is read as 3.5: a decimal comma',)
    """
    if not isinstance(text, str):
        raise ArgumentError(f"a {type(text).__name__} as a formula", do="give a str such as 'x**2*sin(x)'")
    (start, end), letter, is_typeset = part, "", part != (0, None) or "\\" in text
    if part == (0, None):
        text = normalized(text) if len(text) <= LENGTH_LIMIT else text
        if left := named_left(text):
            letter = left[1]
            start = 0 if letter in names else left.end()
    if (cases := cases_of(text[start:end])) is not None:
        return _of_cases(text, cases, names, **options)
    words, parser = scanned(text, start, end), _Parser(text, names, **options)
    plain = plain_words(text, words, is_typeset)
    factors, parser.products = parted(text, plain, names, others=parser.others, bare=parser.bare)
    parser.tokens = with_bars(text, factors)
    if start and letter and any(word.kind == "name" and word.text == letter for word in words):
        refuse(text, start - 1, "'=' between two sides", "give one side; an equation is no expression")
    value = parser.whole()
    notes, derives = tuple(parser.notes()), parser.derived is not None
    return FormulaReading(value.expression, notes, derives, value is parser.derived, parser.decimals or {})


def _of_cases(text: str, cases: list[tuple[str, str]], names: Mapping[str, Name], **options: Any) -> FormulaReading:
    parts: list[FormulaReading] = []

    def read(cell: str) -> sp.Expr:
        parts.append(reading(cell, names, **options))
        return parts[-1].expression

    whole, notes = piecewise(text, cases, read), tuple(note for part in parts for note in part.notes)
    return FormulaReading(whole, notes, decimals={key: size for part in parts for key, size in part.decimals.items()})


class _Parser(NameReadings):
    """Recursive descent by precedence, from sums to names, at most DEPTH_LIMIT deep."""

    def whole(self) -> FormulaValue:
        """Return the value of the whole text."""
        if self.token.kind == "end":
            self.refuse(self.token, "an empty formula", "give a formula such as x**2*sin(x)")
        value = self.sum()
        if self.token.kind != "end":
            self.refuse_token()
        if self.decimal and self.separates:
            what = f"the comma in {self.notes()[0].split()[0]} beside one between arguments"
            self.refuse(self.decimal, what, "write a decimal point", "one of them may be a decimal comma")
        return value

    def notes(self) -> Sequence[str]:
        """Return the assumptions made in reading."""
        if self.decimal is None:
            return [*self.products, *self.inverses]
        place = self.tokens.index(self.decimal)
        whole = f"{self.decimal.text},{self.tokens[place + 2].text}"
        return [f"{whole} is read as {whole.replace(',', '.')}: a decimal comma", *self.products, *self.inverses]

    def sum(self) -> FormulaValue:
        start, terms = self.token, [self._product()]
        while sign := self.accept("+", "-"):
            term = self._product()
            terms.append(term if sign.text == "+" else self._negative(sign, term))
        return self.computed(start, lambda: total(terms))

    def _negative(self, sign: Token, term: FormulaValue) -> FormulaValue:
        return self.computed(sign, lambda: product([constant(sp.Integer(-1)), term]))

    def _product(self) -> FormulaValue:
        sign = self.signs()
        start, factors = self.token, [self.power()]
        fraction: Token | None = None  # a/b c may be (a/b) c or a/(b c)
        while True:
            if operator := self.accept("*", "/"):
                minus, at = self.signs(), self.token
                factor = self.power()
                factor = self._negative(at, factor) if minus else factor
                both = factor.literal and factors[-1].literal
                tight = not (operator.spaced or at.spaced) and self.token.kind != "operator"
                apart = self.token.spaced and (both or tight)  # 1/2 x and v/x² ε
                fraction = operator if operator.text == "/" and not apart else None
                if operator.text == "/":
                    factor = self.computed(operator, partial(reciprocal, factor))
                factors.append(factor)
            elif self._goes_on(start):
                if fraction:
                    self._ask_about_fraction(start, fraction)
                factors.append(self.power())
            else:
                value = self.computed(start, lambda: product(factors))
                return self._negative(start, value) if sign else value

    def _goes_on(self, start: Token) -> bool:
        """Whether a factor follows without a sign."""
        after = self.after
        if self.token.kind == "number" and self.tokens[self.position - 1].text in (")", "]"):
            return self._is_factor_after_parenthesis(start, after)
        is_glued = after.kind == "name" and not after.spaced
        before = ["²" if word.kind == "power" else word.text for word in self.tokens[: self.position][-3:]]
        is_chain = is_glued and (before[1:] == [")", "²"] or before[:2] == [")", "**"])  # (x + 1)² 2x
        power = self.token.kind == "number" and (is_chain or (self.token.spaced and after.text == "**"))  # x 2^x
        return power or (self.starts() and self.token.kind not in ("number", "fraction"))

    def _is_factor_after_parenthesis(self, start: Token, after: Token) -> bool:
        """Whether a number behind a parenthesis is a factor: (x+3)2x. The sign of a power may have been lost there."""
        has_powers = any(word.kind == "power" or word.text == "**" for word in self.tokens)
        if self.token.spaced or (has_powers and after.kind == "name" and not after.spaced):
            return True
        number, written = self.token.text, self.written(start)
        self.two(self.token, f"{number!r} behind a parenthesis", f"{written}*{number}", f"{written}^{number}")

    def _ask_about_fraction(self, start: Token, division: Token) -> None:
        """Refuse a factor without a sign after a division; the message has both readings."""
        at, above, below = self.token, self.written(start, division), self.written(division)[1:].strip()
        factor = self.rest_from(at)
        what = "a factor without a sign after a division (write parentheses)"
        asked_back(self.text, at.column, what, f"{above}/({below}*{factor})", f"({above}/{below})*{factor}")

    def power(self) -> FormulaValue:
        start, base = self.token, self._postfix()
        if self.token.kind == "power" and self.is_degree_of_root():
            if self.token.spaced:
                return base
            if start.kind == "number":
                number, degree = start.text, self.token.text
                self.two(self.token, "a root behind a power", f"{number}^{degree}*√( )", f"{number}*( )^(1/{degree})")
        if self.token.kind == "power":
            written, exponent_sign = self.written(start), self.take()
            base = self.computed(exponent_sign, lambda: power(base, constant(self.integer(exponent_sign))))
            if self.token.kind == "bang":
                self._ask_about_factorial(written, self.written(exponent_sign), exponent_sign.text)
            return base
        if operator := self.accept("**"):
            written, at = self.written(start, operator), self.token
            if start.text == "(" and (order := re.match(r"\^\{\(([1-9])\)\}", self.text[operator.column :])):
                self.two(at, f"{written}^{{({order[1]})}}", written + "'" * int(order[1]), f"{written}^{order[1]}")
            exponent = self.deeper(self._exponent, lists=self.lists)
            self._check_exponent_ends(start, operator, at)
            if self.tokens[self.position - 1].kind == "bang":
                self.position -= 1
                self._ask_about_factorial(written, "^" + self.written(at), self.written(at))
            return self.computed(operator, lambda: power(base, exponent))
        return base

    def _check_exponent_ends(self, base: Token, operator: Token, exponent: Token) -> None:
        """Refuse an exponent that may continue: e^2x, x^ny, x^1/2. In x^2y, y is a factor."""
        last = self.tokens[self.position - 1]
        if exponent.kind == "name" and exponent.text == "T" and known(self.names, "T") is None:
            self.refuse(exponent, "a transposed matrix", "give a formula of numbers", "^T has one meaning")
        written = self.written(exponent)
        signed = (
            base.text == "e" and self.tokens[self.position - 1] is not operator and written.startswith(("-", "−", "–"))
        )
        half = self.at("/") and not self.token.spaced and (written.lstrip("-−–") == "1" or signed)
        is_factor = self._is_function(self.token) or self.is_epsilon(self.token)
        glued = self.token.kind == "name" and self.token.column == last.end and not is_factor
        number = last.kind == "number" and exponent.kind != "name"
        takes = not number or base.kind == "number" or base.text == "e" or self.token.text in ("n", "m", "k")
        is_open = half or (glued and takes and last.text != ")")
        if self.text[operator.end - 1 : operator.end] not in "^*" or not is_open:
            return
        rest = self.rest_from(self.token)
        before = self.text[base.column : operator.column].strip()
        first = f"{before}^({written})*{rest}" if glued else f"{before}^{written} {rest}"
        self.two(exponent, f"the exponent {written}{rest}", f"{before}^({written}{rest})", first)

    def _exponent(self) -> FormulaValue:
        at, minus = self.token, self.signs()
        exponent = self.power()
        return self._negative(at, exponent) if minus else exponent

    def _postfix(self) -> FormulaValue:
        """Read an operand with factorials and primes behind it."""
        start, value = self.token, self.operand()
        if start.text in ("(", "["):
            value = self.primed(start, value)
        after = self.after
        ends = after.kind == "end" or after.text in ("+", "-", "*", "/", ")", ",")  # 5 % is no remainder as in 5 % x
        if self.token.kind == "degree" and (self.token.text != "%" or (start.kind == "number" and ends)):
            unit = sp.Rational(1, 100) if self.token.text == "%" else sp.pi / 180
            return self.computed(self.take(), lambda: product([value, constant(unit)]))
        if self.token.kind != "bang":
            return value
        token = self.take()
        if token.spaced:
            do = "write (x)! for a factorial, and leave out the sign of emphasis; recommended: leave it out"
            self.refuse(token, "'!' behind a space", do, "it has two readings")
        if len(token.text) > 1:
            what = "a factorial of a factorial, or a double factorial"
            self.refuse(token, what, "write (n!)! for the first", "the second is not known here")
        function = FUNCTIONS["factorial"]
        return self.computed(token, lambda: applied(function.head, [value], function.largest))

    def _ask_about_factorial(self, base: str, raised: str, exponent: str) -> None:
        what = "a factorial behind a power"
        asked_back(self.text, self.token.column, what, f"{base}^({exponent}!)", f"({base}{raised})!")

    def operand(self) -> FormulaValue:
        readers = {"number": self.number, "name": self.named, "partial": self.partials, "root": self.root}
        kind = "root" if self.is_degree_of_root() else self.token.kind
        if kind in readers:
            return readers[kind]()
        if kind == "fraction":
            token = self.take()
            return self.computed(token, lambda: constant(sp.Rational(token.text)))
        if isinstance(self.token, DerivativeSign):
            return self.derivative_sign(cast(DerivativeSign, self.take()))
        if self.token.text in ("(", "[", "|("):
            opened, value = self.take(), self.deeper(self.sum)
            self.close(opened)
            return self.computed(opened, lambda: applied(sp.Abs, [value], 1e300)) if opened.text == "|(" else value
        self.refuse_token()
