"""draw(at=): values, local derivatives and adjoints in a picture; texts do not overlap."""

import itertools
import re

import numpy as np
import pytest

import symad as sa
from symad.classroom.drawing.svg import text_width


def survey(x1, x2):
    return np.log(x1) + x1 * x2 - np.sin(x2)


def layer(w, x):
    first = np.tanh(w[0] * x[0] + w[1] * x[1])
    second = np.tanh(w[2] * x[0] + w[3] * x[1])
    return (first * w[4] + second * w[5] - 1.0) ** 2


def test_the_example_of_the_survey():
    """Values, adjoints and local derivatives of the tables of Baydin and others."""
    ((_, diagram),) = sa.draw(survey, at=(2, 5)).diagrams
    assert [(box.label, box.value, box.adjoint) for box in diagram.boxes] == [
        ("x1", "2", "5.5"), ("x2", "5", "1.71634"), ("v1 = ln(x1)", "0.693147", "1"), ("v2 = x1·x2", "10", "1"),
        ("v3 = sin(x2)", "-0.958924", "-1"), ("v4 = v1 + v2", "10.6931", "1"), ("v5 = v4 - v3", "11.6521", "1"),
    ]  # fmt: skip
    slopes = {(edge.source, edge.target): edge.label for edge in diagram.edges}
    assert slopes == {
        (0, 2): "0.5", (0, 3): "5", (1, 3): "2", (1, 4): "0.283662", (2, 5): "1", (3, 5): "1",
        (4, 6): "-1", (5, 6): "1",
    }  # fmt: skip


def test_adjoints_have_the_colour_of_cotangents_and_the_legend_says_so():
    svg = sa.draw(survey, at=(2, 5)).svg()
    coloured = re.findall(r'<text[^>]*class="[^"]*cotangent[^"]*"[^>]*>([^<]*)', svg)
    coloured = coloured or [
        text for attributes, text in re.findall(r"<text([^>]*)>([^<]*)", svg) if "B34700" in attributes
    ]
    assert {"5.5", "1.71634", "second number: adjoint"} <= set(coloured)
    assert "on an arrow: local derivative" in svg
    assert "adjoint" not in sa.draw(survey, 1.0, 1.0).svg()


@pytest.mark.parametrize(
    ("f", "at"),
    [
        (survey, (2, 5)),
        (layer, (np.arange(6) / 5 + 0.1, [1, 2])),
        (lambda x: np.sqrt(x) * abs(x) - x**2 / (1 + np.exp(-x)), 2),
        (lambda x: np.sum(np.sin(x) * x[::-1] ** 3), [1, 2, 3, 4]),
        (lambda x: np.hypot(x, 3 * x) * np.sin(x) + np.cos(x) / x, 0.123456),
    ],
)
def test_texts_do_not_overlap(f, at):
    svg = sa.draw(f, at=at).svg()
    places = []
    for x, y, size, anchor, text in re.findall(
        r'<text x="([-\d.]+)" y="([-\d.]+)" font-size="([\d.]+)" text-anchor="(\w+)"[^>]*>([^<]*)<', svg
    ):
        width = text_width(text, float(size))
        left = float(x) - {"start": 0, "middle": width / 2, "end": width}[anchor]
        group = svg[: svg.index(f'<text x="{x}" y="{y}"')].count("translate")
        places.append((group, left, float(y) - 0.75 * float(size), left + width, float(y) + 0.15 * float(size), text))
    for one, other in itertools.combinations(places, 2):
        apart = one[3] <= other[1] or other[3] <= one[1] or one[4] <= other[2] or other[4] <= one[2]
        assert apart or one[0] != other[0], (one, other)


def test_several_results_have_values_only():
    ((_, diagram),) = sa.draw(lambda x: np.array([x, x**2]), at=3).diagrams
    assert [(box.value, box.adjoint) for box in diagram.boxes] == [("3", ""), ("9", "")]
    ((_, diagram),) = sa.draw(sa.grad(survey, argnums=(0, 1)), at=(2, 5)).diagrams
    assert {box.value for box in diagram.boxes if box.results} >= {"5.5", "1.71634"}


def test_a_derivative_is_drawn_with_the_adjoints_of_its_own_program():
    ((_, diagram),) = sa.draw(sa.grad(lambda x: np.sin(x) * x), at=2).diagrams
    assert diagram.boxes[-1].value == "0.0770038"
    assert diagram.boxes[0].adjoint == "-2.65089"


def test_the_text_and_dot_have_the_numbers():
    drawing = sa.draw("x^2 + sin x", at=1)
    assert re.search(r"v2 = x² +1 +2 by x +1|v1 = x² +1 +2 by x +1", str(drawing))
    assert 'label="2"' in drawing.dot()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: sa.draw(sa.trace(np.sin, 1.0), at=1), "give a function or a formula"),
        (lambda: sa.draw("x^2", at=1, sharing="both"), "without sharing and fold"),
        (lambda: sa.draw(lambda x: np.sum(np.sin(x)), at=np.ones(60)), "boxes with numbers"),
        (lambda: sa.draw(lambda x: abs(x), at=0), "kink"),
        (lambda: sa.draw("ln x", at=-1), "no finite real value"),
    ],
)
def test_refusals(call, words):
    with pytest.raises(sa.errors.ArgumentError, match=words):
        call()
