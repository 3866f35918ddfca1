"""Attacks on the workbench in a real browser: other origins, two tabs at once, text too long, a reload at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.browser import Browser, Page
from tests.support.page_checks import READY, state
from tests.support.workbench import Bench, started

SLOW = "+".join(f"sin({k}*x*y)*exp(y/{k})*cos(x+{k}*y)" for k in range(1, 60))


class Stranger(BaseHTTPRequestHandler):
    """A page of another origin, which has got hold of the address with the token."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><title>stranger</title><h1>stranger</h1>")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def stranger(browser: Browser) -> Iterator[Page]:
    """A tab with a page that the workbench has not sent, on another port of the same machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Stranger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.page(f"http://127.0.0.1:{server.server_address[1]}/")
        page.wait("document.title === 'stranger' && document.readyState === 'complete'")
        yield page
        page.send("Page.close")
        server.shutdown()


def typed(page: Page, text: str) -> None:
    page.type("#text", text)
    page.wait(f"document.body.dataset.shown === {json.dumps('formula:' + text)}", 30)


FETCHES = {
    "a question as JSON": "{method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{\"text\":\"x\"}'}",
    "a question as text": "{method: 'POST', headers: {'Content-Type': 'text/plain'}, body: '{\"text\":\"x\"}'}",
    "a question that reads nothing": "{method: 'POST', mode: 'no-cors', body: '{\"text\":\"x\"}'}",
    "a look": "{}",
    "a look with what the browser knows": "{credentials: 'include'}",
}


@pytest.mark.parametrize("path", ["pane/formula", "about.json", "workbench.js", "export/formula.txt?question={}", ""])
def test_a_page_of_another_origin_reads_nothing(stranger: Page, bench: Bench, path: str) -> None:
    """Even with the token: the browser hands it no answer, and the server gives none."""
    for name, fetch in FETCHES.items():
        script = f"fetch({json.dumps(bench.address + path)}, {fetch}).then((r) => r.text(), (e) => 'nothing')"
        assert stranger.run(script) in ("nothing", ""), name
    refused = [
        event["params"]["response"]["status"]
        for event in stranger.told(lambda event: event["method"] == "Network.responseReceived")
        if event["params"]["response"]["url"].startswith(bench.address)
    ]
    assert all(status in (403, 501) for status in refused)


def test_a_page_of_another_origin_frames_and_embeds_nothing(stranger: Page, bench: Bench) -> None:
    address = json.dumps(bench.address)
    sources = {"iframe": "", "embed": "", "script": "workbench.js", "img": "export/graph.svg?question={}"}
    for tag, source in sources.items():
        loaded = stranger.run(
            f"new Promise((done) => {{ const e = document.createElement('{tag}'); e.src = {address} + '{source}';"
            "e.onload = () => done('loaded'); e.onerror = () => done('refused'); document.body.append(e);"
            "setTimeout(() => done('refused'), 1500); })"
        )
        inside = stranger.run(
            "[...document.querySelectorAll('iframe')].map((f) => { try { return f.contentDocument?.body?.innerText } "
            "catch { return '' } }).join('')"
        )
        assert loaded == "refused" or tag in ("iframe", "embed"), tag  # which load a page that says so
        assert "workbench" not in (inside or "")
    opened = stranger.run(
        f"(() => {{ const w = open({address}); return w ? Object.keys(w.document ?? {{}}).length : 0; }})()"
    )
    assert not opened


def test_a_form_of_another_origin_sends_nothing(stranger: Page, bench: Bench) -> None:
    stranger.run(
        "(() => { const f = document.createElement('form'); f.method = 'POST'; f.enctype = 'text/plain';"
        f"f.action = {json.dumps(bench.address + 'pane/formula')}; const i = document.createElement('input');"
        "i.name = '{\"text\":\"x'; i.value = '\"}'; f.append(i); document.body.append(f); f.submit(); })()"
    )
    stranger.wait("document.body.innerText.includes('403')")


@pytest.mark.wide
def test_two_tabs_at_once(browser: Browser, bench: Bench, page: Page) -> None:
    """Each gets the answers to its own questions, while the other one has something long to do."""
    other = browser.page(bench.address)
    other.wait(READY)
    page.type("#text", SLOW)
    page.wait("document.querySelectorAll('.pane.busy').length > 0")
    for power in (2, 3, 4):
        typed(other, f"x^{power}")
        assert f"{power}" in other.text("[data-pane=formula] .body")
    page.press("Escape")
    page.wait("document.querySelectorAll('.pane.busy').length === 0")
    assert page.run("document.querySelector('#text').value") == SLOW
    typed(page, "sin(x)")
    assert other.run("document.querySelector('#text').value") == "x^4"
    other.send("Page.close")


def test_nothing_that_was_typed_is_lost(page: Page) -> None:
    """Reloaded at once, before the page had time to look at it; stopped by Escape; too long to be read."""
    page.type("#text", "sin(x)*cos(")
    page.send("Page.reload")
    page.wait(READY + " && document.querySelector('#text').value === 'sin(x)*cos('")
    page.wait("!document.querySelector('#notice').hidden")
    for text in ("x+" * 2500 + "x", "x" * 70_000):
        page.type("#text", text)
        page.wait(f"/{len(text)} letters; give at most 4000/.test(document.querySelector('#notice').textContent)")
        page.wait("!document.querySelector('.pane.busy')")
        assert page.run("document.querySelector('#text').value") == text
    typed(page, "x^2")
    assert page.run("document.querySelector('#notice').hidden")


def test_a_reload_finds_what_the_address_has_not_got_yet(page: Page) -> None:
    """A browser may reload before it has heard of the last address, or writes only so many in half a minute."""
    page.run("history.replaceState = () => { throw new DOMException('too often'); }")
    page.type("#text", "x^3")
    page.send("Page.reload")
    page.wait(READY + " && document.querySelector('#text').value === 'x^3' && location.hash === '#text=x%5E3'")
    page.wait("document.body.dataset.shown === 'formula:x^3'", 30)


def test_the_address_is_shared(browser: Browser, bench: Bench, page: Page) -> None:
    """By the button: what is copied opens the same state, the code of a transform, the range, the closed panes too."""
    browser.send("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    typed(page, "x*sin(x)")
    page.run("document.querySelector('#chips button:nth-child(3)').click()")
    page.click("#share")
    page.wait("document.querySelector('#share').textContent !== 'Copy link'")
    assert page.text("#share") == "Copied"
    copied = page.run("navigator.clipboard.readText()")
    assert copied == page.run("location.href")
    other = browser.page(copied)
    other.wait("document.body.dataset.shown === 'formula:x*sin(x)'", 30)
    assert state(other) == state(page)
    assert other.run("document.querySelector('[data-pane=stages]').hidden")
    other.send("Page.close")


def test_a_finger_on_a_phone(page: Page) -> None:
    """The range of errors is dragged by touch, the expansion is stepped through, at 390x844."""
    page.size(390, 844)
    page.send("Emulation.setTouchEmulationEnabled", enabled=True)
    typed(page, "(1-cos(x))/x^2")
    page.place("[data-pane=errors] svg")
    area = "document.querySelector('[data-node=field] > rect').getBoundingClientRect()"
    left, top, width, height = page.run(f"(r => [r.left, r.top, r.width, r.height])({area})")
    start, end = left + width / 4, min(left + width / 2, 370)
    for kind, x in (("touchStart", start), ("touchMove", (start + end) / 2), ("touchMove", end)):
        page.send("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": top + height / 2}])
    page.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
    page.wait("location.hash.includes('low=') && document.querySelectorAll('.pane.busy').length === 0")
    page.send("Emulation.setTouchEmulationEnabled", enabled=False)  # without a window there are no taps
    page.click("#back")
    page.wait("location.hash.includes('step=')")
    assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0


def test_the_workbench_ends_while_it_computes(browser: Browser) -> None:
    """Said at once, nothing typed is lost, and no pane waits for ever."""
    with started() as first:
        page = browser.page(first.address)
        page.wait(READY)
        page.type("#text", SLOW)
        page.wait("document.querySelectorAll('.pane.busy').length > 0")
        first.process.kill()
        first.process.wait(10)
        page.wait("/has ended/.test(document.querySelector('#notice').textContent)")
        page.wait("document.querySelectorAll('.pane.busy').length === 0")
        assert page.run("document.querySelector('#text').value") == SLOW
        assert state(page)["text"] == SLOW
        page.send("Page.close")
