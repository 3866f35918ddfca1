"""Answers of matrix calculus: gradients, Jacobians and differentials, compared on random matrices."""

from __future__ import annotations

import re

import pytest

from symad.classroom.answers.answer_check import check_derivative
from symad.errors import ArgumentError

RIGHT = [
    ("x^T A x", "x", "(A + A^T) x"),
    ("x^T A x", "x", "∇f = Ax + A^Tx"),
    ("½x^TAx - b^Tx", "x", "½(A+A^T)x - b"),
    ("b^T A x", "x", "b^T A"),
    (r"\|Ax - b\|^2", "x", r"2A^{\top}(Ax - b)"),
    ("‖x‖", "x", r"\frac{x}{\|x\|}"),
    ("tr(A X)", "X", "A^T"),
    (r"\log\det X", "X", r"X^{-T}"),
    ("det X", "X", "det(X) (X^{-1})^T"),
    ("X^{-1}", "X", "d(X^{-1}) = -X^{-1} dX X^{-1}"),
    ("X^T A X", "X", "dX^T A X + X^T A dX"),
    ("(x^T a)^2", "x", "2 (x^T a) a"),
    ("exp(x^T x)", "x", "2 exp(x^T x) x"),
    ("sqrt(x^T A x)", "x", r"\frac{(A + A^{\mathsf{T}}) x}{2\sqrt{x^T A x}}"),
    (r"\frac12 \|Ax - b\|^2 + \lambda\|x\|^2", "x", "A^T(Ax - b) + 2λx"),
    (r"\log|\det X|", "X", "X^{-T}"),
]
WRONG = [
    ("x^T A x", "x", "2Ax"),
    ("x^T A x", "x", "(A + A^T) x = 2Ax"),
    ("b^T A x", "x", "A b"),
    (r"\|Ax - b\|^2", "x", "2(Ax - b)"),
    ("log det X", "X", "X"),
    ("X^{-1}", "X", "-X^{-2} dX"),
    ("X^2", "X", "2X dX"),
]


@pytest.mark.parametrize(("question", "variable", "answer"), RIGHT)
def test_a_right_answer_is_right(question: str, variable: str, answer: str) -> None:
    assert check_derivative(answer, question, variable)


@pytest.mark.parametrize(("question", "variable", "answer"), WRONG)
def test_a_wrong_answer_is_wrong_and_says_where(question: str, variable: str, answer: str) -> None:
    checked = check_derivative(answer, question, variable)
    assert checked.right is False
    assert re.search("random matrices|only where (A is symmetric|all matrices are square)", checked.text(100))


@pytest.mark.parametrize(
    ("question", "variable", "answer", "says"),
    [
        ("tr(A X)", "X", "A", "two layouts"),
        ("x^T A x", "x", "A x^", "the end"),
        ("x^T A x", "x", "A x^2", "shapes do not fit"),
        ("x^T A x", "x", "x^2 A", "shapes do not fit"),
        ("x^T A x", "x", "A + x", "two shapes"),
        ("x^T A x", "x", "C x", "'C'"),
        ("x^T A x", "x", "tr A x", "without an argument"),
        ("x^T A x", "x", "", "empty"),
        ("x^T A x", "x", "A x +" + " " * 3000, "the end"),
    ],
)
def test_what_has_two_readings_or_none_is_asked_back(question: str, variable: str, answer: str, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        check_derivative(answer, question, variable)
