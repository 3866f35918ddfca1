r"""One spelling for each sign and derivative, before a text is read: letters, primes, spaces, fractions, d/dx.

The rules are applied once, in order, to questions and answers of every kind. A derivative becomes f'''(x) or
\frac{d^2f}{dx^2}, whatever package or keyboard it comes from. A text in plain spelling stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from symad.classroom.formulas.tokens import RAISED

_STYLED = (*range(0x1D400, 0x1D800), *range(0xFF01, 0xFF5F), 0x210E, *range(0x2145, 0x2149))
_SIGNS: dict[int, str | int | None] = {
    code: letter for code in _STYLED if len(letter := unicodedata.normalize("NFKC", chr(code))) == 1
}
_SIGNS |= str.maketrans("\u2219\u2022\u2062\u2061ƒ´`′’‘ʹˈ", "··· f'''''''", "\u200b\u2060\ufeff")
_SIGNS |= {ord("″"): "''", ord("‴"): "'''", ord("⁗"): "''''", ord("ᵀ"): "^T"}
_DOTS = {"\u0307": 1, "\u0308": 2, "\u20db": 3, "\u20dc": 4, "dot": 1, "ddot": 2, "dddot": 3, "ddddot": 4}
_LOW = str.maketrans("ₐₑₕₖₗₘₙₒₚᵣₛₜᵤᵥₓ", "aehklmnoprstuvx")
_ROMAN = {"ii": 2, "iii": 3, "iv": 4, "v": 5, "vi": 6}

_GROUPED = r"[^{}]*(?:\{[^{}]*(?:\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}[^{}]*)*\}[^{}]*)*"
_GROUP, _BRACED = rf"\{{{_GROUPED}\}}", rf"\{{({_GROUPED})\}}"
ROUND = r"\([^()]*(?:\([^()]*(?:\([^()]*\)[^()]*)*\)[^()]*)*\)"
POWER = r"(?:\s*\^\s*\{?\s*[2-9]\s*\}?|[²³⁴⁵⁶])"
_ARGUMENT = r"\(\s*[^\W\d]\w?(?:\s*,\s*\w+)*\s*\)"
_OF = rf"(?:[^\W\d_](?:_[^\W\d]|'+)?\s*(?:{_ARGUMENT})?|{ROUND}|\[[^\[\]]*\])"
_NAMED = re.compile(rf"\\?[^\W\d_]+(?:{_ARGUMENT})?")
STEP = re.compile(r"[d∂](\\[a-z]+|[^\W\d_]+?(?:_\d)?)(?:\^([2-9]))?(?=[d∂]|$)")
_RATIO = re.compile(
    rf"(?<![A-Za-z\\'_^}}])[d∂](?P<above>(?:{POWER}|[2-9](?=[a-z]))?\s?{_OF}?)\s*/\s*"
    rf"(?P<below>[d∂]\s?[^\W\d_](?:[^\W\d_∂]*(?:_?\d)?{POWER}|(?:\s?[d∂]\s?[^\W\d_∂]{POWER}?)+(?![\w/])|[^\W_∂]*(?:_\d)?)"
    rf"|\(\s*[d∂][^()/]*\){POWER}?)"
)


def order_of(raised: str) -> int:
    return int((re.findall("[2-9]", raised.translate(RAISED)) or ["1"])[0])


def leibniz(above: str, below: str) -> str:
    r"""Return \frac{d^2f}{dx^2} from what stands behind the d above, and below; "" if these are no derivative.

    >>> leibniz("²f(x)", "dx²"), leibniz("(x^2)", "dx"), leibniz("f_x", "∂y"), leibniz("^2 f", "x")
    ('\\frac{d^2f(x)}{dx^2}', '(\\frac{d}{dx}(x^2))', '\\frac{∂^2f}{∂x∂y}', '')
    """
    power = re.match(rf"{POWER}|\s*[2-9](?=\s?[a-z]|$)", above)
    of = re.sub(r"^\{(\w)\}$", r"\1", above[power.end() if power else 0 :].strip())
    below = re.sub(r"[\s{}]", "", re.sub("[²³⁴⁵⁶]", lambda high: f"^{high[0].translate(RAISED)}", below))
    below = re.sub(r"^\((.*)\)", r"\1", re.sub(r"([d∂])\(([^()]*)\)", r"\1\2", below))
    if power and power[0].strip().isdigit():
        below = re.sub(r"([a-z])([2-9])$", r"\1^\2", below)
    names = [name for name, times in STEP.findall(below) for _ in range(int(times or 1))]
    if not names or "".join(match[0] for match in STEP.finditer(below)) != below or of[:1] in tuple("+-*/=^),"):
        return ""
    order = order_of(power[0]) if power else 1
    if (lowered := re.fullmatch(r"([^\W\d_])_([^\W\d])", of)) is not None:
        of, names, order = lowered[1], [lowered[2], *names], order + 1
    sign, raised = below[0], f"^{order}" if order > 1 else ""
    under = f"{sign}{names[0]}" + (f"^{len(names)}" if len(names) > 1 else "")
    under = under if len(set(names)) == 1 else "".join(sign + name for name in names)
    if not of or _NAMED.fullmatch(of):
        return f"\\frac{{{sign}{raised}{of}}}{{{under}}}"
    of = of if of[0] in "([" and of[-1] in ")]" else f"({of})"
    return f"(\\frac{{{sign}{raised}}}{{{under}}}{of})"


def _sign(mark: str, of: str, names: Sequence[str]) -> str:
    """Return the sign of the derivative in these variables."""
    raised = f"^{len(names)}" if len(names) > 1 else ""
    return leibniz(f"{raised} {of}", "".join(mark + name for name in names))


def _called(match: re.Match[str]) -> str:
    """Return the sign of a derivative from diff(f, x, 2), D[f, {x, 2}] or diff(f, x, y)."""
    names = list[str]()
    for part in re.findall(r"[^\W\d]\w*|[2-9]", match["by"]):
        names += names[-1:] * (int(part) - 1) if part.isdigit() else [part]
    return _sign("d", match["of"].replace("[", "(").replace("]", ")"), names)


def _fraction(match: re.Match[str]) -> str:
    above, below = match[1], match[2]
    if (differential := re.match(r"\s*[d∂]", above)) and (sign := leibniz(above[differential.end() :], below)):
        return sign
    return f"\\frac{{{_fractions(above)}}}{{{_fractions(below)}}}"


def _fractions(text: str) -> str:
    return re.sub(rf"\\frac\s*{_BRACED}\s*{_BRACED}", _fraction, text)


def _ratio(match: re.Match[str]) -> str:
    after = match.string[match.end() :]
    is_operator = not match["above"].strip("²³⁴⁵⁶^{} 23456")
    if is_operator and not re.match(r"\s*(?:[\w√½|(\[\\{=]|\)\s*[\w(\[\\^²³])", after):
        return match[0]
    return leibniz(match["above"], match["below"]) or match[0]


def _command(match: re.Match[str]) -> str:
    """Return the sign of a derivative from a command of a LaTeX package."""
    of, by = match["of"], match["by"].strip()
    sign = "∂" if match["name"].startswith(("p", "diffp")) else "d"
    names = re.split(r"\s*(?:\}\s*\{|,)\s*", by[1:-1].strip()) if by else [of]
    names = names if len(names) > 1 else names * order_of(match["times"] or "")
    return _sign(sign, of if by else "", names) or match[0]


def operators(text: str, signs: str) -> str:
    r"""Return a text with ∂_x∂_y or D_x^2 before an operand as \frac{∂^2}{∂x∂y}, for these signs.

    >>> operators("∂_x² f, ∂_{xy} f", "∂"), operators("D_x y", "D")
    ('\\frac{∂^2}{∂x^2} f, \\frac{∂^2}{∂x∂y} f', '\\frac{d}{dx} y')
    """
    part = re.compile(rf"([{signs}])({POWER}?)_(?:\{{\s*([a-z]+)\s*\}}|([a-z]+))({POWER}?)\s*")

    def sign(match: re.Match[str]) -> str:
        names = ""
        for _, early, letters, letter, late in part.findall(match[0]):
            names += (letters or letter) * (order_of(early or late) if len(letters or letter) == 1 else 1)
        return _sign("∂" if "∂" in match[0] else "d", "", names) + " "

    return re.sub(rf"(?<![\w\\])(?:{part.pattern})+(?=[\w(\[\\])", sign, text)


def _roman(match: re.Match[str]) -> str:
    letter, number = filter(None, match.groups())
    number = re.sub(r"\\[a-z]+|[(){}\s]", "", number).lower()
    return letter + "'" * _ROMAN[number] if number in _ROMAN else match[0]


_Put = str | Callable[[re.Match[str]], str]
_UPRIGHT_ROMAN = (
    r"(\(\s*(?:\\(?:mathrm|text)\s*\{\s*)?[ivIV]+(?:\s*\})?\s*\)|(?:\\(?:mathrm|text)\s*\{\s*)?[ivIV]{2,3}(?:\s*\})?)"
)
_COMMAND = r"dv|odv|od|derivative|diff|pdv|pd|partialderivative|diffp"
_EQUAL = r"(?=\s*(?:$|[=,;\n$)]))"
_RULES: list[tuple[str, _Put]] = [
    (r"\\(?:left|right|[bB]igg?[lrm]?|middle|mleft|mright)(?![a-zA-Z])(?:\s*\.)?", " "),
    (r"(?<!\\)\\(?:[,;:!> ()]|(?:thinspace|displaystyle|textstyle|nonumber)(?![a-zA-Z]))|~", " "),
    (r"\s*\\limits(?![a-zA-Z])\s*", ""),
    (r"\\(?:rm|bf|it)(?![a-zA-Z])(?!\s*\{?\s*d\b)", " "),
    (r"\\(?:text)?color\s*\{[^{}]*\}", " "),
    (r"\^\s*\{\s*\\circ\s*\}|\^\s*\\circ(?![a-z])|\\degree(?![a-z])", "°"),
    (r"\\%", "%"),
    (r"(?<=\d)\{,\}(?=\d)", ","),
    *[(rf"\\(?:boxed|fbox|underline)\s*{_BRACED}", r" \1 ")] * 2,  # underlined twice
    (r"\\log\s*\^\s*(\{[^{}]*\}|\w)\s*_\s*(\{[^{}]*\}|\w)", r"\\log_\2^\1"),
    (rf"\\(?:overset|stackrel)\s*{_GROUP}\s*\{{\s*=\s*\}}", "="),
    (r"\\(?:cdotp?|times|ast)(?![a-zA-Z])\s*", "·"),
    (rf"\{{((?:[^{{}}]|{_GROUP})*?)\\over(?![a-z])((?:[^{{}}]|{_GROUP})*)\}}", r"\\frac{\1}{\2}"),
    (r"\\partial(?![a-zA-Z])\s*", "∂"),
    (r"\\(?:nabla|grad|gradient)(?![a-zA-Z])\s*|∇\u20d7", "∇"),
    (r"\\(?:top|intercal)(?![a-z])|⊤", "T"),
    (r"\^\s*\{\s*(?:\\(?:math|text)[a-z]+\s*)?\{?\s*T\s*\}?\s*\}", "^T"),
    (r"\\(?:mathrm|mathit|text|textrm|operatorname)\s*\{\s*([dD])\s*\}\s*", r"\1"),
    (r"\{\s*\\(?:rm|mathrm|text)\s*d\s*\}\s*|\\(?:rm|mathrm|text)\s*(?:\{\s*d\s*\}|d(?![a-z]{2}))\s*", "d"),
    (r"\\(?:dd|dif|diffd|differential)(?![a-zA-Z])\s*(?:\{\s*(\w+)\s*\})?\s*", r"d\1"),
    (r"\\(?:mathit|mathrm|mathsf|mathbf|boldsymbol)\s*\{\s*([a-zA-Z])\s*\}(?=\s*['^(])(?!\s*\^\s*[{\d]*[\w])", r"\1"),
    (r"\\(?:dfrac|tfrac|cfrac|nicefrac|sfrac|flatfrac)(?![a-zA-Z])", r"\\frac"),
    (r"\\frac\s*([dD∂])\s*(?=\{)", r"\\frac{\1}"),
    (r"\\(d{1,4}ot)(?![a-z])\s*(?:\{\s*(\\[a-zA-Z]+|[^\W\d_])\s*\}|(\\[a-zA-Z]+|[^\W\d_]))",
     lambda m: (m[2] or m[3]) + "'" * _DOTS[m[1]]),
    (r"\\prime(?![a-z])\s*", "'"),
    (r"\^\s*(?:\{[\s{}^]*((?:'\s*)+)[\s{}]*\}|('))", lambda m: (m[1] or m[2]).replace(" ", "")),
    (r"'\{\s*\}'", "''"),
    (r"(?<=[a-zA-Z)\]'}])[\"”“]", "''"),
    (r"(^|[=+\-*/(,]\s*)\{\s*([a-zA-Z])\s*\}(?=\s*')", r"\1\2"),
    (rf"(?<!\\)([fghysFGH])\s*\^\s*(?:\{{\s*{_UPRIGHT_ROMAN}\s*\}}|{_UPRIGHT_ROMAN}(?![a-zA-Z\d]))"
     r"|(\))\s*\^\s*(?:\{\s*)?\(([ivIV]{2,3})\)(?:\s*\})?", _roman),
    (r"\^\s*\{\s*\(\s*([1-9])\s*\)\s*\}", r"^{(\1)}"),
    (rf"\\(?P<name>{_COMMAND})\*?\s*(?P<times>\[[^\[\]]*\])?\s*\{{(?P<of>{_GROUPED})\}}"
     rf"(?P<by>(?:\s*{_GROUP})*)", _command),
    (r"(?<![A-Za-z])(?:(?:diff|Diff|Derivative)\s*[(\[]|D\s*\[)\s*(?P<of>[^(),\[\]]+(?:[(\[][^()\[\]]*[)\]])?[^(),\[\]]*),"
     r"\s*(?P<by>\{?\s*[^\W\d]\w*(?:\s*[,$]\s*\w+)*\s*\}?)\s*[)\]]", _called),
    (r"\{\s*\}", " "),
    (r"\(\s*([d∂][^\W\d_](?:\([^()]*\))?)\s*\)\s*/\s*\(\s*([d∂][^\W\d_])\s*\)", r"\1/\2"),
    (r"(?<!\w)(d[^\W\d_])\s*(?::|\\over(?![a-z]))\s*(d[^\W\d_])(?!\w)", r"\1/\2"),
]  # fmt: skip
_LATER: list[tuple[str, _Put]] = [
    (rf"\(\s*\\frac\{{([d∂])\}}\{{([d∂][^{{}}]*)\}}\s*\)\s*({POWER}?)(?=\s*[\w(\[\\])",
     lambda m: f"\\frac{{{m[1]}{m[3] and '^' + str(order_of(m[3]))}}}{{{m[2]}{m[3] and '^' + str(order_of(m[3]))}}}"),
    (rf"\\frac\{{([d∂])\}}\{{([d∂][^{{}}^]+)\}}\s*\(?\s*\\frac\{{[d∂](?:\^(\d))?([^\W\d_](?:\([^()]*\))?)\}}"
     rf"\{{([d∂][^{{}}]*)\}}\s*\)?{_EQUAL}",
     lambda m: leibniz(f"^{int(m[3] or 1) + 1}{m[4]}", m[2] + m[5])),
    (r"\(\s*(\\frac\{[d∂](?:\^\d)?[^\W\d_][^{}]*\}\{[d∂][^{}]*\})\s*\)(?:_(?:\{[a-z,]+\}|[a-z]))?"
     r"(?=\s*(?:\(\w+\)|=|\||_))", r"\1"),
    (r"(\\frac\{[d∂][^{}]*\}\{[d∂][^{}]*\})\s*_(?=\{\s*\w+\s*=)", r"\1|_"),
    (r"\(([^\W\d_])_\{?([a-z])\}?\)_\{?([a-z])\}?", r"\1_{\2\3}"),
    (r"\\eval\s*" + _BRACED + r"(?=\s*_)", r"\1|"),
    (r"\|\s*_\s*(?:\{[a-z](?:,[a-z])*\}|[a-z])" + _EQUAL, ""),
    (r"[(\[]([^()\[\]]*)[)\]]\s*_\s*(?=\{\s*[a-z]\s*=)", r"\1|_"),
    (r"\s*(?:\||\\r?vert)\s*_\s*(?=\{|\d)", "|_"),
]  # fmt: skip
_COMPILED_RULES, _COMPILED_LATER = (
    [(re.compile(pattern), put) for pattern, put in rules] for rules in (_RULES, _LATER)
)


def normalized(text: str) -> str:
    r"""Return a text in which each sign and derivative has one spelling.

    >>> normalized(r"\dv[2]{y}{x} = f″(x)"), normalized("d²f/dx²"), normalized(r"{d y \over d x}"), normalized("ẏ")
    ("\\frac{d^2y}{dx^2} = f''(x)", '\\frac{d^2f}{dx^2}', '\\frac{dy}{dx}', "y'")
    """
    if text.isascii() and not re.search(r"[\\\"/^{]|diff|Derivative|D\s*[(\[]", text):
        return text
    apart = unicodedata.normalize("NFD", text.translate(_SIGNS))
    dotted = re.sub(
        "(?<![^\\W\\d_])([^\\W\\d_])([\u0307\u0308\u20db\u20dc])(?![^\\W\\d_])",
        lambda m: m[1] + "'" * _DOTS[m[2]],
        apart,
    )
    text = unicodedata.normalize("NFC", dotted)
    text = re.sub("[ₐₑₕₖₗₘₙₒₚᵣₛₜᵤᵥₓ]+", lambda low: f"_{{{low[0].translate(_LOW)}}}", text)
    text = re.sub("⁽[¹²³⁴⁵⁶⁷⁸⁹ⁱᵛ]+⁾|ⁱᵛ", lambda high: f"^{{{high[0].translate(RAISED)}}}", text)
    for pattern, put in _COMPILED_RULES:
        text = pattern.sub(put, text)
    text = operators(_RATIO.sub(_ratio, _RATIO.sub(_ratio, _fractions(text))), "∂")
    for pattern, put in _COMPILED_LATER:
        text = pattern.sub(put, text)
    return text
