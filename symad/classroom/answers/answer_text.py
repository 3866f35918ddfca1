"""The text around formulas in an answer: left sides, remainders, typesetting, and words in the languages of books.

Labels, connectives, reasons and units are left out where they are known, or where no formula can be read; a word that
may be a formula stays.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from codegen.records import dataclass
from symad.classroom.formulas.formula_names import CONSTANTS, FUNCTIONS, LETTER_OF
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

IsKnown = Callable[[str], bool]

_CONNECTIVE = re.compile(
    r"\s*(?:so|thus|hence|therefore|then|let|where|with|and|also|now|since|because|(?:we|i) (?:get|have|obtain|find)|"
    r"(?:i think )?(?:it is|it's|that is|this is)|it follows that|put|set|for|giving|gives|about|approximately|roughly|"
    r"somit|daher|folglich|dann|also|sei|setze|ist|mit|und|es gilt|gilt|etwa|rund|donc|alors|ainsi|soit|avec|et|on a|"
    r"on pose|on obtient|environ|entonces|luego|por tanto|allora|quindi|dunque|portanto|logo|dus|więc|значит)\b[\s,:]*",
    re.IGNORECASE,
)
_LABEL = re.compile(
    r"\s*(?:[^\W\d_](?:[^\W\d_]|[ -])+|\(?[a-z0-9]\)|[1-9](?:st|nd|rd|th))\s*:(?!=)\s*"
    r"|\s*(?:[a-h0-9]\)|\([a-h]\)|i{1,3}\))\s+|\s*(?:ans\.|\*\*?(?=.*\*)|:(?!=))\s*",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"\s*(?:[^\W\d_]{1,2}[\s-]+)*[^\W\d_]{1,2}\s*:\s*")  # factors that a colon divides
_ORDINAL = (
    r"(?:first|second|third|fourth|[1-9](?:st|nd|rd|th)|[1-9]\.|erste|zweite|dritte|vierte|première|seconde|deuxième|"
    r"troisième|tierce|quatrième|primera|segunda|tercera|cuarta|prima|seconda|terza|quarta|primeira|terceira|первая|"
    r"вторая|третья|четв[её]ртая)"
)
_THING = (
    r"(?:derivative|ans(?:wer)?|result|solution|gradient|slope|hessian|Ableitung|Antwort|Lösung|Ergebnis|Steigung|"
    r"Hesse-Matrix|dérivée|réponse|résultat|pente|derivada|respuesta|resultado|solución|gradiente|derivata|risposta|"
    r"risultato|resposta|afgeleide|antwoord|pochodna|производная|ответ)"
)
_PHRASE = re.compile(
    rf"\s*(?:(?:the|my|die|das|der|la|le|il|o|a|de|mi)\s+)?(?:{_ORDINAL}\s+)?{_THING}(?:\s+{_ORDINAL})?"
    r"(?:\s+(?:of|von|de|di|van)\s[^=]*?)?\s*(?:ist|is|lautet|est|es|è|é|равна|[=:.])(?!\w)\s*",
    re.IGNORECASE,
)
_BY = (
    r"(?:by|using|with|applying|from|via|because|since|weil|denn|due to|after|as|nach|wegen|mit|aus|durch|gemäß|"
    r"par|selon|d'après|avec|por|con|según|per|secondo|pela|volgens)"
)
_OF_RULES = re.compile(
    r"\b(?:\w*(?:rules?|regel|règle|regla|regola|regra)|formula|derivative|theorem|identity|simplif\w+|factor\w*|expand\w*|"
    r"algebra|definition|answer|checked|done|substitut\w+|differentiat\w+|Ableitung|ableiten)\b",
    re.IGNORECASE,
)
_PROSE = r"[^\W\d_][^\d+*/=^()\[\]{}\\<>|]*"
_LEAD = re.compile(
    rf"\s*{_BY}\s+(?:{_PROSE}?)(?:[,:]|\b(?:(?:we|i) (?:get|obtain|have|find)|gilt|ist|folgt|on a|on obtient|obtenemos|"
    r"si ha|temos)\b[\s,:]*)\s*",
    re.IGNORECASE,
)
_TAIL = re.compile(
    rf"[,;.]?\s+(?:{_BY}|is|war|ist|est)\s+(?P<reason>{_PROSE})$|\s*(?:\((?P<round>{_PROSE})\)|\[(?P<square>{_PROSE})\])$"
    rf"|\s*(?:--|//|\||—|\s[-–]\s|,|\s)\s*(?P<apart>{_PROSE})$",
    re.IGNORECASE,
)
_DENIES = frozenset(["not", "nicht", "kein", "pas", "non", "wrong", "false", "falsch", "faux", "or", "oder", "ou"])
_FOR_ALL = re.compile(
    r"(?<!\bis)[\s,(]+(?:(?:for|für|pour|para|per)\s+)?"
    r"(?:all|every|each|any|alle|jedes|tout|todo|ogni|∀|\\forall)\s+(?:real\s+|reelle\s+|réel\s+)?\w+\)?\.?$",
    re.IGNORECASE,
)
_END = re.compile(
    r"(?:\s|;|,|(?<=\s)\.|\*|∎|□|✓|\\checkmark(?![a-z])|//|\\blacksquare|\\qed|Q\.E\.D\.|QED|\bq\.e\.d\.)+$"
)
_FUNCTION = re.compile("|".join(sorted(FUNCTIONS, key=len, reverse=True)))
_SI = r"(?:cm|km|mm|kg|m|s|g|N|J|W|rad|K|Pa|V|A)"
_PER = rf"(?:{_SI}|h|min)"
_UNIT = re.compile(
    rf"(?:\s+|\s*(?=[(\[]))(?:\\(?:text|mathrm)\s*\{{\s*)?[(\[]?(?:{_SI}(?:\s*[/·*\s]\s*{_PER}(?:\s*\^\s*\{{?-?[0-9]\}}?|[²³]|⁻[¹²])?)*"
    rf"|\\frac\{{{_SI}\}}\{{{_PER}(?:\^\{{?[0-9]\}}?)?\}}|(?:met(?:er|re)s?|units?|seconds?)(?:\s+(?:per|pro|par)\s+\w+)?)[)\]]?(?:\s*\}})?\.?$"
)


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
    match = _REMAINDER.search(line, start, start + len(line[start:end].rstrip(" .;$")))
    if match is None:
        return end, None
    return start + len(line[start : match.start()].rstrip()), match.span("of")


def trimmed(code: str, start: int, end: int, is_known: IsKnown) -> tuple[int, int]:
    """Return the start and end of a statement without labels and connecting words in front, and closing words.

    >>> line = "By the power rule, the derivative is 2x m/s."
    >>> line[slice(*trimmed(line, 0, len(line), {"x"}.__contains__))]
    '2x'
    """
    length = 0
    while length != end - start:
        length = end - start
        for pattern in (_LEAD, _PHRASE, _LABEL, _CONNECTIVE):
            lead = pattern.match(code, start, end)
            text = lead[0] if lead is not None else ""
            if lead and (_are_words(text, is_known) if pattern is _LEAD else not _is_formula(text, is_known)):
                start = start if pattern is _LABEL and _LETTERS.fullmatch(text) else lead.end()
    for pattern in (_END, _FOR_ALL, _UNIT, _END):
        last = pattern.search(code[start:end])
        names = re.findall("[A-Za-z]+", last[0]) if last is not None and pattern is _UNIT else ()
        if last is not None and not any(map(is_known, names)):
            end = start + last.start()
    return start + len(code[start:end]) - len(code[start:end].lstrip()), end


def _is_formula(text: str, is_known: IsKnown) -> bool:
    """Whether words in front may be a formula, as in sin x : 2, where the colon divides."""
    words = re.findall(r"[^\W\d_]+", text) if text.count("(") == text.count(")") else []  # c) is a label
    return bool(words) and all(is_known(word) or all(map(is_known, _FUNCTION.sub("", word))) for word in words)


def _are_words(text: str, is_known: IsKnown) -> bool:
    """Whether a text has words, and none of them is a name or a function."""
    words = re.findall(r"[^\W\d_]+", text)
    names = [word for word in words if (len(word) > 1 and is_known(word)) or word in FUNCTIONS or word in CONSTANTS]
    return not names and any(len(word) > 2 for word in words) and _DENIES.isdisjoint(words)


def words_at_the_end(line: str, start: int, end: int, is_known: IsKnown) -> int:
    """Return where a reason at the end of a side begins; the end without one.

    >>> [words_at_the_end(line, 0, len(line), {"x"}.__contains__) for line in ("2x (power rule)", "2x by parts", "2x")]
    [2, 2, 2]
    """
    match = _TAIL.search(line, start, start + len(line[start:end].rstrip(" .;$")))
    if match is None or not line[start : match.start()].strip():
        return end
    if not _are_words(match["reason"] or match["round"] or match["square"] or match["apart"], is_known):
        return end
    return match.start() if not match["apart"] or _OF_RULES.search(match["apart"]) else end


def is_prose(text: str, is_known: IsKnown) -> bool:
    """Whether a text consists of words: a heading such as "Product rule"."""
    is_plain = re.fullmatch(rf"\s*{_PROSE}", text) is not None
    return is_plain and _are_words(text, is_known) and (_OF_RULES.search(text) is not None or len(text.split()) > 2)
