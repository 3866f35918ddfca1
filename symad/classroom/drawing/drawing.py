"""The picture of a computation with its counts, in every form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import cached_property

from codegen.records import dataclass
from symad.classroom.drawing.boxes import Box, Diagram, Edge, count_label
from symad.classroom.drawing.frames import Frame
from symad.classroom.drawing.render import PAGE, below_label, place, render, tooltip
from symad.classroom.drawing.svg import Canvas, look_of
from symad.display import html
from symad.display.document import Block, Document, Heading, Marked, Paragraph, Table
from symad.display.notation import counted
from symad.display.shown import Shown
from symad.errors import ArgumentError


def dot_text(frames: Sequence[Frame]) -> str:
    """Return nested frames as clusters of one graphviz graph.

    An arrow to a loop ends at its border.

    >>> print(dot_text([Frame("", "", Diagram((Box("x", kind="input"),), ()))]))
    digraph {
      compound=true;
      node [shape=box, style=rounded, fontname="sans-serif"];
      n0_0 [label="x", tooltip="x", color="#1A1A1A", shape=ellipse];
    }
    """
    around = {inner: number for number, frame in enumerate(frames) for inner in frame.inner.values()}
    lines = ["digraph {", "  compound=true;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for number, frame in enumerate(frames):
        path = [number]
        while path[0] in around:
            path.insert(0, around[path[0]])
        clusters = [k for k in path if frames[k].title or frames[k].origin]
        for depth, k in enumerate(clusters, 1):
            label = " ".join(filter(None, [frames[k].title, frames[k].origin]))
            lines += [f"{'  ' * depth}subgraph cluster_{k} {{", f"{'  ' * (depth + 1)}label={_quoted(label)};"]
        boxes = [(k, box) for k, box in enumerate(frame.diagram.boxes) if k not in frame.inner]
        lines += [f"{'  ' * (len(clusters) + 1)}n{number}_{k} [{_attributes(box)}];" for k, box in boxes]
        lines += [f"{'  ' * depth}}}" for depth in range(len(clusters), 0, -1)]
    for number, frame in enumerate(frames):
        lines += [f"  {_arrow(frames, number, edge)};" for edge in frame.diagram.edges]
    return "\n".join([*lines, "}"])


def _arrow(frames: Sequence[Frame], number: int, edge: Edge) -> str:
    """Return an arrow of a frame. At an inner frame it ends at that frame's border."""
    options: list[str] = []
    ends = []
    for side, box in (("ltail", edge.source), ("lhead", edge.target)):
        inner, place = number, box
        while place in frames[inner].inner:
            inner = frames[inner].inner[place]
            options += [] if options and options[-1].startswith(side) else [f"{side}=cluster_{inner}"]
            place = 0
        ends.append(f"n{inner}_{place}")
    options += [f'label="×{edge.count}"'] if edge.count > 1 else [f'label="{edge.label}"'] if edge.label else []
    options += ["style=dashed", "constraint=false"] if edge.back else []
    return " -> ".join(ends) + (f" [{', '.join(options)}]" if options else "")


def _attributes(box: Box) -> str:
    label = "\n".join(filter(None, [box.label, below_label(box)]))
    options = [f"label={_quoted(label)}", f"tooltip={_quoted(tooltip(box))}", f'color="#{look_of(box.style).light}"']
    options += ["shape=ellipse"] if box.kind == "input" else []
    options += ["peripheries=2"] if box.results else []
    options += ["penwidth=2.5"] if box.uses > 1 and box.kind == "operation" and box.copies == 1 else []
    options += ['style="rounded,dashed"'] if box.kind in ("parameter", "more") else []
    options += ["style=solid"] if box.kind == "memory" else []
    return ", ".join(options)


def _quoted(text: str) -> str:
    """Return a graphviz string. Quotes and backslashes are escaped, so that no character has a meaning."""
    plain = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


@dataclass(frozen=True)
class Drawing(Shown):
    """The picture of a computation: one diagram, or two with titles, and their counts.

    `operations` counts operations of the graph, shared ones once, `tree_operations` those of the unfolded expressions,
    `shared` the operations that are used more than once. `about` is the title and the formula above the picture.
    """

    diagrams: tuple[tuple[str, Diagram], ...]
    operations: int
    tree_operations: int
    inputs: int
    results: int
    shared: int
    about: Document = field(default=(), kw_only=True)

    def _side_by_side(self) -> Sequence[Frame]:
        """Return the diagrams as frames; a single one needs no title."""
        return [Frame(title if len(self.diagrams) > 1 else "", "", diagram) for title, diagram in self.diagrams]

    @property
    def title(self) -> str:
        return self.about[0].text if self.about and isinstance(self.about[0], Heading) else "Computational graph"

    @cached_property
    def canvas(self) -> Canvas:
        """The picture in shapes. Two diagrams are side by side if the page is wide enough."""
        drawn = [(title, render(place(diagram))) for title, diagram in self.diagrams]
        if len(drawn) == 1:
            return drawn[0][1]
        beside = sum(canvas.width for _, canvas in drawn) <= PAGE
        widths, heights = [c.width for _, c in drawn], [c.height + 30 for _, c in drawn]
        whole = Canvas(sum(widths), max(heights)) if beside else Canvas(max(widths), sum(heights))
        x = y = 0.0
        for (title, canvas), width, height in zip(drawn, widths, heights, strict=True):
            whole.text(x + 14, y + 20, title, size=15, bold=True, anchor="start")
            whole.place(canvas, x, y + 30)
            x, y = (x + width, y) if beside else (x, y + height)
        return whole

    def document(self) -> Document:
        """Return the heading, the picture, and the counts below it."""
        return (*self.about, *self._with([self.canvas.picture(self.description, fills=True)]))

    def words(self) -> Document:
        """Return the boxes as lines, and the counts. This needs no layout."""
        blocks: list[Block] = []
        for title, diagram in self.diagrams:
            blocks += [Heading(title, 3)] if len(self.diagrams) > 1 else []
            blocks.append(_numbers(diagram) if diagram.boxes[0].value else Table((), tuple(map(_row, diagram.boxes))))
        return self._with(blocks)

    def _with(self, blocks: Sequence[Block]) -> Document:
        if len(self.diagrams) == 1:
            return (*blocks, Paragraph(self.description))
        counts = zip(self.diagrams, (self.tree_operations, self.operations), strict=True)
        rows = tuple((title, count_label(count)) for (title, _), count in counts)
        return (*blocks, Table(("", "operations"), rows, "lr"), Paragraph(self.description))

    @property
    def description(self) -> str:
        """The picture in words."""
        counts = ((self.operations, "operation"), (self.inputs, "input"), (self.results, "result"))
        text = ", ".join(counted(count, noun, count_label(count)) for count, noun in counts)
        boxes = self.diagrams[-1][1].boxes
        if any(box.copies > 1 for box in boxes):
            text += f"; folded into {counted(len(boxes), 'box')}, in which ×n stands for n of the same form"
        elif self.shared:
            shared = counted(self.shared, "value", count_label(self.shared))
            text += f"; {shared} {'is' if self.shared == 1 else 'are'} used several times"
        if self.tree_operations > self.operations:
            text += f"; as an expression tree {count_label(self.tree_operations)} operations"
        return text + "."

    def svg(self) -> str:
        """Return the picture as SVG, for a page."""
        return self.canvas.svg()

    def dot(self) -> str:
        r"""Return the graph in graphviz's language (nothing else needs graphviz).

        >>> import symad as sa
        >>> print(sa.draw("x + 1").dot())
        digraph {
          compound=true;
          node [shape=box, style=rounded, fontname="sans-serif"];
          n0_0 [label="x", tooltip="x", color="#1A1A1A", shape=ellipse];
          n0_1 [label="+ 1\nv1  → result", tooltip="v1 = x + 1\nresult", color="#1A1A1A", peripheries=2];
          n0_0 -> n0_1;
        }
        """
        return dot_text(self._side_by_side())

    def more_forms(self) -> dict[str, Callable[[], str]]:
        return {".svg": lambda: self.canvas.svg(ground=True) + "\n", ".dot": lambda: self.dot() + "\n"}

    def _repr_svg_(self) -> str | None:
        return self._picture(self.svg)

    def _repr_latex_(self) -> str | None:
        return self._picture(super()._repr_latex_)

    def _repr_html_(self) -> str:
        try:
            return super()._repr_html_()
        except ArgumentError as error:  # there is no igraph; a notebook would show a traceback
            return html.fragment((*self.words(), Paragraph(Marked(str(error), "muted"))))

    @staticmethod
    def _picture(form: Callable[[], str | None]) -> str | None:
        try:
            return form()
        except ArgumentError:
            return None


def _numbers(diagram: Diagram) -> Table:
    """Return the boxes with their numbers, and the local derivatives of each in its operands."""
    rows, names = [], [box.label.split(" = ")[0] for box in diagram.boxes]
    for k, box in enumerate(diagram.boxes):
        into = [edge for edge in diagram.edges if edge.target == k and edge.label]
        slopes = ", ".join(f"{edge.label} by {names[edge.source]}" for edge in into)
        rows.append((box.label, box.value, slopes, Marked(box.adjoint, "cotangent")))
    return Table(("box", "value", "local derivatives", "adjoint"), tuple(rows))


def _row(box: Box) -> tuple[str, str, str]:
    copies = f"×{box.copies}" if box.copies > 1 else ""
    formula = box.label if box.copies > 1 or not box.formula else box.formula.split("\n")[0]
    uses = f"{box.uses} uses" if box.uses > 1 and box.copies == 1 and box.kind == "operation" else ""
    more = f" +{len(box.results) - 3}" if len(box.results) > 3 else ""
    results = f"→ {', '.join(box.results[:3])}{more}" if box.results else ""
    return formula, box.letters, "  ".join(filter(None, [copies, uses, results]))
