"""The result of `compare` as a document, Markdown, CSV or a data frame."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import Any

import mpmath
import numpy as np
import sympy as sp

from codegen.records import dataclass
from symad.classroom.comparison.comparison_problem import derivative_name, whole
from symad.classroom.comparison.comparison_rows import Row
from symad.classroom.comparison.reference import Enclosure, Reference
from symad.compiling.plan import time_text
from symad.display.document import Cell, Document, Formula, Heading, Marked, Paragraph, Table, inlines
from symad.display.shown import Shown
from symad.display.styles import Style
from symad.extras import optional

STYLES: dict[str, Style] = {
    "proved": "right", "tested": "right", "agrees": "right", "wrong": "wrong", "inaccurate": "strong",
    "no derivative": "strong", "no number": "strong", "failed": "muted", "not installed": "muted",
}  # fmt: skip
ABOUT_COLUMNS = (
    "Modes: F forward, R reverse, outermost first. ULP: the largest error in units of the last place, without entries "
    "below 1.5e-8 of the largest one; those without a right digit are counted as lost. Operations are "
    "those of one call; tree and graph are nodes of the formula, with equal parts repeated and shared."
)


@dataclass(frozen=True)
class Comparison(Shown):
    """The rows of `compare`, their reference, f itself if it is short, and plots on request."""

    name: str
    x: Any
    order: int
    reference: Reference
    enclosure: Enclosure
    rows: tuple[Row, ...]
    formula: sp.Expr | None = None
    times: bool = True
    pictures: Document = ()

    def __getitem__(self, route: str) -> Row:
        """Return the row of a route by its name; KeyError if there is none."""
        return {row.route: row for row in self.rows}[route]

    def __bool__(self) -> bool:
        """Whether no route is wrong."""
        return not self.wrong

    @property
    def wrong(self) -> tuple[str, ...]:
        """The routes whose formula is not the derivative of f."""
        return tuple(row.route for row in self.rows if row.verdict == "wrong")

    @property
    def title(self) -> str:
        return f"{derivative_name(self.order)} of {self.name} by every route"

    def document(self) -> Document:
        """Return the table of routes, the exact value, and the reasons for the verdicts."""
        return (
            Heading(self.title, 1),
            *([Formula(self.formula, sp.Symbol(self.name))] if self.formula is not None else []),
            Paragraph(self._about()),
            *([Paragraph(Marked(f"wrong: {', '.join(self.wrong)}", "wrong"))] if self.wrong else []),
            Table(*self.table()),
            Paragraph(ABOUT_COLUMNS + (" Times are of this machine." if self.times else "")),
            Heading("What the verdicts rest on"),
            Table((), tuple(_reasons(self.rows)), "ll"),
            *self.pictures,
        )

    def table(self) -> tuple[tuple[Cell, ...], tuple[tuple[Cell, ...], ...], str]:
        """Return header, rows and alignment. Values are only for a scalar, times only if measured."""
        scalar = all(len(row.values) <= 1 for row in self.rows)
        none_lost = scalar or not any(row.lost for row in self.rows)
        left_out = {"value": not scalar, "lost": none_lost, "build": not self.times, "call": not self.times}
        columns = [column for column in COLUMNS if not left_out.get(column[0])]
        header: tuple[Cell, ...] = tuple(name for name, _, _ in columns)
        rows = tuple(tuple(cell(row) for _, _, cell in columns) for row in self.rows)
        return header, rows, "".join(side for _, side, _ in columns)

    def _about(self) -> str:
        point = np.array2string(np.asarray(self.x), threshold=8, precision=6)
        if self.reference.refusal:
            return f"At {point}: {self.reference.refusal}."
        exact = self.reference.values
        shown = ", ".join(mpmath.nstr(value, 20 if len(exact) == 1 else 8) for value in exact[:6])
        more = f", ... ({len(exact)} entries)" if len(exact) > 6 else ""
        return f"At {point}, exactly {shown}{more}: {self.reference.source}. {self._enclosed()}"

    def _enclosed(self) -> str:
        """Return a sentence that compares the enclosure with the exact values."""
        if not self.enclosure.middles:
            return f"No enclosure by ball arithmetic: {self.enclosure.refusal}."
        says = "encloses the same values" if self.enclosure.contains(self.reference.values) else "encloses OTHER values"
        return f"Ball arithmetic {says}, with radii up to {mpmath.nstr(max(self.enclosure.radii), 1)}."

    def markdown(self) -> str:
        """Return the table of the routes in Markdown."""
        return markdown_table(*self.table())

    def csv(self) -> str:
        """Return all columns as comma-separated values."""
        text, records = io.StringIO(), self.records()
        writer = csv.DictWriter(text, list(records[0]) if records else ["route"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(records)
        return text.getvalue()

    def records(self) -> list[dict[str, Any]]:
        """Return one dict of plain values for each route; whole numbers are exact."""
        return [
            {
                "route": row.route, "family": row.family, "verdict": row.verdict,
                "value": row.values[0] if len(row.values) == 1 else None, "ulp": row.ulp, "ulp_bound": row.ulp_bound,
                "digits": row.digits, "absolute_error": row.absolute, "lost": row.lost, "operations": row.operations,
                "tree": row.sizes and row.sizes.tree, "graph": row.sizes and row.sizes.graph,
                "build_seconds": row.build_seconds, "call_seconds": row.call_seconds, "reason": row.reason,
            }
            for row in self.rows
        ]  # fmt: skip

    def dataframe(self) -> Any:
        """Return the routes as a pandas data frame (extra: symad[table])."""
        return optional("pandas", "a comparison as a data frame").DataFrame(self.records())

    def more_forms(self) -> dict[str, Any]:
        return {".md": lambda: self.markdown() + "\n", ".csv": self.csv}


def _seconds(taken: float | None) -> str:
    return "" if taken is None else time_text(1e9 * taken)


def ulp_text(row: Row) -> str:
    """Return the error of a row: in units of the last place, or absolute where the exact value is 0."""
    if row.ulp is not None:
        return f"{row.ulp:.2g}" if row.ulp > 1e-6 else "0"
    return "" if row.absolute is None else f"{row.absolute:.1g} abs."


COLUMNS: tuple[tuple[str, str, Callable[[Row], Cell]], ...] = (
    ("route", "l", lambda row: row.route),
    ("verdict", "l", lambda row: Marked(row.verdict, STYLES[row.verdict])),
    ("value", "l", lambda row: f"{row.values[0]:.10g}" if row.values else ""),
    ("ULP", "r", ulp_text),
    ("lost", "r", lambda row: whole(row.lost)),
    ("operations", "r", lambda row: whole(row.operations)),
    ("tree", "r", lambda row: whole(row.sizes.tree if row.sizes else None)),
    ("graph", "r", lambda row: whole(row.sizes.graph if row.sizes else None)),
    ("build", "r", lambda row: _seconds(row.build_seconds)),
    ("call", "r", lambda row: _seconds(row.call_seconds)),
)


def _reasons(rows: Sequence[Row]) -> list[tuple[Cell, ...]]:
    """Return each reason once, with its routes."""
    routes_of: dict[str, list[str]] = {}
    for row in rows:
        routes_of.setdefault(row.reason, []).append(row.route)
    return [("; ".join(names), reason) for reason, names in routes_of.items()]


def markdown_table(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], align: str) -> str:
    r"""Return a table in Markdown.

    >>> print(markdown_table(("a", "b"), [("1", "x|y")], "rl"))
    | a | b |
    |--:|---|
    | 1 | x\|y |
    """
    rules = "|".join("--:" if side == "r" else "---" for side in align)
    lines = ["| " + " | ".join(map(_plain, cells)) + " |" for cells in (header, *rows)]
    return "\n".join([lines[0], f"|{rules}|", *lines[1:]])


def _plain(cell: Cell) -> str:
    parts = (part.content if isinstance(part, Marked) else part for part in inlines(cell))
    return "".join(map(str, parts)).replace("|", "\\|")
