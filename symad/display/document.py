"""What is shown: a document is a sequence of blocks, a block holds prose and mathematics, and knows no form.

A string is prose, a SymPy object is mathematics, and `Marked` gives either of them a style. Tables, formulas, code,
pictures and columns are blocks. How a document looks in a terminal, in LaTeX or in a browser is the business of
`terminal`, `latex` and `html`; what a style looks like stands in `styles`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from symad.display.styles import Style


@dataclass(frozen=True)
class Marked:
    """Prose or mathematics in a style: a role (with its level, 0 for none), a verdict, an emphasis."""

    content: str | sp.Basic
    style: Style
    level: int = 0


Inline: TypeAlias = str | sp.Basic | Marked
Cell: TypeAlias = Inline | tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """A line above what follows; depth 1 is the title of a page."""

    text: str
    depth: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Prose with mathematics in it."""

    content: Cell


@dataclass(frozen=True)
class Formula:
    """A formula on a line of its own; `left = right`, with the reason beside it, where those are given."""

    right: sp.Basic
    left: sp.Basic | None = None
    reason: Cell = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under a header (which may be empty); `align` has a letter l, c or r for each column."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines of a program as they are written; the numbers (from 0) of those that stand out, in the style `wrong`."""

    text: str
    language: str = ""
    marked: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Picture:
    """A drawing: SVG, what it shows in words (for those who cannot see it), a form in characters, and one in TikZ."""

    svg: str
    description: str
    text: str = ""
    latex: str = ""


@dataclass(frozen=True)
class Columns:
    """Documents side by side; in a terminal and on paper one below the other."""

    parts: tuple[Document, ...]


Block: TypeAlias = Heading | Paragraph | Formula | Table | Code | Picture | Columns
Document: TypeAlias = tuple[Block, ...]


def inlines(cell: Cell) -> tuple[Inline, ...]:
    """Return the parts of a cell.

    >>> inlines("a"), inlines(("a", "b"))
    (('a',), ('a', 'b'))
    """
    return cell if isinstance(cell, tuple) else (cell,)
