"""What pictures are made of: boxes, lines of text, paths, groups; in pixels, y downwards, without any form yet."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

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


PIXEL = 0.75  # points of a pixel
WIDEST, HIGHEST = 720.0, 490.0  # points: a page on its side
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_SUBSCRIPTS = {chr(0x2080 + k): str(k) for k in range(10)}
_SUPERSCRIPTS = {**{chr(0x2070 + k): str(k) for k in range(10)}, "¹": "1", "²": "2", "³": "3", "⁻": "-", "ᵀ": "T"}
_SIGNS = {
    "×": r"\times", "·": r"\cdot", "÷": r"\div", "−": "-", "√": r"\surd", "∞": r"\infty", "∂": r"\partial",
    "≤": r"\leq", "≥": r"\geq", "≠": r"\neq", "∧": r"\wedge", "∨": r"\vee", "¬": r"\neg", "→": r"\to",
    "…": r"\ldots", "—": "-", "∑": r"\sum", "□": r"\Box", "ε": r"\varepsilon", "φ": r"\varphi",
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta",
    "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi",
    "ρ": r"\rho", "σ": r"\sigma", "τ": r"\tau", "υ": r"\upsilon", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega",
    "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma",
    "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip


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
    return rf"\node[{options}] at {_place(label.place, shift)} {{{latex_text(label.text)}}};"


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


def latex_text(text: str) -> str:
    r"""Return a label for LaTeX: signs by their names, and what no font of LaTeX's has by its name in Unicode.

    >>> latex_text("x₁ × y²"), latex_text("漢")
    ('x\\textsubscript{1} $\\times$ y\\textsuperscript{2}', '(CJK UNIFIED IDEOGRAPH-6F22)')
    """
    return "".join(map(_letter, text))


def _letter(letter: str) -> str:
    if letter in _SUBSCRIPTS:
        return rf"\textsubscript{{{_SUBSCRIPTS[letter]}}}"
    if letter in _SUPERSCRIPTS:
        return rf"\textsuperscript{{{_SUPERSCRIPTS[letter]}}}"
    if letter in _SIGNS:
        return rf"${_SIGNS[letter]}$"
    if letter.isascii() or (letter.isprintable() and ord(letter) < 0x180):
        return escape(letter) if letter.isprintable() or letter == "\n" else "?"
    return escape(f"({unicodedata.name(letter, 'a character')})")
