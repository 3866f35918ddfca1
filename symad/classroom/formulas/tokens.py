"""The tokens of a formula: numbers, names, operators, primes, raised digits, LaTeX signs, with columns."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from typing import NoReturn

from codegen.records import dataclass
from symad.errors import ArgumentError

LENGTH_LIMIT = 4000  # characters
TOKEN_LIMIT = 2000
_SHOWN = 60  # characters of a refused formula in a message

RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ˣʸᵗⁿᵏᵐⁱᵛ⁽⁾", "0123456789-+xytnkmiv()")
LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_OPERATORS = {"^": "**", "·": "*", "×": "*", "⋅": "*", "∗": "*", "−": "-", "–": "-", "÷": "/", "∕": "/", "⁄": "/"}
_PLAIN = str.maketrans({**_OPERATORS, "√": "2", "∛": "3", "∜": "4"}) | RAISED | LOWERED
_GREEK = "α-ξπ-ωϵϑϕΓΔΘΛΞΠΣΦΨΩ"  # those that look different from Latin letters
NAME = rf"[A-Za-z{_GREEK}][A-Za-z0-9_{_GREEK}₀-₉]*"
_TOKENS = re.compile(
    rf"(?P<derivative>\\frac\s*\{{[d∂](?:\^\{{?(?P<order>[0-9])\}}?)?(?P<of>{NAME})?(?:\([^(){{}}]*\))?\}}"
    rf"\s*\{{[d∂](?P<by>\\?{NAME})(?:\^\{{?(?P<lower>[0-9])\}}?)?\}})"  # as `normalized` writes it
    r"|(?P<space>[ \t\r\n\u00a0\u2009\u202f]+)"
    r"|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    rf"|(?P<name>{NAME})"
    r"|(?P<operator>\*\*|[-+*/^()\[\],·×⋅∗−–÷∕⁄])"
    r"|(?P<prime>'+)"
    r"|∂_?(?P<partial>[0-9₀-₉]{1,2})"
    r"|(?P<raised>[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]*[ˣʸᵗⁿᵏᵐ⁽][⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹ˣʸᵗⁿᵏᵐ⁾]*)"
    r"|(?P<power>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)"
    r"|(?P<root>[√∛∜])"
    r"|(?P<fraction>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒])"
    r"|(?P<bar>\|)"
    r"|(?P<bang>!+)"
    r"|(?P<degree>[°%])"
    r"|(?P<latex>\\[A-Za-z]+|\\[^A-Za-z]|[{}$&~]|(?<=[A-Za-z}])_(?=[A-Za-z0-9{]))"
)
_ADVICE = {
    "=": "give one side; an equation is no expression",
    ".": "a name has no attributes; write * for a product, and a number before or after a decimal point",
    "_": "a name begins with a letter",
    "{": "write parentheses ( )",
    "}": "write parentheses ( )",
    "\\": "write the name of a command behind it, as in \\sin(x), or leave it out",
    ";": "give one formula; arguments are separated by commas",
    ":": "write / for a division",
    "∞": "take a finite number",
    "…": "write out all terms",
}


@dataclass(frozen=True)
class Token:
    """A token of a formula: kind, plain text, column from 0, end, and what precedes it."""

    kind: str
    text: str
    column: int
    spaced: bool = False
    end: int = 0


@dataclass(frozen=True)
class DerivativeSign(Token):
    """d/dx or dy/dx: its order, its variable (text), and the function, if it is named."""

    order: int = 1
    of: str = ""


def refuse(text: str, column: int, what: str, do: str, why: str = "") -> NoReturn:
    """Raise the ArgumentError of a formula, with the text at a column, the advice, and a caret."""
    ahead, rest = _typed(text[:column]), _typed(text[column:])
    text, column = ahead + rest, len(ahead)
    start = max(0, min(column - _SHOWN // 2, len(text) - _SHOWN))
    shown = "".join(c if c.isprintable() else "�" for c in text[start : start + _SHOWN])
    before, after = ("… " if start else ""), (" …" if start + _SHOWN < len(text) else "")
    caret = " " * (len(before) + column - start) + "^"
    raise ArgumentError(
        what, where=f"formula, column {column + 1}", why=why, do=f"{do}\n  {before}{shown}{after}\n  {caret}"
    )


def asked_back(text: str, column: int, what: str, first: str, second: str) -> NoReturn:
    """Raise the ArgumentError of an ambiguous text with both readings, the usual one first."""
    first, second = (re.sub(r"(?<!\*)\*(?!\*)", "·", reading) for reading in (first, second))
    do = f"write {_line(first)} or {_line(second)}, whichever is meant; recommended: {_line(first)}"
    refuse(text, column, _typed(what), do, "it has two readings")


def _typed(text: str) -> str:
    r"""Return a text with d/dx for each \frac{d}{dx}."""
    return re.sub(r"\\frac\{([d∂][^{}]*)\}\{([d∂][^{}]*)\}", r"\1/\2", text)


def _line(reading: str) -> str:
    shown = " ".join("".join(c if c.isprintable() else " " for c in _typed(reading)).split())
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN // 2] + " … " + shown[-_SHOWN // 2 :]


def refuse_if_long(text: str) -> None:
    """Refuse a formula that would take seconds to read."""
    if len(text) > LENGTH_LIMIT:
        refuse(text, LENGTH_LIMIT, f"a formula of {len(text)} characters", f"give at most {LENGTH_LIMIT} characters")


def scanned(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """Return the words of a part of a text, LaTeX commands unchanged. The last has the kind "end".

    >>> [token.text for token in scanned("2x² − f'(x)")]
    ['2', 'x', '2', '-', 'f', "'", '(', 'x', ')', '']
    """
    refuse_if_long(text)
    tokens: list[Token] = []
    position, spaced, last = start, False, _last(text, start, len(text) if end is None else end)
    while position < last:
        match = _TOKENS.match(text, position, last)
        if match is None:
            _refuse_character(text, position)
        if match.lastgroup == "raised":
            word = match[0].translate(RAISED)
            inner = scanned(word if word.startswith("(") else f"({word})")[:-1]
            column, end = match.start(), match.end()
            tokens.append(Token("operator", "**", column, spaced, end))
            tokens += [replace(token, column=column, end=end) for token in inner]
        elif match.lastgroup != "space":
            tokens.append(_token(text, match, spaced))
        spaced, position = match.lastgroup == "space", match.end()
        if len(tokens) > TOKEN_LIMIT:
            refuse(text, position - 1, "a formula of too many words", f"give at most {TOKEN_LIMIT} numbers and signs")
    return [*tokens, Token("end", "", last, spaced, last)]


def _last(text: str, start: int, end: int) -> int:
    """Return where a text ends without a sentence's full stop. The point of a number stays."""
    shown = text[start:end].rstrip(" \t\r\n$")
    if shown.endswith(".") and not shown.endswith("..") and re.search(r"[^0-9\s.]\s*\.$", shown):
        return start + len(shown) - 1
    return end


def _token(text: str, match: re.Match[str], spaced: bool) -> Token:
    kind, word, column, end = str(match.lastgroup), match[str(match.lastgroup)], match.start(), match.end()
    after = text[end : end + 1]
    if kind == "derivative":
        order, lower = int(match["order"] or 1), int(match["lower"] or 1)
        if order != lower or not order:
            what = f"a derivative of order {order} above and {lower} below"
            refuse(text, column, what, "write the same order in both")
        return DerivativeSign(kind, match["by"].removeprefix("\\"), column, spaced, end, order, match["of"] or "")
    if kind == "number":
        decimals = column > 1 and text[column - 1] == "," and text[column - 2].isdigit()
        if after == "." or (word == "0" and not decimals and (after.isalpha() or after == "_") and after.isascii()):
            refuse(text, end, f"{after!r} after the number {word}", "write a decimal number such as 0.5")
    elif kind == "fraction":
        word = unicodedata.normalize("NFKC", word).replace("\u2044", "/")
    elif kind not in ("name", "latex"):
        word = word.translate(_PLAIN)
    return Token(kind, word, column, spaced, end)


def _refuse_character(text: str, column: int) -> NoReturn:
    letter = text[column]
    name = unicodedata.name(letter, f"U+{ord(letter):04X}")
    shown = repr(letter) if letter.isascii() else f"{letter!r} ({name})"
    if letter.isalpha():
        refuse(text, column, f"the letter {shown}", "type a Latin or Greek letter", "it may look like another one")
    refuse(text, column, f"the character {shown}", _ADVICE.get(letter, "leave it out"), "it is no part of a formula")
