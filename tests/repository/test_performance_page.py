"""The tables of docs/performance.md are those of the code."""

from __future__ import annotations

from tests.support.generated_tables import with_tables
from tests.support.performance_table import PAGE, TABLES


def test_the_page_is_up_to_date() -> None:
    """To be made anew with `python -m tests.support.performance_table`."""
    text = PAGE.read_text(encoding="utf-8")
    assert with_tables(text, TABLES) == text


def test_the_tables_are_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        assert f"<!-- {name} -->" in text
        assert make() in text
