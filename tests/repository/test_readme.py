"""README.md tells the truth: its Python blocks run, and its test command is what continuous integration calls.

All blocks share one session, top to bottom, and so do the cells of the tour.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import symad

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    text = README.read_text(encoding="utf-8") if README.exists() else ""
    return [body for name, body in FENCE.findall(text) if name == language]


def shown(text: str) -> list[tuple[str, str]]:
    """Return the Python blocks of a page, each with what stands below it as its output."""
    found = FENCE.findall(text)
    return [
        (body, after[1] if after[0] == "text" else "")
        for (name, body), after in zip(found, [*found[1:], ("", "")], strict=True)
        if name == "python"
    ]


def test_blocks_print_what_stands_below_them() -> None:
    blocks_shown = shown(README.read_text(encoding="utf-8"))
    assert len(blocks_shown) > 5
    space: dict[str, object] = {}
    for body, expected in blocks_shown:
        assert ">>>" not in body  # it can be pasted
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(body, str(README), "exec"), space)
        assert printed.getvalue() == expected


def test_cells_of_the_tour_show_what_is_kept_with_them() -> None:
    cells = json.loads((ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8"))["cells"]
    space: dict[str, object] = {}
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(codes) > 15
    for cell in codes:
        kept = "".join("".join(out.get("text") or out["data"]["text/plain"]) for out in cell["outputs"])
        assert displayed("".join(cell["source"]), space) == kept.rstrip("\n")


def displayed(source: str, space: dict[str, object]) -> str:
    """Run a cell as notebooks do: return what it prints, and its last expression."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "tour.ipynb", "exec"), space)
        value = None if last is None else eval(compile(ast.Expression(last.value), "tour.ipynb", "eval"), space)
    return (printed.getvalue() + ("" if value is None else repr(value))).rstrip("\n")


def test_links_of_the_tour_lead_somewhere() -> None:
    text = (ROOT / "examples" / "tour.ipynb").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert len(links) > 5
    assert [link for link in links if not (ROOT / "examples" / link).exists()] == []


def test_the_version_is_the_same_everywhere() -> None:
    shown = {
        "README.md": re.findall(r"version = \{(.*)\}", README.read_text(encoding="utf-8")),
        "CITATION.cff": re.findall(
            r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE
        ),
        "CHANGELOG.md": re.findall(r"^## ([\d.]+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[
            :1
        ],
    }
    assert shown == {key: [symad.__version__] for key in shown}


def test_test_command_is_what_ci_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    command = lines[-1]
    assert command.endswith("sh .ci/check")
    shown = [
        line for language in ("", "sh", "bash", "console") for block in blocks(language) for line in block.splitlines()
    ]
    assert command in [line.removeprefix("$ ") for line in shown]
