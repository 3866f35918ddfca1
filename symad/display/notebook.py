"""A document as a Jupyter notebook (nbformat 4.5): Markdown cells without outputs.

Mathematics is LaTeX in Markdown, which every notebook sets with what it has brought along. MathML would be thrown out
where a notebook is not trusted, as one that somebody else has written is. Prose is written so that no reader takes a
sign of it for markup or mathematics: such signs are entities, and a dollar or a backslash stands in an element of its
own, over whose border no reader of mathematics looks. LaTeX has only the commands that MathJax and KaTeX both know, and
no dollar in it.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from html import escape
from itertools import groupby
from typing import Any, TypeAlias

import sympy as sp

import symad.display.document as doc
from codegen.visible import visible
from symad.display.latex import broken
from symad.display.latex_printer import Latex
from symad.display.mathematics import too_large

_MARKUP = re.compile(r"[`*_{}\[\]~|]|(?<!&)#")  # a # behind & is of an entity
_ALONE = re.compile(r"[$\\]")
_AT_START = re.compile(r"^(\d+(?=[.)])|[-+=])")
_NO_TEXT = {sign: chr(ord(sign) + 0xFEE0) for sign in "\\{}$%#&~^_\"'`<>"}  # its wide form, which is no markup
_BARS = {r"\|": r"\Vert ", "|": r"\vert "}
_ALIGN = {"l": ":---", "c": ":---:", "r": "---:"}


class ForNotebooks(Latex):
    """LaTeX for MathJax and KaTeX. Text has only letters, digits and signs without a meaning."""

    def any_text(self, text: str) -> str:
        """Return text that is no mathematics."""
        return rf"\text{{{_plain(text)}}}"

    def operator(self, name: str) -> str:
        """Return the name of a function in upright letters."""
        return super().operator(name) if name.isalnum() and name.isascii() else self.any_text(name)


def sections(document: doc.Document) -> list[str]:
    """Return a document as texts of Markdown, of which each but the first begins with a heading.

    >>> sections((doc.Heading("A root"), doc.Formula(sp.sqrt(sp.Symbol("x"))), doc.Heading("Another")))
    ['## A root\\n\\n$$\\\\sqrt{x}$$', '## Another']
    """
    starts = [k for k, block in enumerate(document) if k == 0 or isinstance(block, doc.Heading)]
    return [body(document[start:end]) for start, end in zip(starts, [*starts[1:], len(document)], strict=True)]


def body(document: doc.Document) -> str:
    """Return a document as one text of Markdown."""
    return "\n\n".join(filter(None, map(_block, document)))


def mathematics(expression: sp.Basic) -> str:
    r"""Return an expression in LaTeX for a notebook.

    >>> mathematics(abs(sp.Symbol("a$b")))
    '\\left\\vert {\\text{a＄b}}\\right\\vert '
    """
    large = too_large(expression)
    return rf"\text{{{large}}}" if large else in_notebook(str(ForNotebooks().doprint(expression)))


def in_notebook(latex: str) -> str:
    """Return LaTeX without a bar that a table would take for its own."""
    return re.sub(r"\\\||\|", lambda bar: _BARS[bar[0]], latex)


def _plain(text: str) -> str:
    return "".join(_NO_TEXT.get(sign, sign) for sign in visible(text) if unicodedata.category(sign)[0] != "C")


def _prose(text: str) -> str:
    """Return prose in which nothing is markup."""
    text = escape(" ".join(visible(text).split("\n")), quote=False)
    text = _ALONE.sub(lambda sign: f"<span>&#{ord(sign[0])};</span>", text)
    return _MARKUP.sub(lambda sign: f"&#{ord(sign[0])};", text)


def _line(text: str) -> str:
    """Escape the start of a line that would mark a list, a rule or a heading."""
    text = text.strip()
    return _AT_START.sub(lambda mark: "".join(f"&#{ord(sign)};" for sign in mark[0]), text)


def _block(block: doc.Block) -> str:
    match block:
        case doc.Heading():
            return f"{'#' * min(max(block.depth, 1), 6)} {_prose(block.text).strip()}"
        case doc.Paragraph():
            return _line(_cell(block.content))
        case doc.Formula():
            return _formula(block)
        case doc.Table():
            return _table(block)
        case doc.Code():
            return _code(block)
        case doc.Picture():
            return _picture(block)
        case doc.Columns():
            return "\n\n".join(map(body, block.parts))
        case doc.Folded():
            summary = _prose(block.summary)
            return f"<details><summary>{summary}</summary>\n\n{body(block.parts)}\n\n</details>"
        case doc.Blank():
            return ""


def _formula(formula: doc.Formula) -> str:
    left = "" if formula.left is None else mathematics(formula.left) + " = "
    right, reason = mathematics(formula.right), _reason(formula.reason)
    lines = broken(right, left + reason)
    if len(lines) == 1:
        return f"$${left}{right}{reason}$$"
    return f"$$\\begin{{aligned}} {left}& " + " \\\\ & ".join(lines) + rf"{reason} \end{{aligned}}$$"


def _reason(cell: doc.Cell) -> str:
    """Return the reason beside a formula, as a part of it."""
    parts = [part.content if isinstance(part, doc.Marked) else part for part in doc.inlines(cell) if part != ""]
    text = "".join(
        rf"\text{{{_plain(''.join(map(str, run)))}}}" if is_text else "".join(map(_mathematics, run))
        for is_text, run in groupby(parts, lambda part: isinstance(part, str))
    )
    return rf" \qquad {text}" if text else ""


def _mathematics(inline: doc.Inline) -> str:
    return in_notebook(inline.latex) if isinstance(inline, doc.Typeset) else mathematics(inline)


def _table(table: doc.Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    rows = [list(map(_cell, row)) + [""] * (width - len(row)) for row in (table.header, *table.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "| " + " | ".join(_ALIGN[side] for side in (table.align + "l" * width)[:width]) + " |")
    text = "\n".join(lines) if width else ""
    return f"{_line(_prose(table.caption))}\n\n{text}" if table.caption else text


def _code(code: doc.Code) -> str:
    """Return lines of a program between fences that are longer than any in them; marked lines have a sign before."""
    lines = visible(code.text).split("\n")
    if code.marked:
        lines = [("> " if k in code.marked else "  ") + line for k, line in enumerate(lines)]
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", code.text)), default=0))
    return "\n".join((fence + (code.language if code.language.isalnum() else ""), *lines, fence))


def _picture(picture: doc.Picture) -> str:
    """Return a picture on white ground, as an image that has its content in its address."""
    if not picture.svg:
        return _code(doc.Code(picture.text)) if picture.text else _line(_prose(picture.description))
    svg = picture.svg.replace("<svg ", '<svg style="background:#FFFFFF" ', 1)
    content = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(visible(picture.description))}" src="data:image/svg+xml;base64,{content}">'


def _cell(cell: doc.Cell) -> str:
    return "".join(map(_inline, doc.inlines(cell)))


def _inline(inline: doc.Inline) -> str:
    if isinstance(inline, str):
        return _prose(inline)
    if not isinstance(inline, doc.Marked):
        return f"${_mathematics(inline)}$"
    text = _inline(inline.content)
    if not isinstance(inline.content, str):
        return text
    tag = {"strong": "strong", "right": "strong", "wrong": "strong", "code": "code"}.get(inline.style)
    return f"<{tag}>{text}</{tag}>" if tag else text


Cell: TypeAlias = dict[str, Any]


def whole(document: doc.Document, title: str) -> str:
    """Return a document as the text of a notebook."""
    return written([prose(text) for text in sections(document)], title)


def prose(text: str) -> Cell:
    """Return a cell of Markdown."""
    return {"cell_type": "markdown", "metadata": {}, "source": _lines(text)}


def code(text: str, printed: str = "", shown: str = "", plain: str = "") -> Cell:
    """Return a Python cell: its text, its printed output, and its result as Markdown and plain text."""
    outputs: list[Cell] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed)})
    if shown or plain:
        data = {"text/markdown": _lines(shown)} if shown else {}
        data["text/plain"] = _lines(plain)
        outputs.append({"output_type": "display_data", "metadata": {}, "data": data})
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "source": _lines(text), "outputs": outputs}


def written(cells: list[Cell], title: str) -> str:
    """Return the text of a notebook of these cells."""
    metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "title": title,
    }
    numbered = [{"id": f"cell-{k}", **cell} for k, cell in enumerate(cells, 1)]
    notebook = {"cells": numbered, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)
