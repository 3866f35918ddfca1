"""A document for a terminal by rich, in its width and colours, and as plain text."""

from __future__ import annotations

import io
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.style import Style as RichStyle
from rich.syntax import Syntax
from rich.table import Table as RichTable
from rich.text import Text

import symad.display.document as doc
from codegen.records import dataclass
from codegen.visible import visible
from symad.display.mathematics import signs_of, text_of
from symad.display.notation import ascii_text
from symad.display.styles import Look, look_of

WIDTH = 100  # characters of a line where there is no terminal
NARROW = 12  # characters for a column of a table, below which words are often broken
_JUSTIFY: dict[str, Any] = {"l": "left", "c": "center", "r": "right"}
_EPSILON = re.compile(r"\b(?:eps_|ε)([0-9₀-₉]+)")
_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")


def plain(document: doc.Document, width: int | None = None, ascii_only: bool = False) -> str:
    """Return a document as plain text, without colours, at most `width` characters wide (by default the terminal's).

    >>> print(plain((doc.Heading("Two"), doc.Table(("n", "name"), (("1", "one"), ("2", "two")), "rl")), 40))
    Two
    <BLANKLINE>
     n   name
    ──────────
     1   one
     2   two
    """
    console = Console(
        file=io.StringIO(), width=width or terminal_width(), color_system=None, highlight=False, legacy_windows=False,
        force_terminal=False, _environ={},
    )  # fmt: skip
    with console.capture() as captured:
        console.print(Group(*_Blocks(ascii_only).document(document)))
    text = "\n".join(line.rstrip() for line in captured.get().rstrip("\n").split("\n"))
    text = text.replace("\u00a0", " ")  # which has done its work when lines are broken
    return ascii_text(text) if ascii_only else text


def terminal_width() -> int:
    """Return the width of the terminal in characters, and WIDTH if the output is no terminal."""
    try:
        return shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    except (AttributeError, ValueError):  # there is no stream, or it is closed
        return WIDTH


@dataclass(frozen=True)
class Rendering:
    """A document as something that rich prints."""

    document: doc.Document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _Blocks(options.ascii_only).document(self.document)


@dataclass(frozen=True)
class _BrokenFormula:
    """A formula that is longer than the line breaks before a sign outside of brackets."""

    text: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent, rest = 2, self.text
        while rest.cell_len + indent > options.max_width:
            cut = _place_to_break(rest.plain, max(options.max_width - indent, 1))
            line, rest = rest.divide([cut])
            line.rstrip()
            yield Padding(line, (0, 0, 0, indent))
            indent = min(6, options.max_width // 4)
            rest = rest[len(rest.plain) - len(rest.plain.lstrip()) :]
        yield Padding(rest, (0, 0, 0, indent))


@dataclass(frozen=True)
class _TextTable:
    """A table that closes up its columns and breaks cells between words where the line is too short.

    Where even words are too long, many columns become many lines: each row with its cells one below the other.
    """

    header: tuple[Text, ...]
    rows: tuple[tuple[Text, ...], ...]
    align: str
    has_header: bool

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = list(zip_longest(self.header, *self.rows, fillvalue=Text("")))
        least = [max(cell_len(word) for cell in cells for word in (cell.plain.split() or [""])) for cells in columns]
        fitting = (space for space in (1, 0) if sum(least) + (2 * space + 1) * len(least) <= options.max_width)
        padding = next(fitting, None)
        if padding is None and self.has_header and options.max_width < NARROW * len(self.header):
            yield from self._one_below_the_other()
            return
        space = 1 if padding is None else padding
        table = RichTable(box=box.SIMPLE_HEAD, show_header=self.has_header, show_edge=False, padding=(0, space))
        widths: list[int | None] = [None] * len(least)
        if padding is not None:  # the smallest wishes for more are granted first; rich would cut the last column
            spare = options.max_width - sum(least) - (2 * space + 1) * len(least)
            natural = [max(cell_len(cell.plain) for cell in cells) for cells in columns]
            for left, column in enumerate(sorted(range(len(least)), key=lambda k: natural[k] - least[k]), -len(least)):
                granted = min(natural[column] - least[column], spare // -left)
                widths[column], spare = least[column] + granted, spare - granted
        for header, align, width in zip(self.header, self.align, widths, strict=False):
            is_number = align == "r" and padding is not None  # numbers are never broken
            table.add_column(header, justify=_JUSTIFY[align], overflow="fold", width=width, no_wrap=is_number)
        for row in self.rows:
            table.add_row(*row)
        yield table

    def _one_below_the_other(self) -> Iterator[RenderableType]:
        for row in self.rows:
            yield row[0]
            for header, cell in zip(self.header[1:], row[1:], strict=False):
                if cell.plain:
                    yield Padding(Text.assemble(header, ": " if header.plain else "", cell), (0, 0, 0, 2))


def _place_to_break(text: str, width: int) -> int:
    """Return where to break a line: before the sign in the fewest brackets, else at a space, else anywhere."""
    depth, best, break_at = 0, (1 << 30, 0), 0
    cells = 0
    for place, character in enumerate(text):
        cells += cell_len(character)
        if cells > width:
            return break_at or place or 1
        depth += (character in "([{") - (character in ")]}")
        if character == " " and place > width // 3:
            sign = text[place + 1 : place + 3] in ("+ ", "- ") or text[place - 1] == "="
            rank = (depth if sign else depth + 100, -place)
            if rank <= best:
                best, break_at = rank, place
    return len(text)


@dataclass(frozen=True)
class _Blocks:
    """Turns blocks into what rich prints, in all signs or in ASCII only."""

    ascii_only: bool

    def document(self, document: doc.Document) -> Iterator[RenderableType]:
        """Yield the blocks with empty lines between them, but none between formulas."""
        for position, block in enumerate(document):
            if position and not (isinstance(block, doc.Formula) and isinstance(document[position - 1], doc.Formula)):
                yield Text("")
            yield self.block(block)

    def block(self, block: doc.Block) -> RenderableType:
        """Return one block."""
        match block:
            case doc.Heading():
                return Text(self.prose(block.text), RichStyle(bold=True, underline=block.depth == 1))
            case doc.Paragraph():
                return self.cell(block.content)
            case doc.Formula():
                return self.formula(block)
            case doc.Table():
                return self.table(block)
            case doc.Code():
                return Padding(self.code(block), (0, 0, 0, 2))
            case doc.Picture():
                text = self.prose(block.text or f"[picture: {block.description}]")
                return Text(text, no_wrap=bool(block.text), overflow="ellipsis" if block.text else None)
            case doc.Folded():
                return Text(self.prose(f"+ {block.summary} (folded: a page opens it)"), "dim")
            case doc.Columns():
                return Group(*(part for document in block.parts for part in (*self.document(document), Text(""))))
            case doc.Blank():
                return Text("")

    def formula(self, formula: doc.Formula) -> RenderableType:
        """Return a formula, with its reason behind it."""
        sides = [self.inline(side) for side in (formula.left, formula.right) if side is not None]
        line, reason = Text(" = ").join(sides), self.cell(formula.reason)
        return _BrokenFormula(line + Text("    ") + Text("[", "dim") + reason + Text("]", "dim") if reason else line)

    def table(self, table: doc.Table) -> RenderableType:
        """Return a table with a line under its header."""
        width = max((len(row) for row in (table.header, *table.rows)), default=0)
        header = tuple(self.cell(cell) for cell in (*table.header, *("" for _ in range(width - len(table.header)))))
        rows = tuple(tuple(map(self.cell, row)) for row in table.rows)
        text_table = _TextTable(header, rows, table.align + "l" * width, bool(table.header))
        return Group(Text(self.prose(table.caption)), text_table) if table.caption else text_table

    def code(self, code: doc.Code) -> RenderableType:
        """Return lines of a program, the marked ones with a sign before them."""
        text = self.prose(code.text)
        if not code.marked and code.language:
            return Syntax(text, code.language, theme="ansi_light", background_color="default", word_wrap=True)
        lines = []
        for number, line in enumerate(text.split("\n")):
            sign = "" if not code.marked else "> " if number in code.marked else "  "
            lines.append(Text(sign + line, _rich(look_of("wrong")) if number in code.marked else ""))
        return Text("\n").join(lines)

    def cell(self, cell: doc.Cell) -> Text:
        """Return prose with mathematics in it."""
        return Text("").join(map(self.inline, doc.inlines(cell)))

    def inline(self, inline: doc.Inline) -> Text:
        """Return one part of a line; symbols of levels have the colour of their level."""
        if isinstance(inline, doc.Marked):
            content = self.inline(inline.content)
            content.stylize_before(_rich(look_of(inline.style, inline.level), inline.style != "primal"))
            return content
        if isinstance(inline, str):
            return Text(self.prose(inline))
        if isinstance(inline, doc.Typeset):
            return Text(self.prose(inline.text or inline.latex))
        text = Text(self.prose(text_of(inline) if self.ascii_only else signs_of(inline)))
        for match in _EPSILON.finditer(text.plain):
            text.stylize(_rich(look_of("epsilon", int(match[1].translate(_DIGITS)))), *match.span())
        return text

    def prose(self, text: str) -> str:
        """Return text that the terminal can show."""
        return ascii_text(visible(text)) if self.ascii_only else visible(text)


def _rich(look: Look, coloured: bool = True) -> RichStyle:
    return RichStyle(color=f"#{look.dark}" if look.dark and coloured else None, bold=look.bold or None)
