"""A SymPy expression as one line of text, as LaTeX, as MathML: one printer for LaTeX, from which MathML is made.

Nothing here is given an expression of any size: SymPy's printers recurse, and a formula of more than a page is not
read. What is larger than SHOWN_LIMIT nodes, counted without unfolding, is named by its size instead.
"""

from __future__ import annotations

from functools import lru_cache

import latex2mathml.converter
import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

SHOWN_LIMIT = 2000  # nodes of the unfolded tree
DEPTH_LIMIT = 60  # SymPy's printers recurse some ten frames for each level


class _Text(StrPrinter):  # type: ignore[misc]
    """SymPy's notation, as it may be typed again."""


class _Latex(LatexPrinter):  # type: ignore[misc]
    """SymPy's LaTeX, within what MathML has too."""


def text_of(expression: sp.Basic) -> str:
    """Return an expression on one line.

    >>> text_of(sp.sin(sp.Symbol("x")) ** 2)
    'sin(x)**2'
    """
    return too_large(expression) or str(_Text().doprint(expression))


def latex_of(expression: sp.Basic) -> str:
    r"""Return an expression in LaTeX, for math mode.

    >>> latex_of(sp.sqrt(sp.Symbol("x")))
    '\\sqrt{x}'
    """
    large = too_large(expression)
    return rf"\text{{{large}}}" if large else str(_Latex().doprint(expression))


@lru_cache(maxsize=4096)
def _mathml(latex: str, display: str) -> str:
    return str(latex2mathml.converter.convert(latex, display=display))


def mathml_of(expression: sp.Basic, display: str = "inline") -> str:
    """Return an expression in presentation MathML; display is "inline" or "block".

    >>> "<msqrt>" in mathml_of(sp.sqrt(sp.Symbol("x")))
    True
    """
    return _mathml(latex_of(expression), display)


def too_large(expression: sp.Basic) -> str:
    """Return what to say instead of an expression that is too large or too deep to be read; "" where it is not.

    >>> tower = sp.Symbol("x")
    >>> for _ in range(25):
    ...     tower = sp.sin(tower) * tower
    >>> too_large(tower)
    '(a formula of more than 2000 nodes)'
    """
    count, level = 0, [expression]
    for _ in range(DEPTH_LIMIT):
        count += len(level)
        if count > SHOWN_LIMIT:
            return f"(a formula of more than {SHOWN_LIMIT} nodes)"
        level = [argument for node in level for argument in node.args][: SHOWN_LIMIT + 1]
        if not level:
            return ""
    return f"(a formula more than {DEPTH_LIMIT} levels deep)"
