"""What pictures are made of: boxes, lines of text, paths, groups; in pixels, y downwards, without any form yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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
    """Shapes that belong together, moved by a shift; the title is what they show under the pointer."""

    title: str = ""
    shift: Point = (0.0, 0.0)
    shapes: list[Shape] = field(default_factory=list)


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
