"""Translate a picture from SVG to TikZ: rectangles, paths of M, L, C and Z, text, moved groups."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from symad.display.notation import latex_text

PIXEL = 0.75  # points of a pixel
WIDEST, HIGHEST = 720.0, 490.0  # points: a page on its side
_ANCHORS = {"start": "base west", "middle": "base", "end": "base east"}
_TURNED = re.compile(r"rotate\((\S+)")
_MOVED = re.compile(r"translate\((\S+) (\S+)\)")


def short(value: float) -> str:
    """Return a number of pixels with at most one decimal: the same text on every machine.

    >>> short(2.0), short(-0.01), short(1 / 3)
    ('2', '0', '0.3')
    """
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def tikz_of(svg: str) -> str:
    r"""Return a picture as a tikzpicture (packages tikz and xcolor), as large as a page at most.

    >>> print(tikz_of('<svg viewBox="0 0 20 20"><path d="M0 0L10 20" stroke="#0060A0" stroke-width="1.2"/></svg>'))
    \begin{tikzpicture}[x=0.75pt,y=-0.75pt,inner sep=0pt]
    \definecolor{symad-0060A0}{HTML}{0060A0}
    \draw[draw=symad-0060A0,line width=0.9pt] (0,0) -- (10,20);
    \end{tikzpicture}
    """
    root = ElementTree.fromstring(svg)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    scale = min(PIXEL, WIDEST / width, HIGHEST / height)
    lines = list(_written(root, (0.0, 0.0), scale))
    colours = sorted({element.get(use, "none") for element in root.iter() for use in ("fill", "stroke")} - {"none"})
    defined = [rf"\definecolor{{{_colour(colour)}}}{{HTML}}{{{colour[1:]}}}" for colour in colours]
    opening = rf"\begin{{tikzpicture}}[x={scale:.4g}pt,y=-{scale:.4g}pt,inner sep=0pt]"
    return "\n".join([opening, *defined, *lines, r"\end{tikzpicture}"])


def _written(group: Element, shift: tuple[float, float], scale: float) -> Iterator[str]:
    for element in group:
        x, y = (float(element.get(name, "0")) for name in ("x", "y"))
        match element.tag.rpartition("}")[2]:
            case "g":
                moved = _MOVED.match(element.get("transform", ""))
                dx, dy = map(float, moved.groups()) if moved else (0.0, 0.0)
                yield from _written(element, (shift[0] + dx, shift[1] + dy), scale)
            case "rect":
                other = _place(x + float(element.attrib["width"]), y + float(element.attrib["height"]), shift)
                radius = float(element.get("rx", "0")) * scale
                rounded = f",rounded corners={short(radius)}pt" if radius else ""
                yield rf"\path[{_painted(element, scale)}{rounded}] {_place(x, y, shift)} rectangle {other};"
            case "path":
                yield rf"\draw[{_painted(element, scale)}] {_commands(element.attrib['d'], shift)};"
            case "text":
                yield _label(element, _place(x, y, shift), scale)


def _label(label: Element, place: str, scale: float) -> str:
    size = float(label.attrib["font-size"]) * scale
    series = "bx" if label.get("font-weight") else "m"  # Computer Modern as outlines: it comes with every LaTeX
    font = rf"\fontsize{{{short(size)}}}{{{short(size * 1.2)}}}\usefont{{OT1}}{{cmss}}{{{series}}}{{n}}"
    turned = _TURNED.match(label.get("transform", ""))
    rotated = f",rotate={short(-float(turned[1]))}" if turned else ""
    colour = _colour(label.get("fill", "#000000"))
    options = f"anchor={_ANCHORS[label.get('text-anchor', 'start')]},text={colour},font={{{font}}}{rotated}"
    return rf"\node[{options}] at {place} {{{latex_text(label.text or '')}}};"


def _painted(element: Element, scale: float) -> str:
    options = []
    if (fill := element.get("fill", "none")) != "none":
        opacity = element.get("fill-opacity")
        options.append(f"fill={_colour(fill)}" + (f",fill opacity={opacity}" if opacity else ""))
    if (stroke := element.get("stroke")) is None:
        return ",".join([*options, "draw=none"])
    line = short(float(element.get("stroke-width", "1")) * scale)
    dashed = ",dashed" if element.get("stroke-dasharray") else ""
    return ",".join([*options, f"draw={_colour(stroke)},line width={line}pt{dashed}"])


def _colour(hexadecimal: str) -> str:
    return f"symad-{hexadecimal[1:]}"


def _commands(commands: str, shift: tuple[float, float]) -> str:
    written = []
    for command, numbers in re.findall(r"([MLCZ])([^MLCZ]*)", commands):
        values = list(map(float, numbers.split()))
        places = [_place(*pair, shift) for pair in list(pairwise(values))[::2]]
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


def _place(x: float, y: float, shift: tuple[float, float]) -> str:
    return f"({short(x + shift[0])},{short(y + shift[1])})"
