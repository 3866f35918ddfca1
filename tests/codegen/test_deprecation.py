"""Deprecated names warn at the caller's line, for two minor releases; none is kept beyond its end."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import symad
from codegen.deprecation import deprecated
from codegen.errors import ArgumentError

ROOT = Path(__file__).parents[2]


@deprecated(since="0.3", until="0.5", instead="grad(f)")
def gradient(x: float, *, scale: float = 2.0) -> float:
    """Return a number."""
    return scale * x


def test_it_works_and_warns_where_it_is_called() -> None:
    with pytest.warns(DeprecationWarning, match=r"since 0\.3, and goes with 0\.5; write grad\(f\)") as told:
        assert gradient(3.0, scale=3.0) == 9.0
    assert [Path(each.filename) for each in told] == [Path(__file__)]
    assert gradient.__doc__ == "Return a number."


@pytest.mark.parametrize(("since", "until"), [("0.3", "0.4"), ("1.2", "1.2"), ("0.9", "0.10")])
def test_a_name_does_not_go_with_the_next_release(since: str, until: str) -> None:
    with pytest.raises(ArgumentError, match="keep it for 2 minor releases"):
        deprecated(since=since, until=until, instead="grad")


def test_no_name_is_kept_beyond_its_end() -> None:
    now = tuple(map(int, symad.__version__.split(".")[:2]))
    kept = []
    for path in (*ROOT.glob("symad/**/*.py"), *ROOT.glob("codegen/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                calls = [each for each in node.decorator_list if isinstance(each, ast.Call)]
                for call in (each for each in calls if ast.unparse(each.func).endswith("deprecated")):
                    until = ast.literal_eval(next(each.value for each in call.keywords if each.arg == "until"))
                    if tuple(map(int, until.split(".")[:2])) <= now:
                        kept.append((path.name, node.name))
    assert kept == []
