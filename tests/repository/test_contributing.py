"""CONTRIBUTING.md tells the truth: its commands print what it shows, and the files that it names exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codegen.processor import has_fma

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`([\w./]+\.(?:py|txt|md)|symad/[\w/]+|codegen/[\w/]+)`|\]\(([\w./]+)\)")


def test_the_files_that_are_named_exist() -> None:
    named = {first or second for first, second in NAMED.findall(PAGE)}
    assert len(named) > 12
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_function_that_is_shown_is_in_the_code() -> None:
    (shown,) = (body for language, body in BLOCK.findall(PAGE) if language == "python" and "@implements" in body)
    files = (ROOT / "symad" / "tracing" / "numpy").glob("*.py")
    assert any(shown in path.read_text(encoding="utf-8") for path in files)


@pytest.mark.skipif(not has_fma(), reason="this processor has no fused multiply-adds to be blamed")
def test_commands_print_what_the_page_shows(tmp_path: Path) -> None:
    """Files are those of Python blocks that begin with a name; commands run in the order of the page."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("SYMAD_")}
    environment["PYTHONPATH"] = str(ROOT)
    commands = 0
    for language, body in BLOCK.findall(PAGE):
        name = re.match(r"# (\w+\.py)\n", body)
        if language == "python" and name:
            (tmp_path / name[1]).write_text(body, encoding="utf-8")
        for part in body.split("$ ")[1:] if language == "console" else []:
            command, _, shown = part.partition("\n")
            command = command.replace(".venv/bin/python", sys.executable)
            done = subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
            )
            assert (done.stdout, done.stderr, done.returncode) == (shown, "", 0), command
            commands += 1
    assert commands == 6
