"""A lesson step by step: prose, code, and the printed and shown output of the code.

A lesson is a file of symad: it is run like any program, cell by cell, in one namespace. No text of a user is executed.
"""

from __future__ import annotations

import ast
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

import sympy as sp

import symad.display.document as doc
from codegen.records import dataclass
from symad.classroom.lessons.lesson_cells import LessonCell, cells_of, lesson_path, titles
from symad.display import notebook, terminal
from symad.display.shown import Shown
from symad.errors import ArgumentError

LONGEST_OUTPUT = 20_000  # letters of the printed output of a cell, or of a value


@dataclass(frozen=True)
class RunCell:
    """A code cell with its printed output and its value; None before it is run."""

    text: str
    printed: str = ""
    value: Any = None

    def blocks(self) -> doc.Document:
        """Return the code and its results."""
        printed = (doc.Code(self.printed),) if self.printed.strip() else ()
        return (doc.Code(self.text, "python"), *printed, *self.results())

    def results(self) -> doc.Document:
        """Return the value as blocks. Its headings are below those of a lesson."""
        if self.value is None:
            return ()
        if isinstance(self.value, Shown):
            blocks = _document(self.value)
            return tuple(replace(b, depth=b.depth + 2) if isinstance(b, doc.Heading) else b for b in blocks)
        if isinstance(self.value, sp.Basic):
            return (doc.Formula(self.value),)
        return (doc.Code(repr(self.value)[:LONGEST_OUTPUT]),)

    def in_notebook(self) -> notebook.Cell:
        """Return the cell as a notebook cell with its results."""
        shown = notebook.body(self.results())
        plain = terminal.plain(self.results(), terminal.WIDTH) if shown else ""
        return notebook.code(self.text, self.printed, shown, plain)


@dataclass(frozen=True)
class LessonStep:
    """A step of a lesson: prose, code cells, and the question for the workbench beside them."""

    prose: doc.Document
    code: tuple[RunCell, ...] = ()
    source: str = ""
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """The first heading, "" if there is none."""
        heads = [block.text for block in self.prose if isinstance(block, doc.Heading)]
        return heads[0] if heads else ""

    def blocks(self) -> doc.Document:
        return (*self.prose, *(block for cell in self.code for block in cell.blocks()))


@dataclass(frozen=True)
class Lesson(Shown):
    """A lesson of the repository, with the results of its cells."""

    number: int
    steps: tuple[LessonStep, ...]

    @property
    def title(self) -> str:
        return f"Lesson {self.number}: {titles()[self.number]}"

    def document(self) -> doc.Document:
        return tuple(block for step in self.steps for block in step.blocks())

    def more_forms(self) -> dict[str, Any]:
        return {".ipynb": self._notebook}

    def _notebook(self) -> str:
        """Return the lesson as a notebook with runnable cells and their results."""
        cells = []
        for step in self.steps:
            cells += [notebook.prose(step.source)] * bool(step.source)
            cells += [cell.in_notebook() for cell in step.code]
        return notebook.written(cells, self.title)


def lesson(number: int) -> Lesson:
    """Run a lesson; ArgumentError for an unknown number.

    >>> lesson(1).steps[0].title
    'Dual numbers'
    """
    return Lesson(number, tuple(run_steps(number)))


def read_steps(number: int) -> list[LessonStep]:
    """Return the steps of a lesson without running their code."""
    steps: list[LessonStep] = []
    for cell in cells_of(lesson_path(number)):
        if cell.prose:
            steps.append(LessonStep(document_of(cell.text), (), cell.text, tuple(cell.beside.items())))
        else:
            steps[-1] = replace(steps[-1], code=(*steps[-1].code, RunCell(cell.text)))
    return steps


def run_steps(number: int) -> Iterator[LessonStep]:
    """Yield the steps of a lesson in order, each after its code has run."""
    path = lesson_path(number)
    code = iter([cell for cell in cells_of(path) if not cell.prose])
    names: dict[str, Any] = {"__name__": "__main__"}
    for step in read_steps(number):
        yield replace(step, code=tuple(run_cell(next(code), path, names) for _ in step.code))


def run_cell(cell: LessonCell, path: Path, names: dict[str, Any]) -> RunCell:
    """Run a cell as a notebook does. Its last expression is its value; errors are raised."""
    tree = ast.increment_lineno(ast.parse(cell.text), cell.line)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with redirect_stdout(printed):
        exec(compile(tree, path, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), path, "eval"), names)
    return RunCell(cell.text, printed.getvalue()[:LONGEST_OUTPUT], value)


_INLINE = re.compile(r"\$(?P<formula>[^$]+)\$|`(?P<code>[^`]+)`|\*\*(?P<bold>.+?)\*\*|\*(?P<italic>[^*\s][^*]*)\*")
_HEADING = re.compile(r"(#{1,6}) (.*)")
_ITEM = re.compile(r"- ")


def document_of(text: str) -> doc.Document:
    """Return prose as blocks. Empty lines separate paragraphs; each list item is a paragraph.

    Lessons use headings, lists, bold, italic, code and formulas of Markdown; other text stays unchanged.

    >>> document_of("## Why\\n\\nAs $x^2$\\nis.")
    (Heading(text='Why', depth=2), Paragraph(content=('As ', Typeset(latex='x^2', text=''), ' is.')))
    """
    blocks: list[doc.Block] = []
    for part in re.split(r"\n\s*\n|\n(?=- )", text):
        line = " ".join(part.split())
        if heading := _HEADING.fullmatch(line):
            blocks.append(doc.Heading(heading[2], len(heading[1])))
        elif line:
            blocks.append(doc.Paragraph(_inlines(_ITEM.sub("• ", line, count=1) if _ITEM.match(line) else line)))
    return tuple(blocks)


def _inlines(line: str) -> tuple[doc.Inline, ...]:
    parts: list[doc.Inline] = []
    end = 0
    for match in _INLINE.finditer(line):
        if match.start() > end:
            parts.append(line[end : match.start()])
        parts.append(_inline(str(match.lastgroup), match[str(match.lastgroup)]))
        end = match.end()
    return (*parts, line[end:]) if end < len(line) else tuple(parts)


def _inline(kind: str, text: str) -> doc.Inline:
    if kind == "formula":
        return doc.Typeset(text)
    return doc.Marked(text, "code" if kind == "code" else "strong")


def _document(shown: Shown) -> doc.Document:
    """Return a result's document. If a picture needs a missing extra, return words and how to install it."""
    try:
        return shown.document()
    except ArgumentError as error:
        return (*shown.words(), doc.Paragraph(doc.Marked(str(error), "muted")))
