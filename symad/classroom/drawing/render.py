"""Render diagrams: positions of boxes and arrows, marks, curves, a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from codegen.records import dataclass
from symad.classroom.drawing.boxes import Box, Diagram
from symad.classroom.drawing.layout import DiagramLayout, lay_out
from symad.classroom.drawing.svg import Canvas, Point, text_width
from symad.display.styles import LOOKS, Style

PAGE = 1180.0  # pixels that a page is wide
LABEL, SMALL = 14.0, 11.5  # sizes of the text of a label, and of what stands below it
HEIGHT, MARGIN = 40.0, 14.0
_PARALLEL = 4  # parallel arrows between two boxes; more are drawn as one

Arrow = tuple[Point, ...]
Sizes: TypeAlias = Mapping[int, tuple[float, float]]


@dataclass(frozen=True)
class PlacedDiagram:
    """A diagram with places: the centre, the width and the height of each box, and the points of each arrow.

    `edges[k]` is the number of the edge of `arrows[k]`; parallel arrows repeat it. The first two points of an arrow are
    in line, then every other part is a curve between two layers.
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


def place(diagram: Diagram, sizes: Sizes | None = None) -> PlacedDiagram:
    """Return a diagram with places, in the direction that fits the page.

    `sizes` has the width and height of boxes that are larger than their labels.
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
    """Return the line below the label of a box: its name, marks, uses and results."""
    uses = f"{box.uses} uses" if _is_shared(box) else ""
    more = f" +{len(box.results) - 2}" if len(box.results) > 2 else ""
    results = f"→ {', '.join(box.results[:2])}{more}" if box.results else ""
    copies = f"×{box.copies}" if box.copies > 1 else ""
    return "  ".join(filter(None, [copies, box.name, box.letters, box.value, box.adjoint, uses, results]))


def _place(diagram: Diagram, sizes: Sizes, *, sideways: bool) -> PlacedDiagram:
    texts = [(1.1 * text_width(b.label, LABEL) + 20, text_width(below_label(b), SMALL) + 16) for b in diagram.boxes]
    shapes = [sizes.get(k, (max(44.0, *text), HEIGHT)) for k, text in enumerate(texts)]  # labels are bold
    widths, heights = tuple(width for width, _ in shapes), tuple(height for _, height in shapes)
    breadths, lengths = (heights, widths) if sideways else (widths, heights)
    layout = lay_out(diagram, breadths, 14.0)
    half = [*(breadth / 2 for breadth in breadths), *[0.0] * (len(layout.places) - len(breadths))]
    least = min((a - h for a, h in zip(layout.places, half, strict=True)), default=0.0) - MARGIN
    across = [place - least for place in layout.places]
    breadth = max((a + h for a, h in zip(across, half, strict=True)), default=0.0) + MARGIN
    labels = [text_width(edge.label, SMALL) for edge in diagram.edges if edge.label]
    room = max(labels) if labels and sideways else 24.0 * bool(labels)
    spans = _spans(layout, lengths, (44.0 if sideways else 32.0) + room)
    length = spans[-1][1] + MARGIN
    edges, arrows = _arrows(diagram, layout, across, spans, lengths, breadths)

    def points(places: Sequence[tuple[float, float]]) -> Arrow:
        return tuple(places) if sideways else tuple((b, a) for a, b in places)

    centres = points([(sum(spans[layer]) / 2, b) for layer, b in zip(layout.layers, across, strict=True)])
    width, height = (length, breadth) if sideways else (breadth, length)
    paths = tuple(map(points, arrows))
    return PlacedDiagram(diagram, sideways, width, height, centres[: len(widths)], widths, heights, edges, paths)


def _spans(layout: DiagramLayout, lengths: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Return the start and end of each layer along the arrows."""
    thickness = [HEIGHT] * layout.depth
    for layer, length in zip(layout.layers, lengths, strict=False):
        thickness[layer] = max(thickness[layer], length)
    starts = accumulate((thick + gap for thick in thickness[:-1]), initial=MARGIN)
    return [(start, start + thick) for start, thick in zip(starts, thickness, strict=True)]


def _arrows(
    diagram: Diagram, layout: DiagramLayout, across: Sequence[float], spans: Sequence[tuple[float, float]],
    sizes: Sequence[float], breadths: Sequence[float],
) -> tuple[tuple[int, ...], list[list[tuple[float, float]]]]:  # fmt: skip
    """Return the arrows as (along, across) and the edge of each. Each enters its box at a port of its own."""
    entering: dict[int, list[int]] = {}
    for number, (edge, path) in enumerate(zip(diagram.edges, layout.paths, strict=True)):
        parallel = edge.count if edge.count <= _PARALLEL and diagram.boxes[edge.target].copies == 1 else 1
        entering.setdefault(path[-1], []).extend([number] * parallel)
    edges, arrows = [], []
    middle = [sum(spans[layer]) / 2 for layer in layout.layers]
    for box, numbers in entering.items():
        numbers.sort(key=lambda k: (across[layout.paths[k][-2]], k))
        step = min(16.0, breadths[box] * 0.7 / len(numbers))
        for position, number in enumerate(numbers):
            port = across[box] + (position - (len(numbers) - 1) / 2) * step
            start, *ways, _ = layout.paths[number]
            begin = middle[start] + sizes[start] / 2, spans[layout.layers[start]][1]
            points = [(along, across[start]) for along in begin]
            points += [(end, across[way]) for way in ways for end in spans[layout.layers[way]]]
            points += [(spans[layout.layers[box]][0], port), (middle[box] - sizes[box] / 2, port)]
            edges.append(number)
            arrows.append(points)
    return tuple(edges), arrows


_LEGEND_WIDTH = 480.0  # least


def render(placed: PlacedDiagram) -> Canvas:
    """Return the picture of a placed diagram."""
    return with_legend(boxes_and_arrows(placed), placed.diagram.boxes)


def with_legend(picture: Canvas, boxes: Sequence[Box]) -> Canvas:
    legend = _legend(boxes, max(picture.width, _LEGEND_WIDTH))
    canvas = Canvas(max(picture.width, legend.width), picture.height + legend.height)
    canvas.place(picture, (canvas.width - picture.width) / 2, 0)
    canvas.place(legend, (canvas.width - legend.width) / 2, picture.height)
    return canvas


def boxes_and_arrows(placed: PlacedDiagram, pictures: Mapping[int, Canvas] | None = None) -> Canvas:
    """Return a picture without a legend. `pictures` replaces some boxes by pictures of the same size."""
    canvas = Canvas(placed.width, placed.height)
    drawn: set[Arrow] = set()
    for number, points in zip(placed.edges, placed.arrows, strict=True):
        _draw_arrow(canvas, points, placed.sideways, placed.diagram.edges[number].back, drawn)
    _draw_labels(canvas, placed)
    boxes = zip(placed.diagram.boxes, placed.centres, placed.widths, strict=True)
    for number, (box, centre, width) in enumerate(boxes):
        if picture := (pictures or {}).get(number):
            canvas.place(picture, centre[0] - picture.width / 2, centre[1] - picture.height / 2)
        else:
            _draw_box(canvas, box, centre, width)
    return canvas


def _draw_arrow(canvas: Canvas, points: Arrow, sideways: bool, back: bool, drawn: set[Arrow]) -> None:
    """Draw an arrow without the parts already drawn. A backward arrow is dashed, with its head at the start."""
    last = len(points) - 2
    for k in range(0, last, 2):
        part = points[k : k + 3] if k + 2 < last else points[k:]
        if part not in drawn:
            drawn.add(part)
            head = k + 2 >= last and not back
            canvas.curve(part, arrow=head, sideways=sideways, dashed=back, stroke="residual" if back else "muted")
    if back:
        (x, y), away = points[0], 8.0
        canvas.segment((x + away, y) if sideways else (x, y + away), (x, y), stroke="residual", arrow=True)


def _draw_labels(canvas: Canvas, placed: PlacedDiagram) -> None:
    """Write the labels on their arrows, each at the first place where no box and no other label is."""
    sizes = zip(placed.centres, placed.widths, placed.heights, strict=True)
    taken = [(x - width / 2, y - height / 2, x + width / 2, y + height / 2) for (x, y), width, height in sizes]
    for number, points in zip(placed.edges, placed.arrows, strict=True):
        label = placed.diagram.edges[number].label
        if not label:
            continue
        half, places = text_width(label, SMALL) / 2 + 2, list[tuple[float, float, float, float]]()
        (x0, y0), (x1, y1) = points[max(len(points) - 3, 1)] if len(points) > 4 else points[0], points[-2]
        for part in (0.5, 0.38, 0.62, 0.26, 0.74, 0.14, 0.86):
            eased = part * part * (3 - 2 * part)
            along = (part, eased) if placed.sideways else (eased, part)
            x, y = x0 + (x1 - x0) * along[0], y0 + (y1 - y0) * along[1]
            places.append((x - half, y - 7, x + half, y + 7))
        free = (place for place in places if not any(_overlap(place, other) for other in taken))
        left, top, right, bottom = chosen = next(free, places[0])
        taken.append(chosen)
        canvas.box(left, top, right - left, bottom - top, fill="ground", radius=3)
        canvas.text((left + right) / 2, bottom - 3, label, size=SMALL, colour="residual")


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _draw_box(canvas: Canvas, box: Box, centre: Point, width: float) -> None:
    x, y = centre[0] - width / 2, centre[1] - HEIGHT / 2
    with canvas.group(tooltip(box), nodes=box.nodes):
        _frame(canvas, box, (x, y), width, HEIGHT)
        below = below_label(box)
        canvas.text(centre[0], centre[1] + (-2 if below else 5), box.label, size=LABEL, bold=True)
        if below and box.adjoint:
            left = centre[0] - text_width(below, SMALL) / 2
            rest = below.removeprefix(f"{box.value}  {box.adjoint}").strip()
            colours: tuple[Style, ...] = ("primal", "cotangent", "muted")
            for text, colour in zip((box.value, box.adjoint, rest), colours, strict=True):
                canvas.text(left, centre[1] + 13, text, size=SMALL, colour=colour, anchor="start")
                left += text_width(f"{text}  ", SMALL)
        elif below:
            canvas.text(centre[0], centre[1] + 13, below, size=SMALL, colour=box.style if box.marks else "muted")


def _frame(canvas: Canvas, box: Box, corner: Point, width: float, height: float) -> None:
    """Draw the border of a box, which shows its kind; also used in the legend."""
    round_ends, square = box.kind in ("input", "parameter"), box.kind == "memory"
    (x, y), radius = corner, height / 2 if round_ends else 0.0 if square else height / 8
    if box.copies > 1:
        canvas.box(x + height / 10, y + height / 10, width, height, stroke=box.style, fill="ground", radius=radius)
    canvas.box(x, y, width, height, fill="ground", radius=radius)
    opacity = 0.16 if box.kind == "input" else 0.1 if box.marks else 0.03
    line, dashed = 2.8 if _is_shared(box) else 1.3, box.kind in ("parameter", "again", "more")
    paint: dict[str, Any] = {"stroke": box.style, "fill": box.style, "opacity": opacity, "line": line, "dashed": dashed}
    canvas.box(x, y, width, height, radius=radius, **paint)
    if box.results:
        inner = 0.0 if square else max(1.5, radius - 3)
        canvas.box(x + 3, y + 3, width - 6, height - 6, stroke=box.style, radius=inner, line=1.0)


def tooltip(box: Box) -> str:
    """Return the lines that a box shows under the pointer."""
    marks = ", ".join(f"{style} of level {level}" if level else style for style, level in box.marks)
    uses = f"used {box.uses} times" if box.uses > 1 and box.copies == 1 else ""
    results = f"result {', '.join(box.results)}".removesuffix(" result") if box.results else ""
    copies = f"{box.copies} of this form, {box.operations} operations" if box.copies > 1 else ""
    return "\n".join(filter(None, [box.formula or box.label, marks, uses, results, copies]))


_SAMPLES = (
    ("input", Box("", kind="input")), ("parameter of a level", Box("", kind="parameter")),
    ("result", Box("", results=("",))), ("used several times", Box("", uses=2)),
    ("×n: so many of the same form", Box("", copies=2)), ("computed again", Box("", kind="again")),
    ("left out", Box("", kind="more")), ("numbers that are kept", Box("", kind="memory")),
)  # fmt: skip
_NOTES: tuple[tuple[str, Style], ...] = (
    ("first number: value", "primal"), ("second number: adjoint", "cotangent"),
    ("on an arrow: local derivative", "residual"),
)  # fmt: skip


def _legend(boxes: Sequence[Box], width: float) -> Canvas:
    """Return the legend of the borders and colours that occur."""
    canvas = Canvas(width, 0)
    styles = sorted({mark[0] for box in boxes for mark in box.marks}, key=list(LOOKS).index)
    samples = [(f"{LOOKS[style].letter} {style}", Box("", marks=((style, 0),))) for style in styles]
    present = set[str]().union(*map(_features, boxes))
    samples += [(text, sample) for text, sample in _SAMPLES if _features(sample) <= present]
    entries: list[tuple[str, Box | None, Style]] = [(text, sample, "primal") for text, sample in samples]
    entries += [(text, None, colour) for text, colour in _NOTES if any(box.adjoint for box in boxes)]
    x, y, used = MARGIN, 16.0, 0.0
    for text, sample, colour in entries:
        indent = 0 if sample is None else 34
        needed = 16 + indent + text_width(text, 12)
        if x + needed > width and x > MARGIN:
            x, y = MARGIN, y + 24
        if sample is not None:
            _frame(canvas, sample, (x, y), 26, 16)
        canvas.text(x + indent, y + 12.5, text, size=12, anchor="start", colour=colour)
        x += needed
        used = max(used, x)
    canvas.width, canvas.height = used, y + 30
    return canvas


def _features(box: Box) -> set[str]:
    """Return what the border of a box tells."""
    told = {box.kind, "result" * bool(box.results), "shared" * _is_shared(box), "copies" * (box.copies > 1)}
    return told - {"operation", ""}


def _is_shared(box: Box) -> bool:
    return box.uses > 1 and box.copies == 1 and box.kind in ("operation", "parameter")
