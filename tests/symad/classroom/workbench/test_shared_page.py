"""The page of a question without a server: it opens from a file with the network off, its panes linked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from symad.classroom.workbench.shared_page import share
from symad.cli import main
from symad.errors import ArgumentError
from tests.support.accessibility import violations
from tests.support.browser import Browser, Page

STATE = {"text": "x^2 sin(x)", "point": "x=2", "transform": "derivative", "order": 2}
SHOWN = "document.body.dataset.shown !== undefined && document.querySelectorAll('.pane').length >= 9"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shared") / "page.html"
    return share(path, STATE, topics=("product rule", "chain rule"))


@pytest.fixture
def page(browser: Browser, shared: Path) -> Iterator[Page]:
    browser.events.clear()
    page = browser.page("about:blank")
    page.send("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
    page.send("Page.navigate", url=shared.as_uri())
    page.wait(SHOWN)
    yield page
    errors = page.told(lambda event: event["method"] == "Runtime.exceptionThrown")
    asked = {
        event["params"]["request"]["url"] for event in page.told(lambda e: e["method"] == "Network.requestWillBeSent")
    }
    assert not errors
    assert all(url.startswith(("file:", "data:", "about:")) for url in asked)
    page.send("Page.close")


def test_all_is_on_the_page(shared: Path) -> None:
    text = shared.read_text()
    assert not re.search(r'(?:src|href)="(?!#|data:)', text)
    assert "import {" not in text
    for name in ("Expansion", "Hint 1", "Solution", "Exercise 5"):
        assert name in text


def test_panes_are_filled_and_linked(page: Page) -> None:
    assert page.run("document.querySelectorAll('.pane .failed').length") == 0
    assert "2.718" not in page.text("#pane-formula")
    assert "-5.1477" in page.text("#pane-formula")
    node = page.run("document.querySelector('#pane-graph [data-node]').dataset.node.split(' ')[0]")
    element = f"document.querySelector('#pane-graph [data-node~=\"{node}\"]')"
    page.run(f"{element}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    lit = page.run("[...document.querySelectorAll('.pane')].filter((pane) => pane.querySelector('.lit')).length")
    assert lit >= 2


def test_nothing_is_asked_of_a_server(page: Page) -> None:
    assert page.run(
        "[...document.querySelectorAll('#question input, #question textarea')].every((field) => field.disabled)"
    )
    assert page.run("getComputedStyle(document.querySelector('#share')).display") == "none"


def test_exercises_open_one_by_one(page: Page) -> None:
    assert page.run("[...document.querySelectorAll('#pane-exercises details')].every((part) => !part.open)")
    page.run("document.querySelector('#pane-exercises details').open = true")
    assert "rule" in page.text("#pane-exercises details")


def test_it_is_accessible(page: Page) -> None:
    assert violations(page) == []


def test_a_formula_that_cannot_be_read_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="no term can go on"):
        share(tmp_path / "page.html", {**STATE, "text": "x +* 2"})
    assert not list(tmp_path.iterdir())


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "page.html"
    assert main(["workbench", "--share", str(path), "sin(x)"]) == 0
    assert capsys.readouterr().out == f"wrote {path}: open it in any browser\n"
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert main(["workbench", "--share", str(path)]) != 0
    assert "--share without a formula" in capsys.readouterr().err
