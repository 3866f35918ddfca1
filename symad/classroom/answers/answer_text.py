"""Read the text around formulas in an answer: left sides, remainders, notes, typesetting commands."""

from __future__ import annotations

import re
from collections.abc import Callable

from codegen.records import dataclass
from symad.classroom.formulas.formula_names import CONSTANTS, FUNCTIONS, LETTER_OF
from symad.classroom.formulas.tokens import RAISED

_TIMES = r"(?:\^([0-9]))?"
_PRIMED = re.compile(
    r"([^\W\d_])\s*((?:['′’″‴]|\^\s*\\prime|\^\s*\{\s*(?:\\prime\s*)+\})*"
    r"|\^\s*\{?\s*\(\s*[0-9]\s*\)\s*\}?|⁽[⁰-⁹¹²³]⁾|\^\s*\{?(?:IV|iv)\}?)"
    r"\s*(?:\(\s*([^\W\d]\w*|-?[0-9][0-9./]*)\s*\))?"
)
_MARKS = {"'": 1, "′": 1, "’": 1, "\\prime": 1, "″": 2, "‴": 3, "iv": 4, "IV": 4}
_RATIO = re.compile(  # d^2y/dx^2, ∂^2f/∂x∂y and d/dx
    rf"[d∂]{_TIMES}\s*([^\W\d_]?)\s*(?:\(\s*[\w, ]+\s*\))?\s*/\s*\(?\s*"
    rf"[d∂]\s?([^\W\d_]\w*?){_TIMES}(?:\s*[d∂]\s*([^\W\d_]){_TIMES})?\s*\)?"
)
_LOWERED = re.compile(r"([A-Za-z])['′’]*_(?:\{\s*([a-z]+)\s*\}|([a-z]+))\s*(?:\([^()]*\))?")
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)?)\}\s*\{([^{}]*(?:\{[^{}]*\}[^{}]*)?)\}")
_OPERATOR = re.compile(  # D f, D^2 f, D_x f and ∂_{xy} f
    rf"(?:D|∂(?=\s*_)){_TIMES}\s*(?:_(?:\{{\s*([a-z]+)\s*\}}|([a-z])))?\s*([A-Za-z])\s*(?:\([^()]*\))?"
)
_REMAINDER = re.compile(
    r"\+\s*(?:[Oo]|\\mathcal\s*\{?\s*O\s*\}?)\s*(?:\\left\s*)?\((?P<of>[^()]*(?:\([^()]*\)[^()]*)?)\)\s*$"
)
_NOTE = re.compile(r"\s*(?:\((?P<round>[^()]*)\)|\[(?P<square>[^\[\]]*)\])\s*$")
_ENVIRONMENT = re.compile(
    r"\\(?:begin|end)\s*\{[a-z]+\*?\}(?:\{[a-z]*\})?|\\\\\s*$|&|\\nonumber|\\(?:label|tag|[hv]?phantom)\s*\{[^{}]*\}"
)
_WORDS = re.compile(
    r"(?:^\s*\\text(?:bf|it|rm)?\s*\{([^{}]*)\}|\\text\s*\{(\s*(?:for|if|when|where|with|für|falls|pour|si)\b[^{}]*)\})(?=.*\S)"
)
ARROW = r"⇔|⟺|<=>|⇒|→|⟶|⟹|->|=>|\\(?:to|iff|implies|(?:[Ll]ong)?(?:[Ll]eft)?[Rr]ightarrow)(?![a-zA-Z])"
_SO = re.compile(rf"\s*(?:∴|\\therefore(?![a-zA-Z])|{ARROW})\s*")


@dataclass(frozen=True)
class LeftSide:
    """The meaning of a left side such as y'' or dy/dx: the function's letter, the order, the variables."""

    letter: str
    order: int
    variable: str = ""


def left_side(text: str) -> LeftSide | None:
    """Return the meaning of a left side that is no formula: y, y', dy/dx, d/dx, D f; None for any other text.

    >>> left_side("y''"), left_side("d²y/dx²").order, left_side(r"\\frac{df}{dx}").variable, left_side("2x")
    (LeftSide(letter='y', order=2, variable=''), 2, 'x', None)
    """
    bare = re.sub(r"^\{\s*(\w)\s*\}|\\(?:left|right)(?![a-z])", r"\1", text.strip(" $\t"))
    bare = re.sub(r"\\(?:var)?([A-Za-z]+)", lambda command: LETTER_OF.get(command[1], command[0]), bare)
    if match := re.fullmatch(r"\\(d{1,3})ot\s*\{?\s*([^\W\d_])\s*\}?(?:\s*\(\s*(\w+)\s*\))?", bare):
        return LeftSide(match[2], len(match[1]), match[3] or "")
    if match := _PRIMED.fullmatch(bare):
        letter, marks, variable = match.groups()
        order = sum(times * marks.count(mark) for mark, times in _MARKS.items())
        order += int((re.search("[0-9]", marks.translate(RAISED)) or "0")[0])
        return LeftSide(letter, order, variable or "")
    bare = _FRACTION.sub(r"\1/\2", bare).replace("\\partial", "∂").replace("\\mathrm{d}", "d").replace("\\", "")
    bare = re.sub("[²³⁴⁵⁶]", lambda raised: f"^{raised[0].translate(RAISED)}", bare)
    bare = re.sub(r"\s*\^\s*\{?\s*([0-9])\s*\}?", r"^\1", bare)
    if match := _RATIO.fullmatch(bare):
        above, letter, first, times, second, more = match.groups()
        counts = int(times or 1), int(more or 1) if second else 0
        variables = first * counts[0] + second * counts[1] if second else first
        return LeftSide(letter or "f", sum(counts), variables) if int(above or 1) == sum(counts) else None
    if match := _LOWERED.fullmatch(bare):
        variables = match[2] or match[3]
        return LeftSide(match[1], len(variables), variables)
    if match := _OPERATOR.fullmatch(bare):
        variables = match[2] or match[3] or ""
        return LeftSide(match[4], max(len(variables), int(match[1] or 1)), variables)
    return None


def without_typesetting(line: str) -> str:
    r"""Return a line with spaces in place of \begin{align}, &, \\ and a leading arrow.

    >>> without_typesetting(r"&= 2x \\")
    ' = 2x   '
    """
    if "{cases}" in line:
        return line
    line = _ENVIRONMENT.sub(lambda match: " " * len(match[0]), line)
    line = _WORDS.sub(lambda match: (match[1] or match[2]).rjust(len(match[0])), line)
    arrow = _SO.match(line)
    return " " * arrow.end() + line[arrow.end() :] if arrow else line


def without_note(line: str, start: int, end: int, is_known: Callable[[str], bool]) -> int:
    """Return where a side ends before a note in brackets that is no formula.

    >>> line = "2x (power rule)"
    >>> line[: without_note(line, 0, len(line), {"x"}.__contains__)]
    '2x'
    """
    stop = start + len(line[start:end].rstrip(" .;$"))
    match = _NOTE.search(line, start, stop)
    words = re.findall(r"[^\W\d_]+", (match["round"] or match["square"] or "") if match else "")
    if match is None or match.start() <= start or re.search(r"[0-9+*/=^]", match[0]):
        return end
    known_words = [word for word in words if is_known(word) or word in FUNCTIONS or word in CONSTANTS]
    others = [word for word in words if len(word) > 2 and word not in known_words]
    return match.start() if len(others) > bool(known_words) else end


def without_remainder(line: str, start: int, end: int) -> tuple[int, tuple[int, int] | None]:
    """Return where a side ends before + O(ε²), and the start and end of the remainder's argument.

    >>> line = "x + v ε + O(ε²)"
    >>> without_remainder(line, 0, len(line))
    (7, (12, 14))
    """
    stop = start + len(line[start:end].rstrip(" .;$"))
    match = _REMAINDER.search(line, start, stop)
    if match is None:
        return end, None
    last = match.end("of") - (len("\\right") if match["of"].endswith("\\right") else 0)
    return start + len(line[start : match.start()].rstrip()), (match.start("of"), last)
