"""README.md tells the truth: its Python blocks run, and its test command is what continuous integration calls.

All blocks share one session, top to bottom.
"""

from __future__ import annotations

import doctest
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


SESSIONS = [block for block in blocks("python") if ">>>" in block]


def test_sessions() -> None:
    assert SESSIONS, "README.md shows no interactive session"
    test = doctest.DocTestParser().get_doctest("\n\n".join(SESSIONS), {}, "README.md", str(README), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=report.append)
    assert not runner.summarize(verbose=False).failed, "".join(report)


def test_every_python_block_is_a_session() -> None:
    """A block without prompts would be shown and never run."""
    assert blocks("python") == SESSIONS


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
