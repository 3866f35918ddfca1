"""The lessons run as scripts and cell by cell as notebooks, what they show can be shown, and they end in exercises.

A lesson is a Python file in jupytext's percent format: cells begin with `# %%`, or with `# %% [markdown]` for prose in
comments. Its claims are asserted in its cells.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from symad.classroom.lessons.lesson import run_cell, run_steps
from symad.classroom.lessons.lesson_cells import cells_of, folder, titles as lesson_titles
from symad.errors import ArgumentError

FOLDER = folder()
LESSONS = sorted(FOLDER.glob("[0-9]*.py"))
IDS = [path.stem for path in LESSONS]
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}


class Tags(HTMLParser):
    """A check that every element of HTML that needs it is closed, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """An element that closes itself opens nothing."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"


def check_display(value: Any) -> None:
    """Ask a value for everything that a notebook asks for, and look at the HTML."""
    for name in ("_repr_html_", "_repr_latex_", "_repr_svg_"):
        form = getattr(value, name, None)
        if form is not None and not isinstance(value, type):
            text = form()
            assert text is None or isinstance(text, str)
            if name == "_repr_html_" and text:
                tags = Tags()
                tags.feed(text)
                assert not tags.open, f"not closed: {tags.open}"
    assert repr(value)


def refuse_network(*_: object) -> None:
    raise AssertionError("a lesson needs no network")


def test_there_are_nine_lessons_and_a_page_about_them() -> None:
    assert [stem[:2] for stem in IDS] == [f"{k:02}" for k in range(1, 10)]
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d\d[a-z_0-9]*)\.py\]\(\1\.py\) \|.*\| \d+ \|$", page, re.MULTILINE)
    assert rows == IDS
    assert list(lesson_titles()) == list(range(1, 10))


@pytest.mark.parametrize("path", LESSONS, ids=IDS)
def test_a_lesson_is_well_formed(path: Path) -> None:
    found = cells_of(path)
    assert found[0].prose
    assert found[0].text.startswith("# "), "the first cell has the title"
    prose = [line for cell in found if cell.prose for line in cell.text.split("\n")]
    assert [line for line in prose if line.count("$") % 2] == [], "a formula stands on one line"
    titles = [line for line in prose if line.startswith("#")]
    assert titles[-3:] == ["## Exercises", "### Solutions", "## Five exercises"]
    assert re.search(r"sa\.worksheet\(\[.*\], seed=\d+, count=5\)", found[-1].text)
    exercises = found[[cell.prose and "## Exercises" in cell.text for cell in found].index(True) :]
    asked = [cell.text for cell in exercises if cell.prose]
    numbers = [int(number) for text in asked for number in re.findall(r"^\*\*(\d)\.\*\*", text, re.MULTILINE)]
    assert 3 <= len(numbers) <= 5
    assert numbers == list(range(1, len(numbers) + 1))
    code = "\n".join(cell.text for cell in exercises if not cell.prose)
    checks = re.findall(r"check_(?:expansion|derivative)\(", code)
    assert len(checks) >= 2 * len(numbers), "each exercise catches a wrong answer and accepts a right one"
    assert all(len(cell.text.split("\n")) <= 20 for cell in found if not cell.prose), "a cell fits on a slide"


@pytest.mark.parametrize("path", LESSONS, ids=IDS)
@pytest.mark.thinned
def test_a_lesson_runs_as_a_script(path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", LESSONS, ids=IDS)
@pytest.mark.thinned
def test_a_lesson_runs_as_a_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", refuse_network)
    for step in run_steps(int(path.name[:2])):
        for cell in step.code:
            if cell.value is not None:
                check_display(cell.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no cells"),
        ("import os\n# %%\nx = 1\n", "does not begin with a cell"),
        ("# %% [markdown]\nx = 1\n", "code in a cell of prose"),
        ("# %%markdown\n# a\n", "no marker of a cell"),
        ('# %% [markdown] workbench="take: grad"\n# a\n', "beside a lesson"),
        ('# %% [markdown] workbench="f: x; pane: graph"\n# a\n', "beside a lesson"),
    ],
    ids=["no cells", "before the first", "code", "marker", "no formula", "another part"],
)
def test_a_malformed_lesson_is_found(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ArgumentError, match=message):
        cells_of(path)


def test_a_false_claim_and_a_bad_page_are_found(tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    path.write_text("# %%\nassert 1 + 1 == 3\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_cell(cells_of(path)[0], path, {})
    page = type("Page", (), {"_repr_html_": lambda self: "<p><b>bold</p>"})()
    with pytest.raises(AssertionError, match="closes another element"):
        check_display(page)
