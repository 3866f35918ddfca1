"""Read the text around formulas in an answer: left sides, remainders, typesetting commands."""

from __future__ import annotations

import re

from codegen.records import dataclass
from symad.classroom.formulas.formula_names import LETTER_OF
from symad.classroom.formulas.tokens import LOWERED, RAISED
from symad.classroom.formulas.typesetting import STEP

_AT = r"(?:[(\[]\s*((?![^()\[\]]*[⁰-⁹²³¹])[^\W\d]\w*(?:\s*,\s*\w+)*|-?[0-9][0-9./]*)\s*[)\]])?"
_PRIMED = re.compile(  # y'', f'(x), f^{(4)}, f_{xy}, f''_{x^2}
    r"([^\W\d_])\s*((?:'\s*)*)(?:\^\s*\{?\s*\(([0-9])\)\s*\}?|\(([1-9])\)(?=\())?\s*"
    rf"(?:_(?:\{{([^{{}}]*)\}}|(\w+))\s*('*))?\s*{_AT}"
)
_RATIO = re.compile(  # \frac{d^2y}{dx^2} and \frac{d}{dx} f
    rf"\\frac\{{[d∂](?:\^([0-9]))?([^\W\d_]?)(?:\([\w, ]*\))?\}}\{{([^{{}}]*)\}}\s*(?:\(\s*)?([^\W\d_]?)\s*{_AT}\s*\)?"
)
_OPERATOR = re.compile(
    rf"\(?((?:[D∂∇](?:\^[0-9])?(?:_?\{{?[0-9]+\}}?)?(?:\^[0-9])?\s*)+)[(\[]?\s*([^\W\d_])\s*[)\]]?\s*{_AT}\s*\)?"
)
_INDEX = re.compile(r",?\s*([^\W\d_](?:_\d)?|\d)(?:\^\{?([2-9])\}?)?")
_REMAINDER = re.compile(r"\+\s*(?:[Oo]|\\mathcal\s*\{?\s*O\s*\}?)\s*\((?P<of>[^()]*(?:\([^()]*\)[^()]*)?)\)\s*$")
_ENVIRONMENT = re.compile(
    r"\\(?:begin|end)\s*\{[a-z]+\*?\}(?:\{[a-z]*\})?|\\\\\s*$|&|\\(?:label|tag|[hv]?phantom)\s*\{[^{}]*\}"
)
_WORDS = re.compile(
    r"(?:^\s*\\text(?:bf|it|rm)?\s*\{([^{}]*)\}|\\text\s*\{(\s*\(?(?:for|if|when|where|with|für|falls|pour|si)\b[^{}]*)\})(?=.*\S)"
)
ARROW = r"⇔|⟺|<=>|⇒|→|⟶|⟹|->|=>|\\(?:to|iff|implies|(?:[Ll]ong)?(?:[Ll]eft)?[Rr]ightarrow)(?![a-zA-Z])"
_SO = re.compile(rf"\s*(?:∴|\\therefore(?![a-zA-Z])|{ARROW})\s*")


@dataclass(frozen=True)
class LeftSide:
    """The meaning of a left side such as y'' or dy/dx: the function's letter, order, variables and argument."""

    letter: str
    order: int
    variables: tuple[str, ...] = ()
    at: str = ""


def left_side(text: str) -> LeftSide | None:
    r"""Return the meaning of a left side that is no formula: y, y', dy/dx, f_xy, D f; None for any other text.

    >>> left_side("y''(x)"), left_side(r"\frac{d^2y}{dx^2}").variables, left_side("f_{xy}").variables, left_side("2x")
    (LeftSide(letter='y', order=2, variables=(), at='x'), ('x', 'x'), ('x', 'y'), None)
    """
    bare = re.sub(r"\\(?:var)?([A-Za-z]+)", lambda word: LETTER_OF.get(word[1], word[0]), text.strip(" $\t"))
    bare = re.sub("[²³⁴⁵⁶]", lambda high: f"^{high[0].translate(RAISED)}", bare.translate(LOWERED))
    if match := _PRIMED.fullmatch(bare):
        letter, marks, raised, called, braced, low, more, at = match.groups()
        variables = _variables(braced or low or "")
        order = marks.count("'") + len(more or "") + int(raised or called or 0)
        if ((braced or low) and not variables) or (called and not at):
            return None
        variables = variables * order if len(variables) == 1 and order > 1 else variables
        return LeftSide(letter, max(order, len(variables)), variables, at or "")
    if (match := _RATIO.fullmatch(bare)) and not (match[2] and match[4]):
        variables = tuple(name for name, times in STEP.findall(match[3]) for _ in range(int(times or 1)))
        if len(variables) == int(match[1] or 1):
            return LeftSide(match[2] or match[4] or "f", len(variables), variables, match[5] or "")
    if match := _OPERATOR.fullmatch(bare):
        parts = re.findall(r"[D∂∇](?:\^([0-9]))?_?\{?([0-9]*)\}?(?:\^([0-9]))?", match[1])
        numbers = "".join(index * (1 if len(index) > 1 else int(early or late or 1)) for early, index, late in parts)
        times = sum(int(early or late or 1) for early, _, late in parts)
        return LeftSide(match[2], max(len(numbers), times), tuple(numbers), match[3] or "")
    return None


def _variables(index: str) -> tuple[str, ...]:
    """Return the variables of an index such as xy, x^2 or x_1x_2; nothing for any other text."""
    if not re.fullmatch(rf"(?:{_INDEX.pattern})+", index):
        return ()
    return tuple(name for name, times in _INDEX.findall(index) for _ in range(int(times or 1)))


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
    return start + len(line[start : match.start()].rstrip()), match.span("of")
