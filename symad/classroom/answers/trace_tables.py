"""Tables of traces as pupils write them: rows of names, values and derivatives, in texts, lists and dicts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sp
from mpmath import mp

from codegen.records import dataclass
from symad.classroom.answers.rounded_answers import is_rounded_from
from symad.classroom.formulas.read import FormulaReading, reading
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import refusal

MOST_ROWS = 5000
_SLACK = mp.mpf(10) ** -12  # relative, for floats and for points that are floats
_RULE = re.compile(r"[\s|+:=─━═┼-]*")
_APART = re.compile(r"\s*(?:\t|\||;|&|\\\\|\s{2,}|,\s)\s*")
_SLOPE = re.compile("[\u0304\u0305\u0307'′]|\\\\(?:bar|dot|overline)|(?<=.)_?(?:bar|dot|adj)(?![a-z])|^[d∂].*/|^adj")
_RATIO = re.compile(r"[d∂]\(?(.+?)\)?\s*/\s*[d∂]\(?(.+?)\)?")
_NAME = re.compile(r"[^\W\d_]+-?[0-9]*(?:,[0-9]+)*")


@dataclass(frozen=True)
class WrittenNumber:
    """A number that a pupil wrote, and its reading in which decimal numbers are unknowns."""

    text: str
    value: Any
    decimals: FormulaReading | None

    def is_rounded(self, exact: Any, digits: int) -> bool:
        """Whether it is an exact number, or that number with at least so many significant digits; 0: it is exact."""
        if not mp.isfinite(self.value):
            return False
        if abs(self.value - exact) <= _SLACK * max(abs(exact), _SLACK):
            return True
        near = abs(self.value - exact) <= abs(exact)  # else it is not worth the effort
        if not digits or self.decimals is None or not near:
            return False
        return is_rounded_from(self.decimals.expression, sp.Float(exact, 40), self.decimals.decimals, digits)


@dataclass(frozen=True)
class TraceRow:
    """A row of a table: its number from 1, its text, the plain name of its variable, its value and its derivative."""

    number: int
    text: str
    name: str
    value: WrittenNumber | None = None
    slope: WrittenNumber | None = None
    formula: str = ""  # between its name and its value: x1 x2 in v2 = x1 x2 = 10


def plain_name(text: str) -> tuple[str, bool]:
    r"""Return a name without typesetting, and whether it is that of a tangent or an adjoint.

    >>> [plain_name(text) for text in (r"\bar{v}_5", "v̄_5", "v5_bar", "∂y/∂v5", "v_{-1}", "x₁")]
    [('v5', True), ('v5', True), ('v5', True), ('v5', True), ('v-1', False), ('x1', False)]
    """
    text = unicodedata.normalize("NFD", text.strip(" $:"))
    is_slope = _SLOPE.search(text) is not None
    if ratio := _RATIO.fullmatch(text):
        text = ratio[2] if ratio[1] in "yfLEJ" else ratio[1]
    text = unicodedata.normalize("NFKC", _SLOPE.sub("", text)).replace("−", "-")
    return re.sub(r"[\\{}_\s$()*]", "", text), is_slope


def rows_of(table: Any) -> list[TraceRow]:
    """Return the rows of a table; ArgumentError for what is none, with the row that cannot be read."""
    if isinstance(table, Mapping):
        table = [(name, *(cells if isinstance(cells, list | tuple) else (cells,))) for name, cells in table.items()]
    lines = table.splitlines() if isinstance(table, str) else table
    if not isinstance(lines, list | tuple | np.ndarray):
        raise refusal(f"a table of type {type(table).__name__}", do="give a text, a list of rows, or a dict")
    rows = [row for number, line in enumerate(lines, 1) if (row := _row(number, line)) is not None]
    if not rows or len(rows) > MOST_ROWS:
        what = f"a table of {len(rows)} rows" if rows else "a table without a row that has a name and a number"
        raise refusal(what, do=f"give 1 to {MOST_ROWS} rows: name, value, tangent or adjoint")
    return rows


def _row(number: int, line: Any) -> TraceRow | None:
    """Return a row; None for a heading, a rule, or a row without numbers."""
    if isinstance(line, Mapping):
        keys = ("name", "value", next((key for key in ("tangent", "adjoint", "derivative") if key in line), ""))
        line = [line.get(key, "") for key in keys]
    if isinstance(line, str):
        line = line.partition("#")[0]
        if _RULE.fullmatch(line):
            return None
        cells: Sequence[Any] = [cell for cell in _APART.split(line.strip(" |")) if cell]
        if len(cells) == 1 and "=" not in line:
            cells = line.split(",") if "." in line and "," in line else line.split()
    else:
        cells = list(line) if isinstance(line, list | tuple | np.ndarray) else [line]
    if not cells or not isinstance(cells[0], str):
        raise refusal(f"row {number}: {str(line)[:60]!r}", do="write a row as name, value, tangent or adjoint")
    head, *chain = re.split(r"=|≈|\\approx", cells[0])
    name, is_slope = plain_name(head)
    text = "  ".join(str(cell).strip() for cell in cells)
    numbers, slopes = list[WrittenNumber](), list[WrittenNumber]()
    for cell in [*chain[-1:], *cells[1:]]:
        first, *rest = re.split(r"=|≈|\\approx", cell) if isinstance(cell, str) else [cell]
        written = _number(number, rest[-1] if rest else first)
        if written is not None:
            (slopes if is_slope or (rest and plain_name(first) == (name, True)) else numbers).append(written)
    if not numbers and not slopes:
        return None
    if not _NAME.fullmatch(name):
        raise refusal(f"row {number}: the name {head.strip()!r}", do="write names such as v1, x or v1bar")
    if len(numbers) + len(slopes[-1:]) > 2:
        raise refusal(f"row {number}: {text!r}", "it has more than two numbers", "give name, value, tangent or adjoint")
    later = slopes or numbers[1:]
    formula = chain[0] if chain and numbers and not is_slope else ""
    return TraceRow(number, text, name, numbers[0] if numbers else None, later[-1] if later else None, formula)


def _number(row: int, cell: Any) -> WrittenNumber | None:
    """Return a number of a cell; None for a cell that is empty or has a formula of variables."""
    text = str(cell).strip(" $") if isinstance(cell, str) else repr(float(cell)) if _is_real(cell) else ""
    if not isinstance(cell, str) and not text and cell is not None:
        raise refusal(f"row {row}: {cell!r}", do="give numbers, or texts such as 0.693")
    if text in ("", "-", "—", "–", "?"):
        return None
    if re.fullmatch(r"[+-]?(?:nan|inf(?:inity)?|∞)", text, re.IGNORECASE):
        return WrittenNumber(text, mp.nan, None)
    try:
        exact, decimals = reading(text, {}), reading(text, {}, decimals=True)
    except ArgumentError as error:
        if not re.search(r"\d", text) or re.search(r"[^\W\d_]{3}", text):
            return None  # words
        raise ArgumentError(error.what, where=f"row {row}, {error.where}", why=error.why, do=error.do) from None
    if exact.expression.free_symbols or not exact.expression.is_number:
        return None
    value = sp.N(exact.expression, 50)
    number = mp.mpf(value._mpf_) if value.is_Float else mp.mpf(int(value)) if value.is_Integer else mp.nan
    return WrittenNumber(text, number, decimals if decimals.decimals else None)


def _is_real(cell: Any) -> bool:
    return isinstance(cell, int | float | np.number | sp.Number) and not isinstance(cell, bool)
