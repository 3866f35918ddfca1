"""Where the boxes and arrows of a diagram are on the page: downwards, or sideways if that fits a page better."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from symad.drawing.boxes import Box, Diagram
from symad.drawing.layout import Layout, lay_out
from symad.drawing.shapes import Point
from symad.drawing.svg import text_width

PAGE = 1180.0  # pixels that a page is wide
LABEL, SMALL = 14.0, 11.5  # sizes of the text of a label, and of what stands below it
HEIGHT, MARGIN = 40.0, 14.0
_PARALLEL = 4  # arrows from box to box that are drawn side by side; of more, one

Arrow = tuple[Point, ...]
Sizes: TypeAlias = Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class Placed:
    """A diagram with places: the centre, the width and the height of each box, and the points of each arrow.

    `arrows[k]` belongs to `edges[k]`: the numbers of a diagram's edges, several times where arrows run in parallel.
    The first two points of an arrow are in line, then every other part is a curve between two layers.
    """

    diagram: Diagram
    sideways: bool
    width: float
    height: float
    centres: tuple[Point, ...]
    widths: tuple[float, ...]
    heights: tuple[float, ...]
    edges: tuple[int, ...]
    arrows: tuple[Arrow, ...]


def place(diagram: Diagram, sizes: Sizes | None = None) -> Placed:
    """Return a diagram with places, in the direction in which it fits a page.

    `sizes` has the width and the height of boxes that are larger than their labels.
    """
    sizes = sizes or {}
    downwards = _place(diagram, sizes, sideways=False)
    if downwards.width <= PAGE and downwards.height <= 2 * PAGE:
        return downwards
    sideways = _place(diagram, sizes, sideways=True)
    fits = downwards.width <= PAGE, sideways.width <= PAGE
    if fits[0] != fits[1]:
        return downwards if fits[0] else sideways
    return min(downwards, sideways, key=lambda placed: placed.height if fits[0] else placed.width)


def below_label(box: Box) -> str:
    """Return what stands below the label of a box: its name, marks, uses and results."""
    uses = f"{box.uses} uses" if box.uses > 1 and box.copies == 1 and box.kind in ("operation", "parameter") else ""
    more = f" +{len(box.results) - 2}" if len(box.results) > 2 else ""
    results = f"→ {', '.join(box.results[:2])}{more}" if box.results else ""
    copies = f"×{box.copies}" if box.copies > 1 else ""
    return "  ".join(filter(None, [copies, box.name, box.letters, uses, results]))


def _place(diagram: Diagram, sizes: Sizes, *, sideways: bool) -> Placed:
    shapes = [sizes.get(k, (_label_width(box), HEIGHT)) for k, box in enumerate(diagram.boxes)]
    widths, heights = tuple(width for width, _ in shapes), tuple(height for _, height in shapes)
    breadths, lengths = (heights, widths) if sideways else (widths, heights)
    layout = lay_out(diagram, breadths, 14.0)
    half = [*(breadth / 2 for breadth in breadths), *[0.0] * (len(layout.places) - len(breadths))]
    least = min((a - h for a, h in zip(layout.places, half, strict=True)), default=0.0) - MARGIN
    across = [place - least for place in layout.places]
    breadth = max((a + h for a, h in zip(across, half, strict=True)), default=0.0) + MARGIN
    spans = _spans(layout, lengths, 44.0 if sideways else 32.0)
    length = spans[-1][1] + MARGIN
    edges, arrows = _arrows(diagram, layout, across, spans, lengths, breadths)

    def points(places: Sequence[tuple[float, float]]) -> Arrow:
        return tuple(places) if sideways else tuple((b, a) for a, b in places)

    centres = points([(sum(spans[layer]) / 2, b) for layer, b in zip(layout.layers, across, strict=True)])
    width, height = (length, breadth) if sideways else (breadth, length)
    paths = tuple(map(points, arrows))
    return Placed(diagram, sideways, width, height, centres[: len(widths)], widths, heights, edges, paths)


def _label_width(box: Box) -> float:
    """Return how wide a box is for its label, which is bold, and what stands below."""
    return max(44.0, 1.1 * text_width(box.label, LABEL) + 20, text_width(below_label(box), SMALL) + 16)


def _spans(layout: Layout, lengths: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Return where each layer begins and ends, along the arrows."""
    thickness = [HEIGHT] * layout.depth
    for layer, length in zip(layout.layers, lengths, strict=False):
        thickness[layer] = max(thickness[layer], length)
    spans, start = [], MARGIN
    for thick in thickness:
        spans.append((start, start + thick))
        start += thick + gap
    return spans


def _arrows(
    diagram: Diagram, layout: Layout, across: Sequence[float], spans: Sequence[tuple[float, float]],
    sizes: Sequence[float], breadths: Sequence[float],
) -> tuple[tuple[int, ...], list[list[tuple[float, float]]]]:  # fmt: skip
    """Return the arrows as (along, across), and the edge of each; each enters its box at a port of its own."""
    entering: dict[int, list[int]] = {}
    for number, (edge, path) in enumerate(zip(diagram.edges, layout.paths, strict=True)):
        parallel = edge.count if edge.count <= _PARALLEL and diagram.boxes[edge.target].copies == 1 else 1
        entering.setdefault(path[-1], []).extend([number] * parallel)
    edges, arrows = [], []
    middle = _middle(layout, spans)
    for box, numbers in entering.items():
        numbers.sort(key=lambda k: (across[layout.paths[k][-2]], k))
        step = min(16.0, breadths[box] * 0.7 / len(numbers))
        for position, number in enumerate(numbers):
            port = across[box] + (position - (len(numbers) - 1) / 2) * step
            start, *ways, _ = layout.paths[number]
            points = [
                (middle(start) + sizes[start] / 2, across[start]),
                (spans[layout.layers[start]][1], across[start]),
            ]
            points += [(end, across[way]) for way in ways for end in spans[layout.layers[way]]]
            points += [(spans[layout.layers[box]][0], port), (middle(box) - sizes[box] / 2, port)]
            edges.append(number)
            arrows.append(points)
    return tuple(edges), arrows


def _middle(layout: Layout, spans: Sequence[tuple[float, float]]) -> Callable[[int], float]:
    return lambda item: sum(spans[layout.layers[item]]) / 2
