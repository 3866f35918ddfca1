"""Every notation of the table is read as it says, or asked back with readings that are read; the page is the table."""

from __future__ import annotations

import re
import warnings

import pytest
import sympy as sp

from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.classroom.formulas.read import read_formula
from symad.errors import ArgumentError, NotationWarning
from tests.notation_table import PAGE, is_read, is_right, mutations, page, refusal
from tests.support.notation_pairs import PAIRS, Pair, checked
from tests.support.notations import ANSWERS, ASKED_BACK, FORMULAS, NAMES, Answer

ROWS = {text: plain for rows in FORMULAS.values() for text, plain in rows.items()}


@pytest.mark.parametrize("text", ROWS)
def test_is_read_as_the_table_says(text: str) -> None:
    assert is_read(text, ROWS[text])


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row.line)
def test_line_of_an_answer_is_right(row: Answer) -> None:
    assert is_right(row)


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.question} {pair.answer}")
def test_pair_is_right(pair: Pair) -> None:
    assert checked(pair).right


@pytest.mark.parametrize("text", ASKED_BACK)
def test_what_is_asked_back_has_readings_that_are_read_and_differ(text: str) -> None:
    said = refusal(text)
    assert said
    if found := re.search(r"; write (.*) or (.*), whichever is meant", said):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            first, second = (read_formula(reading, NAMES) for reading in found.groups())
        assert first != second


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.notation_table --write"


def test_a_decimal_comma_is_told() -> None:
    with pytest.warns(NotationWarning, match=r"3,5 is read as 3\.5"):
        assert read_formula("3,5x") == sp.Rational(7, 2) * sp.Symbol("x")
    assert read_formula("max(3,5)") == 5
    answer = check_derivative("f'(x) = 3,0x", "1.5x^2", "x")
    assert answer.right
    assert "3,0 is read as 3.0: a decimal comma." in answer.text(100)


def test_a_number_that_may_be_an_epsilon_is_asked_back() -> None:
    with pytest.raises(ArgumentError, match=r"write 2·e_1 or 2·10\^1"):
        check_expansion("x^2 + 2e1 x v", "x^2", "x", ["v"])


@pytest.mark.parametrize("line", ["x^3 + O(ε)", "x^3 + 3x^2 v ε + O(x)", "x^3 + O(1)"])
def test_a_remainder_that_swallows_what_is_asked_for_is_refused(line: str) -> None:
    with pytest.raises(ArgumentError, match="remainder"):
        check_expansion(line, "x^3", "x", ["v"])


def test_a_remainder_does_not_stand_for_a_mixed_term() -> None:
    answer = check_expansion("x^2 + 2x v ε₁ + 2x w ε₂ + O(ε²)", "x^2", "x", ["v", "w"])
    assert not answer.right
    assert answer.mistakes[0].kind == "dropped mixed term"


def test_names_of_epsilons_are_those_of_the_question() -> None:
    with pytest.raises(ArgumentError, match="give 2"):
        check_expansion("x", "x^2", "x", ["v", "w"], epsilons=["η"])
    with pytest.raises(ArgumentError, match="stands for nothing else"):
        check_expansion("x", "x^2", "x", ["v"], epsilons=["x"])


@pytest.mark.parametrize("line", ["(x^3)'", "d/dx x^3", "\\frac{d}{dx} x^3", "f'(x)", "y'", "dy/dx"])
def test_what_is_only_asked_again_is_no_answer(line: str) -> None:
    try:
        answer = check_derivative(line, "x^3", "x")
    except ArgumentError:
        return
    assert answer.right is False
    assert not answer.finished


def test_a_derivative_that_is_not_carried_out_is_right_and_not_the_end() -> None:
    answer = check_derivative("(x^2)' sin x + x^2 (sin x)'", "x^2 sin x", "x")
    assert answer.right
    assert not answer.finished
    assert "still to be carried out" in answer.text(100)
    wrong = check_derivative("(x^2)' (sin x)' = 2x cos x", "x^2 sin x", "x")
    assert wrong.mistakes[0].kind == "product rule"


def test_a_bracket_of_words_is_a_note_and_one_of_names_is_a_factor() -> None:
    assert check_derivative("2x (the sum of x and x)", "x^2", "x").right
    for line in ("2x (x)", "2x (lnx)", "2x(cosx sinx)", "2x + 3 (sinx)"):
        assert check_derivative(line, "x^2", "x").right is False
    with pytest.raises(ArgumentError, match="'z'"):
        check_derivative("2x (z)", "x^2", "x")


def test_a_label_is_left_out_and_a_factor_in_parentheses_is_none() -> None:
    for line in ("a) 2x", "(a) 2x", "1) 2x", "i) 2x", "(2) x", "𝑓′(𝑥) = 2𝑥"):
        assert check_derivative(line, "𝑥²", "x").right


def test_mutated_notations_are_read_or_refused_quickly() -> None:
    with warnings.catch_warnings():
        found = mutations(300, 11).found
    assert not found["failed"]
    assert not found["slow"]
    assert found["read"] > 60
    assert found["refused"] > 60
