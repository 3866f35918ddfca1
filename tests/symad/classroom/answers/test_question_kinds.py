"""Questions of several kinds: right answers in many spellings, wrong ones and their mistakes, what is asked back."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from symad.classroom.answers.answer_check import check_derivative
from symad.errors import ArgumentError

TABLE = Path(__file__).parents[3] / "support" / "question_kinds.txt"


class Judged(NamedTuple):
    """A question, an answer, the verdict that it should have, and the kind of its mistake."""

    formula: str
    x: Any
    options: dict[str, Any]
    answer: str
    verdict: str
    kind: str


def options_of(text: str) -> dict[str, Any]:
    """Return options such as order=x,y,y or taylor."""
    found: dict[str, Any] = {}
    for part in (
        text.replace("order=3, taylor", "order=3;taylor").replace("order=2, taylor", "order=2;taylor").split(";")
    ):
        name, _, value = part.strip().partition("=")
        if name == "order":
            names = value.split(",")
            found[name] = tuple(names) if len(names) > 1 else int(value) if value.isdigit() else value
        elif name:
            found[name] = value or True
    return found


def variables_of(text: str) -> Any:
    """Return a name, a list of names, or a point."""
    parts = [part.strip() for part in text.split(",")]
    if "=" in text:
        return {name.strip(): value.strip() for name, _, value in (part.partition("=") for part in parts)}
    return parts[0] if len(parts) == 1 else parts


def rows() -> Iterator[Judged]:
    """Yield the answers of the table."""
    question: Any = None
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        if not line.startswith(" "):
            formula, x, options = (part.strip() for part in line.rsplit("|", 2))
            question = (formula, variables_of(x), options_of(options))
            continue
        verdict, _, answer = line.strip().partition(" ")
        answer, _, kind = answer.partition(" : ")
        yield Judged(*question, answer.strip().replace("¶", "\n"), verdict, kind.strip())


ROWS = list(rows())


def verdict_of(row: Judged) -> tuple[str, list[str]]:
    """Return the verdict on an answer, and the kinds of mistakes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            checked = check_derivative(row.answer, row.formula, row.x, **row.options)
        except ArgumentError as error:
            return "?", [str(error)]
    verdict = {True: "R" if checked.finished else "U", False: "W", None: "?"}[checked.right]
    return verdict, [mistake.kind for mistake in checked.mistakes]


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.formula} {row.answer}"[:60] for row in ROWS])
def test_an_answer_has_the_verdict_that_was_given_beforehand(row: Judged) -> None:
    verdict, kinds = verdict_of(row)
    assert verdict == row.verdict, kinds
    if row.kind:
        assert row.kind in kinds


def test_there_are_many_questions() -> None:
    assert len({(row.formula, str(row.x), str(row.options)) for row in ROWS}) > 80
    assert len(ROWS) > 300
