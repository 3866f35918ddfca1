"""Split words that are several names: in nx^2 the power belongs to x, and sinx is sin x.

A declared word, a function, a constant or a Greek letter stays whole. Any other word is a product if its letters are
declared. If undeclared letters are allowed, a short word with one known letter is a product, too, and a note says so. A
word with two splits is refused with both.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Container, Iterable, Mapping, Sequence

from sympy.core.function import UndefinedFunction

from symad.classroom.formulas.formula_names import (
    CONSTANTS,
    FUNCTIONS,
    NO_SYMBOLS,
    SHORT,
    UNREAD,
    Name,
    is_greek,
    known,
    logarithm_to_a_base,
)
from symad.classroom.formulas.tokens import Token, asked_back, refuse

_LONGEST_WORD = 40  # letters of a word that is split
_LONGEST_PRODUCT = 3  # letters of a product with an undeclared letter
_MOST_WAYS = 2
_LETTER = re.compile(r"[^\W\d_][₀-₉]*")
_INDEXED = re.compile(r"(?:log|[A-Za-z])_[0-9]+(?=[^\W\d_])")
_STARTS = frozenset(["name", "number", "fraction", "root", "prime", "power"])
_FUNCTION_NAMES = sorted((name for name in FUNCTIONS if len(name) > 1 and name not in SHORT), key=len, reverse=True)

Way = tuple[str, ...]


def parted(
    text: str, words: Sequence[Token], names: Mapping[str, Name], *, others: bool, bare: Container[str] = ()
) -> tuple[list[Token], list[str]]:
    """Return the words with each product of names split, and a note for each product with an undeclared name.

    >>> from symad.classroom.formulas.formula_names import declared
    >>> from symad.classroom.formulas.tokens import scanned
    >>> found, notes = parted("2xy^2", scanned("2xy^2"), declared("x, y"), others=False)
    >>> [word.text for word in found], notes
    (['2', 'x', 'y', '**', '2', ''], [])
    """
    words = [piece for word in words for piece in _ended_by_index(word, names)]
    alone = {word.text for word in words if word.kind == "name" and len(word.text) == 1}
    result: list[Token] = []
    notes: list[str] = []
    for word, after in zip(words, [*words[1:], words[-1]], strict=True):
        way = _way(text, word, after, names, bare) if word.kind == "name" else ()
        if not way and word.kind == "name" and others:
            is_power = word.text.endswith("e") and (after.text == "**" or after.kind == "power")
            may_be_called = after.kind in {*_STARTS} - {"power"} or after.text in ("(", "|(")
            is_mixed = not (word.text.islower() or word.text.istitle() or may_be_called)
            way = _product_of_letters(word.text, names, alone | {"e"} if is_power else alone, is_mixed)
            if not set(way) <= alone | names.keys() | CONSTANTS.keys():
                notes.append(f"{word.text} is read as {'·'.join(way)}: a product")
        result += _pieces(word, way) if way else [word]
    return result, list(dict.fromkeys(notes))


def _pieces(word: Token, way: Way) -> Iterable[Token]:
    column = word.column
    for number, piece in enumerate(way):
        kind = "number" if piece.isdecimal() else "name"
        last = word.end if number == len(way) - 1 else column + len(piece)
        yield Token(kind, piece, column, word.spaced if number == 0 else False, last)
        column += len(piece)


def _ended_by_index(word: Token, names: Mapping[str, Name]) -> Iterable[Token]:
    """Split x_1x_2 into x_1 and x_2, log_2x into log_2 and x: digits end an index."""
    cut = _INDEXED.match(word.text) if word.kind == "name" and known(names, word.text) is None else None
    if cut is None:
        return [word]
    first, rest = _pieces(word, (cut[0], word.text[cut.end() :]))
    return [first, *_ended_by_index(rest, names)]


def _stays_whole(word: str) -> bool:
    is_word = word in FUNCTIONS or word in CONSTANTS or word in NO_SYMBOLS or word in UNREAD or keyword.iskeyword(word)
    return len(word) == 1 or len(word) > _LONGEST_WORD or is_word or is_greek(word) or bool(logarithm_to_a_base(word))


def _way(text: str, word: Token, after: Token, names: Mapping[str, Name], bare: Container[str]) -> Way:
    """Return the declared names, constants and functions that form a word; nothing if it stays whole."""
    called = after.kind in _STARTS or after.text in ("(", "|(", "**")
    if _stays_whole(word.text):
        letters = tuple(word.text)
        inner = word.text.removeprefix("a")
        if word.text in FUNCTIONS and called and inner in FUNCTIONS and inner != word.text and "a" in names:
            do = f"write arc{inner}(...) for the inverse function, a*{inner}(...) for a product; recommended: the first"
            refuse(text, word.column, f"the word {word.text!r}", do, "it has two readings")
        is_product = word.text in FUNCTIONS and len(letters) > 1 and all(letter in names for letter in letters)
        if is_product and called and len(letters) == 2:
            asked_back(text, word.column, f"the word {word.text!r}", f"{word.text}( )", "*".join(letters))
        return letters if is_product and not called else ()
    ways = list(_ways(word.text, names, called, after.text == "(" or after.kind == "prime", bare))
    ways = [way for way in ways if len(way) > 1]
    stands_for = known(names, word.text)
    if stands_for is not None:
        if ways and word.text.isalpha() and len(word.text) > 1:
            do = "*".join(ways[0])
            asked_back(text, word.column, f"the name {word.text!r}, beside a name for each letter", word.text, do)
        return ()
    if len(ways) > 1:
        asked_back(text, word.column, f"the word {word.text!r}", *("*".join(_shown(way)) for way in ways[:2]))
    return ways[0] if ways else ()


def _shown(way: Way) -> list[str]:
    """Return the factors of a split, with a function and its argument as one."""
    for place, piece in enumerate(way):
        if piece in FUNCTIONS and len(piece) > 1 and place + 1 < len(way):
            return [*way[:place], f"{piece}({' '.join(way[place + 1 :])})"]
    return list(way)


def _ways(
    word: str, names: Mapping[str, Name], called: bool, in_parentheses: bool, bare: Container[str]
) -> Iterable[Way]:
    """Return at most a few splits of a word, those with whole functions before letters."""
    ways_to: list[list[Way]] = [[()], *([] for _ in word)]
    for end in range(1, len(word) + 1):
        for start in range(end):
            if not ways_to[start]:
                continue
            piece, is_last = word[start:end], end == len(word)
            before = word[:start]
            if piece.isdecimal():
                fits = any(before.endswith(name) for name in _FUNCTION_NAMES)
                fits = fits and (is_last or not word[end].isdigit())
            else:
                fits = piece in bare or _is_factor(piece, names, called, in_parentheses, is_last)
            if fits:
                ways = [(*way, piece) for way in ways_to[start] if not (piece.isdecimal() and way[-1] not in FUNCTIONS)]
                ways_to[end] = [*ways_to[end], *ways][:_MOST_WAYS]
    return ways_to[-1]


def _is_factor(piece: str, names: Mapping[str, Name], called: bool, in_parentheses: bool, is_last: bool) -> bool:
    stands_for = known(names, piece)
    if isinstance(stands_for, UndefinedFunction):
        return is_last and in_parentheses
    is_function = piece in _FUNCTION_NAMES and (not is_last or called)
    return piece[0].isalpha() and (stands_for is not None or piece in ("e", "π", "pi") or is_function)


def _product_of_letters(word: str, names: Mapping[str, Name], alone: set[str], is_mixed: bool) -> Way:
    """Return the letters of a short word with one known letter or mixed case; nothing if it may be a name."""
    letters = tuple(_LETTER.findall(word))
    meanings = [known(names, letter) for letter in letters]
    is_short = "".join(letters) == word and 1 < len(letters) <= _LONGEST_PRODUCT
    is_name = _stays_whole(word) or known(names, word) is not None or word.lower().startswith("d")
    is_name |= any(isinstance(meaning, UndefinedFunction) for meaning in meanings)
    is_name |= any(word.startswith(name) or word.endswith(name) for name in _FUNCTION_NAMES)
    is_known = any(meaning is not None for meaning in meanings) or not {*alone, "x"}.isdisjoint(letters)
    return letters if is_short and not is_name and (is_known or is_mixed or not word.isascii()) else ()
