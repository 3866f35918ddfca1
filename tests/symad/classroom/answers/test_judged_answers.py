"""Answers that were judged beforehand, and derivatives in the notations of three alphabets and eight languages."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from symad.classroom.answers.answer_check import check_derivative, check_expansion
from symad.errors import ArgumentError

SUPPORT = Path(__file__).parents[4] / "tests" / "support"


def rows(name: str, between: str, columns: int) -> list[list[str]]:
    lines = (SUPPORT / name).read_text(encoding="utf-8").splitlines()
    split = (line.split(between, columns - 1) for line in lines if line[:1] != "#")
    return [[cell.strip().replace("¶", "\n") for cell in row] for row in split]


def verdict(question: str, answer: str, variables: str, order: str, directions: str = "") -> str:
    """Return R for right, W for wrong, ? for undecided, A for an answer that is not read or asked back."""
    x: Any = variables.split(",") if "," in variables else variables
    if "=" in variables:
        name, _, value = variables.partition("=")
        x = {name: int(value)}
    try:
        if directions:
            right = check_expansion(answer, question, x, directions.split(",")).right
        else:
            right = check_derivative(answer, question, x, order=int(order)).right
    except ArgumentError:
        return "A"
    return {True: "R", False: "W", None: "?"}[right]


# what each judgement allows: right, wrong, right under a condition, right or asked back
ALLOWED = {"R": "RA", "W": "WA", "K": "R?A", "B": "RA"}
JUDGED = rows("judged_answers.txt", "||", 6)
DERIVATIVES = rows("derivative_notations.txt", " | ", 4)


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
def test_no_judged_answer_gets_another_verdict() -> None:
    others, read = [], Counter[str]()
    for question, answer, truth, variables, order, directions in JUDGED:
        said = verdict(question, answer, variables, order, directions)
        read[truth + said] += 1
        if said not in ALLOWED[truth] and (question, answer) not in FOR_THE_TEACHER:
            others.append((question, answer, truth, said))
    assert not others
    assert read["RR"] + read["WW"] > 0.97 * (sum(read.values()) - read["KR"] - read["K?"] - read["BR"] - read["BA"])


# the function, an equals sign or a new line, and the derivative
FOR_THE_TEACHER = {("1/x^2", "x^-2 = -2x^-3"), ("sqrt(x^3)", "= x^{3/2}\n→ 3/2 x^{1/2}")}


@pytest.mark.filterwarnings("ignore::symad.errors.NotationWarning")
def test_derivatives_are_read_in_nearly_all_notations_and_never_marked_wrong() -> None:
    said = [verdict(question, answer, variables, order) for question, variables, order, answer in DERIVATIVES]
    wrong = [row for row, word in zip(DERIVATIVES, said, strict=True) if word in "W?"]
    assert not wrong
    assert said.count("R") > 0.95 * len(said) > 1000


def test_a_variable_may_be_called_like_an_epsilon() -> None:
    assert check_derivative("2x^3 ε₁", "x^3 ε₁^2", "ε₁").right
    assert check_derivative("x^3 ε₁", "x^3 ε₁^2", "ε₁").right is False


@pytest.mark.parametrize("answer", ["3,5x^2,5^2,5", "2 sin₁ cos x", "3x^2 - xlnxx", "3x^2 is not right"])
def test_what_cannot_be_right_is_wrong_or_refused(answer: str) -> None:
    assert verdict("x^3", answer, "x", "1") in "WA"


def test_the_page_of_an_equation_shows_the_equation() -> None:
    answer = check_derivative("y' = -x/y\ny'' = -(y - x)/y^2", "x^2 + y^2 = 25", "x", order=2)
    assert "x² + y² - 25 = 0" in answer.text()
    assert answer.right is False
    assert "left out y′" in str(answer.mistakes[0])


@pytest.mark.parametrize(
    "answer", [r"\left( {2{x}} \right)", r"\left({x+1}\right)\cdot{2} - 2", r"{2}{x}", r"2\cdot{}x"]
)
def test_braces_of_latex_are_read_where_no_command_is_left(answer: str) -> None:
    assert check_derivative(answer, "x^2", "x").right


@pytest.mark.parametrize("answer", ["0 = 2x + yy'", "2x + yy' = 0"])
def test_an_equation_may_be_turned_round(answer: str) -> None:
    assert check_derivative("0 = 2x + 2yy'", "x^2 + y^2 = 25", "x").right
    assert "derivative of y²" in str(check_derivative(answer, "x^2 + y^2 = 25", "x").mistakes[0])


@pytest.mark.parametrize(
    "lines",
    ["x>0: {}¶x<0: {}", "x>0: {}¶otherwise: {}", "x>0: {}¶else: {}",
     "For x > 0: f'(x) = {}¶For x < 0: f'(x) = {}", "y' = {} for x > 0¶y' = {} for x < 0",
     "{}, x > 0¶{}, x < 0", "für x > 0 gilt f'(x) = {}¶für x < 0 gilt f'(x) = {}"],
)  # fmt: skip
def test_cases_may_stand_on_lines_of_their_own(lines: str) -> None:
    answers = (lines.replace("¶", "\n").format(*values) for values in ((1, -1), (1, 1), (-1, 1)))
    assert [check_derivative(answer, "|x|", "x").right for answer in answers] == [True, False, False]


def test_steps_under_one_condition_are_no_cases() -> None:
    assert check_derivative("y' = 2x/x^2, x > 0\ny' = 2/x, x > 0", "2 ln x", "x").right
    assert check_derivative("y' = 2/x, x > 0\ny'' = -2/x^2, x > 0", "2 ln x", "x", order=2).right
    assert check_derivative("x>0: 1", "|x|", "x").right is None


def test_a_vector_without_commas_is_asked_for_them() -> None:
    with pytest.raises(ArgumentError, match="1 entry where 2 are asked for; give 2, with commas"):
        check_derivative("(2xy x^2)", "x^2 y", ["x", "y"])


@pytest.mark.parametrize(("question", "answer"), [("2x", "sin x : 2"), ("2x", "sinx: 2"), ("x^2 y/4", "xy : 2")])
def test_a_colon_that_divides_ends_no_label(question: str, answer: str) -> None:
    assert verdict(question, answer, "x", "1") == "A"
    assert verdict("2x", "Derivative of f: 2", "x", "1") == verdict("2x", "c) 2", "x", "1") == "R"


@pytest.mark.parametrize("answer", ["|x| + x|x|/x", "|x| - x - x|x|/x + 3|x|/2 - |x|/2 + x + |x|"])
def test_bars_of_sums_are_read(answer: str) -> None:
    assert check_derivative(answer, "x|x|", "x").right


@pytest.mark.parametrize(
    "answer",
    ["$2x$ by the power rule", "The derivative is $2x$.",
     r"\underline{\underline{2x}}", r"2{,}0x", r"2{,}0 \cdot x"],
)  # fmt: skip
def test_dollars_and_braces_around_formulas(answer: str) -> None:
    assert verdict("x^2", answer, "x", "1") == "R"
    assert verdict("x^2", "$2x$ $3x$", "x", "1") == "A"


@pytest.mark.parametrize("line", [" = 0", "\n4x^3 - 4x = 0", "\nf'(x) = 0\nx(x^2 - 1) = 0", "\n0 = 4x^3 - 4x"])
def test_a_derivative_that_is_set_to_zero_is_for_the_teacher(line: str) -> None:
    assert verdict("x^4 - 2x^2", f"f'(x) = 4x^3 - 4x{line}", "x", "1") == "?"
    assert verdict("x^4 - 2x^2", f"f'(x) = 4x^3 - 4x^2{line}", "x", "1") == "W"
    assert verdict("x^4 - 2x^2", "f'(x) = 0", "x", "1") == "W"


def test_a_number_in_place_of_a_matrix_is_called_so() -> None:
    assert "the shape of a number, not (3, 3)" in str(check_derivative("1", "det X", "X").mistakes[0])


@pytest.mark.parametrize(
    ("answer", "said"), [("-4.46*0.8^t", "R"), ("-4.46*0.7^t", "W"), ("-4.4*0.8^t", "W"), ("4.46*0.8^t", "W")]
)
def test_a_decimal_with_few_digits_may_be_exact(answer: str, said: str) -> None:
    assert verdict("20*0.8^t", answer, "t", "1") == said
