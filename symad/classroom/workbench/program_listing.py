"""The program of a derivative before and after CSE, line by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.ir.program import reachable
from codegen.records import dataclass
from symad.classroom.drawing.boxes import is_constant, tree_operations
from symad.classroom.drawing.labels import count_label
from symad.classroom.explanation.explanation_lines import Variable
from symad.display.document import Cell, Columns, Document, Heading, Marked, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.graph.graph import Graph

MOST_LINES = 200  # of a program that are listed


@dataclass(frozen=True)
class ProgramListing(Shown):
    """A program written out, with every use computed again, and with each value computed once.

    `names` has the names of the rows, `results` the rows of the results.
    """

    name: str
    rows: Graph
    names: Mapping[int, sp.Basic]
    results: tuple[int, ...]

    @property
    def title(self) -> str:
        return f"Program of the {self.name}"

    @property
    def before(self) -> int:
        """The operations of the written-out formula."""
        return tree_operations(self.rows, self.results)

    @property
    def after(self) -> int:
        """The operations of the program that computes each value once."""
        return sum(bool(self.rows.operands[row]) for row in reachable(self.rows, self.results))

    def document(self) -> Document:
        """Return the two programs side by side."""
        before, after = self.before, self.after
        times = f", {before / after:.3g} times as many" if after and before > after else ""
        written = (
            Heading("Written out", 3),
            Paragraph(f"{count_label(before)} operations{times}: every use of a value computes it again."),
            Table((), tuple(self._written_out()), "ll", _left_out(before)),
        )
        shared = (
            Heading("Equal parts shared", 3),
            Paragraph(f"{counted(after, 'operation')}: each value is computed once."),
            Table((), tuple(self._shared()), "lll", _left_out(after)),
        )
        return (Heading(self.title, 1), Columns((written, shared)))

    def _shared(self) -> Iterator[tuple[Cell, ...]]:
        order = [row for row in reachable(self.rows, self.results) if self.rows.operands[row]]
        uses = Counter(operand for row in order for operand in self.rows.operands[row])
        for row in order[:MOST_LINES]:
            formula = rebuild(self.rows.heads[row], [self._symbol(operand) for operand in self.rows.operands[row]])
            notes = [f"used {uses[row]} times"] * (uses[row] > 1) + ["result"] * (row in self.results)
            yield (_cell(self._symbol(row), row), _cell(formula, row), ", ".join(notes))

    def _written_out(self) -> Iterator[tuple[Cell, ...]]:
        """Yield the lines of the expression tree, operands first, without recursion."""
        work: list[tuple[int, bool]] = [(row, False) for row in reversed(self.results)]
        done: list[sp.Basic] = []
        count = 0
        while work and count < MOST_LINES:
            row, ready = work.pop()
            operands = self.rows.operands[row]
            if not operands:
                done.append(self._symbol(row))
            elif not ready:
                work.append((row, True))
                work += [(operand, False) for operand in reversed(operands)]
            else:
                parts = done[len(done) - len(operands) :]
                del done[len(done) - len(operands) :]
                count += 1
                done.append(Variable(f"t{count}", real=None if self.rows.is_boolean(row) else True))
                yield (_cell(done[-1], row), _cell(rebuild(self.rows.heads[row], parts), row))

    def _symbol(self, row: int) -> sp.Basic:
        return self.rows.atoms[row] if is_constant(self.rows, row) else self.names[row]


def _cell(content: sp.Basic, row: int) -> Cell:
    return Marked(content, "primal", nodes=f"n{row}")


def _left_out(count: int) -> str:
    return f"the first {MOST_LINES} of {count_label(count)}" if count > MOST_LINES else ""
