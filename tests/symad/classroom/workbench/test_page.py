"""The page in a real browser: typed in, stepped, linked, dragged, stopped, shared; small, dark, by keys; attacked."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.accessibility import violations
from tests.support.browser import Browser, Page
from tests.support.page_checks import READY, state
from tests.support.workbench import Bench, started

TIDY = """(() => {
  const small = [], shown = (e) => e.getClientRects().length > 0;
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !shown(e) || e.closest('math')) continue;
    const scale = e.ownerSVGElement ? e.ownerSVGElement.getScreenCTM().a : 1;
    const size = parseFloat(getComputedStyle(e).fontSize) * scale;
    if (size < 10.95) small.push([e.tagName, e.textContent.slice(0, 30), size]);
  }
  return {wide: document.documentElement.scrollWidth - innerWidth, small: small.slice(0, 5)};
})()"""
SLOW = "+".join(f"sin({k}*x*y)*exp(y/{k})*cos(x+{k}*y)" for k in range(1, 60))


def typed(page: Page, text: str) -> None:
    page.type("#text", text)
    ready(page, text)


def ready(page: Page, text: str) -> None:
    """Wait until all panes are about a formula."""
    page.wait(f"document.body.dataset.shown === {json.dumps('formula:' + text)}")


def lit(page: Page, pane: str) -> int:
    return int(page.run(f"document.querySelectorAll('[data-pane={pane}] .lit').length"))


def test_a_formula_is_typed_and_every_pane_comes(page: Page) -> None:
    page.run("document.querySelector('#text').focus()")
    for letter in "exp(x*sin(x))":
        page.press(letter)
    ready(page, "exp(x*sin(x))")
    assert page.run("document.querySelector('#text').value") == "exp(x*sin(x))"
    assert state(page)["text"] == "exp(x*sin(x))"
    assert "1.851755111585772" in page.text("[data-pane=formula]")
    for pane, word in (
        ("expansion", "Level 1"), ("stages", "linearized"), ("program", "used 2 times"), ("code", "fmul"),
        ("errors", "Largest error"), ("routes", "proved"), ("confusion", "No alias"),
    ):  # fmt: skip
        assert word in page.text(f"[data-pane={pane}] .body"), pane
    assert page.run("document.querySelectorAll('[data-pane=graph] g[data-node]').length") == 9


def test_a_wrong_formula_gets_a_caret_and_loses_nothing(page: Page) -> None:
    page.type("#text", "exp(x*sin(x)")
    page.wait("!document.querySelector('#notice').hidden")
    notice = page.run("document.querySelector('#notice').textContent")
    assert re.search(r"column 4.*\n  exp\(x\*sin\(x\)\n +\^", notice, re.DOTALL)
    assert page.run("document.querySelector('#text').value") == "exp(x*sin(x)"
    assert page.run("document.querySelector('#text').getAttribute('aria-invalid')") == "true"
    typed(page, "exp(x*sin(x))")
    assert page.run("document.querySelector('#notice').hidden")


def test_everything_is_linked(page: Page) -> None:
    """Pointing at a box lights its line of the program, its lines of IR and instructions, its line of the stages."""
    typed(page, "exp(x*sin(x))")
    last = "[...document.querySelectorAll('[data-pane=graph] g[data-node]')].at(-1)"
    page.run(f"{last}.id = 'last'")
    assert "result" in page.run(f"{last}.textContent")
    page.point("#last")
    page.wait("document.querySelectorAll('.lit').length > 0")
    for pane in ("formula", "expansion", "stages", "graph", "program", "code"):
        assert lit(page, pane) >= 1, pane
    assert lit(page, "graph") == 1
    code = page.run("[...document.querySelectorAll('[data-pane=code] .lit code, [data-pane=code] code.lit')]"
                    ".map(e => e.textContent)")  # fmt: skip
    assert any("@llvm.fma" in line for line in code)
    assert any(re.match(r"v?fn?madd", line) for line in code)
    page.mouse("move", 2, 2)
    page.wait("document.querySelectorAll('.lit').length === 0")
    page.run("[...document.querySelectorAll('[data-pane=code] code')].find(e => /fmul/.test(e.textContent)).id = 'mul'")
    page.click("#mul")  # stays lit when the pointer leaves
    page.mouse("move", 2, 2)
    assert lit(page, "graph") >= 1
    assert lit(page, "program") >= 1
    page.press("Escape")
    page.wait("document.querySelectorAll('.lit').length === 0")


def test_an_epsilon_lights_its_level(page: Page) -> None:
    page.run("document.querySelector('#transform').value = 'grad-grad';"
             "document.querySelector('#transform').dispatchEvent(new Event('input', {bubbles: true}))")  # fmt: skip
    typed(page, "x*sin(x)")
    page.run("document.querySelector('[data-pane=expansion] math [data-node=L2]').id = 'epsilon'")
    page.point("#epsilon")
    page.wait("document.querySelectorAll('[data-pane=graph] .lit').length > 0")
    boxes = page.run("[...document.querySelectorAll('[data-pane=graph] g.lit')].map(e => e.dataset.node)")
    assert all("L2" in box.split() for box in boxes)
    assert lit(page, "stages") > 1


def test_the_expansion_goes_step_by_step(page: Page) -> None:
    typed(page, "x^3")
    shown = "document.querySelectorAll('[data-pane=expansion] .symad > :not([hidden])').length"
    every = page.run(shown)
    page.click("#first")
    assert page.run(shown) < every
    assert re.match(r"step 1 of \d+", page.text("#step"))
    page.run("document.activeElement.blur()")
    page.press("ArrowRight")
    assert page.text("#step").startswith("step 2 of")
    assert state(page)["step"] == "2"
    page.press("ArrowLeft")
    assert page.text("#step").startswith("step 1 of")
    page.click("#everything")
    assert page.run(shown) == every


def test_a_range_is_dragged(page: Page) -> None:
    typed(page, "(1-cos(x))/x^2")
    page.place("[data-pane=errors] svg")
    area = "document.querySelector('[data-node=field] > rect').getBoundingClientRect()"
    left, top, width, height = (page.run(f"{area}.{name}") for name in ("left", "top", "width", "height"))
    low, high = (float(page.run(f"document.querySelector('#{end}').value")) for end in ("low", "high"))
    middle = top + height / 2
    page.drag((left + width / 4, middle), (left + width / 2, middle))
    page.wait("location.hash.includes('low=') && document.querySelectorAll('.pane.busy').length === 0")
    found = {name: float(value) for name, value in state(page).items() if name in ("low", "high")}
    assert found["low"] == pytest.approx(low + (high - low) / 4, abs=0.02 * (high - low))
    assert found["high"] == pytest.approx(low + (high - low) / 2, abs=0.02 * (high - low))
    assert "Largest error" in page.text("[data-pane=errors] .body")
    page.click("#around")
    page.wait("!location.hash.includes('low=')")


def test_what_takes_long_is_told_and_stopped(page: Page) -> None:
    page.type("#text", SLOW)
    page.wait("/points|compiling/.test(document.querySelector('[data-pane=errors] .state').textContent)", 30)
    assert not page.run("document.querySelector('#stop').disabled")
    page.click("#stop")
    page.wait("document.querySelectorAll('.pane.busy').length === 0")
    assert page.text("[data-pane=errors] .state") == "stopped"
    typed(page, "x^2")
    assert "1.4" in page.text("[data-pane=formula] .body")


def test_the_state_is_in_the_address(browser: Browser, bench: Bench, page: Page) -> None:
    typed(page, "x*sin(y)")
    page.type("#point", "x=2, y=0.5")
    page.wait("document.querySelector('[data-pane=formula] .body').innerText.includes('x = 2, y = 0.5')")
    ready(page, "x*sin(y)")
    address = page.run("location.href")
    other = browser.page(address)  # a second tab, by the link
    ready(other, "x*sin(y)")
    assert other.run("document.querySelector('#point').value") == "x=2, y=0.5"
    assert other.text("[data-pane=formula] .body") == page.text("[data-pane=formula] .body")
    typed(other, "cos(z)")
    assert page.run("document.querySelector('#text').value") == "x*sin(y)"
    other.send("Page.close")
    page.send("Page.reload")
    page.wait(READY + " && document.querySelector('#text').value === 'x*sin(y)'")
    ready(page, "x*sin(y)")
    assert "x = 2, y = 0.5" in page.text("[data-pane=formula] .body")


def test_back_leads_to_the_formula_before(page: Page) -> None:
    typed(page, "x^2")
    page.run("new Promise((done) => setTimeout(done, 1300))")
    typed(page, "x^5")
    page.run("new Promise((done) => setTimeout(done, 1300))")
    page.run("history.back()")
    page.wait("document.querySelector('#text').value === 'x^2'")
    ready(page, "x^2")
    page.run("history.forward()")
    page.wait("document.querySelector('#text').value === 'x^5'")


def test_a_pane_is_closed_and_opened(page: Page) -> None:
    typed(page, "x^2")
    page.run("[...document.querySelectorAll('#chips button')].find(e => e.textContent === 'Routes compared').click()")
    assert page.run("document.querySelector('[data-pane=routes]').hidden")
    assert state(page)["hide"] == "routes"
    page.run("[...document.querySelectorAll('#chips button')].find(e => e.textContent === 'Routes compared').click()")
    ready(page, "x^2")
    assert not page.run("document.querySelector('[data-pane=routes]').hidden")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800), (1920, 1080)])
def test_nothing_is_clipped_or_small(page: Page, width: int, height: int) -> None:
    """The page is as wide as the screen and no wider; no label is under 11 pixels; what is wider scrolls."""
    page.size(width, height)
    typed(page, "exp(x*sin(x))")
    found: dict[str, Any] = page.run(TIDY)
    assert found["wide"] <= 0
    assert found["small"] == []
    cut = page.run("""[...document.querySelectorAll('.formula, .table, figure')]
        .filter(e => e.scrollWidth > e.clientWidth + 1 && !/auto|scroll/.test(getComputedStyle(e).overflowX)).length""")
    assert cut == 0


def test_dark_and_still(page: Page) -> None:
    page.prefers(color_scheme="dark", reduced_motion="reduce")
    typed(page, "x^2")
    ground, ink = page.run("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    bright = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
    assert bright[0] < 150 < 550 < bright[1]
    page.click("#first")
    page.click("#forward")
    assert page.run("getComputedStyle(document.querySelector('.now')).animationName") == "none"


def test_by_keys_alone(page: Page) -> None:
    page.run("document.activeElement.blur()")
    page.press("/")
    assert page.run("document.activeElement.id") == "text"
    page.send("Input.insertText", text="x*sin(x)")
    ready(page, "x*sin(x)")
    page.press("Escape")
    page.run("document.activeElement.blur()")
    page.press("5")
    assert page.run("document.activeElement.closest('.pane').dataset.pane") == "program"
    page.press("ArrowDown")
    assert page.run("document.querySelectorAll('.here').length") == 1
    assert lit(page, "graph") >= 1
    page.press("Enter")
    assert page.run("document.body.classList.contains('pinned')")
    page.press("Escape")
    assert page.run("document.querySelectorAll('.lit, .here').length") == 0
    page.press("7")
    before = page.run("document.querySelector('#low').value")
    page.press("ArrowRight")
    page.wait("location.hash.includes('low=') && document.querySelectorAll('.pane.busy').length === 0")
    assert float(page.run("document.querySelector('#low').value")) > float(before)
    reached = set()
    page.run("document.querySelector('#text').focus()")
    for _ in range(90):  # Tab reaches every control
        page.press("Tab")
        reached.add(page.run("document.activeElement.id || document.activeElement.className"))
    assert {"transform", "point", "big", "share", "body", "first", "low"} <= reached


def test_everything_has_a_name(page: Page) -> None:
    """What a screen reader stops at has a name."""
    typed(page, "x*sin(x)")
    page.send("Accessibility.enable")
    nodes = page.send("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "combobox", "checkbox", "spinbutton", "link", "img", "image", "region"}
    nameless = [
        node["role"]["value"] for node in nodes
        if not node.get("ignored") and node.get("role", {}).get("value") in roles
        and not node.get("name", {}).get("value")
    ]  # fmt: skip
    assert nameless == []
    assert sum(node.get("role", {}).get("value") == "button" for node in nodes) > 20


HOSTILE = [
    "<img src=x onerror=document.title='broken'>",
    "</textarea><script>document.title='broken'</script>",
    r"\href{javascript:document.title='broken'}{x}",
    "\x1b]0;broken\x07x",
    "x'\"><svg onload=document.title='broken'>",
    "def f(x): import os; os.abort()",
]


def test_hostile_formulas_do_nothing(page: Page) -> None:
    for text in HOSTILE:
        page.type("#text", text)
        page.wait("!document.querySelector('#notice').hidden && document.querySelectorAll('.pane.busy').length === 0")
        assert page.run("document.title") == "symad workbench"
        assert page.run("document.querySelectorAll('main img, main script, header script, main [onload]').length") == 0
        assert page.run("document.querySelector('#text').value") == text
        assert "Traceback" not in page.text("body")


def test_hostile_address(browser: Browser, bench: Bench, page: Page) -> None:
    other = browser.page(
        bench.address + "#text=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&transform=constructor&order=-1&step=zz&low=q"
    )
    other.wait(READY + " && !document.querySelector('#notice').hidden")
    assert other.run("document.querySelectorAll('main img').length") == 0
    assert other.run("document.querySelector('#transform').value") == "grad"
    other.send("Page.close")


def test_the_process_ends_in_the_middle(browser: Browser) -> None:
    """What was typed stays, the page says what has happened, and the address leads on with another workbench."""
    with started() as first:
        page = browser.page(first.address)
        page.wait(READY)
        typed(page, "x*sin(x)")
        first.process.kill()
        first.process.wait(10)
        page.type("#text", "x*cos(x)")
        page.wait("/has ended/.test(document.querySelector('#notice').textContent)")
        assert page.run("document.querySelector('#text').value") == "x*cos(x)"
        assert state(page)["text"] == "x*cos(x)"
        page.send("Page.close")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
@pytest.mark.wide_rows("1280-800-light", "390-844-dark")
def test_axe_finds_nothing(page: Page, scheme: str, width: int, height: int) -> None:
    """On the empty page, with a wrong formula, with all panes."""
    page.prefers(color_scheme=scheme, reduced_motion="reduce")
    page.size(width, height)
    assert violations(page) == []
    page.type("#text", "exp(x*sin(x)")
    page.wait("!document.querySelector('#notice').hidden")
    assert violations(page) == []
    typed(page, "exp(x*sin(x))")
    assert violations(page) == []


def test_an_empty_page_offers_examples(page: Page) -> None:
    shown = "[...document.querySelectorAll('.pane')].filter((pane) => pane.offsetParent).length"
    assert page.run(shown) == 0
    assert page.run("document.querySelectorAll('#examples button').length") >= 5
    page.run("document.querySelector('#examples button').click()")
    page.wait("document.body.dataset.shown === 'formula:x^2 sin(x)'")
    assert page.run(shown) == 9
    assert state(page)["text"] == "x^2 sin(x)"


def test_a_half_typed_formula_keeps_the_panes(page: Page) -> None:
    page.type("#text", "sin(x)")
    page.wait("document.body.dataset.shown === 'formula:sin(x)'")
    before = page.text("#pane-formula .body")
    page.type("#text", " + cos(")
    page.wait("!document.querySelector('#notice').hidden && document.querySelectorAll('.pane.busy').length === 0")
    assert page.text("#pane-formula .body") == before
    assert "of the formula before" in page.text("#pane-formula")
    assert page.run("document.querySelectorAll('.pane .failed').length") == 0
