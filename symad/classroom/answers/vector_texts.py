"""Vectors and matrices in answers: their entries as texts, from LaTeX, brackets, sums of unit vectors, dot products."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import sympy as sp

from symad.classroom.formulas.read import read_formula
from symad.classroom.formulas.tokens import LOWERED
from symad.classroom.formulas.typesetting import normalized
from symad.display.notation import counted
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

_MATRIX = re.compile(
    r"(?:[(\[]\s*)?\\begin\s*\{(?P<name>[pbvBV]?(?:small)?matrix|array)\}(?:\s*\{[lcr| ]*\})?(?P<rows>.*?)"
    r"\\end\s*\{(?P=name)\}(?:\s*[)\]])?\s*|\\mqty\s*[({](?P<quantity>[^()]*(?:\([^()]*\)[^()]*)*)[)}]"
    r"|\\[pb]matrix\s*\{(?P<old>[^{}]*(?:\{[^{}]*\}[^{}]*)*)\}",
    re.DOTALL,
)
_UNIT = re.compile(
    r"(?:\\(?:hat|vec|mathbf|boldsymbol)\s*\{?\s*\\?([ijke])(?:math)?\s*\}?|([îĵêe])\u20d7?)(?:(_)\{?([a-z\d])\}?)?"
)
_PLAIN = str.maketrans("îĵê", "ije")
_BRACKETS = {"langle": "⟨", "rangle": "⟩", "{": "(", "}": ")"}
_OPENS, _CLOSES = "([{⟨", ")]}⟩"
_DOT = re.compile(r"\s*(?:[·*•∙⋅]|\\cdot|\\bullet)\s*$")


def joined(text: str) -> str:
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


def sum_of_units(side: str, symbols: Sequence[sp.Symbol], count: int) -> list[str]:
    """Return the entries of 2x i + 3y j, or of 2x dx + 3y dy; none for any other text."""
    names = [symbol.name for symbol in symbols]
    if re.search(r"e_|[êîĵ\\]", side := side.translate(LOWERED)):
        side = _UNIT.sub(lambda unit: f" {(unit[1] or unit[2]).translate(_PLAIN)}{unit[3] or ''}{unit[4] or ''} ", side)
    indices = ("xyz"[:count], names, range(1, count + 1))
    families = [[f"d{name}" for name in names], *([f"e_{k}" for k in index] for index in indices), list("ijk"[:count])]
    units = next((units for units in families if units[0] in side and len(units) == count), families[-1])
    if set(units) & set(names) or len(units) < count or not re.search("|".join(units), side):
        return []
    try:
        expression = read_formula(side, [*symbols, *units])
    except ArgumentError:
        return []
    letters = [sp.Symbol(unit) for unit in units]
    parts = [expression.diff(unit) for unit in letters]
    is_sum = expression.xreplace(dict.fromkeys(letters, sp.S.Zero)) == 0
    return [sp.sstr(part) for part in parts] if is_sum and not any(part.has(*letters) for part in parts) else []


def vector_parts(side: str, count: int) -> list[str]:
    """Return the entries of a vector, with its factors: 2(x, y), (x, y)/√(x² + y²).

    >>> vector_parts("2(x, 3y)", 2), vector_parts("[a, b; c, d]", 2), vector_parts("(3, 4)/5", 2)
    (['2(x)', '2(3y)'], ['(a, b)', '(c, d)'], ['(3)/5', '(4)/5'])
    """
    before, whole, after = _scaled(side)
    factor = re.sub(r"(?:[·*×]|\\cdot|\\times)?\s*$", "", before)
    factor = f"({factor})" if factor.strip("-−+ 0123456789") else factor.replace("+", "").strip()
    parts = _inside(whole, count)
    if not (factor or after):
        return parts
    return [f"{factor}{text if text[:1] == '[' else f'({text})'}{after}" for text in parts]


def dot_product(side: str, count: int) -> str:
    """Return a dot product of two vectors as a sum of products; other texts unchanged.

    >>> dot_product("(2x, y)·(3, 4)", 2), dot_product("2x", 2)
    ('(2x)(3) + (y)(4)', '2x')
    """
    for place in (k for k, letter in enumerate(side) if letter in _OPENS):
        left, right = side[:place].rstrip(), side[place:]
        if (dot := _DOT.search(left)) is None or len(parts_of(left, ",;")) + len(parts_of(right, ",")) != 2:
            continue
        try:
            first, second = vector_parts(left[: dot.start()], count), vector_parts(right, count)
        except ArgumentError:
            continue
        return " + ".join(f"({a})({b})" for a, b in zip(first, second, strict=True))
    return side


def _scaled(side: str) -> tuple[str, str, str]:
    """Return a vector with the factors before and after it."""
    text = re.sub(r"(?<=[)\]⟩])\s*(?:\^T|')$", "", side.strip(" $.\t"))
    depth = start = 0
    for place, letter in enumerate(text):
        start = place if depth == 0 and letter in _OPENS else start
        depth += (letter in _OPENS) - (letter in _CLOSES)
        if depth == 0 and letter in _CLOSES and len(parts_of(text[start + 1 : place], ",;")) > 1:
            return text[:start], text[start : place + 1], text[place + 1 :].removeprefix("^T")
    return text[:start], text[start:], ""


def _inside(side: str, count: int) -> list[str]:
    """Return the parts of (a, b) or [a, b]; rows end with a semicolon in [a, b; c, d]."""
    text = side.strip()
    if len(parts := parts_of(text, ",")) == count > 1:
        text = f"({text})"  # 2x, 3y
    if not text or text[0] not in _OPENS or text[-1] not in _CLOSES:
        raise refusal(f"{text[:40]!r} as a vector", do=f"write {count} entries in parentheses, such as (2x, 3y)")
    rows = parts_of(text[1:-1], ";")
    is_matrix = len(rows) == count and all(len(parts_of(row, ",")) > 1 for row in rows)
    parts = [f"({row.strip()})" for row in rows] if is_matrix else [part.strip() for part in parts_of(text[1:-1], ",;")]
    if len(parts) != count:
        what = f"a vector of {counted(len(parts), 'entry')} where {count} are asked for"
        raise refusal(what, do=f"give {count}, with commas")
    return parts


def parts_of(text: str, signs: str) -> list[str]:
    """Return the parts of a text between signs outside of parentheses."""
    depth, cuts = 0, [-1]
    for place, letter in enumerate(text):
        depth += (letter in _OPENS) - (letter in _CLOSES)
        if letter in signs and depth == 0:
            cuts.append(place)
    return [text[start + 1 : end] for start, end in pairwise([*cuts, len(text)])]
