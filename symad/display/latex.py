r"""A document as LaTeX: the body, and a complete file with the preamble that it needs."""

from __future__ import annotations

import re

import sympy as sp

import symad.display.document as doc
from symad.display.mathematics import latex_of
from symad.display.notation import latex_code, latex_text
from symad.display.styles import LOOKS, look_of
from symad.display.tikz import tikz_of

PREAMBLE = "\n".join(
    (
        r"\documentclass{article}",
        r"\usepackage[T1]{fontenc}",
        r"\usepackage[utf8]{inputenc}",
        r"\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}",  # letters as outlines, where they are installed
        r"\usepackage[a4paper,landscape,margin=15mm]{geometry}",
        r"\IfFileExists{cancel.sty}{\usepackage{cancel}}{\newcommand{\cancel}[1]{\underline{#1}}}",  # what is struck
        r"\usepackage{textcomp,amsmath,amssymb,booktabs,longtable,xcolor,tikz}",
    )
)
LINE = 110  # signs of a formula on one line of a page in landscape
LONG_TABLE = 28  # rows of a table on one page
_HEADINGS = {1: "section*", 2: "subsection*", 3: "paragraph"}


def body(document: doc.Document) -> str:
    r"""Return a document as the body of a LaTeX text.

    >>> print(body((doc.Heading("A root"), doc.Formula(sp.sqrt(sp.Symbol("x")), sp.Symbol("y")))))
    \subsection*{A root}
    <BLANKLINE>
    \[ y = \sqrt{x} \]
    """
    return "\n\n".join(map(_block, document))


def whole(document: doc.Document) -> str:
    """Return a document as a LaTeX file that compiles by itself."""
    return f"{PREAMBLE}\n\\begin{{document}}\n{body(document)}\n\\end{{document}}\n"


def _block(block: doc.Block) -> str:
    match block:
        case doc.Heading():
            return rf"\{_HEADINGS.get(block.depth, 'paragraph')}{{{latex_text(block.text)}}}"
        case doc.Paragraph():
            return _cell(block.content)
        case doc.Formula():
            return _formula(block)
        case doc.Table():
            return _table(block)
        case doc.Code():
            return _code(block)
        case doc.Picture():
            return tikz_of(block.svg) if block.svg else rf"\emph{{[{latex_text(block.description)}]}}"
        case doc.Columns():
            return "\n\n".join(map(body, block.parts))
        case doc.Folded():
            return body(block.parts)
        case doc.Blank():
            return rf"\vspace*{{{1.5 * block.lines:g}\baselineskip}}"


def _formula(formula: doc.Formula) -> str:
    reason = rf" \qquad \text{{{_cell(formula.reason)}}}" if formula.reason else ""
    left = "" if formula.left is None else latex_of(formula.left) + " = "
    right = latex_of(formula.right)
    lines = broken(right) if is_long(left + right + reason) else [right]
    if len(lines) == 1:
        return rf"\[ {left}{right}{reason} \]"
    rows = " \\\\\n& ".join(lines)
    return f"\\[ \\begin{{aligned}}\n{left}& {rows}{reason}\n\\end{{aligned}} \\]"


def broken(formula: str) -> list[str]:
    r"""Break a long sum into lines that fit on a page, before signs outside of all brackets.

    >>> broken("a + " * 60 + "b")[1][:7]
    '+ a + a'
    >>> broken(r"\left(x + y\right)")
    ['\\left(x + y\\right)']
    """
    terms, depth = [""], 0
    for token in re.split(r"(\\left|\\right|\\begin|\\end|\\[{}]|[{}]| [+-] )", formula):
        depth += (token in (r"\left", r"\begin", "{")) - (token in (r"\right", r"\end", "}"))
        if token in (" + ", " - ") and depth == 0:
            terms.append(token[1:])
        else:
            terms[-1] += token
    lines = [terms[0]]
    for term in terms[1:]:
        if _width(f"{lines[-1]} {term}") > LINE:
            lines.append(term)
        else:
            lines[-1] += f" {term}"
    return lines


def is_long(formula: str) -> bool:
    """Whether a formula is wider than a line of a page."""
    return _width(formula) > LINE


def _width(formula: str) -> int:
    """Return about how many signs wide a formula is."""
    commands = r"\\(?:left|right|operatorname|frac|mathrm|mathit|text)|[{}^_ ]"
    return len(re.sub(r"\\[A-Za-z]+", "x", re.sub(commands, "", formula)))


def _code(code: doc.Code) -> str:
    """Return lines of a program, each escaped. A line could close a verbatim environment."""
    lines = [rf"\mbox{{{latex_code(line)}}}" for line in code.text.expandtabs(4).split("\n")]
    colour = LOOKS["wrong"].light
    marked = [rf"\textcolor[HTML]{{{colour}}}{{{line}}}" if k in code.marked else line for k, line in enumerate(lines)]
    return "\\begin{flushleft}\\ttfamily\n" + " \\\\\n".join(marked) + "\n\\end{flushleft}"


def _no_option(row: str) -> str:
    """Return a row that the end of the row before does not read as its option, as in `\\\\[2, 2]`."""
    return "{}" + row if row.startswith(("[", "*")) else row


def _table(table: doc.Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    rows = [list(map(_cell, row)) for row in ((table.header,) if table.header else ()) + table.rows]
    lines = [_no_option(" & ".join(row)) + r" \\" for row in rows]
    if table.header:
        lines.insert(1, r"\midrule")
    kind = "longtable" if len(rows) > LONG_TABLE else "tabular"
    columns = _columns((table.align + "l" * width)[:width], rows)
    text = "\n".join((rf"\begin{{{kind}}}{{{columns}}}", r"\toprule", *lines, r"\bottomrule", rf"\end{{{kind}}}"))
    return f"{text}\n\n{latex_text(table.caption)}" if table.caption else text


def _columns(align: str, rows: list[list[str]]) -> str:
    """Return the columns of a table: those that would leave the page are as wide as their share, and break lines."""
    widths = [max((_width(row[k]) for row in rows if k < len(row)), default=0) for k in range(len(align))]
    if sum(widths) <= LINE:
        return align
    wide = [width > LINE // len(align) for width in widths]
    share = (LINE - sum(width for width, is_wide in zip(widths, wide, strict=True) if not is_wide)) / sum(wide) / LINE
    return "".join(
        rf"p{{{share:.2f}\linewidth}}" if is_wide else side for side, is_wide in zip(align, wide, strict=True)
    )


def _cell(cell: doc.Cell) -> str:
    return "".join(map(_inline, doc.inlines(cell)))


def _inline(inline: doc.Inline) -> str:
    if isinstance(inline, doc.Typeset):
        return f"${inline.latex}$"
    if not isinstance(inline, doc.Marked):
        return f"${latex_of(inline)}$" if isinstance(inline, sp.Basic) else latex_text(inline)
    look, text = look_of(inline.style, inline.level), _inline(inline.content)
    text = rf"\textbf{{{text}}}" if look.bold else rf"\texttt{{{text}}}" if inline.style == "code" else text
    return rf"\textcolor[HTML]{{{look.light}}}{{{text}}}" if look.light else text
