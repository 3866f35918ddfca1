"""Loops in pictures: a frame for each, arrows for what is read, written and carried; slots say what they read."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

import codegen
from codegen.ir.region import Nest, regions_of
from symad import scan, sum_over, while_loop
from symad.classroom.drawing.draw import LoopDrawing, draw
from symad.classroom.drawing.drawing import Drawing
from symad.classroom.drawing.frames import frames_of, times
from symad.classroom.drawing.render import place
from symad.compiling.native import compile
from symad.display.latex import tikz_of
from symad.errors import ArgumentError
from symad.transforms.first_order import grad, hessian


def pairs(x):
    return sum((x[i] - x[j]) ** 4 for i in range(30) for j in range(i))


def chain(x):
    return scan(lambda v, _: (v + 0.1 * np.sin(v), v), x, None, length=50)[0]


def recurrence(x):
    (value, _), _ = scan(lambda carry, _: ((0.5 * carry[0] + carry[1], carry[0]), None), (x, 1.0), None, length=20)
    return value


def swapped(x):
    (a, b), _ = scan(lambda carry, _: ((carry[1], carry[0]), carry[0] * 2), (x, 2 * x), None, length=20)
    return a + 3 * b


def heat(u):
    def step(v, _):
        return np.concatenate([v[:1], v[1:-1] + 0.1 * (v[2:] - 2 * v[1:-1] + v[:-2]), v[-1:]]), None

    return np.sum(scan(step, u, None, length=100)[0] ** 2)


def newton(x):
    return while_loop(lambda y: np.abs(y * y - x) > 1e-12, lambda y: (y + x / y) / 2, 1.0)


WEIGHTS = np.random.default_rng(0).normal(size=(40, 30))


def network(x):
    return np.sum(np.tanh(WEIGHTS @ x))


CASES = {
    "sum": (pairs, np.ones(30)),
    "Hessian of a sum": (hessian(pairs, sparse="lower"), np.ones(30)),
    "chain": (chain, 1.0),
    "gradient of a chain": (grad(chain), 1.0),
    "lag 2": (recurrence, 1.0),
    "swapped": (swapped, 1.0),
    "nest": (grad(heat), np.ones(200)),
    "search": (newton, 2.0),
    "folded bodies": (grad(network), np.ones(30)),
}


@pytest.fixture(params=CASES, ids=str, scope="module")
def kernel(request):
    f, x = CASES[request.param]
    return compile(f, x, roll="always")


def test_every_loop_is_drawn_once(kernel) -> None:
    regions = [region for region, _ in regions_of(kernel.program.steps)]
    steps = list(kernel.program.steps)
    for step in steps:  # grows while it is read
        steps += step.steps if isinstance(step, Nest) else []
    frames = frames_of(kernel.program)
    boxes = [box for frame in frames for box in frame.diagram.boxes if box.kind == "loop"]
    assert sorted(box.label for box in boxes) == sorted(map(times, steps))
    opened = [region for region in regions if any(region.body.operands) or region.carries]
    nests = [step for step in steps if isinstance(step, Nest)]
    assert len(frames) == 1 + len(opened) + len(nests)
    inner = [number for frame in frames for number in frame.inner.values()]
    assert sorted(inner) == list(range(1, len(frames)))


def test_boxes_are_apart_and_arrows_end_at_them(kernel) -> None:
    for frame in frames_of(kernel.program):
        placed = place(frame.diagram, dict.fromkeys(frame.inner, (300.0, 200.0)))
        boxes = [
            (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
            for (x, y), width, height in zip(placed.centres, placed.widths, placed.heights, strict=True)
        ]
        for a, b in combinations(boxes, 2):
            assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
        for number, points in zip(placed.edges, placed.arrows, strict=True):
            edge = placed.diagram.edges[number]
            ends = (edge.target, edge.source) if edge.back else (edge.source, edge.target)
            for end, (x, y) in zip(ends, (points[0], points[-1]), strict=True):
                left, top, right, bottom = boxes[end]
                assert left - 0.1 <= x <= right + 0.1
                assert top - 0.1 <= y <= bottom + 0.1


def test_all_forms_are_well_formed(kernel) -> None:
    drawing = draw(kernel)
    assert isinstance(drawing, LoopDrawing)
    root = ET.fromstring(drawing.more_forms()[".svg"]())
    texts = {element.text for element in root.iter() if element.tag.endswith("text")}
    assert {frame.title for frame in drawing.frames[1:]} <= texts
    dot = drawing.dot()
    assert dot.count("{") == dot.count("}") == 1 + len(drawing.frames) - 1 + sum(_ancestors(drawing))
    declared = set(re.findall(r"^ *(n\d+_\d+) \[", dot, re.M))
    assert set(re.findall(r"n\d+_\d+", dot)) == declared
    assert r"\begin{tikzpicture}" in drawing.latex()
    assert codegen.rolled_text(kernel.program).split("\n")[0] in drawing.text(200)
    assert draw(kernel.program).description == drawing.description


def _ancestors(drawing: LoopDrawing) -> list[int]:
    """How many frames each frame is inside of; their clusters are opened again in DOT."""
    depth = {0: 0}
    for number, frame in enumerate(drawing.frames):
        depth |= dict.fromkeys(frame.inner.values(), depth[number] + 1)
    return [max(0, value - 1) for value in depth.values()]


def test_slots_say_what_they_read_and_results_what_becomes_of_them() -> None:
    program = compile(lambda x: sum_over(lambda a, b: a * b, x[:-1:2], x[1::2]), np.ones(400), roll="always").program
    whole, body = frames_of(program)
    assert [(box.label, box.name) for box in whole.diagram.boxes] == [
        ("x", "400 numbers"), ("200 times", f"{body.origin}, 1 operation"), ("out", "1 number")]  # fmt: skip
    slots = [(box.label, box.name) for box in body.diagram.boxes if box.kind == "input"]
    assert slots == [("x[2*k]", "s0"), ("x[2*k + 1]", "s1")]
    assert [box.results for box in body.diagram.boxes if box.results] == [("summed in out",)]
    assert re.fullmatch(r"test_loop_drawings.py:\d+", body.origin)


def test_a_carry_has_an_arrow_back_to_its_slot() -> None:
    _, body = frames_of(compile(chain, 1.0, roll="always").program)
    (back,) = [edge for edge in body.diagram.edges if edge.back]
    slot, output = body.diagram.boxes[back.target], body.diagram.boxes[back.source]
    assert (slot.label, slot.name) == ("carried", "s0, at first x")
    assert output.results == ("last to out",)
    assert "dashed" in draw(compile(chain, 1.0, roll="always")).description


def test_a_nest_tells_what_was_written_in_the_round_before() -> None:
    frames = frames_of(compile(heat, np.ones(200), roll="always").program)
    (nest,) = [frame for frame in frames[1:] if frame.inner]
    assert nest.title == "100 times"
    assert [edge.back for edge in nest.diagram.edges].count(True) == 2
    assert [box.label for box in nest.diagram.boxes].count("198 times") == 1


def test_many_loops_are_closed_unless_asked_for() -> None:
    def several(x):
        # Loops of one length would be fused into one.
        return sum(sum_over(lambda a, n=n: a**n * np.sin(n * a), x[: 20 * n]) for n in range(2, 16))

    kernel = compile(several, np.ones(300), roll="always")
    closed, opened = draw(kernel), draw(kernel, fold=False)
    assert len(closed.frames) < len(opened.frames)
    assert closed.frames == draw(kernel, fold=True).frames


def test_a_kernel_of_straight_lines_is_drawn_as_its_graph() -> None:
    drawn = draw(compile(lambda x: x[0] * np.sin(x[1]), np.ones(2)))
    assert type(drawn) is Drawing
    assert (drawn.operations, drawn.inputs, drawn.results) == (2, 2, 1)
    packed = draw(compile(hessian(lambda x: x[0] ** 3 + x[1] ** 2, sparse="lower"), np.ones(2)))
    assert packed.results == 2


def test_what_is_refused() -> None:
    kernel = compile(pairs, np.ones(30), roll="always")
    with pytest.raises(ArgumentError, match="arguments of a program"):
        draw(kernel, np.ones(30))
    with pytest.raises(ArgumentError, match="sharing='both' of a program with loops"):
        draw(kernel, sharing="both")
    with pytest.raises(ArgumentError, match="arguments of a program"):
        draw(compile(np.sin, 1.0), 1.0)


def test_a_matrix_operation_is_one_box_with_its_formula() -> None:
    data = np.linspace(-1, 1, 2560).reshape(64, 40)
    kernel = compile(
        lambda w1, w2: np.sum((np.tanh(data @ w1) @ w2) ** 2) + np.linalg.slogdet(w1.T @ w1)[1],
        np.ones((40, 30)), np.ones((30, 20)),
    )  # fmt: skip
    drawing = draw(kernel)
    labels = [box.label for box in drawing.frames[0].diagram.boxes]
    found = [label for label in labels if " w" in label or "det" in label]
    assert found == ["c0 w1", "w1ᵀ w1", "log |det w3|", "w4 w2"]  # no workspace has the name of an input
    assert r"$^{\mathsf T}$" in tikz_of(drawing.canvas.svg())
