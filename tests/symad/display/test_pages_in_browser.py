"""Pages in a real browser: on a phone, on a projector, on paper; nothing is clipped, nothing too small to be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import symad as sa
from symad.display.shown import Shown
from tests.support.browser import Browser

SMALLEST = 10.95  # pixels, 11 but for rounding
LOOK = """(() => {
  const small = [], cut = [];
  for (const e of document.querySelectorAll('main *')) {
    if (e.closest('math') || !e.getClientRects().length) continue;
    if ([...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) {
      const scale = e.ownerSVGElement ? e.ownerSVGElement.getScreenCTM().a : 1;
      const size = parseFloat(getComputedStyle(e).fontSize) * scale;
      if (size < SMALLEST) small.push(e.textContent.slice(0, 30) + ' ' + size);
    }
    if (e.closest('svg') || e.scrollWidth <= e.clientWidth + 1 || getComputedStyle(e).display === 'inline') continue;
    const scrolls = (f) => f && (/auto|scroll/.test(getComputedStyle(f).overflowX) || scrolls(f.parentElement));
    if (!scrolls(e)) cut.push(e.tagName + ' ' + e.textContent.slice(0, 30));
  }
  return {small, cut, wide: document.documentElement.scrollWidth - innerWidth};
})()""".replace("SMALLEST", str(SMALLEST))


def wave(x: Any) -> Any:
    return x * np.exp(np.sin(x))


SHOWN = {
    "expansion": lambda: sa.expand("exp(x*sin(x))", "x", ["v", "w"]),
    "stages": lambda: sa.explain(sa.grad(sa.grad(wave)), 0.7),
    "graph": lambda: sa.draw("x*exp(sin(x))"),
    "large graph": lambda: sa.draw(sa.hessian(lambda x: np.prod(np.sin(x) + x**2)), np.ones(4)),
    "comparison": lambda: sa.compare(wave, 0.7, times=False),
    "exhibit": lambda: sa.exhibit("same-point"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_pages_fit_every_screen(name: str, browser: Browser, tmp_path: Path) -> None:
    shown: Shown = SHOWN[name]()
    path = shown.save(tmp_path / "page.html")
    page = browser.page(width=390, height=844)
    for width, height in ((390, 844), (1280, 720)):
        page.size(width, height)
        page.open(path.as_uri())
        page.wait("document.readyState === 'complete' && document.querySelector('main')")
        assert page.run(LOOK) == {"small": [], "cut": [], "wide": 0} or page.run(LOOK)["wide"] < 0, (
            width,
            page.run(LOOK),
        )
    page.send("Page.close")


def test_a_small_graph_fills_its_frame_below_its_formula(browser: Browser, tmp_path: Path) -> None:
    path = sa.draw("x*exp(sin(x))").save(tmp_path / "graph.html")
    page = browser.page(path.as_uri())
    page.wait("document.readyState === 'complete' && document.querySelector('svg')")
    drawn, shown = page.run(
        "(s => [s.viewBox.baseVal.width, s.getBoundingClientRect().width])(document.querySelector('svg'))"
    )
    assert shown > 1.5 * drawn
    assert page.run("document.querySelector('h1').nextElementSibling.className") == "formula"
    page.send("Page.close")


def test_big_pages_use_the_width(browser: Browser, tmp_path: Path) -> None:
    shown = sa.expand("x^3", "x", "v w")
    sizes = []
    for big in (False, True):
        page = browser.page(shown.save(tmp_path / f"{big}.html", big=big).as_uri(), width=1280, height=720)
        page.wait("document.readyState === 'complete' && document.querySelector('main')")
        sizes.append(page.run("parseFloat(getComputedStyle(document.querySelector('p')).fontSize)"))
        assert page.run(LOOK)["cut"] == []
        page.send("Page.close")
    assert sizes[1] > 1.4 * sizes[0]


def test_paper_is_white_and_shows_all(browser: Browser, tmp_path: Path) -> None:
    page = browser.page(sa.explain(sa.grad(wave), 0.7).save(tmp_path / "page.html").as_uri())
    page.send("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.wait("document.readyState === 'complete' && document.querySelector('.table')")
    assert page.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('.table')).overflowX") == "visible"
    page.send("Page.close")
