"""The tests that conftest.py leaves to `sh .ci/wide` exist: a name that was changed would bring a long one back."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def table(name: str) -> Any:
    """Return a constant of conftest.py, which is not run a second time."""
    tree = ast.parse((ROOT / "conftest.py").read_text())
    return next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name
    )


@cache
def names_in(stem: str) -> set[str]:
    """Return the names of the tests in all files of a name, "*" for every file."""
    files = list((ROOT / "tests").rglob(f"{stem}.py"))
    return {name for file in files for name in re.findall(r"^\s*def (test_\w+)\(", file.read_text(), re.MULTILINE)}


def test_wide_tests_exist() -> None:
    assert {name.partition("[")[0] for name in table("WIDE")} <= names_in("*")


def test_thinned_tables_exist() -> None:
    for stem, names in table("THINNED").items():
        assert names <= names_in(stem), stem
