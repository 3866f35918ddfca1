"""Charts put numbers where their axes say they are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from itertools import pairwise

import pytest

from symad.classroom.drawing.chart import line_chart
from symad.display import latex
from symad.errors import ArgumentError


def line_of(svg: str, colour: str) -> list[tuple[float, float]]:
    """Return the corners of the one line drawn in a colour (the other one is in the legend)."""
    commands, _ = re.findall(rf'<path d="([^"]*)" class="stroke-{colour}" fill="none"', svg)
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([-\d.]+) ([-\d.]+)", commands)]


def test_a_power_law_is_a_straight_line_on_logarithmic_axes() -> None:
    svg = line_chart({"cubes": [(10**k, 10 ** (3 * k)) for k in range(5)]}, log_x=True, log_y=True).svg
    points = line_of(svg, "tangent")
    slopes = {round((b[1] - a[1]) / (b[0] - a[0]), 2) for a, b in pairwise(points)}
    assert len(points) == 5
    assert len(slopes) == 1


def test_integers_beyond_the_floats_have_their_place() -> None:
    svg = line_chart({"huge": [(1, 10**1000), (2, 10**2000), (3, 10**3000)]}, log_y=True).svg
    (_, a), (_, b), (_, c) = line_of(svg, "tangent")
    assert a - b == pytest.approx(b - c)
    assert "10³⁰⁰⁰" in svg


def test_places_agree_with_the_ticks() -> None:
    svg = line_chart({"line": [(0, 0), (3, 6), (4, 10)]}).svg
    root = ET.fromstring(svg)
    labels = {e.text: float(e.get("x", "")) for e in root.iter() if e.get("text-anchor") == "middle" and e.text}
    heights = {e.text: float(e.get("y", "")) - 4 for e in root.iter() if e.get("text-anchor") == "end" and e.text}
    for (x, y), (u, v) in zip([(0, 0), (4, 10)], [line_of(svg, "tangent")[k] for k in (0, 2)], strict=True):
        assert (u, v) == (pytest.approx(labels[str(x)], abs=0.1), pytest.approx(heights[str(y)], abs=0.1))


def test_zero_has_a_place_below_all_others_on_a_logarithmic_axis() -> None:
    svg = line_chart({"error": [(1, 1e-16), (2, 0), (3, 1e-8)]}, log_y=True).svg
    heights = [y for _, y in line_of(svg, "tangent")]
    assert heights[1] == max(heights)
    assert heights[1] - heights[0] > 15
    assert ">0</text>" in svg


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0], ids=str)
def test_what_has_no_place_is_a_gap_and_is_counted(bad: float) -> None:
    picture = line_chart({"a": [(1, 2), (2, bad), (3, 4), (4, 5)]}, log_y=True)
    assert "1 point without a place on these axes left out" in picture.svg
    assert "1 point without a place on these axes left out" in picture.text
    commands, _ = re.findall(r'<path d="([^"]*)" class="stroke-tangent" fill="none"', picture.svg)
    assert re.sub(r"[^ML]", "", commands) == "MML"


def test_an_integer_too_large_for_a_linear_axis_is_left_out() -> None:
    assert "1 point without a place" in line_chart({"a": [(1, 10**400), (2, Fraction(1, 3))]}).svg


def test_a_chart_of_nothing_is_refused() -> None:
    with pytest.raises(ArgumentError, match="without a number for its y axis"):
        line_chart({"a": [(1, math.nan)]})
    with pytest.raises(ArgumentError, match="without a number for its x axis"):
        line_chart({})


def test_series_differ_by_marker_and_not_only_by_colour() -> None:
    svg = line_chart({f"s{k}": [(0, k), (1, k + 1)] for k in range(7)}).svg
    shapes = re.findall(r'<path d="([^"]*)" class="(?:fill-\w+ )?stroke-\w+"[^/]*stroke-width="1.6"', svg)
    assert len(shapes) == 7 * 3  # two points and one in the legend
    assert len({_relative(shape) for shape in shapes}) >= 7


def _relative(shape: str) -> tuple[float, ...]:
    """Return the numbers of a path from its centre, rounded: its shape without its place."""
    numbers = list(map(float, re.findall(r"-?[\d.]+", shape)))
    xs, ys = numbers[::2], numbers[1::2]
    return tuple(round(v - (min(c) + max(c)) / 2) for c in (xs, ys) for v in c)


def test_the_chart_in_characters_has_a_letter_for_each_series() -> None:
    text = line_chart({"up": [(0, 0), (1, 1)], "down": [(0, 1), (1, 0)]}, "x", "y", title="Lines").text
    lines = text.split("\n")
    assert lines[0] == "Lines"
    assert "a: up   b: down" in lines
    assert sum(line.count("a") for line in lines if "│" in line) == 2


def test_hostile_names_are_only_text() -> None:
    picture = line_chart({"<script>": [(0, 1), (1, 2)], "a&b": [(0, 2)]}, '"', "<y>", title="</svg>")
    ET.fromstring(picture.svg)
    assert "<script>" not in picture.svg
    assert r"\textless{}script" in latex.body((picture,))


def test_ticks_between_integers_are_integers() -> None:
    drawn = line_chart({"operations": [(0, 3), (1, 7), (2, 14), (3, 25)]}, "order", log_y=True)
    assert ">0.5<" not in drawn.svg
    assert ">3<" in drawn.svg
    assert ">0.4<" in line_chart({"a": [(0.0, 1.0), (1.0, 2.0)]}).svg
