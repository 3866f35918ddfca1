"""The lessons run as scripts and cell by cell as notebooks, what they show can be shown, and they end in exercises.

A lesson is a Python file in jupytext's percent format: cells begin with `# %%`, or with `# %% [markdown]` for prose in
comments. Its claims are asserted in its cells.
"""

from __future__ import annotations

import ast
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "lessons"
LESSONS = sorted(FOLDER.glob("[0-9]*.py"))
IDS = [path.stem for path in LESSONS]
MARKER = re.compile(r"# %%( \[markdown\])?$")
VOID = {"area", "br", "col", "hr", "img", "input", "link", "meta", "wbr"}


@dataclass(frozen=True)
class Cell:
    """A cell of a lesson: prose or code, its text, and the line that it begins after."""

    prose: bool
    text: str
    line: int


def cells(path: Path) -> list[Cell]:
    """Return the cells of a lesson; AssertionError where it is no percent format."""
    lines = path.read_text(encoding="utf-8").split("\n")
    starts = [k for k, line in enumerate(lines) if line.startswith("# %%")]
    assert starts, f"{path.name} has no cells"
    assert starts[0] == 0, f"{path.name} does not begin with a cell"
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        marker, body = MARKER.match(lines[start]), lines[start + 1 : end]
        assert marker, f"{path.name}:{start + 1}: {lines[start]!r} is no marker of a cell"
        if marker[1]:
            bad = [line for line in body if line and line != "#" and not line.startswith("# ")]
            assert not bad, f"{path.name}: code in a cell of prose: {bad[0]!r}"
            body = [line.removeprefix("#").removeprefix(" ") for line in body]
        found.append(Cell(bool(marker[1]), "\n".join(body).strip("\n"), start + 1))
    return found


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


def run_cell(cell: Cell, path: Path, names: dict[str, Any]) -> None:
    """Run a cell as a notebook does: its last expression is displayed."""
    tree = ast.increment_lineno(ast.parse(cell.text), cell.line)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, path, "exec"), names)
    if last is not None:
        assert isinstance(last, ast.Expr)
        value = eval(compile(ast.Expression(last.value), path, "eval"), names)
        if value is not None:
            check_display(value)


def refuse_network(*_: object) -> None:
    raise AssertionError("a lesson needs no network")


def test_there_are_nine_lessons_and_a_page_about_them() -> None:
    assert [stem[:2] for stem in IDS] == [f"{k:02}" for k in range(1, 10)]
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \[(\d\d[a-z_0-9]*)\.py\]\(\1\.py\) \|.*\| \d+ \|$", page, re.MULTILINE)
    assert rows == IDS


@pytest.mark.parametrize("path", LESSONS, ids=IDS)
def test_a_lesson_is_well_formed(path: Path) -> None:
    found = cells(path)
    assert found[0].prose
    assert found[0].text.startswith("# "), "the first cell has the title"
    prose = [line for cell in found if cell.prose for line in cell.text.split("\n")]
    assert [line for line in prose if line.count("$") % 2] == [], "a formula stands on one line"
    titles = [line for line in prose if line.startswith("#")]
    assert titles[-2:] == ["## Exercises", "### Solutions"]
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
def test_a_lesson_runs_as_a_script(path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", LESSONS, ids=IDS)
def test_a_lesson_runs_as_a_notebook(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "connect", refuse_network)
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells(path):
        if not cell.prose:
            run_cell(cell, path, names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n", "has no cells"),
        ("import os\n# %%\nx = 1\n", "does not begin with a cell"),
        ("# %% [markdown]\nx = 1\n", "code in a cell of prose"),
        ("# %%markdown\n# a\n", "no marker of a cell"),
    ],
    ids=["no cells", "before the first", "code", "marker"],
)
def test_a_malformed_lesson_is_found(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=message):
        cells(path)


def test_a_false_claim_and_a_bad_page_are_found(tmp_path: Path) -> None:
    path = tmp_path / "lesson.py"
    path.write_text("# %%\nassert 1 + 1 == 3\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_cell(cells(path)[0], path, {})
    page = type("Page", (), {"_repr_html_": lambda self: "<p><b>bold</p>"})()
    with pytest.raises(AssertionError, match="closes another element"):
        check_display(page)
