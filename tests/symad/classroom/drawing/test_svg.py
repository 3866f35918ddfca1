"""The canvas writes well-formed SVG that stands alone, whatever the texts are."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import symad as sa
from symad.classroom.drawing.svg import Canvas, smooth, text_width
from symad.display.styles import GROUND, LOOKS
from symad.errors import ArgumentError
from tests.support.cairo import NEEDS_CAIRO

HOSTILE = ["<script>alert(1)</script>", "a\"b'c", "]]>", "&amp;", "\x00\x1b[31m", "\ud800", "‮abc", "${7*7}", "x" * 500]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_only_text(text: str) -> None:
    canvas = Canvas(100, 50)
    with canvas.group(text):
        canvas.text(10, 10, text)
    root = ET.fromstring(canvas.svg(ground=True))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {"svg", "style", "rect", "g", "title", "text"}
    (shown,) = (element.text for element in root.iter() if element.tag.endswith("title"))
    assert shown == "".join(c if c.isprintable() else "\ufffd" for c in text)


def test_nothing_is_fetched_or_run() -> None:
    canvas = Canvas(100, 50)
    canvas.box(0, 0, 10, 10, stroke="tangent", fill="tangent", opacity=0.1, dashed=True)
    canvas.curve([(0, 0), (10, 20), (0, 40)])
    canvas.curve([(0, 0), (20, 10)], sideways=True, stroke="wrong")
    canvas.segment((0, 0), (3, 4), arrow=True)
    text = canvas.svg()
    assert not re.search(r"script|url\(|href|@import|\bon\w+=| id=", text)
    assert re.findall(r"https?://[^\"]*", text) == ["http://www.w3.org/2000/svg"]


def test_every_style_has_its_colours_on_light_and_dark_ground() -> None:
    canvas = Canvas(10, 10)
    for style in LOOKS:
        canvas.box(0, 0, 1, 1, fill=style)
    text = canvas.svg(ground=True)
    for style, look in LOOKS.items():
        if look.light:
            assert f"--{style}:#{look.light};" in text
            assert f"--{style}:#{look.dark};" in text
            assert f'class="fill-{style}" fill="#{look.light}"' in text


def test_a_picture_in_a_page_has_the_shades_of_the_page() -> None:
    """A light notebook on a dark system stays light: what is written beside the boxes would not be seen."""
    canvas = Canvas(10, 10)
    canvas.box(0, 0, 1, 1, fill="tangent")
    text = canvas.picture("a box").svg
    assert "prefers-color-scheme" not in text
    assert ".fill-tangent{fill:var(--tangent,#0060A0)}" in text


def test_an_arrow_ends_where_it_should() -> None:
    canvas = Canvas(10, 10)
    canvas.segment((0.0, 0.0), (30.0, 40.0), arrow=True)
    head, _ = re.findall(r' d="M([-\d. ]+)', canvas.svg())
    assert head == "30 40"
    ends = re.findall(r"L([-\d.]+) ([-\d.]+)", canvas.svg())
    assert ends[-1] == ("25.8", "34.4")  # 7 pixels before the tip, on the way from (0, 0)


def test_numbers_are_short_and_have_no_negative_zero() -> None:
    assert smooth([(-0.04, 1 / 3), (-0.3, 1e-9)]) == "M0 0.3C0 0.2 -0.3 0.2 -0.3 0"


def test_groups_nest_and_canvases_are_placed() -> None:
    inner = Canvas(10, 10)
    inner.text(0, 0, "inside", colour="cotangent")
    outer = Canvas(50, 50)
    with outer.group("one"), outer.group("two", (3, 4)):
        outer.place(inner, 5, 6)
    root = ET.fromstring(outer.svg())
    moves = [element.get("transform") for element in root.iter() if element.get("transform")]
    assert moves == ["translate(3 4)", "translate(5 6)"]
    assert "--cotangent" in outer.svg()


def test_wide_letters_count_as_wide() -> None:
    assert text_width("漢字", 10) > text_width("ab", 10) > text_width("ij", 10)
    assert text_width("é", 10) == text_width("e", 10)


PICTURES = [
    sa.spy(["x y", "x + z", "sin(z) u"], ["x", "y", "z", "u"]), sa.growth("exp(x*sin(x))", "x", orders=3),
    sa.draw("x1*x2 - sin(x2)", at={"x1": 2, "x2": 5}),
]  # fmt: skip


@NEEDS_CAIRO
@pytest.mark.parametrize("picture", PICTURES, ids=["spy", "growth", "draw"])
def test_pictures_are_saved_in_dots_and_for_print(picture: Any, tmp_path: Path) -> None:
    svg = ET.parse(picture.save(tmp_path / "a.svg")).getroot()
    image = Image.open(picture.save(tmp_path / "a.png")).convert("RGB")
    assert image.size == tuple(pytest.approx(2 * float(svg.attrib[side]), abs=1) for side in ("width", "height"))
    colours = {f"{red:02X}{green:02X}{blue:02X}" for _, (red, green, blue) in image.getcolors(1 << 24)}
    drawn = {part.attrib["fill"].strip("#") for part in svg.iter() if part.attrib.get("fill", "none") != "none"}
    assert colours >= drawn >= {GROUND.light, LOOKS["primal"].light}
    assert image.getpixel((0, 0)) == image.getpixel((image.width - 1, image.height - 1)) == (255, 255, 255)
    printed = picture.save(tmp_path / "a.pdf").read_bytes()
    assert printed[:5] == b"%PDF-"
    assert b"DejaVuSans" in printed
    size = [float(number) for number in re.findall(rb"MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", printed)[0]]
    assert size == pytest.approx([0.75 * float(svg.attrib[side]) for side in ("width", "height")], abs=1)


def test_a_missing_converter_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    with pytest.raises(ArgumentError, match=r"a \.png file without cairosvg: .*; pip install 'symad\[pictures\]'"):
        PICTURES[0].save(tmp_path / "a.png")
    assert not list(tmp_path.iterdir())
