"""A canvas that writes SVG: boxes, text, curves with arrows, groups with tooltips.

Units are pixels, y points down. `display.latex` converts this SVG for paper.

Every colour is written twice: as an attribute, for readers without CSS variables, and as a class whose variable
changes on dark ground. There are no ids, scripts or addresses, so one page may have several pictures.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from itertools import pairwise
from math import hypot
from typing import Literal, TypeAlias

from symad.display.document import Picture
from symad.display.html import named
from symad.display.latex import short as _n
from symad.display.styles import GROUND, LOOKS, SANS, Look, Style

Colour: TypeAlias = Style | Literal["ground"]
Anchor = Literal["start", "middle", "end"]
Point: TypeAlias = tuple[float, float]

SMALL_WIDTH, FRAME, LARGEST_SCALE = 520.0, 860.0, 1.75  # pixels of a picture that is enlarged, and the factor at most
NARROW = 340.0  # pixels of a picture that fits a phone without scaling
BOLD = ' font-weight="600"'
_ARROW = 7.0  # length of an arrow head
_WIDE, _NARROW = "mwMW@%—→∂∑∏∫√", "iljtfrI.,:;'|!()[]{}` -"


class Canvas:
    """A picture under construction, of a width and a height in pixels. Later elements lie on top.

    >>> canvas = Canvas(40, 20)
    >>> with canvas.group("a box"):
    ...     canvas.box(1, 1, 38, 18, stroke="tangent")
    >>> "<title>a box</title>" in canvas.svg() and "var(--tangent" in canvas.svg()
    True
    """

    width: float
    height: float

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self._elements: list[str] = []
        self._used: dict[tuple[str, Colour], None] = {}  # pairs such as ("fill", colour)

    def box(
        self, x: float, y: float, width: float, height: float, *, stroke: Colour | None = None,
        fill: Colour | None = None, opacity: float = 1.0, radius: float = 4.0, line: float = 1.2, dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a rectangle with its upper left corner at (x, y); `opacity` is that of its fill."""
        size = f'width="{_n(width)}" height="{_n(height)}" rx="{_n(radius)}"'
        paint = self._painted(fill, stroke, line, dashed, opacity)
        self._elements.append(f'<rect x="{_n(x)}" y="{_n(y)}" {size}{paint}/>')

    def text(
        self, x: float, y: float, text: str, *, colour: Colour = "primal", size: float = 13.0,
        anchor: Anchor = "middle", bold: bool = False, turned: float = 0.0,
    ) -> None:  # fmt: skip
        """Write a line of text on the base line y, turned by `turned` degrees clockwise about (x, y)."""
        moved = f' transform="rotate({_n(turned)} {_n(x)} {_n(y)})"' if turned else ""
        kind = f'font-size="{_n(size)}" text-anchor="{anchor}"{bold * BOLD}{moved}{self._painted(colour)}'
        self._elements.append(f'<text x="{_n(x)}" y="{_n(y)}" {kind}>{_escape(text)}</text>')

    def path(
        self, commands: str, *, stroke: Colour | None = "muted", fill: Colour | None = None, line: float = 1.2,
        dashed: bool = False, opacity: float = 1.0,
    ) -> None:  # fmt: skip
        """Draw a path of SVG's commands M, L, C and Z, with absolute numbers."""
        self._elements.append(f'<path d="{commands}"{self._painted(fill, stroke, line, dashed, opacity)}/>')

    def curve(
        self, points: Sequence[Point], *, stroke: Colour = "muted", arrow: bool = True, dashed: bool = False,
        sideways: bool = False,
    ) -> None:  # fmt: skip
        """Draw a smooth curve through points. It is vertical (or horizontal, if `sideways`) at each point."""
        x, y = points[-1]
        if arrow:
            before = (x - _ARROW, y) if sideways else (x, y - _ARROW)
            self._arrow_head(before, (x, y), stroke)
            points = [*points[:-1], before]
        self.path(smooth(points, sideways), stroke=stroke, dashed=dashed)

    def segment(
        self, start: Point, end: Point, *, stroke: Colour = "muted", line: float = 1.2, arrow: bool = False,
        dashed: bool = False,
    ) -> None:  # fmt: skip
        """Draw a straight line, with an arrow head at its end if `arrow`."""
        length = hypot(end[0] - start[0], end[1] - start[1])
        if arrow and length:
            part = min(1.0, _ARROW / length)
            before = (end[0] + (start[0] - end[0]) * part, end[1] + (start[1] - end[1]) * part)
            self._arrow_head(before, end, stroke)
            end = before
        self.path(f"M{_pair(start)}L{_pair(end)}", stroke=stroke, line=line, dashed=dashed)

    @contextmanager
    def group(self, title: str = "", shift: Point = (0.0, 0.0), nodes: str = "") -> Iterator[None]:
        """Put the elements drawn in this block into a group, which shows its title under the pointer."""
        moved = f' transform="translate({_pair(shift)})"' if shift != (0.0, 0.0) else ""
        self._elements.append(f"<g{moved}{named(nodes)}>" + (f"<title>{_escape(title)}</title>" if title else ""))
        yield
        self._elements.append("</g>")

    def place(self, other: Canvas, x: float, y: float) -> None:
        """Draw another canvas with its upper left corner at (x, y)."""
        with self.group(shift=(x, y)):
            self._elements += other._elements
            self._used |= other._used

    def svg(self, *, ground: bool = False, scale: float = 1.0) -> str:
        """Return the picture as SVG: for a page, or with a ground, as a file of its own.

        `scale` enlarges it; on a narrow screen it is as small as can still be read.
        """
        drawn = self
        if ground:
            drawn = Canvas(self.width, self.height)
            drawn.box(0, 0, self.width, self.height, fill="ground", radius=0)
            drawn._elements += self._elements
            drawn._used |= self._used
        lines = "\n".join(drawn._elements)
        box = f'viewBox="0 0 {_n(self.width)} {_n(self.height)}"'
        size = f'width="{_n(self.width * scale)}" height="{_n(self.height * scale)}" {box}'
        kind = f"symad-svg filled{' narrow' * (self.width <= NARROW)}" if scale > 1 else "symad-svg"
        opening = f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" {size} font-family="{SANS}">'
        return f"{opening}{_stylesheet(drawn._used, alone=ground)}\n{lines}\n</svg>"

    def picture(self, description: str, text: str = "", *, ground: bool = False, fills: bool = False) -> Picture:
        """Return the picture as a block of a document, with a description and a form in characters.

        A small one that `fills` its frame is enlarged.
        """
        room = min(LARGEST_SCALE, FRAME / self.width, FRAME / self.height) if self.width <= SMALL_WIDTH else 1.0
        scale = max(1.0, room) if fills else 1.0
        return Picture(self.svg(ground=ground, scale=scale), description, text)

    def _painted(
        self, fill: Colour | None, stroke: Colour | None = None, line: float = 1.2, dashed: bool = False,
        opacity: float = 1.0,
    ) -> str:  # fmt: skip
        """Return the SVG attributes of fill and stroke; None omits one."""
        uses: list[tuple[str, Colour]] = [(kind, c) for kind, c in (("fill", fill), ("stroke", stroke)) if c]
        self._used |= dict.fromkeys(uses)
        written = f' class="{" ".join(f"{kind}-{colour}" for kind, colour in uses)}"'
        written += f' fill="#{look_of(fill).light}"' if fill else ' fill="none"'
        written += f' fill-opacity="{opacity:g}"' if fill and opacity != 1.0 else ""
        if stroke:
            written += f' stroke="#{look_of(stroke).light}" stroke-width="{_n(line)}"'
            written += ' stroke-dasharray="4 3"' if dashed else ""
        return written

    def _arrow_head(self, before: Point, end: Point, colour: Colour) -> None:
        dx, dy = (end[0] - before[0]) * 0.42, (end[1] - before[1]) * 0.42
        corners = (end, (before[0] - dy, before[1] + dx), (before[0] + dy, before[1] - dx))
        self.path(f"M{'L'.join(map(_pair, corners))}Z", stroke=None, fill=colour)


def look_of(colour: Colour) -> Look:
    """Return the shades of a colour. A style without shades looks like primal.

    >>> look_of("ground").light
    'FFFFFF'
    """
    if colour == "ground":
        return GROUND
    return LOOKS[colour] if LOOKS[colour].light else LOOKS["primal"]


def smooth(points: Sequence[Point], sideways: bool = False) -> str:
    """Return the commands of a curve through points that is parallel to the main direction at each point.

    >>> smooth([(0, 0), (10, 20)])
    'M0 0C0 10 10 10 10 20'
    """
    commands = [f"M{_pair(points[0])}"]
    for (x, y), (u, v) in pairwise(points):
        a, b = (((x + u) / 2, y), ((x + u) / 2, v)) if sideways else ((x, (y + v) / 2), (u, (y + v) / 2))
        commands.append("C" + " ".join(map(_pair, (a, b, (u, v)))))
    return "".join(commands)


def text_width(text: str, size: float) -> float:
    """Return an upper bound of the width of a text, by the letters of a broad typeface.

    >>> text_width("sin", 10.0) < text_width("some", 10.0)
    True
    """
    return size * sum(map(_letter_width, text))


def shortened(text: str, letters: int) -> str:
    """Return a text of at most `letters` letters. An ellipsis replaces the rest.

    >>> shortened("a long name", 7), shortened("short", 7)
    ('a long…', 'short')
    """
    return text if len(text) <= letters else text[: letters - 1] + "…"


def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.05
    if unicodedata.combining(letter):
        return 0.0
    return 0.98 if letter in _WIDE else 0.4 if letter in _NARROW else 0.7 if letter.isupper() else 0.64


def _stylesheet(used: Iterable[tuple[str, Colour]], alone: bool) -> str:
    """Return the CSS rules of the colours. On a page, the page defines their shades, for dark notebooks too."""
    pairs = ((kind, colour, look_of(colour).light) for kind, colour in sorted(used))
    rules = "".join(f".symad-svg .{kind}-{c}{{{kind}:var(--{c},#{light})}}" for kind, c, light in pairs)
    if not alone:
        return f"<style>{rules}</style>"
    colours = sorted({colour for _, colour in used})
    light = "".join(f"--{colour}:#{look_of(colour).light};" for colour in colours)
    dark = "".join(f"--{colour}:#{look_of(colour).dark};" for colour in colours)
    return f"<style>.symad-svg{{{light}}}@media (prefers-color-scheme:dark){{.symad-svg{{{dark}}}}}{rules}</style>"


def _escape(text: str) -> str:
    """Return text for XML. Control characters are replaced, because XML has none."""
    return escape("".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text))


def _pair(point: Point) -> str:
    return f"{_n(point[0])} {_n(point[1])}"
