"""A SymPy expression as one line of text, as LaTeX, as MathML: one printer for LaTeX, from which MathML is made.

Nothing here is given an expression of any size: SymPy's printers recurse, and a formula of more than a page is not
read. What is larger than SHOWN_LIMIT nodes, counted without unfolding, is named by its size instead.
"""

from __future__ import annotations

import math
from itertools import chain, islice

import sympy as sp

from symad.display.mathml import mathml, pieces
from symad.display.printers import Latex, Text

COUNTED_LIMIT = 100_000  # different nodes that are counted, to name the size of what is not shown
SHOWN_LIMIT = 2000  # nodes of the unfolded tree
LONG_FORMULA = 1200  # characters of MathML, some 60 signs: what is longer may be broken
DEPTH_LIMIT = 60  # SymPy's printers recurse some ten frames for each level


def text_of(expression: sp.Basic) -> str:
    """Return an expression on one line.

    >>> text_of(sp.sin(sp.Symbol("x")) ** 2)
    'sin(x)**2'
    """
    return too_large(expression) or str(Text().doprint(expression))


def latex_of(expression: sp.Basic) -> str:
    r"""Return an expression in LaTeX, for math mode.

    >>> latex_of(sp.sqrt(sp.Symbol("x")))
    '\\sqrt{x}'
    """
    large = too_large(expression)
    return rf"\text{{{large}}}" if large else str(Latex().doprint(expression))


def mathml_of(expression: sp.Basic, display: str = "inline") -> str:
    """Return an expression in presentation MathML; display is "inline" or "block".

    >>> "<msqrt>" in mathml_of(sp.sqrt(sp.Symbol("x")))
    True
    """
    large = too_large(expression)
    return f"<math><mtext>{large}</mtext></math>" if large else mathml(expression, display == "block")


def mathml_pieces(expression: sp.Basic) -> list[str]:
    """Return a formula on a line of its own in MathML; a long sum in pieces, between which the line may be broken."""
    whole = mathml_of(expression, "block")
    return pieces(whole) if len(whole) > LONG_FORMULA else [whole]


def too_large(expression: sp.Basic) -> str:
    """Return what to say instead of an expression that is too large or too deep to be read; "" where it is not.

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
            return f"(a formula of {_in_words(_size(expression))} nodes)"
        level = list(islice(chain.from_iterable(node.args for node in level), SHOWN_LIMIT + 1))
        if not level:
            return ""
    return f"(a formula more than {DEPTH_LIMIT} levels deep)"


def _size(expression: sp.Basic) -> int | None:
    """Return the number of nodes of the unfolded tree; each object is looked at once, None where there are many."""
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
    return sizes.get(id(expression))


def _in_words(size: int | None) -> str:
    if size is None:
        return f"more than {COUNTED_LIMIT}"
    return str(size) if size < 10**12 else f"some 10^{int(math.log10(size))}"
