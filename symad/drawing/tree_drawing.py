"""The expression tree that a graph stands for: its size, counted without unfolding it, and as much of it as fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from codegen.heads import Alias
from codegen.ir.program import Rows, reachable
from symad.drawing.boxes import Box, Diagram, Edge, Kind, Reading, operands_of
from symad.drawing.labels import count_label


def tree_operations(rows: Rows, outputs: Sequence[int]) -> int:
    """Return how many operations the unfolded expressions have: a shared one counts at every use, an alias nowhere.

    >>> from symad.graph.graph import Graph
    >>> import sympy as sp
    >>> graph = Graph()
    >>> node = graph.leaf(sp.Symbol("x"))
    >>> for _ in range(100):
    ...     node = graph.node(sp.Mul, node, node)
    >>> tree_operations(graph, [node]) == 2**100 - 1
    True
    """
    return sum(tree_sizes(rows, outputs))


def tree_sizes(rows: Rows, nodes: Sequence[int]) -> list[int]:
    """Return how many operations the unfolded expression of each node has; a number is kept as long as it is needed."""
    order = reachable(rows, nodes)
    waiting = Counter(operand for node in order for operand in operands_of(rows, node))
    waiting.update(nodes)
    sizes: dict[int, int] = {}
    for node in order:
        operands = operands_of(rows, node)
        sizes[node] = sum(sizes[operand] for operand in operands) + (bool(operands) and rows.heads[node] is not Alias)
        for operand in operands:
            waiting[operand] -= 1
            if not waiting[operand]:
                del sizes[operand]
    return [sizes[node] for node in nodes]


def unfolded(reading: Reading, limit: int) -> Diagram:
    """Return the expression tree as a diagram of about `limit` boxes; what is left out is told by its size.

    A value that is used twice has two boxes, of the same name. The levels next to the results are drawn first.

    >>> from symad.drawing.boxes import Source
    >>> from symad.graph.graph import Graph
    >>> import sympy as sp
    >>> graph = Graph()
    >>> s = graph.node(sp.sin, graph.leaf(sp.Symbol("x")))
    >>> drawn = unfolded(Reading(Source(graph, (graph.node(sp.Mul, s, s),), ("y",))), 50)
    >>> [box.label for box in drawn.boxes], drawn.operations
    (['x', 'x', 'sin', 'sin', '×'], 3)
    """
    source = reading.source
    found: list[tuple[int, int]] = []
    hidden: set[int] = set()  # places of what is left out
    waiting = [(node, -1) for node in dict.fromkeys(reading.seen_as.get(node, node) for node in source.outputs)]
    for place, (node, user) in enumerate(waiting):  # grows while it is read
        if user >= 0:
            found.append((place, user))
        if reading.operands[node] and len(waiting) + len(reading.operands[node]) > limit:
            hidden.add(place)
        else:
            waiting += [(operand, place) for operand in reading.operands[node]]
    left_out = sorted({waiting[place][0] for place in hidden})
    sizes = dict(zip(left_out, tree_sizes(source.graph, left_out), strict=True))
    made: list[Box] = []
    seen: set[int] = set()
    for place, (node, user) in enumerate(waiting):
        made.append(_left_out(sizes[node]) if place in hidden else _one_use(reading, node, user, node in seen))
        seen.add(node)
    last = len(made) - 1
    return Diagram(tuple(made[::-1]), tuple(Edge(last - source, last - target) for source, target in found[::-1]))


def _one_use(reading: Reading, node: int, user: int, again: bool) -> Box:
    box = reading.box(node)
    kind: Kind = "again" if again and box.kind == "operation" else box.kind
    return replace(box, kind=kind, uses=1, results=box.results if user < 0 else ())


def _left_out(count: int) -> Box:
    label = count_label(count)
    return Box(f"… {label}", kind="more", formula=f"{label} operations that are not drawn", operations=count)
