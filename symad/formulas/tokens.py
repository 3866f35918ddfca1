"""The words of a formula: numbers, names, operators, primes and raised digits, each with its column."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NoReturn

from symad.errors import ArgumentError

LENGTH_LIMIT = 4000  # characters
TOKEN_LIMIT = 2000
_SHOWN = 60  # characters of a refused formula that are shown

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_OPERATORS = {"^": "**", "·": "*", "×": "*", "⋅": "*", "∗": "*", "−": "-", "–": "-", "÷": "/", "∕": "/"}
_PRIMES = {"'": 1, "′": 1, "’": 1, "″": 2, "‴": 3}
_GREEK = "α-ξπ-ωϵϑϕΓΔΘΛΞΠΣΦΨΩ"  # those that readers tell from Latin letters
_TOKENS = re.compile(
    r"(?P<space>[ \t\r\n\u00a0\u2009\u202f]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<name>[A-Za-z{_GREEK}][A-Za-z0-9_{_GREEK}₀-₉]*)"
    r"|(?P<operator>\*\*|[-+*/^()\[\],·×⋅∗−–÷∕])"
    r"|(?P<prime>['′’″‴]+)"
    r"|∂_?(?P<partial>[0-9₀-₉]{1,2})"
    r"|(?P<power>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
)
_ADVICE = {
    "=": "give one side; an equation is no expression",
    "|": "write abs(x) for |x|",
    "!": "write factorial(n) for n!",
    ".": "a name has no attributes; write * for a product, and a number before or after a decimal point",
    "_": "a name begins with a letter",
    "√": "write sqrt(x)",
    "{": "write parentheses ( )",
    "}": "write parentheses ( )",
    "\\": "write the formula plainly, as in sin(x)/2, not in LaTeX",
    "%": "write 0.05 for 5 %",
    ";": "give one formula; arguments are separated by commas",
}


@dataclass(frozen=True)
class Token:
    """A word of a formula: its kind, its text in plain characters, its column from 0, and whether a space precedes."""

    kind: str
    text: str
    column: int
    spaced: bool = False


def refuse(text: str, column: int, what: str, do: str, why: str = "") -> NoReturn:
    """Raise the ArgumentError of a formula: what was met at which column, what to write instead, and a caret."""
    start = max(0, min(column - _SHOWN // 2, len(text) - _SHOWN))
    shown = "".join(c if c.isprintable() else "�" for c in text[start : start + _SHOWN])
    before, after = ("… " if start else ""), (" …" if start + _SHOWN < len(text) else "")
    caret = " " * (len(before) + column - start) + "^"
    raise ArgumentError(
        what, where=f"formula, column {column + 1}", why=why, do=f"{do}\n  {before}{shown}{after}\n  {caret}"
    )


def tokens(text: object) -> list[Token]:
    """Return the words of a formula, the last one of kind "end"; ArgumentError for what is no part of a formula.

    >>> [token.text for token in tokens("2x² − f'(x)")]
    ['2', 'x', '2', '-', 'f', "'", '(', 'x', ')', '']
    """
    if not isinstance(text, str):
        raise ArgumentError(f"a {type(text).__name__} as a formula", do="give a str such as 'x**2*sin(x)'")
    if len(text) > LENGTH_LIMIT:
        refuse(text, LENGTH_LIMIT, f"a formula of {len(text)} characters", f"give at most {LENGTH_LIMIT} characters")
    found: list[Token] = []
    position, spaced = 0, False
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            _refuse_character(text, position)
        if match.lastgroup == "space":
            spaced, position = True, match.end()
            continue
        found.append(_token(text, match, spaced))
        spaced, position = False, match.end()
        if len(found) > TOKEN_LIMIT:
            refuse(text, position - 1, "a formula of too many words", f"give at most {TOKEN_LIMIT} numbers and signs")
    return [*found, Token("end", "", len(text), spaced)]


def _token(text: str, match: re.Match[str], spaced: bool) -> Token:
    kind, word, column = str(match.lastgroup), match.group(), match.start()
    after = text[match.end() : match.end() + 1]
    if kind == "number":
        if after == "." or (word == "0" and (after.isalpha() or after == "_")):
            refuse(text, match.end(), f"{after!r} after the number {word}", "write a decimal number such as 0.5")
    elif kind == "operator":
        word = _OPERATORS.get(word, word)
    elif kind == "prime":
        word = "'" * sum(_PRIMES[letter] for letter in word)
    elif kind == "partial":
        word = match.group("partial").translate(LOWERED)
    elif kind == "power":
        word = word.translate(RAISED)
    return Token(kind, word, column, spaced)


def _refuse_character(text: str, column: int) -> NoReturn:
    letter = text[column]
    name = unicodedata.name(letter, f"U+{ord(letter):04X}")
    shown = repr(letter) if letter.isascii() else f"{letter!r} ({name})"
    if letter.isalpha():
        refuse(text, column, f"the letter {shown}", "type a Latin or Greek letter", "it may look like another one")
    refuse(text, column, f"the character {shown}", _ADVICE.get(letter, "leave it out"), "it is no part of a formula")
