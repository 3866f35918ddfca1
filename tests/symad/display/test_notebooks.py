"""Notebooks: by nbformat's schema in order; read as Markdown they say what the document says, hostile names and all."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import sympy as sp
from markdown_it import MarkdownIt

import symad as sa
from codegen.visible import visible
from symad.display import notebook
from symad.display.document import (
    Code,
    Columns,
    Document,
    Folded,
    Formula,
    Heading,
    Marked,
    Paragraph,
    Picture,
    Table,
    Typeset,
)
from tests.support.display_checks import HOSTILE, balanced, parsed
from tests.support.notebooks import read_notebook

x = sp.Symbol("x")
TAGS = {
    "h1", "h2", "h3", "p", "strong", "code", "span", "table", "thead", "tbody", "tr", "th", "td", "pre", "details",
    "summary", "img", "div",
}  # fmt: skip
READER = MarkdownIt("commonmark").enable("table")


def read(text: str) -> tuple[str, list[str]]:
    """Return Markdown as HTML, with its formulas taken out before as notebooks do, and the formulas."""
    formulas = re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", text, re.DOTALL)
    html = READER.render(re.sub(r"\$\$.+?\$\$|\$.+?\$", "MATH", text, flags=re.DOTALL))
    return html, [display or inline for display, inline in formulas]


def checked(text: str) -> str:
    """Return Markdown as HTML, looked at: elements that a notebook lets through, formulas that a reader takes."""
    html, formulas = read(text)
    assert not re.search(r"[$\\]", re.sub(r"<span>[$\\]</span>|<pre>.*?</pre>", "", html, flags=re.DOTALL))
    for formula in formulas:
        assert balanced(formula), formula
        assert not re.search(r"[$|<>]|\\(href|input|html|class|style|require|text\{[^}]*\\)", formula), formula
    closed = re.sub(r"(<img[^>]*[^/])>", r"\1/>", html)
    tree = parsed(f"<div>{closed}</div>")
    for element in tree.iter():
        assert element.tag in TAGS, element.tag
        assert set(element.attrib) <= {"class", "style", "alt", "src"}
        assert element.get("src", "data:image/svg+xml;base64,").startswith("data:image/svg+xml;base64,")
    return html


def words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html)).strip()


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_text(name: str) -> None:
    """As prose, in a table, in a heading, in code and in a formula: what is read is what was written."""
    seen = " ".join(visible(name).split("\n")).strip()
    for block in (Paragraph(name), Paragraph(Marked(name, "strong")), Heading(name), Folded(name, ())):
        assert words(checked(notebook.body((block,)))) == seen
    html = checked(notebook.body((Table(("a", name), ((name, sp.Symbol(name)), (x, name))),)))
    assert html.count("<td") == 4
    assert html.count("<th ") == 2
    html = checked(notebook.body((Code(name),)))
    assert html.count("<pre>") == 1
    assert unescape(re.sub(r"</?(pre|code)[^>]*>", "", html)).strip() == visible(name).strip()
    symbol, function = sp.Symbol(name), sp.Function(visible(name))
    checked(notebook.body((Formula(symbol**2 + function(symbol), symbol, (name, symbol)),)))


@pytest.mark.parametrize("start", ["1. a", "1) a", "- a", "+ a", "* a", "> a", "# a", "    a", "---", "===", "| a |"])
def test_a_line_is_no_markup(start: str) -> None:
    html = checked(notebook.body((Paragraph("b"), Paragraph(start))))
    assert html.startswith("<p>b</p>\n<p>")
    assert words(html.removeprefix("<p>b</p>")) == start.strip()


def test_each_block_is_read_as_what_it_is() -> None:
    document: Document = (
        Heading("A root", 1),
        Paragraph(("of ", x, ", that is ", Typeset(r"\sqrt{x}"), Marked(": certain", "right"))),
        Formula(sp.sqrt(x), sp.Symbol("y"), ("by ", x)),
        Heading("Below"),
        Table(("a", "b"), (("1", x), ("2", "")), "lr", "Numbers"),
        Code("a = 1\nb = 2", "python", frozenset({1})),
        Picture('<svg viewBox="0 0 1 1"></svg>', "a square"),
        Picture("", "nothing", "o-o"),
        Columns(((Paragraph("left"),), (Paragraph("right"),))),
        Folded("more", (Paragraph("inside"), Formula(x))),
    )
    first, second = notebook.sections(document)
    assert checked(first) == ("<h1>A root</h1>\n<p>of MATH, that is MATH<strong>: certain</strong></p>\n<p>MATH</p>\n")
    assert read(first)[1] == ["x", r"\sqrt{x}", r"y = \sqrt{x} \qquad \text{by }x"]
    html = checked(second)
    assert "<p>Numbers</p>" in html
    assert html.count('style="text-align:right"') == 3
    assert "  a = 1\n&gt; b = 2\n" in html
    assert '<img alt="a square" src="data:image/svg+xml;base64,' in html
    assert "o-o" in html
    assert "<p>left</p>\n<p>right</p>" in html
    assert "<details><summary>more</summary>" in html
    assert "<p>inside</p>" in html


def test_a_long_sum_has_several_lines() -> None:
    total = sum(sp.sin(k * x) for k in range(1, 40))
    (formula,) = read(notebook.body((Formula(total, sp.Symbol("s")),)))[1]
    assert formula.count(r"\\") >= 2
    assert balanced(formula)


def test_bars_do_not_end_a_cell() -> None:
    html = checked(
        notebook.body(
            (
                Table(
                    (),
                    ((abs(x), "|"), (Typeset(r"\|x\|"), "")),
                ),
            )
        )
    )
    assert html.count("<td") == 4


def test_outputs_of_code_are_in_order() -> None:
    made = notebook.written(
        [notebook.prose("# a"), notebook.code("print(1)\n2", "1\n", "**2**", "2"), notebook.code("3")], "A title"
    )
    found = read_notebook(made)
    assert [cell.cell_type for cell in found.cells] == ["markdown", "code", "code"]
    stream, shown = found.cells[1].outputs
    assert (stream.text, shown.data["text/markdown"], shown.data["text/plain"]) == ("1\n", "**2**", "2")
    assert found.cells[2].outputs == []


def test_an_expansion_is_a_notebook(tmp_path: Path) -> None:
    """Its formulas are those of the page: the coefficient stands in it, the struck terms are struck."""
    path = sa.expand("x^3", "x", ["v", "w"]).save(tmp_path / "cube.ipynb")
    found = read_notebook(path.read_text(encoding="utf-8"))
    texts = [cell.source for cell in found.cells]
    formulas = [formula for text in texts for formula in read(text)[1]]
    assert any(r"\cancel{v^{3} \, \varepsilon_{1}^{3}}" in formula for formula in formulas)
    assert "6 v w x" in formulas
    assert [text.split("\n")[0] for text in texts][-1] == "## Coefficients"
    assert not re.search(r"https?://", path.read_text(encoding="utf-8"))


def test_a_picture_is_seen_on_any_ground(tmp_path: Path) -> None:
    pytest.importorskip("igraph")
    cells: list[dict[str, Any]] = json.loads(sa.draw("x*sin(x)").save(tmp_path / "a.ipynb").read_text())["cells"]
    text = "".join(part for cell in cells for part in cell["source"])
    assert text.count("data:image/svg+xml;base64,") == 1
    checked(text)
