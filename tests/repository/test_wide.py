"""What leaves tests to `sh .ci/wide`, marks and the list of seconds, does so: elsewhere a long test would come back."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.seconds import LIST, LONGEST_TABLE, is_wide, listed

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


def test_what_is_listed_exists() -> None:
    lines = LIST.read_text().splitlines()
    assert lines[1:] == sorted(lines[1:], key=lambda line: line.partition(" ")[2])
    for name in listed():
        file, _, test = name.partition("[")[0].partition("::")
        assert f"def {test.rpartition('::')[2]}(" in (TESTS.parent / file).read_text(), f"{name} is listed, and gone"


def test_a_part_of_a_table_stays_and_each_column_has_some() -> None:
    kept = [k for k in range(400) if not is_wide(f"t[{k}]", k, {"t": 10 * LONGEST_TABLE})]
    assert len(kept) == 40
    for columns in (2, 3, 4, 5, 7):
        assert {k % columns for k in kept} == set(range(columns))


def test_long_rows_are_wide_and_pages_are_not() -> None:
    seconds = {"tests/a.py::t[1]": 0.6, "tests/a.py::u": 0.35, "tests/repository/b.py::v[1]": 5.0}
    assert [is_wide(name, 0, seconds) for name in seconds] == [True, False, False]
