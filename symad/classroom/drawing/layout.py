"""Layered layout by igraph's Sugiyama method: arrows lead to later layers, with few crossings.

A long arrow runs through a way point in each layer that it passes, and all arrows of one box share their way points.
Places within the layers minimise squares under the order and the distances. The layout of a diagram is deterministic.
Sources: Sugiyama, Tagawa and Toda (1981); pool adjacent violators: Ayer et al. (1955).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from itertools import accumulate, pairwise
from math import inf

from codegen.records import dataclass
from symad.classroom.drawing.boxes import Diagram
from symad.errors import LimitError
from symad.extras import optional

WAY_LIMIT = 20_000  # boxes and way points that are laid out
_SWEEPS = 40
_STIFF = 12.0
_WAY_WIDTH = 8.0


@dataclass(frozen=True)
class DiagramLayout:
    """The layers and the places in them: of boxes (numbers as in the diagram), then of way points.

    `paths` has the boxes and way points of each arrow, in forward order.
    """

    layers: tuple[int, ...]
    places: tuple[float, ...]
    paths: tuple[tuple[int, ...], ...]

    @property
    def depth(self) -> int:
        return 1 + max(self.layers, default=0)


def lay_out(diagram: Diagram, breadths: Sequence[float], gap: float) -> DiagramLayout:
    """Return the layout of a diagram. `breadths` are the sizes of its boxes across the arrows.

    ArgumentError without igraph (`pip install symad[draw]`), LimitError for a diagram that is too large.
    """
    forward = [(e.target, e.source) if e.back else (e.source, e.target) for e in diagram.edges]
    layers = _layers(len(diagram.boxes), forward)
    steps, paths, ways = _way_points(layers, forward)
    across = _igraph_places(layers, steps)
    sizes = [*breadths, *[_WAY_WIDTH] * (len(layers) - len(breadths))]
    return DiagramLayout(tuple(layers), tuple(_spread(layers, steps, across, sizes, gap, ways)), tuple(paths))


def _layers(count: int, edges: Iterable[tuple[int, int]]) -> list[int]:
    """Return the layer of each box: as early as possible, or as late as possible with one operand or none."""
    operands: list[list[int]] = [[] for _ in range(count)]
    users: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        operands[target].append(source)
        users[source].append(target)
    order = list(TopologicalSorter(dict(enumerate(operands))).static_order())
    layers = [0] * count
    for box in order:
        layers[box] = 1 + max((layers[operand] for operand in operands[box]), default=-1)
    for box in reversed(order):
        if users[box] and len(operands[box]) <= 1:
            layers[box] = min(layers[user] for user in users[box]) - 1
    first = min(layers, default=0)
    return [layer - first for layer in layers]


def _way_points(
    layers: list[int], edges: Sequence[tuple[int, int]]
) -> tuple[list[tuple[int, int]], list[tuple[int, ...]], list[list[int]]]:
    """Append the layers of the way points. Return steps between layers, paths of arrows, way points of boxes."""
    steps: dict[tuple[int, int], None] = {}
    ways: dict[int, list[int]] = {}  # of a box: itself, and its way points layer by layer
    paths = []
    for source, target in edges:
        way = ways.setdefault(source, [source])
        for layer in range(layers[source] + len(way), layers[target]):
            if len(layers) >= WAY_LIMIT:
                raise LimitError(
                    f"a drawing of more than {WAY_LIMIT} boxes and way points",
                    why="many arrows run through many layers, which no reader could follow",
                    do="let equal parts be folded (fold=True), or draw a smaller example",
                )
            way.append(len(layers))
            layers.append(layer)
            steps[way[-2], way[-1]] = None
        path = (*way[: layers[target] - layers[source]], target)
        steps[path[-2], target] = None
        paths.append(path)
    return list(steps), paths, [way[1:] for way in ways.values()]


def _igraph_places(layers: Sequence[int], steps: Sequence[tuple[int, int]]) -> list[float]:
    """Return places within the layers. Only their order counts."""
    graph = optional("igraph", "drawing a graph").Graph(n=len(layers), edges=list(steps), directed=True)
    layout = graph.layout_sugiyama(layers=list(layers), maxiter=200)
    rows = layout[0] if isinstance(layout, tuple) else layout  # igraph 1.0 returns the arrows' control points too
    return [rows[k][0] for k in range(len(layers))]


def _spread(
    layers: Sequence[int], steps: Iterable[tuple[int, int]], across: Sequence[float], sizes: Sequence[float],
    gap: float, ways: Iterable[Sequence[int]],
) -> list[float]:  # fmt: skip
    """Return places in the same order, at least the gap apart, near the mean of their neighbours."""
    rows: list[list[int]] = [[] for _ in range(1 + max(layers, default=0))]
    for item in sorted(range(len(layers)), key=lambda k: (across[k], k)):
        rows[layers[item]].append(item)
    apart = [[0.0, *((sizes[a] + sizes[b]) / 2 + gap for a, b in pairwise(row))] for row in rows]  # of centres
    offsets = [list(accumulate(distances))[: len(row)] for row, distances in zip(rows, apart, strict=True)]
    above: list[list[tuple[int, float]]] = [[] for _ in layers]
    below: list[list[tuple[int, float]]] = [[] for _ in layers]
    for source, target in steps:
        stiff = _STIFF if sizes[source] == sizes[target] == _WAY_WIDTH else 1.0  # long arrows run straight
        above[target].append((source, stiff))
        below[source].append((target, stiff))
    places = [0.0] * len(layers)
    for row, offset in zip(rows, offsets, strict=True):
        for item, place in zip(row, offset, strict=True):
            places[item] = place - (offset[0] + offset[-1]) / 2
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row, offset in zip(*((rows, offsets) if down else (rows[::-1], offsets[::-1])), strict=True):
            sides = (above, below) if sweep >= _SWEEPS - 12 else (above,) if down else (below,)
            _settle(row, offset, places, sides)
    _straighten(rows, offsets, places, ways)
    return places


def _settle(
    row: Sequence[int], offsets: Sequence[float], places: list[float],
    sides: Sequence[Sequence[Sequence[tuple[int, float]]]],
) -> None:  # fmt: skip
    """Move a row towards the means of its neighbours, keeping order and distances, by isotonic regression."""
    blocks: list[tuple[float, float, int]] = []  # weighted sum, weight, length of those that move together
    for item, offset in zip(row, offsets, strict=True):
        near = [neighbour for side in sides for neighbour in side[item]]
        weight = sum(stiff for _, stiff in near) or 0.1
        wish = sum(places[k] * stiff for k, stiff in near) / weight if near else places[item]
        block = ((wish - offset) * weight, weight, 1)
        while blocks and blocks[-1][0] / blocks[-1][1] > block[0] / block[1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    starts = [total / weight for total, weight, length in blocks for _ in range(length)]
    for item, offset, start in zip(row, offsets, starts, strict=True):
        places[item] = start + offset


def _straighten(
    rows: Sequence[Sequence[int]], offsets: Sequence[Sequence[float]], places: list[float],
    ways: Iterable[Sequence[int]],
) -> None:  # fmt: skip
    """Align the way points of each long arrow as far as their neighbours leave room."""
    beside: dict[int, tuple[int | None, float, int | None, float]] = {}  # neighbours and the least distances to them
    for row, offset in zip(rows, offsets, strict=True):
        for k, item in enumerate(row):
            left = (row[k - 1], offset[k] - offset[k - 1]) if k else (None, 0.0)
            right = (row[k + 1], offset[k + 1] - offset[k]) if k + 1 < len(row) else (None, 0.0)
            beside[item] = (*left, *right)
    for way in ways:
        piece: list[int] = []
        low, high = -inf, inf
        for point in [*way, None]:
            a, b = (-inf, inf) if point is None else _room(beside[point], places)
            if piece and (point is None or max(low, a) > min(high, b)):
                middle = sum(places[k] for k in piece) / len(piece)
                for k in piece:
                    places[k] = min(max(middle, low), high)
                piece, low, high = [], -inf, inf
            if point is not None:
                piece.append(point)
                low, high = max(low, a), min(high, b)


def _room(beside: tuple[int | None, float, int | None, float], places: Sequence[float]) -> tuple[float, float]:
    left, before, right, after = beside
    return (-inf if left is None else places[left] + before), (inf if right is None else places[right] - after)
