"""Links between the panes of the page, by names and by numbers.

Every value of the graph has a mark, `n` and its number; levels (`L1`) and lines of LLVM IR (`i12`) have marks, too. The
attribute `data-node` of an element lists its marks. The page highlights elements that share a mark with the one under
the pointer. The trace has names for values. Values without a name there (lines of an expansion, instructions) are
recognised by their numbers, up to the sign, at a few points near the current one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

import symad.display.document as doc
from codegen.evaluation.interpret import evaluate
from symad.classroom.drawing.boxes import is_constant
from symad.classroom.explanation.explanation_document import Explanation
from symad.classroom.explanation.explanation_lines import Adjoint, Book, Row, Variable
from symad.display.html import named
from symad.display.mathematics import mathml_of, too_large
from symad.display.styles import LOOKS
from symad.errors import WorkbenchError
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_sympy

OFFSETS = (0.0137, -0.0211, 0.0317)  # of the points where numbers are compared, relative to 1 + |x|
CLOSE = 1e-9  # relative: rounding is far smaller, the difference to another formula far larger
MOST_NODES = 5000

Numbers = NDArray[np.float64]


class Links:
    """The marks of the values of one explained program, and their names."""

    def __init__(self, explanation: Explanation, point: Sequence[float]) -> None:
        self.explanation, self.book, self.there = explanation, explanation.book, explanation.sharing.there
        self.points = [  # next to the point: a value is recognised by its numbers at all of them
            [x + offset * (1 + abs(x)) * (1 + 0.1 * (k % 7)) for k, x in enumerate(point)] for offset in OFFSETS
        ]
        self.plain: Graph = explanation.sharing.plain
        nodes = [node for node in range(len(self.there)) if self.book.knows(node)][:MOST_NODES]
        self.nodes = [node for node in nodes if not is_constant(self.plain, self.there[node])]
        self.numbers = self._numbers()
        self._places = np.array(list(self.numbers), dtype=int)
        self._table = np.array(list(self.numbers.values())).reshape(-1, len(OFFSETS))
        usable = [node for node in self.nodes if self.there[node] in self.numbers]
        self.known: dict[str, Numbers] = {self.book.name(node): self.numbers[self.there[node]] for node in usable}
        self.marks = {self.book.name(node): self.of_node(node) for node in self.nodes} | self._adjoints()
        self._pattern, self._written = _pattern(self.marks, self.book)

    def of_node(self, node: int) -> str:
        """Return the mark of a node of the trace, "" for a number."""
        place = self.there[node]
        return "" if is_constant(self.plain, place) else f"n{place}"

    def of_numbers(self, numbers: Numbers) -> str:
        """Return the marks of the values with these numbers, or with these numbers negated.

        Numbers that are equal at all points are a constant, which has no links.
        """
        usable = np.all(np.isfinite(numbers)) and np.ptp(numbers) > CLOSE * np.max(np.abs(numbers))
        if not usable or not len(self._places):
            return ""
        near = [np.all(np.abs(self._table - sign * numbers) <= CLOSE * np.abs(numbers), axis=1) for sign in (1, -1)]
        return " ".join(f"n{place}" for place in self._places[near[0] if near[0].any() else near[1]].tolist())

    def of_expression(self, expression: sp.Basic, known: Mapping[str, Numbers] | None = None) -> str:
        """Return the marks of an expression in the names of the page."""
        name = str(expression) if expression.is_Symbol else ""
        if name in self.marks:
            return self.marks[name]
        numbers = self.numbers_of(expression, known)
        return "" if numbers is None else self.of_numbers(numbers)

    def numbers_of(self, expression: sp.Basic, known: Mapping[str, Numbers] | None = None) -> Numbers | None:
        """Return an expression's numbers at the points; None if it is large or has an unknown name."""
        if not isinstance(expression, sp.Expr) or too_large(expression):
            return None
        names = {**self.known, **(known or {})}
        if not all(str(symbol) in names for symbol in expression.free_symbols):
            return None
        graph = Graph(lines=False)
        try:
            (node,) = from_sympy(graph, [expression])
            inputs = [(leaf, names[str(atom)]) for leaf, atom in list(graph.atoms.items()) if atom.is_Symbol]
            known_at = ({leaf: float(values[k]) for leaf, values in inputs} for k in range(len(OFFSETS)))
            return np.array([evaluate(graph, [node], at)[0] for at in known_at], dtype=float)
        except (WorkbenchError, TypeError, ValueError, ArithmeticError):  # an undefined function, a relation: no number
            return None

    def linked(self, document: doc.Document, known: Mapping[str, Numbers] | None = None) -> doc.Document:
        """Return a document whose formulas and roles have the marks of their values and levels."""
        return tuple(self._block(block, known) for block in document)

    def marked(self, html: str) -> str:
        """Return HTML with marks at names in formulas and levels at epsilons."""
        html = re.sub(r'class="epsilon level-(\d+)"', r'\g<0> data-node="L\1"', html)
        return self._pattern.sub(self._with_mark, html) if self._written else html

    def _with_mark(self, match: re.Match[str]) -> str:
        tag, rest = re.match(r"(<\w+)(.*)", match[0], re.DOTALL).groups()  # type: ignore[union-attr]
        return f"{tag}{named(self._written[match[0]])}{rest}"

    def _block(self, block: doc.Block, known: Mapping[str, Numbers] | None) -> doc.Block:
        match block:
            case doc.Paragraph():
                return replace(block, content=self._cell(block.content, known))
            case doc.Formula():
                return replace(block, nodes=block.nodes or self.of_expression(block.right, known))
            case doc.Table():
                return replace(block, rows=tuple(tuple(self._cell(cell, known) for cell in row) for row in block.rows))
            case doc.Folded():
                return doc.Folded(block.summary, self.linked(block.parts, known))
            case doc.Columns():
                return doc.Columns(tuple(self.linked(part, known) for part in block.parts))
        return block

    def _cell(self, cell: doc.Cell, known: Mapping[str, Numbers] | None) -> doc.Cell:
        return tuple(self._inline(part, known) for part in doc.inlines(cell))

    def _inline(self, part: doc.Inline, known: Mapping[str, Numbers] | None) -> doc.Inline:
        if isinstance(part, doc.Marked):
            if isinstance(part.content, str):
                role = f"{LOOKS[part.style].letter}{part.level}"
                return replace(part, nodes=part.nodes or (f"L{part.level}" if part.content == role else ""))
            return replace(part, nodes=part.nodes or self.of_expression(part.content, known))
        if isinstance(part, str):
            return part
        marks = self.of_expression(part, known)
        return doc.Marked(part, "primal", nodes=marks) if marks else part

    def _numbers(self) -> dict[int, Numbers]:
        """Return each value's numbers at the points; none if the program cannot be evaluated there."""
        inputs = [self.there[node] for node in self.book.inputs]
        places = list(dict.fromkeys(self.there[node] for node in self.nodes))
        columns = []
        for point in self.points:
            try:
                columns.append(evaluate(self.plain, places, dict(zip(inputs, point, strict=True))))
            except (WorkbenchError, TypeError, ValueError, ArithmeticError):
                return {}
        rows = zip(places, zip(*columns, strict=True), strict=True)
        return {place: np.array(row, dtype=float) for place, row in rows}

    def _adjoints(self) -> dict[str, str]:
        """Return the marks of tangents and cotangents: their own, and those of their nodes in the program."""
        marks_of: dict[str, list[str]] = {}
        for stage in self.explanation.stages:
            for row in (line for line in stage.lines if isinstance(line, Row)):
                marks = marks_of.setdefault(row.name, [row.name])
                value = row.term[0] if row.term is not None else None
                marks += [self.of_node(value)] if value is not None and self.of_node(value) else []
        return {name: " ".join(dict.fromkeys(marks)) for name, marks in marks_of.items()}


def _pattern(marks: Mapping[str, str], book: Book) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return a pattern that finds the page's names in MathML, and the marks of each form of a name."""
    symbols: dict[str, Any] = {book.name(node): book.symbol(node) for node in book.inputs}
    written = {}
    for name, mark in marks.items():
        symbol = symbols.get(name) or (Adjoint(name) if name.endswith(("_bar", "_dot")) else Variable(name))
        form = re.sub(r"^<math><mrow>|</mrow></math>$", "", mathml_of(symbol))
        if mark and form.startswith("<"):
            written[form] = mark
    longest_first: Iterable[str] = sorted(map(re.escape, written), key=len, reverse=True)
    return re.compile("|".join(longest_first) or "(?!)"), written
