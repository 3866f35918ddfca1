"""A canvas that writes SVG: boxes, text, curves with arrows, groups with tooltips, in the colours of the styles.

Every colour is written twice: as an attribute, for readers that know no CSS variables, and as a class whose variable
changes on dark ground. Nothing here has an id, a script or an address, so pictures may stand together in one page.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from math import hypot
from typing import Literal, TypeAlias

from symad.display.styles import LOOKS, Style

Colour: TypeAlias = Style | Literal["ground"]
Anchor = Literal["start", "middle", "end"]
Point: TypeAlias = tuple[float, float]

FONT = "system-ui, 'DejaVu Sans', 'Segoe UI', Arial, sans-serif"
_GROUND = ("FFFFFF", "16181C")
_ARROW = 7.0  # length of an arrow head
_WIDE, _NARROW = "mwMW@%—→∂∑∏∫√", "iljtfrI.,:;'|!()[]{}` -"


def text_width(text: str, size: float) -> float:
    """Return how wide a text is at most, by the letters of a broad typeface.

    >>> text_width("sin", 10.0) < text_width("some", 10.0)
    True
    """
    return size * sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if unicodedata.combining(letter):
        return 0.0
    return 0.98 if letter in _WIDE else 0.4 if letter in _NARROW else 0.7 if letter.isupper() else 0.64


def shortened(text: str, letters: int) -> str:
    """Return a text of at most so many letters, with an ellipsis in the place of what is left out.

    >>> shortened("a long name", 7), shortened("short", 7)
    ('a long…', 'short')
    """
    return text if len(text) <= letters else text[: letters - 1] + "…"


class Canvas:
    """A picture in the making, of a width and a height in pixels; what is drawn later lies on top.

    >>> canvas = Canvas(40, 20)
    >>> with canvas.group("a box"):
    ...     canvas.box(1, 1, 38, 18, stroke="tangent")
    >>> "<title>a box</title>" in canvas.svg() and "var(--tangent" in canvas.svg()
    True
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._parts: list[str] = []
        self._classes: dict[tuple[str, Colour], None] = {}

    def box(
        self, x: float, y: float, width: float, height: float, *, stroke: Colour | None = None,
        fill: Colour | None = None, opacity: float = 1.0, radius: float = 4.0, line: float = 1.2, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rectangle with its upper left corner at (x, y); `opacity` is that of its fill."""
        place = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"'
        self._parts.append(f"<rect {place}{self._paint(fill, stroke, line, dashed, opacity)}/>")

    def text(
        self, x: float, y: float, text: str, *, colour: Colour = "primal", size: float = 13.0,
        anchor: Anchor = "middle", bold: bool = False, turned: float = 0.0,
    ) -> None:  # fmt: skip
        """Write one line of text on the base line y, turned by so many degrees about (x, y)."""
        extra = ' font-weight="600"' if bold else ""
        extra += f' transform="rotate({_n(turned)} {_n(x)} {_n(y)})"' if turned else ""
        place = f'x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}" text-anchor="{anchor}"'
        self._parts.append(f"<text {place}{extra}{self._paint(colour)}>{_escape(text)}</text>")

    def path(
        self, commands: str, *, stroke: Colour | None = "muted", fill: Colour | None = None, line: float = 1.2,
        dashed: bool = False, opacity: float = 1.0,
    ) -> None:  # fmt: skip
        """Draw a path given by SVG's commands (which are not escaped: numbers and letters only)."""
        self._parts.append(f'<path d="{commands}"{self._paint(fill, stroke, line, dashed, opacity)}/>')

    def curve(
        self, points: Sequence[Point], *, stroke: Colour = "muted", line: float = 1.2, arrow: bool = True,
        dashed: bool = False, sideways: bool = False,
    ) -> None:  # fmt: skip
        """Draw a smooth curve through points, which leaves and enters each downwards (or sideways), with an arrow."""
        (x, y), end = points[-1], points[-1]
        if arrow:
            end = (x - _ARROW, y) if sideways else (x, y - _ARROW)
            wing = (-_ARROW, -_ARROW * 0.42)
            dx, dy = wing if sideways else (wing[1], wing[0])
            other = (dx, -dy) if sideways else (-dx, dy)
            head = f"M{_n(x)} {_n(y)}L{_n(x + dx)} {_n(y + dy)}L{_n(x + other[0])} {_n(y + other[1])}Z"
            self.path(head, stroke=None, fill=stroke)
        self.path(smooth([*points[:-1], end], sideways), stroke=stroke, line=line, dashed=dashed)

    def segment(
        self, start: Point, end: Point, *, stroke: Colour = "muted", line: float = 1.2, arrow: bool = False,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a straight line, with an arrow head at its end where asked."""
        (x, y), (u, v) = start, end
        length = hypot(u - x, v - y)
        if arrow and length:
            ex, ey = (u - x) / length * _ARROW, (v - y) / length * _ARROW
            left, right = (u - ex - ey * 0.42, v - ey + ex * 0.42), (u - ex + ey * 0.42, v - ey - ex * 0.42)
            corners = "L".join(f"{_n(a)} {_n(b)}" for a, b in (end, left, right))
            self.path(f"M{corners}Z", stroke=None, fill=stroke)
            u, v = u - ex, v - ey
        self.path(f"M{_n(x)} {_n(y)}L{_n(u)} {_n(v)}", stroke=stroke, line=line, dashed=dashed)

    @contextmanager
    def group(self, title: str = "", shift: Point = (0.0, 0.0)) -> Iterator[None]:
        """Put what is drawn in this block in one group, which shows its title under the pointer."""
        moved = f' transform="translate({_n(shift[0])} {_n(shift[1])})"' if shift != (0.0, 0.0) else ""
        self._parts.append(f"<g{moved}>" + (f"<title>{_escape(title)}</title>" if title else ""))
        yield
        self._parts.append("</g>")

    def place(self, other: Canvas, x: float, y: float) -> None:
        """Draw another canvas with its upper left corner at (x, y)."""
        with self.group(shift=(x, y)):
            self._parts += other._parts
        self._classes |= other._classes

    def svg(self, *, ground: bool = False) -> str:
        """Return the picture: for a page, or with a ground of its own, as a file that stands alone."""
        size = f'width="{_n(self.width)}" height="{_n(self.height)}" viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        below = Canvas(self.width, self.height)
        if ground:
            below.box(0, 0, self.width, self.height, fill="ground", radius=0)
        lines = "\n".join([_stylesheet({**below._classes, **self._classes}), *below._parts, *self._parts])
        return f'<svg xmlns="http://www.w3.org/2000/svg" class="symad-svg" {size} font-family="{FONT}">{lines}\n</svg>'

    def _paint(
        self, fill: Colour | None, stroke: Colour | None = None, line: float = 0.0, dashed: bool = False,
        opacity: float = 1.0,
    ) -> str:  # fmt: skip
        used: list[tuple[str, Colour]] = [(k, c) for k, c in (("fill", fill), ("stroke", stroke)) if c is not None]
        self._classes |= dict.fromkeys(used)
        classes = " ".join(f"{kind}-{colour}" for kind, colour in used)
        paint = f' class="{classes}"' if classes else ""
        paint += f' fill="#{_shades(fill)[0]}"' if fill else ' fill="none"'
        paint += f' fill-opacity="{_n(opacity)}"' if fill and opacity != 1.0 else ""
        paint += f' stroke="#{_shades(stroke)[0]}" stroke-width="{_n(line)}"' if stroke else ""
        return paint + (' stroke-dasharray="4 3"' if stroke and dashed else "")


def smooth(points: Sequence[Point], sideways: bool = False) -> str:
    """Return the commands of a curve through points that is parallel to the main direction in each of them.

    >>> smooth([(0, 0), (10, 20)])
    'M0 0C0 10 10 10 10 20'
    """
    commands = [f"M{_n(points[0][0])} {_n(points[0][1])}"]
    for (x, y), (u, v) in pairwise(points):
        a, b = (((x + u) / 2, y), ((x + u) / 2, v)) if sideways else ((x, (y + v) / 2), (u, (y + v) / 2))
        commands.append("C" + " ".join(f"{_n(p)} {_n(q)}" for p, q in (a, b, (u, v))))
    return "".join(commands)


def _shades(colour: Colour) -> tuple[str, str]:
    if colour == "ground":
        return _GROUND
    look = LOOKS[colour] if LOOKS[colour].light else LOOKS["primal"]
    return look.light, look.dark


def _stylesheet(used: dict[tuple[str, Colour], None]) -> str:
    colours = sorted({colour for _, colour in used})
    light = "".join(f"--{colour}:#{_shades(colour)[0]};" for colour in colours)
    dark = "".join(f"--{colour}:#{_shades(colour)[1]};" for colour in colours)
    rules = "".join(
        f".symad-svg .{kind}-{colour}{{{kind}:var(--{colour},#{_shades(colour)[0]})}}" for kind, colour in sorted(used)
    )
    return f"<style>.symad-svg{{{light}}}@media (prefers-color-scheme:dark){{.symad-svg{{{dark}}}}}{rules}</style>"


def _escape(text: str) -> str:
    """Return text for XML: special characters named, control characters (which XML has no place for) replaced."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))


def _n(value: float) -> str:
    """Return a number of pixels with at most one decimal: the same text on every machine."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")
