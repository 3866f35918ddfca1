"""Split a line of an answer into statements: remove labels, words and conditions, and cut at commas.

A statement keeps its place in the line, so that an error can point there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from codegen.records import dataclass
from symad.classroom.answers.answer_text import ARROW, left_side, trimmed, without_typesetting
from symad.classroom.answers.step_of_quotients import AS_IT_VANISHES
from symad.classroom.formulas.cases import CONDITION_WORDS, OTHERWISE_WORDS, as_cases
from symad.classroom.formulas.typesetting import POWER, leibniz, normalized, operators, order_of
from symad.tracing.calling.user_place import refusal

_RELATION = re.compile(
    r"(?<![-−=])[<>]|[≤≥≠∈∉ℝ∞]|!=|\bD(?:_\{?\w\}?)?\s*=\s*(?:ℝ|R\b|[(\[{\\])|\breal\b|\breell|\bréel|\\(?:mathbb|infty)|\\(?:in|ne|neq|leq?|geq?|lt|gt|notin)(?![a-zA-Z])"
)
_CONDITION = re.compile(
    r"\s*(?:[,;:]|\((?=[^()]*\)\s*$)|\\quad|\\text\s*\{\s*(?:for|if)\s*\}|"
    r"(?=∀|\\forall)|(?<!\\)\b(?:for|if|when|where|on|in|with|provided|für|falls|wenn|mit|auf|pour|si|avec|où|sur)\b)"
)
LONGEST_LINE, LONGEST_ANSWER = 1000, 10_000  # characters: up to a second for the worst of 60 repeated fragments
_DIFFERENTIALS = re.compile(r"(\s*)d\s*([a-zA-Z]|\([^=]*\))\s*=\s*(.*?[^\s\\])\s*(?:\\?[,;]\s*)?d\s*([a-zA-Z])\s*")
_VALUE = re.compile(  # y'|_{x=2}, dy/dx at x = 2, f'(x=2) and \frac{dy}{dx}(2) =
    r"(?P<left>[^=,;|]*?)\s*(?:\|\s*_?|\bat\s|(?<=')\()\s*[{(]?\s*(?P<name>[^\W\d_]\w*)\s*=\s*(?P<at>(?:[^\s{}()=]|\{[^{}]*\}|\(\w+\))+)\s*[)}]?"
    r"|(?P<named>[^=,;|]*?)\|_\s*(?P<index>\w+|\{\w+\})|(?P<ratio>\\frac\{[d∂](?:\^\d)?[^\W\d_]\}\{[^{}]*\})\s*\((?P<value>\s*[-\w./]+\s*)\)(?=\s*=)"
)
_COMPARED = r"[^=:,;]*(?:(?<!-)[<>≤≥]|\\[lg]eq?\b)=?[^=:,;]*"
_BRANCH = re.compile(  # 1 for x > 0; 1, x > 0; 1 (x > 0); x > 0: 1; for x > 0, 1; 0 otherwise
    rf"\s*(?P<word>(?i:{CONDITION_WORDS})\s*)?(?P<first>{_COMPARED}?)(?(word)(?:[:,]|\b(?:gilt|on a)\b):?|:)"
    rf"\s*(?P<then>[^=:<>]*?\S)\s*"
    rf"|\s*(?P<value>[^=<>]*?\S)\s*(?:{CONDITION_WORDS}|,|\()(?P<where>{_COMPARED}?)\)?\s*"
    rf"|\s*(?P<else>[^=]*?\S)\s*\b{OTHERWISE_WORDS}\s*"
)
_LEFT_OF_BRANCH = re.compile(r"(?:^|(?<=[:,])|(?<=gilt\s))\s*([^=<>:,]+?)\s*=(?!=)")
_IN_BRACES = re.compile(r"^\{([^{}]*)\}$")
_NOWHERE = re.compile(
    r"[,;]?\s*(?:and\s+)?(?:undefined|not defined|nicht definiert|non défini\w*)\b[^,;]*$", re.IGNORECASE
)
_QUOTED = re.compile(r"^\s*['\"“](.*?)['\"”]+\s*$")
_BULLET = re.compile(r"^\s*[•▪●‣]\s*", re.MULTILINE)
_DERIVED = re.compile(rf"\bD({POWER}?)\s*(?:([fy])\s*(?=[(\[=]|$)|[(\[]\s*([fy])\s*[)\]])")
_DERIVED_PART = re.compile(rf"\bD({POWER}?)\s*(\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\[\]]*\])")
_REMARK = re.compile(r"\s*(?:where|with|since|because|by|using|as|for|see)\b[^=]*\b[a-z]{3,}", re.IGNORECASE)
_EQUALS = re.compile(r"(?::|\\colon\s*)?==?(?!>)|≔|≈|≃|≡|\\(?:approx|coloneqq|equiv)(?![a-z])")
_GOES_ON = re.compile(r"\s*[+*/·×)]")
_UNFINISHED = re.compile(r"[-+*/·×(=,]\s*$")
_RULE = r"(?:(?:ε|\\varepsilon|\\epsilon|eps(?:ilon)?|e)_?\{?[0-9₀-₉]?\}?\s*(?:²|\^\s*\{?2\}?)\s*=\s*)+0\s*[)\].]*\s*"
_SQUARE = re.compile(
    rf"(?:,|\(|\[|\bsince\b|\bwith\b|\bwhere\b|\bas\b|\bbecause\b|\bdenn\b|\bda\b|\bweil\b|\bcar\b|\bpuisque\b|\s)+{_RULE}$"
)
_SPLIT = re.compile(rf"[,;]\s+(?!so\s)|[,;]?\s*\\q?quad\b\s*|[,;]?\s+(?:and|so|und|et|{ARROW})\s+")
_ARROW = re.compile(rf"(?:{ARROW}|so)$")


@dataclass(frozen=True)
class Statement:
    """A part of a line between two places, and its condition."""

    start: int
    end: int
    condition: str = ""


def statements(line: str, is_known: Callable[[str], bool]) -> list[Statement]:
    """Return the statements of a line. A mere condition belongs to the statement before it.

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
        start, end = trimmed(code, start, end, is_known)
        if start >= end or re.fullmatch(_RULE, code[start:end]):  # ε² = 0 is a rule, and no step
            continue
        text = code[start:end]
        cut = _conditional(text) if _RELATION.search(text) else None
        if cut is None and result and _RELATION.search(text) and not _has_equation(text):
            result[-1] = replace(result[-1], condition=text)
        else:
            cut = len(text) if cut is None else cut
            result.append(Statement(start, start + cut, text[cut:].strip(" ,;:(")))
    return result


def _conditional(text: str) -> int | None:
    """Return where a condition at the end of a text begins: "1/x for x > 0", "1/x (x > 0)"; None without one."""
    for match in _CONDITION.finditer(text):
        before, rest = text[: match.start()], text[match.end() :]
        is_condition = _RELATION.search(rest) and not _RELATION.search(before) and not _has_equation(rest)
        if before.strip() and is_condition and _depth(before) == 0:
            return match.start()
    return None


def _has_equation(text: str) -> bool:
    """Whether a text contains an equals sign that is no part of another relation, nor of a domain D = ..."""
    return "=" in re.sub(r"[<>!]=|\bD(?:_\{?\w\}?)?\s*=\s*(?=ℝ|R\b|[(\[{\\])", "", text)


def _depth(text: str) -> int:
    return sum(text.count(sign) for sign in "([{") - sum(text.count(sign) for sign in ")]}")


def _parts(code: str) -> Iterator[tuple[int, int]]:
    """Yield the parts between commas and words outside of parentheses, if each part is a statement of its own."""
    cuts = [match for match in _SPLIT.finditer(code) if _depth(code[: match.start()]) == 0]
    start = 0
    for match in cuts:
        rest, before = code[match.end() :], code[start : match.start()]
        arrow = _ARROW.match(match[0].strip(" ,;")) is not None and not before.strip().startswith(("lim", "\\lim"))
        if before.strip() and _REMARK.match(code, match.end()):
            yield start, match.start()
            return
        says = "=" in rest.partition(",")[0] or _RELATION.search(rest)
        goes_on = (
            "=" in before or _RELATION.search(rest) or trimmed(code, match.end(), len(code), bool)[0] > match.end()
        )
        if before.strip() and (arrow or (says and goes_on)):
            yield start, match.start()
            start = match.end()
    yield start, len(code)


def rewritten(line: str, is_known: Callable[[str], bool], point: str = "", where: str = "") -> str:
    r"""Return a line without "as h → 0", with dy = 2x dx as dy/dx = 2x, Df(x) as f'(x), branches as cases.

    >>> rewritten("dy = 2x dx", bool), rewritten("D_x y = 2x", lambda word: False)
    ('\\frac{dy}{dx} = 2x', '\\frac{d}{dx} y = 2x')
    >>> rewritten("1 if x > 0, -1 if x < 0", bool), rewritten(r"\frac{dy}{dx}|_{x=2} = 4", bool, "x")
    ('\\begin{cases}1 & x > 0\\\\-1 & x < 0\\end{cases}', "y'(2) = 4")
    """

    def at_value(match: re.Match[str]) -> str:
        left = match["left"] or match["named"] or match["ratio"]
        side, value = left_side(left), (match["at"] or match["index"] or match["value"]).strip("{} ")
        if not point or match["name"] not in (None, point):
            return match[0]
        if side is not None and side.order and {*side.variables, side.at} <= {"", point}:
            return f"{side.letter}{chr(39) * side.order}({value})"
        return left if value == where and not match["ratio"] else match[0]

    line = re.sub(r"^(\s*[^\W\d_]'+(?:\(\w\))?)\s*:(?!=)", r"\1 =", line)
    line = AS_IT_VANISHES.sub("", _with_cases(_as_ratio(_VALUE.sub(at_value, line))))
    if any(is_known(name) for name in ("D", *re.findall(r"\bD_\w+", line.replace("{", "")))):
        return line
    line = _DERIVED.sub(lambda match: (match[2] or match[3]) + "'" * order_of(match[1]), operators(line, "D"))
    return _DERIVED_PART.sub(lambda match: leibniz(match[1] + match[2], f"d{point}{match[1]}"), line) if point else line


def _with_cases(line: str) -> str:
    """Return a line with "1 if x > 0, -1 if x < 0" as cases, and a single case before its condition."""
    if "{cases}" in line:
        return line
    left, equals, text = line.partition("=") if re.match(r"[^<>≤≥=]*=(?!=)", line) else ("", "", line)
    text = re.sub(r"\belse\s+(\S+)\s*$", r", \1 otherwise", _NOWHERE.sub("", _IN_BRACES.sub(r"\1", text.strip(" ."))))
    branches = [_branch(part) for part in re.split(r";\s*" if ";" in text else r",\s+|\s+(?:and|und|et)\s+", text)]
    cases = [branch for branch in branches if branch is not None]
    names = {left.strip(), *(name for name, _, _ in cases)} - {""}
    if len(cases) < len(branches) or len(names) > 1:
        return line
    start = f"{left}=" if equals else "".join(f"{name} = " for name in names)
    if len(cases) == 1:
        _, value, condition = cases[0]
        return f"{start}{value}, {condition}" if not equals and text.endswith(value) else line
    rows = "\\\\".join(f"{value} & {condition}" for _, value, condition in cases)
    return f"{start}\\begin{{cases}}{rows}\\end{{cases}}"


def _branch(part: str) -> tuple[str, str, str] | None:
    """Return the left side, the value and the condition of a case; None for any other text."""
    part = re.sub(rf"^\s*{OTHERWISE_WORDS}\s*[:,]\s*(.+)$", r"\1 otherwise", part, flags=re.IGNORECASE)
    left = _LEFT_OF_BRANCH.search(part)
    if left is not None and left_side(left[1]) is None:
        return None
    branch = _BRANCH.fullmatch(part if left is None else part[: left.start()] + part[left.end() :])
    if branch is None:
        return None
    condition = branch["first"] or branch["where"] or "otherwise"
    return left[1] if left else "", branch["then"] or branch["value"] or branch["else"], condition.strip()


def _as_ratio(line: str) -> str:
    match = _DIFFERENTIALS.fullmatch(line)
    if match is None or re.search(r"[-+]", re.sub(r"\([^()]*\)|\{[^{}]*\}|\^-?", "", match[3]).lstrip("-")):
        return line
    return f"{match[1]}{leibniz(match[2], f'd{match[4]}')} = {match[3]}"


def lines_of(mine: Any) -> list[tuple[int, Any]]:
    """Return the numbered lines of an answer, without # comments. An incomplete line continues."""
    if not isinstance(mine, str):
        return _not_too_long(list(enumerate(mine if isinstance(mine, list | tuple) else [mine], 1)))
    refuse_long_answer(mine)
    lines: list[tuple[int, str]] = []
    rows = enumerate(normalized(as_cases(_BULLET.sub("", mine))).strip("\n").splitlines(), 1)
    ends = re.compile(r"\\\\(?:\[[^\]]*\])?")  # two backslashes end a line of LaTeX outside of cases
    codes = ((number, row.partition("#")[0]) for number, row in rows)
    for number, line in ((n, part) for n, code in codes for part in ends.split(code, -1 if "{cases}" in code else 0)):
        code = _QUOTED.sub(r"\1", without_typesetting(line)).rstrip()
        if lines and (_GOES_ON.match(code) or _UNFINISHED.search(lines[-1][1])):
            lines[-1] = (lines[-1][0], f"{lines[-1][1]} {code.lstrip()}")
        elif lines and _is_next_case(lines[-1][1], code):
            lines[-1] = (lines[-1][0], f"{lines[-1][1]}; {code.strip()}")
        elif code:
            lines.append((number, code))
    return _not_too_long(list(lines))


def refuse_long_answer(mine: Any) -> None:
    """Refuse a text that would take seconds to read: patterns are slow in long texts."""
    if isinstance(mine, str) and len(mine) > LONGEST_ANSWER:
        raise refusal(f"an answer of {len(mine):,} characters", do=f"give at most {LONGEST_ANSWER:,}")


def _not_too_long(lines: list[tuple[int, Any]]) -> list[tuple[int, Any]]:
    for number, line in lines:
        if isinstance(line, str) and len(line) > LONGEST_LINE:
            raise refusal(f"line {number} has {len(line):,} characters", do=f"give at most {LONGEST_LINE:,} in a line")
    return lines


def _is_next_case(before: str, line: str) -> bool:
    """Whether a line has a further case of the formula before it: x > 0: 1, and then x < 0: -1."""
    case, *others = (_branch(part) for part in (line, *before.split("; ")))
    return case is not None and all(o is not None and o[0] in (case[0] or o[0], "") and o[2] != case[2] for o in others)


def sides_of(line: str, first: int, last: int) -> list[tuple[str, int, int]]:
    """Return the sides of the equations in a part of a line, with their start and end."""
    cases = line.find("{cases}", first, last)
    signs = list(_EQUALS.finditer(line, first, last if cases < 0 else cases))
    ends = [match.start() for match in signs] + [last]
    starts = [first] + [match.end() for match in signs]
    cut = [(line[start:end].strip(), start, end) for start, end in zip(starts, ends, strict=True)]
    return [side for position, side in enumerate(cut) if side[0] or (position and line[first:last].strip() != "=")]
