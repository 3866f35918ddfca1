"""Diagrams in the language of graphviz, for those who have it; nothing of it is needed here."""

from __future__ import annotations

from collections.abc import Sequence

from symad.drawing.boxes import Box, Diagram, Edge
from symad.drawing.frames import Frame
from symad.drawing.places import below_label
from symad.drawing.render import tooltip
from symad.drawing.shapes import look_of


def dot_text(diagrams: Sequence[tuple[str, Diagram]]) -> str:
    """Return diagrams with their titles as one graph of graphviz.

    >>> print(dot_text([("", Diagram((Box("x", kind="input"),), ()))]))
    digraph {
      node [shape=box, style=rounded, fontname="sans-serif"];
      n0_0 [label="x", tooltip="x", color="#1A1A1A", shape=ellipse];
    }
    """
    lines = ["digraph {", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for number, (title, diagram) in enumerate(diagrams):
        inner = [f"n{number}_{k} [{_attributes(box)}];" for k, box in enumerate(diagram.boxes)]
        for edge in diagram.edges:
            count = [f'label="×{edge.count}"'] if edge.count > 1 else []
            options = ", ".join([*count, *(["style=dashed", "constraint=false"] if edge.back else [])])
            inner.append(f"n{number}_{edge.source} -> n{number}_{edge.target}" + (f" [{options}];" if options else ";"))
        if title:
            inner = [
                f"subgraph cluster_{number} {{",
                f"  label={_quoted(title)};",
                *(f"  {line}" for line in inner),
                "}",
            ]
        lines += [f"  {line}" for line in inner]
    return "\n".join([*lines, "}"])


def frames_text(frames: Sequence[Frame]) -> str:
    """Return frames inside of each other as clusters of one graph; an arrow to a loop ends at its border."""
    inside = {inner: (number, box) for number, frame in enumerate(frames) for box, inner in frame.inner.items()}
    lines = ["digraph {", "  compound=true;", '  node [shape=box, style=rounded, fontname="sans-serif"];']
    for number, frame in enumerate(frames):
        path = [number]
        while path[-1] in inside:
            path.append(inside[path[-1]][0])
        for depth, around in enumerate(path[-2::-1], 1):
            label = " ".join(filter(None, [frames[around].title, frames[around].origin]))
            lines += [f"{'  ' * depth}subgraph cluster_{around} {{", f"{'  ' * (depth + 1)}label={_quoted(label)};"]
        boxes = [(k, box) for k, box in enumerate(frame.diagram.boxes) if k not in frame.inner]
        lines += [f"{'  ' * len(path)}n{number}_{k} [{_attributes(box)}];" for k, box in boxes]
        lines += [f"{'  ' * depth}}}" for depth in range(len(path) - 1, 0, -1)]
    for number, frame in enumerate(frames):
        lines += [f"  {_arrow(frames, number, edge)};" for edge in frame.diagram.edges]
    return "\n".join([*lines, "}"])


def _arrow(frames: Sequence[Frame], number: int, edge: Edge) -> str:
    """Return an arrow in a frame; one that leads to or from a frame in it ends at that one's border."""
    options: list[str] = []
    ends = []
    for side, box in (("ltail", edge.source), ("lhead", edge.target)):
        inner, place = number, box
        while place in frames[inner].inner:
            inner = frames[inner].inner[place]
            options += [] if options and options[-1].startswith(side) else [f"{side}=cluster_{inner}"]
            place = 0
        ends.append(f"n{inner}_{place}")
    options += ["style=dashed", "constraint=false"] if edge.back else []
    return " -> ".join(ends) + (f" [{', '.join(options)}]" if options else "")


def _attributes(box: Box) -> str:
    label = "\n".join(filter(None, [box.label, below_label(box)]))
    options = [f"label={_quoted(label)}", f"tooltip={_quoted(tooltip(box))}", f'color="#{look_of(box.style).light}"']
    options += ["shape=ellipse"] if box.kind == "input" else []
    options += ["peripheries=2"] if box.results else []
    options += ["penwidth=2.5"] if box.uses > 1 and box.kind == "operation" and box.copies == 1 else []
    return ", ".join(
        options
        + (
            ['style="rounded,dashed"']
            if box.kind in ("parameter", "more")
            else ["style=solid"]
            if box.kind == "memory"
            else []
        )
    )


def _quoted(text: str) -> str:
    """Return a string of graphviz: quotes and backslashes are escaped, so that nothing in it has a meaning."""
    plain = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
