"""`draw`: the graph of a computation, or a rolled program with its loops, as a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import sympy as sp

import symad.tracing.values.containers as containers
from codegen import Kernel
from codegen.expressions.printing import rolled_text
from codegen.ir.copy_rows import copied
from codegen.ir.program import Output, Program
from codegen.ir.region import RolledProgram, regions_of
from codegen.records import dataclass
from symad.classroom.drawing.boxes import (
    Box,
    Diagram,
    Edge,
    GraphReading,
    Mark,
    count_label,
    diagram_of,
    symbol_label,
    tree_operations,
    unfolded,
)
from symad.classroom.drawing.drawing import Drawing
from symad.classroom.drawing.folding import folded
from symad.classroom.drawing.frames import Frame, frames_of
from symad.classroom.drawing.render import LABEL, MARGIN, SMALL, boxes_and_arrows, place, with_legend
from symad.classroom.drawing.svg import Canvas, text_width
from symad.classroom.explanation.checked_lines import check_statements
from symad.classroom.explanation.explain import explain, explained_gradient
from symad.classroom.explanation.explanation_lines import Book, CarriedLine, VariableLine, rounded
from symad.classroom.explanation.numbered_traces import numbered_stages
from symad.classroom.formulas.given import given
from symad.classroom.formulas.read import read_formula
from symad.derivatives.level import noting
from symad.derivatives.node_roles import History
from symad.display.document import Code, Document, Formula, Heading, Paragraph
from symad.display.mathematics import signs_of
from symad.display.notation import counted
from symad.graph.graph import Graph
from symad.graph.sympy_io import from_let, from_sympy
from symad.tracing.calling.function_names import name_of
from symad.tracing.calling.tracebacks import public_api
from symad.tracing.calling.user_place import refusal
from symad.tracing.trace import Trace, sparse_leaves, trace
from symad.tracing.values.node_trees import Tree
from symad.tracing.values.sparse_matrix import SparseMatrix

TITLE = 30.0  # pixels above the content of a frame


@dataclass(frozen=True)
class LoopDrawing(Drawing):
    """The picture of a program with loops: a frame for each loop, with the graph of its body inside.

    `frames` are the program and then its loops, inner ones after outer ones; `operations` counts each body once.
    """

    program: RolledProgram
    frames: Sequence[Frame]

    @property
    def title(self) -> str:
        return f"Loops of {self.program.name}"

    @cached_property
    def canvas(self) -> Canvas:
        """The picture in shapes. Inner frames are drawn first."""
        pictures: dict[int, Canvas] = {}
        for number in range(len(self.frames) - 1, 0, -1):
            pictures[number] = _framed(self.frames[number], _inside(self.frames[number], pictures))
        boxes = [box for _, diagram in self.diagrams for box in diagram.boxes if box.kind != "loop"]
        return with_legend(_inside(self.frames[0], pictures), boxes)

    def document(self) -> Document:
        """Return the picture with the counts below it."""
        picture = self.canvas.picture(self.description, rolled_text(self.program), fills=True)
        return (*self.about, picture, Paragraph(self.description))

    def words(self) -> Document:
        """Return the program as text, which needs no layout."""
        return Code(rolled_text(self.program)), Paragraph(self.description)

    @property
    def description(self) -> str:
        """The picture in words."""
        loops = sum(region.count > 1 for region, _ in regions_of(self.program.steps))
        written, run = count_label(self.operations), count_label(self.program.executed)
        where = "its body" if loops == 1 else "their bodies"
        text = f"{counted(loops, 'loop')}, {written} operations in {where}, {run} carried out a call"
        if any(box.copies > 1 for _, diagram in self.diagrams for box in diagram.boxes):
            text += "; in bodies of many operations ×n stands for n of the same form"
        if any(edge.back for _, diagram in self.diagrams for edge in diagram.edges):
            text += "; what a dashed arrow leads to is read in the next repetition"
        return text + "."

    def _side_by_side(self) -> Sequence[Frame]:
        return self.frames


def loop_drawing(program: RolledProgram, opened: bool | None = None) -> LoopDrawing:
    """Return the picture of a rolled program; `opened` says whether its bodies are drawn, by default if they are few.

    >>> from symad.compiling.planning import plan
    >>> rolled = plan(lambda x: np.sum(np.sin(x) * x), np.ones(1000), roll="always").candidate.rolled
    >>> [frame.title for frame in loop_drawing(rolled.program).frames]
    ['', '1 000 times']
    """
    frames = tuple(frames_of(program, opened=opened))
    diagrams = tuple((frame.title, frame.diagram) for frame in frames)
    sizes = len(program.inputs), len(program.outputs)
    return LoopDrawing(diagrams, program.operations, 0, *sizes, 0, program, frames)


def _inside(frame: Frame, pictures: dict[int, Canvas]) -> Canvas:
    inner = {box: pictures[number] for box, number in frame.inner.items()}
    placed = place(frame.diagram, {box: (canvas.width, canvas.height) for box, canvas in inner.items()})
    return boxes_and_arrows(placed, inner)


def _framed(frame: Frame, inside: Canvas) -> Canvas:
    title = text_width(frame.title, LABEL) + text_width(frame.origin, SMALL) + 44
    canvas = Canvas(max(inside.width, title) + 8, inside.height + TITLE)
    with canvas.group("\n".join(filter(None, [frame.title, frame.origin]))):
        size = canvas.width, canvas.height
        canvas.box(0, 0, *size, stroke="residual", fill="residual", opacity=0.04, radius=8, line=1.6)
        canvas.text(MARGIN, 21, frame.title, size=LABEL, bold=True, anchor="start", colour="residual")
        left = MARGIN + text_width(frame.title, LABEL) + 12
        canvas.text(left, 21, frame.origin, size=SMALL, anchor="start", colour="muted")
        canvas.place(inside, (canvas.width - inside.width) / 2, TITLE - 6)
    return canvas


_WHAT = "a function with its arguments, a trace, a SymPy expression, a formula as text, a let form, or a kernel"


def source_of(f: Any, args: Sequence[Any]) -> GraphReading:
    """Return the graph to draw, with the names of its results and the roles of its nodes."""
    if isinstance(f, Trace):
        _refuse_arguments(args, "a trace")
        return GraphReading(f.graph, f.outputs.flat, result_names(f.outputs))
    if isinstance(f, Program):
        _refuse_arguments(args, "a program")
        return _of_program(f)
    if _is_let(f):
        _refuse_arguments(args, "a let form")
        nodes = from_let(graph := Graph(lines=False), *f)
        return GraphReading(graph, nodes, ["result"] if len(nodes) == 1 else [f"[{k}]" for k in range(len(nodes))])
    if isinstance(f, str):
        f = read_formula(f)
    if isinstance(f, sp.Basic | sp.MatrixBase | list | tuple) and not isinstance(f, sp.Lambda):
        return _of_expressions(f, args)
    if not callable(f):
        raise refusal(f"{type(f).__name__} as something to draw", do=f"give {_WHAT}")
    with noting() as events:
        traced = trace(f, *args)
    marks = marks_of(History(traced.graph, events), range(len(traced.graph)))
    return GraphReading(traced.graph, traced.outputs.flat, result_names(traced.outputs), marks)


def marks_of(history: History, nodes: Iterable[int]) -> dict[int, tuple[Mark, ...]]:
    """Return the roles and levels of nodes."""
    return {node: tuple((role.kind, role.level) for role in history.roles(node)) for node in nodes}


def result_names(outputs: Tree) -> tuple[str, ...]:
    """Return a name for each number of a result: result, [0], ["a"][1, 2]; the place of a sparse entry."""
    result = containers.unflatten(outputs.structure, list(outputs.arrays))
    names: list[str] = []
    for leaf, path in zip(sparse_leaves(result)[0], containers.paths(result), strict=True):
        if isinstance(leaf, SparseMatrix):
            places = zip(leaf.rows.tolist(), leaf.columns.tolist(), strict=True)
            names += [f"{path.removesuffix('.data')}[{row}, {column}]" for row, column in places]
        else:
            names += [path + _index(index) for index in np.ndindex(*np.shape(leaf))]
    return tuple(name or "result" for name in names)


def _index(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _of_expressions(f: Any, args: Sequence[Any]) -> GraphReading:
    if len(args) > 1:
        do = "give x as one list of symbols"
        raise refusal("several arguments of an expression", do=do)
    if args:
        given(f, args[0])  # raises an error unless it is a symbol of the expression
    expressions, names = [f], ["result"]
    if isinstance(f, sp.MatrixBase | list | tuple):
        array = np.array(f.tolist() if isinstance(f, sp.MatrixBase) else f, dtype=object)
        expressions = [sp.Number(item) if isinstance(item, int | float) else item for item in array.ravel().tolist()]
        names = [_index(index) for index in np.ndindex(*array.shape)]
    if not all(isinstance(expression, sp.Basic) for expression in expressions) or not expressions:
        raise refusal(f"{type(f).__name__} as something to draw", do=f"give {_WHAT}")
    graph = Graph(lines=False)
    return GraphReading(graph, from_sympy(graph, expressions), names)


def _of_program(program: Program) -> GraphReading:
    graph = Graph(lines=False)
    inputs = {row: graph.own_leaf(program.atoms[row]) for row in range(program.input_count)}
    nodes = copied(program, [row for output in program.outputs for row in output.rows], graph, inputs)
    called = [f"result {k}" for k in range(len(program.outputs))] if len(program.outputs) > 1 else ["result"]
    named = zip(called, program.outputs, strict=True)
    names = [name + _index(index) for name, output in named for index in _places(output)]
    return GraphReading(graph, nodes, names)


def _places(output: Output) -> list[tuple[int, ...]]:
    """Return the index of each row of a program's output."""
    places = range(len(output.rows)) if output.positions is None else output.positions
    if output.pattern is not None or output.swept:
        return [(int(place),) for place in places]
    return [tuple(map(int, np.unravel_index(place, output.shape))) for place in places]


def _is_let(f: Any) -> bool:
    """Whether f is (replacements, reduced), as `sympy.cse` and `Trace.let` return it."""
    if not (isinstance(f, tuple) and len(f) == 2 and all(isinstance(part, list) for part in f)):
        return False
    return all(isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], sp.Symbol) for part in f[0])


def _refuse_arguments(args: Sequence[Any], subject: str) -> None:
    if args:
        raise refusal(f"arguments of {subject}", do="leave them out: they are known")


Sharing = Literal["after", "before", "both"]

READABLE = 80  # boxes; with more, equal parts are folded
FOLDED = 40  # boxes of a folded picture, if possible
TREE = 60  # boxes of an expression tree
LARGEST = 2000  # boxes that are drawn when folding is turned off


@public_api
def draw(f: Any, *args: Any, sharing: Sharing = "after", fold: bool | None = None, at: Any = None) -> Drawing:
    """Return the picture of a computation as a graph: a box for each operation, an arrow for each use of a value.

    f is a function (or a transform of one) with its arguments, of which only the shapes count; a trace; a SymPy
    expression, or a list or Matrix of them; a formula as text; a let form as `sympy.cse` and `Trace.let` return it; a
    kernel or its program, whose loops are drawn as loops (`LoopDrawing`).
    Roles of nested derivatives have colours, letters and levels, as in `explain`. A value that is used several times
    has a heavy border. `sharing="before"` draws the expression tree, which repeats such values, "both" draws tree and
    graph side by side.
    `fold` lets operations of the same form share a box with their number; the default folds above 80 boxes.
    ArgumentError for a picture of more than 2000 boxes.
    `at`, a point as in `explain`, draws the lines of the trace with their values, with local derivatives on the arrows,
    and with adjoints in the colour of cotangents where f gives one number.
    Its layout needs igraph (`pip install 'symad[draw]'`); the lines of `print`, and DOT, do not.

    >>> print(draw("sin(x)^2 + sin(x)"))
     x
     v1 = sin(x)       2 uses
     v2 = v1**2
     v3 = v2 + v1      → result
    <BLANKLINE>
    3 operations, 1 input, 1 result; 1 value is used several times; as an expression tree 4 operations.
    """
    if sharing not in ("after", "before", "both"):
        raise refusal(f"sharing={sharing!r}", do="give 'after', 'before' or 'both'")
    if at is not None:
        return _at_point(f, args, at, sharing, fold)
    if isinstance(f, Kernel):
        f = f.program
    if isinstance(f, RolledProgram):
        if args or sharing != "after":
            subject = "arguments of a program" if args else f"sharing={sharing!r} of a program with loops"
            raise refusal(subject, do="leave them out: it is drawn as it is")
        return loop_drawing(f, None if fold is None else not fold)
    return replace(drawing_of(source_of(f, args), sharing, fold), about=about_what(f))


def _at_point(f: Any, args: Sequence[Any], at: Any, sharing: Sharing, fold: bool | None) -> Drawing:
    if isinstance(f, Kernel | RolledProgram | Program | Trace | list | tuple) or sharing != "after" or fold is not None:
        do = "give a function or a formula, without sharing and fold"
        raise refusal("at=, which draws the lines of a function", do=do)
    diagram = numbered_diagram(f, args, at)
    inputs = sum(box.kind == "input" for box in diagram.boxes)
    shared = sum(box.uses > 1 for box in diagram.boxes if box.kind == "operation")
    results = sum(bool(box.results) for box in diagram.boxes)
    counts = (diagram.operations, diagram.operations, inputs, results, shared)
    return Drawing((("", diagram),), *counts, about=about_what(f))


MOST_BOXES = 80


def numbered_diagram(f: Any, args: Sequence[Any], at: Any) -> Diagram:
    """Return a box for each line of a trace at a point; adjoints and local derivatives if f gives one number.

    >>> diagram = numbered_diagram("x^2 + x", ("x",), 3)
    >>> [(box.label, box.value, box.adjoint) for box in diagram.boxes], [edge.label for edge in diagram.edges]
    ([('x', '3', '7'), ('v1 = x²', '9', '1'), ('v2 = x + v1', '12', '1')], ['6', '1', '1'])
    """
    explanation = explain(f, *args, at=at)
    book = Book(explanation.book.graph, explanation.book.inputs, explanation.book.history)
    if len(explanation.outputs) == 1 and explanation.lines:
        explanation = explained_gradient(f, args, at)
        book, stages = explanation.book, [s for s in explanation.stages if s.level and s.level.depth == 1]
    else:
        stages = numbered_stages(book, (), explanation.outputs, (), explanation.point)
    statements = [line for stage in stages for line in stage.lines]
    check_statements(book, statements)
    carried = [line for line in statements if isinstance(line, CarriedLine)]
    adjoints = {line.name.removesuffix("_bar"): rounded(line.number) for line in carried}
    terms = [term for line in carried for term in line.terms]
    slopes = {(book.name(term.operand), book.name(term.line)): rounded(term.number) for term in terms}
    lines = [line for line in statements if isinstance(line, VariableLine)]
    named = {line.symbol for line in lines}
    lines = [VariableLine(book, node) for node, symbol in book.inputs.items() if symbol not in named] + lines
    if len(lines) > MOST_BOXES:
        raise refusal(f"a picture of {len(lines)} boxes with numbers", do="draw less")
    place_of = {line.symbol: k for k, line in enumerate(lines)}
    arrows = [
        (start, end)
        for end, line in enumerate(lines)
        for start in sorted(place_of[symbol] for symbol in line.expression.free_symbols & place_of.keys())
        if start != end
    ]
    results = {book.name(node) for node in stages[0].ends}
    boxes = []
    for k, line in enumerate(lines):
        name, computed = symbol_label(line.name), line.expression != line.symbol
        boxes.append(Box(
            f"{name} = {signs_of(line.expression)}" if computed else name, "", "operation" if computed else "input",
            uses=sum(start == k for start, _ in arrows), results=("result",) if line.name in results else (),
            operations=int(computed), value=rounded(line.number), adjoint=adjoints.get(line.name, ""),
        ))  # fmt: skip
    edges = [Edge(*pair, label=slopes.get((lines[pair[0]].name, lines[pair[1]].name), "")) for pair in arrows]
    return Diagram(tuple(boxes), tuple(edges))


def drawing_of(reading: GraphReading, sharing: Sharing = "after", fold: bool | None = None) -> Drawing:
    """Return the picture of an existing graph."""
    graph, outputs, diagrams = reading.graph, reading.outputs, []
    if sharing != "after":
        diagrams.append(("Before: the expression tree", unfolded(reading, TREE)))
    if sharing != "before":
        diagrams.append(("After: equal parts shared", _graph(reading, fold)))
    operations, tree = graph.count_operations(outputs), tree_operations(graph, outputs)
    return Drawing(tuple(diagrams), operations, tree, reading.inputs, len(outputs), reading.shared)


def about_what(f: Any) -> Document:
    """Return the heading of a picture, and a formula itself."""
    expression = read_formula(f) if isinstance(f, str) else f
    if isinstance(expression, sp.Expr) and not isinstance(expression, sp.Lambda):
        symbols = sorted(expression.free_symbols, key=str)
        left = sp.Function("f")(*symbols) if symbols else None
        return (Heading("Graph of a formula", 1), Formula(expression, left))
    if not callable(f) or isinstance(f, Trace):
        return ()
    return (Heading(f"Graph of {name_of(f).replace('_of_', ' of ')}", 1),)


def _graph(reading: GraphReading, fold: bool | None) -> Diagram:
    boxes = len(reading.nodes)
    if fold or (fold is None and boxes > READABLE):
        return folded(reading, FOLDED)
    if boxes > LARGEST:
        do = "leave out fold=False, or draw a smaller example"
        raise refusal(f"a picture of {boxes} boxes", do=do)
    return diagram_of(reading)
