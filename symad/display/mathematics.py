"""A SymPy expression as one line of text, as LaTeX, and as MathML made from the LaTeX.

MathML as it reads well on a wall: what latex2mathml makes of LaTeX, with its spaces and brackets mended. latex2mathml
escapes nothing, so text never goes through it: a name that is no plain word is a token between two private characters,
and is put in its place afterwards, in a tree, where it cannot become markup.

Nothing here is given an expression of any size: SymPy's printers recurse, and a formula of more than a page is not
read. What is larger than SHOWN_LIMIT nodes, counted without unfolding, is named by its size instead.
"""

from __future__ import annotations

import math
import re
from functools import cache, lru_cache
from html import escape
from importlib import import_module
from itertools import chain, islice
from typing import TYPE_CHECKING
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import sympy as sp

from codegen.later import Deferred
from symad.display.latex_printer import Latex
from symad.display.printers import Signs, Text
from symad.display.styles import class_of

if TYPE_CHECKING:
    from latex2mathml import converter
else:  # when a formula is shown as MathML
    converter = Deferred("latex2mathml.converter")

_TOKEN = re.compile("\ue000([0-9]+)\ue001")
_ENTITY = re.compile(r"&#x([0-9A-F]+);")
_TALL = {"mfrac", "mtable", "munder", "mover", "munderover", "msqrt", "mroot"}
_SIGNS = ("+", "\N{MINUS SIGN}")
_BEFORE_A_SIGN = ("(", "[", "{", "|", ",", "=", "<", ">", "≤", "≥", "≠")
_SUMS = "∑∏∫"
_SCRIPTS = ("msub", "msup", "msubsup", "munder", "munderover")


class ForMathML(Latex):
    """LaTeX for latex2mathml. Text that is no plain name is a numbered token between private characters."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def any_text(self, text: str) -> str:
        """Return a token for text that is no mathematics."""
        self.texts.append(text)
        return f"\\text{{\ue000{len(self.texts) - 1}\ue001}}"

    def operator(self, name: str) -> str:
        """Return the name of a function in upright letters."""
        return super().operator(name) if name.isalpha() and name.isascii() else self.any_text(name)


@cache
def _refusals() -> tuple[type[Exception], ...]:
    classes = vars(import_module("latex2mathml.exceptions")).values()
    return ElementTree.ParseError, *(c for c in classes if isinstance(c, type) and issubclass(c, Exception))


@lru_cache(maxsize=4096)
def converted(latex: str, texts: tuple[str, ...] = (), display: str = "inline") -> str:
    r"""Return MathML for LaTeX, with its tokens replaced by texts.

    >>> converted(r"\left(x \right)").removeprefix("<math><mrow>")
    '<mrow><mo stretchy="false">(</mo><mi>x</mi><mo stretchy="false">)</mo></mrow></mrow></math>'
    """
    mathml = converter.convert(latex, display=display).replace(' xmlns="http://www.w3.org/1998/Math/MathML"', "")
    root = ElementTree.fromstring(_ENTITY.sub(lambda match: f"&#{int(match[1], 16)};", mathml))
    root.attrib.clear()
    if display == "block":
        root.set("displaystyle", "true")
    for element in root.iter():
        element.text = _TOKEN.sub(lambda match: texts[int(match[1])], element.text or "")
        _mend(element)
    return ElementTree.tostring(root, encoding="unicode")


def _mend(element: Element) -> None:
    """Mend one element, and the spaces between its parts."""
    if element.tag == "mo":
        _mend_operator(element)
    elif element.tag in ("msub", "msubsup") and _text(element[0]) == "ε" and _text(element[1]).isdigit():
        element.set("class", class_of("epsilon", int(_text(element[1]))))
    elif element.tag == "menclose":  # which browsers do not draw: the stylesheet strikes it through
        element.tag = "mrow"
        element.attrib = {"class": "struck"}
    elif element.tag == "msup" and set(_text(element[1])) <= set("′″‴"):
        _mend_prime(element)
    if len(element) > 1 and element[0].tag == "mo" and element[0].get("fence") and not _is_tall(element):
        for child in element:
            if child.tag == "mo" and child.get("fence"):
                child.attrib.clear()
                child.set("stretchy", "false")
    elif element.tag in ("mfrac", "mtable") and element.find(".//mfrac") is not None:
        for child in [element] if element.tag == "mtable" else list(element):  # readable from afar, as other fractions
            if child.tag in ("mtable", "mrow", "mfrac"):
                child.set("displaystyle", "true")
    if element.get("columnalign"):
        element.attrib = {"class": f"to-{element.get('columnalign')}"}
    if element.tag in ("math", "mrow", "mtd", "mstyle", "msqrt"):
        _space_row(element)


def _mend_operator(element: Element) -> None:
    text = element.text or ""
    if text in ("∂", "∞") or (text.isalnum() and text != "mod"):
        element.tag = "mi"
        element.attrib.clear()
        if len(text) == 1 and text.isalpha():
            element.set("mathvariant", "normal")


def _mend_prime(element: Element) -> None:
    """Write f' with a prime of full size beside the letter: as an exponent it is too small to be told from f''."""
    element.tag, element[1].tag, primes = "mrow", "mo", _text(element[1])
    for child in list(element[1]):
        element[1].remove(child)
    element[1].text = primes
    element[1].attrib.update({"form": "postfix", "lspace": "0.05em", "rspace": "0"})


def _space_row(row: Element) -> None:
    """Put a thin space between a factor and the name of a function, and none behind a sign that binds one term."""
    children = list(row)
    for child in [child for child in children if child.tag == "mo" and not child.text and child.get("fence")]:
        row.remove(child)  # \left. and \right.
    previous: Element | None = None
    for position, child in reversed(list(enumerate(row))):
        previous = row[position - 1] if position else None
        if previous is not None and previous.tag not in ("mo", "mspace") and _is_function(child):
            row.insert(position, Element("mspace", {"width": "0.167em"}))
        if previous is not None and previous.tag == "mo" and previous.text in _BEFORE_A_SIGN and child.text in _SIGNS:
            child.set("form", "prefix")


def _is_function(element: Element) -> bool:
    """Whether an element is the name of a function, also with an exponent."""
    name = element[0] if element.tag in _SCRIPTS else element
    return name.tag in ("mi", "mo", "mtext") and len(name.text or "") > 1


def _is_tall(element: Element) -> bool:
    return any(part.tag in _TALL or (part.text or " ") in _SUMS for part in element.iter())


def _text(element: Element) -> str:
    return "".join(element.itertext())


COUNTED_LIMIT = 100_000  # different nodes that are counted, to name the size of what is not shown
SHOWN_LIMIT = 2000  # nodes of the unfolded tree
LONG_FORMULA = 400  # characters of MathML, some 20 signs: what is longer may be broken, as a phone has to
DEPTH_LIMIT = 60  # SymPy's printers recurse some ten frames for each level


def text_of(expression: sp.Basic) -> str:
    """Return an expression on one line.

    >>> text_of(sp.sin(sp.Symbol("x")) ** 2)
    'sin(x)**2'
    """
    return too_large(expression) or str(Text().doprint(expression))


def signs_of(expression: sp.Basic) -> str:
    """Return an expression on one line in handwritten notation.

    >>> signs_of(2 * sp.sin(sp.Symbol("x")) ** 2)
    '2sin(x)²'
    """
    return too_large(expression) or str(Signs().doprint(expression))


def latex_of(expression: sp.Basic) -> str:
    r"""Return an expression in LaTeX, for math mode.

    >>> latex_of(sp.sqrt(sp.Symbol("x")))
    '\\sqrt{x}'
    """
    large = too_large(expression)
    return rf"\text{{{large}}}" if large else str(Latex().doprint(expression))


def mathml_of(expression: sp.Basic, display: str = "inline") -> str:
    """Return an expression in presentation MathML; display is "inline" or "block".

    What latex2mathml cannot convert, or converts into what is no XML, stands as text.

    >>> "<msqrt>" in mathml_of(sp.sqrt(sp.Symbol("x")))
    True
    """
    if large := too_large(expression):
        return f"<math><mtext>{large}</mtext></math>"
    printer = ForMathML()
    latex = str(printer.doprint(expression))
    try:
        return converted(latex, tuple(printer.texts), display)
    except _refusals():
        return f"<math><mtext>{escape(str(Text().doprint(expression)))}</mtext></math>"


def mathml_pieces(expression: sp.Basic) -> list[str]:
    """Return a displayed formula in MathML. A long sum comes in terms with their signs: the line may break between.

    >>> a, b, c = sp.symbols("alpha beta gamma")
    >>> len(mathml_pieces(a + b - c)), len(mathml_pieces(sp.sin(a) ** 2 + sp.sin(b) ** 2 - sp.sin(c) ** 2))
    (1, 3)
    """
    whole = mathml_of(expression, "block")
    if len(whole) <= LONG_FORMULA:
        return [whole]
    root = ElementTree.fromstring(whole)
    row = root[0] if len(root) == 1 and root[0].tag == "mrow" else root
    parts: list[Element] = []
    for position, child in enumerate(row):
        sign = child.tag == "mo" and child.text in _SIGNS and position > 0
        if sign or not parts:
            parts.append(Element("math", root.attrib))
        if sign:
            child.set("form", "infix")
        parts[-1].append(child)
    return [ElementTree.tostring(part, encoding="unicode") for part in parts]


def too_large(expression: sp.Basic) -> str:
    """Return the text for an expression that is too large or too deep to read, "" for others.

    >>> tower = sp.Symbol("x")
    >>> for _ in range(25):
    ...     tower = sp.sin(tower) * tower
    >>> too_large(tower)
    '(a formula of 83886079 nodes)'
    """
    count, level = 0, [expression.as_immutable() if isinstance(expression, sp.MatrixBase) else expression]
    for _ in range(DEPTH_LIMIT):
        count += len(level)
        if count > SHOWN_LIMIT:
            return f"(a formula of {_size(expression)} nodes)"
        level = list(islice(chain.from_iterable(node.args for node in level), SHOWN_LIMIT + 1))
        if not level:
            return ""
    return f"(a formula more than {DEPTH_LIMIT} levels deep)"


def expanded_terms(expression: sp.Expr) -> int:
    """Return a bound of the number of terms of an expression that is multiplied out; denominators are left alone."""
    terms: dict[sp.Basic, int] = {}
    for part in sp.postorder_traversal(expression):
        counts = [terms[argument] for argument in part.args]
        if part.is_Pow and part.exp.is_Integer:
            count = int(sp.binomial(counts[0] + abs(part.exp) - 1, abs(part.exp)))
        else:
            count = sum(counts) if part.is_Add else int(sp.prod(counts)) if part.is_Mul else 1
        terms[part] = min(count, 10**9)
    return max(terms.values())


def _size(expression: sp.Basic) -> str:
    """Return the number of nodes of the unfolded tree in words."""
    sizes: dict[int, int] = {}
    stack = [expression]
    while stack and len(sizes) < COUNTED_LIMIT:
        node = stack[-1]
        missing = [argument for argument in node.args if id(argument) not in sizes]
        if missing:
            stack += missing
        else:
            sizes[id(node)] = 1 + sum(sizes[id(argument)] for argument in node.args)
            stack.pop()
    if (size := sizes.get(id(expression))) is None:
        return f"more than {COUNTED_LIMIT}"
    return str(size) if size < 10**12 else f"some 10^{int(math.log10(size))}"
