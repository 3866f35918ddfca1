"""Answers as people type them: read with the right verdict, or asked back; mistakes are named first, or not at all."""

from __future__ import annotations

import re
from typing import Any

import pytest

from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.errors import ArgumentError
from tests.support.pupils_mistakes import MISTAKES, checked
from tests.support.typed_answers import TYPED

pytestmark = pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")


@pytest.mark.parametrize("row", TYPED, ids=lambda row: f"{row[0]} {row[1]}"[:60])
def test_an_answer_gets_the_verdict_that_it_deserves(row: tuple[Any, ...]) -> None:
    question, answer, truth, *rest = row
    try:
        verdict = {True: "R", False: "W", None: "A"}[checked(question, answer, *rest).right]
    except ArgumentError:
        verdict = "A"
    assert verdict == truth


def test_nearly_all_answers_are_read() -> None:
    assert sum(row[2] != "A" for row in TYPED) > 0.93 * len(TYPED)


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: f"{row[0]} {row[1]}"[:60])
def test_a_mistake_is_named_first_or_none_is(row: tuple[Any, ...]) -> None:
    question, answer, pattern, *rest = row
    found = checked(question, answer, *rest)
    assert found.right is False
    said = [str(mistake) for mistake in found.mistakes]
    assert not pattern or re.search(pattern, said[0])


@pytest.mark.parametrize(
    ("formula", "answer"),
    [("(x+1)^2", "= x^2 + 2x + 1\n= 2x + 2"), ("x^3", "x^3 = 3x^2"), ("x^3", "x^3\n3x^2")],
)
def test_an_equality_of_a_function_and_its_derivative_is_for_the_teacher(formula: str, answer: str) -> None:
    found = check_derivative(answer, formula, "x")
    assert found.right is None
    assert "This is the function itself" in found.text(120)


@pytest.mark.parametrize(
    ("words", "answer", "question"),
    [
        ("write ε or exp", "x^2 + 2 x v e", "x^2"),
        ("recommended: 1/", "x^2 + 1/2x v ε", "x^2"),
        ("recommended: e", "e^2x + 2e^2x v ε", "e^{2x}"),
    ],
)
def test_what_is_asked_back_has_a_recommendation(words: str, answer: str, question: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        check_expansion(answer, question, "x", ["v"])


def test_an_e_that_is_wrong_in_both_readings_is_wrong() -> None:
    assert check_expansion("x^2 + x v e", "x^2", "x", ["v"]).right is False


@pytest.mark.parametrize("answer", ["2x dx = 0", "2x + 2y dy = 0", "2x dx - 2y dy = 0"])
def test_a_wrong_differential_is_wrong(answer: str) -> None:
    assert check_derivative(answer, "x^2 + y^2 = 25", "x").right is False
