"""The marks that leave tests to `sh .ci/wide` stand where they do so: elsewhere a long test would come back."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]


def _marked() -> list[tuple[str, ast.FunctionDef]]:
    """Return the tests that leave rows out, with their names."""
    return [
        (f"{file.stem}: {test.name}", test)
        for file in TESTS.rglob("test_*.py")
        for test in ast.walk(ast.parse(file.read_text()))
        if isinstance(test, ast.FunctionDef)
        if any(
            "mark.thinned" in ast.unparse(mark) or "mark.wide_rows" in ast.unparse(mark) for mark in test.decorator_list
        )
    ]


def test_rows_are_left_out_of_tables() -> None:
    marked = _marked()
    assert len(marked) > 80
    for name, test in marked:
        marks = [ast.unparse(mark) for mark in test.decorator_list]
        assert len(marks) > 1, f"{name} has no table"
        assert "pytest.mark.wide" not in marks, f"{name} is left out whole"
        assert not {"pytest.mark.wide_rows", "pytest.mark.wide_rows()"} & {*marks}, f"{name} names no row"


def test_one_row_of_four_stays_and_each_column_has_some() -> None:
    jumps = "tests/symad/derivatives/test_moving_jumps.py::test_a_jump_that_moves_is_refused"
    command = [sys.executable, "-m", "pytest", "-o", "addopts=--import-mode=importlib", "--collect-only", "-q"]
    listed = subprocess.run([*command, "-m", "not wide", jumps], cwd=TESTS.parent, capture_output=True, text=True)
    rows = re.findall(r"\[(.*)\]", listed.stdout)
    assert rows == ["if-numbers", "sign-kernel", "fmod-numbers", "remainder-kernel", "truth-numbers"], listed.stdout
