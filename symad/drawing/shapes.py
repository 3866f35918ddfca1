"""What pictures are made of: boxes, lines of text, paths, groups; in pixels, y downwards, without any form yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Literal, TypeAlias

from codegen.records import dataclass
from symad.display.latex import escape
from symad.display.styles import GROUND, LOOKS, Look, Style

Colour: TypeAlias = Style | Literal["ground"]
Anchor = Literal["start", "middle", "end"]
Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True)
class Paint:
    """How a shape is filled (and how densely) and how its line is drawn; None for not at all."""

    fill: Colour | None = None
    stroke: Colour | None = None
    line: float = 1.2
    dashed: bool = False
    opacity: float = 1.0


@dataclass(frozen=True)
class Box:
    """A rectangle, its upper left corner at a place, with rounded corners."""

    place: Point
    width: float
    height: float
    radius: float
    paint: Paint


@dataclass(frozen=True)
class Path:
    """Lines and curves: the commands M, L, C and Z of SVG, with absolute numbers."""

    commands: str
    paint: Paint


@dataclass(frozen=True)
class Label:
    """One line of text, with its base line at a place."""

    place: Point
    text: str
    colour: Colour
    size: float
    anchor: Anchor
    bold: bool
    turned: float


@dataclass
class Group:
    """Shapes that belong together, moved by a shift; the title is what they show under the pointer.

    `nodes` names the values that they stand for.
    """

    title: str = ""
    shift: Point = (0.0, 0.0)
    shapes: list[Shape] = field(default_factory=list)
    nodes: str = ""


Shape: TypeAlias = Box | Path | Label | Group


def look_of(colour: Colour) -> Look:
    """Return the shades of a colour; a style without one is drawn like what is primal.

    >>> look_of("ground").light
    'FFFFFF'
    """
    if colour == "ground":
        return GROUND
    return LOOKS[colour] if LOOKS[colour].light else LOOKS["primal"]


def short(value: float) -> str:
    """Return a number of pixels with at most one decimal: the same text on every machine.

    >>> short(2.0), short(-0.01), short(1 / 3)
    ('2', '0', '0.3')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


PIXEL = 0.75  # points of a pixel
WIDEST, HIGHEST = 720.0, 490.0  # points: a page on its side
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}


def tikz_of(shapes: Sequence[Shape], width: float, height: float) -> str:
    r"""Return shapes as a tikzpicture.

    >>> print(tikz_of([Path("M0 0L10 20", Paint(stroke="tangent"))], 20, 20))
    \begin{tikzpicture}[x=0.75pt,y=-0.75pt,inner sep=0pt]
    \definecolor{symad-tangent}{HTML}{0060A0}
    \draw[draw=symad-tangent,line width=0.9pt] (0,0) -- (10,20);
    \end{tikzpicture}
    """
    scale = min(PIXEL, WIDEST / width, HIGHEST / height)
    used: dict[Colour, None] = {}
    lines = list(_written(shapes, (0.0, 0.0), scale, used))
    colours = [rf"\definecolor{{symad-{colour}}}{{HTML}}{{{look_of(colour).light}}}" for colour in sorted(used)]
    opening = rf"\begin{{tikzpicture}}[x={scale:.4g}pt,y=-{scale:.4g}pt,inner sep=0pt]"
    return "\n".join([opening, *colours, *lines, r"\end{tikzpicture}"])


def _written(shapes: Iterable[Shape], shift: Point, scale: float, used: dict[Colour, None]) -> Iterator[str]:
    for shape in shapes:
        match shape:
            case Group():
                yield from _written(shape.shapes, (shift[0] + shape.shift[0], shift[1] + shape.shift[1]), scale, used)
            case Box():
                corner = _place(shape.place, shift)
                other = _place((shape.place[0] + shape.width, shape.place[1] + shape.height), shift)
                rounded = f",rounded corners={short(shape.radius * scale)}pt" if shape.radius else ""
                yield rf"\path[{_painted(shape.paint, scale, used)}{rounded}] {corner} rectangle {other};"
            case Path():
                yield rf"\draw[{_painted(shape.paint, scale, used)}] {_commands(shape.commands, shift)};"
            case Label():
                yield _label(shape, shift, scale, used)


def _label(label: Label, shift: Point, scale: float, used: dict[Colour, None]) -> str:
    used[label.colour] = None
    size = label.size * scale
    series = "bx" if label.bold else "m"  # Computer Modern as outlines: it comes with every LaTeX, in any size
    font = rf"\fontsize{{{short(size)}}}{{{short(size * 1.2)}}}\usefont{{OT1}}{{cmss}}{{{series}}}{{n}}"
    turned = f",rotate={short(-label.turned)}" if label.turned else ""
    options = f"anchor={_ANCHORS[label.anchor]},text=symad-{label.colour},font={{{font}}}{turned}"
    return rf"\node[{options}] at {_place(label.place, shift)} {{{escape(label.text)}}};"


def _painted(paint: Paint, scale: float, used: dict[Colour, None]) -> str:
    options = []
    if paint.fill:
        used[paint.fill] = None
        options.append(f"fill=symad-{paint.fill}" + (f",fill opacity={paint.opacity:g}" if paint.opacity != 1 else ""))
    if paint.stroke:
        used[paint.stroke] = None
        options.append(f"draw=symad-{paint.stroke},line width={short(paint.line * scale)}pt" + ",dashed" * paint.dashed)
    return ",".join(options) if paint.stroke else ",".join([*options, "draw=none"])


def _commands(commands: str, shift: Point) -> str:
    written = []
    for command, numbers in re.findall(r"([MLCZ])([^MLCZ]*)", commands):
        values = list(map(float, numbers.split()))
        places = [_place(point, shift) for point in zip(values[::2], values[1::2], strict=True)]
        match command:
            case "M":
                written.append(places[0])
            case "L":
                written.append(f"-- {places[0]}")
            case "C":
                written.append(f".. controls {places[0]} and {places[1]} .. {places[2]}")
            case _:
                written.append("-- cycle")
    return " ".join(written)


def _place(point: Point, shift: Point) -> str:
    return f"({short(point[0] + shift[0])},{short(point[1] + shift[1])})"
