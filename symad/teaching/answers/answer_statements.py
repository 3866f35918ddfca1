"""The statements in a line of an answer: without labels, words and conditions around them; cut at commas.

A statement keeps its place in the line, so that an error can point there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from codegen.records import dataclass
from symad.formulas.tokens import STYLED
from symad.teaching.answers.answer_text import without_typesetting

_RELATION = re.compile(r"[<>≤≥≠∈∉]|!=|\\(?:in|ne|neq|leq?|geq?|lt|gt|notin)(?![a-zA-Z])")
_LABEL = re.compile(r"\s*(?:[A-Za-z][A-Za-z -]+|\(?[a-z0-9]\))\s*:(?!=)\s*|\s*(?:[a-h0-9]\)|\([a-h]\)|i{1,3}\))\s+")
_CONNECTIVE = re.compile(
    r"\s*(?:so|thus|hence|therefore|then|let|where|with|and|also|now|since|because|we get|we have|it follows that|"
    r"put|set|for|giving|gives)\b[\s,:]*",
    re.IGNORECASE,
)
_CONDITION = re.compile(
    r"\s*(?:[,;:]|\(|\\quad|\\text\s*\{\s*(?:for|if)\s*\}|\b(?:for|if|when|where|on|with|provided)\b)"
)
_END = re.compile(r"(?:\s|;|,|∎|□|✓|\\blacksquare|\\qed|Q\.E\.D\.|QED)+$")
_BOXED = re.compile(r"\\(?:boxed|fbox|underline)\s*\{")
_DIFFERENTIALS = re.compile(r"(\s*)d\s*([a-zA-Z])\s*=\s*(.*\S)\s*\\?[,;]?\s*d\s*([a-zA-Z])\s*")
_CASES = re.compile(r"\\begin\s*\{cases\}(.*?)\\end\s*\{cases\}", re.DOTALL)
_REMARK = re.compile(r"\s*(?:where|with|since|because|by|using|as|for|see)\b[^=]*\b[a-z]{3,}", re.IGNORECASE)
_PHRASE = re.compile(
    r"\s*(?:the\s+|my\s+)?(?:first\s+|second\s+)?(?:derivative|answer|result|solution|gradient|slope)\s*(?:is|=|:)\s*",
    re.IGNORECASE,
)
_REASON = re.compile(r"\s+(?:by|using|from|via|because|since|due to)\s+(?:the\s+)?[a-z][a-z ]{3,}$", re.IGNORECASE)
_UNIT = re.compile(
    r"\s+(?:m|cm|km|mm|s|kg|g|N|J|W|rad|K|Pa|V|A)"
    r"(?:\s*[/·]\s*(?:s|m|h|kg|K|min)(?:\^\{?-?[0-9]\}?|[²³])?)?$"
)
_EQUALS = re.compile(r":?==?|≈|≃|≡|\\approx(?![a-z])")
_GOES_ON = re.compile(r"\s*[+*/·×)]")
_UNFINISHED = re.compile(r"[-+*/·×(=,]\s*$")
_SQUARE = re.compile(
    r"(?:,|\(|\[|\bsince\b|\bwith\b|\bwhere\b|\bas\b|\bbecause\b|\s)+"
    r"(?:(?:ε|\\varepsilon|\\epsilon|eps(?:ilon)?|e)_?\{?[0-9₀-₉]?\}?\s*(?:²|\^\s*\{?2\}?)\s*=\s*)+0\s*[)\].]*\s*$"
)
_SPLIT = re.compile(r"[,;]\s+|\s+(?:and|so|⇒|→|⟶|\\to|\\longrightarrow|\\Rightarrow|\\implies|=>)\s+")


@dataclass(frozen=True)
class Statement:
    """A part of a line from one place to another, and the condition under which it is said to hold."""

    start: int
    end: int
    condition: str = ""


def statements(line: str, is_known: Callable[[str], bool]) -> list[Statement]:
    """Return the statements of a line; what is only a condition belongs to the one before it.

    >>> line = "let u = x^2, so du/dx = 2x, x > 0"
    >>> [(line[found.start:found.end], found.condition) for found in statements(line, {"x", "u"}.__contains__)]
    [('u = x^2', ''), ('du/dx = 2x', 'x > 0')]
    """
    code = line.partition("#")[0]
    if (square := _SQUARE.search(code)) is not None and code[: square.start()].strip():
        code = code[: square.start()]  # ", since ε² = 0" at the end
    if "{cases}" in code:
        return [Statement(0, len(code))]
    result: list[Statement] = []
    for start, end in _parts(code):
        start, end = _trimmed(code, start, end, is_known)
        if start >= end:
            continue
        text = code[start:end]
        if _RELATION.search(text) and "=" not in re.sub(r"[<>!]=", "", text):
            condition = _conditional(text)
            if condition is None and result:
                result[-1] = Statement(result[-1].start, result[-1].end, text)
                continue
            if condition is not None:
                result.append(Statement(start, start + condition, text[condition:].strip(" ,;:(")))
                continue
        cut = _conditional(text) if _RELATION.search(text) else None
        result.append(Statement(start, start + cut if cut is not None else end, "" if cut is None else text[cut:]))
    return result


def _conditional(text: str) -> int | None:
    """Return where a condition at the end of a text begins: "1/x for x > 0", "1/x (x > 0)"; None where none is."""
    for found in reversed(list(_CONDITION.finditer(text))):
        before, rest = text[: found.start()], text[found.end() :]
        if before.strip() and _RELATION.search(rest) and not _RELATION.search(before) and _depth(before) == 0:
            return found.start()
    return None


def _depth(text: str) -> int:
    return sum(text.count(sign) for sign in "([{") - sum(text.count(sign) for sign in ")]}")


def _parts(code: str) -> Iterator[tuple[int, int]]:
    """Yield the parts between commas and words outside of parentheses, where each part says something of its own."""
    cuts = [found for found in _SPLIT.finditer(code) if _depth(code[: found.start()]) == 0]
    start = 0
    for found in cuts:
        rest, before = code[found.end() :], code[start : found.start()]
        says = (
            found[0].strip() in ("→", "⟶", "\\to", "\\longrightarrow")
            or "=" in rest.partition(",")[0]
            or _RELATION.search(rest) is not None
        )
        if before.strip() and _REMARK.match(code, found.end()):
            yield start, found.start()
            return
        goes_on = "=" in before or _RELATION.search(rest) or _CONNECTIVE.match(rest)
        if before.strip() and says and goes_on:
            yield start, found.start()
            start = found.end()
    yield start, len(code)


def _trimmed(code: str, start: int, end: int, is_known: Callable[[str], bool]) -> tuple[int, int]:
    """Leave out labels and connecting words in front, and signs that only end a line."""
    if (phrase := _PHRASE.match(code, start, end)) is not None:
        start = phrase.end()
    label = _LABEL.match(code, start, end)
    if label is not None and not is_known(label[0].strip(" :()")):
        start = label.end()
    while (word := _CONNECTIVE.match(code, start, end)) is not None and not is_known(word[0].strip(" ,:")):
        start = word.end()
    if (last := _END.search(code[start:end])) is not None:
        end = start + last.start()
    if (reason := _REASON.search(code[start:end])) is not None:
        end = start + reason.start()
    unit = _UNIT.search(code[start:end])
    if unit is not None and not any(map(is_known, re.findall(r"[A-Za-z]+", unit[0]))):
        end = start + unit.start()
    return start + len(code[start:end]) - len(code[start:end].lstrip()), end


def without_boxes(line: str) -> str:
    r"""Return a line without \boxed{ }; spaces stand there.

    >>> without_boxes(r"\boxed{2x}")
    '       2x '
    """
    while (found := _BOXED.search(line)) is not None:
        depth, close = 1, found.end()
        while close < len(line) and depth:
            depth += {"{": 1, "}": -1}.get(line[close], 0)
            close += 1
        if depth:
            return line
        inside = line[found.end() : close - 1]
        line = line[: found.start()] + " " * (found.end() - found.start()) + inside + " " + line[close:]
    return line


def as_ratio(line: str) -> str:
    """Return dy = 2x dx as dy/dx = 2x, d(x^2)/dx as d/dx(x^2), and any other line as it is.

    >>> as_ratio("dy = 2x dx"), as_ratio("dy = 2x + 1 dx"), as_ratio("d(x^2)/dx = 2x")
    ('dy/dx = 2x', 'dy = 2x + 1 dx', 'd/dx(x^2) = 2x')
    """
    line = re.sub(r"^(\s*)d\s*(\([^=]*\))\s*/\s*d([a-zA-Z])(?=\s*=)", r"\1d/d\3\2", line)
    found = _DIFFERENTIALS.fullmatch(line)
    if found is None or re.search(r"[-+]", re.sub(r"\([^()]*\)|\{[^{}]*\}|\^-?", "", found[3]).lstrip("-")):
        return line
    return f"{found[1]}d{found[2]}/d{found[4]} = {found[3]}"


def cases_of(text: str) -> list[tuple[str, str]] | None:
    r"""Return values and conditions of a piecewise formula; None for any other text.

    >>> cases_of(r"\begin{cases} 1 & x>0 \\ -1 & \text{if } x<0 \end{cases}")
    [('1', 'x>0'), ('-1', 'x<0')]
    """
    found = _CASES.search(text)
    if found is None or text[: found.start()].strip() or text[found.end() :].strip(" .;,$"):
        return None
    rows = [row.split("&") for row in found[1].split("\\\\") if row.strip()]
    if any(len(row) != 2 for row in rows):
        return None
    words = re.compile(r"\\text\s*\{([^{}]*)\}|\\(?:quad|,|;)")
    pairs = [(value.strip(" ,"), words.sub(lambda part: part[1] or "", condition)) for value, condition in rows]
    return [(value, re.sub(r"\b(?:if|for|when)\b", "", condition).strip(" ,.")) for value, condition in pairs]


def lines_of(mine: Any) -> list[tuple[int, Any]]:
    """Return the numbered lines of an answer, without comments (which begin with #); a line that cannot end goes on."""
    if not isinstance(mine, str):
        return list(enumerate(mine if isinstance(mine, list | tuple) else [mine], 1))
    found: list[tuple[int, str]] = []
    for number, line in enumerate(mine.translate(STYLED).strip("\n").splitlines(), 1):
        code = without_typesetting(line.partition("#")[0]).rstrip()
        if found and (_GOES_ON.match(code) or _UNFINISHED.search(found[-1][1])):
            found[-1] = (found[-1][0], f"{found[-1][1]} {code.lstrip()}")
        elif code:
            found.append((number, code))
    return list(found)


def sides_of(line: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """Return the sides of the equations in a part of a line, with where they begin and end."""
    signs = list(_EQUALS.finditer(line, first, last))
    ends = [match.start() for match in signs] + [last]
    starts = [first] + [match.end() for match in signs]
    cut = [(line[start:end].strip(), start, end) for start, end in zip(starts, ends, strict=True)]
    return [side for position, side in enumerate(cut) if side[0] or (position and line[first:last].strip() != "=")]
