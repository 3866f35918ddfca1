"""Draw a rolled program as frames: one frame for each loop, with the graph of its body inside.

Every frame has its own diagram. The diagram of a body has slots as inputs, and a backward arrow from an output to a
slot for each carried value. The diagram of a program or a nest has a box for each loop and for each buffer between
loops; a backward arrow leads to a read in the next round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import TypeAlias

import numpy as np
import sympy as sp

from codegen.expressions.printing import ProgramText
from codegen.ir.copy_rows import copied
from codegen.ir.program import operations_of
from codegen.ir.region import Carry, Gather, Region, RolledProgram, Step, regions_of
from codegen.records import dataclass
from symad.classroom.drawing.boxes import Box, Diagram, Edge, GraphReading, count_label, diagram_of, symbol_label
from symad.classroom.drawing.folding import folded
from symad.classroom.drawing.svg import shortened
from symad.display.notation import counted
from symad.graph.graph import Graph

READABLE, FOLDED = 80, 30  # boxes of a body, and of one that is folded
SLOTS = 12  # with boxes of their own; if there are more, slots of one array may share a box
OPENED = 12  # loops that are drawn with their bodies
MOVES = {"order": "puts numbers in order", "initial values": "initial values"}
LONGEST_READ = 34  # letters
BECOMES = {"store": "stored in", "add": "summed in", "last": "last to"}
ENDLESS = 2**40  # the trip count of a loop without a known bound
Numbers: TypeAlias = frozenset[int]


@dataclass(frozen=True)
class Frame:
    """A loop or the program: its trip count, its place in the source, its content.

    `inner` maps boxes of the diagram that are frames to their numbers among all frames.
    """

    title: str
    origin: str
    diagram: Diagram
    inner: Mapping[int, int] = field(default_factory=dict)


def frames_of(program: RolledProgram, *, opened: bool | None = None) -> list[Frame]:
    """Return the frames of a program: the program first, inner frames after outer ones.

    The bodies of loops are `opened` unless there are too many of them.
    """
    places = ProgramText(program)
    if opened is None:
        opened = sum(1 for _ in regions_of(program.steps)) <= OPENED
    frames: list[Frame] = []
    waiting: list[tuple[Region | Sequence[Step], tuple[str, str]]] = [(program.steps, ("", ""))]
    for content, title in waiting:  # grows while it is read
        if isinstance(content, Region):
            frames.append(Frame(*title, _body(content, places)))
            continue
        level = _Level(content, places, repeated=bool(frames))
        inside = {box: step for box, step in level.steps.items() if _opens(step, opened)}
        numbers = {box: len(waiting) + k for k, box in enumerate(inside)}
        for step in inside.values():
            waiting.append((step if isinstance(step, Region) else step.steps, (times(step), origin_of(step))))
        frames.append(Frame(*title, level.diagram, numbers))
    return frames


def times(step: Step) -> str:
    """Return the trip count of a step in words."""
    if isinstance(step, Region) and step.stop is not None:
        return "until it ends" + (f", at most {count_label(step.count)} times" if step.count < ENDLESS else "")
    return "once" if step.count == 1 else f"{count_label(step.count)} times"


def origin_of(step: Step) -> str:
    """Return the source line of a step, or a description of a step that computes nothing."""
    if not isinstance(step, Region):
        return ""
    if step.matrix is not None:
        return ", ".join(filter(None, [step.matrix.description, step.origin]))
    return step.origin if operations(step) else MOVES.get(step.origin, "copies numbers")


def operations(region: Region) -> int:
    """Return the number of operations of a body or of a matrix operation."""
    return operations_of(region.body) if region.matrix is None else region.matrix.operations


def _opens(step: Step, opened: bool) -> bool:
    """Whether a loop is drawn with its body. A loop that only copies is not, unless it carries values."""
    if not isinstance(step, Region):
        return True
    return opened and step.matrix is None and (operations(step) > 0 or bool(step.carries))


class _Level:
    """The steps of a program, or of a nest in which they are `repeated`, with the buffers that they use."""

    def __init__(self, steps: Sequence[Step], places: ProgramText, repeated: bool) -> None:
        self.places, self.steps = places, dict[int, Step]()
        self.boxes: list[Box] = []
        self.edges: dict[Edge, None] = {}
        self.box_of: dict[int, int] = {}  # of a buffer since its last write
        reads, writes = [_read(step, places) for step in steps], [_written(step) for step in steps]
        backwards = range(len(steps) - 1, -1, -1)
        first = {buffer: time for time in backwards for buffer in writes[time]}  # the step that first writes a buffer
        for buffer in sorted(frozenset[int]().union(*reads) - first.keys()):
            self._buffer(buffer)
        late: list[tuple[int, int]] = []
        seen: set[int] = set()  # buffers that were read after their last write
        for time, step in enumerate(steps):
            box = self._step(step)
            earlier = {
                buffer for buffer in reads[time]
                if first.get(buffer, -1) < time and not (repeated and _reads_earlier_round(step, steps[:time], buffer))
            }  # fmt: skip
            self.edges |= dict.fromkeys(Edge(self.box_of[buffer], box) for buffer in sorted(earlier))
            late += [(box, buffer) for buffer in sorted(reads[time] - earlier)]
            seen |= earlier
            for buffer in sorted(writes[time]):
                if buffer not in self.box_of or buffer in seen:
                    self._buffer(buffer)
                    seen.discard(buffer)
                self.edges[Edge(box, self.box_of[buffer])] = None
        self.edges |= dict.fromkeys(Edge(self.box_of[buffer], box, back=True) for box, buffer in late)

    @property
    def diagram(self) -> Diagram:
        return Diagram(tuple(self.boxes), tuple(self.edges))

    def _step(self, step: Step) -> int:
        counts = [operations(region) for region, _ in regions_of([step])]
        total = counted(sum(counts), "operation", count_label(sum(counts))) if sum(counts) else ""
        name = ", ".join(filter(None, [origin_of(step), total]))
        self.steps[len(self.boxes)] = step
        label = times(step)
        if isinstance(step, Region) and step.matrix is not None:
            label = step.matrix.formula(*(symbol_label(self.places.names[use.buffer]) for use in step.gathers))
        self.boxes.append(Box(label, name, "loop", operations=sum(counts)))
        return len(self.boxes) - 1

    def _buffer(self, number: int) -> None:
        buffer, label = self.places.program.buffers[number], symbol_label(self.places.names[number])
        kind, size = buffer.kind, counted(buffer.size, "number", count_label(buffer.size))
        results = ("result",) if kind == "output" else ()
        self.box_of[number] = len(self.boxes)
        self.boxes.append(Box(label, size, "input" if kind == "input" else "memory", label, results=results))


def _read(step: Step, places: ProgramText) -> Numbers:
    """Return the buffers that a step reads. Constants are omitted: they are drawn in the slots."""
    uses = (use for region, _ in regions_of([step]) for use in _gathers(region))
    return frozenset(use.buffer for use in uses if places.program.buffers[use.buffer].kind != "constant")


def _written(step: Step) -> Numbers:
    return frozenset(use.buffer for region, _ in regions_of([step]) for use in region.results)


def _reads_earlier_round(step: Step, before: Sequence[Step], buffer: int) -> bool:
    """Whether a step reads only places of a buffer that earlier steps of the same round have not written."""
    writers = [other for other in before if buffer in _written(other)]
    if not writers or not all(isinstance(other, Region) for other in (step, *writers)):
        return False
    written = [use for region, _ in regions_of(writers) for use in region.results if use.buffer == buffer]
    read = [use for region, _ in regions_of([step]) for use in _gathers(region) if use.buffer == buffer]
    places, others = (np.concatenate([use.table.places() for use in uses]) for uses in (read, written))
    return not np.isin(places, others).any()


def _gathers(region: Region) -> list[Gather]:
    return [*region.gathers, *(initial for carry in region.carries for initial in carry.initial)]


class _BodyReading(GraphReading):
    """The body of a loop. Its slots s0, s1, ... are inputs, labelled with the places that they read."""

    def __init__(self, region: Region, places: ProgramText) -> None:
        graph, body = Graph(lines=False), region.body
        uses: list[Gather | Carry] = [*region.gathers, *region.carries]
        names = [f"s{k}" for k in range(len(uses))] if len(uses) <= SLOTS else [_name(use, places) for use in uses]
        self.slots = [graph.own_leaf(sp.Symbol(name, real=True)) for name in names]
        self.shown = {slot: _read_by(use, places) for slot, use in zip(self.slots, uses, strict=True)}
        self.ends = copied(body, [output.rows[0] for output in body.outputs], graph, dict(enumerate(self.slots)))
        results = [(node, name) for k, node in enumerate(self.ends) for name in _becomes(region, places, k)]
        results += [(self.ends[carry.output], "") for carry in region.carries]
        super().__init__(graph, [node for node, _ in results], [name for _, name in results])

    def box(self, node: int) -> Box:
        """Return the box of one node. A slot is labelled with the place that it reads."""
        box = super().box(node)
        if node not in self.shown:
            return box
        label, numbers = self.shown[node]
        below = ", ".join(filter(None, [box.label if len(self.slots) <= SLOTS else "", numbers]))
        return replace(box, label=label, name=below, formula=f"{box.formula} reads {label}", uses=1)


def _read_by(use: Gather | Carry, places: ProgramText) -> tuple[str, str]:
    """Return the place that a slot reads in repetition k, and the first numbers there."""
    if isinstance(use, Gather):
        numbers = places.numbers(use).replace(", ...", ", …").partition(" (")[0]
        return shortened(places.place(use.buffer, use.table), LONGEST_READ), shortened(numbers, LONGEST_READ)
    first = ", ".join(places.place(initial.buffer, initial.table) for initial in use.initial)
    back = "carried" if use.lag == 1 else f"from {use.lag} before"
    return back, shortened(f"at first {first}", LONGEST_READ)


def _becomes(region: Region, places: ProgramText, output: int) -> Sequence[str]:
    """Return the uses of a body's output, nothing for a value that is only carried."""
    uses = [f"{BECOMES[use.kind]} {places.names[use.buffer]}" for use in region.results if use.output == output]
    return [*uses, *(["ends the loop"] if region.stop == output else [])]


def _name(use: Gather | Carry, places: ProgramText) -> str:
    """Return the name of a slot by its first place, so that slots of one array may share a box."""
    if isinstance(use, Carry):
        return "carried"
    is_constant = places.program.buffers[use.buffer].kind == "constant"
    return f"{'c' if is_constant else places.names[use.buffer]}_{use.table.first}"


def _body(region: Region, places: ProgramText) -> Diagram:
    reading = _BodyReading(region, places)
    diagram = folded(reading, FOLDED) if len(reading.nodes) > READABLE else diagram_of(reading)
    box_of = diagram.box_of
    slots = reading.slots[len(region.gathers) :]
    nodes = [reading.ends[carry.output] for carry in region.carries]
    pairs = zip((reading.seen_as.get(node, node) for node in nodes), slots, strict=True)
    ends = dict.fromkeys((box_of[node], box_of[slot]) for node, slot in pairs if {node, slot} <= box_of.keys())
    edges = list(diagram.edges)
    for output, slot in ends:
        if output != slot:
            edges.append(Edge(output, slot, back=not _leads_to(edges, output, slot)))
    return replace(diagram, edges=tuple(edges))


def _leads_to(edges: Sequence[Edge], start: int, end: int) -> bool:
    """Whether a box is below another one, if backward arrows are drawn upwards."""
    below: dict[int, list[int]] = {}
    for edge in edges:
        source, target = (edge.target, edge.source) if edge.back else (edge.source, edge.target)
        below.setdefault(source, []).append(target)
    reached, waiting = {start}, [start]
    for box in waiting:  # grows while it is read
        targets = [target for target in below.get(box, ()) if target not in reached]
        reached.update(targets)
        waiting += targets
    return end in reached
