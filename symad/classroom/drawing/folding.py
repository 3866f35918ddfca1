"""Fold nodes of the same form into one box with their number. The body is drawn once.

Two nodes have the same form if they apply the same operation to operands of the same form. Different inputs of one
argument, and the order of terms, do not matter. A long sum that nothing else uses is one box. If that leaves too many
boxes, different constants count as equal, then sums of different lengths. Then forms are compared only a few steps
back, so that a long loop becomes a few steps with a backward arrow. Each way takes linear time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import sympy as sp

from symad.classroom.drawing.boxes import Box, Diagram, Edge, GraphReading, is_constant, operation_label, symbol_label

_OPENED = (sp.Add, sp.Mul)
_SOME = sp.Symbol("c")  # the label of different constants
_COMMUTE = (sp.Add, sp.Mul, sp.Max, sp.Min, sp.And, sp.Or)


# How forms are compared: with or without constants, and numbers of terms, to a depth (None: fully).
_WAYS = ((True, True, None), (False, True, None), (False, False, None), *((False, False, k) for k in (3, 2, 1)))


def folded(reading: GraphReading, limit: int) -> Diagram:
    """Return a diagram in which nodes of the same form share a box, if possible with at most `limit` boxes.

    >>> from symad.graph.sympy_io import from_sympy
    >>> from symad.graph.graph import Graph
    >>> graph = Graph()
    >>> (node,) = from_sympy(graph, [sum(sp.sin(x) ** 2 for x in sp.symbols("x_:40"))], binary=True)
    >>> diagram = folded(GraphReading(graph, [node], ["y"]), 10)
    >>> [(box.label, box.copies) for box in diagram.boxes], diagram.operations
    ([('x', 40), ('sin', 40), ('□²', 40), ('Σ 40 terms', 1)], 119)
    """
    fold = _Fold(reading)
    for constants, numbers, steps in _WAYS:
        if (classes := fold.classes(constants, numbers, steps, limit)) is not None:
            return fold.diagram(classes)
    return fold.diagram(fold.own(constants=False))


class _Fold:
    """A graph with flattened sums and products: the nodes that remain, and the terms of each."""

    def __init__(self, reading: GraphReading) -> None:
        self.reading = reading
        inner = _inner_terms(reading)
        self.kept = [node for node in reading.nodes if node not in inner]
        self.terms: dict[int, tuple[int, ...]] = {}
        self._own: dict[bool, dict[int, int]] = {}
        self.absorbed: dict[int, int] = {}  # number of inner nodes flattened into a node
        for node in self.kept:
            self.terms[node], self.absorbed[node] = _flattened(reading, node, inner)

    def classes(self, constants: bool, numbers: bool, steps: int | None, limit: int) -> dict[int, int] | None:
        """Return the class number of each node, in order of appearance; None if there are more than `limit`."""
        own = self.own(constants=constants)
        if steps is None:
            number_of: dict[Hashable, int] = {}
            class_of: dict[int, int] = {}
            for node in self.kept:
                form = own[node], self._form(node, class_of, numbers)
                class_of[node] = number_of.setdefault(form, len(number_of))
                if len(number_of) > limit:
                    return None
            return class_of
        colours = own
        for _ in range(steps):
            colours = self._numbered([(own[node], self._form(node, colours, numbers)) for node in self.kept])
            if 1 + max(colours.values(), default=0) > limit:
                return None
        return colours

    def own(self, *, constants: bool) -> dict[int, int]:
        """Return classes by head, marks and, if asked, constants, without regard to operands."""
        if constants not in self._own:
            self._own[constants] = self._numbered([_key(self.reading, node, constants) for node in self.kept])
        return self._own[constants]

    def diagram(self, classes: Mapping[int, int]) -> Diagram:
        """Return the diagram with a box for each class. Arrows to earlier classes lead back."""
        members: dict[int, list[int]] = {}
        for node in self.kept:
            members.setdefault(classes[node], []).append(node)
        counts = Counter((classes[term], classes[node]) for node in self.kept for term in self.terms[node])
        edges = (Edge(a, b, count, back=b < a) for (a, b), count in sorted(counts.items()) if a != b)
        boxes = tuple(self._box(nodes, counts[k, k]) for k, nodes in members.items())
        return Diagram(boxes, tuple(edges), classes)

    def _numbered(self, keys: Sequence[Hashable]) -> dict[int, int]:
        numbers: dict[Hashable, int] = {}
        return {node: numbers.setdefault(key, len(numbers)) for node, key in zip(self.kept, keys, strict=True)}

    def _form(self, node: int, classes: Mapping[int, int], numbers: bool) -> Hashable:
        """Return the classes of the operands and which operands are equal; sorted if the head commutes."""
        if self.reading.graph.heads[node] in _COMMUTE:
            shared = Counter((classes[term], times) for term, times in Counter(self.terms[node]).items())
            return tuple(sorted(shared.items() if numbers else shared))
        first: dict[int, int] = {}
        return tuple((classes[term], first.setdefault(term, k)) for k, term in enumerate(self.terms[node]))

    def _box(self, nodes: Sequence[int], loops: int) -> Box:
        """Return the box of a class, based on its first node. `loops` nodes follow another node of the class."""
        reading, first = self.reading, self.reading.box(nodes[0])
        computed = [node for node in nodes if first.kind == "operation"]
        box = replace(
            first,
            label=self._label(nodes, first),
            uses=max(reading.uses[node] + len(reading.results.get(node, ())) for node in nodes),
            results=tuple(dict.fromkeys(name for node in nodes for name in reading.results.get(node, ()) if name)),
            copies=len(nodes),
            operations=sum(1 + self.absorbed[node] for node in computed),
            nodes=" ".join(dict.fromkeys(" ".join(reading.links.get(node, "") for node in nodes).split())),
        )
        if len(nodes) > 1:
            names = [str(reading.graph.atoms[node]) for node in nodes] if first.kind == "input" else []
            names = names if len(names) <= 6 else [*names[:4], "…", names[-1]]
            formula = ", ".join(names) if names else f"for instance {first.formula}"
            box = replace(box, name="", formula=formula)
        if loops:
            formula = f"{box.formula}\n↻ {loops} times on another one of this form"
            box = replace(box, label=f"{box.label} ↻", formula=formula)
        return box

    def _label(self, nodes: Sequence[int], first: Box) -> str:
        graph = self.reading.graph
        if first.kind == "input" and len(nodes) > 1:
            return symbol_label(_stem(str(graph.atoms[nodes[0]])))
        if first.kind != "operation":
            return first.label
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
        return first.label


def _inner_terms(reading: GraphReading) -> set[int]:
    """Return sums and products that are only an operand of another such node with the same head and marks."""
    graph, users = reading.graph, dict[int, int]()
    for node, operands in reading.operands.items():
        users.update(dict.fromkeys(operands, node))
    inner = set()
    for node in reading.nodes:
        user = users.get(node)
        if user is None or reading.uses[node] != 1 or node in reading.results or graph.heads[node] not in _OPENED:
            continue
        alike = graph.heads[node] is graph.heads[user] and reading.marks[node] == reading.marks[user]
        if alike and not any(value is not None for value in reading.constants(node)):
            inner.add(node)
    return inner


def _flattened(reading: GraphReading, node: int, inner: set[int]) -> tuple[tuple[int, ...], int]:
    """Return the operands of a node with inner sums and products flattened, and the number of flattened nodes."""
    terms: list[int] = []
    count, stack = 0, list(reading.operands[node][::-1])
    while stack:
        operand = stack.pop()
        if operand in inner:
            count += 1
            stack += reading.operands[operand][::-1]
        else:
            terms.append(operand)
    return tuple(terms), count


def _key(reading: GraphReading, node: int, exact: bool) -> Hashable:
    """Return the head, the constants and the marks of a node; for an input its argument."""
    graph, marks = reading.graph, reading.marks[node]
    if is_constant(graph, node):
        return "constant", graph.atoms[node] if exact else None, marks
    if not graph.operands[node]:
        return "input", _stem(str(graph.atoms[node])), marks
    head = graph.heads[node]
    constants = [
        value if value is None or exact or value == -1 or (head is sp.Pow and isinstance(value, sp.Rational)) else _SOME
        for value in reading.constants(node)
    ]  # a sign, or the exponent of a power, is a part of the operation
    return head, tuple(constants), marks


def _stem(name: str) -> str:
    """Return the name of the argument that a number belongs to: x for x_3."""
    stem, *indices = name.split("_")
    return stem if stem and all(index.isdecimal() for index in indices) else name
