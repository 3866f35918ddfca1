"""draw: the graph of a computation as a picture."""

from __future__ import annotations

from typing import Any, Literal

from codegen import Kernel
from codegen.ir.region import RolledProgram
from symad.drawing.boxes import Diagram, Reading, diagram_of
from symad.drawing.drawing import Drawing
from symad.drawing.folding import folded
from symad.drawing.reading import source_of
from symad.drawing.rolled import LoopDrawing, loop_drawing
from symad.drawing.tree_drawing import tree_operations, unfolded
from symad.errors import ArgumentError
from symad.tracing.calling.user_place import user_place

Sharing = Literal["after", "before", "both"]

READABLE = 80  # boxes; with more, equal parts are folded
FOLDED = 40  # boxes of a folded picture, where that can be had
TREE = 60  # boxes of an expression tree
LARGEST = 2000  # boxes that are drawn when folding is turned off


def draw(f: Any, *args: Any, sharing: Sharing = "after", fold: bool | None = None) -> Drawing:
    """Return the picture of a computation as a graph: a box for each operation, an arrow for each use of a value.

    f is a function (or a transform of one) with its arguments, of which only the shapes count; a trace; a SymPy
    expression, or a list or Matrix of them; a formula as text; a let form as `sympy.cse` and `Trace.let` return it; a
    kernel or its program, of which loops are drawn as loops (`LoopDrawing`).
    Roles of nested derivatives have colours, letters and levels, as in `explain`. A value that is used several times
    has a heavy border. `sharing="before"` draws the expression tree, in which such a value is there several times,
    "both" the one beside the other.
    `fold` lets operations of the same form share a box, which tells how many they are; by default where there would be
    more than 80 boxes. ArgumentError for a picture of more than 2000 boxes.
    Its layout needs igraph (`pip install 'symad[draw]'`); the lines of `print`, and DOT, do not.

    >>> print(draw("sin(x)^2 + sin(x)"))
    x
    v1 = sin(x)   2 uses
    v2 = v1**2
    v3 = v2 + v1  → result
    <BLANKLINE>
    3 operations, 1 input, 1 result; 1 value is used several times; as an expression tree 4 operations.
    """
    if sharing not in ("after", "before", "both"):
        raise ArgumentError(f"sharing={sharing!r}", where=user_place(), do="give 'after', 'before' or 'both'")
    if isinstance(f, Kernel):
        f = f.program
    if isinstance(f, RolledProgram):
        return _loops(f, args, sharing, fold)
    source = source_of(f, args)
    operations = source.graph.count_operations(source.outputs)
    tree = tree_operations(source.graph, source.outputs)
    reading = Reading(source)
    diagrams = []
    if sharing != "after":
        diagrams.append(("Before: the expression tree", unfolded(reading, TREE)))
    if sharing != "before":
        diagrams.append(("After: equal parts shared", _graph(reading, fold)))
    return Drawing(tuple(diagrams), operations, tree, reading.inputs, len(source.outputs), reading.shared)


def _loops(program: RolledProgram, args: tuple[Any, ...], sharing: Sharing, fold: bool | None) -> LoopDrawing:
    if args or sharing != "after":
        what = "arguments of a program" if args else f"sharing={sharing!r} of a program with loops"
        raise ArgumentError(what, where=user_place(), do="leave them out: it is drawn as it is")
    return loop_drawing(program, None if fold is None else not fold)


def _graph(reading: Reading, fold: bool | None) -> Diagram:
    boxes = len(reading.nodes)
    if fold or (fold is None and boxes > READABLE):
        return folded(reading, FOLDED)
    if boxes > LARGEST:
        raise ArgumentError(
            f"a picture of {boxes} boxes", where=user_place(), do="leave out fold=False, or draw a smaller example"
        )
    return diagram_of(reading)
