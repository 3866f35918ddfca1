"""Each kind of page, light and dark, on a desktop and on a phone: axe-core finds nothing wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest
import sympy as sp

from symad.display import html
from symad.display.document import Code, Columns, Document, Folded, Formula, Heading, Paragraph, Table
from tests.support.accessibility import violations
from tests.support.browser import Browser
from tests.symad.display.test_every_form import FORMS, example

THERE = "document.readyState === 'complete' && document.querySelector('main')"


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.thinned
@pytest.mark.wide_rows("Lesson")
def test_nothing_is_wrong_with_a_page(name: str, browser: Browser, tmp_path: Path) -> None:
    page = browser.page(example(name).save(tmp_path / "page.html").as_uri())
    page.wait(THERE)
    for scheme, width, height in (("light", 1280, 800), ("dark", 1280, 800), ("light", 390, 844)):
        page.prefers(color_scheme=scheme)
        page.size(width, height)
        assert violations(page) == [], (scheme, width)
    page.send("Page.close")


def test_what_is_wrong_is_found(browser: Browser, tmp_path: Path) -> None:
    """Grey on grey, a picture without words, a table that only a pointer scrolls, a jump from h1 to h4."""
    path = tmp_path / "page.html"
    path.write_text(
        "<!DOCTYPE html><html lang='en'><title>t</title><main><h1>a</h1><h4>b</h4><p style='color:#aaa'>grey</p>"
        "<img src='data:,'><div style='overflow-x:auto;width:9em'><table><tr><td style='white-space:nowrap'>"
        f"{'a wide table ' * 40}</table></div></main></html>"
    )
    page = browser.page(path.as_uri())
    page.wait(THERE)
    found = {rule for _, rule, *_ in violations(page)}
    assert found == {"heading-order", "color-contrast", "image-alt", "scrollable-region-focusable"}
    page.send("Page.close")


def test_headings_go_down_one_at_a_time() -> None:
    document: Document = (
        Paragraph("a"),
        Columns(((Heading("b", 3), Heading("c", 3)), (Heading("d", 3),))),
        Heading("e", 2),
        Folded("f", (Heading("g", 5),)),
    )
    made = html.page(document, "The title")
    order = [(tag, made.index(f"<{tag}>{text}</{tag}>")) for tag, text in (
        ("h1", "The title"), ("h2", "b"), ("h2", "c"), ("h2", "d"), ("h2", "e"), ("h3", "g")
    )]  # fmt: skip
    assert order == sorted(order, key=lambda pair: pair[1])


def test_who_has_no_pointer_reaches_what_is_wide() -> None:
    wide, narrow = "x" * 60, "x"
    made = html.fragment(
        (
            Code(wide),
            Code(narrow),
            Table((), ((wide, narrow),)),
            Table(("", "a"), ((narrow, narrow),)),
            Formula(sp.Symbol("x")),
        )
    )
    assert made.count('tabindex="0"') == 2
    assert '<pre tabindex="0" role="group" aria-label="wide code">' in made
    assert '<div class="table" tabindex="0" role="group" aria-label="wide table">' in made
    assert '<thead><tr><td class="to-left"></td><th class="to-left">a</th></tr></thead>' in made
