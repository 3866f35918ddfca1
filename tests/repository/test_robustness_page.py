"""docs/robustness.md: the files and campaigns that it names are there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.campaign import CAMPAIGNS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
FOLDERS = (ROOT, ROOT / "tests", ROOT / "tests" / "symad")


def test_the_files_that_are_named_exist() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 30
    everywhere = {path.name for room in ("codegen", "symad", "tests") for path in (ROOT / room).rglob("*.py")}
    lost = [name for name in sorted(named) if not any((folder / name).exists() for folder in FOLDERS)]
    assert [name for name in lost if "/" in name or name not in everywhere] == []


def test_every_failure_of_the_list_has_a_row_with_a_test() -> None:
    rows = re.findall(r"^\| (\d+) \|(.*)\|$", PAGE, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(13))
    assert all(re.search(r"test_\w+\.py|tests/", text) for _, text in rows)


def test_every_campaign_has_a_row() -> None:
    assert [name for name in CAMPAIGNS if f"| `{name}" not in PAGE] == []
