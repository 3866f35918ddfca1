"""Fold nodes of the same form into one box with their number. The body is drawn once.

Two nodes have the same form when they do the same to operands of the same form; which input of an argument is meant,
and the order of terms, make no difference. A sum of many terms that nothing else uses is one box. Where that leaves
too many boxes, constants are not told apart, then sums of 3 and of 4 such terms; then only so many steps back are
compared, so that a long loop becomes a few steps with an arrow that leads back. Each way is linear in the graph.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import sympy as sp

from codegen.records import dataclass
from symad.classroom.drawing.boxes import Box, Diagram, Edge, GraphReading, is_constant
from symad.classroom.drawing.labels import operation_label, symbol_label

_FAR = 3  # steps back that are compared at most, where not all are
_OPENED = (sp.Add, sp.Mul)
_SOME = sp.Symbol("c")  # stands for constants that differ
_COMMUTE = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.And, sp.Or)


@dataclass(frozen=True)
class _Way:
    """How forms are compared: with or without constants and numbers of terms, to a depth (None: fully)."""

    constants: bool = True
    numbers: bool = True
    steps: int | None = None


def folded(reading: GraphReading, limit: int) -> Diagram:
    """Return a diagram in which nodes of the same form share a box, if possible with at most `limit` boxes.

    >>> from symad.classroom.drawing.boxes import DrawnGraph
    >>> from symad.graph.sympy_io import from_sympy
    >>> from symad.graph.graph import Graph
    >>> graph = Graph()
    >>> (node,) = from_sympy(graph, [sum(sp.sin(x) ** 2 for x in sp.symbols("x_:40"))], binary=True)
    >>> drawn = folded(GraphReading(DrawnGraph(graph, (node,), ("y",))), 10)
    >>> [(box.label, box.copies) for box in drawn.boxes], drawn.operations
    ([('x', 40), ('sin', 40), ('□²', 40), ('Σ 40 terms', 1)], 119)
    """
    fold = _Fold(reading)
    for way in _ways():
        classes = fold.classes(way, limit)
        if classes is not None:
            return fold.diagram(classes)
    return fold.diagram(fold.own(constants=False))


def _ways() -> Iterator[_Way]:
    yield from (_Way(), _Way(constants=False), _Way(constants=False, numbers=False))
    yield from (_Way(constants=False, numbers=False, steps=steps) for steps in range(_FAR, 0, -1))


class _Fold:
    """A graph whose inner sums and products are flattened: the nodes kept, and the terms of each."""

    def __init__(self, reading: GraphReading) -> None:
        self.reading = reading
        inner = _inner_terms(reading)
        self.kept = [node for node in reading.nodes if node not in inner]
        self.terms: dict[int, tuple[int, ...]] = {}
        self._own: dict[bool, dict[int, int]] = {}
        self.absorbed: dict[int, int] = {}  # how many inner nodes a node stands for
        for node in self.kept:
            self.terms[node], self.absorbed[node] = _opened(reading, node, inner)

    def classes(self, way: _Way, limit: int) -> dict[int, int] | None:
        """Return the number of each node's class, numbered in the order in which they appear; None for too many."""
        own = self.own(constants=way.constants)
        if way.steps is None:
            numbers: dict[Hashable, int] = {}
            found: dict[int, int] = {}
            for node in self.kept:
                found[node] = numbers.setdefault((own[node], self._form(node, found, way)), len(numbers))
                if len(numbers) > limit:
                    return None
            return found
        colours = own
        for _ in range(way.steps):
            colours = self._numbered([(own[node], self._form(node, colours, way)) for node in self.kept])
            if 1 + max(colours.values(), default=0) > limit:
                return None
        return colours

    def own(self, *, constants: bool) -> dict[int, int]:
        """Return classes by what each node is by itself, with its constants or without."""
        if constants not in self._own:
            self._own[constants] = self._numbered([_own(self.reading, node, constants) for node in self.kept])
        return self._own[constants]

    def diagram(self, classes: Mapping[int, int]) -> Diagram:
        """Return the diagram with a box for each class; an arrow to an earlier class leads back."""
        members: dict[int, list[int]] = {}
        for node in self.kept:
            members.setdefault(classes[node], []).append(node)
        counts = Counter((classes[term], classes[node]) for node in self.kept for term in self.terms[node])
        edges = (
            Edge(*ends, count, back=ends[1] < ends[0]) for ends, count in sorted(counts.items()) if len(set(ends)) > 1
        )
        boxes = tuple(self._box(nodes, counts[k, k]) for k, nodes in members.items())
        return Diagram(boxes, tuple(edges), classes)

    def _numbered(self, keys: Sequence[Hashable]) -> dict[int, int]:
        numbers: dict[Hashable, int] = {}
        return {node: numbers.setdefault(key, len(numbers)) for node, key in zip(self.kept, keys, strict=True)}

    def _form(self, node: int, classes: Mapping[int, int], way: _Way) -> Hashable:
        """Return the classes of operands, and which of them are one and the same; without order where that is free."""
        if self.reading.source.graph.heads[node] in _COMMUTE:
            shared = Counter((classes[term], times) for term, times in Counter(self.terms[node]).items())
            return tuple(sorted(shared.items() if way.numbers else shared))
        first: dict[int, int] = {}
        return tuple((classes[term], first.setdefault(term, k)) for k, term in enumerate(self.terms[node]))

    def _box(self, nodes: Sequence[int], loops: int) -> Box:
        """Return the box of a class, after the first of its nodes; `loops` of them follow another one of the class."""
        reading, one = self.reading, self.reading.box(nodes[0])
        made = [node for node in nodes if one.kind == "operation"]
        box = replace(
            one,
            label=self._label(nodes, one),
            uses=max(reading.uses[node] + len(reading.results.get(node, ())) for node in nodes),
            results=tuple(dict.fromkeys(name for node in nodes for name in reading.results.get(node, ()) if name)),
            copies=len(nodes),
            operations=sum(1 + self.absorbed[node] for node in made),
            nodes=" ".join(dict.fromkeys(" ".join(reading.source.links.get(node, "") for node in nodes).split())),
        )
        if len(nodes) > 1:
            names = [str(reading.source.graph.atoms[node]) for node in nodes] if one.kind == "input" else []
            box = replace(box, name="", formula=", ".join(_some(names)) if names else f"for instance {one.formula}")
        if loops:
            box = replace(
                box, label=f"{box.label} ↻", formula=f"{box.formula}\n↻ {loops} times on another one of this form"
            )
        return box

    def _label(self, nodes: Sequence[int], one: Box) -> str:
        graph = self.reading.source.graph
        if one.kind == "input" and len(nodes) > 1:
            return symbol_label(_stem(str(graph.atoms[nodes[0]])))
        if one.kind != "operation":
            return one.label
        head, rows = graph.heads[nodes[0]], [self.reading.constants(node) for node in nodes]
        if any(self.absorbed[node] for node in nodes) and rows[0].count(None) == len(rows[0]):
            lengths = sorted({len(self.terms[node]) for node in nodes})
            sizes = f"{lengths[0]}" if len(lengths) == 1 else f"{lengths[0]}–{lengths[-1]}"
            return f"Σ {sizes} terms" if head is sp.Add else f"Π {sizes} factors"
        if all(len(self.terms[node]) == 2 and len(set(self.terms[node])) == 1 for node in nodes) and head in _OPENED:
            return "□ + □" if head is sp.Add else "□ × □"
        if any(row != rows[0] for row in rows):
            common = [values[0] if len(set(values)) == 1 else _SOME for values in zip(*rows, strict=True)]
            return operation_label(head, common)
        return one.label


def _inner_terms(reading: GraphReading) -> set[int]:
    """Return the sums and products that are only a part of one other sum or product, with the same marks."""
    graph, users = reading.source.graph, dict[int, int]()
    for node, operands in reading.operands.items():
        users.update(dict.fromkeys(operands, node))
    found = set()
    for node in reading.nodes:
        user = users.get(node)
        if user is None or reading.uses[node] != 1 or node in reading.results or graph.heads[node] not in _OPENED:
            continue
        alike = graph.heads[node] is graph.heads[user] and reading.marks[node] == reading.marks[user]
        if alike and not any(value is not None for value in reading.constants(node)):
            found.add(node)
    return found


def _opened(reading: GraphReading, node: int, inner: set[int]) -> tuple[tuple[int, ...], int]:
    """Return what a node is made of, with inner sums and products opened, and how many those are."""
    found: list[int] = []
    count, stack = 0, list(reading.operands[node][::-1])
    while stack:
        operand = stack.pop()
        if operand in inner:
            count += 1
            stack += reading.operands[operand][::-1]
        else:
            found.append(operand)
    return tuple(found), count


def _own(reading: GraphReading, node: int, exact: bool) -> Hashable:
    """Return what a node is by itself: its head, its constants, its marks; of an input the argument it belongs to."""
    graph, marks = reading.source.graph, reading.marks[node]
    if is_constant(graph, node):
        return "constant", graph.atoms[node] if exact else None, marks
    if not graph.operands[node]:
        return "input", _stem(str(graph.atoms[node])), marks
    head = graph.heads[node]
    constants = [
        value if value is None or exact or _is_telling(head, value) else _SOME for value in reading.constants(node)
    ]
    return head, tuple(constants), marks


def _is_telling(head: type[sp.Basic], value: sp.Basic) -> bool:
    """Whether a constant says what an operation is: a sign, an exponent of a power."""
    return value == -1 or (head is sp.Pow and isinstance(value, sp.Rational))


def _stem(name: str) -> str:
    """Return the name of an argument, of one of its numbers: x of x_3."""
    stem, *indices = name.split("_")
    return stem if stem and all(index.isdecimal() for index in indices) else name


def _some(names: Sequence[str]) -> Sequence[str]:
    return names if len(names) <= 6 else [*names[:4], "…", names[-1]]
