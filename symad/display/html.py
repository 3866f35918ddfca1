"""A document as HTML: MathML and SVG, without scripts or downloads; also as a page of its own."""

from __future__ import annotations

import re
from html import escape

import symad.display.document as doc
from codegen.visible import visible
from symad.display.mathematics import converted, mathml_of, mathml_pieces
from symad.display.notation import Nothing
from symad.display.styles import PAGE_STYLESHEET, STYLESHEET, class_of

NARROW = 30  # signs, or as many times ten pixels, that a phone shows side by side: what is wider may have to scroll
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_PICTURE_WIDTH = re.compile(r'<svg[^>]* width="([\d.]+)"')
_LONG_WORD = re.compile(r"(\S{30})(?=\S{10})")  # may be broken, as a table would grow too wide
_ALIGN = {"l": "to-left", "c": "to-center", "r": "to-right"}


def fragment(document: doc.Document) -> str:
    """Return a document as an HTML element with its own styles, for a notebook or a page.

    >>> "<h2>Two</h2>" in fragment((doc.Heading("Two"),))
    True
    """
    return f'<div class="symad"><style>{STYLESHEET}</style>\n{_blocks(document)}\n</div>'


def bare(document: doc.Document) -> str:
    """Return the element without any styles, for a page that has them."""
    return _STYLE.sub("", fragment(document))


def page(document: doc.Document, title: str, *, big: bool = False) -> str:
    """Return a whole page that opens offline in any browser with MathML; `big` in large letters, for a projector."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_prose(title)}</title>\n<style>{PAGE_STYLESHEET}</style>\n</head>\n"
        f'<body class="symad-page{" big" if big else ""}">\n'
        f"<main>{fragment(titled(document, title))}</main>\n</body>\n</html>\n"
    )


def titled(document: doc.Document, title: str) -> doc.Document:
    """Return a document with one heading of the first depth on top, and no heading two depths below the one before.

    >>> titled((doc.Paragraph("a"), doc.Heading("b", 3)), "A title")[::2]
    (Heading(text='A title', depth=1), Heading(text='b', depth=2))
    """
    first = document[0] if document else None
    if isinstance(first, doc.Heading):
        document = (doc.Heading(first.text, 1), *document[1:])
    else:
        document = (doc.Heading(title, 1), *document)
    return _in_order(document, [])


def _in_order(document: doc.Document, above: list[int]) -> doc.Document:
    """Return blocks whose headings descend one depth at a time."""
    ordered: list[doc.Block] = []
    for block in document:
        match block:
            case doc.Heading():
                above = [*(depth for depth in above if depth < block.depth), block.depth]
                ordered.append(doc.Heading(block.text, len(above)))
            case doc.Columns():
                ordered.append(doc.Columns(tuple(_in_order(part, above) for part in block.parts)))
            case doc.Folded():
                ordered.append(doc.Folded(block.summary, _in_order(block.parts, above)))
            case _:
                ordered.append(block)
    return tuple(ordered)


def _reached(what: str, signs: float) -> str:
    """Return the attributes of a part that may scroll, so that keyboards reach it and screen readers name it."""
    return f' tabindex="0" role="group" aria-label="wide {what}"' if signs > NARROW else ""


def _signs(html: str) -> int:
    """Return the number of characters in the longest line of HTML, without tags."""
    return max(map(len, _TAG.sub("", html).split("\n")))


def _prose(text: str) -> str:
    return escape(visible(text))


def _blocks(document: doc.Document) -> str:
    return "\n".join(map(_block, document))


def _block(block: doc.Block) -> str:
    match block:
        case doc.Heading():
            depth = min(max(block.depth, 1), 6)
            return f"<h{depth}>{_prose(block.text)}</h{depth}>"
        case doc.Paragraph():
            return f"<p>{_cell(block.content)}</p>"
        case doc.Formula():
            return _formula(block)
        case doc.Table():
            return _table(block)
        case doc.Code():
            code = _code(block)
            return f"<pre{_reached('code', _signs(code))}><code>{code}</code></pre>"
        case doc.Picture():
            return _picture(block)
        case doc.Columns():
            parts = "".join(f"<section>{_blocks(part)}</section>" for part in block.parts)
            return f'<div class="columns">{parts}</div>'
        case doc.Folded():
            return f"<details><summary>{_prose(block.summary)}</summary>{_blocks(block.parts)}</details>"
        case doc.Blank():
            return f'<div class="blank">{"<hr/>" * block.lines}</div>'


def _formula(formula: doc.Formula) -> str:
    left = "" if formula.left is None else f'{mathml_of(formula.left, "block")}<span class="equals">=</span>'
    first, *rest = mathml_pieces(formula.right)
    if isinstance(formula.left, Nothing):  # a line that goes on with "=" does not break behind it
        left, first = "", f'<span class="together">{left}{first}</span>'
    right = "<wbr>".join((first, *rest))
    reason = f' <span class="reason">{_cell(formula.reason)}</span>' if formula.reason else ""
    wide = _reached("formula", _signs(f"{left} = {right}{reason}"))
    return f'<div class="formula"{named(formula.nodes)}{wide}>{left}{right}{reason}</div>'


def named(nodes: str) -> str:
    """Return the attribute that says which values an element stands for.

    >>> named("v1 v2"), named("")
    (' data-node="v1 v2"', '')
    """
    return f' data-node="{escape(nodes)}"' if nodes else ""


def _table(table: doc.Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    align = [_ALIGN[letter] for letter in (table.align + "l" * width)[:width]]

    def row(tag: str, cells: tuple[doc.Cell, ...]) -> str:
        sides = ((tag if cell != "" else "td", cell, side) for cell, side in zip(cells, align, strict=False))
        return "".join(("<tr>", *(f'<{t} class="{side}">{_cell(cell)}</{t}>' for t, cell, side in sides), "</tr>"))

    caption = f'<p class="caption">{_prose(table.caption)}</p>' if table.caption else ""  # may be wider than the table
    head = f"<thead>{row('th', table.header)}</thead>" if table.header else ""
    rows = "\n".join(row("td", cells) for cells in table.rows)
    wide = _reached("table", max(map(_signs, (head, *rows.split("\n")))) + 2 * width)
    return f'<div class="table"{wide}>{caption}<table>{head}<tbody>{rows}</tbody></table></div>'


def _picture(picture: doc.Picture) -> str:
    """Return a picture in a frame. The frame scrolls if the picture is wider than the page."""
    width = _PICTURE_WIDTH.search(picture.svg)
    wide = _reached("picture", float(width[1]) / 10 if width else 0)
    return f'<figure{wide}><div role="img" aria-label="{_prose(picture.description)}">{picture.svg}</div></figure>'


def _code(code: doc.Code) -> str:
    lines = enumerate(_prose(code.text).split("\n"))
    return "\n".join(f'<span class="wrong">{line}</span>' if k in code.marked else line for k, line in lines)


def _cell(cell: doc.Cell) -> str:
    """Return prose with mathematics. A single formula is as large as on a line of its own."""
    parts = doc.inlines(cell)
    return "".join(_inline(part, alone=len(parts) == 1) for part in parts)


def _inline(inline: doc.Inline, alone: bool) -> str:
    if not isinstance(inline, doc.Marked):
        if isinstance(inline, str):
            return "<wbr>".join(map(_prose, filter(None, _LONG_WORD.split(inline))))
        if isinstance(inline, doc.Typeset):
            return converted(inline.latex)
        return "<wbr>".join(mathml_pieces(inline)) if alone else mathml_of(inline)
    tag = "code" if inline.style == "code" else "span"
    look = f'class="{class_of(inline.style, inline.level)}"{named(inline.nodes)}'
    return f"<{tag} {look}>{_inline(inline.content, alone)}</{tag}>"
