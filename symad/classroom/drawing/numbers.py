"""The graph of a function at a point: values and adjoints in the boxes, local derivatives on the arrows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from symad.classroom.drawing.boxes import Box, Diagram, Edge
from symad.classroom.drawing.labels import symbol_label
from symad.classroom.explanation.checked_lines import check_statements
from symad.classroom.explanation.explain import explain, explained_gradient
from symad.classroom.explanation.explanation_lines import Book, CarriedLine, VariableLine, rounded
from symad.classroom.explanation.numbered_traces import numbered_stages
from symad.display.mathematics import signs_of
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import user_place

MOST_BOXES = 80


def numbered_diagram(f: Any, args: Sequence[Any], at: Any) -> Diagram:
    """Return a box for each line of a trace at a point; adjoints and local derivatives if f gives one number.

    >>> diagram = numbered_diagram("x^2 + x", ("x",), 3)
    >>> [(box.label, box.value, box.adjoint) for box in diagram.boxes], [edge.label for edge in diagram.edges]
    ([('x', '3', '7'), ('v1 = x²', '9', '1'), ('v2 = x + v1', '12', '1')], ['6', '1', '1'])
    """
    explanation = explain(f, *args, at=at)
    if scalar := len(explanation.outputs) == 1 and bool(explanation.lines):
        explanation = explained_gradient(f, args, at)
        stages = [stage for stage in explanation.stages if stage.level and stage.level.depth == 1]
    book, outputs = Book(explanation.book.graph, explanation.book.inputs, explanation.book.history), explanation.outputs
    book = explanation.book if scalar else book
    stages = stages if scalar else numbered_stages(book, (), outputs, (), explanation.point)
    statements = [line for stage in stages for line in stage.lines]
    check_statements(book, statements)
    adjoints, slopes = dict[str, str](), dict[tuple[str, str], str]()
    for carried in (line for line in statements if isinstance(line, CarriedLine)):
        adjoints[carried.name.removesuffix("_bar")] = rounded(carried.number)
        for term in carried.terms:
            slopes[book.name(term.operand), book.name(term.line)] = rounded(term.number)
    lines = [line for line in statements if isinstance(line, VariableLine)]
    named = {line.symbol for line in lines}
    lines = [VariableLine(book, node) for node, symbol in book.inputs.items() if symbol not in named] + lines
    if len(lines) > MOST_BOXES:
        raise ArgumentError(f"a picture of {len(lines)} boxes with numbers", where=user_place(), do="draw less")
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
