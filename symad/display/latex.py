r"""A document as LaTeX for a paper: the body, which needs the packages amsmath, booktabs, xcolor and tikz."""

from __future__ import annotations

import re

import sympy as sp

from symad.display.document import (
    Block,
    Cell,
    Code,
    Columns,
    Document,
    Formula,
    Heading,
    Inline,
    Marked,
    Paragraph,
    Picture,
    Table,
    inlines,
)
from symad.display.mathematics import latex_of
from symad.display.styles import LOOKS

PREAMBLE = "\n".join(
    (
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage[a4paper,landscape,margin=15mm]{geometry}",
        r"\usepackage{amsmath,amssymb,booktabs,xcolor,tikz}",
    )
)
_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "\n": " ",
}  # fmt: skip
_HEADINGS = {1: "section*", 2: "subsection*", 3: "paragraph"}


def body(document: Document) -> str:
    r"""Return a document as the body of a LaTeX text.

    >>> print(body((Heading("A root"), Formula(sp.sqrt(sp.Symbol("x")), sp.Symbol("y")))))
    \subsection*{A root}
    <BLANKLINE>
    \[ y = \sqrt{x} \]
    """
    return "\n\n".join(map(_block, document))


def whole(document: Document) -> str:
    """Return a document as a LaTeX file that compiles by itself."""
    return f"{PREAMBLE}\n\\begin{{document}}\n{body(document)}\n\\end{{document}}\n"


def escape(text: str) -> str:
    r"""Return prose with the characters that LaTeX gives a meaning written out.

    >>> escape("a_b & 50%")
    'a\\_b \\& 50\\%'
    """
    return re.sub(r"[\\{}$&#%_^~<>|\n]", lambda found: _SPECIAL[found[0]], text)


def _block(block: Block) -> str:
    match block:
        case Heading():
            return rf"\{_HEADINGS.get(block.depth, 'paragraph')}{{{escape(block.text)}}}"
        case Paragraph():
            return _cell(block.content)
        case Formula():
            return _formula(block)
        case Table():
            return _table(block)
        case Code():
            return f"\\begin{{verbatim}}\n{block.text}\n\\end{{verbatim}}"
        case Picture():
            return block.latex or rf"\emph{{[{escape(block.description)}]}}"
        case Columns():
            return "\n\n".join(map(body, block.parts))


def _formula(formula: Formula) -> str:
    sides = [latex_of(side) for side in (formula.left, formula.right) if side is not None]
    reason = rf" \qquad \text{{{_cell(formula.reason)}}}" if formula.reason else ""
    return rf"\[ {' = '.join(sides)}{reason} \]"


def _table(table: Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    lines = [" & ".join(map(_cell, row)) + r" \\" for row in table.rows]
    if table.header:
        lines[:0] = [" & ".join(map(_cell, table.header)) + r" \\", r"\midrule"]
    align = (table.align + "l" * width)[:width]
    rows = "\n".join((rf"\begin{{tabular}}{{{align}}}", r"\toprule", *lines, r"\bottomrule", r"\end{tabular}"))
    return f"{rows}\n\n{escape(table.caption)}" if table.caption else rows


def _cell(cell: Cell) -> str:
    return "".join(map(_inline, inlines(cell)))


def _inline(inline: Inline) -> str:
    if not isinstance(inline, Marked):
        return f"${latex_of(inline)}$" if isinstance(inline, sp.Basic) else escape(inline)
    look, text = LOOKS[inline.style], _inline(inline.content)
    text = rf"\textbf{{{text}}}" if look.bold else rf"\texttt{{{text}}}" if inline.style == "code" else text
    return rf"\textcolor[HTML]{{{look.light}}}{{{text}}}" if look.light else text
