"""A document as HTML: formulas in MathML, pictures in SVG, no script, nothing fetched; and a page of its own."""

from __future__ import annotations

from html import escape

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
from symad.display.mathematics import mathml_of
from symad.display.styles import LOOKS

_ALIGN = {"l": "to-left", "c": "to-center", "r": "to-right"}


def fragment(document: Document) -> str:
    """Return a document as an HTML element with its own styles, to stand in a notebook or in a page.

    >>> "<h2>Two</h2>" in fragment((Heading("Two"),))
    True
    """
    return f'<div class="symad"><style>{STYLESHEET}</style>\n{_blocks(document)}\n</div>'


def page(document: Document, title: str) -> str:
    """Return a whole page that opens offline in any browser with MathML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLESHEET}</style>\n</head>\n<body>\n"
        f"<main>{fragment(document)}</main>\n</body>\n</html>\n"
    )


def _blocks(document: Document) -> str:
    return "\n".join(map(_block, document))


def _block(block: Block) -> str:
    match block:
        case Heading():
            return f"<h{block.depth}>{escape(block.text)}</h{block.depth}>"
        case Paragraph():
            return f"<p>{_cell(block.content)}</p>"
        case Formula():
            return _formula(block)
        case Table():
            return _table(block)
        case Code():
            return f"<pre><code>{_code(block)}</code></pre>"
        case Picture():
            return f'<figure role="img" aria-label="{escape(block.description)}">{block.svg}</figure>'
        case Columns():
            parts = "".join(f"<section>{_blocks(part)}</section>" for part in block.parts)
            return f'<div class="columns">{parts}</div>'


def _formula(formula: Formula) -> str:
    left = "" if formula.left is None else f"{mathml_of(formula.left)}<span class='equals'>=</span>"
    reason = f'<span class="reason">{_cell(formula.reason)}</span>' if formula.reason else ""
    return f'<div class="formula">{left}{mathml_of(formula.right)}{reason}</div>'


def _table(table: Table) -> str:
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    align = [_ALIGN[letter] for letter in (table.align + "l" * width)[:width]]

    def row(tag: str, cells: tuple[Cell, ...]) -> str:
        inner = (f'<{tag} class="{side}">{_cell(cell)}</{tag}>' for cell, side in zip(cells, align, strict=False))
        return f"<tr>{''.join(inner)}</tr>"

    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = f"<thead>{row('th', table.header)}</thead>" if table.header else ""
    rows = "\n".join(row("td", cells) for cells in table.rows)
    return f'<div class="table"><table>{caption}{head}<tbody>{rows}</tbody></table></div>'


def _code(code: Code) -> str:
    lines = enumerate(escape(code.text).split("\n"))
    return "\n".join(f'<span class="wrong">{line}</span>' if k in code.marked else line for k, line in lines)


def _cell(cell: Cell) -> str:
    return "".join(map(_inline, inlines(cell)))


def _inline(inline: Inline) -> str:
    if not isinstance(inline, Marked):
        return mathml_of(inline) if isinstance(inline, sp.Basic) else escape(inline)
    tag = "code" if inline.style == "code" else "span"
    return f'<{tag} class="{inline.style}">{_inline(inline.content)}</{tag}>'


def _stylesheet() -> str:
    light = "".join(f"--{name}:#{look.light};" for name, look in LOOKS.items() if look.light)
    dark = "".join(f"--{name}:#{look.dark};" for name, look in LOOKS.items() if look.dark)
    bold = {True: "font-weight:600;", False: ""}
    rules = "\n".join(
        f".symad .{name}{{{f'color:var(--{name});' if look.light else ''}{bold[look.bold]}}}"
        for name, look in LOOKS.items()
    )
    return (
        f".symad{{{light}}}\n@media (prefers-color-scheme:dark){{.symad{{{dark}}}}}\n{rules}\n"
        ".symad h1{font-size:1.5em;margin:.2em 0 .6em}\n.symad h2{font-size:1.2em;margin:1.4em 0 .4em}\n"
        ".symad h3{font-size:1em;margin:1.2em 0 .3em}\n.symad p{margin:.5em 0;max-width:75ch}\n"
        ".symad math{font-size:1.08em}\n.symad .formula{margin:.55em 0 .55em 1.5em;overflow-x:auto}\n"
        ".symad .equals{margin:0 .45em}\n.symad .reason{margin-left:2em;color:var(--muted);font-size:.92em}\n"
        ".symad .table{overflow-x:auto}\n.symad table{border-collapse:collapse;margin:.6em 0}\n"
        ".symad .to-left{text-align:left}\n"
        ".symad caption{text-align:left;color:var(--muted);padding-bottom:.3em}\n"
        ".symad th{border-bottom:2px solid var(--muted);padding:.25em .9em .25em 0;font-weight:600}\n"
        ".symad td{padding:.3em .9em .3em 0;border-bottom:1px solid #8884;vertical-align:baseline}\n"
        ".symad .to-right{text-align:right}\n.symad .to-center{text-align:center}\n"
        ".symad pre{background:#8881;padding:.7em 1em;overflow-x:auto;line-height:1.35}\n"
        ".symad figure{margin:1em 0;overflow-x:auto}\n"
        ".symad .columns{display:grid;grid-template-columns:repeat(auto-fit,minmax(16em,1fr));gap:1.2em}\n"
        ".symad .columns section{border-top:3px solid #8886;padding-top:.4em;min-width:0}\n"
    )


STYLESHEET = _stylesheet()
PAGE_STYLESHEET = (
    ":root{color-scheme:light dark}body{font:17px/1.5 system-ui,'DejaVu Sans',sans-serif;margin:0}"
    "main{max-width:1180px;margin:0 auto;padding:1.2em 1.6em 3em}"
)
