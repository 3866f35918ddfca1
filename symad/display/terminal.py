"""A document for a terminal: as wide as it is, in colours where it has them, by rich; and the same as plain text."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from typing import Any

import sympy as sp
from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.style import Style as RichStyle
from rich.syntax import Syntax
from rich.table import Table as RichTable
from rich.text import Text

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
from symad.display.mathematics import text_of
from symad.display.styles import LOOKS, Style

_JUSTIFY: dict[str, Any] = {"l": "left", "c": "center", "r": "right"}


def plain(document: Document, width: int | None = None) -> str:
    """Return a document as plain text, without colours, at most `width` characters wide (by default the terminal's).

    >>> print(plain((Heading("Two"), Table(("n", "name"), (("1", "one"), ("2", "two")), "rl")), 40))
    Two
    <BLANKLINE>
     n   name
    ──────────
     1   one
     2   two
    """
    columns = width or shutil.get_terminal_size((100, 24)).columns
    console = Console(file=io.StringIO(), width=columns, color_system=None, highlight=False, legacy_windows=False)
    with console.capture() as captured:
        console.print(renderable(document))
    return "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))


def renderable(document: Document) -> RenderableType:
    """Return a document as something that rich prints."""
    return Group(*_spaced(document))


def _spaced(document: Document) -> Iterator[RenderableType]:
    for position, block in enumerate(document):
        if position and not (isinstance(block, Formula) and isinstance(document[position - 1], Formula)):
            yield Text("")
        yield _block(block)


def _block(block: Block) -> RenderableType:
    match block:
        case Heading():
            return Text(block.text, RichStyle(bold=True, underline=block.depth == 1))
        case Paragraph():
            return _cell(block.content)
        case Formula():
            return _formula(block)
        case Table():
            return _table(block)
        case Code():
            return Padding(_code(block), (0, 0, 0, 2))
        case Picture():
            return Text(block.text or f"[picture: {block.description}]", no_wrap=bool(block.text))
        case Columns():
            return Group(*(part for document in block.parts for part in (*_spaced(document), Text(""))))


def _formula(formula: Formula) -> RenderableType:
    sides = [text_of(side) for side in (formula.left, formula.right) if side is not None]
    line = Text("  " + " = ".join(sides))
    reason = _cell(formula.reason)
    return line if not reason else line + Text("    ") + Text("[", "dim") + reason + Text("]", "dim")


def _table(table: Table) -> RenderableType:
    made = RichTable(
        box=box.SIMPLE_HEAD, show_header=bool(table.header), show_edge=False, pad_edge=True, padding=(0, 1),
        caption=table.caption or None, caption_justify="left",
    )  # fmt: skip
    width = max((len(row) for row in (table.header, *table.rows)), default=0)
    for column in range(width):
        header = _cell(table.header[column]) if column < len(table.header) else Text("")
        made.add_column(header, justify=_JUSTIFY[(table.align + "l" * width)[column]], overflow="fold")
    for row in table.rows:
        made.add_row(*map(_cell, row))
    return made


def _code(code: Code) -> RenderableType:
    if not code.marked and code.language:
        return Syntax(code.text, code.language, theme="ansi_light", background_color="default", word_wrap=True)
    styles = [RichStyle(bold=k in code.marked) for k in range(code.text.count("\n") + 1)]
    marks = [">" if k in code.marked else " " for k in range(len(styles))] if code.marked else [""] * len(styles)
    lines = zip(marks, code.text.split("\n"), styles, strict=True)
    return Text("\n").join(Text(f"{mark} {line}" if mark else line, style) for mark, line, style in lines)


def _cell(cell: Cell) -> Text:
    return Text("").join(map(_inline, inlines(cell)))


def _inline(inline: Inline) -> Text:
    if isinstance(inline, Marked):
        content = inline.content if isinstance(inline.content, str) else text_of(inline.content)
        return Text(content, _style(inline.style))
    return Text(text_of(inline) if isinstance(inline, sp.Basic) else inline)


def _style(style: Style) -> RichStyle:
    look = LOOKS[style]
    return RichStyle(color=f"#{look.dark}" if look.dark and style != "primal" else None, bold=look.bold or None)
