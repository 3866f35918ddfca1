"""Line charts on linear or logarithmic axes. Each series has a colour, a marker and a letter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from codegen.records import dataclass
from symad.classroom.drawing.svg import Canvas, Colour, text_width
from symad.display.document import Picture
from symad.display.notation import RAISED, counted
from symad.errors import ArgumentError

Series: TypeAlias = Mapping[str, Sequence[tuple[Any, Any]]]

_COLOURS: tuple[Colour, ...] = ("tangent", "cotangent", "epsilon", "parameter", "residual", "wrong", "primal", "muted")
_MARKERS = (  # Z closes a path
    "M-4 0C-4 -5.2 4 -5.2 4 0C4 5.2 -4 5.2 -4 0Z", "M-4 -4L4 -4L4 4L-4 4Z", "M0 -5.2L4.8 4L-4.8 4Z",
    "M0 -5.6L5.6 0L0 5.6L-5.6 0Z", "M-4.8 -4L4.8 -4L0 5.2Z", "M-4 -4L4 4M-4 4L4 -4", "M0 -5.2L0 5.2M-5.2 0L5.2 0",
)  # fmt: skip
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_COLUMNS, _LINES = 64, 16  # of the chart in characters


@dataclass(frozen=True)
class _Axis:
    """Maps numbers to positions between 0 and 1. On a logarithmic axis, 0 lies below all other numbers."""

    low: float
    high: float
    log: bool
    has_zero: bool
    whole: bool = False  # integers only: the ticks are integers, too

    def place(self, value: Any) -> float | None:
        """Return the position of a number on the axis, None if it has none."""
        if self.log and value == 0:
            return 0.0
        measured = _measure(value, self.log)
        base = 0.08 if self.has_zero else 0.0
        return None if measured is None else base + (1 - base) * (measured - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        """Return the positions of grid lines and their labels."""
        if not self.log:
            step = max(_step((self.high - self.low) / 9), 1.0 if self.whole else 0.0)
            first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
            return [((k * step - self.low) / (self.high - self.low), f"{k * step:.6g}") for k in range(first, last + 1)]
        decades = range(round(self.low), round(self.high) + 1, max(1, math.ceil((self.high - self.low) / 8)))
        labelled = [(10**n if n >= 0 else 10.0**n, _power(n)) for n in decades]
        if self.high - self.low <= 2:
            between = [m * 10.0**n for n in range(round(self.low), round(self.high)) for m in (2, 5)]
            labelled += [(value, f"{value:g}") for value in between]
        labelled += [(0, "0")] if self.has_zero else []
        return [(place, label) for value, label in labelled if (place := self.place(value)) is not None]


def line_chart(
    series: Series, x_label: str = "", y_label: str = "", *, log_x: bool = False, log_y: bool = False, title: str = "",
    width: float = 760.0, height: float = 420.0, ground: bool = False, field: bool = False,
) -> Picture:  # fmt: skip
    """Return a chart of series of points (x, y), integers of any size among them.

    A logarithmic axis has a place for 0 below all other numbers. Points without a place (nan, infinities, negative
    numbers on a logarithmic axis) are omitted, leave a gap in their line, and are counted below the chart. `ground` is
    for separate files; `field` marks the rectangle of the axes for a page. ArgumentError without a point.

    >>> series = {"tree": [(1, 10), (2, 10**400)], "graph": [(1, 9), (2, 12)]}
    >>> line_chart(series, "order", "operations", log_y=True).description
    'operations over order: tree, graph'
    """
    points = [point for line in series.values() for point in line]
    across, up = _axis([x for x, _ in points], log_x, "x"), _axis([y for _, y in points], log_y, "y")
    placed = {name: [(across.place(x), up.place(y)) for x, y in line] for name, line in series.items()}
    missing = sum(None in place for line in placed.values() for place in line)
    note = f"{counted(missing, 'point')} without a place on these axes left out" if missing else ""
    canvas = _Chart(width, height, across, up, list(series))
    if field:  # an invisible box, so that a page finds it
        with canvas.canvas.group(nodes="field"):
            size = canvas.right - canvas.left, canvas.bottom - canvas.top
            canvas.canvas.box(canvas.left, canvas.top, *size, fill="ground", opacity=0.0, radius=0)
    canvas.frame(title, x_label, y_label, note)
    for number, line in enumerate(placed.values()):
        canvas.line(number, line)
    canvas.legend(list(series))
    description = f"{y_label or 'y'} over {x_label or 'x'}: {', '.join(series)}"
    text = _in_characters(placed, across, up, (title, x_label, y_label, note))
    return canvas.canvas.picture(description, text, ground=ground)


class _Chart:
    """The canvas of a chart, with room for the labels around the field."""

    def __init__(self, width: float, height: float, across: _Axis, up: _Axis, names: Sequence[str]) -> None:
        self.canvas, self.across, self.up = Canvas(width, height), across, up
        legend = 44 + max(text_width(name, 13) for name in names)
        left = 40 + max(text_width(label, 12) for _, label in up.ticks())
        self.left, self.right, self.top, self.bottom = left, width - legend, 34.0, height - 66.0

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the pixel of a position."""
        return self.left + (self.right - self.left) * x, self.bottom - (self.bottom - self.top) * y

    def frame(self, title: str, x_label: str, y_label: str, note: str) -> None:
        """Draw the axes, their ticks and labels."""
        canvas, middle = self.canvas, (self.left + self.right) / 2
        for x, label in self.across.ticks():
            canvas.segment(self.at(x, 0), self.at(x, 1), line=0.3)
            canvas.text(self.at(x, 0)[0], self.bottom + 18, label, size=12)
        for y, label in self.up.ticks():
            canvas.segment(self.at(0, y), self.at(1, y), line=0.3)
            canvas.text(self.left - 7, self.at(0, y)[1] + 4, label, size=12, anchor="end")
        corners = ((self.left, self.top), (self.left, self.bottom), (self.right, self.bottom))
        canvas.path("M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners))
        canvas.text(middle, 20, title, size=15, bold=True)
        canvas.text(middle, self.bottom + 38, x_label)
        canvas.text(16, (self.top + self.bottom) / 2, y_label, turned=-90)
        canvas.text(middle, self.bottom + 56, note, size=12, colour="muted")

    def line(self, number: int, line: Sequence[tuple[float | None, float | None]]) -> None:
        """Draw one series, with a gap for each point without a position."""
        colour, command, commands = _COLOURS[number % len(_COLOURS)], "M", ""
        for x, y in line:
            if x is None or y is None:
                command = "M"
                continue
            u, v = self.at(x, y)
            commands += f"{command}{u:.1f} {v:.1f}"
            command = "L"
            self.marker(number, u, v)
        if commands:
            self.canvas.path(commands, stroke=colour, line=1.8, dashed=number >= len(_COLOURS))

    def marker(self, number: int, x: float, y: float) -> None:
        """Draw the marker of a series: crosses are lines, other markers are filled."""
        colour, shape = _COLOURS[number % len(_COLOURS)], _MARKERS[number % len(_MARKERS)]
        with self.canvas.group(shift=(x, y)):
            self.canvas.path(shape, stroke=colour, fill=colour if "Z" in shape else None, line=1.6)

    def legend(self, names: Sequence[str]) -> None:
        """Write the names of the series beside the field, with their markers."""
        for number, name in enumerate(names):
            x, y = self.right + 20, self.top + 10 + 22 * number
            colour = _COLOURS[number % len(_COLOURS)]
            self.canvas.segment((x - 10, y), (x + 10, y), stroke=colour, line=1.8, dashed=number >= len(_COLOURS))
            self.marker(number, x, y)
            self.canvas.text(x + 17, y + 4.5, name, anchor="start")


def _axis(values: Sequence[Any], log: bool, name: str) -> _Axis:
    """Return an axis for the values: whole decades, or a range with margins."""
    measured = [position for value in values if (position := _measure(value, log)) is not None]
    has_zero = log and any(value == 0 for value in values)
    if not measured and not has_zero:
        raise ArgumentError(f"a chart without a number for its {name} axis", do="give points with finite numbers")
    low, high = (min(measured), max(measured)) if measured else (0.0, 1.0)
    if log:
        low, high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        return _Axis(low, max(high, low + 1), log, has_zero)
    if low == high:
        low, high = low - 0.5, high + 0.5
    margin = 0.0 if low == 0 else (high - low) * 0.03
    whole = all(isinstance(value, int) for value in values)
    return _Axis(low - margin, high + (high - low) * 0.03, log, has_zero, whole)


def _measure(value: Any, log: bool) -> float | None:
    """Return a number as a float, or its logarithm, even if it is beyond the floats; None if it has none."""
    try:
        measured = math.log10(value) if log else float(value)
    except (ValueError, OverflowError):
        return None
    return measured if math.isfinite(measured) else None


def _step(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... times a power of ten that is not less."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _power(exponent: int) -> str:
    return str(10**exponent) if 0 <= exponent <= 2 else "10" + str(exponent).translate(RAISED)


def _in_characters(
    placed: Mapping[str, Sequence[tuple[float | None, float | None]]], across: _Axis, up: _Axis, words: Sequence[str]
) -> str:
    """Return the chart for a terminal: each series has a letter, and * marks where two meet."""
    field = [[" "] * _COLUMNS for _ in range(_LINES)]
    for letter, line in zip(_LETTERS * len(placed), placed.values(), strict=False):
        for x, y in line:
            if x is not None and y is not None:
                row, column = _LINES - 1 - round(y * (_LINES - 1)), round(x * (_COLUMNS - 1))
                field[row][column] = letter if field[row][column] in (" ", letter) else "*"
    labels = {_LINES - 1 - round(place * (_LINES - 1)): label for place, label in up.ticks()}
    margin = max(map(len, labels.values()), default=0)
    title, x_label, y_label, note = words
    rows = [f"{labels.get(k, ''):>{margin}} │{''.join(row).rstrip()}" for k, row in enumerate(field)]
    scale = [" "] * (_COLUMNS + 12)
    for place, label in across.ticks():
        column = round(place * (_COLUMNS - 1))
        scale[column : column + len(label)] = label
    names = "   ".join(f"{letter}: {name}" for letter, name in zip(_LETTERS * len(placed), placed, strict=False))
    foot = [f"{'':>{margin}} └{'─' * _COLUMNS}", f"{'':>{margin}}  {''.join(scale).rstrip()}   {x_label}".rstrip()]
    named = textwrap.wrap(names, _COLUMNS + 8)
    return "\n".join([*filter(None, [title, y_label]), *rows, *foot, *named, *filter(None, [note])])
