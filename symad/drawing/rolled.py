"""The picture of a rolled program: frames around the bodies of loops, frames around frames for nests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from codegen.expressions.printing import text as rolled_text
from codegen.ir.region import RolledProgram, regions_of
from symad.display.document import Code, Document, Paragraph
from symad.drawing.drawing import Drawing, frames_text, many
from symad.drawing.frames import Frame, frames_of
from symad.drawing.labels import count_label
from symad.drawing.render import LABEL, MARGIN, SMALL, boxes_and_arrows, place, with_legend
from symad.drawing.svg import Canvas, text_width

TITLE = 30.0  # pixels above what is in a frame


@dataclass(frozen=True)
class LoopDrawing(Drawing):
    """The picture of a program with loops: a frame for each, with the graph of its body inside.

    `frames` are the program, then its loops, those inside of others behind them; `operations` are those of the bodies,
    each counted once.
    """

    program: RolledProgram
    frames: Sequence[Frame]

    @property
    def title(self) -> str:
        """The title of a page that shows this and nothing else."""
        return f"Loops of {self.program.name}"

    @cached_property
    def canvas(self) -> Canvas:
        """The picture in shapes: those that are inside of others are drawn first."""
        pictures: dict[int, Canvas] = {}
        for number in range(len(self.frames) - 1, 0, -1):
            pictures[number] = _framed(self.frames[number], _inside(self.frames[number], pictures))
        boxes = [box for _, diagram in self.diagrams for box in diagram.boxes]
        return with_legend(_inside(self.frames[0], pictures), [box for box in boxes if box.kind != "loop"])

    def document(self) -> Document:
        """Return the picture with the counts below it."""
        return self.canvas.picture(self.description, rolled_text(self.program)), Paragraph(self.description)

    def words(self) -> Document:
        """Return the program as text, which needs no layout."""
        return Code(rolled_text(self.program)), Paragraph(self.description)

    @property
    def description(self) -> str:
        """What the picture shows, in words."""
        loops = sum(region.count > 1 for region, _ in regions_of(self.program.steps))
        written, run = count_label(self.operations), count_label(self.program.executed)
        where = "its body" if loops == 1 else "their bodies"
        text = f"{many(loops, 'loop')}, {written} operations in {where}, {run} carried out a call"
        if any(box.copies > 1 for _, diagram in self.diagrams for box in diagram.boxes):
            text += "; in bodies of many operations ×n stands for n of the same form"
        if any(edge.back for _, diagram in self.diagrams for edge in diagram.edges):
            text += "; what a dashed arrow leads to is read in the next repetition"
        return text + "."

    def dot(self) -> str:
        """Return the frames in the language of graphviz, as clusters."""
        return frames_text(self.frames)

    @property
    def _listing(self) -> str:
        return rolled_text(self.program)


def loop_drawing(program: RolledProgram, opened: bool | None = None) -> LoopDrawing:
    """Return the picture of a rolled program; `opened` says whether its bodies are drawn, by default if they are few.

    >>> import numpy as np
    >>> from symad.compiling.planning import plan
    >>> found = plan(lambda x: np.sum(np.sin(x) * x), np.ones(1000), roll="always").candidate.rolled
    >>> [frame.title for frame in loop_drawing(found.program).frames]
    ['', '1 000 times']
    """
    frames = frames_of(program, opened=opened)
    diagrams = tuple((frame.title, frame.diagram) for frame in frames)
    return LoopDrawing(
        diagrams, program.operations, 0, len(program.inputs), len(program.outputs), 0, program, tuple(frames)
    )


def _inside(frame: Frame, pictures: dict[int, Canvas]) -> Canvas:
    """Return what is in a frame."""
    inner = {box: pictures[number] for box, number in frame.inner.items()}
    placed = place(frame.diagram, {box: (canvas.width, canvas.height) for box, canvas in inner.items()})
    return boxes_and_arrows(placed, inner)


def _framed(frame: Frame, inside: Canvas) -> Canvas:
    """Return a frame around its content, with its title above."""
    title = text_width(frame.title, LABEL) + text_width(frame.origin, SMALL) + 44
    canvas = Canvas(max(inside.width, title) + 8, inside.height + TITLE)
    with canvas.group("\n".join(filter(None, [frame.title, frame.origin]))):
        canvas.box(
            0, 0, canvas.width, canvas.height, stroke="residual", fill="residual", opacity=0.04, radius=8, line=1.6
        )
        canvas.text(MARGIN, 21, frame.title, size=LABEL, bold=True, anchor="start", colour="residual")
        left = MARGIN + text_width(frame.title, LABEL) + 12
        canvas.text(left, 21, frame.origin, size=SMALL, anchor="start", colour="muted")
        canvas.place(inside, (canvas.width - inside.width) / 2, TITLE - 6)
    return canvas
