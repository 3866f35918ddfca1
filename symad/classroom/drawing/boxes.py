"""Diagrams without positions: the boxes and arrows of a computation, read from a graph.

Each operation is one box. Constants have no boxes: they are part of the label of the operation that uses them. An
input that only an alias uses shares its box, with the marks of both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias

import sympy as sp

from codegen.expressions.sympy_forms import rebuild
from codegen.heads import Alias
from codegen.ir.program import Head, Rows, reachable
from codegen.records import dataclass
from symad.classroom.drawing.svg import shortened
from symad.display.mathematics import text_of
from symad.display.notation import LOWERED, RAISED
from symad.display.styles import LOOKS, Style
from symad.graph.graph import Graph

PLACE = "□"  # an operand with its own box
LONGEST = 22  # letters of a label

_SIGNS: dict[Head, str] = {
    sp.Add: "+", sp.Mul: "×", sp.And: "∧", sp.Or: "∨", sp.Not: "¬", sp.Max: "max", sp.Min: "min", sp.Eq: "=",
    sp.Ne: "≠", sp.StrictLessThan: "<", sp.LessThan: "≤", sp.StrictGreaterThan: ">", sp.GreaterThan: "≥",
    sp.Piecewise: "cases", sp.ITE: "cases", sp.Abs: "|□|",
}  # fmt: skip
_NUMBERS: dict[sp.Basic, str] = {sp.pi: "π", sp.E: "e", sp.oo: "∞", -sp.oo: "−∞", sp.true: "true", sp.false: "false"}
_POWERS = {"2": "□²", "3": "□³", "-1": "1/□", "-2": "1/□²", "1/2": "√□", "-1/2": "1/√□"}


def operation_label(head: Head, constants: Sequence[sp.Basic | None]) -> str:
    """Return the text on the box of an operation. `constants` has None for operands that are no constants.

    >>> [operation_label(sp.Mul, c) for c in ([None, None], [sp.Integer(2), None], [sp.Integer(-1), None])]
    ['×', '2 ×', '−']
    >>> operation_label(sp.Pow, [None, sp.Integer(2)]), operation_label(sp.besselj, [sp.Integer(0), None])
    ('□²', 'besselj(0, □)')
    """
    texts = [None if constant is None else number_label(constant) for constant in constants]
    known = [text for text in texts if text is not None]
    if head is sp.Pow and known:
        return _power(texts)
    if head is sp.Mul and known == ["−1"] and len(texts) == 2:
        return "−"
    sign = _SIGNS.get(head)
    if head is sp.Mul and known:
        return shortened(f"{' '.join(known)} ×", LONGEST)
    if head is sp.Add and known:
        return shortened(" ".join(f"− {text[1:]}" if text.startswith("−") else f"+ {text}" for text in known), LONGEST)
    if sign is not None and (not known or sign == "cases"):
        return sign
    if sign is not None and len(texts) == 2 and sign not in ("max", "min"):
        return shortened(f"{texts[0] or PLACE} {sign} {texts[1] or PLACE}", LONGEST)
    name = sign or head.__name__
    return shortened(f"{name}({', '.join(text or PLACE for text in texts)})" if known else name, LONGEST)


def number_label(constant: sp.Basic) -> str:
    """Return a constant in few letters. The tooltip has its exact value.

    >>> [number_label(value) for value in (sp.Integer(-2), sp.Rational(1, 3), sp.Float(0.123456789), sp.pi)]
    ['−2', '1/3', '0.12346', 'π']
    """
    if constant in _NUMBERS:
        return _NUMBERS[constant]
    if isinstance(constant, sp.Rational) and max(abs(constant.p), constant.q) >= 10**12:
        size = count_label(abs(constant.p)) + (f"/({count_label(constant.q)})" if constant.q > 1 else "")
        return ("−" if constant.p < 0 else "") + size
    text = f"{float(constant):.5g}" if isinstance(constant, sp.Float) and abs(constant) < 1e300 else text_of(constant)
    return shortened(text.replace("-", "−"), 12)


def count_label(count: int) -> str:
    """Return a count for readers: digits in groups of three, a power of ten if it is huge.

    >>> count_label(1234567), count_label(3**1000)
    ('1 234 567', '≈ 1.32·10⁴⁷⁷')
    """
    if count < 10**9:
        return f"{count:,}".replace(",", " ")
    exponent = math.floor(math.log10(count))
    leading = count / 10**exponent if exponent < 300 else 10 ** (math.log10(count) - exponent)
    return f"≈ {leading:.2f}·10{str(exponent).translate(RAISED)}"


def symbol_label(name: str) -> str:
    """Return the name of an input, with its index as a subscript.

    >>> symbol_label("x_12"), symbol_label("w_0_1"), symbol_label("speed")
    ('x₁₂', 'w₀,₁', 'speed')
    """
    stem, *indices = name.split("_")
    if stem and indices and all(index.isdecimal() and index.isascii() for index in indices):
        name = stem + ",".join(indices).translate(LOWERED)
    return shortened(name, LONGEST)


def _power(texts: Sequence[str | None]) -> str:
    base, exponent = texts
    if base is not None:
        return f"{base}^{exponent or PLACE}"
    plain = str(exponent).replace("−", "-")
    return _POWERS.get(plain, f"□^({exponent})" if "/" in plain else f"□^{exponent}")


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


class GraphReading:
    """The graph to draw: the nodes that get boxes, their names, and their operands without aliases.

    It is made of the nodes and the names of its results, and the marks of nodes; of the names of nodes elsewhere on the
    page, and their marks there (`links`).
    """

    graph: Graph
    outputs: tuple[int, ...]
    links: Mapping[int, str]

    def __init__(
        self, graph: Graph, outputs: Sequence[int], results: Sequence[str],
        marks: Mapping[int, tuple[Mark, ...]] | None = None, names: Mapping[int, str] | None = None,
        links: Mapping[int, str] | None = None,
    ) -> None:  # fmt: skip
        self.graph, self.outputs, self.links = graph, tuple(outputs), links or {}
        self.order: list[int] = reachable(graph, self.outputs)
        self.results: dict[int, list[str]] = {}
        for node, name in zip(outputs, results, strict=True):
            self.results.setdefault(node, []).append(name)
        counted = Counter(operand for node in self.order for operand in operands_of(graph, node))
        self.seen_as: dict[int, int] = {}  # of an alias without a box: the node whose box it shares
        self.marks: dict[int, tuple[Mark, ...]] = {}
        for node in self.order:
            self._add_node(node, (marks or {}).get(node, ()), counted)
        boxed = (node for node in self.order if node not in self.seen_as)
        self.nodes: list[int] = [node for node in boxed if node in self.results or not is_constant(graph, node)]
        self.operands: dict[int, tuple[int, ...]] = {}
        for node in self.nodes:
            moving = (operand for operand in operands_of(graph, node) if not is_constant(graph, operand))
            self.operands[node] = tuple(self.seen_as.get(operand, operand) for operand in moving)
        self.uses: Counter[int] = Counter(operand for operands in self.operands.values() for operand in operands)
        self.names: dict[int, str] = {**names_of(graph, self.order, self.seen_as), **(names or {})}

    def _add_node(self, node: int, marks: tuple[Mark, ...], counted: Counter[int]) -> None:
        graph = self.graph
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
        graph = self.graph
        return tuple(graph.atoms[o] if is_constant(graph, o) else None for o in operands_of(graph, node))

    def box(self, node: int) -> Box:
        """Return the box of a node. That of an alias has the operand for which it stands as its label."""
        graph, operands, name = self.graph, operands_of(self.graph, node), self.names.get(node, "")
        results = tuple(dict.fromkeys(filter(None, self.results.get(node, ()))))
        uses = self.uses[node] + len(self.results.get(node, ()))
        more: dict[str, Any] = {"marks": self.marks[node], "uses": uses, "results": results}
        more["nodes"] = self.links.get(node, "")
        if is_constant(graph, node):
            return Box(number_label(graph.atoms[node]), "", "constant", text_of(_part(graph, node, "")), **more)
        if not operands:
            return Box(symbol_label(name), "", "input", name, **more)
        formula = f"{name} = {formula_of(graph, node, self.names)}"
        if graph.heads[node] is Alias:
            (known,) = self.constants(node)
            label = symbol_label(self.names[operands[0]]) if known is None else number_label(known)
            return Box(f"= {label}", name, "parameter", formula, **more)
        label = operation_label(graph.heads[node], self.constants(node))
        return Box(label, name, "operation", formula, operations=1, **more)

    @property
    def inputs(self) -> int:
        """Number of inputs that something depends on."""
        return sum(not self.graph.operands[node] and not is_constant(self.graph, node) for node in self.nodes)

    @property
    def shared(self) -> int:
        """Number of operations whose values are used more than once."""
        graph = self.graph
        computed = (node for node in self.nodes if graph.operands[node] and graph.heads[node] is not Alias)
        return sum(self.uses[node] + len(self.results.get(node, ())) > 1 for node in computed)


def diagram_of(reading: GraphReading) -> Diagram:
    """Return a graph with a box for each node.

    >>> graph = Graph()
    >>> x = graph.leaf(sp.Symbol("x"))
    >>> s = graph.node(sp.sin, x)
    >>> diagram = diagram_of(GraphReading(graph, [graph.node(sp.Mul, s, graph.node(sp.exp, s))], ["y"]))
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
    >>> diagram = unfolded(GraphReading(graph, [graph.node(sp.Mul, s, s)], ["y"]), 50)
    >>> [box.label for box in diagram.boxes], diagram.operations
    (['x', 'x', 'sin', 'sin', '×'], 3)
    """
    arrows: list[tuple[int, int]] = []
    hidden: set[int] = set()  # places of omitted parts
    waiting = [(node, -1) for node in dict.fromkeys(reading.seen_as.get(node, node) for node in reading.outputs)]
    for place, (node, user) in enumerate(waiting):  # grows while it is read
        if user >= 0:
            arrows.append((place, user))
        if reading.operands[node] and len(waiting) + len(reading.operands[node]) > limit:
            hidden.add(place)
        else:
            waiting += [(operand, place) for operand in reading.operands[node]]
    left_out = sorted({waiting[place][0] for place in hidden})
    sizes = dict(zip(left_out, tree_sizes(reading.graph, left_out), strict=True))
    boxes: list[Box] = []
    seen: set[int] = set()
    for place, (node, user) in enumerate(waiting):
        if place in hidden:
            size, label = sizes[node], count_label(sizes[node])
            box = Box(f"… {label}", kind="more", formula=f"{label} operations that are not drawn", operations=size)
        else:
            box = replace(reading.box(node), uses=1)
            kind: Kind = "again" if node in seen and box.kind == "operation" else box.kind
            box = replace(box, kind=kind, results=box.results if user < 0 else ())
        boxes.append(box)
        seen.add(node)
    last = len(boxes) - 1
    return Diagram(tuple(boxes[::-1]), tuple(Edge(last - source, last - target) for source, target in arrows[::-1]))
