"""The lessons as steps in the workbench: forwards, backwards, by key, in the address, beside panes that fit them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

from symad.classroom.lessons.lesson import read_steps
from symad.classroom.lessons.lesson_cells import titles
from symad.classroom.workbench.desk import FORMS, Desk, beside
from symad.errors import ArgumentError
from tests.support.accessibility import violations
from tests.support.browser import Browser, Page
from tests.support.notebooks import read_notebook
from tests.support.page_checks import complaints, state
from tests.support.workbench import ROOT, Bench, started

THERE = "document.querySelector('#pane-lesson')?.dataset.step && !document.querySelector('.pane.busy')"


@pytest.mark.parametrize("number", titles())
@pytest.mark.thinned
def test_each_lesson_has_steps_whose_panes_answer(number: int) -> None:
    """What stands beside a step is a question that every pane of the step answers."""
    desk = Desk("", allow_code=False, seconds=60)
    shown = 0
    for step in read_steps(number):
        question, panes = beside(step)
        if question is None:
            continue
        shown += 1
        asked = {"text": question.text, "point": question.point, "transform": question.transform}
        for pane in panes:
            request = {"pane": pane, "question": {**asked, "order": question.order}}
            told = desk.carried_out(request, lambda message: None)
            assert "answer" in told, (step.title, pane, told)
    assert shown >= 2


@pytest.mark.parametrize("number", titles())
@pytest.mark.thinned
def test_the_steps_come_as_they_are_written_and_then_run(number: int) -> None:
    messages: list[dict[str, Any]] = []
    desk = Desk("", allow_code=False, seconds=60)
    told = desk.carried_out({"pane": f"lesson-{number}", "question": {}}, messages.append)
    assert told["answer"]["title"] == f"Lesson {number}: {titles()[number]}"
    written, *run = messages
    steps = written["steps"]
    assert [message["run"] for message in run] == list(range(1, len(steps) + 1))
    for step, message in zip(steps, run, strict=True):
        assert message["html"].startswith(step["html"].removesuffix("\n</div>")[:60])
        assert len(message["html"]) >= len(step["html"])
        assert "<script" not in message["html"]
        assert "<style" not in message["html"]
    assert sum(len(message["html"]) for message in run) > 1.1 * sum(len(step["html"]) for step in steps)
    again: list[dict[str, Any]] = []
    assert desk.carried_out({"pane": f"lesson-{number}", "question": {}}, again.append) == told
    assert again == messages


def test_lessons_that_there_are_not_are_refused(bench: Bench) -> None:
    for name in ("lesson-0", "lesson-99", "lesson-", "lesson-3x", "lesson-../1"):
        assert "error" in bench.pane(name), name
    for arguments, message in (
        (["--lesson", "99"], "there are lessons 1, 2"),
        (["--lesson", "x"], "invalid int"),
        (["--lesson", "3", "x^2"], "give one of the two"),
        (["--step", "3"], "give --lesson NUMBER too"),
    ):
        command = [sys.executable, "-m", "symad", "workbench", "--no-browser", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=600)
        assert (done.returncode, "Traceback" in done.stderr) == (2, False), arguments
        assert message in done.stderr


def test_a_lesson_is_saved(bench: Bench) -> None:
    for form in FORMS:
        status, headers, content = bench.ask("GET", f"{bench.path}export/lesson-3{form}?question={quote('{}')}")
        assert status == 200
        assert f"lesson-3{form}" in headers["Content-Disposition"]
        assert b"amazing" in content
    assert bench.ask("GET", f"{bench.path}export/lesson-3.svg?question={quote('{}')}")[0] == 400
    _, _, content = bench.ask("GET", f"{bench.path}export/lesson-3.ipynb?question={quote('{}')}")
    found = read_notebook(content.decode())
    code = [cell for cell in found.cells if cell.cell_type == "code"]
    assert len(code) == sum(len(step.code) for step in read_steps(3))
    shown = [output for cell in code for output in cell.outputs if output.output_type == "display_data"]
    assert any(r"\varepsilon_{1}" in output.data["text/markdown"] for output in shown)
    assert any("4 times" in str(cell.outputs) or "forward over" in str(cell.outputs) for cell in code)


@pytest.fixture(scope="module")
def taught() -> Iterator[Bench]:
    with started("--lesson", "2") as found:
        yield found


@pytest.fixture
def page(browser: Browser, taught: Bench) -> Iterator[Page]:
    """A tab at the first step of a lesson, whose code has been run."""
    browser.events.clear()
    found = browser.page(taught.address)
    found.wait(THERE, 30)
    yield found
    assert complaints(found) == []
    found.send("Page.close")


def place(page: Page) -> str:
    page.wait(THERE)
    return page.text("#lesson-at")


def shown_panes(page: Page) -> list[str]:
    found: list[str] = page.run("[...document.querySelectorAll('.pane:not([hidden])')].map((e) => e.dataset.pane)")
    return found


def test_steps_go_forwards_and_backwards_by_key(page: Page) -> None:
    assert place(page) == "step 1 of 14: Two levels and the mixed term"
    assert shown_panes(page) == ["lesson"]
    page.press("n")
    assert place(page) == "step 2 of 14: One level after the other"
    assert shown_panes(page) == ["lesson", "expansion"]
    assert page.run("document.querySelector('#text').value") == "x^3"
    assert state(page) | {"hide": ""} == {
        "lesson": "2", "at": "2", "text": "x^3", "transform": "grad-grad", "hide": ""
    }  # fmt: skip
    assert "6𝑣𝑤𝑥" in "".join(page.text("[data-pane=expansion] .body").split())
    assert "cube = sa.expand" in page.text("#pane-lesson .body")
    assert "Coefficients" in page.text("#pane-lesson .body")  # what the code showed
    page.press("ArrowRight")
    assert place(page).startswith("step 3 of 14")
    assert shown_panes(page) == ["lesson", "formula", "stages"]
    page.press("p")
    assert place(page).startswith("step 2 of 14")
    page.press("ArrowLeft")
    assert place(page).startswith("step 1 of 14")
    assert shown_panes(page) == ["lesson"]
    page.press("p")
    assert place(page).startswith("step 1 of 14")
    for _ in range(20):
        page.press("n")
    assert place(page) == "step 14 of 14: Five exercises"
    assert page.run("document.querySelector('#lesson-forward').disabled")


def test_the_arrows_are_those_of_the_expansion_within_it(page: Page) -> None:
    page.press("n")
    place(page)
    page.press("2")
    page.press("ArrowLeft")
    page.wait("location.hash.includes('step=')")
    assert place(page).startswith("step 2 of 14")
    page.press("n")
    assert place(page).startswith("step 3 of 14")
    assert "step" not in state(page)


def test_n_and_p_are_letters_where_one_types(page: Page) -> None:
    page.type("#text", "")
    for letter in "pn":
        page.press(letter)
    assert page.run("document.querySelector('#text').value") == "pn"
    assert place(page).startswith("step 1 of 14")


def test_the_step_is_in_the_address(page: Page, browser: Browser, taught: Bench) -> None:
    for _ in range(3):
        page.press("n")
        place(page)
    assert place(page) == "step 4 of 14: The factor of two"
    page.type("#text", "exp(3x)")
    page.wait("document.body.dataset.shown === 'formula:exp(3x)'")
    other = browser.page(page.run("location.href"))  # a second tab, by the link: with the formula that was changed
    other.wait(THERE, 30)
    assert other.text("#lesson-at") == "step 4 of 14: The factor of two"
    assert other.run("document.querySelector('#text').value") == "exp(3x)"
    other.send("Page.close")
    page.send("Page.reload")
    page.wait("document.querySelector('#text')?.value === 'exp(3x)'")
    page.wait(THERE, 30)
    assert place(page) == "step 4 of 14: The factor of two"
    page.run("document.activeElement.blur()")
    page.press("n")
    assert place(page).startswith("step 5 of 14")
    page.run("history.back()")
    page.wait("document.querySelector('#lesson-at').textContent.startsWith('step 4')")
    assert page.run("document.querySelector('#text').value") == "exp(3x)"
    short = browser.page(taught.address.split("#")[0] + "#lesson=2&at=5")
    short.wait(THERE, 30)
    assert short.run("document.querySelector('#text').value") == "x^2 sin(y)"
    short.send("Page.close")


def test_another_lesson_and_none(page: Page) -> None:
    page.run("(e => { e.value = '8'; e.dispatchEvent(new Event('change')); })(document.querySelector('#lesson'))")
    page.wait("document.querySelector('#pane-lesson h2').textContent.startsWith('Lesson 8')")
    page.wait(THERE, 30)
    assert place(page).startswith("step 1 of 14: From a formula")
    page.click("#lesson-close")
    page.wait("!document.querySelector('#pane-lesson')")
    assert "lesson" not in state(page)
    assert len(shown_panes(page)) == 9
    page.press("n")
    assert not page.run("document.querySelector('#pane-lesson')")


@pytest.mark.parametrize(
    "hash", ["lesson=99&at=2", "lesson=constructor", "lesson=__proto__&at=-1", "lesson=<img src=x>"]
)
def test_an_address_of_no_lesson(browser: Browser, taught: Bench, hash: str) -> None:
    other = browser.page(taught.address.split("#")[0] + "#" + hash)
    other.wait("document.querySelectorAll('.pane').length === 9")
    assert not other.run("document.querySelector('#pane-lesson')")
    other.send("Page.close")


@pytest.mark.parametrize("at", ["0", "-3", "999", "zz", "2.5"])
def test_a_step_that_there_is_not(browser: Browser, taught: Bench, at: str) -> None:
    other = browser.page(taught.address.split("#")[0] + "#lesson=2&at=" + at)
    other.wait(THERE, 30)
    assert other.text("#lesson-at").startswith(("step 1 of", "step 2 of", "step 14 of"))
    other.send("Page.close")


@pytest.mark.parametrize(("width", "height"), [(390, 844), (1280, 800)])
@pytest.mark.wide_rows("1280-800")
def test_a_lesson_fits_the_screen(page: Page, width: int, height: int) -> None:
    page.size(width, height)
    for _ in range(4):
        page.press("n")
        place(page)
    assert page.run("document.documentElement.scrollWidth - innerWidth") <= 0
    for scheme in ("light", "dark"):
        page.prefers(color_scheme=scheme, reduced_motion="reduce")
        assert violations(page) == []


def test_an_error_in_a_lesson_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where an extra is missing that its code needs: a line, no traceback, and the steps can be read."""

    def broken(number: int) -> Iterator[Any]:
        yield read_steps(number)[0]
        raise ArgumentError("symad[draw] is not installed")

    monkeypatch.setattr("symad.classroom.workbench.desk.run_steps", broken)
    messages: list[dict[str, Any]] = []
    told = Desk("", allow_code=False, seconds=9).carried_out({"pane": "lesson-2", "question": {}}, messages.append)
    assert told == {"error": "symad[draw] is not installed"}
    assert len(messages[0]["steps"]) == 14
