"""README.md tells the truth: its Python blocks run, and its test command is what continuous integration calls.

A block with `>>>` prompts is a doctest, and all of them share one session, top to bottom; one without is a script.
"""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    text = README.read_text(encoding="utf-8") if README.exists() else ""
    return [body for name, body in FENCE.findall(text) if name == language]


SESSIONS = [block for block in blocks("python") if ">>>" in block]
SCRIPTS = [block for block in blocks("python") if ">>>" not in block]


def test_readme_shows_python() -> None:
    assert SESSIONS or SCRIPTS


def test_sessions() -> None:
    if not SESSIONS:
        pytest.skip("README.md has no interactive blocks")
    test = doctest.DocTestParser().get_doctest("\n\n".join(SESSIONS), {}, "README.md", str(README), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


@pytest.mark.parametrize("block", SCRIPTS, ids=[f"script{number}" for number in range(len(SCRIPTS))])
def test_script(block: str, tmp_path: Path) -> None:
    path = tmp_path / "block.py"
    path.write_text(block, encoding="utf-8")
    done = subprocess.run([sys.executable, "-W", "error", path], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_test_command_is_what_ci_runs() -> None:
    lines = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    command = lines[-1]
    assert command.endswith("sh .ci/check")
    shown = [
        line for language in ("", "sh", "bash", "console") for block in blocks(language) for line in block.splitlines()
    ]
    assert command in [line.removeprefix("$ ") for line in shown]
