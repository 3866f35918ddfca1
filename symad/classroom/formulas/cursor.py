"""The state of the formula parser: the current word, the result so far, refusals with their column."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import NoReturn, TypeVar

import sympy as sp

from symad.classroom.formulas.formula_names import FormulaValue, Name, Refused, constant, plain
from symad.classroom.formulas.tokens import Token, asked_back, refuse

DEPTH_LIMIT = 40  # nested parentheses, exponents and arguments
_DIGITS_LIMIT = 300  # of a number, with its exponent

Result = TypeVar("Result")


class Cursor:
    """The words of a formula and the next one; sums and powers, which the whole parser reads.

    With `others` and `functions`, names and functions that are not declared may occur. Names in `bare` are functions of
    `point` that need no argument: f'g + fg', and f'[v] is the derivative at it. With `decimals`, decimal numbers are
    kept apart as symbols.
    """

    def __init__(
        self, text: str, names: Mapping[str, Name], *, others: bool = True, functions: bool = True,
        point: sp.Expr | None = None, bare: Container[str] = (), decimals: bool = False,
    ) -> None:  # fmt: skip
        self.text, self.names, self.others, self.functions = text, names, others, functions
        self.point, self.bare = point, bare
        self.decimals: dict[sp.Symbol, tuple[sp.Rational, sp.Rational]] | None = {} if decimals else None
        self.tokens: Sequence[Token] = ()
        self.position = self.depth = 0
        self.lists = False  # whether a comma here separates arguments
        self.separates: Token | None = None  # the first such comma
        self.decimal: Token | None = None  # the first comma that was read as a decimal sign
        self.derived: FormulaValue | None = None  # the last operand that was differentiated
        self.inverses: list[str] = []  # notes on exponents -1 that are read as inverse functions
        self.products: list[str] = []  # notes on words that are read as products

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    @property
    def after(self) -> Token:
        """The word after the current one."""
        return self.tokens[min(self.position + 1, len(self.tokens) - 1)]

    def sum(self) -> FormulaValue:
        raise NotImplementedError

    def power(self) -> FormulaValue:
        raise NotImplementedError

    def is_epsilon(self, word: Token) -> bool:
        """Whether a name is an epsilon, with or without a number."""
        return word.kind == "name" and plain(word.text).partition("_")[0] == "epsilon"

    def take(self) -> Token:
        """Return the current word and go on."""
        token = self.token
        self.position += 1
        return token

    def at(self, *texts: str) -> bool:
        """Whether the current word is one of these operators."""
        return self.token.kind == "operator" and self.token.text in texts

    def accept(self, *texts: str) -> Token | None:
        """Take one of these operators, if it is the current word."""
        return self.take() if self.at(*texts) else None

    def close(self, opened: Token) -> None:
        """Take the sign that closes a parenthesis."""
        text = {"(": ")", "[": "]", "|(": "|)"}[opened.text]
        if self.token.kind == "end":
            self.refuse(opened, f"{opened.text!r} that is never closed", f"write {text!r} where it ends")
        if self.token.text != text:
            self.refuse_token()
        self.take()

    def refuse_token(self) -> NoReturn:
        """Refuse the current word: no formula continues with it."""
        token = self.token
        shown = self.text[token.column : token.end] or token.text
        what = "the end of the formula" if token.kind == "end" else f"{shown!r}"
        advice = {
            ")": "leave it out, or open it before",
            ",": "commas separate the arguments of a function",
            "%": "write 0.05 for 5 %",
        }
        do = advice.get(token.text, "write a number, a name, a function or a parenthesis here")
        if token.kind == "number":
            do = "write * between the factors, and numbers first"
        self.refuse(token, what, do, "no term can go on like this")

    def written(self, start: Token, end: Token | None = None) -> str:
        """Return the text from one word to another, or to the current one."""
        last = self.tokens[self.position - 1].end if end is None else end.column
        return self.text[start.column : last].strip()

    def refuse(self, at: Token, what: str, do: str, why: str = "") -> NoReturn:
        """Refuse the text at a word."""
        refuse(self.text, at.column, what, do, why)

    def two(self, at: Token, what: str, first: str, second: str) -> NoReturn:
        """Refuse an ambiguous text."""
        asked_back(self.text, at.column, what, first, second)

    def computed(self, token: Token, compute: Callable[[], FormulaValue]) -> FormulaValue:
        """Return a value; ArgumentError with its place if it is refused."""
        try:
            return compute()
        except Refused as error:
            self.refuse(token, error.what, error.do)

    def deeper(self, parse: Callable[[], Result], *, lists: bool = False) -> Result:
        """Read a nested part. `lists` says that commas separate its parts."""
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            self.refuse(self.token, "too deep a formula", f"nest at most {DEPTH_LIMIT} levels")
        before, self.lists = self.lists, lists
        result = parse()
        self.depth, self.lists = self.depth - 1, before
        return result

    def signs(self) -> bool:
        """Read signs and return whether their product is negative."""
        negative = False
        while sign := self.accept("+", "-"):
            negative ^= sign.text == "-"
        return negative

    def integer(self, token: Token) -> sp.Integer:
        if len(token.text) > _DIGITS_LIMIT:
            self.refuse(token, f"a number of {len(token.text)} digits", f"at most {_DIGITS_LIMIT} are read")
        return sp.Integer(int(token.text))

    def number(self) -> FormulaValue:
        """Read a number. A comma between digits is a decimal sign unless it separates arguments."""
        token = self.take()
        text = token.text
        mantissa, letter, exponent = text.lower().partition("e")
        if len(mantissa) > _DIGITS_LIMIT or len(exponent) > 5 or abs(int(exponent or 0)) > _DIGITS_LIMIT:
            self.refuse(token, "so long or large a number", f"give at most {_DIGITS_LIMIT} digits")
        if letter and exponent.isdigit() and (f"e{exponent}" in self.names or f"e_{exponent}" in self.names):
            self.two(token, f"{text!r}", f"{mantissa}*e_{exponent}", f"{mantissa}*10^{exponent}")
        comma, after = self.token, self.after
        if text.isdigit() and comma.text == "," and after.kind == "number" and not (comma.spaced or after.spaced):
            text = self._decimal(token, comma, after)
        if self.token.kind == "fraction" and not self.token.spaced:
            written = self.token.text
            self.two(token, f"a number before {written}", f"{text} + {written}", f"{text}*({written})")
        if self.decimals is not None and "." in text:
            decimal = sp.Dummy(text, positive=True)
            places = len(text.lower().partition("e")[0].partition(".")[2]) - int(exponent or 0)
            self.decimals[decimal] = sp.Rational(text), sp.Rational(1, 2) * sp.Integer(10) ** -places
            return FormulaValue(decimal)
        return self.computed(token, lambda: constant(sp.Rational(text), literal=text.isdigit()))

    def _decimal(self, token: Token, comma: Token, after: Token) -> str:
        """Return a number with a decimal comma, unless the comma separates arguments."""
        if self.lists:
            return token.text
        if not re.fullmatch(r"[0-9]+(?:[eE][-+]?[0-9]+)?", after.text):
            self.position += 1
            self.refuse_token()
        self.position += 2
        self.decimal = self.decimal or token
        return f"{token.text}.{after.text}"
