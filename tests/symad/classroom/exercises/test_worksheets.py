"""Worksheets: numbered, all different, printed on A4 and Letter, with solutions."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

import symad as sa
import symad.classroom.exercises.exercise as exercises
from symad.errors import ArgumentError, LimitError
from tests.support.browser import Browser, program

SIZES = {"A4": (8.27, 11.69, "595|596", "841|842"), "Letter": (8.5, 11.0, "612", "792")}


@pytest.fixture(scope="module")
def sheet() -> sa.results.Worksheet:
    return sa.worksheet(["power rule", "chain rule", "dual numbers"], level=1, seed=2, count=7)


def test_topics_take_turns_and_questions_differ(sheet: sa.results.Worksheet) -> None:
    assert [practice.topic for practice in sheet.exercises][:4] == [
        "power rule",
        "chain rule",
        "dual numbers",
        "power rule",
    ]
    assert len({str(practice.question.asked()) for practice in sheet.exercises}) == 7


def test_the_sheet_has_no_answers_and_the_solutions_have_all(sheet: sa.results.Worksheet) -> None:
    text, solutions = sheet.text(200), sheet.solutions.text(200)
    for number, practice in enumerate(sheet.exercises, 1):
        assert f"Exercise {number}\n" in text
        assert f"{practice.topic}, level 1, seed {practice.seed}" in solutions
        assert practice.answer in solutions
    assert "Typical mistakes" not in text
    assert solutions.count("Typical mistakes") == 7


def test_lines_to_write_on_in_every_form(sheet: sa.results.Worksheet) -> None:
    assert sheet.html().count('<div class="blank"><hr/><hr/><hr/></div>') == 7
    assert sheet.latex().count(r"\vspace*{4.5\baselineskip}") == 7


@pytest.mark.skipif(program() is None, reason="Chromium is not installed")
def test_pages_print_on_both_papers(sheet: sa.results.Worksheet, tmp_path: Path) -> None:
    with Browser(tmp_path) as browser:
        for name, shown in (("sheet", sheet), ("solutions", sheet.solutions)):
            page = browser.page(shown.save(tmp_path / f"{name}.html").as_uri())
            page.wait("document.readyState == 'complete'")
            page.size(700, 900)  # as wide as paper: nothing may stick out
            assert page.run("document.documentElement.scrollWidth <= innerWidth")
            for width, height, across, down in SIZES.values():
                printed = page.send("Page.printToPDF", paperWidth=width, paperHeight=height)
                pdf = base64.b64decode(printed["data"]).decode("latin-1")
                assert re.search(rf"/MediaBox \[0 0 (?:{across})[.\d]* (?:{down})[.\d]*\]", pdf)


@pytest.mark.parametrize(("topics", "options", "error", "said"), [
    ([], {}, ArgumentError, r"topics=\[\]"),
    (None, {}, ArgumentError, "give a topic"),
    (["chain rule", "nothing at all"], {}, ArgumentError, "no topic 'nothing at all'"),
    ("chain rule", {"count": 0}, ArgumentError, "count=0; give an integer from 1 to 60"),
    ("chain rule", {"count": 1.5}, ArgumentError, "count=1.5"),
    ("chain rule", {"level": 4}, ArgumentError, "level=4"),
])  # fmt: skip
def test_bad_input_is_refused(topics: Any, options: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        sa.worksheet(topics, **options)


def test_a_topic_without_so_many_questions_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exercises, "_SEEDS", 1)
    with pytest.raises(LimitError, match="9 different exercises of 'logarithmic differentiation', level 1; take fewer"):
        sa.worksheet("logarithmic differentiation", count=9)
