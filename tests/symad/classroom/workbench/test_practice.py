"""Practice in the workbench: a verdict on each line, hints one by one, the answer only when it is asked for."""

from __future__ import annotations

from typing import Any

import pytest

import symad as sa
from symad.classroom.workbench.desk import Desk
from tests.support.accessibility import violations
from tests.support.browser import Page
from tests.support.page_checks import state

ASKED = {"topic": "product rule", "level": 1, "seed": 3}  # x sin(x)
THERE = "document.querySelector('#pane-practice h2')?.textContent.startsWith('Exercise')"
CHOOSE = "(s => (s.value = 'product rule', s.dispatchEvent(new Event('change'))))(document.querySelector('#practice'))"


def told(**more: Any) -> dict[str, Any]:
    return Desk("", allow_code=False, seconds=60).carried_out(
        {"pane": "practice", "question": {**ASKED, **more}}, lambda message: None
    )


def test_the_question_comes_without_its_answer() -> None:
    answer = told()["answer"]
    assert answer["title"] == "Exercise: product rule, level 1, seed 3"
    assert "<math" in answer["html"]
    assert (answer["hints"], answer["more"], answer["solution"]) == ((), True, "")
    assert answer["verdict"] == {"right": None, "html": "", "error": ""}


def test_hints_one_by_one_and_the_solution_when_asked() -> None:
    hints = sa.exercise("product rule", 1, 3).hints
    assert told(hints=1)["answer"]["hints"] == hints[:1]
    last = told(hints=len(hints))["answer"]
    assert (last["hints"], last["more"]) == (hints, False)
    assert "Typical mistakes" in told(solution=True)["answer"]["solution"]


def test_verdicts_tell_no_answer() -> None:
    wrong = told(mine="sin(x) + x cos(x)\n2 sin(x)")["answer"]["verdict"]
    assert wrong["right"] is False
    assert wrong["html"].count("✓ right") == 1
    assert wrong["html"].count("✗ wrong") == 1
    assert told(mine="x cos(x) + sin(x)")["answer"]["verdict"]["right"] is True
    assert "no term can go on" in told(mine="2x +")["answer"]["verdict"]["error"]


def test_a_trace_tells_no_numbers() -> None:
    practice = sa.exercise("reverse traces", 1, 2)
    checked = practice.check(practice.wrong_answers[0].text)
    assert checked.right is False
    assert all(row.expected == () for row in checked.rows)
    assert any(row.expected for row in practice.check(practice.wrong_answers[0].text, reveal="always").rows)


@pytest.mark.parametrize("question", [{"topic": "nothing"}, {"topic": 3}, {"level": 9}, {"seed": "x"}, {"seed": None}])
def test_bad_requests_get_a_message(question: dict[str, Any]) -> None:
    assert "error" in told(**question)


def test_practice_in_a_browser(page: Page) -> None:
    page.run(CHOOSE)
    page.wait(THERE)
    assert state(page)["practice"] == "product rule"
    page.type("#practice-answer", "x^7")
    page.wait("document.querySelector('#pane-practice').dataset.right === 'false'")
    assert "wrong" in page.text("#practice-verdict")
    page.click("#practice-hint")
    page.wait("document.querySelectorAll('#practice-hints li').length === 1")
    assert "product rule" in page.text("#practice-hints")
    assert page.text("#practice-hint") == "Next step"
    assert page.text("#practice-solution") == ""
    page.type("#practice-answer", sa.exercise("product rule", 1, 0).answer)
    page.wait("document.querySelector('#pane-practice').dataset.right === 'true'")
    assert violations(page) == []
    page.click("#practice-solve")
    page.wait("document.querySelector('#practice-solution').innerText.includes('Typical mistakes')")
    page.click("#practice-next")
    page.wait("document.querySelector('#pane-practice h2').textContent.endsWith('seed 1')")
    assert page.run("document.querySelector('#practice-answer').value") == ""
    assert page.text("#practice-solution") == ""
    page.size(390, 844)
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    page.click("#practice-close")
    page.wait("!document.querySelector('#pane-practice')")
