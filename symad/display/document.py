"""A document is a sequence of blocks of prose and mathematics, independent of its form.

A string is prose, a SymPy object is mathematics, as is LaTeX that somebody wrote (`Typeset`), and `Marked` gives any of
them a style. Tables, formulas, code, pictures and columns are blocks. How a document looks in a terminal, in LaTeX, in
a browser or in a notebook is the business of `terminal`, `latex`, `html`, `notebook`; what a style looks like stands in
`styles`.
"""

from __future__ import annotations

from numbers import Number
from typing import Any, TypeAlias

import numpy as np
import sympy as sp

from codegen.records import dataclass
from symad.display.styles import LOOKS, Style


@dataclass(frozen=True)
class Typeset:
    """Our own LaTeX inside prose, without dollars. It is trusted and not escaped. `text` is for a terminal."""

    latex: str
    text: str = ""


@dataclass(frozen=True)
class Marked:
    """Prose or mathematics in a style: a role (with its level, 0 for none), a verdict, or emphasis.

    `nodes` names the values that it stands for, with spaces between them: a page may light up what has them in common.
    """

    content: str | sp.Basic | Typeset
    style: Style
    level: int = 0
    nodes: str = ""

    def __post_init__(self) -> None:
        if self.style not in LOOKS:
            raise TypeError(f"no style {self.style!r}: there are {', '.join(LOOKS)}")
        object.__setattr__(self, "content", shown(self.content))


Inline: TypeAlias = str | sp.Basic | Typeset | Marked
Cell: TypeAlias = Inline | tuple[Inline, ...]


@dataclass(frozen=True)
class Heading:
    """A heading. Depth 1 is the title of a page."""

    text: str
    depth: int = 2


@dataclass(frozen=True)
class Paragraph:
    """Prose with mathematics in it."""

    content: Cell


@dataclass(frozen=True)
class Formula:
    """A formula on a line of its own: `left = right` with a reason. Left side and reason are optional.

    `nodes` names the values that it stands for.
    """

    right: sp.Basic
    left: sp.Basic | None = None
    reason: Cell = ""
    nodes: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "right", shown(self.right))
        object.__setattr__(self, "left", None if self.left is None else shown(self.left))


@dataclass(frozen=True)
class Table:
    """Rows of cells under an optional header; `align` has a letter l, c or r for each column."""

    header: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]
    align: str = ""
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines of a program; `marked` has the numbers (from 0) of lines in the style `wrong`."""

    text: str
    language: str = ""
    marked: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", self.text.rstrip("\n"))


@dataclass(frozen=True)
class Picture:
    """A drawing: SVG, a description for readers who cannot see it, and a form in characters."""

    svg: str
    description: str
    text: str = ""


@dataclass(frozen=True)
class Columns:
    """Documents side by side. In a terminal and on paper they follow each other."""

    parts: tuple[Document, ...]


@dataclass(frozen=True)
class Folded:
    """A part that opens when its summary is pressed. A terminal shows the summary, paper shows everything."""

    summary: str
    parts: Document


@dataclass(frozen=True)
class Blank:
    """Empty lines on a page or on paper, to write on."""

    lines: int


Block: TypeAlias = Heading | Paragraph | Formula | Table | Code | Picture | Columns | Folded | Blank
Document: TypeAlias = tuple[Block, ...]


def inlines(cell: Cell) -> tuple[Inline, ...]:
    """Return the parts of a cell.

    >>> inlines("a"), inlines(("a", sp.Symbol("b"))), inlines(2.5)
    (('a',), ('a', b), ('2.5',))
    """
    return tuple(map(shown, cell if isinstance(cell, tuple) else (cell,)))


def shown(inline: Any) -> Any:
    """Return prose, mathematics and marked parts as they are, numbers as prose, matrices as immutable ones."""
    if isinstance(inline, str | sp.Basic | Typeset | Marked):
        return inline
    if isinstance(inline, sp.MatrixBase):
        return inline.as_immutable()
    if isinstance(inline, Number | np.generic):
        return repr(inline.item() if isinstance(inline, np.generic) else inline)
    raise TypeError(f"{type(inline).__name__} cannot stand in a document: give a string, a SymPy object or Marked")
