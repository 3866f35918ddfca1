"""Diagrams without positions: the boxes and arrows of a computation, read from a graph.

Each operation is one box. Constants have no boxes: they are part of the label of the operation that uses them. An
input that only an alias uses shares its box, with the marks of both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from codegen.ir.program import Rows, reachable
from codegen.records import dataclass
from symad.classroom.drawing.labels import count_label, number_label, operation_label, symbol_label
from symad.display.mathematics import text_of
from symad.display.styles import LOOKS, Style
from symad.graph.graph import Graph

Kind = Literal["input", "constant", "operation", "parameter", "again", "more", "loop", "memory"]
Mark: TypeAlias = tuple[Style, int]
_LARGE = 10**40  # larger numbers are written as powers of ten
_ORDER: tuple[Style, ...] = ("primal", "parameter", "residual", "tangent", "cotangent")


@dataclass(frozen=True)
class Box:
    """A box: label, name, kind, formula, marks (role and level), number of uses, and the results it gives.

    Kind "again" is a repeated operation of an expression tree, "more" an omitted part, "memory" a buffer between loops.
    `copies` is the number of nodes in the box, `operations` that of their operations, and `nodes` are their marks on a
    page with links. `value` and `adjoint` are its numbers at a point.
    """

    label: str
    name: str = ""
    kind: Kind = "operation"
    formula: str = ""
    marks: tuple[Mark, ...] = ()
    uses: int = 1
    results: tuple[str, ...] = ()
    copies: int = 1
    operations: int = 0
    nodes: str = ""
    value: str = ""
    adjoint: str = ""

    @property
    def style(self) -> Style:
        """The role that gives the colour: the strongest mark. An input stays a parameter."""
        if self.kind in ("input", "parameter") and any(style == "parameter" for style, _ in self.marks):
            return "parameter"
        return max(self.marks, key=lambda mark: (_ORDER.index(mark[0]), mark[1]), default=("primal", 0))[0]

    @property
    def letters(self) -> str:
        """The marks in short, such as "R1 T2"."""
        return " ".join(f"{LOOKS[style].letter}{level or ''}" for style, level in self.marks)


@dataclass(frozen=True)
class Edge:
    """An arrow between boxes for `count` values. A backward arrow closes a loop. `label` is the local derivative."""

    source: int
    target: int
    count: int = 1
    back: bool = False
    label: str = ""


@dataclass(frozen=True)
class Diagram:
    """Boxes in an order in which forward arrows point forwards, and the box of each node."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    box_of: Mapping[int, int] = field(default_factory=dict, compare=False, repr=False)

    @property
    def operations(self) -> int:
        """Number of operations in all boxes."""
        return sum(box.operations for box in self.boxes)


@dataclass(frozen=True)
class DrawnGraph:
    """The graph to draw: nodes, the names of its results, and the marks of nodes.

    `names` are the names of nodes elsewhere on the page, `links` their marks.
    """

    graph: Graph
    outputs: tuple[int, ...]
    results: tuple[str, ...]
    marks: Mapping[int, tuple[Mark, ...]] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)
    links: Mapping[int, str] = field(default_factory=dict)


class GraphReading:
    """The nodes of a graph that get boxes, their names, and their operands without aliases."""

    source: DrawnGraph

    def __init__(self, source: DrawnGraph) -> None:
        self.source, graph = source, source.graph
        self.order: list[int] = reachable(graph, source.outputs)
        self.results: dict[int, list[str]] = {}
        for node, name in zip(source.outputs, source.results, strict=True):
            self.results.setdefault(node, []).append(name)
        counted = Counter(operand for node in self.order for operand in operands_of(graph, node))
        self.seen_as: dict[int, int] = {}  # of an alias without a box: the node whose box it shares
        self.marks: dict[int, tuple[Mark, ...]] = {}
        for node in self.order:
            self._add_node(node, counted)
        boxed = (node for node in self.order if node not in self.seen_as)
        self.nodes: list[int] = [node for node in boxed if node in self.results or not is_constant(graph, node)]
        self.operands: dict[int, tuple[int, ...]] = {
            node: tuple(self.seen_as.get(o, o) for o in operands_of(graph, node) if not is_constant(graph, o))
            for node in self.nodes
        }
        self.uses: Counter[int] = Counter(operand for operands in self.operands.values() for operand in operands)
        self.names: dict[int, str] = {**names_of(graph, self.order, self.seen_as), **source.names}
        self._constants: dict[int, tuple[sp.Basic | None, ...]] = {}

    def _add_node(self, node: int, counted: Counter[int]) -> None:
        graph, marks = self.source.graph, self.source.marks.get(node, ())
        if graph.heads[node] is Alias:
            below = self.seen_as.get(operand := operands_of(graph, node)[0], operand)
            alone = counted[operand] == 1 and not {operand, below} & self.results.keys()
            if alone and not graph.operands[below] and not is_constant(graph, below):
                self.seen_as[node] = below
                self.marks[below] = tuple(dict.fromkeys((*self.marks[below], *marks)))
                if node in self.results:
                    self.results[below] = self.results.pop(node)
                return
        self.marks[node] = marks

    def constants(self, node: int) -> tuple[sp.Basic | None, ...]:
        """Return for each operand its value if it is a constant, else None."""
        if node not in self._constants:
            graph = self.source.graph
            values = (graph.atoms[o] if is_constant(graph, o) else None for o in operands_of(graph, node))
            self._constants[node] = tuple(values)
        return self._constants[node]

    def box(self, node: int) -> Box:
        return replace(self._box(node), nodes=self.source.links.get(node, ""))

    def _box(self, node: int) -> Box:
        graph, operands = self.source.graph, operands_of(self.source.graph, node)
        results, marks = tuple(dict.fromkeys(filter(None, self.results.get(node, ())))), self.marks[node]
        uses = self.uses[node] + len(self.results.get(node, ()))
        if not operands:
            atom = graph.atoms[node]
            if is_constant(graph, node):
                return Box(number_label(atom), "", "constant", text_of(_part(graph, node, "")), marks, uses, results)
            name = self.names[node]
            return Box(symbol_label(name), "", "input", name, marks, uses, results)
        formula = f"{self.names[node]} = {formula_of(graph, node, self.names)}"
        if graph.heads[node] is Alias:
            return Box(self.label_below(node), self.names[node], "parameter", formula, marks, uses, results)
        label = operation_label(graph.heads[node], self.constants(node))
        return Box(label, self.names[node], "operation", formula, marks, uses, results, operations=1)

    def label_below(self, node: int) -> str:
        """Return the label of an alias: the operand that it stands for."""
        graph, (operand,) = self.source.graph, operands_of(self.source.graph, node)
        known = is_constant(graph, operand)
        return f"= {number_label(graph.atoms[operand]) if known else symbol_label(self.names[operand])}"

    @property
    def inputs(self) -> int:
        """Number of inputs that something depends on."""
        graph = self.source.graph
        return sum(not graph.operands[node] and not is_constant(graph, node) for node in self.nodes)

    @property
    def shared(self) -> int:
        """Number of operations whose values are used more than once."""
        graph = self.source.graph
        computed = (node for node in self.nodes if graph.operands[node] and graph.heads[node] is not Alias)
        return sum(self.uses[node] + len(self.results.get(node, ())) > 1 for node in computed)


def diagram_of(reading: GraphReading) -> Diagram:
    """Return a graph with a box for each node.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> s = graph.node(sp.sin, x)
    >>> diagram = diagram_of(GraphReading(DrawnGraph(graph, (graph.node(sp.Mul, s, graph.node(sp.exp, s)),), ("y",))))
    >>> [box.label for box in diagram.boxes], diagram.boxes[1].uses, diagram.operations
    (['x', 'sin', 'exp', '×'], 2, 3)
    """
    number = {node: k for k, node in enumerate(reading.nodes)}
    counts = Counter((number[o], number[node]) for node in reading.nodes for o in reading.operands[node])
    edges = (Edge(start, end, count) for (start, end), count in sorted(counts.items()))
    return Diagram(tuple(map(reading.box, reading.nodes)), tuple(edges), number)


def operands_of(graph: Rows, node: int) -> tuple[int, ...]:
    """Return the operands that give a node its value; an alias with a rule has one."""
    return graph.operands[node][:1] if graph.heads[node] is Alias else graph.operands[node]


def is_constant(graph: Graph, node: int) -> bool:
    """Whether a node is a leaf without symbols."""
    atom = graph.atoms.get(node)
    return atom is not None and not graph.operands[node] and not getattr(atom, "is_symbol", False)


def names_of(graph: Graph, order: Sequence[int], seen_as: Mapping[int, int]) -> dict[int, str]:
    """Return a name for each node except constants: inputs keep their own, the others are v1, v2, ... in order."""
    names: dict[int, str] = {}
    operations = 0
    for node in order:
        if graph.operands[node] and node not in seen_as:
            operations += 1
            names[node] = f"v{operations}"
        elif not is_constant(graph, node):
            names[node] = str(graph.atoms[seen_as.get(node, node)])
    return names


def formula_of(graph: Graph, node: int, names: Mapping[int, str]) -> str:
    """Return the formula of a node in the names of its operands, in SymPy's notation."""
    operands, head = operands_of(graph, node), graph.heads[node]
    parts = [_part(graph, operand, names.get(operand, "")) for operand in operands]
    if head is Alias:
        return text_of(parts[0])
    try:
        return text_of(rebuild(head, parts))
    except (TypeError, ValueError):  # a head that takes no names: bounds of a sum, elements of a matrix
        return f"{head.__name__}({', '.join(map(text_of, parts))})"


def _part(graph: Graph, node: int, name: str) -> sp.Basic:
    """Return an operand as it stands in a formula: a short constant or a symbol."""
    if node in graph.atoms and not graph.operands[node]:
        atom = graph.atoms[node]
        large = isinstance(atom, sp.Rational) and max(abs(atom.p), atom.q) >= _LARGE
        return sp.Symbol(number_label(atom)) if large else atom
    return sp.Symbol(name) if graph.is_boolean(node) else sp.Symbol(name, real=True)


def tree_operations(rows: Rows, outputs: Sequence[int]) -> int:
    """Return the operations of the unfolded expressions: shared ones count at every use, aliases never.

    >>> graph = Graph()
    >>> node = graph.leaf(sp.Symbol("x"))
    >>> for _ in range(100):
    ...     node = graph.node(sp.Mul, node, node)
    >>> tree_operations(graph, [node]) == 2**100 - 1
    True
    """
    return sum(tree_sizes(rows, outputs))


def tree_sizes(rows: Rows, nodes: Sequence[int]) -> list[int]:
    """Return the operations of each node's unfolded expression. A size is deleted after its last use."""
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


def unfolded(reading: GraphReading, limit: int) -> Diagram:
    """Return the expression tree as a diagram of about `limit` boxes. Omitted parts are one box with their size.

    A value that is used twice has two boxes with the same name. Levels next to the results are drawn first.

    >>> graph = Graph()
    >>> s = graph.node(sp.sin, graph.leaf(sp.Symbol("x")))
    >>> diagram = unfolded(GraphReading(DrawnGraph(graph, (graph.node(sp.Mul, s, s),), ("y",))), 50)
    >>> [box.label for box in diagram.boxes], diagram.operations
    (['x', 'x', 'sin', 'sin', '×'], 3)
    """
    source = reading.source
    arrows: list[tuple[int, int]] = []
    hidden: set[int] = set()  # places of omitted parts
    waiting = [(node, -1) for node in dict.fromkeys(reading.seen_as.get(node, node) for node in source.outputs)]
    for place, (node, user) in enumerate(waiting):  # grows while it is read
        if user >= 0:
            arrows.append((place, user))
        if reading.operands[node] and len(waiting) + len(reading.operands[node]) > limit:
            hidden.add(place)
        else:
            waiting += [(operand, place) for operand in reading.operands[node]]
    left_out = sorted({waiting[place][0] for place in hidden})
    sizes = dict(zip(left_out, tree_sizes(source.graph, left_out), strict=True))
    boxes: list[Box] = []
    seen: set[int] = set()
    for place, (node, user) in enumerate(waiting):
        boxes.append(_left_out(sizes[node]) if place in hidden else _one_use(reading, node, user, node in seen))
        seen.add(node)
    last = len(boxes) - 1
    return Diagram(tuple(boxes[::-1]), tuple(Edge(last - source, last - target) for source, target in arrows[::-1]))


def _one_use(reading: GraphReading, node: int, user: int, repeated: bool) -> Box:
    box = reading.box(node)
    kind: Kind = "again" if repeated and box.kind == "operation" else box.kind
    return replace(box, kind=kind, uses=1, results=box.results if user < 0 else ())


def _left_out(count: int) -> Box:
    label = count_label(count)
    return Box(f"… {label}", kind="more", formula=f"{label} operations that are not drawn", operations=count)
