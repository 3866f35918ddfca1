"""Drawings: every number is that of an independent count, every node has one box, no boxes overlap, arrows lead on."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import rich
import sympy as sp

from symad.classroom.drawing.boxes import Diagram, diagram_of
from symad.classroom.drawing.draw import draw, source_of
from symad.classroom.drawing.render import HEIGHT, PlacedDiagram, place
from symad.errors import ArgumentError
from symad.tracing.trace import trace
from symad.transforms.first_order import derivative, grad, hessian, jacobian, jvp

X, Y = sp.symbols("x y")


def quotient(x):
    return np.sum(np.log(1 + np.exp(x[:-1] * x[1:]))) / np.sqrt(x @ x)


def lennard_jones(x):
    x, energy = x.reshape(-1, 3), 0.0
    for i in range(len(x)):
        for j in range(i):
            d = x[i] - x[j]
            s = 1 / (d @ d) ** 3
            energy = energy + 4 * (s * s - s)
    return energy


def loop(x):
    for _ in range(300):
        x = x + 0.01 * np.sin(x)
    return x


CASES = {
    "one operation": (np.sin, 1.0),
    "constant": (lambda x: 3.0, 1.0),
    "identity": (lambda x: x, 1.0),
    "cube, two levels": (grad(grad(lambda x: x**3)), 1.0),
    "forward twice": (derivative(derivative(lambda x: np.exp(x * np.sin(x)))), 1.0),
    "gradient": (grad(quotient), np.ones(4)),
    "hessian": (hessian(lambda x: 1 / np.sqrt(x @ x)), np.ones(3)),
    "cases": (lambda x: np.where(x > 0, np.sqrt(x), x**2), 1.0),
    "folded": (grad(lennard_jones), np.arange(12.0)),
    "folded loop": (loop, 1.0),
}


@pytest.fixture(params=CASES, ids=str)
def case(request):
    return CASES[request.param]


def drawn(case) -> Diagram:
    f, x = case
    (_, diagram), *_ = draw(f, x).diagrams
    return diagram


def boxes_of(placed: PlacedDiagram) -> list[tuple[float, float, float, float]]:
    return [
        (x - width / 2, y - HEIGHT / 2, x + width / 2, y + HEIGHT / 2)
        for (x, y), width in zip(placed.centres, placed.widths, strict=True)
    ]


def test_no_two_boxes_overlap_and_all_are_on_the_page(case) -> None:
    placed = place(drawn(case))
    boxes = boxes_of(placed)
    for a, b in combinations(boxes, 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] < b[1] or b[3] < a[1]
    for left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= placed.width and bottom <= placed.height  # noqa: PT018


def test_arrows_lead_from_box_to_box_in_one_direction(case) -> None:
    placed = place(drawn(case))
    boxes = boxes_of(placed)
    for number, points in zip(placed.edges, placed.arrows, strict=True):
        edge = placed.diagram.edges[number]
        ends = (edge.target, edge.source) if edge.back else (edge.source, edge.target)
        for end, (x, y) in zip(ends, (points[0], points[-1]), strict=True):
            left, top, right, bottom = boxes[end]
            assert left - 0.1 <= x <= right + 0.1 and top - 0.1 <= y <= bottom + 0.1  # noqa: PT018
        along = [point[not placed.sideways] for point in points]
        assert along == sorted(along)
        assert along[0] < along[-1]
    assert set(placed.edges) == set(range(len(placed.diagram.edges)))


def test_arrows_run_through_no_box(case) -> None:
    """Between two points of an arrow the curve stays within their rectangle, which is in a gap between layers."""
    placed = place(drawn(case))
    for points in placed.arrows:
        for (x, y), (u, v) in zip(points[1:-1:2], points[2::2], strict=False):
            for left, top, right, bottom in boxes_of(placed):
                outside = max(x, u) <= left or min(x, u) >= right or max(y, v) <= top or min(y, v) >= bottom
                assert outside


def test_every_operation_has_one_box(case) -> None:
    f, x = case
    traced = trace(f, x)
    diagram = diagram_of(source_of(f, (x,)))
    operations = [box for box in diagram.boxes if box.kind == "operation"]
    assert len(operations) == diagram.operations == traced.count_ops()
    assert len({box.name for box in operations}) == len(operations)
    assert drawn(case).operations == traced.count_ops()


def test_uses_are_those_of_the_formulas(case) -> None:
    diagram = diagram_of(source_of(case[0], (case[1],)))
    words = Counter(word for box in diagram.boxes for word in re.findall(r"\w+", box.formula.partition(" = ")[2]))
    for number, box in enumerate(diagram.boxes):
        if box.kind == "operation":
            drawn = sum(edge.count for edge in diagram.edges if edge.source == number)
            assert box.uses == drawn + len(box.results) == words[box.name] + len(box.results)


def test_svg_is_well_formed_and_has_a_title_for_each_box(case) -> None:
    drawing = draw(*case)
    for text in (drawing.svg(), drawing.more_forms()[".svg"]()):
        root = ET.fromstring(text)
        titles = [element for element in root.iter() if element.tag.endswith("title")]
        assert len(titles) == len(drawn(case).boxes)
        assert not re.search(r"script|url\(|href|@import", text)


def test_the_unfolded_tree_counts_what_the_formula_has() -> None:
    expression = sp.diff(sp.exp(X * sp.sin(X)), X, 2)
    drawing = draw(expression, sharing="both")
    counted = sum(bool(node.args) for node in sp.preorder_traversal(expression))
    distinct = len({node for node in sp.preorder_traversal(expression) if node.args})
    assert (drawing.tree_operations, drawing.operations) == (counted, distinct)
    assert [diagram.operations for _, diagram in drawing.diagrams] == [counted, distinct]
    assert [title for title, _ in drawing.diagrams] == ["Before: the expression tree", "After: equal parts shared"]


def test_a_tree_that_is_too_large_says_what_it_leaves_out() -> None:
    def tower(x):
        for _ in range(70):
            x = np.sin(x) * x
        return x

    drawing = draw(tower, 1.0, sharing="before")
    ((_, diagram),) = drawing.diagrams
    assert drawing.tree_operations == diagram.operations == 2 * (2**70 - 1)  # t = 2 t + 2
    assert len(diagram.boxes) < 70
    assert any(box.kind == "more" for box in diagram.boxes)


def test_a_deep_tree_is_counted_in_one_pass() -> None:
    def tower(x):
        for _ in range(5000):
            x = np.sin(x) * x
        return x

    ((_, diagram),) = draw(tower, 1.0, sharing="before").diagrams
    assert diagram.operations == 2 * (2**5000 - 1)


def test_lennard_jones_folds_to_its_pairs() -> None:
    drawing = draw(lennard_jones, np.arange(39.0))
    ((_, diagram),) = drawing.diagrams
    copies = Counter(box.copies for box in diagram.boxes)
    assert copies[13 * 12 // 2] >= 5
    assert any(box.kind == "input" and box.copies == 39 for box in diagram.boxes)
    assert any(box.label == "Σ 78 terms" for box in diagram.boxes)
    assert diagram.operations == drawing.operations == trace(lennard_jones, np.arange(39.0)).count_ops()


def test_folding_keeps_apart_one_operand_twice_and_two() -> None:
    def products(x):
        s = np.sin(x)
        return np.concatenate([s[:30] * s[:30], s[30::2] * s[31::2]])

    ((_, diagram),) = draw(products, np.ones(60), fold=True).diagrams
    assert [(box.label, box.copies) for box in diagram.boxes][2:] == [("□ × □", 30), ("×", 15)]


def test_a_long_loop_folds_to_a_few_steps_with_an_arrow_back() -> None:
    ((_, diagram),) = draw(loop, 1.0).diagrams
    assert len(diagram.boxes) <= 40
    assert any(edge.back for edge in diagram.edges) or any("↻" in box.label for box in diagram.boxes)
    assert diagram.operations == 900


def test_a_hundred_thousand_nodes_are_drawn() -> None:
    x = np.ones(20_000)
    drawing = draw(lambda x: np.sum(np.sin(x[1:] * x[:-1]) ** 2), x)
    assert drawing.operations == 4 * 19999 - 1
    assert len(drawing.diagrams[0][1].boxes) < 10
    assert len(drawing.svg()) < 20_000


def test_a_picture_of_too_many_boxes_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a picture of 3001 boxes"):
        draw(lambda x: sum([np.sin(k * x) for k in range(1, 1001)]), 1.0, fold=False)


def test_roles_and_levels_are_marked() -> None:
    diagram = drawn((grad(np.sin), 1.0))
    marks = {box.label: box.letters for box in diagram.boxes}
    assert marks["cos"] == "C1" or "C1" in marks["cos"]
    assert "A1" in marks["x"]


def test_a_captured_input_stays_apart_from_its_parameter() -> None:
    """d/dx x * (d/dy x*y)(x): x and the parameters that stand for it are boxes of their own where both are used."""
    labels = Counter(b.kind for b in drawn((grad(lambda x: x * grad(lambda y: np.sin(x * y))(x)), 1.0)).boxes)
    assert labels["input"] == 1
    assert labels["parameter"] >= 1


def test_a_parameter_that_stands_for_a_number_has_a_box() -> None:
    diagram = drawn((lambda x: jvp(lambda y: x * y * y, (3.0,), (1.0,))[1], 1.0))
    assert [box.label for box in diagram.boxes if box.kind == "parameter"] == ["= 3"]


@pytest.mark.parametrize("sharing", ["before", "after", "both"])
def test_what_is_said_in_words_is_the_same_for_tree_and_graph(sharing: str) -> None:
    drawing = draw(sp.sin(X) * Y + sp.exp(sp.sin(X)), sharing=sharing)
    assert (drawing.operations, drawing.tree_operations, drawing.inputs, drawing.results, drawing.shared) == (
        4,
        5,
        2,
        1,
        1,
    )
    assert "4 operations, 2 inputs, 1 result; 1 value is used several times" in drawing.description
    assert drawing.description.endswith("; as an expression tree 5 operations.")


@pytest.mark.parametrize("form", ["expression", "list", "matrix", "text", "let", "trace", "function", "symbol"])
def test_what_may_be_drawn(form: str) -> None:
    expression = sp.sin(X) * sp.exp(sp.sin(X))
    given = {
        "expression": (expression,),
        "symbol": (expression, X),
        "list": ([expression],),
        "matrix": (sp.Matrix([expression]),),
        "text": ("sin(x) exp(sin(x))",),
        "let": (sp.cse([expression]),),
        "trace": (trace(lambda x: np.sin(x) * np.exp(np.sin(x)), 1.0),),
        "function": (lambda x: np.sin(x) * np.exp(np.sin(x)), 1.0),
    }[form]
    drawing = draw(*given)
    assert (drawing.operations, drawing.tree_operations) == (3, 4)
    assert sorted(box.label for box in drawing.diagrams[0][1].boxes) == ["exp", "sin", "x", "×"]


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ((7,), {}),
        (([],), {}),
        ((X + Y, X), {}),
        ((X, X, Y), {}),
        ((X,), {"sharing": "never"}),
        ((trace(np.sin, 1.0), 1.0), {}),
    ],
    ids=range(6),
)
def test_what_may_not_be_drawn(given, options) -> None:
    with pytest.raises(ArgumentError):
        draw(*given, **options)


def test_numbers_of_any_size_have_short_labels() -> None:
    drawing = draw(X + 10**5000 + sp.Rational(1, 3**200), fold=False)
    labels = [box.label for box in drawing.diagrams[0][1].boxes]
    assert all(len(label) <= 22 for label in labels)
    assert len(drawing.text(100)) < 300


@pytest.mark.parametrize("head", ["Sum", "Integral", "Subs", "MatrixElement"])
def test_expressions_with_bound_symbols_have_boxes_too(head: str) -> None:
    expression = {
        "Sum": sp.Sum(X**Y, (Y, 0, 3)),
        "Integral": sp.Integral(sp.sin(X), (X, 0, Y)),
        "Subs": sp.diff(sp.Function("f")(X**2), X),
        "MatrixElement": sp.MatrixSymbol("A", 2, 2)[0, 1] + X,
    }[head]
    assert head in draw(expression).text(100)


def test_results_are_called_by_their_places() -> None:
    def names(f, *args):
        return [name for box in drawn((f, *args)).boxes for name in box.results]

    assert sorted(names(jacobian(lambda x: x[1:] * x[:-1], sparse=True), np.ones(3))) == [
        "[0, 0]", "[0, 1]", "[1, 1]", "[1, 2]",
    ]  # fmt: skip
    assert sorted(names(lambda x: {"a": x[0], "b": (x * x, 2.0)}, np.ones(2))) == [
        '["a"]', '["b"][0][0]', '["b"][0][1]', '["b"][1]',
    ]  # fmt: skip


HOSTILE = ['<script>alert(1)</script>"', 'a\\N"];b[label="', "]]>&\x1b", "\\input{x}$%#"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_only_text(name: str) -> None:
    symbol, function = sp.Symbol(name), sp.Function(name)
    drawing = draw([symbol + 1, function(symbol)])
    ET.fromstring(drawing.svg())
    assert "<script" not in drawing.html()
    for line in drawing.dot().splitlines()[3:-1]:
        assert re.fullmatch(r'  n0_\d+( -> n0_\d+)?( \[(, )?(\w+=("([^"\\]|\\.)*"|[\w.]+)(, )?)+\])?;', line), line
    assert r"\input" not in drawing.latex()


def test_forms_and_files(tmp_path) -> None:
    drawing = draw(grad(quotient), np.ones(3))
    for suffix in (".svg", ".dot", ".html", ".tex", ".txt"):
        assert drawing.save(tmp_path / f"graph{suffix}").stat().st_size > 100
    assert "\\begin{tikzpicture}" in drawing.latex()
    assert drawing._repr_svg_() in drawing.html()
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_without_igraph_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "igraph", None)
    drawing = draw(np.sin, 1.0)
    with pytest.raises(ArgumentError, match=r"symad\[draw\]"):
        drawing.svg()
    assert "sin(x)" in str(drawing)
    assert "peripheries" in drawing.dot()
    rich.print(drawing, file=io.StringIO())
    assert drawing._repr_svg_() is drawing._repr_latex_() is None
    assert "symad[draw]" in drawing._repr_html_()
    assert "sin(x)" in drawing._repr_html_()


def test_the_picture_is_the_same_in_every_process() -> None:
    code = (
        "import numpy as np, hashlib; from symad.classroom.drawing.draw import draw; from symad import grad\n"
        "d = draw(grad(lambda x: np.sum(np.exp(x[1:] * x[:-1])) / (x @ x)), np.ones(4))\n"
        "print(hashlib.sha256((d.svg() + d.latex() + d.dot()).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            capture_output=True,
            text=True,
            env={"PYTHONHASHSEED": seed, "SYMAD_STRICT": "1"},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_the_aliases_of_an_input_share_its_box() -> None:
    reading = source_of(grad(grad(lambda x: x**3)), (1.0,))
    assert len(reading.seen_as) == 2
    assert [reading.box(node).label for node in reading.nodes] == ["x", "2 ×", "3 ×"]
